"""Transforms of single images: dalify's kernels compute the supported ones, the others run as Python code.

After a transform of the user that returns a Pillow image, the following supported transforms are lowered again.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.base.errors import ArgumentTypeError
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.hints import note_failed_transform
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage, image_of, pixels_of
from dalify.plugin.pytorch.dropin.lowering import lower_transform
from dalify.plugin.pytorch.dropin.plan import Plan
from dalify.plugin.pytorch.dropin.registration import WRAPPERS

__all__ = ["Lowered", "PythonStages", "lower", "outline"]

_CHANNELS = {"RGB": 3, "L": 1}


class PythonStages:
    """A sequence of transforms that begins with an unsupported one; kernels compute supported ones after it.

    Args:
        stages: the transforms.
    """

    def __init__(self, stages: tuple[Any, ...]) -> None:
        self.stages = stages
        self._plans: dict[tuple[int, int], Plan] = {}

    def parts(self, are_tensors: bool) -> list[tuple[str, bool]]:
        """Return which transforms dalify computes, if unsupported ones return RGB images for images.

        Args:
            are_tensors: whether the first one gets tensors.

        Returns:
            names of the transforms, and whether dalify computes them.
        """
        found: list[tuple[str, bool]] = []
        while len(found) < len(self.stages):
            position = len(found)
            plan = None if are_tensors else self._plan(position, 3)
            done = 0 if plan is None else len(self.stages) - len(plan.rest) - position
            found += [(_name(stage), done > 0) for stage in self.stages[position : position + max(done, 1)]]
            are_tensors = are_tensors or (plan is not None and plan.table is not None)
        return found

    def plans(self) -> list[Plan]:
        """Return the plans for RGB images between transforms in Python."""
        self.parts(are_tensors=False)
        return list(self._plans.values())

    def __call__(self, value: Any) -> Any:
        """Apply the transforms, with torch's default generator.

        Args:
            value: the result of the transforms before them.
        """
        position = 0
        while position < len(self.stages):
            plan = self._plan(position, _CHANNELS.get(value.mode) if isinstance(value, Image.Image) else None)
            if plan is not None and len(plan.rest) < len(self.stages) - position:
                value = _run(plan, value)
                position = len(self.stages) - len(plan.rest)
                continue
            stage = self.stages[position]
            try:
                value = stage(value)
            except Exception as error:
                note_failed_transform(error, stage, value)
                raise
            position += 1
        return value

    def _plan(self, position: int, channels: int | None) -> Plan | None:
        compose = getattr(sys.modules.get("torchvision.transforms.transforms"), "Compose", None)
        if channels is None or compose is None or position == 0:
            return None
        plan = self._plans.get((position, channels))
        if plan is None:
            plan = self._plans[position, channels] = lower_transform(compose(self.stages[position:]), channels)
        return plan


def _run(plan: Plan, image: Image.Image) -> Any:
    lazy_image = LazyImage(pixels_of(image), info=image.info if plan.table is None else None)
    return plan.sample(lazy_image, TorchDraws(torch.default_generator))


class Lowered:
    """A transform that dalify's kernels compute as far as possible; created by `lower`. It can be pickled.

    Attributes:
        transform: the original transform.
    """

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        self._prepared: dict[int, tuple[Plan, PythonStages]] = {}

    def __call__(self, image: Any) -> Any:
        """Transform an image.

        Args:
            image: a Pillow image, or an array uint8 ``[height, width, channels]``, converted by
                ``PIL.Image.fromarray``. Other values are passed to the original transform.
        """
        if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] in (1, 3):
            image = image_of(image)
        if not isinstance(image, Image.Image) or image.mode not in _CHANNELS:
            return self.transform(image)
        plan, rest = self._for(_CHANNELS[image.mode])
        return rest(_run(plan, image) if plan.names else image)

    def _for(self, channels: int) -> tuple[Plan, PythonStages]:
        found = self._prepared.get(channels)
        if found is None:
            plan = lower_transform(self.transform, channels)
            found = self._prepared[channels] = plan, PythonStages(plan.rest)
        return found

    def __repr__(self) -> str:
        plan, rest = self._for(3)
        return f"Lowered({outline(plan, rest)})"

    def __getstate__(self) -> dict[str, Any]:
        return {"transform": self.transform, "_prepared": {}}


WRAPPERS[Lowered] = lambda lowered: (lowered.transform,)


def _name(stage: Any) -> str:
    return getattr(stage, "__name__", type(stage).__name__)


def outline(plan: Plan, rest: PythonStages) -> str:
    """Describe which transforms dalify computes."""
    parts = [*((name, True) for name in plan.names), *rest.parts(plan.table is not None)]
    groups = itertools.groupby(parts, lambda part: part[1])
    return ", then ".join(
        f"{' → '.join(name for name, _ in group)} {'by dalify' if is_lowered else 'in Python'}"
        for is_lowered, group in groups
    )


def lower(transform: Any) -> Lowered:
    """Return a faster version of a torchvision transform, with identical results and random numbers.

    For datasets that the loader does not support: ``dataset.transform = lower(dataset.transform)``.

    Args:
        transform: a transform of ``torchvision.transforms`` or a Compose. Unsupported parts run as Python code.

    Raises:
        ArgumentTypeError: it cannot be called.

    Example:
        >>> from dalify.plugin.pytorch import lower
        >>> training = lower(transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()]))
        >>> training
        Lowered(RandomResizedCrop → ToTensor by dalify)
        >>> training(PIL.Image.new("RGB", (90, 60))).shape
        torch.Size([3, 32, 32])
    """
    if not callable(transform):
        raise ArgumentTypeError(
            f"a transform must be callable; got {transform!r}.",
            hint="Use lower(transforms.Compose([...])).",
        )
    return transform if isinstance(transform, Lowered) else Lowered(transform)
