"""Resize images, sequences and volumes: an alias of fn.resize.

In DALI, it uses another GPU library; arguments and results are those of fn.resize.
"""

from __future__ import annotations

from dalify.data.dtypes import DALIDataType, DALIInterpType
from dalify.operators.resize import resize as plain_resize
from dalify.registry import PerSample, Shaping, Spec, operator


@operator(outputs=lambda arguments: 2 if arguments.get("save_attrs") else 1)
def resize(
    x: Spec,
    /,
    *,
    antialias: bool = True,
    dtype: DALIDataType | None = None,
    interp_type: PerSample[DALIInterpType] | None = None,
    mag_filter: PerSample[DALIInterpType] | None = None,
    max_size: list[float] | None = None,
    min_filter: PerSample[DALIInterpType] | None = None,
    mode: str = "default",
    resize_longer: Shaping[float] | None = None,
    resize_shorter: Shaping[float] | None = None,
    resize_x: Shaping[float] | None = None,
    resize_y: Shaping[float] | None = None,
    resize_z: Shaping[float] | None = None,
    roi_end: Shaping[list[float]] | None = None,
    roi_relative: bool = False,
    roi_start: Shaping[list[float]] | None = None,
    save_attrs: bool = False,
    size: Shaping[list[float]] | None = None,
    subpixel_scale: bool = True,
) -> Spec | tuple[Spec, Spec]:
    """Resize images, each frame of a sequence, or volumes, as `fn.resize` does.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, sequences with F first (or CFHW); any numeric dtype.
        antialias: widen the filter when downscaling, so that no pixel is skipped. Ignored by nearest-neighbor
            interpolation.
        dtype: dtype of `x` (default) or FLOAT.
        interp_type: filter for downscaling and upscaling; by default INTERP_LINEAR.
        mag_filter: filter for upscaling; by default `interp_type`.
        max_size: maximum extents of the result, one for all axes or one each.
        min_filter: filter for downscaling; by default `interp_type`.
        mode: ``default``, ``stretch``, ``not_larger`` or ``not_smaller``; see `fn.resize`.
        resize_longer: extent of the longest axis in pixels; the aspect ratio is kept.
        resize_shorter: extent of the shortest axis in pixels; the aspect ratio is kept.
        resize_x: extent of W in pixels; 0: computed from the others; negative: mirrored.
        resize_y: the same for H.
        resize_z: the same for D.
        roi_end: end of the source region in pixels, one number per spatial axis. Less than `roi_start`: mirrored.
        roi_relative: the region is in fractions of the extents, 0 to 1.
        roi_start: start of the source region.
        save_attrs: also return the extents before the resize, int32 ``[spatial axes]``.
        size: extents in pixels, one for all spatial axes or one each, outermost first.
        subpixel_scale: if a computed extent is not an integer, adjust the region about its center to keep the exact
            scale.

    Returns:
        Same layout, new extents.

    Raises:
        ArgumentValueError: no size, or several; an unknown mode.
        LayoutError: the data is not images, volumes or sequences.
        DTypeError: a `dtype` that is neither FLOAT nor that of `x`.

    Example:
        >>> images = fn.experimental.resize(images, resize_shorter=256)  # doctest: +SKIP
    """
    return plain_resize.rule(
        x,
        antialias=antialias,
        dtype=dtype,
        interp_type=interp_type,
        mag_filter=mag_filter,
        max_size=max_size,
        min_filter=min_filter,
        mode=mode,
        resize_longer=resize_longer,
        resize_shorter=resize_shorter,
        resize_x=resize_x,
        resize_y=resize_y,
        resize_z=resize_z,
        roi_end=roi_end,
        roi_relative=roi_relative,
        roi_start=roi_start,
        save_attrs=save_attrs,
        size=size,
        subpixel_scale=subpixel_scale,
    )


assert plain_resize.prepare_function is not None
resize.geometry(plain_resize.prepare_function.function)
resize.cpu_samples(plain_resize.kernels["cpu"].function)
resize.gpu_samples(plain_resize.kernels["gpu"].function)
