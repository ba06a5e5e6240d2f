"""Triton kernels for NVIDIA and AMD GPUs: one launch per operator and chunk, for samples of any shapes.

They read the addresses, shapes and arguments of samples from arrays on the device. torch kernels remain the reference,
and compute what these do not. `dalify.kernels.dispatch` decides which of the two is used.
"""
