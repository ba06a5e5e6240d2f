"""torchvision's datasets as places where samples lie: files, or arrays in memory.

Recognised are datasets that read as ImageFolder, CIFAR10 or MNIST do, whatever their class: what counts is which
function ``dataset[index]`` calls. Subset and ConcatDataset are looked through by their own rules.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
import torch
from PIL import Image

from dalify.base.errors import DecodeError
from dalify.codecs import scratch
from dalify.codecs.jpeg import JpegHeader, decode_jpeg, read_jpeg_header
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.lowering import lower_transform
from dalify.plugin.pytorch.dropin.picture import Picture
from dalify.plugin.pytorch.dropin.plan import NotRecognisedError, Plan, draws_per_sample

__all__ = ["ArraySource", "FileSource", "Located", "Source", "check_whole", "find_sources", "locate"]

_Array = np.ndarray[Any, Any]
_JPEG_START = b"\xff\xd8\xff"
_SPARE_BYTES = 16
_COMMON_FRAMES = (0xC0, 0xC1, 0xC2)  # baseline, extended, progressive; all by Huffman's codes


class FileSource:
    """Image files with labels.

    Args:
        dataset: an ImageFolder or one that reads like it.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.plan: Plan = lower_transform(dataset.transform, channels=3)
        self.description = f"{type(dataset).__name__} of {len(dataset.samples)} files"

    def read(self, index: Any, draws: TorchDraws) -> tuple[Picture, Any]:
        """Read one sample; a JPEG is decoded when it is clear how many of its rows are wanted.

        Args:
            index: of the sample.
            draws: reset to what they are now if decoding fails later: torch decodes before it draws.

        Returns:
            The picture, valid until this thread reads the next one; and the label.

        Raises:
            IndexError: there is no such sample.
            OSError: the file cannot be read, or is no image; whatever else Pillow raises.
        """
        path, label = self.dataset.samples[index]
        data = Path(path).read_bytes()
        header = _plain_jpeg_header(data)
        if header is None:
            return Picture(self._load(path)), label
        state = draws.generator.get_state() if self.plan.is_random else None

        def decode(rows: int) -> _Array:
            buffer = scratch.borrow("photo", (header.height * header.width * 3 + _SPARE_BYTES,))
            try:
                if rows < header.height:
                    encoded = np.frombuffer(data, np.uint8)
                    return decode_jpeg(encoded, header, "RGB", out=buffer, rows=rows)
                return simplejpeg.decode_jpeg(data, "RGB", buffer=buffer)
            except (DecodeError, ValueError):
                pass  # Pillow may take it
            try:
                return self._load(path)[:rows]
            except Exception:
                if state is not None:
                    draws.generator.set_state(state)
                raise

        return Picture(decode, header.height, header.width), label

    def _load(self, path: Any) -> _Array:
        return np.asarray(self.dataset.loader(path))  # Pillow, with its warnings and its errors


def _plain_jpeg_header(data: bytes) -> JpegHeader | None:
    """The header of what Pillow decodes in the same way; None for all else."""
    if not data.startswith(_JPEG_START):
        return None
    try:
        header = read_jpeg_header(np.frombuffer(data, np.uint8))
    except DecodeError:
        return None
    is_large = header.height * header.width > (Image.MAX_IMAGE_PIXELS or 0)  # Pillow warns or refuses
    is_plain = header.components in (1, 3) and header.bits == 8 and header.frame in _COMMON_FRAMES
    return header if is_plain and not is_large else None


class ArraySource:
    """Images in memory with labels.

    Args:
        dataset: where they are from.
        images: uint8 ``[samples, height, width, channels]``.
        labels: integers.
    """

    def __init__(self, dataset: Any, images: _Array, labels: Sequence[int]) -> None:
        self.dataset = dataset
        self.images = images
        self.labels = np.asarray(labels, np.int64)
        self.plan: Plan = lower_transform(dataset.transform, channels=images.shape[3])
        self.draws_per_sample = draws_per_sample(self.plan, *images.shape[1:3])
        self.description = f"{type(dataset).__name__} of {len(images)} images in memory"

    def read(self, index: Any, draws: TorchDraws) -> tuple[Picture, Any]:
        """Look up one sample.

        Args:
            index: of the sample.
            draws: not used here.

        Returns:
            The picture and the label.

        Raises:
            IndexError: there is no such sample.
        """
        return Picture(self.images[index]), int(self.labels[index])


