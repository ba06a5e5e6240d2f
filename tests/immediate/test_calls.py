"""Calls that compute immediately: samples, batches, arguments, errors, threads, forks."""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from PIL import Image

import dalify
from dalify import eager, fn, pipeline_def, types
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BatchSizeError,
    DalifyError,
    DecodeError,
    DTypeError,
    LayoutError,
    ShapeError,
    UnknownArgumentError,
    UnknownOperatorError,
)
from dalify.data import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from dalify.immediate import calls
from tests.helpers.platforms import needs_posix

# -- samples and batches --------------------------------------------------------------------------------------------


def test_one_image_in_one_line(encoded, photo, tmp_path):
    (tmp_path / "photo.png").write_bytes(encoded)
    turned = eager.rotate(eager.decoders.image(eager.io.file.read(str(tmp_path / "photo.png"))), angle=90)
    np.testing.assert_array_equal(turned, np.rot90(photo))


def test_results_are_of_the_kind_that_was_given(photo):
    flipped = photo[:, ::-1]
    assert type(eager.flip(photo)) is np.ndarray
    np.testing.assert_array_equal(eager.flip(photo), flipped)
    assert isinstance(eager.flip(torch.from_numpy(photo)), torch.Tensor)
    np.testing.assert_array_equal(eager.flip(torch.from_numpy(photo)), flipped)
    tensor = eager.flip(eager.tensor(photo, "HWC"))
    assert isinstance(tensor, TensorCPU)
    assert tensor.layout() == "HWC"
    np.testing.assert_array_equal(tensor, flipped)
    for many in ([photo, photo], (photo, photo), eager.batch([photo, photo])):
        batch = eager.flip(many)
        assert isinstance(batch, TensorListCPU)
        np.testing.assert_array_equal(batch.as_array(), [flipped, flipped])


def test_array_of_many_dimensions_is_one_sample(photo):
    """An array is never taken for a batch; a batch is said to be one."""
    video = np.stack([photo] * 5)
    assert eager.flip(video, layout="FHWC").shape == video.shape
    assert len(eager.flip(eager.batch(video))) == 5
    assert eager.reductions.sum(video).shape == ()


def test_list_of_numbers_is_one_array():
    assert eager.cast([1, 2, 3], dtype=types.FLOAT).tolist() == [1.0, 2.0, 3.0]
    result = eager.reductions.max([[1.5, 2.5], [0.5, 0.25]])
    assert result == 2.5
    assert result.dtype == np.float32


def test_sample_goes_with_every_sample_of_a_batch(photo):
    batch = eager.cat([photo, photo[:, ::-1]], photo, axis=0)
    assert batch.shape() == [(60, 40, 3)] * 2
    np.testing.assert_array_equal(batch.at(1)[30:], photo)


def test_batch_size_makes_a_batch_of_one_sample(photo):
    crops = eager.random_resized_crop(photo, size=8, batch_size=4, seed=1)
    assert crops.shape() == [(8, 8, 3)] * 4
    assert len({crops.at(index).tobytes() for index in range(4)}) == 4
    assert len(eager.random.coin_flip(batch_size=3)) == 3


def test_batches_of_different_sizes_are_refused(photo):
    with pytest.raises(BatchSizeError, match="input 0: 2, input 1: 3"):
        eager.cat([photo] * 2, [photo] * 3)
    with pytest.raises(BatchSizeError, match="angle: 3"):
        eager.rotate([photo] * 2, angle=eager.batch([1.0, 2.0, 3.0]))
    with pytest.raises(BatchSizeError):
        eager.flip([photo] * 2, batch_size=3)
    with pytest.raises(ArgumentValueError, match="batch_size"):
        eager.flip(photo, batch_size=0)
    with pytest.raises(BatchSizeError, match="batch is empty"):
        eager.batch([])


def test_results_have_their_own_memory(photo):
    """Also those of operators that return views, and of two calls."""
    for call in (eager.reshape, eager.copy):
        given = photo.copy()
        result = call(given, shape=[40, 30, 3]) if call is eager.reshape else call(given)
        assert not np.shares_memory(result, given)
        kept = result.copy()
        given[...] = 0
        other = eager.flip(photo)
        assert not np.shares_memory(result, other)
        np.testing.assert_array_equal(result, kept)


