"""The step of operators that change the shape or layout of samples."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dalify.base.narrow import is_array, is_list, is_tuple
from dalify.base.recent import Recent
from dalify.data import Array, Batch, Spec
from dalify.executor.kernel_step import KernelStep
from dalify.executor.shape_table import ShapeTable
from dalify.executor.shape_trace import ShapeTrace, trace_shapes
from dalify.executor.step_call import StepCall
from dalify.executor.values import element_dtype
from dalify.graph import Node

_CACHE_LIMIT = 4096


class ViewStep(KernelStep):
    """Changes the shapes of samples of different shapes in one call, without running the rule for each sample."""

    def __init__(self, node: Node, *others: Any) -> None:
        super().__init__(node, *others)
        self._rule = partial(self._operator.apply_rule, arguments=self._rule_arguments)
        self._trace = ShapeTrace(self._rule)
        # By dtype, layout and number of dimensions of the input; see `_kept_spec`.
        self._kept_specs: Recent[Spec | Literal[False]] = Recent(_CACHE_LIMIT)
        # Constants in float64, as in the rule: 5 * 0.7 is a tie that may be rounded differently in float32.
        self._exact = {
            name: np.array([argument.value])
            for name, argument in self._arguments.items()
            if argument.slot is None and argument.value is not None and element_dtype(argument.parameter).kind == "f"
        }
        prepare = self._operator.prepare_function
        self._exact_prepare = self._bound(prepare) if prepare is not None and self._exact else None

    def _compute(self, call: StepCall) -> list[Batch]:
        x = call.inputs[0]
        if x is not None and x.dense is None and len(self.outputs) == 1:
            found = self._shapes(call, x)
            if found is not None:
                shapes, spec = found
                layout = spec.layout or ""
                if x.ragged is not None:
                    block, offsets, _ = x.ragged
                    ragged = block, offsets, shapes
                    return [Batch(None, None, layout, self.device, x.origins, spec.dtype, ragged)]
                samples = x.samples
                if spec.dtype is not None and spec.dtype != x.dtype:
                    samples = [np.ascontiguousarray(sample).reshape(-1).view(spec.dtype.numpy) for sample in samples]
                samples = [
                    sample if sample.shape == (new := tuple(shape)) else sample.reshape(new)
                    for sample, shape in zip(samples, shapes.tolist(), strict=True)
                ]
                return [Batch(None, samples, layout, self.device, x.origins, spec.dtype)]
        return self._views(call)

    def _views(self, call: StepCall) -> list[Batch]:
        """Call the kernel for the whole chunk or, if shapes of inputs or results differ, for each sample."""
        is_dense = all(batch is None or batch.dense is not None for batch in call.inputs)
        numbers = range(call.count if self._varying or not is_dense else 1)
        specs = [self._specs_of_sample(call, sample) for sample in numbers]
        if is_dense and specs.count(specs[0]) == len(specs):
            made = self._view(
                [None if batch is None else batch.dense for batch in call.inputs], specs[0], 0, call.count
            )
            return self._as_batches(made, specs[0], call.origins)
        samples: list[list[Array]] = [[] for _ in self.outputs]
        for n, spec in enumerate(specs):
            given = [None if batch is None else batch.slice(n, n + 1).samples[0][None] for batch in call.inputs]
            for views, part in zip(samples, self._view(given, spec, n, 1), strict=True):
                views.append(part[0] if is_list(part) else part[0, ...])
        return self._as_batches(tuple(samples), specs[0], call.origins)

    def _view(self, arrays: list[Array | None], specs: tuple[Spec, ...], start: int, size: int) -> tuple[Any, ...]:
        """Return the results of the kernel for samples of equal shapes."""
        if self.device == "gpu":
            xs = [None if array is None else array.contiguous() for array in arrays]
        else:
            xs = [None if array is None else np.ascontiguousarray(array) for array in arrays]
        named = dict(self._constants)
        if "out_spec" in self._wanted:
            named["out_spec"] = specs[0]
        found = self._call_kernel([], xs, named, start, size)
        return found if is_tuple(found) else (found,)

    def _shapes(self, call: StepCall, x: Batch) -> tuple[NDArray[np.int64], Spec] | None:
        """Return the new shapes, which differ, and the spec of the result; None if the kernel has to be called."""
        old = x.shape_array()
        is_alone = not (self._varying or any(call.inputs[1:]))
        if is_alone:
            make = partial(self._kept_spec, x, len(call.inputs) - 1)
            kept = self._kept_specs.get_or_make((x.dtype, x.layout, x.ndim), make)[0]
            if kept:
                return None if x.is_uniform else (old, kept)
        exact = {name: np.broadcast_to(value, (call.count, *value.shape[1:])) for name, value in self._exact.items()}
        prepared = self._prepare(replace(call, arguments=call.arguments | exact), self._exact_prepare)
        shapes = prepared.get("out_shapes")
        if is_array(shapes):
            if x.is_uniform if shapes is old else ShapeTable(shapes).is_uniform:
                return None
            return shapes, self._specs_of_sample(call, 0)[0]
        if not is_alone:
            return None
        table = ShapeTable(old)
        traced = self._trace.of(call.inputs, [table, *(None for _ in call.inputs[1:])])
        if traced is None or traced.specs[0].dtype != x.dtype:
            return None
        found = traced.shapes([table], call.count)[0]
        # With another number of elements, the result is a part of the sample.
        if isinstance(found, ShapeTable) and (found.shapes.prod(1) == old.prod(1)).all():
            return found.shapes, traced.specs[0]
        return None

    def _kept_spec(self, x: Batch, absent: int) -> Spec | Literal[False]:
        """Return the spec of the result if samples of any shape keep it, otherwise False."""
        assert x.ndim is not None, "dalify bug: an empty list of samples"
        others = [None] * absent
        traced = trace_shapes(self._rule, [x.open_spec(), *others], [(-1,) * x.ndim, *others])
        if traced is None or traced.same[0] != 0 or traced.specs[0].dtype != x.dtype:
            return False
        return traced.specs[0]
