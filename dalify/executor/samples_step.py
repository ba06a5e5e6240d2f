"""The step of operators with a kernel for all samples of a chunk, of any shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dalify.base.failure_context import failure_context
from dalify.base.narrow import is_array, is_list, is_tuple
from dalify.base.recent import Recent
from dalify.data import Batch, Spec
from dalify.data.samples import Samples
from dalify.executor.kernel_step import KernelStep, with_layout
from dalify.executor.shape_table import ShapeTable
from dalify.executor.shape_trace import ShapeTrace, TracedShapes
from dalify.executor.step_call import StepCall
from dalify.executor.step_function import StepFunction
from dalify.executor.steps import note_sample
from dalify.executor.values import constant_array
from dalify.graph import Node, Role
from dalify.kernels.random.scalar_draws import ScalarDraw
from dalify.registry import RANDOM_STATE

_CACHE_LIMIT = 4096


@dataclass(slots=True)
class _Plan:
    """Specs and shapes of the results of a chunk, before memory is allocated.

    Attributes:
        specs: specs of the results; their shapes are not used.
        shapes: shapes of each result: a tuple if they are equal, or a `ShapeTable`.
        is_full: True if all samples of a result have elements.
        named: arguments of the kernel from `prepare` and from the specs.
        traced: the shapes as functions of the input shapes, if the shapes differ; otherwise None.
    """

    specs: tuple[Spec, ...]
    shapes: list[Any]
    is_full: bool
    named: dict[str, Any]
    traced: TracedShapes | None


class SamplesStep(KernelStep):
    """Calls a kernel once for all samples of a chunk, with `Samples` instead of arrays."""

    # Returns a batch in the form for kernels.
    _samples: Callable[[Batch], Any] = staticmethod(Samples.of_batch)

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        operator = self._operator
        kernel_names = frozenset(self._kernel.names)
        self._own_arguments = tuple(name for name in self._arguments if name in kernel_names)
        # If `prepare` depends only on shapes and constants, its result is cached for chunks of equal shapes.
        prepare = operator.prepare_function
        varying = {name for name, argument in self._arguments.items() if argument.slot is not None}
        # Inputs with values that may differ between chunks.
        varying_inputs = {
            item.name
            for item, edge in zip(operator.inputs, node.inputs, strict=False)
            if edge is not None and edge.node.role is not Role.LITERAL
        }
        self._prepares_once = (
            prepare is not None
            and prepare.value_inputs is not None
            and not varying_inputs & {*prepare.value_inputs}
            and "draws" not in prepare.names
            and not varying & {*prepare.names}
        )
        # Without arguments that change shapes, the specs of the results are then cached, too.
        self._is_planned_by_shape = (prepare is None or self._prepares_once) and not self._varying
        # True if all results are in memory from the arena, and none is a view of an input.
        self.fills_memory = self._is_constant and self.device == "cpu" and node.branch is None
        self._known_plan: tuple[Any, _Plan | None] = (None, None)
        self._takes_draws = "draws" in self._wanted
        self._context_names = [name for name in self._wanted if name != "draws"]
        self._known_preparations: Recent[dict[str, Any]] = Recent(_CACHE_LIMIT)
        self._known_results: Recent[tuple[Spec, ...]] = Recent(_CACHE_LIMIT)
        # The last uniform shapes that `prepare` returned, with specs and shapes of the results; often constant.
        self._known_shapes: tuple[Any, bytes, list[Any]] = (None, b"", [])
        # The last values of `_context`, which depend on these specs of the results and the number of samples.
        self._known_context: tuple[Any, int, dict[str, Any]] = (None, 0, {})
        self._trace = ShapeTrace(lambda specs: operator.apply_rule(specs, self._rule_arguments))

    def scalar_draw(self) -> ScalarDraw | None:
        """Return the draw if the step only draws one number for each sample, otherwise None."""
        function = self._operator.scalar_draw_function
        if function is None or not self.fills_memory or self._arguments[RANDOM_STATE.name].value is not None:
            return None
        constants = {name: constant_array(each.parameter, each.value, 1) for name, each in self._arguments.items()}
        return function.function(**StepFunction(function, self._static, ()).named(constants, 1))

    def _compute(self, call: StepCall) -> list[Batch]:
        xs: list[Any] = []
        for batch in call.inputs:
            x = None if batch is None else batch.compiled
            xs.append(x if x is not None or batch is None else self._samples(batch))
        if self._is_allocating:
            return self._allocated(call, xs)
        key = call.count if self._is_constant else self._plan_key(call, xs) if self._is_planned_by_shape else None
        known, plan = self._known_plan
        if plan is None or key is None or known != key:
            plan = self._plan(call, xs)
            found, is_full = plan.shapes, plan.is_full
            if key is not None and (plan.traced is not None or all(x is None or _is_uniform(x) for x in xs)):
                self._known_plan = key, plan
        elif plan.traced is None:
            found, is_full = plan.shapes, plan.is_full
        else:
            found = self._traced_shapes(plan.traced, plan.specs, xs, call.count)
            is_full = _has_elements(found)
        like = xs[0] if xs else None
        batches: list[Batch] = []
        outs: list[Any] = []
        for output, spec in enumerate(plan.specs):
            batch = self._memory_of(call, output, spec, found[output], like)
            batches.append(batch)
            outs.append(self._samples(batch) if batch.compiled is None else batch.compiled)
        if is_full:
            self._call(call, [*outs, *xs], plan.named)
        else:
            self._fill_others(call, outs, xs, plan.named)
        return batches

    def _call(self, call: StepCall, samples: list[Any], extra: dict[str, Any]) -> Any:
        """Call the kernel for all samples."""
        named = self._kernel_function.named(call.arguments, call.count)
        if extra:
            named.update(extra)
        if self._takes_draws:
            named["draws"] = call.draws
        try:
            return self._kernel_function.function(*samples, **named)
        except Exception as error:
            note_sample(error, 0, 0 if call.count == 1 else None)
            raise

    def _allocated(self, call: StepCall, xs: list[Any]) -> list[Batch]:
        """Return the results of a kernel that allocates them; the rule checks each sample."""
        prepared = self._prepare_cached(call)
        is_one = not self._varying and all(x is None or _is_uniform(x) for x in xs)
        layout = prepared.get("out_layout")
        found = [self._specs_of_sample(call, n, None, layout) for n in range(1 if is_one else call.count)]
        results = self._call(call, xs, self._extra(call, prepared, found[0]))
        return self._as_batches(results, found[0], call.origins)

    def _extra(self, call: StepCall, prepared: dict[str, Any], specs: tuple[Spec, ...]) -> dict[str, Any]:
        """Return the arguments of the kernel that are not arguments of the operator, except random numbers."""
        known_specs, known_count, context = self._known_context
        if specs is not known_specs or call.count != known_count:
            context = {name: self._context(name, call, specs) for name in self._context_names}
            self._known_context = specs, call.count, context
        named, names = dict(context), self._kernel_function.names
        for name, value in prepared.items():
            if name in names:
                named[name] = value
        return named

    def _plan(self, call: StepCall, xs: list[Any]) -> _Plan:
        prepared = self._prepare_cached(call)
        specs, shapes, traced = self._result_specs(call, xs, prepared)
        return _Plan(specs, shapes, _has_elements(shapes), self._extra(call, prepared, specs), traced)

    def _fill_others(self, call: StepCall, outs: list[Any], xs: list[Any], extra: dict[str, Any]) -> None:
        """Fill the samples that have elements, because kernels need not handle others."""
        kept = np.flatnonzero(np.any([out.shapes.all(1) for out in outs], 0))
        if not len(kept):
            return
        named = {name: _take_values(call.arguments[name], kept) for name in self._own_arguments}
        named |= {name: value if name in self._wanted else _take_values(value, kept) for name, value in extra.items()}
        if "count" in self._wanted:
            named["count"] = len(kept)
        if self._takes_draws and call.draws is not None:
            named["draws"] = call.draws.take(kept)
        outs = [out.take(kept) for out in outs]
        xs = [None if x is None else x.take(kept) for x in xs]
        try:
            self._kernel.function(*outs, *xs, **self._constants, **named)
        except Exception as error:
            note_sample(error, 0, 0 if len(kept) == 1 else None)
            sample: int | None = failure_context(error).sample
            if sample is not None:
                failure_context(error).sample = int(kept[sample])
            raise

    def _plan_key(self, call: StepCall, xs: list[Any]) -> Any:
        """Return a key of all values that determine the result of `prepare` and the specs of the results.

        None if they depend on other values than shapes. For samples of different shapes, the key has the extents that
        are equal, so that a plan can be used again if the rule copies the others.
        """
        key: list[Any] = [call.count]
        for batch, x in zip(call.inputs, xs, strict=True):
            if batch is None:
                key.append(None)
            elif batch.dense is not None:
                key += batch.dtype, batch.layout, batch.dense.shape
            elif self._prepare_function is None:
                key += batch.dtype, batch.layout, (x.table or _table_of(x)).extents
            else:
                return None
        return key

    def _prepare_cached(self, call: StepCall) -> dict[str, Any]:
        """Return the result of `prepare`."""
        if self._operator.prepare_function is None:
            return {}
        if not self._prepares_once:
            return self._prepare(call)
        key: list[Any] = []
        for batch in call.inputs:
            if batch is None:
                key.append(None)
                continue
            if batch.dense is None:
                return self._prepare(call)
            key.append((batch.dtype, batch.layout, batch.dense.shape))
        return self._known_preparations.get_or_make(tuple(key), partial(self._prepare, call))[0]

    def _result_specs(
        self, call: StepCall, xs: list[Samples | None], extra: dict[str, Any]
    ) -> tuple[tuple[Spec, ...], list[Any], TracedShapes | None]:
        """Return the specs of the results, the shapes of each output, and the shapes as functions of the input shapes.

        Shapes are a tuple if they are equal, or a `ShapeTable`. If `prepare` returns no shapes and the rule computes
        with extents, it runs once per combination of input shapes and shaping arguments.
        """
        inputs, count = call.inputs, call.count
        layout = extra.get("out_layout")
        shapes = extra.get("out_shapes")
        if is_array(shapes):
            specs = self._open_specs(inputs, layout)
            known_specs, content, found_shapes = self._known_shapes
            if specs is not known_specs or shapes.tobytes() != content:
                table = ShapeTable(shapes, 1 if specs[0].dtype is None else specs[0].dtype.numpy.itemsize)
                self._check_sizes(table, specs[0])
                all_shapes = table.extents if table.is_uniform else table
                found_shapes = list[Any]()
                for spec in specs:
                    found_shapes.append(() if spec.ndim == 0 else all_shapes)
                if table.is_uniform:
                    self._known_shapes = specs, shapes.tobytes(), found_shapes
            return specs, found_shapes, None
        shape = tuple(map(int, shapes)) if is_tuple(shapes) else None
        is_dense = all(batch is None or batch.dense is not None for batch in inputs)
        if shape is not None and not self._varying and not is_dense:
            specs = self._open_specs(inputs, layout)
            self._check_size(shape, specs[0], 0)
            return specs, [() if spec.ndim == 0 else shape for spec in specs], None
        is_uniform = is_dense or all(x is None or _table_of(x).is_uniform for x in xs)
        if is_uniform and not self._varying and not is_list(shapes):
            specs = self._specs_of_sample(call, 0, shape, layout)
            return specs, [spec.shape for spec in specs], None
        tables = [None if x is None else _table_of(x) for x in xs]
        if shapes is None and not self._varying and (traced := self._trace.of(inputs, tables)) is not None:
            specs = with_layout(traced.specs, layout)
            found_shapes = self._traced_shapes(traced, specs, xs, count)
            for spec, each in zip(specs, found_shapes, strict=True):
                if is_tuple(each):
                    self._check_size(each, spec, 0)
            return specs, found_shapes, traced
        columns = [table.shapes.tolist() for table in tables if table is not None and not table.is_uniform]
        columns += [
            [value.tolist() for value in values] if is_list(values) else values.tolist()
            for values in [call.arguments[name] for name in self._varying]
        ]
        kinds = tuple(None if batch is None else (batch.dtype, batch.layout) for batch in inputs)
        uniform = tuple(table.extents for table in tables if table is not None and table.is_uniform)
        found: list[tuple[Spec, ...]] = []
        for sample, row in enumerate(zip(*columns, strict=True) if columns else [()] * count):
            if is_list(shapes):
                shape = tuple(map(int, shapes[sample]))
            key = (kinds, uniform, str(row), shape, layout)
            specs = self._known_results.get(key)
            if specs is None:
                specs = self._specs_of_sample(call, sample, shape, layout)
                self._known_results.put(key, specs)
            found.append(specs)
        by_output = [[of_sample[output].shape for of_sample in found] for output in range(len(found[0]))]
        return (
            found[0],
            [
                shapes[0] if shapes.count(shapes[0]) == count else ShapeTable(np.array(shapes, np.int64))
                for shapes in by_output
            ],
            None,
        )

    def _traced_shapes(self, traced: TracedShapes, specs: Sequence[Spec], xs: list[Any], count: int) -> list[Any]:
        """Return the shapes of each output: a tuple if they are constant, or a `ShapeTable`, which is checked."""
        tables: list[ShapeTable | None] = []
        for x in xs:
            tables.append(None if x is None else x.table or _table_of(x))
        found = traced.shapes(tables, count)
        for spec, shapes in zip(specs, found, strict=True):
            if isinstance(shapes, ShapeTable):
                self._check_sizes(shapes, spec)
        return found


def _has_elements(shapes: list[Any]) -> bool:
    """Return whether all samples of a result have elements, or there are no results."""
    for found in shapes:
        if found.is_full if isinstance(found, ShapeTable) else 0 not in found:
            return True
    return not shapes


def _is_uniform(samples: Any) -> bool:
    return samples.array is not None or _table_of(samples).is_uniform


def _table_of(samples: Any) -> ShapeTable:
    """Return the shapes of samples; stored for later steps with the same samples."""
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
