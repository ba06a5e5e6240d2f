"""Crop, mirror and normalize for data with any visual layout on either device.

The kernels support only inputs [N, D, H, W, C], with planar or interleaved output. This module converts other layouts,
without a copy if possible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from dalify.base.recent import Recent
from dalify.base.small_arrays import all_of, any_of, with_column, zeros
from dalify.data.device_samples import DeviceSamples
from dalify.data.samples import Samples
from dalify.kernels.arrays.frozen import broadcast_to
from dalify.kernels.dispatch import prefer_triton
from dalify.kernels.images.crop_mirror_normalize import crop_mirror_normalize
from dalify.kernels.images.crop_mirror_normalize_torch import crop_mirror_normalize_torch
from dalify.kernels.images.normalize_samples_torch import normalize_samples_torch


def normalize_axes(
    out: Any,
    x: Any,
    layout: str,
    output_layout: str,
    start: np.ndarray,
    *,
    mirror: np.ndarray,
    mean: np.ndarray | list[np.ndarray],
    std: np.ndarray | list[np.ndarray],
    scale: float,
    shift: float,
    fill_values: Sequence[float] | np.ndarray,
) -> None:
    """Set ``out = scale * (window of x - mean) / std + shift``, optionally mirrored, with another order of axes.

    Args:
        out: [N, ...], output; array, tensor, `Samples` or `DeviceSamples`. Channels that `x` does not have are filled.
        x: [N, ...], same type.
        layout: layout of a sample of `x`: F, C, D, H and W, each at most once.
        output_layout: layout of a sample of `out`, a permutation of `layout`.
        start: int64 [N, ndim], start of the windows, which may exceed `x`.
        mirror: [N], non-zero: reverse W.
        mean: float [N, C] or [N, 1], or a list of N vectors.
        std: like `mean`.
        scale: factor.
        shift: added at the end.
        fill_values: value of `out` outside `x`: one for all channels, or one for each; 0 for channels without one.
    """
    options: dict[str, Any] = {"scale": scale, "shift": shift, "fill_values": fill_values}
    if isinstance(x, Samples):
        normalize_samples(out, x, layout, output_layout, start, mirror, mean, std, options)
        return
    if isinstance(x, DeviceSamples):
        _normalize_on_device(out, x, layout, output_layout, start, mirror, mean, std, options)
        return
    first = dict(zip(layout, start.T, strict=True))
    size = dict(zip(output_layout, out.shape[1:], strict=True))
    extents = dict(zip(layout, x.shape[1:], strict=True))
    samples, channels = x.shape[0], extents["C"]
    mean = broadcast_to(mean, (samples, channels), np.float32)
    multiplier = multiplier_of(broadcast_to(std, (samples, channels), np.float32), scale)
    fill_values = _fill_values_of_channels(fill_values, size["C"])
    # Planes that stay planar are computed as images with one channel, and frames as images if all of them are used.
    keeps_planes = (
        layout == output_layout and layout[-1] != "C" and size["C"] == channels and len(set(fill_values.tolist())) == 1
    )
    keeps_frames = "F" in layout and size["F"] == extents["F"] and not first["F"].any()
    lead = [letter for letter in layout if (letter == "C" and keeps_planes) or (letter == "F" and keeps_frames)]
    depth = [letter for letter in layout if letter in "FD" and letter not in lead]
    color = [] if keeps_planes else ["C"]
    copies = math.prod(extents[letter] for letter in lead)

    def rearranged(data: Any, have: str, want: Sequence[str]) -> Any:
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

    source = rearranged(x, layout, [*lead, *depth, "H", "W", *color])
    source = source.reshape(samples * copies, *extent_of(extents), 1 if keeps_planes else channels)
    starts = np.stack([first[depth[0]] if depth else zeros(samples, np.int64), first["H"], first["W"]], 1)
    planes = [*lead, *color, *depth, "H", "W"]
    is_planar = list(output_layout) != [*lead, *depth, "H", "W", *color] or keeps_planes
    is_direct = not is_planar or list(output_layout) == planes
    out_channels = 1 if keeps_planes else size["C"]
    form = (out_channels, *extent_of(size)) if is_planar else (*extent_of(size), out_channels)
    if is_direct:
        target = out.reshape(samples * copies, *form)
    elif isinstance(x, np.ndarray):
        target = np.empty((samples * copies, *form), out.dtype)
    else:
        target = out.new_empty((samples * copies, *form))
    is_array = isinstance(x, np.ndarray)
    kernel: Any = crop_mirror_normalize if is_array else crop_mirror_normalize_torch
    kernel(
        Samples.of_dense(target) if is_array else target,
        Samples.of_dense(np.ascontiguousarray(source)) if is_array else source,
        np.repeat(starts, copies, axis=0),
        mirror=np.repeat(mirror, copies),
        mean=of_channels(mean),
        multiplier=of_channels(multiplier),
        shift=shift,
        fill_values=fill_values[:1] if keeps_planes else fill_values,
        is_planar=is_planar,
    )
    if not is_direct:
        whole = target.reshape(samples, *(size[letter] for letter in planes))
        out[...] = rearranged(whole, "".join(planes), output_layout)


def multiplier_of(std: np.ndarray, scale: float) -> np.ndarray:
    """Return ``scale / std``, float32; infinite for 0."""
    divisor, factor = np.asarray(std, np.float32), np.float32(scale)
    if all_of(divisor, None):  # np.errstate takes longer than the division
        return factor / divisor
    with np.errstate(divide="ignore"):
        return factor / divisor


def _fill_values_of_channels(fill_values: Sequence[float] | np.ndarray, channels: int) -> np.ndarray:
    """Return the fill values of all channels, float32 [channels]; see `normalize_axes`."""
    found = np.zeros(channels, np.float32)
    if len(fill_values) == 1:
        found[:] = fill_values[0]
    else:
        found[: len(fill_values)] = fill_values
    return found


def normalize_samples(
    out: Samples,
    x: Samples,
    layout: str,
    output_layout: str,
    start: np.ndarray,
    mirror: np.ndarray,
    mean: np.ndarray | list[np.ndarray],
    std: np.ndarray | list[np.ndarray],
    options: Mapping[str, Any],
) -> None:
    """`normalize_axes` for `Samples`, in one call if numbers of channels are equal and the layout is common.

    `options` are ``scale``, ``shift`` and ``fill_values``.
    """
    channels = x.extents(layout.index("C"))
    is_mixed = x.array is None and bool(any_of(channels != channels[0]))
    if not is_mixed and _keep_planes(out, x, layout, output_layout, start, options["fill_values"]):
        _normalize_planes(out, x, layout.index("C") + 1, start, mirror, mean, std, options)
        return
    is_usual, is_frames = _layouts(layout, output_layout)
    if is_frames:
        is_frames = not start[:, 0].any() and bool((out.extents(0) == x.extents(0)).all())
    if not (is_usual or is_frames) and x.dense is not None and out.dense is not None:
        rows = {"mean": rows_of(mean), "std": rows_of(std)}
        normalize_axes(out.dense, x.dense, layout, output_layout, start, mirror=mirror, **rows, **options)
        return
    if is_mixed or not (is_usual or is_frames):
        # Samples with equal numbers of channels together; for uncommon layouts, each sample separately.
        places = [np.flatnonzero(channels == kind) for kind in np.unique(channels)] if is_mixed else None
        for at in places or [np.array([n]) for n in range(len(x))]:
            target, source = out.take(at), x.take(at)
            if places is None:
                target, source = next(target.arrays())[None], next(source.arrays())[None]
            means, deviations = (np.stack([values[n] for n in at]) for values in (mean, std))
            own = {"mirror": mirror[at], "mean": means, "std": deviations}
            normalize_axes(target, source, layout, output_layout, start[at], **own, **options)
        return
    count, flags = int(channels[0]), mirror
    means, multipliers = channel_values(mean, std, options["scale"], (channels.size, count))
    is_volume = len(layout) == 4 and not is_frames
    windows = np.ascontiguousarray(start[:, :3]) if is_volume else with_column(start[:, -3:-1], 0, 0)
    is_planar = output_layout[-1] != "C"
    if is_frames:
        (x, owner), (out, _) = x.folded(1), out.folded(1)
        windows, flags, means, multipliers = windows[owner], mirror[owner], means[owner], multipliers[owner]
    if x.ndim == 3:
        x, out = x.with_axis(0), out.with_axis(1 if is_planar else 0)
    out_channels = int(out.shapes[0, 0 if is_planar else -1]) if len(out) else count
    crop_mirror_normalize(
        out,
        x,
        windows,
        mirror=flags,
        mean=means,
        multiplier=multipliers,
        shift=options["shift"],
        fill_values=_fill_values_of_channels(options["fill_values"], out_channels),
        is_planar=is_planar,
    )


def _keep_planes(
    out: Samples,
    x: Samples,
    layout: str,
    output_layout: str,
    start: np.ndarray,
    fill_values: Sequence[float] | np.ndarray,
) -> bool:
    """Return whether `_normalize_planes` supports the samples: planes of whole frames, and one fill value."""
    lead = layout.index("C") + 1
    is_supported = layout == output_layout and layout[:lead] in ("C", "FC") and len(layout) - lead in (2, 3)
    if not is_supported or len(set(fill_values)) > 1:
        return False
    return all(not start[:, axis].any() and bool((out.extents(axis) == x.extents(axis)).all()) for axis in range(lead))


def _normalize_planes(
    out: Samples,
    x: Samples,
    lead: int,
    start: np.ndarray,
    mirror: np.ndarray,
    mean: np.ndarray | list[np.ndarray],
    std: np.ndarray | list[np.ndarray],
    options: Mapping[str, Any],
) -> None:
    """Normalize the planes of all samples in one call, as images with one channel.

    `lead` is the number of axes before those of a plane; the last of them is the channel.
    """
    count = int(x.extents(lead - 1)[0])
    means, multipliers = channel_values(mean, std, options["scale"], (len(x), count))
    (planes, owner), (targets, _) = x.folded(lead), out.folded(lead)
    assert owner is not None, "dalify bug: planes without their samples"
    channel = np.arange(len(owner)) % count if count else owner
    windows = start[owner, lead:]
    if planes.ndim == 2:
        planes, targets, windows = planes.with_axis(0), targets.with_axis(0), with_column(windows, 0, 0)
    crop_mirror_normalize(
        targets.with_axis(0),
        planes.with_axis(3),
        windows,
        mirror=mirror[owner],
        mean=means[owner, channel][:, None],
        multiplier=multipliers[owner, channel][:, None],
        shift=options["shift"],
        fill_values=_fill_values_of_channels(options["fill_values"], 1),
    )


@cache
def _layouts(layout: str, output_layout: str) -> tuple[bool, bool]:
    """Return whether the kernel supports these layouts, and whether it supports them for each frame."""
    is_usual = layout in ("HWC", "DHWC", "FHWC") and output_layout in (layout, "C" + layout.replace("C", ""))
    return is_usual, layout == "FHWC" and output_layout in ("FHWC", "FCHW")


def channel_values(
    mean: np.ndarray | list[np.ndarray], std: np.ndarray | list[np.ndarray], scale: float, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and multipliers, float32 [N, C]; those of constants, which are read-only arrays, are cached.

    Args:
        mean: float [N, C] or [N, 1], or a list of N vectors.
        std: like `mean`.
        scale: see `multiplier_of`.
        shape: N and C.
    """
    key = id(mean), id(std), scale, shape
    found = _known_values.get(key)
    if found is None or found[0] is not mean or found[1] is not std:
        means, deviations = (broadcast_to(rows_of(values), shape, np.float32) for values in (mean, std))
        found = mean, std, (means, multiplier_of(deviations, scale))
        if all(isinstance(values, np.ndarray) and not values.flags.writeable for values in (mean, std)):
            _known_values.put(key, found)
    return found[2]


