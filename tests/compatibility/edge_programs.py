"""Programs with unusual sizes, lists and layouts that DALI accepts."""

from __future__ import annotations

import io
from threading import Timer
from typing import Any

import numpy as np
import pytest
import tifffile

from tests.compatibility.programs import PHOTO, Program, counted, on, run

_PHOTO = counted(2, 6, 5, 3)
_CLIPS = counted(2, 2, 6, 5, 3) % 83


def _photo(operator: str, **options: Any) -> Program:
    return on(_PHOTO, "HWC", lambda dali, x: getattr(dali.fn, operator)(x, **options))


def _nothing(dali: Any) -> Any:
    """An empty list in each sample."""
    return dali.fn.external_source(source=lambda: [np.zeros(0, np.int32)] * 2)


def _without_types(dali: Any, x: Any) -> Any:
    fn, no_type = dali.fn, dali.types.NO_TYPE
    return (
        fn.brightness(x, brightness=2.0, dtype=no_type),
        fn.crop(x, crop=[2, 2], dtype=no_type),
        fn.resize(x, size=[3, 3], dtype=no_type),
        fn.reductions.sum(x, dtype=no_type),
        fn.rotate(x, angle=90.0, dtype=int(no_type)),
    )


def _bordered(name: str) -> Program:
    weights = np.arange(15, dtype=np.float32).reshape(3, 5) / 100
    return on(_PHOTO, "HWC", lambda dali, x: dali.fn.filter(x, weights, border=name))


def _sizes_of_half_a_pixel(dali: Any) -> Any:
    """The rounding of the axis that determines the scale must not depend on the region."""
    chance = np.random.default_rng(0)
    photo, found = np.zeros((1, 22, 25, 3), np.uint8), []
    for number in range(60):
        start, extent = chance.uniform(0, 0.5, 2), chance.uniform(0.1, 0.5, 2)
        region = {"roi_start": start.tolist(), "roi_end": (start + extent).tolist(), "roi_relative": True}
        size = chance.integers(1, 40) + 0.5
        options = [{"resize_shorter": size}, {"resize_longer": size}, {"resize_shorter": size, "max_size": size + 2}]
        (batch,) = on(photo, "HWC", lambda d, x, o=options[number % 3], r=region: d.fn.resize(x, **o, **r))(dali)
        found += [tuple(shape) for shape in batch.shape()]
    return found


def _normalized(**options: Any) -> Program:
    def function(dali: Any, x: Any) -> Any:
        return dali.fn.crop_mirror_normalize(x, crop_pos_x=0.0, output_layout="HWC", **options)

    return on(_PHOTO, "HWC", function)


def _in_perspective(size: Any) -> Program:
    matrix = [1.0, 0, 0, 0, 1, 0, 0, 0, 1]
    return on(_PHOTO, "HWC", lambda dali, x: dali.fn.experimental.warp_perspective(x, matrix=matrix, size=size))


def _selected_masks(dali: Any, x: Any) -> Any:
    polygons = dali.types.Constant(np.int32([[0, 0, 3], [1, 3, 6]]), layout="AB", device="cpu")
    vertices = dali.types.Constant(np.arange(12, dtype=np.float32).reshape(6, 2), layout="XY", device="cpu")
    return tuple(dali.fn.segmentation.select_masks(x, polygons, vertices))


def _tiff(channels: int, kind: str) -> Program:
    """The shape of an image with channels that are no colors, and its pixels as this type of image."""
    file = io.BytesIO()
    pixels = counted(1, 4, 5, channels)[0] % 251
    extra = ["unspecified"] * (channels - 1)
    tifffile.imwrite(file, pixels, photometric="minisblack", planarconfig="contig", extrasamples=extra)
    data = np.frombuffer(file.getvalue(), np.uint8)

    def function(dali: Any, x: Any) -> Any:
        return dali.fn.peek_image_shape(x), dali.fn.decoders.image(x, output_type=getattr(dali.types, kind))

    return on(np.stack([data, data]), None, function)


