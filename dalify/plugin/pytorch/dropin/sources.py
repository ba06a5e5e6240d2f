"""Sources of samples: image files, or arrays in memory."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
from PIL import Image

from dalify.base import scratch
from dalify.base.errors import DecodeError
from dalify.codecs.jpeg import JpegHeader, decode_jpeg, read_jpeg_header
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage, image_of, pixels_of
from dalify.plugin.pytorch.dropin.lowered import PythonStages
from dalify.plugin.pytorch.dropin.lowering import lower_transform
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError, Plan, draws_per_sample
from dalify.plugin.pytorch.dropin.torchvision_steps import PythonContainer

__all__ = ["ArraySource", "FileSource", "Source", "open_image"]

_Array = np.ndarray[Any, Any]
Lookup = Callable[[Any], tuple[Any, Any]]
_JPEG_START = b"\xff\xd8\xff"
_SPARE_BYTES = 16
_RGB = 3
_COMMON_FRAMES = (0xC0, 0xC1, 0xC2)  # baseline, extended, progressive; all with Huffman codes


def open_image(path: Any) -> Image.Image:
    """Open an image as RGB, as torchvision's datasets do."""
    with Path(path).open("rb") as file, Image.open(file) as image:
        return image.convert("RGB")


class Source(ABC):
    """Images with labels, and the computation for each image.

    Args:
        dataset: the dataset.
        transform: transform of the images.
        target_transform: transform of the labels; None for none.
        channels: number of channels of the images.
        description: what the source is, for reports.

    Attributes:
        plan: the supported transforms.
        rest: the transforms after them.
        slow_labels: whether slow Python code computes the labels.
    """

    def __init__(self, dataset: Any, transform: Any, target_transform: Any, channels: int, description: str) -> None:
        self.dataset = dataset
        self.target_transform = target_transform
        self.slow_labels = False
        self.plan: Plan = lower_transform(transform, channels)
        self.rest = PythonStages(self.plan.rest)
        self.description = f"{type(dataset).__name__} of {description}"

    @property
    def is_complete(self) -> bool:
        """Whether no Python code of the user is called, and the images are tensors."""
        return self.plan.is_complete and self.target_transform is None

    @abstractmethod
    def open(self, index: Any) -> tuple[Image.Image, Any]:
        """Open one sample as a Pillow image; return image and label."""

    @abstractmethod
    def read(self, index: Any, draws: TorchDraws) -> tuple[LazyImage | Image.Image, Any]:
        """Read one sample for the plan; return image and label."""

    def sample(self, index: Any, draws: TorchDraws) -> tuple[Any, ...]:
        """Compute one sample: the result of all transforms, and the label.

        Args:
            index: index of the sample.
            draws: random numbers.

        Raises:
            Exception: the errors of the user's dataset.
        """
        if self.plan.names:
            image, label = self.read(index, draws)
            result = self.plan.sample(image, draws)
        else:
            result, label = self.open(index)
        result = self.rest(result)
        return result, label if self.target_transform is None else self.target_transform(label)


