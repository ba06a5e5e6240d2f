"""Sequences of frames for operators on single images: each frame is a sample with its own arguments.

The arguments of many operators have either one entry per sample, [N, k], or one per frame, [N, F, k], if the layout of
the argument starts with F. For single images, that F has no meaning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dalify.base.errors import LayoutError, ShapeError
from dalify.base.wording import counted
from dalify.data import DALIDataType, Spec


def visual_layout(spec: Spec, allowed: Sequence[str]) -> str:
    """Return the layout of an input; without a layout, the first allowed one with the same number of dimensions.

    Raises:
        LayoutError: the layout is not allowed, or no allowed layout has this number of dimensions.
    """
    given = spec.layout or ""
    if given in allowed:
        return given
    options = ", ".join(dict.fromkeys(allowed))
    if given:
        raise LayoutError(
            f"the input has layout {given!r}; this operator supports {options}.",
            hint=_to_allowed_layout(given, allowed),
        )
    for layout in allowed:
        if len(layout) == spec.ndim:
            return layout
    dimensions = counted(spec.ndim, "dimension")
    hint = "Change the number of dimensions with fn.reshape or fn.expand_dims."
    if spec.ndim == 1 and spec.dtype is DALIDataType.UINT8:
        hint = "Decode images first: fn.decoders.image(...)."
    elif spec.ndim == 2 and "HWC" in allowed:
        hint = "Add an axis of channels first: fn.expand_dims(x, axes=[2])."
    raise LayoutError(f"the input has {dimensions} and no layout; this operator supports {options}.", hint=hint)


def _to_allowed_layout(given: str, allowed: Sequence[str]) -> str:
    """Return a hint on how to convert data of a layout that is not allowed."""
    if f"{given}C" in allowed:
        return f"Add an axis of channels first: fn.expand_dims(x, axes=[{len(given)}], new_axis_names='C')."
    for layout in allowed:
        if sorted(layout) == sorted(given):
            return f"Transpose first: fn.transpose(x, perm={[given.index(letter) for letter in layout]})."
    return f"If the axes have another meaning, set the layout, for example fn.reshape(x, layout={allowed[0]!r})."


def default_layout(spec: Spec) -> str:
    """Return the layout of an input; without one, the layout of images or volumes with this number of dimensions."""
    return spec.layout or {2: "HW", 3: "HWC", 4: "DHWC"}.get(spec.ndim or 0, "")


def frame_counts(shapes: np.ndarray, layout: str) -> np.ndarray:
    """Return the number of frames of samples with the shapes [N, ndim], int64 [N]; 1 without a frame axis."""
    return shapes[:, 0] if layout.startswith("F") else _ones(len(shapes))


@lru_cache(64)  # chunks have few numbers of samples
def _ones(count: int) -> np.ndarray:
    ones = np.ones(count, np.int64)
    ones.flags.writeable = False
    return ones


def flat_frames(x: Any, layout: str) -> Any:
    """Reshape an array or tensor [N, F, ...] to [N * F, ...]; single images are unchanged."""
    if not layout.startswith("F"):
        return x
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def folded_frames(x: Any, layout: str) -> Any:
    """Return each frame of sequences (`Samples` or `DeviceSamples`) as a sample; single images are unchanged."""
    return x.folded(1)[0] if layout.startswith("F") else x


def leading_axes(layout: str) -> int:
    """Return the number of axes up to that of the frames; 0 without frames. Each index along them is an image."""
    return layout.find("F") + 1


def _per_sample(values: Any) -> Any:
    """Return an argument of single images, [N, k] or N vectors: an axis F of the argument has no meaning for them."""
    if isinstance(values, np.ndarray):
        return values.reshape(len(values), -1)
    return [value.reshape(-1) for value in values]


def flat_matrices(values: Any, columns: Any, name: str) -> Any:
    """Return matrices row by row: [N, k] or [N, F, k], or N such arrays.

    Args:
        values: constants [N, k], numbers [N, 1] or [N, F, 1, 1], or matrices [N, ..., rows, columns], or a list of N of
            them.
        columns: of the matrices, or of those of each sample; None for one more than rows.
        name: name of the argument, for the error.

    Raises:
        ShapeError: a matrix has another number of columns.
    """
    if isinstance(values, np.ndarray) and values.ndim <= 2:
        return values
    for n, value in enumerate(values):
        if value.ndim < 2 or (value.ndim > 2 and value.shape[-2:] == (1, 1)):  # a number, or one for each frame
            continue
        expected = value.shape[-2] + 1 if columns is None else columns if isinstance(columns, int) else columns[n]
        if value.shape[-1] != expected:
            raise ShapeError(
                f"{name} must have {counted(expected, 'column')}; got {value.shape[-2]} x {value.shape[-1]}.", sample=n
            )
    if isinstance(values, np.ndarray):
        return values.reshape(*values.shape[:-2], values.shape[-2] * values.shape[-1])
    return [value if value.ndim < 2 else value.reshape(*value.shape[:-2], -1) for value in values]


def per_axis_of_samples(values: Any, x: Any, layout: str, name: str, axes: int) -> np.ndarray:
    """Return an argument with one number per axis for each frame of each sample of a chunk, [frames, axes].

    Frames are all images along the axes up to F: in CFHW, those of all channels.

    Args:
        values: [N, 1 or axes] or [N, F, 1 or axes], or a list of N such entries; a single frame is broadcast.
        x: the samples, `Samples` or `DeviceSamples`.
        layout: layout of a sample.
        name: name of the argument, for the error.
        axes: number of axes.

    Raises:
        ShapeError: the number of values or of frames is wrong; with the sample.
    """
    leading = leading_axes(layout)
    values = values if leading else _per_sample(values)
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] in (1, axes):
        rows = values.repeat(axes, -1) if values.shape[-1] == 1 else values
        return np.repeat(rows, x.shapes[:, :leading].prod(1), axis=0) if leading else rows
    found: list[np.ndarray] = []
    for n, given in enumerate(values):
        repeats, count = (math.prod(x.shapes[n, : leading - 1]), x.shapes[n, leading - 1]) if leading else (1, 1)
        size = given.shape[-1]
        if size not in (1, axes) or (given.ndim > 1 and len(given) not in (1, count)):
            what = f"{counted(len(given), 'frame')} of {size}" if given.ndim > 1 else str(size)
            raise ShapeError(
                f"{name} must have one value or one for each of the {axes} data axes; got {what}.", sample=n
            )
        found.append(np.tile(np.broadcast_to(given, (count, axes)), (repeats, 1)))
    return np.concatenate(found)


def per_frame_of_samples(values: Any, x: Any, layout: str, name: str, width: int | None = None) -> np.ndarray:
    """`per_frame_of_shapes` for the shapes of `Samples` or `DeviceSamples`."""
    found = _of_images(values, layout, name, width)
    return per_frame_of_shapes(values, x.shapes, layout, name, width) if found is None else found


def _of_images(values: Any, layout: str, name: str, width: int | None) -> np.ndarray | None:
    """Return `per_frame_of_shapes` of single images, which does not need their shapes; None for others."""
    if layout.startswith("F") or not isinstance(values, np.ndarray):
        return None
    if width is None and values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    return per_frame(_per_sample(values), 1, name, width)


def per_frame_of_shapes(
    values: Any, shapes: np.ndarray, layout: str, name: str, width: int | None = None
) -> np.ndarray:
    """Return an argument with one entry per frame of each sample of a chunk.

    Args:
        values: one entry per sample, [N, k], or one per frame, [N, F, k], or a list of N of them.
        shapes: shapes of the samples, int64 [N, ndim].
        layout: layout of a sample.
        name: name of the argument, for the error.
        width: number of elements of an entry; None for a scalar.

    Returns:
        [frames of all samples] for scalars, else [frames of all samples, width].

    Raises:
        ShapeError: as in `per_frame`, with the sample.
    """
    found = _of_images(values, layout, name, width)
    if found is not None:
        return found
    counts, size = frame_counts(shapes, layout), width or 1
    values = values if layout.startswith("F") else _per_sample(values)
    _check_entries(values, size, name, width)
    if not isinstance(values, list) and (counts == counts[0]).all():
        return per_frame(values, int(counts[0]), name, width)
    if not isinstance(values, list) and math.prod(values.shape[1:]) == size:
        return np.repeat(per_frame(values, 1, name, width), counts, axis=0)
    if [entry.size for entry in values] == (counts * size).tolist():
        entries = np.concatenate(values, axis=None)
        return entries if width is None else entries.reshape(-1, width)
    rows = []
    for n, count in enumerate(counts.tolist()):
        try:
            rows.append(per_frame(values[n][None], count, name, width))
        except ShapeError as error:
            error.sample = n
            raise
    return np.concatenate(rows)


def _check_entries(values: Any, size: int, name: str, width: int | None) -> None:
    """Raise a ShapeError if an entry does not have `size` numbers."""
    if isinstance(values, np.ndarray) and values.shape[-1] == size:
        return
    for n, value in enumerate(values):
        if value.shape[-1] == size:
            continue
        what = "value" if width is None else f"list of {counted(width, 'value')}"
        is_scalar = width is None and value.ndim == 1
        raise ShapeError(
            f"{name} takes one {what} per {'sample' if value.ndim == 1 else 'frame'}; got {value.shape[-1]} values.",
            hint=f"For one value per frame: {name}=fn.per_frame(value)." if is_scalar else "",
            sample=n,
        )


def per_frame(values: Any, frames: int, name: str, width: int | None = None) -> np.ndarray:
    """Return an argument with one entry per frame of each sample.

    Args:
        values: [N, k] or [N, F, k], or a list of N vectors of equal length.
        frames: number of frames per sample.
        name: name of the argument, for the error.
        width: number of elements of an entry; None for a scalar.

    Returns:
        [N * frames] for scalars, else [N * frames, width].

    Raises:
        ShapeError: there is neither one entry per sample nor one per frame.
    """
    rows = np.stack(values) if isinstance(values, list) else values
    size = width or 1
    count = rows.shape[0]
    given = math.prod(rows.shape[1:])
    if given == size:
        result = rows.reshape(count, size)
        if frames != 1:
            result = np.repeat(result, frames, axis=0)
    elif given == size * frames:
        result = rows.reshape(count * frames, size)
    else:
        what = "value" if width is None else f"list of {counted(width, 'value')}"
        more = f", or one for each of the {frames} frames" if frames > 1 else ""
        raise ShapeError(f"{name} takes one {what} per sample{more}; got {given} values.")
    return result[:, 0] if width is None else result
