"""Debug mode: the function runs for every batch, with values, and returns the results of the pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalify import fn, pipeline_def, types
from dalify.auto_aug.rand_augment import rand_augment
from dalify.base.errors import (
    CheckpointError,
    DecodeError,
    DivergentBranchesError,
    GraphError,
    PipelineStateError,
    UnknownArgumentError,
)
from dalify.pipeline import do_not_convert
from dalify.pipeline.debugging import DebugPipeline
from dalify.plugin.pytorch import DALIGenericIterator

OPTIONS = {"batch_size": 3, "num_threads": 2, "seed": 5}


def images_of(index: int) -> list[np.ndarray]:
    return [np.full((4, 5, 3), 10 * index + sample, np.uint8) for sample in range(3)]


def both(function: Any, **options: Any) -> tuple[Any, Any]:
    """The same function as a pipeline and in debug mode."""
    return tuple(pipeline_def(function, debug=debug, **{**OPTIONS, **options})() for debug in (False, True))


def assert_equal_runs(plain: Any, debugged: Any, count: int) -> None:
    for _ in range(count):
        ours, theirs = plain.run(), debugged.run()
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert one.layout() == other.layout()
            assert one.shape() == other.shape()
            for index in range(len(one)):
                np.testing.assert_array_equal(one.as_cpu().at(index), other.as_cpu().at(index))
    plain.close()
    debugged.close()


def test_reader(photo_folder):
    """Shuffling, decoding and random numbers are those of the pipeline, over the end of the epoch."""

    def function():
        encoded, labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True)
        images = fn.decoders.image(encoded)
        images = fn.random_resized_crop(images, size=8)
        images = fn.rotate(images, angle=fn.random.uniform(range=(-30.0, 30.0)), keep_size=True)
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip()), labels

    assert_equal_runs(*both(function), 8)


def test_conditions():
    """Samples of a branch, random numbers inside it, branches without samples, nested ones, ternaries."""

    def function():
        images = fn.external_source(source=images_of, layout="HWC")
        flag = fn.random.coin_flip(probability=0.3)
        number = fn.random.uniform(range=(0.0, 1.0))
        if flag:
            result = fn.brightness(images, brightness=fn.random.uniform(range=(1.0, 2.0)))
            if number > 0.5:
                result = fn.noise.gaussian(result, stddev=3.0)
        elif number > 0.9:
            result = fn.flip(images) if not flag else images
        else:
            result = images + fn.cast(number * 10, dtype=types.UINT8)
        return result, flag or number > 0.5, images[0, 0, 1], images.shape()

    assert_equal_runs(*both(function), 10)


def test_automatic_augmentation():
    """Choices between many branches."""

    def function():
        images = fn.external_source(source=images_of, layout="HWC", dtype=types.UINT8)
        return rand_augment(images, n=2, m=15, shape=[4, 5])

    assert_equal_runs(*both(function), 4)


def test_gpu(device):
    def function():
        images = fn.external_source(source=images_of, layout="HWC", device=device)
        return fn.flip(images), fn.reductions.sum(images).cpu()

    assert_equal_runs(*both(function), 2)


def test_values_are_readable(capsys):
    """In branches, too: those of the branch's samples."""
    sums_seen: list[Any] = []

    @pipeline_def(**OPTIONS, debug=True)
    def function():
        images = fn.external_source(source=images_of, layout="HWC")
        sums = fn.reductions.sum(fn.cast(images, dtype=types.INT32))
        sums_seen.append(sums.get().as_array().tolist())
        print(sums)
        if sums > 100:
            print("large", fn.flip(images).get())
        else:
            print("small", None if images.get() is None else images.get().shape())
        return images

    pipe = function()
    pipe.run()
    text = capsys.readouterr().out
    assert "[0, 60, 120]" in text
    assert "num_samples=1" in text
    assert "small [(4, 5, 3), (4, 5, 3)]" in text
    pipe.run()
    assert sums_seen == [[0, 60, 120], [600, 660, 720]]
    assert "small None" in capsys.readouterr().out
    pipe.close()


def test_without_debug_mode_values_are_an_error():
    @pipeline_def(**OPTIONS)
    def function():
        return fn.random.uniform().get()

    with pytest.raises(PipelineStateError, match="debug=True"):
        function()


def test_error_surfaces_at_the_call():
    """Python's traceback contains the operator; the next run continues."""
    caught: list[DecodeError] = []

    @pipeline_def(**OPTIONS, debug=True)
    def function():
        encoded = fn.external_source(source=lambda: [np.zeros(5, np.uint8)] * 3)
        try:
            images = fn.decoders.image(encoded)
        except DecodeError as error:
            caught.append(error)
            images = encoded
        return images

    pipe = function()
    pipe.run()
    pipe.run()
    assert len(caught) == 2
    assert "fn.decoders.image(encoded)" in str(caught[0])
    assert "sample 0 of the batch" in str(caught[0])
    pipe.close()


def test_leak_of_a_branch():
    class Kept:
        value: Any = None

    @do_not_convert
    def keep(value: Any) -> None:
        Kept.value = value

    @pipeline_def(**OPTIONS, debug=True)
    def function():
        value = fn.random.uniform()
        if value > 0.5:
            keep(value * 2)
        return Kept.value + 1

    with pytest.raises(DivergentBranchesError, match=r"value \* 2"):
        function().run()


def test_ends_and_resets():
    @pipeline_def(**OPTIONS, debug=True)
    def function():
        return fn.external_source(source=[images_of(0), images_of(1)], cycle="raise", layout="HWC")

    pipe = function()
    for _ in range(2):
        assert [int(batch.at(0)[0, 0, 0]) for (batch,) in pipe] == [0, 10]
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()
    pipe.close()


