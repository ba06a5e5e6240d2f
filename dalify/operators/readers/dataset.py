"""Read any Python data set that has a length and gives its items by number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, ReaderError
from dalify.registry import Spec, operator
from dalify.sources.convert import to_array
from dalify.sources.declaration import declarations

_MOST = 1024


class _Item(NamedTuple):
    items: _Items
    number: int


class _Items(Sequence[_Item]):
    """The items of a data set."""

    def __init__(self, dataset: Any, outputs: int, processes: int) -> None:
        self.dataset = dataset
        self.outputs = outputs
        self.processes = processes

    def __len__(self) -> int:
        return len(self.dataset)

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | list[_Item]:
        if isinstance(index, slice):
            return [_Item(self, number) for number in range(*index.indices(len(self)))]
        return _Item(self, int(index))

    @property
    def labels(self) -> np.ndarray[Any, Any] | None:
        """The classes of the items, where the data set tells them as those of torchvision do."""
        found = getattr(self.dataset, "targets", None)
        if found is None:
            found = getattr(self.dataset, "labels", None)
        labels = None if found is None else np.asarray(found)
        return labels if labels is not None and labels.shape == (len(self),) else None


@operator(outputs=lambda given: max(1, given["num_outputs"]), reader=True, user_code=True)
def dataset(
    *,
    dataset: object,
    num_outputs: int = 2,
    layout: object = None,
    dtype: object = None,
    ndim: object = None,
    processes: int = 0,
) -> tuple[Spec, ...]:
    """Read a map-style data set: of PyTorch, torchvision, Hugging Face, or any object with ``len()`` and ``[number]``.

    Order, shards, shuffling, samplers, resuming and the treatment of bad samples are those of all readers. An iterable
    data set is a source: ``fn.external_source(source=iterable, batch=False)``.

    Args:
        dataset: the data set.
        num_outputs: how many values an item has: a tuple, list or dictionary of so many (in nested ones all are
            counted), or one value alone. Pictures of Pillow become HWC arrays, texts and bytes arrays of uint8, numbers
            arrays without dimensions.
        layout: of the values, one text or one per output.
        dtype: element type that is expected, one or one per output.
        ndim: dimensions that are expected, one or one per output.
        processes: number of worker processes that call the data set; 0: the threads of the pipeline do, which pays
            where the data set spends its time in code that frees the interpreter's lock. In processes, random numbers
            of Python, numpy and torch are set for each sample, so that runs can be repeated and resumed. A process
            that dies costs one sample and is replaced.

    Returns:
        one output per value, on the CPU.

    Raises:
        ArgumentTypeError: something that is no map-style data set.
        ReaderError: an item with another number of values.
        MixedBatchError: an item of another type or number of dimensions than the first one of the batch.
        WorkerError: a process died while it read a sample, or took longer than ``callback_timeout_s``.
        Exception: what the data set raises, with a note on the item.

    Example:
        >>> images, labels = fn.readers.dataset(dataset=cifar, random_shuffle=True, name="Reader")  # doctest: +SKIP
    """
    _check(dataset, num_outputs, processes)
    declared = declarations(num_outputs, dtype=dtype, ndim=ndim, layout=layout)
    return tuple(Spec(each.dtype, each.ndim, each.layout or (None if each.ndim is None else "")) for each in declared)


def _check(dataset: Any, num_outputs: int, processes: int) -> None:
    if isinstance(dataset, type) or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        iterable = hasattr(dataset, "__iter__")
        raise ArgumentTypeError(
            f"dataset must have a length and give items by number; got {type(dataset).__name__}.",
            hint="Use fn.external_source(source=dataset, batch=False, num_outputs=...) for one that is iterated."
            if iterable
            else "",
        )
    for name, value, least in (("num_outputs", num_outputs, 1), ("processes", processes, 0)):
        if not least <= value <= _MOST:
            raise ArgumentValueError(f"{name} must be from {least} to {_MOST}; got {value}.")


@dataset.index
def _(dataset: Any, num_outputs: int, processes: int, **declared: Any) -> _Items:
    return _Items(dataset, num_outputs, processes)


@dataset.read
def _(item: _Item) -> tuple[np.ndarray[Any, Any], ...]:
    values = list(_values(item.items.dataset[item.number]))
    if len(values) != item.items.outputs:
        count = "1 value" if len(values) == 1 else f"{len(values)} values"
        raise ReaderError(
            f"the item {item.number} of the data set has {count}, not {item.items.outputs}.",
            hint=f"Write num_outputs={len(values)} if all items have so many.",
        )
    return tuple(_array(value) for value in values)


@dataset.origin
def _(item: _Item) -> str:
    return f"item {item.number} of the data set"


def _values(item: Any) -> Iterator[Any]:
    """Yield the values of an item, those of nested ones too."""
    if isinstance(item, Mapping):
        for value in item.values():
            yield from _values(value)
    elif isinstance(item, tuple) or (isinstance(item, list) and not _is_array_like(item)):
        for value in item:
            yield from _values(value)
    else:
        yield item


def _is_array_like(item: list[Any]) -> bool:
    """Tell whether a list is data, such as a row of numbers, and not several values."""
    return bool(item) and all(isinstance(value, (bool, int, float)) for value in item)


def _array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, (str, bytes)):
        return np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)
    array = to_array(value)
    array = array if isinstance(array, np.ndarray) else array.cpu().numpy()
    is_picture = hasattr(value, "getbands")
    return array[..., None] if is_picture and array.ndim == 2 else array
