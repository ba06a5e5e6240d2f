"""Contact sheets: a batch of images with captions in one image file, for demo and tutorials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

__all__ = ["contact_sheet"]

GAP, CAPTION_HEIGHT = 6, 16


def contact_sheet(
    path: Path, images: Sequence[np.ndarray], captions: Sequence[str], *, columns: int = 8, cell: int = 128
) -> Path:
    """Write images row by row.

    Args:
        path: path of the PNG file; its folder is created.
        images: uint8 arrays of shape (height, width, 3) of any sizes; larger ones are scaled to fit.
        captions: one line per image.
        columns: images per row.
        cell: side of the square of an image in pixels.

    Returns:
        `path`.
    """
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    width, height = cell + GAP, cell + CAPTION_HEIGHT + GAP
    sheet = Image.new("RGB", (columns * width + GAP, rows * height + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for index, (image, caption) in enumerate(zip(images, captions, strict=True)):
        left, top = GAP + index % columns * width, GAP + index // columns * height
        thumbnail = Image.fromarray(np.asarray(image))
        thumbnail.thumbnail((cell, cell))
        sheet.paste(thumbnail, (left + (cell - thumbnail.width) // 2, top + (cell - thumbnail.height) // 2))
        draw.text((left, top + cell + 2), caption, fill="black")
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)
    print(f"image file: {path}")
    return path
