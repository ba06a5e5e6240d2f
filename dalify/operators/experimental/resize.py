"""Resize images, sequences and volumes: an alias of fn.resize.

In DALI, this operator uses another GPU library than fn.resize; arguments and results are the same.
"""

from __future__ import annotations

from dalify.data import DALIDataType
from dalify.operators.resize import resize as plain_resize
from dalify.parameter_groups.resize import Filters, ResizeSize
from dalify.registry import Spec, operator


@operator(alphabetical=True, outputs=lambda arguments: 2 if arguments.get("save_attrs") else 1)
def resize(
    x: Spec,
    /,
    *,
    filters: Filters,
    dtype: DALIDataType | None = None,
    target: ResizeSize,
    save_attrs: bool = False,
) -> Spec | tuple[Spec, Spec]:
    """Resize images, each frame of a sequence, or volumes, as `fn.resize` does.

    Args:
        x: images HWC or CHW, volumes DHWC or CDHW, sequences with F first (or CFHW); any numeric dtype.
        dtype: dtype of `x` (default) or FLOAT.
        save_attrs: also return the extents before the resize, int32 ``[spatial axes]``.

    Returns:
        Same layout, new extents.

    Raises:
        ArgumentValueError: no size, or several; an unknown mode.
        LayoutError: the data is not images, volumes or sequences.
        DTypeError: a `dtype` that is neither FLOAT nor the dtype of `x`.

    Example:
        >>> images = fn.experimental.resize(images, resize_shorter=256)  # doctest: +SKIP
    """
    return plain_resize.rule(x, target=target, filters=filters, dtype=dtype, save_attrs=save_attrs)


resize.prepare_function = plain_resize.prepare_function
resize.kernels = plain_resize.kernels
