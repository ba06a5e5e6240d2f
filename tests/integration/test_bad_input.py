"""User errors in whole pipelines: the class of the error, its complete message, and that the next run works."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import dalify
from dalify import fn, pipeline_def, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BatchSizeError,
    ConditionError,
    DalifyError,
    DecodeError,
    DeviceError,
    DTypeError,
    IndexingError,
    LayoutError,
    NoGraphError,
    PipelineStateError,
    ReaderError,
    ShapeError,
    UnknownArgumentError,
    UnknownOperatorError,
)
from dalify.plugin.pytorch import DALIGenericIterator
from tests.helpers.one_operator import assert_equals_dali

OURS = SimpleNamespace(fn=fn, types=types, pipeline_def=pipeline_def)
HERE = Path(__file__).name


def check_text(error: DalifyError, operator: str = "", *, line: bool = True) -> str:
    """All messages have one style: `fn.x: problem.`, then sample and origin, the user's line, and a remedy."""
    text = str(error)
    head, *rest = text.split("\n")
    assert head.endswith((".", "?")), head
    assert head.count("fn.") <= 1 + head.count("external_source") + head.count("has no"), head
    if operator:
        assert head.startswith(f"{operator}: "), head
        assert text.count(f"{operator}: ") == 1, text
        head = head.removeprefix(f"{operator}: ")
    assert not re.match(r"[A-Z][a-z]", head), f"starts with a capital: {head}"
    assert text.count(f"{HERE}:") == (1 if line else 0), text
    assert "dalify bug" not in text
    assert all(part.startswith("  ") for part in rest), text
    last = rest[-1].strip() if error.hint else ""
    assert not error.hint or last.endswith((".", "?", "...)", ")")), text
    assert "  " not in head
    return text


def runs(pipe: Any, count: int) -> list[Any]:
    """Return the result of each of several runs: the shapes of samples, or the error."""
    seen: list[Any] = []
    for _ in range(count):
        try:
            seen.append([batch.shape() for batch in pipe.run()])
        except Exception as error:
            seen.append(error)
    return seen


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(photo_folder: Path, tmp_path: Path) -> Path:
    """Write one class of six photographs; the second may be damaged."""
    target = tmp_path / "photos" / "cat"
    target.mkdir(parents=True)
    for number, path in enumerate(sorted(photo_folder.glob("*/*.jpg"))[:6]):
        shutil.copy(path, target / f"{number}.jpg")
    return target.parent


def decoding(folder: Path, library: Any = OURS) -> Any:
    def graph() -> Any:
        encoded, labels = library.fn.readers.file(file_root=str(folder))
        return library.fn.decoders.image(encoded), labels

    return library.pipeline_def(batch_size=2, num_threads=2, device_id=None)(graph)()


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


