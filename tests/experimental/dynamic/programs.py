"""Small programs that run on dalify's dynamic mode and on DALI's, and the comparison of their results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Program = Any  # from the module (and a folder of photographs) to something that ``shown`` takes


def shown(result: Any) -> Any:
    """Return types, layouts, shapes and data of tensors and batches, also inside tuples, lists and dicts."""
    kind = type(result).__name__
    if kind == "Tensor" and hasattr(result, "to_device"):
        return (kind, str(result.dtype), result.layout, str(result.device), result.shape, np.array(result).tolist())
    if kind == "Batch":
        samples = [np.array(sample).tolist() for sample in result]
        return (kind, str(result.dtype), result.layout, str(result.device), result.shape, samples)
    if isinstance(result, (list, tuple)):
        return [shown(item) for item in result]
    if isinstance(result, dict):
        return {name: shown(item) for name, item in result.items()}
    if hasattr(result, "numpy"):
        return ("torch", str(result.dtype), result.numpy().tolist())
    return result


def _image(height: int = 6, width: int = 5) -> np.ndarray:
    return np.arange(height * width * 3, dtype=np.uint8).reshape(height, width, 3)


def _outputs_of_constructors(ndd: Any) -> list[Any]:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    return [
        *(ndd.tensor(value) for value in (1, 1.5, True, [1, 2], [[1.5], [2.5]], [], np.float64(2), array)),
        ndd.tensor(1.7, dtype=ndd.int32),
        ndd.tensor(array, dtype=ndd.float16, layout="HW"),
        ndd.tensor(np.array([1.7, 300.0]), dtype=ndd.uint8),
        ndd.as_tensor(ndd.tensor([1.7, -3.0]), dtype=ndd.uint8),
        ndd.as_tensor(ndd.batch([[1, 2], [3, 4]], layout="X")),
        ndd.as_tensor(ndd.batch([[[1, 2]], [[3], [4]]]), pad=True),
        ndd.batch([[1, 2, 3], [4, 5]]),
        ndd.batch(array, layout="X"),
        ndd.batch([1.7, 3.0], dtype=ndd.int8),
        ndd.batch([np.float32(1.7), np.float32(300)], dtype=ndd.int8),
        ndd.batch([np.zeros(2), np.ones(2, np.int32)]),
        ndd.batch([1, 2.7, -2.5]),
        ndd.batch([[1, 2], [1.5, -2.7]]),
        ndd.batch([np.uint8(3), 2.7]),
        ndd.batch([np.uint8(3), np.float32(2.7)]),
        ndd.as_tensor(ndd.batch([1, 2])),
        ndd.batch([], dtype=ndd.int32),
        ndd.as_batch([ndd.tensor(1.5), ndd.tensor(2)]),
        ndd.Batch.broadcast([1, 2], 3, dtype=ndd.float32),
    ]


def _properties(ndd: Any) -> list[Any]:
    tensor, batch = ndd.tensor([[1, 2, 3], [4, 5, 6]]), ndd.batch([[1, 2, 3], [4, 5]])
    return [
        (tensor.ndim, tensor.size, tensor.nbytes, tensor.itemsize, tensor[1, 2].item()),
        (batch.ndim, batch.batch_size, len(batch.tensors), [sample.shape for sample in batch]),
        (tensor.cpu() is tensor, tensor.evaluate() is tensor, ndd.as_batch(batch) is batch),
        tensor.to_device("cpu", force_copy=True),
        tuple(map(int, tensor.__dlpack_device__())),
    ]


def _shown_as_text(ndd: Any) -> list[str]:
    pair = ndd.batch([[1, 2, 3], [4, 5]])
    images = ndd.batch(np.arange(12, dtype=np.float32).reshape(2, 3, 2), layout="HW")
    return [str(item) for item in (ndd.tensor([[1, 2], [3, 4]]), pair, images, ndd.tensor(1.5), ndd.batch([1, 2]))]


def _torch(ndd: Any) -> list[Any]:
    dense, ragged = ndd.batch([[1, 2], [3, 4]]), ndd.batch([[1, 2, 3], [4, 5]])
    return [ndd.tensor([1.5, 2]).torch(), dense.torch(), dense.torch(copy=True), ragged.torch(pad=True)]


def _subscripts(ndd: Any) -> list[Any]:
    tensor = ndd.tensor(np.arange(24).reshape(2, 3, 4))
    batch = ndd.batch([np.arange(6).reshape(3, 2), np.arange(8).reshape(4, 2)], layout="XY")
    first = ndd.batch([0, 2])
    return [
        tensor[0], tensor[-1, 1], tensor[..., 1], tensor[:, 1:], tensor[::-1, ::2], tensor[ndd.tensor(1):],
        batch.slice[0], batch.slice[1:], batch.slice[first], batch.slice[first:], batch.slice[..., 1],
        batch.select(1), batch.select(-1), batch.tensors[0],
    ]  # fmt: skip


def _arithmetic(ndd: Any) -> list[Any]:
    tensor, batch = ndd.tensor([[1, 2, 3], [4, 5, 6]]), ndd.batch([[1, 2, 3], [4, 5, 6]])
    small, numbers = ndd.tensor(np.uint8(200)), [1, 2, 3]
    return [
        tensor + 1, 2 - tensor, tensor * 1.5, tensor / 2, 7 // tensor, tensor % 2, tensor**2, 2**tensor, tensor**0.5,
        tensor & 1, tensor | 1, 3 ^ tensor, tensor << 1, tensor >> 1, -tensor, +tensor, ~tensor, abs(-tensor),
        tensor == 2, tensor != 2, tensor < 3, tensor >= 3, tensor > 3, tensor >= 3, ~(tensor > 2),
        batch + 1, batch + batch, batch + ndd.tensor([1]), ndd.tensor(1) + batch, batch + np.ones(3),
        batch + numbers, numbers * batch,
        tensor + np.int8(3), tensor + True, small + ndd.tensor(np.uint8(100)), small + 100, small + 1.0,
    ]  # fmt: skip


def _mathematics(ndd: Any) -> list[Any]:
    tensor, batch = ndd.tensor([[1, 2], [4, 9]]), ndd.batch([1, 2])
    math = ndd.math
    return [
        math.sqrt(tensor), math.sqrt(4), math.max(tensor, 3), math.min(2, 3), math.clamp(tensor, 2, 4),
        math.pow(2, batch), math.floor(ndd.tensor(1.5)), math.fabs(-tensor),
    ]  # fmt: skip


def _operators(ndd: Any) -> list[Any]:
    image = _image()
    pair = ndd.batch([image, _image(7, 8)], layout="HWC")
    return [
        ndd.flip(image), ndd.flip(pair), ndd.flip(image, batch_size=2), ndd.crop(pair, crop=(3, 4)),
        ndd.crop(pair, crop=ndd.batch([[2, 3], [4, 5]])), ndd.slice(ndd.tensor(np.arange(5)), 1, 2, axes=[0]),
        ndd.cast([1, 2], dtype=ndd.float32), ndd.cat([1], [2]), ndd.cat(ndd.batch([[1], [2]]), ndd.tensor([3])),
        ndd.stack(1, 2, 3), ndd.element_extract(np.zeros((4, 2, 2, 1)), element_map=[0, 2]),
        ndd.reductions.sum(ndd.tensor(np.arange(12))), ndd.ones(shape=[2]), ndd.ones(shape=[2], batch_size=2),
        ndd.full(3), ndd.transforms.translation(offset=ndd.batch([[1.0, 2.0], [3.0, 4.0]])),
        ndd.reshape(image, shape=None, rel_shape=[1, -1, 1]), ndd.transpose([[1, 2], [3, 4]], perm=[1, 0]),
    ]  # fmt: skip


def _list_of_images_is_one_tensor(ndd: Any) -> Any:
    return ndd.reshape([_image(), _image()], layout="FHWC")


def _put_off(ndd: Any) -> list[Any]:
    with ndd.EvalMode.deferred:
        image = ndd.tensor(_image(), layout="HWC")
        flipped = ndd.flip(image)
        sums = ndd.reductions.sum(flipped) + 1
        parts = ndd.element_extract(ndd.batch([[[1], [2], [3]]]), element_map=[0, 2])
    return [flipped, sums, parts, ndd.EvalMode.current().name]


def _deferred_errors(ndd: Any) -> list[str]:
    """Where calls with wrong types of inputs raise their errors."""
    image = ndd.tensor(np.zeros((4, 4, 3), np.float32))
    calls: list[Callable[[], Any]] = [
        lambda: ndd.transpose(image, perm=[0, 1]),
        lambda: ndd.color_space_conversion(image, image_type=13, output_type=1),
    ]
    found = []
    with ndd.EvalMode.deferred:
        for call in calls:
            place = "call"
            try:
                result = call()
                place = "access"
                result.evaluate()
            except Exception:
                found.append(place)
    return found


def _modes_of_tasks_and_threads(ndd: Any) -> list[Any]:
    """A mode belongs to the thread, not to the context of a task."""
    found: list[Any] = []

    def note(place: str) -> None:
        found.append((place, ndd.EvalMode.current().name))

    async def task() -> None:
        await asyncio.sleep(0)
        note("task")

    async def run() -> None:
        with ndd.EvalMode.deferred:
            begun = asyncio.create_task(task())
            await begun
            await asyncio.to_thread(note, "thread")
            begun = asyncio.create_task(task())
        await begun
        note("end")

    asyncio.run(run())
    return found


def _generators(ndd: Any) -> list[Any]:
    rng = ndd.random.RNG(seed=0x123456789ABCDEF0)
    numbers = [rng() for _ in range(9)]
    rng.advance(1000)
    text = str(rng.state)
    again = ndd.random.RNG(state=text)
    other = rng.clone()
    ndd.random.uniform(rng=rng, shape=[100], batch_size=3)  # moves it on by as much whatever is drawn
    ndd.random.normal(rng=rng)
    ndd.random_resized_crop(_image(), size=2, rng=rng)
    rest = [again(), other(), rng(), str(rng.state), repr(rng)]
    rng.seed = 7
    ndd.random.set_seed(3)
    return [numbers, text, rest, str(rng.get_state()), str(ndd.random.get_default_rng().state)]


def _types(ndd: Any) -> list[Any]:
    names = ("uint8", "int16", "uint64", "float16", "float32", "float64", "bool", "bfloat16", "InterpType")
    found = [getattr(ndd, name) for name in names]
    facts = [
        (str(t), repr(t), t.kind.name, t.bits, t.bytes, t.exponent_bits, t.significand_bits, str(t.type_id).lower())
        for t in found
    ]
    same = [ndd.dtype(value) == ndd.float32 for value in (np.float32, np.dtype("f4"), "f32", float, ndd.float32)]
    return [facts, same, ndd.dtype("i64") is ndd.int64 or ndd.dtype("i64") == ndd.int64, str(ndd.dtype(np.bool_))]


def _devices(ndd: Any) -> list[Any]:
    device = ndd.device("cpu")
    with device:
        current = ndd.Device.current() == device
    return [str(device), repr(device), device == ndd.Device.CPU, device.device_id, ndd.device(None), current]


def _contexts(ndd: Any) -> list[Any]:
    context = ndd.EvalContext(num_threads=1)
    with context:
        inside = ndd.EvalContext.current() is context
        result = ndd.flip(ndd.batch([_image()] * 4))
    ndd.set_num_threads(2)
    chosen = ndd.get_num_threads(), ndd.EvalContext.current().num_threads
    ndd.set_num_threads(None)
    same = ndd.EvalContext.current() is ndd.EvalContext.default()
    own = ndd.checkpoint.current() is ndd.EvalContext.current().checkpoint
    return [inside, same, own, context.num_threads, chosen, result, ndd.get_current_stream()]


def _asked(source: Any, times: int, **arguments: Any) -> list[Any]:
    results: list[Any] = []
    for _ in range(times):
        try:
            results.append(source(**arguments))
        except StopIteration:
            results.append("end")
    return results


def _external_sources(ndd: Any) -> list[Any]:
    def generator() -> Any:
        yield from (np.full(2, number) for number in range(2))

    make = ndd.ExternalSource
    pairs = make(lambda: (np.zeros((2, 3)), 1), num_outputs=2, layout=["HW", ""], dtype=[ndd.int8, ndd.float32])
    return [
        *(_asked(make(source), 3) for source in (generator, generator(), [1, 2])),
        *(_asked(make([1, 2], cycle=cycle), 5) for cycle in ("no", "quiet", "raise", True, None)),
        _asked(make(lambda: np.arange(2)), 2, batch_size=2),
        _asked(make(lambda: ndd.batch([1, 2])), 1),
        _asked(make(lambda: (ndd.tensor(1), ndd.batch([1, 2])), num_outputs=2), 1, batch_size=2),
        _asked(pairs, 1),
    ]


def _checkpoints(ndd: Any) -> list[Any]:
    checkpoint = ndd.checkpoint.Checkpoint()
    rng, other = ndd.random.RNG(7), ndd.random.RNG(8)
    rng()
    names = [checkpoint.register(rng, "rng"), checkpoint.register(rng), checkpoint.register(other)]
    facts = [len(checkpoint), "rng" in checkpoint, list(checkpoint.names), checkpoint.is_complete]
    checkpoint.collect()
    later = ndd.checkpoint.Checkpoint()
    later.deserialize(checkpoint.serialize())
    flags = [checkpoint.is_complete, later.is_complete, later.is_loaded, len(later)]
    resumed = [ndd.random.RNG(1), ndd.random.RNG(1)]
    later.register(resumed[0], "rng")
    later.register(resumed[1])
    other()
    checkpoint.set_state("rng", str(resumed[1].state))
    checkpoint.restore()
    checkpoint.clear()
    return [names, facts, flags, [str(item.state) for item in (*resumed, rng, other)], len(checkpoint)]


PROGRAMS: dict[str, Program] = {
    function.__name__.strip("_"): function
    for function in (
        _outputs_of_constructors,
        _properties,
        _shown_as_text,
        _torch,
        _subscripts,
        _arithmetic,
        _mathematics,
        _operators,
        _list_of_images_is_one_tensor,
        _put_off,
        _deferred_errors,
        _modes_of_tasks_and_threads,
        _generators,
        _types,
        _devices,
        _contexts,
        _external_sources,
        _checkpoints,
    )
}


def _names(outputs: Any) -> Any:
    """Return sizes and labels, which identify the files of the folder."""
    files, labels = outputs
    if type(files).__name__ == "Tensor":
        return (files.size, labels.item())
    return [(file.size, label.item()) for file, label in zip(files, labels, strict=True)]


def _epochs(folder: Path, batch_size: int | None, count: int = 3, **arguments: Any) -> Program:
    def program(ndd: Any) -> list[Any]:
        reader = ndd.readers.File(file_root=str(folder), **arguments)
        return [[_names(item) for item in reader.next_epoch(batch_size)] for _ in range(count)]

    return program


def _left_early(folder: Path) -> Program:
    def program(ndd: Any) -> list[Any]:
        reader = ndd.readers.File(file_root=str(folder), num_shards=3, shard_id=1)
        found = []
        for item in reader.next_epoch(2):
            found.append(_names(item))
            break
        return [found, *([_names(item) for item in reader.next_epoch(2)] for _ in range(3))]

    return program


def _resumed(folder: Path, steps: int) -> Program:
    def program(ndd: Any) -> list[Any]:
        def make() -> Any:
            return ndd.readers.File(file_root=str(folder), enable_checkpointing=True)

        reader, found = make(), []
        for step, item in enumerate(reader.next_epoch(batch_size=5)):
            found.append(_names(item))
            if step == steps:
                state = str(reader.get_state())
        other = make()
        other.set_state(state)
        rest = [[_names(item) for item in other.next_epoch(batch_size=5)] for _ in range(2)]
        return [found, rest]

    return program


def _called(folder: Path) -> Program:
    def program(ndd: Any) -> list[Any]:
        reader = ndd.readers.File(file_root=str(folder))
        return [_names(reader()) for _ in range(14)]

    return program


def _single_output(folder: Path) -> Program:
    def program(ndd: Any) -> list[Any]:
        path = folder.parent / "numbers.npy"
        np.save(path, np.array([7]))
        readers = [ndd.readers.Numpy(files=[str(path)]) for _ in range(3)]
        return [readers[0](), next(iter(readers[1].next_epoch())), next(iter(readers[2].next_epoch(2)))]

    return program


def _metadata(folder: Path) -> Program:
    def program(ndd: Any) -> list[Any]:
        arguments = {"num_shards": 5, "shard_id": 3, "pad_last_batch": True}
        return [dict(ndd.readers.File(file_root=str(folder), **given).get_metadata()) for given in ({}, arguments)]

    return program


def _images(folder: Path) -> Program:
    files = sorted(folder.glob("*/*.jpg"))[:2]

    def program(ndd: Any) -> list[Any]:
        read = ndd.imread([str(file) for file in files])
        encoded = ndd.batch([np.fromfile(file, np.uint8) for file in files])
        shapes = ndd.peek_image_shape(encoded)
        return [read.shape, read.layout, str(read.dtype), ndd.imread(files[0]).shape, shapes]

    return program


_SHARDED = {"num_shards": 5, "shard_id": 3}
# From a folder of twelve photographs to programs that read it.
READING: dict[str, Callable[[Path], Program]] = {
    "samples": lambda folder: _epochs(folder, None),
    "batches": lambda folder: _epochs(folder, 5),
    "max_batch_size": lambda folder: _epochs(folder, None, max_batch_size=5),
    "padded": lambda folder: _epochs(folder, 5, pad_last_batch=True),
    "sharded": lambda folder: _epochs(folder, 2, count=6, **_SHARDED),
    "sharded samples": lambda folder: _epochs(folder, None, count=6, **_SHARDED),
    "sticking": lambda folder: _epochs(folder, 2, stick_to_shard=True, **_SHARDED),
    "sharded and padded": lambda folder: _epochs(folder, 2, count=6, pad_last_batch=True, **_SHARDED),
    "left early": _left_early,
    "resumed within": lambda folder: _resumed(folder, 0),
    "resumed at the end": lambda folder: _resumed(folder, 2),
    "called": _called,
    "single output": _single_output,
    "metadata": _metadata,
    "pictures": _images,
}
