"""peek_image_shape through pipelines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dalify import fn, types
from dalify.base.errors import ArgumentValueError
from tests.helpers.real_dali import run_dali
from tests.operators.decoders.test_image import decoded, encoded_of


@pytest.mark.parametrize("image_type", ["RGB", "GRAY", "ANY_DATA"])
@pytest.mark.parametrize("dtype", ["INT64", "INT32", "FLOAT"])
def test_shapes_equal_dali(photo_list: list[tuple[Path, int]], image_type: str, dtype: str) -> None:
    files = [str(path) for path, _ in photo_list]
    options = {"image_type": getattr(types, image_type), "dtype": getattr(types, dtype)}
    ours = decoded(files, fn.peek_image_shape, **options)
    theirs = run_dali("peek_image_shape", encoded_of(files), image_type=image_type, dtype=dtype)
    for shape, expected in zip(ours, theirs, strict=True):
        assert shape.dtype == expected.dtype
        np.testing.assert_array_equal(shape, expected)


def test_wrong_types(photo_list: list[tuple[Path, int]]) -> None:
    with pytest.raises(ArgumentValueError, match="INT64"):
        decoded([str(photo_list[0][0])], fn.peek_image_shape, dtype=types.UINT8)