DAMAGED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "truncated": (truncated, r"truncated JPEG: the data ends after 300 bytes"),
    "empty": (lambda path: path.write_bytes(b""), r"not an image: the data is empty \(0 bytes\)"),
    "text": (lambda path: path.write_text("hello, I am text\n" * 9), r"not an image: the data .* starts with b'hello"),
    "zeros": (lambda path: path.write_bytes(bytes(1000)), r"not an image"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_fails_only_its_batch_and_is_named(name: str, folder: Path) -> None:
    damage, message = DAMAGED[name]
    damage(folder / "cat" / "1.jpg")
    error, *after = runs(decoding(folder), 3)
    assert isinstance(error, DecodeError)
    assert isinstance(error, RuntimeError)
    text = check_text(error, "fn.decoders.image")
    assert re.search(message, text)
    assert f"  sample 1 of the batch, from {folder / 'cat' / '1.jpg'}\n" in text
    assert "return library.fn.decoders.image(encoded), labels" in text
    assert [len(each[0]) for each in after] == [2, 2]


def test_a_damaged_file_is_the_same_builtin_error_in_dali(folder: Path, oracle: Any) -> None:
    (folder / "cat" / "1.jpg").write_text("hello, I am text\n" * 9)
    with pytest.raises(Exception) as theirs:  # noqa: PT011 -- the test determines the class
        decoding(folder, oracle).run()
    with pytest.raises(theirs.type):
        decoding(folder).run()


def test_a_file_that_vanishes_fails_only_its_batch(folder: Path) -> None:
    pipe = decoding(folder)
    pipe.build()
    (folder / "cat" / "1.jpg").unlink()
    error, *after = runs(pipe, 3)
    assert isinstance(error, ReaderError)
    assert isinstance(error, FileNotFoundError)
    assert "sample 1 of the batch" in check_text(error, "fn.readers.file")
    assert [len(each[0]) for each in after] == [2, 2]


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


READERS: dict[str, tuple[Callable[[Path], dict[str, Any]], str]] = {
    "missing folder": (lambda root: {"file_root": str(root / "none")}, r"cannot read the folder '.*none'"),
    "empty folder": (lambda root: {"file_root": str(root / "cat" / "..")}, ""),
    "folder without classes": (
        lambda root: {"file_root": str(root / "cat")},
        r"has no subfolders: .*file_root/<class>/",
    ),
    "missing list": (lambda root: {"file_list": str(root / "list.txt")}, r"cannot read the file list '.*list\.txt'"),
    "line without label": (
        lambda root: {"file_root": str(root), "file_list": write(root / "list", "cat/0.jpg 0\ncat/1.jpg\n")},
        r"list, line 2: expected a path, a space and an integer label; got 'cat/1\.jpg'",
    ),
    "label that is no number": (
        lambda root: {"file_root": str(root), "file_list": write(root / "list", "cat/0.jpg x\n")},
        r"list, line 1: expected a path",
    ),
    "empty list": (lambda root: {"file_list": write(root / "list", "")}, ""),
    "nothing given": (lambda root: {}, "one of file_root, file_list and files"),
    "shard out of range": (lambda root: {"file_root": str(root), "shard_id": 3, "num_shards": 2}, "shard_id"),
    "no queue": (
        lambda root: {"file_root": str(root), "prefetch_queue_depth": 0},
        "prefetch_queue_depth must be at least 1; got 0",
    ),
}


@pytest.mark.parametrize("name", [name for name in READERS if name != "empty folder"])
def test_readers_without_files(name: str, folder: Path, oracle: Any) -> None:
    make, message = READERS[name]
    arguments = make(folder)

    def pipe(library: Any) -> Any:
        return library.pipeline_def(batch_size=2, num_threads=1, device_id=None)(
            lambda: library.fn.readers.file(**arguments)[0]
        )()

    with pytest.raises(DalifyError) as caught:
        pipe(OURS).build()
    assert re.search(message, check_text(caught.value, "fn.readers.file"))
    with pytest.raises(Exception) as theirs:  # noqa: PT011 -- the test determines the class
        pipe(oracle).build()
    assert isinstance(caught.value, theirs.type)


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    with pytest.raises(ReaderError) as caught:
        decoding(tmp_path).build()
    assert str(tmp_path) in check_text(caught.value, "fn.readers.file")


# -- operators -------------------------------------------------------------------------------------------------------


class Case:
    """A graph with an error: `make(library)` returns the node; the second batch is correct if `recovers`."""

    def __init__(
        self,
        name: str,
        make: Callable[[Any], Any],
        error: type[DalifyError],
        message: str,
        operator: str,
        *,
        in_dali: bool = True,
        built: bool = False,
    ) -> None:
        self.name, self.make, self.error, self.message = name, make, error, message
        self.operator, self.in_dali, self.built = operator, in_dali, built


def data(
    library: Any, shape: tuple[int, ...] = (8, 9, 3), dtype: Any = np.uint8, layout: str | None = "HWC", **more: Any
) -> Any:
    return library.fn.external_source(lambda: np.ones((2, *shape), dtype), layout=layout, **more)


def uniform(library: Any) -> Any:
    return library.fn.random.uniform(range=(1.0, 2.0))


CASES = [
    Case(
        "decode image",
        lambda d: d.fn.decoders.image(data(d)),
        DTypeError,
        "one-dimensional samples of type uint8.*already decoded, omit the decoder",
        "fn.decoders.image",
    ),
    Case(
        "decode floats",
        lambda d: d.fn.decoders.image(data(d, (9,), np.float32, None)),
        DTypeError,
        "one-dimensional samples of type uint8",
        "fn.decoders.image",
    ),
    Case(
        "resize vector",
        lambda d: d.fn.resize(data(d, (8,), layout=None), size=(4, 4)),
        LayoutError,
        "1 dimension and no layout",
        "fn.resize",
    ),
    Case(
        "resize unknown layout",
        lambda d: d.fn.resize(data(d, layout="ABC"), size=(4, 4)),
        LayoutError,
        "layout 'ABC'.*fn.reshape",
        "fn.resize",
    ),
    Case(
        "resize two sizes",
        lambda d: d.fn.resize(data(d), size=(4, 4), resize_x=3),
        ArgumentValueError,
        "in exactly one way",
        "fn.resize",
    ),
    Case(
        "resize text",
        lambda d: d.fn.resize(data(d), size="big"),
        ArgumentTypeError,
        "size must be .*got 'big'",
        "fn.resize",
        built=True,
        in_dali=False,
    ),
    Case(
        "resize filter",
        lambda d: d.fn.resize(data(d), size=(3, 3), interp_type="linear"),
        ArgumentValueError,
        r"interp_type must be one of .*got 'linear'\. Did you mean types\.INTERP_LINEAR\?",
        "fn.resize",
        built=True,
        in_dali=False,
    ),
    Case(
        "crop too large",
        lambda d: d.fn.crop(data(d), crop=(20, 20)),
        IndexingError,
        "window of 20 x 20 does not fit into 8 x 9.*out_of_bounds_policy",
        "fn.crop",
    ),
    Case(
        "crop length",
        lambda d: d.fn.crop(data(d), crop=(2,)),
        ArgumentValueError,
        r"crop must have 2 or 3 elements",
        "fn.crop",
    ),
    Case(
        "means",
        lambda d: d.fn.crop_mirror_normalize(data(d), mean=[1.0, 2.0], std=[1.0, 1.0, 1.0]),
        ShapeError,
        "mean must be one number or one for each of the 3 channels; got 2",
        "fn.crop_mirror_normalize",
    ),
    Case(
        "cast without dtype",
        lambda d: d.fn.cast(data(d)),
        ArgumentTypeError,
        "requires the argument dtype",
        "fn.cast",
        built=True,
        in_dali=False,
    ),
    Case(
        "misspelled",
        lambda d: d.fn.rotate(data(d), angel=3.0),
        UnknownArgumentError,
        "unknown argument 'angel'. Did you mean 'angle'.*Valid arguments: angle",
        "fn.rotate",
        built=True,
    ),
    Case(
        "too many inputs",
        lambda d: d.fn.rotate(data(d), data(d), data(d), angle=3.0),
        ArgumentTypeError,
        r"takes 1 input \(x\); got 3.*Pass arguments that are not inputs by name",
        "fn.rotate",
        built=True,
        in_dali=False,
    ),
    Case(
        "no input",
        lambda d: d.fn.resize(size=(3, 3)),
        ArgumentTypeError,
        r"takes 1 input \(x\); got 0",
        "fn.resize",
        built=True,
        in_dali=False,
    ),
    Case(
        "None as input",
        lambda d: d.fn.resize(None, size=(3, 3)),
        ArgumentTypeError,
        "the input 'x' is None",
        "fn.resize",
        built=True,
    ),
    Case(
        "text as input",
        lambda d: d.fn.resize("abc", size=(3, 3)),
        ArgumentTypeError,
        "an input must be a graph value, a number or an array; got str.*dalify.eager has the same",
        "fn.resize",
        built=True,
    ),
    Case(
        "argument of three values",
        lambda d: d.fn.rotate(data(d), angle=data(d, (3,), np.float32, None)),
        ShapeError,
        r"angle needs one value per sample; the graph value has shape \(3,\)",
        "fn.rotate",
    ),
    Case(
        "argument of floats",
        lambda d: d.fn.flip(data(d), horizontal=data(d, (), np.float32, None)),
        ArgumentTypeError,
        r"horizontal needs integers.*float32.*fn\.cast",
        "fn.flip",
        in_dali=False,
    ),
    Case(
        "list with nodes",
        lambda d: d.fn.crop(data(d), crop=[uniform(d), 3]),
        ArgumentTypeError,
        r"crop is a list that contains graph values.*crop=fn\.stack\(",
        "fn.crop",
        built=True,
        in_dali=False,
    ),
    Case(
        "node for a constant",
        lambda d: d.fn.cast(data(d), dtype=uniform(d)),
        ArgumentTypeError,
        "dtype must be the same for the whole batch",
        "fn.cast",
        built=True,
    ),
    Case(
        "unknown device",
        lambda d: d.fn.resize(data(d), size=(3, 3), device="tpu"),
        ArgumentValueError,
        "device must be one of cpu, gpu, mixed; got 'tpu'. Did you mean 'gpu'",
        "fn.resize",
        built=True,
    ),
    Case(
        "no mixed variant",
        lambda d: d.fn.resize(data(d), size=(3, 3), device="mixed"),
        DeviceError,
        "has no 'mixed' variant.*Use device=",
        "fn.resize",
        built=True,
        in_dali=False,
    ),
    Case(
        "CPU operator of GPU data",
        lambda d: d.fn.resize(data(d).gpu(), size=(3, 3), device="cpu"),
        DeviceError,
        r"an input is on the GPU.*Write input\.cpu\(\)",
        "fn.resize",
        built=True,
        in_dali=False,
    ),
    Case(
        "shapes that do not fit",
        lambda d: data(d, (3, 4), layout=None) + data(d, (5, 4), layout=None),
        ShapeError,
        r"\(3, 4\) and \(5, 4\) cannot be broadcast",
        "arithmetic",
    ),
    Case(
        "index",
        lambda d: data(d)[99],
        IndexingError,
        "index 99 is out of range for axis 0 of extent 8",
        "indexing",
        in_dali=False,
    ),
]


def pipeline_of(case: Case, library: Any) -> Any:
    return library.pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=1)(lambda: case.make(library))()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operators(case: Case) -> None:
    with pytest.raises(case.error) as caught:  # noqa: PT012 -- the place of the error is checked, too
        pipe = pipeline_of(case, OURS)
        assert not case.built, "the error is raised when the operator is called"
        pipe.build()
        pipe.run()
    assert re.search(case.message, check_text(caught.value, case.operator), re.DOTALL), str(caught.value)