def _by_constants(dali: Any, x: Any) -> Any:
    constant = dali.types.Constant
    integers = x[constant(1)], x[constant(-1).int8()], x[constant(1) : constant(4), constant(2)], x[:, constant(True)]
    return *integers, x[constant(1.9)], x[constant(-1.9)], x[constant(0.9) : constant(-0.9)], x[constant(-0.5)]


def _canvas_of_values(*extents: float) -> Program:
    def function(dali: Any, x: Any) -> Any:
        size = dali.types.Constant(np.float32(extents), device="cpu")
        scaled = size * dali.fn.random.uniform(values=[1.0])  # not known while the graph is built
        warped = [dali.fn.warp_affine(x, matrix=[1, 0, 0, 0, 1, 0], size=s) for s in (size, scaled)]
        return *warped, *(dali.fn.rotate(x, angle=30.0, size=s) for s in (size, scaled))

    return on(_PHOTO, "HWC", function)


def _by_one_frame(operator: str, argument: str, *values: float) -> Program:
    """An argument by frame with one entry, for clips of several frames."""

    def function(dali: Any, x: Any) -> Any:
        entry = dali.types.Constant(np.array([values], type(values[0])), device="cpu")
        return getattr(dali.fn, operator)(x, dtype=dali.types.FLOAT, **{argument: dali.fn.per_frame(entry)})

    return on(_CLIPS, "FHWC", function)


def _fed_by_another_thread(dali: Any) -> Any:
    with dali.Pipeline(2, 1, None, prefetch_queue_depth=1) as pipe:
        pipe.set_outputs(dali.fn.external_source(name="x", blocking=True))
    pipe.build()
    feeding = Timer(0.2, lambda: pipe.feed_input("x", np.int32([[1], [2]])))
    feeding.start()
    outputs = pipe.run()
    feeding.join()
    return outputs


def _feed_counts(dali: Any) -> Any:
    found: list[Any] = []
    for depth in (1, 3):
        with dali.Pipeline(2, 1, None, prefetch_queue_depth=depth) as pipe:
            pipe.set_outputs(dali.fn.external_source(name="x"))
        pipe.build()
        found.append(pipe.input_feed_count("x"))
        with pytest.raises((KeyError, RuntimeError)):
            pipe.input_feed_count("y")
    return found


def _under_its_former_name(dali: Any) -> Any:
    @dali.pipeline.experimental.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def ones() -> Any:
        return dali.fn.ones(shape=[2])

    pipe = ones()
    pipe.build()
    return pipe.run()


def _constants_of(fn: Any, shape: list[int]) -> Any:
    return fn.constant(idata=3, shape=shape), fn.constant(fdata=[1.5], shape=shape)


def _changed_array(dali: Any, x: Any) -> Any:
    """One array with other values for each use: a constant has those of the line that uses it."""
    weights, found = np.zeros((3, 3), np.float32), []
    for number in range(3):
        weights[:] = number / 4
        constant = dali.types.Constant(weights, device="cpu")
        found += [x[:3, :3, 0] + weights, dali.fn.filter(x, weights), constant + 1]
    weights[:] = 100
    return tuple(found)


def _changed_list(dali: Any, x: Any) -> Any:
    """The list of a constructor, changed before the call of the operator."""
    mean, matrix = [1.0, 2.0, 3.0], [1.0, 0, 0, 0, 1, 0]
    normalize, warp = dali.ops.CropMirrorNormalize(mean=mean), dali.ops.WarpAffine(matrix=matrix)
    mean[0], matrix[2] = 100.0, 2.0
    return normalize(x), warp(x)


