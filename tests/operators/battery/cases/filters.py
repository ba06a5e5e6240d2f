"""Cases of operators: filters, masks and noise."""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from dalify import types
from tests.operators.battery import references as by
from tests.operators.battery.case import DEFAULT_AXES, DRAWN, GONE, NO_CPU, Case, Data, each, exact_case, image_case
from tests.operators.battery.changes import (
    AXES,
    CONSTANT_MASK,
    DISTANCES,
    IMAGE_FLOATS,
    MASKED,
    VOLUMES,
    dtypes,
    options,
)
from tests.operators.battery.data import ANGLES, PHOTOS, SIGNS, VIDEO, WINDOWS

CASES: dict[str, Case] = {
    "erase": exact_case(
        PHOTOS,
        anchor=[3.0, 5.0],
        shape=[8.0, 9.0],
        axis_names="HW",
        fill_value=[1.0, 2.0, 3.0],
        variants={
            "fraction": {"fill_value": 2.6},
            "beyond": {"fill_value": 300.0},
            "default axes": {"axis_names": "HW", "fill_value": 0.0},
            "several": {"anchor": [3.0, 5.0, 15.0, 2.0], "shape": [4.0, 4.0, 3.0, 9.0]},
            "normalized": {"normalized": True, "anchor": [0.1, 0.3], "shape": [0.2, 0.4]},
            **DISTANCES,
            "centered": {"centered_anchor": True},
            "one axis": {"anchor": [3.0], "shape": [4.0], "axis_names": "W"},
            "axes": {"axis_names": GONE, "axes": [0, 1]},
            "out of range": {"anchor": [-5.0, 30.0], "shape": [10.0, 100.0]},
            "per sample": {"anchor": each([[1, 2]] * 5 + [[4, 3]])},
            "one value": {"fill_value": 5.0},
        },
        reference=by.exact(by.erased),
        other_defaults={
            "axes": DEFAULT_AXES,
            "axis_names": DEFAULT_AXES,
            "normalized_anchor": "not given: normalized; DALI's code checks whether the argument was given",
            "normalized_shape": "not given: normalized; DALI's code checks whether the argument was given",
        },
    ),
    "experimental.dilate": exact_case(
        PHOTOS,
        mask_size=[3, 5],
        not_compared_with_dali=NO_CPU,
        reference=by.Reference(
            by.SCIPY, lambda x, mask_size: scipy.ndimage.grey_dilation(x, (*mask_size[::-1], 1), mode="constant")
        ),
    ),
    "experimental.erode": exact_case(
        PHOTOS,
        mask_size=[3, 5],
        not_compared_with_dali=NO_CPU,
        reference=by.Reference(
            by.SCIPY,
            lambda x, mask_size: scipy.ndimage.grey_erosion(x, (*mask_size[::-1], 1), mode="constant", cval=255),
        ),
    ),
    "experimental.median_blur": exact_case(
        PHOTOS,
        window_size=[3, 3],
        not_compared_with_dali=NO_CPU,
        reference=by.Reference(
            by.SCIPY, lambda x, window_size: scipy.ndimage.median_filter(x, (*window_size[::-1], 1), mode="nearest")
        ),
    ),
    "filter": image_case(
        PHOTOS,
        WINDOWS,
        variants={
            **dtypes("FLOAT"),
            **options("border", "reflect_101", "reflect_1001", "clamp", "wrap", "fill", "101", "1001", "reflect"),
            "fill value": {"border": "fill", "inputs": (PHOTOS, WINDOWS, Data([np.float32(9.0)[...]] * 6))},
            "valid": {"mode": "valid"},
            "anchor": {"anchor": [0, 2]},
            "anchor, centered": {"anchor": -1},
            "negative weights": {"inputs": (PHOTOS, Data([np.float32([[0, -1, 0], [-1, 5, -1], [0, -1, 0]])] * 6))},
            "int16": {"inputs": (Data([p.astype(np.int16) * 50 for p in PHOTOS.samples], "HWC"), WINDOWS)},
        },
        reference=by.rounded(
            lambda x, window: by.to_bytes(
                scipy.ndimage.correlate(x.astype(np.float64), window[..., None], mode="mirror")
            ),
            by.SCIPY,
        ),
    ),
    "gaussian_blur": image_case(
        PHOTOS,
        sigma=each([0.5, 1, 1.5, 2, 0.8, 1.2]),
        variants={
            **dtypes("FLOAT"),
            "window": {"sigma": GONE, "window_size": 5},
            "both": {"sigma": 1.0, "window_size": 9},
            "axes": {"sigma": [0.5, 2.0], "window_size": [3, 7]},
            "floats": {"inputs": (IMAGE_FLOATS,)},
            "video": {"inputs": (VIDEO,), "sigma": 1.0},
            "volumes": {"inputs": (VOLUMES,), "sigma": 0.8},
            "wide": {"sigma": 20.0},
            "even window": {"window_size": 4},
        },
        reference=by.rounded(by.blurred, by.SCIPY),
    ),
    "grid_mask": exact_case(
        PHOTOS,
        tile=9,
        ratio=0.4,
        angle=0.3,
        variants={
            "per sample": {"angle": ANGLES},
            "shift": {"shift_x": 3.0, "shift_y": 5.5},
            "ratio": {"ratio": 1.0},
            "tile": {"tile": 1},
        },
        refused={
            "CDHW": AXES,
            "CHW": AXES,
            "DHWC": AXES,
            "FCHW": AXES,
            "HW": "DALI takes the columns for channels, and then reads beyond the image",
        },
        different={"FHWC": AXES},
        reference=by.Reference(by.FORMULA, by.grid, share=0.01),
    ),
    "jitter": exact_case(PHOTOS, nDegree=3, not_compared_with_dali=NO_CPU),
    "jpeg_compression_distortion": image_case(
        PHOTOS,
        quality=each([5, 20, 50, 80, 100, 40], np.int32),
        share=0.02,
        variants={"default": {"only": True}, "lowest": {"quality": 1}, "highest": {"quality": 100}},
    ),
    "laplacian": image_case(
        PHOTOS,
        window_size=5,
        normalized_kernel=True,
        variants={
            **dtypes("FLOAT"),
            "default": {"only": True},
            **options("window_size", 3, 7, 9, 23),
            "smoothing": {"smoothing_size": 5},
            "no smoothing": {"smoothing_size": 1},
            "scale": {"normalized_kernel": False, "scale": 0.1, "dtype": types.FLOAT},
            "axes": {"window_size": [3, 5]},
            "video": {"inputs": (VIDEO,)},
        },
        different={"of float16": "DALI rounds every derivative to float16 before it adds them up"},
        reference=by.rounded(by.laplacian, by.SCIPY),
        other_defaults={"scale": "None is 1; normalized_kernel needs to know whether a scale was given"},
    ),
    "noise.gaussian": exact_case(PHOTOS, stddev=20.0, not_compared_with_dali=DRAWN),
    "noise.salt_and_pepper": exact_case(PHOTOS, prob=0.2, not_compared_with_dali=DRAWN),
    "noise.shot": exact_case(
        PHOTOS,
        factor=5.0,
        not_compared_with_dali=DRAWN,
        waits=["_local_scalar_dense: DataDependentOutputException @ kernels/random/rejection.py:poisson_torch"],
    ),
    "sphere": exact_case(
        PHOTOS,
        mask=SIGNS,
        fill_value=7.0,
        variants=MASKED,
        different={
            "masked out": CONSTANT_MASK,
            "one pixel": "a pixel is its own center; DALI divides by a radius of 0",
        },
        reference=by.Reference(by.FORMULA, by.ball, share=0.01),
    ),
    # Sines in float32 are not the same to the last bit, which may choose another neighbor.
    "water": image_case(
        PHOTOS,
        share=0.02,
        ampl_x=4.0,
        freq_y=0.3,
        mask=SIGNS,
        variants={**MASKED, "default": {"only": True}, "phases": {"phase_x": 1.0, "phase_y": 2.0, "ampl_y": 3.0}},
        different={"masked out": CONSTANT_MASK},
        reference=by.Reference(by.FORMULA, by.waves, share=0.02),
    ),
}
