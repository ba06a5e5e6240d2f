"""Replace integers by values from a table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dalify.base.errors import ArgumentValueError, DTypeError
from dalify.base.optional import torch
from dalify.data import DALIDataType, DeviceSamples
from dalify.data.torch_unsigned import movable_torch
from dalify.kernels.arrays.convert import saturate_cast
from dalify.kernels.arrays.pointwise import apply_table, look_up
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.registry import Spec, operator

_MAX_KEY = 65535


@operator
def lookup_table(
    x: Spec,
    /,
    *,
    default_value: float = 0.0,
    dtype: DALIDataType = DALIDataType.FLOAT,
    keys: list[int] = [],  # noqa: B006 -- the signature is the schema; the list is never mutated
    values: list[float] = [],  # noqa: B006
) -> Spec:
    """Replace integers by values from a table.

    Args:
        x: integers of any type.
        default_value: value for integers that are not among the keys.
        dtype: type of the result; values are rounded half away from zero and saturated.
        keys: 0 to 65535; the last one of repeated keys is used.
        values: one for each key.

    Returns:
        Same shape and layout, elements of `dtype`.

    Raises:
        DTypeError: elements are not integers.
        ArgumentValueError: different numbers of keys and values, or a key out of range.

    Example:
        >>> classes = fn.lookup_table(labels, keys=[3, 5], values=[0, 1], dtype=types.INT32)  # doctest: +SKIP
    """
    if x.dtype is not None and not x.dtype.is_integer:
        raise DTypeError(f"the input must have integer elements; got {x.dtype_text}.")
    if len(keys) != len(values):
        raise ArgumentValueError(f"keys and values must have the same length; got {len(keys)} and {len(values)}.")
    if any(not 0 <= key <= _MAX_KEY for key in keys):
        raise ArgumentValueError(f"keys must be between 0 and {_MAX_KEY}; got {min(keys)} to {max(keys)}.")
    return x.replace(dtype=dtype)


@lru_cache(maxsize=64)
def _table(
    keys: tuple[int, ...], values: tuple[float, ...], default_value: float, dtype: DALIDataType, size: int
) -> np.ndarray:
    """Return the table of at least `size` entries; the last entry is the default."""
    entries = np.full(max(size, max(keys, default=0) + 2), default_value, np.float32)
    entries[list(keys)] = np.array(values, np.float32)
    table = np.empty(entries.shape, dtype.numpy)
    saturate_cast(table, entries)
    table.flags.writeable = False
    return table


@lookup_table.cpu_elements
def _(
    out: np.ndarray,
    x: np.ndarray,
    *,
    default_value: float,
    dtype: DALIDataType,
    keys: tuple[int, ...],
    values: tuple[float, ...],
) -> None:
    if x.dtype == np.uint8:
        table = _table(keys, values, default_value, dtype, 256)[:256]
        apply_table(out.reshape(1, -1), x.reshape(1, -1), table[None])
        return
    table = _table(keys, values, default_value, dtype, 1)
    look_up(out, x, table)


@lookup_table.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    default_value: float,
    dtype: DALIDataType,
    keys: tuple[int, ...],
    values: tuple[float, ...],
) -> None:
    table = uploaded(_table(keys, values, default_value, dtype, 1), out.device)
    last = len(table) - 1
    index = x.block.long()
    places = torch.where((index >= 0) & (index < last), index, last)
    movable_torch(out.block).copy_(movable_torch(table).index_select(0, places))
