"""Resize images, sequences and volumes."""

from __future__ import annotations

from dalify.base.errors import DTypeError
from dalify.data.dtypes import DALIDataType, DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images.frames import visual_layout
from dalify.kernels.images.resample_axes import VISUAL_LAYOUTS, resample_axes
from dalify.kernels.images.resize_geometry import check_resize_arguments, chunk_geometry, resize_geometry, spatial_axes
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
    """Resize images, each frame of a sequence, or volumes.

    Pixel values are at the centers of the pixels. Downscaling is antialiased: the filter grows with the scale
    (`antialias`). Border pixels are replicated outside the image. The size must be specified in exactly one way.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, sequences with F first (or CFHW); any numeric dtype.
        antialias: widen the filter when downscaling, so that no pixel is skipped. Ignored by nearest-neighbor
            interpolation.
        dtype: dtype of `x` (default) or FLOAT; uint8 is rounded half away from zero.
        interp_type: filter for downscaling and upscaling; by default INTERP_LINEAR.
        mag_filter: filter for upscaling; by default `interp_type`.
        max_size: maximum extents of the result, one for all axes or one each; 0 or less: no limit. Modes that keep the
            aspect ratio still keep it.
        min_filter: filter for downscaling; by default `interp_type`.
        mode: ``default``: missing extents are scaled like the others; ``stretch``: missing extents are not changed;
            ``not_larger``: keep the aspect ratio, with no extent above its size; ``not_smaller``: keep it, with none
            below.
        resize_longer: extent of the longest axis in pixels; the aspect ratio is kept.
        resize_shorter: extent of the shortest axis in pixels; the aspect ratio is kept.
        resize_x: extent of W in pixels; 0: computed from the others; negative: mirrored.
        resize_y: the same for H.
        resize_z: the same for D.
        roi_end: end of the source region in pixels, one number per spatial axis. Less than `roi_start`:
            mirrored. Wide filters also read pixels around the region.
        roi_relative: the region is in fractions of the extents, 0 to 1.
        roi_start: start of the source region.
        save_attrs: also return the extents before the resize, int32 ``[spatial axes]``.
        size: extents in pixels, one for all spatial axes or one each, outermost first; 0: computed from the others;
            negative: mirrored.
        subpixel_scale: if a computed extent is not an integer, adjust the region about its center to keep the exact
            scale.

    Returns:
        Same layout, new extents.

    Raises:
        ArgumentValueError: no size, or several; an unknown mode.
        LayoutError: the data is not images, volumes or sequences.
        DTypeError: a `dtype` that is neither FLOAT nor that of `x`.

    Example:
        >>> images = fn.resize(images, resize_shorter=256)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, VISUAL_LAYOUTS))
    if dtype not in (None, x.dtype, DALIDataType.FLOAT):
        raise DTypeError(f"dtype must be the element type of the input or FLOAT; got {dtype!s}.")
    shaping = {
        "size": size,
        "resize_shorter": resize_shorter,
        "resize_longer": resize_longer,
        "resize_x": resize_x,
        "resize_y": resize_y,
        "resize_z": resize_z,
        "roi_start": roi_start,
        "roi_end": roi_end,
    }
    check_resize_arguments(mode=mode, **shaping)
    result = x.replace(dtype=dtype or x.dtype)
    first, last = spatial_axes(x.layout or "")
    if x.shape is not None:
        geometry = resize_geometry(
            x.shape[first:last],
            mode=mode,
            max_size=max_size,
            roi_relative=roi_relative,
            subpixel_scale=subpixel_scale,
            **shaping,
        )
        result = result.replace(shape=(*x.shape[:first], *geometry.size, *x.shape[last:]))
    if not save_attrs:
        return result
    known = None if x.shape is None else (last - first,)
    return result, Spec(DALIDataType.INT32, 1, "", known, x.device)


@resize.geometry
def _(
    x,
    *,
    spec,
    mode,
    max_size,
    roi_relative,
    subpixel_scale,
    save_attrs,
    size,
    resize_shorter,
    resize_longer,
    resize_x,
    resize_y,
    resize_z,
    roi_start,
    roi_end,
):
    first, last = spatial_axes(visual_layout(spec, VISUAL_LAYOUTS))
    shapes = x.shape_array()
    sizes, start, end = chunk_geometry(
        shapes[:, first:last],
        mode=mode,
        max_size=max_size,
        roi_relative=roi_relative,
        subpixel_scale=subpixel_scale,
        size=size,
        resize_shorter=resize_shorter,
        resize_longer=resize_longer,
        resize_x=resize_x,
        resize_y=resize_y,
        resize_z=resize_z,
        roi_start=roi_start,
        roi_end=roi_end,
    )
    windows = {"start": start, "end": end}
    if save_attrs:  # the outputs then have different shapes, which the rule computes
        return windows
    out_shapes = shapes.copy()
    out_shapes[:, first:last] = sizes
    return {**windows, "out_shapes": out_shapes}


@resize.cpu_samples
@resize.gpu_samples
@resize.triton
def _(out, *attributes_and_input, out_spec, start, end, antialias, interp_type, min_filter, mag_filter):
    *attributes, x = attributes_and_input
    filters = {"interp_type": interp_type, "min_filter": min_filter, "mag_filter": mag_filter}
    resample_axes(out, x, out_spec.layout, start, end, antialias=antialias, **filters)
    first, last = spatial_axes(out_spec.layout)
    for attribute in attributes:
        if isinstance(x, Samples):
            for target, shape in zip(attribute.arrays(), x.shapes, strict=True):
                target[:] = shape[first:last]
        else:
            attribute.block.copy_(uploaded(x.shapes[:, first:last].reshape(-1), x.device))
