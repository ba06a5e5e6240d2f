"""The step of operators that process samples of different lengths in one call: boxes, points, labels.

It concatenates the samples; see ``dalify.data.rows``. Results remain concatenated for the next such step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalify.base.errors import ShapeError
from dalify.base.limits import current
from dalify.base.narrow import is_list, is_tuple
from dalify.base.optional import torch
from dalify.data import Array, Batch, Spec, torch_dtype
from dalify.data.rows import Rows, starts_of
from dalify.executor.frame import Frame
from dalify.executor.kernel_step import KernelStep
from dalify.executor.shape_trace import trace_shapes
from dalify.executor.step_call import StepCall
from dalify.graph import Node
from dalify.registry.groups import find_runs

_CACHE_LIMIT = 4096

# The shapes of samples: their starts (see `Rows`) and the extents of a row; None and the shape if all are equal.
RowShapes = tuple[NDArray[np.int64] | None, tuple[int, ...]]


class _Trace(NamedTuple):
    """The specs and shapes of results, traced with placeholders for numbers of rows.

    Attributes:
        specs: specs of the outputs, without shapes.
        shapes: for each output, the index of the input with the same starts, the extents of a row, and the size of a
            row in bytes; None, the shape and 0 if the shape is constant.
    """

    specs: tuple[Spec, ...]
    shapes: list[tuple[int | None, tuple[int, ...], int]]


class RaggedStep(KernelStep):
    """Calls the kernel of a ragged operator: once for all samples of a chunk whose other extents agree."""

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        # The specs of the outputs by the shapes of a sample, for the last dtypes and layouts.
        self._known_rows: tuple[Any, dict[Any, tuple[Spec, ...]]] = (None, {})
        self._takes_specs = not self._wanted.isdisjoint({"spec", "specs"})
        # Specs that are passed to kernels contain the shapes of single samples.
        self._is_traced = self.device == "cpu" and not (self._takes_specs or self._wanted & {"out_spec", "out_specs"})
        self._known_trace: tuple[Any, _Trace | None] = ([], None)
        self._own_arguments = [name for name in self._arguments if name in self._kernel.names]

    def _compute(self, call: StepCall) -> list[Batch]:
        arrays: dict[str, Any] = {}
        is_traced = self._is_traced
        for name in self._own_arguments:
            arrays[name] = call.arguments[name]
            is_traced = is_traced and not isinstance(arrays[name], list)
        inputs, count = call.inputs, call.count
        traced = self._shapes_of_rows(inputs) if is_traced else None
        found: list[list[Any]] = []  # by run and output
        runs = _runs(inputs, arrays, count) if traced is None else [(0, count)]
        specs: tuple[Spec, ...] = ()
        for start, stop in runs:
            specs, shapes = traced or self._result_shapes(call, start, stop)
            xs: list[Rows | None] = []
            for batch in inputs:
                xs.append(None if batch is None else _rows_of(batch, start, stop))
            in_specs: tuple[Spec | None, ...] = ()
            if self._takes_specs:
                in_specs = tuple(None if batch is None else batch.spec_of(start) for batch in inputs)
            named = self._arguments_of_run(call, arrays, in_specs, specs, start, stop)
            if self._is_allocating:
                results = self._call_kernel([], xs, named, start, stop - start)
                found.append(list(results) if is_tuple(results) else [results])
                continue
            filled: list[Any] = []
            has_elements = False
            for output, spec in enumerate(specs):
                out = self._empty_rows(call.frame, output, stop - start, spec, shapes[output], len(runs) == 1)
                has_elements = has_elements or 0 not in out.values.shape
                filled.append(out)
            if has_elements:  # kernels need not handle samples without elements
                self._call_kernel(filled, xs, named, start, stop - start)
            found.append(filled)
        batches: list[Batch] = []
        for spec, slot, parts in zip(specs, self.outputs, zip(*found, strict=True), strict=True):
            is_lasting = self._is_allocating or slot in call.frame.collectors
            batches.append(self._batch_of(parts, spec, call.origins, is_lasting))
        return batches

    def _shapes_of_rows(self, inputs: list[Batch | None]) -> tuple[tuple[Spec, ...], list[RowShapes]] | None:
        """Return the specs of the outputs and the shapes of all samples of a chunk, from one call of the rule.

        None if the rule must be called for each sample, for instance because it computes with the number of rows.
        """
        key: list[Any] = []
        starts: list[Any] = []
        for index, batch in enumerate(inputs):
            rows = None if batch is None else batch.rows
            starts.append(None if rows is None else rows.starts)
            if batch is None:
                key.append(None)
            elif batch.dense is not None:
                key.append((batch.dtype, batch.layout, batch.dense.shape[1:], index))
            elif rows is not None:
                alike = 0
                while starts[alike] is not rows.starts:
                    alike += 1
                key.append((batch.dtype, batch.layout, (-1, *rows.values.shape[1:]), alike))
            else:
                return None
        known, trace = self._known_trace
        if known != key:
            trace = self._traced(inputs, key)
            self._known_trace = key, trace
        if trace is None:
            return None
        most_bytes = current().max_sample_bytes
        shapes: list[RowShapes] = []
        for source, extents, row_bytes in trace.shapes:
            own = None if source is None else starts[source]
            if own is not None and int(own[-1]) * row_bytes > most_bytes:
                return None
            shapes.append((own, extents))
        return trace.specs, shapes

    def _traced(self, inputs: list[Batch | None], key: list[Any]) -> _Trace | None:
        """Return the values that depend only on the keys of the inputs in `_shapes_of_rows`."""

        def rule(specs: tuple[Spec | None, ...]) -> tuple[Spec, ...]:
            found = self._operator.apply_rule(specs, self._rule_arguments)
            # Kernels that allocate their results determine the shapes.
            return tuple(spec.replace(shape=()) for spec in found) if self._is_allocating else found

        opened = [None if batch is None else batch.open_spec() for batch in inputs]
        extents = [None if own is None else own[2] for own in key]
        traced = trace_shapes(rule, opened, extents, [0 if own is None else own[3] for own in key])
        if traced is None:
            return None
        shapes: list[tuple[int | None, tuple[int, ...], int]] = []
        for spec, constant, copies in zip(traced.specs, traced.constants, traced.copies, strict=True):
            if constant is not None:
                self._check_size(constant, spec, 0)
                shapes.append((None, constant, 0))
                continue
            source, columns, fixed = copies[0]
            if columns[0] != 0 or (fixed[1:] < 0).any():
                return None
            row = tuple(fixed[1:].tolist())
            shapes.append((source, row, math.prod(row) * (1 if spec.dtype is None else spec.dtype.numpy.itemsize)))
        return _Trace(traced.specs, shapes)

    def _result_shapes(self, call: StepCall, start: int, stop: int) -> tuple[tuple[Spec, ...], list[RowShapes]]:
        """Return the specs of the outputs, and for each the shapes of the samples ``start`` to ``stop``."""
        samples = self._sample_specs(call, start, stop)
        columns: list[list[tuple[int, ...]]] = [
            [spec.shape or () for spec in column] for column in zip(*samples, strict=True)
        ]
        return samples[0], [
            (None, column[0])
            if column.count(column[0]) == len(column)
            else (starts_of([shape[0] for shape in column]), column[0][1:])
            for column in columns
        ]

    def _sample_specs(self, call: StepCall, start: int, stop: int) -> list[tuple[Spec, ...]]:
        """Return the specs of the outputs of each sample."""
        inputs = call.inputs
        is_uniform = True
        for batch in inputs:
            is_uniform &= batch is None or batch.dense is not None
        if is_uniform or stop - start == 1:
            return [self._specs_of_sample(call, start)] * (stop - start)
        keys = list(zip(*[batch.shapes()[start:stop] for batch in inputs if batch is not None], strict=True))
        types = tuple([None if batch is None else (batch.dtype, batch.layout) for batch in inputs])
        known_types, known = self._known_rows  # another thread may replace them
        if known_types != types or len(known) > _CACHE_LIMIT:
            known = {}
            self._known_rows = types, known
        for sample, key in enumerate(keys, start):
            if key not in known:
                known[key] = self._specs_of_sample(call, sample)
        return [known[key] for key in keys]

    def _arguments_of_run(
        self,
        call: StepCall,
        arrays: Mapping[str, Any],
        in_specs: tuple[Spec | None, ...],
        out_specs: tuple[Spec, ...],
        start: int,
        stop: int,
    ) -> dict[str, Any]:
        """Return the arguments that the kernel declares by name, for the samples ``start`` to ``stop``."""
        named, is_whole = dict(self._constants), stop - start == call.count
        for name, array in arrays.items():
            if is_list(array):  # vectors of different lengths, with equal lengths in a run
                named[name] = np.stack(array[start:stop])
            else:
                named[name] = array if is_whole or array is None or isinstance(array, str) else array[start:stop]
        if not self._wanted:
            return named
        context: dict[str, Any] = {"spec": in_specs[0] if in_specs else None, "specs": in_specs}
        context |= {"out_spec": out_specs[0], "out_specs": out_specs, "count": stop - start}
        if call.draws is not None:
            context["draws"] = call.draws if is_whole else call.draws.take(np.arange(start, stop))
        return named | {name: value for name, value in context.items() if name in self._wanted}

    def _empty_rows(self, frame: Frame, output: int, count: int, spec: Spec, shapes: RowShapes, is_whole: bool) -> Rows:
        """Return memory for one output of some samples, or of the whole chunk.

        Only the whole chunk may be in the array of the batch, because a run of another shape may be in scratch memory.
        """
        starts, extents = shapes
        if starts is None and is_whole:
            return Rows.of_dense(self._allocate(frame, output, 0, count, spec, extents))
        assert spec.dtype is not None, "dalify bug: rows of no type"
        shape = (count if starts is None else int(starts[-1]), *extents)
        if self.device == "gpu":
            memory = torch.empty(shape, dtype=torch_dtype(spec.dtype), device=frame.torch_device)
        else:
            block, _ = self._block(frame, output, math.prod(shape) * spec.dtype.numpy.itemsize)
            memory = block.view(spec.dtype.numpy).reshape(shape)
        return Rows.of_dense(memory) if starts is None else Rows(memory, starts)

    def _batch_of(self, parts: Sequence[Any], spec: Spec, origins: Any, is_lasting: bool) -> Batch:
        layout = spec.layout or ""
        if len(parts) == 1:
            dense = parts[0].dense() if isinstance(parts[0], Rows) else parts[0]
            if dense is not None:
                batch = Batch(dense, None, layout, self.device, origins, spec.dtype)
                batch.is_lasting = self._is_allocating and self.device == "cpu"
                return batch
            if self.device == "cpu" and isinstance(parts[0], Rows):
                batch = Batch.of_rows(parts[0], layout, origins, spec.dtype)
                batch.is_lasting = is_lasting
                return batch
        samples: list[Array] = []
        for part in parts:
            samples += part.split() if isinstance(part, Rows) else [part[n, ...] for n in range(len(part))]
        batch = Batch(None, samples, layout, self.device, origins, spec.dtype)
        batch.is_lasting = is_lasting and self.device == "cpu"
        return batch


def _runs(inputs: list[Batch | None], arrays: Mapping[str, Any], count: int) -> list[tuple[int, int]]:
    """Return ranges of consecutive samples with equal extents of rows and equal lengths of their arguments."""
    shapes = _row_shapes(inputs)
    keys = [[vector.shape for vector in array] for array in arrays.values() if is_list(array)]
    return find_runs(keys if shapes is None else [shapes, *keys], count)


def _row_shapes(inputs: list[Batch | None]) -> Any:
    """Return, for each sample, the properties that must be equal for samples in one array; None if all are equal."""
    listed = [batch for batch in inputs if batch is not None and batch.dense is None and batch.rows is None]
    if not listed:
        return None
    columns = [batch.shapes() for batch in listed]
    if all(() not in shapes and len({shape[1:] for shape in shapes}) == 1 for shapes in columns):
        return None
    result: list[tuple[Any, ...]] = []
    for index, sample in enumerate(zip(*columns, strict=True)):
        if not all(sample):
            raise _without_rows(index)
        result.append(tuple((len(shape), *shape[1:]) for shape in sample))
    return result


def _without_rows(sample: int) -> ShapeError:
    return ShapeError("scalars cannot be divided into rows; the samples need at least one axis.", sample=sample)


def _rows_of(batch: Batch, start: int, stop: int) -> Rows:
    if batch.rows is not None and stop - start == len(batch):
        return batch.rows
    if batch.dense is None:
        samples = batch.samples[start:stop]
        rows = Rows.of_samples(samples)
    else:
        dense = batch.dense if stop - start == len(batch.dense) else batch.dense[start:stop]
        if dense.ndim < 2:
            raise _without_rows(start)
        rows = Rows.of_dense(dense)
    if batch.device == "gpu":
        rows.values = rows.values.contiguous()
    elif not rows.values.flags.c_contiguous:
        rows.values = np.ascontiguousarray(rows.values)
    return rows
