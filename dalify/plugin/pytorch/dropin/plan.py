"""The computation for each image of a dataset, and the conversion of results to torchvision's types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch.dropin.draws import BatchDraws, TorchDraws, predicts_torch
from dalify.plugin.pytorch.dropin.kernels.pixel_table import planes_of_image
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage, NoWindowError, Windows, image_of
from dalify.plugin.pytorch.dropin.steps import CenterCrop, Flip, Gray, Pad, RandomCrop, Resize, Step

__all__ = ["NotRecognizedError", "Plan", "Table", "draws_per_sample", "windows_of"]

_Array = np.ndarray[Any, Any]
_WINDOW_STEPS = (CenterCrop, Flip, Gray, Pad, RandomCrop, Resize)
_MAX_DRAWS_PER_STEP = 2


class NotRecognizedError(Exception):
    """Something that dalify does not support, so that torch computes it.

    Args:
        reason: what it is, and where.
        hint: how to avoid it; empty if that is impossible.
        code: short name of the kind of reason, for programs.
    """

    def __init__(self, reason: str, hint: str = "", code: str = "DS02") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.code = code


@dataclass(frozen=True)
class Table:
    """A look-up table from the bytes of images to the elements of tensors.

    Attributes:
        values: ``[channels, 256]``.
        tensor_type: ``torch.Tensor``, or torchvision's class of images.
        is_interleaved: whether the channels of a pixel are adjacent in torchvision's tensors.
    """

    values: _Array
    tensor_type: type[torch.Tensor]
    is_interleaved: bool


@dataclass(frozen=True)
class Plan:
    """The computation for each image of one dataset.

    Attributes:
        steps: steps on images, in order.
        table: conversion of their bytes to tensors; None if the results are Pillow images.
        tail: torchvision's transforms of these tensors, which copy or compute single elements.
        is_random: whether steps or tail draw random numbers.
        channels: number of channels before the steps.
        names: names of the transforms that steps, table and tail compute, for reports.
        rest: the transforms from the first unsupported one on, in order. They get a tensor if there is a table,
            otherwise a Pillow image. With a rest, there is no tail.
        rest_reason: why the first of the rest is not supported, or why there are no tensors; empty if all are lowered.
        rest_hint: how to avoid that; empty if impossible.
        stages: the supported transforms themselves, for images that steps do not support.
    """

    steps: tuple[Step, ...]
    table: Table | None
    tail: tuple[Callable[[Any], Any], ...]
    is_random: bool
    channels: int
    names: tuple[str, ...]
    rest: tuple[Callable[[Any], Any], ...] = ()
    rest_reason: str = ""
    rest_hint: str = ""
    stages: tuple[Callable[[Any], Any], ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all transforms are supported, and the results are tensors."""
        return self.table is not None and not self.rest

    @property
    def calls_torchvision(self) -> bool:
        """Whether steps call torchvision for Pillow images, which holds the GIL."""
        return any(getattr(step, "is_python", False) for step in self.steps)

    def _apply_steps(self, image: LazyImage, draws: TorchDraws) -> _Array:
        """Apply the steps and return the pixels."""
        try:
            for step in self.steps:
                step.apply(image, draws)
        except Exception:
            image.check()
            raise
        return image.pixels()

    def sample(self, image: LazyImage | Image.Image, draws: TorchDraws) -> Any:
        """Apply the supported transforms; the result has torchvision's type, values and memory layout.

        Args:
            image: the image; torchvision's transforms are called for one of Pillow.
            draws: random numbers.

        Returns:
            a Pillow image, or a tensor ``[channels, height, width]``, with memory of its own.

        Raises:
            Exception: the error of decoding; otherwise that of torchvision's transforms.
        """
        if isinstance(image, Image.Image):
            return _called(self.stages, image, draws)
        pixels = self._apply_steps(image, draws)
        if self.table is None:
            result = image_of(pixels)
            result.info = dict(image.info or {})
            return result
        height, width, channels = pixels.shape
        if self.table.is_interleaved and not image.is_planar:
            target = np.empty((height, width, channels), self.table.values.dtype).transpose(2, 0, 1)
        else:
            target = np.empty((channels, height, width), self.table.values.dtype)
        planes_of_image(pixels, self.table.values, target)
        tensor = torch.from_numpy(target).as_subclass(self.table.tensor_type)  # pyright: ignore[reportArgumentType]
        return _called(self.tail, tensor, draws)

    def write(
        self, image: LazyImage | Image.Image, draws: TorchDraws, allocate: Callable[[tuple[int, ...], Any], _Array]
    ) -> None:
        """Write the result of `sample`, a tensor of a complete plan, into given memory.

        Args:
            image: the image.
            draws: random numbers.
            allocate: returns an array of a shape and a NumPy dtype.
        """
        assert self.table is not None
        if self.tail or isinstance(image, Image.Image):
            result = self.sample(image, draws).as_subclass(torch.Tensor).numpy()
            allocate(result.shape, result.dtype)[...] = result
            return
        pixels = self._apply_steps(image, draws)
        target = allocate((pixels.shape[2], *pixels.shape[:2]), self.table.values.dtype)
        planes_of_image(pixels, self.table.values, target)


def _called(transforms: tuple[Callable[[Any], Any], ...], value: Any, draws: TorchDraws) -> Any:
    """Call transforms of torchvision one after the other."""
    if transforms:
        with draws.as_default():
            for transform in transforms:
                value = transform(value)
    return value


def windows_of(plan: Plan, samples: int, height: int, width: int, draws: BatchDraws) -> Windows:
    """Apply the steps to all samples of a batch at once.

    Raises:
        NoWindowError: there are other steps than crops, flips and margins.
    """
    windows = Windows(samples, height, width, plan.channels)
    for step in plan.steps:
        if not isinstance(step, _WINDOW_STEPS):
            raise NoWindowError
        step.apply(windows, draws)
    return windows


def draws_per_sample(plan: Plan, height: int, width: int) -> int | None:
    """Return how many random numbers each image of a size draws; None if batches cannot be computed at once."""
    if not plan.is_complete or plan.tail or not predicts_torch():
        return None
    draws = BatchDraws(np.zeros((1, _MAX_DRAWS_PER_STEP * len(plan.steps)), np.uint32))
    try:
        windows_of(plan, 1, height, width, draws)
    except (NoWindowError, ValueError):
        return None
    return draws.used
