"""Resize images, sequences and volumes."""

from __future__ import annotations

from dalify.base.errors import DTypeError
from dalify.data.dtypes import DALIDataType, DALIInterpType
from dalify.data.samples import Samples
from dalify.kernels.frames import visual_layout
from dalify.kernels.resample_axes import VISUAL_LAYOUTS, resample_axes
from dalify.kernels.resize_geometry import check_resize_arguments, chunk_geometry, resize_geometry, spatial_axes
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

    A pixel is a square and its value lies in the middle of it. Reductions are antialiased: the filter grows with the
    scale (`antialias`). Beyond the border of the image its last pixels repeat. The size is given in exactly one way.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, sequences with F in front (or CFHW); any numeric dtype.
        antialias: widen the filter of reductions, so that no pixel is skipped. Without effect on nearest neighbours.
        dtype: dtype of `x` (default) or FLOAT; uint8 is rounded half away from zero.
        interp_type: filter for both directions; INTERP_LINEAR where not given.
        mag_filter: filter for axes that do not shrink; `interp_type` where not given.
        max_size: largest extents of the result, one for all axes or one each; 0 or less: no limit. Modes that keep the
            aspect ratio still do.
        min_filter: filter for axes that shrink; `interp_type` where not given.
        mode: ``default``: missing extents follow the others' scale; ``stretch``: they stay; ``not_larger``: keep the
            aspect ratio and let no extent exceed its size; ``not_smaller``: keep it and let none fall below.
        resize_longer: extent of the longest axis in pixels; the aspect ratio is kept.
        resize_shorter: extent of the shortest axis in pixels; the aspect ratio is kept.
        resize_x: extent of W in pixels; 0: by the others; negative: mirrored.
        resize_y: the same for H.
        resize_z: the same for D.
        roi_end: where the source region ends, in pixels, one number per spatial axis. Before `roi_start`:
            mirrored. Wide filters read around the region.
        roi_relative: the region is in parts of the extents, 0..1.
        roi_start: where the source region begins.
        save_attrs: also return the extents before the resize, int32 ``[spatial axes]``.
        size: extents in pixels, one for all spatial axes or one each, outermost first; 0: by the others; negative:
            mirrored.
        subpixel_scale: where a computed extent was not whole, the region is adjusted about its centre to keep the
            scale.

    Returns:
        Same layout, new extents.

    Raises:
        ArgumentValueError: no size, or several; an unknown mode.
        LayoutError: the data are no images, volumes or sequences.
        DTypeError: a `dtype` that is neither FLOAT nor that of `x`.

    Example:
        >>> images = fn.resize(images, resize_shorter=256)  # doctest: +SKIP
    """
    x = x.replace(layout=visual_layout(x, VISUAL_LAYOUTS))
    if dtype not in (None, x.dtype, DALIDataType.FLOAT):
        raise DTypeError(f"resize returns the input's element type or FLOAT; dtype is {dtype!s}.")
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
    if save_attrs:  # then the outputs have different shapes, which the rule tells
        return windows
    out_shapes = shapes.copy()
    out_shapes[:, first:last] = sizes
    return {**windows, "out_shapes": out_shapes}


@resize.cpu_samples
@resize.gpu
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
            for axis, extent in enumerate(x.shape[1 + first : 1 + last]):
                attribute[:, axis] = extent
