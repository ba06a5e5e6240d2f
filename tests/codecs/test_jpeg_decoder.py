"""The compiled JPEG decoder gives the pixels of libjpeg-turbo, or leaves a file to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
import simplejpeg
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dalify import fn, pipeline_def, types
from dalify.codecs import decode_batch as group
from dalify.codecs import jpeg_decoder
from dalify.codecs.jpeg_decoder import JpegDecoder
from dalify.data import Batch
from dalify.data.samples import Samples
from tests.helpers.photos import write_photo_folder

SUBSAMPLINGS = ("444", "422", "420")
OTHER_SUBSAMPLINGS = ("440", "411")


@pytest.fixture(scope="module")
def decoder() -> JpegDecoder:
    found = JpegDecoder(0, 0)
    found.compile()
    return found


def image(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return smooth colors with some noise, uint8 ``[height, width, 3]``."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), np.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.int64)
    return np.clip(smooth + random.integers(-20, 21, smooth.shape), 0, 255).astype(np.uint8)


def encoded(pixels: np.ndarray, subsampling: str = "420", quality: int = 85) -> bytes:
    if subsampling == "gray":
        gray = np.ascontiguousarray(pixels[:, :, :1])
        return simplejpeg.encode_jpeg(gray, quality=quality, colorspace="GRAY", colorsubsampling="Gray")
    return simplejpeg.encode_jpeg(pixels, quality=quality, colorsubsampling=subsampling)


def decoded(
    decoder: JpegDecoder,
    file: bytes,
    colors: str = "RGB",
    window: tuple[int, int, int, int] | None = None,
) -> np.ndarray | None:
    """Decode one file; None where the decoder leaves it to the library. Bytes around the result must not change."""
    if window is None:
        height, width, *_ = simplejpeg.decode_jpeg_header(file)
        window = (0, 0, int(height), int(width))
    framed = np.full((window[2] + 2, window[3], 1 if colors == "GRAY" else 3), 77, np.uint8)
    source = np.frombuffer(bytearray(file), np.uint8)
    done = decoder.decode(
        Samples.of_batch(Batch(None, [source])),
        Samples.of_batch(Batch(None, [framed[1:-1]])),
        colors,
        np.ones(1, np.bool_),
        np.array([window]),
    )
    assert (framed[[0, -1]] == 77).all()
    return framed[1:-1] if done[0] else None


@st.composite
def windows(draw: st.DrawFn) -> tuple[int, int, tuple[int, int, int, int]]:
    """Return extents of an image, and a window in it."""
    height, width = draw(st.integers(1, 70)), draw(st.integers(5, 70))
    y, x = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
    return height, width, (y, x, draw(st.integers(1, height - y)), draw(st.integers(1, width - x)))


@given(
    place=windows(),
    subsampling=st.sampled_from((*SUBSAMPLINGS, "gray")),
    colors=st.sampled_from(("RGB", "BGR", "GRAY")),
    quality=st.integers(1, 100),
    seed=st.integers(0, 1000),
)
def test_pixels_of_the_library(decoder: JpegDecoder, place, subsampling, colors, quality, seed) -> None:
    height, width, (y, x, rows, columns) = place
    file = encoded(image(height, width, seed), subsampling, quality)
    found = decoded(decoder, file, colors, (y, x, rows, columns))
    assert found is not None
    expected = simplejpeg.decode_jpeg(file, colors)[y : y + rows, x : x + columns]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("is_optimized", [False, True])
@pytest.mark.parametrize("interval", [1, 2, 5, 100])
def test_restart_intervals_and_optimized_tables(decoder: JpegDecoder, interval: int, is_optimized: bool) -> None:
    options = [cv2.IMWRITE_JPEG_RST_INTERVAL, interval, cv2.IMWRITE_JPEG_OPTIMIZE, int(is_optimized)]
    file = cv2.imencode(".jpg", image(150, 170), options)[1].tobytes()
    np.testing.assert_array_equal(decoded(decoder, file), simplejpeg.decode_jpeg(file))


def test_files_of_a_chunk_with_different_tables(decoder: JpegDecoder) -> None:
    options = [cv2.IMWRITE_JPEG_OPTIMIZE, 1]
    files = [cv2.imencode(".jpg", image(60, 70, seed), options)[1].ravel() for seed in range(4)]
    files = [np.frombuffer(encoded(image(60, 70)), np.uint8), *files, files[0][: len(files[0]) // 2], *files[:2]]
    outs = [np.zeros((20, 30, 3), np.uint8) for _ in files]
    window = (35, 33, 20, 30)
    done = decoder.decode(
        Samples.of_batch(Batch(None, [*files])),
        Samples.of_batch(Batch(None, [*outs])),
        "RGB",
        np.ones(len(files), np.bool_),
        np.array([window] * len(files)),
    )
    assert done.tolist() == [True] * 5 + [False] + [True] * 2
    for file, out, is_done in zip(files, outs, done, strict=True):
        if is_done:
            np.testing.assert_array_equal(out, simplejpeg.decode_jpeg(file.tobytes())[35:55, 33:63])


def test_coefficients_beyond_what_16_bits_hold_are_left_to_the_library(decoder: JpegDecoder) -> None:
    file = bytearray(encoded(image(16, 16), quality=100))
    table = file.index(b"\xff\xdb") + 5
    file[table : table + 64] = b"\xff" * 64  # values of 1 become values of 255
    assert decoded(decoder, bytes(file)) is None


@pytest.mark.parametrize("subsampling", OTHER_SUBSAMPLINGS)
def test_other_subsampling_is_left_to_the_library(decoder: JpegDecoder, subsampling: str) -> None:
    assert decoded(decoder, encoded(image(40, 40), subsampling)) is None


def test_progressive_files_are_left_to_the_library(decoder: JpegDecoder) -> None:
    file = cv2.imencode(".jpg", image(40, 40), [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].tobytes()
    assert decoded(decoder, file) is None


@pytest.mark.parametrize("subsampling", ["422", "420"])
def test_images_too_narrow_for_the_filter_of_chroma_are_left_to_the_library(decoder, subsampling: str) -> None:
    assert decoded(decoder, encoded(image(20, 4), subsampling)) is None


@pytest.mark.parametrize("window", [(-1, 0, 5, 5), (0, -1, 5, 5), (36, 0, 5, 5), (0, 36, 5, 5)])
def test_windows_outside_of_the_image(decoder: JpegDecoder, window: tuple[int, int, int, int]) -> None:
    assert decoded(decoder, encoded(image(40, 40)), window=window) is None


def declared_size(file: bytes) -> tuple[int, int]:
    """Return height and width in the header of a file; (33, 47) if the library cannot read the header."""
    try:
        height, width, *_ = simplejpeg.decode_jpeg_header(file)
    except ValueError:
        return 33, 47
    return int(height), int(width)


@example(place=0.1095, change="flip", amount=1, subsampling="422")  # 289 rows are declared
@given(
    place=st.floats(0, 1, exclude_max=True),
    change=st.sampled_from(["flip", "cut", "remove", "insert", "marker"]),
    amount=st.integers(1, 255),
    subsampling=st.sampled_from((*SUBSAMPLINGS, "gray")),
)
def test_damaged_files_are_left_to_the_library_or_give_the_same(
    decoder: JpegDecoder, place, change, amount, subsampling
) -> None:
    file = bytearray(encoded(image(33, 47), subsampling))
    at = int(place * len(file))
    if change == "flip":
        file[at] ^= amount
    elif change == "cut":
        del file[at:]
    elif change == "remove":
        del file[at : at + amount]
    elif change == "insert":
        file[at:at] = bytes(range(amount))
    else:
        file[at : at + 2] = bytes([255, amount])
    damaged = bytes(file)
    height, width = declared_size(damaged)
    assume(height * width < 1 << 22)
    # A smaller window would be decoded without looking at damage after it.
    found = decoded(decoder, damaged, window=(0, 0, height, width))
    last = height - 1, width - 1
    corner = decoded(decoder, damaged, window=(*last, 1, 1))  # the coefficients of most blocks are skipped
    if found is not None:  # so the library has no complaint
        np.testing.assert_array_equal(found, simplejpeg.decode_jpeg(damaged))
        np.testing.assert_array_equal(corner, found[last[0] :, last[1] :])
    elif corner is not None:
        np.testing.assert_array_equal(corner, simplejpeg.decode_jpeg(damaged)[last[0] :, last[1] :])


def test_a_window_before_the_damaged_part(decoder: JpegDecoder) -> None:
    file = encoded(image(128, 96))
    expected = simplejpeg.decode_jpeg(file)[:20]
    cut = len(file) * 3 // 4
    assert decoded(decoder, file[:cut], window=(0, 0, 20, 96)) is None
    np.testing.assert_array_equal(decoded(decoder, file[:cut] + b"\xff\xd9", window=(0, 0, 20, 96)), expected)


# -- when it is used
# -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def one_file() -> Iterator[tuple[Samples, Samples]]:
    file = np.frombuffer(encoded(image(20, 20)), np.uint8)
    out = np.zeros((20, 20, 3), np.uint8)
    yield Samples.of_batch(Batch(None, [file])), Samples.of_batch(Batch(None, [out]))
    assert out.any()


def times(decoder: JpegDecoder, files: tuple[Samples, Samples], count: int) -> list[bool]:
    """Return whether each of some calls decoded the file."""
    window = np.array([[0, 0, 20, 20]])
    return [bool(decoder.decode(*files, "RGB", np.ones(1, np.bool_), window)[0]) for _ in range(count)]


def test_code_of_a_file_is_loaded_after_some_images(one_file, monkeypatch) -> None:
    monkeypatch.setattr(jpeg_decoder, "is_saved", lambda *_: True)
    assert times(JpegDecoder(3, 1000), one_file, 4) == [False, False, True, True]


def test_it_is_compiled_after_many_images(one_file, monkeypatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(jpeg_decoder, "is_saved", lambda *_: bool(asked.append(1)))
    assert times(JpegDecoder(2, 5), one_file, 6) == [False, False, False, False, True, True]
    assert len(asked) == 1


def test_while_one_thread_compiles_others_use_the_library(one_file, monkeypatch) -> None:
    begins, ends = threading.Event(), threading.Event()
    decoder = JpegDecoder(0, 0)
    compile_it = decoder.compile

    def compile_slowly() -> None:
        begins.set()
        assert ends.wait(60)
        compile_it()

    monkeypatch.setattr(decoder, "compile", compile_slowly)
    found: list[list[bool]] = []
    thread = threading.Thread(target=lambda: found.append(times(decoder, one_file, 1)))
    thread.start()
    assert begins.wait(60)
    assert times(decoder, one_file, 2) == [False, False]
    ends.set()
    thread.join()
    assert found == [[True]]
    assert times(decoder, one_file, 1) == [True]


def test_pipelines_give_the_same_images_with_and_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_photo_folder(tmp_path)
    pages = sorted(tmp_path.rglob("*.jpg"))
    pages[2].write_bytes(pages[2].read_bytes()[:-200])  # the library refuses it

    @pipeline_def(batch_size=12, num_threads=2, device_id=None, seed=5, on_error="replace")
    def images() -> tuple[object, ...]:
        files, _ = fn.readers.file(files=[str(page) for page in pages])
        whole = fn.decoders.image(files)
        cropped = fn.random_resized_crop(fn.decoders.image(files), size=[40, 50])
        window = fn.decoders.image_crop(files, crop=[30, 20], crop_pos_x=fn.random.uniform(range=[0.0, 1.0]))
        return whole, cropped, window, fn.decoders.image_random_crop(files, output_type=types.BGR)

    def run() -> list[np.ndarray]:
        pipe = images()
        outputs = pipe.run()
        pipe.close()
        return [np.array(output.at(index)) for output in outputs for index in range(12)]

    monkeypatch.setattr(group, "jpeg_decoder", JpegDecoder(10**9, 10**9))
    without = run()
    monkeypatch.setattr(group, "jpeg_decoder", JpegDecoder(0, 0))
    for one, other in zip(without, run(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_warming_up_compiles_it_only_for_pipelines_that_decode(one_file, monkeypatch) -> None:
    decoder, compiled = JpegDecoder(10**9, 10**9), []
    monkeypatch.setattr(decoder, "compile", lambda: compiled.append(1))
    decoder.compile_if_used()
    assert not compiled
    assert times(decoder, one_file, 1) == [False]
    decoder.compile_if_used()
    assert compiled
    JpegDecoder(0, 0).decode(*one_file, "RGB", np.ones(1, np.bool_), np.array([[0, 0, 20, 20]]))
