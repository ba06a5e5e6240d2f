"""Batches of several shapes on the device have the results of single samples, with the launches of one sample."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from dalify import fn, pipeline_def, types
from dalify.base.errors import ShapeError
from dalify.data import Batch, DALIDataType
from dalify.data.batch import block_offsets
from dalify.data.device_samples import DeviceSamples
from dalify.executor.batch_step import BatchStep
from dalify.executor.branch_steps import MergeStep
from dalify.executor.device_samples_step import (
    CompiledBatchStep,
    CompiledElementwiseStep,
    CompiledRaggedStep,
    CompiledSelectionStep,
    CompiledStep,
    DeviceSamplesStep,
)
from dalify.executor.feeds import _copied_on_device
from dalify.executor.ragged_step import RaggedStep
from dalify.executor.step_class import step_class
from dalify.executor.view_step import ViewStep
from dalify.registry import groups
from dalify.registry.catalog import find
from tests.helpers.launches import Launches

Operation = Callable[[Any], Any]

FILTER = np.linspace(-0.2, 0.4, 12, dtype=np.float32).reshape(3, 4)
MEAN, DEVIATION = [10.0, 20.0, 30.0], [4.0, 5.0, 6.0]


def _rotation(image: Any) -> Any:
    return fn.warp_affine(image, matrix=fn.transforms.rotation(angle=25.0, center=(9.0, 7.0)), fill_value=40)


def _mosaic(image: Any) -> Any:
    """Return images of one channel and even extents, the same on both devices."""
    plane = image[:, :, :1]
    doubled = fn.cat(plane, plane, axis=0)
    return fn.cat(doubled, doubled, axis=1)


def _perspective(image: Any, **arguments: Any) -> Any:
    matrix = [0.9, 0.1, 1.0, -0.05, 1.1, -1.5, 0.001, 0.002, 1.0]
    return fn.experimental.warp_perspective(image, matrix=matrix, **arguments)


# Each of them with constant arguments, so that a sample has the same result alone.
OPERATIONS: dict[str, Operation] = {
    "cast": lambda x: fn.cast(x, dtype=types.FLOAT16),
    "resize": lambda x: fn.resize(x, resize_shorter=17),
    "resize to one size": lambda x: fn.resize(x, size=(20, 30), interp_type=types.INTERP_CUBIC),
    "resize of a region, mirrored": lambda x: fn.resize(
        x, size=20, roi_start=(0.8, 0.1), roi_end=(0.1, 0.7), roi_relative=True
    ),
    "resize, nearest": lambda x: fn.resize(x, resize_longer=30, interp_type=types.INTERP_NN),
    "resize, planar": lambda x: fn.resize(fn.crop_mirror_normalize(x, dtype=types.UINT8), resize_shorter=17),
    "normalize": lambda x: fn.crop_mirror_normalize(x, mean=MEAN, std=DEVIATION, mirror=1),
    "normalize a crop": lambda x: fn.crop_mirror_normalize(x, crop=(8, 9), mean=MEAN, std=DEVIATION),
    "normalize, padded": lambda x: fn.crop_mirror_normalize(
        x,
        crop=(30, 30),
        out_of_bounds_policy="pad",
        fill_values=[1.0, 2.0, 3.0],
        mean=MEAN,
        std=DEVIATION,
        pad_output=True,
        mirror=1,
        output_layout="HWC",
    ),
    "color_twist": lambda x: fn.color_twist(x, hue=30.0, saturation=1.3, contrast=0.8),
    "brightness_contrast": lambda x: fn.brightness_contrast(x, brightness=1.2, contrast=0.7, dtype=types.FLOAT),
    "warp_affine": _rotation,
    "warp_affine to one size": lambda x: fn.warp_affine(x, matrix=[0.8, 0.2, 1.0, -0.3, 0.9, 2.0], size=(20, 20)),
    "rotate": lambda x: fn.rotate(x, angle=40.0, fill_value=9, interp_type=types.INTERP_NN),
    "gaussian_blur": lambda x: fn.gaussian_blur(x, sigma=1.3),
    "filter": lambda x: fn.filter(x, FILTER, anchor=[1, 3], dtype=types.FLOAT),
    "filter, repeated": lambda x: fn.filter(x, FILTER, border="wrap"),
    "filter, filled": lambda x: fn.filter(x, FILTER, np.float32(9), border="fill"),
    "filter, valid": lambda x: fn.filter(x, FILTER, mode="valid"),
    "filter, planar": lambda x: fn.filter(fn.transpose(x, perm=[2, 0, 1]), FILTER, border="clamp"),
    "laplacian": lambda x: fn.laplacian(x, window_size=[5, 3], dtype=types.FLOAT),
    "laplacian, several windows": lambda x: fn.laplacian(
        x, window_size=[5, 9], smoothing_size=[3, 7], dtype=types.FLOAT, normalized_kernel=True
    ),
    "laplacian, planar": lambda x: fn.laplacian(fn.transpose(x, perm=[2, 0, 1]), smoothing_size=1),
    "dilate": lambda x: fn.experimental.dilate(x, mask_size=[6, 3], anchor=[4, 0]),
    "dilate, planar": lambda x: fn.experimental.dilate(
        fn.transpose(x, perm=[2, 0, 1]), mask_size=[3, 5], border_mode="reflect"
    ),
    "erode": lambda x: fn.experimental.erode(x, mask_size=[4, 5], iterations=2, border_mode="reflect_101"),
    "erode, wide": lambda x: fn.experimental.erode(x, mask_size=[41, 3], border_mode="wrap"),
    "median_blur": lambda x: fn.experimental.median_blur(x, window_size=[5, 3]),
    "median_blur, planar": lambda x: fn.experimental.median_blur(fn.transpose(x, perm=[2, 0, 1]), window_size=3),
    "debayer": lambda x: fn.debayer(_mosaic(x), blue_position=[1, 0]),
    "debayer, edges": lambda x: fn.debayer(_mosaic(x), blue_position=[0, 1], algorithm="edgeaware_ocv"),
    "debayer, directions": lambda x: fn.debayer(_mosaic(x), blue_position=[0, 1], algorithm="vng_ocv"),
    "debayer to gray": lambda x: fn.debayer(_mosaic(x), blue_position=0, algorithm="gray_ocv"),
    "debayer, derivatives": lambda x: fn.debayer(_mosaic(x), blue_position=1, algorithm="default_npp"),
    "clahe": lambda x: fn.clahe(x, tiles_x=4, tiles_y=3, clip_limit=2.0),
    "clahe of channels": lambda x: fn.clahe(x, tiles_x=2, tiles_y=5, clip_limit=9.0, bins=64, luma_only=False),
    "flip": lambda x: fn.flip(x, horizontal=1, vertical=1),
    "crop": lambda x: fn.crop(x, crop=(5, 7), crop_pos_x=0.3, dtype=types.FLOAT),
    "crop, filled": lambda x: fn.crop(x, crop=(30, 20), out_of_bounds_policy="pad", fill_values=[7.0, 8.0, 9.0]),
    "crop, reflected": lambda x: fn.crop(x, crop=(70, 20), out_of_bounds_policy="reflect_101"),
    "slice": lambda x: fn.slice(x, (0.1, 0.2), (0.5, 0.6), axis_names="WH"),
    "paste": lambda x: fn.paste(x, ratio=1.7, paste_x=0.2, paste_y=0.9, fill_value=[7, 8, 9]),
    "erase": lambda x: fn.erase(x, anchor=(2, 3), shape=(4, 50), axis_names="HW", fill_value=[7.0, 8.0, 9.0]),
    "erase, two overlapping regions": lambda x: fn.erase(
        x, anchor=(0.1, 0.2, 0.3, 0.3), shape=(0.4, 0.3, 0.5, 0.2), axes=(1, 0), normalized=True, fill_value=300.0
    ),
    "erase nothing": fn.erase,
    "lookup_table": lambda x: fn.lookup_table(
        x, keys=[0, 7, 255, 300], values=[1.5, -2.0, 70000.0, 4.0], default_value=3.25, dtype=types.FLOAT
    ),
    "lookup_table of unsigned integers": lambda x: fn.lookup_table(
        x, keys=[3, 200], values=[9.0, 65000.0], default_value=1.0, dtype=types.UINT16
    ),
    "arithmetic": lambda x: (x - 127.5) * np.array([1.0, 2.0, 3.0], np.float32),
    "arithmetic of two images": lambda x: (x & 15) * fn.flip(x) + x,
    "arithmetic, broadcast": lambda x: x - fn.reductions.mean(x, axis_names="W", keep_dims=True),
    "arithmetic, divided": lambda x: x / (fn.reductions.max(x) + 1) + 1 / (x + 1),
    "mean and deviation": lambda x: fn.normalize(x, axis_names="HW", epsilon=0.5),
    "given mean": lambda x: fn.normalize(x, mean=MEAN, stddev=DEVIATION, dtype=types.UINT8, shift=128, scale=20),
    "color_space_conversion": lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.YCbCr),
    "color_space_conversion to gray": lambda x: fn.color_space_conversion(
        x, image_type=types.RGB, output_type=types.GRAY
    ),
    "transpose": lambda x: fn.transpose(x, perm=[2, 0, 1]),
    "cat": lambda x: fn.cat(x, fn.crop(x, crop=(0, 9)), fn.flip(x), axis_name="W"),
    "stack": lambda x: fn.stack(x, fn.flip(x), axis=1),
    "sum": lambda x: fn.reductions.sum(x, axis_names="W"),
    "mean": fn.reductions.mean,
    "mean of rows": lambda x: fn.reductions.mean(x, axis_names="H", keep_dims=True),
    "minimum": lambda x: fn.reductions.min(x, axis_names="HW"),
    "maximum": lambda x: fn.reductions.max(x, axis_names="C"),
    "standard deviation": lambda x: fn.reductions.std_dev(x, fn.reductions.mean(x, axes=0), axes=0, ddof=1),
    "one_hot": lambda x: fn.one_hot(x & 7, num_classes=5, axis=1, dtype=types.INT16, on_value=3),
    "jpeg_compression_distortion": lambda x: fn.jpeg_compression_distortion(x, quality=35),
    "grid_mask": lambda x: fn.grid_mask(x, tile=7, ratio=0.4, angle=0.3, shift_x=2.0),
    "equalize": fn.equalize,
    "sphere": lambda x: fn.sphere(x, interp_type=types.INTERP_LINEAR, fill_value=9.0),
    "water": lambda x: fn.water(x, ampl_x=3.0, interp_type=types.INTERP_LINEAR, fill_value=9.0),
    "remap": lambda x: fn.experimental.remap(x, x[:, :, 0] * 0.1, x[:, :, 1] * 0.1),
    "tensor_resize": lambda x: fn.tensor_resize(x, scales=[0.7, 1.3], axes=[0, 1]),
    "tensor_resize, one axis": lambda x: fn.tensor_resize(x, sizes=[20], axes=[1], interp_type=types.INTERP_CUBIC),
    "tensor_resize, channels": lambda x: fn.tensor_resize(x, scales=[0.6, 1.5], axes=[1, 2], dtype=types.FLOAT),
    "tensor_resize, nearest": lambda x: fn.tensor_resize(x, sizes=[15, -8, 3], interp_type=types.INTERP_NN),
    "warp_perspective": lambda x: _perspective(x, fill_value=[9.0]),
    "warp_perspective, nearest": lambda x: _perspective(x, interp_type=types.INTERP_NN, size=(20, 15)),
    "warp_perspective, reflected": lambda x: _perspective(x, border_mode="reflect"),
    "warp_perspective, reflected at centers": lambda x: _perspective(x, border_mode="reflect_101"),
    "warp_perspective, wrapped": lambda x: _perspective(x, border_mode="wrap", inverse_map=False),
    "warp_perspective, cubic": lambda x: _perspective(x, interp_type=types.INTERP_CUBIC, fill_value=[9.0, 8.0, 7.0]),
    "warp_perspective, cubic, wrapped": lambda x: _perspective(
        x, interp_type=types.INTERP_CUBIC, border_mode="wrap", pixel_origin="center"
    ),
    "warp_perspective, planar": lambda x: _perspective(
        fn.transpose(x, perm=[2, 0, 1]), fill_value=[9.0, 8.0, 7.0], border_mode="constant"
    ),
    "warp_perspective, gray": lambda x: _perspective(x[:, :, 0], border_mode="replicate"),
    "multi_paste": lambda x: fn.multi_paste(x, fn.flip(x), output_size=[60, 60], out_anchors=[0, 0, 9, 7]),
    "multi_paste of planes": lambda x: fn.multi_paste(x[:, :, :1], output_size=[50, 41], dtype=types.INT16),
    "pad to multiples": lambda x: fn.pad(x, axes=[0, 1], shape=[1, 1], align=[8, 16], fill_value=7.6),
    "pad to several sizes, with floats": lambda x: fn.pad(fn.cast(x, dtype=types.FLOAT), shape=1, align=[7, 5, 4]),
    "cast_like": lambda x: fn.cast_like(x, np.int32(1)),
    "copy": fn.copy,
    "full_like": lambda x: fn.full_like(x, np.array([1, 2, 300])),
}

# Their results depend on the position of a sample in the batch, and on other samples.
RANDOM_OPERATIONS: dict[str, Operation] = {
    "jitter": lambda x: fn.jitter(x, nDegree=5, fill_value=9.0),
    "multi_paste of other samples": lambda x: fn.multi_paste(
        x * 0.3,
        in_ids=[0, 1, 2],
        output_size=fn.cast(fn.random.uniform(range=[48, 60], shape=2, seed=4), dtype=types.INT32),
        shapes_rel=[0.5, 0.7] * 3,
        in_anchors_rel=[0.1, 0.2] * 3,
        out_anchors_rel=[0.0, 0.0, 0.1, 0.2, 0.0, 0.0],
        dtype=types.UINT8,
    ),
    "normalize, measured together": lambda x: fn.normalize(x, batch=True, axis_names="HW", ddof=1),
    "normalize, measured together, given mean": lambda x: fn.normalize(x, batch=True, mean=90.0),
    "pad": lambda x: fn.pad(x, axes=[0, 1], fill_value=9),
    "pad with a value for each": lambda x: fn.pad(
        fn.cast(x, dtype=types.UINT16), shape=1, align=[7, 5, 4], fill_value=fn.random.uniform(range=[-9, 999], seed=4)
    ),
    "sphere, nearest, some images": lambda x: fn.sphere(x, mask=fn.random.coin_flip(seed=4)),
}
ALL_OPERATIONS = {**OPERATIONS, **RANDOM_OPERATIONS}


def images(count: int, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Return noise images of several sizes."""
    random = np.random.default_rng(seed)
    return [
        random.integers(0, 256, (height, width, 3), np.uint8)
        for height, width in random.integers(9, 40, (count, 2)).tolist()
    ]


