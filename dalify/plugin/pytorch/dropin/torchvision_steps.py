"""Steps that call a function for the whole image: torchvision's transforms, and registered functions.

torchvision's transforms run unchanged, so their results are identical; only the generator is replaced. The sets of
names list transforms that return one image for one image, draw all random numbers from torch, and do not depend on the
number of torch's threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage, image_of, pixels_of

# Modules that declare torchvision's transforms; users import them from the parent packages.
VERSION_1, VERSION_2 = "torchvision.transforms.transforms", "torchvision.transforms.v2"
_MODULES = (VERSION_1, "torchvision.transforms.autoaugment", VERSION_2)
_CONTAINERS = frozenset({"Compose", "RandomApply"})
_RANDOM_CONTAINERS = frozenset({"RandomChoice", "RandomOrder"})  # those of version 1 draw from Python's generator
_CHANNEL_CONVERSIONS = frozenset({"Grayscale", "RGB"})  # the number of channels must not be random
ON_TENSORS = frozenset(
    {
        "CenterCrop", "Grayscale", "Identity", "Pad", "RGB", "RandomCrop", "RandomErasing", "RandomGrayscale",
        "RandomHorizontalFlip", "RandomInvert", "RandomPosterize", "RandomResizedCrop", "RandomSolarize",
        "RandomVerticalFlip", "Resize",
    }
)  # fmt: skip
ON_PILLOW = (
    ON_TENSORS
    - {"RandomErasing"}
    | {
        "AugMix", "AutoAugment", "ColorJitter", "ElasticTransform", "GaussianBlur", "JPEG", "RandAugment",
        "RandomAdjustSharpness", "RandomAffine", "RandomAutocontrast", "RandomChannelPermutation", "RandomEqualize",
        "RandomPerspective", "RandomPhotometricDistort", "RandomResize", "RandomRotation", "RandomShortestSize",
        "RandomZoomOut", "ScaleJitter", "TrivialAugmentWide",
    }
)  # fmt: skip


@dataclass(frozen=True)
class TorchvisionStep:
    """A transform of torchvision, called unchanged.

    Attributes:
        transform: the transform.
        tensor_type: type of its input; None for Pillow images.
    """

    transform: Callable[[Any], Any]
    tensor_type: type[torch.Tensor] | None = None

    @property
    def is_python(self) -> bool:
        """Whether it holds the GIL for much of its time, unlike torch's kernels for tensors."""
        return self.tensor_type is None

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Call the transform."""
        pixels = image.materialize()
        value: Any = image_of(pixels) if self.tensor_type is None else _tensor(pixels, self.tensor_type)
        if image.info is not None:
            value.info = image.info
        with draws.as_default():
            result = self.transform(value)
        if result is not value:
            pixels = pixels_of(result)
            image.replace(pixels)
            image.is_planar = self.tensor_type is not None and pixels.strides[2] != 1
            image.info = None if image.info is None else result.info


@dataclass(frozen=True)
class Contiguous:
    """Copy the pixels to contiguous memory, as the conversion of an image to a tensor does.

    torch's kernels return tensors with the memory layout of their input.

    Attributes:
        is_planar: True for the conversion of an array, after which the channels are consecutive in memory.
    """

    is_planar: bool = False

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Copy them if necessary."""
        if self.is_planar:
            image.replace(np.ascontiguousarray(image.materialize().transpose(2, 0, 1)).transpose(1, 2, 0))
            image.is_planar = True
        elif not image.is_encoded:
            image.replace(np.ascontiguousarray(image.materialize()))


@dataclass(frozen=True)
class PythonContainer:
    """RandomOrder or RandomChoice of version 1, which draw from Python's generator.

    Attributes:
        steps: the transforms.
        is_choice: True to choose one transform, False to call all in random order.
        weights: weights of the choice; None for equal weights.
    """

    steps: tuple[TorchvisionStep, ...]
    is_choice: bool
    weights: tuple[float, ...] | None = None
    is_python = True

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Choose a transform, or shuffle them, and call the result."""
        if self.is_choice:
            steps = draws.python.choices(self.steps, weights=self.weights)
        else:
            steps = list(self.steps)
            draws.python.shuffle(steps)
        for step in steps:
            step.apply(image, draws)


@dataclass(frozen=True)
class Registered:
    """A function that replaces a user's transform.

    Attributes:
        function: called with the transform, the pixels, and a generator.
        transform: the user's transform.
    """

    function: Callable[[Any, np.ndarray[Any, Any], torch.Generator], np.ndarray[Any, Any]]
    transform: Any

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Call the function."""
        pixels = image.materialize().view()
        pixels.flags.writeable = False
        found = self.function(self.transform, pixels, draws.generator)
        is_image = isinstance(found, np.ndarray) and found.dtype == np.uint8 and found.ndim == 3
        if not is_image or found.shape[2] != pixels.shape[2] or 0 in found.shape:
            name = type(self.transform).__name__
            given = f"{found.dtype} {list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
            raise TypeError(
                f"the function registered for {name} returned {given}, but the loader requires a uint8 array "
                f"[height, width, {pixels.shape[2]}]"
            )
        image.replace(found)


def _tensor(pixels: np.ndarray[Any, Any], kind: type[torch.Tensor]) -> torch.Tensor:
    if min(pixels.strides) < 0 or not pixels.flags.writeable:
        pixels = pixels.copy(order="K")
    return torch.from_numpy(pixels).permute(2, 0, 1).as_subclass(kind)


def is_changed(transform: Any) -> bool:
    """Return whether a transform has hooks, or attributes that override methods of its class."""
    if getattr(transform, "_forward_hooks", None) or getattr(transform, "_forward_pre_hooks", None):
        return True
    return any(callable(getattr(type(transform), name, None)) for name in vars(transform))


def module_of(transform: Any) -> str | None:
    """Return the module of torchvision that declares exactly this class; None for other classes."""
    kind = type(transform)
    for module in _MODULES:
        if getattr(sys.modules.get(module), kind.__name__, None) is kind:
            return module
    return None


def is_version_2(transform: Any) -> bool:
    """Return whether a transform, and each transform in a container, is of torchvision's version 2."""
    parts = getattr(transform, "transforms", ())
    return module_of(transform) == VERSION_2 and all(is_version_2(part) for part in parts)


def container_step(transform: Any) -> PythonContainer | None:
    """Return the step for a container of version 1 that draws from Python's generator; None if unsupported."""
    name = type(transform).__name__
    if name not in _RANDOM_CONTAINERS or module_of(transform) == VERSION_2 or module_of(transform) is None:
        return None
    if not transform.transforms or not all(
        is_supported(part, ON_PILLOW - _CHANNEL_CONVERSIONS) for part in transform.transforms
    ):
        return None
    steps = tuple(TorchvisionStep(part) for part in transform.transforms)
    if name == "RandomOrder":
        return PythonContainer(steps, is_choice=False)
    return PythonContainer(steps, is_choice=True, weights=None if transform.p is None else tuple(transform.p))


def is_supported(transform: Any, names: frozenset[str]) -> bool:
    """Return whether a transform is one of torchvision with these names, or a container of such transforms."""
    module, name = module_of(transform), type(transform).__name__
    if module is None or is_changed(transform):
        return False
    if name in _CONTAINERS or (name in _RANDOM_CONTAINERS and module == VERSION_2):
        return all(is_supported(part, names - _CHANNEL_CONVERSIONS) for part in transform.transforms)
    return name in names
