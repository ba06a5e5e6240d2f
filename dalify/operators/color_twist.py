"""Change hue, saturation, contrast and brightness of images at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.data import DALIDataType, DALIImageType
from dalify.kernels.images.color_twist import twist, twist_rule
from dalify.parameter_groups.colors import Colors
from dalify.parameter_groups.normalization import AFTER_RESIZE, can_follow_resize
from dalify.registry import AnySamples, Spec, argument_names, operator


@operator(alphabetical=True)
def color_twist(
    x: Spec,
    /,
    *,
    colors: Colors,
    dtype: DALIDataType | None = None,
    image_type: DALIImageType = DALIImageType.RGB,
) -> Spec:
    """Change hue, saturation, contrast and brightness of images, in this order.

    The color is converted to YIQ (NTSC luma and chroma), where hue rotates the chroma plane (I, Q), saturation scales
    it and value scales everything; the result is one 3x3 matrix for all pixels (DALI's documentation of fn.hsv calls it
    a linear approximation). Then out = brightness * (contrast * v + half * (1 - contrast)) with half = 128 for integers
    and 0.5 for floats.

    Args:
        x: images HWC, sequences FHWC or volumes DHWC with 3 channels, any numeric type.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and
            saturated.
        image_type: accepted but ignored: channels are taken as R, G, B in this order, as DALI does.

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
    colors: Colors,
    spec: Spec,
) -> None:
    twist(out, x, spec, **colors.values)


@color_twist.before(
    "crop_mirror_normalize", "merges", into="_color_twist_normalize", takes=AFTER_RESIZE, keeps=argument_names(Colors)
)
def _(twist: Mapping[str, Any], normalize: Mapping[str, Any], source: Spec, device: str) -> bool:
    return device == "cpu" and can_follow_resize(twist, normalize, source, device, None)
