"""Intended differences of dynamic mode, with the results in both libraries."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dalify.base.errors import BatchSizeError
from tests.compatibility.differences import IMAGE, REFUSED, Difference, adder, numbered, part, tried

DYNAMIC_DIFFERENCES: list[Difference] = []
differs = adder(DYNAMIC_DIFFERENCES)


def dynamic(package: Any) -> Any:
    return part(package, "experimental.dynamic")


@differs("a call computes in another thread", dali="when it is read", dalify=IndexError)
def _(package: Any) -> Any:
    mode = dynamic(package)
    image = mode.crop(mode.tensor(IMAGE, layout="HWC"), crop=[200, 200])
    return "when it is read" if tried(lambda: np.asarray(image)) == [REFUSED] else image


@differs("`batch.select([0, 2])`", dali=[4, 4], dalify=[2, 2])
def _(package: Any) -> Any:
    batch = dynamic(package).batch([np.float32([number]) for number in range(4)])
    return [batch.select([0, 2]).batch_size, batch.select(slice(1, 3)).batch_size]


@differs("`tensor[:, None]` omits", dali=[(8, 10, 3), True, True], dalify=[(8, 1, 10, 3), False, False])
def _(package: Any) -> Any:
    tensor = dynamic(package).tensor(IMAGE, layout="HWC")
    return [np.asarray(tensor[:, None]).shape, tensor[0].layout is None, len(list(islice(iter(tensor), 9))) == 9]


@differs("`bool(batch)` is True", dali=[True, True], dalify=[REFUSED, REFUSED])
def _(package: Any) -> Any:
    mode = dynamic(package)
    return tried(lambda: bool(mode.batch([np.int32([1])] * 2)), lambda: bool(mode.tensor(np.int32([1, 0]))))


@differs("`np.float64(2) * batch`", dali=["f32", "f64", False], dalify=["f64", "f64", True])
def _(package: Any) -> Any:
    mode = dynamic(package)
    batch = mode.batch([np.float32([1, 2]), np.float32([3, 4])])
    types = [str((np.float64(2) * batch).dtype), str((batch * np.float64(2)).dtype)]
    return [*types, isinstance(np.float32([1, 1]) * batch, mode.Batch)]


@differs("an operator turns an empty batch", dali=1, dalify=BatchSizeError)
def _(package: Any) -> Any:
    mode = dynamic(package)
    return mode.cast(mode.batch([], dtype=mode.uint8), dtype=mode.float32).batch_size


@differs("`bytes` are not accepted", dali=[REFUSED] * 3, dalify=[(3,), "f32", (2,)])
def _(package: Any) -> Any:
    mode = dynamic(package)
    return tried(
        lambda: mode.tensor(b"abc").shape, lambda: str(mode.dtype("float32")), lambda: mode.float32([1, 2]).shape
    )


@differs("after `reader.get_metadata()`", dali=[REFUSED], dalify=[[3, 3]])
def _(package: Any, folder: Path) -> Any:
    reader = dynamic(package).readers.File(file_root=numbered(folder, 6))
    reader.get_metadata()
    return tried(lambda: [files.batch_size for files, _ in reader.next_epoch(batch_size=3)])


@differs("states of readers need", dali=[REFUSED], dalify=["a state"])
def _(package: Any, folder: Path) -> Any:
    reader = dynamic(package).readers.File(file_root=numbered(folder, 6))
    next(iter(reader.next_epoch(batch_size=2)))
    return tried(lambda: "a state" if reader.get_state() else "none")
