"""Importing this loads all that a worker needs, the kernels included, if they were compiled before.

It is imported by the server that loky's workers are forked from. The server ends with the run, however that ends; a
worker ends with the server.
"""

import ctypes
import os
import signal

from benchmark.trial import kernels_are_compiled, load_kernels

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have Linux kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


os.register_at_fork(after_in_child=end_with_parent)
if kernels_are_compiled():
    load_kernels()
