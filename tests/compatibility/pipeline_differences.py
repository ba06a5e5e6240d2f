"""Intended differences of pipelines, iterators and readers, with the results in both libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io.wavfile
from PIL import Image

from dalify.base.errors import DivergentBranchesError, UnsupportedSyntaxError
from tests.compatibility.differences import (
    IMAGE,
    MATRIX,
    REFUSED,
    Difference,
    adder,
    arrays,
    batches,
    built,
    defined,
    image,
    loader,
    numbered,
    one,
    part,
    source,
    tried,
)

PIPELINE_DIFFERENCES: list[Difference] = []
differs = adder(PIPELINE_DIFFERENCES)


def condition(package: Any, **options: Any) -> Any:
    def program() -> Any:
        x = source(package, [np.int32(3)])
        if x == 3:
            x = x + 1
        return x

    return batches(defined(package, program, **options), 1)


differs("conditionals are opt-in", dali=TypeError, dalify=[4])(condition)
differs("conditionals are opt-in", dali=TypeError, dalify=TypeError)(
    lambda package: condition(package, enable_conditionals=False)
)


@differs("ternary expressions", dali=TypeError, dalify=[11, 2])
def _(package: Any) -> Any:
    def program() -> Any:
        x = source(package, [np.int32(1), np.int32(2)])
        return x + 10 if x == 1 else x

    return arrays(defined(package, program, 2, enable_conditionals=True).run()[0])


@differs("ternary expressions", dali="one sample", dalify=UnsupportedSyntaxError)
def _(package: Any) -> Any:
    def program() -> Any:
        x = source(package, [np.int32(1), np.int32(2)])
        found = []
        if x == 1:
            found.append(x + 10)
        return found[0]

    (batch,) = defined(package, program, 2, enable_conditionals=True).run()
    return "one sample" if len(batch) == 1 else "two samples"


@differs("branches of different types", dali=[REFUSED], dalify=DivergentBranchesError)
def _(package: Any) -> Any:
    def program() -> Any:
        x = source(package, [True, False], dtype=package.types.BOOL, ndim=0)
        if x:  # noqa: SIM108
            y = package.fn.constant(idata=3)
        else:
            y = package.fn.constant(fdata=3.0)
        return y

    return tried(defined(package, program, 2, enable_conditionals=True).run)


@differs("invalid options of `Pipeline`", dali=[1, 1, 1, 1], dalify=[REFUSED] * 4)
def _(package: Any) -> Any:
    options = ({"batch_size": 0}, {"prefetch_queue_depth": -1}, {"py_num_workers": -3}, {"batch_size": None})
    settings = {"batch_size": 1, "num_threads": 1, "device_id": None}
    return tried(*(lambda o=o: bool(package.Pipeline(**settings | o)) for o in options))


@differs("`output_layout` may have more", dali=[1, REFUSED], dalify=[REFUSED, REFUSED])
def _(package: Any) -> Any:
    def outputs(**options: Any) -> int:
        return len(defined(package, lambda: source(package, [MATRIX], "HW"), **options).run())

    two = package.types.UINT8, package.types.UINT8
    return tried(lambda: outputs(output_layout=["HW", "HW"]), lambda: outputs(output_dtype=[*two]))


@differs("a batch without samples", dali=0, dalify=RuntimeError)
def _(package: Any) -> Any:
    return len(built(package, lambda: package.fn.external_source(lambda: [], batch=True)).run()[0])


@differs("a magnitude bin may be negative", dali=[True, REFUSED], dalify=[REFUSED, REFUSED])
def _(package: Any) -> Any:
    brightness = part(package, "auto_aug.augmentations").brightness

    def bright(number: int) -> Any:
        return image(package, lambda x: brightness(x, magnitude_bin=number, num_magnitude_bins=11))

    return tried(lambda: np.array_equal(bright(-1), bright(10)), lambda: bright(11))


@differs("`TensorListCPU.at`", dali=[0, 1], dalify=[99, 98])
def _(package: Any) -> Any:
    (batch,) = built(package, package.fn.copy, [MATRIX]).run()
    batch.at(0)[0, 0] = 99
    batch.as_array()[0, 0, 1] = 98
    return arrays(batch)[0][0, :2].tolist()


@differs("the function of `fn.python_function`", dali=1, dalify=RuntimeError)
def _(package: Any) -> Any:
    return one(package, lambda x: package.fn.python_function(x, function=lambda v: (v + 1, v), num_outputs=1), MATRIX)[
        0, 0
    ]


@differs("`TensorCPU` has Python's buffer protocol", dali=[(4, 6), True, True], dalify=[REFUSED, True, True])
def _(package: Any) -> Any:
    tensor = built(package, package.fn.copy, [MATRIX]).run()[0][0]
    same = bytes(tensor) == MATRIX.tobytes(), np.array_equal(np.asarray(tensor), MATRIX)
    return [*tried(lambda: memoryview(tensor).shape), *same]


@differs("with `exec_dynamic=False`", dali=[2, REFUSED, REFUSED], dalify=[2, REFUSED, 2])
def _(package: Any) -> Any:
    sizes = iter([2, 3, 2, 2, 2, 2, 2])

    def program() -> Any:
        size = package.fn.external_source(lambda: [np.int32([next(sizes)])])
        return package.fn.shapes(package.fn.reshape(np.int32([1, 2]), shape=size))

    pipe = defined(package, program, exec_dynamic=False, exec_async=False, exec_pipelined=False, prefetch_queue_depth=1)
    return [item[0] if isinstance(item, list) else item for item in batches(pipe, 3)]


@differs("`reset()` before the end is ignored", dali=([0, 1, 2], [0, 1, 2]), dalify=([0, 1, 0], [0, 1, 0]))
def _(package: Any, folder: Path) -> Any:
    root = numbered(folder, 5)
    pipe = built(package, lambda: package.fn.external_source(lambda info: np.int32(info.idx_in_epoch), batch=False))
    found = batches(pipe, 2)
    pipe.reset()
    files = loader(
        package, built(package, lambda: package.fn.readers.file(file_root=root, name="R")[0]), reader_name="R"
    )
    names = [next(files)[0]["x"].item() for _ in range(2)]
    files.reset()
    return found + batches(pipe, 1), [*names, next(files)[0]["x"].item()]


@differs("`set_outputs` after `build`", dali=1, dalify=RuntimeError)
def _(package: Any) -> Any:
    pipe = defined(package, lambda: package.fn.constant(idata=1))
    pipe.set_outputs(2, 3)
    return len(pipe.run())


@differs("a returned list", dali=TypeError, dalify=2)
def _(package: Any) -> Any:
    return len(defined(package, lambda: [package.fn.constant(idata=1), package.fn.constant(idata=2)]).run())


@differs("a returned list", dali=[[2]] * 4, dalify=[[2]] * 4)
def _(package: Any) -> Any:
    """A list of numbers is one constant in both, as the row says."""
    results = [[1, 2], [1.5, 2], [True, False], [package.types.FLOAT, package.types.INT8]]
    return [[*defined(package, lambda r=r: r).run()[0].shape()[0]] for r in results]


@differs(
    "64-bit constants",
    dali=[np.int32, np.int32, np.float32, 2**31 - 1],
    dalify=[np.int64, np.int64, np.float64, REFUSED],
)
def _(package: Any) -> Any:
    def constant(value: Any) -> np.ndarray:
        return one(package, lambda: package.fn.copy(value))

    types = [constant(value).dtype.type for value in (np.array([1, 2]), np.int64(5), np.float64(1.5))]
    return [*types, *tried(lambda: constant(2**33).item())]


@differs("an argument is converted", dali=[(1, 6)] * 5 + [IMAGE.shape], dalify=[REFUSED] * 6)
def _(package: Any) -> Any:
    def kept(value: Any) -> Any:
        return lambda: one(package, lambda x: package.fn.reductions.sum(x, axes=[0], keep_dims=value), MATRIX).shape

    flipped = lambda: image(package, lambda x: package.fn.flip(x, horizontal=0.5)).shape  # noqa: E731
    return tried(*(kept(value) for value in ("False", "0", 0.5, [True], object())), flipped)


@differs("enumerations take any number", dali=99, dalify=ValueError)
def _(package: Any) -> Any:
    return int(package.types.DALIInterpType(99))


@differs("`len()` of an iterator", dali=0, dalify=TypeError)
def _(package: Any) -> Any:
    return len(loader(package, built(package, package.fn.copy, [MATRIX] * 2)))


@differs("with `cycle=True`", dali=[0, 1, "end", "end"], dalify=[0, 1, REFUSED, REFUSED])
def _(package: Any) -> Any:
    data = iter([[np.int32(0)], [np.int32(1)]])
    pipe = built(package, lambda: package.fn.external_source(data, cycle=True))
    found = batches(pipe, 3)
    pipe.reset()
    return found + batches(pipe, 1)


@differs("random numbers depend", dali=False, dalify=True)
def _(package: Any) -> Any:
    def first(is_in_order: bool) -> Any:
        def graph() -> Any:
            pair = [package.fn.random.uniform(range=[0, 1]) for _ in range(2)]
            return tuple(pair if is_in_order else reversed(pair))

        outputs = [batch.as_array().item() for batch in built(package, graph).run()]
        return outputs if is_in_order else outputs[::-1]

    return first(True) == first(False)


@differs("iterators accept any negative `size`", dali=True, dalify=ValueError)
def _(package: Any) -> Any:
    iterator = loader(package, built(package, package.fn.copy, [MATRIX]), size=-5)
    return [len(next(iterator)) for _ in range(6)] == [1] * 6


@differs("with `LastBatchPolicy.DROP`", dali=RuntimeError, dalify=[])
def _(package: Any, folder: Path) -> Any:
    root, policies = numbered(folder, 3), part(package, "plugin.base_iterator").LastBatchPolicy
    pipe = built(package, lambda: package.fn.readers.file(file_root=root, name="R")[0], batch_size=4)
    return list(loader(package, pipe, reader_name="R", last_batch_policy=policies.DROP))


@differs("`fn.external_source` ignores entries", dali=2, dalify=ValueError)
def _(package: Any) -> Any:
    def graph() -> Any:
        given = {"layout": ["HW"] * 3, "dtype": [package.types.UINT8] * 3, "ndim": [2] * 3}
        return tuple(package.fn.external_source(lambda: ([MATRIX], [MATRIX]), num_outputs=2, **given))

    return len(built(package, graph).run())


def speech(folder: Path, before: str) -> str:
    scipy.io.wavfile.write(folder / "a.wav", 8000, np.zeros(100, np.int16))
    line = json.dumps({"audio_filepath": str(folder / "a.wav"), "duration": 1.0, "text": "x"})
    (folder / "manifest.json").write_text(f"{before}{line}\n{line}\n", encoding="utf-8")
    return str(folder / "manifest.json")


@differs("samples of `fn.readers.sequence`", dali=["", ""], dalify=["00.png", "a.wav"])
def _(package: Any, folder: Path) -> Any:
    (folder / "a").mkdir()
    for number in range(2):
        Image.fromarray(IMAGE).save(folder / "a" / f"{number:02}.png")
    manifest = speech(folder, "")
    graphs = (
        lambda: package.fn.readers.sequence(file_root=str(folder), sequence_length=2),
        lambda: package.fn.readers.nemo_asr(manifest_filepaths=[manifest], read_sample_rate=False, read_text=False),
    )
    return [Path(built(package, graph).run()[0][0].source_info()).name for graph in graphs]


@differs("lists, manifests and annotations", dali=[120], dalify=RuntimeError)
def _(package: Any, folder: Path) -> Any:
    (folder / "x.jpg").write_bytes(b"x")
    (folder / "list.txt").write_text("../x.jpg 1\n")
    root = numbered(folder, 1) + "/a"
    return one(package, lambda: package.fn.readers.file(file_root=root, file_list=str(folder / "list.txt"))[0])


@differs("invalid lines of a NeMo manifest", dali=[2, 1], dalify=[REFUSED, 2])
def _(package: Any, folder: Path) -> Any:
    def entries(before: str) -> int:
        given: Any = {"manifest_filepaths": [speech(folder, before)], "read_sample_rate": False, "read_text": False}
        return built(package, lambda: package.fn.readers.nemo_asr(**given, name="R")).epoch_size("R")

    return tried(lambda: entries("nonsense\n"), lambda: entries("\ufeff"))
