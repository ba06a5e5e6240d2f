"""The computation for each image of a dataset: transforms that dalify supports, then those that run as Python code.

After a transform in Python that returns an image of Pillow, there is a plan for the following transforms.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch.dropin.draws import BatchDraws, TorchDraws, predicts_torch
from dalify.plugin.pytorch.dropin.encoded_image import EncodedImage
from dalify.plugin.pytorch.dropin.hints import note_failed_transform
from dalify.plugin.pytorch.dropin.kernels.pixel_table import planes_of_image
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage, NoWindowError, Windows, image_of, pixels_of
from dalify.plugin.pytorch.dropin.steps import CenterCrop, Flip, Gray, ImageStep, Pad, RandomCrop, Resize

_Array = np.ndarray[Any, Any]
Transform = Callable[[Any], Any]
AnyImage = LazyImage | Image.Image | torch.Tensor | _Array
_WINDOW_STEPS = (CenterCrop, Flip, Gray, Pad, RandomCrop, Resize)
_MAX_DRAWS_PER_STEP = 2


class Reason(NamedTuple):
    """The reason why dalify does not compute a part.

    Attributes:
        text: the unsupported part and its position.
        hint: how to avoid it; empty if that is impossible.
        code: short name of the kind of reason, for programs.
    """

    text: str
    hint: str = ""
    code: str = "DS02"


class NotRecognizedError(Exception):
    """A part is not supported by dalify, so torch computes it; see `Reason` for the arguments."""

    def __init__(self, text: str, hint: str = "", code: str = "DS02") -> None:
        super().__init__(text)
        self.reason = Reason(text, hint, code)


@dataclass(frozen=True)
class Table:
    """A look-up table from the bytes of images to the elements of tensors.

    Attributes:
        values: ``[channels, 256]``.
        tensor_type: ``torch.Tensor``, or torchvision's class of images.
        is_interleaved: True if the channels of a pixel are adjacent in torchvision's tensors.
    """

    values: _Array
    tensor_type: type[torch.Tensor]
    is_interleaved: bool


@dataclass(frozen=True)
class TransformPlan:
    """The supported transforms before the first unsupported transform, and the plan of the following transforms.

    Attributes:
        steps: steps on images, in order.
        table: conversion of their bytes to tensors; None if the results are Pillow images.
        tensor_transforms: torchvision's transforms of these tensors, which copy or compute single elements. Empty
            if there are unsupported transforms.
        is_random: True if the supported transforms draw random numbers.
        channels: number of channels before the steps.
        transforms: the supported transforms, for images that steps do not support.
        names: their names, for reports.
        unsupported: the transforms from the first one that runs as Python code on, in order.
        following: returns the plan of the transforms after that one, for the number of channels of its result, see
            `channels_of`.
        reason: why a transform is not supported, or why there are no tensors; None if the plan is complete.
    """

    steps: tuple[ImageStep, ...]
    table: Table | None
    tensor_transforms: tuple[Transform, ...]
    is_random: bool
    channels: int
    transforms: tuple[Transform, ...]
    names: tuple[str, ...]
    unsupported: tuple[Transform, ...]
    following: Callable[[int], TransformPlan]
    reason: Reason | None

    @property
    def is_complete(self) -> bool:
        """Whether all transforms are supported, and the results are tensors."""
        return self.table is not None and not self.unsupported

    @property
    def calls_torchvision(self) -> bool:
        """Whether steps call torchvision for Pillow images, which holds the GIL."""
        return any(getattr(step, "is_python", False) for step in self.steps)

    def plans(self) -> Iterator[TransformPlan]:
        """Yield this plan and the following ones, if unsupported transforms return RGB images for images."""
        plan = self
        yield plan
        while plan.unsupported:
            plan = plan.following(3 if plan.channels and plan.table is None else 0)
            yield plan

    def describe(self) -> str:
        """Return a description of the parts that dalify computes, if unsupported transforms return RGB images."""
        transforms: list[tuple[str, bool]] = []
        for plan in self.plans():
            transforms += [(name, True) for name in plan.names]
            transforms += [(getattr(first, "__name__", type(first).__name__), False) for first in plan.unsupported[:1]]
        return ", then ".join(
            f"{' → '.join(name for name, _ in group)} {'by dalify' if is_lowered else 'in Python'}"
            for is_lowered, group in itertools.groupby(transforms, lambda transform: transform[1])
        )

    def __call__(self, image: AnyImage, draws: TorchDraws) -> Any:
        """Apply all transforms, the unsupported ones with torch's default generator.

        Args:
            image: see `sample`; if no transform is supported, any value.
            draws: random numbers of the supported transforms.
        """
        value = self.sample(image, draws) if self.names else image
        if not self.unsupported:
            return value
        transform = self.unsupported[0]
        try:
            result = transform(value)
        except Exception as error:
            note_failed_transform(error, transform, value)
            raise
        return self.following(channels_of(result)).convert(result, draws)

    def convert(self, value: Any, draws: TorchDraws) -> Any:
        """Apply all transforms to an image of Pillow; to any value if no transform is supported."""
        if self.names:
            info = value.info if self.table is None else None
            is_encoded = isinstance(value, EncodedImage) and value.mode == "RGB"
            pixels: Any = value.decode if is_encoded else pixels_of(value)
            value = LazyImage(pixels, value.height, value.width, info)
        return self(value, draws)

    def sample(self, image: AnyImage, draws: TorchDraws) -> Any:
        """Apply the supported transforms; the result has torchvision's type, values and memory layout.

        Args:
            image: the image; torchvision's transforms are called for one of Pillow, and for a tensor.
            draws: random numbers.

        Returns:
            A Pillow image, or a tensor ``[channels, height, width]`` with its own memory.

        Raises:
            Exception: an error of decoding, or of torchvision's transforms.
        """
        if not isinstance(image, LazyImage):
            return _called(self.transforms, image, draws)
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
        return _called(self.tensor_transforms, tensor, draws)

    def write(self, image: AnyImage, draws: TorchDraws, allocate: Callable[[tuple[int, ...], Any], _Array]) -> None:
        """Write the result of `sample`, a tensor of a complete plan, into given memory."""
        assert self.table is not None
        if self.tensor_transforms or not isinstance(image, LazyImage):
            result = self.sample(image, draws).as_subclass(torch.Tensor).numpy()
            allocate(result.shape, result.dtype)[...] = result
            return
        pixels = self._apply_steps(image, draws)
        target = allocate((pixels.shape[2], *pixels.shape[:2]), self.table.values.dtype)
        planes_of_image(pixels, self.table.values, target)

    def _apply_steps(self, image: LazyImage, draws: TorchDraws) -> _Array:
        """Apply the steps and return the pixels."""
        try:
            for step in self.steps:
                step.apply(image, draws)
        except Exception:
            image.check()
            raise
        return image.pixels()

    def windows(self, samples: int, height: int, width: int, draws: BatchDraws) -> Windows:
        """Apply the steps to all samples of a batch at once.

        Raises:
            NoWindowError: there are other steps than crops, flips and margins.
        """
        windows = Windows(samples, height, width, self.channels)
        for step in self.steps:
            if not isinstance(step, _WINDOW_STEPS):
                raise NoWindowError
            step.apply(windows, draws)
        return windows

    def draws_per_sample(self, height: int, width: int) -> int | None:
        """Return the number of random numbers per image of this size; None if batches cannot be computed at once."""
        if not self.is_complete or self.tensor_transforms or not predicts_torch():
            return None
        draws = BatchDraws(np.zeros((1, _MAX_DRAWS_PER_STEP * len(self.steps)), np.uint32))
        try:
            self.windows(1, height, width, draws)
        except (NoWindowError, ValueError):
            return None
        return draws.used


@dataclass(frozen=True)
class ViewsPlan(TransformPlan):
    """Plans for several views of one image, which is decoded once. All begin with a supported transform.

    Attributes:
        views: one plan for each view, in the order of their random numbers.
        kind: list or tuple, the type of the result.
        order: the place of each view in `views`, in the order of the result.
    """

    views: tuple[TransformPlan, ...]
    kind: type
    order: tuple[int, ...]

    @classmethod
    def of(cls, views: tuple[TransformPlan, ...], kind: type, order: tuple[int, ...]) -> ViewsPlan:
        """Create a plan; its other attributes summarize those of the views."""
        first = views[0]
        return cls(
            steps=tuple(step for view in views for step in view.steps),
            table=None if any(view.table is None for view in views) else first.table,
            tensor_transforms=(),
            is_random=any(view.is_random for view in views),
            channels=first.channels,
            transforms=first.transforms,
            names=tuple(name for view in views for name in view.names),
            unsupported=tuple(transform for view in views for transform in view.unsupported),
            following=first.following,
            reason=next((view.reason for view in views if view.reason is not None), None),
            views=views,
            kind=kind,
            order=order,
        )

    def plans(self) -> Iterator[TransformPlan]:
        """Yield the plans of all views."""
        for view in self.views:
            yield from view.plans()

    def describe(self) -> str:
        """Return a description of each view."""
        groups = [(text, len(list(group))) for text, group in itertools.groupby(view.describe() for view in self.views)]
        return ", and ".join(text if count == 1 else f"{count} times {text}" for text, count in groups)

    def __call__(self, image: AnyImage, draws: TorchDraws) -> Any:
        """Compute the views, with their random numbers one after the other."""
        if isinstance(image, LazyImage):
            pixels, info = image.materialize(), image.info
            results = [
                view(LazyImage(pixels, info=None if info is None or view.table is not None else dict(info)), draws)
                for view in self.views
            ]
        else:
            results = [view(image, draws) for view in self.views]
        return self.kind(results[number] for number in self.order)

    def draws_per_sample(self, height: int, width: int) -> int | None:
        """Return None: batches cannot be computed at once."""
        return None


def channels_of(value: Any) -> int:
    """Return the number of channels of an RGB or grayscale image of Pillow; 0 for other values."""
    return {"RGB": 3, "L": 1}.get(value.mode, 0) if isinstance(value, Image.Image) else 0


def _called(transforms: tuple[Transform, ...], value: Any, draws: TorchDraws) -> Any:
    """Call transforms of torchvision one after the other."""
    if transforms:
        with draws.as_default():
            for transform in transforms:
                value = transform(value)
    return value
