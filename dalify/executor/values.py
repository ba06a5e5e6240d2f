"""Converts per-sample arguments from constants and graph values to arrays ``[N]`` and ``[N, k]`` for kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentRangeError, ArgumentTypeError, DalifyError, ShapeError
from dalify.base.recent import Recent
from dalify.data import Batch, DALIDataType
from dalify.executor.frame import Frame
from dalify.registry import Parameter

_KEPT_COUNTS = 64  # number of group sizes whose repeated constants are cached

_ELEMENTS: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int32),
    float: np.dtype(np.float32),
    np.uint32: np.dtype(np.uint32),
}


def element_dtype(parameter: Parameter) -> np.dtype[Any]:
    """Return the dtype of a per-sample argument for kernels; int32 for enumerations."""
    return _ELEMENTS.get(parameter.element, _ELEMENTS[int])


def constant_array(parameter: Parameter, value: Any, count: int) -> np.ndarray[Any, Any] | None:
    """Return a constant repeated for ``count`` samples; None, strings and objects are returned unchanged."""
    if value is None or parameter.element in (str, object):
        return value
    wanted = element_dtype(parameter)
    if parameter.is_list:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(value, wanted), (count, len(value))))
    return np.full((count, 1) if parameter.accepts_frames else count, value, wanted)


def argument_array(parameter: Parameter, batch: Batch) -> np.ndarray[Any, Any] | list[np.ndarray[Any, Any]]:
    """Convert a graph value to the form of an argument for kernels.

    Returns:
        ``[N]`` or ``[N, k]``; for lists of different lengths, a list of N vectors. Matrices are
        ``[N, rows, columns]``. An argument that accepts frames is ``[N, k]``, or ``[N, F, k]`` if it has one entry per
        frame (the layout starts with F).

    Raises:
        ArgumentTypeError: the conversion of the elements would lose information (fractions for an integer).
        ArgumentRangeError: an integer that does not fit into 32 bits, or an extent that is not finite.
        ShapeError: the entries have more elements or axes than the argument takes.
    """
    wanted = element_dtype(parameter)
    dtype = batch.dtype
    if dtype.is_float and wanted != np.float32:
        raise ArgumentTypeError(
            f"the argument {parameter.name} needs integers; the graph value has elements of type {dtype.text}.",
            hint="Convert it: fn.cast(value, dtype=types.INT32).",
        )
    if wanted == np.bool_ and dtype != DALIDataType.BOOL and not dtype.is_integer:
        raise ArgumentTypeError(
            f"the argument {parameter.name} needs booleans; the graph value has elements of type {dtype.text}."
        )
    _check_range(parameter, batch, wanted)
    frame_axes = int(parameter.accepts_frames and batch.layout.startswith("F"))
    if batch.dense is not None:
        form = _form(parameter, batch.dense.shape[1:], frame_axes, None)
        return np.ascontiguousarray(batch.dense.reshape(len(batch.dense), *form), wanted)
    values = [
        np.asarray(sample.reshape(_form(parameter, sample.shape, frame_axes, number)), wanted, order="C")
        for number, sample in enumerate(batch.samples)
    ]
    return np.stack(values) if len({value.shape for value in values}) == 1 else values or np.empty(0, wanted)


def _form(parameter: Parameter, shape: tuple[int, ...], frame_axes: int, sample: int | None) -> tuple[int, ...]:
    """Return the shape in which kernels receive a sample of an argument; see `argument_array`.

    Args:
        parameter: the declared parameter.
        shape: of the sample.
        frame_axes: 1 if its first axis are frames, otherwise 0.
        sample: its number in the batch; None for all samples.

    Raises:
        ShapeError: the entries have more elements or axes than the argument takes.
    """
    frames, entry = shape[:frame_axes], shape[frame_axes:]
    size = math.prod(entry)
    if not parameter.is_list:
        if size != 1:
            raise _too_many(parameter, shape, sample)
        return (*frames, 1) if parameter.accepts_frames else ()
    if parameter.is_matrix and not entry and frames:
        return (*frames, 1, 1)
    if parameter.is_matrix and entry:
        # For single images, the layout F of a matrix has no meaning: it may name the rows.
        if len(entry) != 2 and len(shape) != 2:
            raise ShapeError(
                f"the argument {parameter.name} needs a matrix per {_whole(frames)}; the graph value has shape "
                f"{shape}.",
                hint="Give it rows and columns: fn.reshape(value, shape=[rows, columns]).",
                sample=sample,
            )
        return shape
    if len(entry) > 1 and not parameter.has_any_shape:
        raise ShapeError(
            f"the argument {parameter.name} needs a list of numbers per {_whole(frames)}; the graph value has shape "
            f"{shape}.",
            hint="Remove the other axes: fn.reshape(value, shape=[-1]).",
            sample=sample,
        )
    return (*frames, size)


def _whole(frames: tuple[int, ...]) -> str:
    return "frame" if frames else "sample"


def _check_range(parameter: Parameter, batch: Batch, wanted: np.dtype[Any]) -> None:
    """Raise an error for integers that exceed INT32, and extents that are not finite."""
    dtype = batch.dtype
    is_wide = wanted.kind == "i" and dtype.is_integer and dtype.numpy.itemsize >= 4 and dtype.numpy != wanted
    if not is_wide and not (parameter.kind == "shaping" and dtype.is_float):
        return
    for first, values in enumerate(batch.arrays):
        wrong = ~((values >= -(2**31)) & (values < 2**31))
        if wrong.any():
            raise ArgumentRangeError(
                f"{parameter.name} must be in the range of 32-bit integers; got {values[wrong].flat[0]}.",
                sample=first if batch.dense is None else int(np.argwhere(wrong)[0][0]),
            )


def _too_many(parameter: Parameter, shape: tuple[int, ...], sample: int | None) -> ShapeError:
    hint = "Pick one element, for instance value[0]."
    if parameter.accepts_frames:
        hint = "For one value per frame of a sequence: fn.per_frame(value)."
    return ShapeError(
        f"the argument {parameter.name} needs one value per sample; the graph value has shape {shape}.",
        hint=hint,
        sample=sample,
    )


class Argument:
    """One per-sample argument of a step: a repeated constant or a slot of the frame.

    Args:
        parameter: the declared parameter.
        value: the normalized constant.
        slot: slot of the values of the samples; None for a constant.
    """

    __slots__ = ("_direct", "_is_row", "_repeated", "parameter", "slot", "value")

    def __init__(self, parameter: Parameter, value: Any, slot: int | None) -> None:
        self.parameter = parameter
        self.value = value
        self.slot = slot
        self._repeated: Recent[Any] = Recent(_KEPT_COUNTS)
        self._is_row = parameter.is_list or parameter.accepts_frames
        # Element type of values that need neither a check nor a conversion; None if all need one.
        wanted = element_dtype(parameter)
        self._direct = None if parameter.kind == "shaping" and wanted == np.float32 else wanted

    def array(self, frame: Frame, count: int) -> Any:
        """Return the values of the frame's ``count`` samples in the form for kernels."""
        if self.slot is not None:
            batch = frame.values[self.slot]
            assert batch is not None, "dalify bug: an argument without samples"
            dense = batch.dense
            if dense is not None and dense.dtype == self._direct and dense.ndim == 1 and dense.flags.c_contiguous:
                return dense[:, None] if self._is_row else dense
            try:
                return argument_array(self.parameter, batch)
            except DalifyError as error:
                error.argument = self.parameter.name
                raise
        found = self._repeated.get(count)
        if found is None:
            found = constant_array(self.parameter, self.value, count)
            if isinstance(found, np.ndarray):
                found.flags.writeable = False  # every call gets the same array
            self._repeated.put(count, found)
        return found
