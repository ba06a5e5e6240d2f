"""Graphs of one or several operators with hostile data and arguments.

A graph is a JSON document, so that it can be saved, made smaller and run again. Typical data and arguments come from
``tests/operators/battery/cases/``, by reference; hostile ones are made from the schemas of the operators.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dalify
from dalify.base.errors import DalifyError
from dalify.data.dtypes import from_numpy
from dalify.immediate.calls import make_eager
from dalify.registry import READER_PARAMETERS, Parameter, Reader, catalog
from tests.fuzz.inputs import Input
from tests.fuzz.outcomes import OK, Outcome, of_error
from tests.fuzz.targets.base import Target, bytes_of, same_outputs
from tests.operators.battery.case import SAMPLES, Each
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import NAMES, function_of, has_gpu_kernel
from tests.operators.battery.test_battery_mistakes import HOSTILE
from tests.operators.battery.variants import variants_of


def is_reader(name: str) -> bool:
    return isinstance(catalog.find(name), Reader)


# Operators that run code of the user need no protection.
_OPERATORS = [
    name
    for name in NAMES
    if name in CASES and not catalog.find(name).runs_user_code and name not in ("external_source", "dump_image")
]
_CHOSEN = ((0, 1), (0, SAMPLES), (SAMPLES, 2), (3, 3))
_INTEGERS = [-1, 0, 1, 2, 5, 7, 100, 255, 256, 4096, 65536, -(2**31), 2**31 - 1, 2**31, 2**40, -(2**63), 2**63 - 1]
_FLOATS = [-1.0, -0.0, 0.5, 1e-30, -1e30, 3e38, 1e9, float("nan"), float("inf"), -float("inf"), 2.0**31, 1e-3, 100.5]
_TYPES = ["float32", "int32", "float32", "int32", "uint8", "int64", "float64", "bool", "float16", "int8", "uint64"]
_CHANGES = [*HOSTILE, "empty", "huge values", "zeros", "one", "transposed", "more dimensions", "fewer dimensions"]
# Readers are no part of the eager modes.
_MODES = ["pipeline"] * 6 + ["eager", "lazy"]
_LAYOUTS = ["", "HWC", "CHW", "HW", "FHWC", "DHWC", "XYZ", "H", "C", "FCHW", "HWCN", "WH"]

Document = dict[str, Any]


def program(rng: random.Random, operators: Sequence[str] = _OPERATORS) -> Document:
    """Return a random graph.

    ``{"samples": [...], "device": ..., "threads": ..., "mode": ..., "nodes": [{"operator", "inputs", "arguments"}]}``;
    an input is ``{"node": i}`` or ``{"case": operator, "input": k, "change": ..., "layout": ..., "declared": ...}``;
    an argument ``{"case": operator}``, ``{"value": ...}``, ``{"each": [...], "dtype": ...}`` or ``{"node": i}``.
    """
    nodes: list[Document] = []
    count = rng.choice((1, 1, 2, 2, 3, 4))
    for position in range(count):
        name = rng.choice(operators)
        found, case = catalog.find(name), CASES[name]
        inputs = [_input(name, number, rng) for number in range(len(case.inputs))]
        if position and inputs and rng.random() < 0.7:
            inputs[0] = {"node": position - 1}
        for number in range(len(inputs)):
            if rng.random() < 0.04:  # data meant for another operator
                other = rng.choice([item for item in operators if CASES[item].inputs])
                inputs[number] = _input(other, 0, rng)
        arguments: Document = {key: {"case": name} for key in _typical_names(name)}
        for parameter in found.parameters.values():
            if parameter.name in READER_PARAMETERS or parameter.element is object:
                continue
            is_typical = parameter.name in arguments
            if parameter.accepts_node and rng.random() < (0.35 if is_typical else 0.1):
                arguments[parameter.name] = _each(name, parameter, rng)
            elif rng.random() < (0.05 if is_typical else 0.04):
                arguments[parameter.name] = {"value": _value(parameter, rng)}
        nodes.append({"operator": name, "inputs": inputs, "arguments": arguments})
    return {
        "samples": list(rng.choice(_CHOSEN)),
        "device": "gpu" if rng.random() < 0.2 else "cpu",
        "threads": rng.choice((1, 1, 2)),
        "mode": rng.choice(_MODES),
        "nodes": nodes,
    }


def _typical_names(name: str) -> list[str]:
    arguments = CASES[name].arguments
    return list(_given(name) if callable(arguments) else arguments)


def _given(name: str) -> Mapping[str, Any]:
    """Return the arguments of a case; files that they name are below the current folder."""
    if name not in _cache:
        folder = Path.cwd() / "cases"
        folder.mkdir(exist_ok=True)
        _cache[name] = CASES[name].given(folder)
    return _cache[name]


_cache: dict[str, Mapping[str, Any]] = {}


def _input(name: str, number: int, rng: random.Random) -> Document:
    found: Document = {"case": name, "input": number, "declared": rng.random() < 0.3}
    draw = rng.random()
    if draw < 0.25:
        found["change"] = rng.choice(_CHANGES)
    elif draw < 0.45:
        found["variant"] = rng.randrange(40)
    if rng.random() < 0.06:
        found["layout"] = rng.choice(_LAYOUTS)
    return found


def _number(parameter: Parameter, rng: random.Random) -> Any:
    return rng.choice(_INTEGERS if parameter.element in (int, bool) or rng.random() < 0.3 else _FLOATS)


def _value(parameter: Parameter, rng: random.Random) -> Any:
    """Return a constant that the argument may not be meant to have."""
    if parameter.element is str:
        item: Any = rng.choice(["", "nonsense", "HWC", "..", "a" * 300, "\0", "é"])
    else:
        item = _number(parameter, rng)
    if not parameter.is_list or rng.random() < 0.1:
        return item
    return [item] * rng.choice((0, 1, 1, 2, 2, 3, 4, 6, 50)) if rng.random() < 0.6 else [item, _number(parameter, rng)]


def _each(name: str, parameter: Parameter, rng: random.Random) -> Document:
    """Return one value per sample: like the typical value with something hostile, or of another shape and type."""
    typical = _given(name).get(parameter.name, parameter.default)
    if isinstance(typical, Each):
        typical = typical.values[0]
    try:
        base = np.asarray(typical, np.float64)
    except (TypeError, ValueError):
        base = np.zeros((2,) if parameter.is_list else ())
    values = []
    for _ in range(2):
        value = base.copy() if base.size < 50 else base.reshape(-1)[:50].copy()
        if rng.random() < 0.8 and value.size:
            value.reshape(-1)[rng.randrange(value.size)] = _number(parameter, rng)
        if rng.random() < 0.1:
            shape = rng.choice([(0,), (1,), (2,), (3,), (2, 2), (1, 1), (0, 4), (5, 2), (7,)])
            value = np.resize(value if value.size else np.zeros(1), shape) if 0 not in shape else np.zeros(shape)
        values.append(value.tolist())
    dtype = rng.choice(_TYPES) if rng.random() < 0.3 else "int32" if parameter.element in (int, bool) else "float32"
    return {"each": values, "dtype": dtype, "declared": rng.random() < 0.4}


# -- from documents to nodes -------------------------------------------------------------------------------------------


def _changed(samples: list[np.ndarray], layout: str, change: str | None) -> tuple[list[np.ndarray], str]:
    if change is None:
        return samples, layout
    if change in HOSTILE:
        return [HOSTILE[change].samples[0]] * len(samples), HOSTILE[change].layout
    changes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "empty": lambda x: x[:0] if x.ndim else x,
        "huge values": lambda x: (
            np.full_like(x, np.iinfo(x.dtype).max if x.dtype.kind in "iu" else True)
            if x.dtype.kind != "f"
            else np.full_like(x, np.finfo(x.dtype).max)
        ),
        "zeros": np.zeros_like,
        "one": lambda x: x[:1] if x.ndim else x,
        "transposed": np.transpose,
        "more dimensions": lambda x: x[None],
        "fewer dimensions": lambda x: x[0] if x.ndim and len(x) else x,
    }
    return [np.ascontiguousarray(changes[change](sample)) for sample in samples], layout


def _source(values: Sequence[np.ndarray], layout: str, is_declared: bool, mode: str) -> Any:
    if mode != "pipeline":
        try:
            return dalify.eager.batch(list(values), layout or None)
        except DalifyError as error:  # this call raises for values that are no batch
            error.operator = "eager.batch"
            raise
    first = values[0]
    declared = {"dtype": from_numpy(first.dtype), "ndim": first.ndim} if is_declared else {}
    return dalify.fn.external_source(source=lambda: list(values), layout=layout or None, **declared)


def _cast(value: Any, dtype: str) -> np.ndarray:
    array = np.asarray(value, np.float64)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        numbers = [
            min(max(int(number), limits.min), limits.max) for number in np.nan_to_num(array).reshape(-1).tolist()
        ]
        return np.array(numbers, kind).reshape(array.shape)
    with np.errstate(over="ignore"):
        return array.astype(kind)


def _node_of_input(given: Document, samples: list[int], made: list[Any], mode: str) -> Any:
    if "node" in given:
        return made[given["node"] % len(made)]
    case = CASES[given["case"]]
    if "variant" in given:
        variants = _variants(given["case"])
        case = variants[given["variant"] % len(variants)]
    data = case.inputs[min(given["input"], len(case.inputs) - 1)]
    chosen, layout = _changed(
        [data.samples[index % len(data.samples)] for index in samples], data.layout, given.get("change")
    )
    return _source(chosen, given.get("layout", layout), bool(given.get("declared")), mode)


def _variants(name: str) -> list[Any]:
    if name not in _variant_cache:
        found = [variant.case for variant in variants_of(name) if variant.is_general and variant.case.inputs]
        _variant_cache[name] = found or [CASES[name]]
    return _variant_cache[name]


_variant_cache: dict[str, list[Any]] = {}


def _argument(key: str, given: Document, samples: list[int], made: list[Any], mode: str) -> Any:
    if "node" in given:
        return made[given["node"] % len(made)]
    if "each" in given:
        return _source([_cast(value, given["dtype"]) for value in given["each"]], "", bool(given.get("declared")), mode)
    if "value" in given:
        return given["value"]
    value = _given(given["case"])[key]
    return (
        _source([value.values[index] for index in samples], value.layout, True, mode)
        if isinstance(value, Each)
        else value
    )


def nodes_of(document: Document) -> list[Any]:
    """Make the nodes of a graph in the current pipeline, or call its operators; returns the outputs."""
    made: list[Any] = []
    outputs: list[Any] = []
    samples = document["samples"]
    mode = document.get("mode", "pipeline")
    device = document["device"] if mode == "pipeline" else "cpu"
    for item in document["nodes"]:
        name = item["operator"]
        inputs = [_node_of_input(given, samples, made, mode) for given in item["inputs"]]
        keywords = {key: _argument(key, given, samples, made, mode) for key, given in item["arguments"].items()}
        if device == "gpu" and has_gpu_kernel(name):
            inputs = [node.gpu() for node in inputs]
            keywords["device"] = "gpu"
        function = function_of(name) if mode == "pipeline" else make_eager(catalog.find(name), name)
        result = function(*inputs, **keywords)
        results = list(result.values()) if isinstance(result, dict) else result
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        made.append(results[0])
        outputs += results
    return outputs


class GraphTarget(Target):
    """Random graphs.

    Args:
        name: of the target.
        operators: names of those that take part.
    """

    def __init__(self, name: str, operators: Sequence[str]) -> None:
        self.name = name
        self._operators = operators
        self._expected: dict[str, Any] = {}

    def prepare(self, folder: Path) -> list[Input]:
        """Run the typical use of some operators, which loads what most share."""
        os.environ["DALIFY_DEVICE"] = "cpu"
        for name in self._operators[:: max(1, len(self._operators) // 12)]:
            if not catalog.find(name).takes_seed:
                self._expected[name] = self._typical(name)
                self._typical(name, "gpu")
        rng = random.Random(self.name)
        return [{"graph.json": json.dumps(program(rng, self._operators)).encode()} for _ in range(20)]

    def _typical(self, name: str, device: str = "cpu") -> Any:
        document = {"samples": [0, 1], "device": device, "threads": 1}
        inputs = [{"case": name, "input": number, "declared": True} for number in range(len(CASES[name].inputs))]
        node = {"operator": name, "inputs": inputs, "arguments": {key: {"case": name} for key in _typical_names(name)}}
        pipe = self._pipeline({**document, "nodes": [node]})
        try:
            return bytes_of([batch.as_cpu() for batch in pipe.run()])
        finally:
            pipe.close()

    def mutated(self, given: Input, other: Input, rng: random.Random) -> Input:
        """Return a new graph, or the nodes of two with changes."""
        document = program(rng, self._operators)
        if any(is_reader(name) for name in self._operators):
            document["mode"] = "pipeline"
        if rng.random() < 0.3:
            old = json.loads(given["graph.json"])
            document["nodes"] = [*old["nodes"][: rng.randrange(1, 3)], *document["nodes"]][:5]
        return {"graph.json": json.dumps(document).encode()}

    def _pipeline(self, document: Document) -> Any:
        pipe = dalify.Pipeline(
            batch_size=len(document["samples"]),
            num_threads=document["threads"],
            prefetch_queue_depth=1,
            seed=3,
            device_id=0 if document["device"] == "gpu" else None,
        )
        try:
            with pipe:
                pipe.set_outputs(*nodes_of(document))
            pipe.build()
        except BaseException:
            pipe.close()
            raise
        return pipe

    def run(self, given: Input) -> Outcome:
        """Build the graph and run two batches; or call the operators without a graph."""
        document = json.loads(given["graph.json"])
        if document.get("mode", "pipeline") != "pipeline":
            return self._call(document)
        try:
            pipe = self._pipeline(document)
        except Exception as error:
            return of_error(error, _is_named(error), past_tracing=False)
        outcomes = []
        try:
            for _ in range(2):
                try:
                    pipe.run()
                except Exception as error:
                    outcomes.append(of_error(error, _is_named(error)))
        finally:
            pipe.close()
        worst = [item for item in outcomes if item.is_finding]
        return worst[0] if worst else outcomes[0] if outcomes else OK

    def _call(self, document: Document) -> Outcome:
        try:
            with dalify.lazy() if document["mode"] == "lazy" else contextlib.nullcontext():
                for result in nodes_of(document):
                    _ = bytes_of([result]) if hasattr(result, "at") else np.asarray(result)
        except Exception as error:
            return of_error(error, _is_named(error))
        return OK

    def check(self) -> Outcome:
        """Run typical uses again."""
        for name, expected in self._expected.items():
            if not same_outputs(self._typical(name), expected):
                return Outcome("wrong", "Different", f"{name} gives another result for its typical data")
        return OK


def _is_named(error: Exception) -> bool:
    return isinstance(error, DalifyError) and (error.operator is not None or error.line is not None)


TARGETS: list[Target] = [
    GraphTarget("graphs", [name for name in _OPERATORS if not is_reader(name)]),
    GraphTarget("graphs.readers", [name for name in _OPERATORS if is_reader(name)]),
]