def test_foreign_arrays(photo, encoded):
    """Pillow's images and other memory that must not be written, strides, big-endian numbers, numbers, buffers."""
    np.testing.assert_array_equal(eager.flip(Image.fromarray(photo)), photo[:, ::-1])
    assert len(eager.flip([Image.fromarray(photo)] * 2)) == 2
    frozen = photo.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(eager.flip(frozen), photo[:, ::-1])
    np.testing.assert_array_equal(eager.flip(photo[::2, ::-1]), photo[::2])
    np.testing.assert_array_equal(eager.cast(np.arange(3, dtype=">i4"), dtype=types.INT64), [0, 1, 2])
    assert eager.cast(3.7, dtype=types.INT32) == 4
    assert eager.cast(types.Constant(3, dtype=types.UINT16), dtype=types.FLOAT) == 3.0
    np.testing.assert_array_equal(eager.rotate(photo, angle=types.Constant(90.0)), np.rot90(photo))
    for buffer in (bytearray(encoded), memoryview(encoded), np.frombuffer(encoded, np.uint8)):
        np.testing.assert_array_equal(eager.decoders.image(buffer), photo)


def test_decoding_a_batch(encoded, photo):
    images = eager.decoders.image([encoded, encoded])
    assert images.layout() == "HWC"
    np.testing.assert_array_equal(images.at(1), photo)


# -- layouts --------------------------------------------------------------------------------------------------------


def test_layouts(photo):
    planes = np.ascontiguousarray(photo.transpose(2, 0, 1))
    expected = eager.resize(photo, size=[8, 9]).transpose(2, 0, 1)
    np.testing.assert_array_equal(eager.resize(planes, size=[8, 9], layout="CHW"), expected)
    np.testing.assert_array_equal(eager.resize(eager.tensor(planes, "CHW"), size=[8, 9]), expected)
    batch = eager.resize(eager.batch([planes, planes], "CHW"), size=[8, 9])
    assert batch.layout() == "CHW"
    np.testing.assert_array_equal(batch.at(0), expected)
    np.testing.assert_array_equal(eager.reshape(photo, shape=[-1], layout="X"), photo.reshape(-1))  # its own argument


def test_wrong_layouts(photo):
    with pytest.raises(LayoutError):
        eager.flip(photo, layout="HW")
    with pytest.raises(LayoutError):
        eager.tensor(photo, "HW")
    with pytest.raises(LayoutError):
        eager.batch([photo], "HW")
    with pytest.raises(ArgumentTypeError, match="layout must be a string"):
        eager.flip(photo, layout=3)


# -- arguments ------------------------------------------------------------------------------------------------------


def test_per_sample_arguments(photo):
    angles = eager.batch([0.0, 90.0, 180.0])
    turned = eager.rotate(photo, angle=angles)
    np.testing.assert_array_equal(turned.at(1), np.rot90(photo))
    np.testing.assert_array_equal(turned.at(2), photo[::-1, ::-1])
    sizes = eager.resize([photo, photo], size=[np.array([4, 5]), np.array([6, 7])])
    assert sizes.shape() == [(4, 5, 3), (6, 7, 3)]
    same = eager.resize([photo, photo], size=[4, 5])
    assert same.shape() == [(4, 5, 3)] * 2
    matrix = np.array([[1, 0, 2], [0, 1, 0]], np.float32)
    np.testing.assert_array_equal(
        eager.warp_affine(photo, matrix=matrix), eager.warp_affine(photo, matrix=[[1, 0, 2], [0, 1, 0]])
    )


def test_computed_numbers_are_not_constants(photo):
    """What random operators give does not fill the memory of what was prepared."""
    eager.rotate(photo, angle=np.float32(3))
    eager.rotate(photo, angle=eager.random.uniform(range=(-10.0, 10.0)))
    known = len(calls._cache)
    for _ in range(5):
        eager.rotate(photo, angle=eager.random.uniform(range=(-10.0, 10.0)))
    assert len(calls._cache) == known


def test_constants_of_equal_value_and_other_types():
    """Caches of earlier calls distinguish 1, 1.0 and True, and 0.0 and -0.0."""
    data = np.zeros(2, np.float32)
    assert np.signbit(eager.pad(data, shape=[3], fill_value=-0.0))[2]
    assert not np.signbit(eager.pad(data, shape=[3], fill_value=0.0))[2]
    assert eager.full(1).dtype == np.int32
    assert eager.full(1.0).dtype == np.float32


def test_many_constants(photo):
    """More calls than are remembered are right all the same."""
    small = photo[:2, :2, :1]
    for value in range(1100):
        assert (eager.pad(small, shape=[3, 3, 1], fill_value=value % 7)[2] == value % 7).all()
        eager.pad(small, shape=[3, 3, 1], fill_value=value + 0.5)


