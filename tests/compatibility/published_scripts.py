"""Whole scripts as published code has them: conditions, sources, readers, iterators, states, several pipelines."""

# ruff: noqa: SIM108 -- the programs are what is tested

from __future__ import annotations

import functools
import tempfile
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.compatibility.programs import Program, run

SCRIPTS: dict[str, Program] = {}
_FOLDER = Path(tempfile.gettempdir()) / "dalify-published-scripts"
_RANDOM = np.random.default_rng(6)


def script(function: Program) -> Program:
    SCRIPTS[function.__name__.replace("_", " ")] = function
    return function


def scripts(prefix: str, functions: dict[str, Program]) -> None:
    SCRIPTS.update({f"{prefix}: {name}": function for name, function in functions.items()})


@functools.cache
def folder() -> Path:
    """Return a folder with two classes of five small images, saved without loss."""
    for number in range(10):
        path = _FOLDER / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8 + number, 9, 3), number * 20, np.uint8)).save(path)
    return _FOLDER


@functools.cache
def arrays() -> Path:
    """Return a folder with six NumPy files."""
    path = _FOLDER / "arrays"
    path.mkdir(parents=True, exist_ok=True)
    for number in range(6):
        np.save(path / f"{number}.npy", np.full((3, 4), number, np.float32))
    return path


def of(dali: Any, function: Callable[[], Any], batch_size: int = 2, **options: Any) -> Any:
    def outputs() -> Any:
        found = function()
        return tuple(found) if isinstance(found, list) else found

    pipe = dali.pipeline_def(outputs)(batch_size=batch_size, num_threads=1, device_id=None, **options)
    pipe.build()
    return pipe


# -- conditions --------------------------------------------------------------------------------------------------------


def conditional(function: Callable[[Any, Any], Any], data: Any = (1, 5, 2, 8)) -> Program:
    """A program with conditions; the function gets the library and one number per sample."""

    def made(dali: Any) -> Any:
        @dali.pipeline_def(batch_size=len(data), num_threads=1, device_id=None, enable_conditionals=True)
        def pipeline():
            return function(dali, dali.fn.external_source(source=lambda: np.int32(data)))

        return pipeline().run()

    return made


def _if_else(dali, x):
    if x > 3:
        y = x * 2
    else:
        y = x - 1
    return y


def _if_only(dali, x):
    y = x
    if x > 3:
        y = y + 100
    return y


def _nested(dali, x):
    if x > 1:
        if x > 4:
            y = x * 10
        else:
            y = x * 100
    else:
        y = x
    return y


def _else_if(dali, x):
    if x == 1:
        y = x + 10
    elif x == 2:
        y = x + 20
    elif x == 5:
        y = x + 50
    else:
        y = x
    return y


def _and_or_not(dali, x):
    if (x > 1 and x < 6) or x == 8:
        y = x + 1
    else:
        y = x
    if not x > 4:
        y = -y
    return y


def _two_values(dali, x):
    if x > 3:
        a, b = x, x + 1
    else:
        a, b = x + 2, x
    return a, b


def _returns(dali, x):
    if x > 3:
        return x * 2
    return x


def _shapes(dali, x):
    if x > 3:
        y = dali.fn.full(x, shape=[2])
    else:
        y = dali.fn.full(x, shape=[3])
    return y


def _python_condition(dali, x):
    flag = True
    if flag:
        y = x + 1
    else:
        y = x * 0
    return y


def _function_inside(dali, x):
    def larger(value):
        if value > 3:
            return value + 7
        return value

    return larger(x) + larger(x + 2)


def _random_branch(dali, x):
    if dali.fn.random.coin_flip(probability=1.0, dtype=dali.types.BOOL):
        x = x + 1
    return x


def _while_python(dali, x):
    for number in range(3):
        if x > number * 2:
            x = x + 1
    return x


def _numbers(dali, x):
    if x > 3:
        y = 1
    else:
        y = 0
    return y + x


