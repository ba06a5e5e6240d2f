"""Operators as `eager.segmentation`. Made by `python -m docs.stubs` from the operators' files, for editors."""

from collections.abc import Sequence as _Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from typing_extensions import deprecated

from dalify import types
from dalify.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

_T = TypeVar("_T")
_Many: TypeAlias = _T | _Sequence[_T] | _Sequence[_Sequence[_T]] | np.ndarray[Any, Any]
_Input: TypeAlias = Any
_Computed: TypeAlias = np.ndarray[Any, Any] | np.generic | TensorCPU | TensorGPU | TensorListCPU | TensorListGPU
_DType: TypeAlias = types.DALIDataType | np.dtype[Any] | type[Any]

def random_mask_pixel(
    x: _Input,
    /,
    *,
    foreground: int | _Computed | None = 0,
    threshold: float | _Computed | None = 0.0,
    value: int | _Computed | None = None,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
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
    cache_objects: bool | None = False,
    class_weights: _Many[float] | _Computed | None = None,
    classes: _Many[int] | _Computed | None = None,
    foreground_prob: float | _Computed | None = 1.0,
    format: str | None = "anchor_shape",
    ignore_class: bool | None = False,
    k_largest: int | None = None,
    output_class: bool | None = False,
    threshold: _Many[int] | _Computed | None = None,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
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
    reindex_masks: bool | None = False,
    name: str | None = None,
    device: str | None = None,
    preserve: bool | None = None,
    bytes_per_sample_hint: int | None = None,
    seed: int | None = None,
    layout: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Keep the polygons of chosen masks, and their vertices.

    polygons, vertices = fn.segmentation.select_masks(
        chosen, polygons, vertices, reindex_masks=True
    )
    """
    ...