@pytest.mark.parametrize("case", [case for case in CASES if case.in_dali], ids=lambda case: case.name)
def test_operators_raise_the_builtin_errors_of_dali(case: Case, oracle: Any) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011, PT012 -- the test determines the class
        pipe = pipeline_of(case, oracle)
        pipe.build()
        pipe.run()
    assert issubclass(case.error, theirs.type)


def test_an_error_in_one_sample_fails_one_batch_and_names_sample_and_file(folder: Path) -> None:
    extents = [min(shape[:2]) for shape in _shapes(folder)]
    wanted = min(extents) + 1

    def graph() -> Any:
        images = fn.decoders.image(fn.readers.file(file_root=str(folder))[0])
        return fn.crop(images, crop=(wanted, wanted))

    seen = runs(pipeline_def(batch_size=2, num_threads=1, device_id=None)(graph)(), 3)
    for batch, result in enumerate(seen):
        bad = [index for index in (2 * batch, 2 * batch + 1) if extents[index] < wanted]
        if not bad:
            assert result == [[(wanted, wanted, 3)] * 2]
            continue
        assert isinstance(result, IndexingError)
        file = folder / "cat" / f"{bad[0]}.jpg"
        assert f"  sample {bad[0] % 2} of the batch, from {file}\n" in check_text(result, "fn.crop")
    assert {type(result) for result in seen} == {list, IndexingError}


