"""Samples that cannot be read or decoded: replacements, reports, and the maximum error rate."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dalify import fn, types
from dalify.base.errors import (
    ArgumentValueError,
    BadSampleWarning,
    DecodeError,
    ErrorRateError,
    GraphError,
    ReaderError,
)
from dalify.executor import recovery
from dalify.pipeline import Pipeline, pipeline_def
from dalify.plugin.pytorch import DALIGenericIterator
from tests.helpers.photos import drawn_photo, encode_image

COUNT = 24
BAD = (3, 11, 17)


def _shade(number: int) -> int:
    return 10 * number


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of one-colored PNGs whose brightness encodes their number and label; three are damaged."""
    lines = []
    for number in range(COUNT):
        Image.new("RGB", (20 + number, 16), (_shade(number),) * 3).save(tmp_path / f"{number:02}.png")
        lines.append(f"{number:02}.png {number}\n")
    (tmp_path / "03.png").write_bytes(b"")
    (tmp_path / "11.png").write_bytes(b"not an image file")
    whole = (tmp_path / "17.png").read_bytes()
    (tmp_path / "17.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "list.txt").write_text("".join(lines))
    return tmp_path


@pipeline_def(batch_size=4, num_threads=2, seed=5)
def image_pipeline(folder: Path, reader: dict[str, Any] | None = None, decoder: dict[str, Any] | None = None):
    options = {"random_shuffle": True, "pad_last_batch": True, "name": "Reader", **(reader or {})}
    encoded, labels = fn.readers.file(file_list=str(folder / "list.txt"), **options)
    return fn.decoders.image(encoded, **(decoder or {})), labels


def _epoch(pipe: Pipeline, batches: int = COUNT // 4) -> list[tuple[list[int], list[int], list[bool]]]:
    """Return brightness, label and validity of the samples, batch by batch."""
    found = []
    for _ in range(batches):
        images, labels = pipe.run()
        shades = [int(images.at(index)[0, 0, 0]) for index in range(len(images))]
        found.append((shades, labels.as_array()[:, 0].tolist(), pipe.valid.tolist()))
    return found


@pytest.mark.parametrize("on_error", ["skip", "replace", "raise"])
def test_an_exception_object_that_is_raised_several_times(on_error: str) -> None:
    """Each time it belongs to another sample."""
    same = ValueError("always the same object")

    class Items:
        def __len__(self) -> int:
            return 8

        def __getitem__(self, number: int) -> np.ndarray:
            if number in (1, 2, 7):
                raise same
            return np.full(1, number)

    @pipeline_def(batch_size=2, num_threads=1, on_error=on_error, prefetch_queue_depth=1)
    def reading() -> Any:
        return fn.readers.dataset(dataset=Items(), num_outputs=1)

    pipe = reading()
    for batch, bad in enumerate([1, 0, None, 1]):
        if on_error == "raise" and bad is not None:
            with pytest.raises(ValueError, match="same object") as caught:
                pipe.run()
            (note,) = caught.value.__notes__
            assert f"sample {bad} of the batch" in note
        else:
            values = pipe.run()[0].as_array()[:, 0].tolist()
            assert bad is None or values[1 - bad] == 2 * batch + 1 - bad
    found = {(each.batch, each.sample) for each in pipe.bad_samples()}
    assert found == (set() if on_error == "raise" else {(0, 1), (1, 0), (3, 1)})


def test_skip_fills_the_batch_with_other_samples(folder: Path) -> None:
    pipe = image_pipeline(folder, on_error="skip")
    found = _epoch(pipe)
    for shades, labels, _ in found:
        assert shades == [_shade(label) for label in labels]  # image and label belong to the same file
        assert not set(labels) & set(BAD)
    valid = [label for _, labels, flags in found for label, flag in zip(labels, flags, strict=True) if flag]
    assert sorted(valid) == [number for number in range(COUNT) if number not in BAD]


def test_every_bad_sample_is_recorded(folder: Path) -> None:
    pipe = image_pipeline(folder, on_error="skip")
    found = _epoch(pipe)
    bad = pipe.bad_samples()
    assert {Path(sample.source).name for sample in bad} == {f"{number:02}.png" for number in BAD}
    for sample in bad:
        assert sample.operator == "fn.decoders.image"
        assert "test_bad_samples.py:" in sample.line
        assert sample.error.startswith("DecodeError: ")
        assert sample.action == "skip"
        assert sample.epoch == 0
        assert not found[sample.batch][2][sample.sample]
        assert sample.source in str(sample)
    assert pipe.bad_samples(epoch=1) == []
    _epoch(pipe)
    assert {sample.epoch for sample in pipe.bad_samples()} == {0, 1}
    assert pipe.bad_samples(epoch=0) == bad


@pipeline_def(batch_size=4, num_threads=2, seed=5, on_error="skip")
def small_images(folder: Path) -> Any:
    options: dict[str, Any] = {"random_shuffle": True, "pad_last_batch": True, "name": "Reader"}
    encoded, labels = fn.readers.file(file_list=str(folder / "list.txt"), **options)
    return fn.resize(fn.decoders.image(encoded), size=[4, 4]), labels


def test_the_record_does_not_fill_the_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest ones are stored, all are counted and reported, and equal strings are shared."""
    monkeypatch.setattr(recovery, "_MAX_RECORDED", 10)
    pipe, whole = small_images(folder), small_images(folder)
    iterator = DALIGenericIterator([pipe], ["x", "y"], reader_name="Reader", auto_reset=True)
    for epoch in range(8):
        before = pipe.bad_count
        with pytest.warns(BadSampleWarning) as caught:
            list(iterator)
        found = pipe.bad_count - before
        assert found >= len(BAD)
        assert [str(each.message).split(" could")[0] for each in caught] == [f"{found} samples of epoch {epoch}"]
        assert len(pipe.bad_samples()) == pipe.bad_count or 5 <= len(pipe.bad_samples()) <= 10
    assert pipe.bad_count > 20
    monkeypatch.undo()
    _epoch(whole, 8 * COUNT // 4)
    assert whole.bad_count == pipe.bad_count == len(whole.bad_samples())
    assert whole.bad_samples()[-5:] == pipe.bad_samples()[-5:]
    assert len({id(sample.source) for sample in whole.bad_samples()}) == len(BAD)


def test_only_received_batches_are_recorded(folder: Path) -> None:
    """Bad samples of prefetched batches are not reported yet."""
    pipe = image_pipeline(folder, {"random_shuffle": False}, on_error="skip", prefetch_queue_depth=5)
    pipe.run()
    assert [Path(sample.source).name for sample in pipe.bad_samples()] == ["03.png"]


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 4, "prefetch_queue_depth": 4}])
def test_replacements_depend_only_on_the_position(folder: Path, options: dict[str, Any]) -> None:
    assert _epoch(image_pipeline(folder, on_error="skip", **options), 14) == _epoch(
        image_pipeline(folder, on_error="skip"), 14
    )


@pytest.mark.parametrize("action", ["skip", "replace"])
def test_resumed_run_gets_the_same_replacements(folder: Path, action: str) -> None:
    pipe = image_pipeline(folder, on_error=action)
    whole = _epoch(pipe, 12)
    for step in range(12):
        first = image_pipeline(folder, on_error=action)
        _epoch(first, step)
        second = image_pipeline(folder, on_error=action)
        second.load_state_dict(first.state_dict())
        assert _epoch(second, 12 - step) == whole[step:]


def test_replace_keeps_place_and_label(folder: Path) -> None:
    pipe = image_pipeline(folder, {"random_shuffle": False}, on_error="replace")
    found = _epoch(pipe)
    assert [label for _, labels, _ in found for label in labels] == list(range(COUNT))
    for shades, labels, flags in found:
        assert flags == [label not in BAD for label in labels]
        assert shades == [0 if label in BAD else _shade(label) for label in labels]
    assert {sample.action for sample in pipe.bad_samples()} == {"replace"}


def test_blank_image_has_the_size_declared_by_the_header(folder: Path) -> None:
    pipe = image_pipeline(folder, {"random_shuffle": False}, on_error="replace")
    shapes = [tuple(shape) for _ in range(6) for shape in pipe.run()[0].shape()]
    assert shapes[17] == (16, 37, 3)  # half a file: its header is whole
    assert shapes[3] == shapes[11] == (256, 256, 3)


def test_file_that_vanishes(folder: Path) -> None:
    pipe = image_pipeline(folder, {"random_shuffle": False}, on_error="skip")
    pipe.build()
    (folder / "05.png").unlink()
    labels = [label for _, labels, _ in _epoch(pipe) for label in labels]
    assert 5 not in labels
    gone = next(sample for sample in pipe.bad_samples() if sample.source.endswith("05.png"))
    assert gone.operator == "fn.readers.file"


def test_vanished_file_is_replaced_with_its_label(folder: Path) -> None:
    pipe = image_pipeline(folder, {"random_shuffle": False}, on_error="replace")
    pipe.build()
    (folder / "05.png").unlink()
    found = _epoch(pipe)
    assert found[1][:2] == ([_shade(4), 0, _shade(6), _shade(7)], [4, 5, 6, 7])
    assert sum(sample.source.endswith("05.png") for sample in pipe.bad_samples()) == 1  # not for the decoder again


def test_error_as_before_without_the_option(folder: Path) -> None:
    pipe = image_pipeline(folder, {"random_shuffle": False})
    with pytest.raises(DecodeError, match=r"03\.png") as caught:
        pipe.run()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert pipe.run()[1].as_array()[:, 0].tolist() == [4, 5, 6, 7]
    assert pipe.bad_samples() == []


def test_operators_may_override_it(folder: Path) -> None:
    pipe = image_pipeline(folder, {"random_shuffle": False}, {"on_error": "replace"}, on_error="skip")
    assert pipe.run()[1].as_array()[:, 0].tolist() == [0, 1, 2, 3]
    with pytest.raises(DecodeError):
        image_pipeline(folder, {"random_shuffle": False}, {"on_error": "raise"}, on_error="skip").run()


def test_readers_that_belong_together_stay_together(folder: Path) -> None:
    """The mask of a bad image is skipped, too."""
    masks = folder / "masks"
    masks.mkdir()
    for number in range(COUNT):
        Image.new("L", (8, 8), number).save(masks / f"{number:02}.png")
    files = [f"{number:02}.png" for number in range(COUNT)]

    @pipeline_def(batch_size=4, num_threads=2, seed=5, on_error="skip")
    def paired():
        options: dict[str, Any] = {"files": files, "random_shuffle": True, "seed": 3}
        encoded, _ = fn.readers.file(file_root=str(folder), **options)
        mask, _ = fn.readers.file(file_root=str(masks), **options)
        return fn.decoders.image(encoded), fn.decoders.image(mask, output_type=types.GRAY)

    pipe = paired()
    for _ in range(12):
        images, masks_read = pipe.run()
        for index in range(4):
            assert images.at(index)[0, 0, 0] == _shade(int(masks_read.at(index)[0, 0, 0]))


def test_readers_of_other_sizes_lose_nothing(folder: Path) -> None:
    others = [f"{number:02}.png" for number in range(COUNT) if number not in BAD]

    @pipeline_def(batch_size=6, num_threads=2, seed=5, on_error="skip", max_error_rate=3 / COUNT)
    def labeled_and_unlabeled():
        encoded, label = fn.readers.file(file_list=str(folder / "list.txt"), random_shuffle=True)
        other, number = fn.readers.file(file_root=str(folder), files=others, random_shuffle=True)
        return fn.decoders.image(encoded), label, fn.decoders.image(other), number

    pipe = labeled_and_unlabeled()
    numbers = [number for _ in range(COUNT) for number in pipe.run()[3].as_array()[:, 0].tolist()]
    for start in range(0, 6 * COUNT, len(others)):
        epoch = numbers[start : start + len(others)]
        assert len(epoch) < len(others) or sorted(epoch) == list(range(len(others)))
    for epoch in range(6):  # of the reader that the sample is from, the other's are shorter
        names = [Path(bad.source).name for bad in pipe.bad_samples(epoch)]
        assert {f"{number:02}.png" for number in BAD} <= set(names)


@pytest.mark.parametrize("pad", [True, False])
@pytest.mark.parametrize("batch_size", [4, 5, 7])
def test_epoch_of_a_bad_sample(folder: Path, pad: bool, batch_size: int) -> None:
    """Also in the first batch of an epoch, and in a batch of two epochs."""
    pipe = image_pipeline(
        folder, {"random_shuffle": False, "pad_last_batch": pad}, on_error="replace", batch_size=batch_size
    )
    for _ in range(3 * -(-COUNT // batch_size)):
        pipe.run()
    for epoch in range(3):
        found = [Path(bad.source).name for bad in pipe.bad_samples(epoch)]
        assert found == ["03.png", "11.png", "17.png"]


def test_decoder_inside_a_branch(folder: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=5, on_error="skip")
    def branching():
        encoded, labels = fn.readers.file(file_list=str(folder / "list.txt"))
        odd = labels[0] % 2 == 1
        return fn.decoders.image(encoded) if odd else fn.brightness(fn.decoders.image(encoded), brightness=0.5), labels

    pipe = branching()
    for shades, labels, _ in _epoch(pipe, 12):
        assert shades == [_shade(label) if label % 2 else _shade(label) // 2 for label in labels]
        assert not set(labels) & set(BAD)


def test_random_crop_decoder_and_fused_decoder(folder: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=5, on_error="skip")
    def cropping():
        encoded, labels = fn.readers.file(file_list=str(folder / "list.txt"))
        cropped = fn.decoders.image_random_crop(encoded)
        shape = fn.peek_image_shape(encoded)
        return fn.random_resized_crop(fn.decoders.image(encoded), size=[8, 8]), labels, cropped, shape

    pipe = cropping()
    for _ in range(COUNT // 4):
        images, labels, cropped, shape = pipe.run()
        for index in range(4):
            label = int(labels.at(index)[0])
            assert label not in BAD
            assert images.at(index)[0, 0, 0] == cropped.at(index)[0, 0, 0] == _shade(label)
            assert shape.at(index).tolist() == [16, 20 + label, 3]


def test_on_device(folder: Path, gpu: str) -> None:
    pipe = image_pipeline(folder, decoder={"device": "mixed"}, on_error="skip")
    for _ in range(COUNT // 4):
        images, labels = pipe.run()
        for index in range(4):
            assert images.as_cpu().at(index)[0, 0, 0] == _shade(int(labels.at(index)[0]))
    assert len({sample.source for sample in pipe.bad_samples()}) == len(BAD)


def test_too_many_stop_the_run(folder: Path) -> None:
    pipe = image_pipeline(folder, {"random_shuffle": False}, on_error="skip", max_error_rate=2 / COUNT)
    for _ in range(4):
        pipe.run()
    with pytest.raises(ErrorRateError, match=r"3 of the 24 samples .* max_error_rate=0\.083.*17\.png"):
        pipe.run()
    assert len({sample.source for sample in pipe.bad_samples()}) >= len(BAD)
    pipe.run()  # and it can be gone on with


def test_rate_is_of_an_epoch(folder: Path) -> None:
    pipe = image_pipeline(folder, on_error="skip", max_error_rate=3 / COUNT)
    _epoch(pipe, 18)
    assert {sample.epoch for sample in pipe.bad_samples()} == {0, 1, 2}


def test_only_bad_samples(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(b"not a jpeg")

    @pipeline_def(batch_size=2, num_threads=1, on_error="skip")
    def pipe():
        encoded, _ = fn.readers.file(files=[str(tmp_path / f"{number}.png") for number in range(4)])
        return fn.decoders.image(encoded)

    with pytest.raises(DecodeError, match=r"(?s)not a known image format.*on_error='skip' tried 20 samples"):
        pipe().run()


def test_replace_without_reader() -> None:
    good = drawn_photo(16, 16, 0)
    encoded = np.frombuffer(encode_image(good), np.uint8)

    @pipeline_def(batch_size=3, num_threads=2, on_error="replace")
    def pipe():
        return fn.decoders.image(fn.external_source(source=lambda: [encoded, encoded[:40], encoded]))

    made = pipe()
    (images,) = made.run()
    assert [images.at(index).any() for index in range(3)] == [True, False, True]
    assert made.valid.tolist() == [True, False, True]
    assert made.bad_samples()[0].source == ""
    assert "sample 1 of batch 0" in str(made.bad_samples()[0])


def test_padding_is_not_valid(folder: Path) -> None:
    pipe = image_pipeline(folder, {"random_shuffle": False}, batch_size=10, on_error="skip")
    flags = [flags for *_, flags in _epoch(pipe, 3)]
    assert flags[2] == [True] * 4 + [False] * 6


# -- mistakes


def test_unknown_option(folder: Path) -> None:
    with pytest.raises(ArgumentValueError, match=r"on_error must be one of raise, skip, replace; got 'skp'\. Did you"):
        image_pipeline(folder, on_error="skp")
    with pytest.raises(ArgumentValueError, match=r"fn\.decoders\.image: on_error must be one of") as caught:
        image_pipeline(folder, decoder={"on_error": "ignore"}).build()
    assert "test_bad_samples.py" in str(caught.value)


@pytest.mark.parametrize("rate", [-0.1, 1.5, "1%", True])
def test_rate_out_of_range(folder: Path, rate: Any) -> None:
    with pytest.raises(ArgumentValueError, match="max_error_rate must be a fraction in"):
        image_pipeline(folder, max_error_rate=rate)


def test_skip_needs_a_reader(folder: Path) -> None:
    @pipeline_def(batch_size=3, num_threads=2, on_error="skip")
    def fed():
        return fn.decoders.image(fn.external_source(source=lambda: [np.zeros(4, np.uint8)] * 3))

    with pytest.raises(GraphError, match=r"takes another sample from a reader.*\n.*\n.*\n.*on_error='replace'"):
        fed().build()

    @pipeline_def(batch_size=3, num_threads=2, on_error="skip")
    def shuffled():
        encoded, _ = fn.readers.file(file_list=str(folder / "list.txt"))
        return fn.decoders.image(fn.permute_batch(encoded, indices=[2, 1, 0]))

    with pytest.raises(GraphError, match="whole batches"):
        shuffled().build()


def test_other_errors_stay_errors(folder: Path) -> None:
    """A window outside of its image is an error in the program, not a bad sample."""

    @pipeline_def(batch_size=4, num_threads=2, on_error="skip")
    def pipe():
        encoded, _ = fn.readers.file(file_list=str(folder / "list.txt"))
        return fn.decoders.image_slice(encoded, start=[0, 0], shape=[100, 100], axis_names="HW")

    with pytest.raises(Exception, match="100") as caught:
        pipe().run()
    assert not isinstance(caught.value, (DecodeError, ReaderError))


def test_a_blank_image_is_within_the_limits(tmp_path: Path) -> None:
    """The header of a bad image may declare a size that its pipeline does not allow."""
    Image.new("RGB", (60, 50)).save(tmp_path / "large.png")
    Image.new("RGB", (10, 9)).save(tmp_path / "small.png")

    @pipeline_def(batch_size=2, num_threads=1, on_error="replace", limits={"max_sample_bytes": 60 * 50 * 3})
    def graph() -> Any:
        encoded, _ = fn.readers.file(files=[str(tmp_path / name) for name in ("small.png", "large.png")])
        return fn.decoders.image(encoded, dtype=types.UINT16)

    pipe = graph()
    (images,) = pipe.run()
    assert images.at(0).shape == (9, 10, 3)
    assert not np.asarray(images.at(1)).any()
    (bad,) = pipe.bad_samples()
    assert bad.error.startswith("LimitError")


def test_what_cannot_be_opened_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first sample there is no sample to name, so the paths are."""

    def broken(*arguments: Any, **named: Any) -> None:
        raise KeyError("a library")

    (tmp_path / "list.txt").write_text("a.png 1\n")
    monkeypatch.setattr("dalify.operators.readers.file.files_of_list", broken)
    with pytest.raises(ReaderError) as caught:
        image_pipeline(tmp_path).build()
    assert "the data cannot be opened" in str(caught.value)
    assert "list.txt" in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
