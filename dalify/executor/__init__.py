"""From a plan to batches: chunks of samples through runs of kernels, threads, streams, queues."""
