"""Kernels of the color operators: color matrices from their arguments, for the frames of a sequence.

Hue, saturation, hsv and color_twist are one operation with other arguments left neutral.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.errors import DTypeError, ShapeError
from dalify.data.device_samples import DeviceSamples
from dalify.data.dtypes import DALIDataType
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.images.color_matrix import apply_matrix, apply_matrix_torch, twist_matrix
from dalify.kernels.images.frames import folded_frames, per_frame_of_samples, visual_layout

__all__ = ["twist_cpu", "twist_gpu", "twist_rule"]

_LAYOUTS = ("HWC", "FHWC", "DHWC")
_NEUTRAL = {"hue": 0.0, "saturation": 1.0, "value": 1.0, "brightness": 1.0, "contrast": 1.0}


def twist_rule(x: Spec, dtype: DALIDataType | None) -> Spec:
    """Return the output spec: only the dtype may change.

    Raises:
        LayoutError: the layout is none of HWC, FHWC and DHWC.
        ShapeError: there are not three channels.
        DTypeError: the dtype is boolean.
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    if x.shape is not None and x.shape[-1] != 3:
        raise ShapeError(
            f"color operators need 3 channels; the image has {x.shape[-1]}.",
            hint="Decode with output_type=types.RGB, or use fn.brightness_contrast, for any number of channels.",
        )
    if DALIDataType.BOOL in (x.dtype, dtype):
        raise DTypeError("color operators do not support booleans.")
    return x.replace(dtype=x.dtype if dtype is None else dtype)


def _matrices(rows: Mapping[str, np.ndarray], spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    count = len(next(iter(rows.values())))
    columns = [
        rows[name] if name in rows else np.full(count, neutral, np.float32) for name, neutral in _NEUTRAL.items()
    ]
    is_float = spec.dtype is not None and spec.dtype.is_float
    return twist_matrix(*columns, half_range=0.5 if is_float else 128.0)


def twist_cpu(out: Samples, x: Samples, spec: Spec, **arguments: Any) -> None:
    """Fill `out` with the color-transformed images.

    Args:
        out: N samples [..., 3].
        x: N samples [..., 3].
        spec: spec of `x`.
        arguments: any of hue (degrees), saturation, value, brightness, contrast: [N, k], k = 1 or the number of frames.
    """
    layout = visual_layout(spec, _LAYOUTS)
    rows = {name: per_frame_of_samples(values, x, layout, name) for name, values in arguments.items()}
    apply_matrix(folded_frames(out, layout), folded_frames(x, layout), *_matrices(rows, spec))


def twist_gpu(out: DeviceSamples, x: DeviceSamples, spec: Spec, **arguments: Any) -> None:
    """`twist_cpu` for samples on the device."""
    layout = visual_layout(spec, _LAYOUTS)
    rows = {name: per_frame_of_samples(values, x, layout, name) for name, values in arguments.items()}
    apply_matrix_torch(folded_frames(out, layout), folded_frames(x, layout), *_matrices(rows, spec))
