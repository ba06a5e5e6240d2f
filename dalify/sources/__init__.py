"""Sources of samples and their order: the sampler, user callbacks, and worker processes with shared memory."""

from dalify.sources.sampler_options import window_bounds

__all__ = ["window_bounds"]
