"""The step of element-wise operators."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.errors import DalifyError
from dalify.base.limits import current
from dalify.base.narrow import is_array
from dalify.base.optional import LazyModule
from dalify.base.small_arrays import any_of
from dalify.data import Array, Batch, Spec
from dalify.data.batch import ALIGNMENT_BYTES, block_offsets, packed
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import MAX_DIMENSIONS
from dalify.executor.samples_step import SamplesStep
from dalify.executor.shape_table import ShapeTable
from dalify.executor.step_call import StepCall
from dalify.graph import Node

if TYPE_CHECKING:
    from dalify.kernels.arrays import joined
    from dalify.kernels.arrays import shapes as compiled
else:
    # These import numba, which pipelines without compiled kernels do not need.
    joined = LazyModule("dalify.kernels.arrays.joined", "repeating vectors")
    compiled = LazyModule("dalify.kernels.arrays.shapes", "shapes of samples")

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
        if call.count > 1 and self._takes_rows:
            has_lists = has_gaps = False
            for batch in call.inputs:
                if batch is not None and batch.dense is None:
                    has_lists = True
                    has_gaps = has_gaps or batch.rows is None
            if has_lists:
                result = self._of_rows(call, has_gaps)
                if result is not None:
                    return [result]
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

    def _of_rows(self, call: StepCall, has_gaps: bool) -> Batch | None:
        """Return the result of one call for all samples.

        None if the samples differ in shape or position, or if the call raises an error, which then has no sample.
        """
        inputs: list[Batch] = []
        first: Batch | None = None
        for batch in call.inputs:
            if batch is None:
                return None
            own = batch if batch.dense is not None else _in_block(batch, call.frame, has_gaps)
            inputs.append(own)
            if first is None and own.ragged is not None:
                first = own
        if first is None or first.ragged is None:
            return None
        _, offsets, shapes = first.ragged
        if not (shapes.flags.carray and offsets.flags.carray):  # the function is compiled for one type of arguments
            offsets, shapes = offsets.copy(), shapes.copy()
        starts, spans = np.empty((2, len(offsets)), np.int64)
        item_bytes = first.dtype.numpy.itemsize
        size, elements, largest = compiled.find_spans(offsets, shapes, item_bytes, starts, spans)
        if not 0 < size <= _MAX_SPAN * elements + len(spans) * ALIGNMENT_BYTES:
            return None
        rows: list[np.ndarray[Any, Any]] = []
        for batch in inputs:
            if batch is not first and not self._fits(batch, starts, shapes, size):
                return None
            rows.append(_row(batch, spans, size))
        try:
            return self._compute_rows(call, inputs, first, rows, starts, largest)
        except DalifyError:  # an error is raised again for its sample
            return None

    @staticmethod
    def _fits(batch: Batch, starts: np.ndarray[Any, Any], shapes: np.ndarray[Any, Any], size: int) -> bool:
        """Return whether an input is a scalar, vectors along the last axis, or has samples of the same positions."""
        if batch.ragged is None:
            if size > _MAX_REPEATED and _differs(batch):
                return False
            return is_array(batch.dense) and (not batch.ndim or _fits_last_axis(batch.dense, shapes))
        _, offsets, other = batch.ragged
        if other.shape != shapes.shape or (other is not shapes and any_of(other != shapes, None)):
            return False
        return not any_of((offsets - offsets[0]) // batch.dtype.numpy.itemsize != starts, None)

    def _compute_rows(
        self,
        call: StepCall,
        inputs: list[Batch],
        first: Batch,
        rows: list[np.ndarray[Any, Any]],
        starts: np.ndarray[Any, Any],
        largest: int,
    ) -> Batch:
        """Return the result for rows of all samples.

        Args:
            call: the samples.
            inputs: the inputs.
            first: the first of them with samples of different shapes.
            rows: each input as ``[1, elements]`` or ``[1]``.
            starts: index of the first element of each sample in a row.
            largest: number of elements of the largest sample, -1 if one is empty.
        """
        assert first.ragged is not None, "dalify bug: rows of a batch of equal shapes"
        shapes: np.ndarray[Any, Any] = first.ragged[2]
        spec = self._open_specs([*inputs])[0]
        assert spec.dtype is not None, "dalify bug: an element-wise operator without an element type"
        item_bytes = spec.dtype.numpy.itemsize
        if largest < 0 or largest * item_bytes > current().max_sample_bytes or shapes.shape[1] > MAX_DIMENSIONS:
            self._check_sizes(ShapeTable(shapes), spec)
        given = inputs[0]
        block: np.ndarray[Any, Any]
        is_lasting = False
        if (
            self.overwrites
            and self.outputs[0] not in call.frame.collectors
            and given.ragged is not None
            and given.dtype == spec.dtype
        ):
            block, offsets, _ = given.ragged
            row = rows[0]
        else:
            size = max(row.shape[-1] for row in rows)
            block, is_lasting = self._block(call.frame, 0, size * item_bytes)
            offsets = starts * item_bytes
            row = block.view(spec.dtype.numpy)[None]
        self._on_arrays(row, *rows, **self._constants)
        ragged = block, offsets, shapes
        batch = Batch(None, None, spec.layout or "", self.device, call.origins, spec.dtype, ragged)
        batch.is_lasting = is_lasting
        return batch


def _in_block(batch: Batch, frame: Frame, has_gaps: bool) -> Batch:
    """Return samples in one block, copied if they are small; larger ones are returned unchanged.

    Rows, which have no gaps between samples, are copied, too, if another input has gaps.
    """
    if batch.ragged is not None and not (has_gaps and batch.rows is not None):
        return batch
    if block_offsets(batch.shape_array(), batch.dtype.numpy.itemsize)[1] > _MAX_COPIED_BYTES:
        return batch
    return packed(batch, lambda size_bytes: frame.arena.empty((size_bytes,), np.dtype(np.uint8)))


def _fits_last_axis(dense: np.ndarray[Any, Any], shapes: np.ndarray[Any, Any]) -> bool:
    """Return whether samples are vectors along the last axis of samples of shapes int64 ``[N, ndim]``."""
    extent = dense.shape[-1]
    is_vector = extent > 1 and dense.size == len(dense) * extent and dense.ndim - 1 <= shapes.shape[1]
    return is_vector and bool((shapes[:, -1] == extent).all())


def _differs(batch: Batch) -> bool:
    """Return whether a batch has vectors, or a scalar for each sample other than a constant."""
    return is_array(batch.dense) and bool(batch.ndim or batch.dense.strides[0])


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
