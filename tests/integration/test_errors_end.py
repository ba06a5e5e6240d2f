"""When a caught error is deleted, the objects of its frames are freed: images, tensors, loaders with processes.

Frames that hold an error which holds them would keep all of it until Python's garbage collector happens to run.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dalify.experimental.dynamic as ndd
from dalify import eager, fn, lazy, pipeline_def, types
from dalify.base.errors import DalifyError
from dalify.plugin.pytorch import DALIClassificationIterator, DataLoader

NO_IMAGE = np.frombuffer(b"no image at all", np.uint8)


class Marker:
    """An object of the caller."""


pytestmark = pytest.mark.usefixtures("no_collector")


def pipeline(graph: Callable[[], Any], **options: Any) -> Any:
    return pipeline_def(**{"batch_size": 3, "num_threads": 1, "device_id": None, **options})(graph)()


def divide(array: Any) -> Any:
    return array / (1 // 0)


def bad_files(tmp_path) -> Any:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.jpg").write_bytes(NO_IMAGE.tobytes())
    encoded, labels = fn.readers.file(file_root=str(tmp_path), name="reader")
    return fn.decoders.image(encoded), labels


WAYS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "decoder": lambda root: pipeline(lambda: bad_files(root)).run,
    "decoder, threads": lambda root: pipeline(lambda: bad_files(root), batch_size=8, num_threads=3).run,
    "debug": lambda root: pipeline(lambda: bad_files(root), debug=True).run,
    "python_function": lambda _: pipeline(lambda: fn.python_function(types.Constant(1), function=divide)).run,
    "argument": lambda _: (
        pipeline(
            lambda: fn.crop(
                fn.random.uniform(range=(0, 1), shape=[4, 4, 1]),
                crop=[2, 2],
                crop_pos_x=fn.random.uniform(range=(2, 3)),
            )
        ).run
    ),
    "indexing": lambda _: pipeline(lambda: fn.random.uniform(range=(0, 1), shape=[4])[fn.constant(idata=9)]).run,
    "branches": lambda _: pipeline(branches).run,
    "unknown argument": lambda _: lambda: pipeline(lambda: fn.resize(types.Constant(1), sizes=3)),
    "iterator": lambda root: (
        lambda: next(iter(DALIClassificationIterator(pipeline(lambda: bad_files(root)), reader_name="reader")))
    ),
    "loader": lambda _: lambda: list(DataLoader([object()], on_fallback="silent")),  # type: ignore[arg-type]
    "checkpoint": lambda root: lambda: pipeline(lambda: bad_files(root)).load_state_dict({}),
    "eager": lambda _: lambda: eager.decoders.image(NO_IMAGE),
    "eager, batch": lambda _: lambda: eager.decoders.image([NO_IMAGE, NO_IMAGE]),
    "lazy": lambda _: decode_lazily,
    "lazy, flush": lambda _: flush_two_errors,
    "dynamic": lambda _: lambda: ndd.decoders.image(NO_IMAGE).evaluate(),
}


def branches() -> Any:
    number: Any = fn.random.uniform(range=(0, 1))
    if number > 2:
        return fn.cast(number, dtype=types.FLOAT)
    return number[3]


def decode_lazily() -> None:
    with lazy():
        np.asarray(eager.decoders.image(NO_IMAGE))


def flush_two_errors() -> None:
    with lazy():
        held = [eager.decoders.image(NO_IMAGE), eager.decoders.image(NO_IMAGE)]
        lazy.flush()
    del held


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outlives_a_caught_error(tmp_path, way):
    run = WAYS[way](tmp_path)

    def user() -> weakref.ref[Marker]:
        marker = Marker()
        reference = weakref.ref(marker)
        with pytest.raises((DalifyError, ZeroDivisionError, TypeError)):
            run()
        return reference

    assert user()() is None
