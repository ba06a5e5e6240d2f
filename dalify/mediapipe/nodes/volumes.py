"""Operators on volumes and their labels, for training 3D U-Nets."""

from __future__ import annotations

from collections.abc import Sequence

from dalify import fn as dali
from dalify.base.errors import ArgumentValueError, LayoutError
from dalify.data import DALIInterpType
from dalify.graph import DataNode
from dalify.mediapipe.media_types import dtype as types
from dalify.mediapipe.media_types import to_dalify_type
from dalify.mediapipe.node import Value, extents, operator, seed_of

_SPATIAL_AXES = [1, 2, 3]


def _check(*values: Value) -> None:
    for value in values:
        if value.layout != "CDHW":
            raise LayoutError(f"volumes with layout CDHW are required; got layout {value.layout!r}.")


@operator()
def BasicCrop(
    volume: Value,
    /,
    *,
    patch_size: Sequence[int],
    num_channels: int = 1,
    center_crop: bool = True,
) -> Value:
    """Crop a patch from volumes.

    Args:
        volume: CDHW, in NumPy's order.
        patch_size: [width, height, depth].
        num_channels: accepted but ignored.
        center_crop: crop the center; otherwise the first corner.
    """
    del num_channels
    _check(volume)
    place = 0.5 if center_crop else 0.0
    size = extents(patch_size, 3, "patch_size")
    patch = dali.crop(volume.node, crop=size, crop_pos_x=place, crop_pos_y=place, crop_pos_z=place)
    return volume.with_node(patch)


@operator(outputs=2)
def RandomBiasedCrop(
    images: Value,
    labels: Value,
    /,
    *,
    patch_size: Sequence[int],
    over_sampling: float = 0.33,
    seed: int | None = None,
    num_channels: int = 1,
) -> tuple[Value, Value]:
    """Crop a random patch from volumes and their labels, preferably one that contains an object.

    With probability `over_sampling`, a label is chosen, and one of its two largest connected objects; the patch then
    covers it, as far as possible. Otherwise the position is random.

    Args:
        images: CDHW.
        labels: CDHW, integers with one channel; 0 is the background.
        patch_size: [width, height, depth].
        over_sampling: probability of a patch that contains an object.
        seed: seed of the random numbers.
        num_channels: accepted but ignored.
    """
    del num_channels
    _check(images, labels)
    if not 0 <= over_sampling <= 1:
        raise ArgumentValueError(f"over_sampling must be in [0, 1]; got {over_sampling}.")
    patch = extents(patch_size, 3, "patch_size")
    classes = dali.cast(labels.node, dtype=to_dalify_type(types.INT32))
    start, end = dali.segmentation.random_object_bbox(
        classes, format="start_end", foreground_prob=over_sampling, k_largest=2, background=0, seed=seed_of(seed)
    )
    anchor = dali.roi_random_crop(
        crop_shape=patch, roi_start=start[1:], roi_end=end[1:], in_shape=labels.node.shape()[1:], seed=seed_of(seed)
    )

    def part(volume: DataNode) -> DataNode:
        return dali.slice(volume, start=anchor, shape=patch, axes=_SPATIAL_AXES)

    return images.with_node(part(images.node)), labels.with_node(part(labels.node))


@operator(outputs=2)
def Zoom(
    images: Value,
    labels: Value,
    crop_size: Value,
    /,
    *,
    patch_size: Sequence[int],
    num_channels: int = 1,
) -> tuple[Value, Value]:
    """Crop the center of volumes and their labels and resize it to `patch_size`.

    Args:
        images: CDHW; resized with cubic interpolation.
        labels: CDHW; resized with nearest-neighbor interpolation.
        crop_size: ``[N, 3]``: depth, height, width of the crop.
        patch_size: [width, height, depth].
        num_channels: accepted but ignored.
    """
    del num_channels
    _check(images, labels)
    patch = extents(patch_size, 3, "patch_size")
    integer = to_dalify_type(types.INT64)
    size = dali.cast(crop_size.node, dtype=integer)

    def zoomed(volume: DataNode, filter_type: DALIInterpType) -> DataNode:
        shape = dali.cast(volume.shape(), dtype=integer)[1:]
        middle = dali.slice(volume, start=(shape - size) // 2, shape=size, axes=_SPATIAL_AXES)
        return dali.resize(middle, size=patch, interp_type=filter_type, antialias=False)

    image = zoomed(images.node, DALIInterpType.INTERP_CUBIC)
    return images.with_node(image), labels.with_node(zoomed(labels.node, DALIInterpType.INTERP_NN))
