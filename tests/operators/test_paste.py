"""fn.paste compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, LimitError, ShapeError
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((5, 6, 3), (9, 7, 3))]


@pytest.mark.parametrize(
    "arguments",
    [
        {"ratio": 1.7},
        {"ratio": 2.3, "paste_x": 0.2, "paste_y": 0.9},
        {"ratio": 1.5, "min_canvas_size": 12.6, "paste_x": 1.0, "paste_y": 0.0},
        {"ratio": 1.0},
        {"ratio": Each(np.float32([1.1, 3])), "paste_x": Each(np.float32([0.4, 0.9]))},
    ],
    ids=str,
)
def test_images(device, arguments):
    assert_equals_dali("paste", IMAGES, layouts="HWC", device=device, fill_value=[9, 8, 7], **arguments)


def test_gray(device):
    gray = [image[..., :1] for image in IMAGES]
    arguments = {"fill_value": 200, "n_channels": 1, "ratio": 2.0}
    assert_equals_dali("paste", gray, layouts="HWC", device=device, **arguments)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match=r"ratio must be at least 1; got 0\.5"):
        run_dalify("paste", IMAGES, layouts="HWC", ratio=0.5, fill_value=0)
    with pytest.raises(ArgumentValueError, match=r"(?s)ratio must be at least 1; got 0\.9\..*sample 1 of the batch"):
        run_dalify("paste", IMAGES, layouts="HWC", ratio=Each(np.float32([1.5, 0.9])), fill_value=0)
    with pytest.raises(
        ArgumentValueError, match=r"(?s)ratio must be in the range of 32-bit integers; got nan.*sample 1 of the batch"
    ):
        run_dalify("paste", IMAGES, layouts="HWC", ratio=Each(np.float32([1.5, np.nan])), fill_value=0)
    with pytest.raises(LimitError, match="max_sample_bytes"):
        run_dalify("paste", IMAGES, layouts="HWC", ratio=1e9, fill_value=0)
    with pytest.raises(ArgumentValueError, match="one for each of the 3 channels; got 2"):
        run_dalify("paste", IMAGES, layouts="HWC", ratio=2.0, fill_value=[1, 2])
    with pytest.raises(ShapeError, match="has 3 channels; n_channels is 4"):
        run_dalify("paste", IMAGES, layouts="HWC", ratio=2.0, fill_value=0, n_channels=4)
    with pytest.raises(DTypeError, match="uint8"):
        run_dalify("paste", [IMAGES[0].astype(np.float32)], layouts="HWC", ratio=2.0, fill_value=0)
    with pytest.raises(ArgumentValueError, match=r"paste_x must be between 0 and 1; got 1\.2"):
        run_dalify("paste", IMAGES, layouts="HWC", ratio=2.0, fill_value=0, paste_x=1.2)
