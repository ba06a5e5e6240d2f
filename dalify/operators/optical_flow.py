"""Estimate the optical flow between frames."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError, check_option, option_error_text
from dalify.base.wording import counted
from dalify.data import DALIDataType, DALIImageType, Samples
from dalify.registry import Spec, operator

_PRESETS = {
    0.0: cv2.DISOPTICAL_FLOW_PRESET_MEDIUM,
    0.5: cv2.DISOPTICAL_FLOW_PRESET_FAST,
    1.0: cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST,
}
_OUTPUT_GRIDS = (1, 2, 4)
_HINT_GRIDS = (1, 2, 4, 8)
_TO_GRAY = {DALIImageType.RGB: cv2.COLOR_RGB2GRAY, DALIImageType.BGR: cv2.COLOR_BGR2GRAY}
# OpenCV rejects smaller frames; they are padded by replicating their border.
_MIN_EXTENT = 16


@operator
def optical_flow(
    x: Spec,
    hints: Spec | None = None,
    /,
    *,
    enable_external_hints: bool = False,
    enable_temporal_hints: bool = False,
    hint_grid: int = 4,
    image_type: DALIImageType = DALIImageType.RGB,
    output_grid: int = 4,
    preset: float = 0.0,
) -> Spec:
    """Estimate the optical flow from each frame to the next one.

    DALI uses the optical flow hardware of a GPU. This operator uses dense inverse search on the CPU (DIS: Kroeger,
    Timofte, Dai, Van Gool 2016; OpenCV's implementation): shape and units of the result are the same as in DALI, the
    estimated values differ.

    Args:
        x: sequences of type UINT8, FHWC, of at least 2 frames, with 3 channels, or 1 for GRAY.
        hints: initial flow for the search, like the result, but with one vector per ``hint_grid`` pixels; FLOAT,
            ``[frames - 1, height / hint_grid, width / hint_grid, 2]``, extents rounded up.
        enable_external_hints: use ``hints``, which are then required.
        enable_temporal_hints: start each search with the flow of the previous frame.
        hint_grid: 1, 2, 4 or 8.
        image_type: RGB, BGR or GRAY.
        output_grid: 1, 2 or 4: pixels per vector of the result along each axis. A vector is the mean of its cell.
        preset: 0.0: slow and accurate; 0.5: faster; 1.0: fastest.

    Returns:
        FLOAT ``[frames - 1, height / output_grid, width / output_grid, 2]``, extents rounded up, layout FHWC: x and y
        in pixels of the frames, whatever ``output_grid``.

    Raises:
        ArgumentValueError: an unknown grid, preset or image type, or hints without ``enable_external_hints`` or
            vice versa.
        DTypeError: the frames are not UINT8, or the hints are not FLOAT.
        LayoutError: the layout is not FHWC.
        ShapeError: fewer than 2 frames, or a wrong number of channels or shape of the hints.

    Example:
        >>> flow = fn.optical_flow(clips, output_grid=4)  # doctest: +SKIP
    """
    check_option("preset", preset, _PRESETS)
    check_option("output_grid", output_grid, _OUTPUT_GRIDS)
    check_option("hint_grid", hint_grid, _HINT_GRIDS)
    if image_type not in (*_TO_GRAY, DALIImageType.GRAY):
        raise ArgumentValueError(option_error_text("image_type", image_type, ["types.RGB", "types.BGR", "types.GRAY"]))
    if enable_external_hints != (hints is not None):
        raise ArgumentValueError("enable_external_hints=True requires a second input, the hints, and vice versa.")
    if x.dtype not in (None, DALIDataType.UINT8):
        raise DTypeError(f"frames must be of type uint8; got {x!r}.")
    if x.layout not in (None, "", "FHWC") or x.ndim not in (None, 4):
        raise LayoutError(f"the input must be sequences FHWC; got {x!r}.")
    if hints is not None and hints.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(f"hints must be of type float32; got {hints!r}.")
    result = Spec(DALIDataType.FLOAT, 4, "FHWC", None, x.device)
    if x.shape is None:
        return result
    frames, height, width, channels = x.shape
    if frames < 2:
        raise ShapeError(f"a sequence must have at least 2 frames; got {frames}.")
    expected = 1 if image_type == DALIImageType.GRAY else 3
    if channels != expected:
        raise ShapeError(
            f"frames of image_type {image_type.name} must have {counted(expected, 'channel')}; got {channels}."
        )
    hints_shape = (frames - 1, -(-height // hint_grid), -(-width // hint_grid), 2)
    if hints is not None and hints.shape is not None and hints.shape != hints_shape:
        raise ShapeError(
            f"hints must have the shape {hints_shape} for frames of {height} x {width} and hint_grid={hint_grid}; "
            f"got {hints.shape}."
        )
    return result.replace(shape=(frames - 1, -(-height // output_grid), -(-width // output_grid), 2))


@optical_flow.cpu_samples
def _(
    out: Samples,
    x: Samples,
    hints: Samples | None,
    *,
    enable_temporal_hints: bool,
    hint_grid: int,
    image_type: DALIImageType,
    output_grid: int,
    preset: float,
) -> None:
    given_hints = [None] * len(x) if hints is None else hints.arrays()
    for flows, frames, own_hints in zip(out.arrays(), x.arrays(), given_hints, strict=True):
        gray = [_prepare(frame, image_type) for frame in frames]
        height, width = frames.shape[1:3]
        last: Any = None
        for number in range(len(gray) - 1):
            begin = last if enable_temporal_hints else None
            if own_hints is not None:
                begin = _expand_hints(own_hints[number], hint_grid, gray[0].shape)
            # A new object each time, since it keeps its initial flow.
            search = cv2.DISOpticalFlow.create(_PRESETS[preset])
            given: Any = None if begin is None else begin.copy()
            last = search.calc(gray[number], gray[number + 1], given)
            flows[number] = _cells(last[:height, :width], output_grid)


def _prepare(frame: np.ndarray[Any, Any], image_type: DALIImageType) -> np.ndarray[Any, Any]:
    gray = frame[..., 0] if image_type == DALIImageType.GRAY else cv2.cvtColor(frame, _TO_GRAY[image_type])
    below, beside = (max(0, _MIN_EXTENT - extent) for extent in gray.shape)
    return cv2.copyMakeBorder(gray, 0, below, 0, beside, cv2.BORDER_REPLICATE)


def _expand_hints(hints: np.ndarray[Any, Any], grid: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Expand hints to one vector per pixel; values that are not finite become 0."""
    expanded = np.nan_to_num(hints, nan=0.0, posinf=0.0, neginf=0.0).repeat(grid, 0).repeat(grid, 1)
    missing = [(0, max(0, hints_shape - extent)) for hints_shape, extent in zip(shape, expanded.shape[:2], strict=True)]
    expanded = np.pad(expanded, [*missing, (0, 0)], "edge")[: shape[0], : shape[1]]
    # A search that starts far outside the frame does not converge.
    limit = np.array([shape[1], shape[0]], np.float32)
    return np.ascontiguousarray(np.clip(expanded, -limit, limit), np.float32)


def _cells(flow: np.ndarray[Any, Any], grid: int) -> np.ndarray[Any, Any]:
    """Return the mean vector of each cell of ``grid`` by ``grid`` pixels; cells at the border may be smaller."""
    for axis in (0, 1):
        starts = np.arange(0, flow.shape[axis], grid)
        counts = np.diff([*starts, flow.shape[axis]])
        flow = np.add.reduceat(flow, starts, axis=axis) / np.expand_dims(counts, [1 - axis, 2]).astype(np.float32)
    return flow
