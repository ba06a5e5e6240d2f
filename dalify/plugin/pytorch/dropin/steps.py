"""torchvision's transforms of images, of both versions, as steps on a `LazyImage` or on `Windows`.

Each step reproduces its transform: rounding of sizes, position of the center, order of random numbers, and Pillow's
arithmetic. The function after a step creates it from the transform. It raises TypeError, ValueError or AttributeError
for arguments that the step does not support; torchvision then computes the transform.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from dalify.base.torchvision_rules import centered, filter_name, integers, margins, padding_mode, resized
from dalify.base.wording import counted
from dalify.plugin.pytorch.dropin.draws import Draws, TorchDraws, resized_crop_window
from dalify.plugin.pytorch.dropin.kernels.pillow_color import (
    blend_with_constant,
    blend_with_luma,
    luma_sum,
    matches_pillow,
    rotate_hue,
)
from dalify.plugin.pytorch.dropin.lazy_image import LazyImage, Margins, Padding, Windows
from dalify.plugin.pytorch.dropin.torchvision_steps import VERSION_1, VERSION_2, TorchvisionStep, module_of

_Array = np.ndarray[Any, Any]
Target = LazyImage | Windows
Range = tuple[float, float]


class ImageStep(Protocol):
    """One transform."""

    def apply(self, target: Any, draws: Any, /) -> None:
        """Apply the step to the target; raises the same errors as torchvision."""
        ...


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

    @property
    def is_tensor(self) -> bool:
        """Whether the input is a tensor."""
        return self.tensor_type is not None

    def require_pillow(self) -> None:
        """Raise TypeError for tensors, because torchvision filters and rounds them unlike Pillow images."""
        if self.is_tensor:
            raise TypeError("on tensors")


def _size(values: Any) -> tuple[int, int]:
    height, width = integers(values, 2)
    if min(height, width) < 1:
        raise ValueError(f"{values!r} is empty")
    return height, width


def _filter(transform: Any) -> str:
    name = filter_name(transform.interpolation)
    return "nearest" if name == "nearest-exact" else name


def _range(values: Any) -> Range:
    low, high = values
    if not (isinstance(low, int | float) and isinstance(high, int | float) and low <= high):
        raise ValueError(f"range {values!r}")
    return low, high


@dataclass(frozen=True)
class Resize:
    """Resize the shorter side to `size`, with at most `longest` pixels for the longer side, or resize both sides."""

    size: tuple[int, ...]
    filter: str
    longest: int | None = None

    def apply(self, target: Target, draws: Draws) -> None:
        """Resize; the longer side is rounded down."""
        target.resize(resized(target.height, target.width, self.size, self.longest), self.filter)


def _resize(transform: Any, context: Context) -> ImageStep:
    context.require_pillow()
    size = integers(transform.size, 1, 2)
    longest = transform.max_size
    if longest is not None and (len(size) == 2 or type(longest) is not int or longest <= size[0]):
        raise ValueError(f"max_size {longest!r} with size {transform.size!r}")
    if min(size) < 1:
        raise ValueError(f"size {transform.size!r}")
    return Resize(size, _filter(transform), longest)


@dataclass(frozen=True)
class CenterCrop:
    """Crop the center; add black margins if the image is smaller."""

    height: int
    width: int
    padding: Padding

    def apply(self, target: Target, draws: Draws) -> None:
        """Crop; halves are rounded to the even neighbor."""
        wide, high = max(0, self.width - target.width), max(0, self.height - target.height)
        if wide or high:
            target.pad((wide // 2, high // 2, (wide + 1) // 2, (high + 1) // 2), self.padding)
            if (target.height, target.width) == (self.height, self.width):
                return
        top, left = centered(target.height, self.height), centered(target.width, self.width)
        target.crop(top, left, self.height, self.width)


def _center_crop(transform: Any, context: Context) -> ImageStep:
    return CenterCrop(*_size(transform.size), Padding((0,) * context.channels, is_tensor=context.is_tensor))


@dataclass(frozen=True)
class Pad:
    """Add margins."""

    margins: Margins
    padding: Padding

    def apply(self, target: Target, draws: Draws) -> None:
        """Pad."""
        target.pad(self.margins, self.padding)


def _pad(transform: Any, context: Context) -> ImageStep:
    given = margins(transform.padding)
    _check_padding(transform, given, context)
    return Pad(given, _padding(transform, context))


def _padding(transform: Any, context: Context) -> Padding:
    fill, channels = transform.fill, context.channels
    if fill is None and context.module == VERSION_2:
        fill = 0
    values: tuple[Any, ...] = tuple(fill) if isinstance(fill, list | tuple) else (fill,)
    values = values * channels if len(values) == 1 else values
    are_bytes = all(isinstance(value, int | float) and 0 <= value < 256 for value in values)
    if len(values) != channels or not are_bytes:
        raise ValueError(f"fill {transform.fill!r} for {counted(channels, 'channel')}")
    return Padding(tuple(int(value) for value in values), padding_mode(transform.padding_mode), context.is_tensor)


def _check_padding(transform: Any, given: Margins | None, context: Context) -> None:
    """Raise ValueError for padding that torchvision computes differently for tensors and Pillow images."""
    fill, mode = transform.fill, padding_mode(transform.padding_mode)
    if context.is_tensor and (type(fill) is not int or mode != "constant" or given == (0,) * 4):
        raise ValueError(f"fill {fill!r} and padding_mode {mode!r} on tensors")


@dataclass(frozen=True)
class RandomCrop:
    """Crop a window at a random position, after padding.

    Attributes:
        height: height of the window.
        width: width of the window.
        margins: margins that are always added; None for none.
        pad_if_needed: add margins to smaller images.
        padding: the pixels of margins.
        draws_always: draw a number for both axes if only one extent differs from that of the window.
    """

    height: int
    width: int
    margins: Margins | None
    pad_if_needed: bool
    padding: Padding
    draws_always: bool

    def apply(self, target: Target, draws: Draws) -> None:
        """Draw the row, then the column, unless the image has the requested size."""
        if self.margins is not None:
            target.pad(self.margins, self.padding)
        if self.pad_if_needed and target.width < self.width:
            margin = self.width - target.width
            target.pad((margin, 0, margin, 0), self.padding)
        if self.pad_if_needed and target.height < self.height:
            margin = self.height - target.height
            target.pad((0, margin, 0, margin), self.padding)
        height, width = target.height, target.width
        if height < self.height or width < self.width:
            raise ValueError(
                f"Required crop size {(self.height, self.width)} is larger than input image size {(height, width)}"
            )
        if (height, width) == (self.height, self.width):
            return
        top = draws.integer(height - self.height + 1) if self.draws_always or height > self.height else 0
        left = draws.integer(width - self.width + 1) if self.draws_always or width > self.width else 0
        target.crop(top, left, self.height, self.width)


def _random_crop(transform: Any, context: Context) -> ImageStep:
    padding, given = _padding(transform, context), transform.padding
    is_version_2 = context.module == VERSION_2
    if given is not None and is_version_2:
        left, right, top, bottom = given
        given = [left, top, right, bottom]
        if transform.pad_if_needed and padding.mode != "constant":
            raise ValueError("two paddings by reflection at once")
    found = None if given is None else margins(given)
    if given is not None or transform.pad_if_needed:
        _check_padding(transform, found, context)
    return RandomCrop(*_size(transform.size), found, bool(transform.pad_if_needed), padding, not is_version_2)


@dataclass(frozen=True)
class RandomResizedCrop:
    """Crop a window of random area and aspect ratio, and resize it."""

    scale: Range
    ratio: Range
    resize: ImageStep

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Draw, crop and resize."""
        image.crop(*resized_crop_window(draws, image.height, image.width, self.scale, self.ratio))
        self.resize.apply(image, draws)


