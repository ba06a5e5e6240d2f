"""What all transforms share: images on their way through a pipeline or a call, and the base class.

The operators of ``dalify.fn`` and of ``dalify.eager`` have the same names and arguments, so a transform is written
once: `Images` holds the data and which of both they belong to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from dalify import eager, fn, math
from dalify.base.errors import PipelineStateError, ShapeError
from dalify.data import DALIDataType, TensorListCPU, TensorListGPU
from dalify.graph.choice import choose

__all__ = ["Device", "Images", "Operator", "check_dimensions", "sometimes"]

Device = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Images:
    """Images in the middle of a computation.

    Attributes:
        data: a graph value in a pipeline; a tensor or a tensor list in a call.
        layout: ``HWC`` (from Pillow) or ``CHW``.
        channels: how many.
        is_float: the values are floating-point numbers.
        is_graph: in a pipeline.
        device: where the next operators run.
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
        """Those of height and width."""
        return (0, 1) if self.layout == "HWC" else (1, 2)

    @property
    def dtype(self) -> DALIDataType:
        """What an operator on colors gives: bytes, or floats."""
        return DALIDataType.FLOAT if self.is_float else DALIDataType.UINT8

    def extents(self) -> tuple[Any, Any]:
        """Return height and width: graph values in a pipeline, else integers."""
        shape = self.data.shape()
        if isinstance(self.data, TensorListCPU | TensorListGPU):
            shape = shape[0]
        height, width = self.axes
        return shape[height], shape[width]

    def pair(self, first: Any, second: Any) -> Any:
        """Return two numbers, which may be graph values, as one argument."""
        return fn.stack(first, second) if self.is_graph else [first, second]

    def call(
        self, name: str, /, *, channels: int | None = None, is_float: bool | None = None, **arguments: Any
    ) -> Images:
        """Call an operator with the images as its input.

        Args:
            name: of the operator.
            channels: of the result, where it has others.
            is_float: of the result, where it is of another kind.
            arguments: of the operator.
        """
        data = getattr(self.operators, name)(self.data, device=self.device, **arguments)
        return replace(
            self,
            data=data,
            channels=self.channels if channels is None else channels,
            is_float=self.is_float if is_float is None else is_float,
        )

    def interleaved(self, change: Callable[[Images], Images]) -> Images:
        """Apply what takes images HWC only."""
        if self.layout == "HWC":
            return change(self)
        turned = change(replace(self.call("transpose", perm=[1, 2, 0], output_layout="HWC"), layout="HWC"))
        return replace(turned.call("transpose", perm=[2, 0, 1], output_layout="CHW"), layout="CHW")

    def window(self, top: Any, left: Any, height: Any, width: Any, policy: str = "error", fill: Any = None) -> Images:
        """Cut out a window.

        Args:
            top: first row.
            left: first column.
            height: number of rows.
            width: number of columns.
            policy: what lies outside: an ``out_of_bounds_policy`` of ``fn.slice``.
            fill: values outside, where the policy is ``pad``.
        """
        given = {} if fill is None else {"fill_values": fill}
        data = self.operators.slice(
            self.data,
            self.pair(top, left),
            self.pair(height, width),
            axes=list(self.axes),
            out_of_bounds_policy=policy,
            device=self.device,
            **given,
        )
        return replace(self, data=data)

    def repeated(self, count: int) -> Images:
        """Return images of one channel with so many equal ones."""
        axis = 2 if self.layout == "HWC" else 0
        data = self.operators.cat(*[self.data] * count, axis=axis, device=self.device)
        return replace(self, data=data, channels=count)

    def first_channel(self) -> Images:
        """Return images with the first channel alone."""
        axis = 2 if self.layout == "HWC" else 0
        return replace(self.call("slice", start=[0], shape=[1], axes=[axis]), channels=1)

    def clamped(self, low: float, high: float) -> Images:
        """Return images whose values lie within bounds."""
        if self.is_graph:
            return replace(self, data=math.clamp(self.data, low, high))
        raise AssertionError("dalify bug: a call that clamps")

    def uniform(self, low: float, high: float, seed: int = -1) -> Any:
        """Draw a number, one per image in a pipeline; the bound itself where both are equal."""
        given = {} if seed == -1 else {"seed": seed}
        return low if low == high else self.operators.random.uniform(range=[low, high], **given)

    def moved(self, device: str) -> Images:
        """Return the images of a pipeline where the next operator runs."""
        if self.device == device:
            return self
        return replace(self, data=self.data.gpu() if device == "gpu" else self.data.cpu(), device=device)

    def coin(self, probability: float) -> Any:
        """Draw whether to do something: 1 or 0 for each image of a pipeline."""
        return fn.random.coin_flip(probability=probability, dtype=DALIDataType.INT32)


class Operator(ABC):
    """A transform in a `Compose`.

    Args:
        device: ``cpu`` or ``gpu``, where it runs.
    """

    def __init__(self, device: Device = "cpu") -> None:
        self.device = device

    @abstractmethod
    def _apply(self, images: Images) -> Images:
        """Return the images behind the transform."""

    def _invoke(self, images: Images) -> Images:
        return self._apply(images.moved(self.device))

    def __call__(self, data_input: Any) -> Any:
        """Refuse: a transform is a part of a pipeline.

        Raises:
            PipelineStateError: always.
        """
        name = type(self).__name__
        raise PipelineStateError(
            f"{name} cannot be called by itself.",
            hint=f"Write Compose([{name}(...)])(image), or use a function of torchvision.v2.functional.",
        )


def sometimes(images: Images, probability: float, change: Callable[[Images], Images]) -> Images:
    """Change images of a pipeline with a probability, each by itself.

    Args:
        images: before.
        probability: of the change.
        change: makes images of the same device and type of them.
    """
    data = choose(images.coin(probability), [lambda: images.data, lambda: change(images).data])
    return replace(images, data=data)


def check_dimensions(data: Any) -> None:
    """Refuse tensors that hold no image.

    Raises:
        ShapeError: fewer than three dimensions.
    """
    if data.ndim < 3:
        raise ShapeError(f"a tensor of images has the shape [..., C, H, W], and {tuple(data.shape)} has fewer axes.")
