"""Readers' epochs and states, checkpoints in files, sources of the user's."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest

import dalify.experimental.dynamic as ndd
from dalify import fn, pipeline_def, tfrecord
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BatchSizeError,
    CheckpointError,
    PipelineStateError,
    ReaderError,
    SourceError,
    UnknownArgumentError,
)


@pytest.fixture
def folder(tmp_path):
    for number in range(10):
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / f"{number}.jpg").write_bytes(bytes([number]))
    return str(tmp_path)


def _numbers(outputs):
    files = outputs[0]
    return [file.item() for file in files] if isinstance(files, ndd.Batch) else [files.item()]


def _epoch(reader, batch_size=None):
    return [number for outputs in reader.next_epoch(batch_size) for number in _numbers(outputs)]


def test_shuffled_epochs_give_every_sample_once(folder):
    reader = ndd.readers.File(file_root=folder, random_shuffle=True)
    epochs = [_epoch(reader) for _ in range(3)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    again = ndd.readers.File(file_root=folder, random_shuffle=True)
    assert _epoch(again, 5) == epochs[0]
    other = ndd.readers.File(file_root=folder, random_shuffle=True, seed=8)
    assert _epoch(other) != epochs[0]


def test_metadata_does_not_determine_the_batch_size(folder):
    reader = ndd.readers.File(file_root=folder, random_shuffle=True, seed=3)
    expected = _epoch(ndd.readers.File(file_root=folder, random_shuffle=True, seed=3), 4)
    assert reader.get_metadata()["epoch_size"] == 10
    with pytest.raises(CheckpointError, match="before its first epoch"):
        reader.get_state()
    assert _epoch(reader, 4) == expected
    with pytest.raises(ArgumentValueError, match="differs from the previous batch size, 4"):
        _epoch(reader, 3)


def test_a_state_may_be_given_after_the_metadata(folder):
    def made():
        return ndd.readers.File(file_root=folder, random_shuffle=True, seed=3)

    reader, later = made(), made()
    epoch = reader.next_epoch(4)
    next(epoch)
    state = reader.get_state()
    later.get_metadata()
    later.set_state(state)
    assert [_numbers(outputs) for outputs in later.rest_of_epoch(4)] == [_numbers(outputs) for outputs in epoch]


def test_shards_share_shuffled_epochs(folder):
    readers = [
        ndd.readers.File(file_root=folder, shuffle_after_epoch=True, num_shards=2, shard_id=shard) for shard in (0, 1)
    ]
    for _ in range(2):
        assert sorted(_epoch(readers[0], 5) + _epoch(readers[1], 5)) == list(range(10))


def test_a_shuffled_reader_continues_where_it_was(folder):
    def make():
        return ndd.readers.File(file_root=folder, random_shuffle=True, seed=3, num_shards=3, shard_id=2)

    reader = make()
    _epoch(reader, 2)
    steps = reader.next_epoch(2)
    next(steps)
    state = reader.get_state()
    rest = [_numbers(reader_outputs) for reader_outputs in steps] + [_numbers(o) for o in reader.next_epoch(2)]
    for text in (state, str(state)):
        other = make()
        other.set_state(text)
        resumed = [_numbers(outputs) for _ in range(2) for outputs in other.next_epoch(2)]
        assert resumed[: len(rest)] == rest
    reader.set_state(state)  # also one that has run
    assert _numbers(next(reader.next_epoch(2))) == rest[0]


@pytest.mark.parametrize("taken_after", [0, 2, 4])
def test_an_epoch_is_finished_elsewhere(folder, taken_after):
    """The remaining epoch has the length of the shard, also if no sample is left."""

    def make():
        return ndd.readers.File(file_root=folder, num_shards=3, shard_id=2)

    reader, rest = make(), []
    _epoch(reader)
    for step, outputs in enumerate(reader.next_epoch()):
        if step > taken_after:
            rest += _numbers(outputs)
        else:
            state = reader.get_state()
            taken = step
    other = make()
    other.set_state(state)
    assert taken == min(taken_after, 2)
    assert [number for outputs in other.rest_of_epoch() for number in _numbers(outputs)] == rest
    assert _epoch(other) == _epoch(reader)


def test_states_are_refused_where_they_do_not_belong(folder):
    reader = ndd.readers.File(file_root=folder)
    with pytest.raises(CheckpointError, match="before"):
        reader.get_state()
    for wrong in ("", "{}", 3, "null"):
        with pytest.raises(CheckpointError, match="not a state"):
            reader.set_state(wrong)
    _epoch(reader, 2)
    other = ndd.readers.File(file_root=folder)
    other.set_state(reader.get_state())
    with pytest.raises(CheckpointError, match="batch"):
        _epoch(other, 3)


def test_a_reader_is_used_in_one_way(folder):
    reader = ndd.readers.File(file_root=folder, max_batch_size=4)
    assert len(next(reader.next_epoch())[0].tensors) == 4
    for wrong, error in (
        (lambda: reader(), PipelineStateError),
        (lambda: reader.next_epoch(5), ArgumentValueError),
        (lambda: next(reader.next_epoch(3)), ArgumentValueError),
        (lambda: ndd.readers.File(file_root=folder).next_epoch(0), ArgumentTypeError),
        (lambda: ndd.readers.File(file_root=folder).next_epoch(capture=True), ArgumentValueError),
        (lambda: ndd.readers.File(file_rot=folder), UnknownArgumentError),
        (lambda: ndd.readers.File(file_root=folder, layout="HWC"), UnknownArgumentError),
    ):
        with pytest.raises(error):
            wrong()


def test_errors_name_the_line_of_the_reader(tmp_path):
    reader = ndd.readers.File(file_root=str(tmp_path / "nowhere"))  # this line
    with pytest.raises(ReaderError, match=r"(?s)nowhere.*this line"):
        next(reader.next_epoch())


def test_captured_loops_give_the_same(folder):
    def flipped(reader, **arguments):
        factor = ndd.capture.invariant(2)
        return [(files * factor).torch().tolist() for files, _ in reader.next_epoch(5, **arguments)]

    plain, captured = (ndd.readers.File(file_root=folder) for _ in "ab")
    with ndd.EvalContext(num_threads=1) as context:
        assert flipped(captured, capture=True, ctx=context) == flipped(plain)


def test_readers_of_features(tmp_path):
    """A reader of TFRecords gives a dict, as in a pipeline."""
    example = b"\n\x0c\n\n\n\x01x\x12\x05\x1a\x03\n\x01\x07"  # {"x": int64 [7]}
    record = struct.pack("<QI", len(example), 0) + example + struct.pack("<I", 0)
    (tmp_path / "data.tfrecord").write_bytes(record * 3)
    features = {"x": tfrecord.FixedLenFeature([1], tfrecord.int64, 0)}
    reader = ndd.readers.TFRecord(path=str(tmp_path / "data.tfrecord"), features=features)
    (outputs,) = reader.next_epoch(3)
    assert outputs["x"].torch().tolist() == [[7], [7], [7]]


def test_values_equal_those_of_a_pipeline(photo_folder):
    """The same program in dynamic mode and as a pipeline."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def training():
        encoded, labels = fn.readers.file(file_root=str(photo_folder), name="reader")
        images = fn.resize(fn.decoders.image(encoded), size=(20, 24))
        return fn.crop_mirror_normalize(images, dtype=None, mean=[127.0], std=[50.0]), labels

    pipe = training()
    reader = ndd.readers.File(file_root=str(photo_folder))
    for encoded, labels in reader.next_epoch(batch_size=4):
        images = ndd.resize(ndd.decoders.image(encoded), size=(20, 24))
        images = ndd.crop_mirror_normalize(images, mean=[127.0], std=[50.0])
        for result, expected in zip((images, labels), pipe.run(), strict=True):
            np.testing.assert_array_equal(result.torch().numpy(), expected.as_array())


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_checkpoints_in_files(folder, tmp_path):
    def begin(checkpoint):
        reader = ndd.readers.File(file_root=folder, random_shuffle=True)
        rng = ndd.random.RNG(5)
        checkpoint.register(reader, "reader")
        checkpoint.register(rng, "rng")
        return reader, rng

    checkpoint = ndd.checkpoint.Checkpoint()
    pattern = str(tmp_path / "state_{seq:03d}.json")
    reader, rng = begin(checkpoint)
    steps = reader.next_epoch(2)
    for step in range(2):
        next(steps)
        rng()
        checkpoint.collect()
        assert checkpoint.save(pattern) == pattern.format(seq=step)
    rest = [_numbers(outputs) for outputs in steps]
    later = ndd.checkpoint.Checkpoint()
    assert later.load(pattern) == pattern.format(seq=1)
    resumed, generator = begin(later)
    assert generator() == rng()
    assert [_numbers(outputs) for outputs in resumed.next_epoch(2)][: len(rest)] == rest


