"""Call an operator's CPU kernel directly: rule, memory and arguments follow the contract of kernels, without a graph.

It does what `registry` promises to authors of kernels, without the executor's chunks, groups, branches and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dalify.data import Batch
from dalify.data.rows import Rows
from dalify.data.samples import Samples
from dalify.executor.values import argument_array, constant_array
from dalify.registry import Form, KernelOperator, Operator, Spec, catalog
from tests.operators.battery.case import Case, Each

_FORMS: dict[Form, Callable[[Any], Any]] = {
    Form.SAMPLES: Samples.of_dense,
    Form.NEW_SAMPLES: Samples.of_dense,
    Form.ELEMENTS: Samples.of_dense,
    Form.ROWS: Rows.of_dense,
    Form.NEW_ROWS: Rows.of_dense,
}


def why_no_direct_call(operator: Operator) -> str:
    """Return why an operator's kernel cannot be called alone, an empty string if it can."""
    if not isinstance(operator, KernelOperator):
        return "has no kernel of its own"
    if operator.is_random or operator.is_serial:
        return "needs the numbers, the files or the turns of a pipeline"
    return "gets whole batches" if operator.is_batchwise or operator.whole_batch is not None else ""


def call_kernel(name: str, case: Case, folder: Path, samples: Sequence[int]) -> list[list[np.ndarray]]:
    """Return the outputs of a case, each a list of samples; the kernel is called once for each sample.

    Args:
        name: of the operator.
        case: what to run.
        folder: for files that the arguments name.
        samples: their numbers.
    """
    operator = catalog.find(name)
    assert isinstance(operator, KernelOperator)
    results = [_of_one(operator, case, folder, index) for index in samples]
    return [list(output) for output in zip(*results, strict=True)]


def _of_one(operator: KernelOperator, case: Case, folder: Path, index: int) -> list[np.ndarray]:
    batches: list[Batch | None] = [
        Batch(np.ascontiguousarray(data.samples[index][None]), None, data.layout) for data in case.inputs
    ]
    batches += [None] * (sum(not item.is_variadic for item in operator.inputs) - len(batches))
    specs = [None if batch is None else batch.spec_of(0) for batch in batches]
    named: dict[str, Any] = {"count": 1, "spec": specs[0] if specs else None, "specs": tuple(specs)}
    for_rule: dict[str, Any] = {}
    given = case.given(folder)
    for parameter in operator.parameters.values():
        value = given.get(parameter.name, parameter.default)
        if isinstance(value, Each):
            array = argument_array(parameter, Batch(value.values[index][None], None, value.layout))
            named[parameter.name] = array
            for_rule[parameter.name] = _plain(array)
        else:
            constant = parameter.normalize(value, operator.public_name)
            is_static = parameter.kind == "static"
            named[parameter.name] = constant if is_static else constant_array(parameter, constant, 1)
            for_rule[parameter.name] = constant
    wanted: dict[str, Any] = {}
    if operator.prepare_function is not None:
        prepare = operator.prepare_function
        wanted = dict(prepare.function(*batches, **{item: named[item] for item in prepare.names}))
    out_specs = _with_shapes(operator.apply_rule(specs, for_rule), wanted)
    named.update(wanted, out_specs=out_specs, out_spec=out_specs[0] if out_specs else None, counts=None)
    kernel = operator.kernels["cpu"]
    arguments = {item: named[item] for item in kernel.names}
    form: Callable[[Any], Any] = _FORMS.get(kernel.form, lambda dense: dense)
    takes_batches = kernel.form is Form.CHUNK
    inputs = [batch if batch is None or takes_batches else form(batch.dense) for batch in batches]
    if kernel.form.is_allocating:
        made = kernel.function(*inputs, **arguments)
        made = made if isinstance(made, tuple) else (made,)
        return [_only_sample(result) for result in made]
    outs = [np.empty((1, *(spec.shape or ())), spec.dtype.numpy) for spec in out_specs if spec.dtype is not None]
    kernel.function(*map(form, outs), *inputs, **arguments)
    return [out[0] for out in outs]


def _plain(array: Any) -> Any:
    value = array[0]
    return tuple(np.asarray(value).reshape(-1).tolist()) if np.ndim(value) else value.item()


def _with_shapes(specs: tuple[Spec, ...], wanted: dict[str, Any]) -> tuple[Spec, ...]:
    shapes, layout = wanted.pop("out_shapes", None), wanted.pop("out_layout", None)
    if shapes is not None:
        shape = tuple(map(int, shapes if isinstance(shapes, tuple) else shapes[0]))
        specs = tuple(spec if spec.ndim == 0 else spec.replace(shape=shape) for spec in specs)
    return specs if layout is None else tuple(spec.replace(layout=layout) for spec in specs)


def _only_sample(result: Any) -> np.ndarray:
    if isinstance(result, Batch):
        return np.asarray(result.samples[0])
    return result.values if isinstance(result, Rows) else np.asarray(result[0])
