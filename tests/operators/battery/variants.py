"""Variants of every operator's case: the same use with other types, layouts, shapes and arguments.

Other types, layouts and shapes are derived from the data of a case; `Case.variants` adds arguments of the operator.
`record` records DALI's result of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.operators.battery.case import GONE, SAMPLES, Case, Data
from tests.operators.battery.cases import CASES

# Two samples of one shape and the odd one: ragged, and still with a group of two.
CHOSEN = (0, 1, SAMPLES)

# Bytes that mean something else than numbers; another type, shape or layout is not another use of the operator.
_ENCODED = ("decoders.", "io.", "peek_image_shape")


@dataclass(frozen=True, eq=False)
class Variant:
    """One use of an operator.

    Attributes:
        operator: its name.
        label: what is special about this use.
        case: data and arguments.
        samples: numbers of the samples that are run.
        is_general: made from the typical use, without arguments that only this operator has.
    """

    operator: str
    label: str
    case: Case
    samples: tuple[int, ...]
    is_general: bool = False

    @property
    def key(self) -> str:
        """The name of the recorded result."""
        return f"{self.operator} | {self.label}"


# Types that most tests leave out, for each has its compiled kernels: they differ from others by their size only.
_RARE = {"of int8", "of uint32", "of uint64", "of float64"}
EVERYTHING = os.environ.get("DALIFY_ALL_VARIANTS", "0") not in ("", "0")


def variants_of(name: str, *, everything: bool = True) -> Iterator[Variant]:
    """Make the variants of an operator, the typical use first.

    Args:
        name: of the operator.
        everything: also slow variants that rarely find errors.
    """
    case = CASES[name]
    samples = (*range(SAMPLES + 1),) if case.not_sample_by_sample else CHOSEN
    yield Variant(name, "typical", case, samples, is_general=True)
    if case.inputs and not name.startswith(_ENCODED):
        for label, data in _other_inputs(case):
            if everything or label not in _RARE:
                yield Variant(name, label, replace(case, inputs=data), samples, is_general=True)
    for label, changes in case.variants.items():
        yield Variant(name, label, _changed(case, changes), samples)


def _changed(case: Case, changes: Mapping[str, Any]) -> Case:
    given = dict(changes)
    inputs = given.pop("inputs", case.inputs)
    only = given.pop("only", False)
    if callable(case.arguments):
        made = case.arguments

        def both(folder: Path) -> Mapping[str, Any]:
            return {**made(folder), **given}

        return replace(case, inputs=inputs, arguments=both)
    arguments = {**({} if only else case.arguments), **given}
    return replace(case, inputs=inputs, arguments={key: value for key, value in arguments.items() if value is not GONE})


def _other_inputs(case: Case) -> Iterator[tuple[str, tuple[Data, ...]]]:
    first = case.inputs[0]

    def like_first(data: Data) -> tuple[Data, ...]:
        return tuple(data if item is first else item for item in case.inputs)

    for dtype in _TYPES:
        if first.samples[0].dtype != dtype:
            converted = Data([_converted(sample, np.dtype(dtype)) for sample in first.samples], first.layout)
            yield f"of {dtype}", like_first(converted)
    for label, data in _other_layouts(first):
        yield label, like_first(data)
    for label, data in _other_shapes(first):
        yield label, like_first(data)


_TYPES = (
    "uint8",
    "int8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
)
_OFFSETS = {"int8": (1, -128), "int16": (50, -5000), "uint16": (257, 0), "int32": (1000, -100000)}


def _converted(sample: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a sample in another type, with values that fill a part of its range, also beyond that of bytes."""
    if sample.dtype == np.uint8:
        if dtype.kind == "b":
            return sample > 127
        if dtype.kind == "f":
            return (sample.astype(np.float64) * 1.25 - 30).astype(dtype)
        factor, offset = _OFFSETS.get(dtype.name, (1000, 0))
        return (sample.astype(np.int64) * factor + offset).astype(dtype)
    if dtype.kind == "b":
        return sample > 0
    if dtype.kind == "u":
        return np.abs(sample).astype(dtype)
    return sample.astype(dtype)


def _other_layouts(data: Data) -> Iterator[tuple[str, Data]]:
    def mapped(change: Any, layout: str) -> Data:
        return Data([np.ascontiguousarray(change(sample)) for sample in data.samples], layout)

    if data.layout == "HWC" and data.samples[0].shape[2] == 3:
        yield "no layout", mapped(lambda x: x, "")
        yield "CHW", mapped(lambda x: x.transpose(2, 0, 1), "CHW")
        yield "HW", mapped(lambda x: x[..., 0], "HW")
        yield "one channel", mapped(lambda x: x[..., :1], "HWC")
        yield "two channels", mapped(lambda x: x[..., :2], "HWC")
        yield "four channels", mapped(lambda x: np.concatenate([x, x[::-1, :, :1]], axis=2), "HWC")
        yield "FHWC", mapped(lambda x: np.stack([x, x[::-1]]), "FHWC")
        yield "FCHW", mapped(lambda x: np.stack([x, x[::-1]]).transpose(0, 3, 1, 2), "FCHW")
        yield "DHWC", mapped(lambda x: np.stack([x, x[::-1], x[:, ::-1]]), "DHWC")
        yield "CDHW", mapped(lambda x: np.stack([x, x[::-1], x[:, ::-1]]).transpose(3, 0, 1, 2), "CDHW")
    elif data.layout == "HWC":
        yield "HW", mapped(lambda x: x[..., 0], "HW")
        yield "CHW", mapped(lambda x: x.transpose(2, 0, 1), "CHW")
    elif data.layout == "FHWC":
        yield "no layout", mapped(lambda x: x, "")
        yield "HWC", mapped(lambda x: x[0], "HWC")
        yield "FCHW", mapped(lambda x: x.transpose(0, 3, 1, 2), "FCHW")
    elif data.layout == "HW":
        yield "no layout", mapped(lambda x: x, "")
        yield "HWC", mapped(lambda x: x[..., None], "HWC")
    elif not data.layout and data.samples[0].ndim == 2:
        yield "AB", mapped(lambda x: x, "AB")
        yield "one dimension", mapped(lambda x: x.reshape(-1), "")
        yield "three dimensions", mapped(lambda x: np.stack([x, x[::-1]]), "")


def _other_shapes(data: Data) -> Iterator[tuple[str, Data]]:
    def cut(*window: slice) -> Data:
        return Data([np.ascontiguousarray(sample[window]) for sample in data.samples], data.layout)

    dimensions = data.samples[0].ndim
    one, none = slice(1, 2), slice(0, 0)
    if data.layout in ("HWC", "HW"):
        yield "one pixel", cut(one, one)
        yield "one row", cut(one)
        yield "one column", cut(slice(None), one)
        yield "no rows", cut(none)
    elif dimensions:
        yield "one row", cut(one)
        yield "nothing", cut(none)
