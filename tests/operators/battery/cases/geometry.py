"""Cases of operators: geometry."""

from __future__ import annotations

import cv2
import numpy as np

from dalify import types
from tests.operators.battery import references as by
from tests.operators.battery.case import (
    BATCH,
    DEFAULT_AXES,
    DRAWN,
    FILTER_DEFAULTS,
    GONE,
    NO_CPU,
    RESIZE_DEFAULTS,
    Case,
    Data,
    each,
    exact_case,
    float_case,
    image_case,
)
from tests.operators.battery.changes import (
    CROPS,
    FILTERS,
    IMAGE_FLOATS,
    MIRROR,
    OPENCV,
    RESIZES,
    VOLUMES,
    WARPS,
    dtypes,
)
from tests.operators.battery.data import ANGLES, FLOATS, LABELS, MAPS, PHOTOS, SIGNS, SIZES

CASES: dict[str, Case] = {
    "crop": exact_case(
        PHOTOS,
        crop=[16, 20],
        crop_pos_x=0.25,
        crop_pos_y=each([0, 0.2, 0.5, 0.7, 1, 0.5]),
        variants={**CROPS, **dtypes("FLOAT", "INT16", "UINT8")},
        reference=by.exact(lambda x, crop, crop_pos_x, crop_pos_y: by.cropped(x, crop, crop_pos_y, crop_pos_x)),
    ),
    "crop_mirror_normalize": float_case(
        PHOTOS,
        crop=[16, 20],
        mirror=SIGNS,
        mean=[120.0, 110.0, 100.0],
        std=[60.0, 61.0, 62.0],
        variants={
            **CROPS,
            **dtypes("FLOAT", "FLOAT16", "UINT8", "INT8"),
            "HWC out": {"output_layout": "HWC"},
            "pad_output": {"pad_output": True},
            "pad_output, HWC": {"pad_output": True, "output_layout": "HWC"},
            "scale, shift": {"scale": 3.0, "shift": 0.5},
            "one mean": {"mean": [100.0], "std": [3.0]},
            "mean per sample": {"mean": each([[1, 2, 3]] * 5 + [[3, 4, 5]])},
            "default": {"only": True},
            "two means": {"mean": [100.0, 2.0]},
            "bytes": {"dtype": types.UINT8, "mean": [0.0], "std": [1.0]},
        },
        reference=by.close(by.prepared),
    ),
    "flip": exact_case(
        PHOTOS,
        horizontal=SIGNS,
        vertical=1,
        variants={
            "default": {"only": True},
            "neither": {"horizontal": 0, "vertical": 0},
            "depth": {"inputs": (VOLUMES,), "depthwise": 1},
            "depth without D": {"depthwise": 1},
            "vertical per sample": {"vertical": SIGNS, "horizontal": 0},
            "-1": {"horizontal": -1},
        },
        reference=by.exact(lambda x, horizontal, vertical: x[::-1, :: -1 if horizontal else 1]),
    ),
    "experimental.remap": image_case(
        PHOTOS,
        MAPS,
        MAPS,
        not_compared_with_dali=NO_CPU,
        reference=by.rounded(
            lambda x, columns, rows: cv2.remap(
                x, columns - 0.5, rows - 0.5, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
            ),
            by.OPENCV,
            share=0.2,
        ),
    ),
    "experimental.resize": image_case(
        PHOTOS,
        size=[20, 47],
        not_compared_with_dali=NO_CPU,
        reference=by.rounded(by.resized, by.PILLOW, share=0.02),
        other_defaults=RESIZE_DEFAULTS,
    ),
    "experimental.warp_perspective": image_case(
        PHOTOS,
        matrix=[0.9, 0.2, -3.0, -0.1, 1.1, 2.0, 0.001, 0.002, 1.0],
        fill_value=[9.0],
        variants={
            **WARPS,
            "per sample": {"matrix": each([np.eye(3)] * 5 + [[[1, 0.1, 2], [0, 1, 3], [0.002, 0, 1]]])},
            "OpenCV's": {"pixel_origin": "center"},
        },
        different={"of int16": OPENCV, "two channels": OPENCV},
        reference=by.rounded(
            lambda x, matrix, fill_value: by.warped(x, np.reshape(matrix, (3, 3)), *x.shape[:2], fill_value[0]),
            share=0.05,
        ),
    ),
    "multi_paste": exact_case(
        PHOTOS,
        PHOTOS,
        output_size=[50, 60],
        out_anchors=each([[[0, 0], [14, 20]]] * 6, np.int32),
        shapes=each([[[20, 20], [16, 18]]] * 6, np.int32),
        variants={
            **dtypes("FLOAT", "INT16"),
            "whole": {"only": True, "output_size": [60, 70], "inputs": (PHOTOS,)},
            "in_ids": {
                "only": True,
                "inputs": (PHOTOS,),
                "output_size": [60, 70],
                "in_ids": each([[0, 1]] * 6, np.int32),
                "out_anchors": each([[[0, 0], [14, 20]]] * 6, np.int32),
            },
            "relative": {
                "only": True,
                "inputs": (PHOTOS, PHOTOS),
                "output_size": [60, 70],
                "out_anchors_rel": each([[[0, 0], [0.3, 0.4]]] * 6),
                "shapes_rel": each([[[0.5, 0.5], [0.4, 0.2]]] * 6),
                "in_anchors_rel": each([[[0, 0.1], [0.1, 0.0]]] * 6),
            },
            "out of canvas": {"output_size": [20, 20]},
        },
        reference=by.exact(by.mosaic),
    ),
    "pad": exact_case(
        PHOTOS,
        axis_names="HW",
        fill_value=3.0,
        align=[16],
        not_sample_by_sample=BATCH,
        variants={
            "default": {"only": True},
            "shape": {"only": True, "axes": [0, 1], "shape": [40, 50]},
            "smaller shape": {"only": True, "axes": [0, 1], "shape": [10, 50]},
            "axes": {"only": True, "axes": [0]},
            "align": {"only": True, "axes": [0, 1], "align": [32, 5]},
            "negative fill": {"fill_value": -3.0},
            "floats": {"inputs": (IMAGE_FLOATS,), "fill_value": 1.5},
            "labels": {"only": True, "inputs": (LABELS,), "fill_value": -1.0},
        },
    ),
    "paste": exact_case(
        PHOTOS,
        ratio=1.6,
        paste_x=0.3,
        fill_value=[10, 20, 30],
        variants={
            "min_canvas_size": {"ratio": 1.0, "min_canvas_size": 60.0},
            "per sample": {"ratio": each([1, 2, 1.5, 1, 1, 3]), "paste_y": 0.9},
            "one fill": {"fill_value": [7]},
            "ratio below one": {"ratio": 0.5},
        },
        refused={"four channels": "DALI fills the canvas with three values in turn, which do not meet the channels"},
        reference=by.exact(by.pasted),
    ),
    "random_crop_generator": exact_case(
        SIZES, not_compared_with_dali=DRAWN, waits=["copies from the device @ operators/random_crop_generator.py:_"]
    ),
    "random_resized_crop": image_case(
        PHOTOS, size=[16, 18], not_compared_with_dali=DRAWN, other_defaults=FILTER_DEFAULTS
    ),
    "resize": image_case(
        PHOTOS,
        size=[20, 47],
        variants=RESIZES,
        reference=by.rounded(by.resized, by.PILLOW, share=0.02),
        other_defaults=RESIZE_DEFAULTS,
    ),
    "resize_crop_mirror": image_case(
        PHOTOS,
        resize_shorter=24.0,
        crop=[20, 18],
        mirror=SIGNS,
        variants={
            **FILTERS,
            **dtypes("FLOAT"),
            "vertical": {"mirror": 2},
            "size": {"resize_shorter": GONE, "size": [30.0, 40.0]},
            "crop_pos": {"crop_pos_x": 0.1, "crop_pos_y": 0.9},
            "too large": {"crop": [50, 50]},
        },
        different={"CDHW": MIRROR, "CHW": MIRROR, "FCHW": MIRROR, "FHWC": MIRROR},
        other_defaults=RESIZE_DEFAULTS,
    ),
    "roi_random_crop": exact_case(
        crop_shape=[10, 12], roi_start=[2, 3], roi_end=[20, 30], in_shape=[28, 36], not_compared_with_dali=DRAWN
    ),
    "rotate": image_case(
        PHOTOS,
        angle=ANGLES,
        fill_value=7.0,
        variants={
            **WARPS,
            "keep_size": {"keep_size": True},
            "right angles": {"angle": each([0, 90, 180, 270, -90, 90])},
            "small": {"angle": 1e-3},
            "axis": {"inputs": (VOLUMES,), "axis": [1.0, 2.0, 3.0]},
            "out of range": {"angle": 3600.0 + 17.0},
            "inverse_map=False": {"keep_size": True},
        },
        reference=by.rounded(by.rotated),
    ),
    "slice": exact_case(
        PHOTOS,
        rel_start=[0.1, 0.2],
        rel_end=[0.7, 0.9],
        axis_names="HW",
        variants={
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
            **dtypes("FLOAT", "INT16", "FLOAT16"),
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
            "per sample": {"rel_start": each([[0.1, 0.2]] * 5 + [[0.4, 0.3]])},
            "axis_names=WH": {"axis_names": "WH"},
            "axis_names=C": {"only": True, "start": [1], "end": [3], "axis_names": "C"},
        },
        reference=by.exact(by.part),
        other_defaults={"axes": DEFAULT_AXES, "axis_names": DEFAULT_AXES},
        waits=["copies from the device @ data/exchange.py:to_host"],
    ),
    "tensor_resize": image_case(
        PHOTOS,
        sizes=[20.0, 47.0],
        axes=[0, 1],
        variants={
            **FILTERS,
            "scales": {"only": True, "scales": [0.5, 1.5, 1.0]},
            "alignment": {"alignment": [0.0], "only": True, "scales": [0.4, 1.3, 1.0]},
            "axis_names": {"only": True, "sizes": [20.0, 30.0], "axis_names": "WH"},
            **dtypes("FLOAT"),
            "all": {"only": True, "sizes": [20.0, 30.0, 2.0]},
            "floats": {"only": True, "inputs": (FLOATS,), "sizes": [9.0, 4.0]},
            "region": {"roi_start": [0.1, 0.2], "roi_end": [0.7, 0.9], "roi_relative": True},
            "mode": {"mode": "not_larger"},
        },
        different={"mode": "DALI also scales axes that are not named: two of three channels are left"},
        reference=by.rounded(lambda x, sizes, axes: by.resized(x, size=sizes), by.PILLOW, share=0.02),
        other_defaults=FILTER_DEFAULTS,
    ),
    "warp_affine": image_case(
        PHOTOS,
        matrix=[0.9, 0.2, -3.0, -0.1, 1.1, 2.0],
        fill_value=9.0,
        variants={
            **WARPS,
            "per sample": {"matrix": each([[[1, 0, 2], [0, 1, 3]]] * 5 + [[[0.5, 0.1, 2], [0, 1, 3]]])},
            "matrix as input": {
                "only": True,
                "inputs": (PHOTOS, Data([np.array([[1, 0.1, 2], [0, 1, 3]], np.float32)] * 6)),
            },
            "volumes": {"inputs": (VOLUMES,), "matrix": [1.0, 0.1, 0, 2, 0, 1, 0, 3, 0.1, 0, 1, 0]},
            "singular": {"matrix": [0.0] * 6},
            "far": {"matrix": [1e6, 0, 0, 0, 1e6, 0]},
            "identity": {"matrix": [1.0, 0, 0, 0, 1, 0]},
        },
        reference=by.rounded(
            lambda x, matrix, fill_value: by.warped(x, np.reshape(matrix, (2, 3)), *x.shape[:2], fill_value)
        ),
    ),
}