def _random_resized_crop(transform: Any, context: Context) -> ImageStep:
    ratio = _range(transform.ratio)
    if ratio[0] <= 0:
        raise ValueError(f"ratio {transform.ratio!r}")
    resize: ImageStep = Resize(_size(transform.size), _filter(transform))
    if context.is_tensor:
        version = sys.modules[VERSION_2 if context.module == VERSION_2 else VERSION_1]
        torchvision_resize = version.Resize(transform.size, transform.interpolation, antialias=transform.antialias)
        resize = TorchvisionStep(torchvision_resize, context.tensor_type)
    return RandomResizedCrop(_range(transform.scale), ratio, resize)


@dataclass(frozen=True)
class Flip:
    """Mirror with a probability: along y (0) or x (1)."""

    axis: int
    probability: float

    def apply(self, target: Target, draws: Draws) -> None:
        """Draw and mirror."""
        target.flip(self.axis, draws.is_below(self.probability))


def _flip(transform: Any, context: Context) -> ImageStep:
    if not isinstance(transform.p, int | float):
        raise ValueError(f"p {transform.p!r}")
    return Flip(int(type(transform).__name__ == "RandomHorizontalFlip"), transform.p)


@dataclass(frozen=True)
class Gray:
    """Convert to luma, in one or three channels."""

    channels: int

    def apply(self, target: Target, draws: Draws) -> None:
        """Convert."""
        target.gray(self.channels)


