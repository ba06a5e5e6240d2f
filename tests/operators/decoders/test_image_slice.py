"""decoders.image_slice through pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, types
from dalify.base.errors import ArgumentValueError, IndexingError, LayoutError, ShapeError
from tests.helpers.real_dali import run_dali
from tests.operators.decoders.test_image import decoded, encoded_of


@pytest.fixture(scope="module")
def files(photo_list: list[tuple[Path, int]]) -> list[str]:
    return [str(path) for path, _ in photo_list]


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": (3, 2), "shape": (10, 5)},
        {"start": (3, 2), "end": (10, 5)},
        {"rel_start": (0.1, 0.2), "rel_end": (0.5, 0.6)},
        {"rel_start": (0.15, 0.25), "rel_shape": (0.5, 0.55)},
        {"end": (10, 5)},
        {"rel_shape": (0.3, 0.7)},
        {"start": (3, 2)},
        {"start": (3,), "axes": (0,)},
        {"start": (3,), "axis_names": "H"},
        {"start": (3, 2), "rel_shape": (0.5, 0.5)},
        {"rel_start": (0.1, 0.2), "shape": (4, 5)},
        {"start": 3, "end": (14, 15)},
        {"rel_start": 0.1, "rel_end": 0.6},
        {"start": (3, 2), "rel_end": 0.8},
        {"rel_start": (), "rel_end": (0.5, 0.6)},
        {"start": (3, 2), "shape": (4, 5), "axis_names": "HW"},
        {"start": (3, 2), "shape": (4, 5), "axes": (-1, -2)},
    ],
)
def test_named_parts_equal_dali(files: list[str], arguments: dict[str, Any]) -> None:
    ours = decoded(files, fn.decoders.image_slice, **arguments)
    theirs = run_dali("decoders.image_slice", encoded_of(files), **arguments)
    for image, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize(
    ("anchor", "shape", "arguments"),
    [
        (np.float32([0.1, 0.2]), np.float32([0.5, 0.6]), {}),
        (np.int32([3, 2]), np.int32([5, 6]), {}),
        (np.float32([3.4, 2.5]), np.float32([5.5, 6.5]), {"normalized_anchor": False, "normalized_shape": False}),
        (np.float32([3.4, 2.6]), np.float32([0.5, 0.5]), {"normalized_anchor": False}),
        (np.int64([3, 2]), np.int64([5, 6]), {"axis_names": "HW"}),
        (np.int32(3), np.int32(5), {"axes": (0,)}),
        (np.float32(0.1), np.float32(0.5), {"axis_names": "W"}),
        (np.int32([[3, 2]]), np.int32([[5, 6]]), {}),
    ],
)
def test_parts_from_inputs_equal_dali(
    files: list[str], anchor: np.ndarray, shape: np.ndarray, arguments: dict[str, Any]
) -> None:
    def operator(encoded: Any) -> Any:
        return fn.decoders.image_slice(encoded, types.Constant(anchor), types.Constant(shape), **arguments)

    inputs = ([anchor] * len(files), [shape] * len(files))
    theirs = run_dali("decoders.image_slice", encoded_of(files), *inputs, **arguments)
    for image, expected in zip(decoded(files, operator), theirs, strict=True):
        np.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ArgumentValueError, "not specified"),
        ({"start": (3, 2), "rel_start": (0.1, 0.1)}, ArgumentValueError, "start and rel_start are mutually exclusive"),
        ({"end": (3, 2), "shape": (1, 1)}, ArgumentValueError, "end and shape are mutually exclusive"),
        ({"start": (3, 2), "end": (2, 5)}, ArgumentValueError, "before its start"),
        ({"start": (3, 2), "shape": (1000, 5)}, IndexingError, "1,000 columns from 3"),
        ({"start": (-1, 2), "shape": (4, 5)}, IndexingError, "from -1"),
        ({"start": (3, 2, 0)}, ShapeError, "each of the 2 axes"),
        ({"start": (3,), "axes": (2,)}, LayoutError, "0 .height. and 1"),
        ({"start": (3, 2), "axis_names": "WC"}, LayoutError, "axis_names"),
        ({"start": (3, 2), "axis_names": "HH"}, ArgumentValueError, "axes must not be repeated"),
        ({"start": (3, 2), "axes": (0, -2)}, ArgumentValueError, "axes must not be repeated"),
        ({"start": (3,), "axes": (0,), "axis_names": "W"}, ArgumentValueError, "axes and axis_names are mutually"),
    ],
)
def test_wrong_arguments(files: list[str], arguments: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        decoded(files[:2], fn.decoders.image_slice, **arguments)


def test_inputs_belong_together(files: list[str]) -> None:
    with pytest.raises(ArgumentValueError, match="must be specified together"):
        decoded(files[:1], lambda encoded: fn.decoders.image_slice(encoded, types.Constant(np.int32([1, 1]))))
