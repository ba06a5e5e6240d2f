"""From torchvision's transforms to steps and a table, or the reason why not.

Recognised are exact types, since a subclass may do anything. What maps single values (ToTensor, Normalize …) becomes a
table that the user's own transforms fill, so that its entries are theirs bit for bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.plugin.pytorch.dropin.draws import CountingDraws
from dalify.plugin.pytorch.dropin.picture import Margins, NoWindowError, Windows
from dalify.plugin.pytorch.dropin.steps import CenterCrop, Flip, Grey, Pad, RandomCrop, RandomResizedCrop, Resize, Step

__all__ = ["NotRecognisedError", "Plan", "check_settings", "draws_per_sample", "lower_transform", "windows_of"]

_FILTERS = ("nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos")
_TRANSFORMS_MODULE = "torchvision.transforms.transforms"
_POINTWISE = ("ConvertImageDtype", "Normalize")
_TO_TENSOR = ("ToTensor", "PILToTensor")
_TABLE_TYPES = ("float32", "float64", "uint8", "int16", "int32", "int64")
_LEVELS = 256


class NotRecognisedError(Exception):
    """Something that dalify leaves to torch.

    Args:
        reason: what it is, and where.
        hint: what would help; empty where nothing would.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True)
class Plan:
    """What is done with each image of one dataset.

    Attributes:
        steps: geometry, in order.
        table: ``[channels, 256]``: what becomes of each byte behind the steps; None where the images stay Pillow's.
        is_random: the steps draw random numbers.
        channels: of the images before the steps.
        names: of the transforms that steps and table stand for, for reports.
        rest: the transforms, in order, from the first one that is not known; they get a tensor where there is a table,
            else a Pillow image.
        rest_reason: why the first of the rest is not known, or why there are no tensors; empty where all is lowered.
        rest_hint: what would help; empty where nothing would.
    """

    steps: tuple[Step, ...]
    table: np.ndarray[Any, Any] | None
    is_random: bool
    channels: int
    names: tuple[str, ...]
    rest: tuple[Any, ...] = ()
    rest_reason: str = ""
    rest_hint: str = ""

    @property
    def is_whole(self) -> bool:
        """Nothing is left over, and the results are tensors."""
        return self.table is not None and not self.rest


def lower_transform(transform: Any, channels: int) -> Plan:
    """Translate a transform or a Compose of them, as far as they are known.

    Args:
        transform: a dataset's; None for none.
        channels: of the images that the dataset gives: 1 or 3.
    """
    if transform is None:
        reason = "the dataset has no transform, and batches cannot be made of Pillow images"
        return Plan((), None, False, channels, (), (), reason, "Add transforms.ToTensor() to the dataset.")
    stages = _flat(transform, "transform")
    steps: list[Step] = []
    pointwise: list[Any] = []
    depth = channels
    reason = hint = ""
    for place, stage in stages:
        try:
            _check_known(place, stage)
            step = _lower(place, stage, depth, bool(pointwise))
            if step is None:
                _table([*pointwise, stage], depth)
        except NotRecognisedError as error:
            reason, hint = error.reason, error.hint
            break
        if step is None:
            pointwise.append(stage)
        else:
            steps.append(step)
            depth = step.channels if isinstance(step, Grey) else depth
    if not pointwise and not reason:
        reason = "the transforms end with Pillow images, of which batches cannot be made"
        hint = "Add transforms.ToTensor()."
    count = len(steps) + len(pointwise)
    is_random = any(isinstance(step, RandomCrop | RandomResizedCrop | Flip) for step in steps)
    names = tuple(type(stage).__name__ for _, stage in stages[:count])
    rest = tuple(stage for _, stage in stages[count:])
    table = _table(pointwise, depth) if pointwise else None
    return Plan(tuple(steps), table, is_random, channels, names, rest, reason, hint)


def _lower(place: str, stage: Any, depth: int, is_tensor: bool) -> Step | None:
    """The step that stands for a transform; None for an entry of the table."""
    name = type(stage).__name__
    if is_tensor and name not in (*_POINTWISE, "RandomHorizontalFlip", "RandomVerticalFlip"):
        raise NotRecognisedError(
            f"{place} ({name}) works on tensors", "Move it before ToTensor, where it is known on Pillow images."
        )
    if name in (_POINTWISE if is_tensor else _TO_TENSOR):
        return None
    if name not in _STEPS:
        raise NotRecognisedError(f"{place} ({name}) comes before ToTensor, but works on tensors")
    try:
        return _STEPS[name](stage, depth)
    except (TypeError, ValueError, AttributeError) as error:
        raise NotRecognisedError(f"{place} ({name}) has arguments that are not known: {error}") from error


def _flat(transform: Any, place: str) -> list[tuple[str, Any]]:
    """All transforms of nested Composes with their places."""
    if type(transform) is not getattr(sys.modules.get(_TRANSFORMS_MODULE), "Compose", None):
        return [(place, transform)]
    parts = [_flat(part, f"{place}[{number}]") for number, part in enumerate(transform.transforms)]
    return [stage for part in parts for stage in part]


def _check_known(place: str, stage: Any) -> None:
    """Refuse what is not of a known type, or was changed.

    Raises:
        NotRecognisedError: it is.
    """
    kind = type(stage)
    name = kind.__name__
    known = (*_STEPS, *_POINTWISE, *_TO_TENSOR)
    if name not in known or kind is not getattr(sys.modules.get(_TRANSFORMS_MODULE), name, None):
        where = f"{kind.__module__}.{name}"
        raise NotRecognisedError(
            f"{place} is {where}, which is not known",
            f"Known are, of torchvision.transforms: {', '.join(sorted(known))}.",
        )
    changed = "forward" in vars(stage) or getattr(stage, "_forward_hooks", None)
    if changed or getattr(stage, "_forward_pre_hooks", None):
        raise NotRecognisedError(f"{place} ({name}) has hooks or a forward of its own")


