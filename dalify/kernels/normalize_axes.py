"""Crop, mirror and normalise data of any visual layout on either device.

Alone in a file so that the kernels know one form only, [N, D, H, W, C] to planes or pixels: here layouts become that
form, without a copy wherever the axes stand right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.kernels.crop_mirror_normalize import crop_mirror_normalize
from dalify.kernels.crop_mirror_normalize_torch import crop_mirror_normalize_torch

__all__ = ["normalize_axes"]


def normalize_axes(
    out: Any,
    x: Any,
    layout: str,
    out_layout: str,
    anchors: Mapping[str, np.ndarray],
    *,
    mirror: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray,
    scale: float,
    shift: float,
    fill_values: Sequence[float],
) -> None:
    """Set ``out = scale * (window of x - mean) / std + shift``, mirrored where asked, in another order of axes.

    Args:
        out: [N, ...], to fill; array or tensor. More channels than `x` has are filled, too.
        x: [N, ...], of the same kind.
        layout: of a sample of `x`: F, C, D, H and W, each at most once.
        out_layout: of a sample of `out`, a permutation of `layout`.
        anchors: letter to int [N]: where the windows begin; they may reach out of `x`.
        mirror: [N], non-zero: reverse W.
        mean: float [N, C].
        std: float [N, C].
        scale: factor.
        shift: added at the end.
        fill_values: value of `out` outside `x`: one for all channels, or one per channel of `x` and 0 for the others.
    """
    size = dict(zip(out_layout, out.shape[1:], strict=True))
    extents = dict(zip(layout, x.shape[1:], strict=True))
    samples, channels = x.shape[0], extents["C"]
    with np.errstate(divide="ignore"):
        multiplier = np.float32(scale) / std.astype(np.float32)
    fill = np.zeros(size["C"], np.float32)
    fill[: channels if len(fill_values) > 1 else None] = fill_values

    if layout == "HWC" and out_layout in ("CHW", "HWC") and isinstance(x, np.ndarray):
        # What nearly every pipeline does: ragged batches come here image by image, so nothing is worked out below.
        windows = np.zeros((samples, 3), np.int64)
        windows[:, 1], windows[:, 2] = anchors["H"], anchors["W"]
        is_planar = out_layout == "CHW"
        target = out[:, :, None] if is_planar else out[:, None]
        crop_mirror_normalize(
            target, x[:, None], windows, mirror=mirror, mean=mean, multiplier=multiplier, shift=shift, fill=fill,
            is_planar=is_planar,
        )  # fmt: skip
        return
    # Planes that stay planes are so many images of one channel; so are frames, if all of them are taken.
    keeps_planes = layout == out_layout and layout[-1] != "C" and size["C"] == channels and len(set(fill.tolist())) == 1
    keeps_frames = "F" in layout and size["F"] == extents["F"] and not anchors["F"].any()
    lead = [letter for letter in layout if (letter == "C" and keeps_planes) or (letter == "F" and keeps_frames)]
    depth = [letter for letter in layout if letter in "FD" and letter not in lead]
    colour = [] if keeps_planes else ["C"]
    copies = math.prod(extents[letter] for letter in lead)

    def arranged(data: Any, have: str, want: Sequence[str]) -> Any:
        order = (0, *(1 + have.index(letter) for letter in want))
        return data.transpose(order) if isinstance(data, np.ndarray) else data.permute(order)

    def of_channels(values: np.ndarray) -> np.ndarray:
        if not keeps_planes:
            return np.repeat(values, copies, axis=0)
        form = (samples, *(channels if letter == "C" else 1 for letter in lead))
        whole = (samples, *(extents[letter] for letter in lead))
        return np.broadcast_to(values.reshape(form), whole).reshape(-1, 1)

    def extent_of(extents: Mapping[str, int]) -> tuple[int, int, int]:
        return (math.prod(extents[letter] for letter in depth), extents["H"], extents["W"])

    source = arranged(x, layout, [*lead, *depth, "H", "W", *colour])
    source = source.reshape(samples * copies, *extent_of(extents), 1 if keeps_planes else channels)
    begins = np.stack([anchors[depth[0]] if depth else np.zeros(samples, np.int64), anchors["H"], anchors["W"]], 1)
    planes = [*lead, *colour, *depth, "H", "W"]
    is_planar = list(out_layout) != [*lead, *depth, "H", "W", *colour] or keeps_planes
    is_direct = not is_planar or list(out_layout) == planes
    out_channels = 1 if keeps_planes else size["C"]
    form = (out_channels, *extent_of(size)) if is_planar else (*extent_of(size), out_channels)
    if is_direct:
        target = out.reshape(samples * copies, *form)
    elif isinstance(x, np.ndarray):
        target = np.empty((samples * copies, *form), out.dtype)
    else:
        target = out.new_empty((samples * copies, *form))
    kernel: Any = crop_mirror_normalize if isinstance(x, np.ndarray) else crop_mirror_normalize_torch
    kernel(
        target,
        source,
        np.repeat(begins, copies, axis=0),
        mirror=np.repeat(mirror, copies),
        mean=of_channels(mean),
        multiplier=of_channels(multiplier),
        shift=shift,
        fill=fill[:1] if keeps_planes else fill,
        is_planar=is_planar,
    )
    if not is_direct:
        whole = target.reshape(samples, *(size[letter] for letter in planes))
        out[...] = arranged(whole, "".join(planes), out_layout)
