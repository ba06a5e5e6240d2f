"""Operators as `dynamic.experimental`. Made by `python -m docs.dynamic_stubs` from the operators' files, for editors."""

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

from dalify.experimental.dynamic.experimental import readers as readers

def dilate(
    x: _Input,
    /,
    *,
    anchor: _Many[int] | _Computed | None = ...,
    border_mode: str | None = "constant",
    iterations: int | None = 1,
    mask_size: _Many[int] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Dilate bright regions: each pixel becomes the largest value under a rectangular mask, for each channel by
    itself.

    masks = fn.experimental.dilate(masks, mask_size=[5, 5])
    """
    ...

def erode(
    x: _Input,
    /,
    *,
    anchor: _Many[int] | _Computed | None = ...,
    border_mode: str | None = "constant",
    iterations: int | None = 1,
    mask_size: _Many[int] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Erode bright regions: each pixel becomes the smallest value under a rectangular mask, for each channel by
    itself.

    masks = fn.experimental.erode(masks, mask_size=[5, 5])
    """
    ...

def median_blur(
    x: _Input,
    /,
    *,
    window_size: _Many[int] | _Computed | None = ...,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Replace each pixel by the median of a window around it, for each channel by itself; the border repeats.

    images = fn.experimental.median_blur(images, window_size=[5, 5])
    """
    ...

def numba_function(
    *xs: _Input,
    run_fn: Any,
    out_types: _Many[_DType],
    in_types: _Many[_DType],
    outs_ndim: _Many[int],
    ins_ndim: _Many[int],
    setup_fn: Any = None,
    blocks: Any = None,
    threads_per_block: Any = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Call a function that numba compiles on each sample.

    def invert(out, image):
        out[:] = 255 - image
    negative = fn.experimental.numba_function(
        images, run_fn=invert, out_types=[types.UINT8], in_types=[types.UINT8], outs_ndim=[3], ins_ndim=[3]
    )
    """
    ...

def remap(
    x: _Input,
    mapx: _Input,
    mapy: _Input,
    /,
    *,
    interp: types.DALIInterpType | None = types.INTERP_LINEAR,
    pixel_origin: str | None = "corner",
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Fill images from points that two maps name: `out(x, y) = in(mapx(x, y), mapy(x, y))`, 0 outside.

    images = fn.experimental.remap(images, mapx, mapy)
    """
    ...

def resize(
    x: _Input,
    /,
    *,
    antialias: _builtins.bool | None = True,
    dtype: _DType | None = None,
    interp_type: types.DALIInterpType | _Computed | None = None,
    mag_filter: types.DALIInterpType | _Computed | None = None,
    max_size: _Many[float] | None = None,
    min_filter: types.DALIInterpType | _Computed | None = None,
    mode: str | None = "default",
    resize_longer: float | _Computed | None = None,
    resize_shorter: float | _Computed | None = None,
    resize_x: float | _Computed | None = None,
    resize_y: float | _Computed | None = None,
    resize_z: float | _Computed | None = None,
    roi_end: _Many[float] | _Computed | None = None,
    roi_relative: _builtins.bool | None = False,
    roi_start: _Many[float] | _Computed | None = None,
    save_attrs: _builtins.bool | None = False,
    size: _Many[float] | _Computed | None = None,
    subpixel_scale: _builtins.bool | None = True,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Resize images, each frame of a sequence, or volumes, as `fn.resize` does.

    images = fn.experimental.resize(images, resize_shorter=256)
    """
    ...

def warp_perspective(
    x: _Input,
    matrix_input: _Input | None = None,
    /,
    *,
    border_mode: str | None = "constant",
    fill_value: _Many[float] | None = None,
    interp_type: types.DALIInterpType | None = types.INTERP_LINEAR,
    inverse_map: _builtins.bool | None = True,
    matrix: _Many[float] | _Computed | None = None,
    pixel_origin: str | None = "corner",
    size: _Many[float] | _Computed | None = None,
    device: str | _Device | None = None,
    batch_size: int | None = None,
) -> Any:
    """Warp images by a perspective matrix.

    images = fn.experimental.warp_perspective(
        images, matrix=[1, 0, 0, 0, 1, 0, 0.001, 0, 1]
    )
    """
    ...
