"""Change the brightness of images."""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.kernels.images.brightness_contrast import levels, levels_rule
from dalify.registry import AnySamples, PerSampleOrFrame, Spec, Vectors, operator


@operator
def brightness(
    x: Spec,
    /,
    *,
    brightness: PerSampleOrFrame[float] = 1.0,
    brightness_shift: PerSampleOrFrame[float] = 0.0,
    dtype: DALIDataType | None = None,
) -> Spec:
    """Change the brightness of images.

    ``out = brightness_shift * range + brightness * x`` (DALI's documentation of fn.brightness).

    Args:
        x: images HWC, sequences FHWC or volumes DHWC, any number of channels, any numeric type.
        brightness: multiplier; one value per sample or per frame.
        brightness_shift: offset as a fraction of the output range: of 1 for floats, of the largest value for
            integers; one value per sample or per frame.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and
            saturated.

    Returns:
        Same shape and layout, elements of `dtype`.

    Raises:
        LayoutError: the layout is not supported.
        ShapeError: an argument has the wrong number of values.

    Example:
        >>> images = fn.brightness(images, brightness=1.2)  # doctest: +SKIP
    """
    return levels_rule(x, dtype)


@brightness.cpu_samples
@brightness.gpu_samples
def _(
    out: AnySamples, x: AnySamples, *, brightness: Vectors, brightness_shift: Vectors, spec: Spec, out_spec: Spec
) -> None:
    levels(out, x, spec, out_spec, brightness=brightness, brightness_shift=brightness_shift)
