"""Properties of a pipeline that return its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.base.deprecation import warn_deprecated
from dalify.pipeline.parts import Parts

__all__ = ["Facts"]


class Facts:
    """The properties of a pipeline."""

    _parts: Parts

    @property
    def max_batch_size(self) -> int:
        """Maximum number of samples in a batch."""
        return self._parts.options.batch_size

    @property
    def batch_size(self) -> int:
        """Old name of ``max_batch_size``."""
        warn_deprecated("Pipeline.batch_size is now called max_batch_size.")
        return self._parts.options.batch_size

    @property
    def num_threads(self) -> int:
        """Number of worker threads."""
        return self._parts.options.num_threads

    @property
    def device_id(self) -> int | None:
        """Index of the accelerator."""
        return self._parts.options.device_id

    @property
    def seed(self) -> int:
        """Seed of all random numbers; drawn at random if not specified."""
        return self._parts.builder.seed

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self._parts.builder.graph().outputs)

    @property
    def prefetch_queue_depth(self) -> Any:
        """Number of batches in progress at the same time, as specified."""
        return self._parts.options.prefetch_queue_depth

    @property
    def exec_pipelined(self) -> bool:
        """As specified."""
        return self._parts.options.exec_pipelined

    @property
    def exec_async(self) -> bool:
        """As specified."""
        return self._parts.options.exec_async

    @property
    def exec_dynamic(self) -> bool | None:
        """As specified, or DALI's default; memory and copies are always dynamic."""
        options = self._parts.options
        is_default = options.exec_pipelined and options.exec_async and not self.exec_separated
        return True if options.exec_dynamic is None and is_default else options.exec_dynamic

    @property
    def py_num_workers(self) -> int | None:
        """Number of worker processes of parallel sources."""
        return self._parts.options.py_num_workers

    @property
    def py_start_method(self) -> str:
        """Start method of worker processes."""
        return self._parts.options.py_start_method

    def output_dtype(self) -> list[Any]:
        """Return the expected element type of each output; None for any."""
        return [self._parts.options.expected("dtype", index) for index in range(self.num_outputs)]

    def output_ndim(self) -> list[Any]:
        """Return the expected number of dimensions of each output; None for any."""
        return [self._parts.options.expected("ndim", index) for index in range(self.num_outputs)]

    def output_layout(self) -> list[Any]:
        """Return the expected layout of each output; None for any."""
        return [self._parts.options.expected("layout", index) for index in range(self.num_outputs)]

    @property
    def cpu_queue_size(self) -> int:
        """Number of batches in progress before the device stage, as specified."""
        depths = self._parts.options.prefetch_queue_depth
        return depths["cpu_size"] if isinstance(depths, Mapping) else depths

    @property
    def gpu_queue_size(self) -> int:
        """Number of batches in progress on the device, as specified."""
        depths = self._parts.options.prefetch_queue_depth
        return depths["gpu_size"] if isinstance(depths, Mapping) else depths

    @property
    def exec_separated(self) -> bool:
        """Whether the two queue sizes were specified separately."""
        return isinstance(self._parts.options.prefetch_queue_depth, Mapping)

    @property
    def stream_policy(self) -> Any:
        """As specified; no effect."""
        return self._parts.options.stream_policy

    @property
    def concurrency(self) -> Any:
        """As specified; no effect."""
        return self._parts.options.concurrency

    @property
    def max_streams(self) -> int:
        """-1, which means no limit; the option has no effect, as in DALI."""
        return -1

    @property
    def default_cuda_stream_priority(self) -> int:
        """0; the option has no effect, as in DALI. Work is submitted to torch's streams."""
        return 0

    @property
    def set_affinity(self) -> bool:
        """As specified; no effect."""
        return self._parts.options.set_affinity

    @property
    def enable_memory_stats(self) -> bool:
        """As specified."""
        return self._parts.options.enable_memory_stats

    @property
    def bytes_per_sample(self) -> int:
        """As specified; no effect."""
        return self._parts.options.bytes_per_sample
