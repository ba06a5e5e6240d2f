"""Operators as `dynamic.segmentation`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

import builtins as _builtins
from collections.abc import Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dalify import types
from dalify.experimental.dynamic.batch import Batch as _Batch
from dalify.experimental.dynamic.devices import Device as _Device
from dalify.experimental.dynamic.dtypes import DType as _DynamicDType
from dalify.experimental.dynamic.reader import Reader as _Reader
from dalify.experimental.dynamic.rng import RNG as _RNG
from dalify.experimental.dynamic.tensor import Tensor as _Tensor

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = Any
_Computed: TypeAlias = _Tensor | _Batch | np.ndarray[Any, Any] | np.generic
_DType: TypeAlias = _DynamicDType | types.DALIDataType | np.dtype[Any] | type[Any]

def random_mask_pixel(
    x: _Input,
    /,
    *,
    foreground: int | _Computed | None = 0,
    threshold: float | _Computed | None = 0.0,
    value: int | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Choose a random pixel of a mask, each with the same probability.

    center = fn.segmentation.random_mask_pixel(masks, foreground=1)
    """
    ...

def random_object_bbox(
    x: _Input,
    /,
    *,
    background: int | _Computed | None = None,
    cache_objects: _builtins.bool | None = False,
    class_weights: _Many[float] | _Computed | None = None,
    classes: _Many[int] | _Computed | None = None,
    foreground_prob: float | _Computed | None = 1.0,
    format: str | None = "anchor_shape",
    ignore_class: _builtins.bool | None = False,
    k_largest: int | None = None,
    output_class: _builtins.bool | None = False,
    threshold: _Many[int] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
    rng: _RNG | None = None,
) -> Any:
    """Choose a random object of a labelled mask and return the box around it.

    anchor, shape = fn.segmentation.random_object_bbox(masks, foreground_prob=0.7)
    """
    ...

def select_masks(
    mask_ids: _Input,
    polygons: _Input,
    vertices: _Input,
    /,
    *,
    reindex_masks: _builtins.bool | None = False,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Keep the polygons of chosen masks, and their vertices.

    polygons, vertices = fn.segmentation.select_masks(
        chosen, polygons, vertices, reindex_masks=True
    )
    """
    ...
