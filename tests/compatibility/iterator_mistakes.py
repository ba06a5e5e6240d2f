"""Mistakes with iterators, in both libraries; the class of the error is compared.

What dalify accepts is not here: several pipelines without a size, an iterator after `run`, states without
`enable_checkpointing`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.compatibility.programs import Program

_FOLDER = Path(tempfile.gettempdir()) / "dalify-iterator-mistakes"


def _files(count: int = 10) -> list[str]:
    """Return the paths of small files."""
    _FOLDER.mkdir(exist_ok=True)
    found = [_FOLDER / f"{number}.bin" for number in range(count)]
    for number, path in enumerate(found):
        path.write_bytes(bytes([number]))
    return [str(path) for path in found]


def read(dali: Any, batch_size: int = 4, name: str | None = "Reader", count: int = 10, **options: Any) -> Any:
    """Return a pipeline with a reader: the bytes of files, and labels."""

    def pipeline():
        files = _files(count)
        return tuple(dali.fn.readers.file(files=files, labels=list(range(count)), name=name, **options))

    return dali.pipeline_def(pipeline)(batch_size=batch_size, num_threads=1, device_id=None)


def fed(dali: Any, samples: Any = None, batch_size: int = 4, **options: Any) -> Any:
    """Return a pipeline with an external source."""
    data = np.zeros((4, 3), np.float32) if samples is None else samples

    def pipeline():
        x = dali.fn.external_source(source=lambda: data)
        return x, x + 1

    return dali.pipeline_def(pipeline)(batch_size=batch_size, num_threads=1, device_id=None, **options)


def _generic(pipelines: Any = read, names: Any = ("a", "b"), **options: Any) -> Program:
    """An iterator that is made, and gives a batch."""

    def made(dali: Any) -> Any:
        given = {key: value(dali) if callable(value) else value for key, value in options.items()}
        mapped = list(names) if isinstance(names, tuple) else names
        return next(dali.plugin.pytorch.DALIGenericIterator(pipelines(dali), mapped, **given))

    return made


def _classes(pipelines: Any = read, **options: Any) -> Program:
    return lambda dali: next(dali.plugin.pytorch.DALIClassificationIterator(pipelines(dali), **options))


def _ragged(pipelines: Any = read, names: Any = ("a", "b"), **options: Any) -> Program:
    return lambda dali: next(dali.plugin.pytorch.DALIRaggedIterator(pipelines(dali), list(names), **options))


def _three(dali: Any) -> Any:
    def pipeline():
        x = dali.fn.external_source(source=lambda: np.zeros((4, 3), np.float32))
        return x, x, x

    return dali.pipeline_def(pipeline)(batch_size=4, num_threads=1, device_id=None)


def _after_the_end(dali: Any) -> Any:
    loader = dali.plugin.pytorch.DALIGenericIterator(read(dali), ["a", "b"], reader_name="Reader")
    for _ in range(9):
        next(loader)


def _ended_source(dali: Any) -> Any:
    def pipeline():
        x = dali.fn.external_source(source=[np.zeros((4, 3), np.float32)])
        return x, x

    made = dali.pipeline_def(pipeline)(batch_size=4, num_threads=1, device_id=None)
    loader = dali.plugin.pytorch.DALIGenericIterator(made, ["a", "b"])
    for _ in range(3):
        next(loader)


def _run_of_an_iterated_pipeline(dali: Any) -> Any:
    pipe = read(dali)
    loader = dali.plugin.pytorch.DALIGenericIterator(pipe, ["a", "b"], reader_name="Reader")
    next(loader)
    pipe.run()


def _copied_into(*shape: int, **options: Any) -> Program:
    """A batch that is copied into a tensor of another kind."""

    def made(dali: Any) -> Any:
        batch = fed(dali).run()[0].as_tensor()
        return dali.plugin.pytorch.feed_ndarray(batch, torch.empty(shape, **options))

    return made


def _unlike_shards(dali: Any) -> Any:
    return [read(dali, num_shards=2), read(dali, num_shards=3)]


def _unlike_padding(dali: Any) -> Any:
    return [read(dali, num_shards=2, pad_last_batch=True), read(dali, num_shards=2, shard_id=1)]


def _unlike_sizes(dali: Any) -> Any:
    return [read(dali), read(dali, count=8)]


def _unlike_sticking(dali: Any) -> Any:
    return [read(dali, num_shards=2, stick_to_shard=True), read(dali, num_shards=2, shard_id=1)]


def _shapes(dali: Any) -> Any:
    return fed(dali, [np.zeros(number + 1, np.float32) for number in range(4)])


ITERATOR_MISTAKES: dict[str, Program] = {
    "one name of two": _generic(names=("a",)),
    "three names of two": _generic(names=("a", "b", "c")),
    "no names": _generic(names=()),
    "a name twice": _generic(names=("a", "a")),
    "names of a longer text": _generic(names="abc"),
    "names None": _generic(names=None),
    "names of a number": _generic(names=3),
    "no pipelines": _generic(lambda dali: []),
    "None as pipeline": _generic(lambda dali: None),
    "a number as pipeline": _generic(lambda dali: 3),
    "a function as pipeline": _generic(lambda dali: dali.pipeline_def(lambda: dali.fn.random.uniform())),
    "None among pipelines": _generic(lambda dali: [read(dali), None]),
    "different batch sizes": _generic(lambda dali: [read(dali), read(dali, batch_size=2)]),
    "size 0": _generic(size=0),
    "size of a text": _generic(size="x"),
    "size None": _generic(size=None),
    "size of an infinity": _generic(size=float("inf")),
    "size and reader": _generic(size=10, reader_name="Reader"),
    "size 0 and reader": _generic(size=0, reader_name="Reader"),
    "padded and reader": _generic(last_batch_padded=True, reader_name="Reader"),
    "unknown reader": _generic(reader_name="Other"),
    "reader of a source": _generic(fed, reader_name="Reader"),
    "reader without a name": _generic(lambda dali: read(dali, name=None), reader_name="Reader"),
    "reader of a number": _generic(reader_name=3),
    "unknown policy": _generic(last_batch_policy="drop"),
    "policy of a number": _generic(last_batch_policy=1),
    "policy None": _generic(last_batch_policy=None),
    "unknown auto_reset": _generic(auto_reset="maybe"),
    "auto_reset of a number": _generic(auto_reset=5),
    "different shards": _generic(_unlike_shards, reader_name="Reader"),
    "different padding": _generic(_unlike_padding, reader_name="Reader"),
    "different sizes": _generic(_unlike_sizes, reader_name="Reader"),
    "different sticking": _generic(_unlike_sticking, reader_name="Reader"),
    "unknown option": _generic(no_such_option=1),
    "small batches with size": _generic(lambda dali: fed(dali, np.zeros((3, 2), np.float32)), size=8),
    "shapes that differ": _generic(_shapes),
    "no output map": lambda dali: dali.plugin.pytorch.DALIGenericIterator(read(dali)),
    "classes of three outputs": _classes(_three),
    "classes of an unknown reader": _classes(reader_name="Other"),
    "classes, size and reader": _classes(size=3, reader_name="Reader"),
    "classes, size 0": _classes(size=0),
    "classes, no pipelines": _classes(lambda dali: []),
    "classes, names": lambda dali: dali.plugin.pytorch.DALIClassificationIterator(read(dali), output_map=["a", "b"]),
    "ragged, one name": _ragged(names=("a",)),
    "ragged, unknown type": _ragged(output_types=["dense", "no"]),
    "ragged, too few types": _ragged(output_types=["dense"]),
    "ragged, a name twice": _ragged(names=("a", "a")),
    "ragged, size 0": _ragged(size=0),
    "after the end": _after_the_end,
    "after the end of a source": _ended_source,
    "run of an iterated pipeline": _run_of_an_iterated_pipeline,
    "copied into another shape": _copied_into(3, 4),
    "copied into another type": _copied_into(4, 3, dtype=torch.int32),
    "meta of an unknown reader": lambda dali: read(dali).reader_meta("Other"),
    "epoch size of an unknown reader": lambda dali: read(dali).epoch_size("Other"),
    "meta of a source": lambda dali: fed(dali).reader_meta("Reader"),
}