# -- errors ---------------------------------------------------------------------------------------------------------


def test_errors_name_the_line(photo):
    with pytest.raises(UnknownArgumentError, match=r"(?s)sice.*size.*test_calls.py.*eager.resize\(photo, sice=8\)"):
        eager.resize(photo, sice=8)
    with pytest.raises(DecodeError) as caught:
        eager.decoders.image(b"no image")
    assert "eager.decoders.image(b" in str(caught.value)
    assert "of the batch" not in str(caught.value)


def test_errors_name_the_line_of_the_failing_call(encoded):
    eager.decoders.image(encoded)  # prepares what the next line uses
    with pytest.raises(DecodeError, match="this_one"):
        eager.decoders.image(b"this_one")


def test_errors_name_the_sample(encoded):
    with pytest.raises(DecodeError, match="sample 1 of the batch"):
        eager.decoders.image([encoded, b"no image"])


def test_call_after_an_error(encoded, photo):
    with pytest.raises(DalifyError):
        eager.decoders.image(encoded[:20])
    np.testing.assert_array_equal(eager.decoders.image(encoded), photo)


def test_what_is_refused(photo):
    with pytest.raises(UnknownOperatorError, match="pipeline_def"):
        eager.readers.file(file_root="photos")
    with pytest.raises(UnknownOperatorError, match="resize"):
        eager.rezise(photo, size=8)
    with pytest.raises(ArgumentTypeError, match="takes 1 input"):
        eager.flip(photo, photo)
    with pytest.raises(ArgumentTypeError, match="takes 1 input"):
        eager.flip()
    with pytest.raises(ArgumentTypeError, match="object"):
        eager.flip(object())
    with pytest.raises(ArgumentTypeError, match="None"):
        eager.flip(None)
    with pytest.raises(DTypeError):
        eager.flip(np.array(["a"]))
    with pytest.raises(ShapeError, match=r"eager\.batch"):
        eager.flip([[1, 2], [3]])
    with pytest.raises(ShapeError, match=r"eager\.batch"):
        eager.flip([photo, 3])
    with pytest.raises(DTypeError, match="sample 1"):
        eager.flip([photo, photo.astype(np.float32)])
    with pytest.raises(ArgumentValueError, match="on_error"):
        eager.decoders.image(b"", on_error="skip")
    with pytest.raises(ArgumentTypeError, match="same for the whole batch"):
        eager.cast(photo, dtype=[photo, photo])
    with pytest.raises(DalifyError, match=r"angle=eager.batch"):
        eager.rotate([photo, photo], angle=[10, 20])


def test_graph_values_are_refused(photo):
    @pipeline_def(batch_size=1, num_threads=1)
    def mixed_up():
        return eager.flip(fn.external_source(source=lambda: photo[None]))

    with pytest.raises(ArgumentTypeError, match=r"dalify\.fn"):
        mixed_up()

    @pipeline_def(batch_size=1, num_threads=1)
    def argument():
        return fn.flip(eager.rotate(photo, angle=fn.random.uniform(range=(0, 1))))

    with pytest.raises(ArgumentTypeError, match=r"dalify\.fn"):
        argument()


def test_constants_of_a_pipeline(photo):
    """A call within a pipeline function adds no node to the graph, also in a branch."""

    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def pipe():
        value = fn.random.coin_flip()
        table = eager.cast(np.arange(4), dtype=types.FLOAT)
        if value:
            result = fn.cast(value, dtype=types.FLOAT) + eager.cast(5, dtype=types.FLOAT)
        else:
            result = fn.cast(value, dtype=types.FLOAT) + float(table[3])
        return result

    built = pipe()
    assert {int(value) for value in built.run()[0].as_array()} <= {3, 6}
    assert "cast" not in built.explain().partition("\n")[0]
    built.close()


# -- random numbers -------------------------------------------------------------------------------------------------


def test_the_seed_equals_that_of_a_pipeline():
    @pipeline_def(batch_size=4, num_threads=1)
    def numbers():
        return fn.random.uniform(range=(0.0, 1.0), seed=9)

    pipe = numbers()
    expected = pipe.run()[0].as_array()
    pipe.close()
    for _ in range(2):
        np.testing.assert_array_equal(eager.random.uniform(range=(0.0, 1.0), seed=9, batch_size=4), expected)


