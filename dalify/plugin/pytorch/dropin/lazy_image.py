"""One image, or windows in a batch of images of equal size, that geometric steps modify lazily.

An image delays its resize, so that after a crop only the cropped part is computed; crops and flips of pixels in memory
are views. Windows only have corners and flips.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from dalify.base.small_arrays import zeros
from dalify.plugin.pytorch.dropin.kernels.pillow_color import fill_with_luma
from dalify.plugin.pytorch.dropin.kernels.pillow_resample import Window, resample

_Array = np.ndarray[Any, Any]
Margins = tuple[int, int, int, int]  # left, top, right, bottom


class Padding(NamedTuple):
    """The pixels of margins.

    Attributes:
        fill: their color, one value per channel, for the mode ``constant``.
        mode: mode of ``np.pad``, which torchvision calls for Pillow images.
        is_tensor: True if torchvision pads a tensor; it is then planar, see ``LazyImage.is_planar``.
    """

    fill: tuple[int, ...]
    mode: str = "constant"
    is_tensor: bool = False


class LazyImage:
    """One image during the steps.

    Args:
        pixels: uint8 ``[height, width, channels]``, never modified; or a function that returns at least the given
            number of rows from the top, called once.
        height: height of the image, if `pixels` is a function.
        width: width of the image, if `pixels` is a function.
        info: ``Image.info`` of Pillow, updated as by torchvision's transforms; None if it is not needed.

    Attributes:
        is_planar: True if the channels of torchvision's tensor are consecutive in memory.
    """

    def __init__(
        self,
        pixels: _Array | Callable[[int], _Array],
        height: int = 0,
        width: int = 0,
        info: dict[Any, Any] | None = None,
    ) -> None:
        self._decode: Callable[[int], _Array] | None = None
        self.height, self.width = height, width
        self._source_height = height
        self._resized: tuple[tuple[int, int], str] | None = None
        self._corner = (0, 0)
        self._flips = (False, False)
        self.is_planar = False
        self.info = info
        if isinstance(pixels, np.ndarray):
            self._set(pixels)
        else:
            self._decode = pixels

    @property
    def is_encoded(self) -> bool:
        """Whether the pixels are those of the file, and not decoded yet."""
        return self._decode is not None and self._resized is None

    def _decoded(self, rows: int) -> _Array:
        """Return the pixels before the pending resize, at least the given number of rows."""
        if self._decode is not None:
            self._pixels = self._decode(rows)
            self._decode = None
        return self._pixels

    def check(self) -> None:
        """Decode if necessary, so that a decoding error is raised before errors of the steps."""
        self._decoded(self._source_height)

    def pixels(self) -> _Array:
        """Compute the pending resize, crops and flips.

        Returns:
            uint8 ``[height, width, channels]``, any strides, valid until this thread resizes another image.
        """
        if self._resized is None:
            return self._decoded(self.height)
        size, name = self._resized
        window = Window(*self._corner, self.height, self.width)
        found = resample(self._decoded(self._source_height), size, name, window)
        if self._flips[0]:
            found = found[::-1]
        return found[:, ::-1] if self._flips[1] else found

    def materialize(self) -> _Array:
        """Compute the pending resize, crops and flips into memory that later steps do not modify.

        Returns:
            uint8 ``[height, width, channels]``, any strides.
        """
        if self._resized is not None:
            self._pixels = self.pixels().copy()  # a second resize would overwrite the memory of the first
            self._resized, self._corner, self._flips = None, (0, 0), (False, False)
        return self._decoded(self.height)

    def replace(self, pixels: _Array) -> None:
        """Replace the pixels: uint8 ``[height, width, channels]``, any strides, never modified."""
        self._resized = None
        self._set(pixels)

    def _clear_info(self) -> None:
        """Clear the info, because torchvision creates a new image here."""
        if self.info is not None:
            self.info = {}

    def _set(self, pixels: _Array) -> None:
        self._pixels = pixels
        self.height, self.width = pixels.shape[:2]

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        """Crop to a window; pixels outside of the image are black."""
        if top < 0 or left < 0 or top + height > self.height or left + width > self.width:
            # As in Pillow.
            margins = max(0, -left), max(0, -top), max(0, left + width - self.width), max(0, top + height - self.height)
            info = self.info
            self.pad(margins, Padding((0,) * self._decoded(self.height).shape[2]))
            self.info = info
            top, left = max(0, top), max(0, left)
        if self._resized is None:
            self._set(self._decoded(top + height)[top : top + height, left : left + width])
            return
        if self._flips[0]:
            top = self.height - top - height
        if self._flips[1]:
            left = self.width - left - width
        self._corner = self._corner[0] + top, self._corner[1] + left
        self.height, self.width = height, width

    def flip(self, axis: int, is_flipped: bool) -> None:
        """Mirror along y (0) or x (1) if `is_flipped`."""
        if not is_flipped:
            return
        if self._resized is None:
            pixels = self._decoded(self.height)
            self._pixels = pixels[::-1] if axis == 0 else pixels[:, ::-1]
        else:
            self._flips = (not self._flips[0], self._flips[1]) if axis == 0 else (self._flips[0], not self._flips[1])

    def pad(self, margins: Margins, padding: Padding) -> None:
        """Add margins."""
        left, top, right, bottom = margins
        self.is_planar = self.is_planar or padding.is_tensor
        pixels = self.materialize()
        self._clear_info()
        if padding.mode != "constant":
            mode: Any = padding.mode
            self._set(np.pad(pixels, ((top, bottom), (left, right), (0, 0)), mode=mode))
            return
        padded = np.empty((self.height + top + bottom, self.width + left + right, pixels.shape[2]), np.uint8)
        padded[...] = padding.fill
        padded[top : top + self.height, left : left + self.width] = pixels
        self._set(padded)

    def resize(self, size: tuple[int, int], name: str) -> None:
        """Resize to a height and a width."""
        if size == (self.height, self.width):
            return
        if min(size) <= 0:
            raise ValueError("height and width must be > 0")
        if self._resized is not None:
            self.materialize()
        self._source_height = self.height
        self._resized = size, name
        self.height, self.width = size

    def gray(self, channels: int) -> None:
        """Convert to luma, in one or three channels."""
        pixels = self.materialize()
        if channels == 3:
            self._clear_info()
        if pixels.shape[2] == 1:
            self._set(np.repeat(pixels, channels, axis=2))
            return
        gray = np.empty((self.height, self.width, channels), np.uint8)
        fill_with_luma(gray, pixels)
        self._set(gray)


def image_of(pixels: _Array) -> Image.Image:
    """Return a Pillow image for uint8 ``[height, width, 1 or 3]``."""
    return Image.fromarray(np.ascontiguousarray(pixels if pixels.shape[2] > 1 else pixels[..., 0]))


def pixels_of(image: Image.Image | torch.Tensor | _Array) -> _Array:
    """Return the pixels of a Pillow image, a tensor or an array, ``[height, width, channels]``."""
    if isinstance(image, torch.Tensor):
        return image.as_subclass(torch.Tensor).permute(1, 2, 0).numpy()
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]


class NoWindowError(Exception):
    """The result of the steps is not a window of the image."""


class Windows:
    """Windows of images of equal size, one for each sample of a batch."""

    def __init__(self, samples: int, height: int, width: int, channels: int) -> None:
        self.height, self.width = height, width
        self.corners = zeros((samples, 2), np.int64)
        self.flips = zeros((samples, 2), np.bool_)
        self.fill: tuple[int, ...] | None = None
        self._channels = channels
        self._is_cropped = False

    def crop(self, top: Any, left: Any, height: int, width: int) -> None:
        """Crop the windows; the crop is inside of each."""
        size = self.height, self.width
        for axis, (start, extent) in enumerate(((top, height), (left, width))):
            self.corners[:, axis] += np.where(self.flips[:, axis], size[axis] - start - extent, start)
        self._is_cropped = self._is_cropped or (height, width) != size
        self.height, self.width = height, width

    def flip(self, axis: int, is_flipped: Any) -> None:
        """Mirror the windows in which `is_flipped` is True along y (0) or x (1)."""
        self.flips[:, axis] ^= is_flipped

    def pad(self, margins: Margins, padding: Padding) -> None:
        """Add margins of one color; NoWindowError after a crop, or if the color differs from earlier margins."""
        left, top, right, bottom = margins
        if padding.mode != "constant" or self._is_cropped or self.fill not in (None, padding.fill):
            raise NoWindowError
        self.fill = padding.fill
        self.corners[:, 0] -= np.where(self.flips[:, 0], bottom, top)
        self.corners[:, 1] -= np.where(self.flips[:, 1], right, left)
        self.height, self.width = self.height + top + bottom, self.width + left + right

    def resize(self, size: tuple[int, int], name: str) -> None:
        """Raise NoWindowError, unless the size does not change."""
        if size != (self.height, self.width):
            raise NoWindowError

    def gray(self, channels: int) -> None:
        """Raise NoWindowError, unless grayscale images stay grayscale."""
        if (channels, self._channels) != (1, 1):
            raise NoWindowError
