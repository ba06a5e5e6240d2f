"""Selects an image loader as Gaudi's ResNet does: ``build_data_loader(is_training, "HABANA", dataset=…)``.

Tries in order: a pipe on the accelerator, an accelerated loader on the CPU, torch's loader.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentValueError, check_option, option_error_text
from dalify.base.optional import torch
from dalify.base.processors import has_accelerator
from dalify.mediapipe import fn
from dalify.mediapipe.habana_dataloader import HabanaDataLoader, falls_back
from dalify.mediapipe.media_types import dtype, ftype, imgtype, randomCropType
from dalify.mediapipe.mediapipe import MediaPipe
from dalify.mediapipe.operators.reader_nodes.reader_nodes import media_ext_reader_op_impl
from dalify.mediapipe.plugins.iterator_pytorch import HPUResnetPytorchIterator

_log = logging.getLogger("dalify.dataloader")
_TRAINING = ["RandomResizedCrop", "RandomHorizontalFlip", "ToTensor", "Normalize"]
_EVALUATION = ["Resize", "CenterCrop", "ToTensor", "Normalize"]


class DataLoaderType(Enum):
    """Loaders: torch's own, accelerated on the CPU, a MediaPipe on the accelerator."""

    Python = 0
    Aeon = 1
    MediaAPI = 2


