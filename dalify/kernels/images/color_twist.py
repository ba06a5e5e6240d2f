"""Kernels of hue, saturation, hsv and color_twist, which differ only in their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ShapeError
from dalify.base.small_arrays import all_of
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.arrays.frozen import repeated
from dalify.kernels.images.color_matrix import apply_matrix, apply_matrix_torch, twist_matrix
from dalify.kernels.images.frames import folded_frames, per_frame_of_samples, visual_layout

_LAYOUTS = ("HWC", "FHWC", "DHWC")
_CHANNELS = 3
_NEUTRAL = {"hue": 0.0, "saturation": 1.0, "value": 1.0, "brightness": 1.0, "contrast": 1.0}


def twist_rule(x: Spec, dtype: DALIDataType | None) -> Spec:
    """Return the output spec: only the dtype may change.

    Raises:
        LayoutError: the layout is none of HWC, FHWC and DHWC.
        ShapeError: there are not three channels.
        DTypeError: the dtype is boolean.
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    if x.shape is not None and x.shape[-1] != _CHANNELS:
        raise _wrong_channels(x.shape[-1])
    if DALIDataType.BOOL in (x.dtype, dtype):
        raise DTypeError("color operators do not support booleans.")
    return x.replace(dtype=x.dtype if dtype is None else dtype)


def check_channels(channels: np.ndarray, argument: str | None = None) -> None:
    """Raise a ShapeError with the index of the sample unless all images have three channels.

    Args:
        channels: number of channels of each image, int64 [N].
        argument: name of an argument for the error: in a fused operator, it identifies the color operator.
    """
    if all_of(channels == _CHANNELS, None):
        return
    error = _wrong_channels(int(channels[channels != _CHANNELS][0]))
    error.sample, error.argument = int((channels != _CHANNELS).argmax()), argument
    raise error


def _wrong_channels(channels: int) -> ShapeError:
    return ShapeError(
        f"color operators need 3 channels; the image has {channels}.",
        hint="Decode with output_type=types.RGB, or use fn.brightness_contrast, for any number of channels.",
    )


def twist_matrices(x: Samples | DeviceSamples, spec: Spec, **arguments: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and the constants of each frame of `x`; see `twist` and `twist_matrix`."""
    layout = visual_layout(spec, _LAYOUTS)
    rows = {name: per_frame_of_samples(values, x, layout, name) for name, values in arguments.items()}
    count = len(next(iter(rows.values())))
    columns: list[Any] = []
    for name, neutral in _NEUTRAL.items():
        columns.append(rows[name] if name in rows else repeated(neutral, count))
    is_float = spec.dtype is not None and spec.dtype.is_float
    return twist_matrix(*columns, half_range=0.5 if is_float else 128.0)


def twist(out: Samples | DeviceSamples, x: Samples | DeviceSamples, spec: Spec, **arguments: Any) -> None:
    """Fill `out` with the color-transformed images.

    Args:
        out: N samples [..., 3].
        x: N samples [..., 3].
        spec: spec of `x`.
        arguments: any of hue (degrees), saturation, value, brightness, contrast: [N, k], k = 1 or the number of frames.
    """
    layout = visual_layout(spec, _LAYOUTS)
    colors = twist_matrices(x, spec, **arguments)
    apply: Any = apply_matrix if isinstance(x, Samples) else apply_matrix_torch
    apply(folded_frames(out, layout), folded_frames(x, layout), *colors)
