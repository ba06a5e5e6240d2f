"""The step of operators that select elements of their input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.narrow import is_list
from dalify.base.optional import LazyModule
from dalify.data import Batch, Spec
from dalify.data.samples import Samples
from dalify.executor.kernel_step import KernelStep
from dalify.executor.shape_table import ShapeTable
from dalify.executor.step_call import StepCall
from dalify.graph import Node
from dalify.registry import SelectionKernel

if TYPE_CHECKING:
    from dalify.kernels.arrays import strided
else:
    # This imports numba, which selections from samples of one shape do not need.
    strided = LazyModule("dalify.kernels.arrays.strided", "selections from samples of different shapes")

# Larger selections from samples of equal shapes are copied, unless they are contiguous.
_LARGE_BYTES = 1 << 16


class SelectionStep(KernelStep):
    """Copies the elements that an operator selects from samples of different shapes; a view if shapes are equal."""

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        assert isinstance(self._kernel, SelectionKernel), "dalify bug: a kernel without a selection"
        self._select_from = self._kernel.selects
        self._options = {name: self._static[name] for name in self._select_from.names}

    def _compute(self, call: StepCall) -> list[Batch]:
        x, *others = call.inputs
        assert x is not None, "dalify bug: a selection without data"
        if x.dense is not None and not others:
            specs = self._specs_of_sample(call, 0)
            found = self._call_kernel([], [x.dense], self._constants, 0, call.count)
            views = self._as_batches(found, specs, call.origins)
            return [self._copied(call, output, view) for output, view in enumerate(views)]
        specs = self._open_specs(call.inputs)
        values = [np.stack(batch.samples) if batch.dense is None else batch.dense for batch in others if batch]
        selected = self._select_from.function(Samples.of_batch(x), *values, **self._options)
        results: list[Batch] = []
        parts: list[Samples] = selected if is_list(selected) else [selected]
        for output, (spec, part) in enumerate(zip(specs, parts, strict=True)):
            table = ShapeTable(part.shapes, part.dtype.itemsize)
            shapes = table.shape(0) if table.is_uniform else table
            batch = self._memory_of(call, output, spec, shapes)
            strided.copy_strided(Samples.of_batch(batch), part)
            results.append(batch)
        return results

    def _copied(self, call: StepCall, output: int, view: Batch) -> Batch:
        """Return a contiguous copy of a large view, because NumPy takes up to four times as long to copy it later."""
        dense = view.dense
        if dense is None or dense.nbytes < _LARGE_BYTES or dense[0].flags.c_contiguous:
            return view
        shape = dense.shape[1:]
        strides = np.empty((call.count, len(shape)), np.int64)
        strides[:] = [stride // dense.itemsize for stride in dense.strides[1:]]
        addresses = np.arange(call.count) * dense.strides[0] + dense.__array_interface__["data"][0]
        spec = Spec(view.dtype, view.ndim, view.layout)
        batch = self._memory_of(call, output, spec, shape)
        out = Samples.of_batch(batch)
        strided.copy_strided(out, Samples(addresses, out.shapes, dense.dtype, dense, strides))
        return batch
