"""Decode NumPy files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.errors import DalifyError, DecodeError, DTypeError
from dalify.data import DALIDataType
from dalify.data.dtypes import from_numpy
from dalify.formats.numpy_file import NumpyHeader, numpy_array, numpy_header
from dalify.kernels.convert import saturate_cast
from dalify.registry import Spec, operator

_BLANK = np.empty(0, np.uint8)  # takes the place of a file that cannot be decoded; known by its identity


def _needs_batch(arguments: Mapping[str, Any]) -> bool:
    """Tell whether zeros may be needed that are like another file of the batch."""
    return arguments["on_error"] == "replace"


@operator(allocating=True, listed=True, whole_batch=_needs_batch)
def numpy(data: Spec, /, *, dtype: DALIDataType | None = None) -> Spec:
    """Decode arrays from NumPy files (``.npy``).

    Arrays in Fortran order and of foreign byte order become plain ones; DALI refuses the latter. Pickled objects are
    never loaded.

    Args:
        data: files as they are, uint8 ``[bytes]``; versions 1, 2 and 3 of the format.
        dtype: element type of the result. Integers saturate, floats are rounded to integers, halves away from zero.
            Where not given: the type of the files, which must be one.

    Returns:
        the arrays; their number of dimensions must be one. No layout. With ``on_error="replace"``, zeros of the shape
        and type of another file of the batch take the place of a file that cannot be decoded.

    Raises:
        DecodeError: no NumPy file, a damaged or truncated one, or elements that are no numbers.
        LimitError: a header that declares more dimensions or bytes than the limits allow.
        DTypeError: elements of a type that no pipeline can hold.
        MixedBatchError: a file with another type or number of dimensions than the first one of the batch.

    Example:
        >>> arrays = fn.decoders.numpy(contents, dtype=types.FLOAT)  # doctest: +SKIP
    """
    if data.dtype not in (None, DALIDataType.UINT8, DALIDataType.INT8) or data.ndim not in (None, 1):
        raise DTypeError(
            f"a decoder needs encoded files as they are: one-dimensional samples of type UINT8; got {data!r}."
        )
    return Spec(dtype, None, "", None, data.device)


@numpy.prepare
def _(data, *, dtype):
    headers: list[NumpyHeader | None] = []
    known = None
    for sample in data.samples:
        if sample is _BLANK:
            headers.append(None)
            continue
        try:
            header = numpy_header(sample)
        except DecodeError:
            headers.append(None)  # the kernel, which knows the number of the sample, finds the same fault and tells
            continue
        headers.append(header)
        if dtype is None and header.native != known:
            known = header.native
            from_numpy(known)
    return {"headers": tuple(headers)}


@numpy.cpu
def _(data, *, dtype, headers):
    arrays: list[np.ndarray[Any, Any] | None] = []
    for index, (sample, header) in enumerate(zip(data, headers, strict=True)):
        if sample is _BLANK:
            arrays.append(None)
            continue
        try:
            array = numpy_array(sample, header or numpy_header(sample))
        except DalifyError as error:
            error.sample = index
            raise
        if dtype is not None and array.dtype != dtype.numpy:
            converted = np.empty(array.shape, dtype.numpy)
            saturate_cast(converted, array)
            array = converted
        arrays.append(array)
    like = next((array for array in arrays if array is not None), None)
    if like is None:
        like = np.empty(0, np.float32 if dtype is None else dtype.numpy)
    return [np.zeros_like(like) if array is None else array for array in arrays]


@numpy.stand_in
def _(data):
    return _BLANK
