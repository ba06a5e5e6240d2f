"""Change the contrast of images."""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.kernels.images.brightness_contrast import levels, levels_rule
from dalify.registry import AnySamples, PerSampleOrFrame, Spec, Vectors, operator


@operator
def contrast(
    x: Spec,
    /,
    *,
    contrast: PerSampleOrFrame[float] = 1.0,
    contrast_center: PerSampleOrFrame[float] | None = None,
    dtype: DALIDataType | None = None,
) -> Spec:
    """Change the contrast of images.

    ``out = center + contrast * (x - center)`` (DALI's documentation of fn.contrast).

    Args:
        x: images HWC, sequences FHWC or volumes DHWC, any number of channels, any numeric type.
        contrast: multiplier of the distance to `contrast_center`; 0 gives uniform gray; one value per sample or per
            frame.
        contrast_center: the value that contrast does not change, in units of the input; by default half of the
            input type's positive range: 0.5 for floats, 128 for uint8; one value per sample or per frame.
        dtype: type of the result, the input's by default; integers are rounded half away from zero and
            saturated.

    Returns:
        Same shape and layout, elements of `dtype`.

    Raises:
        LayoutError: the layout is not supported.
        ShapeError: an argument has the wrong number of values.

    Example:
        >>> images = fn.contrast(images, contrast=0.8)  # doctest: +SKIP
    """
    return levels_rule(x, dtype)


@contrast.cpu_samples
@contrast.gpu_samples
def _(
    out: AnySamples, x: AnySamples, *, contrast: Vectors, contrast_center: Vectors | None, spec: Spec, out_spec: Spec
) -> None:
    levels(out, x, spec, out_spec, contrast=contrast, contrast_center=contrast_center)
