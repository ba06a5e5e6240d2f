"""Converts torchvision's transforms to a plan, as far as they are supported.

Only exact types are supported, because a subclass may override anything. Geometric transforms become steps. Pointwise
transforms (ToTensor, Normalize, ...) become a table; its entries are computed by the transforms, so they are
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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from PIL import Image

from dalify.base.errors import ArgumentTypeError
from dalify.plugin.pytorch.dropin.draws import TorchDraws
from dalify.plugin.pytorch.dropin.lazy_image import image_of
from dalify.plugin.pytorch.dropin.opening import Decoder
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError, Reason, Table, Transform, TransformPlan, channels_of
from dalify.plugin.pytorch.dropin.registration import TRANSFORMS
from dalify.plugin.pytorch.dropin.steps import (
    STEPS,
    CenterCrop,
    Context,
    Flip,
    Gray,
    ImageStep,
    Pad,
    RandomResizedCrop,
    Resize,
)
from dalify.plugin.pytorch.dropin.torchvision_steps import (
    ON_PILLOW,
    ON_TENSORS,
    VERSION_1,
    VERSION_2,
    Contiguous,
    PythonContainer,
    Registered,
    TorchvisionStep,
    container_step,
    is_changed,
    is_supported,
    is_version_2,
    module_of,
)

_POINTWISE = frozenset(
    {"ConvertImageDtype", "Identity", "Normalize", "PILToTensor", "ToDtype", "ToImage", "ToPureTensor", "ToTensor"}
)
_DETERMINISTIC = _POINTWISE | {"CenterCrop", "Grayscale", "Pad", "RGB", "Resize"}
_ONLY_IMAGES = frozenset({"AugMix", "AutoAugment", "RandAugment", "ToTensor", "TrivialAugmentWide"})
_TABLE_TYPES = ("float32", "float64", "uint8", "int16", "int32", "int64")
_BYTE_VALUES = 256
_MODES = {1: "L", 3: "RGB"}  # Pillow's modes by number of channels


def lower_transform(transform: Any, channels: int, decoder: Decoder | None = None) -> TransformPlan:
    """Convert a transform, or a composition of transforms, as far as they are supported.

    Args:
        transform: transform of a dataset; None for none.
        channels: number of channels of the dataset's images: 1 or 3.
        decoder: returns the images as tensors or arrays; None for Pillow images.
    """
    return _plan([] if transform is None else list(_flat(transform, "transform")), channels, decoder)


def _plan(transforms: Sequence[tuple[str, Any]], channels: int, decoder: Decoder | None = None) -> TransformPlan:
    """Return the plan for transforms with their positions; without steps for 0 channels, which means no image."""
    lowering = _Lowering(channels)
    if decoder is not None:
        lowering.decode(decoder)
    reason: Reason | None = None
    for position, transform in transforms:
        try:
            lowering.add(position, transform)
        except NotRecognizedError as error:
            reason = error.reason._replace(code="TF01")
            break
    names, tensor_transforms = lowering.names, lowering.tensor_transforms
    if reason is not None:  # the tensor transforms run as Python code, too
        names, tensor_transforms = names[: len(names) - len(tensor_transforms)], []
    table = lowering.table()
    if reason is None and table is None:
        subject = "the transforms end with Pillow images" if transforms else "the dataset has no transform"
        effect = "torch collates arrays" if lowering.gives_arrays else "Pillow images cannot be collated"
        reason = Reason(f"{subject}, and {effect}", "Add transforms.ToTensor() to the dataset.", "TF01")
    found = [transform for _, transform in transforms]
    is_random = any(not isinstance(step, CenterCrop | Gray | Pad | Resize) for step in lowering.steps)
    return TransformPlan(
        steps=tuple(lowering.steps),
        table=table,
        tensor_transforms=tuple(tensor_transforms),
        is_random=is_random or bool(tensor_transforms),
        channels=0 if lowering.gives_arrays else channels,  # unsupported transforms return arrays for arrays
        transforms=tuple(found[: len(names)]),
        names=tuple(names),
        unsupported=tuple(found[len(names) :]),
        following=cache(partial(_plan, transforms[len(names) + 1 :])),
        reason=reason,
    )


class _Lowering:
    """Builds a plan.

    Args:
        channels: number of channels of the images; 0 if the transforms get anything else.

    Attributes:
        steps: see `TransformPlan`.
        tensor_transforms: see `TransformPlan`.
        names: names of the added transforms, with a note if torchvision computes them.
    """

    def __init__(self, channels: int) -> None:
        self.names: list[str] = []
        self.steps: list[ImageStep] = []
        self.tensor_transforms: list[Transform] = []
        self._pointwise: list[Transform] = []
        self._channels = channels
        # Results of the pointwise transforms for an image with each byte value once in each channel.
        self._values: Any = _all_bytes(channels)
        self._tensor_start = 0  # number of steps before the conversion to tensors
        self._gets_arrays = False

    @property
    def gives_arrays(self) -> bool:
        """Whether the results so far are arrays."""
        return isinstance(self._values, np.ndarray)

    def add(self, position: str, transform: Any) -> None:
        """Add a transform.

        Raises:
            NotRecognizedError: the transform is not supported or was modified, or torchvision rejects its input.
        """
        if not self._channels:
            raise NotRecognizedError(f"{position} gets no RGB or grayscale image")
        steps, tensor_transforms = len(self.steps), len(self.tensor_transforms)
        self._add(position, transform)
        is_torchvision = len(self.tensor_transforms) > tensor_transforms or (
            len(self.steps) > steps and isinstance(self.steps[-1], TorchvisionStep | PythonContainer)
        )
        name = type(transform).__name__
        self.names.append(f"{name} (torchvision)" if is_torchvision else name)

    def _add(self, position: str, transform: Any) -> None:
        kind, name = type(transform), type(transform).__name__
        is_pillow = not isinstance(self._values, torch.Tensor | np.ndarray)
        if kind in TRANSFORMS and is_pillow:
            self.steps.append(Registered(TRANSFORMS[kind], transform))
            return
        module = module_of(transform)
        if module is not None and is_changed(transform):
            raise NotRecognizedError(f"{position} ({name}) has hooks or its own forward")
        container = container_step(transform) if is_pillow else None
        if container is not None:
            self.steps.append(container)
            return
        if self.gives_arrays:
            self._add_to_array(position, transform)
            return
        if module is None or not (name in _POINTWISE or is_supported(transform, ON_PILLOW | ON_TENSORS)):
            raise NotRecognizedError(
                f"{position} is {kind.__module__}.{name}, which is not supported",
                "Most transforms of torchvision.transforms and v2 that return one image for one image are supported. "
                "If yours calls such transforms, lower(transform), of dalify.plugin.pytorch, makes them faster.",
            )
        # For a tensor of version 2 that it changes, version 1 returns a plain tensor, so it must run unchanged.
        mixes = not is_pillow and type(self._values) is not torch.Tensor and not is_version_2(transform)
        if self.tensor_transforms or (mixes and name not in _POINTWISE):
            self._add_tensor_transform(position, transform)
        elif not is_pillow and not self._is_identity():
            self._add_behind_table(position, transform)
        elif name in _POINTWISE:
            self._add_pointwise(position, transform)
        else:
            self._add_step(position, transform, module)

    def decode(self, decoder: Decoder) -> None:
        """Convert the images to the results of a decoder, before the first transform."""
        if decoder.gives_tensors:  # with interleaved channels
            self._add_pointwise("", sys.modules[VERSION_1].PILToTensor())
        else:
            self._values = decoder.convert(np.array(self._values))
            self._gets_arrays = not decoder.gives_images

    def _add_to_array(self, position: str, transform: Any) -> None:
        """Add the conversion of an array to a tensor, or to an image."""
        name = type(transform).__name__
        if module_of(transform) is None or name not in ("ToImage", "ToPILImage", "ToTensor"):
            raise NotRecognizedError(
                f"{position} ({name}) gets an array", "ToPILImage, ToTensor and ToImage are supported on arrays."
            )
        if name != "ToPILImage":
            self._add_pointwise(position, transform)
        elif transform.mode not in (None, _MODES[self._channels]):
            raise NotRecognizedError(f"{position} (ToPILImage) has the mode {transform.mode}")
        else:
            self._values, self._gets_arrays = _all_bytes(self._channels), False

    def _is_identity(self) -> bool:
        """Return whether the table so far maps each byte to itself."""
        tensor = self._values
        return tensor.dtype == torch.uint8 and bool((tensor == torch.arange(_BYTE_VALUES)).all())

    def _add_pointwise(self, position: str, transform: Any) -> None:
        try:
            values = transform(self._values)
        except Exception as error:  # torchvision will raise it again for the first sample
            raise NotRecognizedError(
                f"{position} ({type(transform).__name__}) rejects such images: {error}", code="TF01"
            ) from error
        if isinstance(values, torch.Tensor):
            dtype = str(values.dtype).removeprefix("torch.")
            if tuple(values.shape) != (self._channels, 1, _BYTE_VALUES) or dtype not in _TABLE_TYPES:
                raise NotRecognizedError(
                    f"{position} returns tensors of type {dtype} and shape {tuple(values.shape)}", code="TF01"
                )
            if not isinstance(self._values, torch.Tensor):
                self._tensor_start = len(self.steps)
        self._values = values
        self._pointwise.append(transform)

    def _add_behind_table(self, position: str, transform: Any) -> None:
        name = type(transform).__name__
        if name in _POINTWISE:
            self._add_pointwise(position, transform)
        elif name in ("RandomHorizontalFlip", "RandomVerticalFlip"):
            self.steps.append(Flip(int(name == "RandomHorizontalFlip"), transform.p))
        else:
            self._add_tensor_transform(position, transform)

    def _add_tensor_transform(self, position: str, transform: Any) -> None:
        if not is_supported(transform, ON_TENSORS | _POINTWISE):
            raise NotRecognizedError(
                f"{position} ({type(transform).__name__}) works on tensors",
                "Move it before ToTensor; it is supported on Pillow images.",
            )
        self.tensor_transforms.append(transform)

    def _add_step(self, position: str, transform: Any, module: str) -> None:
        name = type(transform).__name__
        tensor_type = type(self._values) if isinstance(self._values, torch.Tensor) else None
        step: ImageStep | None = None
        if name in STEPS:
            with suppress(TypeError, ValueError, AttributeError):  # torchvision computes it
                step = STEPS[name](transform, Context(module, self._channels, tensor_type))
        if step is None:
            if not is_supported(transform, ON_PILLOW if tensor_type is None else ON_TENSORS):
                kind = "Pillow images" if tensor_type is None else "tensors"
                raise NotRecognizedError(f"{position} ({name}) is not supported on {kind}")
            step = TorchvisionStep(transform, tensor_type)
        if tensor_type is not None and isinstance(step, TorchvisionStep | RandomResizedCrop):
            self.steps.insert(self._tensor_start, Contiguous(is_planar=self._gets_arrays))
        self.steps.append(step)
        channels = 3 if name == "RGB" else getattr(transform, "num_output_channels", self._channels)
        if name == "Grayscale" and tensor_type is not None:
            channels = len(transform(self._values))  # version 1 leaves tensors with one channel as they are
        if channels != self._channels:
            self._channels, self._values = channels, _all_bytes(channels)
            for pointwise in self._pointwise:
                self._values = pointwise(self._values)

    def table(self) -> Table | None:
        """Return the results of the pointwise transforms for each byte; None if they return Pillow images."""
        if not isinstance(self._values, torch.Tensor):
            return None
        tensor = self._values.as_subclass(torch.Tensor)
        values = np.ascontiguousarray(tensor.numpy()[:, 0, :])
        return Table(values, type(self._values), self._channels > 1 and tensor.stride(0) == 1)


def _all_bytes(channels: int) -> Image.Image | None:
    """Return an image of one row with each byte value once in each channel; None for 0 channels."""
    values = np.repeat(np.arange(_BYTE_VALUES, dtype=np.uint8)[None, :, None], channels, axis=2)
    return image_of(values) if channels else None


def _flat(transform: Any, position: str) -> Iterator[tuple[str, Any]]:
    """Yield all transforms of nested compositions with their positions."""
    children = _children(transform)
    if children is None:
        yield position, transform
        return
    for number, child in enumerate(children):
        yield from _flat(child, f"{position}[{number}]")


def _children(transform: Any) -> Sequence[Any] | None:
    """Return the transforms of a composition; None for other transforms."""
    kind = type(transform)
    if kind is Lowered:
        return [transform.transform]
    if hasattr(transform, "__dict__") and is_changed(transform):
        return None
    if any(kind is getattr(sys.modules.get(module), "Compose", None) for module in (VERSION_1, VERSION_2)):
        return transform.transforms
    if kind is torch.nn.Sequential:
        return list(transform)
    if kind is getattr(sys.modules.get("torchvision.transforms._presets"), "ImageClassification", None):
        version_1 = sys.modules[VERSION_1]
        return (
            version_1.Resize(transform.resize_size, transform.interpolation, antialias=transform.antialias),
            version_1.CenterCrop(transform.crop_size),
            version_1.PILToTensor(),
            version_1.ConvertImageDtype(torch.float),
            version_1.Normalize(transform.mean, transform.std),
        )
    return None


def is_deterministic(transform: Any) -> bool:
    """Return whether a value is a transform of torchvision that draws no random numbers."""
    return module_of(transform) is not None and all(
        module_of(item) is not None and not is_changed(item) and type(item).__name__ in _DETERMINISTIC
        for _, item in _flat(transform, "")
    )


def is_joint(transform: Any) -> bool:
    """Return whether transforms of version 2 draw the same random numbers for an image as for an image and a mask."""
    names = ON_PILLOW | ON_TENSORS | _POINTWISE
    return is_version_2(transform) and all(
        not is_changed(item) and type(item).__name__ in names - _ONLY_IMAGES for _, item in _flat(transform, "")
    )


def _is_to_image(transform: Any) -> bool:
    """Return whether a transform is torchvision's ToPILImage."""
    return type(transform).__name__ == "ToPILImage" and module_of(transform) is not None and not is_changed(transform)


