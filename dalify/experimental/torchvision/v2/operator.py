"""The base class of transforms, and `Images`, the images that they take and return.

The operators of ``dalify.fn`` and ``dalify.eager`` have the same names and arguments. `Images` knows which of both to
call, so the code of a transform serves pipelines and immediate calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dalify import eager, fn
from dalify.base.errors import PipelineStateError, ShapeError, WrongObjectError, short_repr
from dalify.data import DALIDataType, TensorListCPU, TensorListGPU
from dalify.graph import choose

Device = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Images:
    """Images in a pipeline or in an immediate call, with their properties.

    Attributes:
        data: a graph value in a pipeline; a tensor or a tensor list in an immediate call.
        layout: ``HWC`` (from Pillow) or ``CHW``.
        channels: number of channels.
        is_float: whether the values are floating-point numbers.
        is_graph: whether the images are in a pipeline.
        device: ``cpu`` or ``gpu``, for the next operators.
    """

    data: Any
    layout: str
    channels: int
    is_float: bool
    is_graph: bool
    device: str = "cpu"

    @property
    def operators(self) -> Any:
        """The functions to call: ``dalify.fn`` or ``dalify.eager``."""
        return fn if self.is_graph else eager

    @property
    def axes(self) -> tuple[int, int]:
        """The axes of height and width."""
        return (0, 1) if self.layout == "HWC" else (1, 2)

    @property
    def dtype(self) -> DALIDataType:
        """The output type for color operators: uint8 or float32."""
        return DALIDataType.FLOAT if self.is_float else DALIDataType.UINT8

    def extents(self) -> tuple[Any, Any]:
        """Return height and width: graph values in a pipeline, otherwise integers."""
        shape = self.data.shape()
        if isinstance(self.data, TensorListCPU | TensorListGPU):
            shape = shape[0]
        height, width = self.axes
        return shape[height], shape[width]

    def pair(self, first: Any, second: Any) -> Any:
        """Return two numbers, which may be graph values, as one argument."""
        return fn.stack(first, second) if self.is_graph else [first, second]

    def call(self, name: str, /, **arguments: Any) -> Images:
        """Call an operator with the images as its input."""
        return replace(self, data=getattr(self.operators, name)(self.data, device=self.device, **arguments))

    def interleaved(self, change: Callable[[Images], Images]) -> Images:
        """Apply a function that requires the layout HWC; transpose other images before and after it."""
        if self.layout == "HWC":
            return change(self)
        changed = change(replace(self.call("transpose", perm=[1, 2, 0], output_layout="HWC"), layout="HWC"))
        return replace(changed.call("transpose", perm=[2, 0, 1], output_layout="CHW"), layout="CHW")

    def window(self, top: Any, left: Any, height: Any, width: Any, policy: str = "error", fill: Any = None) -> Images:
        """Crop a window.

        Args:
            top: first row.
            left: first column.
            height: number of rows.
            width: number of columns.
            policy: ``out_of_bounds_policy`` of ``fn.slice``.
            fill: values outside the image for the policy ``pad``.
        """
        data = self.operators.slice(
            self.data,
            self.pair(top, left),
            self.pair(height, width),
            axes=list(self.axes),
            out_of_bounds_policy=policy,
            fill_values=fill,
            device=self.device,
        )
        return replace(self, data=data)

    def repeated(self, count: int) -> Images:
        """Repeat the channel of images with one channel."""
        axis = 2 if self.layout == "HWC" else 0
        data = self.operators.cat(*[self.data] * count, axis=axis, device=self.device)
        return replace(self, data=data, channels=count)

    def first_channel(self) -> Images:
        """Return images with only the first channel."""
        axis = 2 if self.layout == "HWC" else 0
        return replace(self.call("slice", start=[0], shape=[1], axes=[axis]), channels=1)

    def uniform(self, low: float, high: float, seed: int = -1) -> Any:
        """Draw a number, one per image in a pipeline; if the bounds are equal, return this number."""
        return low if low == high else self.operators.random.uniform(range=[low, high], seed=seed)

    def moved(self, device: str) -> Images:
        """Return the images of a pipeline on a device."""
        if self.device == device:
            return self
        return replace(self, data=self.data.gpu() if device == "gpu" else self.data.cpu(), device=device)

    def coin(self, probability: float) -> Any:
        """Draw 1 with a probability, otherwise 0, for each image of a pipeline."""
        return fn.random.coin_flip(probability=probability, dtype=DALIDataType.INT32)


class Operator(ABC):
    """A transform in a `Compose`.

    Args:
        device: ``cpu`` or ``gpu``.
    """

    def __init__(self, device: Device = "cpu") -> None:
        self.device = device

    @abstractmethod
    def _apply(self, images: Images) -> Images:
        """Return the transformed images."""

    def _invoke(self, images: Images) -> Images:
        return self._apply(images.moved(self.device))

    def __call__(self, data_input: Any) -> Any:
        """Raise an error: a transform runs only as part of a `Compose`.

        Raises:
            PipelineStateError: always.
        """
        name = type(self).__name__
        raise PipelineStateError(
            f"{name} cannot be called by itself.",
            hint=f"Write Compose([{name}(...)])(image), or use a function of torchvision.v2.functional.",
        )


def checked_transforms(transforms: Sequence[Any]) -> Sequence[Any]:
    """Return a list of transforms.

    Raises:
        WrongObjectError: an item is not a transform of this package.
    """
    for transform in transforms:
        if not isinstance(transform, Operator):
            raise WrongObjectError.here(
                f"the list must contain transforms of dalify.experimental.torchvision; got {short_repr(transform)}.",
                hint="For torchvision's own transforms and for functions use dalify.plugin.pytorch.lower.",
            )
    return transforms


def sometimes(images: Images, probability: float, change: Callable[[Images], Images]) -> Images:
    """Apply a function to each image of a pipeline with a probability, independently.

    Args:
        images: the input.
        probability: probability in [0, 1].
        change: returns images on the same device and of the same type.
    """
    data = choose(images.coin(probability), [lambda: images.data, lambda: change(images).data])
    return replace(images, data=data)


def check_dimensions(data: Any) -> None:
    """Check that a tensor contains images.

    Raises:
        ShapeError: fewer than three dimensions.
    """
    if data.ndim < 3:
        raise ShapeError(f"a tensor of images must have the shape [..., C, H, W]; got {tuple(data.shape)}.")
