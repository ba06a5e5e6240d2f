"""Cases of operators: color."""

from __future__ import annotations

import cv2
import numpy as np

from dalify import types
from tests.operators.battery import references as by
from tests.operators.battery.case import DEFAULT_BY_TYPE, Case, Data, each, exact_case, image_case
from tests.operators.battery.changes import COLORS, FLOATS_IN, STRADDLES, dtypes, options
from tests.operators.battery.data import ANGLES, FACTORS, MASKS, MOSAICS, PHOTOS

CASES: dict[str, Case] = {
    "brightness": image_case(
        PHOTOS,
        brightness=FACTORS,
        brightness_shift=0.1,
        variants={**COLORS, **FLOATS_IN, "negative": {"brightness": -1.5}, "shift": {"brightness_shift": -0.4}},
        reference=by.rounded(by.levels),
    ),
    "brightness_contrast": image_case(
        PHOTOS,
        brightness=FACTORS,
        contrast=1.3,
        variants={
            **COLORS,
            **FLOATS_IN,
            "center": {"contrast_center": 30.0},
            "shift": {"brightness_shift": 0.3},
        },
        reference=by.rounded(by.levels),
        other_defaults={"contrast_center": DEFAULT_BY_TYPE},
    ),
    "color_space_conversion": image_case(
        PHOTOS,
        image_type=types.RGB,
        output_type=types.YCbCr,
        variants={
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
            **dtypes("FLOAT", "INT16", "UINT16"),
            "floats": {"inputs": (Data([p.astype(np.float32) / 255 for p in PHOTOS.samples], "HWC"),)},
        },
        reference=by.rounded(lambda x, **_: by.to_bytes(x @ by.YCBCR.T + [16, 128, 128])),
    ),
    "color_twist": image_case(
        PHOTOS,
        hue=ANGLES,
        saturation=FACTORS,
        brightness=1.1,
        contrast=0.8,
        variants={
            **COLORS,
            **FLOATS_IN,
            "default": {"only": True},
            "extreme": {"saturation": -3.0, "hue": 1000.0},
        },
        refused={"four channels": STRADDLES},
        reference=by.rounded(by.twist),
    ),
    "contrast": image_case(
        PHOTOS,
        contrast=FACTORS,
        variants={**COLORS, **FLOATS_IN, "center": {"contrast_center": 30.0}, "negative": {"contrast": -2.0}},
        reference=by.rounded(by.levels),
        other_defaults={"contrast_center": DEFAULT_BY_TYPE},
    ),
    "hsv": image_case(
        PHOTOS,
        hue=ANGLES,
        saturation=FACTORS,
        value=1.2,
        variants={**COLORS, **FLOATS_IN, "default": {"only": True}, "negative": {"value": -1.0}},
        refused={"four channels": STRADDLES},
        reference=by.rounded(by.twist),
    ),
    "hue": image_case(
        PHOTOS,
        hue=ANGLES,
        variants={**COLORS, **FLOATS_IN, "default": {"only": True}},
        refused={"four channels": STRADDLES},
        reference=by.rounded(by.twist),
    ),
    "saturation": image_case(
        PHOTOS,
        saturation=FACTORS,
        variants={**COLORS, **FLOATS_IN, "default": {"only": True}, "extreme": {"saturation": 30.0}},
        refused={"four channels": STRADDLES},
        reference=by.rounded(by.twist),
    ),
    "clahe": image_case(
        PHOTOS,
        tiles_x=2,
        tiles_y=3,
        clip_limit=2.0,
        variants={
            "default": {"only": True},
            "tiles": {"tiles_x": 1, "tiles_y": 1},
            "each channel": {"luma_only": False},
        },
        waits=["copies to the device @ kernels/images/lab_torch.py:_table"],
    ),
    "debayer": image_case(
        MOSAICS,
        blue_position=[0, 1],
        algorithm="bilinear_ocv",
        variants={
            **options("algorithm", "edgeaware_ocv", "vng_ocv", "gray_ocv"),
            "blue_position for each": {
                "blue_position": each([[0, 0], [1, 0], [0, 1], [1, 1], [0, 1], [1, 1]], np.int32)
            },
            "outside of the tile": {"blue_position": [0, 2]},
        },
    ),
    "equalize": exact_case(
        PHOTOS,
        reference=by.Reference(
            by.OPENCV, lambda x: np.stack([cv2.equalizeHist(x[..., c].copy()) for c in range(3)], axis=-1)
        ),
    ),
    "lookup_table": exact_case(
        MASKS,
        keys=[0, 2, 3],
        values=[0.5, 7.0, -1.0],
        default_value=9.0,
        variants={
            **dtypes("UINT8", "INT32", "FLOAT16"),
            "default": {"only": True, "keys": [], "values": []},
            "keys only repeated": {"keys": [1, 1, 2]},
        },
        reference=by.close(by.looked_up),
    ),
}
