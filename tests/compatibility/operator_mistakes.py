"""Systematic mistakes with every operator, in DALI and in dalify.

Each mistake is a change of the typical use of the battery: an argument is missing, misspelled, or of another type or
range; inputs are missing, too many, or of another type, layout, shape or batch size. They are made in a forked process,
because some mistakes end the process in DALI; another one then continues.

Run as ``python -m tests.compatibility.operator_mistakes LIBRARY FOLDER [STRIDE]`` with the library ``dalify`` or
``nvidia.dali``, an empty folder, and the number of mistakes of which one is made (by default 1, all of them). It prints
a dictionary as JSON, from the names of the mistakes to their outcomes.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import operator
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dalify.registry import READER_PARAMETERS, Parameter, catalog
from tests.operators.battery.case import SAMPLES, Case, Data, Each
from tests.operators.battery.cases import CASES

CRASHED = "crashed"
_LIMIT_S = 60
_CHOSEN = (0, 1, SAMPLES)
# Arguments that start processes, select devices, or only reserve memory.
_NOT_CHANGED = {*READER_PARAMETERS, "device", "num_outputs", "on_error", "name", "preserve", "substitute"}


@dataclass(frozen=True, eq=False)
class Mistake:
    """One change of the typical use of an operator.

    Attributes:
        label: what is wrong.
        inputs: positional.
        arguments: by name.
        counts: samples of each input; empty: all of them.
    """

    label: str
    inputs: tuple[Data, ...]
    arguments: Mapping[str, Any]
    counts: tuple[int, ...] = field(default=())


def operators() -> list[str]:
    """Return the operators that both libraries have on the CPU."""
    return [
        name
        for name, case in CASES.items()
        if not case.not_compared_with_dali
        and catalog.find(name) is not None
        and not name.startswith(("_", "external_source"))
    ]


def mistakes_of(name: str, case: Case, folder: Path) -> Iterator[Mistake]:
    """Make the mistakes with one operator."""
    given = dict(case.given(folder))
    inputs = case.inputs
    for argument in given:
        rest = {key: value for key, value in given.items() if key != argument}
        yield Mistake(f"without {argument}", inputs, rest)
        yield Mistake(f"misspelled {argument}", inputs, {**rest, f"{argument}q": given[argument]})
    yield Mistake("unknown argument", inputs, {**given, "no_such_argument": 1})
    yield from _wrong_inputs(inputs, given)
    for parameter in catalog.find(name).parameters.values():
        if parameter.name not in _NOT_CHANGED and not parameter.is_positional:
            for label, value in _wrong_values(parameter):
                yield Mistake(f"{parameter.name}: {label}", inputs, {**given, parameter.name: value})


def _wrong_inputs(inputs: tuple[Data, ...], given: Mapping[str, Any]) -> Iterator[Mistake]:
    yield Mistake("one input too many", (*inputs, Data([np.float32([1, 2])] * (SAMPLES + 1))), given)
    if not inputs:
        return
    yield Mistake("one input too few", inputs[:-1], given)
    for index, data in enumerate(inputs):
        others = {
            "of float32": Data([sample.astype(np.float32) for sample in data.samples], data.layout),
            "of int64": Data([np.nan_to_num(sample).astype(np.int64) for sample in data.samples], data.layout),
            "of bool": Data([sample != 0 for sample in data.samples], data.layout),
            "of one more axis": Data([sample[None] for sample in data.samples]),
            "of one axis": Data([sample.reshape(-1) for sample in data.samples]),
            "of numbers": Data([sample.reshape(-1)[0] for sample in data.samples]),
            "empty": Data([sample.reshape(-1)[:0] for sample in data.samples]),
            "of another layout": Data(data.samples, "XYZABCDEFG"[: data.samples[0].ndim]),
            "without a layout": Data(data.samples),
        }
        if data.samples[0].ndim:
            longer = [np.concatenate([sample, sample]) for sample in data.samples]
            others["twice as long"] = Data(longer, data.layout)
        if data.layout[-1:] == "C":
            others["of five channels"] = Data([sample[..., [0, 0, 0, 0, 0]] for sample in data.samples], data.layout)
        for label, other in others.items():
            changed = (*inputs[:index], other, *inputs[index + 1 :])
            yield Mistake(f"input {index} {label}", changed, given)
        if len(inputs) > 1:
            counts = tuple(2 if index == place else 3 for place in range(len(inputs)))
            yield Mistake(f"input {index} of a smaller batch", inputs, given, counts)


def _wrong_values(parameter: Parameter) -> Iterator[tuple[str, Any]]:
    values: dict[str, Any] = {
        "None": None,
        "string": "nonsense",
        "empty string": "",
        "negative": -3,
        "large": 2000,
        "fraction": 0.37,
        "negative fraction": -2.5,
        "bool": True,
        "object": object(),
        "list of strings": ["a", "b"],
        "empty list": [],
        "list of 7": [1] * 7,
        "list of fractions": [0.5, 0.25],
        "nested list": [[1], [2]],
        "array": np.float32([1, 2]),
        "complex": 1j,
    }
    yield from values.items()
    if parameter.element not in (int, float, bool, str):
        yield "number out of range", 77
    nodes = {
        "per sample integer": np.int32(1),
        "per sample float": np.float32(1),
        "per sample bool": np.bool_(True),
        "per sample float64": np.float64(1),
        "per sample list": np.float32([1, 2, 3, 4, 5]),
        "per sample matrix": np.ones((2, 2), np.float32),
        "per sample nothing": np.zeros(0, np.float32),
    }
    for label, node in nodes.items():
        yield label, Each([np.asarray(node)] * (SAMPLES + 1))


def _run(dali: Any, name: str, mistake: Mistake) -> Any:
    """Run a mistake; return the compared part of the results."""

    def source(data: Data | Each, count: int = len(_CHOSEN)) -> Any:
        values = data.samples if isinstance(data, Data) else data.values
        chosen = [np.array(values[index], order="C") for index in _CHOSEN[:count]]
        return dali.fn.external_source(source=lambda: chosen, layout=data.layout or None)

    def translated(value: Any) -> Any:
        if isinstance(value, Each):
            return source(value)
        return getattr(dali.types, value.name) if isinstance(value, IntEnum) else value

    pipe = dali.Pipeline(batch_size=len(_CHOSEN), num_threads=1, device_id=None, prefetch_queue_depth=1, seed=1)
    with pipe:
        counts = mistake.counts or (len(_CHOSEN),) * len(mistake.inputs)
        inputs = [source(data, count) for data, count in zip(mistake.inputs, counts, strict=True)]
        arguments = {key: translated(value) for key, value in mistake.arguments.items()}
        result = operator.attrgetter(name)(dali.fn)(*inputs, **arguments)
        results = result if isinstance(result, (list, tuple)) else [result]
        pipe.set_outputs(*results)
    pipe.build()
    return [
        [str(batch.dtype).rpartition(".")[2], batch.layout(), [list(np.array(item).shape) for item in _items(batch)]]
        for batch in pipe.run()
    ]


def _items(batch: Any) -> list[Any]:
    return [batch.at(index) for index in range(len(batch))]


def _outcome(dali: Any, name: str, mistake: Mistake) -> dict[str, Any]:
    try:
        return {"results": _run(dali, name, mistake)}
    except Exception as error:
        classes = [item.__name__ for item in type(error).__mro__ if item.__module__ == "builtins"]
        return {"classes": classes, "text": str(error)[-900:]}


def outcomes(dali: Any, folder: Path, stride: int = 1) -> dict[str, dict[str, Any]]:
    """Run mistakes with all operators.

    Args:
        dali: the library.
        folder: an empty one, for files that the typical uses name.
        stride: one of so many mistakes with each operator is made: other ones for other operators.
    """
    waiting = [
        (name, mistake)
        for place, name in enumerate(operators())
        for mistake in list(mistakes_of(name, CASES[name], folder))[place % stride :: stride]
    ]
    found: dict[str, dict[str, Any]] = {}
    while waiting:
        done, status = _in_child(partial(_each, dali, waiting))
        outcome_of = [*done, {CRASHED: os.waitstatus_to_exitcode(status)}][: len(waiting)]
        found.update({f"{name} | {item.label}": one for (name, item), one in zip(waiting, outcome_of, strict=False)})
        waiting = waiting[len(outcome_of) :]
    return found


def _each(dali: Any, mistakes: list[tuple[str, Mistake]]) -> Iterator[dict[str, Any]]:
    for name, mistake in mistakes:
        signal.alarm(_LIMIT_S)
        yield _outcome(dali, name, mistake)


def _in_child(function: Callable[[], Iterator[Any]]) -> tuple[list[Any], int]:
    """Return what a function yields in a forked process, as far as the process came, and how the process ended."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # DALI warns of much there
        with contextlib.suppress(BaseException):
            for item in function():
                os.write(write, json.dumps(item).encode() + b"\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        lines = pipe.read().split(b"\n")[:-1]
    return [json.loads(line) for line in lines], os.waitpid(child, 0)[1]


def main() -> None:
    warnings.simplefilter("ignore")
    library, folder, *stride = sys.argv[1:]
    dali = importlib.import_module(library)
    os.chdir(folder)  # some operators write to the working folder
    print(json.dumps(outcomes(dali, Path(folder), *map(int, stride))))


if __name__ == "__main__":
    main()
