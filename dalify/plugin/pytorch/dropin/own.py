"""Steps that call a function on the whole image: torchvision's own transforms, and registered functions.

torchvision's transforms are called as they are, so results are theirs by construction; what is added is the generator
that they draw from. Listed are those that give pictures for pictures, take all that is random from torch, and do not
depend on how many threads torch has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.picture import NoWindowError, Picture, Windows
from dalify.plugin.pytorch.dropin.redirection import drawing_from

__all__ = [
    "ON_PILLOW",
    "ON_TENSORS",
    "VERSION_2",
    "Own",
    "PythonChoice",
    "PythonOrder",
    "Registered",
    "by_python",
    "can_own",
    "is_changed",
    "is_version_2",
    "module_of",
]

# Where torchvision declares its transforms; a user imports them from the packages above.
_MODULES = ("torchvision.transforms.transforms", "torchvision.transforms.autoaugment", "torchvision.transforms.v2")
VERSION_2 = _MODULES[2]
_CONTAINERS = frozenset({"Compose", "RandomApply"})
_CONTAINERS_2 = frozenset({"RandomChoice", "RandomOrder"})  # those of version 1 ask Python for random numbers
_CHANNELS = frozenset({"Grayscale", "RGB"})  # how many channels there are must not be left to chance
_COPYING = frozenset(
    {
        "CenterCrop",
        "Identity",
        "Pad",
        "RGB",
        "RandomCrop",
        "RandomErasing",
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
    }
)
ON_TENSORS = _COPYING | {
    "Grayscale", "RandomGrayscale", "RandomInvert", "RandomPosterize", "RandomResizedCrop", "RandomSolarize", "Resize",
}  # fmt: skip
ON_PILLOW = (
    ON_TENSORS
    - {"RandomErasing"}
    | {
        "AugMix", "AutoAugment", "ColorJitter", "ElasticTransform", "GaussianBlur", "JPEG", "RandAugment",
        "RandomAdjustSharpness", "RandomAffine", "RandomAutocontrast", "RandomChannelPermutation", "RandomEqualize",
        "RandomInvert", "RandomPerspective", "RandomPhotometricDistort", "RandomPosterize", "RandomResize",
        "RandomRotation", "RandomShortestSize", "RandomSolarize", "RandomZoomOut", "ScaleJitter", "TrivialAugmentWide",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Own:
    """A transform of torchvision that does the work itself.

    Attributes:
        transform: it.
        tensor_type: of what it gets; None for Pillow images.
    """

    transform: Callable[[Any], Any]
    tensor_type: type[torch.Tensor] | None = None

    @property
    def is_python(self) -> bool:
        """It holds Python's lock for half of its time, which torch's kernels for tensors do not."""
        return self.tensor_type is None

    def apply(self, canvas: Picture | Windows, draws: TorchDraws) -> None:
        """Call it."""
        if isinstance(canvas, Windows):
            raise NoWindowError
        pixels = canvas.settle()
        image: Any = _pillow(pixels) if self.tensor_type is None else _tensor(pixels, self.tensor_type)
        if canvas.info is not None:
            image.info = canvas.info
        with drawing_from(draws.generator):
            found = self.transform(image)
        if found is not image:
            pixels = _pixels(found)
            canvas.replace(pixels)
            canvas.is_planar = self.tensor_type is not None and pixels.strides[2] != 1
            canvas.info = None if canvas.info is None else found.info


@dataclass(frozen=True)
class PythonOrder:
    """Version 1's RandomOrder, which asks Python for random numbers."""

    steps: tuple[Own, ...]
    is_python = True

    def apply(self, canvas: Picture | Windows, draws: TorchDraws) -> None:
        """Shuffle and call all."""
        if isinstance(canvas, Windows):
            raise NoWindowError
        order = list(range(len(self.steps)))
        draws.python.shuffle(order)
        for number in order:
            self.steps[number].apply(canvas, draws)


