"""Short programs like those in tutorials, training scripts and answers to questions.

As in `programs.py`, each takes the library and returns the compared values. Random numbers are not compared, only their
shapes and types: the libraries draw other numbers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.compatibility.programs import Program, on, run

PUBLISHED: dict[str, Program] = {}
_FOLDER = Path(tempfile.gettempdir()) / "dalify-published-programs"
_RANDOM = np.random.default_rng(5)
IMAGES = _RANDOM.integers(0, 256, (3, 20, 16, 3), dtype=np.uint8)
SEQUENCES = _RANDOM.integers(0, 256, (2, 3, 12, 10, 3), dtype=np.uint8)
AUDIO = (_RANDOM.random((2, 1600)) * 2 - 1).astype(np.float32)
NUMBERS = np.float32([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]])


def program(function: Program) -> Program:
    PUBLISHED[function.__name__.replace("_", " ")] = function
    return function


def each(prefix: str, data: Any, layout: str | None, functions: dict[str, Callable[[Any, Any], Any]]) -> None:
    """Add programs of one function of one external source."""
    for name, function in functions.items():
        PUBLISHED[f"{prefix}: {name}"] = on(data, layout, unpacked(function))


def unpacked(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a list of outputs as a tuple."""

    def made(dali: Any, x: Any) -> Any:
        found = function(dali, x)
        return tuple(found) if isinstance(found, list) else found

    return made


def made(prefix: str, functions: dict[str, Callable[[Any], Any]], **options: Any) -> None:
    """Add programs of one function without data."""
    for name, function in functions.items():
        PUBLISHED[f"{prefix}: {name}"] = lambda dali, function=function: run(dali, lambda: function(dali), **options)


def plainly(prefix: str, functions: dict[str, Program]) -> None:
    PUBLISHED.update({f"{prefix}: {name}": function for name, function in functions.items()})


def facts(*outputs: Any) -> Any:
    """Return what can be compared of random outputs: types, layouts, shapes."""
    return [(str(output.dtype), output.layout(), [tuple(shape) for shape in output.shape()]) for output in outputs]


# -- the classes of `ops` ----------------------------------------------------------------------------------------------

