"""fn.resize compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError
from tests.helpers.both import run_both
from tests.helpers.one_operator import assert_equals_dali, run_dalify
from tests.helpers.photos import drawn_photo
from tests.helpers.real_dali import Each

RANDOM = np.random.default_rng(0)
PHOTOS = [drawn_photo(48, 64, 1), drawn_photo(64, 41, 2)]
VOLUMES = [RANDOM.integers(0, 256, (9, 20, 31, 2), dtype=np.uint8)]
SHAPES = {
    "CHW": (3, 20, 31),
    "FHWC": (3, 20, 31, 3),
    "FCHW": (2, 3, 20, 31),
    "CFHW": (3, 2, 20, 31),
    "FDHWC": (2, 5, 20, 31, 3),
    "CDHW": (3, 9, 20, 31),
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"size": [30, 40]},
        {"size": [30, 0]},
        {"size": [30, 0], "mode": "stretch"},
        {"size": [100, -33]},
        {"size": 37},
        {"size": [30.4, 40.6]},
        {"size": [30.4, 40.6], "subpixel_scale": False},
        {"resize_x": 33},
        {"resize_x": 33, "resize_y": 71},
        {"resize_shorter": 25},
        {"resize_shorter": 60, "max_size": 70},
        {"resize_longer": 37},
        {"resize_longer": 37, "subpixel_scale": False},
        {"size": [30, 40], "mode": "not_smaller"},
        {"size": [30, 40], "mode": "not_larger"},
        {"size": [30, 40], "mode": "not_smaller", "max_size": [35, 41]},
        {"size": [130, 40], "max_size": [35, 41]},
        {"size": [30, 40], "roi_start": [5.3, 40.2], "roi_end": [33.1, 3.7]},
        {"resize_shorter": 21, "roi_start": [0.1, 0.2], "roi_end": [0.7, 0.65], "roi_relative": True},
        {"resize_x": Each(np.float32([30, 50])), "resize_y": Each(np.float32([0, 20]))},
        {"size": Each(np.float32([[30, 50], [70, 20]])), "interp_type": "INTERP_CUBIC"},
        {"size": [30, 90], "min_filter": "INTERP_TRIANGULAR", "mag_filter": "INTERP_NN", "antialias": False},
        {"size": [30, 90], "interp_type": "INTERP_LANCZOS3"},
        {"size": [30, 90], "dtype": "FLOAT"},
        {"size": [20, 20], "save_attrs": True},
    ],
    ids=str,
)
def test_images(arguments):
    assert_equals_dali("resize", PHOTOS, layouts="HWC", tolerance=1, **arguments)


@pytest.mark.parametrize("arguments", [{"size": [30, -90]}, {"resize_shorter": 60}, {"size": 20, "save_attrs": True}])
def test_gpu_kernel(device, arguments):
    assert_equals_dali("resize", PHOTOS, layouts="HWC", device=device, tolerance=1, **arguments)


@pytest.mark.parametrize("layout", SHAPES)
def test_layouts(device, layout):
    data = [RANDOM.integers(0, 256, SHAPES[layout], dtype=np.uint8) for _ in range(2)]
    size = [4, 15, 40] if "D" in layout else [15, 40]
    assert_equals_dali("resize", data, layouts=layout, device=device, tolerance=1, size=size)


@pytest.mark.parametrize(
    "arguments",
    [
        {"resize_z": 5},
        {"resize_z": 5, "resize_x": 50},
        {"size": [12, 0, 17]},
        {"resize_shorter": 5},
        {"resize_longer": 33, "max_size": [7, 40, 40]},
        {"size": [5, 9, 13], "roi_start": [7.5, 0, 1], "roi_end": [1.2, 20, 30]},
        {"size": [5, 9, 13], "interp_type": "INTERP_NN"},
    ],
    ids=str,
)
def test_volumes(arguments):
    assert_equals_dali("resize", VOLUMES, layouts="DHWC", tolerance=1, **arguments)


def test_one_filter_per_sample(device):
    kinds = Each(np.int32([0, 2]))
    if device == "cpu":
        data = [RANDOM.random((20, 31, 3), dtype=np.float32)] * 2
        got = run_dalify("resize", data, layouts="HWC", size=[9, 13], interp_type=kinds)
        for n, kind in enumerate(["INTERP_NN", "INTERP_CUBIC"]):
            alone = run_dalify("resize", data, layouts="HWC", size=[9, 13], interp_type=kind)
            np.testing.assert_array_equal(got[n], alone[n])


def _each(value: float | list[float]) -> Each:
    return Each([np.array(value, np.float32)] * len(PHOTOS))


@pytest.mark.parametrize("operator", ["resize", "resize_crop_mirror"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 3, "roi_start": _each([1.0, 2.0])}, "must be used together"),
        ({"size": 3, "roi_end": _each([1.0, 2.0])}, "must be used together"),
        ({"size": _each([3.0, 4.0]), "mode": "not_large"}, "Did you mean 'not_larger'"),
        ({"size": 3, "resize_x": _each(4.0)}, "exactly one way"),
        ({"resize_shorter": _each(4.0), "mode": "stretch"}, "mode cannot be used"),
    ],
    ids=str,
)
def test_mistakes_with_graph_values(operator, arguments, message):
    with pytest.raises(ArgumentValueError, match=message):
        run_dalify(operator, PHOTOS, layouts="HWC", **arguments)


def test_mistakes():
    with pytest.raises(ArgumentValueError, match="exactly one way"):
        run_dalify("resize", PHOTOS, layouts="HWC")
    with pytest.raises(ArgumentValueError, match="exactly one way"):
        run_dalify("resize", PHOTOS, layouts="HWC", size=3, resize_x=4)
    with pytest.raises(ArgumentValueError, match="must be used together"):
        run_dalify("resize", PHOTOS, layouts="HWC", size=3, roi_start=[1, 2])
    with pytest.raises(ArgumentValueError, match="Did you mean 'not_larger'"):
        run_dalify("resize", PHOTOS, layouts="HWC", size=3, mode="not_large")
    with pytest.raises(ArgumentValueError, match="one number or 2"):
        run_dalify("resize", PHOTOS, layouts="HWC", size=[3, 4, 5])
    with pytest.raises(LayoutError, match="2 dimensions and no layout"):
        run_dalify("resize", [PHOTOS[0][..., 0]], size=3)
    with pytest.raises(DTypeError, match="FLOAT"):
        run_dalify("resize", PHOTOS, layouts="HWC", size=3, dtype="INT16")


@pytest.mark.parametrize(
    ("size", "out_size"),
    [((56, 64), (112, 128)), ((112, 128), (56, 64)), ((9, 12), (18, 24)), ((24, 30), (12, 15)), ((40, 13), (10, 26))],
)
@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16"])
def test_values_half_way_between_integers(dtype, channels, size, out_size):
    """DALI rounds them to even or away from zero, which depends on their place in the row and on the other extents."""
    images = [np.random.default_rng(3).integers(0, 256, (*size, channels)).astype(dtype)]

    def graph(dali, x):
        regions = ({}, {"roi_start": [0.0, 0.5], "roi_end": [1.0, 1.0], "roi_relative": True})
        return [dali.fn.resize(x, size=out_size, antialias=False, **region) for region in regions]

    for (_, ours), (_, theirs) in run_both(graph, images, layouts="HWC"):
        np.testing.assert_array_equal(ours[0], theirs[0])
