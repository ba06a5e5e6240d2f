"""Decode NumPy files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalify.base.errors import DalifyError, DecodeError, DTypeError
from dalify.data import Batch, DALIDataType, from_numpy
from dalify.formats.arrays.numpy_file import NumpyHeader, numpy_array, numpy_header
from dalify.kernels.arrays.convert import saturate_cast
from dalify.registry import Spec, operator

_BLANK = np.empty(0, np.uint8)  # placeholder for a file that cannot be decoded; recognized by identity


def _needs_batch(arguments: Mapping[str, Any]) -> bool:
    """Return whether zeros shaped like another file of the batch may be needed."""
    return arguments["on_error"] == "replace"


@operator(whole_batch=_needs_batch)
def numpy(data: Spec, /, *, dtype: DALIDataType | None = None) -> Spec:
    """Decode arrays from NumPy files (``.npy``).

    Arrays in Fortran order or non-native byte order are converted to C order and native byte order; DALI rejects the
    latter. Pickled objects are never loaded.

    Args:
        data: contents of the files, uint8 ``[bytes]``; versions 1, 2 and 3 of the format.
        dtype: element type of the result. Integers are saturated; floats are rounded to integers, half away from
            zero. By default the type of the files, which must then be the same for all.

    Returns:
        the arrays, without layout; all must have the same number of dimensions. With ``on_error="replace"``, a file
        that cannot be decoded becomes zeros with the shape and type of another file of the batch.

    Raises:
        DecodeError: not a NumPy file, damaged or truncated data, or elements that are not numbers.
        LimitError: a header that declares more dimensions or bytes than the limits allow.
        DTypeError: an element type that pipelines do not support.
        MixedBatchError: a file whose type or number of dimensions differs from the first one of the batch.

    Example:
        >>> arrays = fn.decoders.numpy(contents, dtype=types.FLOAT)  # doctest: +SKIP
    """
    if data.dtype not in (None, DALIDataType.UINT8, DALIDataType.INT8) or data.ndim not in (None, 1):
        raise DTypeError(f"a decoder needs encoded files: one-dimensional samples of type uint8; got {data!r}.")
    return Spec(dtype, None, "", None, data.device)


@numpy.prepare
def _(data: Batch, *, dtype: DALIDataType | None) -> dict[str, Any]:
    headers: list[NumpyHeader | None] = []
    known = None
    for sample in data.samples:
        if sample is _BLANK:
            headers.append(None)
            continue
        try:
            header = numpy_header(sample)
        except DecodeError:
            headers.append(None)  # the kernel knows the sample and raises the same error
            continue
        headers.append(header)
        if dtype is None and header.native != known:
            known = header.native
            from_numpy(known)
    return {"headers": tuple(headers)}


@numpy.cpu_chunk
def _(data: Batch, *, dtype: DALIDataType | None, headers: Any) -> Any:
    arrays: list[np.ndarray[Any, Any] | None] = []
    for index, (sample, header) in enumerate(zip(data.samples, headers, strict=True)):
        if sample is _BLANK:
            arrays.append(None)
            continue
        try:
            array = numpy_array(np.ascontiguousarray(sample), header or numpy_header(sample))
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


@numpy.substitute
def _(data: np.ndarray) -> np.ndarray:
    return _BLANK
