"""Reshapes images of any layout to planes, with H and W adjacent, for filters.

Shared by median, dilation and erosion.
"""

from __future__ import annotations

import math
from typing import Any

from dalify.data.spec import Spec
from dalify.kernels.images.frames import frame_count, visual_layout

__all__ = ["FILTER_LAYOUTS", "filter_layout", "planes"]

FILTER_LAYOUTS = ("HW", "HWC", "FHWC", "CHW", "FCHW")


def filter_layout(x: Spec) -> str:
    """Return the layout of an input, one of `FILTER_LAYOUTS`.

    Raises:
        LayoutError: the layout is not supported.
    """
    return visual_layout(x, FILTER_LAYOUTS)


def planes(x: Any, layout: str) -> tuple[Any, int]:
    """Reshape a group to ``[N * frames, leading channels, H, W, trailing channels]``; also return the number of frames.

    Args:
        x: [N, ...], array or tensor.
        layout: layout of a sample.
    """
    frames = frame_count(layout, x.shape[1:])
    first = 1 + layout.index("H")
    behind = math.prod(x.shape[first + 2 :])
    in_front = math.prod(x.shape[1:first]) // max(frames, 1)
    return x.reshape(x.shape[0] * frames, in_front, *x.shape[first : first + 2], behind), frames