each(
    "ops",
    IMAGES,
    "HWC",
    {
        "resize": lambda d, x: d.ops.Resize(resize_x=8, resize_y=10, interp_type=d.types.INTERP_TRIANGULAR)(x),
        "crop": lambda d, x: d.ops.Crop(crop=(6, 7), crop_pos_x=0.25)(x),
        "crop by argument": lambda d, x: d.ops.Crop(crop=(6, 7))(x, crop_pos_x=1.0, crop_pos_y=0.0),
        "normalize a crop": lambda d, x: d.ops.CropMirrorNormalize(
            dtype=d.types.FLOAT,
            output_layout="CHW",
            crop=(8, 8),
            mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
            std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        )(x),
        "normalize to NHWC": lambda d, x: d.ops.CropMirrorNormalize(
            device="cpu", dtype=d.types.FLOAT16, output_layout=d.types.NHWC, mean=128.0, std=64.0
        )(x, mirror=1),
        "flip": lambda d, x: d.ops.Flip(vertical=1, horizontal=0)(x),
        "rotate": lambda d, x: d.ops.Rotate(angle=30.0, fill_value=0, interp_type=d.types.INTERP_LINEAR)(x),
        "cast": lambda d, x: d.ops.Cast(dtype=d.types.INT16)(x),
        "brightness": lambda d, x: d.ops.Brightness(brightness=1.5)(x),
        "contrast": lambda d, x: d.ops.Contrast(contrast=0.5)(x),
        "brightness and contrast": lambda d, x: d.ops.BrightnessContrast()(x, brightness=1.1, contrast=0.8),
        "hue": lambda d, x: d.ops.Hue(hue=30.0)(x),
        "saturation": lambda d, x: d.ops.Saturation(saturation=0.3)(x),
        "hsv": lambda d, x: d.ops.Hsv(hue=10, saturation=1.2, value=0.9)(x),
        "color twist": lambda d, x: d.ops.ColorTwist(hue=10, saturation=1.2, contrast=0.9, brightness=1.1)(x),
        "color space": lambda d, x: d.ops.ColorSpaceConversion(image_type=d.types.RGB, output_type=d.types.GRAY)(x),
        "warp": lambda d, x: d.ops.WarpAffine(matrix=(1.0, 0.2, 0.0, 0.1, 1.0, 0.0), fill_value=0)(x),
        "paste": lambda d, x: d.ops.Paste(fill_value=(69, 82, 110), ratio=1.25)(x),
        "sphere": lambda d, x: d.ops.Sphere(fill_value=3.0)(x),
        "water": lambda d, x: d.ops.Water(ampl_x=2.0, ampl_y=3.0)(x),
        "jpeg distortion shape": lambda d, x: d.fn.shapes(d.ops.JpegCompressionDistortion(quality=20)(x)),
        "gaussian blur": lambda d, x: d.ops.GaussianBlur(sigma=1.5)(x),
        "erase": lambda d, x: d.ops.Erase(anchor=[1, 2], shape=[3, 4], axis_names="HW")(x),
        "pad": lambda d, x: d.ops.Pad(axes=(0,), shape=(25,), fill_value=-1)(d.ops.Cast(dtype=d.types.INT32)(x)),
        "reshape": lambda d, x: d.ops.Reshape(shape=(16, 60), layout="AB")(x),
        "transpose": lambda d, x: d.ops.Transpose(perm=[2, 0, 1])(x),
        "slice": lambda d, x: d.ops.Slice(axes=[0, 1])(x, np.float32([0.1, 0.2]), np.float32([0.5, 0.5])),
        "element": lambda d, x: d.ops.Reinterpret(dtype=d.types.INT8)(x),
        "copy": lambda d, x: d.ops.Copy()(x),
        "shapes": lambda d, x: d.ops.Shapes(dtype=d.types.INT32)(x),
        "resize crop mirror": lambda d, x: d.ops.ResizeCropMirror(resize_shorter=12, crop=(8, 8))(x, mirror=1),
        "normalize": lambda d, x: d.ops.Normalize(axes=[0, 1])(x),
        "sum": lambda d, x: d.ops.reductions.Sum(axes=[0, 1], dtype=d.types.FLOAT)(x),
        "mean": lambda d, x: d.ops.reductions.Mean(axis_names="HW")(x),
        "stack": lambda d, x: d.ops.Stack(axis=0, axis_name="N")(x, x),
        "cat": lambda d, x: d.ops.Cat(axis_name="W")(x, x),
        "constant": lambda d, x: d.ops.Constant(idata=[1, 2, 3])(),
        "lookup": lambda d, x: d.ops.LookupTable(keys=[0, 1], values=[5.0, 6.0], default_value=1.0)(x),
        "one hot": lambda d, x: d.ops.OneHot(num_classes=4)(d.fn.cast(x[0, 0, 0] // 64, dtype=d.types.INT32)),
        "python": lambda d, x: d.ops.PythonFunction(function=lambda image: image[::2])(x),
        "python twice": lambda d, x: d.ops.PythonFunction(lambda a, b: (a + b, a - b), num_outputs=2)(x, x),
        "spatial keyword": lambda d, x: d.ops.Resize(size=(5, 6), device="cpu", name="resized", preserve=True)(x),
    },
)

# -- images: what augmentations look like ------------------------------------------------------------------------------

each(
    "augmentation",
    IMAGES,
    "HWC",
    {
        "three tricks": lambda d, x: d.fn.flip(d.fn.rotate(d.fn.crop(x, crop=(12, 12)), angle=90), horizontal=1),
        "gray as three channels": lambda d, x: d.fn.color_space_conversion(
            d.fn.color_space_conversion(x, image_type=d.types.RGB, output_type=d.types.GRAY),
            image_type=d.types.GRAY,
            output_type=d.types.RGB,
        ),
        "BGR": lambda d, x: d.fn.color_space_conversion(x, image_type=d.types.RGB, output_type=d.types.BGR),
        "YCbCr back": lambda d, x: d.fn.color_space_conversion(x, image_type=d.types.YCbCr, output_type=d.types.RGB),
        "solarize": lambda d, x: d.math.min(x, 255 - x),
        "invert": lambda d, x: 255 - x,
        "posterize": lambda d, x: x & 0b11110000,
        "threshold": lambda d, x: d.fn.cast((x > 128) * 255, dtype=d.types.UINT8),
        "to fractions": lambda d, x: d.fn.cast(x, dtype=d.types.FLOAT) / 255.0,
        "to minus one and one": lambda d, x: x / 127.5 - 1.0,
        "channels first": lambda d, x: d.fn.transpose(x, perm=[2, 0, 1]),
        "channels first with layout": lambda d, x: d.fn.transpose(x, perm=[2, 0, 1], transpose_layout=True),
        "channels first, another layout": lambda d, x: d.fn.transpose(x, perm=[2, 0, 1], output_layout="CHW"),
        "channels first without layout": lambda d, x: d.fn.transpose(x, perm=[2, 0, 1], transpose_layout=False),
        "one channel": lambda d, x: x[:, :, 0],
        "one channel kept": lambda d, x: x[:, :, 1:2],
        "center": lambda d, x: x[5:15, 4:12],
        "every second row": lambda d, x: d.fn.python_function(x, function=lambda image: image[::2]),
        "blend": lambda d, x: d.fn.cast_like(x * 0.5 + d.fn.flip(x) * 0.5, x),
        "mix of permuted": lambda d, x: 0.3 * x + 0.7 * d.fn.permute_batch(x, indices=[2, 0, 1]),
        "cut out": lambda d, x: d.fn.erase(
            x, anchor=(0.25, 0.25), shape=(0.5, 0.5), normalized=True, axes=(0, 1), fill_value=127
        ),
        "cut out channels": lambda d, x: d.fn.erase(x, anchor=(4, 4), shape=(5, 5), fill_value=(1, 2, 3)),
        "grid mask": lambda d, x: d.fn.grid_mask(x, tile=6, ratio=0.4, angle=0.3),
        "matrix of transforms": lambda d, x: d.fn.warp_affine(
            x, matrix=d.fn.transforms.rotation(angle=20.0, center=(8, 10)), fill_value=0, inverse_map=False
        ),
        "matrix of several": lambda d, x: d.fn.warp_affine(
            x,
            d.fn.transforms.combine(
                d.fn.transforms.scale(scale=(0.8, 1.2)), d.fn.transforms.translation(offset=(2.0, 1.0))
            ),
            size=(18, 14),
            interp_type=d.types.INTERP_NN,
        ),
        "shear": lambda d, x: d.fn.warp_affine(x, d.fn.transforms.shear(angles=(10.0, 5.0)), inverse_map=False),
        "rotated without fill": lambda d, x: d.fn.rotate(x, angle=15.0),
        "rotated to a size": lambda d, x: d.fn.rotate(x, angle=-33.0, size=(20, 20), fill_value=9),
        "letterbox": lambda d, x: d.fn.pad(
            d.fn.resize(x, size=(18, 18), mode="not_larger"), axis_names="HW", shape=(18, 18), fill_value=114
        ),
        "letterbox, centered": lambda d, x: d.fn.crop(
            d.fn.resize(x, size=(18, 18), mode="not_larger"), crop=(18, 18), out_of_bounds_policy="pad", fill_values=7
        ),
        "resize and its shape": lambda d, x: d.fn.resize(x, size=(9, 7), save_attrs=True),
        "resize longer": lambda d, x: d.fn.resize(x, resize_longer=10),
        "resize to a fraction": lambda d, x: d.fn.resize(
            x, size=d.fn.cast(x.shape()[:2], dtype=d.types.FLOAT) * 0.5, interp_type=d.types.INTERP_LINEAR
        ),
        "resize, no antialiasing": lambda d, x: d.fn.resize(x, size=(6, 5), antialias=False),
        "resize, cubic": lambda d, x: d.fn.resize(x, size=(30, 31), interp_type=d.types.INTERP_CUBIC),
        "resize, min and mag filters": lambda d, x: d.fn.resize(
            x, size=(30, 8), mag_filter=d.types.INTERP_NN, min_filter=d.types.INTERP_LINEAR
        ),
        "resize with subpixel scale": lambda d, x: d.fn.resize(x, resize_x=7, subpixel_scale=False),
        "random crop as crop": lambda d, x: d.fn.crop(
            x, crop_w=7, crop_h=9, crop_pos_x=d.types.Constant(0.3), crop_pos_y=d.types.Constant(0.8)
        ),
        "normalize whole": lambda d, x: d.fn.normalize(x, axis_names="HW", dtype=d.types.FLOAT),
        "normalize by numbers": lambda d, x: d.fn.normalize(x, mean=np.float32([[[1, 2, 3]]]), stddev=2.0, axes=[0, 1]),
        "normalize to bytes": lambda d, x: d.fn.normalize(x, shift=128.0, scale=32.0, dtype=d.types.UINT8),
        "normalize batch": lambda d, x: d.fn.normalize(x, batch=True, axes=[0, 1]),
        "emboss": lambda d, x: d.fn.experimental.filter(
            x, np.float32([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]), border="101"
        ),
        "laplacian": lambda d, x: d.fn.laplacian(x, window_size=3, smoothing_size=1, normalized_kernel=True),
        "blur one axis": lambda d, x: d.fn.gaussian_blur(x, sigma=(0.5, 2.0)),
        "coordinates": lambda d, x: d.fn.coord_flip(
            d.types.Constant(np.float32([[0.2, 0.3]]), device="cpu"), layout="xy", flip_y=1
        ),
        "boxes flipped": lambda d, x: d.fn.bb_flip(
            d.types.Constant(np.float32([[0.1, 0.2, 0.5, 0.9]]), device="cpu"), ltrb=True, horizontal=1
        ),
        "points": lambda d, x: d.fn.coord_transform(
            d.types.Constant(np.float32([[1, 2], [3, 4]]), device="cpu"), M=(0.0, 1.0, -1.0, 0.0), T=(1.0, 2.0)
        ),
        "dims added": lambda d, x: d.fn.expand_dims(x, axes=0, new_axis_names="F"),
        "dims removed": lambda d, x: d.fn.squeeze(d.fn.expand_dims(x, axes=[0, 2]), axes=[0, 2]),
        "reshaped": lambda d, x: d.fn.reshape(x, shape=[-1, 3]),
        "reshaped by fractions": lambda d, x: d.fn.reshape(x, rel_shape=[0.5, 2, 1]),
        "layout changed": lambda d, x: d.fn.reshape(x, layout="ABC"),
        "layout removed": lambda d, x: d.fn.reshape(x, layout=""),
        "bytes as words": lambda d, x: d.fn.reinterpret(x[:, :, :2], dtype=d.types.UINT16),
        "flattened": lambda d, x: d.fn.reshape(x, shape=[-1]),
        "statistics": lambda d, x: (
            d.fn.reductions.mean(x),
            d.fn.reductions.std_dev(x, d.fn.reductions.mean(x)),
            d.fn.reductions.variance(x, d.fn.reductions.mean(x)),
            d.fn.reductions.min(x, axes=(0, 1)),
            d.fn.reductions.max(x, axes=2, keep_dims=True),
            d.fn.reductions.rms(x, axis_names="C"),
            d.fn.reductions.mean_square(x),
        ),
        "shape": lambda d, x: (x.shape(), x.shape(dtype=d.types.INT32), (x.shape()[0] - 4) / 2),
        "zeros like": lambda d, x: (d.fn.zeros_like(x), d.fn.ones_like(x, dtype=d.types.FLOAT), d.fn.full_like(x, 7)),
        "two crops": lambda d, x: tuple(d.fn.crop(x, crop=(n, n)) for n in (4, 8)),
        "several crops": lambda d, x: d.fn.stack(*(d.fn.crop(x, crop=(4, 4), crop_pos_x=p) for p in (0.0, 0.5, 1.0))),
        "mosaic": lambda d, x: d.fn.cat(d.fn.cat(x, x, axis=1), d.fn.cat(x, x, axis=1), axis=0),
        "masked": lambda d, x: d.fn.cast(x, dtype=d.types.INT32) * (x > 100),
    },
)
each(
    "sequence",
    SEQUENCES,
    "FHWC",
    {
        "resized": lambda d, x: d.fn.resize(x, size=(6, 5)),
        "cropped": lambda d, x: d.fn.crop(x, crop=(6, 6)),
        "normalized": lambda d, x: d.fn.crop_mirror_normalize(
            x, crop=(6, 6), output_layout="FCHW", mean=[1.0, 2.0, 3.0]
        ),
        "to CFHW": lambda d, x: d.fn.crop_mirror_normalize(x, output_layout="CFHW", dtype=d.types.FLOAT),
        "flipped": lambda d, x: d.fn.flip(x),
        "reordered": lambda d, x: d.fn.sequence_rearrange(x, new_order=[2, 0, 0]),
        "first frame": lambda d, x: x[0],
        "frames": lambda d, x: d.fn.element_extract(x, element_map=[0, 2]),
        "difference": lambda d, x: d.fn.cast(x[1:], dtype=d.types.INT16) - d.fn.cast(x[:-1], dtype=d.types.INT16),
        "rotated by frame": lambda d, x: d.fn.rotate(
            x, angle=d.fn.per_frame(d.types.Constant(np.float32([0, 10, 20]), device="cpu")), keep_size=True
        ),
        "blurred by frame": lambda d, x: d.fn.gaussian_blur(
            x, sigma=d.fn.per_frame(d.types.Constant(np.float32([0.5, 1.0, 2.0]), device="cpu"))
        ),
        "mean of frames": lambda d, x: d.fn.reductions.mean(x, axis_names="F"),
    },
)

each(
    "audio",
    AUDIO,
    None,
    {
        "spectrogram, magnitudes": lambda d, x: d.fn.spectrogram(
            x, nfft=128, window_length=100, power=1, center_windows=False
        ),
        "spectrogram, own window": lambda d, x: d.fn.spectrogram(
            x, nfft=64, window_length=64, window_step=16, window_fn=np.hanning(64).astype(np.float32).tolist()
        ),
        "spectrogram, time first": lambda d, x: d.fn.spectrogram(x, nfft=64, window_length=64, layout="tf"),
        "mel, HTK": lambda d, x: d.fn.mel_filter_bank(
            d.fn.spectrogram(x, nfft=128, window_length=128, window_step=64),
            sample_rate=8000,
            nfilter=12,
            freq_high=3000.0,
            mel_formula="htk",
            normalize=False,
        ),
        "mfcc": lambda d, x: d.fn.mfcc(
            d.fn.to_decibels(
                d.fn.mel_filter_bank(d.fn.spectrogram(x, nfft=128, window_length=128), sample_rate=16000, nfilter=20),
                cutoff_db=-60,
            ),
            n_mfcc=12,
            lifter=22.0,
        ),
        "preemphasis": lambda d, x: d.fn.preemphasis_filter(x, preemph_coeff=0.9, border="reflect"),
        "nonsilent": lambda d, x: d.fn.nonsilent_region(x, cutoff_db=-10, window_length=128),
        "trimmed": lambda d, x: d.fn.slice(x, *d.fn.nonsilent_region(x, cutoff_db=-20), axes=[0]),
        "resampled": lambda d, x: d.fn.audio_resample(x, scale=1.25, quality=80),
        "resampled to a length": lambda d, x: d.fn.audio_resample(x, out_length=1000),
        "padded": lambda d, x: d.fn.pad(x, axes=(0,), align=512),
        "ops": lambda d, x: d.ops.ToDecibels(reference=2.0)(d.ops.Spectrogram(nfft=64, window_length=64)(x)),
    },
)

_UNARY = "sqrt rsqrt cbrt exp log log2 log10 abs fabs floor ceil sin cos tan asin acos atan sinh cosh tanh asinh atanh"
made(
    "math",
    {
        name: lambda d, name=name: getattr(d.math, name)(d.types.Constant(np.float32([0.25, 0.5, 0.75]), device="cpu"))
        for name in _UNARY.split()
    },
)
each(
    "arithmetic",
    NUMBERS,
    None,
    {
        "power": lambda d, x: x**2,
        "powers of integers": lambda d, x: d.fn.cast(x, dtype=d.types.INT32) ** 3,
        "minimum and maximum": lambda d, x: (d.math.min(x, 1), d.math.max(x, 0.5), d.math.clamp(x, -1.0, 2.0)),
        "signs": lambda d, x: (-x, +x),
        "reversed": lambda d, x: (1 - x, 2 / (x + 10), 3 // d.fn.cast(x + 5, dtype=d.types.INT32)),
        "bits": lambda d, x: (d.fn.cast(x, dtype=d.types.INT32) | 5) ^ (d.fn.cast(x, dtype=d.types.INT32) & 3),
        "comparisons": lambda d, x: (x == 1.5, x != 1.5, x <= 0, x >= 0, (x > 0) & (x < 2), (x < 0) | (x > 3)),
        "typed constant": lambda d, x: x + d.types.Constant(1).uint8(),
        "list constant": lambda d, x: x * d.types.Constant([1.0, 2.0, 3.0], device="cpu"),
        "NumPy": lambda d, x: (x + np.float32([1, 2, 3]), x * np.float32(2)),
        "broadcast": lambda d, x: d.fn.expand_dims(x, axes=0) + d.fn.expand_dims(x, axes=1),
        "scaled by samples": lambda d, x: x / d.fn.reductions.max(d.math.abs(x), keep_dims=True),
        "index by a node": lambda d, x: x[d.fn.cast(x[0] > 1, dtype=d.types.INT32)],
        "slice by a node": lambda d, x: x[d.fn.cast(x[0] > 1, dtype=d.types.INT32) :],
        "last": lambda d, x: (x[-1], x[-2:], x[:-1], x[1:2]),
        "types": lambda d, x: tuple(
            d.fn.cast(x, dtype=dtype)
            for dtype in (d.types.UINT8, d.types.INT8, d.types.INT64, d.types.FLOAT16, d.types.BOOL, d.types.FLOAT64)
        ),
        "cast like": lambda d, x: d.fn.cast_like(x, np.uint8(0)),
    },
)

plainly(
    "types",
    {
        "interpolations": lambda d: [(str(kind), int(kind)) for kind in (d.types.INTERP_NN, d.types.INTERP_GAUSSIAN)],
        "members": lambda d: [
            d.types.DALIInterpType.INTERP_LINEAR == d.types.INTERP_LINEAR,
            d.types.DALIDataType.FLOAT == d.types.FLOAT,
            d.types.FLOAT != d.types.INT32,
        ],
        "names": lambda d: [
            getattr(d.types, name).name for name in ["UINT8", "INT8", "UINT16", "INT32", "FLOAT16", "BOOL"]
        ],
        "values": lambda d: [
            getattr(d.types, name).value for name in ["UINT8", "INT64", "FLOAT64", "RGB", "GRAY", "BGR"]
        ],
        "hashable": lambda d: len({d.types.FLOAT, d.types.FLOAT, d.types.INT8}),
        "from numbers": lambda d: [d.types.DALIDataType(9).name, d.types.DALIImageType(2).name],
        "to NumPy": lambda d: [
            np.dtype(d.types.to_numpy_type(kind)).name for kind in (d.types.UINT8, d.types.FLOAT16, d.types.BOOL)
        ],
        "layouts": lambda d: [str(d.types.NCHW), str(d.types.NHWC), str(d.types.NFHWC)],
        "scalar constants": lambda d: [str(d.types.Constant(3)), d.types.Constant(2.5).value],
        "python values": lambda d: [isinstance(d.types.ScalarConstant(3), d.types.ScalarConstant)],
    },
)
made(
    "constants",
    {
        "scalars": lambda d: tuple(d.types.Constant(value, device="cpu") for value in (3, 0.5, True, np.uint8(4))),
        "lists": lambda d: tuple(d.types.Constant(value, device="cpu") for value in ([1, 2, 3], [1.5, 2])),
        "array": lambda d: d.types.Constant(np.arange(6, dtype=np.int16).reshape(2, 3), device="cpu", layout="AB"),
        "with a type": lambda d: d.types.Constant([1, 2], dtype=d.types.UINT8, device="cpu"),
        "with a shape": lambda d: d.types.Constant(7, shape=[2, 2], dtype=d.types.INT32, device="cpu"),
        "of fn": lambda d: d.fn.constant(idata=[1, 2, 3, 4], shape=[2, 2], layout="HW", dtype=d.types.UINT8),
        "zeros and ones": lambda d: (d.fn.zeros(shape=[2]), d.fn.ones(shape=2, dtype=d.types.FLOAT)),
        "full": lambda d: d.fn.full(np.float32([1, 2]), shape=[3, 2]),
    },
)


def drawn(function: Callable[[Any], Any]) -> Program:
    return lambda dali: facts(*run(dali, lambda: function(dali), 3, seed=7))


plainly(
    "random",
    {
        "uniform": drawn(lambda d: d.fn.random.uniform(range=(0.0, 1.0))),
        "uniform integers": drawn(lambda d: d.fn.random.uniform(range=[0, 9], dtype=d.types.INT32, shape=[3])),
        "values": drawn(lambda d: d.fn.random.uniform(values=[1.0, 2.0, 5.0])),
        "normal": drawn(lambda d: d.fn.random.normal(mean=1.0, stddev=3.0, shape=(2, 3))),
        "normal like": drawn(lambda d: d.fn.random.normal(d.fn.zeros(shape=[4, 2]))),
        "coin": drawn(lambda d: d.fn.random.coin_flip(probability=0.3)),
        "coins as truths": drawn(lambda d: d.fn.random.coin_flip(dtype=d.types.BOOL, shape=[5])),
        "beta": drawn(lambda d: d.fn.random.beta(alpha=2.0, beta=3.0)),
        "choice": drawn(lambda d: d.fn.random.choice([3, 4, 5], p=[0.2, 0.3, 0.5], shape=[2])),
        "choice of rows": drawn(lambda d: d.fn.random.choice(np.float32([[1, 2], [3, 4]]))),
        "old uniform": drawn(lambda d: d.ops.random.Uniform(range=(0.0, 2.0))()),
        "permutation": drawn(lambda d: d.fn.batch_permutation()),
        "sure coins": lambda d: run(
            d, lambda: tuple(d.fn.random.coin_flip(probability=p) for p in (2.0, -1.0, float("inf"), 1.0001)), 3
        ),
        "sure coin": lambda d: run(d, lambda: d.fn.random.coin_flip(probability=1.0) * 2 + 1, 3),
        "one value": lambda d: run(d, lambda: d.fn.random.uniform(values=[4.0]), 3),
    },
)
for _name, _function in {
    "crop": lambda d, x: d.fn.random_resized_crop(x, size=(5, 6)),
    "crop of ops": lambda d, x: d.ops.RandomResizedCrop(size=7, random_area=[0.3, 0.9])(x),
    "noise": lambda d, x: d.fn.noise.gaussian(x, stddev=3.0),
    "salt": lambda d, x: d.fn.noise.salt_and_pepper(x, prob=0.2),
    "shot": lambda d, x: d.fn.noise.shot(x, factor=2.0),
    "flip": lambda d, x: d.fn.flip(x, horizontal=d.fn.random.coin_flip()),
    "angle": lambda d, x: d.fn.rotate(x, angle=d.fn.random.uniform(range=(-10.0, 10.0)), keep_size=True),
    "color": lambda d, x: d.fn.color_twist(x, hue=d.fn.random.uniform(range=(-5.0, 5.0))),
    "normalize": lambda d, x: d.fn.crop_mirror_normalize(
        x, crop=(6, 6), crop_pos_x=d.fn.random.uniform(range=(0, 1)), mirror=d.fn.random.coin_flip()
    ),
}.items():
    PUBLISHED[f"random {_name}"] = lambda d, function=_function: facts(*on(IMAGES, "HWC", function)(d))
