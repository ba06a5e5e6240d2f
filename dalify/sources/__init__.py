"""Where samples come from and in which order: the sampler, user callbacks, worker processes over shared memory."""
