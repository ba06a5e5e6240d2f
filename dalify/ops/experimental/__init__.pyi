"""Operators as `ops.experimental`. Made by `python -m docs.stubs` from the operators' files, for editors and type checkers."""

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

from dalify.ops.experimental import decoders as decoders, inputs as inputs, readers as readers

class Dilate:
    """Dilate bright regions: each pixel becomes the largest value under a rectangular mask, for each channel by
    itself.

    masks = fn.experimental.dilate(masks, mask_size=[5, 5])
    """

    def __init__(
        self,
        *,
        anchor: _Many[int] | DataNode | None = ...,
        border_mode: str | None = "constant",
        iterations: int | None = 1,
        mask_size: _Many[int] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Erode:
    """Erode bright regions: each pixel becomes the smallest value under a rectangular mask, for each channel by
    itself.

    masks = fn.experimental.erode(masks, mask_size=[5, 5])
    """

    def __init__(
        self,
        *,
        anchor: _Many[int] | DataNode | None = ...,
        border_mode: str | None = "constant",
        iterations: int | None = 1,
        mask_size: _Many[int] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class MedianBlur:
    """Replace each pixel by the median of a window around it, for each channel by itself; the border repeats.

    images = fn.experimental.median_blur(images, window_size=[5, 5])
    """

    def __init__(
        self,
        *,
        window_size: _Many[int] | DataNode | None = ...,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class NumbaFunction:
    """Call a function that numba compiles on each sample.

    def invert(out, image):
        out[:] = 255 - image
    negative = fn.experimental.numba_function(
        images, run_fn=invert, out_types=[types.UINT8], in_types=[types.UINT8], outs_ndim=[3], ins_ndim=[3]
    )
    """

    def __init__(
        self,
        *,
        run_fn: Any,
        out_types: _Many[_DType],
        in_types: _Many[_DType],
        outs_ndim: _Many[int],
        ins_ndim: _Many[int],
        setup_fn: Any = None,
        blocks: Any = None,
        threads_per_block: Any = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class Remap:
    """Fill images from points that two maps name: `out(x, y) = in(mapx(x, y), mapy(x, y))`, 0 outside.

    images = fn.experimental.remap(images, mapx, mapy)
    """

    def __init__(
        self,
        *,
        interp: types.DALIInterpType | None = types.INTERP_LINEAR,
        pixel_origin: str | None = "corner",
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

class Resize:
    """Resize images, each frame of a sequence, or volumes, as `fn.resize` does.

    images = fn.experimental.resize(images, resize_shorter=256)
    """

    def __init__(
        self,
        *,
        antialias: bool | None = True,
        dtype: _DType | None = None,
        interp_type: types.DALIInterpType | DataNode | None = None,
        mag_filter: types.DALIInterpType | DataNode | None = None,
        max_size: _Many[float] | None = None,
        min_filter: types.DALIInterpType | DataNode | None = None,
        mode: str | None = "default",
        resize_longer: float | DataNode | None = None,
        resize_shorter: float | DataNode | None = None,
        resize_x: float | DataNode | None = None,
        resize_y: float | DataNode | None = None,
        resize_z: float | DataNode | None = None,
        roi_end: _Many[float] | DataNode | None = None,
        roi_relative: bool | None = False,
        roi_start: _Many[float] | DataNode | None = None,
        save_attrs: bool | None = False,
        size: _Many[float] | DataNode | None = None,
        subpixel_scale: bool | None = True,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

class WarpPerspective:
    """Warp images by a perspective matrix.

    images = fn.experimental.warp_perspective(
        images, matrix=[1, 0, 0, 0, 1, 0, 0.001, 0, 1]
    )
    """

    def __init__(
        self,
        *,
        border_mode: str | None = "constant",
        fill_value: _Many[float] | None = None,
        interp_type: types.DALIInterpType | None = types.INTERP_LINEAR,
        inverse_map: bool | None = True,
        matrix: _Many[float] | DataNode | None = None,
        pixel_origin: str | None = "corner",
        size: _Many[float] | DataNode | None = None,
        name: str | None = None,
        device: str | None = None,
        preserve: bool | None = None,
        bytes_per_sample_hint: int | None = None,
        seed: int | None = None,
    ) -> None:
        ...

    def __call__(self, *inputs: _Input, **arguments: Any) -> DataNode: ...

@deprecated("is now called ops.AudioResample")
class AudioResample:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.Debayer")
class Debayer:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.Equalize")
class Equalize:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.Filter")
class Filter:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.decoders.Inflate")
class Inflate:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.PeekImageShape")
class PeekImageShape:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...

@deprecated("is now called ops.TensorResize")
class TensorResize:
    def __init__(self, *values: Any, **arguments: Any) -> None: ...
    def __call__(self, *inputs: _Input, **arguments: Any) -> Any: ...
