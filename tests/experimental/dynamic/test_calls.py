"""When calls are computed, where their errors point, threads, generators, devices."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import dalify.experimental.dynamic as ndd
from dalify import eager, fn, pipeline_def, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BatchSizeError,
    DecodeError,
    DeviceError,
    DTypeError,
    IndexingError,
    LayoutError,
    ShapeError,
    UnknownArgumentError,
    UnknownOperatorError,
)
from tests.helpers.platforms import needs_posix


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (30, 40, 3), np.uint8)


# -- when ------------------------------------------------------------------------------------------------------------


def test_a_deferred_call_is_computed_when_its_result_is_read(image):
    with ndd.EvalMode.deferred:
        source = ndd.tensor(image, layout="HWC")
        flipped = ndd.flip(source)
        rows = ndd.flip(flipped, horizontal=0, vertical=1)
    assert not flipped.is_computed
    assert not rows.is_computed
    np.testing.assert_array_equal(rows, image[::-1, ::-1])
    assert flipped.is_computed


def test_long_deferred_chains_need_no_recursion():
    count = sys.getrecursionlimit()
    with ndd.EvalMode.deferred:
        total = ndd.tensor(0)
        for _ in range(count):
            total = total + 1
        doubled = ndd.stack(total, total)
    assert doubled.torch().tolist() == [count, count]


def test_threads_that_read_one_result(image):
    source = ndd.tensor(image)
    for _ in range(20):
        with ndd.EvalMode.deferred:
            flipped = ndd.flip(source)
        seen = []
        threads = [threading.Thread(target=lambda: seen.append(np.asarray(flipped))) for _ in range(4)]  # noqa: B023
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 4
        assert all(array.base is seen[0].base for array in seen)  # computed once


def test_memory_of_the_user_is_read_by_the_call(image):
    """Later changes of an array have no effect on results; only calls on copies are deferred."""
    mine = image.copy()
    with ndd.EvalMode.deferred:
        results = [ndd.flip(given) for given in (mine, ndd.as_tensor(mine), ndd.as_batch(mine[None]), [mine])]
        waiting = ndd.flip(ndd.tensor(mine))
    assert all(result.is_computed for result in results[:3])
    assert not waiting.is_computed
    mine[...] = 0
    for result in (results[0], results[1], results[2].select(0), waiting):
        np.testing.assert_array_equal(result, image[:, ::-1])


def test_lists_may_change_after_the_call():
    shape = [2, 3]
    with ndd.EvalMode.deferred:
        ones = ndd.ones(shape=shape)
    shape[0] = 7
    assert not ones.is_computed
    assert ones.shape == (2, 3)
    rows = [[1, 2], [3, 4]]
    with ndd.EvalMode.deferred:
        floats = ndd.cast(rows, dtype=ndd.float32)
    rows[0][0] = 7
    assert floats.torch().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_errors_of_deferred_calls_name_the_line_of_the_call(image):
    source = ndd.tensor(image)
    with ndd.EvalMode.deferred:
        good = ndd.flip(source)
        bad = ndd.crop(source, crop=(500, 2))  # this line
        worse = ndd.flip(bad)
    with pytest.raises(IndexingError, match=r"(?s)fn.crop.*test_calls.py.*ndd.crop\(source, .*  # this line"):
        worse.evaluate()
    with pytest.raises(IndexingError, match="this line"):
        bad.evaluate()
    assert good.shape == image.shape


def test_misspelt_arguments_are_refused_by_the_call(image):
    for mode in (ndd.EvalMode.deferred, ndd.EvalMode.eager):
        with mode, pytest.raises(UnknownArgumentError, match=r"(?s)'sice'.*'size'.*sice=8"):
            ndd.resize(ndd.tensor(image), sice=8)
    with pytest.raises(UnknownOperatorError, match="resize"):
        _ = ndd.rezise
    with pytest.raises(UnknownOperatorError, match="ExternalSource"):
        _ = ndd.external_source


def test_errors_of_eager_calls_name_their_line(photo_list):
    pair = ndd.batch([photo_list[0][0].read_bytes(), b"no image"])
    with pytest.raises(DecodeError, match=r"(?s)sample 1.*ndd.decoders.image\(pair\)"):
        ndd.decoders.image(pair)


def test_random_numbers_depend_on_the_call_not_on_the_time_of_reading():
    with ndd.EvalMode.deferred:
        rng = ndd.random.RNG(5)
        first, second = ndd.random.uniform(rng=rng), ndd.random.uniform(rng=rng)
    late, early = second.item(), first.item()
    rng = ndd.random.RNG(5)
    assert [early, late] == [ndd.random.uniform(rng=rng).item(), ndd.random.uniform(rng=rng).item()]


def test_a_context_computes_deferred_calls(image):
    source = ndd.tensor(image)
    with ndd.EvalMode.deferred:
        with ndd.EvalContext() as context:
            kept = ndd.flip(source)
            ndd.crop(source, crop=(500, 2))  # not referenced: never computed
            assert not kept.is_computed
        assert not context.pending
        other = ndd.flip(source)
        ndd.EvalContext.current().evaluate_all()
    assert kept.evaluate() is kept
    assert other.shape == image.shape


def test_modes_belong_to_their_thread():
    seen = []
    with ndd.EvalMode.deferred:
        thread = threading.Thread(target=lambda: seen.append(ndd.EvalMode.current()))
        thread.start()
        thread.join()
        assert ndd.EvalMode.current() is ndd.EvalMode.deferred
    assert seen == [ndd.EvalMode.default] == [ndd.EvalMode.eager]
    assert ndd.EvalMode.current() is ndd.EvalMode.eager


# -- what ------------------------------------------------------------------------------------------------------------


def test_inputs_of_all_kinds(image):
    expected = image[:, ::-1]
    for given in (image, torch.from_numpy(image), eager.tensor(image, "HWC"), image.tolist(), ndd.as_tensor(image)):
        result = ndd.flip(given)
        assert isinstance(result, ndd.Tensor)
        np.testing.assert_array_equal(np.asarray(result), expected)
    for given in (eager.batch([image, image]), ndd.batch([image, image])):
        result = ndd.flip(given)
        assert isinstance(result, ndd.Batch)
        np.testing.assert_array_equal(result.torch().numpy(), [expected, expected])
    np.testing.assert_array_equal(eager.flip(ndd.tensor(image)), expected)  # and the other way round


def test_arguments_of_all_kinds(image):
    turned = np.rot90(image)
    for angle in (90, 90.0, np.float32(90), ndd.tensor(90.0), torch.tensor(90.0), types.Constant(90.0)):
        np.testing.assert_array_equal(ndd.rotate(image, angle=angle), turned)
    results = ndd.rotate(image, angle=ndd.batch([0.0, 90.0]), fill_value=None)
    np.testing.assert_array_equal(results.select(1), turned)
    assert ndd.resize(image, size=np.array([4, 5])).shape == (4, 5, 3)
    assert ndd.resize(ndd.batch([image] * 2), size=ndd.batch([[4, 5], [6, 7]])).shape == [(4, 5, 3), (6, 7, 3)]
    assert [str(ndd.cast(1, dtype=dtype).dtype) for dtype in (ndd.int8, types.INT8, np.int8)] == ["i8"] * 3


def test_batches_of_different_sizes_are_refused(image):
    with pytest.raises(BatchSizeError):
        ndd.cat(ndd.batch([[1], [2]]), ndd.batch([[1], [2], [3]]))
    with pytest.raises(BatchSizeError, match="angle"):
        ndd.rotate(ndd.batch([image] * 2), angle=ndd.batch([1.0, 2.0, 3.0]))
    assert ndd.flip(ndd.batch([image] * 2), batch_size=5).batch_size == 2  # ignored for batches


def test_threads_change_no_result(image):
    """Each takes a part of the samples once it is known that they take long."""
    many = ndd.batch(np.random.default_rng(1).integers(0, 256, (9, 300, 200, 3), np.uint8), layout="HWC")
    odd = ndd.batch([np.zeros((50 + 30 * index, 200, 3), np.uint8) + index for index in range(7)], layout="HWC")
    found = []
    for count in (1, 3):
        with ndd.EvalContext(num_threads=count):
            for _ in range(2):  # the second time the duration is known
                rng = ndd.random.RNG(4)
                blurred = ndd.gaussian_blur(many, sigma=2.0)
                noisy = ndd.noise.gaussian(many, stddev=9.0, rng=rng)
                small = ndd.resize(odd, resize_shorter=40)
        found.append([blurred, noisy, small])
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


def test_errors_of_threads_name_the_sample(image):
    good = np.random.default_rng(1).integers(0, 256, (400, 300, 3), np.uint8)
    batch = ndd.batch([good] * 7 + [good[:4]], layout="HWC")
    with ndd.EvalContext(num_threads=4):
        ndd.crop_mirror_normalize(ndd.batch([good] * 8, layout="HWC"), crop=(300, 300))
        with pytest.raises(IndexingError, match="sample 7"):
            ndd.crop_mirror_normalize(batch, crop=(300, 300))


# -- random numbers ----------------------------------------------------------------------------------------------------


def test_numbers_of_a_new_generator_equal_those_of_a_pipeline():
    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def draws():
        return fn.random.normal(seed=11, shape=[4])

    (expected,) = draws().run()
    drawn = ndd.random.normal(shape=[4], batch_size=3, rng=ndd.random.RNG(11))
    np.testing.assert_array_equal(drawn.torch().numpy(), expected.as_array())


def test_seed_of_the_thread():
    def draw():
        return ndd.random.uniform(shape=[5]).torch().tolist()

    ndd.random.set_seed(1)
    first, second = draw(), draw()
    ndd.random.set_seed(1)
    assert [draw(), draw()] == [first, second]
    assert first != second
    others = []
    thread = threading.Thread(target=lambda: others.append((ndd.random.get_default_rng(), draw())))
    thread.start()
    thread.join()
    assert others[0][0] is not ndd.random.get_default_rng()
    assert others[0][1] not in (first, second)


def test_wrong_generators():
    with pytest.raises(ArgumentTypeError, match="rng"):
        ndd.random.uniform(rng=3)
    with pytest.raises(UnknownArgumentError, match="RNG"):
        ndd.random.uniform(seed=3)
    with pytest.raises(UnknownArgumentError, match="rng"):
        ndd.flip(np.zeros((2, 2, 3)), rng=ndd.random.RNG(1))
    with pytest.raises(ArgumentValueError, match="either"):
        ndd.random.RNG(1, state=ndd.random.RNG(1).state)
    with pytest.raises(ArgumentTypeError, match="integer"):
        ndd.random.RNG(1.5)
    with pytest.raises(ValueError, match="not a state"):
        ndd.random.RNG(state="Philox_1")
    with pytest.raises(ArgumentValueError, match="go back"):
        ndd.random.RNG(1).advance(-1)


@needs_posix
def test_a_child_process_draws_other_numbers():
    program = """
