"""Limits: values, scopes, and error messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from dalify import eager, fn, limits, pipeline_def
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, LimitError, UnknownArgumentError
from dalify.base.limits import applied, as_limits, check_count, check_dimensions, check_image, check_shape, within


@pytest.fixture(autouse=True)
def _limits_of_the_process() -> Iterator[None]:
    before = limits.current()
    yield
    limits.configure(
        max_image_pixels=before.max_image_pixels,
        max_sample_bytes=before.max_sample_bytes,
        max_declared_samples=before.max_declared_samples,
        max_dimensions=before.max_dimensions,
    )


def test_a_limit_is_refused_beyond_it_only() -> None:
    limits.configure(max_image_pixels=100, max_sample_bytes=64, max_declared_samples=7, max_dimensions=3)
    check_image(10, 10)
    check_shape((4, 4), 4)
    check_count(7, "7 rows")
    check_dimensions(3)
    for call in (
        lambda: check_image(101, 1),
        lambda: check_shape((4, 0, 17), 1),
        lambda: check_count(8, "8 rows"),
        lambda: check_dimensions(4),
    ):
        with pytest.raises(LimitError):
            call()


def test_the_message_names_the_limit_and_how_to_raise_it() -> None:
    with pytest.raises(LimitError) as caught, applied(limits.Limits(max_image_pixels=1_000_000)):
        check_image(65500, 65500, "the JPEG")
    assert str(caught.value) == (
        "the JPEG declares 65500 x 65500 = 4,290,250,000 pixels, more than the limit max_image_pixels=1,000,000.\n"
        "  If the data can be trusted, raise the limit: @pipeline_def(limits={'max_image_pixels': 4290250000}), or for "
        "the whole process: dalify.limits.configure(max_image_pixels=4290250000)."
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"max_image_pixel": 1}, UnknownArgumentError),
        ({"max_image_pixels": 0}, ArgumentValueError),
        ({"max_image_pixels": 1.5}, ArgumentTypeError),
        ({"max_image_pixels": True}, ArgumentTypeError),
        (7, ArgumentTypeError),
    ],
)
def test_wrong_limits(given: object, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        as_limits(given)  # pyright: ignore[reportArgumentType]
    with pytest.raises(kind):
        _images([], limits=given)


def test_limits_of_a_thread_stay_in_it() -> None:
    own = limits.Limits(max_dimensions=5)
    with applied(own), ThreadPoolExecutor(1) as threads:
        assert limits.current() is own
        assert threads.submit(limits.current).result() is not own
        assert threads.submit(within(own, limits.current)).result() is own
        with applied(None):
            assert limits.current() is own
    assert limits.current() is not own


@pipeline_def(batch_size=2, num_threads=2, device_id=None)
def _images(files: list[str]):
    encoded, _ = fn.readers.file(files=files)
    return fn.decoders.image(encoded)


def _files(tmp_path, count: int, large: int) -> list[str]:
    for number in range(count):
        width = 400 if number == large else 48
        cv2.imwrite(f"{tmp_path}/{number}.png", np.full((40, width, 3), number, np.uint8))
    return [f"{tmp_path}/{number}.png" for number in range(count)]


def test_a_pipeline_has_its_own_limits(tmp_path) -> None:
    files = _files(tmp_path, 4, large=1)
    pipe = _images(files, limits={"max_image_pixels": 5000})
    with pytest.raises(LimitError, match=r"(?s)sample 1 of the batch, from .*1\.png"):
        pipe.run()
    pipe.run()  # the next batch is there
    assert _images(files).run()[0].at(1).shape == (40, 400, 3)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_what_exceeds_a_limit_is_a_bad_sample(tmp_path, on_error: str) -> None:
    pipe = _images(_files(tmp_path, 4, large=1), limits={"max_image_pixels": 5000}, on_error=on_error)
    (images,) = pipe.run()
    assert all(np.asarray(images.at(n)).shape != (40, 400, 3) for n in range(2))
    (bad,) = pipe.bad_samples()
    assert bad.source.endswith("1.png")
    assert bad.error.startswith("LimitError")


def test_results_of_operators_behind_a_reader_are_skipped(tmp_path) -> None:
    @pipeline_def(batch_size=2, num_threads=2, device_id=None, on_error="skip", limits={"max_sample_bytes": 40 * 400})
    def resized(files: list[str]):
        encoded, _ = fn.readers.file(files=files)
        return fn.resize(fn.decoders.image(encoded), resize_y=40, max_size=[40, 1000])

    pipe = resized(_files(tmp_path, 4, large=1))
    pipe.run()
    (bad,) = pipe.bad_samples()
    assert bad.operator in ("fn.resize", "fn.decoders.image")


def test_the_process_has_limits() -> None:
    with pytest.raises(LimitError, match="max_sample_bytes=2,147,483,648"):
        eager.resize(np.zeros((4, 4, 3), np.uint8), size=[100_000, 100_000])
    limits.configure(max_sample_bytes=1000)
    with pytest.raises(LimitError, match="max_sample_bytes=1,000"):
        eager.resize(np.zeros((4, 4, 3), np.uint8), size=[100, 100])
    threading.Thread(target=limits.current).start()


def test_a_library_error_for_a_chunk_fails_one_sample(tmp_path, monkeypatch) -> None:
    from dalify.codecs import decode_batch as group

    decode = group.decode_image

    def fragile(data, *args, **named):
        if bytes(np.asarray(data)).endswith(b"bad"):
            raise MemoryError("out of memory in a library")
        return decode(data, *args, **named)

    files = _files(tmp_path, 4, large=-1)
    with Path(files[1]).open("ab") as file:
        file.write(b"bad")
    monkeypatch.setattr(group, "decode_image", fragile)
    with pytest.raises(Exception, match=r"(?s)MemoryError: out of memory in a library.*sample 1 .*1\.png") as caught:
        _images(files).run()
    assert isinstance(caught.value.__cause__, MemoryError)
    pipe = _images(files, on_error="skip")
    pipe.run()
    assert [bad.source for bad in pipe.bad_samples()] == [files[1]]