class SamplerReader(media_ext_reader_op_impl):
    """Paths and labels of a dataset, in the order given by batches of indices.

    Args:
        params: with ``priv_params``: ``samples``, pairs of path and label, and ``batches``, lists of their indices.
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self._samples: Sequence[tuple[str, int]] = params["priv_params"]["samples"]
        self._batches: Any = params["priv_params"]["batches"]

    def __iter__(self) -> SamplerReader:
        """Start an epoch, in the order of the sampler."""
        self._iterator = iter(self._batches)
        return self

    def __next__(self) -> Any:
        """Return the next batch: paths, and labels int64."""
        pairs = [self._samples[item] for item in next(self._iterator)]
        return [path for path, _ in pairs], np.array([label for _, label in pairs], np.int64)

    def __len__(self) -> int:
        return len(self._batches)


class ImagePipe(MediaPipe):
    """ResNet's pipe: decoding, crop, random flip in training, normalization.

    Args:
        samples: pairs of path and label.
        batches: lists of their indices, one per batch; iterated again in each epoch.
        batch_size: size of the largest batch.
        transform: torchvision transforms whose parameters are used: RandomResizedCrop, RandomHorizontalFlip, ToTensor,
            Normalize, or, for evaluation, Resize and CenterCrop instead of the first two.
        is_training: whether to use the training transforms.
        device: see ``MediaPipe``.
        num_threads: see ``MediaPipe``.
        seed: seed of the random numbers.

    Raises:
        ArgumentValueError: the transforms are not supported.
    """

    def __init__(
        self,
        samples: Sequence[tuple[str, int]],
        batches: Any,
        batch_size: int,
        transform: Any,
        *,
        is_training: bool,
        device: str = "mixed",
        num_threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(device, 3, batch_size, num_threads, "ImagePipe", seed=seed)
        first, second, _, normalize = _stages(transform, _TRAINING if is_training else _EVALUATION)
        self._is_training = is_training
        self._reader = fn.MediaExtReaderOp(
            impl=SamplerReader, num_outputs=2, priv_params={"samples": samples, "batches": batches}
        )
        common = {"output_format": imgtype.RGB_P, "resampling_mode": _filter(first)}
        if is_training:
            height, width = self._size = _pair(first.size)
            self._decode = fn.ImageDecoder(
                resize=[width, height],
                random_crop_type=randomCropType.RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP,
                scale_min=first.scale[0],
                scale_max=first.scale[1],
                ratio_min=first.ratio[0],
                ratio_max=first.ratio[1],
                **common,
            )
            self._probability = fn.Constant(constant=second.p, dtype=dtype.FLOAT32)
            self._coin_flip = fn.CoinFlip(seed=None)
            self._flip = fn.RandomFlip(horizontal=1)
        else:
            self._size = _pair(second.size)
            sizes = [first.size] if isinstance(first.size, int) else list(first.size)
            side = sizes[0] if len(sizes) == 1 else 0
            if side < max(self._size) or first.max_size is not None:
                raise ArgumentValueError(
                    f"Resize(size={first.size!r}, max_size={first.max_size!r}) must set the shorter side, at "
                    f"least CenterCrop's {self._size}."
                )
            self._decode = fn.ImageDecoder(resize=[side, side], random_crop_type=randomCropType.CENTER_CROP, **common)
        mean, std = (255.0 * np.asarray(values, np.float32) for values in (normalize.mean, normalize.std))
        shape = [1, 1, len(mean)]
        self._mean = fn.MediaConst(data=mean, shape=shape, dtype=dtype.FLOAT32)
        self._inverse_std = fn.MediaConst(data=1 / std, shape=shape, dtype=dtype.FLOAT32)
        height, width = self._size
        self._normalize = fn.CropMirrorNorm(
            crop_w=width, crop_h=height, crop_pos_x=0.5, crop_pos_y=0.5, dtype=dtype.FLOAT32
        )

    def definegraph(self) -> Any:
        """Return images float32 ``[3, H, W]`` and labels."""
        files, labels = self._reader()
        images = self._decode(files)
        if self._is_training:
            images = self._flip(images, self._coin_flip(self._probability()))
        return self._normalize(images, self._mean(), self._inverse_std()), labels


def _stages(transform: Any, names: list[str]) -> list[Any]:
    stages = list(getattr(transform, "transforms", ()))
    found = [type(stage).__name__ for stage in stages]
    if found != names:
        raise ArgumentValueError(
            f"the transforms of the dataset must be {', '.join(names)}; they are {', '.join(found) or 'others'}."
        )
    return stages


def _filter(stage: Any) -> int:
    known = {"bilinear": ftype.BI_LINEAR, "bicubic": ftype.BICUBIC, "lanczos": ftype.LANCZOS, "nearest": ftype.NEAREST}
    name = str(getattr(stage.interpolation, "value", stage.interpolation))
    check_option("interpolation", name, known)
    return known[name]


def _pair(size: Any) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
    return int(height), int(width)


class MediaApiDataLoader:
    """Batches of images and labels from an ``ImagePipe``, with the constructor of Gaudi's ResNet.

    The order is that of the sampler, and the last batch has its true size. Pixels are computed as in DALI, not as in
    Pillow, and because of rounding the window may differ by one pixel from torchvision's.

    Args:
        dataset: ImageFolder, or an object with the same `samples` (pairs of path and label) and `transform`.
        sampler: the order; by default the order of the dataset. The user must call its ``set_epoch``, as with torch.
        batch_size: samples of a batch.
        num_workers: number of threads; 0 for the number of CPUs, at most 8.
        pin_memory: accepted but ignored: results are already on the accelerator.
        pin_memory_device: accepted but ignored.
        is_training: whether crops and flips are random.
        seed: seed of the random numbers.

    Raises:
        ArgumentValueError: the dataset or its transforms are not supported.
    """

    def __init__(
        self,
        dataset: Any,
        sampler: Any = None,
        batch_size: int = 1,
        num_workers: int = 0,
        pin_memory: bool = True,
        pin_memory_device: str | None = None,
        is_training: bool = False,
        seed: int | None = None,
    ) -> None:
        samples = getattr(dataset, "samples", None)
        if not isinstance(samples, (list, tuple)) or not hasattr(dataset, "transform"):
            name = type(dataset).__name__
            raise ArgumentValueError(f"the dataset must have samples and transform like ImageFolder; {name} does not.")
        if getattr(dataset, "target_transform", None) is not None:
            raise ArgumentValueError("target_transform is not supported.")
        self.dataset = dataset
        self.sampler = torch.utils.data.SequentialSampler(dataset) if sampler is None else sampler
        batches = torch.utils.data.BatchSampler(self.sampler, batch_size, drop_last=False)
        pipe = ImagePipe(
            samples,
            batches,
            batch_size,
            dataset.transform,
            is_training=is_training,
            num_threads=num_workers or None,
            seed=seed,
        )
        self.iterator = HPUResnetPytorchIterator(mediapipe=pipe)
        _log.info("Running with Media API DataLoader")

    def __iter__(self) -> Iterator[Any]:
        """Start an epoch."""
        return iter(self.iterator)

    def __len__(self) -> int:
        return len(self.iterator)


def choose_data_loader(dl_worker_type: str = "HABANA") -> DataLoaderType:
    """Return the loader to try first.

    Args:
        dl_worker_type: "MP": torch's loader; "HABANA" or "DALIFY": a pipe if there is an accelerator (and the variable
            ``PT_HPU_MEDIA_PIPE`` is not false), else an accelerated loader on the CPU.

    Raises:
        ArgumentValueError: another value.
    """
    if dl_worker_type == "MP":
        return DataLoaderType.Python
    if dl_worker_type not in ("HABANA", "DALIFY"):
        raise ArgumentValueError(option_error_text("dl_worker_type", dl_worker_type, ["HABANA", "DALIFY", "MP"]))
    if os.environ.get("PT_HPU_MEDIA_PIPE", "true").lower() in ("false", "0", "f"):
        return DataLoaderType.Aeon
    return DataLoaderType.MediaAPI if has_accelerator() else DataLoaderType.Aeon


def build_data_loader(is_training: bool, dl_worker_type: str = "HABANA", seed: int | None = None, **kwargs: Any) -> Any:
    """Return the best available loader; each fallback is reported in the log ``dalify.dataloader``.

    Args:
        is_training: whether crops and flips of a pipe are random; other loaders apply the dataset's transforms.
        dl_worker_type: see ``choose_data_loader``.
        seed: seed of a pipe's random numbers.
        kwargs: ``dataset``, ``sampler``, ``batch_size``, ``num_workers``, ``pin_memory``, ``pin_memory_device``.

    Raises:
        ArgumentValueError: a loader is not available, and ``DATALOADER_FALLBACK_EN`` is false.
    """
    chosen = choose_data_loader(dl_worker_type)
    if not kwargs.get("pin_memory_device"):
        kwargs.pop("pin_memory_device", None)
    if chosen is DataLoaderType.Python:
        return torch.utils.data.DataLoader(**kwargs)
    if chosen is DataLoaderType.MediaAPI:
        try:
            return MediaApiDataLoader(**kwargs, is_training=is_training, seed=seed)
        except (ArgumentValueError, TypeError) as error:
            if not falls_back():
                _log.error("Habana dataloader configuration failed: %s", error)
                raise
            _log.warning("Failed to initialize Media API DataLoader, error: %s\nRunning on the CPU", error)
    loader = HabanaDataLoader(**kwargs)
    if loader.accelerated:
        _log.info("Running with Habana aeon DataLoader")
    return loader