_known_values: Recent[tuple[Any, Any, tuple[np.ndarray, np.ndarray]]] = Recent(64)


@prefer_triton("windows", "normalize_samples")
def _normalize_on_device(
    out: DeviceSamples,
    x: DeviceSamples,
    layout: str,
    output_layout: str,
    start: np.ndarray,
    mirror: np.ndarray,
    mean: np.ndarray | list[np.ndarray],
    std: np.ndarray | list[np.ndarray],
    options: Mapping[str, Any],
) -> None:
    if x.dense is not None and out.dense is not None:
        rows = {"mean": rows_of(mean), "std": rows_of(std)}
        normalize_axes(out.dense, x.dense, layout, output_layout, start, mirror=mirror, **rows, **options)
        return
    scale = options["scale"]
    normalize_samples_torch(
        out,
        x,
        layout,
        output_layout,
        start,
        mirror=mirror,
        mean=mean,
        multiplier=[multiplier_of(row, scale) for row in std] if isinstance(std, list) else multiplier_of(std, scale),
        shift=options["shift"],
        fill_values=_fill_values_of_channels(options["fill_values"], int(out.extents(output_layout.index("C")).max())),
    )


def rows_of(values: Any) -> np.ndarray:
    """Return vectors of equal length, one per sample, as one array [N, k]."""
    return np.stack(values) if isinstance(values, list) else values
