"""Convert output images to 16-bit floats: the step that a pipeline's ``precision=`` appends to its outputs."""

from __future__ import annotations

from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.convert import saturate_cast_samples, saturate_cast_samples_torch
from dalify.registry import Spec, operator


@operator(stands_for="the conversion of precision=")
def _narrow(x: Spec, /, *, dtype: DALIDataType) -> Spec:
    """Convert float32 images to a 16-bit float type. Other data is returned unchanged.

    Args:
        x: any data.
        dtype: FLOAT16 or BFLOAT16.

    Returns:
        same shape and layout; `dtype` where `x` is FLOAT and its layout has H and W.
    """
    is_image = x.layout is not None and {"H", "W"} <= set(x.layout)
    return x.replace(dtype=dtype) if x.dtype is DALIDataType.FLOAT and is_image else x


@_narrow.cpu_samples
def _(out: Samples, x: Samples) -> None:
    saturate_cast_samples(out, x)


@_narrow.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples) -> None:
    saturate_cast_samples_torch(out, x)
