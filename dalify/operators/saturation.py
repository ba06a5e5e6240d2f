"""Scale the saturation of images."""

from __future__ import annotations

from dalify.data import DALIDataType, DALIImageType
from dalify.kernels.images.color_twist import twist, twist_rule
from dalify.registry import AnySamples, PerSampleOrFrame, Spec, Vectors, operator


@operator
def saturation(
    x: Spec,
    /,
    *,
    dtype: DALIDataType | None = None,
    image_type: DALIImageType = DALIImageType.RGB,
    saturation: PerSampleOrFrame[float] = 1.0,
) -> Spec:
    """Scale the saturation of images.

    The color is converted to YIQ (NTSC luma and chroma), where hue rotates the chroma plane (I, Q), saturation scales
    it and value scales everything; the result is one 3x3 matrix for all pixels (DALI's documentation of fn.hsv calls it
    a linear approximation).

    Args:
        x: images HWC, sequences FHWC or volumes DHWC with 3 channels, any numeric type.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and
            saturated.
        image_type: accepted but ignored: channels are taken as R, G, B in this order, as DALI does.
        saturation: multiplier; 0 gives gray, 1 leaves the image unchanged; one value per sample or per frame.

    Returns:
        Same shape and layout, elements of `dtype`.

    Raises:
        LayoutError: the layout is not supported.
        ShapeError: not three channels, or an argument has the wrong number of values.

    Example:
        >>> images = fn.saturation(images, saturation=0.5)  # doctest: +SKIP
    """
    return twist_rule(x, dtype)


@saturation.cpu_samples
@saturation.gpu_samples
def _(out: AnySamples, x: AnySamples, *, saturation: Vectors, spec: Spec) -> None:
    twist(out, x, spec, saturation=saturation)
