"""Draw images before and after each image operator: ``python -m docs.pictures [operator ...]``.

The images are committed. JPEG encoders differ between versions, so tests check only that the images exist and that
drawing is deterministic.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dalify import types
from dalify.base.errors import DalifyError
from dalify.registry import catalog
from tests.helpers.photos import drawn_photo
from tests.operators.battery.case import Case, Data
from tests.operators.battery.cases import CASES
from tests.operators.battery.data import PHOTOS
from tests.operators.battery.run_case import NAMES, run_case

FOLDER = Path(__file__).with_name("pictures")
_HEIGHT, _WIDTH, _GAP = 120, 160, 8
_LARGEST_BYTES = 12000

# Arguments whose effect is easier to see than that of the test cases.
_SHOWN: dict[str, Mapping[str, Any]] = {
    "brightness": {"brightness": 1.5},
    "brightness_contrast": {"brightness": 1.2, "contrast": 1.6},
    "clahe": {"tiles_x": 4, "tiles_y": 4, "clip_limit": 4.0},
    "color_space_conversion": {"image_type": types.RGB, "output_type": types.YCbCr},
    "color_twist": {"hue": 60.0, "saturation": 1.5, "brightness": 1.1, "contrast": 1.2},
    "contrast": {"contrast": 2.0},
    "crop": {"crop": [80, 100], "crop_pos_x": 0.2},
    "crop_mirror_normalize": {"crop": [80, 100], "mirror": 1, "mean": [0.0], "std": [1.0], "output_layout": "HWC"},
    "erase": {"anchor": [20, 30], "shape": [50, 60], "axis_names": "HW", "fill_value": [20, 200, 120]},
    "experimental.dilate": {"mask_size": [9, 9]},
    "experimental.erode": {"mask_size": [9, 9]},
    "experimental.median_blur": {"window_size": [9, 9]},
    "experimental.resize": {"size": [60, 140]},
    "experimental.warp_perspective": {"matrix": [1, 0.2, -20, 0, 1.2, -10, 0, 0.003, 1], "fill_value": [0]},
    "equalize": {},
    "flip": {"horizontal": 1},
    "gaussian_blur": {"sigma": 4.0},
    "grid_mask": {"tile": 30, "ratio": 0.4, "angle": 0.3},
    "hsv": {"hue": 120.0, "saturation": 1.3},
    "hue": {"hue": 90.0},
    "jitter": {"nDegree": 8},
    "jpeg_compression_distortion": {"quality": 5},
    "laplacian": {"window_size": 5, "normalized_kernel": True},
    "noise.gaussian": {"stddev": 30.0},
    "noise.salt_and_pepper": {"prob": 0.1},
    "noise.shot": {"factor": 30.0},
    "pad": {"axis_names": "HW", "align": [64], "fill_value": 90.0},
    "paste": {"ratio": 1.5, "fill_value": [104, 117, 123]},
    "random_resized_crop": {"size": [100, 100]},
    "resize": {"size": [60, 140]},
    "resize_crop_mirror": {"resize_shorter": 140, "crop": [100, 100], "mirror": 1},
    "rotate": {"angle": 20.0, "fill_value": 0.0},
    "saturation": {"saturation": 3.0},
    "slice": {"rel_start": [0.2, 0.1], "rel_end": [0.8, 0.9], "axis_names": "HW"},
    "sphere": {},
    "tensor_resize": {"sizes": [60.0, 140.0], "axes": [0, 1]},
    "warp_affine": {"matrix": [1.0, 0.3, -20, 0.1, 1.0, 0], "fill_value": 0.0},
    "water": {"ampl_x": 6.0, "ampl_y": 6.0, "freq_x": 0.2, "freq_y": 0.2},
}
_MASKS = {"filter", "multi_paste", "experimental.remap", "copy", "cast_like", "permute_batch", "full_like"}


def has_picture(name: str) -> bool:
    """Whether an operator takes one image and changes its content."""
    if name in _SHOWN:
        return True
    case = CASES.get(name)
    if case is None or not case.inputs or case.inputs[0] is not PHOTOS or name in _MASKS:
        return False
    return (
        len(case.inputs) == 1 and name.split(".")[0] in {"noise", "experimental", "auto_aug"} and "function" not in name
    )


def picture_of(name: str, folder: Path) -> np.ndarray | None:
    """Return the photo and the result of the operator side by side, uint8 HWC; None if the result is not an image.

    Args:
        name: name of the operator.
        folder: an empty folder.
    """
    photo = drawn_photo(_HEIGHT, _WIDTH, 23)
    given = _SHOWN.get(name, CASES[name].given(folder))
    case = Case(inputs=(Data([photo] * 6, "HWC"),), arguments=given)
    # The last sample, so that not all random operators show the same draw.
    [(layout, samples)] = run_case(name, case, folder, (0, 1, 2))
    result = samples[2]
    if layout != "HWC" or result.shape[2] != 3:
        return None
    shown = np.clip(result, 0, 255).astype(np.uint8)
    height = max(_HEIGHT, shown.shape[0])
    canvas = np.full((height, _WIDTH + _GAP + shown.shape[1], 3), 255, np.uint8)
    canvas[:_HEIGHT, :_WIDTH] = photo
    canvas[: shown.shape[0], _WIDTH + _GAP :] = shown
    return canvas


def _encoded(picture: np.ndarray) -> bytes:
    """Encode as JPEG; noisy images with lower quality, to limit the size."""
    for quality in (84, 70, 50, 30):
        file = io.BytesIO()
        Image.fromarray(picture).save(file, "JPEG", quality=quality, optimize=True)
        if file.tell() <= _LARGEST_BYTES:
            break
    return file.getvalue()


def main(names: list[str]) -> None:
    """Write the images of operators.

    Args:
        names: names of operators; those without an image are skipped.
    """
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if not has_picture(name) or name not in catalog.names():
                continue
            try:
                picture = picture_of(name, Path(folder))
            except DalifyError as error:
                print(f"{name}: no image: {error}", file=sys.stderr)
                continue
            if picture is not None:
                (FOLDER / f"{name}.jpg").write_bytes(_encoded(picture))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", default=NAMES)
    main(parser.parse_args().operators)
