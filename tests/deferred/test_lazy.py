"""Lazy mode: what is computed when, together with what, how often, and what was planned for it."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import threading
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import dalify
from dalify import eager, fn, lazy, math, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConditionError,
    DalifyError,
    DecodeError,
    DTypeError,
    ShapeError,
    UnknownArgumentError,
)
from dalify.data import TensorCPU, TensorListCPU
from dalify.deferred import Fallback, LazyBatch, LazySample, Statistics, recipe


class Counted:
    """How much the counts have grown."""

    def __init__(self) -> None:
        self.before = lazy.statistics()

    def __call__(self) -> dict[str, int]:
        now = lazy.statistics()
        names = [field.name for field in fields(Statistics) if field.name != "fallbacks"]
        grown = {name: getattr(now, name) - getattr(self.before, name) for name in names}
        return {name: count for name, count in grown.items() if count}


@pytest.fixture(autouse=True)
def nothing_waits() -> None:
    """Let go of values that errors of earlier tests hold."""
    gc.collect()


@pytest.fixture
def counted(nothing_waits: None) -> Counted:
    """Counts of the test alone, which begins without plans."""
    recipe.PLANS.clear()
    return Counted()


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (30, 40, 3), np.uint8)


@pytest.fixture(scope="module")
def encoded(photo: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(photo).save(file, "png")
    return file.getvalue()


def photos(count: int, seed: int = 0, height: int = 30) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 256, (height + index, 40, 3), np.uint8) for index in range(count)]


# -- when -----------------------------------------------------------------------------------------------------------


def test_nothing_is_computed_before_it_is_needed(photo, counted):
    with lazy():
        small = eager.resize(eager.batch([photo, photo], "HWC"), size=(6, 8))
        turned = eager.rotate(small, angle=90)
        assert isinstance(turned, LazyBatch)
        assert (turned.dtype, turned.ndim(), turned.layout(), turned.device) == (types.UINT8, 3, "HWC", "cpu")
        assert len(turned) == 2
        assert counted() == {}
    np.testing.assert_array_equal(turned.numpy()[0], np.rot90(eager.resize(photo, size=(6, 8))))
    assert counted() == {"plans_made": 1, "operators_run": 2}
    assert turned.numpy().shape == (2, 8, 6, 3)
    assert counted() == {"plans_made": 1, "operators_run": 2}


ASKING = {
    "get": lambda value: value.get(),
    "numpy": lambda value: value.numpy(),
    "torch": lambda value: value.torch(),
    "asarray": np.asarray,
    "index": lambda value: value[0],
    "iterate": list,
    "print": str,
    "repr": repr,
    "method": lambda value: value.as_array(),
    "shape": lambda value: value.shape(),
    "flush": lambda value: lazy.flush(),
}


@pytest.mark.parametrize("way", ASKING)
def test_ways_to_ask(way, photo, counted):
    with lazy():
        value = eager.flip([photo, photo])
    assert not value.is_computed
    ASKING[way](value)
    assert value.is_computed
    assert counted() == {"plans_made": 1, "operators_run": 1}


def test_values_are_those_of_a_call_at_once(photo):
    with lazy():
        batch = eager.flip([photo, photo])
        array = eager.flip(photo)
        tensor = eager.flip(torch.from_numpy(photo))
        ours = eager.flip(eager.tensor(photo, "HWC"))
        number = eager.reductions.sum(np.array([3, 4], np.int32))
        assert (array.dtype, array.ndim) == (np.uint8, 3)
        assert (tensor.dtype, tensor.ndim) == (torch.uint8, 3)
        assert (ours.dtype, ours.ndim(), ours.layout()) == (types.UINT8, 3, "HWC")
    flipped = photo[:, ::-1]
    assert type(batch.get()) is TensorListCPU
    assert type(array.get()) is np.ndarray
    assert type(tensor.get()) is torch.Tensor
    assert type(ours.get()) is TensorCPU
    for value in (array, tensor, ours):
        assert isinstance(value, LazySample)
        np.testing.assert_array_equal(value, flipped)
        np.testing.assert_array_equal(value.torch(), flipped)
    np.testing.assert_array_equal(batch.torch(), [flipped, flipped])
    assert (int(number), float(number), bool(number), "abcdefgh"[number]) == (7, 7.0, True, "h")
    assert f"{array}" == str(flipped)
    assert repr(batch) == repr(eager.flip([photo, photo]))


def test_arrays_calculate_as_numpy_and_torch_do(photo):
    with lazy():
        array, tensor = eager.flip(photo), eager.flip(torch.from_numpy(photo))
        flipped = photo[:, ::-1]
        for function in (
            lambda x: x + x, lambda x: x - 3, lambda x: 3 - x, lambda x: x * 2.5, lambda x: 300.0 / (x + 1.0),
            lambda x: x // 7, lambda x: x % 7, lambda x: -x, lambda x: ~x, lambda x: x > 100, lambda x: x == 4,
            lambda x: x != 4, lambda x: x & 3, lambda x: x << 1, lambda x: x[2:5, 1], abs, len,
        ):  # fmt: skip
            expected = function(flipped)
            assert np.asarray(function(array)).dtype == np.asarray(expected).dtype
            np.testing.assert_array_equal(function(array), expected)
            np.testing.assert_array_equal(function(tensor), function(torch.from_numpy(flipped.copy())))
        np.testing.assert_array_equal(np.add(array, 1), flipped + 1)
        np.testing.assert_array_equal(photo + array, photo + flipped)
        np.testing.assert_array_equal(torch.from_numpy(photo) + tensor, photo + flipped)
        np.testing.assert_array_equal(torch.stack([tensor, tensor]), np.stack([flipped, flipped]))
        assert torch.equal(tensor, torch.from_numpy(flipped.copy()))


def test_batches_calculate_as_graph_values_do(photo, counted):
    batch = eager.batch([photo, photo], "HWC")
    wide = photo.astype(np.int32)
    with lazy():
        bright = 2 * eager.flip(batch, horizontal=0) + 40
        assert bright.dtype == types.INT32
        is_above = bright > 300
        half = bright / 2
        assert (is_above.dtype, half.dtype) == (types.BOOL, types.FLOAT)
        assert counted() == {}
    np.testing.assert_array_equal(is_above.numpy()[0], 2 * wide + 40 > 300)
    np.testing.assert_array_equal(half.numpy()[1], (2 * wide + 40).astype(np.float32) / 2)
    # Both ends together; what they share is computed once.
    assert counted() == {"plans_made": 1, "operators_run": 5}
    np.testing.assert_array_equal((half - 1).as_array()[0], (2 * wide + 40) / 2 - 1)  # at once, outside of the block


def test_a_truth_value_of_a_batch_is_refused(photo):
    with lazy():
        flipped = eager.flip([photo])
        with pytest.raises(ConditionError, match=r"batch\.numpy\(\)\.all\(\)") as caught:
            assert flipped == 3
        assert caught.value.line.text == "assert flipped == 3"
        with pytest.raises(ArgumentTypeError, match=r"dalify\.eager"):
            fn.flip(flipped)
        with pytest.raises(ArgumentTypeError, match=r"dalify\.eager"):
            math.sqrt(flipped)


# -- together with what ---------------------------------------------------------------------------------------------


def test_what_nobody_holds_is_pruned(photo, counted):
    with lazy():
        kept = eager.flip([photo])
        eager.gaussian_blur([photo], window_size=3)
        lost = eager.rotate(kept, angle=90)
        assert counted() == {"operators_pruned": 1}
        del lost
        assert counted() == {"operators_pruned": 2}
        lazy.flush()
    assert kept.is_computed
    assert counted() == {"plans_made": 1, "operators_run": 1, "operators_pruned": 2}


def test_flush_computes_what_is_held(photo, counted):
    with lazy():
        first = eager.flip([photo])
        second = eager.rotate(first, angle=90)
        alone = eager.flip(photo)
        lazy.flush()
        assert first.is_computed
        assert second.is_computed
        assert alone.is_computed
        lazy.flush()
    assert counted() == {"plans_made": 1, "operators_run": 3}  # of one sample all three


def test_outputs_that_share_work_are_computed_together(counted):
    with lazy():
        files = [eager.decoders.image(_jpeg(seed)) for seed in range(2)]
        both = [(eager.resize(image, size=9), eager.flip(image)) for image in files]
        del files
    both[0][0].get()
    assert [[value.is_computed for value in pair] for pair in both] == [[True, True], [False, False]]
    assert counted() == {"plans_made": 1, "operators_run": 3}


def _jpeg(seed: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(photos(1, seed)[0]).save(file, "jpeg")
    return file.getvalue()


def test_what_is_held_and_read_is_computed_again_when_asked_for(photo, counted):
    with lazy():
        small = eager.resize([photo], size=(8, 8))
        turned = eager.rotate(small, angle=90)
    turned.get()
    assert not small.is_computed
    np.testing.assert_array_equal(small.numpy()[0], eager.resize(photo, size=(8, 8)))
    assert counted() == {"plans_made": 2, "operators_run": 3, "operators_repeated": 1}


def test_a_random_value_is_the_same_when_it_is_computed_again():
    eager.seed(4)
    with lazy():
        numbers = eager.random.uniform(batch_size=5)
        twice = numbers * 2
    np.testing.assert_array_equal(twice.numpy(), numbers.numpy() * 2)


def test_passes_do_what_they_do_in_a_pipeline():
    """Fused, cropped while decoding, computed once: what `explain` says of a pipeline, it says here."""
    data = [_jpeg(0), _jpeg(1)]
    with lazy():
        images = eager.decoders.image(data)
        cropped = eager.random_resized_crop(images, size=(8, 8))
        del images
    cropped.get()
    assert "push_crop" in lazy.explain()
    assert "decodes only the rows" in lazy.explain()
    with lazy():
        small = eager.resize(eager.batch(photos(2), "HWC"), size=(20, 20))
        fused = eager.crop_mirror_normalize(small, crop=(8, 8))
        del small
    fused.get()
    assert "makes only the part" in lazy.explain()
    with lazy():
        image = eager.flip(photos(2))
        one, other = eager.rotate(image, angle=30), eager.rotate(image, angle=30)
        del image
    assert one.at(0).tobytes() == other.at(0).tobytes()
    assert "is computed once" in lazy.explain()
    one.at(0)[...] = 7
    assert not (other.at(0) == 7).all()


def test_samples_go_with_every_sample_of_a_batch(photo, counted):
    batch = photos(3)
    with lazy():
        bright = eager.brightness(photo, brightness=0.5)
        angle = eager.random.uniform(range=(10, 10.001), seed=1)
        turned = eager.rotate(batch, angle=angle)
        joined = eager.cat(eager.resize(turned, size=(30, 40)), bright, axis=0)
    expected = eager.resize(
        eager.rotate(batch, angle=eager.random.uniform(range=(10, 10.001), seed=1)), size=(30, 40)
    ).as_array()
    below = eager.brightness(photo, brightness=0.5)
    for index in range(3):
        np.testing.assert_array_equal(joined.at(index), np.concatenate([expected[index], below]))
    assert counted() == {"plans_made": 2, "operators_run": 5}  # single samples first


# -- plans ----------------------------------------------------------------------------------------------------------


def _chain(images: list[np.ndarray], factor: float) -> LazyBatch:
    cropped = eager.random_resized_crop(eager.batch(images, "HWC"), size=(16, 16))
    mirror = eager.random.coin_flip(batch_size=len(images))
    return eager.crop_mirror_normalize(cropped, mirror=mirror, mean=[1.0, 2.0, 3.0]) * factor


def test_the_second_iteration_plans_nothing(counted):
    """Neither other data, nor other sizes, nor a batch that is not full, nor another seed is another plan."""
    for step, count in enumerate([4, 4, 4, 1, 3]):
        eager.seed(step)
        with lazy():
            result = _chain(photos(count, step, height=20 + step), factor=step + 0.5)
        lazily = result.numpy()
        eager.seed(step)
        with lazy(num_threads=1):
            np.testing.assert_array_equal(_chain(photos(count, step, height=20 + step), factor=step + 0.5), lazily)
    grown = counted()
    assert grown["plans_made"] == 2  # one for each number of threads
    assert grown["plans_reused"] == 8


def test_seeds_are_no_part_of_a_plan(counted):
    with lazy():
        numbers = [eager.random.uniform(batch_size=2, seed=seed).numpy() for seed in (1, 2, 1)]
    np.testing.assert_array_equal(numbers[0], numbers[2])
    assert (numbers[0] != numbers[1]).any()
    assert counted()["plans_made"] == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda x: eager.rotate(x, angle=31.0),
        lambda x: eager.rotate(x, angle=30),
        lambda x: eager.rotate(x.astype(np.float32), angle=30.0),
        lambda x: eager.rotate(eager.tensor(x, "HWC"), angle=30.0),
        lambda x: eager.rotate(eager.rotate(x, angle=30.0), angle=30.0),
        lambda x: eager.flip(x),
    ],
)
def test_what_is_another_plan(other, photo, counted):
    with lazy():
        eager.rotate(photo, angle=30.0).get()
        other(photo).get()
    assert counted()["plans_made"] == 2


def test_wiring_is_part_of_a_plan(photo):
    dark = photo // 2
    with lazy():
        results = [
            eager.arithmetic(one, other, function="sub").get()
            for one, other in ((photo, dark), (dark, photo), (photo, photo))
        ]
        flipped = eager.flip(photo)
        results.append(eager.arithmetic(flipped, photo, function="sub").get())
        results.append(eager.arithmetic(photo, flipped, function="sub").get())
    for result, (one, other) in zip(
        results,
        [(photo, dark), (dark, photo), (photo, photo), (photo[:, ::-1], photo), (photo, photo[:, ::-1])],
        strict=True,
    ):
        np.testing.assert_array_equal(result, one - other)


# -- equal results --------------------------------------------------------------------------------------------------


def test_data_that_are_changed_afterwards(photo):
    for kind in (np.array, torch.tensor, eager.tensor, lambda array: eager.batch(array[None])):
        mine = photo.copy()
        given = kind(mine) if kind is not eager.tensor else eager.tensor(mine)
        with lazy():
            value = eager.flip(given)
            given.fill_(0) if isinstance(given, torch.Tensor) else np.asarray(given).fill(0)
        np.testing.assert_array_equal(np.asarray(value).reshape(photo.shape), photo[:, ::-1])


def test_without_copies(photo):
    mine = photo.copy()
    with lazy(copy=False):
        value = eager.flip(mine)
    mine[...] = 5
    assert (value.numpy() == 5).all()


def test_results_that_were_changed(photo):
    with lazy():
        first = eager.flip(photo)
        second = eager.flip(first)
        first.get()[...] = 0  # at once, the second call would have read it before
        third = eager.flip(first)
        first.get()[...] = 9
    np.testing.assert_array_equal(second, photo)
    assert not third.numpy().any()


def test_functions_of_users_run_where_they_stand(photo):
    seen: list[int] = []

    def note(array: np.ndarray) -> np.ndarray:
        seen.append(int(eager.reductions.max(array)))  # computed at once, inside as well
        return array

    with lazy():
        for factor in (0.5, 0.25):
            eager.python_function(eager.brightness(photo, brightness=factor), function=note)
        flipped = eager.flip(photo)
    assert seen == [round(int(photo.max()) * 0.5), round(int(photo.max()) * 0.25)]
    assert not flipped.is_computed


def test_layout_of_a_result(photo):
    with lazy():
        turned = eager.transpose(photo, perm=[2, 0, 1])
        shifted = eager.flip(turned, layout="CHW")
    np.testing.assert_array_equal(shifted, eager.flip(photo).transpose(2, 0, 1))


def test_lists_of_lazy_samples_are_batches(photo, encoded):
    with lazy():
        decoded = [eager.decoders.image(encoded) for _ in range(3)]
        assert len(eager.flip(decoded)) == 3
        batch = eager.batch(decoded)
        np.testing.assert_array_equal(batch.as_array(), [photo] * 3)
        assert eager.batch(eager.flip([photo])).shape() == [photo.shape]
        np.testing.assert_array_equal(eager.tensor(decoded[0], "HWC"), photo)


def test_copies_and_pickles_are_data(photo):
    with lazy():
        flipped, batch = eager.flip(photo), eager.flip([photo])
    assert type(copy.deepcopy(flipped)) is np.ndarray
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(flipped)), photo[:, ::-1])
    assert type(copy.copy(batch)) is TensorListCPU


# -- errors ---------------------------------------------------------------------------------------------------------


def test_errors_that_need_no_data_are_raised_by_the_call(photo):
    with lazy():
        floats = eager.cast([photo], dtype=types.FLOAT)
        for mistake, kind in (
            (lambda: eager.flip(floats, upside_down=1), UnknownArgumentError),
            (lambda: eager.decoders.image(floats), DalifyError),
            (lambda: eager.decoders.image([b""], on_error="skip"), ArgumentValueError),
            (lambda: eager.arithmetic(floats, floats, function="bitand"), DTypeError),
            (lambda: floats & floats, DTypeError),
        ):
            with pytest.raises(kind) as caught:
                mistake()
            assert caught.value.line.filename == __file__
        assert not floats.is_computed
    for mistake in (0, -1, True):
        with pytest.raises(ArgumentValueError, match="num_threads"):
            lazy(num_threads=mistake)


def test_other_errors_name_the_line_of_the_call(encoded, photo):
    for _ in range(2):  # the second time, the plan was made for other lines
        with lazy():
            good = eager.decoders.image([encoded, encoded])
            bad = eager.decoders.image([encoded, b"no picture"])  # this call
            turned = eager.rotate(bad, angle=90)
            alone = eager.decoders.image(b"no picture")  # that call
            del bad
        with pytest.raises(DecodeError, match="sample 1 of the batch") as caught:
            turned.get()
        assert caught.value.line.text.endswith("# this call")
        with pytest.raises(DecodeError) as caught:
            alone.get()
        assert caught.value.line.text.endswith("# that call")
        assert caught.value.sample is None
        np.testing.assert_array_equal(good.numpy()[0], photo)
        with pytest.raises(DecodeError):
            turned.get()


def test_an_error_costs_one_value(encoded, photo):
    with lazy():
        data = eager.decoders.image([encoded])
        shifted = eager.arithmetic(data, np.zeros(7, np.uint8), function="add")  # shapes are known late
        flipped = eager.flip(data)
        unrelated = eager.flip(photo)
        del data
    with pytest.raises(ShapeError, match="cannot be combined"):
        lazy.flush()
    assert flipped.is_computed
    assert unrelated.is_computed
    np.testing.assert_array_equal(flipped.numpy()[0], photo[:, ::-1])
    with pytest.raises(ShapeError, match="cannot be combined"):
        shifted.get()


def test_a_list_that_was_meant_as_one_value_for_each_sample(photo):
    with lazy():
        turned = eager.rotate([photo, photo], angle=[10.0, 20.0])
    with pytest.raises(DalifyError, match=r"angle=eager\.batch"):
        turned.get()


# -- where ----------------------------------------------------------------------------------------------------------


def test_blocks_within_blocks_and_after_errors(photo):
    def program() -> None:
        with lazy():
            with lazy():
                assert isinstance(eager.flip(photo), LazySample)
            assert isinstance(eager.flip(photo), LazySample)
            raise KeyError

    with pytest.raises(KeyError):
        program()
    assert isinstance(eager.flip(photo), np.ndarray)


def test_threads(photo):
    """A block is of its thread; values go anywhere."""
    with lazy():
        here = eager.flip(photo)
        results: list[object] = []

        def work() -> None:
            results.append(eager.flip(photo))
            with lazy():
                results.append(eager.rotate(here, angle=90))
            results[1].get()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert isinstance(results[0], np.ndarray)
    np.testing.assert_array_equal(results[1], np.rot90(photo[:, ::-1]))

    def many(seed: int) -> None:
        for step in range(20):
            image = photos(1, seed * 100 + step)[0]
            with lazy(num_threads=2):
                turned = eager.flip(eager.rotate(image, angle=90))
            np.testing.assert_array_equal(turned, np.rot90(image)[:, ::-1])
            done.append(seed)

    done: list[int] = []
    threads = [threading.Thread(target=many, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == sorted(list(range(4)) * 20)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_fork(photo):
    with lazy(num_threads=2):
        eager.flip([photo] * 8).get()  # threads run
        waiting = eager.flip([photo] * 8)
    child = os.fork()
    if not child:
        try:
            with lazy(num_threads=2):
                mine = eager.flip([photo] * 8)
            is_right = all((value.numpy() == photo[:, ::-1]).all() for value in (waiting, mine))
            os._exit(0 if is_right else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(waiting.numpy()[0], photo[:, ::-1])


def test_device(photo, device):
    batch = eager.batch([photo, photo], "HWC")
    with lazy():
        flipped = eager.flip(batch, device=device)
        turned = eager.rotate(flipped, angle=90)
        assert (flipped.device, turned.device) == (device, device)
    np.testing.assert_array_equal(turned.as_cpu().as_array()[0], np.rot90(photo[:, ::-1]))
    np.testing.assert_array_equal(flipped.numpy()[1], photo[:, ::-1])
    again = eager.flip(turned, device=device)
    np.testing.assert_array_equal(again.as_cpu().as_array()[0], np.rot90(photo[:, ::-1])[:, ::-1])


def test_an_operator_without_gpu_kernel(encoded, device):
    """It runs on the CPU between copies; the report and the counts say so."""
    before = lazy.statistics().fallbacks
    for _ in range(2):
        with lazy():
            data = eager.copy([encoded, encoded], device=device)
            shapes = eager.cast(eager.peek_image_shape(data, device=device), dtype=types.INT16)
        assert shapes.device == device
        np.testing.assert_array_equal(shapes.numpy(), [[30, 40, 3]] * 2)
    now = lazy.statistics().fallbacks
    found = {key: count - before.get(key, 0) for key, count in now.items() if count != before.get(key, 0)}
    if device == "cpu":
        assert found == {}
    else:
        ((fallback, count),) = found.items()
        assert count == 2
        assert fallback.line.startswith("test_lazy.py:")
        assert fallback == Fallback("fn.peek_image_shape", "it has no GPU kernel", fallback.line)
        assert "has no GPU kernel and runs on the CPU" in lazy.explain()


def test_one_line_for_one_image(encoded, photo, tmp_path: Path):
    """A path, bytes, a picture of Pillow, an array, a tensor: with and without lazy mode."""
    (tmp_path / "photo.png").write_bytes(encoded)

    def turned() -> list[object]:
        return [
            eager.rotate(eager.decoders.image(eager.io.file.read(tmp_path / "photo.png")), angle=90),
            eager.rotate(eager.decoders.image(encoded), angle=90),
            eager.rotate(Image.open(tmp_path / "photo.png"), angle=90),
            eager.rotate(photo, angle=90),
            eager.rotate(torch.from_numpy(photo), angle=90),
        ]

    kinds = [np.ndarray] * 4 + [torch.Tensor]
    at_once = turned()
    with lazy():
        lazily = turned()
        assert all(isinstance(value, LazySample) for value in lazily)
    assert [type(value) for value in at_once] == kinds
    assert [type(value.get()) for value in lazily] == kinds
    for value in (*at_once, *lazily):
        np.testing.assert_array_equal(value, np.rot90(photo))


def test_public_name():
    assert dalify.lazy is lazy
    assert "lazy" in dalify.__all__
