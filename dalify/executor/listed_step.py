"""The step of operators that look at each sample by itself: decoders, and what reads files.

Alone because nothing has to come together here: there are no groups, and results of all shapes lie in one block.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.data import Array, Batch, Spec
from dalify.executor.frame import Frame
from dalify.executor.grouping import Wanted
from dalify.executor.kernel_step import KernelStep, open_spec
from dalify.executor.origins import origins_of

__all__ = ["ListedStep"]

if TYPE_CHECKING:
    from dalify.kernels.philox import SampleDraws

_ALIGNMENT_BYTES = 64  # a cache line


class ListedStep(KernelStep):
    """Calls the kernel of a listed operator: once for all samples of a chunk."""

    def _groupwise(
        self,
        frame: Frame,
        inputs: list[Batch | None],
        arguments: dict[str, Any],
        draws: SampleDraws | None,
        count: int,
    ) -> list[Batch]:
        extra = self._prepared(inputs, arguments, draws, count)
        wanted = Wanted(extra.pop("out_shapes", None), extra.pop("out_layout", None))
        arrays = {name: value for name, value in {**arguments, **extra}.items() if name in self._kernel.names}
        xs = [None if batch is None else _arrays(batch) for batch in inputs]
        named = {**self._constants, **arrays}
        origins = origins_of(inputs)
        if self._operator.is_allocating:
            _, specs = self._run_specs(inputs, {}, Wanted(None, wanted.layout), 0)
            results = self._called([], xs, named, 0, count)
            parts = results if isinstance(results, tuple) else (results,)
            return [self._joined(None, [part], spec, origins, count) for part, spec in zip(parts, specs, strict=True)]
        spec, shapes = self._out_shapes(inputs, arguments, wanted, count)
        is_uniform = shapes.count(shapes[0]) == count
        out = self._allocate(frame, 0, 0, count, spec) if is_uniform else self._block(frame, spec, shapes)
        if not is_uniform or 0 not in shapes[0]:
            self._called([out], xs, named, 0, count)
        if is_uniform:
            return [self._joined(out, [], spec, origins, count)]
        batch = Batch(None, out, spec.layout or "", self.device, origins, spec.dtype)
        batch.is_lasting = self.outputs[0] in frame.collectors
        return [batch]

    def _spec_of(self, batch: Batch, sample: int) -> Spec:
        return open_spec(batch)

    def _out_shapes(
        self, inputs: list[Batch | None], arguments: dict[str, Any], wanted: Wanted, count: int
    ) -> tuple[Spec, list[tuple[int, ...]]]:
        """Return the spec of the first sample's result, and the shapes of all."""
        varying = {name: arguments[name] for name in self._varying}
        if varying:
            specs = [self._run_specs(inputs, varying, wanted, sample)[1][0] for sample in range(count)]
            return specs[0], [spec.shape or () for spec in specs]
        spec = self._run_specs(inputs, {}, Wanted(None, wanted.layout), 0)[1][0]
        if wanted.shapes is None:
            return spec, [spec.shape or ()] * count
        shapes = [wanted.shape_of(sample) or () for sample in range(count)]
        largest = max(range(count), key=lambda sample: math.prod(shapes[sample]))
        self._check_size(shapes[largest], spec, largest)
        return spec.replace(shape=shapes[0]), shapes

    def _block(self, frame: Frame, spec: Spec, shapes: list[tuple[int, ...]]) -> list[Array]:
        """Return memory for samples of several shapes, one behind the other."""
        assert spec.dtype is not None, f"dalify bug: {self._operator.name} gave no type"
        assert frame.arena is not None, "dalify bug: CPU data without scratch memory"
        dtype = spec.dtype.numpy
        starts, stops, end = [], [], 0
        for shape in shapes:
            starts.append(end)
            stops.append(end + math.prod(shape) * dtype.itemsize)
            end = stops[-1] + -stops[-1] % _ALIGNMENT_BYTES
        collector = frame.collectors.get(self.outputs[0])
        allocate = frame.arena.empty if collector is None else collector.block
        block = allocate((end,), np.dtype(np.uint8))
        return [
            block[start:stop].view(dtype).reshape(shape)
            for start, stop, shape in zip(starts, stops, shapes, strict=True)
        ]


def _arrays(batch: Batch) -> list[Array]:
    """Return samples one by one, contiguous."""
    return [
        sample if batch.device == "gpu" or sample.flags.c_contiguous else np.ascontiguousarray(sample)
        for sample in batch.samples
    ]
