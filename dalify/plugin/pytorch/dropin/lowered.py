"""``lower``: a faster version of a transform, for datasets that the loader does not support."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

from dalify.base.errors import ArgumentTypeError
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.lazy_image import image_of
from dalify.plugin.pytorch.dropin.lowering import lower_transform
from dalify.plugin.pytorch.dropin.plan import Plan, channels_of
from dalify.plugin.pytorch.dropin.registration import WRAPPERS

__all__ = ["Lowered", "describe", "lower"]


class Lowered:
    """A transform that dalify's kernels compute as far as possible; created by `lower`. It can be pickled.

    Attributes:
        transform: the original transform.
    """

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        self._plans: dict[int, Plan] = {}

    def __call__(self, image: Any) -> Any:
        """Transform an image.

        Args:
            image: a Pillow image, or an array uint8 ``[height, width, channels]``, converted by
                ``PIL.Image.fromarray``. Other values are passed to the original transform.
        """
        if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] in (1, 3):
            return self(image_of(image))
        channels = channels_of(image)
        if not channels:
            return self.transform(image)
        return self._plan(channels).convert(image, TorchDraws(torch.default_generator))

    def _plan(self, channels: int) -> Plan:
        if channels not in self._plans:
            self._plans[channels] = lower_transform(self.transform, channels)
        return self._plans[channels]

    def __repr__(self) -> str:
        return f"Lowered({describe(self._plan(3))})"

    def __getstate__(self) -> dict[str, Any]:
        return {"transform": self.transform, "_plans": {}}


WRAPPERS[Lowered] = lambda lowered: (lowered.transform,)


def describe(plan: Plan) -> str:
    """Describe which transforms dalify computes, if unsupported ones return RGB images for images."""
    transforms: list[tuple[str, bool]] = []
    for part in plan.plans():
        transforms += [(name, True) for name in part.names]
        transforms += [(getattr(first, "__name__", type(first).__name__), False) for first in part.unsupported[:1]]
    return ", then ".join(
        f"{' → '.join(name for name, _ in group)} {'by dalify' if is_lowered else 'in Python'}"
        for is_lowered, group in itertools.groupby(transforms, lambda transform: transform[1])
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
