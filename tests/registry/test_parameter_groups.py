"""Groups of arguments: the schema that they expand to, and the objects that rules and kernels receive."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dalify import eager, fn, types
from dalify.base.errors import ArgumentTypeError, UnknownArgumentError
from dalify.custom import VARIES, PerSample, Shaping, Spec, operator, remove
from dalify.registry import OperatorFunction, Parameters, catalog
from dalify.registry.parameter_group import merged_documentation, packing

WINDOW = ["crop", "crop_d", "crop_h", "crop_pos_x", "crop_pos_y", "crop_pos_z", "crop_w", "rounding"]
DECODING = ["output_type", "dtype", "adjust_orientation", "use_fast_idct", "jpeg_fancy_upsampling"]


@dataclass(slots=True)
class Gain(Parameters):
    """How values change.

    Attributes:
        factor: multiplier, one number or
            one for each channel.
        offset: added afterwards.
        steps: number of times.
    """

    factor: PerSample[list[float]] = field(default_factory=lambda: [1.0])
    offset: PerSample[float] = 0.0
    steps: int = 1


SEEN: list[Gain] = []


@pytest.fixture
def amplified() -> Iterator[Any]:
    @operator
    def amplified(x: Spec, /, *, gain: Gain, rows: Shaping[int] | None = None) -> Spec:  # noqa: D417 -- fields
        """Scale data.

        Args:
            x: numbers.
            steps: how often.
            rows: number of rows.

        Returns:
            the same, as float.
        """
        SEEN.append(gain)
        result = x.replace(dtype=types.FLOAT)
        if x.shape is None or rows is None or rows is VARIES:
            return result
        return result.replace(shape=(rows, *x.shape[1:]))

    @amplified.prepare
    def _(x: Any, *, gain: Gain) -> dict[str, Any]:
        return {"totals": np.asarray(gain.offset) * gain.steps}

    @amplified.cpu
    def _(out: Any, x: Any, *, gain: Gain, totals: np.ndarray) -> None:
        factors = np.asarray(gain.factor) ** gain.steps
        out[...] = x[:, : out.shape[1]] * factors[:, None, :] + totals[:, None, None]

    yield amplified
    remove(amplified)


def test_fields_are_arguments(amplified: Any) -> None:
    assert list(amplified.parameters) == ["factor", "offset", "steps", "rows"]
    assert amplified.parameters["factor"].default == (1.0,)
    assert amplified.parameters["factor"].accepts_node
    assert not amplified.parameters["steps"].accepts_node
    assert "factor: 'list[float] or node' = (1.0,)" in str(fn.amplified.__signature__)
    with pytest.raises(UnknownArgumentError, match="'gain'"):
        eager.amplified(np.ones((2, 3), np.float32), gain=1)
    with pytest.raises(ArgumentTypeError, match="steps must be an integer"):
        eager.amplified(np.ones((2, 3), np.float32), steps="two")


def test_documentation_of_fields(amplified: Any) -> None:
    assert amplified.doc.splitlines() == [
        "Scale data.",
        "",
        "Args:",
        "    x: numbers.",
        "    factor: multiplier, one number or",
        "        one for each channel.",
        "    offset: added afterwards.",
        "    steps: how often.",
        "    rows: number of rows.",
        "",
        "Returns:",
        "    the same, as float.",
    ]
    assert merged_documentation("One line.", ["x"], []) == "One line."


def test_rules_and_kernels_receive_objects(amplified: Any) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    offsets = eager.batch([np.float32(10), np.float32(20)])
    SEEN.clear()
    results = eager.amplified(eager.batch([data, data]), factor=[1, 2, 3], offset=offsets, steps=2)
    for result, offset in zip(results, (10, 20), strict=True):
        np.testing.assert_allclose(np.asarray(result), data * np.float32([1, 4, 9]) + 2 * offset)
    assert SEEN
    assert all(gain.offset is VARIES and gain.factor == (1.0, 2.0, 3.0) and gain.steps == 2 for gain in SEEN)


def test_varying_shapes(amplified: Any) -> None:
    data = np.ones((4, 2), np.float32)
    rows = eager.batch([np.int32(1), np.int32(3)])
    results = eager.amplified(eager.batch([data, data]), factor=[5], rows=rows)
    assert [np.asarray(result).shape for result in results] == [(1, 2), (3, 2)]


def test_kernels_take_single_fields_too() -> None:
    def kernel(out: Any, x: Any, *, factor: Any, gain: Gain) -> tuple[Any, Gain]:
        return factor, gain

    packed = OperatorFunction(kernel, {"gain": Gain})
    assert packed.names == ("factor", "offset", "steps")
    assert packed.function(None, None, factor=3, offset=1, steps=2) == (3, Gain(3, 1, 2))


def test_functions_of_readers_take_groups_and_the_rest() -> None:
    def index(path: str, gain: Gain, **others: object) -> tuple[Any, ...]:
        return path, gain, others

    packed = packing(index, {"gain": Gain})
    path, gain, others = packed(path="a", factor=[2.0], offset=1.0, steps=3, format="png")
    assert (path, gain, others) == ("a", Gain([2.0], 1.0, 3), {"format": "png"})
    assert list(inspect.signature(packed).parameters) == ["path", "factor", "offset", "steps", "others"]
    assert packing(index, {"window": Gain}) is index


@pytest.mark.parametrize("name", ["crop", "crop_mirror_normalize", "resize_crop_mirror"])
def test_interleaved_groups_are_sorted(name: str) -> None:
    names = list(catalog.find(name).parameters)
    assert names == sorted(names)
    assert set(WINDOW) < set(names)


@pytest.mark.parametrize("name", ["image", "image_crop", "image_random_crop", "image_slice"])
def test_decoders_share_options(name: str) -> None:
    """Decoders list options in one order, with one description, as before they were groups."""
    found = catalog.find(f"decoders.{name}")
    names = list(found.parameters)
    first = names.index(DECODING[0])
    assert names[first : first + 5] == DECODING
    assert "    affine: accepted but ignored: threads are not bound to cores.\n" in found.doc