@dataclass(frozen=True)
class PythonChoice:
    """Version 1's RandomChoice, which asks Python for random numbers."""

    steps: tuple[Own, ...]
    weights: tuple[float, ...] | None
    is_python = True

    def apply(self, canvas: Picture | Windows, draws: TorchDraws) -> None:
        """Choose and call one."""
        if isinstance(canvas, Windows):
            raise NoWindowError
        (step,) = draws.python.choices(self.steps, weights=self.weights)
        step.apply(canvas, draws)


@dataclass(frozen=True)
class Registered:
    """A function that stands for a user's transform.

    Attributes:
        function: called with the transform, the pixels, and a generator.
        transform: the user's.
    """

    function: Callable[[Any, np.ndarray[Any, Any], torch.Generator], np.ndarray[Any, Any]]
    transform: Any

    def apply(self, canvas: Picture | Windows, draws: TorchDraws) -> None:
        """Call it."""
        if isinstance(canvas, Windows):
            raise NoWindowError
        pixels = canvas.settle().view()
        pixels.flags.writeable = False
        found = self.function(self.transform, pixels, draws.generator)
        is_picture = isinstance(found, np.ndarray) and found.dtype == np.uint8 and found.ndim == 3
        if not is_picture or found.shape[2] != pixels.shape[2] or 0 in found.shape:
            name = type(self.transform).__name__
            given = f"{found.dtype} {list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
            raise TypeError(
                f"the function registered for {name} returned {given}, but the loader requires a uint8 array "
                f"[height, width, {pixels.shape[2]}]"
            )
        canvas.replace(found)


def _pillow(pixels: np.ndarray[Any, Any]) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(pixels if pixels.shape[2] > 1 else pixels[..., 0]))


def _tensor(pixels: np.ndarray[Any, Any], kind: type[torch.Tensor]) -> torch.Tensor:
    if min(pixels.strides) < 0 or not pixels.flags.writeable:
        pixels = pixels.copy()
    return torch.from_numpy(pixels).permute(2, 0, 1).as_subclass(kind)


def _pixels(image: Any) -> np.ndarray[Any, Any]:
    if isinstance(image, torch.Tensor):
        return image.as_subclass(torch.Tensor).permute(1, 2, 0).numpy()
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]


def is_changed(stage: Any) -> bool:
    """Tell whether a transform of a known class was given hooks, or functions that hide those of its class."""
    if getattr(stage, "_forward_hooks", None) or getattr(stage, "_forward_pre_hooks", None):
        return True
    return any(callable(getattr(type(stage), name, None)) for name in vars(stage))


def module_of(stage: Any) -> str | None:
    """Where torchvision has exactly this class."""
    kind = type(stage)
    for module in _MODULES:
        if getattr(sys.modules.get(module), kind.__name__, None) is kind:
            return module
    return None


def is_version_2(stage: Any) -> bool:
    """Tell whether a transform, and each in it where it is a container, is of torchvision's version 2."""
    parts = getattr(stage, "transforms", ())
    return module_of(stage) == VERSION_2 and all(is_version_2(part) for part in parts)


def by_python(stage: Any) -> PythonOrder | PythonChoice | None:
    """The step for a container that asks Python for random numbers; None where it is none, or holds unknown ones."""
    name = type(stage).__name__
    if name not in _CONTAINERS_2 or module_of(stage) == VERSION_2 or module_of(stage) is None:
        return None
    if not stage.transforms or not all(can_own(part, ON_PILLOW - _CHANNELS) for part in stage.transforms):
        return None
    steps = tuple(Own(part) for part in stage.transforms)
    if name == "RandomOrder":
        return PythonOrder(steps)
    return PythonChoice(steps, None if stage.p is None else tuple(stage.p))


def can_own(stage: Any, names: frozenset[str]) -> bool:
    """Tell whether a transform is one of torchvision's of these names, or a container of nothing else."""
    module, name = module_of(stage), type(stage).__name__
    if module is None or is_changed(stage):
        return False
    if name in _CONTAINERS or (name in _CONTAINERS_2 and module == VERSION_2):
        return all(can_own(part, names - _CHANNELS) for part in stage.transforms)
    return name in names
