"""fn.jitter: its definition for each pixel; DALI has it on GPUs only and draws other numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalify.base.errors import ArgumentValueError, LayoutError
from tests.helpers.one_operator import run_dalify
from tests.helpers.real_dali import Each

ROWS, COLUMNS = np.indices((60, 80))
PLACES = np.stack([ROWS + 1, COLUMNS + 1], axis=-1).astype(np.int16)  # 0 is outside


def moves(device, degree, **arguments):
    """Return by how much each pixel has moved, and which look at the outside."""
    result = run_dalify("jitter", [PLACES], layouts="HWC", device=device, nDegree=degree, **arguments)[0]
    assert result.dtype == PLACES.dtype
    outside = (result == 0).all(axis=-1)
    assert ((result == 0).any(axis=-1) == outside).all()
    return (result - PLACES)[~outside], outside


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_offsets_are_uniform(device, degree):
    """Pixels are whole: a move of -n/2 .. n/2 ends in -n/2 .. n/2, and at even n the two ends are half as likely."""
    _, outside = moves(device, degree)
    reach = (degree + 1) // 2
    is_even = degree % 2 == 0
    values = np.arange(-(degree // 2), degree // 2 + 1)
    likely = np.where(is_even & (np.abs(values) == degree // 2), 0.5, 1.0)
    inner = moves_inside(device, degree, reach)
    for axis in (0, 1):
        counts = [(inner[:, axis] == value).sum() for value in values]
        assert sum(counts) == len(inner)
        if degree > 1:
            assert stats.chisquare(counts, likely / likely.sum() * len(inner)).pvalue > 1e-4
    assert not outside[reach:-reach, reach:-reach].any()
    assert outside.any() == (degree > 1)


def moves_inside(device, degree, reach):
    result = run_dalify("jitter", [PLACES], layouts="HWC", device=device, nDegree=degree)[0]
    return (result - PLACES)[reach:-reach, reach:-reach].reshape(-1, 2)


def test_axes_and_pixels_are_independent(device):
    inner = moves_inside(device, 8, 4).astype(float)
    assert abs(np.corrcoef(inner.T)[0, 1]) < 0.05
    assert abs(np.corrcoef(inner[:-1, 0], inner[1:, 0])[0, 1]) < 0.05


def test_linear(device):
    """Between pixels the coordinates themselves are interpolated: fractions of pixels come out, uniform."""
    arguments = {"layouts": "HWC", "device": device, "nDegree": 2, "interp_type": "INTERP_LINEAR"}
    result = run_dalify("jitter", [PLACES.astype(np.float32)], **arguments)[0]
    inner = (result - PLACES)[2:-2, 2:-2].reshape(-1)
    assert stats.kstest((inner + 1) / 2, "uniform").pvalue > 1e-4


def test_mask_and_fill(device):
    images = [PLACES, PLACES]
    kept, moved = run_dalify(
        "jitter", images, layouts="HWC", device=device, mask=Each(np.int32([0, 1])), nDegree=9, fill_value=-7
    )
    np.testing.assert_array_equal(kept, PLACES)
    assert (moved[0] == -7).any()
    still = run_dalify("jitter", images, layouts="HWC", device=device, nDegree=0)
    np.testing.assert_array_equal(still[0], PLACES)


def test_devices_draw_the_same(gpu):
    pair = [
        run_dalify("jitter", [PLACES] * 2, layouts="HWC", device=device, nDegree=5, seed=4) for device in ("cpu", gpu)
    ]
    np.testing.assert_array_equal(*pair)
    assert not np.array_equal(pair[0][0], pair[0][1])


def test_one_pixel(device):
    for degree, expected in ((1, 9), (0, 9)):
        one = run_dalify("jitter", [np.full((1, 1, 3), 9, np.uint8)], layouts="HWC", device=device, nDegree=degree)[0]
        np.testing.assert_array_equal(one, np.full((1, 1, 3), expected))


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="nDegree must not be negative; got -1"):
        run_dalify("jitter", [PLACES], layouts="HWC", nDegree=-1)
    with pytest.raises(ArgumentValueError, match="interp_type must be one of"):
        run_dalify("jitter", [PLACES], layouts="HWC", interp_type="INTERP_CUBIC")
    with pytest.raises(LayoutError):
        run_dalify("jitter", [PLACES], layouts="CHW")
