"""Write images to files, for inspection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ReaderError, ShapeError
from dalify.base.whole_files import write_whole
from dalify.data import Batch, DALIDataType
from dalify.registry import Spec, operator

# Decimal digits of each byte value, followed by a space and padded with zero bytes in front.
_DIGITS = np.array([list(f"{value} ".encode().rjust(4, b"\0")) for value in range(256)], np.uint8)


@operator(serial=True, side_effect=True)
def dump_image(x: Spec, /, *, input_layout: str = "HWC", suffix: str = "") -> Spec:
    """Write each image of the batch to a file in the current directory, and return it unchanged.

    The files are named ``<index in the batch>-<suffix>-0.ppm``, as in DALI. Their contents are PPM (three channels) or
    PGM (one) in plain text. The next batch overwrites them.

    Args:
        x: images of type UINT8, HWC, with 1 or 3 channels.
        input_layout: must be HWC.
        suffix: part of the file names.

    Returns:
        ``x``.

    Raises:
        ArgumentValueError: an unsupported layout, or a suffix with a path separator.
        LayoutError: the images are not HWC.
        DTypeError: the images are not uint8.
        ShapeError: the samples are not images, or have neither 1 nor 3 channels.

    Example:
        >>> images = fn.dump_image(images, suffix="augmented")  # doctest: +SKIP
    """
    if input_layout != "HWC":
        raise ArgumentValueError(f"input_layout must be HWC; got {input_layout!r}.")
    if "/" in suffix or "\\" in suffix or "\0" in suffix:
        raise ArgumentValueError(f"suffix must be part of a file name, without path separators; got {suffix!r}.")
    if x.dtype not in (None, DALIDataType.UINT8):
        raise DTypeError(f"images must be of type uint8; got {x!r}.", hint="Convert them with fn.cast.")
    if x.layout not in (None, "", "HWC"):
        raise LayoutError(f"images must be HWC; got {x!r}.", hint="Use fn.transpose.")
    if x.ndim not in (None, 3):
        raise ShapeError(f"images must have three dimensions; got {x!r}.")
    return x


@dump_image.cpu_batch
def _(x: Batch, *, suffix: str) -> Any:
    for index, image in enumerate(x.samples):
        height, width, channels = image.shape
        if channels not in (1, 3):
            raise ShapeError(f"images must have 1 or 3 channels; got the shape {image.shape}.", sample=index)
        # One line per row, with a space after each value.
        rows = _DIGITS[np.reshape(image, (height, width * channels))].reshape(height, 4 * width * channels)
        lines = np.concatenate([rows, np.full((height, 1), ord("\n"), np.uint8)], axis=1)
        contents = f"P{3 if channels == 3 else 2}\n{width} {height}\n255\n".encode() + lines[lines != 0].tobytes()
        path = Path(f"{index}-{suffix}-0.ppm")
        try:
            # Batches are computed ahead, while programs may read the file of an earlier one. So it is replaced
            # atomically.
            write_whole(path, [contents])
        except OSError as error:
            raise ReaderError(f"cannot write the file {str(path)!r}: {error.strerror}.") from None
    return x
