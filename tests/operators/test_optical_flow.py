"""fn.optical_flow on scenes with known motion; DALI has it for GPUs only."""

from __future__ import annotations

import numpy as np
import pytest

from dalify import types
from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError
from tests.helpers.one_operator import run_dalify

HEIGHT, WIDTH = 90, 121


def scene(motions: list[tuple[float, float]], height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Draw a smooth pattern that has moved by x and y pixels in each frame: ``[F, H, W, 3]``."""
    y, x = np.mgrid[:height, :width].astype(float)
    frames = []
    for right, down in motions:
        u, v = x - right, y - down
        frames.append(127 + 60 * np.sin(u / 7) + 60 * np.cos(v / 9) * np.sin((u + v) / 11))
    return np.stack([np.stack([frame] * 3, -1) for frame in frames]).clip(0, 255).astype(np.uint8)


MOTIONS = [(0, 0), (3, -2), (3, 0.5)]
VECTORS = [(3, -2), (0, 2.5)]


@pytest.mark.parametrize("preset", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("grid", [1, 2, 4])
def test_translation(grid, preset, device):
    (flow,) = run_dalify(
        "optical_flow", [scene(MOTIONS)], layouts="FHWC", output_grid=grid, preset=preset, device=device
    )
    assert flow.dtype == np.float32
    assert flow.shape == (2, -(-HEIGHT // grid), -(-WIDTH // grid), 2)
    inner = flow[:, 16 // grid : -16 // grid, 16 // grid : -16 // grid]
    for found, expected in zip(inner, VECTORS, strict=True):
        np.testing.assert_allclose(found.mean((0, 1)), expected, atol=0.1)
        assert np.abs(found - expected).max() < 0.75


def test_grids_are_means_of_pixels():
    (fine,) = run_dalify("optical_flow", [scene(MOTIONS)], layouts="FHWC", output_grid=1)
    (coarse,) = run_dalify("optical_flow", [scene(MOTIONS)], layouts="FHWC", output_grid=4)
    for row, column in ((0, 0), (5, 17), (22, 30)):  # the last one is at both borders: 2 by 1 pixels
        cell = fine[:, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
        np.testing.assert_allclose(coarse[:, row, column], cell.astype(np.float64).mean((1, 2)), atol=1e-4)


def test_image_types():
    colors = scene(MOTIONS)
    rng = np.random.default_rng(1)
    colors = (colors * rng.uniform(0.5, 1, 3)).astype(np.uint8)
    (rgb,) = run_dalify("optical_flow", [colors], layouts="FHWC")
    (bgr,) = run_dalify("optical_flow", [np.ascontiguousarray(colors[..., ::-1])], layouts="FHWC", image_type=types.BGR)
    np.testing.assert_array_equal(rgb, bgr)
    (gray,) = run_dalify("optical_flow", [colors[..., :1]], layouts="FHWC", image_type=types.GRAY)
    assert np.abs(gray[0, 5:-5, 5:-5] - (3, -2)).max() < 0.75


@pytest.mark.parametrize("grid", [1, 4, 8])
def test_hints_decide_where_patterns_repeat(grid):
    """A pattern that repeats every 24 pixels has moved by 17: without a hint it seems to have moved the other way."""
    column = np.arange(160)
    frames = [np.sin((column - right) * 2 * np.pi / 24) * 100 + 127 for right in (0, 17)]
    clip = np.stack([np.broadcast_to(frame[None, :, None], (96, 160, 3)) for frame in frames]).astype(np.uint8)
    (blind,) = run_dalify("optical_flow", [clip], layouts="FHWC")
    assert np.median(blind[..., 0]) < 0
    hints = np.zeros((1, -(-96 // grid), -(-160 // grid), 2), np.float32)
    hints[..., 0] = 16
    (led,) = run_dalify(
        "optical_flow", [clip], [hints], layouts=["FHWC", ""], enable_external_hints=True, hint_grid=grid
    )
    assert abs(np.median(led[0, 6:-6, 10:-10, 0]) - 17) < 1


def test_temporal_hints_keep_a_motion():
    steady = scene([(2 * n, n) for n in range(4)])
    (flow,) = run_dalify("optical_flow", [steady], layouts="FHWC", enable_temporal_hints=True)
    assert np.abs(flow[:, 5:-5, 5:-5] - (2, 1)).max() < 0.75


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (12, 12), (17, 5)])
def test_small_frames(shape):
    (flow,) = run_dalify("optical_flow", [np.full((3, *shape, 3), 9, np.uint8)], layouts="FHWC")
    assert flow.shape == (2, -(-shape[0] // 4), -(-shape[1] // 4), 2)
    np.testing.assert_allclose(flow, 0, atol=1e-3)


CLIP = np.zeros((2, 20, 24, 3), np.uint8)


@pytest.mark.parametrize(
    ("clip", "layout", "arguments", "kind"),
    [
        (CLIP, "FHWC", {"preset": 0.3}, ArgumentValueError),
        (CLIP, "FHWC", {"output_grid": 8}, ArgumentValueError),
        (CLIP, "FHWC", {"hint_grid": 3}, ArgumentValueError),
        (CLIP, "FHWC", {"image_type": types.YCbCr}, ArgumentValueError),
        (CLIP, "FHWC", {"image_type": types.GRAY}, ShapeError),
        (CLIP, "FHWC", {"enable_external_hints": True}, ArgumentValueError),
        (CLIP[:1], "FHWC", {}, ShapeError),
        (CLIP[0], "HWC", {}, LayoutError),
        (CLIP.astype(np.float32), "FHWC", {}, DTypeError),
    ],
    ids=str,
)
def test_mistakes(clip, layout, arguments, kind):
    with pytest.raises(kind):
        run_dalify("optical_flow", [clip], layouts=layout, **arguments)


def test_hints_of_another_shape():
    hints = np.zeros((1, 5, 5, 2), np.float32)
    with pytest.raises(ShapeError, match=r"\(1, 5, 6, 2\)"):
        run_dalify("optical_flow", [CLIP], [hints], layouts=["FHWC", ""], enable_external_hints=True)
