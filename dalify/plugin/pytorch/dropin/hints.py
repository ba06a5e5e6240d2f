"""Notes that dalify adds to errors of a loader: the location, and hints.

Errors keep the types that they have with torch's loader. Notes may be added in a worker process; torch includes their
text in the exception that the main process raises.
"""

from __future__ import annotations

import operator
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from PIL import Image

from dalify.base.wording import counted


def _add(error: Exception, text: str) -> None:
    note = f"dalify: {text}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def note_failed_transform(error: Exception, transform: Any, value: Any) -> None:
    """Add the name of the transform that raised, and a summary of its input."""
    name = getattr(transform, "__qualname__", type(transform).__qualname__)
    _add(error, f"raised by the transform {name}, given {_summary(value)}.")


def note_failed_file(error: Exception, path: Any) -> None:
    """Add the path of the file that could not be read."""
    _add(error, f"raised while the file {os.fsdecode(path)!r} was read.")


def note_failed_sample(error: Exception, index: Any, dataset: Any) -> None:
    """Add the index of the sample that could not be loaded."""
    count = len(dataset)
    try:
        index = operator.index(index)
    except TypeError:
        text = f"the sampler yielded {index!r}, but indices must be integers."
    else:
        text = (
            f"raised while sample {index} was loaded. To reproduce it: dataset[{index}]"
            if -count <= index < count
            else f"the sampler yielded index {index}, but the dataset has {counted(count, 'sample')}. If the dataset "
            "was shortened, create a new sampler and loader."
        )
    _add(error, text)


def note_failed_worker(error: Exception, function: Any, number: int) -> None:
    """Add that `function`, the user's `worker_init_fn`, raised in the worker `number`."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    _add(error, f"raised by worker_init_fn={name} in worker {number}, before the first sample.")


def note_failed_start(error: Exception, num_workers: int) -> None:
    """Add a hint if worker processes cannot be started.

    Args:
        error: raised by torch when it created an iterator.
        num_workers: number of workers of the loader.
    """
    is_unpicklable = isinstance(error, pickle.PicklingError) or "pickle" in str(error)
    if num_workers and is_unpicklable:
        _add(
            error,
            "worker processes that are spawned get the dataset, its transforms, collate_fn and worker_init_fn by "
            "pickle. Use functions defined at the top level of a module instead of lambdas and local functions, or "
            "multiprocessing_context='fork'. A loader whose explain() reports threads needs no "
            "pickle.",
        )


class NotedCollate:
    """A collate function whose errors get a note with a summary of its input.

    Args:
        collate: the user's function, or torch's default.
    """

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self.collate = collate

    def __call__(self, samples: Any) -> Any:
        """Collate the samples of a batch; one sample if batching is disabled."""
        try:
            return self.collate(samples)
        except Exception as error:
            name = getattr(self.collate, "__qualname__", type(self.collate).__name__)
            _add(error, f"raised by the collate function {name}, given {_summary(samples)}.{_collate_hint(samples)}")
            raise


def _summary(value: Any) -> str:
    """Return types and shapes of a sample, or of the first sample of a list."""
    if isinstance(value, list):
        return f"{counted(len(value), 'sample')}, the first of them {_summary(value[0])}" if value else "no samples"
    if isinstance(value, tuple):
        return f"({', '.join(map(_summary, value))})"
    if isinstance(value, Image.Image):
        return f"a Pillow image ({value.mode}, {value.width} x {value.height})"
    shape = _shape(value)
    return type(value).__name__ if shape is None else f"{type(value).__name__} of shape {shape}"


def _shape(value: Any) -> tuple[Any, ...] | None:
    with suppress(Exception):  # the user's classes may have anything there; nested tensors raise RuntimeError
        return tuple(value.shape) if isinstance(value.shape, tuple | list) else None
    return None


def _collate_hint(samples: Any) -> str:
    if not isinstance(samples, list | tuple):  # one sample: batching is disabled
        return ""
    firsts: list[Any] = [sample[0] if isinstance(sample, tuple) and sample else sample for sample in samples]
    if any(isinstance(first, Image.Image) for first in firsts):
        return " Pillow images cannot be collated: add ToTensor() at the end of the dataset's transform."
    if len({_shape(first) for first in firsts} - {None}) > 1:
        return " The samples differ in shape: add Resize((height, width)) or a crop, or set collate_fn."
    return ""