def results(operation: Operation, given: list[Any], layout: str = "HWC", *, device: str = "gpu") -> list[Any]:
    """Return the results of a pipeline with one operator, as arrays."""

    @pipeline_def(batch_size=len(given), num_threads=1, device_id=0, seed=3)
    def pipeline() -> Any:
        data = fn.external_source([given], layout=layout)  # one batch: nothing is computed after it
        return operation(data.gpu() if device == "gpu" else data)

    (output,) = pipeline().run()
    return [np.asarray(sample.as_cpu() if device == "gpu" else sample) for sample in output]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", OPERATIONS)
def test_samples_of_several_shapes_have_the_results_of_each_alone(name: str) -> None:
    given = images(5)
    for sample, found in zip(given, results(OPERATIONS[name], given), strict=True):
        (alone,) = results(OPERATIONS[name], [sample])
        assert found.dtype == alone.dtype
        np.testing.assert_allclose(found.astype(np.float64), alone.astype(np.float64), rtol=1e-5, atol=_step(alone))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ALL_OPERATIONS)
def test_the_device_gives_the_results_of_the_cpu(name: str) -> None:
    given = images(4, seed=1)
    expected = results(ALL_OPERATIONS[name], given, device="cpu")
    for found, other in zip(results(ALL_OPERATIONS[name], given), expected, strict=True):
        assert found.dtype == other.dtype
        np.testing.assert_allclose(found.astype(np.float64), other.astype(np.float64), rtol=1e-4, atol=_step(other))


