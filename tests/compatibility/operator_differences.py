"""Intended differences of operators, with the results in both libraries."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from dalify.base.errors import LayoutError
from tests.compatibility.differences import (
    GRADIENT,
    IMAGE,
    MATRIX,
    REFUSED,
    UNDEFINED,
    Difference,
    adder,
    arrays,
    built,
    defined,
    image,
    one,
    part,
    source,
    tried,
)

OPERATOR_DIFFERENCES: list[Difference] = []
differs = adder(OPERATOR_DIFFERENCES)


@differs(
    "some operators accept negative extents", dali=[(3, 3, 4), (2, 3, 3), (8, 10, 3), (2,), (2,)], dalify=[REFUSED] * 5
)
def _(package: Any) -> Any:
    fn, same = package.fn, [1, 0, 0, 0, 1, 0]
    return tried(
        lambda: image(package, lambda x: fn.crop_mirror_normalize(x, crop=[2, 3, 4])).shape,
        lambda: image(package, lambda x: fn.resize_crop_mirror(x, size=[4, 4], crop=[1, 2, 3])).shape,
        lambda: image(package, lambda x: fn.warp_affine(x, np.float32(same).reshape(2, 3), matrix=same)).shape,
        lambda: one(package, lambda: fn.roi_random_crop(crop_shape=[-3, 2], roi_start=[0, 0], roi_end=[3, 3])).shape,
        lambda: one(package, lambda x: fn.random_crop_generator(x)[1], np.int64([-3, 4])).shape,
    )


@differs("the `seed` of TrivialAugment", dali=8, dalify=20)
def _(package: Any) -> Any:
    augmentation = part(package, "auto_aug.core").augmentation

    def numbered(number: int) -> Any:
        def operation(x: Any, magnitude: Any) -> Any:
            return x * 0 + 10 * number + magnitude

        operation.__name__ = f"operation{number}"
        return augmentation(operation, mag_range=(0, 4), mag_to_param=np.int32, randomly_negate=False)

    apply = part(package, "auto_aug.trivial_augment").apply_trivial_augment
    operations = [numbered(number) for number in range(4)]

    def program() -> Any:
        x = source(package, [np.int32(0)] * 500)
        return apply(operations, x, num_magnitude_bins=5, seed=7)

    (batch,) = defined(package, program, 500, enable_conditionals=True).run()
    return len({sample.item() for sample in arrays(batch)})


@differs("`x[None]` is `x[:]`", dali=(4, 6), dalify=(1, 4, 6))
def _(package: Any) -> Any:
    return one(package, lambda x: x[None], MATRIX).shape


@differs("comparisons of floats", dali=[False, False], dalify=[True, False])
def _(package: Any) -> Any:
    return one(package, lambda x: x < -3, np.float32([-7, -1]))


@differs("a NumPy integer on the left", dali=[np.int32, np.uint8], dalify=[np.uint8, np.uint8])
def _(package: Any) -> Any:
    return [one(package, call, MATRIX).dtype for call in (lambda x: np.uint8(1) + x, lambda x: x + np.uint8(1))]


@differs("`<<` and `>>`", dali=UNDEFINED, dalify=([0, 0], [0, -1]))
def _(package: Any) -> Any:
    x, bits = np.int32([5, -5]), np.int32([-1, 32])
    return tuple(one(package, call, x, bits) for call in (lambda x, y: x << y, lambda x, y: x >> y))


@differs("`fn.segmentation.select_masks`", dali=[[0, 0, 3]], dalify=[[0, 0, 3], [0, 3, 6]])
def _(package: Any) -> Any:
    polygons, vertices = np.int32([[0, 0, 3], [0, 3, 6]]), np.zeros((6, 2), np.float32)
    return one(package, lambda *x: package.fn.segmentation.select_masks(*x)[0], np.int32([0]), polygons, vertices)


@differs("`fn.cat` of inputs that have no elements", dali=(2, 0), dalify=(5, 0))
def _(package: Any) -> Any:
    empty = np.zeros((2, 0), np.uint8), np.zeros((3, 0), np.uint8)
    return one(package, lambda x, y: package.fn.cat(x, y, axis=0), *empty).shape


@differs("`fn.cat` and `fn.stack` use the layout", dali=["", REFUSED, REFUSED], dalify=["HW", "HW", "NHW"])
def _(package: Any) -> Any:
    fn = package.fn
    joined = (
        lambda x, y: fn.cat(x, y, axis=0),
        lambda x, y: fn.cat(x, y, axis_name="W"),
        lambda x, y: fn.stack(x, y, axis=0, axis_name="N"),
    )
    data = [MATRIX], [MATRIX]
    return tried(*(lambda c=c: built(package, c, *data, layouts=["", "HW"]).run()[0].layout() for c in joined))


@differs("`fn.tensor_resize` that derives a scale", dali=[(8, 10, 3), (4, 5, 2)], dalify=[(4, 10, 3), (4, 10, 3)])
def _(package: Any) -> Any:
    resize = package.fn.tensor_resize
    modes = "not_smaller", "not_larger"
    return [image(package, partial(resize, sizes=[4], axes=[0], mode=mode)).shape for mode in modes]


@differs(
    "`fn.tensor_resize` ignores the exact scale",
    dali=([0, 10, 20, 30, 40, 50], False),
    dalify=([0, 9, 20, 30, 41, 50], True),
)
def _(package: Any) -> Any:
    resize, gaussian = package.fn.tensor_resize, package.types.INTERP_GAUSSIAN
    dot = np.zeros((6, 7, 3), np.float32)
    dot[3, 3] = 100
    scaled = one(package, lambda x: resize(x, scales=[0.95, 0.5, 1]), GRADIENT[:6])
    filtered = one(package, lambda x: resize(x, sizes=[3], axes=[0], interp_type=gaussian), dot)
    return scaled[:, 0, 0], not filtered[:, 2].any()


@differs("`fn.resize_crop_mirror`", dali=1, dalify=2)
def _(package: Any) -> Any:
    planes = np.ascontiguousarray(IMAGE.transpose(2, 0, 1))
    found = image(
        package, lambda x: package.fn.resize_crop_mirror(x, size=[8, 10], crop=[8, 10], mirror=1), planes, "CHW"
    )
    return next(axis for axis in range(3) if np.array_equal(found, np.flip(planes, axis)))


@differs("arithmetic on a batch", dali=UNDEFINED, dalify=[[[1, 2, 3]] * 2, [[2, 3, 4], [5, 6, 7]]])
def _(package: Any) -> Any:
    data = [np.float32([[0, 1, 2]]), np.float32([[1, 2, 3], [4, 5, 6]])]
    return arrays(built(package, lambda x, y: x + y, data, [np.ones((2, 3), np.float32)] * 2).run()[0])


@differs("color operators", dali=UNDEFINED, dalify=[REFUSED] * 4)
def _(package: Any) -> Any:
    fn, rgba = package.fn, np.zeros((3, 4, 4), np.uint8)
    calls = fn.color_twist, fn.hsv, fn.hue, fn.saturation
    return tried(*(partial(image, package, call, rgba) for call in calls))


@differs("`fn.resize` of a region of interest", dali=33, dalify=30)
def _(package: Any) -> Any:
    filters = {"min_filter": package.types.INTERP_NN, "mag_filter": package.types.INTERP_LINEAR, "antialias": False}
    region = {"size": [2, 12], "roi_start": [2, 3], "roi_end": [6, 9]}
    return image(package, lambda x: package.fn.resize(x, **region, **filters), GRADIENT)[0, -1, 0]


@differs("`fn.resize` by nearest neighbor, of a region", dali=UNDEFINED, dalify=[50, 70, 70, 70])
def _(package: Any) -> Any:
    region = {"size": [4, 4], "roi_start": [4, 5], "roi_end": [12, 15]}
    return image(package, lambda x: package.fn.resize(x, **region, interp_type=package.types.INTERP_NN), GRADIENT)[
        :, 0, 0
    ]


@differs("`fn.resize` of INT16", dali=-1, dalify=0)
def _(package: Any) -> Any:
    row = np.tile(np.int16([0, -1, 0, 0]), 40)[None, :, None]
    found = image(package, lambda x: package.fn.resize(x, size=[1, 70]), row)
    return found.min()


@differs("`fn.resize` of a reversed region", dali=GRADIENT[:, 0, 0], dalify=GRADIENT[::-1, 0, 0])
def _(package: Any) -> Any:
    region = {"resize_x": 10, "roi_start": [8, 10], "roi_end": [0, 0]}
    return image(package, lambda x: package.fn.resize(x, **region), GRADIENT)[:, 0, 0]


@differs("`crop_h=3, crop_w=0`", dali=[(3, 10, 3), REFUSED, (3, 10, 3)], dalify=[REFUSED, REFUSED, (3, 10, 3)])
def _(package: Any) -> Any:
    windows: Any = {"crop_h": 3, "crop_w": 0}, {"crop_h": 3}, {"crop": [3, 0]}
    return tried(*(lambda w=w: image(package, lambda x: package.fn.crop(x, **w)).shape for w in windows))


@differs(
    "`fn.decoders.image` with `output_type=ANY_DATA`",
    dali=[(4, 255), (4, 4, 4), REFUSED],
    dalify=[(3, 255), (4, 4, 3), 4],
)
def _(package: Any) -> Any:
    def written(form: str) -> np.ndarray:
        file = io.BytesIO()
        Image.new("CMYK", (4, 4)).save(file, form)
        return np.frombuffer(file.getvalue(), np.uint8)

    any_data, tiff = package.types.ANY_DATA, written("TIFF")
    decoded = one(package, lambda x: package.fn.decoders.image(x, output_type=any_data), tiff)
    shape = one(package, lambda x: package.fn.peek_image_shape(x, image_type=any_data), tiff)
    jpeg = tried(
        lambda: one(package, lambda x: package.fn.decoders.image(x, output_type=any_data), written("JPEG")).shape[2]
    )
    return [(decoded.shape[2], decoded[0, 0, -1]), tuple(shape), *jpeg]


@differs("`fn.crop` and `fn.slice` with one fill value", dali=[44, 255], dalify=[255, 255])
def _(package: Any) -> Any:
    large, options = np.full((2, 2, 3), 300, np.float32), {"out_of_bounds_policy": "pad", "dtype": package.types.UINT8}
    fills: Any = [1.0, 2.0, 3.0], 1.0
    calls = [partial(package.fn.crop, crop=[4, 4], fill_values=fill, **options) for fill in fills]
    return [image(package, call, large)[1, 1, 0] for call in calls]


@differs(
    "`fn.reductions.min` and `max`",
    dali=np.float32([3.4028235e38, 3.4028235e38, -3.4028235e38, -3.4028235e38]),
    dalify=np.float32([np.inf, np.nan, -np.inf, np.nan]),
)
def _(package: Any) -> Any:
    low, high = package.fn.reductions.min, package.fn.reductions.max
    given: Any = (low, np.inf), (low, np.nan), (high, -np.inf), (high, np.nan)
    return np.float32([one(package, call, np.float32([value])) for call, value in given])


@differs("`fn.normalize(stddev=0)`", dali=[[np.inf], [np.inf], [5]], dalify=[[5], [5], [5]])
def _(package: Any) -> Any:
    none = np.float32([0])
    normalize = partial(package.fn.normalize, mean=2.0, shift=5.0)
    calls = (
        partial(normalize, stddev=0.0),
        partial(normalize, stddev=none),
        lambda x: normalize(x, stddev=source(package, [none])),
    )
    return [one(package, call, np.float32([3])) for call in calls]


@differs("`fn.normalize` accepts a negative", dali=[True, False], dalify=[REFUSED, REFUSED])
def _(package: Any) -> Any:
    calls = [partial(package.fn.normalize, epsilon=epsilon) for epsilon in (-100.0, -1.0)]
    return tried(*(lambda c=c: np.isnan(one(package, c, np.float32([1, 5]))).all() for c in calls))


@differs("`fn.clahe` ignores `bins`", dali=True, dalify=False)
def _(package: Any) -> Any:
    clahe, gray = partial(package.fn.clahe, tiles_x=1, tiles_y=1, clip_limit=2.0), IMAGE[..., :1]
    return np.array_equal(*(image(package, partial(clahe, bins=bins), gray) for bins in (256, 16)))


@differs("`fn.sphere` and `fn.water`", dali=[False, True] * 2, dalify=[True] * 4)
def _(package: Any) -> Any:
    fn, none = package.fn, [np.int32(0)]
    calls = (
        partial(fn.sphere, mask=0),
        lambda x: fn.sphere(x, mask=source(package, none)),
        partial(fn.water, mask=0),
        lambda x: fn.water(x, mask=source(package, none)),
    )
    return [np.array_equal(image(package, call), IMAGE) for call in calls]


@differs("`fn.permute_batch` refuses", dali=RuntimeError, dalify=[8, 8, 8])
def _(package: Any) -> Any:
    data = np.int32([7, 8, 9])
    return arrays(built(package, lambda x: package.fn.permute_batch(x, indices=1), data).run()[0])


@differs("`squeeze(axes=-1)`", dali=(8, 10, 1), dalify=(8, 10))
def _(package: Any) -> Any:
    return one(package, lambda x: package.fn.squeeze(x, axes=-1), IMAGE[..., :1]).shape


@differs("`fn.crop_mirror_normalize` with `scale=0`", dali=np.nan, dalify=0)
def _(package: Any) -> Any:
    return image(package, lambda x: package.fn.crop_mirror_normalize(x, scale=0.0))[0, 0, 0]


@differs("`fn.gaussian_blur` of float16", dali=False, dalify=True)
def _(package: Any) -> Any:
    """Whether all values are the exact ones, rounded once; the window 3 of sigma 0.8 has three weights."""
    x = np.random.default_rng(0).uniform(0, 100, (16, 17, 3)).astype(np.float16)
    weights = np.exp(-(np.arange(-1.0, 2.0) ** 2) / (2 * 0.8**2))
    weights /= weights.sum()
    exact = x.astype(np.float64)
    for axis in (0, 1):
        edges = np.pad(exact, [(1, 1) if each == axis else (0, 0) for each in range(3)], "reflect")
        parts = [np.take(edges, range(start, start + x.shape[axis]), axis) for start in range(3)]
        exact = sum(weight * part for weight, part in zip(weights, parts, strict=True))
    blurred = image(package, lambda x: package.fn.gaussian_blur(x, sigma=0.8, window_size=3), x)
    return np.array_equal(blurred, exact.astype(np.float16))


@differs("`fn.noise.shot` with `factor=0`", dali=np.zeros_like(IMAGE), dalify=IMAGE)
def _(package: Any) -> Any:
    return image(package, lambda x: package.fn.noise.shot(x, factor=0.0))


@differs("`fn.grid_mask` masks", dali=UNDEFINED, dalify=[72, 72, 72])
def _(package: Any) -> Any:
    frames = np.full((3, 8, 10, 3), 100, np.uint8)
    masked = image(package, lambda x: package.fn.grid_mask(x, tile=4, ratio=0.5), frames, "FHWC")
    return [(frame == 0).sum() for frame in masked]


@differs("`fn.grid_mask` masks", dali=True, dalify=LayoutError)
def _(package: Any) -> Any:
    planes = np.full((3, 8, 10), 100, np.uint8)
    masked = image(package, lambda x: package.fn.grid_mask(x, tile=4, ratio=0.5), planes, "CHW")
    return not np.array_equal(masked[0], masked[-1])


@differs("`fn.to_decibels` refuses", dali=[REFUSED, -50, -50, -50], dalify=[0, REFUSED, REFUSED, REFUSED])
def _(package: Any) -> Any:
    call, spectrum = package.fn.to_decibels, np.float32([1, 10])

    def loudest(reference: float) -> float:
        return round(one(package, lambda x: call(x, reference=reference, cutoff_db=-50.0), spectrum).max(), 3)

    return tried(*(lambda r=r: loudest(r) for r in (0.0, -1.0, np.inf, np.nan)))


@differs("`fn.experimental.warp_perspective` treats", dali=[(1, 4, 3), (1, 4, 3)], dalify=[(0, 4, 3), REFUSED])
def _(package: Any) -> Any:
    warp, same = package.fn.experimental.warp_perspective, [1, 0, 0, 0, 1, 0, 0, 0, 1]
    return tried(*(lambda s=s: image(package, lambda x: warp(x, matrix=same, size=[s, 4])).shape for s in (0, -3)))


@differs("`fn.random_bbox_crop` refuses", dali=[REFUSED] * 5, dalify=[2] * 5)
def _(package: Any) -> Any:
    boxes = np.array([[0.1, 0.1, 0.5, 0.5]], np.float32)
    fixed = {"crop_shape": [4, 4], "input_shape": [9, 9]}
    options: list[Any] = [{"scaling": [1.0, 1.0]}, {"aspect_ratio": [1.0, 1.0]}, {"allow_no_crop": True}]
    options = [fixed | option for option in options] + [{"total_num_attempts": -1}]
    options.append({"bbox_layout": "xyXY", "ltrb": True})

    def extents(option: Any) -> int:
        return len(one(package, lambda: package.fn.random_bbox_crop(boxes, **option)[1]))

    return tried(*(lambda o=o: extents(o) for o in options))


@differs("random crops accept", dali=[(3, 3, 3)] * 3, dalify=[REFUSED] * 3)
def _(package: Any) -> Any:
    options: Any = {"random_area": [0.0, 1.0]}, {"random_aspect_ratio": [0.0, 1.0]}, {"num_attempts": 0}
    crop = package.fn.random_resized_crop
    return tried(*(lambda o=o: image(package, lambda x: crop(x, size=[3, 3], **o)).shape for o in options))
