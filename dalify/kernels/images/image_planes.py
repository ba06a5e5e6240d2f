"""Images of any layout as single images [H, W] or [H, W, C], for median, dilation and erosion."""

from __future__ import annotations

import numpy as np

from dalify.base.small_arrays import rows_at
from dalify.data.samples import Samples
from dalify.data.spec import Spec
from dalify.kernels.images.frames import folded_frames, visual_layout

FILTER_LAYOUTS = ("HW", "HWC", "FHWC", "CHW", "FCHW")


def filter_layout(x: Spec) -> str:
    """Return the layout of an input, one of `FILTER_LAYOUTS`.

    Raises:
        LayoutError: the layout is not supported.
    """
    return visual_layout(x, FILTER_LAYOUTS)


def single_images(out: Samples, x: Samples, layout: str, rows: np.ndarray) -> tuple[Samples, Samples, np.ndarray]:
    """Return results and inputs as images [H, W] or [H, W, C], and the parameters of each image.

    Args:
        out: N samples.
        x: N samples of the same shapes.
        layout: layout of a sample.
        rows: parameters of each frame of all samples, [frames, k].
    """
    target, source = folded_frames(out, layout), folded_frames(x, layout)
    if not layout.endswith("CHW"):
        return target, source, rows
    planes, owners = source.folded(1)
    assert owners is not None, "dalify bug: planes without owners"
    return target.folded(1)[0], planes, rows_at(rows, owners)