import os, sys, warnings
import dalify.experimental.dynamic as ndd
ndd.random.set_seed(3)
ndd.random.get_default_rng()()
warnings.simplefilter("ignore")
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, str(ndd.random.get_default_rng()()).encode())
    os._exit(0)
os.wait()
print(os.read(read, 99).decode(), ndd.random.get_default_rng()())
"""
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in "ab"]
    child, parent = runs[0].stdout.split()
    assert child != parent
    assert runs[0].stdout == runs[1].stdout  # runs can be repeated


# -- devices -----------------------------------------------------------------------------------------------------------


def test_devices(image, gpu):
    tensor = ndd.tensor(image, layout="HWC")
    there = tensor.gpu()
    assert there.device == "gpu:0"
    assert there.gpu() is there
    assert str(ndd.flip(there).device) == "gpu:0"
    np.testing.assert_array_equal(ndd.flip(there).cpu(), image[:, ::-1])
    moved = ndd.resize(ndd.batch([image, image]), size=(4, 5), device="gpu")
    assert moved.device.device_type == "gpu"
    assert moved.cpu().shape == [(4, 5, 3)] * 2
    assert isinstance(there.torch(), torch.Tensor)
    with pytest.raises(DeviceError, match=r"cpu\(\)"):
        np.asarray(there)
    with ndd.EvalMode.sync_full:
        assert (there + 1).cpu().shape == image.shape
    with pytest.raises(DeviceError):
        ndd.flip(there, device="cpu")


def test_decoders_for_the_gpu_take_bytes_of_the_host(photo_list, gpu, monkeypatch):
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "host")  # others round differently
    decoded = ndd.imread(photo_list[0][0], device="gpu")
    assert decoded.device.device_type == "gpu"
    np.testing.assert_array_equal(decoded.cpu(), ndd.imread(photo_list[0][0]))


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
def test_without_accelerator():
    with pytest.raises(DeviceError, match="DALIFY_DEVICE"):
        ndd.tensor([1]).gpu()
    with pytest.raises(DeviceError, match="CUDA"):
        ndd.stream()
    assert ndd.stream(stream=None) is None
    ndd.set_default_stream(None)
    ndd.set_current_stream(None)


def test_wrong_devices_and_types():
    for name in ("foo", "cpu:0", "gpu:x"):
        with pytest.raises(ArgumentValueError):
            ndd.device(name)
    with pytest.raises(ArgumentValueError, match="number"):
        ndd.device("gpu:0", 1)
    for make in (ndd.device, ndd.Device):
        with pytest.raises(ArgumentTypeError, match="'cpu'"):
            make(3)
    with pytest.raises(ArgumentValueError, match="float32"):
        ndd.dtype("flot32")
    with pytest.raises(ArgumentTypeError):
        ndd.dtype(3)
    with pytest.raises(DTypeError, match="float16"):
        ndd.cast([1], dtype=ndd.bfloat16)
    for wrong in ({"num_threads": 0}, {"num_threads": 2, "thread_pool": ndd.ThreadPool(2)}):
        with pytest.raises(ArgumentValueError):
            ndd.EvalContext(**wrong)
    for number in (0, True, "3"):
        with pytest.raises(ArgumentValueError, match="must be in \\[1, "):
            ndd.set_num_threads(number)
        with pytest.raises(ArgumentValueError, match="positive integer"):
            ndd.ThreadPool(number)
    with pytest.raises(BatchSizeError, match="batch is empty"):
        ndd.batch([], dtype=ndd.uint8) + 1
    with pytest.raises(LayoutError) as caught:
        ndd.tensor([1, 2], layout="AB")
    assert caught.value.line.text == 'ndd.tensor([1, 2], layout="AB")'
    with pytest.raises(ShapeError, match=r"ndd\.batch\(\[") as caught:
        ndd.tensor([[1], [1, 2]])
    assert caught.value.line.text == "ndd.tensor([[1], [1, 2]])"
    with pytest.raises(ArgumentTypeError, match="NoneType cannot be used as data") as caught:
        ndd.tensor(None)
    assert caught.value.line.text == "ndd.tensor(None)"
    with pytest.raises(ArgumentTypeError, match="rng must be a generator; got 0"):
        ndd.random.uniform(rng=0)
    with pytest.raises(ArgumentValueError, match="must not be negative"):
        ndd.Batch.broadcast(1, -1)
    with pytest.raises(ArgumentTypeError, match="selected by a number, a slice or a list"):
        ndd.batch([1, 2, 3]).select(np.array([0, 2]))
    with pytest.raises(ShapeError):
        ndd.math.sqrt([[1], [1, 2]])


@pytest.mark.parametrize("text", ["many", "0", "-1"])
def test_a_wrong_number_of_threads_in_the_environment_is_reported(monkeypatch, text):
    monkeypatch.setenv("DALI_NUM_THREADS", text)
    with pytest.raises(ArgumentValueError, match="DALI_NUM_THREADS must be a positive integer"):
        ndd.get_num_threads()
