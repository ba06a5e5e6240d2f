"""Rotate the hue of images."""

from __future__ import annotations

from dalify.data import DALIDataType, DALIImageType
from dalify.kernels.images.color_twist import twist, twist_rule
from dalify.registry import AnySamples, PerSampleOrFrame, Spec, Vectors, operator


@operator
def hue(
    x: Spec,
    /,
    *,
    dtype: DALIDataType | None = None,
    hue: PerSampleOrFrame[float] = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Spec:
    """Rotate the hue of images by an angle.

    The color is converted to YIQ (NTSC luma and chroma), where hue rotates the chroma plane (I, Q), saturation scales
    it and value scales everything; the result is one 3x3 matrix for all pixels (DALI's documentation of fn.hsv calls it
    a linear approximation).

    Args:
        x: images HWC, sequences FHWC or volumes DHWC with 3 channels, any numeric type.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and
            saturated.
        hue: rotation of the hue in degrees; one value per sample or per frame.
        image_type: accepted but ignored: channels are taken as R, G, B in this order, as DALI does.

    Returns:
        Same shape and layout, elements of `dtype`.

    Raises:
        LayoutError: the layout is not supported.
        ShapeError: not three channels, or an argument has the wrong number of values.

    Example:
        >>> images = fn.hue(images, hue=fn.random.uniform(range=[-20, 20]))  # doctest: +SKIP
    """
    return twist_rule(x, dtype)


@hue.cpu_samples
@hue.gpu_samples
def _(out: AnySamples, x: AnySamples, *, hue: Vectors, spec: Spec) -> None:
    twist(out, x, spec, hue=hue)
