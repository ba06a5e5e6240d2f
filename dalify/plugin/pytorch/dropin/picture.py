"""What geometric steps work on: one picture, or the windows of a batch of equal pictures.

Both are lazy. A picture remembers that it is to be resized, so that a crop behind the resize computes the cropped part
only; crops and flips of what is there are views. Windows are nothing but corners and flips.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalify.base import scratch
from dalify.plugin.pytorch.dropin.kernels.pillow_resample import Window, resample
from dalify.plugin.pytorch.dropin.kernels.pixel_table import luma

__all__ = ["NoWindowError", "OpenedImage", "Picture", "Windows"]

_Array = np.ndarray[Any, Any]
Margins = tuple[int, int, int, int]  # left, top, right, bottom


class Picture:
    """One picture on its way through the steps.

    Args:
        pixels: uint8 ``[height, width, channels]``, never written to; or a function that gives that many of the first
            rows of it, or more, called once.
        height: of the picture, where a function is given.
        width: of the picture, where a function is given.

    Attributes:
        is_planar: it has been a tensor whose memory has one channel after the other.
        info: what Pillow knows of it beside the pixels, as far as torchvision's transforms keep it; None where nobody
            is going to ask.
    """

    def __init__(self, pixels: _Array | Callable[[int], _Array], height: int = 0, width: int = 0) -> None:
        self._decode: Callable[[int], _Array] | None = None
        self.height, self.width = height, width
        self._source_height = height
        self._resized: tuple[tuple[int, int], str] | None = None
        self._corner = (0, 0)
        self._flips = (False, False)
        self.is_planar = False
        self.info: dict[Any, Any] | None = None
        if isinstance(pixels, np.ndarray):
            self._set(pixels)
        else:
            self._decode = pixels

    def _decoded(self, rows: int) -> _Array:
        """What is there before the pending resize, at least so many rows of it."""
        if self._decode is not None:
            self._pixels = self._decode(rows)
            self._decode = None
        return self._pixels

    def check(self) -> None:
        """Decode if necessary, so that a decoding error is raised before errors of the steps."""
        self._decoded(self._source_height)

    def pixels(self) -> _Array:
        """Compute what is pending.

        Returns:
            uint8 ``[height, width, channels]``, any strides, valid until this thread resizes another picture.
        """
        if self._resized is None:
            return self._decoded(self.height)
        size, name = self._resized
        window = Window(*self._corner, self.height, self.width)
        found = resample(self._decoded(self._source_height), size, name, window, scratch.borrow)
        if self._flips[0]:
            found = found[::-1]
        return found[:, ::-1] if self._flips[1] else found

    def settle(self) -> _Array:
        """Compute what is pending, into memory that later steps leave alone.

        Returns:
            uint8 ``[height, width, channels]``, any strides.
        """
        if self._resized is not None:
            self._pixels = self.pixels().copy()  # a second resize would use the memory of the first
            self._resized, self._corner, self._flips = None, (0, 0), (False, False)
        return self._decoded(self.height)

    def replace(self, pixels: _Array) -> None:
        """Go on with other pixels: uint8 ``[height, width, channels]``, any strides, never written to."""
        self._resized = None
        self._set(pixels)

    def _forget_info(self) -> None:
        """Note that torchvision makes a new image here."""
        if self.info is not None:
            self.info = {}

    def _set(self, pixels: _Array) -> None:
        self._pixels = pixels
        self.height, self.width = pixels.shape[:2]

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        """Cut out a window; black where it lies outside."""
        if top < 0 or left < 0 or top + height > self.height or left + width > self.width:
            # Pillow's crop of what is not there is black.
            margins = max(0, -left), max(0, -top), max(0, left + width - self.width), max(0, top + height - self.height)
            info = self.info
            self.pad(margins, (0,) * self._decoded(self.height).shape[2], "constant")
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

    def flip(self, axis: int, is_wanted: bool) -> None:
        """Mirror along y (0) or x (1), or not."""
        if not is_wanted:
            return
        if self._resized is None:
            pixels = self._decoded(self.height)
            self._pixels = pixels[::-1] if axis == 0 else pixels[:, ::-1]
        else:
            self._flips = (not self._flips[0], self._flips[1]) if axis == 0 else (self._flips[0], not self._flips[1])

    def pad(self, margins: Margins, fill: tuple[int, ...], mode: str, is_tensor: bool = False) -> None:
        """Add margins: of one color, or as ``np.pad`` does it, which is what torchvision calls for Pillow images."""
        left, top, right, bottom = margins
        self.is_planar = self.is_planar or is_tensor  # torch's padding puts the channels one after the other
        pixels = self.settle()
        self._forget_info()
        if mode != "constant":
            self._set(np.pad(pixels, ((top, bottom), (left, right), (0, 0)), mode=mode))  # type: ignore[call-overload]
            return
        padded = np.empty((self.height + top + bottom, self.width + left + right, pixels.shape[2]), np.uint8)
        padded[...] = fill
        padded[top : top + self.height, left : left + self.width] = pixels
        self._set(padded)

    def resize(self, size: tuple[int, int], name: str) -> None:
        """Resize to a height and a width."""
        if size == (self.height, self.width):
            return
        if min(size) <= 0:
            raise ValueError("height and width must be > 0")
        if self._resized is not None:
            self.settle()
        self._source_height = self.height
        self._resized = size, name
        self.height, self.width = size

    def gray(self, channels: int) -> None:
        """Turn into luma, once or three times."""
        pixels = self.settle()
        if channels == 3:
            self._forget_info()
        if pixels.shape[2] == 1:
            self._set(np.repeat(pixels, channels, axis=2))
            return
        gray = np.empty((self.height, self.width, channels), np.uint8)
        luma(pixels, gray)
        self._set(gray)


class OpenedImage:
    """An image of Pillow that no step may touch, because it is neither RGB nor gray, or nobody knows whether it is.

    Args:
        image: as its dataset opened it; later what torchvision's transforms made of it.
    """

    def __init__(self, image: Any) -> None:
        self.image = image


class NoWindowError(Exception):
    """The steps make of a picture something else than a window on it."""


class Windows:
    """Windows on pictures of one size, one for each sample of a batch.

    Args:
        samples: how many.
        height: of the pictures.
        width: of the pictures.
        channels: of the pictures.
    """

    def __init__(self, samples: int, height: int, width: int, channels: int) -> None:
        self.height, self.width = height, width
        self.corners = np.zeros((samples, 2), np.int64)
        self.flips = np.zeros((samples, 2), np.bool_)
        self.fill: tuple[int, ...] | None = None
        self._channels = channels
        self._is_cut = False

    def crop(self, top: Any, left: Any, height: int, width: int) -> None:
        """Cut windows out of the windows; they must lie within."""
        size = self.height, self.width
        for axis, (start, extent) in enumerate(((top, height), (left, width))):
            if np.min(start) < 0 or np.max(start) + extent > size[axis]:
                raise NoWindowError
            self.corners[:, axis] += np.where(self.flips[:, axis], size[axis] - start - extent, start)
        self._is_cut = self._is_cut or (height, width) != size
        self.height, self.width = height, width

    def flip(self, axis: int, is_wanted: Any) -> None:
        """Mirror those that are wanted along y (0) or x (1)."""
        self.flips[:, axis] ^= is_wanted

    def pad(self, margins: Margins, fill: tuple[int, ...], mode: str, is_tensor: bool = False) -> None:
        """Add margins of one color, the same at each padding, before anything was cut off."""
        left, top, right, bottom = margins
        if mode != "constant" or self._is_cut or self.fill not in (None, fill):
            raise NoWindowError
        self.fill = fill
        self.corners[:, 0] -= np.where(self.flips[:, 0], bottom, top)
        self.corners[:, 1] -= np.where(self.flips[:, 1], right, left)
        self.height, self.width = self.height + top + bottom, self.width + left + right

    def resize(self, size: tuple[int, int], name: str) -> None:
        """Refuse, but for the size that is there."""
        if size != (self.height, self.width):
            raise NoWindowError

    def gray(self, channels: int) -> None:
        """Refuse, but for gray pictures that stay so."""
        if (channels, self._channels) != (1, 1):
            raise NoWindowError