def _step(values: np.ndarray[Any, Any]) -> float:
    """Return the tolerance: a gray level, because sums in another order round differently."""
    return 1.0 if values.dtype == np.uint8 else 2e-3


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["resize", "normalize", "gaussian_blur", "flip", "cast", "crop", "slice"])
@pytest.mark.parametrize(
    "kind", ["five channels", "several numbers of channels", "floats", "sequences", "wide integers"]
)
def test_unusual_images(name: str, kind: str) -> None:
    random = np.random.default_rng(4)
    channels = {"five channels": [5, 5, 5], "several numbers of channels": [1, 3, 4]}.get(kind, [3, 3, 3])
    layout = "FHWC" if kind == "sequences" else "HWC"
    given = []
    for n, count in enumerate(channels):
        shape = (*([n + 1] if layout == "FHWC" else []), 11 + 3 * n, 23 - 2 * n, count)
        values = random.integers(0, 250, shape)
        given.append(values.astype({"floats": np.float32, "wide integers": np.uint16}.get(kind, np.uint8)))
    operations: dict[str, Operation] = {
        **OPERATIONS,
        "normalize": lambda x: fn.crop_mirror_normalize(x, mean=[9.0], std=[5.0], mirror=1, output_layout=layout),
    }
    expected = results(operations[name], given, layout, device="cpu")
    for found, other in zip(results(operations[name], given, layout), expected, strict=True):
        assert (found.dtype, found.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(found.astype(np.float64), other.astype(np.float64), rtol=1e-4, atol=1.0)


def launches(operation: Operation, given: list[Any], monkeypatch: pytest.MonkeyPatch, layout: str = "HWC") -> list[str]:
    """Return the calls of torch by which operators compute a batch."""
    calls: list[list[str]] = []

    def counted(compute: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            with Launches() as mode:
                found = compute(*arguments)
            calls.append(mode.names)
            return found

        return called

    with monkeypatch.context() as patch:
        for step, name in ((DeviceSamplesStep, "_compute"), (BatchStep, "_compute")):
            patch.setattr(step, name, counted(getattr(step, name)))
        results(operation, given, layout)
    return [name for names in calls for name in names]


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("name", ALL_OPERATIONS)
def test_the_number_of_launches_does_not_grow_with_samples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same sizes repeat: how many taps a filter has depends on the sizes.
    given = images(3)
    launches(ALL_OPERATIONS[name], given, monkeypatch)  # uploads tables that stay on the device
    few = launches(ALL_OPERATIONS[name], given * 3, monkeypatch)
    many = launches(ALL_OPERATIONS[name], given * 8, monkeypatch)
    assert few
    assert sorted(many) == sorted(few)


@pytest.mark.usefixtures("emulated_gpu")
def test_a_sum_of_derivatives_pads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    module = importlib.import_module("dalify.kernels.images.convolve")
    border = module.bordered_samples_torch

    def counted(out: DeviceSamples, *arguments: Any) -> None:
        calls.append(len(out))
        border(out, *arguments)

    monkeypatch.setattr(module, "bordered_samples_torch", counted)
    results(lambda x: fn.laplacian(x, window_size=[5, 3], smoothing_size=[3, 7]), images(3))
    assert calls == [3]


@pytest.mark.usefixtures("emulated_gpu")
def test_the_number_of_launches_does_not_grow_with_overlapping_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    given = images(3)
    few, many = (
        launches(lambda x, ids=ids: fn.multi_paste(x, in_ids=ids, output_size=[40, 40]), given, monkeypatch)
        for ids in ([0, 1], [0, 1, 2, 0, 1, 2])
    )
    assert few
    assert sorted(many) == sorted(few)


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("name", ALL_OPERATIONS)
def test_kernels_do_not_wait_for_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = launches(ALL_OPERATIONS[name], images(3), monkeypatch)
    assert not {"_local_scalar_dense", "nonzero", "item", "is_nonzero", "equal", "masked_select"} & {*names}


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "bool"])
def test_branches_are_merged_without_waiting_for_the_device(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list(np.random.default_rng(2).integers(0, 2, (7, 4, 5, 3)).astype(dtype))
    flags = [np.array(number % 3 == 0) for number in range(7)]
    names: list[str] = []
    run = MergeStep.run

    def noted(step: MergeStep, frame: Any) -> None:
        with Launches() as mode:
            run(step, frame)
        names.extend(mode.names)

    monkeypatch.setattr(MergeStep, "run", noted)

    @pipeline_def(batch_size=7, num_threads=1, device_id=0)
    def pipeline() -> Any:
        data, flag = fn.external_source([given], layout="HWC").gpu(), fn.external_source([flags])
        return fn.flip(data) if flag else fn.copy(data)

    (output,) = pipeline().run()
    for found, image, flag in zip(output, given, flags, strict=True):
        np.testing.assert_array_equal(np.asarray(found.as_cpu()), image[:, ::-1] if flag else image)
    assert names.count("index_copy_") == 2
    assert not {"nonzero", "_local_scalar_dense", "masked_select", "index_put_"} & {*names}


def test_samples_with_unused_elements_between_them() -> None:
    arrays = images(3)
    shapes = np.array([array.shape for array in arrays], np.int64)
    offsets, size_bytes = block_offsets(shapes, 1)
    block = torch.zeros(size_bytes, dtype=torch.uint8)
    for array, start in zip(arrays, offsets.tolist(), strict=True):
        block[start : start + array.size] = torch.from_numpy(array.reshape(-1))
    batch = Batch(None, None, "HWC", "gpu", None, DALIDataType.UINT8, (block, offsets, shapes))
    samples = DeviceSamples.of_batch(batch)
    assert not samples.is_uniform
    assert (offsets % 3 == 0).all()  # so that a kernel can treat the block as pixels
    for array, tensor, view in zip(arrays, samples.tensors(), batch.samples, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
        np.testing.assert_array_equal(view.numpy(), array)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("inverse_map", [True, False])
@pytest.mark.parametrize("name", ["affine", "perspective", "perspective, cubic, about the center"])
def test_matrices_on_the_device(name: str, inverse_map: bool) -> None:
    """Their values remain there, so the host does not wait for them; inverse maps are also inverted there."""
    matrices = np.array([[[0.8, 0.2, 1.0], [-0.3, 0.9, 2.0]], [[1.1, 0.0, -2.0], [0.1, 0.7, 1.0]]], np.float32)
    arguments: dict[str, Any] = {"inverse_map": inverse_map, "fill_value": 3}
    operator = fn.warp_affine
    if name != "affine":
        operator = fn.experimental.warp_perspective
        arguments["fill_value"] = [3]
        last = np.array([[[0.001, 0.002, 1.0]], [[0.0, -0.002, 0.9]]], np.float32)
        matrices = np.concatenate([matrices, last], 1)
    if "cubic" in name:
        arguments |= {"interp_type": types.INTERP_CUBIC, "pixel_origin": "center", "border_mode": "reflect"}
    given = images(2)

    def warped(device: str) -> list[Any]:
        @pipeline_def(batch_size=2, num_threads=1, device_id=0)
        def pipeline() -> Any:
            data = fn.external_source([given], layout="HWC")
            matrix = fn.external_source([matrices])
            if device == "gpu":
                data, matrix = data.gpu(), matrix.gpu()
            return operator(data, matrix, **arguments)

        (output,) = pipeline().run()
        return [np.asarray(sample.as_cpu() if device == "gpu" else sample) for sample in output]

    for found, other in zip(warped("gpu"), warped("cpu"), strict=True):
        np.testing.assert_allclose(found.astype(int), other.astype(int), atol=1)


def test_samples_of_one_shape_become_one_tensor() -> None:
    values = torch.arange(24, dtype=torch.uint8)
    offsets, shapes = np.array([0, 12]), np.array([[2, 3], [2, 3]])
    batch = Batch(None, None, "HW", "gpu", None, DALIDataType.UINT8, (values, offsets, shapes))
    dense = DeviceSamples.of_batch(batch).dense
    assert dense is not None
    assert dense.tolist() == [[[0, 1, 2], [3, 4, 5]], [[12, 13, 14], [15, 16, 17]]]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float16", "float64", "bool"])
def test_erase_with_another_number_of_regions_in_each_sample(dtype: str) -> None:
    random = np.random.default_rng(5)
    given = [random.integers(0, 2, (9 + n, 14 - n, 2)).astype(dtype) for n in range(4)]
    starts = [random.integers(-3, 9, (count, 2)) for count in (0, 1, 3, 2)]
    sizes = [random.integers(-1, 7, (count, 2)) for count in (0, 1, 3, 2)]

    @pipeline_def(batch_size=4, num_threads=1, device_id=0)
    def pipeline() -> Any:
        data, anchor, shape = (
            fn.external_source([[np.asarray(value) for value in values]])
            for values in (given, *([row.reshape(-1).astype(np.float32) for row in rows] for rows in (starts, sizes)))
        )
        return fn.erase(
            fn.reshape(data.gpu(), layout="HWC"), anchor=anchor, shape=shape, axes=(0, 1), fill_value=[3.0, -2.5]
        )

    (output,) = pipeline().run()
    fill = np.array([3.0, -2.5])
    if dtype == "bool":
        fill = fill != 0
    elif np.dtype(dtype).kind in "iu":
        fill = np.trunc(fill).astype(np.int64)  # then to the type: the lowest bits, as in DALI
    for sample, source, begins, extents in zip(output, given, starts, sizes, strict=True):
        expected = source.copy()
        for (top, left), (height, width) in zip(begins.tolist(), extents.tolist(), strict=True):
            expected[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = fill.astype(dtype)
        np.testing.assert_array_equal(np.asarray(sample.as_cpu()), expected)


@pytest.mark.usefixtures("gpu")
def test_fill_values_of_erase_that_do_not_match_the_channels_name_the_sample() -> None:
    given = [np.zeros((5, 6, channels), np.uint8) for channels in (3, 4)]
    with pytest.raises(ShapeError, match=r"fill_value has 3 values; the data has 4 channels(?s:.*)sample 1"):
        results(lambda x: fn.erase(x, anchor=0, shape=2, axis_names="H", fill_value=[1.0, 2.0, 3.0]), given)


def test_an_accelerator_runs_its_own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_EMULATED_KERNELS")
    resize = find("resize")
    assert step_class(resize, "gpu", is_emulated=False) is DeviceSamplesStep
    assert step_class(resize, "gpu", is_emulated=True) is CompiledStep
    assert step_class(find("clahe"), "gpu", is_emulated=True) is CompiledStep
    assert step_class(find("multi_paste"), "gpu", is_emulated=True) is CompiledBatchStep
    assert step_class(find("multi_paste"), "gpu", is_emulated=False) is BatchStep
    assert step_class(find("random.uniform"), "gpu", is_emulated=True) is CompiledStep
    assert step_class(find("bbox_rotate"), "gpu", is_emulated=True) is CompiledRaggedStep
    assert step_class(find("bbox_rotate"), "gpu", is_emulated=False) is RaggedStep
    assert step_class(find("cast"), "gpu", is_emulated=True) is CompiledElementwiseStep
    assert step_class(find("element_extract"), "gpu", is_emulated=True) is CompiledSelectionStep
    assert step_class(find("element_extract"), "gpu", is_emulated=False) is DeviceSamplesStep
    assert step_class(find("squeeze"), "gpu", is_emulated=True) is ViewStep
    assert step_class(find("python_function"), "gpu", is_emulated=True) is BatchStep  # users' functions get tensors
    monkeypatch.setenv("DALIFY_EMULATED_KERNELS", "torch")
    assert step_class(resize, "gpu", is_emulated=True) is DeviceSamplesStep


VIEWS: dict[str, Operation] = {
    "expand_dims": lambda x: fn.expand_dims(x, axes=[0], new_axis_names="F"),
    "squeeze": lambda x: fn.squeeze(fn.expand_dims(x, axes=[0], new_axis_names="F"), axis_names="F"),
    "per_frame": lambda x: fn.per_frame(x, replace=True),
    "reshape": lambda x: fn.reshape(x, shape=[-1]),
    "reshape, reordered": lambda x: fn.reshape(x, src_dims=[1, 0, 2], layout="WHC"),
    "reinterpret": lambda x: fn.reinterpret(fn.cast(x, dtype=types.FLOAT), dtype=types.INT16),
    "reinterpret, reshaped": lambda x: fn.reinterpret(fn.cast(x, dtype=types.INT16), dtype=types.UINT8, shape=[-1]),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", VIEWS)
def test_views_of_samples_of_several_shapes_need_no_call_for_each(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = images(4)
    expected = results(VIEWS[name], given, device="cpu")

    monkeypatch.setattr(ViewStep, "_views", mock.Mock(side_effect=AssertionError("samples were viewed one by one")))
    for found, other in zip(results(VIEWS[name], given), expected, strict=True):
        np.testing.assert_array_equal(found, other, strict=True)


def test_a_block_that_is_not_a_multiple_of_the_new_type_is_reinterpreted_per_sample() -> None:
    prepare = find("reinterpret").prepare_function
    assert prepare is not None
    arguments = {"dtype": DALIDataType.INT16, "rel_shape": None, "shape": None, "src_dims": None}
    for size, is_whole in ((6, True), (7, False)):  # torch views the block as one of the new type
        ragged = torch.zeros(size, dtype=torch.uint8), np.array([0, 2]), np.array([[2], [4]])
        batch = Batch(None, None, "", "gpu", None, DALIDataType.UINT8, ragged)
        assert bool(prepare.function(batch, None, **arguments)) == is_whole


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("name", OPERATIONS)
def test_emulation_gives_the_results_of_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_EMULATED_KERNELS")
    given = images(4)
    expected = results(OPERATIONS[name], given, device="cpu")
    for found, other in zip(results(OPERATIONS[name], given), expected, strict=True):
        np.testing.assert_array_equal(found, other)


IN_ONE_CALL: dict[str, Operation] = {
    "cast": lambda x: fn.cast(fn.cast(x, dtype=types.FLOAT), dtype=types.INT16),
    "copy": fn.copy,
    "lookup_table": lambda x: fn.lookup_table(x, keys=[3, 7], values=[0.5, -1.0]),
    "arithmetic": lambda x: (x * 2.5 + 1) / (x + 3),
    "subscript": lambda x: x[1:-2, ::-1],
    "element_extract": lambda x: fn.element_extract(fn.reshape(x, layout="FHW"), element_map=[3, 0])[1],
}


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("name", IN_ONE_CALL)
def test_emulation_computes_samples_of_several_shapes_in_one_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_EMULATED_KERNELS")
    given = images(4)
    expected = results(IN_ONE_CALL[name], given, device="cpu")
    find_runs = groups._runs

    def one_run(*arguments: Any) -> Any:
        found = find_runs(*arguments)
        assert len(found) == 1
        return found

    monkeypatch.setattr(groups, "_runs", one_run)
    for found, other in zip(results(IN_ONE_CALL[name], given), expected, strict=True):
        np.testing.assert_array_equal(found, other, strict=True)


@pytest.mark.usefixtures("emulated_gpu")
def test_emulated_results_of_several_shapes_keep_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_EMULATED_KERNELS")

    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipeline() -> Any:
        number = itertools.count()
        data = fn.external_source(lambda: [np.full((30 + n, 40), k) for k in [next(number)] for n in range(3)])
        return fn.cast(data.gpu(), dtype=types.FLOAT)

    pipe = pipeline()
    for k, (output,) in enumerate([pipe.run() for _ in range(4)]):
        for n, sample in enumerate(output):
            np.testing.assert_array_equal(np.asarray(sample.as_cpu()), np.full((30 + n, 40), k, np.float32))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["jitter", "sphere, nearest, some images", "water", "remap", "warp_perspective"])
def test_displaced_images_without_pixels_of_other_channels_and_of_very_different_sizes(name: str) -> None:
    random = np.random.default_rng(6)
    shapes = [(9, 14, 3), (0, 5, 3), (90, 120, 3), (3, 2, 3), (1, 1, 3), (12, 7, 5)]
    given = [random.integers(0, 256, shape, np.uint8) for shape in shapes]
    expected = results(ALL_OPERATIONS[name], given, device="cpu")
    for found, other in zip(results(ALL_OPERATIONS[name], given), expected, strict=True):
        assert found.shape == other.shape
        np.testing.assert_allclose(found.astype(int), other.astype(int), atol=1)


@pytest.mark.usefixtures("gpu")
def test_remap_of_sequences_of_several_lengths() -> None:
    random = np.random.default_rng(7)
    given = [random.integers(0, 256, (n + 1, 11 + n, 20 - 3 * n, 3), np.uint8) for n in range(3)]

    def remapped(x: Any) -> Any:
        return fn.experimental.remap(x, x[:, :, :, 0] * 0.1, x[:, :, :, 1] * 0.1, pixel_origin="center")

    expected = results(remapped, given, "FHWC", device="cpu")
    for found, other in zip(results(remapped, given, "FHWC"), expected, strict=True):
        np.testing.assert_allclose(found.astype(int), other.astype(int), atol=1)


@pytest.mark.usefixtures("gpu")
def test_tensor_resize_of_samples_that_change_along_other_axes() -> None:
    random = np.random.default_rng(8)
    shapes = [(2, 8, 9, 4), (3, 7, 9, 5), (2, 7, 9, 4), (1, 8, 6, 5), (2, 7, 6, 4)]
    given = [random.normal(size=shape).astype(np.float32) for shape in shapes]

    def resized(x: Any) -> Any:
        return fn.tensor_resize(x, sizes=[7, 9, 4], axes=[1, 2, 3], interp_type=types.INTERP_GAUSSIAN)

    expected = results(resized, given, "", device="cpu")
    for sample, found, other in zip(given, results(resized, given, ""), expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found, results(resized, [sample], "")[0], rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("gpu")
def test_tensor_resize_names_the_sample_whose_axes_are_too_many() -> None:
    given = [np.zeros(shape, np.float32) for shape in ((4, 5, 3, 6), (2, 5, 3, 7))]
    with pytest.raises(ShapeError, match=r"4 adjacent axes would change(?s:.*)sample 1"):
        results(lambda x: fn.tensor_resize(x, sizes=[4, 5, 3, 6]), given, "")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("border_mode", ["constant", "reflect", "reflect_101", "wrap"])
@pytest.mark.parametrize("interp_type", [types.INTERP_LINEAR, types.INTERP_CUBIC])
def test_warp_perspective_of_small_images_of_other_channels(border_mode: str, interp_type: Any) -> None:
    random = np.random.default_rng(9)
    given = [random.integers(0, 256, shape, np.uint8) for shape in ((1, 1, 3), (2, 1, 3), (12, 7, 5), (5, 1, 3))]

    def warped(x: Any) -> Any:
        return _perspective(x, border_mode=border_mode, interp_type=interp_type, size=[6, 9])

    expected = results(warped, given, device="cpu")
    for found, other in zip(results(warped, given), expected, strict=True):
        np.testing.assert_allclose(found.astype(int), other.astype(int), atol=1)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("layout", ["FHWC", "FCHW"])
def test_warp_perspective_of_sequences_of_several_lengths(layout: str) -> None:
    random = np.random.default_rng(7)
    given = [random.integers(0, 256, (n + 1, 11 + n, 20 - 3 * n, 3), np.uint8) for n in range(3)]
    given = given if layout == "FHWC" else [sample.transpose(0, 3, 1, 2).copy() for sample in given]
    for border_mode in ("constant", "wrap"):

        def warped(x: Any, border_mode: str = border_mode) -> Any:
            return _perspective(x, border_mode=border_mode)

        expected = results(warped, given, layout, device="cpu")
        for found, other in zip(results(warped, given, layout), expected, strict=True):
            np.testing.assert_allclose(found.astype(int), other.astype(int), atol=1)


def test_fed_samples_of_different_shapes_are_copied_by_one_call() -> None:
    for dtype in (torch.uint8, torch.uint16, torch.float32, torch.bool):
        samples = [torch.ones(2 + number % 3, 4).to(dtype) for number in range(7)]
        with Launches() as mode:
            found = _copied_on_device(Batch(None, samples, "XY", "gpu"))
        assert mode.names == ["cat"]
        assert (found.layout, found.device) == ("XY", "gpu")
        for copy, sample in zip(found.samples, samples, strict=True):
            assert copy.dtype == sample.dtype
            assert copy.data_ptr() != sample.data_ptr()
            assert copy.tolist() == sample.tolist()
