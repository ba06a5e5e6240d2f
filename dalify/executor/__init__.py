"""Executes plans: computes batches with kernels on chunks of samples, in threads, streams and processes."""
