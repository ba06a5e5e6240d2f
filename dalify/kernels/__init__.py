"""Compiled pieces that operators share: numba or libraries that release the GIL on the CPU, torch on the GPU."""
