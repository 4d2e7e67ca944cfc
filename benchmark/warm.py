"""Importing this loads all that a worker needs, the kernels included, if they were compiled before.

Only the server that loky's workers are forked from imports it. The server ends with the run, however that ends, and a
worker with the server: left to themselves, they would wait for each other for minutes.
"""

import ctypes
import gc
import os
import signal

from benchmark.trial import kernels_are_compiled, load_kernels

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have Linux kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


end_with_parent()
os.register_at_fork(after_in_child=end_with_parent)
if kernels_are_compiled():
    load_kernels()
# A worker's garbage collector need not go through all of this, which would copy it: loky calls it after the first task.
gc.freeze()
