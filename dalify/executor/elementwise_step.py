"""The step of element-wise operators."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.errors import DalifyError
from dalify.base.narrow import is_array
from dalify.base.optional import LazyModule
from dalify.base.small_arrays import any_of
from dalify.data import Array, Batch, Spec
from dalify.data.batch import ALIGNMENT_BYTES, Ragged, block_offsets, packed
from dalify.executor.frame import Frame
from dalify.executor.samples_step import SamplesStep
from dalify.executor.shape_table import ShapeTable
from dalify.executor.step_call import StepCall
from dalify.graph import Node

if TYPE_CHECKING:
    from dalify.kernels.arrays import joined
else:
    # This imports numba, which pipelines without compiled kernels do not need.
    joined = LazyModule("dalify.kernels.arrays.joined", "repeating vectors")

__all__ = ["ElementwiseStep"]

# Gaps between samples are also computed. If they are larger than the samples, separate calls are faster, unless gaps
# only align small samples.
_MAX_SPAN = 2
# Copying larger samples of a list into a block would take longer than one call for each sample.
_MAX_COPIED_BYTES = 1 << 20
# The same for repeating a scalar or a vector for each element of its sample.
_MAX_REPEATED = 1 << 18


class ElementwiseStep(SamplesStep):
    """Calls a kernel with all samples of a chunk, of any shapes, as one row of elements.

    This requires that all inputs have samples of the same shapes at the same offsets in their memory, or scalars, or
    vectors along the last axis, such as one number per channel. Other inputs are passed sample by sample.

    Attributes:
        overwrites: True if the first input is scratch memory that only this step reads, so that results may be written
            into it.
    """

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        self.overwrites = False
        self._next: ElementwiseStep | None = None  # may overwrite the results of this step
        # Results of the last chunk: most chunks have the same.
        self._result: tuple[tuple[int, ...], np.dtype[Any]] | None = None
        self._on_arrays = inspect.unwrap(self._kernel.function)  # see `on_groups`
        # Per-sample arguments and specs have the form for a group.
        self._takes_rows = not self._wanted and not any(name in self._arguments for name in self._kernel.names)

    def overwrite(self, step: ElementwiseStep) -> None:
        """Overwrite the first input, the result of a step of the same stage that no other step reads."""
        self.overwrites, step._next = True, self

    def _compute(self, call: StepCall) -> list[Batch]:
        inputs = call.inputs
        if call.count > 1 and self._takes_rows and any(batch is not None and batch.dense is None for batch in inputs):
            has_gaps = any(batch is not None and batch.dense is None and batch.rows is None for batch in inputs)
            adjacent = [_in_block(batch, call.frame, has_gaps) for batch in inputs]
            first = next((batch.ragged for batch in adjacent if batch is not None and batch.ragged), None)
            rows = None if first is None else self._rows(adjacent, first)
            if first is not None and rows is not None:
                try:
                    return [self._compute_rows(call, adjacent, first, rows)]
                except DalifyError:  # an error is raised again for its sample
                    pass
        results = super()._compute(call)
        dense = results[0].dense
        self._result = (dense.shape[1:], dense.dtype) if is_array(dense) else None
        return results

    def _memory_of(self, call: StepCall, output: int, spec: Spec, shapes: Any, like: Any = None) -> Batch:
        if self.overwrites and spec.dtype is not None and self.outputs[output] not in call.frame.collectors:
            dense = None if like is None else like.dense  # in the CPU cache
            if dense is not None and dense.shape[1:] == shapes and dense.dtype == spec.dtype.numpy:
                return Batch(dense, None, spec.layout or "", self.device, call.origins, spec.dtype)
        return super()._memory_of(call, output, spec, shapes, like)

    def _allocate(
        self, frame: Frame, output: int, start: int, count: int, spec: Spec, shape: tuple[int, ...] | None
    ) -> Array:
        # If the last of the steps that overwrite this one computes an output of the stage, all use its memory.
        last = self
        while last._next is not None:
            last = last._next
        if last is self or spec.dtype is None or (shape, spec.dtype.numpy) != last._result:
            return super()._allocate(frame, output, start, count, spec, shape)
        return last._allocate(frame, output, start, count, spec, shape)

    def _rows(self, inputs: list[Batch | None], first: Ragged) -> list[np.ndarray[Any, Any]] | None:
        """Return each input as ``[1, elements]`` or ``[1]``; None if the samples differ in shape or position."""
        shapes = first[2]
        sizes = np.multiply.reduce(shapes, 1)
        starts: np.ndarray[Any, Any] | None = None
        for batch in inputs:
            if batch is None:
                return None
            if batch.ragged is not None:
                own = (batch.ragged[1] - batch.ragged[1][0]) // batch.dtype.numpy.itemsize
                if starts is None:
                    starts = own
                other = batch.ragged[2]
                if other.shape != shapes.shape:
                    return None
                if batch.ragged is not first and (any_of(other != shapes, None) or any_of(own != starts, None)):
                    return None
            elif not is_array(batch.dense) or (batch.ndim and not _fits_last_axis(batch.dense, shapes)):
                return None
        assert starts is not None, "dalify bug: a ragged chunk without ragged inputs"
        spans = sizes.copy()
        np.subtract(starts[1:], starts[:-1], out=spans[:-1])
        size = int(starts[-1] + sizes[-1])
        if any_of(spans < sizes, None):
            return None
        if not 0 < size <= _MAX_SPAN * np.add.reduce(sizes) + len(sizes) * ALIGNMENT_BYTES:
            return None
        if size > _MAX_REPEATED and any(_differs(batch) for batch in inputs):
            return None
        return [_row(batch, spans, size) for batch in inputs if batch is not None]

    def _compute_rows(
        self, call: StepCall, inputs: list[Batch | None], first: Ragged, rows: list[np.ndarray[Any, Any]]
    ) -> Batch:
        shapes = first[2]
        spec = self._open_specs(inputs)[0]
        assert spec.dtype is not None, "dalify bug: an element-wise operator without an element type"
        self._check_sizes(ShapeTable(shapes), spec)
        size, item_bytes = max(row.shape[-1] for row in rows), spec.dtype.numpy.itemsize
        given = inputs[0]
        block: np.ndarray[Any, Any]
        can_overwrite = self.overwrites and self.outputs[0] not in call.frame.collectors
        is_lasting = False
        if can_overwrite and given is not None and given.ragged and given.dtype == spec.dtype:
            block, offsets, _ = given.ragged
            row = rows[0]
        else:
            block, is_lasting = self._block(call.frame, 0, size * item_bytes)
            source = next(batch for batch in inputs if batch is not None and batch.ragged is first)
            offsets = (first[1] - first[1][0]) // source.dtype.numpy.itemsize * item_bytes
            row = block.view(spec.dtype.numpy)[None]
        self._on_arrays(row, *rows, **self._constants)
        ragged = block, offsets, shapes
        batch = Batch(None, None, spec.layout or "", self.device, call.origins, spec.dtype, ragged)
        batch.is_lasting = is_lasting
        return batch


def _in_block(batch: Batch | None, frame: Frame, has_gaps: bool) -> Batch | None:
    """Return a batch with small samples copied to one block; other batches are returned unchanged.

    Rows, which have no gaps between samples, are copied, too, if another input has gaps.
    """
    if (
        batch is None
        or batch.dense is not None
        or (batch.ragged is not None and not (has_gaps and batch.rows is not None))
    ):
        return batch
    if block_offsets(batch.shape_array(), batch.dtype.numpy.itemsize)[1] > _MAX_COPIED_BYTES:
        return batch
    return packed(batch, lambda size_bytes: frame.arena.empty((size_bytes,), np.dtype(np.uint8)))


def _fits_last_axis(dense: np.ndarray[Any, Any], shapes: np.ndarray[Any, Any]) -> bool:
    """Return whether samples are vectors along the last axis of samples of shapes int64 ``[N, ndim]``."""
    extent = dense.shape[-1]
    is_vector = extent > 1 and dense.size == len(dense) * extent and dense.ndim - 1 <= shapes.shape[1]
    return is_vector and bool((shapes[:, -1] == extent).all())


def _differs(batch: Batch | None) -> bool:
    """Return whether a batch has vectors, or a scalar for each sample other than a constant."""
    return batch is not None and is_array(batch.dense) and bool(batch.ndim or batch.dense.strides[0])


def _row(batch: Batch, spans: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """Return samples as ``[1, size]``, with repeated vectors and scalars; a constant scalar as ``[1]``."""
    dtype = batch.dtype.numpy
    if batch.ragged is not None:
        block, offsets, _ = batch.ragged
        start = int(offsets[0])
        return block[start : start + size * dtype.itemsize].view(dtype)[None]
    dense = batch.dense
    assert is_array(dense), "dalify bug: scalars without an array"
    if batch.ndim:
        return joined.repeated_rows(dense.reshape(len(dense), -1), spans)[None]
    return np.repeat(dense, spans)[None] if _differs(batch) else dense[:1]
