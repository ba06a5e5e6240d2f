"""decoders.image_crop through pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn
from dalify.base.errors import ArgumentValueError, IndexingError
from tests.helpers.real_dali import run_dali
from tests.operators.decoders.test_image import decoded, encoded_of


@pytest.fixture(scope="module")
def files(photo_list: list[tuple[Path, int]]) -> list[str]:
    return [str(path) for path, _ in photo_list]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"crop": (30, 41)},
        {"crop": (30, 41), "rounding": "truncate"},
        {"crop": (30.7, 41.4), "crop_pos_x": 0.0, "crop_pos_y": 1.0},
        {"crop": (30, 0), "crop_pos_y": 0.33},
        {"crop_h": 25.0, "crop_w": 7.0, "crop_pos_x": 0.77},
        {"crop": (1, 31, 20)},
        {"crop": (30, -1)},
        {"crop": (0, 41)},
        {"crop_h": -1.0, "crop_w": 41.0},
    ],
)
def test_parts_equal_dali(files: list[str], arguments: dict[str, Any]) -> None:
    ours = decoded(files, fn.decoders.image_crop, **arguments)
    theirs = run_dali("decoders.image_crop", encoded_of(files), **arguments)
    for image, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"crop": (1000, 10)}, IndexingError, "1,000 rows"),
        ({"crop": (10, 10), "crop_pos_x": 1.5}, ArgumentValueError, "between 0 and 1; got 1.5"),
        ({"crop": (10, 10), "crop_h": 3.0}, ArgumentValueError, "cannot be used together"),
        ({"crop": (10,)}, ArgumentValueError, "2 or 3 elements"),
        ({"crop": (10, 10), "rounding": "up"}, ArgumentValueError, "round, truncate"),
    ],
)
def test_wrong_arguments(files: list[str], arguments: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        decoded(files[:2], fn.decoders.image_crop, **arguments)