def check_settings() -> None:
    """Check the global settings of torch that change random numbers.

    Raises:
        NotRecognizedError: torch's default dtype is not float32.
    """
    if torch.get_default_dtype() != torch.float32:
        raise NotRecognizedError(f"torch's default type is {torch.get_default_dtype()}, not float32")


class Lowered:
    """A transform that dalify's kernels compute as far as possible; created by `lower`. It can be pickled.

    Attributes:
        transform: the original transform.
    """

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        self._plans: dict[tuple[int, bool], TransformPlan] = {}
        first = next((item for _, item in _flat(transform, "transform")), None)
        self._first = first if _is_to_image(first) else None  # its input may be an array

    def __call__(self, image: Any) -> Any:
        """Transform an image.

        Args:
            image: a Pillow image, or an array uint8 ``[height, width, channels]``, converted by
                ``PIL.Image.fromarray``. Other values are passed to the original transform.
        """
        mode = None
        if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3:
            mode = _MODES.get(image.shape[2])
        if mode is not None and not self._is_other_image(mode):
            image = image_of(image)
        channels, draws = channels_of(image), self.draws()
        if not channels:
            with draws.as_default():
                return self.transform(image)
        return self._plan(channels, mode is not None).convert(image, draws)

    def draws(self) -> TorchDraws:
        """Return the random numbers of this thread."""
        return TorchDraws(torch.default_generator)

    def _is_other_image(self, mode: str) -> bool:
        """Return whether the transform's ToPILImage converts arrays to images of another mode."""
        return self._first is not None and self._first.mode not in (None, mode)

    def _plan(self, channels: int, is_array: bool) -> TransformPlan:
        """Return the plan for images, or for arrays, which are images before ToPILImage is applied."""
        key = channels, is_array
        if key not in self._plans:
            transforms = list(_flat(self.transform, "transform"))
            self._plans[key] = _plan(transforms[is_array and self._first is not None :], channels)
        return self._plans[key]

    def __repr__(self) -> str:
        return f"Lowered({self._plan(3, False).describe()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Lowered, (self.transform,)


def lower(transform: Any) -> Lowered:
    """Return a faster version of a torchvision transform, with identical results and random numbers.

    For datasets that the loader does not support: ``dataset.transform = lower(dataset.transform)``. The result also
    accepts images as arrays uint8 ``[height, width, channels]``.

    Args:
        transform: a transform of ``torchvision.transforms`` or a Compose. Unsupported parts run as Python code.

    Raises:
        ArgumentTypeError: the transform is not callable.

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
