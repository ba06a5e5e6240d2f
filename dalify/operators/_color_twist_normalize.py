"""Change the colors of images, mirror and normalize them, on the CPU.

The pass ``fuse`` inserts it; users do not call it.
"""

from __future__ import annotations

from typing import Any

from dalify.data import Batch, DALIDataType, Samples
from dalify.kernels.images.color_twist import check_channels, twist_matrices
from dalify.kernels.images.planes import normalize_mixed
from dalify.kernels.images.resample_normalized import in_order
from dalify.parameter_groups.colors import Colors
from dalify.parameter_groups.normalization import Normalization, check_channel_values
from dalify.registry import Spec, Vectors, operator


@operator
def _color_twist_normalize(
    x: Spec,
    /,
    *,
    colors: Colors,
    dtype: DALIDataType = DALIDataType.FLOAT,
    normalization: Normalization,
) -> Spec:
    """Change hue, saturation, contrast and brightness of images, mirror and normalize them.

    Args:
        x: images HWC, uint8.
        dtype: FLOAT.

    Returns:
        dtype `dtype`, layout CHW, extents of `x`.
    """
    shape = None if x.shape is None else tuple(in_order(x.shape, "CHW"))
    return Spec(dtype, 3, "CHW", shape, x.device)


@_color_twist_normalize.geometry
def _(x: Batch, *, mean: Vectors, std: Vectors) -> dict[str, Any]:
    shapes = x.shape_array()
    check_channels(shapes[:, 2])
    check_channel_values(mean, std, shapes[:, 2])
    return {"out_shapes": shapes[:, [2, 0, 1]]}


@_color_twist_normalize.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    colors: Colors,
    normalization: Normalization,
    spec: Spec,
) -> None:
    mixing = twist_matrices(x, spec, **colors.values)
    normalize_mixed(out, x, *mixing, normalization.values)
