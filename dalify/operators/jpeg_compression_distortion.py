"""Add JPEG compression artifacts to images."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import simplejpeg

from dalify.base.errors import ShapeError
from dalify.base.optional import torch
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.padding_torch import on_padded
from dalify.kernels.images.frames import folded_frames, per_frame_of_samples, visual_layout
from dalify.kernels.images.jpeg_torch import jpeg_artifacts_torch
from dalify.registry import AnySamples, PerSampleOrFrame, Spec, Vectors, operator

_LAYOUTS = ("HWC", "FHWC")
_MAX_EXTENT = 65_500  # of libjpeg


@operator
def jpeg_compression_distortion(x: Spec, /, *, quality: PerSampleOrFrame[int] = 50) -> Spec:
    """Add JPEG compression artifacts to images by compressing and decompressing them.

    Args:
        x: uint8 images HWC or sequences FHWC with 3 channels, R, G, B.
        quality: 1 (worst) to 100, clipped to this range; one per sample or per frame.

    Returns:
        Same shape, type and layout.

    Raises:
        LayoutError: the layout is not supported.
        DTypeError: elements are not uint8.
        ShapeError: not three channels, or on the CPU a height or width above 65,500.

    Example:
        >>> images = fn.jpeg_compression_distortion(images, quality=20)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, _LAYOUTS))
    x.check_dtype(DALIDataType.UINT8)
    if x.shape is not None and x.shape[-1] != 3:
        raise ShapeError(f"the input must have 3 channels; got {x.shape[-1]}.")
    return x


def _qualities(quality: Any, x: AnySamples, layout: str) -> np.ndarray:
    """Return the quality of each frame of all samples."""
    return np.clip(per_frame_of_samples(quality, x, layout, "quality"), 1, 100)


def _check_extents(x: Samples) -> None:
    too_large = np.flatnonzero((x.shapes[:, -3:-1] > _MAX_EXTENT).any(axis=1))
    if too_large.size:
        sample = int(too_large[0])
        height, width = x.shapes[sample, -3:-1].tolist()
        raise ShapeError(
            f"a JPEG image has at most {_MAX_EXTENT} rows and columns; got {height} x {width}.",
            hint="Resize or crop the image first.",
            sample=sample,
        )


@jpeg_compression_distortion.cpu_samples
def _(out: Samples, x: Samples, *, quality: Vectors, spec: Spec) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    _check_extents(x)
    levels = _qualities(quality, x, layout).tolist()
    target, source = folded_frames(out, layout), folded_frames(x, layout)
    for result, image, level in zip(target.arrays(), source.arrays(), levels, strict=True):
        blue_first = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
        _, compressed = cv2.imencode(".jpg", blue_first, [cv2.IMWRITE_JPEG_QUALITY, level])
        # The same pixels as OpenCV decodes, without a conversion from its channel order.
        simplejpeg.decode_jpeg(compressed, "RGB", buffer=result)


@jpeg_compression_distortion.gpu_samples
def _(out: DeviceSamples, x: DeviceSamples, *, quality: Vectors, spec: Spec) -> None:
    layout = visual_layout(spec, _LAYOUTS)
    _distort(folded_frames(out, layout), folded_frames(x, layout), qualities=_qualities(quality, x, layout))


@on_padded
def _distort(out: torch.Tensor, x: torch.Tensor, *, qualities: np.ndarray, extents: np.ndarray) -> None:
    jpeg_artifacts_torch(out, x, qualities, extents)
