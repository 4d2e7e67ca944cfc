"""Importing this loads all that a worker needs, the kernels included, if they were compiled before."""

from benchmark.trial import kernels_are_compiled, load_kernels

if kernels_are_compiled():
    load_kernels()
