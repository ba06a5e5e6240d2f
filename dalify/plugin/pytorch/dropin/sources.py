"""Sources of samples: image files, or arrays in memory."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.base.wording import counted
from dalify.codecs import JpegHeader
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.encoded_image import EncodedImage, contents_of, decode_rows, plain_jpeg_header
from dalify.plugin.pytorch.dropin.hints import note_failed_file
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage, image_of, pixels_of
from dalify.plugin.pytorch.dropin.opening import Decoder
from dalify.plugin.pytorch.dropin.plan import AnyImage, NotRecognizedError
from dalify.plugin.pytorch.dropin.sample_form import SampleForm
from dalify.plugin.pytorch.dropin.torchvision_steps import PythonContainer
from dalify.plugin.pytorch.dropin.views import plan_of
from dalify.plugin.pytorch.dropin.working_folder import WorkingFolder, is_path

_Array = np.ndarray[Any, Any]
DecodedImage = Image.Image | torch.Tensor | _Array
Lookup = Callable[[Any], tuple[Any, Any]]
_RGB = 3


class Source(ABC):
    """Samples with images, and the computation for each image.

    Args:
        dataset: the dataset.
        transforms: transform of the images, and transform of the labels; None for no transform.
        channels: number of channels of the images.
        description: text about the source, for reports.

    Attributes:
        plan: the transforms of the images.
        slow_labels: True if slow Python code computes the labels.
        user_code: a function or value of the user with which labels are computed, and which threads may not be able to
            use; empty for none.
        user_function: the name of the function with that code.
        form: the form of the samples, whose labels are tuples of values; None for tuples of image and label.
        watched: attributes of the dataset with which its source changes.
        inner: another dataset that returns the images; None for none.
        transform: the transform of the images.
        is_rgb: whether opened images are converted to RGB.
        is_joint: whether other values are transformed together with the image.
        opens_files: whether files are opened for Pillow, as torchvision does; otherwise, Pillow's errors contain their
            paths.
        decode: decodes files to tensors or arrays; None if Pillow opens them.
    """

    slow_labels = False
    user_code = ""
    user_function = "__getitem__"
    form: SampleForm | None = None
    watched: tuple[str, ...] = ()
    inner: Any = None
    is_rgb = True
    is_joint = False
    opens_files = True
    decode: Decoder | None = None

    def __init__(self, dataset: Any, transforms: tuple[Any, Any], channels: int, description: str) -> None:
        self.dataset = dataset
        self.plan = plan_of(transforms[0], channels, self.decode)
        self.transform, self.target_transform = transforms
        self.description = f"{type(dataset).__name__} of {description}"

    @property
    def is_complete(self) -> bool:
        """Whether no Python code of the user is called, and the images are tensors."""
        return self.plan.is_complete and self.target_transform is None and not self.user_code

    @abstractmethod
    def sample(self, index: Any, draws: TorchDraws) -> Any:
        """Compute one sample: the result of all transforms, and the label, in the form of the samples.

        Raises:
            Exception: the errors of the user's dataset.
        """


class ImageSource(Source):
    """Images with labels, which are read before the transforms."""

    @abstractmethod
    def path_and_label(self, index: Any, draws: TorchDraws | None = None) -> tuple[Any, Any]:
        """Return the path of a sample, or its array or file in memory, and its label.

        Args:
            index: index of the sample.
            draws: random numbers, in case the dataset raises an error after its transforms.
        """

    @abstractmethod
    def open(self, index: Any) -> tuple[DecodedImage, Any]:
        """Open one sample as the image that the transforms get; return image and label."""

    @abstractmethod
    def read(self, index: Any, draws: TorchDraws) -> tuple[AnyImage, Any]:
        """Read one sample for the plan; return image and label."""

    def sample(self, index: Any, draws: TorchDraws) -> Any:
        """Compute one sample; see `Source.sample`."""
        result, label = self._transformed(index, draws)
        return result, label if self.target_transform is None else self.target_transform(label)

    def _transformed(self, index: Any, draws: TorchDraws) -> tuple[Any, Any]:
        """Return the result of the transforms, and what `read` returns as label."""
        image, label = self.read(index, draws) if self.plan.names else self.open(index)
        return self.plan(image, draws), label


class FileSource(ImageSource):
    """Image files with labels.

    Args:
        dataset: the dataset.
        transforms: transform of the images, and transform of the labels; None for no transform.
        count: number of samples.
        lookup: returns path and label of a sample. Instead of the path, a file in memory, an array or an image is
            possible.
        slow_labels: True if slow Python code computes the labels.
        is_rgb: see `Source`.
        opens_files: see `Source`.
        decode: see `Source`.
        folder: resolves relative paths; None for one of this source.

    Raises:
        NotRecognizedError: images that are not RGB would get other random numbers.
    """

    def __init__(
        self,
        dataset: Any,
        transforms: tuple[Any, Any],
        count: int,
        lookup: Lookup,
        *,
        slow_labels: bool = False,
        is_rgb: bool = True,
        opens_files: bool = True,
        decode: Decoder | None = None,
        folder: WorkingFolder | None = None,
    ) -> None:
        self.decode = decode
        super().__init__(dataset, transforms, 3, counted(count, "file"))
        self.slow_labels = slow_labels
        self._lookup = lookup
        self.is_rgb = is_rgb
        self.opens_files = opens_files
        self.folder = WorkingFolder() if folder is None else folder
        if not is_rgb and any(isinstance(step, PythonContainer) for step in self.plan.steps):
            raise NotRecognizedError(
                "images that are not all RGB are combined with transforms that draw from Python's generator"
            )

    def path_and_label(self, index: Any, draws: TorchDraws | None = None) -> tuple[Any, Any]:
        """Return path and label of a sample; see `Source.path_and_label`."""
        path, label = self._lookup(index)
        return self.folder(path), label

    def _load(self, path: Any, index: Any) -> DecodedImage:
        """Open an image as torchvision's datasets do, or the user's; None if OpenCV cannot read it."""
        try:
            if self.decode is not None:
                value = self.decode.decode(path)
                if value is None and not self.user_code:  # which must not run twice
                    self.dataset[index]  # raises the error of the user, or of OpenCV, with the frames of the user
                return self.decode.convert(value)
            if isinstance(path, np.ndarray):
                path = Image.fromarray(path)
            if isinstance(path, Image.Image):
                return path.convert("RGB") if self.is_rgb else path
            if not self.is_rgb:
                return Image.open(path)
            if not self.opens_files or hasattr(path, "read"):
                with Image.open(path) as image:
                    return image.convert("RGB")
            with open(path, "rb") as file, Image.open(file) as image:  # noqa: PTH123 -- the path may be bytes
                return image.convert("RGB")
        except Exception as error:
            if is_path(path):
                note_failed_file(error, path)
            raise

    def _encoded(self, path: Any) -> bytes:
        """Return the contents of a file; nothing if only Pillow or torchvision can open it, or raises an error."""
        if self.decode is None:
            return _data_of(path)
        with suppress(OSError):
            return contents_of(path) if isinstance(path, str | os.PathLike) else b""
        return b""

    def open(self, index: Any) -> tuple[DecodedImage, Any]:
        """Open one sample with Pillow or torchvision; return image and label."""
        path, label = self.path_and_label(index)
        return self._load(path, index), label

    def read(self, index: Any, draws: TorchDraws) -> tuple[AnyImage, Any]:
        """Read one sample; a JPEG is decoded when the number of necessary rows is known.

        Args:
            index: index of the sample.
            draws: random numbers; reset if decoding fails later, because torch decodes before it draws.

        Returns:
            The image, valid until this thread reads the next one, and the label. An image that may be neither RGB nor
            grayscale is a Pillow image or a tensor.

        Raises:
            IndexError: there is no such sample.
            OSError: the file cannot be read or is not an image; Pillow may raise other errors.
        """
        path, label = self.path_and_label(index, draws)
        gives_images = self.plan.table is None
        info: dict[Any, Any] | None = {} if gives_images else None
        if _is_rgb_array(path) and self.decode is None:
            return LazyImage(path, info=info), label
        data = self._encoded(path)
        header = plain_jpeg_header(data)
        if header is not None and header.components != _RGB and not self.is_rgb:
            header = None
        if header is not None and self.decode is not None and self.decode.rotates and not _is_upright(data, header):
            header = None
        if (header is None or gives_images) and not self.is_rgb and self.decode is None:
            return self._load(path, index), label
        if header is None:
            image = self._load(path, index)
            if isinstance(image, torch.Tensor):
                is_rgb = (image.dtype, *image.shape[:-2]) == (torch.uint8, _RGB)
                return LazyImage(pixels_of(image)) if is_rgb else image, label
            if not isinstance(image, Image.Image):
                return LazyImage(image, info=info) if _is_rgb_array(image) else image, label
            return LazyImage(pixels_of(image), info=image.info if gives_images else None), label
        state = draws.get_state() if self.plan.is_random else None
        is_blue_first = self.decode is not None and self.decode.is_blue_first

        def load() -> DecodedImage:
            image = self._load(path, index)
            if image is None:
                self.plan.transforms[0](image)  # raises the error of torchvision
            return pixels_of(image)[..., ::-1] if is_blue_first else image

        def decode(rows: int) -> _Array:
            try:
                pixels = decode_rows(data, header, rows, load)
                return pixels[..., ::-1] if is_blue_first else pixels
            except Exception:
                if state is not None:
                    draws.set_state(state)
                raise

        if gives_images and self.decode is None:
            if isinstance(path, Image.Image):
                info = path.info
            else:
                with Image.open(path) as image:
                    info = image.info
        return LazyImage(decode, header.height, header.width, info), label


def _data_of(path: Any) -> bytes:
    """Return the contents of a file, also of one in memory; empty for an image that is not encoded."""
    if is_path(path):
        return contents_of(path)
    return path.getvalue() if isinstance(path, io.BytesIO) else path.data if isinstance(path, EncodedImage) else b""


def _is_upright(data: bytes, header: JpegHeader) -> bool:
    """Return whether OpenCV does not rotate a JPEG. Unlike Pillow, it reads EXIF with a damaged byte order."""
    start = data.find(b"Exif", 0, header.frame_position)
    return header.orientation == 1 and (start < 0 or data[start + 4 : start + 8] in (b"\0\0II", b"\0\0MM"))


def _is_rgb_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.shape[2:] == (_RGB,) and value.size > 0


class ArraySource(ImageSource):
    """Images in memory with labels.

    Args:
        dataset: the dataset.
        transforms: transform of the images, and transform of the labels; None for no transform.
        images: uint8 ``[samples, height, width, channels]``, any strides.
        labels: one for each image, any type; read when a sample is computed, because the user may change them.

    Attributes:
        draws_per_sample: number of random numbers per sample; None if batches cannot be computed at once.
    """

    def __init__(self, dataset: Any, transforms: tuple[Any, Any], images: _Array, labels: Sequence[Any]) -> None:
        super().__init__(dataset, transforms, images.shape[3], f"{counted(len(images), 'image')} in memory")
        self.images = images
        self.labels = labels
        self.is_rgb = images.shape[3] == _RGB
        self.draws_per_sample = self.plan.draws_per_sample(*images.shape[1:3])

    def keep_labels(self) -> None:
        """Copy a list or array of labels, so that later changes have no effect.

        Other sequences are not copied, because they may compute labels on access.
        """
        if isinstance(self.labels, list | memoryview):
            self.labels = list(self.labels)

    def path_and_label(self, index: Any, draws: TorchDraws | None = None) -> tuple[Any, Any]:
        """Return the array of a sample, and its label; see `Source.path_and_label`."""
        pixels = self.images[index]
        return pixels if self.is_rgb else pixels[..., 0], self.labels[index]

    def open(self, index: Any) -> tuple[Image.Image, Any]:
        """Convert one sample to a Pillow image; return image and label."""
        return image_of(self.images[index]), self.labels[index]

    def read(self, index: Any, draws: TorchDraws) -> tuple[LazyImage, Any]:
        """Return one sample.

        Raises:
            IndexError: there is no such sample.
            TypeError: the index selects several samples, or is a Boolean.
        """
        if isinstance(index, bool | np.bool_):
            raise TypeError(f"the index of a sample must be an integer; got {index!r}")
        pixels, label = self.images[index], self.labels[index]
        if pixels.ndim != self.images.ndim - 1:
            image_of(pixels)  # raises Pillow's error
        return LazyImage(pixels, info={} if self.plan.table is None else None), label
