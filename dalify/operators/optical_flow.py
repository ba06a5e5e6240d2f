"""How pixels move from frame to frame."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError, LayoutError, ShapeError, option_error_text
from dalify.data import DALIDataType, DALIImageType
from dalify.registry import Spec, operator

_PRESETS = {
    0.0: cv2.DISOPTICAL_FLOW_PRESET_MEDIUM,
    0.5: cv2.DISOPTICAL_FLOW_PRESET_FAST,
    1.0: cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST,
}
_OUTPUT_GRIDS = (1, 2, 4)
_HINT_GRIDS = (1, 2, 4, 8)
_TO_GREY = {DALIImageType.RGB: cv2.COLOR_RGB2GRAY, DALIImageType.BGR: cv2.COLOR_BGR2GRAY}
# OpenCV refuses smaller frames; these are continued at their borders.
_LEAST_EXTENT = 16


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
    """Estimate, for each frame but the last, where its pixels are in the next one.

    DALI uses the flow engine of a GPU. Here it is dense inverse search on the CPU (DIS: Kroeger, Timofte, Dai, Van Gool
    2016; OpenCV's implementation): form and units of the result are DALI's, its values are another estimate.

    Args:
        x: sequences of type UINT8, FHWC, of at least 2 frames, with 3 channels, or 1 for GRAY.
        hints: where to begin to search, like the result, but with one vector per ``hint_grid`` pixels; FLOAT,
            ``[frames - 1, height / hint_grid, width / hint_grid, 2]``, extents rounded up.
        enable_external_hints: use ``hints``, which have to be given then.
        enable_temporal_hints: begin each search with what was found for the frames before.
        hint_grid: 1, 2, 4 or 8.
        image_type: RGB, BGR or GRAY.
        output_grid: 1, 2 or 4: pixels per vector of the result along each axis. A vector is the mean of its cell.
        preset: 0.0: slow and good; 0.5: quicker; 1.0: quickest.

    Returns:
        FLOAT ``[frames - 1, height / output_grid, width / output_grid, 2]``, extents rounded up, layout FHWC: x and y
        in pixels of the frames, whatever ``output_grid``.

    Raises:
        ArgumentValueError: an unknown grid, preset or image type, or hints without ``enable_external_hints``, or none
            with it.
        DTypeError: frames that are not UINT8, hints that are not FLOAT.
        LayoutError: no FHWC.
        ShapeError: fewer than 2 frames, another number of channels, or hints of another shape.

    Example:
        >>> flow = fn.optical_flow(clips, output_grid=4)  # doctest: +SKIP
    """
    if preset not in _PRESETS:
        raise ArgumentValueError(option_error_text("preset", preset, _PRESETS))
    if output_grid not in _OUTPUT_GRIDS:
        raise ArgumentValueError(option_error_text("output_grid", output_grid, _OUTPUT_GRIDS))
    if hint_grid not in _HINT_GRIDS:
        raise ArgumentValueError(option_error_text("hint_grid", hint_grid, _HINT_GRIDS))
    if image_type not in (*_TO_GREY, DALIImageType.GRAY):
        raise ArgumentValueError(option_error_text("image_type", image_type, ["types.RGB", "types.BGR", "types.GRAY"]))
    if enable_external_hints != (hints is not None):
        raise ArgumentValueError("enable_external_hints=True and a second input, the hints, belong together.")
    if x.dtype not in (None, DALIDataType.UINT8):
        raise DTypeError(f"frames must be of type UINT8; got {x!r}.")
    if x.layout not in (None, "", "FHWC") or x.ndim not in (None, 4):
        raise LayoutError(f"the input must be sequences FHWC; got {x!r}.")
    if hints is not None and hints.dtype not in (None, DALIDataType.FLOAT):
        raise DTypeError(f"hints must be of type FLOAT; got {hints!r}.")
    result = Spec(DALIDataType.FLOAT, 4, "FHWC", None, x.device)
    if x.shape is None:
        return result
    frames, height, width, channels = x.shape
    if frames < 2:
        raise ShapeError(f"flow is between frames: a sequence needs at least 2; got {frames}.")
    if channels != (1 if image_type == DALIImageType.GRAY else 3):
        raise ShapeError(f"frames of image_type {image_type.name} cannot have {channels} channels.")
    wanted = (frames - 1, -(-height // hint_grid), -(-width // hint_grid), 2)
    if hints is not None and hints.shape is not None and hints.shape != wanted:
        raise ShapeError(
            f"hints must have the shape {wanted} for frames of {height} x {width} and hint_grid={hint_grid}; "
            f"got {hints.shape}."
        )
    return result.replace(shape=(frames - 1, -(-height // output_grid), -(-width // output_grid), 2))


@optical_flow.cpu
def _(out, x, hints, *, enable_temporal_hints, hint_grid, image_type, output_grid, preset):
    for index, frames in enumerate(x):
        grey = [_prepared(frame, image_type) for frame in frames]
        height, width = frames.shape[1:3]
        last: Any = None
        for number in range(len(grey) - 1):
            begin = last if enable_temporal_hints else None
            if hints is not None:
                begin = _spread(hints[index, number], hint_grid, grey[0].shape)
            # A fresh one each time: it keeps what it began with.
            search = cv2.DISOpticalFlow.create(_PRESETS[preset])
            given: Any = None if begin is None else begin.copy()
            last = search.calc(grey[number], grey[number + 1], given)
            out[index, number] = _cells(last[:height, :width], output_grid)


def _prepared(frame: np.ndarray[Any, Any], image_type: DALIImageType) -> np.ndarray[Any, Any]:
    grey = frame[..., 0] if image_type == DALIImageType.GRAY else cv2.cvtColor(frame, _TO_GREY[image_type])
    below, beside = (max(0, _LEAST_EXTENT - extent) for extent in grey.shape)
    return cv2.copyMakeBorder(grey, 0, below, 0, beside, cv2.BORDER_REPLICATE)


def _spread(hints: np.ndarray[Any, Any], grid: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Give each pixel the vector of its cell; what is no number is no hint."""
    spread = np.nan_to_num(hints, nan=0.0, posinf=0.0, neginf=0.0).repeat(grid, 0).repeat(grid, 1)
    missing = [(0, max(0, wanted - extent)) for wanted, extent in zip(shape, spread.shape[:2], strict=True)]
    spread = np.pad(spread, [*missing, (0, 0)], "edge")[: shape[0], : shape[1]]
    # A search that begins far outside of the frame cannot come back.
    limit = np.array([shape[1], shape[0]], np.float32)
    return np.ascontiguousarray(np.clip(spread, -limit, limit), np.float32)


def _cells(flow: np.ndarray[Any, Any], grid: int) -> np.ndarray[Any, Any]:
    """Return the mean vector of each cell of ``grid`` by ``grid`` pixels; cells at the border may be smaller."""
    for axis in (0, 1):
        starts = np.arange(0, flow.shape[axis], grid)
        counts = np.diff([*starts, flow.shape[axis]])
        flow = np.add.reduceat(flow, starts, axis=axis) / np.expand_dims(counts, [1 - axis, 2]).astype(np.float32)
    return flow