def test_what_checkpoints_refuse(folder, tmp_path):
    checkpoint = ndd.checkpoint.Checkpoint()
    rng = ndd.random.RNG(5)
    checkpoint.register(rng, "rng")
    with pytest.raises(CheckpointError, match="collect"):
        checkpoint.serialize()
    checkpoint.collect()
    for wrong, error in (
        (lambda: checkpoint.register(3), ArgumentTypeError),
        (lambda: checkpoint.register(rng, "__op_1"), ArgumentValueError),
        (lambda: checkpoint.get_state("rgn"), CheckpointError),
        (lambda: checkpoint.set_state("rgn", 3), CheckpointError),
        (lambda: checkpoint.set_state("rng", 3, op_type=3), ArgumentTypeError),
        (lambda: checkpoint.save(str(tmp_path / "state.json")), ArgumentValueError),
        (lambda: checkpoint.load(str(tmp_path / "state_{seq}.json")), FileNotFoundError),
        (lambda: checkpoint.deserialize("[]"), CheckpointError),
    ):
        with pytest.raises(error):
            wrong()
    other = ndd.checkpoint.Checkpoint()
    other.deserialize(checkpoint.serialize())
    with pytest.raises(CheckpointError, match="RNG"):
        other.register(ndd.readers.File(file_root=folder), "rng")
    with pytest.raises(CheckpointError, match="no state 'gen'"):
        other.register(ndd.random.RNG(5), "gen")
    with pytest.raises(CheckpointError, match="not a serialized checkpoint"):  # of another version
        other.deserialize(checkpoint.serialize().replace('"version": 1', '"version": 2'))
    with pytest.raises(CheckpointError, match="without a registered object"):
        _with_stranger().collect()


