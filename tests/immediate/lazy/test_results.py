"""Lazy mode: results and errors are those of eager mode, for all uses of a value between call and result."""

from __future__ import annotations

import copy
import io
import os
import pickle
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import dalify
from dalify import eager, lazy, types
from dalify.base.errors import (
    ArgumentValueError,
    DalifyError,
    DecodeError,
    DTypeError,
    ShapeError,
    UnknownArgumentError,
)
from dalify.data import TensorCPU, TensorListCPU
from dalify.deferred import Fallback
from dalify.immediate.lazy.statistics import COUNTS
from dalify.immediate.lazy.values import LazySample
from tests.helpers.platforms import needs_posix

# -- equal results -----------------------------------------------------------------------------------------------------


def test_values_equal_those_of_a_call_at_once(photo):
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
    assert array.data == flipped.data
    assert tensor.data.equal(torch.from_numpy(flipped.copy()))
    own = {name for name in dir(LazySample) if not name.startswith("_")}
    hidden = own & {*dir(np.ndarray), *dir(torch.Tensor)}
    assert hidden == {"dtype", "ndim", "numpy"}


def test_arithmetic_of_arrays_equals_numpy_and_torch(photo):
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


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_arrays_are_changed_in_place(kind, photo):
    with lazy():
        given = eager.flip(kind(photo))
        turned = eager.rotate(given, angle=90)  # before the change
        given[2:4] = 7
        kept = given
        given *= 2
        given -= 1
        given |= 8
        after = eager.flip(given)
    expected = photo[:, ::-1].copy()
    np.testing.assert_array_equal(turned, np.rot90(expected))
    expected[2:4] = 7
    expected = expected * 2 - 1 | 8
    np.testing.assert_array_equal(given, expected)
    np.testing.assert_array_equal(kept, expected)
    np.testing.assert_array_equal(after, expected[:, ::-1])
    floats = eager.flip(kind(photo))
    with lazy():
        refused = eager.flip(kind(photo))
    for value in (floats, refused):
        with pytest.raises((TypeError, RuntimeError)):
            value += 1.5


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
        first.get()[...] = 0  # in eager mode, the second call would have read it before
        third = eager.flip(first)
        first.get()[...] = 9
    np.testing.assert_array_equal(second, photo)
    assert not third.numpy().any()
    with lazy():
        factor = eager.reductions.max(photo)
        lazy.flush()
        fourth = eager.cat(eager.batch([photo[:1, 0, 0]] * 2), eager.expand_dims(factor, axes=0), axis=0)
        factor.get()[...] = 0
    assert (fourth.numpy()[:, 1] == photo.max()).all()


def test_functions_of_users_run_in_their_order(photo):
    seen: list[int] = []

    def note(array: np.ndarray) -> np.ndarray:
        seen.append(int(eager.reductions.max(array)))  # computed immediately, inside as well
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


def test_types_that_only_the_data_determines(photo):
    file = io.BytesIO()
    np.save(file, photo)
    with lazy():
        stored = eager.decoders.numpy([file.getvalue()] * 2)
        flipped = eager.flip(stored)
        assert stored.is_computed
        assert not flipped.is_computed
    np.testing.assert_array_equal(flipped.numpy()[1], photo[:, ::-1])


def test_constants_that_were_computed(photo):
    """An argument that must be the same for the whole batch needs the value in the call."""
    with lazy():
        order = eager.cast(np.array([2, 0, 1]), dtype=types.INT32)
        turned = eager.transpose(photo, perm=order)
    np.testing.assert_array_equal(turned, photo.transpose(2, 0, 1))


def test_graphs_of_many_stages(photo):
    with lazy(num_threads=1):
        batch = eager.batch([photo[:4], photo[4:8]], "HWC")
        for _ in range(301):
            batch = eager.flip(eager.permute_batch(batch, indices=[1, 0]))
        assert not batch.is_computed
    np.testing.assert_array_equal(batch.numpy()[1], photo[:4, ::-1])


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


# -- errors ------------------------------------------------------------------------------------------------------------


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


def test_an_error_fails_one_value(encoded, photo):
    with lazy():
        data = eager.decoders.image([encoded])
        shifted = eager.arithmetic(data, np.zeros(7, np.uint8), function="add")  # shapes are known late
        flipped = eager.flip(data)
        unrelated = eager.flip(photo)
        del data
    with pytest.raises(ShapeError, match="cannot be broadcast"):
        lazy.flush()
    assert flipped.is_computed
    assert unrelated.is_computed
    np.testing.assert_array_equal(flipped.numpy()[0], photo[:, ::-1])
    with pytest.raises(ShapeError, match="cannot be broadcast"):
        shifted.get()


def test_a_list_instead_of_one_value_per_sample(photo):
    with lazy(), pytest.raises(DalifyError, match=r"angle=eager\.batch"):
        eager.rotate([photo, photo], angle=[10.0, 20.0])


# -- where -------------------------------------------------------------------------------------------------------------


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
            image = np.random.default_rng(seed * 100 + step).integers(0, 256, (30, 40, 3), np.uint8)
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


@needs_posix
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


@needs_posix
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_fork_while_another_thread_counts(photo):
    holds, may_end = threading.Event(), threading.Event()

    def count() -> None:
        with COUNTS._lock:
            holds.set()
            may_end.wait()

    thread = threading.Thread(target=count)
    thread.start()
    holds.wait()
    child = os.fork()
    if not child:
        signal.alarm(20)  # ends a child that waits for the thread, which it does not have
        with lazy(num_threads=1):
            os._exit(0 if (eager.flip(photo).numpy() == photo[:, ::-1]).all() else 1)
    may_end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


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
    for on_cpu in (True, False):  # a plan for the one is none for the other
        with lazy():
            sample = eager.flip(photo, device="cpu" if on_cpu else device)
            joined = eager.cat(eager.flip(batch, device=device), sample, axis=0, device=device)
        np.testing.assert_array_equal(joined.numpy()[0], np.concatenate([photo[:, ::-1]] * 2))


def test_an_operator_without_gpu_kernel(encoded, device):
    """It runs on the CPU between copies, which the report and the counts show."""
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
        assert fallback.line.startswith("test_results.py:")
        assert fallback == Fallback("fn.peek_image_shape", "it has no GPU kernel", fallback.line)
        assert "has no GPU kernel and runs on the CPU" in lazy.explain()


def test_one_line_for_one_image(encoded, photo, tmp_path: Path):
    """A path, bytes, a image of Pillow, an array, a tensor: with and without lazy mode."""
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