def _shapes(folder: Path) -> list[tuple[int, ...]]:
    pipe = decoding(folder)
    return [shape for _ in range(3) for shape in pipe.run()[0].shape()]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_of_several_bad_samples_the_first_is_reported_for_any_number_of_threads(depth: int, threads: int) -> None:
    def source(info: Any) -> np.ndarray:
        extent = 3 if info.iteration in (1, 3) and info.idx_in_batch in (5, 11) else 8
        return np.full((extent, 9, 3), info.iteration, np.uint8)

    def graph() -> Any:
        return fn.crop(fn.external_source(source, batch=False, layout="HWC"), crop=(6, 6))

    pipe = pipeline_def(batch_size=16, num_threads=threads, device_id=None, prefetch_queue_depth=depth)(graph)()
    seen = runs(pipe, 6)
    assert [isinstance(each, IndexingError) for each in seen] == [False, True, False, True, False, False]
    assert "sample 5 of the batch" in check_text(seen[1], "fn.crop")
    assert str(seen[1]) == str(seen[3])


def test_a_condition_must_be_one_value() -> None:
    def graph() -> Any:
        image = data(OURS)
        if image > 3:
            image = image + 1
        return image

    (error,) = runs(pipeline_def(batch_size=2, num_threads=1, device_id=None)(graph)(), 1)
    assert isinstance(error, ConditionError)
    text = check_text(error)
    assert text.startswith("the condition has 3 dimensions per sample; it must be a single value.\n")
    assert "if image > 3:" in text
    assert "fn.reductions.max" in text