def _table(pointwise: Sequence[Callable[[Any], Any]], channels: int) -> np.ndarray[Any, Any]:
    ramp = np.repeat(np.arange(_LEVELS, dtype=np.uint8)[None, :, None], channels, axis=2)
    values: Any = Image.fromarray(ramp if channels > 1 else ramp[..., 0])
    try:
        for stage in pointwise:
            values = stage(values)
    except Exception as error:  # whatever it is, torch's loader raises it where the user expects it
        raise NotRecognisedError(f"{type(pointwise[-1]).__name__} refuses such images: {error}") from error
    kind = str(values.dtype).removeprefix("torch.")
    if tuple(values.shape) != (channels, 1, _LEVELS) or kind not in _TABLE_TYPES:
        raise NotRecognisedError(f"the transforms give tensors of type {kind} and shape {tuple(values.shape)}")
    return np.ascontiguousarray(values.numpy()[:, 0, :])


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
    draws = CountingDraws()
    try:
        windows_of(plan, 1, height, width, draws)
    except (NoWindowError, ValueError):
        return None
    return draws.count


def _integers(values: Any, *counts: int) -> tuple[int, ...]:
    found = (values,) if isinstance(values, int) else tuple(values)
    if len(found) not in counts or not all(type(value) is int for value in found):
        raise ValueError(f"{values!r} is not {' or '.join(map(str, counts))} integers")
    return found


def _pair(values: Any) -> tuple[int, int]:
    height, width = _integers(values, 2)
    if min(height, width) < 1:
        raise ValueError(f"{values!r} is empty")
    return height, width


def _filter(stage: Any) -> str:
    name = getattr(stage.interpolation, "value", None)
    if name not in _FILTERS:
        raise ValueError(f"interpolation {stage.interpolation!r}")
    return "nearest" if name == "nearest-exact" else str(name)


def _margins(padding: Any) -> Margins:
    found = _integers(padding, 1, 2, 4)
    if min(found) < 0:
        raise ValueError(f"padding {padding!r}")
    if len(found) == 1:
        return found * 4  # type: ignore[return-value]
    return (*found, *found) if len(found) == 2 else found  # type: ignore[return-value]


def _fill(fill: Any, channels: int) -> tuple[int, ...]:
    found = tuple(fill) if isinstance(fill, list | tuple) else (fill,)
    found = found * channels if len(found) == 1 else found
    if len(found) != channels or not all(isinstance(value, int | float) and 0 <= value < _LEVELS for value in found):
        raise ValueError(f"fill {fill!r} for {channels} channels")
    return tuple(int(value) for value in found)


def _mode(mode: Any) -> str:
    if mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"padding_mode {mode!r}")
    return str(mode)


def _range(values: Any) -> tuple[float, float]:
    low, high = values
    if not (isinstance(low, int | float) and isinstance(high, int | float) and low <= high):
        raise ValueError(f"range {values!r}")
    return low, high


def _resize(stage: Any, channels: int) -> Step:
    size = _integers(stage.size, 1, 2)
    longest = stage.max_size
    if longest is not None and (len(size) == 2 or type(longest) is not int or longest <= size[0]):
        raise ValueError(f"max_size {longest!r} with size {stage.size!r}")
    if min(size) < 1:
        raise ValueError(f"size {stage.size!r}")
    return Resize(size, _filter(stage), longest)


def _center_crop(stage: Any, channels: int) -> Step:
    return CenterCrop(*_pair(stage.size), channels)


def _pad(stage: Any, channels: int) -> Pad:
    return Pad(_margins(stage.padding), _fill(stage.fill, channels), _mode(stage.padding_mode))


def _random_crop(stage: Any, channels: int) -> Step:
    fill, mode = _fill(stage.fill, channels), _mode(stage.padding_mode)
    padding = None if stage.padding is None else _pad(stage, channels)
    return RandomCrop(*_pair(stage.size), padding, bool(stage.pad_if_needed), fill, mode)


def _random_resized_crop(stage: Any, channels: int) -> Step:
    ratio = _range(stage.ratio)
    if ratio[0] <= 0:
        raise ValueError(f"ratio {stage.ratio!r}")
    return RandomResizedCrop(*_pair(stage.size), _range(stage.scale), ratio, _filter(stage))


def _flip(axis: int) -> Callable[[Any, int], Step]:
    def lower(stage: Any, channels: int) -> Step:
        if not isinstance(stage.p, int | float):
            raise ValueError(f"p {stage.p!r}")
        return Flip(axis, stage.p)

    return lower


def _grey(stage: Any, channels: int) -> Step:
    if stage.num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels {stage.num_output_channels!r}")
    return Grey(stage.num_output_channels)


_STEPS: dict[str, Callable[[Any, int], Step]] = {
    "CenterCrop": _center_crop,
    "Grayscale": _grey,
    "Pad": _pad,
    "RandomCrop": _random_crop,
    "RandomHorizontalFlip": _flip(1),
    "RandomResizedCrop": _random_resized_crop,
    "RandomVerticalFlip": _flip(0),
    "Resize": _resize,
}


def check_settings() -> None:
    """Refuse what changes torch's results for all loaders.

    Raises:
        NotRecognisedError: torch's default type is not float32, in which its random numbers are other ones.
    """
    if torch.get_default_dtype() != torch.float32:
        raise NotRecognisedError(f"torch's default type is {torch.get_default_dtype()}, not float32")
