"""Read map-style Python datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, ReaderError
from dalify.base.wording import counted
from dalify.data import Entries
from dalify.registry import Spec, reader
from dalify.sources.convert import to_array
from dalify.sources.declaration import declarations

_MAX = 1024


class _Item(NamedTuple):
    items: _Items
    number: int


class _Items(Entries[_Item]):
    """The items of a dataset."""

    def __init__(self, dataset: Any, outputs: int, processes: int) -> None:
        self.dataset = dataset
        self.outputs = outputs
        self._processes = processes

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def processes(self) -> int:
        """Number of worker processes that read."""
        return self._processes

    def _entry(self, number: int) -> _Item:
        return _Item(self, number)

    @property
    def labels(self) -> np.ndarray[Any, Any] | None:
        """The classes of the items, if the dataset has them as torchvision's do (``targets`` or ``labels``)."""
        found = getattr(self.dataset, "targets", None)
        if found is None:
            found = getattr(self.dataset, "labels", None)
        labels = None if found is None else np.asarray(found)
        return labels if labels is not None and labels.shape == (len(self),) else None


@reader(outputs=lambda given: max(1, given["num_outputs"]), user_code=True)
def dataset(
    *,
    dataset: object,
    num_outputs: int = 2,
    layout: object = None,
    dtype: object = None,
    ndim: object = None,
    processes: int = 0,
) -> tuple[Spec, ...]:
    """Read a map-style dataset of PyTorch, torchvision or Hugging Face, or any object with ``len()`` and ``[index]``.

    Order, sharding, shuffling, samplers, checkpoints and error handling work as in all readers. For iterable datasets
    use ``fn.external_source(source=iterable, batch=False)``.

    Args:
        dataset: the dataset.
        num_outputs: number of values of an item: a tuple, list or dictionary with this number of values (including
            nested ones), or a single value. Pillow images become HWC arrays, strings and bytes uint8 arrays, and
            numbers 0-D arrays.
        layout: layout of the values, one string or one per output.
        dtype: expected element type, one or one per output.
        ndim: expected number of dimensions, one or one per output.
        processes: number of worker processes that call the dataset; 0: the threads of the pipeline call it, which is
            faster if the dataset mostly runs code that releases the GIL. In processes, the random generators of
            Python, NumPy and torch are seeded per sample, so that runs are reproducible and can be resumed. A process
            that dies loses one sample and is replaced.

    Returns:
        one output per value, on the CPU.

    Raises:
        ArgumentTypeError: the object is not a map-style dataset.
        ReaderError: an item has a wrong number of values.
        MixedBatchError: the type or number of dimensions of an item differs from the first one of the batch.
        WorkerError: a process died while it read a sample, or took longer than ``callback_timeout_s``.
        Exception: exceptions of the dataset, with a note that names the item.

    Example:
        >>> images, labels = fn.readers.dataset(dataset=cifar, random_shuffle=True, name="Reader")  # doctest: +SKIP
    """
    _check(dataset, num_outputs, processes)
    declared = declarations(num_outputs, dtype=dtype, ndim=ndim, layout=layout)
    return tuple(Spec(each.dtype, each.ndim, each.layout or (None if each.ndim is None else "")) for each in declared)


def _check(dataset: Any, num_outputs: int, processes: int) -> None:
    if isinstance(dataset, (str, bytes, PathLike)):
        raise ArgumentTypeError(
            f"dataset must be an object with __len__ and __getitem__; got the path {dataset!r}.",
            hint="For a folder of files use fn.readers.file(file_root=...).",
        )
    if isinstance(dataset, type) or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        is_class = isinstance(dataset, type)
        got = f"the class {dataset.__name__}" if is_class else type(dataset).__name__
        iterable = hasattr(dataset, "__iter__") and not is_class
        raise ArgumentTypeError(
            f"dataset must be an object with __len__ and __getitem__; got {got}.",
            hint="For an iterable use fn.external_source(source=dataset, batch=False, num_outputs=...)."
            if iterable
            else "",
        )
    for name, value, minimum in (("num_outputs", num_outputs, 1), ("processes", processes, 0)):
        if not minimum <= value <= _MAX:
            raise ArgumentValueError(f"{name} must be between {minimum} and {_MAX}; got {value}.")


@dataset.index
def _(dataset: Any, num_outputs: int, processes: int, **declared: Any) -> _Items:
    return _Items(dataset, num_outputs, processes)


@dataset.read
def _(item: _Item) -> tuple[np.ndarray[Any, Any], ...]:
    values = list(_values(item.items.dataset[item.number]))
    if any(value is None for value in values):
        raise ReaderError(
            f"item {item.number} of the dataset is or contains None.",
            hint="Return a number or an array instead, for instance an empty one.",
        )
    if len(values) != item.items.outputs:
        count = counted(len(values), "value")
        raise ReaderError(
            f"item {item.number} of the dataset has {count}; expected {item.items.outputs}.",
            hint=f"Pass num_outputs={len(values)} if all items have {count}.",
        )
    return tuple(_array(value) for value in values)


@dataset.origin
def _(item: _Item) -> str:
    return f"item {item.number} of the dataset"


def _values(item: Any) -> Iterator[Any]:
    """Yield the values of an item, including nested ones."""
    if isinstance(item, Mapping):
        for value in item.values():
            yield from _values(value)
    elif isinstance(item, tuple) or (isinstance(item, list) and not _is_array_like(item)):
        for value in item:
            yield from _values(value)
    else:
        yield item


def _is_array_like(item: list[Any]) -> bool:
    """Return whether a list is data, such as a row of numbers, rather than several values."""
    return bool(item) and all(isinstance(value, (bool, int, float)) for value in item)


def _array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, (str, bytes)):
        return np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)
    array = to_array(value)
    array = array if isinstance(array, np.ndarray) else array.cpu().numpy()
    is_image = hasattr(value, "getbands")
    return array[..., None] if is_image and array.ndim == 2 else array
