"""decoders.image_random_crop through pipelines; the windows themselves are tested with the kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dalify import fn
from dalify.base.errors import ArgumentValueError
from tests.operators.decoders.test_image import decoded


@pytest.fixture(scope="module")
def files(photo_list: list[tuple[Path, int]]) -> list[str]:
    return [str(path) for path, _ in photo_list]


def is_part_of(part: np.ndarray, whole: np.ndarray) -> bool:
    rows, columns = part.shape[:2]
    windows = np.lib.stride_tricks.sliding_window_view(whole, (rows, columns), axis=(0, 1))
    candidates = np.argwhere((windows[..., 0, 0] == part[0, 0]).all(axis=-1))
    return any((whole[y : y + rows, x : x + columns] == part).all() for y, x in candidates)


def test_results_equal_parts_of_the_image(files: list[str]) -> None:
    wholes = decoded(files)
    parts = decoded(files, fn.decoders.image_random_crop, seed=3)
    assert len({part.shape for part in parts}) > len(parts) // 2
    for part, whole in zip(parts, wholes, strict=True):
        assert is_part_of(part, whole)
        assert 0.7 < part.shape[1] / part.shape[0] < 1.4
        assert part.size >= 0.06 * whole.size


def test_seeds_decide(files: list[str]) -> None:
    first = decoded(files, fn.decoders.image_random_crop, seed=3)
    again = decoded(files, fn.decoders.image_random_crop, seed=3)
    other = decoded(files, fn.decoders.image_random_crop, seed=4)
    assert [image.shape for image in first] == [image.shape for image in again]
    assert [image.shape for image in first] != [image.shape for image in other]


def test_whole_area_is_the_whole_image(files: list[str]) -> None:
    parts = decoded(files, fn.decoders.image_random_crop, random_area=[1.0, 1.0], random_aspect_ratio=[0.1, 10.0])
    assert all(part.size > 0.9 * whole.size for part, whole in zip(parts, decoded(files), strict=True))


def test_wrong_ranges(files: list[str]) -> None:
    with pytest.raises(ArgumentValueError, match="random_area"):
        decoded(files, fn.decoders.image_random_crop, random_area=[0.5, 0.1])