def test_smaller_batches():
    """A source with fewer samples than batch_size determines the batch size, also of earlier random numbers."""

    def function():
        draw = fn.random.uniform(range=(0.0, 1.0))
        return draw, fn.external_source(source=lambda: np.zeros((2, 3), np.float32))

    assert_equal_runs(*both(function), 3)


def test_fed_by_hand():
    @pipeline_def(**OPTIONS, debug=True)
    def function():
        return fn.external_source(name="images", layout="HWC") + 1

    pipe = function()
    pipe.feed_input("images", images_of(0))
    pipe.feed_input("images", images_of(1))
    assert [int(pipe.run()[0].at(0)[0, 0, 0]) for _ in range(2)] == [1, 11]
    assert int(pipe.run(images=images_of(2))[0].at(0)[0, 0, 0]) == 21
    with pytest.raises(PipelineStateError):
        pipe.run()
    with pytest.raises(PipelineStateError, match="other"):
        pipe.feed_input("other", images_of(0))
    pipe.close()


def test_iterator(photo_folder):
    @pipeline_def(**OPTIONS)
    def function():
        encoded, labels = fn.readers.file(file_root=str(photo_folder), name="photos")
        return fn.resize(fn.decoders.image(encoded), size=[4, 4]), labels

    epochs = []
    for debug in (False, True):
        pipe = function(debug=debug)
        assert isinstance(pipe, DebugPipeline) == debug
        iterator = DALIGenericIterator(pipe, ["image", "label"], reader_name="photos")
        epochs.append([[batch[0]["label"].flatten().tolist() for batch in iterator] for _ in range(2)])
        pipe.close()
    assert epochs[0] == epochs[1]


def test_epochs_of_an_iterator_are_selected(photo_folder):
    def function():
        return fn.readers.file(file_root=str(photo_folder), random_shuffle=True, name="r")[1]

    orders = []
    for pipe in both(function):
        loader = DALIGenericIterator(pipe, ["label"], reader_name="r")
        orders.append([[int(label) for data in loader for label in data[0]["label"]] for _ in range(2)])
        loader.set_epoch(1)
        orders[-1].append([int(label) for data in loader for label in data[0]["label"]])
    assert orders[0] == orders[1]
    assert orders[0][1] == orders[0][2]


def test_another_reader_of_the_same_name_is_refused(photo_folder, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    runs = []

    @pipeline_def(debug=True, **OPTIONS)
    def made():
        runs.append(None)
        if len(runs) > 1:
            return fn.readers.file(file_root=str(photo_folder), name="r")[0]
        return fn.readers.numpy(file_root=str(tmp_path), name="r")

    pipe = made()
    pipe.run()
    with pytest.raises(
        GraphError, match=r"'r' was fn\.readers\.numpy in the previous run and is fn\.readers\.file now"
    ):
        pipe.run()


def test_readers_have_no_graph_values_as_arguments(tmp_path):
    @pipeline_def(debug=True, **OPTIONS)
    def made():
        start = fn.random.uniform(range=(0, 2), shape=1)
        return fn.readers.numpy(file_root=str(tmp_path), rel_roi_start=start)

    with pytest.raises(GraphError, match="debug mode cannot run a reader whose arguments are graph values"):
        made().run()


def test_sources_are_fed_by_name():
    @pipeline_def(debug=True, **OPTIONS)
    def made():
        return fn.external_source(name="images")

    with pytest.raises(PipelineStateError, match="in debug mode sources are fed by name"):
        made().feed_input(fn.external_source(), images_of(0))


def test_own_argument_called_debug():
    @pipeline_def(**OPTIONS)
    def function(debug):
        return fn.constant(idata=debug)

    pipe = function(debug=3)
    assert not isinstance(pipe, DebugPipeline)
    assert pipe.run()[0].at(0).tolist() == [3]
    pipe.close()
    with pytest.raises(UnknownArgumentError):
        function(3, debug_mode=True)


@pytest.mark.parametrize("runs", [0, 1])
def test_nothing_to_explain(runs):
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, debug=True)
    def function():
        return fn.random.uniform()

    with function() as pipe:
        for _ in range(runs):
            pipe.run()
        with pytest.raises(PipelineStateError, match=r"(?s)debug mode.*test_debugging\.py.*Omit debug=True"):
            pipe.explain()


def test_a_reset_before_the_first_batch_changes_nothing(photo_folder):
    """The function has run once to find the readers: the consumer gets this batch."""

    @pipeline_def(**OPTIONS)
    def function():
        labels = fn.readers.file(file_root=str(photo_folder), random_shuffle=True, name="files")[1]
        return fn.random.uniform(), labels

    expected = [np.asarray(output.as_array()) for output in function().run()]
    pipe = function(debug=True)
    assert pipe.epoch_size("files") == pipe.reader_meta("files")["epoch_size_padded"]
    pipe.reset()
    for output, values in zip(pipe.run(), expected, strict=True):
        np.testing.assert_array_equal(output.as_array(), values)
    pipe.close()


def test_no_state():
    @pipeline_def(**OPTIONS, debug=True)
    def function():
        return fn.random.uniform()

    pipe = function()
    pipe.run()
    with pytest.raises(CheckpointError):
        pipe.state_dict()
    state = function(debug=False).state_dict()
    with pytest.raises(CheckpointError):
        pipe.load_state_dict(state)
    with pytest.raises(CheckpointError):
        function(checkpoint=state)
    pipe.close()
    with pytest.raises(PipelineStateError, match="closed"):
        pipe.run()
