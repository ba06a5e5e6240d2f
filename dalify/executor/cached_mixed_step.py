"""The step of a decoder for ``mixed`` that caches decoded samples in device memory across epochs.

Encoded samples are still read; the cache avoids decoding them, and copying images that the host decodes. A sample is
identified by its reader entry.
"""

from __future__ import annotations

from typing import Any

from dalify.base.optional import torch
from dalify.data import Spec
from dalify.data.sample_memory import MEGABYTE, ChunkMemory, SampleMemory
from dalify.executor.cache_counts import CacheCounts
from dalify.executor.device_samples_step import MixedStep
from dalify.executor.origins import Origins
from dalify.executor.reader_step import ReaderStep
from dalify.executor.step_call import StepCall
from dalify.graph import Node, rule_arguments


class CachedMixedStep(MixedStep):
    """Calls the kernel with the part of the cache for its samples.

    A cache belongs to one pipeline, because its tensors are read and freed in the order of that pipeline's stream.

    Args:
        node: a decoder with the arguments of a cache, not in a branch.
        reader: the only reader before the decoder.
        others: arguments of ``MixedStep``, after the node.
    """

    def __init__(self, node: Node, reader: ReaderStep, *others: Any) -> None:
        super().__init__(node, *others)
        assert not self._is_planned_by_shape, f"dalify bug: {node.operator.name} would use the cache of other samples"
        self._reader = reader
        given = rule_arguments(node)
        self._max_bytes: int = given["cache_size"] * MEGABYTE
        self._threshold_bytes: int = given["cache_threshold"]
        self._store: SampleMemory | None = SampleMemory(
            self._max_bytes, given["cache_type"] == "largest", copied=torch.clone
        )
        self._counts = CacheCounts()

    def _extra(self, call: StepCall, prepared: dict[str, Any], specs: tuple[Spec, ...]) -> dict[str, Any]:
        extra = super()._extra(call, prepared, specs)
        store = self._store
        if store is None:
            return extra
        keys = self._keys(call)
        hits = sum(key is not None and store.has(*key) for key in keys)
        self._counts.add(hits, call.count - hits)
        return {**extra, "cache": ChunkMemory(store, keys, self._threshold_bytes)}

    def _keys(self, call: StepCall) -> list[tuple[str, str] | None]:
        """Return key and state of each sample; None for samples that are not cached."""
        # Without origins, a sample may not be the entry of the sampler, because bad entries are replaced.
        if not isinstance(call.origins, Origins):
            return [None] * call.count
        replaced = set[int]().union(*call.frame.substitutes.values())
        return [
            None if call.frame.start + index in replaced else self._reader.identity_of(number)
            for index, number in enumerate(call.origins.numbers.tolist())
        ]

    def close(self) -> None:
        """Free the samples."""
        self._store = None

    def __str__(self) -> str:
        """Return the number of samples that were found in the cache, and its size."""
        if self._store is None:
            return f"{self.node!r} caches nothing: the pipeline is closed"
        return (
            f"{self.node!r}: {self._counts.text('decoded')}; {self._store.size_bytes} of {self._max_bytes} bytes are "
            "taken on the device"
        )