def _dictionary(dali, x):
    if x > 3:
        found = {"a": x, "b": x + 1}
    else:
        found = {"a": x - 1, "b": x}
    return found["a"], found["b"]


scripts(
    "condition",
    {
        "if and else": conditional(_if_else),
        "if only": conditional(_if_only),
        "nested": conditional(_nested),
        "elif": conditional(_else_if),
        "and, or, not": conditional(_and_or_not),
        "two values": conditional(_two_values),
        "returns": conditional(_returns),
        "shapes": conditional(_shapes),
        "of Python": conditional(_python_condition),
        "in a function": conditional(_function_inside),
        "of a coin": conditional(_random_branch),
        "in a loop": conditional(_while_python),
        "numbers": conditional(_numbers),
        "dictionary": conditional(_dictionary),
        "all one side": conditional(_if_else, (9, 9)),
    },
)

# -- sources -----------------------------------------------------------------------------------------------------------


class Batches:
    """An iterator over batches, as in the documentation of external sources."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size

    def __iter__(self):
        self.number = 0
        return self

    def __next__(self):
        if self.number == 2:
            raise StopIteration
        self.number += 1
        return (
            [np.full(3, self.number, np.uint8)] * self.batch_size,
            [np.int32([self.number])] * self.batch_size,
        )

    def __len__(self):
        return 2


class Samples:
    """A callable that is given sample information."""

    def __init__(self, count: int, batch_size: int) -> None:
        self.full = count // batch_size

    def __call__(self, info):
        if info.iteration >= self.full:
            raise StopIteration
        return np.full(2, info.idx_in_epoch, np.int32), np.int32([info.idx_in_batch])


def epochs(dali: Any, function: Callable[[], Any], runs: int, **options: Any) -> Any:
    """Return the outputs of some runs, and "end" where the data ended, with a reset."""
    pipe = of(dali, function, prefetch_queue_depth=1, **options)
    found: list[Any] = []
    for _ in range(runs):
        try:
            found.append([output.as_array() for output in pipe.run()])
        except StopIteration:
            found.append("end")
            pipe.reset()
    return found


def fed(runs: int, source: Callable[[], Any], **options: Any) -> Program:
    def made(dali: Any) -> Any:
        given = {name: value(dali) if callable(value) else value for name, value in options.items()}

        def pipeline():
            outputs = dali.fn.external_source(source=source(), **given)
            return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs

        return epochs(dali, pipeline, runs)

    return made


def _generator():
    for number in range(2):
        yield np.full((2, 2), number, np.float32)


scripts(
    "source",
    {
        "iterator of tuples": fed(2, lambda: Batches(2), num_outputs=2),
        "iterator, until the end": fed(4, lambda: Batches(2), num_outputs=2, cycle="raise"),
        "iterator, again and again": fed(5, lambda: Batches(2), num_outputs=2, cycle="quiet"),
        "iterator, True": fed(5, lambda: Batches(2), num_outputs=2, cycle=True),
        "generator function": fed(4, lambda: _generator, cycle="quiet"),
        "generator function, raise": fed(5, lambda: _generator, cycle="raise"),
        "generator": fed(2, lambda: _generator()),
        "list": fed(3, lambda: [np.int32([1, 2]), np.int32([3, 4])], cycle="quiet"),
        "list, raise": fed(4, lambda: [np.int32([1, 2]), np.int32([3, 4])], cycle="raise"),
        "list of lists": fed(1, lambda: [[np.int32([1]), np.int32([2])]]),
        "samples": fed(4, lambda: Samples(5, 2), num_outputs=2, batch=False),
        "samples of a function": fed(2, lambda: lambda info: np.int32([info.idx_in_epoch]), batch=False),
        "samples of iteration": fed(3, lambda: lambda info: np.int32([info.iteration]), batch=False),
        "number of the batch": fed(3, lambda: lambda number: np.full((2, 1), number, np.int32)),
        "information of the batch": fed(3, lambda: lambda info: np.full(2, info.iteration, np.int32), batch_info=True),
        "with a layout": fed(1, lambda: lambda: np.zeros((2, 3, 3, 1), np.uint8), layout="HWC"),
        "with a type": fed(1, lambda: lambda: np.zeros((2, 3), np.int16), dtype=lambda d: d.types.INT16, ndim=1),
        "with NumPy's type": fed(1, lambda: lambda: np.zeros((2, 3), np.int16), dtype=None),
        "with one output in a tuple": fed(1, lambda: lambda: (np.int32([1, 2]),), num_outputs=1),
        "without copies": fed(2, lambda: lambda: np.float32([1, 2]), no_copy=True),
        "numbers of Python": fed(1, lambda: lambda: [np.array(3), np.array(4)]),
        "float64": fed(1, lambda: lambda: np.linspace(0, 1, 4).reshape(2, 2)),
        "truths": fed(1, lambda: lambda: np.array([[True], [False]])),
        "half": fed(1, lambda: lambda: np.float16([[1], [2]])),
    },
)


@script
def names_of_sources(dali):
    pipe = of(dali, lambda: tuple(dali.fn.external_source(name=name) for name in ("a", "b")), prefetch_queue_depth=1)
    pipe.feed_input("a", np.int32([1, 2]))
    pipe.feed_input("b", [np.float32([1]), np.float32([2, 3])])
    return pipe.run()


@script
def batches_of_other_sizes(dali):
    pipe = of(dali, lambda: dali.fn.external_source(name="a") + 1, 4, prefetch_queue_depth=1)
    found = []
    for size in (4, 2, 3):
        pipe.feed_input("a", np.arange(size, dtype=np.int32))
        found.append(pipe.run()[0].as_array())
    return found


@script
def fed_by_iter_setup(dali):
    class Feeding(dali.Pipeline):
        def __init__(self, batch_size):
            super().__init__(batch_size, 1, None, seed=12)
            self.input = dali.ops.ExternalSource()
            self.input_label = dali.ops.ExternalSource()
            self.cast = dali.ops.Cast(device="cpu", dtype=dali.types.INT32)
            self.iterator = iter(range(10))

        def define_graph(self):
            self.images = self.input(name="images")
            self.labels = self.input_label()
            return self.cast(self.images), self.labels

        def iter_setup(self):
            number = next(self.iterator)
            self.feed_input(self.images, [np.full((2, 2), number, np.uint8)] * 2)
            self.feed_input(self.labels, [np.int32([number])] * 2)

    pipe = Feeding(2)
    pipe.build()
    return [[output.as_array() for output in pipe.run()] for _ in range(3)]


@script
def context_manager(dali):
    pipe = dali.pipeline.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        x = dali.fn.external_source(source=lambda: np.float32([[1, 2], [3, 4]]))
        pipe.set_outputs(x, x * 2)
    pipe.build()
    return pipe.run()


@script
def current_pipeline(dali):
    seen = []

    def pipeline():
        seen.append(dali.Pipeline.current().max_batch_size)
        return dali.fn.external_source(source=lambda: np.int32([1, 2]))

    return [*run(dali, pipeline), seen]


@script
def arguments_of_the_function(dali):
    @dali.pipeline_def
    def pipeline(scale, offset=1):
        return dali.fn.external_source(source=lambda: np.int32([1, 2])) * scale + offset

    pipes = [
        pipeline(3, batch_size=2, num_threads=1, device_id=None),
        pipeline(scale=2, offset=5, batch_size=2, num_threads=1, device_id=None),
    ]
    return [pipe.run()[0].as_array() for pipe in pipes]


@script
def options_in_the_decorator(dali):
    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=3, prefetch_queue_depth=3)
    def pipeline():
        return dali.fn.external_source(source=lambda: np.int32([1, 2]))

    pipe = pipeline(num_threads=2)
    return [pipe.num_threads, pipe.max_batch_size, pipe.seed, pipe.prefetch_queue_depth, pipe.run()[0].as_array()]


@script
def two_pipelines(dali):
    first, second = (
        of(dali, lambda value=value: dali.fn.external_source(source=lambda: np.int32([value, value])))
        for value in (1, 2)
    )
    return [pipe.run()[0].as_array() for _ in range(2) for pipe in (first, second)]


@script
def a_pipeline_feeds_another(dali):
    first = of(dali, lambda: dali.fn.external_source(source=lambda: np.int32([1, 2])) * 3)
    second = of(dali, lambda: dali.fn.external_source(source=lambda: first.run()[0]) + 1)
    return second.run()


@script
def serialized(dali):
    pipe = of(dali, lambda: dali.fn.external_source(name="x", layout="AB") * 2)
    other = dali.Pipeline.deserialize(pipe.serialize(), batch_size=2, num_threads=1, device_id=None)
    other.build()
    other.feed_input("x", np.ones((2, 2, 2), np.float32), layout="AB")
    return other.run()


@script
def serialized_to_a_file(dali):
    path = str(folder() / "pipeline.bin")
    of(dali, lambda: dali.types.Constant(np.int32([5]), device="cpu") + 1).serialize(filename=path)
    other = dali.Pipeline.deserialize(filename=path, batch_size=2, num_threads=1, device_id=None)
    return other.run()


@script
def outputs_and_steps(dali):
    pipe = of(dali, lambda: dali.fn.external_source(source=lambda number: np.full(2, number, np.int32)))
    found = []
    for _ in range(2):
        pipe.schedule_run()
    for _ in range(2):
        found.append(np.array(pipe.share_outputs()[0].as_array()))
        pipe.release_outputs()
    return found


@script
def facts_of_a_pipeline(dali):
    pipe = of(dali, lambda: (dali.fn.external_source(name="b"), dali.fn.external_source(name="a")), 5, seed=8)
    return [pipe.max_batch_size, pipe.batch_size, pipe.num_threads, pipe.device_id, pipe.seed, pipe.num_outputs]


@script
def outputs_with_types(dali):
    pipe = of(
        dali,
        lambda: (dali.fn.external_source(source=lambda: np.zeros((2, 3), np.uint8), layout="A"), 5),
        output_dtype=[dali.types.UINT8, dali.types.INT32],
        output_ndim=[1, 0],
    )
    return [str(kind) for kind in pipe.output_dtype()] + pipe.output_ndim()


@script
def lists_of_tensors(dali):
    output = run(dali, lambda: dali.fn.external_source(source=lambda: np.arange(6, dtype=np.int32).reshape(2, 3)))[0]
    return [
        output.shape(),
        len(output),
        np.array(output.at(1)),
        np.array(output[0]),
        np.array(output.as_tensor()),
        output.as_array(),
        output.layout(),
        str(output.dtype),
        output[1].shape(),
        [np.array(item).tolist() for item in output],
        output.as_cpu().as_array(),
        output.is_dense_tensor(),
    ]


# -- readers -----------------------------------------------------------------------------------------------------------


def read(function: Callable[[Any], Any], batch_size: int = 3, runs: int = 4, **options: Any) -> Program:
    def made(dali: Any) -> Any:
        def pipeline():
            found = function(dali)
            return tuple(found) if isinstance(found, (list, tuple)) else found

        pipe = of(dali, pipeline, batch_size, **options)
        found = []
        for _ in range(runs):
            found.append([[np.array(sample) for sample in output] for output in pipe.run()])
        return found

    return made


def _images(dali: Any, **options: Any) -> Any:
    encoded, labels = dali.fn.readers.file(file_root=str(folder()), **options)
    return dali.fn.decoders.image(encoded), labels


def _listed(dali: Any) -> Any:
    path = folder() / "list.txt"
    path.write_text("class0/0.png 7\nclass1/1.png 9\nclass0/2.png 11\n")
    return dali.fn.readers.file(file_root=str(folder()), file_list=str(path))[1]


def _pasted(dali: Any, *others: Any, **options: Any) -> Any:
    """Return the names of the files that are pasted on each canvas."""
    encoded, _ = dali.fn.readers.file(files=[str(path) for path in sorted((folder() / "class0").glob("*.png"))])
    images = dali.fn.decoders.image(encoded)
    inputs = [images, *(dali.fn.permute_batch(images, indices=order) for order in others)]
    return dali.fn.get_property(dali.fn.multi_paste(*inputs, output_size=[64, 64], **options), key="source_info")


def _decoded(**options: Any) -> Program:
    def decode(dali: Any) -> Any:
        given = {name: value(dali) if callable(value) else value for name, value in options.items()}
        return dali.fn.decoders.image(dali.fn.readers.file(file_root=str(folder()), dir_filters=["class*"])[0], **given)

    return read(decode, runs=2)


scripts(
    "reader",
    {
        "folder": read(lambda d: _images(d, dir_filters=["class*"])),
        "filters": read(lambda d: _images(d, dir_filters=["class1"], file_filters=["*.png"])),
        "files": read(lambda d: d.fn.readers.file(files=sorted(map(str, folder().glob("class*/*.png"))))[1]),
        "files with labels": read(
            lambda d: d.fn.readers.file(files=[str(folder() / "class0" / "0.png")] * 4, labels=[4, 3, 2, 1])[1]
        ),
        "file list": read(_listed),
        "shard": read(lambda d: _images(d, dir_filters=["class*"], shard_id=1, num_shards=3)[1]),
        "shard, stuck": read(
            lambda d: _images(d, dir_filters=["class*"], shard_id=1, num_shards=3, stick_to_shard=True)[1], runs=6
        ),
        "padded": read(
            lambda d: _images(d, dir_filters=["class*"], shard_id=0, num_shards=4, pad_last_batch=True)[1], runs=5
        ),
        "skipped": read(lambda d: _images(d, dir_filters=["class*"], skip_cached_images=True)[1]),
        "named": read(lambda d: _images(d, dir_filters=["class*"], name="Reader", prefetch_queue_depth=2)[1]),
        "of ops": read(
            lambda d: d.ops.readers.File(file_root=str(folder()), dir_filters=["class*"], random_shuffle=False)()[1]
        ),
        "old name of ops": read(
            lambda d: d.ops.FileReader(file_root=str(folder()), dir_filters=["class*"], initial_fill=10)()[1]
        ),
        "old name": read(lambda d: d.fn.file_reader(file_root=str(folder()), dir_filters=["class*"])[1]),
        "arrays": read(lambda d: d.fn.readers.numpy(file_root=str(arrays()))),
        "arrays of files": read(
            lambda d: d.fn.readers.numpy(files=[str(arrays() / f"{number}.npy") for number in (3, 1)])
        ),
        "arrays, filtered": read(lambda d: d.fn.readers.numpy(file_root=str(arrays()), file_filter="*[02].npy")),
        "parts of arrays": read(
            lambda d: d.fn.readers.numpy(file_root=str(arrays()), roi_start=[1, 1], roi_end=[3, 3])
        ),
        "parts of arrays, relative": read(
            lambda d: d.fn.readers.numpy(file_root=str(arrays()), rel_roi_start=[0.0, 0.5], rel_roi_shape=[1.0, 0.5])
        ),
        "parts of arrays, one axis": read(
            lambda d: d.fn.readers.numpy(file_root=str(arrays()), roi_start=[1], roi_shape=[2], roi_axes=[1])
        ),
        "decoded": _decoded(),
        "decoded gray": _decoded(output_type=lambda d: d.types.GRAY),
        "decoded BGR": _decoded(output_type=lambda d: d.types.BGR),
        "decoded as it is": _decoded(output_type=lambda d: d.types.ANY_DATA),
        "decoded to YCbCr": _decoded(output_type=lambda d: d.types.YCbCr),
        "decoded by ops": read(
            lambda d: d.ops.decoders.Image(device="cpu", output_type=d.types.RGB)(
                d.fn.readers.file(file_root=str(folder()), dir_filters=["class*"])[0]
            )
        ),
        "decoded crop": read(
            lambda d: d.fn.decoders.image_crop(
                d.fn.readers.file(file_root=str(folder()), dir_filters=["class*"])[0], crop=(5, 5)
            )
        ),
        "decoded slice": read(
            lambda d: d.fn.decoders.image_slice(
                d.fn.readers.file(file_root=str(folder()), dir_filters=["class*"])[0],
                np.float32([0.1, 0.2]),
                np.float32([0.5, 0.4]),
            )
        ),
        "shapes": read(
            lambda d: d.fn.peek_image_shape(d.fn.readers.file(file_root=str(folder()), dir_filters=["class*"])[0])
        ),
        "names of pasted files": read(lambda d: _pasted(d, in_ids=np.int32([2, 0, 2]))),
        "names of pasted inputs": read(lambda d: _pasted(d, [2, 0, 1])),
        "names of files": read(
            lambda d: d.fn.get_property(
                d.fn.readers.file(files=[str(folder() / "class0" / "0.png")])[0], key="source_info"
            )
        ),
    },
)


def meta(**options: Any) -> Program:
    def made(dali: Any) -> Any:
        pipe = of(dali, lambda: _images(dali, dir_filters=["class*"], name="Reader", **options))
        found = pipe.reader_meta("Reader")
        return [sorted(found.items()), pipe.epoch_size("Reader"), sorted(pipe.reader_meta()), pipe.epoch_size()]

    return made


scripts(
    "meta",
    {
        "plain": meta(),
        "shards": meta(shard_id=1, num_shards=3),
        "padded": meta(shard_id=1, num_shards=3, pad_last_batch=True),
        "stuck": meta(num_shards=2, stick_to_shard=True),
    },
)


@script
def recordings(dali):
    path = folder() / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.arange(-200, 200, dtype=np.int16).tobytes())

    def pipeline():
        encoded = dali.fn.readers.file(files=[str(path)])[0]
        plain, rate = dali.fn.decoders.audio(encoded)
        mono, _ = dali.fn.decoders.audio(encoded, downmix=True, dtype=dali.types.INT16)
        slower, _ = dali.fn.decoders.audio(encoded, sample_rate=4000, downmix=True)
        return plain, rate, mono, slower

    return run(dali, pipeline)


# -- iterators ---------------------------------------------------------------------------------------------------------


def iterated(batches: int = 12, batch_size: int = 4, kind: str = "DALIGenericIterator", **options: Any) -> Program:
    """The labels in each batch of an iterator, and "end" where an epoch ended."""

    def made(dali: Any) -> Any:
        given = dict(options)
        reader = {
            name: given.pop(name)
            for name in ("shard_id", "num_shards", "pad_last_batch", "stick_to_shard")
            if name in given
        }
        policy = given.pop("policy", None)
        if policy:
            given["last_batch_policy"] = getattr(dali.plugin.base_iterator.LastBatchPolicy, policy)
        pipe = of(
            dali,
            lambda: dali.fn.readers.file(files=_paths(), labels=list(range(10)), name="Reader", **reader),
            batch_size,
        )
        names = [] if kind == "DALIClassificationIterator" else [["data", "label"]]
        loader = getattr(dali.plugin.pytorch, kind)(pipe, *names, **given)
        found: list[Any] = [loader.size if given.get("reader_name") or given.get("size") else 0]
        for _ in range(batches):
            try:
                found.append(next(loader)[0]["label"].numpy().ravel().tolist())
            except StopIteration:
                found.append("end")
                loader.reset()
        return found

    return made


@functools.cache
def _paths() -> list[str]:
    path = folder() / "byte.bin"
    path.write_bytes(b"x")
    return [str(path)] * 10


scripts(
    "iterator",
    {
        f"{policy} {'padded' if padded else ''} {shards}": iterated(
            policy=policy, reader_name="Reader", pad_last_batch=padded, num_shards=shards, auto_reset=False
        )
        for policy in ("FILL", "PARTIAL", "DROP")
        for padded in (False, True)
        for shards in (1, 3)
        if (policy, shards) != ("DROP", 3)  # no batch is full
    },
)
scripts(
    "iterator",
    {
        "size": iterated(size=10),
        "size, partial": iterated(size=10, policy="PARTIAL"),
        "size, drop": iterated(size=10, policy="DROP"),
        "size, partial, padded": iterated(size=10, policy="PARTIAL", last_batch_padded=True, pad_last_batch=True),
        "endless": iterated(),
        "auto_reset": iterated(reader_name="Reader", auto_reset=True),
        "auto_reset yes": iterated(reader_name="Reader", auto_reset="yes"),
        "classes": iterated(kind="DALIClassificationIterator", reader_name="Reader"),
        "fill_last_batch": iterated(size=10, fill_last_batch=False),
        "not prepared": iterated(reader_name="Reader", prepare_first_batch=False),
        "stuck": iterated(reader_name="Reader", num_shards=2, stick_to_shard=True, policy="PARTIAL"),
        "dynamic_shape": iterated(reader_name="Reader", dynamic_shape=True),
        "small batches": iterated(batch_size=1, reader_name="Reader", batches=14),
        "one large batch": iterated(batch_size=16, reader_name="Reader", policy="PARTIAL"),
    },
)


@script
def a_loop_over_epochs(dali):
    pipe = of(dali, lambda: dali.fn.readers.file(files=_paths(), labels=list(range(10)), name="R"), 4)
    policy = dali.plugin.base_iterator.LastBatchPolicy.PARTIAL
    loader = dali.plugin.pytorch.DALIGenericIterator(
        pipe, ["x", "y"], reader_name="R", last_batch_policy=policy, auto_reset=True
    )
    return [[batch[0]["y"].numpy().ravel().tolist() for batch in loader] for _ in range(3)] + [len(loader)]


@script
def an_iterator_of_sources(dali):
    pipe = of(dali, lambda: dali.fn.external_source(source=lambda: [np.int32([1])] * 2))
    loader = dali.plugin.pytorch.DALIGenericIterator(pipe, ["x"], size=6)
    return [batch[0]["x"].numpy() for batch in loader]


@script
def an_iterator_until_the_source_ends(dali):
    pipe = of(dali, lambda: tuple(dali.fn.external_source(source=Batches(2), num_outputs=2)))
    loader = dali.plugin.pytorch.DALIGenericIterator(pipe, ["x", "y"], auto_reset=True)
    return [[batch[0]["y"].numpy() for batch in loader] for _ in range(2)]


@script
def an_iterator_of_two_pipelines(dali):
    pipes = [
        of(
            dali,
            lambda shard=shard: dali.fn.readers.file(
                files=_paths(), labels=list(range(10)), name="R", shard_id=shard, num_shards=2
            ),
        )
        for shard in range(2)
    ]
    loader = dali.plugin.pytorch.DALIGenericIterator(pipes, ["x", "y"], reader_name="R")
    return [[item["y"].numpy().ravel().tolist() for item in batch] for batch in loader]


@script
def fields_of_an_iterator(dali):
    pipe = of(dali, lambda: dali.fn.readers.file(files=_paths(), labels=list(range(10)), name="R"), 4)
    loader = dali.plugin.pytorch.DALIGenericIterator(pipe, ["x", "y"], reader_name="R")
    return [loader.batch_size, loader.output_map, loader._num_gpus, loader._size, loader.size, len(loader)]


@script
def a_subclass_of_an_iterator(dali):
    class Loader(dali.plugin.pytorch.DALIClassificationIterator):
        def __next__(self):
            (batch,) = super().__next__()
            return batch["label"].squeeze(-1).long().numpy()

    pipe = of(dali, lambda: dali.fn.readers.file(files=_paths(), labels=list(range(10)), name="R"), 5)
    return list(Loader(pipe, reader_name="R"))


@script
def a_ragged_iterator(dali):
    def pipeline():
        x = dali.fn.external_source(source=lambda: [np.arange(n, dtype=np.int32) for n in (2, 3)])
        return x, dali.fn.external_source(source=lambda: np.int32([[1], [2]]))

    kind = dali.plugin.pytorch.DALIRaggedIterator
    loader = kind(of(dali, pipeline), ["x", "y"], output_types=[kind.SPARSE_LIST_TAG, kind.DENSE_TAG])
    batch = next(loader)[0]
    return [[item.numpy() for item in batch["x"]], batch["y"].numpy()]


@script
def tensors_fed_by_hand(dali):
    torch = __import__("torch")
    output = run(dali, lambda: dali.fn.external_source(source=lambda: np.arange(6, dtype=np.float32).reshape(2, 3)))[0]
    target = torch.zeros(2, 3)
    dali.plugin.pytorch.feed_ndarray(output.as_tensor(), target)
    return target.numpy()


# -- states ------------------------------------------------------------------------------------------------------------


@script
def checkpoint_of_a_pipeline(dali):
    def made(**options):
        return of(
            dali,
            lambda: dali.fn.readers.file(files=_paths(), labels=list(range(10)), name="R")[1],
            3,
            enable_checkpointing=True,
            **options,
        )

    pipe = made()
    for _ in range(2):
        pipe.run()
    state = pipe.checkpoint()
    expected = pipe.run()[0].as_array()
    return [expected, made(checkpoint=state).run()[0].as_array()]


@script
def checkpoint_of_an_iterator(dali):
    def made(**options):
        pipe = of(
            dali,
            lambda: dali.fn.readers.file(files=_paths(), labels=list(range(10)), name="R"),
            3,
            enable_checkpointing=True,
            **options,
        )
        return dali.plugin.pytorch.DALIGenericIterator(pipe, ["x", "y"], reader_name="R")

    loader = made()
    for _ in range(2):
        next(loader)
    (state,) = loader.checkpoints()
    return [next(item)[0]["y"].numpy() for item in (loader, made(checkpoint=state))]


# -- automatic augmentation: shapes only ------------------------------------------------------------------------------


def augmented(function: Callable[[Any, Any], Any]) -> Program:
    def made(dali: Any) -> Any:
        @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True, seed=4)
        def pipeline():
            images = dali.fn.external_source(source=lambda: np.full((2, 12, 14, 3), 90, np.uint8), layout="HWC")
            return function(dali, images)

        (output,) = pipeline().run()
        return [output.layout(), str(output.dtype), [tuple(shape) for shape in output.shape()]]

    return made


scripts(
    "augmented",
    {
        "auto": augmented(lambda d, x: d.auto_aug.auto_augment.auto_augment(x)),
        "auto, shape": augmented(lambda d, x: d.auto_aug.auto_augment.auto_augment(x, shape=[12, 14])),
        "image net": augmented(lambda d, x: d.auto_aug.auto_augment.auto_augment_image_net(x)),
        "rand": augmented(lambda d, x: d.auto_aug.rand_augment.rand_augment(x, n=2, m=9)),
        "trivial": augmented(lambda d, x: d.auto_aug.trivial_augment.trivial_augment_wide(x)),
    },
)
