"""Outputs whose samples differ in shape, and the mask of samples that are not valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify import fn, pipeline_def
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, BadSampleWarning, ShapeError
from dalify.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy, Packed, Pad
from tests.helpers.launches import Launches

SAMPLES = [np.arange(rows * 2, dtype=np.float32).reshape(rows, 2) + 1 for rows in (3, 1, 4, 0)]


def loader(samples: list[np.ndarray], collate: Any, device: str = "cpu") -> DALIGenericIterator:
    @pipeline_def(batch_size=len(samples), num_threads=1)
    def pipe() -> Any:
        data = fn.external_source(source=lambda: samples)
        return data.gpu() if device == "gpu" else data

    return DALIGenericIterator(pipe(), ["x"], collate=collate)


def collated(samples: list[np.ndarray], collate: Any) -> Any:
    return next(loader(samples, collate))[0]["x"]


def test_pad() -> None:
    found = collated(SAMPLES, "pad")
    assert found.shape == (4, 4, 2)
    for row, sample in zip(found.numpy(), SAMPLES, strict=True):
        np.testing.assert_array_equal(row[: len(sample)], sample)
        assert not row[len(sample) :].any()


@settings(max_examples=30, deadline=None)
@given(
    shapes=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=5),
    multiple=st.one_of(st.integers(1, 4), st.tuples(st.integers(1, 4), st.integers(1, 4))),
    value=st.integers(-3, 3),
)
def test_pad_equals_numpy(shapes: list[tuple[int, int]], multiple: Any, value: int) -> None:
    samples = [np.full(shape, number + 7, np.int32) for number, shape in enumerate(shapes)]
    found = collated(samples, {"x": Pad(value, multiple)}).numpy()
    multiples = (multiple, multiple) if isinstance(multiple, int) else multiple
    extents = [-(-max(shape[axis] for shape in shapes) // multiples[axis]) * multiples[axis] for axis in range(2)]
    assert found.shape == (len(shapes), *extents)
    for row, sample in zip(found, samples, strict=True):
        widths = [(0, extent - size) for extent, size in zip(extents, sample.shape, strict=True)]
        np.testing.assert_array_equal(row, np.pad(sample, widths, constant_values=value))


SHAPES = ([(3, 2), (1, 4), (0, 3)], [(2, 3), (2, 3)], [(0, 2), (0, 1)], [()] * 3, [(5,), (2,)])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "uint64", "float16", "float32", "bool"])
def test_pad_on_the_device_equals_the_cpu(dtype: str, gpu: str) -> None:
    for shapes in SHAPES:
        samples = [np.full(shape, number + 7).astype(dtype) for number, shape in enumerate(shapes)]
        for pad in (Pad(), Pad(3, 4)):
            wanted, found = (next(loader(samples, {"x": pad}, device))[0]["x"] for device in ("cpu", "gpu"))
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.cpu().numpy(), wanted.numpy())


@pytest.mark.parametrize("collate", ["pad", "packed"])
def test_launches_do_not_depend_on_the_number_of_samples(collate: str, gpu: str) -> None:
    counts: list[int] = []
    for count in (4, 16):
        iterator = loader([np.ones((1 + number % 3, 2), np.uint8) for number in range(count)], collate, "gpu")
        with Launches() as calls:
            next(iterator)
        counts.append(len(calls.names))
    assert counts[0] == counts[1]


def test_list() -> None:
    found = collated(SAMPLES, {"x": "list"})
    assert isinstance(found, list)
    for tensor, sample in zip(found, SAMPLES, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), sample)


def test_packed() -> None:
    found = collated(SAMPLES, "packed")
    assert isinstance(found, Packed)
    np.testing.assert_array_equal(found.values.numpy(), np.concatenate(SAMPLES))
    assert found.offsets.tolist() == [0, 3, 4, 8, 8]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
def test_nested() -> None:
    found = collated(SAMPLES, "nested")
    assert found.is_nested
    assert found.layout == torch.jagged
    for tensor, sample in zip(found.unbind(), SAMPLES, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), sample)
    images = [np.ones((2, 3), np.float32), np.ones((4, 1), np.float32)]
    assert [tensor.shape for tensor in collated(images, "nested").unbind()] == [(2, 3), (4, 1)]


def test_on_the_device(gpu: str) -> None:
    assert next(loader(SAMPLES, "pad", "gpu"))[0]["x"].shape == (4, 4, 2)


@pytest.mark.parametrize("collate", ["pad", "list", "packed", None])
def test_partial_batches(tmp_path: Path, collate: Any) -> None:
    for number in range(5):
        (tmp_path / f"{number}.bin").write_bytes(bytes(number + 1) if collate else b"1")

    @pipeline_def(batch_size=3, num_threads=1)
    def pipe() -> Any:
        files = [str(tmp_path / f"{number}.bin") for number in range(5)]
        return fn.readers.file(files=files, name="Reader", pad_last_batch=True)

    iterator = DALIClassificationIterator(
        pipe(),
        reader_name="Reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        collate={"data": collate} if collate else None,
    )
    last = [batch["data"] for (batch,) in iterator][-1]
    if collate == "packed":
        assert last.offsets.tolist() == [0, 4, 9]
        assert last.values.shape == (9,)
    else:
        assert len(last) == 2


@pytest.mark.parametrize("collate", ["dense", "pad", Pad(multiple=4), "list", "nested", "packed"])
def test_shard_without_a_sample_in_the_last_batch(tmp_path: Path, collate: Any) -> None:
    """Three samples in two shards, one by one: both give two batches, and one of the last is empty."""
    files = [tmp_path / name for name in ("a.bin", "b.bin", "c.bin")]
    for path in files:
        path.write_bytes(b"12")

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        reader = {"name": "Reader", "pad_last_batch": True, "num_shards": 2}
        return fn.readers.file(files=[str(path) for path in files], **reader)[0]

    iterator = DALIGenericIterator(
        pipe(),
        ["x"],
        reader_name="Reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        collate=collate,
        valid_name="valid",
    )
    first, last = (batch for (batch,) in iterator)
    assert first["valid"].tolist() == [True]
    assert last["valid"].shape == (0,)
    if collate == "packed":
        assert last["x"].offsets.tolist() == [0]
        last["x"] = last["x"].values
    assert len(last["x"]) == 0
    if collate != "list":
        assert last["x"].dtype == torch.uint8


def test_packed_needs_one_axis_that_differs() -> None:
    with pytest.raises(ShapeError, match=r"output 'x' cannot be packed.*\(2, 3\), \(4, 1\)"):
        collated([np.ones((2, 3), np.float32), np.ones((4, 1), np.float32)], "packed")
    with pytest.raises(ShapeError, match="cannot be packed"):
        collated([np.float32(1)] * 2, "packed")


@pytest.mark.parametrize(
    ("collate", "kind", "message"),
    [
        ("pads", ArgumentValueError, r"collate must be one of dense, pad, list.*Did you mean 'pad'"),
        ({"boxes": "list"}, ArgumentValueError, "a name in collate must be one of x; got 'boxes'"),
        ({"x": "jagged"}, ArgumentValueError, "collate must be one of dense"),
        (["list"], ArgumentTypeError, "dictionary with names of outputs"),
    ],
)
def test_mistakes(collate: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        loader(SAMPLES, collate)


def test_multiple_out_of_range() -> None:
    for multiple in (0, [1], [1, 2, 3]):
        with pytest.raises(ArgumentValueError, match="have 2 axes; multiple must be"):
            collated(SAMPLES, Pad(multiple=multiple))


# -- valid samples, bad samples


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for number in range(7):
        (tmp_path / f"{number}.ppm").write_bytes(b"P6 1 1 255\n" + bytes([number] * 3))
    (tmp_path / "4.ppm").write_bytes(b"broken")
    return tmp_path


def reading(folder: Path, **options: Any) -> Any:
    @pipeline_def(batch_size=3, num_threads=2, **{"on_error": "skip", **options})
    def pipe() -> Any:
        files = [str(folder / f"{number}.ppm") for number in range(7)]
        encoded, labels = fn.readers.file(files=files, name="Reader", pad_last_batch=True)
        return fn.decoders.image(encoded), labels

    return pipe()


def test_valid_name(images: Path) -> None:
    iterator = DALIClassificationIterator(reading(images), reader_name="Reader", valid_name="valid")
    with pytest.warns(BadSampleWarning):
        batches = [batch for (batch,) in iterator]
    assert [batch["valid"].tolist() for batch in batches] == [[True] * 3, [True, False, True], [True, False, False]]
    assert all(batch["valid"].dtype == torch.bool for batch in batches)
    counted = torch.cat([batch["label"][batch["valid"]] for batch in batches])
    assert counted.flatten().tolist() == [0, 1, 2, 3, 5, 6]


def test_name_that_is_taken(images: Path) -> None:
    with pytest.raises(ArgumentValueError, match="is already the name of an output"):
        DALIClassificationIterator(reading(images), reader_name="Reader", valid_name="label")


@pytest.mark.parametrize("seed", [1, None])
def test_after_loading_a_state_only_what_follows_is_reported(images: Path, seed: int | None) -> None:
    """Also if another seed requires a new engine, and with a rate that is exceeded if an epoch is counted twice."""
    options = {"seed": seed, "on_error": "replace", "max_error_rate": 1.5 / 7}
    made = reading(images, **options)
    iterator = DALIClassificationIterator(made, reader_name="Reader", collate="list")
    state = DALIClassificationIterator(reading(images, **options), reader_name="Reader", collate="list").state_dict()
    for _ in range(3):
        with pytest.warns(BadSampleWarning, match="1 sample of epoch 0 could not be used"):
            list(iterator)
        assert len(made.bad_samples()) == 1
        iterator.load_state_dict(state)
    for count in range(1, 4):
        iterator.set_epoch(0)
        with pytest.warns(BadSampleWarning, match="1 sample of epoch 0 could not be used"):
            list(iterator)
        assert len(made.bad_samples()) == count


def test_bad_samples_are_reported_at_the_end_of_each_epoch(images: Path) -> None:
    iterator = DALIClassificationIterator(reading(images), reader_name="Reader", auto_reset=True)
    for epoch in range(2):
        with pytest.warns(
            BadSampleWarning, match=rf"1 samples? of epoch {epoch} could not be used.*\n.*4\.ppm"
        ) as reported:
            for _ in iterator:
                pass
        assert len(reported) == 1
        assert reported[0].filename == __file__
