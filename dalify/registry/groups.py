"""Kernels of arrays ``[N, ...]`` as kernels that take all samples of a chunk: one call for each run of equal shapes.

For the operators of users, and for kernels whose chunks nearly always have one shape. The kernels of most operators
take samples of any shapes in one call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dalify.base.errors import of_sample
from dalify.base.narrow import is_list, is_tuple
from dalify.data.batch import Array, stack_samples
from dalify.data.samples import Samples

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
        repeats: an input with the same value for all samples may be a view with stride 0.
    """

    def decorate(function: _Function) -> _Function:
        names = inspect.signature(function).parameters.keys()
        takes_specs = not names.isdisjoint(("spec", "specs", "out_spec", "out_specs"))

        @functools.wraps(function)
        def called(*samples: Any, **named: Any) -> Any:
            wholes: list[Array | None] = []
            is_one = not shaping
            for x in samples:  # few function calls, for speed
                whole = None if x is None else x.dense if x.dense is not None else _whole(x, repeats)
                wholes.append(whole)
                is_one = is_one and (x is None or whole is not None)
            for name, value in named.items():
                is_one = is_one and (not is_list(value) or name in constants)
            if is_one:
                return function(*wholes, **(_with_shapes(named, samples, outputs, 0) if takes_specs else named))
            varying = [name for name, value in named.items() if name not in constants and _varies(value)]
            columns = [
                None if x is None else _Column(x, whole, outputs == 0) for x, whole in zip(samples, wholes, strict=True)
            ]
            count = named["count"] if "count" in named else len(next(x for x in samples if x is not None))
            results: list[Any] = []
            for start, stop in _runs(columns, {name: named[name] for name in varying}, shaping, count):
                arrays = [None if column is None else column.group(start, stop) for column in columns]
                group = _with_shapes(named, samples, outputs, start) if takes_specs else dict(named)
                for name in varying:
                    group[name] = np.stack(named[name][start:stop]) if is_list(named[name]) else named[name][start:stop]
                if "count" in named:
                    group["count"] = stop - start
                if "draws" in named:
                    group["draws"] = named["draws"].take(slice(start, stop))
                try:
                    results.append(function(*arrays, **group))
                except Exception as error:
                    within = getattr(error, "sample", None)
                    within = 0 if within is None and stop - start == 1 else within
                    if isinstance(within, int):
                        of_sample(error, start + within)
                    raise
                if stop - start > 1:
                    for column, array in zip(columns[:outputs], arrays, strict=False):
                        if column is not None:
                            column.store(array, start, stop)
            return results[0] if outputs or len(results) == 1 else _joined(results)

        return called

    return decorate


class _Column:
    """The samples of one input or output.

    Args:
        samples: `Samples` or `DeviceSamples`.
        whole: the same as one array, or None.
        is_kept: whether results may be views of the samples, which then keep their memory.
    """

    __slots__ = ("_views", "samples", "whole")

    def __init__(self, samples: Any, whole: Array | None, is_kept: bool) -> None:
        self.samples = samples
        self.whole = whole
        self._views: list[Array] = []
        if whole is None and not isinstance(samples, Samples):
            self._views = samples.tensors()
        elif whole is None:
            views = samples.arrays()
            self._views = [np.asarray(_Kept(view, samples)) for view in views] if is_kept else list(views)

    def group(self, start: int, stop: int) -> Array:
        """Return some samples, which have equal shapes, as one array: a view, or a copy of several."""
        if self.whole is not None:
            return self.whole if stop - start == len(self.whole) else self.whole[start:stop]
        views = self._views[start:stop]
        return views[0][None] if len(views) == 1 else stack_samples(views)

    def store(self, group: Any, start: int, stop: int) -> None:
        """Store the filled result of `group` for several samples, if that is a copy."""
        if self.whole is None:
            for target, values in zip(self._views[start:stop], group, strict=True):
                target[...] = values


class _Kept:
    """A view with NumPy's array interface, which keeps a reference to the owner of the memory."""

    def __init__(self, view: np.ndarray[Any, Any], owner: Samples) -> None:
        self.__array_interface__ = view.__array_interface__
        self.owner = view, owner


def _whole(x: Any, repeats: bool) -> Array | None:
    """Return samples as one contiguous array if they are one array, otherwise None."""
    if x.array is None:
        return None
    return x.array if repeats and x.array.strides[0] == 0 else np.ascontiguousarray(x.array)


def _varies(value: Any) -> bool:
    return is_list(value) or (hasattr(value, "__array__") and value.ndim > 0)


def _runs(
    columns: Sequence[_Column | None], varying: Mapping[str, Any], shaping: Sequence[str], count: int
) -> list[tuple[int, int]]:
    """Return the groups as ranges."""
    keys: list[Sequence[Any]] = []
    for column in columns:
        if column is not None and column.whole is None:
            shapes = column.samples.shapes
            is_large = shapes.prod(1) * column.samples.dtype.itemsize > _STACKING_LIMIT_BYTES
            each = enumerate(zip(is_large.tolist(), shapes.tolist(), strict=True))
            keys.append([n if is_alone else shape for n, (is_alone, shape) in each])
    for name, value in varying.items():
        if is_list(value):
            keys.append([vector.tolist() if name in shaping else vector.shape for vector in value])
        elif name in shaping:
            keys.append(value.tolist())
    return find_runs(keys, count)


def find_runs(keys: Sequence[Sequence[Any]], count: int) -> list[tuple[int, int]]:
    """Return ranges of consecutive samples with equal keys.

    Args:
        keys: sequences of `count` keys.
        count: number of samples.
    """
    rows = list(zip(*keys, strict=True)) if keys else [()] * count
    starts = [n for n in range(count) if n == 0 or rows[n] != rows[n - 1]]
    return list(pairwise([*starts, count]))


def _with_shapes(named: Mapping[str, Any], samples: Sequence[Any], outputs: int, index: int) -> dict[str, Any]:
    """Return the arguments with the shapes of one sample in the specs."""
    closed = dict(named)
    for name, own in (("spec", samples[outputs:]), ("out_spec", samples[:outputs])):
        if name in named and own:
            closed[name] = _closed(named[name], own[0], index)
        if f"{name}s" in named and own:
            closed[f"{name}s"] = tuple([_closed(*each, index) for each in zip(named[f"{name}s"], own, strict=True)])
    return closed


def _closed(spec: Any, x: Any, index: int) -> Any:
    if spec is None or x is None:
        return spec
    return spec.replace(shape=tuple(x.shapes[index].tolist() if x.dense is None else x.dense.shape[1:]))


def _joined(results: Sequence[Any]) -> Any:
    """Return the results of several groups as one list of samples for each output."""
    outputs: list[list[Any]] = [[] for _ in results[0]] if is_tuple(results[0]) else [[]]
    for result in results:
        for samples, part in zip(outputs, result if is_tuple(result) else (result,), strict=True):
            samples += part if is_list(part) else [part[n, ...] for n in range(len(part))]
    return tuple(outputs) if is_tuple(results[0]) else outputs[0]
