"""Kernels of arrays ``[N, ...]`` as kernels that take all samples of a chunk: one call for each run of equal shapes.

For the operators of users, and for kernels whose chunks nearly always have one shape. The kernels of most operators
take samples of any shapes in one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dalify.base.errors import of_sample
from dalify.base.narrow import is_list, is_tuple
from dalify.data.batch import Array, stack_samples
from dalify.data.samples import Samples

__all__ = ["on_groups"]

# Larger samples are passed one by one, because stacking them costs more than the calls.
_STACKING_LIMIT_BYTES = 1 << 16

_Function = Callable[..., Any]


def on_groups(
    *, outputs: int = 1, shaping: Sequence[str] = (), constants: Collection[str] = (), repeats: bool = False
) -> Callable[[_Function], _Function]:
    """Make a kernel of arrays or tensors one of `Samples` or `DeviceSamples`.

    The kernel is ``f(out, ..., x, ..., *, parameters)`` with contiguous arrays ``[N, ...]``: consecutive samples whose
    inputs and outputs have equal shapes. Per-sample arguments are ``[N]`` or ``[N, k]``, and specs have the shapes of
    the group.

    Args:
        outputs: number of outputs that the kernel fills; 0: it returns arrays ``[N, ...]`` or lists of N arrays.
        shaping: arguments that are also equal in a group.
        constants: arguments that are passed as they are, even arrays and lists.
        repeats: an input whose samples are one may be a view with stride 0.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def called(*samples: Any, **named: Any) -> Any:
            columns = [None if x is None else _Column(x, repeats) for x in samples]
            varying = {name: value for name, value in named.items() if name not in constants and _varies(value)}
            count = named["count"] if "count" in named else len(next(x for x in samples if x is not None))
            runs = _runs(columns, varying, shaping, count)
            results: list[Any] = []
            for start, stop in runs:
                arrays = [None if column is None else column.group(start, stop) for column in columns]
                group = _named(named, varying, columns, outputs, (start, stop, count))
                try:
                    results.append(function(*arrays, **group))
                except Exception as error:
                    within = getattr(error, "sample", None)
                    within = 0 if within is None and stop - start == 1 else within
                    if isinstance(within, int):
                        of_sample(error, start + within)
                    raise
                for column, array in zip(columns[:outputs], arrays, strict=False):
                    if column is not None:
                        column.store(array, start, stop)
            if outputs:
                return results[0]
            return results[0] if len(results) == 1 else _joined(results)

        return called

    return decorate


class _Column:
    """The samples of one input or output.

    Args:
        samples: `Samples` or `DeviceSamples`.
        repeats: see `on_groups`.

    Attributes:
        samples: see above.
        whole: the samples as one array, or None.
    """

    __slots__ = ("_views", "samples", "whole")

    def __init__(self, samples: Any, repeats: bool) -> None:
        self.samples = samples
        self.whole: Array | None = samples.dense
        self._views: list[Array] = []
        if self.whole is not None:
            return
        is_on_host = isinstance(samples, Samples)
        if is_on_host and samples.array is not None:
            is_repeated = repeats and samples.array.strides[0] == 0
            self.whole = samples.array if is_repeated else np.ascontiguousarray(samples.array)
        else:
            self._views = list(samples.arrays() if is_on_host else samples.tensors())

    def group(self, start: int, stop: int) -> Array:
        """Return some samples, which have equal shapes, as one array: a view, or a copy of several."""
        if self.whole is not None:
            return self.whole if stop - start == len(self.whole) else self.whole[start:stop]
        views = self._views[start:stop]
        return views[0][None] if len(views) == 1 else stack_samples(views)

    def store(self, group: Any, start: int, stop: int) -> None:
        """Store the filled result of `group`, if that is a copy."""
        if self.whole is None and stop - start > 1:
            for target, values in zip(self._views[start:stop], group, strict=True):
                target[...] = values

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of one sample."""
        return tuple(self.samples.shapes[index].tolist())


def _varies(value: Any) -> bool:
    return is_list(value) or (hasattr(value, "__array__") and value.ndim > 0)


def _runs(
    columns: Sequence[_Column | None], varying: Mapping[str, Any], shaping: Sequence[str], count: int
) -> list[tuple[int, int]]:
    """Return the groups as ranges."""
    begins = np.zeros(count, bool)
    begins[:1] = True
    for column in columns:
        if column is not None and column.whole is None:
            shapes = column.samples.shapes
            begins[1:] |= (shapes[1:] != shapes[:-1]).any(1)
            if shapes.prod(1).max() * column.samples.dtype.itemsize > _STACKING_LIMIT_BYTES:
                begins[:] = True
    for name, value in varying.items():
        if is_list(value):
            keys = [vector.tolist() if name in shaping else vector.shape for vector in value]
            begins[1:] |= np.array([one != other for one, other in pairwise(keys)], bool)
        elif name in shaping:
            rows = np.reshape(value, (count, -1))
            begins[1:] |= (rows[1:] != rows[:-1]).any(1)
    return list(pairwise([*np.flatnonzero(begins).tolist(), count]))


def _named(
    named: Mapping[str, Any],
    varying: Mapping[str, Any],
    columns: Sequence[_Column | None],
    outputs: int,
    run: tuple[int, int, int],
) -> dict[str, Any]:
    """Return the arguments for the samples ``start`` to ``stop`` of ``count``, and specs with their shapes."""
    start, stop, count = run
    group = dict(named)
    for name, value in varying.items():
        if is_list(value):
            group[name] = np.stack(value[start:stop])
        elif stop - start < count:
            group[name] = value[start:stop]
    if "count" in group:
        group["count"] = stop - start
    if stop - start < count and "draws" in group:
        group["draws"] = named["draws"].take(slice(start, stop))
    for name, own in (("spec", columns[outputs:]), ("out_spec", columns[:outputs])):
        if name in named and own:
            group[name] = _closed(named[name], own[0], start)
        if f"{name}s" in named and own:
            group[f"{name}s"] = tuple([_closed(*each, start) for each in zip(named[f"{name}s"], own, strict=True)])
    return group


def _closed(spec: Any, column: _Column | None, index: int) -> Any:
    return spec if spec is None or column is None else spec.replace(shape=column.shape(index))


def _joined(results: Sequence[Any]) -> Any:
    """Return the results of several groups as one list of samples for each output."""
    outputs: list[list[Any]] = [[] for _ in results[0]] if is_tuple(results[0]) else [[]]
    for result in results:
        for samples, part in zip(outputs, result if is_tuple(result) else (result,), strict=True):
            samples += part if is_list(part) else [part[n, ...] for n in range(len(part))]
    return tuple(outputs) if is_tuple(results[0]) else outputs[0]
