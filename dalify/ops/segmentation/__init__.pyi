"""Operators as `ops.segmentation`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import deprecated

from dalify import types
from dalify.graph import DataNode

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = DataNode | _Sequence[DataNode] | npt.ArrayLike
_DType: TypeAlias = types.DALIDataType | np.dtype[Any] | type[Any]

class RandomMaskPixel:
    """Choose a random pixel of a mask, each with the same probability.

    center = fn.segmentation.random_mask_pixel(masks, foreground=1)
    """

    def __init__(
        self,
        *,
        foreground: int | DataNode | None = 0,
        threshold: float | DataNode | None = 0.0,
        value: int | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class RandomObjectBBox:
    """Choose a random object of a labelled mask and return the box around it.

    anchor, shape = fn.segmentation.random_object_bbox(masks, foreground_prob=0.7)
    """

    def __init__(
        self,
        *,
        background: int | DataNode | None = None,
        cache_objects: bool | None = False,
        class_weights: _Many[float] | DataNode | None = None,
        classes: _Many[int] | DataNode | None = None,
        foreground_prob: float | DataNode | None = 1.0,
        format: str | None = "anchor_shape",
        ignore_class: bool | None = False,
        k_largest: int | None = None,
        output_class: bool | None = False,
        threshold: _Many[int] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class SelectMasks:
    """Keep the polygons of chosen masks, and their vertices.

    polygons, vertices = fn.segmentation.select_masks(
        chosen, polygons, vertices, reindex_masks=True
    )
    """

    def __init__(
        self,
        *,
        reindex_masks: bool | None = False,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> tuple[DataNode, DataNode]: ...