def test_generator_never_repeats_and_can_be_repeated():
    def draw() -> list[float]:
        return [float(eager.random.uniform(range=(0.0, 1.0))) for _ in range(20)]

    eager.seed(7)
    first, second = draw(), draw()
    assert len({*first, *second}) == 40
    eager.seed(7)
    assert draw() == first
    state = eager.get_state()
    assert draw() == second
    eager.set_state(state)
    assert draw() == second


# -- concurrent calls -----------------------------------------------------------------------------------------------


def test_threads(photo):
    """Threads share what was prepared, and neither scratch memory nor random numbers."""
    expected = {angle: eager.rotate(photo, angle=angle) for angle in range(0, 80, 10)}
    drawn: list[float] = []
    wrong: list[int] = []

    def work() -> None:
        for _ in range(10):
            for angle, result in expected.items():
                if not np.array_equal(eager.rotate(photo, angle=angle), result):
                    wrong.append(angle)
                drawn.append(float(eager.random.uniform(range=(0.0, 1.0))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(drawn) == len(set(drawn)) == 4 * 80


def test_call_within_a_call(photo):
    """A function of the user's that an operator calls may use operators: its scratch memory is another."""

    def flipped(image: np.ndarray) -> np.ndarray:
        return eager.flip(image)

    result = eager.python_function(photo, function=flipped)
    np.testing.assert_array_equal(result, photo[:, ::-1])

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        images = fn.external_source(source=lambda: [photo, photo], layout="HWC")
        return fn.flip(fn.python_function(fn.flip(images, vertical=1), function=flipped))

    built = pipe()
    np.testing.assert_array_equal(built.run()[0].at(1), photo[::-1, ::-1])
    built.close()


@needs_posix
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded")
def test_fork(photo):
    """A forked child can call operators; its random numbers differ from the parent's and are reproducible."""

    def child() -> bytes:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            with os.fdopen(writing, "wb") as file:
                image = eager.flip(photo)
                pickle.dump((image, [float(eager.random.uniform(range=(0.0, 1.0))) for _ in range(3)]), file)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            data = file.read()
        os.waitpid(process, 0)
        return data

    seen = []
    for _ in range(2):
        eager.seed(3)
        numbers = []
        for _ in range(2):
            image, drawn = pickle.loads(child())
            np.testing.assert_array_equal(image, photo[:, ::-1])
            numbers += drawn
        numbers += [float(eager.random.uniform(range=(0.0, 1.0))) for _ in range(3)]
        assert len(set(numbers)) == 9
        seen.append(numbers)
    assert seen[0] == seen[1]


# -- the device -----------------------------------------------------------------------------------------------------


def test_device(photo, encoded, device):
    """Results on the device are torch tensors, or dalify's tensors for inputs of that class."""
    expected = eager.flip(photo)
    result = eager.flip(photo, device=device)
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert isinstance(result, np.ndarray if device == "cpu" else torch.Tensor)
    tensor = eager.flip(eager.tensor(photo, "HWC"), device=device)
    assert isinstance(tensor, TensorCPU if device == "cpu" else TensorGPU)
    batch = eager.flip([photo, photo], device=device)
    assert isinstance(batch, TensorListCPU if device == "cpu" else TensorListGPU)
    again = eager.flip(batch)
    assert again.device == device
    np.testing.assert_array_equal(again.as_cpu().at(0), photo)
    decoded = eager.decoders.image([encoded], device="cpu" if device == "cpu" else "mixed")
    np.testing.assert_array_equal(decoded.as_cpu().at(0), photo)


def test_views_of_the_device_are_separate(photo, device):
    batch = eager.copy([photo], device=device)
    view = eager.reshape(batch, shape=[40, 30, 3])
    view._batch.dense[...] = 0
    np.testing.assert_array_equal(batch.as_cpu().at(0), photo)


# -- names ----------------------------------------------------------------------------------------------------------


def test_names():
    assert "resize" in dir(eager)
    assert "batch" in dir(eager)
    assert "image" in dir(eager.decoders)
    assert importlib.import_module("dalify.eager.decoders") is eager.decoders
    assert eager.flip.__name__ == "flip"
    assert "vertical" in str(inspect.signature(eager.flip))
    assert dalify.eager is eager
    with pytest.warns(DeprecationWarning, match=r"eager\.decoders\.image"):
        assert callable(eager.image_decoder)


def test_import_is_light():
    heavy = {"torch", "numba", "dalify.executor.plan", "dalify.immediate.lazy.tape", "concurrent.futures"}
    program = f"import sys, dalify; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
