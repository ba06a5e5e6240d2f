"""Triton kernels for NVIDIA and AMD GPUs: one launch per operator and chunk, for samples of any shapes.

They read the addresses, shapes and arguments of samples from arrays on the device. torch kernels compute the cases that
Triton kernels do not support. `dalify.kernels.dispatch` selects the kernel.
"""