Source = FileSource | ArraySource
Located = tuple[Source, Any]


def find_sources(dataset: Any) -> dict[int, Source]:
    """Recognise a dataset and all that it consists of.

    Returns:
        By the id of each dataset that holds samples: where they lie.

    Raises:
        NotRecognisedError: there is something that is not known.
    """
    parts: list[Any]
    reads = type(dataset).__getitem__ if hasattr(type(dataset), "__getitem__") else None
    if reads is torch.utils.data.Subset.__getitem__:
        if type(dataset).__getitems__ is not torch.utils.data.Subset.__getitems__:
            raise NotRecognisedError(f"{type(dataset).__name__} has a __getitems__ of its own")
        parts = [dataset.dataset]
    elif hasattr(dataset, "__getitems__"):
        raise NotRecognisedError(f"{type(dataset).__name__} has a __getitems__ of its own")
    elif reads is torch.utils.data.ConcatDataset.__getitem__:
        parts = list(dataset.datasets)
    else:
        return {id(dataset): _source(dataset, reads)}
    return {key: source for part in parts for key, source in find_sources(part).items()}


def check_whole(sources: dict[int, Source]) -> None:
    """Refuse datasets of which only a part of the transforms is known.

    Raises:
        NotRecognisedError: the first transform that is not known.
    """
    for source in sources.values():
        if not source.plan.is_whole:
            raise NotRecognisedError(source.plan.rest_reason, source.plan.rest_hint)


def _source(dataset: Any, reads: Any) -> Source:
    folders, cifar = sys.modules.get("torchvision.datasets.folder"), sys.modules.get("torchvision.datasets.cifar")
    mnist = sys.modules.get("torchvision.datasets.mnist")
    name = type(dataset).__name__
    known = reads is not None and (
        (folders is not None and reads is folders.DatasetFolder.__getitem__)
        or (cifar is not None and reads is cifar.CIFAR10.__getitem__)
        or (mnist is not None and reads is mnist.MNIST.__getitem__)
    )
    if not known:
        raise NotRecognisedError(
            f"the dataset is {type(dataset).__module__}.{name}, which is not known",
            "Known are ImageFolder, DatasetFolder, CIFAR10, CIFAR100, the MNIST family, Subset and ConcatDataset.",
        )
    if dataset.target_transform is not None:
        raise NotRecognisedError(f"{name} has a target_transform", "Change the labels once, in dataset.samples.")
    if folders is not None and reads is folders.DatasetFolder.__getitem__:
        if dataset.loader not in (folders.default_loader, folders.pil_loader):
            raise NotRecognisedError(f"{name} has a loader of its own")
        if dataset.loader is folders.default_loader and sys.modules["torchvision"].get_image_backend() != "PIL":
            raise NotRecognisedError("torchvision's image backend is not PIL", "torchvision.set_image_backend('PIL')")
        return FileSource(dataset)
    if cifar is not None and reads is cifar.CIFAR10.__getitem__:
        images, labels = dataset.data, dataset.targets
    else:
        images = dataset.data.numpy()[..., None] if isinstance(dataset.data, torch.Tensor) else None
        labels = dataset.targets.tolist() if isinstance(dataset.targets, torch.Tensor) else dataset.targets
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 4:
        raise NotRecognisedError(f"the data of {name} are not bytes of images")
    if images.shape[3] not in (1, 3) or 0 in images.shape[1:]:
        raise NotRecognisedError(f"the data of {name} are not bytes of images")
    if len(labels) != len(images) or not all(type(label) is int for label in labels):
        raise NotRecognisedError(f"the targets of {name} are not one integer per image")
    return ArraySource(dataset, images, labels)


def locate(sources: dict[int, Source], dataset: Any, index: Any) -> Located:
    """Find the sample that ``dataset[index]`` is.

    Raises:
        IndexError: there is no such sample.
        ValueError: an index below what a ConcatDataset holds.
    """
    while (source := sources.get(id(dataset))) is None:
        if isinstance(dataset, torch.utils.data.Subset):
            index, dataset = dataset.indices[index], dataset.dataset
            continue
        if index < 0:
            if -index > len(dataset):
                raise ValueError("absolute value of index should not exceed dataset length")
            index = len(dataset) + index
        part = bisect.bisect_right(dataset.cumulative_sizes, index)
        index = index - (0 if part == 0 else dataset.cumulative_sizes[part - 1])
        dataset = dataset.datasets[part]
    return source, index
