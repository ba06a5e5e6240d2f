"""``imread``: read and decode image files, ``ndd.imread("photo.jpg")``."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dalify.experimental.dynamic.batch import Batch
from dalify.experimental.dynamic.calls import apply
from dalify.experimental.dynamic.tensor import Tensor

__all__ = ["imread"]


def imread(filepaths: Any, /, *, device: Any = "cpu", **arguments: Any) -> Tensor | Batch:
    """Return the image of a file, or a batch of the images of several files.

    Args:
        filepaths: a path, a list of paths, or their bytes in a tensor or batch.
        device: device of the images.
        arguments: arguments of ``fn.decoders.image``.

    Raises:
        DecodeError: a file is not a decodable image.
    """
    if isinstance(filepaths, (list, tuple)):
        filepaths = Batch([_path(item) for item in filepaths], dtype=None)
    elif isinstance(filepaths, (str, os.PathLike)):
        filepaths = _path(filepaths)
    return apply("decoders.image", apply("io.file.read", filepaths), device=device, **arguments)


def _path(item: Any) -> Any:
    if not isinstance(item, (str, os.PathLike)):
        return item
    return np.frombuffer(os.fsencode(item), np.uint8)
