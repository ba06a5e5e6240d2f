"""Operators of MediaPipe compared with NumPy: their formulas and their order of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import ndimage

from dalify.base.errors import DalifyError
from dalify.mediapipe import fn
from dalify.mediapipe.media_types import dtype as dt
from dalify.mediapipe.operators.cpu_nodes.cpu_nodes import media_ext_cpu_op_impl, media_function
from tests.mediapipe.graphs import BATCH, FLOATS, IMAGES, PLANES, SCALES, Graph, given, run

RANDOM = np.random.default_rng(0)


def limited(values: np.ndarray) -> np.ndarray:
    return np.clip(np.floor(values + 0.5), 0, 255).astype(np.uint8)


def each_order(test: Callable[..., None]) -> Any:
    """Give images as HWC and as CHW."""
    return pytest.mark.parametrize(("images", "layout"), [(IMAGES, "CWHN"), (PLANES, "WHCN")], ids=["HWC", "CHW"])(test)


def interleaved(result: np.ndarray, layout: str) -> np.ndarray:
    return result if layout == "CWHN" else result.transpose(0, 2, 3, 1)


@each_order
def test_brightness_and_contrast(images: np.ndarray, layout: str) -> None:
    bright, stark, each = run(
        lambda: (
            fn.Brightness(brightness_scale=1.3)(given(images, layout)),
            fn.Contrast(contrast_scale=0.6)(given(images, layout)),
            fn.Contrast()(given(images, layout), given(SCALES)),
        )
    )
    values = IMAGES.astype(np.float64)
    np.testing.assert_allclose(interleaved(bright, layout), limited(values * 1.3), atol=1)
    np.testing.assert_allclose(interleaved(stark, layout), limited(values * 0.6 + 0.4 * 128), atol=1)
    factor = SCALES.reshape(-1, 1, 1, 1).astype(np.float64)
    np.testing.assert_allclose(interleaved(each, layout), limited(values * factor + (1 - factor) * 128), atol=1)


@each_order
def test_saturation_of_0_is_gray(images: np.ndarray, layout: str) -> None:
    gray, same = run(
        lambda: (
            fn.Saturation(saturation_level=0.0)(given(images, layout)),
            fn.Hue(degree=0.0)(given(images, layout)),
        )
    )
    gray = interleaved(gray, layout).astype(int)
    assert np.ptp(gray, axis=-1).max() <= 2
    np.testing.assert_allclose(interleaved(same, layout), IMAGES, atol=1)


@each_order
def test_windows_and_mirrors(images: np.ndarray, layout: str) -> None:
    chosen = np.array([1, 0, 1], np.uint8)
    crop, place, flipped, mirrored, swapped = run(
        lambda: (
            fn.Crop(crop_w=4, crop_h=3)(given(images, layout)),
            fn.Crop(crop_w=4, crop_h=3, crop_pos_x=1.0, crop_pos_y=1.0, dtype=dt.FLOAT32)(given(images, layout)),
            fn.RandomFlip(vertical=1)(given(images, layout), given(chosen)),
            fn.Flip(horizontal=1, vertical=1)(given(images, layout)),
            fn.ColorSpaceConversion(colorSpaceMode=1)(given(images, layout)),
        )
    )
    np.testing.assert_array_equal(interleaved(crop, layout), IMAGES[:, :3, :4])
    np.testing.assert_array_equal(interleaved(place, layout), IMAGES[:, 3:, 3:])
    assert place.dtype == np.float32
    expected = np.where(chosen.reshape(-1, 1, 1, 1), IMAGES[:, ::-1], IMAGES)
    np.testing.assert_array_equal(interleaved(flipped, layout), expected)
    np.testing.assert_array_equal(interleaved(mirrored, layout), IMAGES[:, ::-1, ::-1])
    np.testing.assert_array_equal(interleaved(swapped, layout), IMAGES[..., ::-1])


@each_order
@pytest.mark.parametrize("known", [True, False])
def test_crop_mirror_norm(images: np.ndarray, layout: str, known: bool) -> None:
    mean, factor = np.array([10, 20, 30], np.float32), np.array([0.1, 0.2, 0.3], np.float32)
    extents = [3, 1, 1] if layout == "CWHN" else [1, 1, 3]

    def number(values: np.ndarray) -> Any:
        if known:
            return fn.MediaConst(data=values, shape=extents, dtype=dt.FLOAT32)()
        shape = [BATCH, *extents[::-1]]
        return given(np.broadcast_to(values.reshape(extents[::-1]), shape).astype(np.float32))

    def make() -> Any:
        operator = fn.CropMirrorNorm(crop_w=5, crop_h=4, crop_pos_x=0.5, mirror=1)
        return operator(given(images, layout), number(mean), number(factor))

    (found,) = run(make)
    expected = (IMAGES[:, :4, 1:6][:, :, ::-1].astype(np.float64) - mean) * factor
    assert found.dtype == np.float32
    np.testing.assert_allclose(interleaved(found, layout), expected, rtol=1e-5, atol=1e-4)


def test_arithmetic() -> None:
    row = np.arange(5, dtype=np.float32)
    integers = np.array([250, 3, 7], np.uint8)

    def make() -> Any:
        x, numbers = given(FLOATS), given(integers)
        constant = fn.MediaConst(data=row, shape=[5, 1], dtype=dt.FLOAT32)()
        ten = fn.Constant(constant=10, dtype=dt.UINT8)()
        return (
            fn.Add()(x, constant),
            fn.Sub()(x, constant),
            fn.Mult()(x, given(SCALES)),
            fn.Neg()(x),
            fn.Clamp(lowerBound=-0.5, upperBound=0.5)(x),
            fn.Add(dtype=dt.INT32)(numbers, ten),
            fn.BitwiseAnd()(numbers, ten),
            fn.BitwiseOr()(numbers, ten),
            fn.BitwiseXor()(numbers, ten),
            fn.Cast(dtype=dt.INT8)(x),
            fn.Concat(axis=0)(x, x),
            fn.MemCpy()(x),
            fn.Where()(fn.Cast(dtype="int32")(x), x, fn.Neg()(x)),
        )

    expected = [
        FLOATS + row,
        FLOATS - row,
        FLOATS * SCALES.reshape(-1, 1, 1),
        -FLOATS,
        FLOATS.clip(-0.5, 0.5),
        integers.astype(np.int32) + 10,
        integers & 10,
        integers | 10,
        integers ^ 10,
        np.trunc(FLOATS + np.copysign(0.5, FLOATS)).astype(np.int8),
        np.concatenate([FLOATS, FLOATS], axis=2),
        FLOATS,
        np.where(np.trunc(FLOATS + np.copysign(0.5, FLOATS)), FLOATS, -FLOATS),
    ]
    for found, wanted in zip(run(make), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_where_ignores_values_that_it_does_not_select() -> None:
    first, second = np.array([[1, np.nan], [2, np.inf], [3, -np.inf]], np.float32), np.full((BATCH, 2), 7, np.float32)
    second[:, 0] = np.inf
    condition = np.tile(np.array([1, 0], np.uint8), (BATCH, 1))
    (found,) = run(lambda: fn.Where()(given(condition), given(first), given(second)))
    np.testing.assert_array_equal(found, [[1, 7], [2, 7], [3, 7]])


def test_a_constant_beside_a_batch_gives_a_batch() -> None:
    row = np.arange(5, dtype=np.float32)

    def make() -> Any:
        constant = fn.MediaConst(data=row, shape=[5], dtype=dt.FLOAT32)()
        limits, batch = given(SCALES), given(FLOATS[:, 0])
        return (
            fn.Where()(given((FLOATS[:, 0] > 0).astype(np.uint8)), constant, batch),
            fn.Concat(axis=0)(constant, batch),
            fn.Clamp()(constant, limits, fn.Constant(constant=3.0)()),
        )

    rows = np.tile(row, (BATCH, 1))
    where, joined, clamped = run(make)
    np.testing.assert_array_equal(where, np.where(FLOATS[:, 0] > 0, rows, FLOATS[:, 0]))
    np.testing.assert_array_equal(joined, np.concatenate([rows, FLOATS[:, 0]], axis=1))
    np.testing.assert_array_equal(clamped, rows.clip(SCALES[:, None], 3.0))


class Thirds(media_function):
    """Numbers that bfloat16 does not have."""

    def __call__(self, *inputs: Any) -> np.ndarray:
        return np.full((BATCH, 2), 1 / 3)


def test_bfloat16_is_rounded_everywhere() -> None:
    def make() -> Any:
        constant = fn.Constant(constant=1 / 3, dtype=dt.BFLOAT16)
        data = fn.MediaConst(data=[1 / 3, 2 / 3], shape=[2], dtype=dt.BFLOAT16)
        places = fn.MediaConst(data=[1, 0], shape=[2], dtype=dt.INT32)
        return (
            constant(),
            data(),
            fn.MediaFunc(func=Thirds, shape=[2, BATCH], dtype=dt.BFLOAT16)(),
            fn.ExtCpuOp(impl=Thirds, dtype=dt.BFLOAT16)(constant()),
            fn.GatherND()(data(), fn.MediaConst(data=[1], shape=[1], dtype=dt.INT32)()),
            fn.RandomUniform(seed=1, dtype=dt.BFLOAT16)(),
            fn.RandomNormal(seed=1, dtype=dt.BFLOAT16)(constant()),
            fn.Sub()(data(), places()),
        )

    *rounded, mixed = Graph(make).run()
    assert [output.dtype for output in rounded] == ["bfloat16"] * len(rounded)
    assert mixed.dtype == "float32"
    third = torch.tensor(1 / 3).bfloat16()
    assert rounded[0].torch().tolist() == [third.item()] * BATCH
    assert rounded[2].torch().unique().tolist() == rounded[3].torch().unique().tolist() == [third.item()]


def test_dimensions_are_counted_from_the_fastest() -> None:
    volume = RANDOM.normal(size=(BATCH, 2, 3, 4)).astype(np.float32)

    def make() -> Any:
        x = given(volume, "WHCN")
        first, second = fn.Split(axis=0, num_outputs=2)(x)
        return (
            fn.Transpose(permutation=[2, 0, 1, 3])(x),
            fn.Reshape(size=[6, 4, BATCH], tensorDim=3, layout="WDN", dtype=dt.FLOAT32)(x),
            first,
            second,
            fn.Slice(axes=[1], starts=[1], ends=[3])(x),
            *fn.ReduceMax(reductionDimension=0)(x),
            *fn.ReduceMin(reductionDimension=2)(x),
            fn.Pad(pads=[1, 0, 0, 0, 0, 2, 1, 0, 0, 0], mode=0, value=7.0)(x),
            fn.Pad(pads=[1, 0, 0, 0, 0, 2, 1, 0, 0, 0], mode=1)(x),
            fn.Pad(pads=[1, 0, 0, 0, 0, 2, 1, 0, 0, 0], mode=2)(x),
            fn.Pad(pads=[1, 0, 0, 0, 0, 2, 1, 0, 0, 0], mode=3)(x),
        )

    around = [(0, 0), (0, 0), (0, 1), (1, 2)]
    expected = [
        volume.transpose(0, 2, 3, 1),  # C becomes the fastest
        volume.reshape(BATCH, 4, 6),
        volume[..., :2],
        volume[..., 2:],
        volume[:, :, 1:3],
        volume.max(axis=3, keepdims=True),
        volume.argmax(axis=3)[..., None],
        volume.min(axis=1, keepdims=True),
        volume.argmin(axis=1)[:, None],
        np.pad(volume, around, constant_values=7),
        np.pad(volume, around, mode="reflect"),
        np.pad(volume, around, mode="edge"),
        np.pad(volume, around, mode="symmetric"),
    ]
    for found, wanted in zip(run(make), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_elements_by_index() -> None:
    table = RANDOM.normal(size=(BATCH, 4, 5)).astype(np.float32)
    columns = RANDOM.integers(-5, 5, (BATCH, 2, 3)).astype(np.int32)
    tuples = np.stack([RANDOM.integers(0, 4, (BATCH, 6)), RANDOM.integers(-5, 5, (BATCH, 6))], -1).astype(np.int32)

    def make() -> Any:
        x = given(table, "CWN")
        fixed = fn.MediaConst(data=[3, 0], shape=[2], dtype=dt.INT32)()
        return (
            fn.Gather(axis=0)(x, given(columns)),
            fn.Gather(axis=1)(x, fixed),
            fn.GatherND()(x, given(tuples)),
            fn.GatherND()(x, given(tuples[..., :1])),
        )

    by_column, rows, elements, slices = run(make)
    for index in range(BATCH):
        np.testing.assert_array_equal(by_column[index], table[index][:, columns[index]])
        np.testing.assert_array_equal(rows[index], table[index][[3, 0]])
        places = tuples[index].tolist()
        np.testing.assert_array_equal(elements[index], [table[index, row, column] for row, column in places])
        np.testing.assert_array_equal(slices[index], [table[index, row] for row, _ in places])
    for operation, numbers in ((fn.Gather(axis=0), columns + 1), (fn.GatherND(), tuples + 1)):
        with pytest.raises(DalifyError, match=r"(index|indices).* out of range"):
            run(lambda operation=operation, numbers=numbers: operation(given(table, "CWN"), given(numbers)))


def test_normalize_and_resize() -> None:
    def make() -> Any:
        x = given(PLANES.astype(np.float32), "WHCN")
        return fn.Normalize(scale=2.0, shift=1.0, axis=0b011)(x), fn.Resize(mode=0, scaleDim1=2.0, scaleDim2=3.0)(x)

    found, larger = run(make)
    values = PLANES.astype(np.float64)
    mean, variance = values.mean(axis=(2, 3), keepdims=True), values.var(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(found, 2 * (values - mean) / np.sqrt(variance + 1e-5) + 1, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(larger, PLANES.repeat(3, axis=2).repeat(2, axis=3))


def test_random_numbers_repeat_with_their_seed() -> None:
    def make() -> Any:
        chance = fn.Constant(constant=0.3, dtype=dt.FLOAT32)()
        return (
            fn.CoinFlip(seed=1)(chance),
            fn.RandomUniform(low=2.0, high=3.0, seed=2)(),
            fn.RandomNormal(mean=5.0, seed=3, shape=[400, 5, BATCH])(chance),
            fn.RandomNormal(seed=4)(given(SCALES), given(FLOATS)),
        )

    first, again = run(make, seed=1), run(make, seed=2)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    coins, uniform, normal, like = first
    assert coins.dtype == np.uint8
    assert coins.shape == uniform.shape == (BATCH,)
    assert ((uniform >= 2) & (uniform < 3)).all()
    assert normal.shape == (BATCH, 5, 400)
    assert abs(normal.mean() - 5) < 0.05
    assert abs(normal.std() - 0.3) < 0.05
    assert like.shape == FLOATS.shape


class Doubled(media_function):
    def __call__(self, *inputs: np.ndarray) -> np.ndarray:
        assert all(isinstance(each, np.ndarray) for each in inputs)
        return inputs[0] * 2 + self.params["priv_params"]


class SumAndProduct(media_ext_cpu_op_impl):
    def __call__(self, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return inputs[0] + inputs[1], inputs[0] * inputs[1]


def test_functions_of_users() -> None:
    def make() -> Any:
        x = given(FLOATS)
        double = fn.MediaFunc(func=Doubled, shape=[5, 4, BATCH], dtype=dt.FLOAT32, priv_params=1)
        return double(x), *fn.ExtCpuOp(impl=SumAndProduct, num_outputs=2)(x, x)

    doubled, total, product = run(make)
    np.testing.assert_allclose(doubled, FLOATS * 2 + 1)
    np.testing.assert_allclose(total, FLOATS + FLOATS)
    np.testing.assert_allclose(product, FLOATS * FLOATS)


def test_volumes_and_labels_are_cut_together() -> None:
    shape = (BATCH, 1, 9, 10, 11)
    places = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    classes = np.zeros(shape, np.uint8)
    classes[:, :, 6:8, 7:9, 1:3] = 2

    def make() -> Any:
        image, label = given(places, "WHDCN"), given(classes, "WHDCN")
        middle = fn.MediaConst(data=np.array([4, 5, 6]), shape=[3], dtype=dt.INT32)()
        return (
            *fn.RandomBiasedCrop(patch_size=[6, 5, 4], over_sampling=1.0, seed=3)(image, label),
            *fn.Zoom(patch_size=[6, 5, 4])(image, label, middle),
            *fn.Zoom(patch_size=[12, 10, 8])(image, label, middle),
            fn.BasicCrop(patch_size=[6, 5, 4])(image),
            fn.BasicCrop(patch_size=[6, 5, 4], center_crop=False)(image),
        )

    patch, marks, same, same_marks, larger, larger_marks, middle, corner = run(make)
    for index in range(BATCH):
        _, _, z, y, x = np.unravel_index(int(patch[index].flat[0]), shape)
        window = (index, slice(None), slice(z, z + 4), slice(y, y + 5), slice(x, x + 6))
        np.testing.assert_array_equal(patch[index], places[window])
        np.testing.assert_array_equal(marks[index], classes[window])
        assert (marks[index] == 2).sum() == 8
    center = (slice(None), slice(None), slice(2, 6), slice(2, 7), slice(2, 8))
    np.testing.assert_array_equal(same, places[center])
    np.testing.assert_array_equal(same_marks, classes[center])
    np.testing.assert_array_equal(larger_marks, classes[center].repeat(2, 2).repeat(2, 3).repeat(2, 4))
    assert larger.shape == (BATCH, 1, 8, 10, 12)
    np.testing.assert_allclose(larger.mean(axis=(1, 2, 3, 4)), places[center].mean(axis=(1, 2, 3, 4)), rtol=1e-3)
    np.testing.assert_array_equal(middle[:, 0, 0, 0], places[:, 0, 3, 3, 3:9])
    np.testing.assert_array_equal(corner, places[:, :, :4, :5, :6])


def test_blur() -> None:
    volume = RANDOM.normal(size=(BATCH, 1, 6, 7, 8)).astype(np.float32)
    (found,) = run(lambda: fn.GaussianBlur()(given(volume, "WHDCN"), given(SCALES)))
    for result, array, sigma in zip(found, volume, SCALES, strict=True):
        expected = ndimage.gaussian_filter(array[0].astype(np.float64), sigma, mode="mirror", radius=5)
        np.testing.assert_allclose(result[0], expected, atol=1e-5)
