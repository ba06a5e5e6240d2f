"""The step of operators whose results consist of elements of their input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.narrow import is_list
from dalify.base.optional import LazyModule
from dalify.data import Batch, Spec
from dalify.data.samples import Samples
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep
from dalify.executor.origins import origins_of
from dalify.executor.shape_table import ShapeTable
from dalify.graph import Node
from dalify.registry import SelectionKernel

__all__ = ["SelectionStep"]

if TYPE_CHECKING:
    from dalify.kernels.arrays import strided
    from dalify.kernels.random.philox import SampleDraws
else:
    # This imports numba, which selections from samples of one shape do not need.
    strided = LazyModule("dalify.kernels.arrays.strided", "selections from samples of different shapes")

# Larger selections from samples of one shape are copied, unless they are contiguous.
_LARGE_BYTES = 1 << 16


class SelectionStep(KernelStep):
    """Copies what an operator selects from samples of different shapes in one call; of one shape, it is a view."""

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        assert isinstance(self._kernel, SelectionKernel), "dalify bug: a kernel without a selection"
        self._select_from = self._kernel.selects
        self._options = {name: self._static[name] for name in self._select_from.names}

    def _compute(
        self, frame: Frame, inputs: list[Batch | None], arguments: dict[str, Any], draws: SampleDraws | None, count: int
    ) -> list[Batch]:
        x, *others = inputs
        assert x is not None, "dalify bug: a selection without data"
        if x.dense is not None and not others:
            specs = self._specs_of_sample(inputs, 0)
            found = self._call_kernel([], [x.dense], self._constants, 0, count)
            views = self._as_batches(found, specs, x.origins)
            return [self._copied(frame, output, view, count) for output, view in enumerate(views)]
        specs = self._open_specs(inputs)
        values = [np.stack(batch.samples) if batch.dense is None else batch.dense for batch in others if batch]
        selected = self._select_from.function(Samples.of_batch(x), *values, **self._options)
        results: list[Batch] = []
        parts: list[Samples] = selected if is_list(selected) else [selected]
        for output, (spec, part) in enumerate(zip(specs, parts, strict=True)):
            table = ShapeTable(part.shapes, part.dtype.itemsize)
            shapes = table.shape(0) if table.is_uniform else table
            batch = self._memory_of(frame, output, spec, shapes, origins_of(inputs), count, None)
            strided.copy_strided(Samples.of_batch(batch), part)
            results.append(batch)
        return results

    def _copied(self, frame: Frame, output: int, view: Batch, count: int) -> Batch:
        """Return a large view contiguous: NumPy takes up to four times as long to copy it later."""
        dense = view.dense
        if dense is None or dense.nbytes < _LARGE_BYTES or dense[0].flags.c_contiguous:
            return view
        shape = dense.shape[1:]
        strides = np.empty((count, len(shape)), np.int64)
        strides[:] = [stride // dense.itemsize for stride in dense.strides[1:]]
        addresses = np.arange(count) * dense.strides[0] + dense.__array_interface__["data"][0]
        spec = Spec(view.dtype, view.ndim, view.layout)
        batch = self._memory_of(frame, output, spec, shape, view.origins, count, None)
        out = Samples.of_batch(batch)
        strided.copy_strided(out, Samples(addresses, out.shapes, dense.dtype, dense, strides))
        return batch
