"""Lazy mode: when and how often values are computed, which are computed together, and how many plans are made."""

from __future__ import annotations

from weakref import ref

import numpy as np
import pytest

from dalify import eager, fn, lazy, math, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConditionError,
)
from dalify.immediate.lazy.values import LazyBatch
from tests.helpers.photos import encode_image


def photos(count: int, seed: int = 0, height: int = 30) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 256, (height + index, 40, 3), np.uint8) for index in range(count)]


# -- when --------------------------------------------------------------------------------------------------------------


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


def test_arithmetic_of_batches_equals_that_of_graph_values(photo, counted):
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
    np.testing.assert_array_equal((half - 1).as_array()[0], (2 * wide + 40) / 2 - 1)  # computed outside of the block


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


@pytest.mark.parametrize("number", [0, True, 2.5, "2"])
def test_threads_are_a_positive_number(number):
    with pytest.raises(ArgumentValueError, match="num_threads must be a positive integer") as caught:
        lazy(num_threads=number)
    assert caught.value.line.text == "lazy(num_threads=number)"


# -- together with what ------------------------------------------------------------------------------------------------


def test_unreferenced_nodes_are_pruned(photo, counted):
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
    return encode_image(photos(1, seed)[0], "jpeg")


def test_what_is_held_and_read_is_computed_again_when_asked_for(photo, counted):
    with lazy():
        small = eager.resize([photo], size=(8, 8))
        turned = eager.rotate(small, angle=90)
    turned.get()
    assert not small.is_computed
    np.testing.assert_array_equal(small.numpy()[0], eager.resize(photo, size=(8, 8)))
    assert counted() == {"plans_made": 2, "operators_run": 3, "operators_repeated": 1}


def test_inputs_are_freed_with_the_last_result(photo):
    """With the last result that is referenced; unreferenced results are not waited for."""
    mine = photo.copy()
    memory = ref(mine)
    with lazy(copy=False):
        resized, shape = eager.resize(mine, size=(8, 8), save_attrs=True)
    del mine
    assert memory() is not None
    del shape
    resized.get()
    assert memory() is None

    mine = photo.copy()
    memory = ref(mine)
    with lazy(copy=False):
        resized, shape = eager.resize(mine, size=(8, 8), save_attrs=True)
        wide = eager.cast(shape, dtype=types.INT64)
        last = eager.arithmetic(wide, 1, function="add")
    del mine, shape
    resized.get()  # together with the other end
    assert last.is_computed
    assert not wide.is_computed
    assert memory() is not None  # for the one in between
    np.testing.assert_array_equal(wide, photo.shape[:2])
    assert memory() is None


def test_a_random_value_is_the_same_when_it_is_computed_again():
    eager.seed(4)
    with lazy():
        numbers = eager.random.uniform(batch_size=5)
        twice = numbers * 2
    np.testing.assert_array_equal(twice.numpy(), numbers.numpy() * 2)


def test_passes_run_as_in_a_pipeline():
    """Fused, cropped while decoding, computed once: `explain` reports the same as for a pipeline."""
    data = [_jpeg(0), _jpeg(1)]
    with lazy():
        images = eager.decoders.image(data)
        cropped = eager.random_resized_crop(images, size=(8, 8))
        del images
    cropped.get()
    assert "push_crop" in lazy.explain()
    assert "decodes only what" in lazy.explain()
    with lazy():
        small = eager.resize(eager.batch(photos(2), "HWC"), size=(20, 20))
        fused = eager.crop_mirror_normalize(small, crop=(8, 8))
        del small
    fused.get()
    assert "computes only the window" in lazy.explain()
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


# -- plans -------------------------------------------------------------------------------------------------------------


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


def test_seeds_are_not_part_of_a_plan(counted):
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
def test_operators_and_inputs_that_need_another_plan(other, photo, counted):
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
