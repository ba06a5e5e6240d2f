"""Change hue, saturation and value of images."""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.kernels.images.color_twist import twist, twist_rule
from dalify.registry import AnySamples, PerSampleOrFrame, Spec, Vectors, operator


@operator
def hsv(
    x: Spec,
    /,
    *,
    dtype: DALIDataType = DALIDataType.UINT8,
    hue: PerSampleOrFrame[float] = 0.0,
    saturation: PerSampleOrFrame[float] = 1.0,
    value: PerSampleOrFrame[float] = 1.0,
) -> Spec:
    """Change hue, saturation and value of images.

    The color is converted to YIQ (NTSC luma and chroma), where hue rotates the chroma plane (I, Q), saturation scales
    it and value scales everything; the result is one 3x3 matrix for all pixels (DALI's documentation of fn.hsv calls it
    a linear approximation).

    Args:
        x: images HWC, sequences FHWC or volumes DHWC with 3 channels, any numeric type.
        dtype: type of the result, rounded half away from zero and saturated.
        hue: rotation of the hue in degrees; one value per sample or per frame.
        saturation: multiplier; 0 gives gray, 1 leaves the image unchanged; one value per sample or per frame.
        value: multiplier of all three channels; one value per sample or per frame.

    Returns:
        Same shape and layout, elements of `dtype`.

    Raises:
        LayoutError: the layout is not supported.
        ShapeError: not three channels, or an argument has the wrong number of values.

    Example:
        >>> images = fn.hsv(images, hue=20, saturation=1.2, value=0.9)  # doctest: +SKIP
    """
    return twist_rule(x, dtype)


@hsv.cpu_samples
@hsv.gpu_samples
def _(out: AnySamples, x: AnySamples, *, hue: Vectors, saturation: Vectors, value: Vectors, spec: Spec) -> None:
    twist(out, x, spec, hue=hue, saturation=saturation, value=value)
