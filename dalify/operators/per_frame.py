"""Mark data as one entry per frame."""

from __future__ import annotations

from dalify.base.errors import LayoutError
from dalify.registry import Spec, operator


@operator(allocating=True)
def per_frame(x: Spec, /, *, replace: bool = False) -> Spec:
    """Mark data as one entry per frame, to be used as a per-frame argument. Only the layout changes.

    Data without a layout get "F" and a "*" for each further axis.

    Args:
        x: at least one axis, the first of which counts frames.
        replace: write F over the first letter of a layout; False: a layout has to begin with F already.

    Returns:
        The same elements.

    Raises:
        LayoutError: no axis, or a layout with another first letter.

    Example:
        >>> images = fn.gaussian_blur(video, sigma=fn.per_frame(sigmas))  # doctest: +SKIP
    """
    layout = x.layout or ""
    if x.ndim == 0:
        raise LayoutError("single numbers have no axis that could count frames.")
    if not layout:
        return x.replace(layout="F" + "*" * ((x.ndim or 1) - 1))
    if layout[0] != "F" and not replace:
        raise LayoutError(
            f"the layout {layout!r} does not begin with F.", hint="Say replace=True if the first axis counts frames."
        )
    return x.replace(layout="F" + layout[1:])


@per_frame.view
def _(x):
    return x
