"""Convert torchvision's transforms to a plan, as far as they are supported.

Only exact types are supported, because a subclass may override anything. Geometric transforms become steps. Pointwise
transforms (ToTensor, Normalize, ...) become a table, which the transforms themselves fill, so that its entries are
bit-identical. Most other transforms run unchanged, with the loader's random numbers.

Supported are, of ``torchvision.transforms`` and ``torchvision.transforms.v2``, alone or in Compose, ``nn.Sequential``
and the presets of weights (``weights.transforms()`` for classification):

- computed by dalify: for images Resize, CenterCrop, RandomCrop, RandomResizedCrop, RandomHorizontalFlip,
  RandomVerticalFlip, Pad, Grayscale, RandomGrayscale, RGB, ColorJitter, RandomApply of these; and ToTensor,
  PILToTensor, ToImage, ToDtype, ConvertImageDtype, Normalize, ToPureTensor, Identity;
- computed by torchvision in dalify's threads: for images those in `torchvision_steps.ON_PILLOW`, for tensors those in
  `torchvision_steps.ON_TENSORS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch.dropin.arguments import STEPS, Context
from dalify.plugin.pytorch.dropin.lazy_image import image_of
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError, Plan, Table
from dalify.plugin.pytorch.dropin.registration import TRANSFORMS, WRAPPERS
from dalify.plugin.pytorch.dropin.steps import CenterCrop, Flip, Gray, Pad, Resize, Step
from dalify.plugin.pytorch.dropin.torchvision_steps import (
    ON_PILLOW,
    ON_TENSORS,
    PythonContainer,
    Registered,
    TorchvisionStep,
    container_step,
    is_changed,
    is_supported,
    is_version_2,
    module_of,
)

__all__ = ["check_settings", "lower_transform"]

_VERSIONS = ("torchvision.transforms.transforms", "torchvision.transforms.v2")
_POINTWISE = frozenset(
    {"ConvertImageDtype", "Identity", "Normalize", "PILToTensor", "ToDtype", "ToImage", "ToPureTensor", "ToTensor"}
)
_TABLE_TYPES = ("float32", "float64", "uint8", "int16", "int32", "int64")
_LEVELS = 256


def lower_transform(transform: Any, channels: int) -> Plan:
    """Convert a transform, or a composition of transforms, as far as they are supported.

    Args:
        transform: transform of a dataset; None for none.
        channels: number of channels of the dataset's images: 1 or 3.
    """
    lowering = _Lowering(channels)
    stages = [] if transform is None else list(_flat(transform, "transform"))
    reason = hint = ""
    count = 0
    for place, stage in stages:
        try:
            lowering.add(place, stage)
        except NotRecognizedError as error:
            reason, hint = error.reason, error.hint
            break
        count += 1
    table = lowering.table()
    if not reason and table is None:
        subject = "the dataset has no transform" if transform is None else "the transforms end with Pillow images"
        reason = f"{subject}, and Pillow images cannot be collated"
        hint = "Add transforms.ToTensor() to the dataset."
    names, tail = lowering.names, lowering.tail
    rest = tuple(stage for _, stage in stages[count:])
    if rest:
        names, rest, tail = names[: count - len(tail)], (*tail, *rest), []
    return Plan(
        tuple(lowering.steps),
        table,
        tuple(tail),
        any(not isinstance(step, CenterCrop | Gray | Pad | Resize) for step in lowering.steps) or bool(tail),
        channels,
        tuple(names),
        rest,
        reason,
        hint,
        tuple(stage for _, stage in stages[: len(names)]),
    )


class _Lowering:
    """Builds a plan.

    Args:
        channels: number of channels of the dataset's images.

    Attributes:
        steps: see `Plan`.
        tail: see `Plan`.
        names: names of the added transforms, with a note if torchvision computes them.
    """

    def __init__(self, channels: int) -> None:
        self.names: list[str] = []
        self.steps: list[Step] = []
        self.tail: list[Callable[[Any], Any]] = []
        self._pointwise: list[Callable[[Any], Any]] = []
        self._channels = channels
        self._ramp: Any = _ramp(channels)

    def add(self, place: str, stage: Any) -> None:
        """Add a transform.

        Raises:
            NotRecognizedError: it is not supported, was modified, or torchvision rejects its input.
        """
        steps, tail = len(self.steps), len(self.tail)
        self._add(place, stage)
        is_torchvision = len(self.tail) > tail or (
            len(self.steps) > steps and isinstance(self.steps[-1], TorchvisionStep | PythonContainer)
        )
        self.names.append(f"{type(stage).__name__} (torchvision)" if is_torchvision else type(stage).__name__)

    def _add(self, place: str, stage: Any) -> None:
        kind, name = type(stage), type(stage).__name__
        is_pillow = not isinstance(self._ramp, torch.Tensor)
        if kind in TRANSFORMS and is_pillow:
            self.steps.append(Registered(TRANSFORMS[kind], stage))
            return
        module = module_of(stage)
        if module is not None and is_changed(stage):
            raise NotRecognizedError(f"{place} ({name}) has hooks or its own forward")
        container = container_step(stage) if is_pillow else None
        if container is not None:
            self.steps.append(container)
            return
        if module is None or not (name in _POINTWISE or is_supported(stage, ON_PILLOW | ON_TENSORS)):
            raise NotRecognizedError(
                f"{place} is {kind.__module__}.{name}, which is not supported",
                "Most transforms of torchvision.transforms and v2 that return one image for one image are supported.",
            )
        # Version 1 returns plain tensors for tensors of version 2 that it changes, so it must run itself.
        mixes = not is_pillow and type(self._ramp) is not torch.Tensor and not is_version_2(stage)
        if self.tail or (mixes and name not in _POINTWISE):
            self._add_to_tail(place, stage)
        elif not is_pillow and not self._are_bytes():
            self._add_behind_table(place, stage)
        elif name in _POINTWISE:
            self._add_pointwise(place, stage)
        else:
            self._add_step(place, stage, module)

    def _are_bytes(self) -> bool:
        """Return whether the table so far maps each byte to itself."""
        tensor = self._ramp
        return tensor.dtype == torch.uint8 and bool((tensor == torch.arange(_LEVELS)).all())

    def _add_pointwise(self, place: str, stage: Any) -> None:
        try:
            ramp = stage(self._ramp)
        except Exception as error:  # torchvision will raise it again for the first sample
            raise NotRecognizedError(f"{place} ({type(stage).__name__}) rejects such images: {error}") from error
        if isinstance(ramp, torch.Tensor):
            kind = str(ramp.dtype).removeprefix("torch.")
            if tuple(ramp.shape) != (self._channels, 1, _LEVELS) or kind not in _TABLE_TYPES:
                raise NotRecognizedError(f"{place} returns tensors of type {kind} and shape {tuple(ramp.shape)}")
        self._ramp = ramp
        self._pointwise.append(stage)

    def _add_behind_table(self, place: str, stage: Any) -> None:
        name = type(stage).__name__
        if name in _POINTWISE:
            self._add_pointwise(place, stage)
        elif name in ("RandomHorizontalFlip", "RandomVerticalFlip"):
            self.steps.append(Flip(int(name == "RandomHorizontalFlip"), stage.p))
        else:
            self._add_to_tail(place, stage)

    def _add_to_tail(self, place: str, stage: Any) -> None:
        if not is_supported(stage, ON_TENSORS | _POINTWISE):
            raise NotRecognizedError(
                f"{place} ({type(stage).__name__}) works on tensors",
                "Move it before ToTensor; it is supported on Pillow images.",
            )
        self.tail.append(stage)

    def _add_step(self, place: str, stage: Any, module: str) -> None:
        name = type(stage).__name__
        tensor_type = type(self._ramp) if isinstance(self._ramp, torch.Tensor) else None
        resize_class = sys.modules[_VERSIONS[module == _VERSIONS[1]]].Resize
        setting = Context(module, self._channels, resize_class, tensor_type)
        step: Step | None = None
        if name in STEPS:
            with suppress(TypeError, ValueError, AttributeError):  # torchvision computes it
                step = STEPS[name](stage, setting)
        if step is None:
            if not is_supported(stage, ON_PILLOW if tensor_type is None else ON_TENSORS):
                where = "Pillow images" if tensor_type is None else "tensors"
                raise NotRecognizedError(f"{place} ({name}) is not supported on {where}")
            step = TorchvisionStep(stage, tensor_type)
        self.steps.append(step)
        channels = 3 if name == "RGB" else getattr(stage, "num_output_channels", self._channels)
        if name == "Grayscale" and tensor_type is not None:
            channels = len(stage(self._ramp))  # version 1 leaves tensors with one channel as they are
        if channels != self._channels:
            self._channels, self._ramp = channels, _ramp(channels)
            for pointwise in self._pointwise:
                self._ramp = pointwise(self._ramp)

    def table(self) -> Table | None:
        """Return the results of the pointwise transforms for each byte; None if they return Pillow images."""
        if not isinstance(self._ramp, torch.Tensor):
            return None
        tensor = self._ramp.as_subclass(torch.Tensor)
        values = np.ascontiguousarray(tensor.numpy()[:, 0, :])
        return Table(values, type(self._ramp), self._channels > 1 and tensor.stride(0) == 1)


def _ramp(channels: int) -> Image.Image:
    """Return an image of one row with each byte value once in each channel."""
    ramp = np.repeat(np.arange(_LEVELS, dtype=np.uint8)[None, :, None], channels, axis=2)
    return image_of(ramp)


def _flat(transform: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield all transforms of nested compositions with their positions."""
    parts = _parts(transform)
    if parts is None:
        yield place, transform
        return
    for number, part in enumerate(parts):
        yield from _flat(part, f"{place}[{number}]")


def _parts(transform: Any) -> Sequence[Any] | None:
    """Return the transforms of a composition; None for other transforms."""
    kind = type(transform)
    if kind in WRAPPERS:
        return WRAPPERS[kind](transform)
    if hasattr(transform, "__dict__") and is_changed(transform):
        return None
    if any(kind is getattr(sys.modules.get(module), "Compose", None) for module in _VERSIONS):
        return transform.transforms
    if kind is torch.nn.Sequential:
        return list(transform)
    if kind is getattr(sys.modules.get("torchvision.transforms._presets"), "ImageClassification", None):
        version = sys.modules[_VERSIONS[0]]
        return (
            version.Resize(transform.resize_size, transform.interpolation, antialias=transform.antialias),
            version.CenterCrop(transform.crop_size),
            version.PILToTensor(),
            version.ConvertImageDtype(torch.float),
            version.Normalize(transform.mean, transform.std),
        )
    return None


def check_settings() -> None:
    """Check global settings of torch that change random numbers.

    Raises:
        NotRecognizedError: torch's default dtype is not float32.
    """
    if torch.get_default_dtype() != torch.float32:
        raise NotRecognizedError(f"torch's default type is {torch.get_default_dtype()}, not float32")
