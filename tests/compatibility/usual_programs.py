"""Usual programs for DALI, in the style of its documentation: each operator family, sources, methods, types.

As in `programs.py`, each takes the library and returns the compared values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.compatibility.programs import Program, on, run

USUAL: dict[str, Program] = {}
_RANDOM = np.random.default_rng(0)
IMAGES = _RANDOM.integers(0, 256, (4, 17, 23, 3), dtype=np.uint8)
RECORDINGS = (_RANDOM.random((4, 2000)) * 2 - 1).astype(np.float32)
BOXES = np.float32([[[0.1, 0.2, 0.5, 0.6], [0.3, 0.3, 0.9, 0.8]], [[0.2, 0.2, 0.4, 0.7], [0.1, 0.3, 0.6, 0.9]]])

ON_IMAGES: dict[str, Any] = {
    "rotate by nearest": lambda d, x: d.fn.rotate(x, angle=45.0, keep_size=True, interp_type=d.types.INTERP_NN),
    "rotate by a constant": lambda d, x: d.fn.rotate(x, angle=d.types.Constant(90.0)),
    "resize one side": lambda d, x: d.fn.resize(x, resize_x=11),
    "resize shorter": lambda d, x: d.fn.resize(x, resize_shorter=9, max_size=12),
    "resize not smaller": lambda d, x: d.fn.resize(
        x, size=[7, 9], mode="not_smaller", interp_type=d.types.INTERP_CUBIC
    ),
    "resize a region": lambda d, x: d.fn.resize(
        x, size=[9, 8], roi_start=[0.2, 0.1], roi_end=[0.8, 0.7], roi_relative=True
    ),
    "resize to floats": lambda d, x: d.fn.resize(
        x, size=[9, 8], interp_type=d.types.INTERP_LANCZOS3, dtype=d.types.FLOAT
    ),
    "resize crop mirror": lambda d, x: d.fn.resize_crop_mirror(x, resize_x=20, resize_y=20, crop=[9, 9], mirror=1),
    "normalize a crop": lambda d, x: d.fn.crop_mirror_normalize(
        x, crop=[9, 9], mean=[1.0, 2.0, 3.0], std=[4.0, 5.0, 6.0], mirror=1, dtype=d.types.FLOAT16
    ),
    "pad channels": lambda d, x: d.fn.crop_mirror_normalize(x, crop=[9, 9], pad_output=True),
    "crop by pixels": lambda d, x: d.fn.crop(x, crop_w=5.0, crop_h=6.0, crop_pos_x=0.1, rounding="truncate"),
    **{
        f"crop beyond, {policy}": lambda d, x, policy=policy: d.fn.crop(x, crop=[30, 30], out_of_bounds_policy=policy)
        for policy in ("pad", "const", "edge", "clamp", "wrap", "reflect", "reflect_101", "reflect_1001")
    },
    "slice by parts": lambda d, x: d.fn.slice(x, rel_start=[0.1, 0.2], rel_end=[0.7, 0.8], axis_names="HW"),
    "slice one axis": lambda d, x: d.fn.slice(x, start=[2], end=[9], axes=[1]),
    "slice trimmed": lambda d, x: d.fn.slice(x, start=[-3], shape=[9], axes=[0], out_of_bounds_policy="trim_to_shape"),
    "slice by a constant": lambda d, x: d.fn.slice(x, start=d.types.Constant(2), shape=3, axes=[0]),
    "slice nothing": lambda d, x: d.fn.slice(x, start=[], shape=[], axes=[]),
    "flip": lambda d, x: d.fn.flip(x, horizontal=1, vertical=1),
    "hsv": lambda d, x: d.fn.hsv(x, hue=20.0, saturation=0.5, value=1.2),
    "brightness": lambda d, x: d.fn.brightness_contrast(x, brightness=1.2, contrast=0.7, brightness_shift=0.1),
    "twist": lambda d, x: d.fn.color_twist(x, brightness=1.1, contrast=0.9, hue=10.0, saturation=0.7),
    "to luma and chroma": lambda d, x: d.fn.color_space_conversion(
        x, image_type=d.types.RGB, output_type=d.types.YCbCr
    ),
    "blur": lambda d, x: d.fn.gaussian_blur(x, window_size=[3, 7], sigma=[1.0, 2.0]),
    "laplacian": lambda d, x: d.fn.laplacian(x, window_size=5, dtype=d.types.FLOAT),
    "erase": lambda d, x: d.fn.erase(x, anchor=[2, 3, 8, 9], shape=[3, 4, 5, 6], axis_names="HW", fill_value=[1, 2, 3]),
    "erase parts": lambda d, x: d.fn.erase(
        x, anchor=[0.1, 0.2], shape=[0.3, 0.4], normalized=True, centered_anchor=True, axes=[0, 1]
    ),
    "paste": lambda d, x: d.fn.paste(x, ratio=1.5, fill_value=[1, 2, 3], paste_x=0.2, paste_y=0.7),
    "pad": lambda d, x: d.fn.pad(x, axes=[0, 1], align=8, fill_value=3),
    "mask": lambda d, x: d.fn.grid_mask(x, ratio=0.4, angle=0.3, tile=7, shift_x=2.0, shift_y=3.0),
    "water": lambda d, x: d.fn.water(x, interp_type=d.types.INTERP_NN),
    "sphere": lambda d, x: d.fn.sphere(x, interp_type=d.types.INTERP_NN),
    "transpose": lambda d, x: d.fn.transpose(x, perm=[2, 0, 1], output_layout="CHW"),
    "reshape": lambda d, x: d.fn.reshape(x, shape=[-1, 3], layout="HC"),
    "reinterpret": lambda d, x: d.fn.reinterpret(x, dtype=d.types.INT8),
    "squeeze": lambda d, x: d.fn.squeeze(d.fn.expand_dims(x, axes=[0], new_axis_names="F"), axis_names="F"),
    "expand by nothing": lambda d, x: d.fn.expand_dims(x, axes=[], new_axis_names=""),
    "stack": lambda d, x: d.fn.stack(x, x, axis=1, axis_name="F"),
    "cat": lambda d, x: d.fn.cat(x, x, axis=-1),
    "normalize": lambda d, x: d.fn.normalize(x, axis_names="HW", scale=64.0, shift=128.0, dtype=d.types.UINT8),
    "normalize batches": lambda d, x: d.fn.normalize(x, batch=True, axes=[0]),
    "a table": lambda d, x: d.fn.lookup_table(
        x, keys=[1, 3], values=[5.0, 7.0], default_value=9.0, dtype=d.types.FLOAT
    ),
    "a table of half floats": lambda d, x: d.fn.lookup_table(x, keys=[1, 3], values=[5.5, 7.0], dtype=d.types.FLOAT16),
    "cast": lambda d, x: (d.fn.cast(x, dtype=d.types.INT64), d.fn.cast_like(x, d.types.Constant(1.5))),
    "reductions": lambda d, x: (
        d.fn.reductions.mean(x, axes=[0, 1]),
        d.fn.reductions.sum(x, axis_names="C"),
        d.fn.reductions.max(x),
        d.fn.reductions.min(x, axes=[2], keep_dims=True),
        d.fn.reductions.std_dev(x, d.fn.reductions.mean(x)),
        d.fn.reductions.variance(x, d.fn.reductions.mean(x, axes=[1]), axes=[1], ddof=1),
        d.fn.reductions.rms(x, axes=[0]),
    ),
    "shapes": lambda d, x: (x.shape(), x.shape(dtype=d.types.INT32), x.property("layout")),
    "arithmetic": lambda d, x: (
        x + 1,
        x * 2.5,
        x / 3,
        x // 7,
        x & 15,
        x | 1,
        x ^ 3,
        x > 100,
        (x > 3) & (x < 9),
        255 - x,
    ),
    "functions": lambda d, x: (
        d.math.sqrt(x),
        d.math.log(x + 1),
        d.math.pow(x, 2),
        d.math.floor(x / 2.0),
        d.math.atan2(x, 3.0),
        d.math.clamp(x, 10, 20),
        d.math.tanh(x / 9),
    ),
    "subscripts": lambda d, x: (x[0], x[:, 1], x[2:9:2], x[:, :, 0], x[-1], x[:, -3:], x[3, 4, 1]),
    "permuted": lambda d, x: d.fn.permute_batch(x, indices=[3, 0, 0, 1]),
    "full": lambda d, x: (d.fn.full_like(x, 3), d.fn.zeros_like(x), d.fn.ones_like(x, dtype=d.types.FLOAT)),
    "python": lambda d, x: d.fn.python_function(x, function=lambda image: image[::-1].copy()),
    "pasted": lambda d, x: d.fn.multi_paste(
        x,
        in_ids=np.int32([0, 1]),
        output_size=[40, 50],
        in_anchors=np.int32([[1, 2], [3, 4]]),
        out_anchors=np.int32([[5, 6], [7, 8]]),
        shapes=np.int32([[6, 6], [7, 7]]),
    ),
    "equalize": lambda d, x: d.fn.experimental.equalize(x),
}
ON_AUDIO: dict[str, Any] = {
    "spectrogram": lambda d, x: d.fn.spectrogram(x, nfft=64, window_length=50, window_step=20),
    "mel": lambda d, x: d.fn.mel_filter_bank(
        d.fn.spectrogram(x, nfft=128, window_length=128), sample_rate=8000.0, nfilter=20
    ),
    "decibels": lambda d, x: d.fn.to_decibels(d.fn.spectrogram(x, nfft=64, window_length=64), cutoff_db=-60.0),
    "preemphasis": lambda d, x: d.fn.preemphasis_filter(x, preemph_coeff=0.9, border="zero"),
    "resampled": lambda d, x: d.fn.audio_resample(x, in_rate=8000, out_rate=6000, quality=40.0),
    "loud part": lambda d, x: tuple(d.fn.nonsilent_region(x, cutoff_db=-10.0, window_length=64)),
}
ON_BOXES: dict[str, Any] = {
    "flipped": lambda d, x: d.fn.bb_flip(x, ltrb=True, horizontal=1),
    "pasted": lambda d, x: d.fn.bbox_paste(x, ratio=2.0, paste_x=0.5, paste_y=0.2),
    "rotated": lambda d, x: d.fn.bbox_rotate(x, angle=30.0, input_shape=[100, 100], bbox_layout="xyXY"),
}
for _name, _function in ON_IMAGES.items():
    USUAL[f"images: {_name}"] = on(IMAGES, "HWC", _function)
for _name, _function in ON_AUDIO.items():
    USUAL[f"sounds: {_name}"] = on(RECORDINGS, None, _function)
for _name, _function in ON_BOXES.items():
    USUAL[f"boxes: {_name}"] = on(BOXES, None, _function)
for _type in ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32"):
    USUAL[f"arithmetic of {_type}"] = on(
        (IMAGES[:2, :3, :3, 0].astype(int) - 128 * (_type[0] != "u")).astype(_type) // 2,
        None,
        lambda d, x: (
            x + x,
            x * 2,
            x + 1.5,
            x / 2,
            x // 3,
            x - 7,
            x == 1,
            x < 2,
            d.math.abs(x),
            d.fn.reductions.sum(x),
        ),
    )


def program(function: Program) -> Program:
    USUAL[function.__name__] = function
    return function


@program
def matrices(dali):
    def pipeline():
        made = dali.fn.transforms
        moved, turned = made.translation(offset=(1, 2)), made.rotation(angle=30.0, center=(3, 4))
        scaled, sheared = made.scale(scale=(2, 3)), made.shear(angles=(10.0, 20.0))
        window = made.crop(from_start=(0.0, 0.0), from_end=(1.0, 1.0), to_start=(0.2, 0.3), to_end=(0.8, 0.5))
        return window, sheared, made.combine(moved, turned, scaled), made.combine(moved, turned, reverse_order=True)

    return run(dali, pipeline)


@program
def batch_numbers(dali):
    def pipeline():
        return dali.fn.external_source(source=lambda info: [np.int32(info.iteration)] * 2, batch_info=True)

    return run(dali, pipeline, runs=3, prefetch_queue_depth=1)


@program
def sample_numbers(dali):
    def numbers(info):
        return np.array([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])

    return run(dali, lambda: dali.fn.external_source(source=numbers, batch=False), runs=2, prefetch_queue_depth=1)


@program
def cycles(dali):
    def numbers():
        for number in range(3):
            yield [np.float32(number)] * 2

    made = dali.pipeline_def(lambda: dali.fn.external_source(source=numbers, cycle="quiet"))
    pipe = made(batch_size=2, num_threads=1, device_id=None)
    return [pipe.run()[0].as_array() for _ in range(5)]


@program
def ends(dali):
    source = [[np.int32(1)] * 2]
    made = dali.pipeline_def(lambda: dali.fn.external_source(source=source, cycle="raise"))
    pipe = made(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    found: list[Any] = []
    for _ in range(5):
        try:
            found.append(pipe.run()[0].as_array())
        except StopIteration:
            found.append("end")
            pipe.reset()
    return found


@program
def several_outputs(dali):
    def pipeline():
        return tuple(
            dali.fn.external_source(
                source=lambda: (np.ones((2, 3), np.float32), [np.zeros(2, np.int32)] * 2),
                num_outputs=2,
                layout=["W", "H"],
                dtype=[dali.types.FLOAT, dali.types.INT32],
            )
        )

    return run(dali, pipeline)


@program
def inputs_of_run(dali):
    made = dali.pipeline_def(lambda: dali.fn.external_source(name="x") * 2)
    pipe = made(batch_size=4, num_threads=1, device_id=None, prefetch_queue_depth=1)
    return [pipe.run(x=np.full((count, 2), count, np.int32))[0].as_array() for count in (1, 4, 2)]


@program
def conditions(dali):
    @dali.pipeline_def(enable_conditionals=True, batch_size=6, num_threads=1, device_id=None)
    def pipeline():
        x = dali.fn.external_source(source=lambda: np.arange(6, dtype=np.int32))
        if x > 3:
            y = x * 10
        elif x == 1:
            y = x * 0 - 1
        else:
            y = x + 100
            if not (x == 2 or x == 3) and x < 5:
                y = y + 1000
        return y

    return pipeline().run()


@program
def constants(dali):
    def pipeline():
        return (
            dali.types.Constant([1, 2, 3]),
            dali.types.Constant(1.5, dtype=dali.types.FLOAT16),
            dali.fn.constant(idata=[1, 2], dtype=dali.types.UINT8),
            dali.fn.constant(fdata=[1.5, 2], shape=[2, 1]),
            dali.fn.full(3, shape=[2]),
            dali.fn.zeros(shape=[2, 2], dtype=dali.types.INT8),
        )

    return run(dali, pipeline)


@program
def by_hand(dali):
    pipe = dali.pipeline_def(lambda: dali.fn.external_source(source=lambda number: np.full((2, 1), number, np.int32)))(
        batch_size=2, num_threads=1, device_id=None
    )
    pipe.build()
    pipe.schedule_run()
    first = np.array(pipe.share_outputs()[0].as_array())
    pipe.release_outputs()
    pipe.schedule_run()
    return first, pipe.outputs()


@program
def operators_as_objects(dali):
    class Photos(dali.Pipeline):
        def __init__(self):
            super().__init__(4, 1, None, seed=3)
            self.photos = dali.ops.ExternalSource(source=lambda: IMAGES, layout="HWC")
            self.resize = dali.ops.Resize(resize_x=4, resize_y=3, device="cpu")
            self.normalize = dali.ops.CropMirrorNormalize(crop=[2, 2], mean=[1.0, 2.0, 3.0])
            self.coin = dali.ops.random.CoinFlip(probability=1.0)

        def define_graph(self):
            photos = self.photos()
            return self.resize(photos), self.normalize(photos, mirror=self.coin())

    return Photos().run()


@program
def data_before_each_run(dali):
    class Numbers(dali.Pipeline):
        def __init__(self):
            super().__init__(2, 1, None)
            self.source = dali.ops.ExternalSource()
            self.number = 0

        def define_graph(self):
            self.node = self.source()
            return self.node

        def iter_setup(self):
            self.number += 1
            self.feed_input(self.node, [np.int32(self.number)] * 2)

    pipe = Numbers()
    pipe.build()
    return [pipe.run() for _ in range(3)]


@program
def lists_of_tensors(dali):
    found = dali.tensors.TensorListCPU(IMAGES, layout="HWC")
    one = dali.tensors.TensorCPU(IMAGES[0], "HWC")
    return (
        [len(found), found.shape(), found.layout(), str(found.dtype), found.is_dense_tensor()],
        [found.at(1), np.array(found[0]), found.as_array(), found.as_reshaped_tensor([4, 391, 3]).shape()],
        [one.shape(), one.layout(), str(one.dtype), str(one)],
    )


@program
def names_of_types(dali):
    types = dali.types
    return [
        str(types.FLOAT),
        repr(types.FLOAT),
        types.FLOAT.name,
        int(types.FLOAT),
        str(types.INTERP_LINEAR),
        str(types.RGB),
        types.to_numpy_type(types.INT16).__name__,
        str(types.DALIDataType(7)),
    ]
