"""Change contrast around the mean gray level of each image."""

from __future__ import annotations

import numpy as np

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.convert import saturate_cast_torch
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.arrays.pointwise import scale_shift
from dalify.kernels.arrays.reduce_torch import mean_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.arrays.wide_torch import wide_dtype
from dalify.kernels.images.channels import channel_means
from dalify.kernels.images.frames import folded_frames, per_frame_of_samples, visual_layout
from dalify.registry import PerSample, Spec, operator

_LAYOUTS = ("FHWC", "HWC")
# Luma of ITU-R BT.601; a single channel is already gray.
_WEIGHTS = {1: (1.0,), 3: (0.299, 0.587, 0.114)}


@operator
def gray_contrast(x: Spec, /, *, contrast: PerSample[float] = 1.0) -> Spec:
    """Change the contrast of images, as Pillow's ImageEnhance.Contrast does.

    ``out = gray + contrast * (x - gray)``, where gray is the mean over the image of 0.299 R + 0.587 G + 0.114 B. Frames
    are processed independently.

    Args:
        x: uint8 images HWC or sequences FHWC of 1 or 3 channels.
        contrast: factor for the distance to the mean; 0 gives uniform gray.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        DTypeError: elements are not uint8.
        ShapeError: neither 1 nor 3 channels.
    """
    visual_layout(x, _LAYOUTS)
    x.check_dtype(DALIDataType.UINT8)
    if x.shape is not None and x.shape[-1] not in _WEIGHTS:
        raise ShapeError(f"the input must have 1 or 3 channels; got {x.shape[-1]}.")
    return x


@gray_contrast.cpu_samples
def _(out: Samples, x: Samples, *, contrast: np.ndarray, spec: Spec) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    factor = np.ascontiguousarray(per_frame_of_samples(contrast[:, None], x, layout, "contrast"), np.float32)
    source = folded_frames(x, layout)
    means = channel_means(source)
    gray = means[:, 0]
    if means.shape[1] > 1:
        gray = np.where(source.extents(-1) == 1, gray, means @ np.array(_WEIGHTS[3]))
    scale_shift(folded_frames(out, layout), source, factor, (gray * (1 - factor)).astype(np.float32))


@gray_contrast.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, contrast: np.ndarray, spec: Spec) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    factor = per_frame_of_samples(contrast[:, None], x, layout, "contrast")
    _change(folded_frames(out, layout), folded_frames(x, layout), contrast=factor)


@on_padded
def _change(out: torch.Tensor, x: torch.Tensor, *, contrast: np.ndarray, extents: np.ndarray) -> None:
    means = torch.empty((len(x), x.shape[-1]), dtype=wide_dtype(x.device), device=x.device)
    mean_torch(means, x, (0, 1), extents)
    # Not a matrix product, which may use reduced precision on an accelerator.
    gray = sum(means[:, channel] * weight for channel, weight in enumerate(_WEIGHTS[x.shape[-1]]))
    factor = uploaded(contrast, x.device, np.float64)
    a, b = (values.float().reshape(-1, 1, 1, 1) for values in (factor, gray * (1 - factor)))
    saturate_cast_torch(out, x.float() * a + b)
