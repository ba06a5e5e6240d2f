"""What is done with each image of a dataset, and the image in the forms that torchvision's transforms take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch.dropin.draws import CountingDraws, TorchDraws, foresees_torch
from dalify.plugin.pytorch.dropin.kernels.pixel_table import planes_of_image
from dalify.plugin.pytorch.dropin.picture import NoWindowError, OpenedImage, Picture, Windows
from dalify.plugin.pytorch.dropin.redirection import drawing_from
from dalify.plugin.pytorch.dropin.steps import Step

__all__ = ["NotRecognizedError", "Plan", "Table", "draws_per_sample", "windows_of"]

_Array = np.ndarray[Any, Any]


class NotRecognizedError(Exception):
    """Something that dalify leaves to torch.

    Args:
        reason: what it is, and where.
        hint: what would help; empty where nothing would.
        code: short name of the kind of reason, for programs.
    """

    def __init__(self, reason: str, hint: str = "", code: str = "DS02") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.code = code


@dataclass(frozen=True)
class Table:
    """What becomes of each byte where pictures become tensors.

    Attributes:
        values: ``[channels, 256]``.
        tensor_type: ``torch.Tensor``, or torchvision's for images.
        is_interleaved: in torchvision's tensors the channels of a pixel lie side by side.
    """

    values: _Array
    tensor_type: type[torch.Tensor]
    is_interleaved: bool


@dataclass(frozen=True)
class Plan:
    """What is done with each image of one dataset.

    Attributes:
        steps: on pictures, in order.
        table: from their bytes to tensors; None where the images stay Pillow's.
        tail: torchvision's own transforms for these tensors, which only copy or compute single values.
        is_random: steps or tail draw random numbers.
        channels: of the images before the steps.
        names: of the transforms that steps, table and tail stand for, for reports.
        rest: the transforms, in order, from the first one that is not known; they get a tensor where there is a table,
            else a Pillow image. Without them, there is no tail.
        rest_reason: why the first of the rest is not known, or why there are no tensors; empty where all is lowered.
        rest_hint: what would help; empty where nothing would.
        stages: the known transforms themselves, for images that no step may touch.
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
    def is_whole(self) -> bool:
        """Nothing is left over, and the results are tensors."""
        return self.table is not None and not self.rest

    @property
    def asks_torchvision(self) -> bool:
        """Steps call torchvision for Pillow images, whose Python and Pillow's threads do one after the other."""
        return any(getattr(step, "is_python", False) for step in self.steps)

    def take_steps(self, picture: Picture | OpenedImage, draws: TorchDraws) -> None:
        """Apply the steps.

        Raises:
            Exception: what decoding raises, or else what torchvision's transforms raise.
        """
        if isinstance(picture, OpenedImage):
            with drawing_from(draws.generator):
                for stage in self.stages:
                    picture.image = stage(picture.image)
            return
        try:
            for step in self.steps:
                step.apply(picture, draws)
        except Exception:
            picture.check()
            raise

    def sample(self, picture: Picture | OpenedImage, draws: TorchDraws) -> Any:
        """Make what the known transforms give: type, values and order of memory are torchvision's.

        Args:
            picture: behind the steps.
            draws: for the tail.

        Returns:
            A Pillow image, or a tensor ``[channels, height, width]``, with memory of its own.
        """
        if isinstance(picture, OpenedImage):
            return picture.image
        pixels = picture.pixels()
        if self.table is None:
            image = Image.fromarray(np.ascontiguousarray(pixels if pixels.shape[2] > 1 else pixels[..., 0]))
            image.info = dict(picture.info or {})
            return image
        height, width, channels = pixels.shape
        if self.table.is_interleaved and not picture.is_planar:
            target = np.empty((height, width, channels), self.table.values.dtype).transpose(2, 0, 1)
        else:
            target = np.empty((channels, height, width), self.table.values.dtype)
        planes_of_image(pixels, self.table.values, target)
        found: Any = torch.from_numpy(target).as_subclass(self.table.tensor_type)  # pyright: ignore[reportArgumentType]
        if self.tail:
            with drawing_from(draws.generator):
                for transform in self.tail:
                    found = transform(found)
        return found

    def write(
        self, picture: Picture | OpenedImage, draws: TorchDraws, room: Callable[[tuple[int, ...], Any], _Array]
    ) -> _Array:
        """Compute a whole plan's tensor into a given place.

        Args:
            picture: behind the steps.
            draws: for the tail.
            room: gives an array of a shape and a numpy type.

        Returns:
            What `room` gave, filled.
        """
        assert self.table is not None
        if self.tail or isinstance(picture, OpenedImage):
            tensor = self.sample(picture, draws)
            found = tensor.as_subclass(torch.Tensor).numpy()
            target = room(found.shape, found.dtype)
            target[...] = found
            return target
        pixels = picture.pixels()
        target = room((pixels.shape[2], *pixels.shape[:2]), self.table.values.dtype)
        planes_of_image(pixels, self.table.values, target)
        return target


def windows_of(plan: Plan, samples: int, height: int, width: int, draws: Any) -> Windows:
    """Apply the steps to all samples of a batch at once.

    Raises:
        NoWindowError: the steps are more than crops, flips and margins.
    """
    windows = Windows(samples, height, width, plan.channels)
    for step in plan.steps:
        step.apply(windows, draws)
    return windows


def draws_per_sample(plan: Plan, height: int, width: int) -> int | None:
    """How many numbers each image of that size asks for; None where whole batches cannot be done at once."""
    if not plan.is_whole or plan.tail or not foresees_torch():
        return None
    draws = CountingDraws()
    try:
        windows_of(plan, 1, height, width, draws)
    except (NoWindowError, ValueError):
        return None
    return draws.count
