"""Cases of operators: decoders."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from dalify import types
from tests.operators.battery import references as by
from tests.operators.battery.case import (
    DEFAULT_AXES,
    DRAWN,
    GONE,
    NO_CPU,
    OUTSIDE_NAMES,
    Case,
    each,
    exact_case,
    float_case,
    image_case,
)
from tests.operators.battery.changes import dtypes
from tests.operators.battery.data import (
    DEFLATED,
    JPEGS,
    NUMPY_FILES,
    PATHS,
    PHOTOS,
    PNGS,
    SHAPES,
    VIDEOS,
    WAVES,
    encoded,
)

CASES: dict[str, Case] = {
    "decoders.audio": float_case(
        WAVES,
        variants={
            "downmix": {"downmix": True},
            **dtypes("INT16", "INT32", "FLOAT"),
            "sample_rate": {"sample_rate": 8000.0},
            "quality": {"sample_rate": 11025.0, "quality": 10.0},
        },
        reference=by.close(by.opened_audio, "wave"),
    ),
    "decoders.image": image_case(
        JPEGS,
        share=0.02,
        variants={
            "GRAY": {"output_type": types.GRAY},
            "BGR": {"output_type": types.BGR},
            "YCbCr": {"output_type": types.YCbCr},
            "ANY_DATA": {"output_type": types.ANY_DATA},
            "png": {"inputs": (PNGS,)},
            "png, gray": {"inputs": (PNGS,), "output_type": types.GRAY},
            "bmp": {"inputs": (encoded(".bmp"),)},
            "tiff": {"inputs": (encoded(".tiff"),)},
            "webp": {"inputs": (encoded(".webp"),)},
            "ppm": {"inputs": (encoded(".ppm"),)},
        },
        reference=by.rounded(by.opened, by.PILLOW, share=0.05),
        own_arguments={"cache_folder": "a cache that processes share and that remains after they end"},
    ),
    "decoders.image_crop": image_case(
        JPEGS,
        crop=[16, 20],
        share=0.02,
        variants={
            "no window": {"crop": GONE},
            "position": {"crop_pos_x": 0.1, "crop_pos_y": each([0, 0.2, 0.5, 0.7, 1, 0.5])},
            "too large": {"crop": [200, 300]},
            "gray": {"output_type": types.GRAY},
            "crop_w": {"crop": GONE, "crop_w": 13.0},
        },
        reference=by.rounded(lambda x, crop: by.cropped(by.opened(x), crop), by.PILLOW, share=0.05),
    ),
    "decoders.image_random_crop": exact_case(JPEGS, not_compared_with_dali=DRAWN),
    "decoders.image_slice": image_case(
        JPEGS,
        rel_start=[0.1, 0.2],
        rel_end=[0.7, 0.8],
        axis_names="HW",
        share=0.02,
        variants={
            "start, end": {"only": True, "start": [2, 3], "end": [12, 33]},
            "start, shape": {"only": True, "start": [2, 3], "shape": [12, 20]},
            "too large": {"rel_start": [0.5, 0.5], "rel_end": [1.5, 1.2]},
            "gray": {"output_type": types.GRAY},
            "WH": {"axis_names": "WH"},
        },
        reference=by.rounded(lambda x, **given: by.part(by.opened(x), **given), by.PILLOW, share=0.05),
        other_defaults={"axes": DEFAULT_AXES, "axis_names": DEFAULT_AXES},
    ),
    "decoders.inflate": exact_case(
        DEFLATED, shape=SHAPES, dtype=types.FLOAT, algorithm="LZ4", not_compared_with_dali=NO_CPU
    ),
    "decoders.numpy": exact_case(
        NUMPY_FILES,
        dtype=types.FLOAT,
        reference=by.exact(lambda x, dtype: np.load(io.BytesIO(x.tobytes()))),
    ),
    "io.file.read": exact_case(
        PATHS,
        reference=by.exact(lambda x: np.frombuffer(Path(x.tobytes().decode()).read_bytes(), np.uint8)),
        own_arguments=OUTSIDE_NAMES,
        not_recorded="its files are those of this repository, which change",
    ),
    "decoders.video": exact_case(VIDEOS, frames=[4, 0, 7, 4]),
    "dump_image": exact_case(PHOTOS, suffix="case"),
    "peek_image_shape": exact_case(
        PNGS,
        reference=by.Reference(by.PILLOW, lambda x: np.array(by.opened(x).shape, np.int64)),
    ),
}
