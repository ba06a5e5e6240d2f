"""Converts per-sample arguments from constants and graph values to arrays ``[N]`` and ``[N, k]`` for kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, DalifyError, ShapeError
from dalify.base.recent import Recent
from dalify.data import Batch, DALIDataType
from dalify.executor.frame import Frame
from dalify.registry import Parameter

__all__ = ["Argument", "argument_array", "constant_array", "element_dtype"]

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
    return np.full(count, value, wanted)


def argument_array(parameter: Parameter, batch: Batch) -> np.ndarray[Any, Any] | list[np.ndarray[Any, Any]]:
    """Convert a graph value to the form of an argument for kernels.

    Returns:
        ``[N]`` or ``[N, k]``; for lists of different lengths, a list of N vectors. A list with one entry per frame (the
        layout starts with F) is ``[N, F, k]``, or N arrays ``[F, k]``; arguments that determine the shape are flat.

    Raises:
        ArgumentTypeError: the conversion of the elements would lose information (fractions for an integer).
        ArgumentValueError: an integer does not fit into 32 bits, or an extent is not finite.
        ShapeError: a single-valued argument has several elements per sample.
    """
    wanted = element_dtype(parameter)
    dtype = batch.dtype
    if dtype.is_float and wanted != np.float32:
        raise ArgumentTypeError(
            f"the argument {parameter.name} needs integers; the graph value has elements of type {dtype!s}.",
            hint="Convert it: fn.cast(value, dtype=types.INT32).",
        )
    if wanted == np.bool_ and dtype != DALIDataType.BOOL and not dtype.is_integer:
        raise ArgumentTypeError(
            f"the argument {parameter.name} needs booleans; the graph value has elements of type {dtype!s}."
        )
    _check_range(parameter, batch, wanted)
    by_frame = parameter.is_list and parameter.kind != "shaping" and batch.layout.startswith("F")
    if batch.dense is not None:
        dense = batch.dense
        count = len(dense)
        flat = dense.reshape(count, math.prod(dense.shape[1:])) if dense.ndim != 2 else dense
        if parameter.is_list:
            if by_frame:
                flat = dense.reshape(count, dense.shape[1], math.prod(dense.shape[2:]))
            return np.ascontiguousarray(flat, wanted)
        if flat.shape[1] != 1:
            raise _too_many(parameter, dense.shape[1:])
        return np.ascontiguousarray(flat[:, 0], wanted)
    vectors = [np.ascontiguousarray(sample, wanted) for sample in batch.samples]
    if by_frame:
        vectors = [vector.reshape(len(vector), math.prod(vector.shape[1:])) for vector in vectors]
    else:
        vectors = [vector.reshape(-1) for vector in vectors]
    if parameter.is_list:
        return np.stack(vectors) if len({vector.shape for vector in vectors}) == 1 else vectors
    for vector, sample in zip(vectors, batch.samples, strict=True):
        if len(vector) != 1:
            raise _too_many(parameter, sample.shape)
    return np.concatenate(vectors) if vectors else np.empty(0, wanted)


def _check_range(parameter: Parameter, batch: Batch, wanted: np.dtype[Any]) -> None:
    """Raise an error for integers that exceed INT32, and extents that are not finite."""
    dtype = batch.dtype
    is_wide = wanted.kind == "i" and dtype.is_integer and dtype.numpy.itemsize >= 4 and dtype.numpy != wanted
    if not is_wide and not (parameter.kind == "shaping" and dtype.is_float):
        return
    for first, values in enumerate(batch.arrays):
        wrong = ~((values >= -(2**31)) & (values < 2**31))
        if wrong.any():
            raise ArgumentValueError(
                f"{parameter.name} must fit in 32 bits; got {values[wrong].flat[0]}.",
                sample=first if batch.dense is None else int(np.argwhere(wrong)[0][0]),
            )


def _too_many(parameter: Parameter, shape: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"the argument {parameter.name} needs one value per sample; the graph value has shape {tuple(shape)}.",
        hint="Pick one element, for instance value[0].",
    )


class Argument:
    """One per-sample argument of a step: a repeated constant or a slot of the frame.

    Args:
        parameter: the declared parameter.
        value: the normalized constant.
        slot: slot of the values of the samples; None for a constant.
    """

    __slots__ = ("_direct", "_repeated", "parameter", "slot", "value")

    def __init__(self, parameter: Parameter, value: Any, slot: int | None) -> None:
        self.parameter = parameter
        self.value = value
        self.slot = slot
        self._repeated: Recent[Any] = Recent(_KEPT_COUNTS)
        # Dtype of values that need neither a check nor a conversion; None if all need one.
        wanted = element_dtype(parameter)
        self._direct = None if parameter.kind == "shaping" and wanted == np.float32 else wanted

    def array(self, frame: Frame, count: int) -> Any:
        """Return the values of the frame's ``count`` samples in the form for kernels."""
        if self.slot is not None:
            batch = frame.values[self.slot]
            assert batch is not None, "dalify bug: an argument without samples"
            dense = batch.dense
            if dense is not None and dense.dtype == self._direct and dense.ndim == 1 and dense.flags.c_contiguous:
                return dense[:, None] if self.parameter.is_list else dense
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