class FileSource(Source):
    """Image files with labels.

    Args:
        dataset: the dataset.
        lookup: returns path and label of a sample.
        load: opens an image with Pillow.
        count: number of samples.
        transform: transform of the images.
        target_transform: transform of the labels; None for none.
        slow_labels: whether slow Python code computes the labels.
        is_rgb: whether opened images are converted to RGB.

    Raises:
        NotRecognizedError: images that are not RGB would get other random numbers.
    """

    def __init__(
        self,
        dataset: Any,
        lookup: Lookup,
        load: Callable[[Any], Image.Image],
        count: int,
        transform: Any,
        target_transform: Any,
        slow_labels: bool = False,
        is_rgb: bool = True,
    ) -> None:
        super().__init__(dataset, transform, target_transform, 3, f"{count} files")
        self.slow_labels = slow_labels
        self._lookup = lookup
        self._load = load
        self._is_rgb = is_rgb
        if not is_rgb and any(isinstance(step, PythonContainer) for step in self.plan.steps):
            raise NotRecognizedError(
                "images that are not all RGB are combined with transforms that draw from Python's generator"
            )

    def open(self, index: Any) -> tuple[Image.Image, Any]:
        """Open one sample with Pillow; return image and label."""
        path, label = self._lookup(index)
        return self._load(path), label

    def read(self, index: Any, draws: TorchDraws) -> tuple[LazyImage | Image.Image, Any]:
        """Read one sample; a JPEG is decoded when the number of necessary rows is known.

        Args:
            index: index of the sample.
            draws: random numbers; reset if decoding fails later, because torch decodes before it draws.

        Returns:
            the image, valid until this thread reads the next one, and the label. An image that is, or may be, neither
            RGB nor grayscale is one of Pillow.

        Raises:
            IndexError: there is no such sample.
            OSError: the file cannot be read or is not an image; Pillow may raise other errors.
        """
        path, label = self._lookup(index)
        data = _contents(path)
        header = _plain_jpeg_header(data)
        gives_images = self.plan.table is None
        if not self._is_rgb and (header is None or header.components != _RGB or gives_images):
            return self._load(path), label
        if header is None:
            image = self._load(path)
            return LazyImage(pixels_of(image), info=image.info if gives_images else None), label
        mark = draws.mark() if self.plan.is_random else None

        def decode(rows: int) -> _Array:
            buffer = scratch.borrow("decoded image", (header.height * header.width * 3 + _SPARE_BYTES,))
            try:
                if rows < header.height:
                    encoded = np.frombuffer(data, np.uint8)
                    return decode_jpeg(encoded, header, "RGB", out=buffer, rows=rows)
                return simplejpeg.decode_jpeg(data, "RGB", buffer=buffer)
            except (DecodeError, ValueError):
                pass  # Pillow may be able to decode it
            try:
                return pixels_of(self._load(path))[:rows]  # for Pillow's warnings and errors
            except Exception:
                if mark is not None:
                    draws.rewind(mark)
                raise

        info = None
        if gives_images:
            with Image.open(io.BytesIO(data)) as image:
                info = image.info
        return LazyImage(decode, header.height, header.width, info), label


def _contents(path: Any) -> bytes:
    """Return the bytes of a file; pathlib takes twice as long, 1 % of the time of a photograph."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size_bytes = os.fstat(file).st_size
        data = os.read(file, size_bytes + 1)
        while len(data) < size_bytes and (more := os.read(file, size_bytes + 1 - len(data))):
            data += more
        return data
    finally:
        os.close(file)


def _plain_jpeg_header(data: bytes) -> JpegHeader | None:
    """Return the header if Pillow decodes the same pixels, otherwise None."""
    if not data.startswith(_JPEG_START):
        return None
    try:
        header = read_jpeg_header(np.frombuffer(data, np.uint8))
    except DecodeError:
        return None
    limit = Image.MAX_IMAGE_PIXELS  # above, Pillow warns or raises an error; None for no limit
    is_large = limit is not None and header.height * header.width > limit
    is_plain = header.components in (1, 3) and header.bits == 8 and header.frame in _COMMON_FRAMES
    return header if is_plain and not is_large else None


class ArraySource(Source):
    """Images in memory with labels.

    Args:
        dataset: the dataset.
        images: uint8 ``[samples, height, width, channels]``, any strides.
        labels: one for each image, any type; read when a sample is computed, as the user may change them.
        transform: transform of the images.
        target_transform: transform of the labels; None for none.

    Attributes:
        draws_per_sample: how many random numbers each sample draws; None if batches cannot be computed at once.
    """

    def __init__(
        self, dataset: Any, images: _Array, labels: Sequence[Any], transform: Any, target_transform: Any
    ) -> None:
        super().__init__(dataset, transform, target_transform, images.shape[3], f"{len(images)} images in memory")
        self.images = images
        self.labels = labels
        self.draws_per_sample = draws_per_sample(self.plan, *images.shape[1:3])

    def keep_labels(self) -> None:
        """Copy a list or array of labels, so that later changes have no effect.

        A sequence of the user's is not copied: it may compute labels on access.
        """
        if isinstance(self.labels, list | memoryview):
            self.labels = list(self.labels)

    def open(self, index: Any) -> tuple[Image.Image, Any]:
        """Convert one sample to a Pillow image; return image and label."""
        return image_of(self.images[index]), self.labels[index]

    def read(self, index: Any, draws: TorchDraws) -> tuple[LazyImage, Any]:
        """Return one sample.

        Args:
            index: index of the sample.
            draws: not used.

        Returns:
            the image and the label.

        Raises:
            IndexError: there is no such sample.
        """
        return LazyImage(self.images[index], info={} if self.plan.table is None else None), self.labels[index]
