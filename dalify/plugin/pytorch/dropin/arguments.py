"""Convert torchvision's image transforms, of both versions, to steps.

Each function raises TypeError, ValueError or AttributeError for arguments that no step supports; torchvision then
computes the transform.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalify.base.torchvision_rules import filter_name, integers, margins, padding_mode
from dalify.plugin.pytorch.dropin.color import ColorJitter, RandomApply
from dalify.plugin.pytorch.dropin.kernels.pillow_color import matches_pillow
from dalify.plugin.pytorch.dropin.lazy_image import Margins
from dalify.plugin.pytorch.dropin.steps import CenterCrop, Flip, Gray, Pad, RandomCrop, RandomResizedCrop, Resize, Step
from dalify.plugin.pytorch.dropin.torchvision_steps import VERSION_2, TorchvisionStep, module_of

__all__ = ["STEPS", "Context"]

_LEVELS = 256


@dataclass(frozen=True)
class Context:
    """The position of a transform among others.

    Attributes:
        module: name of torchvision's module that declares it.
        channels: number of channels of its input.
        resize_class: torchvision's Resize of the same version.
        tensor_type: type of its input; None for Pillow images.
    """

    module: str
    channels: int
    resize_class: Callable[..., Any]
    tensor_type: Any


def _pair(values: Any) -> tuple[int, int]:
    height, width = integers(values, 2)
    if min(height, width) < 1:
        raise ValueError(f"{values!r} is empty")
    return height, width


def _filter(stage: Any) -> str:
    name = filter_name(stage.interpolation)
    return "nearest" if name == "nearest-exact" else name


def _fill(fill: Any, setting: Context) -> tuple[int, ...]:
    if fill is None and setting.module == VERSION_2:
        fill = 0
    found: tuple[Any, ...] = tuple(fill) if isinstance(fill, list | tuple) else (fill,)
    found = found * setting.channels if len(found) == 1 else found
    is_known = len(found) == setting.channels and all(
        isinstance(value, int | float) and 0 <= value < _LEVELS for value in found
    )
    if not is_known:
        raise ValueError(f"fill {fill!r} for {setting.channels} channels")
    return tuple(int(value) for value in found)


def _range(values: Any) -> tuple[float, float]:
    low, high = values
    if not (isinstance(low, int | float) and isinstance(high, int | float) and low <= high):
        raise ValueError(f"range {values!r}")
    return low, high


def _require_pillow(setting: Context) -> None:
    """Raise TypeError for tensors, which torchvision filters and rounds in another way than Pillow images."""
    if setting.tensor_type is not None:
        raise TypeError("on tensors")


def _check_padding(fill: Any, mode: str, padded: Margins | None, setting: Context) -> None:
    """Raise ValueError for padding that torchvision computes in another way for tensors than for Pillow images."""
    if setting.tensor_type is not None and (type(fill) is not int or mode != "constant" or padded == (0,) * 4):
        raise ValueError(f"fill {fill!r} and padding_mode {mode!r} on tensors")


def _resize(stage: Any, setting: Context) -> Step:
    _require_pillow(setting)
    size = integers(stage.size, 1, 2)
    longest = stage.max_size
    if longest is not None and (len(size) == 2 or type(longest) is not int or longest <= size[0]):
        raise ValueError(f"max_size {longest!r} with size {stage.size!r}")
    if min(size) < 1:
        raise ValueError(f"size {stage.size!r}")
    return Resize(size, _filter(stage), longest)


def _center_crop(stage: Any, setting: Context) -> Step:
    return CenterCrop(*_pair(stage.size), setting.channels, setting.tensor_type is not None)


def _pad(stage: Any, setting: Context) -> Step:
    found = margins(stage.padding)
    _check_padding(stage.fill, stage.padding_mode, found, setting)
    is_tensor = setting.tensor_type is not None
    return Pad(found, _fill(stage.fill, setting), padding_mode(stage.padding_mode), is_tensor)


def _random_crop(stage: Any, setting: Context) -> Step:
    fill, mode = _fill(stage.fill, setting), padding_mode(stage.padding_mode)
    given = stage.padding
    if given is not None and setting.module == VERSION_2:
        left, right, top, bottom = given
        given = [left, top, right, bottom]
        if stage.pad_if_needed and mode != "constant":
            raise ValueError("two paddings by reflection at once")
    is_tensor = setting.tensor_type is not None
    padding = None if given is None else Pad(margins(given), fill, mode, is_tensor)
    if given is not None or stage.pad_if_needed:
        _check_padding(stage.fill, mode, padding and padding.margins, setting)
    draws_always = setting.module != VERSION_2
    return RandomCrop(*_pair(stage.size), padding, bool(stage.pad_if_needed), fill, mode, draws_always, is_tensor)


def _random_resized_crop(stage: Any, setting: Context) -> Step:
    ratio, size = _range(stage.ratio), _pair(stage.size)
    if ratio[0] <= 0:
        raise ValueError(f"ratio {stage.ratio!r}")
    resize: Step = Resize(size, _filter(stage))
    if setting.tensor_type is not None:
        own = setting.resize_class(stage.size, stage.interpolation, antialias=stage.antialias)
        resize = TorchvisionStep(own, setting.tensor_type)
    return RandomResizedCrop(_range(stage.scale), ratio, resize)


def _flip(axis: int) -> Callable[[Any, Context], Step]:
    def lower(stage: Any, setting: Context) -> Step:
        if not isinstance(stage.p, int | float):
            raise ValueError(f"p {stage.p!r}")
        return Flip(axis, stage.p)

    return lower


def _gray(stage: Any, setting: Context) -> Step:
    _require_pillow(setting)
    if stage.num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels {stage.num_output_channels!r}")
    return Gray(stage.num_output_channels)


def _color(stage: Any, setting: Context) -> Step:
    _require_pillow(setting)
    if setting.channels != 1:
        raise ValueError("RGB does not change images with three channels")
    return Gray(3)


def _random_grayscale(stage: Any, setting: Context) -> Step:
    _require_pillow(setting)
    return RandomApply((Gray(setting.channels),), stage.p)


def _limits(values: Any) -> tuple[float, float] | None:
    return None if values is None else _range(values)


def _color_jitter(stage: Any, setting: Context) -> Step:
    _require_pillow(setting)
    if not matches_pillow():
        raise ValueError("this version of Pillow rounds in another way")
    limits = _limits(stage.brightness), _limits(stage.contrast), _limits(stage.saturation), _limits(stage.hue)
    return ColorJitter(limits)


def _random_apply(stage: Any, setting: Context) -> Step:
    _require_pillow(setting)
    steps = []
    for part in stage.transforms:
        name, module = type(part).__name__, module_of(part)
        if name not in STEPS or name in ("Grayscale", "RGB") or module is None:
            raise ValueError(f"{name} in RandomApply")
        steps.append(STEPS[name](part, replace(setting, module=module)))
    # Version 1 applies the steps if the random number is at most p, version 2 if it is less.
    limit = stage.p if setting.module == VERSION_2 else float(np.nextafter(np.float32(stage.p), np.float32(2)))
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
