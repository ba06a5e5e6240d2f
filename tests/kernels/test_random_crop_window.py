"""Random crop windows: their limits, and their distribution against DALI's generator."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalify.base.errors import ArgumentValueError
from dalify.kernels.images.random_crop_window import check_random_crop, draws_per_sample, random_crop_windows

COUNT = 3000


def windows_of(height: int, width: int, area: Any, ratio: Any, attempts: int = 10, count: int = COUNT) -> np.ndarray:
    uniforms = np.random.default_rng(0).random((count, draws_per_sample(attempts)))
    return random_crop_windows(np.full((count, 2), (height, width)), uniforms, area, ratio)


def windows_of_dali(dali: ModuleType, height: int, width: int, area: Any, ratio: Any, attempts: int) -> np.ndarray:
    fn = pytest.importorskip("nvidia.dali.fn")

    @dali.pipeline_def(batch_size=COUNT, num_threads=1, device_id=None, seed=1234, prefetch_queue_depth=1)
    def graph() -> Any:
        extents = fn.external_source(source=lambda: np.full((COUNT, 2), (height, width), np.int64), batch=True)
        return tuple(
            fn.random_crop_generator(extents, random_area=area, random_aspect_ratio=ratio, num_attempts=attempts)
        )

    anchors, shapes = graph().run()
    return np.concatenate([np.asarray(anchors.as_array()), np.asarray(shapes.as_array())], axis=1)


@pytest.mark.parametrize(
    ("height", "width", "area", "ratio", "attempts"),
    [
        (375, 500, (0.08, 1.0), (3 / 4, 4 / 3), 10),
        (500, 375, (0.5, 0.6), (1.0, 2.0), 3),
        (40, 300, (0.3, 1.0), (3 / 4, 4 / 3), 10),  # too wide for the minimum area
        (300, 40, (0.3, 1.0), (3 / 4, 4 / 3), 10),  # too tall
        (100, 200, (0.45, 0.6), (0.9, 1.1), 2),  # attempts fail often
        (200, 100, (0.9, 0.9), (1.0, 2.0), 4),  # attempts fail always
        (11, 7, (0.08, 1.0), (3 / 4, 4 / 3), 10),
    ],
)
def test_windows_are_distributed_as_in_dali(
    oracle: ModuleType, height: int, width: int, area: Any, ratio: Any, attempts: int
) -> None:
    ours = windows_of(height, width, area, ratio, attempts)
    theirs = windows_of_dali(oracle, height, width, area, ratio, attempts)
    for column in range(4):
        assert stats.ks_2samp(ours[:, column], theirs[:, column]).pvalue > 1e-3, "yxhw"[column]
    areas = [windows[:, 2] * windows[:, 3] for windows in (ours, theirs)]
    assert stats.ks_2samp(*areas).pvalue > 1e-3


@given(
    extents=st.lists(st.tuples(st.integers(1, 2000), st.integers(1, 2000)), min_size=1, max_size=20),
    area=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)),
    ratio=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)),
    attempts=st.integers(1, 12),
    edge=st.sampled_from([None, 0.0, 1 - 2**-53]),
)
def test_windows_lie_within_the_image(extents: Any, area: Any, ratio: Any, attempts: int, edge: float | None) -> None:
    uniforms = np.random.default_rng(0).random((len(extents), draws_per_sample(attempts)))
    if edge is not None:
        uniforms[:] = edge
    y, x, rows, columns = random_crop_windows(np.array(extents), uniforms, sorted(area), sorted(ratio)).T
    height, width = np.array(extents).T
    assert (np.minimum(y, x) >= 0).all()
    assert (np.minimum(rows, columns) >= 1).all()
    assert (y + rows <= height).all()
    assert (x + columns <= width).all()


def test_usual_windows_keep_area_and_ratio() -> None:
    windows = windows_of(480, 640, (0.2, 0.7), (0.8, 1.25))
    ratios = windows[:, 3] / windows[:, 2]
    parts = windows[:, 2] * windows[:, 3] / (480 * 640)
    assert 0.8 <= ratios.min() <= ratios.max() <= 1.25
    assert 0.19 < parts.min() < 0.21
    assert 0.68 < parts.max() < 0.72


@pytest.mark.parametrize(
    ("area", "ratio", "attempts", "message"),
    [
        ((0.5, 0.1), (1, 1), 10, "random_area"),
        ((0, 1), (1, 1), 10, "random_area"),
        ((0.1, 1), (0, 1), 10, "random_aspect_ratio"),
        ((0.1, 1), (1,), 10, "random_aspect_ratio"),
        ((0.1, 1), (1, 1), 0, "num_attempts"),
    ],
)
def test_wrong_ranges_are_refused(area: Any, ratio: Any, attempts: int, message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        check_random_crop(area, ratio, attempts)
