"""Images of any layout as planes with their own extents last: for filters that look at neighbours.

Alone because the median, dilation and erosion take the same layouts and lay them out the same way.
"""

from __future__ import annotations

import math
from typing import Any

from dalify.data.spec import Spec
from dalify.kernels.frames import frame_count, visual_layout

__all__ = ["FILTER_LAYOUTS", "filter_layout", "planes"]

FILTER_LAYOUTS = ("HW", "HWC", "FHWC", "CHW", "FCHW")


def filter_layout(x: Spec) -> str:
    """Return the layout of an input, one of `FILTER_LAYOUTS`.

    Raises:
        LayoutError: another layout.
    """
    return visual_layout(x, FILTER_LAYOUTS)


def planes(x: Any, layout: str) -> tuple[Any, int]:
    """Return a group as ``[N * frames, channels in front, H, W, channels behind]`` and the number of frames.

    Args:
        x: [N, ...], array or tensor.
        layout: of one sample.
    """
    frames = frame_count(layout, x.shape[1:])
    first = 1 + layout.index("H")
    behind = math.prod(x.shape[first + 2 :])
    in_front = math.prod(x.shape[1:first]) // max(frames, 1)
    return x.reshape(x.shape[0] * frames, in_front, *x.shape[first : first + 2], behind), frames