@pytest.mark.parametrize("debug", [False, True])
def test_the_line_of_a_condition_without_operators_in_its_branches(debug: bool) -> None:
    def graph() -> Any:
        image = data(OURS)
        other = image * 2
        return image if image else other

    (error,) = runs(pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=debug)(graph)(), 1)
    assert "return image if image else other" in check_text(error)


def test_a_batch_that_is_too_large(oracle: Any) -> None:
    def pipe(library: Any) -> Any:
        def source(iteration: int) -> np.ndarray:
            return np.ones((3 if iteration == 1 else 2, 4))

        return library.pipeline_def(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)(
            lambda: library.fn.external_source(source)
        )()

    first, error, after = runs(pipe(OURS), 3)
    assert isinstance(error, BatchSizeError)
    assert "for a single one, write [array]" in str(error)
    assert "the batch has 3 samples, but the pipeline's batch_size is 2" in check_text(error, "fn.external_source")
    assert len(first[0]) == len(after[0]) == 2
    theirs = runs(pipe(oracle), 2)
    assert isinstance(error, type(theirs[1]))


# -- names and options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: fn.rotae, r"there is no operator fn\.rotae\. Did you mean 'rotate'\?"),
        (
            lambda: fn.decoders.imag,
            r"no operator fn\.decoders\.imag\. Did you mean 'image'\?\n  fn\.decoders has: .*\bimage\b",
        ),
        (lambda: dalify.ops.Rotae, r"there is no operator ops\.Rotae\. Did you mean 'Rotate'"),
        (lambda: fn.reader, r"no operator fn\.reader\. Did you mean 'readers'\?"),
        (lambda: fn.mean, r"no operator fn\.mean\. Did you mean fn\.reductions\.mean\?"),
        (lambda: fn.video, r"no operator fn\.video\. Did you mean fn\.decoders\.video or fn\.readers\.video\?"),
        (lambda: dalify.ops.Webdataset, r"no operator ops\.Webdataset\. Did you mean ops\.readers\.Webdataset\?"),
    ],
)
def test_unknown_operators(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(UnknownOperatorError, match=message) as caught:
        use()
    assert isinstance(caught.value, AttributeError)


def test_inputs_passed_to_the_constructor_of_an_operator() -> None:
    with pytest.raises(ArgumentTypeError, match=r"(?s)ops\.decoders\.Image\(\) takes no inputs.*Write ops") as caught:
        dalify.ops.decoders.Image(data(OURS))
    check_text(caught.value)


def test_a_decorator_of_a_number() -> None:
    with pytest.raises(ArgumentTypeError, match=r"(?s)decorates a function; got 32\..*batch_size=32") as caught:
        pipeline_def(32)  # pyright: ignore[reportCallIssue, reportArgumentType]
    check_text(caught.value)


def test_a_subclass_without_the_initialization_of_its_base() -> None:
    class Photos(dalify.Pipeline):
        def __init__(self) -> None:
            pass

    for use in (lambda: Photos().run(), lambda: Photos().build(), lambda: Photos().__enter__()):
        with pytest.raises(PipelineStateError, match=r"(?s)Photos\.__init__ did not call.*super\(\)") as caught:
            use()
        check_text(caught.value)
    with pytest.raises(AttributeError, match="'Pipeline' object has no attribute 'rum'"):
        dalify.Pipeline(2, 1).rum()  # pyright: ignore[reportAttributeAccessIssue]


class _FailingSampler:
    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[int]:
        yield 0
        raise LookupError("no index")


@pytest.mark.parametrize(
    ("sampler", "error", "message"),
    [
        ([0, 99], ArgumentValueError, "a sampler yielded the index 99; valid indices are 0 to 1."),
        ("ab", ArgumentTypeError, "a sampler must yield integer indices of entries; got ['a', 'b']."),
        (_FailingSampler(), LookupError, "no index"),
    ],
)
def test_samplers_that_fail(sampler: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_bytes(b"x")
    (found,) = runs(
        pipeline_def(lambda: fn.readers.file(files=files, sampler=sampler)[1])(batch_size=2, num_threads=1), 1
    )
    assert isinstance(found, error)
    if isinstance(found, DalifyError):
        assert message in check_text(found, "fn.readers.file")
    else:
        assert re.fullmatch(rf"Raised by the sampler of fn\.readers\.file at .*{HERE}:\d+ in .*\.", found.__notes__[0])


@pytest.mark.parametrize("epoch", [-1, "a", 1.5])
def test_epochs_of_iterators_are_numbers(epoch: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    pipe = pipeline_def(lambda: fn.readers.file(files=[tmp_path / "a"], name="r"))(batch_size=1, num_threads=1)
    with pytest.raises(ArgumentValueError, match="epoch must be an integer, at least 0; got"):
        DALIGenericIterator(pipe, ["a", "b"], reader_name="r").set_epoch(epoch)


@pytest.mark.parametrize("convert", [np.asarray, np.array, lambda x: np.array([x, x])])
def test_a_graph_value_as_an_array(convert: Callable[[Any], Any]) -> None:
    """NumPy would make an array of one object, which an operator rejects elsewhere."""
    with pytest.raises(ConditionError, match="cannot be converted to an array") as caught:
        pipeline_def(lambda: convert(data(OURS)))(batch_size=2, num_threads=1)
    check_text(caught.value)


def test_a_graph_value_outside_of_a_pipeline() -> None:
    with pytest.raises(ConditionError, match=r"Call eager\.flip to compute at once\.") as caught:
        np.asarray(fn.flip(np.zeros((4, 5, 3), np.uint8)))
    check_text(caught.value)
    with pytest.raises(ConditionError, match=r"Call eager\.noise\.gaussian to compute at once\."), dalify.lazy():
        len(fn.noise.gaussian(np.zeros((4, 5, 3), np.uint8)))


OPTIONS: list[tuple[dict[str, Any], type[DalifyError], str]] = [
    ({"batch_size": 0}, ArgumentValueError, "batch_size must be at least 1; got 0"),
    ({"batch_size": "a"}, ArgumentTypeError, "batch_size must be an integer; got 'a'"),
    ({"batch_size": None}, ArgumentTypeError, "a pipeline requires batch_size"),
    ({"num_threads": 0}, ArgumentValueError, "num_threads must be at least 1; got 0"),
    ({"num_threads": 1.5}, ArgumentTypeError, "num_threads must be an integer; got 1.5"),
    ({"seed": "x"}, ArgumentTypeError, "seed must be an integer or None; got 'x'"),
    ({"device_id": "cuda:0"}, ArgumentTypeError, "device_id must be an integer or None; got 'cuda:0'"),
    ({"prefetch_queue_depth": 0}, ArgumentValueError, "prefetch_queue_depth must be at least 1; got 0"),
    ({"prefetch_queue_depth": 1.5}, ArgumentTypeError, "prefetch_queue_depth must be an integer, or a dict of"),
    ({"bytes_per_sample": -1}, ArgumentValueError, "bytes_per_sample must be at least 0; got -1"),
    ({"enable_conditionals": "False"}, ArgumentTypeError, "enable_conditionals must be True or False; got 'False'"),
    (
        {"prefetch_queue_depth": {"cpu_size": 2, "gpu_size": 3}, "exec_async": False},
        ArgumentValueError,
        "prefetch_queue_depth as a dict cannot be used with exec_async=False; got",
    ),
    (
        {"prefetch_queue_depth": {"cpu_size": 2, "gpu_size": 3}, "exec_dynamic": True},
        ArgumentValueError,
        "prefetch_queue_depth as a dict cannot be used with exec_dynamic=True; got",
    ),
    ({"prefetch_queue_depth": {"cpu": 1}}, ArgumentValueError, "needs the keys 'cpu_size' and 'gpu_size'"),
    ({"py_num_workers": -1}, ArgumentValueError, "py_num_workers must be at least 0; got -1"),
    ({"py_start_method": "thread"}, ArgumentValueError, "py_start_method must be one of fork, spawn, forkserver; got"),
    ({"btach_size": 3}, UnknownArgumentError, "no argument 'btach_size'. Did you mean 'batch_size'"),
    ({"shuffle": True}, UnknownArgumentError, "(?s)no argument 'shuffle'.*The pipeline accepts: batch_size"),
]


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS, ids=lambda value: str(value)[:40])
def test_options_of_a_pipeline(options: dict[str, Any], error: type[DalifyError], message: str) -> None:
    given = {"batch_size": 2, "num_threads": 1, **options}
    for make in (
        lambda: pipeline_def(**given)(lambda: data(OURS))(),
        lambda: pipeline_def(lambda: data(OURS))(**given),
        lambda: dalify.Pipeline(**given),
    ):
        with pytest.raises(error) as caught:
            make()
        assert re.search(message, check_text(caught.value))


def test_negative_seeds_count_as_not_given() -> None:
    pipes = [dalify.Pipeline(batch_size=1, num_threads=1, seed=seed) for seed in (-1, -5, np.int64(-1), None)]
    assert len({pipe.seed for pipe in pipes}) == 4
    assert all(pipe.seed >= 0 for pipe in pipes)

    def drawn(seed: int | None) -> list[float]:
        graph = pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=7)(
            lambda: fn.random.uniform(range=(0.0, 1.0), seed=seed)
        )
        return graph().run()[0].as_array().tolist()

    assert drawn(-1) == drawn(None)
    assert drawn(3) == drawn(3) != drawn(None)


def test_what_a_pipeline_returns() -> None:
    for result, message in (
        ("abc", "output 0 of the pipeline is of type str; it must be a graph value"),
        ({"a": 1}, "(?s)output 0 of the pipeline is of type dict.*Return a tuple of its values"),
        ((number for number in range(2)), "(?s)of type generator.*without `async` and `yield`"),
    ):
        with pytest.raises(TypeError, match=message) as caught:
            pipeline_def(batch_size=2, num_threads=1)(lambda result=result: result)()
        check_text(caught.value)
    with pytest.raises(NoGraphError, match="has no outputs") as nothing:
        pipeline_def(batch_size=2, num_threads=1)(lambda: None)().run()
    assert isinstance(nothing.value, NotImplementedError)  # as in DALI
    assert "Return them from the pipeline function" in check_text(nothing.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"output_dtype": types.FLOAT},
            DTypeError,
            "dtype uint8, but output_dtype is float32",
        ),
        ({"output_ndim": 2}, ShapeError, "ndim 3, but output_ndim is 2"),
        ({"output_layout": "CHW"}, LayoutError, "layout 'HWC', but output_layout is 'CHW'"),
    ],
)
def test_outputs_that_are_not_as_expected(options: dict[str, Any], error: type[DalifyError], message: str) -> None:
    pipe = pipeline_def(batch_size=2, num_threads=1, device_id=None, **options)(lambda: data(OURS))()
    for found in runs(pipe, 2):
        assert isinstance(found, error)
        assert message in check_text(found)


