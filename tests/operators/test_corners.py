"""Uses of operators in which random arguments once gave something else than the real DALI, smallest form of each."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dalify import types
from tests.operators.battery.case import Case, Data
from tests.operators.battery.run_case import assert_same, run_case, run_case_on_dali

_FLOATS = Data([np.array([0.5, 1.5, 2.5, -0.5, -2.5, 2.7, 254.6, 300, -3], np.float32).reshape(3, 3, 1)], "HWC")
_IMAGE = Data([np.random.default_rng(5).integers(0, 256, (9, 7, 3), dtype=np.uint8)], "HWC")
_WIDE = Data([np.random.default_rng(7).integers(0, 256, (28, 36, 3), dtype=np.uint8)], "HWC")
_VOLUME = Data([np.random.default_rng(6).integers(0, 256, (5, 8, 7, 1), dtype=np.uint8)], "DHWC")
_BOXES = Data([np.array([[0.1, 0.2, 0.5, 0.3], [0.3, 0.3, 0.35, 0.9]], np.float32)])
_PLAIN = Data(_IMAGE.samples)
_GAUSSIAN: dict[str, Any] = {"interp_type": types.INTERP_GAUSSIAN}


def _corner(name: str, data: Data, *, atol: float = 0, rtol: float = 0, **arguments: Any) -> Any:
    case = Case(inputs=(data,), arguments=arguments, atol=atol, rtol=rtol)
    return pytest.param(name, case, id=f"{name} {' '.join(f'{key}={value}' for key, value in arguments.items())}"[:80])


CORNERS = [
    # Slices cut fractions off, where everything else rounds.
    _corner("slice", _FLOATS, start=[0, 0], shape=[3, 3], axis_names="HW", dtype=types.UINT8),
    _corner("slice", _FLOATS, start=[0, 0], end=[3, 4], axis_names="HW", dtype=types.UINT8, out_of_bounds_policy="pad"),
    _corner("crop", _FLOATS, crop=[3.0, 2.0], dtype=types.UINT8),
    _corner("crop_mirror_normalize", _FLOATS, dtype=types.UINT8),
    _corner(
        "one_hot", Data([np.array([0, 1, 5], np.int32)]), num_classes=3, on_value=2.7, off_value=-1.5, dtype=types.INT16
    ),
    # A position that falls on a half in float32, and a little below it in float64.
    _corner("resize_crop_mirror", _IMAGE, size=[8.0, 9.0], crop=[3.0, 4.0], crop_pos_y=0.7, atol=1),
    _corner("resize_crop_mirror", _IMAGE, size=[8.0, 9.0], crop=[3.0, 4.0], crop_pos_y=0.9, crop_pos_x=0.9, atol=1),
    # Less than a tenth of a pixel.
    _corner("tensor_resize", _PLAIN, scales=[0.01, 1.0, 1.0], dtype=types.FLOAT, rtol=1e-5),
    _corner("resize", _IMAGE, size=[0.01, 0.05], dtype=types.FLOAT, rtol=1e-5),
    # An extent of 0 is one that stays.
    *(_corner("resize", _IMAGE, **{name: 0.0}) for name in ("resize_x", "resize_y", "resize_shorter", "resize_longer")),
    _corner("resize", _IMAGE, resize_x=0.0, resize_y=5.0, atol=1),
    _corner("resize_crop_mirror", _IMAGE, resize_y=0.0, crop=[3.0, 4.0], atol=1),
    # Positions halfway between two pixels: the same one is the nearest.
    *(_corner("rotate", _IMAGE, angle=angle, interp_type=types.INTERP_NN) for angle in (30.0, 60.0, 120.0, 270.0)),
    _corner("rotate", _IMAGE, angle=270.0, size=[10.0, 10.0], interp_type=types.INTERP_NN),
    # A fill value that one of the two types cannot represent.
    *(
        _corner(name, data, fill_value=fill, dtype=dtype, interp_type=interp_type, atol=1, rtol=1e-5, **arguments)
        for name, arguments in (("rotate", {"angle": 45.0}), ("warp_affine", {"matrix": [1.0, 0.3, 2, 0.1, 1, 1]}))
        for data, dtype in ((_IMAGE, types.FLOAT), (_FLOATS, types.UINT8))
        for fill in (300.0, -5.0)
        for interp_type in (types.INTERP_NN, types.INTERP_LINEAR)
    ),
    # Fill values for channels without a layout, and unused fill values.
    _corner(
        "slice", _PLAIN, start=[0, 0], shape=[10, 9], axes=[0, 1], out_of_bounds_policy="pad", fill_values=[1, 2, 3]
    ),
    _corner("slice", _PLAIN, start=[0, 0], shape=[5, 5], axes=[0, 1], fill_values=[1, 2]),
    _corner("crop", _IMAGE, crop=[5.0, 5.0], fill_values=[1, 2]),
    # Added channels are outside, too.
    *(
        _corner(
            "crop_mirror_normalize",
            _IMAGE,
            pad_output=True,
            fill_values=20.7,
            out_of_bounds_policy=policy,
            crop=[5.0, 8.0],
        )
        for policy in ("pad", "trim_to_shape")
    ),
    # Voxels with equal distances, and canvases with equal extents along two axes.
    *(
        _corner("rotate", _VOLUME, angle=angle, axis=axis, interp_type=types.INTERP_NN, **fill)
        for axis in ([0.0, 1.0, 0.0], [1.0, 2.0, 3.0])
        for angle in (45.0, 90.0, 180.0)
        for fill in ({}, {"fill_value": 7.0})
    ),
    # At 45 degrees, rounding to float32 decides whether width and height are swapped.
    *(
        _corner("bbox_rotate", _BOXES, angle=angle, mode="fixed", input_shape=[20, 30], rtol=1e-5)
        for angle in (45.0, -45.0, 315.0, 405.0)
    ),
    # The edges of a region are rounded to float32 before the width of the result is computed.
    _corner("resize", _IMAGE, resize_shorter=15.0, roi_start=[0.1, 0.2], roi_end=[0.7, 0.9], roi_relative=True, atol=1),
    _corner("resize", _IMAGE, resize_x=8.0, roi_start=[2.0, 3.3], roi_end=[8.8, 5.7], atol=1),
    # Scales and sizes in float32, and two pixels with equal distances.
    *(_corner("resize", _WIDE, resize_shorter=size, interp_type=types.INTERP_NN) for size in (5.0, 10.0, 11.0, 12.0)),
    # No limit.
    *(_corner("resize", _IMAGE, size=[5.0, 6.0], max_size=limit, atol=1) for limit in (0.0, [-1.0, 3.0])),
    # The sign of `stddev` has an effect only without `epsilon`.
    *(_corner("normalize", _IMAGE, stddev=-2.0, rtol=1e-5, **given) for given in ({}, {"epsilon": 0.5})),
    # A canvas that is smaller than the image, and an image that leaves it.
    *(_corner("bbox_paste", _BOXES, ratio=ratio, paste_x=2.0, rtol=1e-5) for ratio in (0.4, 2.5)),
    # A Gaussian window with a pixel at each of its two ends.
    *(_corner("resize", _IMAGE, size=[float(size), 7.0], atol=1, **_GAUSSIAN) for size in (9, 13, 3)),
    _corner("resize", _IMAGE, size=[13.0, 9.0], dtype=types.FLOAT, rtol=1e-5, **_GAUSSIAN),
]


@pytest.mark.parametrize(("name", "case"), CORNERS)
def test_corner(name: str, case: Case, folder: Path, oracle: ModuleType) -> None:
    """The real DALI gives the same."""
    ours = run_case(name, case, folder, (0,))
    theirs = run_case_on_dali(name, case, folder, oracle, (0,))
    assert_same(ours, theirs, atol=case.atol, rtol=case.rtol)
