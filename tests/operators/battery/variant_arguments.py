"""Arguments that only one operator knows, tried beside its typical ones: the table behind `variants`.

Each entry changes the operator's case: arguments by name, `GONE` for one that is left out, ``inputs`` for other data,
``only=True`` to leave out all typical arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify import types
from tests.operators.battery import cases
from tests.operators.battery.cases import ANGLES, FACTORS, FLOATS, LABELS, PHOTOS, SIGNS, VIDEO, Data, Each

__all__ = ["ARGUMENTS", "GONE"]

GONE: Any = object()

Changes = dict[str, dict[str, Any]]


def _each(values: list[Any], dtype: Any = np.float32) -> Each:
    return Each([np.asarray(value, dtype) for value in values])


def _dtypes(*names: str) -> Changes:
    """The result in other types."""
    return {f"dtype={name}": {"dtype": getattr(types, name)} for name in names or ("FLOAT", "INT16", "FLOAT16")}


def _options(name: str, *values: Any) -> Changes:
    return {f"{name}={value}": {name: value} for value in values}


PLANES = Data([np.ascontiguousarray(photo.transpose(2, 0, 1)) for photo in PHOTOS.samples], "CHW")
IMAGE_FLOATS = Data([photo.astype(np.float32) * 1.25 - 30 for photo in PHOTOS.samples], "HWC")
VOLUMES = Data(
    [np.ascontiguousarray(np.stack([p, p[::-1], p[:, ::-1], p // 2])[..., :2]) for p in PHOTOS.samples], "DHWC"
)

_FILTERS: Changes = {
    f"interp_type={name}": {"interp_type": getattr(types, f"INTERP_{name}")}
    for name in ("NN", "LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "GAUSSIAN")
}
_PLAIN_FILTERS: Changes = {name: change for name, change in _FILTERS.items() if name[12:] in ("NN", "LINEAR", "CUBIC")}
_RESIZES: Changes = {
    **_FILTERS,
    **_dtypes("FLOAT", "UINT8"),
    "larger": {"size": [61, 90]},
    "larger, cubic": {"size": [61, 90], "interp_type": types.INTERP_CUBIC},
    "larger, nearest": {"size": [61, 90], "interp_type": types.INTERP_NN},
    "to one pixel": {"size": [1, 1]},
    "one size": {"size": 17},
    "not antialiased": {"size": [9, 11], "antialias": False},
    "not antialiased, cubic": {"size": [9, 11], "antialias": False, "interp_type": types.INTERP_CUBIC},
    "not antialiased, lanczos": {"size": [9, 11], "antialias": False, "interp_type": types.INTERP_LANCZOS3},
    "mirrored": {"size": [-20, 31]},
    "not_larger": {"mode": "not_larger", "size": [20, 20]},
    "not_smaller": {"mode": "not_smaller", "size": [20, 20]},
    "stretch": {"mode": "stretch", "size": [0, 20]},
    "missing extent": {"size": [0, 20]},
    "resize_shorter": {"size": GONE, "resize_shorter": 13.0},
    "resize_longer": {"size": GONE, "resize_longer": _each([13, 50, 20, 20, 20, 40])},
    "resize_x": {"size": GONE, "resize_x": 13.0},
    "resize_x, resize_y": {"size": GONE, "resize_x": 13.0, "resize_y": 40.0},
    "max_size": {"size": GONE, "resize_shorter": 30.0, "max_size": 33.0},
    "fractions": {"size": [20.4, 31.6]},
    "region": {"roi_start": [2.5, 3.0], "roi_end": [20.0, 18.5]},
    "relative region": {"roi_start": [0.1, 0.2], "roi_end": [0.7, 0.9], "roi_relative": True},
    "mirrored region": {"roi_start": [0.7, 0.2], "roi_end": [0.1, 0.9], "roi_relative": True},
    "min and mag": {"size": [20, 90], "min_filter": types.INTERP_CUBIC, "mag_filter": types.INTERP_NN},
    "not subpixel": {"size": GONE, "resize_shorter": 13.0, "subpixel_scale": False},
    "per sample": {"size": _each([[10, 12], [10, 12], [1, 1], [1, 1], [2, 2], [40, 3]])},
    "save_attrs": {"save_attrs": True},
    "floats, cubic": {"inputs": (IMAGE_FLOATS,), "interp_type": types.INTERP_CUBIC},
    "volumes": {"inputs": (VOLUMES,), "size": [3, 20, 30]},
    "volumes, cubic": {"inputs": (VOLUMES,), "size": [7, 20, 30], "interp_type": types.INTERP_CUBIC},
}
_COLOURS = _dtypes("UINT8", "FLOAT", "INT16", "FLOAT16", "INT32", "INT8", "UINT16")
_FLOATS_IN: Changes = {"floats to bytes": {"inputs": (IMAGE_FLOATS,), "dtype": types.UINT8}}
_CROPS: Changes = {
    "no window": {"crop": GONE},
    "crop_h, crop_w": {"crop": GONE, "crop_h": 11.0, "crop_w": 13.0},
    "crop_w": {"crop": GONE, "crop_w": 13.0},
    "per sample": {"crop": _each([[10, 12], [10, 12], [1, 1], [1, 1], [2, 2], [30, 3]])},
    "truncate": {"rounding": "truncate", "crop_pos_x": 0.3, "crop_pos_y": 0.3},
    "round": {"rounding": "round", "crop_pos_x": 0.3, "crop_pos_y": 0.3},
    "too large": {"crop": [40, 40]},
    "pad": {"crop": [40, 30], "out_of_bounds_policy": "pad", "fill_values": [1.0, 2.0, 3.0]},
    "pad, one value": {"crop": [40, 30], "out_of_bounds_policy": "pad", "fill_values": 7.0},
    "pad, fraction": {"crop": [40, 30], "out_of_bounds_policy": "pad", "fill_values": 2.6},
    "pad, beyond": {"crop": [40, 30], "out_of_bounds_policy": "pad", "fill_values": 300.0, "dtype": types.UINT8},
    "trim": {"crop": [40, 30], "out_of_bounds_policy": "trim_to_shape"},
    "position out of range": {"crop_pos_x": 1.5},
    "nothing": {"crop": [0, 10]},
}
_REDUCED: Changes = {
    "all": {"only": True},
    "axes=0": {"only": True, "axes": 0},
    "axes=-1": {"only": True, "axes": -1},
    "axes=[0, 2]": {"only": True, "axes": [0, 2]},
    "axes=[1, 2]": {"only": True, "axes": [1, 2]},
    "no axes": {"only": True, "axes": []},
    "axis_names=C": {"only": True, "axis_names": "C"},
    "axis_names=HWC": {"only": True, "axis_names": "HWC"},
    "keep_dims": {"only": True, "axes": [1], "keep_dims": True},
    "axis out of range": {"only": True, "axes": [3]},
    "repeated axis": {"only": True, "axes": [0, 0]},
}
_DISTANCES: Changes = {
    "relative": {"normalized_anchor": True, "normalized_shape": True, "anchor": [0.1, 0.2], "shape": [0.3, 0.4]},
}
_WARPS: Changes = {
    **_PLAIN_FILTERS,
    **_dtypes("FLOAT", "UINT8", "INT16"),
    "border repeated": {"fill_value": GONE},
    "border repeated, nearest": {"fill_value": GONE, "interp_type": types.INTERP_NN},
    "size": {"size": [31.0, 17.0]},
    "size per sample": {"size": _each([[10, 12], [10, 12], [1, 1], [1, 1], [2, 2], [40, 3]])},
    "inverse_map=False": {"inverse_map": False},
}
_MASKED: Changes = {
    **_PLAIN_FILTERS,
    "no mask": {"mask": GONE},
    "masked out": {"mask": 0},
    "fill_value": {"fill_value": 200.0},
    "fraction": {"fill_value": 2.6},
    "beyond": {"fill_value": 300.0},
}
_FILLS: Changes = {f"dtype={name}": {"dtype": getattr(types, name)} for name in ("UINT8", "INT64", "FLOAT16", "BOOL")}

ARGUMENTS: dict[str, Changes] = {
    # decoders
    "decoders.image": {
        "GRAY": {"output_type": types.GRAY},
        "BGR": {"output_type": types.BGR},
        "YCbCr": {"output_type": types.YCbCr},
        "ANY_DATA": {"output_type": types.ANY_DATA},
        "png": {"inputs": (cases.PNGS,)},
        "png, gray": {"inputs": (cases.PNGS,), "output_type": types.GRAY},
        "bmp": {"inputs": (cases._encoded(".bmp"),)},
        "tiff": {"inputs": (cases._encoded(".tiff"),)},
        "webp": {"inputs": (cases._encoded(".webp"),)},
        "ppm": {"inputs": (cases._encoded(".ppm"),)},
    },
    "decoders.image_crop": {
        "no window": {"crop": GONE},
        "position": {"crop_pos_x": 0.1, "crop_pos_y": _each([0, 0.2, 0.5, 0.7, 1, 0.5])},
        "too large": {"crop": [200, 300]},
        "gray": {"output_type": types.GRAY},
        "crop_w": {"crop": GONE, "crop_w": 13.0},
    },
    "decoders.image_slice": {
        "start, end": {"only": True, "start": [2, 3], "end": [12, 33]},
        "start, shape": {"only": True, "start": [2, 3], "shape": [12, 20]},
        "too large": {"rel_start": [0.5, 0.5], "rel_end": [1.5, 1.2]},
        "gray": {"output_type": types.GRAY},
        "WH": {"axis_names": "WH"},
    },
    # audio
    "decoders.audio": {
        "downmix": {"downmix": True},
        **_dtypes("INT16", "INT32", "FLOAT"),
        "sample_rate": {"sample_rate": 8000.0},
        "quality": {"sample_rate": 11025.0, "quality": 10.0},
    },
    "audio_resample": {
        "scale": {"only": True, "scale": 0.5},
        "out_length": {"only": True, "out_length": 1234},
        "up": {"in_rate": 8000.0, "out_rate": 11025.0},
        **_options("quality", 0.0, 10.0, 100.0),
        **_dtypes("INT16", "FLOAT", "UINT8", "INT32"),
        "per sample": {"in_rate": GONE, "out_rate": GONE, "scale": _each([0.5, 0.7, 1, 1, 1, 1.5])},
    },
    "mel_filter_bank": {
        "htk": {"mel_formula": "htk"},
        "not normalized": {"normalize": False},
        "band": {"freq_low": 300.0, "freq_high": 6000.0},
        "default": {"only": True},
    },
    "mfcc": {
        **{f"dct_type={number}": {"dct_type": number, "lifter": 0.0} for number in (1, 2, 3, 4)},
        "normalized": {"normalize": True},
        "default": {"only": True},
        "axis=1": {"axis": 1},
    },
    "nonsilent_region": {
        "default": {"only": True},
        "reference_power": {"reference_power": 0.01},
        "no reset": {"reset_interval": -1},
        "window": {"window_length": 256, "cutoff_db": -20.0},
    },
    "power_spectrum": {"power=1": {"power": 1}, "default": {"only": True}, "short": {"nfft": 1000}},
    "preemphasis_filter": {
        **_options("border", "zero", "clamp", "reflect"),
        "default": {"only": True},
        **_dtypes("FLOAT", "INT16"),
        "int16 in": {"inputs": (Data([(s * 9000).astype(np.int16) for s in cases.SOUND.samples]),)},
    },
    "spectrogram": {
        "tf": {"layout": "tf"},
        "power=1": {"power": 1},
        "not centred": {"center_windows": False},
        "not reflected": {"reflect_padding": False},
        "window_fn": {"window_fn": np.hanning(200).astype(np.float32).tolist()},
        "default": {"only": True},
        "odd": {"nfft": 301, "window_length": 300, "window_step": 77},
    },
    "to_decibels": {"reference": {"reference": 0.5}, "multiplier": {"multiplier": 20.0}, "default": {"only": True}},
    # boxes, points, matrices
    "bb_flip": {
        "xywh": {"ltrb": False},
        "vertical only": {"horizontal": 0},
        "neither": {"horizontal": 0, "vertical": 0},
        "out of range": {"inputs": (Data([box * 3 - 1 for box in cases.BOXES.samples]),)},
    },
    "bbox_paste": {
        "smaller": {"ratio": 0.6},
        "xywh": {"ltrb": False},
        "per sample": {"ratio": _each([1, 2, 1, 1, 1, 3]), "paste_y": FACTORS},
    },
    "bbox_rotate": {
        "xywh": {"bbox_layout": "xyWH"},
        "keep_size": {"keep_size": True},
        "size": {"size": [50.0, 40.0]},
        "normalized": {"bbox_normalized": True},
        "pixels": {
            "bbox_normalized": False,
            "inputs": (Data([box * 28 for box in cases.BOXES.samples]),),
        },
        **_options("mode", "expand", "halfway", "fixed"),
        "labels": {"inputs": (cases.BOXES, cases.BOX_LABELS)},
        "remove": {"keep_size": True, "remove_threshold": 0.7},
        "WHC": {"input_shape": [36, 28, 3], "shape_layout": "WHC"},
    },
    "box_encoder": {
        "no offset": {"offset": False},
        "criteria": {"criteria": 0.3},
        "means": {"means": [0.1, 0.2, 0.0, 0.0], "scale": 300.0},
    },
    "coord_flip": {
        "flip_y": {"flip_y": 1},
        "none": {"flip_x": 0},
        "center": {"center_x": 0.25, "flip_x": SIGNS},
        "xyz": {"layout": "xyz", "inputs": (Data([np.ones((3, 3), np.float32)] * 6),), "flip_z": 1},
        "layout=yx": {"layout": "yx"},
    },
    "coord_transform": {
        "default": {"only": True},
        "MT": {"only": True, "MT": [0.5, 0.1, 3.0, -0.2, 1.5, -4.0]},
        "M": {"only": True, "M": 2.0},
        "to three": {"only": True, "M": [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]},
        "per sample": {"only": True, "MT": _each([[[1, 0, 2], [0, 1, 3]]] * 5 + [[[2, 0, 1], [0, -1, 1]]])},
        **_dtypes("INT16", "UINT8", "FLOAT"),
    },
    "transforms.combine": {
        "reverse_order": {"reverse_order": True},
        "three": {"inputs": (cases.TRANSFORMS, cases.TRANSFORMS, cases.TRANSFORMS)},
        "one": {"inputs": (cases.TRANSFORMS,)},
    },
    "transforms.crop": {
        "absolute": {"absolute": True},
        "default": {"only": True},
        "three": {"only": True, "from_start": [1.0, 2.0, 3.0], "from_end": [3.0, 4.0, 5.0]},
        "onto a matrix": {"inputs": (cases.TRANSFORMS,)},
        "reverse_order": {"inputs": (cases.TRANSFORMS,), "reverse_order": True},
        "flipped": {"from_start": [110.0, 20.0], "from_end": [10.0, 90.0]},
    },
    "transforms.rotation": {
        "axis": {"axis": [1.0, 2.0, 3.0], "center": [1.0, 2.0, 3.0]},
        "no center": {"center": GONE},
        "onto a matrix": {"inputs": (cases.TRANSFORMS,)},
        "reverse_order": {"inputs": (cases.TRANSFORMS,), "reverse_order": True},
        "out of range": {"angle": 1e6},
    },
    "transforms.scale": {
        "three": {"only": True, "scale": [1.0, 2.0, 3.0]},
        "ndim": {"only": True, "scale": 2.0, "ndim": 3},
        "onto a matrix": {"inputs": (cases.TRANSFORMS,)},
        "per sample": {"only": True, "scale": _each([[1, 2]] * 5 + [[3, 4]])},
        "zero": {"scale": [0.0, 1.0]},
    },
    "transforms.shear": {
        "angles": {"only": True, "angles": [20.0, -10.0]},
        "three": {"only": True, "shear": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]},
        "onto a matrix": {"inputs": (cases.TRANSFORMS,)},
    },
    "transforms.translation": {
        "three": {"offset": [1.0, 2.0, 3.0]},
        "onto a matrix": {"inputs": (cases.TRANSFORMS,)},
        "reverse_order": {"inputs": (cases.TRANSFORMS,), "reverse_order": True},
        "per sample": {"offset": _each([[1, 2]] * 5 + [[3, 4]])},
        "ndim": {"offset": 3.0, "ndim": 2},
    },
    # colour
    "brightness": {**_COLOURS, **_FLOATS_IN, "negative": {"brightness": -1.5}, "shift": {"brightness_shift": -0.4}},
    "contrast": {**_COLOURS, **_FLOATS_IN, "center": {"contrast_center": 30.0}, "negative": {"contrast": -2.0}},
    "brightness_contrast": {
        **_COLOURS,
        **_FLOATS_IN,
        "center": {"contrast_center": 30.0},
        "shift": {"brightness_shift": 0.3},
    },
    "color_twist": {
        **_COLOURS,
        **_FLOATS_IN,
        "default": {"only": True},
        "extreme": {"saturation": -3.0, "hue": 1000.0},
    },
    "hsv": {**_COLOURS, **_FLOATS_IN, "default": {"only": True}, "negative": {"value": -1.0}},
    "hue": {**_COLOURS, **_FLOATS_IN, "default": {"only": True}},
    "saturation": {**_COLOURS, **_FLOATS_IN, "default": {"only": True}, "extreme": {"saturation": 30.0}},
    "color_space_conversion": {
        **{
            f"{one} to {other}": {"image_type": getattr(types, one), "output_type": getattr(types, other)}
            for one in ("RGB", "BGR", "YCbCr")
            for other in ("RGB", "BGR", "YCbCr", "GRAY")
        },
        **{
            f"GRAY to {other}": {
                "image_type": types.GRAY,
                "output_type": getattr(types, other),
                "inputs": (Data([photo[..., :1].copy() for photo in PHOTOS.samples], "HWC"),),
            }
            for other in ("RGB", "YCbCr", "GRAY")
        },
        "wrong channels": {"image_type": types.GRAY},
        **_dtypes("FLOAT", "INT16", "UINT16"),
        "floats": {"inputs": (Data([p.astype(np.float32) / 255 for p in PHOTOS.samples], "HWC"),)},
    },
    "clahe": {"default": {"only": True}, "tiles": {"tiles_x": 1, "tiles_y": 1}, "each channel": {"luma_only": False}},
    "lookup_table": {
        **_dtypes("UINT8", "INT32", "FLOAT16"),
        "default": {"only": True, "keys": [], "values": []},
        "keys only repeated": {"keys": [1, 1, 2]},
    },
    "one_hot": {
        **_dtypes("UINT8", "INT64"),
        "axis=0": {"axis": 0},
        "axis_name": {"axis": 0, "axis_name": "C"},
        "too few classes": {"num_classes": 2},
        "off_value": {"off_value": -1.0},
        "scalars": {"inputs": (cases.SCALAR_LABELS,)},
    },
    # geometry
    "crop": {**_CROPS, **_dtypes("FLOAT", "INT16", "UINT8")},
    "crop_mirror_normalize": {
        **_CROPS,
        **_dtypes("FLOAT", "FLOAT16", "UINT8", "INT8"),
        "HWC out": {"output_layout": "HWC"},
        "pad_output": {"pad_output": True},
        "pad_output, HWC": {"pad_output": True, "output_layout": "HWC"},
        "scale, shift": {"scale": 3.0, "shift": 0.5},
        "one mean": {"mean": [100.0], "std": [3.0]},
        "mean per sample": {"mean": _each([[1, 2, 3]] * 5 + [[3, 4, 5]])},
        "default": {"only": True},
        "two means": {"mean": [100.0, 2.0]},
        "bytes": {"dtype": types.UINT8, "mean": [0.0], "std": [1.0]},
    },
    "flip": {
        "default": {"only": True},
        "neither": {"horizontal": 0, "vertical": 0},
        "depth": {"inputs": (VOLUMES,), "depthwise": 1},
        "depth without D": {"depthwise": 1},
        "vertical per sample": {"vertical": SIGNS, "horizontal": 0},
        "-1": {"horizontal": -1},
    },
    "experimental.warp_perspective": {
        **_WARPS,
        "per sample": {"matrix": _each([np.eye(3)] * 5 + [[[1, 0.1, 2], [0, 1, 3], [0.002, 0, 1]]])},
        "OpenCV's": {"pixel_origin": "center"},
    },
    "multi_paste": {
        **_dtypes("FLOAT", "INT16"),
        "whole": {"only": True, "output_size": [60, 70], "inputs": (PHOTOS,)},
        "in_ids": {
            "only": True,
            "inputs": (PHOTOS,),
            "output_size": [60, 70],
            "in_ids": _each([[0, 1]] * 6, np.int32),
            "out_anchors": _each([[[0, 0], [14, 20]]] * 6, np.int32),
        },
        "relative": {
            "only": True,
            "inputs": (PHOTOS, PHOTOS),
            "output_size": [60, 70],
            "out_anchors_rel": _each([[[0, 0], [0.3, 0.4]]] * 6),
            "shapes_rel": _each([[[0.5, 0.5], [0.4, 0.2]]] * 6),
            "in_anchors_rel": _each([[[0, 0.1], [0.1, 0.0]]] * 6),
        },
        "out of canvas": {"output_size": [20, 20]},
    },
    "pad": {
        "default": {"only": True},
        "shape": {"only": True, "axes": [0, 1], "shape": [40, 50]},
        "smaller shape": {"only": True, "axes": [0, 1], "shape": [10, 50]},
        "axes": {"only": True, "axes": [0]},
        "align": {"only": True, "axes": [0, 1], "align": [32, 5]},
        "negative fill": {"fill_value": -3.0},
        "floats": {"inputs": (IMAGE_FLOATS,), "fill_value": 1.5},
        "labels": {"only": True, "inputs": (LABELS,), "fill_value": -1.0},
    },
    "paste": {
        "min_canvas_size": {"ratio": 1.0, "min_canvas_size": 60.0},
        "per sample": {"ratio": _each([1, 2, 1.5, 1, 1, 3]), "paste_y": 0.9},
        "one fill": {"fill_value": [7]},
        "ratio below one": {"ratio": 0.5},
    },
    "resize": _RESIZES,
    "resize_crop_mirror": {
        **_FILTERS,
        **_dtypes("FLOAT"),
        "vertical": {"mirror": 2},
        "size": {"resize_shorter": GONE, "size": [30.0, 40.0]},
        "crop_pos": {"crop_pos_x": 0.1, "crop_pos_y": 0.9},
        "too large": {"crop": [50, 50]},
    },
    "segmentation.select_masks": {
        "numbers are kept": {"reindex_masks": False},
    },
    "tensor_resize": {
        **_FILTERS,
        "scales": {"only": True, "scales": [0.5, 1.5, 1.0]},
        "alignment": {"alignment": [0.0], "only": True, "scales": [0.4, 1.3, 1.0]},
        "axis_names": {"only": True, "sizes": [20.0, 30.0], "axis_names": "WH"},
        **_dtypes("FLOAT"),
        "all": {"only": True, "sizes": [20.0, 30.0, 2.0]},
        "floats": {"only": True, "inputs": (FLOATS,), "sizes": [9.0, 4.0]},
        "region": {"roi_start": [0.1, 0.2], "roi_end": [0.7, 0.9], "roi_relative": True},
        "mode": {"mode": "not_larger"},
    },
    "rotate": {
        **_WARPS,
        "keep_size": {"keep_size": True},
        "right angles": {"angle": _each([0, 90, 180, 270, -90, 90])},
        "small": {"angle": 1e-3},
        "axis": {"inputs": (VOLUMES,), "axis": [1.0, 2.0, 3.0]},
        "out of range": {"angle": 3600.0 + 17.0},
        "inverse_map=False": {"keep_size": True},
    },
    "slice": {
        "start, end": {"only": True, "start": [2, 3], "end": [12, 20], "axes": [0, 1]},
        "start, shape": {"only": True, "start": [2, 3], "shape": [12, 10], "axes": [0, 1]},
        "start, rel_shape": {"only": True, "start": [2], "rel_shape": [0.5], "axes": [1]},
        "negative axis": {"only": True, "start": [1], "end": [2], "axes": [-1]},
        "anchor, shape": {
            "inputs": (
                PHOTOS,
                Data([np.array([0.1, 0.2], np.float32)] * 6),
                Data([np.array([0.5, 0.6], np.float32)] * 6),
            ),
            "only": True,
        },
        "anchor, shape in pixels": {
            "inputs": (PHOTOS, Data([np.array([3, 2], np.int32)] * 6), Data([np.array([5, 6], np.int32)] * 6)),
            "only": True,
            "normalized_anchor": False,
            "normalized_shape": False,
        },
        **_dtypes("FLOAT", "INT16", "FLOAT16"),
        "pad": {
            "rel_start": [-0.1, 0.5],
            "rel_end": [0.5, 1.5],
            "out_of_bounds_policy": "pad",
            "fill_values": [1.0, 2.0, 3.0],
        },
        "pad, fraction": {
            "rel_start": [-0.1, 0.5],
            "rel_end": [0.5, 1.5],
            "out_of_bounds_policy": "pad",
            "fill_values": 2.6,
        },
        "pad, beyond": {
            "rel_start": [-0.1, 0.5],
            "rel_end": [0.5, 1.5],
            "out_of_bounds_policy": "pad",
            "fill_values": -3.0,
        },
        "trim": {"rel_start": [-0.1, 0.5], "rel_end": [0.5, 1.5], "out_of_bounds_policy": "trim_to_shape"},
        "out of bounds": {"rel_start": [-0.1, 0.5], "rel_end": [0.5, 1.5]},
        "nothing": {"rel_start": [0.5, 0.5], "rel_end": [0.5, 0.5]},
        "backwards": {"rel_start": [0.7, 0.5], "rel_end": [0.2, 0.9]},
        "per sample": {"rel_start": _each([[0.1, 0.2]] * 5 + [[0.4, 0.3]])},
        "axis_names=WH": {"axis_names": "WH"},
        "axis_names=C": {"only": True, "start": [1], "end": [3], "axis_names": "C"},
    },
    "warp_affine": {
        **_WARPS,
        "per sample": {"matrix": _each([[[1, 0, 2], [0, 1, 3]]] * 5 + [[[0.5, 0.1, 2], [0, 1, 3]]])},
        "matrix as input": {
            "only": True,
            "inputs": (PHOTOS, Data([np.array([[1, 0.1, 2], [0, 1, 3]], np.float32)] * 6)),
        },
        "volumes": {"inputs": (VOLUMES,), "matrix": [1.0, 0.1, 0, 2, 0, 1, 0, 3, 0.1, 0, 1, 0]},
        "singular": {"matrix": [0.0] * 6},
        "far": {"matrix": [1e6, 0, 0, 0, 1e6, 0]},
        "identity": {"matrix": [1.0, 0, 0, 0, 1, 0]},
    },
    # filters and noise
    "erase": {
        "fraction": {"fill_value": 2.6},
        "beyond": {"fill_value": 300.0},
        "default axes": {"axis_names": "HW", "fill_value": 0.0},
        "several": {"anchor": [3.0, 5.0, 15.0, 2.0], "shape": [4.0, 4.0, 3.0, 9.0]},
        "normalized": {"normalized": True, "anchor": [0.1, 0.3], "shape": [0.2, 0.4]},
        **_DISTANCES,
        "centered": {"centered_anchor": True},
        "one axis": {"anchor": [3.0], "shape": [4.0], "axis_names": "W"},
        "axes": {"axis_names": GONE, "axes": [0, 1]},
        "out of range": {"anchor": [-5.0, 30.0], "shape": [10.0, 100.0]},
        "per sample": {"anchor": _each([[1, 2]] * 5 + [[4, 3]])},
        "one value": {"fill_value": 5.0},
    },
    "filter": {
        **_dtypes("FLOAT"),
        **_options("border", "reflect_101", "reflect_1001", "clamp", "wrap", "fill", "101", "1001", "reflect"),
        "fill value": {"border": "fill", "inputs": (PHOTOS, cases.WINDOWS, Data([np.float32(9.0)[...]] * 6))},
        "valid": {"mode": "valid"},
        "anchor": {"anchor": [0, 2]},
        "anchor, centred": {"anchor": -1},
        "negative weights": {"inputs": (PHOTOS, Data([np.float32([[0, -1, 0], [-1, 5, -1], [0, -1, 0]])] * 6))},
        "int16": {"inputs": (Data([p.astype(np.int16) * 50 for p in PHOTOS.samples], "HWC"), cases.WINDOWS)},
    },
    "gaussian_blur": {
        **_dtypes("FLOAT"),
        "window": {"sigma": GONE, "window_size": 5},
        "both": {"sigma": 1.0, "window_size": 9},
        "axes": {"sigma": [0.5, 2.0], "window_size": [3, 7]},
        "floats": {"inputs": (IMAGE_FLOATS,)},
        "video": {"inputs": (VIDEO,), "sigma": 1.0},
        "volumes": {"inputs": (VOLUMES,), "sigma": 0.8},
        "wide": {"sigma": 20.0},
        "even window": {"window_size": 4},
    },
    "laplacian": {
        **_dtypes("FLOAT"),
        "default": {"only": True},
        **_options("window_size", 3, 7, 9, 23),
        "smoothing": {"smoothing_size": 5},
        "no smoothing": {"smoothing_size": 1},
        "scale": {"normalized_kernel": False, "scale": 0.1, "dtype": types.FLOAT},
        "axes": {"window_size": [3, 5]},
        "video": {"inputs": (VIDEO,)},
    },
    "grid_mask": {
        "per sample": {"angle": ANGLES},
        "shift": {"shift_x": 3.0, "shift_y": 5.5},
        "ratio": {"ratio": 1.0},
        "tile": {"tile": 1},
    },
    "debayer": {
        **_options("algorithm", "edgeaware_ocv", "vng_ocv", "gray_ocv"),
        "blue_position for each": {"blue_position": _each([[0, 0], [1, 0], [0, 1], [1, 1], [0, 1], [1, 1]], np.int32)},
        "outside of the tile": {"blue_position": [0, 2]},
    },
    "jpeg_compression_distortion": {"default": {"only": True}, "lowest": {"quality": 1}, "highest": {"quality": 100}},
    "sphere": _MASKED,
    "water": {**_MASKED, "default": {"only": True}, "phases": {"phase_x": 1.0, "phase_y": 2.0, "ampl_y": 3.0}},
    # tensors
    "cast": {
        **_dtypes(
            "UINT8",
            "INT8",
            "UINT16",
            "INT16",
            "UINT32",
            "INT32",
            "UINT64",
            "INT64",
            "FLOAT16",
            "FLOAT",
            "FLOAT64",
            "BOOL",
        ),
        **{
            f"special to {name}": {
                "dtype": getattr(types, name),
                "inputs": (Data([np.float32([0.5, 1.5, 2.5, -0.5, 1e10, -1e10, 255.5, 127.5, np.inf])] * 6),),
            }
            for name in ("UINT8", "INT8", "INT16", "INT32", "INT64", "FLOAT16", "BOOL")
        },
    },
    "cat": {
        "axis": {"only": True, "axis": 0},
        "axis=-1": {"only": True, "axis": -1},
        "one": {"inputs": (PHOTOS,)},
        "default": {"only": True},
        "axis and name": {"axis": 2},
        "out of range": {"only": True, "axis": 3},
        "numbers": {"only": True, "inputs": (FLOATS, FLOATS, FLOATS)},
    },
    "constant": {**_FILLS, "idata": {"only": True, "idata": [1, 2, 3]}, "one": {"only": True, "idata": 7}},
    "element_extract": {
        "one": {"element_map": [0]},
        "out of range": {"element_map": [4]},
        "negative": {"element_map": [-1]},
    },
    "expand_dims": {
        "no names": {"only": True, "axes": [1]},
        "several": {"axes": [0, 2], "new_axis_names": "FD"},
        "last": {"axes": [3], "new_axis_names": "D"},
        "out of range": {"axes": [5]},
        "negative": {"axes": [-1]},
    },
    "full": {"default": {"only": True}, "scalars of int": {"inputs": (cases.SCALAR_LABELS,)}},
    "full_like": {"ints": {"inputs": (PHOTOS, cases.SCALAR_LABELS)}},
    "get_property": {"source_info": {"key": "source_info"}},
    "normalize": {
        "default": {"only": True},
        "axes": {"only": True, "axes": [0]},
        "axes=[0, 2]": {"only": True, "axes": [0, 2]},
        "mean": {"mean": 100.0},
        "stddev": {"stddev": 10.0},
        "both": {"mean": 100.0, "stddev": 10.0},
        "batch": {"only": True, "batch": True, "axis_names": "HW"},
        "ddof": {"ddof": 1},
        "epsilon": {"epsilon": 0.5},
        **_dtypes("UINT8", "INT16", "FLOAT16"),
        "bytes": {"dtype": types.UINT8, "scale": 50.0, "shift": 128.0},
    },
    "ones": _FILLS,
    "ones_like": _FILLS,
    "zeros": {**_FILLS, "default": {"only": True}, "per sample": {"shape": _each([[1, 2]] * 5 + [[4, 3]], np.int32)}},
    "zeros_like": _FILLS,
    **{f"reductions.{name}": _REDUCED for name in ("max", "min", "mean_square", "rms")},
    **{
        f"reductions.{name}": {**_REDUCED, **_dtypes("FLOAT", "INT64", "UINT64", "INT32", "UINT8")}
        for name in ("sum", "mean")
    },
    **{
        f"reductions.{name}": {
            "axes": {"inputs": (PHOTOS, cases.NUMBERS), "axes": [0, 1]},
            "ddof": {"ddof": 1},
            "keep_dims": {"keep_dims": True},
            **_dtypes("FLOAT"),
        }
        for name in ("std_dev", "variance")
    },
    "reinterpret": {
        "as bytes": {"only": True, "dtype": types.UINT8},
        "rel_shape": {"only": True, "rel_shape": [0.5, -1.0]},
        "wider": {"only": True, "dtype": types.INT64, "inputs": (Data([np.arange(8, dtype=np.int16)] * 6),)},
        "layout": {"only": True, "layout": "AB"},
    },
    "reshape": {
        "shape": {"only": True, "shape": [-1]},
        "rel_shape": {"only": True, "rel_shape": [0.5, 2.0, 1.0]},
        "layout": {"only": True, "layout": "XYZ"},
        "rows": {"only": True, "shape": [-1, 3]},
        "new axis": {"only": True, "src_dims": [0, -1, 1, 2], "layout": "HDWC"},
        "wrong size": {"only": True, "shape": [7, 7]},
        "two unknown": {"only": True, "shape": [-1, -1]},
    },
    "sequence_rearrange": {
        "out of range": {"new_order": [4]},
        "per sample": {"new_order": _each([[2, 0]] * 5 + [[1, 1]], np.int32)},
        "one": {"new_order": [1]},
    },
    "shapes": _dtypes("INT32", "FLOAT", "UINT8", "INT64"),
    "squeeze": {
        "axes": {"only": True, "axes": [2]},
        "not one": {"only": True, "axes": [0]},
        "negative": {"only": True, "axes": [-1]},
    },
    "stack": {
        "default": {"only": True},
        "axis=2": {"axis": 2},
        "axis=-1": {"axis": -1},
        "axis_name": {"axis": 0, "axis_name": "N", "inputs": (PHOTOS, PHOTOS)},
        "one": {"inputs": (FLOATS,)},
        "out of range": {"axis": 3},
    },
    "transpose": {
        "reverse": {"perm": [2, 1, 0]},
        "swap": {"perm": [1, 0, 2]},
        "identity": {"perm": [0, 1, 2]},
        "transpose_layout=False": {"transpose_layout": False},
        "output_layout": {"output_layout": "XYZ"},
        "wrong": {"perm": [0, 0, 1]},
        "short": {"perm": [1, 0]},
        "default": {"only": True},
    },
}
