"""Programs that give other results in dalify than in DALI on purpose, and parts of such programs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

REFUSED = "refused"
UNDEFINED: Any = object()  # DALI may read other memory or end the process
MATRIX = np.arange(24, dtype=np.uint8).reshape(4, 6)
IMAGE = np.random.default_rng(0).integers(0, 256, (8, 10, 3), np.uint8)
GRADIENT = np.arange(0, 80, 10, np.uint8)[:, None, None] + np.zeros((8, 10, 3), np.uint8)


@dataclass(frozen=True)
class Difference:
    """A program for a row of the table, and its result in each library: a value, or the class of its exception."""

    row: str
    run: Callable[..., Any]
    dali: Any
    dalify: Any


def adder(differences: list[Difference]) -> Callable[..., Callable[[Callable[..., Any]], None]]:
    """Return a decorator that adds programs to a list; ``row`` is how the row begins."""

    def differs(row: str, *, dali: Any, dalify: Any) -> Callable[[Callable[..., Any]], None]:
        return lambda run: differences.append(Difference(row, run, dali, dalify))

    return differs


def part(package: Any, name: str) -> Any:
    return importlib.import_module(f"{package.__name__}.{name}")


def source(package: Any, samples: Sequence[Any], layout: str | None = None, **options: Any) -> Any:
    data = [np.array(sample) for sample in samples]
    return package.fn.external_source(source=lambda: data, layout=layout or None, **options)


def defined(package: Any, function: Callable[[], Any], batch_size: int = 1, **options: Any) -> Any:
    """Return a pipeline that is built."""
    settings = {"num_threads": 1, "device_id": None, "seed": 1, "batch_size": batch_size} | options
    pipe = package.pipeline_def(function, **settings)()
    pipe.build()
    return pipe


def built(
    package: Any, call: Callable[..., Any], *inputs: Sequence[Any], layouts: Sequence[str] | str = "", **options: Any
) -> Any:
    """Return a pipeline of a function of nodes, with these samples for each input."""
    each = [layouts] * len(inputs) if isinstance(layouts, str) else layouts
    settings = {"num_threads": 1, "device_id": None, "seed": 1, "batch_size": len(inputs[0]) if inputs else 1} | options
    pipe = package.Pipeline(**settings)
    with pipe:
        result = call(*(source(package, samples, layout) for samples, layout in zip(inputs, each, strict=True)))
        pipe.set_outputs(*(result if isinstance(result, tuple) else (result,)))
    pipe.build()
    return pipe


def arrays(batch: Any) -> list[np.ndarray]:
    return [np.array(batch.at(index)) for index in range(len(batch))]


def one(package: Any, call: Callable[..., Any], *samples: Any, layouts: Sequence[str] | str = "") -> np.ndarray:
    """Return the only sample of the only output of a function of nodes."""
    (batch,) = built(package, call, *([sample] for sample in samples), layouts=layouts).run()
    return arrays(batch)[0]


def image(package: Any, call: Callable[..., Any], sample: np.ndarray = IMAGE, layout: str = "HWC") -> np.ndarray:
    return one(package, call, sample, layouts=layout)


def tried(*calls: Callable[[], Any]) -> list[Any]:
    """Return the result of each function, or `REFUSED`."""
    found: list[Any] = []
    for call in calls:
        try:
            found.append(call())
        except Exception:
            found.append(REFUSED)
    return found


def batches(pipe: Any, count: int) -> list[Any]:
    """Return the first sample of several batches; the class of the exception where there is one."""
    found: list[Any] = []
    for _ in range(count):
        try:
            found.append(arrays(pipe.run()[0])[0].tolist())
        except Exception as error:
            found.append("end" if isinstance(error, StopIteration) else REFUSED)
    return found


def loader(package: Any, pipe: Any, **options: Any) -> Any:
    return part(package, "plugin.pytorch").DALIGenericIterator(pipe, ["x"], **options)


def numbered(folder: Path, count: int) -> str:
    """Write files that contain their number, and return their root."""
    (folder / "a").mkdir(exist_ok=True)
    for number in range(count):
        (folder / "a" / f"{number:02}.jpg").write_bytes(bytes([number]))
    return str(folder)
