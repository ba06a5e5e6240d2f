"""Defines torchvision's operators that decode images with Pillow, if torchvision's compiled part cannot be loaded."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from PIL import Image

from tests.helpers.torchvision_import import import_torchvision

_SCHEMAS = [
    "read_file(str filename) -> Tensor",
    "decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",
]
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # by number of torchvision's ImageReadMode
_defined: list[Any] = []  # must exist until the process ends


def import_decoder() -> ModuleType:
    """Import ``torchvision.io``, whose `decode_image` and `read_image` then decode JPEG and PNG files."""
    import_torchvision()
    module: Any = import_torchvision("torchvision.io")
    if not module.image._has_image_ops():
        library = torch.library.Library("image", "DEF")
        for schema, function in zip(_SCHEMAS, (_read_file, _decode_image), strict=True):
            library.define(schema)
            library.impl(schema.split("(")[0], function, "CompositeExplicitAutograd")
        _defined.append(library)
        module.image._has_image_ops = lambda: True
    return module


def _read_file(filename: str) -> torch.Tensor:
    try:
        return torch.frombuffer(bytearray(Path(filename).read_bytes()), dtype=torch.uint8)
    except OSError as error:
        raise RuntimeError(str(error)) from None


def _decode_image(data: torch.Tensor, mode: int, apply_exif_orientation: bool = False) -> torch.Tensor:
    try:
        image = Image.open(io.BytesIO(data.numpy().tobytes()))
        pixels = np.array(image if mode == 0 else image.convert(_MODES[mode]))
    except Exception as error:
        raise RuntimeError(type(error).__name__) from None
    pixels = pixels.astype(np.uint16) if pixels.dtype.itemsize > 1 else pixels
    return torch.from_numpy(pixels.reshape(*pixels.shape[:2], -1)).permute(2, 0, 1)
