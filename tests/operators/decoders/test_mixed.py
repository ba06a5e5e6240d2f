"""Image decoding with ``device="mixed"`` by nvImageCodec, which runs its CPU backend in emulation."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from dalify import Pipeline, eager, fn, pipeline_def, types
from dalify.base import optional
from dalify.base.errors import ArgumentValueError, DecodeError, DeviceError
from dalify.codecs import decode_on_device, device_jpeg
from dalify.codecs.nvimagecodec import NvImageCodecDecoder
from dalify.executor.device_steps import emulated
from tests.helpers.photos import drawn_photo

Arrays = list[np.ndarray[Any, Any]]

BATCH = 5


pytestmark = pytest.mark.gpu

# Decoders of devices round colors and interpolate chroma in their own way.
LARGEST_MEAN_ON_DEVICES = 1.0


def assert_same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """Check an image that a device decoded; in emulation, every value is that of the host."""
    if emulated():
        np.testing.assert_array_equal(found, wanted)
    assert found.shape == wanted.shape
    assert np.abs(found.astype(float) - wanted).mean() < LARGEST_MEAN_ON_DEVICES


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Select nvImageCodec; the numbers of images that it decoded, one for each call."""
    if not torch.cuda.is_available():
        monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    pytest.importorskip("nvidia.nvimgcodec", reason="nvImageCodec is not installed: pip install 'dalify[cuda12]'")
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "nvimgcodec")
    assert device_jpeg.chosen_decoder()[0] == "nvimgcodec"
    found: list[int] = []
    original = NvImageCodecDecoder.decode

    def decode(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        images = original(self, *arguments, **options)
        found.append(sum(image is not None for image in images))
        return images

    monkeypatch.setattr(NvImageCodecDecoder, "decode", decode)
    return found


def jpeg(seed: int, mode: str = "RGB", orientation: int = 1, **options: Any) -> bytes:
    """Return a JPEG file; the size of the image depends on the seed."""
    image = Image.fromarray(drawn_photo(70 + 9 * (seed % 4), 100 + 5 * (seed % 3), seed)).convert(mode)
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = io.BytesIO()
    image.save(data, "JPEG", quality=90, exif=exif, **options)
    return data.getvalue()


def other(format_name: str, seed: int) -> bytes:
    data = io.BytesIO()
    Image.fromarray(drawn_photo(60, 90, seed)).save(data, format_name)
    return data.getvalue()


def write(folder: Path, files: list[bytes]) -> list[str]:
    paths = [folder / f"{number:02d}.img" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


@pytest.fixture
def many(tmp_path: Path) -> list[str]:
    """Files of many kinds; the first ten are JPEG files that devices decode."""
    files = [
        *(jpeg(seed) for seed in range(4)),
        jpeg(4, progressive=True),
        jpeg(5, "L"),
        jpeg(6, subsampling=0),
        jpeg(7, subsampling=1),
        *(jpeg(seed, orientation=seed) for seed in (3, 6)),
        other("PNG", 1),
        other("BMP", 2),
        jpeg(8, "CMYK"),
        jpeg(9) + bytes(1000),
        other("WEBP", 3),
    ]
    return write(tmp_path, files)


def pipeline(
    files: list[str], device: str, operator: Any, seed: int = 7, is_shuffled: bool = False, **options: Any
) -> Pipeline:
    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=0, seed=seed, **options)
    def define() -> Any:
        encoded, labels = fn.readers.file(files=files, name="files", random_shuffle=is_shuffled)
        return operator(encoded, device), labels

    return define()


def batches(pipe: Pipeline, count: int) -> Iterator[tuple[Arrays, list[int]]]:
    for _ in range(count):
        images, labels = pipe.run()
        yield (
            [np.asarray(image) for image in images.as_cpu()],
            [int(np.asarray(label)[0]) for label in labels],
        )


OPERATORS: dict[str, Any] = {
    "image": lambda encoded, device: fn.decoders.image(encoded, device=device),
    "BGR": lambda encoded, device: fn.decoders.image(encoded, device=device, output_type=types.BGR),
    "GRAY": lambda encoded, device: fn.decoders.image(encoded, device=device, output_type=types.GRAY),
    "not upright": lambda encoded, device: fn.decoders.image(encoded, device=device, adjust_orientation=False),
    "options": lambda encoded, device: fn.decoders.image(
        encoded,
        device=device,
        hw_decoder_load=0.2,
        hybrid_huffman_threshold=100,
        preallocate_width_hint=640,
        preallocate_height_hint=480,
    ),
    "crop": lambda encoded, device: fn.decoders.image_crop(
        encoded, device=device, crop=[31, 44], crop_pos_x=fn.random.uniform(range=[0.0, 1.0])
    ),
    "random crop": lambda encoded, device: fn.decoders.image_random_crop(encoded, device=device),
    "slice": lambda encoded, device: fn.decoders.image_slice(
        encoded, device=device, rel_start=[0.25, 0.1], rel_shape=[0.5, 0.4]
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_same_images_as_on_the_host(name: str, many: list[str], calls: list[int]) -> None:
    ours, theirs = (pipeline(many, device, OPERATORS[name]) for device in ("mixed", "cpu"))
    for (images, labels), (expected, expected_labels) in zip(batches(ours, 3), batches(theirs, 3), strict=True):
        assert labels == expected_labels
        for found, wanted in zip(images, expected, strict=True):
            assert_same(found, wanted)
    # Windows of images that are rotated are decoded on the host.
    assert sum(calls[:2]) == (8 if name in ("crop", "random crop", "slice") else 10)


@pytest.mark.parametrize("name", ["crop", "random crop", "slice"])
def test_the_decoder_decodes_only_the_window(
    name: str, many: list[str], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[tuple[int, ...]] = []
    original = NvImageCodecDecoder.decode

    def decode(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        images = original(self, *arguments, **options)
        shapes.extend(tuple(image.shape) for image in images if image is not None)
        return images

    monkeypatch.setattr(NvImageCodecDecoder, "decode", decode)
    pipe = pipeline(many[:BATCH], "mixed", OPERATORS[name], prefetch_queue_depth=1)
    ((images, _),) = batches(pipe, 1)
    assert shapes == [image.shape for image in images]


def test_one_call_for_a_batch(many: list[str], calls: list[int]) -> None:
    pipe = pipeline(many[:8], "mixed", OPERATORS["image"], prefetch_queue_depth=1)
    pipe.run()
    assert calls == [BATCH]


def test_crop_that_is_fused_with_the_decoder(many: list[str], calls: list[int]) -> None:
    def cropped(encoded: Any, device: str) -> Any:
        images = fn.decoders.image(encoded, device=device, hw_decoder_load=0.4)
        return fn.random_resized_crop(images, size=[24, 32])

    ours, theirs = (pipeline(many, device, cropped) for device in ("mixed", "cpu"))
    for (images, _), (expected, _) in zip(batches(ours, 3), batches(theirs, 3), strict=True):
        for found, wanted in zip(images, expected, strict=True):
            # The kernels of resize for devices round differently.
            if emulated():
                np.testing.assert_allclose(found.astype(int), wanted, atol=1)
            assert np.abs(found.astype(float) - wanted).mean() < LARGEST_MEAN_ON_DEVICES
    assert "decodes only what" in ours.explain()
    assert sum(calls[:2]) == 10


def test_decoders_in_branches(many: list[str], calls: list[int]) -> None:
    def branching(encoded: Any, device: str) -> Any:
        if fn.random.coin_flip(dtype=types.BOOL):  # pyright: ignore[reportGeneralTypeIssues]
            images = fn.decoders.image(encoded, device=device)
        else:
            images = fn.flip(fn.decoders.image(encoded, device=device))
        return images

    ours, theirs = (pipeline(many, device, branching) for device in ("mixed", "cpu"))
    for (images, _), (expected, _) in zip(batches(ours, 3), batches(theirs, 3), strict=True):
        for found, wanted in zip(images, expected, strict=True):
            assert_same(found, wanted)
    assert calls


def test_processes_send_files(many: list[str], calls: list[int]) -> None:
    ours = pipeline(many, "mixed", OPERATORS["random crop"], processes=1)
    theirs = pipeline(many, "cpu", OPERATORS["random crop"])
    try:
        for (images, _), (expected, _) in zip(batches(ours, 2), batches(theirs, 2), strict=True):
            for found, wanted in zip(images, expected, strict=True):
                assert_same(found, wanted)
    finally:
        ours.close()
    assert calls


# -- bad input


def damaged(kind: str) -> bytes:
    """Return a damaged JPEG file."""
    data = jpeg(11)
    if kind == "truncated":
        return data[: len(data) // 2]
    if kind == "no quantization tables":
        return data.replace(b"\xff\xdb", b"\xff\xed")  # a segment that decoders skip
    if kind == "no header":
        return data[:40]
    return b"hello"


DAMAGES = ["truncated", "no quantization tables", "no header", "text"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_errors_are_those_of_the_host(damage: str, tmp_path: Path, calls: list[int]) -> None:
    files = write(tmp_path, [jpeg(0), jpeg(1), jpeg(2), damaged(damage), jpeg(4), *(jpeg(seed) for seed in range(5))])
    texts = []
    for device in ("mixed", "cpu"):
        pipe = pipeline(files, device, OPERATORS["image"])
        with pytest.raises(DecodeError) as caught:
            pipe.run()
        texts.append(str(caught.value))
        assert "03.img" in texts[-1]
        assert "sample 3" in texts[-1]
        assert "test_mixed.py" in texts[-1]
        assert len(pipe.run()[0]) == BATCH  # the next batch
    assert texts[0] == texts[1]
    assert calls


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("policy", ["replace", "skip"])
@pytest.mark.parametrize("where", ["pipeline", "operator"])
def test_bad_samples_are_replaced_as_on_the_host(
    where: str, policy: str, damage: str, tmp_path: Path, calls: list[int]
) -> None:
    files = write(tmp_path, [jpeg(0), jpeg(1), jpeg(2), damaged(damage), jpeg(4), *(jpeg(seed) for seed in range(5))])
    on_error: dict[str, Any] = {"on_error": policy}

    def decoded(encoded: Any, device: str) -> Any:
        return fn.decoders.image(encoded, device=device, **(on_error if where == "operator" else {}))

    options = on_error if where == "pipeline" else {}
    ours, theirs = (pipeline(files, device, decoded, **options) for device in ("mixed", "cpu"))
    for (images, labels), (expected, expected_labels) in zip(batches(ours, 4), batches(theirs, 4), strict=True):
        assert labels == expected_labels
        for found, wanted in zip(images, expected, strict=True):
            assert_same(found, wanted)
    assert [(bad.source, bad.error, bad.line, bad.sample) for bad in ours.bad_samples()] == [
        (bad.source, bad.error, bad.line, bad.sample) for bad in theirs.bad_samples()
    ]
    assert calls
    assert "decodes on the device" in ours.explain()


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_damage_inside_of_the_compressed_data_is_no_error_as_on_the_host(
    policy: str, tmp_path: Path, calls: list[int]
) -> None:
    whole, middle = jpeg(11), len(jpeg(11)) // 2
    files = write(
        tmp_path,
        [
            whole[:middle] + b"\xff\xd9",
            whole[:middle] + bytes(100) + whole[middle + 100 :],
            whole[:middle] + b"\xff\xd9" + whole[middle:],
            whole[:middle] + whole[middle + 50 :],
            jpeg(4),
        ],
    )
    ours, theirs = (pipeline(files, device, OPERATORS["image"], on_error=policy) for device in ("mixed", "cpu"))
    for (images, _), (expected, _) in zip(batches(ours, 2), batches(theirs, 2), strict=True):
        for found, wanted in zip(images, expected, strict=True):
            assert found.shape == wanted.shape
            if emulated():  # how decoders of devices fill what is missing is up to them
                np.testing.assert_array_equal(found, wanted)
    assert not ours.bad_samples()
    assert not theirs.bad_samples()
    assert calls
    if emulated():
        assert calls[0] == BATCH


@pytest.mark.parametrize("processes", [0, 1])
def test_skipped_files_of_all_kinds(processes: int, tmp_path: Path, calls: list[int]) -> None:
    bad = [damaged("no quantization tables"), other("PNG", 1)[:900], jpeg(3, progressive=True)[:2000]]
    good = [jpeg(0), other("PNG", 2), jpeg(4, progressive=True), *(jpeg(seed) for seed in range(6))]
    files = write(tmp_path, [good[0], bad[0], *good[1:3], bad[1], *good[3:], bad[2]])
    options: dict[str, Any] = {"on_error": "skip"}
    ours = pipeline(files, "mixed", OPERATORS["image"], **options, processes=processes)
    theirs = pipeline(files, "cpu", OPERATORS["image"], **options)
    try:
        for (images, labels), (expected, expected_labels) in zip(batches(ours, 4), batches(theirs, 4), strict=True):
            assert labels == expected_labels
            for found, wanted in zip(images, expected, strict=True):
                assert_same(found, wanted)
        assert [str(sample) for sample in ours.bad_samples()] == [str(sample) for sample in theirs.bad_samples()]
        assert len({sample.source for sample in ours.bad_samples()}) == len(bad)
    finally:
        ours.close()
    assert calls


@pytest.mark.parametrize("name", ["crop", "random crop", "slice"])
def test_windows_are_decoded_on_the_host_if_bad_samples_are_skipped(
    name: str, many: list[str], calls: list[int]
) -> None:
    pipe = pipeline(many, "mixed", OPERATORS[name], on_error="skip")
    assert "decodes on the host (on_error='skip'" in pipe.explain()
    pipe.run()
    assert not calls


def test_skipping_before_a_crop_that_is_fused_with_the_decoder(tmp_path: Path, calls: list[int]) -> None:
    files = write(tmp_path, [jpeg(0), damaged("no quantization tables"), *(jpeg(seed) for seed in range(2, 7))])

    def cropped(encoded: Any, device: str) -> Any:
        return fn.random_resized_crop(fn.decoders.image(encoded, device=device), size=[24, 32])

    ours, theirs = (pipeline(files, device, cropped, on_error="skip") for device in ("mixed", "cpu"))
    for (images, labels), (expected, expected_labels) in zip(batches(ours, 3), batches(theirs, 3), strict=True):
        assert labels == expected_labels
        for found, wanted in zip(images, expected, strict=True):
            assert np.abs(found.astype(float) - wanted).mean() < LARGEST_MEAN_ON_DEVICES
    assert [str(sample) for sample in ours.bad_samples()] == [str(sample) for sample in theirs.bad_samples()]
    assert "decodes on the device" in ours.explain()
    assert calls


def test_what_the_device_cannot_decode_is_decoded_on_the_host(
    many: list[str], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device's decoder returns nothing, or something of a wrong shape."""
    original = NvImageCodecDecoder.decode
    wrong = itertools.cycle([lambda image: None, lambda image: image[1:], lambda image: image])

    def decode(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        return [change(image) for change, image in zip(wrong, original(self, *arguments, **options), strict=False)]

    monkeypatch.setattr(NvImageCodecDecoder, "decode", decode)
    for processors in (1, 4):
        monkeypatch.setattr(decode_on_device, "available_processors", lambda count=processors: count)
        ours, theirs = (pipeline(many, device, OPERATORS["image"]) for device in ("mixed", "cpu"))
        for (images, _), (expected, _) in zip(batches(ours, 3), batches(theirs, 3), strict=True):
            for found, wanted in zip(images, expected, strict=True):
                assert_same(found, wanted)


@pytest.mark.parametrize("failing", ["memory", "nvImageCodec"])
def test_pipeline_is_usable_after_a_failure_of_the_device(
    failing: str, many: list[str], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = pipeline(many, "mixed", OPERATORS["image"], prefetch_queue_depth=1)
    pipe.build()

    def full(*_arguments: Any, **_options: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    class Failing:
        def decode(self, *_arguments: Any, **_options: Any) -> Any:
            raise RuntimeError("CUDA Runtime failure: '#2'")

    with monkeypatch.context() as patch:
        if failing == "memory":
            patch.setattr(optional.torch, "cat", full)
        else:
            device = "cpu" if emulated() else "cuda:0"
            decoder = device_jpeg.open_decoder(device, device_jpeg.DeviceOptions())
            patch.setattr(decoder, "_decoder", Failing())
        with pytest.raises(DeviceError) as caught:
            pipe.run()
    text = str(caught.value)
    assert ("no memory left" if failing == "memory" else "nvImageCodec cannot decode on") in text
    assert "fn.decoders.image" in text
    assert "test_mixed.py" in text
    assert "batch_size" in text
    assert len(pipe.run()[0]) == BATCH


# -- which decoder is used


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"dtype": types.FLOAT}, "only uint8"),
        ({"output_type": types.YCbCr}, "output_type"),
        ({"output_type": types.ANY_DATA}, "output_type"),
        ({"use_fast_idct": True}, "use_fast_idct"),
    ],
)
def test_explain_says_why_the_host_decodes(
    arguments: dict[str, Any], reason: str, many: list[str], calls: list[int]
) -> None:
    pipe = pipeline(many, "mixed", lambda encoded, device: fn.decoders.image(encoded, device=device, **arguments))
    text = pipe.explain()
    assert "decodes on the host" in text
    assert reason in text
    pipe.run()
    assert not calls


@pytest.mark.usefixtures("emulated_gpu")
def test_emulation_decodes_on_the_host(many: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_DEVICE_DECODER", raising=False)
    assert "decodes on the host (emulation" in pipeline(many, "mixed", OPERATORS["image"]).explain()
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "host")
    assert "DALIFY_DEVICE_DECODER selects the host" in pipeline(many, "mixed", OPERATORS["image"]).explain()
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "nvimgcodek")
    with pytest.raises(ArgumentValueError, match="Did you mean 'nvimgcodec'"):
        pipeline(many, "mixed", OPERATORS["image"]).build()


def test_explain_names_the_decoder(many: list[str], calls: list[int]) -> None:
    text = pipeline(many, "mixed", OPERATORS["image"]).explain()
    assert "decodes on the device (nvImageCodec)" in text
    assert "is copied to the GPU" not in text.replace("readers", "")


# -- caches


def cached(encoded: Any, device: str, **options: Any) -> Any:
    given = {"cache_type": "threshold", "cache_size": 16, **options}
    return fn.decoders.image(encoded, device=device, **given)


def assert_batches_as_without_cache(pipe: Pipeline, plain: Pipeline, count: int) -> None:
    for (images, labels), (expected, expected_labels) in zip(batches(pipe, count), batches(plain, count), strict=True):
        assert labels == expected_labels
        for found, wanted in zip(images, expected, strict=True):
            assert_same(found, wanted)


@pytest.mark.parametrize("cache_type", ["threshold", "largest"])
@pytest.mark.parametrize("processes", [0, 1])
def test_cached_images_are_decoded_once(cache_type: str, processes: int, many: list[str], calls: list[int]) -> None:
    pipe = pipeline(many, "mixed", partial(cached, cache_type=cache_type), processes=processes, prefetch_queue_depth=1)
    plain = pipeline(many, "cpu", OPERATORS["image"])
    try:
        assert_batches_as_without_cache(pipe, plain, 9)
        assert sum(calls) == 10  # JPEG files that the device decodes, of the first epoch
        text = pipe.explain()
    finally:
        pipe.close()
    assert "is cached on the device" in text
    assert "decodes on the device" in text
    hits, total, misses = map(int, re.findall(r"(\d+) of (\d+) samples came from the cache, (\d+) were", text)[0])
    assert misses == len(many)
    assert hits + misses == total >= 9 * BATCH


@pytest.mark.parametrize("cache_type", ["threshold", "largest"])
def test_a_cache_on_the_device_is_bounded(cache_type: str, tmp_path: Path, calls: list[int]) -> None:
    shapes = [(100 + 40 * number, 900) for number in range(10)]
    paths = [str(tmp_path / f"{number}.jpg") for number in range(len(shapes))]
    for number, (path, (height, width)) in enumerate(zip(paths, shapes, strict=True)):
        Image.fromarray(drawn_photo(height, width, number)).save(path)
    operator = partial(cached, cache_type=cache_type, cache_size=2)
    pipe, plain = pipeline(paths, "mixed", operator), pipeline(paths, "cpu", OPERATORS["image"])
    assert_batches_as_without_cache(pipe, plain, 6)
    text = pipe.explain()
    taken, limit = map(int, re.findall(r"(\d+) of (\d+) bytes are taken on the device", text)[0])
    sizes = sorted(height * width * 3 for height, width in shapes)
    assert limit == 2 << 20
    assert limit - sizes[-1] < taken <= limit
    hits, total = map(int, re.findall(r"(\d+) of (\d+) samples came from", text)[0])
    assert 0 < hits < total - len(paths)


def test_small_images_are_not_cached_on_the_device(many: list[str], calls: list[int]) -> None:
    sizes = [np.asarray(Image.open(path).convert("RGB")).nbytes for path in many]
    threshold = sorted(sizes)[len(sizes) // 2]
    pipe = pipeline(many, "mixed", partial(cached, cache_threshold=threshold), prefetch_queue_depth=1)
    assert_batches_as_without_cache(pipe, pipeline(many, "cpu", OPERATORS["image"]), 6)
    hits = int(re.findall(r"(\d+) of \d+ samples came from", pipe.explain())[0])
    assert hits == sum(size > threshold for size in sizes)


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_bad_samples_are_not_cached_on_the_device(
    policy: str, processes: int, tmp_path: Path, calls: list[int]
) -> None:
    bad_files = [damaged("truncated"), damaged("no quantization tables")]
    # In a different order in each epoch, so that different images, of one size, replace the bad ones.
    paths = write(tmp_path, [jpeg(0), *bad_files, *(jpeg(seed) for seed in range(12, 108, 12))])
    options: dict[str, Any] = {"on_error": policy, "is_shuffled": True}
    pipe = pipeline(paths, "mixed", cached, processes=processes, **options)
    plain = pipeline(paths, "cpu", OPERATORS["image"], **options)
    try:
        assert_batches_as_without_cache(pipe, plain, 12)
        bad, expected = ([(one.source, one.error, one.batch) for one in each.bad_samples()] for each in (pipe, plain))
        assert bad == expected
        assert bad
    finally:
        pipe.close()


def test_a_changed_file_is_decoded_again_on_the_device(tmp_path: Path, calls: list[int]) -> None:
    paths = write(tmp_path, [jpeg(seed) for seed in range(BATCH)])
    pipe = pipeline(paths, "mixed", cached, prefetch_queue_depth=1)
    plain = pipeline(paths, "cpu", OPERATORS["image"], prefetch_queue_depth=1)
    assert_batches_as_without_cache(pipe, plain, 2)
    Path(paths[2]).write_bytes(jpeg(9, orientation=6))
    assert_batches_as_without_cache(pipe, plain, 2)
    assert calls[0] == BATCH
    assert calls[-1] == 1


def test_a_random_crop_after_a_cached_decoder_reads_whole_images(many: list[str], calls: list[int]) -> None:
    def cropped(encoded: Any, device: str, **options: Any) -> Any:
        return fn.random_resized_crop(fn.decoders.image(encoded, device=device, **options), size=[24, 32])

    pipe = pipeline(many, "mixed", partial(cropped, cache_type="threshold", cache_size=16))
    for (images, _), (expected, _) in zip(batches(pipe, 9), batches(pipeline(many, "cpu", cropped), 9), strict=True):
        for found, wanted in zip(images, expected, strict=True):
            assert np.abs(found.astype(float) - wanted).mean() < LARGEST_MEAN_ON_DEVICES
    assert sum(calls) == 10


def test_what_has_no_identity_is_decoded_each_time(many: list[str], calls: list[int]) -> None:
    data = [np.fromfile(path, np.uint8) for path in many[:BATCH]]

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=0, prefetch_queue_depth=1)
    def define() -> Any:
        return cached(fn.external_source(source=lambda: data), "mixed")

    pipe = define()
    for _ in range(3):
        for found, path in zip(pipe.run()[0].as_cpu(), many, strict=False):
            assert_same(np.asarray(found), np.asarray(eager.decoders.image(np.fromfile(path, np.uint8))))
    assert "is not cached" in pipe.explain()
    assert calls == [BATCH] * 3


def test_immediate_computation_caches_nothing(many: list[str], calls: list[int]) -> None:
    for path in many[:2] * 2:
        data = np.fromfile(path, np.uint8)
        found = eager.decoders.image(data, device="mixed", cache_type="threshold", cache_size=16)
        assert_same(np.asarray(found.cpu()), np.asarray(eager.decoders.image(data)))
    assert calls == [1] * 4


@pytest.mark.parametrize("options", [{"cache_folder": "folder"}, {"dtype": types.FLOAT}])
def test_caches_of_what_the_host_decodes_are_on_the_host(
    options: dict[str, Any], many: list[str], tmp_path: Path, calls: list[int]
) -> None:
    given = {**options, **({"cache_folder": str(tmp_path / "cache")} if "cache_folder" in options else {})}
    pipe = pipeline(many, "mixed", partial(cached, **given))
    others = {name: value for name, value in options.items() if name != "cache_folder"}
    plain = pipeline(many, "cpu", lambda encoded, device: fn.decoders.image(encoded, device=device, **others))
    assert_batches_as_without_cache(pipe, plain, 6)
    assert "is cached on the device" not in pipe.explain()
    assert "samples came from the cache" in pipe.explain()
    assert not calls