# -- devices ---------------------------------------------------------------------------------------------------------

ON_GPU: dict[str, tuple[Callable[[], Any], str]] = {
    "copy": (lambda: fn.resize(data(OURS).gpu(), size=(3, 3)), ".gpu()"),
    "source": (lambda: data(OURS, device="gpu"), "fn.external_source"),
    "operator": (lambda: fn.resize(data(OURS), size=(3, 3), device="gpu"), "fn.resize"),
    "mixed": (lambda: fn.decoders.image(data(OURS, (9,), layout=None), device="mixed"), "fn.decoders.image"),
    "random": (lambda: fn.random.uniform(range=(0.0, 1.0), device="gpu"), "fn.random.uniform"),
}


@pytest.mark.parametrize("name", ON_GPU)
def test_a_gpu_where_there_is_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_DEVICE", raising=False)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    make, operator = ON_GPU[name]
    pipe = pipeline_def(batch_size=2, num_threads=1, device_id=0)(make)()
    with pytest.raises(DeviceError) as caught:
        pipe.build()
    text = check_text(caught.value, operator)
    assert "device='gpu' was requested, but torch finds no accelerator on this machine" in text
    assert "DALIFY_DEVICE=cpu" in text
    assert isinstance(caught.value, RuntimeError)
    if name != "mixed":
        monkeypatch.setenv("DALIFY_DEVICE", "cpu")
        assert len(pipe.run()[0]) == 2  # the same pipeline with the suggested change