def _tensors_with_layouts(dali: Any) -> Any:
    """Samples that are tensors, for instance those of another pipeline's output."""
    tensor = dali.tensors.TensorCPU
    rows = [tensor(PHOTO[0, 0], "WC"), tensor(PHOTO[1, 1], "")]

    def pipeline() -> Any:
        batches, named = (dali.fn.external_source(lambda: rows, layout=layout) for layout in (None, "XY"))
        return (
            batches,
            named,
            dali.fn.external_source(lambda _: rows[0], batch=False),
            dali.fn.external_source(name="fed"),
        )

    pipe = dali.pipeline_def(pipeline)(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    pipe.build()
    pipe.feed_input("fed", rows)
    first, *outputs = pipe.run()
    pipe.feed_input("fed", [first[1], first[0]])
    return first, *outputs, pipe.run()[-1]


def _enumerations_are_true(dali: Any) -> Any:
    types = dali.types
    return bool(types.UINT8), bool(types.RGB), bool(types.INTERP_NN)


def _of_all_axes(dali: Any, x: Any) -> Any:
    fn, corner, extents = dali.fn, np.int32([1, 0, 2]), np.int32([1, 2, 1])
    one_per_sample = dali.fn.external_source(source=lambda: [np.int32(1), np.int32(2)])
    return (
        fn.slice(x, start=[1, 0, 2], end=[2, 1, 3], axes=[]),
        fn.slice(x, start=[1, 0, 2], end=[2, 1, 3], axis_names=""),
        fn.slice(x, start=1, end=2, axes=[]),
        fn.slice(x, start=one_per_sample, end=3, axis_names=""),
        fn.slice(x, rel_start=0.5, end=3, axes=[]),
        fn.slice(x, start=[], end=[1, 1, 1], axes=[]),
        fn.slice(x, corner, extents, axes=[]),
        fn.slice(x, np.float32([0, 0.5, 0]), np.float32([0.5, 0.5, 1]), axis_names=""),
        fn.slice(x, start=-1, shape=9, axes=[], out_of_bounds_policy="pad", fill_values=7),
    )


def _chains(dali: Any, x: Any) -> Any:
    ops = dali.ops
    nothing, region = ops.Compose([]), ops.Compose([ops.Copy(), ops.NonsilentRegion()])
    sound, both = dali.fn.reshape(x, shape=[-1]), nothing(x, x)
    kinds = [isinstance(values, list) for values in (region(sound), nothing(x), both)]
    flipped = ops.Compose([nothing, ops.Flip(), nothing])(x, vertical=1) if kinds[2] else x
    return *region(sound), nothing(x), *both, flipped, dali.types.Constant(kinds)


def _no_layout(dali: Any) -> Any:
    tensors = dali.tensors
    named = tensors.TensorListCPU(PHOTO, "HWC")
    made = tensors.TensorListCPU(PHOTO, None), tensors.TensorListCPU(named, None), tensors.TensorCPU(PHOTO, None)
    return [batch.layout() for batch in made]


def _integers_of_dynamic_mode(dali: Any) -> Any:
    """Numbers that fit 32 bits have 32 bits."""
    ndd, found = dali.experimental.dynamic, []
    for value in (2**31, 2**32 - 1, [1, 2**31], [[2**31 - 1]], -(2**31), [True, 2]):
        found += [np.asarray(ndd.tensor(value)), np.asarray(ndd.batch([value]).tensors[0])]
    for value in (2**32, -(2**31) - 1, [-1, 2**31], [2**40], 2**63, [2**64]):
        with pytest.raises(OverflowError):
            ndd.tensor(value)
    return found


_NARROW, _WIDE = {"crop": [4, 2]}, {"crop": [7, 2], "out_of_bounds_policy": "pad"}

EDGES: dict[str, Program] = {
    **{
        f"TIFF of {channels} channels as {kind}": _tiff(channels, kind)
        for channels, kind in [(2, "ANY_DATA"), (4, "ANY_DATA"), (4, "RGB"), (6, "ANY_DATA"), (6, "RGB")]
    },
    "element types that are not given": on(_PHOTO, "HWC", _without_types),
    "sigmas of one frame": _by_one_frame("gaussian_blur", "sigma", np.float32(1.5), np.float32(0.5)),
    "windows of one frame": _by_one_frame("laplacian", "window_size", np.int32(5)),
    "depth of an image": _photo("flip", horizontal=0, depthwise=1),
    "axis of an image": _photo("rotate", angle=30.0, axis=[0, 0, 1]),
    "canvas of less than a pixel": _photo("rotate", angle=30.0, size=[0.2, 2.5]),
    "canvas of fractions": _photo("rotate", angle=30.0, size=[3.5, 2.5]),
    "canvas of graph values": _canvas_of_values(3.5, 2.5),
    "canvas of graph values below a pixel": _canvas_of_values(0.3, 2.9),
    "map of less than a pixel": _photo("warp_affine", matrix=[1, 0, 0, 0, 1, 0], size=[1.2, 0.3]),
    "one extent for both": _in_perspective(4),
    "perspective of less than a pixel": _in_perspective([0.3, 2]),
    "no start of a slice": _photo("slice", start=[], shape=[2, 3], axis_names="HW"),
    "no fractions of a start": _photo("slice", rel_start=[], rel_shape=[0.5], axes=[0]),
    "no end of a slice": _photo("slice", start=[1], end=[], axes=[0]),
    "no shape of a slice": _photo("slice", start=[1, 2], shape=[], axis_names="HW"),
    "no start in each sample": on(
        _PHOTO, "HWC", lambda dali, x: dali.fn.slice(x, start=_nothing(dali), shape=[2, 3], axis_names="HW")
    ),
    "no anchor to erase": _photo("erase", anchor=[], shape=[2, 2], axis_names="HW"),
    "nothing to erase": _photo("erase", anchor=[], shape=[], axis_names="HW"),
    "erased without a value": _photo("erase", anchor=[1, 1], shape=[2, 2], axis_names="HW", fill_value=[]),
    "slices along all axes": on(_PHOTO, "HWC", _of_all_axes),
    "chains of operators": on(_PHOTO, "HWC", _chains),
    "no layout": _no_layout,
    "integers of dynamic mode": _integers_of_dynamic_mode,
    "no extents": _photo("pad", shape=[], align=[], axes=[0, 1]),
    "fill values without use": _normalized(fill_values=[7, 8], **_NARROW),
    "fill values of added channels without use": _normalized(fill_values=[7, 8, 9, 10], pad_output=True, **_NARROW),
    "fill values of added channels": _normalized(fill_values=[7, 8, 9, 10], pad_output=True, **_WIDE),
    "one fill value for added channels": _normalized(fill_values=[7], pad_output=True, **_WIDE),
    "fill values of added planes": _photo(
        "crop_mirror_normalize",
        fill_values=[7, 8, 9, 10],
        pad_output=True,
        mean=[1.0, 2.0, 3.0],
        std=[2.0, 3.0, 4.0],
        mirror=1,
        **_WIDE,
    ),
    "crop of a clip without layout": on(_CLIPS, None, lambda dali, x: dali.fn.crop(x, crop=[3, 3])),
    "crop of a volume without layout": on(_CLIPS, None, lambda dali, x: dali.fn.crop(x, crop=[1, 3, 3])),
    "constants as indices": on(PHOTO, "HWC", _by_constants),
    "data fed by another thread": _fed_by_another_thread,
    "batches to feed": _feed_counts,
    "enumerations as conditions": _enumerations_are_true,
    "the former decorator of conditions": _under_its_former_name,
    "constants without an axis": lambda dali: run(dali, lambda: _constants_of(dali.fn, [])),
    "constants of one element": lambda dali: run(dali, lambda: _constants_of(dali.fn, [1, 1])),
    **{
        f"border of a filter: {name}": _bordered(name)
        for name in ("const", "constant", "edge", "clamp", "fill", "pad", "reflect", "101", "1001", "wrap")
    },
    **{
        f"outside of a crop: {name}": _photo("crop", crop=[9, 8], out_of_bounds_policy=name)
        for name in ("const", "fill")
    },
    "an array that changes while the graph is built": on(_PHOTO, "HWC", _changed_array),
    "a list that changes after a constructor": on(_PHOTO, "HWC", _changed_list),
    "tensors with layouts as samples": _tensors_with_layouts,
    "sizes of half a pixel": _sizes_of_half_a_pixel,
    "masks with layouts": on(np.int32([[1], [0]]), None, _selected_masks),
}
