"""Sources of samples and their order: the sampler, user callbacks, and worker processes with shared memory."""
