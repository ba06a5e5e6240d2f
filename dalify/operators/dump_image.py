"""Write images to files, to look at."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ReaderError, ShapeError
from dalify.base.whole_files import write_whole
from dalify.data import DALIDataType
from dalify.registry import Spec, operator

# Each byte as text with a space behind it, zeros in front.
_TEXTS = np.array([list(f"{value} ".encode().rjust(4, b"\0")) for value in range(256)], np.uint8)


@operator(batchwise=True, serial=True, side_effect=True)
def dump_image(x: Spec, /, *, input_layout: str = "HWC", suffix: str = "") -> Spec:
    """Write each image of the batch to a file in the working folder, and pass it on unchanged.

    The files are ``<number in the batch>-<suffix>-0.ppm``, in the text form of PPM (three channels) or PGM (one), as
    DALI's; the next batch writes over them.

    Args:
        x: images of type UINT8, HWC, with 1 or 3 channels.
        input_layout: HWC; nothing else.
        suffix: part of the files' names.

    Returns:
        ``x``.

    Raises:
        ArgumentValueError: another layout, or a suffix that leads into another folder.
        LayoutError: images of another layout.
        DTypeError: images of another type.
        ShapeError: no images, or another number of channels.

    Example:
        >>> images = fn.dump_image(images, suffix="augmented")  # doctest: +SKIP
    """
    if input_layout != "HWC":
        raise ArgumentValueError(f"input_layout must be HWC; got {input_layout!r}.")
    if "/" in suffix or "\\" in suffix or "\0" in suffix:
        raise ArgumentValueError(f"suffix is a part of a file's name, without folders; got {suffix!r}.")
    if x.dtype not in (None, DALIDataType.UINT8):
        raise DTypeError(f"images to be written must be of type UINT8; got {x!r}.", hint="Convert them with fn.cast.")
    if x.layout not in (None, "", "HWC"):
        raise LayoutError(f"images to be written must be HWC; got {x!r}.", hint="Use fn.transpose.")
    if x.ndim not in (None, 3):
        raise ShapeError(f"images have three dimensions; got {x!r}.")
    return x


@dump_image.cpu
def _(x, *, suffix):
    for index, image in enumerate(x.samples):
        height, width, channels = image.shape
        if channels not in (1, 3):
            raise ShapeError(f"images with 1 or 3 channels can be written; got the shape {image.shape}.", sample=index)
        # One line per row, with a space behind each value.
        rows = _TEXTS[np.reshape(image, (height, width * channels))].reshape(height, 4 * width * channels)
        lines = np.concatenate([rows, np.full((height, 1), ord("\n"), np.uint8)], axis=1)
        text = f"P{3 if channels == 3 else 2}\n{width} {height}\n255\n".encode() + lines[lines != 0].tobytes()
        path = Path(f"{index}-{suffix}-0.ppm")
        try:
            # Batches are made ahead: whoever looks at a file must not find it half written.
            write_whole(path, [text])
        except OSError as error:
            raise ReaderError(f"cannot write the file {str(path)!r}: {error.strerror}.") from None
    return x