def _grayscale(transform: Any, context: Context) -> ImageStep:
    context.require_pillow()
    if transform.num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels {transform.num_output_channels!r}")
    return Gray(transform.num_output_channels)


def _rgb(transform: Any, context: Context) -> ImageStep:
    context.require_pillow()
    if context.channels != 1:
        raise ValueError("RGB does not change images with three channels")
    return Gray(3)


@dataclass(frozen=True)
class RandomApply:
    """Apply all of some steps with a probability."""

    steps: tuple[ImageStep, ...]
    probability: float

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Draw and apply them."""
        if draws.is_below(self.probability):
            for step in self.steps:
                step.apply(image, draws)


def _random_grayscale(transform: Any, context: Context) -> ImageStep:
    context.require_pillow()
    return RandomApply((Gray(context.channels),), transform.p)


def _random_apply(transform: Any, context: Context) -> ImageStep:
    context.require_pillow()
    steps = []
    for child in transform.transforms:
        name, module = type(child).__name__, module_of(child)
        if name not in STEPS or name in ("Grayscale", "RGB") or module is None:
            raise ValueError(f"{name} in RandomApply")
        steps.append(STEPS[name](child, replace(context, module=module)))
    # Version 1 applies the steps if the random number is at most p, version 2 if it is less.
    is_version_2 = context.module == VERSION_2
    limit = transform.p if is_version_2 else float(np.nextafter(np.float32(transform.p), np.float32(2)))
    return RandomApply(tuple(steps), limit)


_BRIGHTNESS, _CONTRAST, _SATURATION, _HUE = range(4)  # torchvision's numbers


@dataclass(frozen=True)
class ColorJitter:
    """Change brightness, contrast, saturation and hue in random order.

    Attributes:
        ranges: minimum and maximum of the four factors; None for a property that is not changed.
    """

    ranges: tuple[Range | None, ...]

    def apply(self, image: LazyImage, draws: TorchDraws) -> None:
        """Draw the order, then the factors, and change the colors."""
        order = draws.permutation(4)
        factors = [None if limits is None else draws.uniform(*limits) for limits in self.ranges]
        pixels = np.array(image.materialize(), order="C")
        for number in order:
            factor = factors[number]
            if factor is not None:
                _change(pixels.reshape(-1, pixels.shape[2]), number, factor)
        image.replace(pixels)
        # torchvision returns a gray image itself for any hue.
        creating = (_BRIGHTNESS, _CONTRAST, _HUE) if pixels.shape[2] > 1 else (_BRIGHTNESS, _CONTRAST)
        if image.info is not None and any(factors[number] is not None for number in creating):
            image.info = {}


def _change(pixels: _Array, number: int, factor: float) -> None:
    """Change one property of uint8 ``[pixels, channels]`` in place."""
    count, channels = pixels.shape
    single = np.float32(factor)
    if number == _BRIGHTNESS:
        blend_with_constant(pixels.reshape(-1), 0, single)
    elif number == _CONTRAST:
        total = luma_sum(pixels) if channels > 1 else int(pixels.sum(dtype=np.int64))
        blend_with_constant(pixels.reshape(-1), int(total / count + 0.5), single)
    elif channels == 1:
        return  # gray images have no saturation and no hue
    elif number == _SATURATION:
        blend_with_luma(pixels, single)
    else:
        rotate_hue(pixels, int(factor * 255) & 255)


def _color_jitter(transform: Any, context: Context) -> ImageStep:
    context.require_pillow()
    if not matches_pillow():
        raise ValueError("this version of Pillow rounds in another way")
    ranges = transform.brightness, transform.contrast, transform.saturation, transform.hue
    return ColorJitter(tuple(None if values is None else _range(values) for values in ranges))


STEPS: dict[str, Callable[[Any, Context], ImageStep]] = {
    "Resize": _resize,
    "CenterCrop": _center_crop,
    "Pad": _pad,
    "RandomCrop": _random_crop,
    "RandomResizedCrop": _random_resized_crop,
    "RandomVerticalFlip": _flip,
    "RandomHorizontalFlip": _flip,
    "Grayscale": _grayscale,
    "RGB": _rgb,
    "RandomGrayscale": _random_grayscale,
    "RandomApply": _random_apply,
    "ColorJitter": _color_jitter,
}
"""Functions that create steps, by name of the transform."""
