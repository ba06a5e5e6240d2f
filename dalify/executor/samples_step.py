"""The step of operators whose kernel takes all samples of a chunk of any shapes in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalify.base.failure_context import failure_context
from dalify.base.narrow import is_array, is_list, is_tuple
from dalify.base.recent import Recent
from dalify.data import Batch, Spec
from dalify.data.samples import Samples
from dalify.executor.frame import Frame
from dalify.executor.grouping import Wanted
from dalify.executor.kernel_step import KernelStep, open_spec
from dalify.executor.origins import origins_of
from dalify.executor.shape_table import ShapeTable
from dalify.executor.shape_trace import ShapeTrace
from dalify.graph import Node

__all__ = ["SamplesStep"]

if TYPE_CHECKING:
    from dalify.kernels.random.philox import SampleDraws

_CACHE_LIMIT = 4096


class SamplesStep(KernelStep):
    """Calls a kernel once for all samples of a chunk, with `Samples` instead of arrays."""

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        operator = self._operator
        kernel_names = frozenset(self._kernel.names)
        self._own_arguments = tuple(name for name in self._arguments if name in kernel_names)
        # The result of `prepare` for shapes and constants is cached for chunks of one shape.
        prepare = operator.prepare_function
        varying = {name for name, argument in self._arguments.items() if argument.slot is not None}
        self._prepares_once = (
            prepare is not None
            and operator.prepares_from_shapes
            and "draws" not in prepare.names
            and not varying & {*prepare.names}
        )
        # Then, and without arguments that change shapes, the specs of the results are cached, too.
        self._is_planned_by_shape = (prepare is None or self._prepares_once) and not self._varying
        # Whether all results are in memory from the arena: none is a view of an input.
        self.fills_memory = self._is_constant and self.device == "cpu" and node.branch is None
        self._known_plan: tuple[Any, Any] = (None, None)
        self._known_preparations: Recent[dict[str, Any]] = Recent(_CACHE_LIMIT)
        self._known_results: Recent[tuple[Spec, ...]] = Recent(_CACHE_LIMIT)
        self._trace = ShapeTrace(lambda specs: operator.apply_rule(specs, self._rule_arguments))

    def _groupwise(
        self, frame: Frame, inputs: list[Batch | None], arguments: dict[str, Any], draws: SampleDraws | None, count: int
    ) -> list[Batch]:
        xs = [None if batch is None else self._samples(batch) for batch in inputs]
        like = xs[0] if xs else None
        key = self._plan_key(inputs, count)
        known, planned = self._known_plan
        if key is None or known != key:
            prepared = self._prepare_cached(inputs, arguments, draws, count)
            planned = prepared, *self._result_specs(inputs, xs, arguments, prepared, count)
            if key is not None:
                self._known_plan = key, planned
        prepared, specs, shapes = planned
        extra = self._add_cache(prepared, frame, inputs, count)
        origins = origins_of(inputs)
        batches: list[Batch] = []
        outs: list[Any] = []
        is_full = not specs
        for output, (spec, found) in enumerate(zip(specs, shapes, strict=True)):
            batch = self._memory_of(frame, output, spec, found, origins, count, like)
            batches.append(batch)
            outs.append(self._samples(batch))
            is_full |= 0 not in found if is_tuple(found) else found.is_full
        named = dict(self._constants)
        for name in self._own_arguments:
            named[name] = arguments[name]
        for name, value in extra.items():
            if name in self._kernel.names:
                named[name] = value
        kept = None
        if not is_full:  # kernels need not handle samples without elements
            kept = np.flatnonzero(np.any([out.shapes.all(1) for out in outs], 0))
            if not len(kept):
                return batches
            xs = [None if x is None else x.take(kept) for x in xs]
            outs = [out.take(kept) for out in outs]
            per_sample = {*self._own_arguments, *extra}
            named = {name: _take_values(value, kept) if name in per_sample else value for name, value in named.items()}
            if draws is not None:
                draws = draws.take(kept)
            count = len(kept)
        for name in self._wanted:
            named[name] = self._context(name, inputs, specs, draws, count)
        try:
            self._call_kernel([*outs], xs, named, 0, count)
        except Exception as error:
            sample: int | None = failure_context(error).sample
            if kept is not None and sample is not None:
                failure_context(error).sample = int(kept[sample])
            raise
        return batches

    def _plan_key(self, inputs: list[Batch | None], count: int) -> Any:
        """Return what the result of `prepare` and the specs of the results depend on; None if it is not only shapes."""
        if self._is_constant:
            return count
        if not self._is_planned_by_shape:
            return None
        key: list[Any] = [count]
        for batch in inputs:
            if batch is not None:
                if batch.dense is None:
                    return None
                key += batch.dtype, batch.layout, batch.dense.shape
            else:
                key.append(None)
        return key

    def _samples(self, batch: Batch) -> Any:
        """Return a batch in the form that kernels get."""
        return Samples.of_batch(batch)

    def _context(
        self, name: str, inputs: list[Batch | None], specs: tuple[Spec, ...], draws: SampleDraws | None, count: int
    ) -> Any:
        """Return the arguments that a kernel declares in addition to parameters. Specs have no shapes."""
        if name == "spec":
            first = next((batch for batch in inputs if batch is not None), None)
            return None if first is None else open_spec(first)
        if name == "specs":
            return tuple(None if batch is None else open_spec(batch) for batch in inputs)
        if name == "out_spec":
            return specs[0].replace(shape=None)
        if name == "out_specs":
            return specs
        return count if name == "count" else draws

    def _add_cache(self, extra: dict[str, Any], frame: Frame, inputs: list[Batch | None], count: int) -> dict[str, Any]:
        """Return the result of `prepare` with the cache of the step, if any. Do not modify the given dictionary."""
        return extra

    def _prepare_cached(
        self, inputs: list[Batch | None], arguments: dict[str, Any], draws: SampleDraws | None, count: int
    ) -> dict[str, Any]:
        """Return the result of `prepare`."""
        if self._operator.prepare_function is None:
            return {}
        if not self._prepares_once or any(batch is not None and batch.dense is None for batch in inputs):
            return self._prepare(inputs, arguments, draws, count)
        key = tuple(None if batch is None else (batch.dtype, batch.layout, _shape(batch)) for batch in inputs)
        return self._known_preparations.get_or_make(key, lambda: self._prepare(inputs, arguments, draws, count))[0]

    def _result_specs(
        self,
        inputs: list[Batch | None],
        xs: list[Samples | None],
        arguments: dict[str, Any],
        extra: dict[str, Any],
        count: int,
    ) -> tuple[tuple[Spec, ...], list[Any]]:
        """Return the specs of the results, and the shapes of each output: a tuple if they are equal, or a `ShapeTable`.

        If `prepare` returns no shapes and the rule computes with extents, it runs once per combination of input shapes
        and shaping arguments.
        """
        layout = extra.get("out_layout")
        shapes = extra.get("out_shapes")
        if is_array(shapes):
            specs = self._open_specs(inputs, layout)
            table = ShapeTable(shapes, 1 if specs[0].dtype is None else specs[0].dtype.numpy.itemsize)
            self._check_size(table.shape(table.largest), specs[0], table.largest)
            all_shapes = table.shape(0) if table.is_uniform else table
            return specs, [() if spec.ndim == 0 else all_shapes for spec in specs]
        wanted = Wanted(shapes, layout)
        is_dense = all(batch is None or batch.dense is not None for batch in inputs)
        if is_tuple(shapes) and not self._varying and not is_dense:
            specs = self._open_specs(inputs, layout)
            self._check_size(shapes, specs[0], 0)
            return specs, [() if spec.ndim == 0 else shapes for spec in specs]
        if not self._varying and (is_dense or all(x is None or _table_of(x).is_uniform for x in xs)):
            specs = self._run_specs(inputs, {}, wanted, 0)[1]
            return specs, [spec.shape for spec in specs]
        tables = [None if x is None else _table_of(x) for x in xs]
        if shapes is None and not self._varying and (traced := self._trace.of(inputs, tables)) is not None:
            found_shapes = traced.shapes(tables, count)
            traced_specs = wanted.applied(traced.specs, None)
            for spec, each in zip(traced_specs, found_shapes, strict=True):
                if isinstance(each, tuple):
                    self._check_size(each, spec, 0)
                else:
                    self._check_size(each.shape(each.largest), spec, each.largest)
            return traced_specs, found_shapes
        varying = {name: arguments[name] for name in self._varying}
        columns = [table.shapes.tolist() for table in tables if table is not None and not table.is_uniform]
        columns += [
            [value.tolist() for value in values] if is_list(values) else values.tolist() for values in varying.values()
        ]
        kinds = tuple(None if batch is None else (batch.dtype, batch.layout) for batch in inputs)
        uniform = tuple(table.extents for table in tables if table is not None and table.is_uniform)
        found: list[tuple[Spec, ...]] = []
        for sample, row in enumerate(zip(*columns, strict=True)):
            key = (kinds, uniform, str(row), layout)
            specs = self._known_results.get(key)
            if specs is None:
                specs = self._run_specs(inputs, varying, wanted, sample)[1]
                self._known_results.put(key, specs)
            found.append(specs)
        by_output = [[of_sample[output].shape for of_sample in found] for output in range(len(found[0]))]
        return found[0], [
            shapes[0] if shapes.count(shapes[0]) == count else ShapeTable(np.array(shapes, np.int64))
            for shapes in by_output
        ]


def _shape(batch: Batch) -> tuple[int, ...]:
    assert batch.dense is not None, "dalify bug: the shape of a ragged batch"
    return tuple(batch.dense.shape)


def _table_of(samples: Any) -> ShapeTable:
    """Return the shapes of samples, which later steps with the same samples need again."""
    if samples.table is None:
        samples.table = ShapeTable(samples.shapes)
    return samples.table


def _take_values(value: Any, kept: np.ndarray[Any, Any]) -> Any:
    """Return the values of some of the samples."""
    if is_array(value):
        return value[kept]
    if hasattr(value, "take"):
        return value.take(kept)
    return [value[index] for index in kept] if is_list(value) else value
