"""Mark data as one entry per frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import LayoutError
from dalify.base.optional import torch
from dalify.registry import Spec, operator


@operator
def per_frame(x: Spec, /, *, replace: bool = False) -> Spec:
    """Mark data as one entry per frame, to be used as a per-frame argument. Only the layout changes.

    Data without a layout gets "F" and a "*" for each further axis.

    Args:
        x: data with at least one axis, the first of which is the frames.
        replace: replace the first letter of a layout by F; False: a layout must already start with F.

    Returns:
        The same elements.

    Raises:
        LayoutError: no axis, or a layout that does not start with F.

    Example:
        >>> images = fn.gaussian_blur(video, sigma=fn.per_frame(sigmas))  # doctest: +SKIP
    """
    layout = x.layout or ""
    if x.ndim == 0:
        raise LayoutError("the data must have an axis of frames; got scalars.")
    if not layout:
        return x.replace(layout="F" + "*" * ((x.ndim or 1) - 1))
    if layout[0] != "F" and not replace:
        raise LayoutError(
            f"the layout {layout!r} does not start with F.", hint="Pass replace=True if the first axis is the frames."
        )
    return x.replace(layout="F" + layout[1:])


@per_frame.view
def _(x: np.ndarray | torch.Tensor) -> Any:
    return x
