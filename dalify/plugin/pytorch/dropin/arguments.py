"""Convert torchvision's image transforms, of both versions, to steps.

Each function raises TypeError, ValueError or AttributeError for arguments that no step supports; torchvision then
computes the transform.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalify.base.torchvision_rules import filter_name, integers, margins, padding_mode
from dalify.plugin.pytorch.dropin.color import ColorJitter, RandomApply
from dalify.plugin.pytorch.dropin.kernels.pillow_color import matches_pillow
from dalify.plugin.pytorch.dropin.lazy_image import Margins
from dalify.plugin.pytorch.dropin.steps import CenterCrop, Flip, Gray, Pad, RandomCrop, RandomResizedCrop, Resize, Step
from dalify.plugin.pytorch.dropin.torchvision_steps import VERSION_1, VERSION_2, TorchvisionStep, module_of

__all__ = ["STEPS", "Context"]

_LEVELS = 256


@dataclass(frozen=True)
class Context:
    """The position of a transform among others.

    Attributes:
        module: name of torchvision's module that declares it.
        channels: number of channels of its input.
        tensor_type: type of its input; None for Pillow images.
    """

    module: str
    channels: int
    tensor_type: Any


def _pair(values: Any) -> tuple[int, int]:
    height, width = integers(values, 2)
    if min(height, width) < 1:
        raise ValueError(f"{values!r} is empty")
    return height, width


def _filter(transform: Any) -> str:
    name = filter_name(transform.interpolation)
    return "nearest" if name == "nearest-exact" else name


def _fill(fill: Any, context: Context) -> tuple[int, ...]:
    if fill is None and context.module == VERSION_2:
        fill = 0
    found: tuple[Any, ...] = tuple(fill) if isinstance(fill, list | tuple) else (fill,)
    found = found * context.channels if len(found) == 1 else found
    is_known = len(found) == context.channels and all(
        isinstance(value, int | float) and 0 <= value < _LEVELS for value in found
    )
    if not is_known:
        raise ValueError(f"fill {fill!r} for {context.channels} channels")
    return tuple(int(value) for value in found)


def _range(values: Any) -> tuple[float, float]:
    low, high = values
    if not (isinstance(low, int | float) and isinstance(high, int | float) and low <= high):
        raise ValueError(f"range {values!r}")
    return low, high


def _require_pillow(context: Context) -> None:
    """Raise TypeError for tensors, which torchvision filters and rounds in another way than Pillow images."""
    if context.tensor_type is not None:
        raise TypeError("on tensors")


def _check_padding(fill: Any, mode: str, padded: Margins | None, context: Context) -> None:
    """Raise ValueError for padding that torchvision computes in another way for tensors than for Pillow images."""
    if context.tensor_type is not None and (type(fill) is not int or mode != "constant" or padded == (0,) * 4):
        raise ValueError(f"fill {fill!r} and padding_mode {mode!r} on tensors")


def _resize(transform: Any, context: Context) -> Step:
    _require_pillow(context)
    size = integers(transform.size, 1, 2)
    longest = transform.max_size
    if longest is not None and (len(size) == 2 or type(longest) is not int or longest <= size[0]):
        raise ValueError(f"max_size {longest!r} with size {transform.size!r}")
    if min(size) < 1:
        raise ValueError(f"size {transform.size!r}")
    return Resize(size, _filter(transform), longest)


def _center_crop(transform: Any, context: Context) -> Step:
    return CenterCrop(*_pair(transform.size), context.channels, context.tensor_type is not None)


def _pad(transform: Any, context: Context) -> Step:
    found = margins(transform.padding)
    _check_padding(transform.fill, transform.padding_mode, found, context)
    is_tensor = context.tensor_type is not None
    return Pad(found, _fill(transform.fill, context), padding_mode(transform.padding_mode), is_tensor)


def _random_crop(transform: Any, context: Context) -> Step:
    fill, mode = _fill(transform.fill, context), padding_mode(transform.padding_mode)
    given = transform.padding
    if given is not None and context.module == VERSION_2:
        left, right, top, bottom = given
        given = [left, top, right, bottom]
        if transform.pad_if_needed and mode != "constant":
            raise ValueError("two paddings by reflection at once")
    is_tensor = context.tensor_type is not None
    padding = None if given is None else Pad(margins(given), fill, mode, is_tensor)
    if given is not None or transform.pad_if_needed:
        _check_padding(transform.fill, mode, padding and padding.margins, context)
    draws_always = context.module != VERSION_2
    return RandomCrop(
        *_pair(transform.size), padding, bool(transform.pad_if_needed), fill, mode, draws_always, is_tensor
    )


def _random_resized_crop(transform: Any, context: Context) -> Step:
    ratio, size = _range(transform.ratio), _pair(transform.size)
    if ratio[0] <= 0:
        raise ValueError(f"ratio {transform.ratio!r}")
    resize: Step = Resize(size, _filter(transform))
    if context.tensor_type is not None:
        version = sys.modules[VERSION_2 if context.module == VERSION_2 else VERSION_1]
        own = version.Resize(transform.size, transform.interpolation, antialias=transform.antialias)
        resize = TorchvisionStep(own, context.tensor_type)
    return RandomResizedCrop(_range(transform.scale), ratio, resize)


def _flip(axis: int) -> Callable[[Any, Context], Step]:
    def lower(transform: Any, context: Context) -> Step:
        if not isinstance(transform.p, int | float):
            raise ValueError(f"p {transform.p!r}")
        return Flip(axis, transform.p)

    return lower


def _gray(transform: Any, context: Context) -> Step:
    _require_pillow(context)
    if transform.num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels {transform.num_output_channels!r}")
    return Gray(transform.num_output_channels)


def _color(transform: Any, context: Context) -> Step:
    _require_pillow(context)
    if context.channels != 1:
        raise ValueError("RGB does not change images with three channels")
    return Gray(3)


def _random_grayscale(transform: Any, context: Context) -> Step:
    _require_pillow(context)
    return RandomApply((Gray(context.channels),), transform.p)


def _limits(values: Any) -> tuple[float, float] | None:
    return None if values is None else _range(values)


def _color_jitter(transform: Any, context: Context) -> Step:
    _require_pillow(context)
    if not matches_pillow():
        raise ValueError("this version of Pillow rounds in another way")
    limits = (
        _limits(transform.brightness),
        _limits(transform.contrast),
        _limits(transform.saturation),
        _limits(transform.hue),
    )
    return ColorJitter(limits)


def _random_apply(transform: Any, context: Context) -> Step:
    _require_pillow(context)
    steps = []
    for part in transform.transforms:
        name, module = type(part).__name__, module_of(part)
        if name not in STEPS or name in ("Grayscale", "RGB") or module is None:
            raise ValueError(f"{name} in RandomApply")
        steps.append(STEPS[name](part, replace(context, module=module)))
    # Version 1 applies the steps if the random number is at most p, version 2 if it is less.
    limit = transform.p if context.module == VERSION_2 else float(np.nextafter(np.float32(transform.p), np.float32(2)))
    return RandomApply(tuple(steps), limit)


STEPS: dict[str, Callable[[Any, Context], Step]] = {
    "CenterCrop": _center_crop,
    "ColorJitter": _color_jitter,
    "Grayscale": _gray,
    "Pad": _pad,
    "RGB": _color,
    "RandomApply": _random_apply,
    "RandomCrop": _random_crop,
    "RandomGrayscale": _random_grayscale,
    "RandomHorizontalFlip": _flip(1),
    "RandomResizedCrop": _random_resized_crop,
    "RandomVerticalFlip": _flip(0),
    "Resize": _resize,
}
