"""peek_image_shape through pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
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


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_bad_file_fails_one_sample(photo_list: list[tuple[Path, int]], tmp_path: Path, on_error: str) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(photo_list[0][0].read_bytes()[:40])
    files = [str(path) for path, _ in photo_list[:5]]
    files.insert(2, str(bad))

    @pipeline_def(batch_size=6, num_threads=1, device_id=None)
    def pipeline() -> Any:
        return fn.peek_image_shape(fn.readers.file(files=files)[0], on_error=on_error)

    pipe = pipeline()
    (shapes,) = pipe.run()
    expected = decoded(files[:2] + files[3:], fn.peek_image_shape)
    assert len(pipe.bad_samples()) == 1
    np.testing.assert_array_equal([shapes.at(i) for i in (0, 1, 3, 4, 5)], expected)
    if on_error == "replace":
        assert shapes.at(2).tolist() == [256, 256, 3]


def test_wrong_types(photo_list: list[tuple[Path, int]]) -> None:
    with pytest.raises(ArgumentValueError, match="INT64"):
        decoded([str(photo_list[0][0])], fn.peek_image_shape, dtype=types.UINT8)
