"""A resize and the normalization after it become one operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import ShapeError
from tests.helpers.built_graph import omit_passes
from tests.passes.test_push_crop_into_resize import names_in

MEAN, DEVIATION = [100.0, 110.0, 120.0], [50.0, 51.0, 52.0]
MERGED = {"_random_resized_crop_normalize", "_resize_crop_mirror_normalize"}


def photographs(
    folder: Path,
    resize: Callable[[Any], Any],
    device: str = "mixed",
    shared: bool = False,
    output_type: types.DALIImageType = types.RGB,
    **arguments: Any,
) -> Pipeline:
    @pipeline_def(batch_size=6, num_threads=2, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(folder), random_shuffle=True)
        resized = resize(fn.decoders.image(encoded, device=device, output_type=output_type))
        given = {"mean": MEAN, "std": DEVIATION, "mirror": fn.random.coin_flip(), **arguments}
        result = fn.crop_mirror_normalize(resized, **given)
        return (result, resized) if shared else result

    return pipeline()


def random_crop(images: Any) -> Any:
    return fn.random_resized_crop(images, size=[40, 56])


RESIZES = [
    (random_crop, {}),
    (random_crop, {"crop": (40, 56), "output_layout": "HWC", "dtype": types.FLOAT16}),
    (random_crop, {"crop_h": 40, "crop_w": 56, "scale": 2.0, "shift": 1.0}),
    (lambda x: fn.random_resized_crop(x, size=48, interp_type=types.INTERP_CUBIC, seed=3), {"dtype": types.INT8}),
    (lambda x: fn.resize(x, size=[33, 44]), {}),
    (lambda x: fn.resize(x, resize_shorter=60), {"crop": [56, 48], "crop_pos_x": 0.0}),
    (lambda x: fn.resize_crop_mirror(x, size=[50, 60], crop=[40, 40]), {"output_layout": "HWC"}),
]


@pytest.mark.parametrize("kernels", ["compiled", "torch"])
@pytest.mark.parametrize(("resize", "arguments"), RESIZES)
@pytest.mark.usefixtures("gpu")
def test_results_equal_those_of_two_operators(
    photo_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    kernels: str,
    resize: Callable[[Any], Any],
    arguments: dict[str, Any],
) -> None:
    monkeypatch.setenv("DALIFY_EMULATED_KERNELS", kernels)
    merged = photographs(photo_folder, resize, **arguments)
    assert names_in(merged) & MERGED
    assert not names_in(merged) & {"crop_mirror_normalize", "random_resized_crop", "resize", "resize_crop_mirror"}
    assert "run as one operator" in merged.explain()
    with monkeypatch.context() as patch:
        omit_passes(patch, "fuse")
        separate = photographs(photo_folder, resize, **arguments)
        assert not names_in(separate) & MERGED
    for _ in range(3):
        found, wanted = (pipe.run()[0].as_cpu().as_array().astype(np.float64) for pipe in (merged, separate))
        assert found.shape == wanted.shape
        # Windows of a fused crop are rounded differently: one unit of a byte.
        scale = arguments.get("scale", 1.0) / min(DEVIATION)
        assert np.abs(found - wanted).max() <= max(1.001 * scale, 1.0 * (arguments.get("dtype") is types.INT8)) + 1e-3
        assert (np.abs(found - wanted) > 0.5 * scale).mean() < 0.01


@pytest.mark.parametrize(
    ("resize", "arguments"),
    [
        (random_crop, {"crop": (40, 40)}),
        (random_crop, {"pad_output": True}),
        (random_crop, {"out_of_bounds_policy": "pad", "crop": (40, 56)}),
        (lambda x: fn.random_resized_crop(x, size=[40, 56], dtype=types.FLOAT), {}),
        (lambda x: fn.resize_crop_mirror(x, size=[50, 60], mirror=1), {}),
        (lambda x: fn.resize(fn.cast(x, dtype=types.FLOAT), size=[50, 60]), {}),
        (lambda x: fn.resize(fn.transpose(x, perm=[2, 0, 1], output_layout="CHW"), size=[50, 60]), {}),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_other_arguments_need_two_operators(
    photo_folder: Path, resize: Callable[[Any], Any], arguments: dict[str, Any]
) -> None:
    pipe = photographs(photo_folder, resize, **arguments)
    assert not names_in(pipe) & MERGED
    pipe.run()


@pytest.mark.parametrize("output_type", [types.RGB, types.GRAY])
@pytest.mark.parametrize(
    ("resize", "arguments"),
    [
        (random_crop, {}),
        (random_crop, {"crop_h": 40, "crop_w": 56, "scale": 2.0, "shift": 1.0}),
        (lambda x: fn.random_resized_crop(x, size=15, antialias=False), {}),  # narrow
        (lambda x: fn.random_resized_crop(x, size=48, interp_type=types.INTERP_LANCZOS3), {}),
        (lambda x: fn.random_resized_crop(x, size=[3, 20], interp_type=types.INTERP_NN), {}),
        (lambda x: fn.resize(x, size=[33, 44], min_filter=types.INTERP_NN), {}),
        (lambda x: fn.resize(x, resize_shorter=fn.random.uniform(range=[20, 70])), {}),
        (lambda x: fn.resize_crop_mirror(x, size=[50, 60], crop=[40, 70], crop_pos_y=0.9), {}),
    ],
)
def test_results_on_the_cpu_are_bit_identical(
    photo_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    output_type: types.DALIImageType,
    resize: Callable[[Any], Any],
    arguments: dict[str, Any],
) -> None:
    given = {"device": "cpu", "output_type": output_type, "mean": [1.0], "std": [3.0], **arguments}
    if output_type is types.RGB:
        given |= {"mean": MEAN, "std": fn.random.uniform(range=[1.0, 9.0], shape=[3])}
    merged = photographs(photo_folder, resize, **given)
    assert names_in(merged) & MERGED
    with monkeypatch.context() as patch:
        omit_passes(patch, "fuse")
        separate = photographs(photo_folder, resize, **given)
        assert not names_in(separate) & MERGED
    for _ in range(3):
        for found, wanted in zip(merged.run()[0], separate.run()[0], strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def recolored(images: Any, **arguments: Any) -> Any:
    return fn.color_twist(images, brightness=fn.random.uniform(range=[0.5, 1.5]), hue=20.0, **arguments)


@pytest.mark.parametrize(
    ("resize", "operator"),
    [
        (lambda x: recolored(x, contrast=fn.random.uniform(range=[0.5, 1.5])), "_color_twist_normalize"),  # many sizes
        (lambda x: recolored(random_crop(x)), "_color_twist_normalize"),
        (lambda x: recolored(random_crop(x), saturation=0.0, dtype=types.UINT8), "_color_twist_normalize"),
        (lambda x: recolored(fn.resize(x, size=[33, 44])), "_resize_twist_normalize"),
        (lambda x: recolored(fn.resize(x, size=[33, 44], min_filter=types.INTERP_NN)), "_resize_twist_normalize"),
        (lambda x: recolored(fn.resize(x, size=[20, 15])), "_resize_twist_normalize"),  # narrow
        (lambda x: recolored(fn.resize(x, resize_shorter=30)), "_resize_twist_normalize"),
        (lambda x: fn.color_twist(fn.resize(x, size=[33, 44]), hue=9.0), "_color_twist_normalize"),
    ],
)
@pytest.mark.parametrize("arguments", [{}, {"scale": 2.0, "shift": 1.0, "mean": [7.0], "mirror": 1}])
def test_colors_between_a_resize_and_the_normalization_are_bit_identical(
    photo_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    resize: Callable[[Any], Any],
    operator: str,
    arguments: dict[str, Any],
) -> None:
    merged = photographs(photo_folder, resize, "cpu", **arguments)
    assert operator in names_in(merged)
    assert not names_in(merged) & {"color_twist", "crop_mirror_normalize"}
    with monkeypatch.context() as patch:
        omit_passes(patch, "fuse")
        separate = photographs(photo_folder, resize, "cpu", **arguments)
        assert {"color_twist", "crop_mirror_normalize"} <= names_in(separate)
    for _ in range(3):
        for found, wanted in zip(merged.run()[0], separate.run()[0], strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize(
    "resize",
    [
        lambda x: fn.color_twist(x, hue=9.0, dtype=types.FLOAT),
        lambda x: fn.color_twist(fn.cast(x, dtype=types.FLOAT), hue=9.0),
    ],
)
def test_other_colors_need_two_operators(photo_folder: Path, resize: Callable[[Any], Any]) -> None:
    pipe = photographs(photo_folder, lambda x: resize(fn.resize(x, size=[33, 44])), "cpu")
    assert "color_twist" in names_in(pipe)


@pytest.mark.parametrize("arguments", [{"output_layout": "HWC"}, {"dtype": types.FLOAT16}, {"dtype": types.INT8}])
def test_the_cpu_fuses_planes_of_float32(photo_folder: Path, arguments: dict[str, Any]) -> None:
    assert not names_in(photographs(photo_folder, random_crop, device="cpu", **arguments)) & MERGED


@pytest.mark.parametrize("device", ["cpu", "mixed"])
@pytest.mark.usefixtures("gpu")
def test_only_where_nothing_else_reads_the_image(photo_folder: Path, device: str) -> None:
    assert not names_in(photographs(photo_folder, random_crop, device, shared=True)) & MERGED


@pytest.mark.usefixtures("gpu")
def test_the_wrong_number_of_means_is_an_error_of_the_normalization(photo_folder: Path) -> None:
    pipe = photographs(photo_folder, random_crop, mean=[1.0, 2.0])
    with pytest.raises(ShapeError, match=r"mean must be one number or one for each of the 3 channels; got 2") as caught:
        pipe.run()
    assert caught.value.operator == "fn.crop_mirror_normalize"


def windows(
    layout: str, dtype: type[np.generic], resize: Callable[[Any], Any], *after: Callable[[Any], Any]
) -> Pipeline:
    extents = {"D": 9, "F": 3, "H": 21, "W": 26}
    random = np.random.default_rng(7)
    samples = [
        random.integers(0, 255, [n if axis == "C" else extents[axis] + n for axis in layout]).astype(dtype)
        for n in (1, 3, 2, 4, 3, 5)
    ]

    @pipeline_def(batch_size=len(samples), num_threads=2, seed=5)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda: samples, layout=layout, ndim=len(layout))
        place = {f"crop_pos_{axis}": fn.random.uniform(range=[0.0, 1.0]) for axis in "xyz"}
        result = resize(fn.crop(x, crop=[7, 16, 17] if "D" in layout else [16, 17], **place))
        for step in after:
            result = step(result)
        return result

    return pipeline()


@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
@pytest.mark.parametrize(
    "resize",
    [
        lambda x: fn.resize(x, size=11),
        lambda x: fn.resize(x, resize_x=30, interp_type=types.INTERP_CUBIC, dtype=types.FLOAT),
        lambda x: fn.resize(x, resize_y=-9, mode="stretch"),  # no axis but one changes
        lambda x: fn.resize(x, size=11, interp_type=types.INTERP_NN),
        lambda x: fn.resize(x, resize_shorter=fn.random.uniform(range=[5, 30])),
    ],
)
def test_a_window_is_resized_without_a_copy(
    monkeypatch: pytest.MonkeyPatch, layout: str, dtype: type[np.generic], resize: Callable[[Any], Any]
) -> None:
    merged = windows(layout, dtype, resize)
    assert "_crop_resize" in names_in(merged)
    assert not names_in(merged) & {"crop", "resize"}
    with monkeypatch.context() as patch:
        omit_passes(patch, "fuse")
        separate = windows(layout, dtype, resize)
        assert {"crop", "resize"} <= names_in(separate)
    for _ in range(2):
        for found, wanted in zip(merged.run()[0], separate.run()[0], strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_each_operator_is_joined_with_one_other() -> None:
    def normalize(image: Any) -> Any:
        return fn.crop_mirror_normalize(image, mean=[1.0], std=[2.0])

    pipe = windows("HWC", np.uint8, lambda x: fn.resize(x, size=11), normalize)
    assert len(names_in(pipe) & {"_crop_resize", "_resize_crop_mirror_normalize"}) == 1
    assert pipe.explain().count("run as one operator") == 1
    pipe.run()
