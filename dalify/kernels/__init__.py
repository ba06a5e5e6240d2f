"""Compiled functions shared by operators: numba or libraries that release the GIL on the CPU, torch on the GPU."""
