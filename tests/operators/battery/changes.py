"""Variants and reasons for differences that several cases share."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify import types
from tests.operators.battery.case import GONE, Data, each
from tests.operators.battery.data import PHOTOS

Changes = dict[str, dict[str, Any]]


def dtypes(*names: str) -> Changes:
    """The result in other types."""
    return {f"dtype={name}": {"dtype": getattr(types, name)} for name in names or ("FLOAT", "INT16", "FLOAT16")}


def options(name: str, *values: Any) -> Changes:
    return {f"{name}={value}": {name: value} for value in values}


PLANES = Data([np.ascontiguousarray(photo.transpose(2, 0, 1)) for photo in PHOTOS.samples], "CHW")
IMAGE_FLOATS = Data([photo.astype(np.float32) * 1.25 - 30 for photo in PHOTOS.samples], "HWC")
VOLUMES = Data(
    [np.ascontiguousarray(np.stack([p, p[::-1], p[:, ::-1], p // 2])[..., :2]) for p in PHOTOS.samples], "DHWC"
)
FILTERS: Changes = {
    f"interp_type={name}": {"interp_type": getattr(types, f"INTERP_{name}")}
    for name in ("NN", "LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "GAUSSIAN")
}
PLAIN_FILTERS: Changes = {name: change for name, change in FILTERS.items() if name[12:] in ("NN", "LINEAR", "CUBIC")}
RESIZES: Changes = {
    **FILTERS,
    **dtypes("FLOAT", "UINT8"),
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
    "resize_longer": {"size": GONE, "resize_longer": each([13, 50, 20, 20, 20, 40])},
    "resize_x": {"size": GONE, "resize_x": 13.0},
    "resize_x, resize_y": {"size": GONE, "resize_x": 13.0, "resize_y": 40.0},
    "max_size": {"size": GONE, "resize_shorter": 30.0, "max_size": 33.0},
    "fractions": {"size": [20.4, 31.6]},
    "region": {"roi_start": [2.5, 3.0], "roi_end": [20.0, 18.5]},
    "relative region": {"roi_start": [0.1, 0.2], "roi_end": [0.7, 0.9], "roi_relative": True},
    "mirrored region": {"roi_start": [0.7, 0.2], "roi_end": [0.1, 0.9], "roi_relative": True},
    "min and mag": {"size": [20, 90], "min_filter": types.INTERP_CUBIC, "mag_filter": types.INTERP_NN},
    "not subpixel": {"size": GONE, "resize_shorter": 13.0, "subpixel_scale": False},
    "per sample": {"size": each([[10, 12], [10, 12], [1, 1], [1, 1], [2, 2], [40, 3]])},
    "save_attrs": {"save_attrs": True},
    "floats, cubic": {"inputs": (IMAGE_FLOATS,), "interp_type": types.INTERP_CUBIC},
    "volumes": {"inputs": (VOLUMES,), "size": [3, 20, 30]},
    "volumes, cubic": {"inputs": (VOLUMES,), "size": [7, 20, 30], "interp_type": types.INTERP_CUBIC},
}
COLORS = dtypes("UINT8", "FLOAT", "INT16", "FLOAT16", "INT32", "INT8", "UINT16")
FLOATS_IN: Changes = {"floats to bytes": {"inputs": (IMAGE_FLOATS,), "dtype": types.UINT8}}
CROPS: Changes = {
    "no window": {"crop": GONE},
    "crop_h, crop_w": {"crop": GONE, "crop_h": 11.0, "crop_w": 13.0},
    "crop_w": {"crop": GONE, "crop_w": 13.0},
    "per sample": {"crop": each([[10, 12], [10, 12], [1, 1], [1, 1], [2, 2], [30, 3]])},
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
REDUCED: Changes = {
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
DISTANCES: Changes = {
    "relative": {"normalized_anchor": True, "normalized_shape": True, "anchor": [0.1, 0.2], "shape": [0.3, 0.4]},
}
WARPS: Changes = {
    **PLAIN_FILTERS,
    **dtypes("FLOAT", "UINT8", "INT16"),
    "border repeated": {"fill_value": GONE},
    "border repeated, nearest": {"fill_value": GONE, "interp_type": types.INTERP_NN},
    "size": {"size": [31.0, 17.0]},
    "size per sample": {"size": each([[10, 12], [10, 12], [1, 1], [1, 1], [2, 2], [40, 3]])},
    "inverse_map=False": {"inverse_map": False},
}
MASKED: Changes = {
    **PLAIN_FILTERS,
    "no mask": {"mask": GONE},
    "masked out": {"mask": 0},
    "fill_value": {"fill_value": 200.0},
    "fraction": {"fill_value": 2.6},
    "beyond": {"fill_value": 300.0},
}
FILLS: Changes = {f"dtype={name}": {"dtype": getattr(types, name)} for name in ("UINT8", "INT64", "FLOAT16", "BOOL")}

# Why results differ from DALI's.
STRADDLES = "DALI reads three channels a step, and so mixes neighboring pixels; beyond the end of the image at last"
AXES = "DALI takes the first two axes for height and width, whatever the layout says"
OVERFLOW = "DALI adds up squares of 32 bits, which overflow"
CONSTANT_MASK = "DALI takes notice of a mask only where it differs from sample to sample"
OPENCV = "DALI takes OpenCV, which for these types rounds positions to 1/32 pixel"
MIRROR = "DALI mirrors the rows where channels or frames stand in front"
ONE_MEAN = "DALI reads beyond a mean that is a single number for several results"
