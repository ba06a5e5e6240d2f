"""Change hue, saturation, contrast and brightness of images at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.data.dtypes import DALIDataType, DALIImageType
from dalify.data.samples import Samples
from dalify.kernels.images.color_twist import twist_cpu, twist_gpu, twist_rule
from dalify.parameter_groups.normalization import AFTER_RESIZE, can_follow_resize
from dalify.registry import AnySamples, PerSample, Spec, Vectors, operator

_COLORS = ("brightness", "contrast", "hue", "saturation")


@operator
def color_twist(
    x: Spec,
    /,
    *,
    brightness: PerSample[float | list[float]] = 1.0,
    contrast: PerSample[float | list[float]] = 1.0,
    dtype: DALIDataType | None = None,
    hue: PerSample[float | list[float]] = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    saturation: PerSample[float | list[float]] = 1.0,
) -> Spec:
    """Change hue, saturation, contrast and brightness of images, in this order.

    The color is converted to YIQ (NTSC luma and chroma), where hue rotates the chroma plane (I, Q), saturation scales
    it and value scales everything; the result is one 3x3 matrix for all pixels (DALI's documentation of fn.hsv calls it
    a linear approximation). Then out = brightness * (contrast * v + half * (1 - contrast)) with half = 128 for integers
    and 0.5 for floats.

    Args:
        x: images HWC, sequences FHWC or volumes DHWC with 3 channels, any numeric type.
        brightness: multiplier of the result, applied last; 0 gives black; one value per sample or per frame.
        contrast: multiplier of the distance to mid-gray (128, or 0.5 for floats); 0 gives that gray; one value per
            sample or per frame.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and
            saturated.
        hue: rotation of the hue in degrees; one value per sample or per frame.
        image_type: accepted for compatibility; channels are taken as R, G, B in this order, as DALI does.
        saturation: multiplier; 0 gives gray, 1 leaves the image unchanged; one value per sample or per frame.

    Returns:
        Same shape and layout, elements of `dtype`.

    Raises:
        LayoutError: the layout is not supported.
        ShapeError: not three channels, or an argument has the wrong number of values.

    Example:
        >>> images = fn.color_twist(images, brightness=1.1, contrast=0.9, hue=10, saturation=1.2)  # doctest: +SKIP
    """
    return twist_rule(x, dtype)


@color_twist.cpu_samples
@color_twist.gpu_samples
def _(
    out: AnySamples,
    x: AnySamples,
    *,
    brightness: Vectors,
    contrast: Vectors,
    hue: Vectors,
    saturation: Vectors,
    spec: Spec,
) -> None:
    compute: Any = twist_cpu if isinstance(x, Samples) else twist_gpu
    compute(out, x, spec, brightness=brightness, contrast=contrast, hue=hue, saturation=saturation)


@color_twist.before("crop_mirror_normalize", "merges", into="_color_twist_normalize", takes=AFTER_RESIZE, keeps=_COLORS)
def _(twist: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    return device == "cpu" and can_follow_resize(twist, normalize, source, device, None)