def test_what_registrations_refuse(folder):
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.restore()  # nothing
    rng = ndd.random.RNG(5)
    checkpoint.register(rng, "rng")
    for wrong, error in (
        (lambda: checkpoint.register(rng, ""), ArgumentValueError),
        (lambda: checkpoint.register(rng, "again"), CheckpointError),
        (lambda: checkpoint.register(ndd.readers.File(file_root=folder), "rng"), CheckpointError),
    ):
        with pytest.raises(error):
            wrong()
    checkpoint.set_state("rng", ndd.random.RNG(6).state, ndd.random.RNG)
    checkpoint.register(ndd.random.RNG(7), "other")
    with pytest.raises(CheckpointError, match="missing states: other"):
        checkpoint.restore()
    checkpoint.collect()
    with pytest.raises(CheckpointError, match="after the states have been collected"):
        checkpoint.register(ndd.random.RNG(8), "late")
    assert checkpoint.get_state("rng") == str(rng.state) == rng.state
    assert len({rng.state, str(rng.state)}) == 1
    assert repr(rng.state) == f"RNGState('{rng.state}')"
    drawn, rng.state = rng(), checkpoint.get_state("rng")
    assert rng() == drawn


def _with_stranger():
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.set_state("stranger", "x")
    return checkpoint


# -- sources -----------------------------------------------------------------------------------------------------------


def test_sources_until_their_end():
    source = ndd.ExternalSource([np.full(2, number) for number in range(3)])
    batches = list(source.captured(batch_size=2))
    assert [batch.shape for batch in batches] == [[(2,), (2,)]] * 3
    assert Counter(batch.select(0)[0].item() for batch in batches) == {0: 1, 1: 1, 2: 1}


def test_what_sources_refuse():
    make = ndd.ExternalSource
    for wrong, error in (
        (lambda: make(3), ArgumentTypeError),
        (lambda: make([1], cycle="sometimes"), ArgumentValueError),
        (lambda: make([1], cycle=["quiet"]), ArgumentValueError),
        (lambda: make(lambda: 1, cycle="quiet"), ArgumentValueError),
        (lambda: make([1], num_outputs=2, layout=["H"]), ArgumentValueError),
        (lambda: make(lambda: (1, 2, 3), num_outputs=2)(), SourceError),
        (lambda: make(lambda: 3, num_outputs=2)(), SourceError),
        (lambda: make(lambda: (1, ndd.batch([1])), num_outputs=2)(), SourceError),
        (lambda: make(lambda: ndd.batch([1, 2]))(batch_size=3), BatchSizeError),
    ):
        with pytest.raises(error):
            wrong()