# -- nodes and pipelines ---------------------------------------------------------------------------------------------


def test_nodes_belong_to_no_pipeline() -> None:
    numbers = fn.external_source(lambda iteration: np.full((2, 1), iteration))
    seen = []
    for factor in (2, 3):
        pipe = pipeline_def(batch_size=2, num_threads=1, device_id=None)(lambda factor=factor: numbers * factor)()
        seen.append([int(pipe.run()[0].as_array()[0, 0]) for _ in range(3)])
    assert seen == [[0, 2, 4], [0, 3, 6]]
    one, two = dalify.Pipeline(batch_size=2, num_threads=1), dalify.Pipeline(batch_size=2, num_threads=1)
    with one:
        made = numbers + 1
    two.set_outputs(made * 10)
    one.set_outputs(made)
    assert int(two.run()[0].as_array()[0, 0]) == 10
    assert int(one.run()[0].as_array()[0, 0]) == 1


@pytest.mark.usefixtures("emulated_gpu")
def test_an_argument_on_the_gpu() -> None:
    with pytest.raises(DeviceError) as caught:
        fn.rotate(data(OURS), angle=uniform(OURS).gpu())
    text = check_text(caught.value, "fn.rotate")
    assert "the argument angle must be on the CPU; it was computed on the GPU." in text
    assert text.endswith("Compute it with device='cpu', or write angle=value.cpu().")


def test_a_negative_size_mirrors_as_in_dali() -> None:
    image = np.arange(8 * 9 * 3, dtype=np.uint8).reshape(8, 9, 3)
    assert_equals_dali("resize", [image], layouts="HWC", size=(-4, 4), tolerance=1)
