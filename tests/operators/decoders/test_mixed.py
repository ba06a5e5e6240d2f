"""Image decoding with ``device="mixed"`` by nvImageCodec, which runs its CPU backend in emulation."""

from __future__ import annotations

import gc
import itertools
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import simplejpeg
import torch

from dalify import fn, pipeline_def, types
from dalify.base import optional
from dalify.base.errors import ArgumentValueError, DecodeError, DeviceError, GraphError, IndexingError
from dalify.base.processors import emulated
from dalify.codecs import decode_on_device, device_jpeg, nvimagecodec, torchvision_jpeg
from dalify.codecs.nvimagecodec import NvImageCodecDecoder
from dalify.executor.stage_runner import StageRunner
from dalify.parameter_groups.decoding import HardwareDecoder
from tests.helpers.launches import Launches
from tests.operators.decoders import mixed_pipelines as mixed

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", mixed.OPERATORS)
def test_same_images_as_on_the_host(name: str, many: list[str], calls: list[int]) -> None:
    ours, theirs = (mixed.pipeline(many, device, mixed.OPERATORS[name]) for device in ("mixed", "cpu"))
    for (images, labels), (expected, expected_labels) in zip(
        mixed.batches(ours, 3), mixed.batches(theirs, 3), strict=True
    ):
        assert labels == expected_labels
        for found, wanted in zip(images, expected, strict=True):
            mixed.assert_same(found, wanted)
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
    pipe = mixed.pipeline(many[: mixed.BATCH], "mixed", mixed.OPERATORS[name], prefetch_queue_depth=1)
    ((images, _),) = mixed.batches(pipe, 1)
    assert shapes == [image.shape for image in images]


def test_one_call_for_a_batch(many: list[str], calls: list[int]) -> None:
    pipe = mixed.pipeline(many[:8], "mixed", mixed.OPERATORS["image"], prefetch_queue_depth=1)
    pipe.run()
    assert calls == [mixed.BATCH]


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("name", ["image", "crop"])
def test_files_are_parsed_before_the_turn_of_their_batch(
    name: str, processes: int, many: list[str], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage of the device is serial; files are parsed before it, in parallel."""
    parsed: list[tuple[int, str]] = []
    stages: dict[int, str] = {}
    run, parse = StageRunner._run_on_batch, nvimagecodec.parsed_streams

    def in_stage(runner: StageRunner, iteration: Any, state: Any) -> None:
        stage = state.stage
        stages[threading.get_ident()] = stage.kind + (" in turn" if stage.is_serial else "")
        run(runner, iteration, state)
        del stages[threading.get_ident()]

    def noted(files: Any) -> Any:
        parsed.append((len(files), stages[threading.get_ident()]))
        return parse(files)

    pipe = mixed.pipeline(many[: mixed.BATCH], "mixed", mixed.OPERATORS[name], processes=processes)
    pipe.build()
    monkeypatch.setattr(StageRunner, "_run_on_batch", in_stage)
    kind = device_jpeg._KINDS["nvimgcodec"]
    monkeypatch.setitem(device_jpeg._KINDS, "nvimgcodec", replace(kind, parse=noted))
    monkeypatch.setattr(nvimagecodec, "parsed_streams", noted)
    try:
        for _ in range(3):
            pipe.run()
    finally:
        pipe.close()
    assert {*parsed[:3]} == {(mixed.BATCH, "batch")}
    assert calls[:3] == [mixed.BATCH] * 3


def test_crop_that_is_fused_with_the_decoder(many: list[str], calls: list[int]) -> None:
    def cropped(encoded: Any, device: str) -> Any:
        images = fn.decoders.image(encoded, device=device, hw_decoder_load=0.4)
        return fn.random_resized_crop(images, size=[24, 32])

    ours, theirs = (mixed.pipeline(many, device, cropped) for device in ("mixed", "cpu"))
    for (images, _), (expected, _) in zip(mixed.batches(ours, 3), mixed.batches(theirs, 3), strict=True):
        for found, wanted in zip(images, expected, strict=True):
            # The kernels of resize for devices round differently.
            if emulated():
                np.testing.assert_allclose(found.astype(int), wanted, atol=1)
            assert np.abs(found.astype(float) - wanted).mean() < mixed.LARGEST_MEAN_ON_DEVICES
    assert "decodes only what" in ours.explain()
    assert sum(calls[:2]) == 10


def test_decoders_in_branches(many: list[str], calls: list[int]) -> None:
    def branching(encoded: Any, device: str) -> Any:
        if fn.random.coin_flip(dtype=types.BOOL):  # pyright: ignore[reportGeneralTypeIssues]
            images = fn.decoders.image(encoded, device=device)
        else:
            images = fn.flip(fn.decoders.image(encoded, device=device))
        return images

    ours, theirs = (mixed.pipeline(many, device, branching) for device in ("mixed", "cpu"))
    for (images, _), (expected, _) in zip(mixed.batches(ours, 3), mixed.batches(theirs, 3), strict=True):
        for found, wanted in zip(images, expected, strict=True):
            mixed.assert_same(found, wanted)
    assert calls


def test_processes_send_files(many: list[str], calls: list[int]) -> None:
    ours = mixed.pipeline(many, "mixed", mixed.OPERATORS["random crop"], processes=1)
    theirs = mixed.pipeline(many, "cpu", mixed.OPERATORS["random crop"])
    try:
        for (images, _), (expected, _) in zip(mixed.batches(ours, 2), mixed.batches(theirs, 2), strict=True):
            for found, wanted in zip(images, expected, strict=True):
                mixed.assert_same(found, wanted)
    finally:
        ours.close()
    assert calls


# -- bad input


DAMAGES = ["truncated", "no quantization tables", "no header", "text"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_errors_equal_those_of_the_host(damage: str, tmp_path: Path, calls: list[int]) -> None:
    files = mixed.write(
        tmp_path,
        [
            mixed.jpeg(0),
            mixed.jpeg(1),
            mixed.jpeg(2),
            mixed.damaged(damage),
            mixed.jpeg(4),
            *(mixed.jpeg(seed) for seed in range(5)),
        ],
    )
    strings = []
    for device in ("mixed", "cpu"):
        pipe = mixed.pipeline(files, device, mixed.OPERATORS["image"])
        with pytest.raises(DecodeError) as caught:
            pipe.run()
        strings.append(str(caught.value))
        assert "03.img" in strings[-1]
        assert "sample 3" in strings[-1]
        assert "mixed_pipelines.py" in strings[-1]
        assert len(pipe.run()[0]) == mixed.BATCH  # the next batch
    assert strings[0] == strings[1]
    assert calls


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("policy", ["replace", "skip"])
@pytest.mark.parametrize("where", ["pipeline", "operator"])
def test_bad_samples_are_replaced_as_on_the_host(
    where: str, policy: str, damage: str, tmp_path: Path, calls: list[int]
) -> None:
    files = mixed.write(
        tmp_path,
        [
            mixed.jpeg(0),
            mixed.jpeg(1),
            mixed.jpeg(2),
            mixed.damaged(damage),
            mixed.jpeg(4),
            *(mixed.jpeg(seed) for seed in range(5)),
        ],
    )
    on_error: dict[str, Any] = {"on_error": policy}

    def decoded(encoded: Any, device: str) -> Any:
        return fn.decoders.image(encoded, device=device, **(on_error if where == "operator" else {}))

    options = on_error if where == "pipeline" else {}
    ours, theirs = (mixed.pipeline(files, device, decoded, **options) for device in ("mixed", "cpu"))
    for (images, labels), (expected, expected_labels) in zip(
        mixed.batches(ours, 4), mixed.batches(theirs, 4), strict=True
    ):
        assert labels == expected_labels
        for found, wanted in zip(images, expected, strict=True):
            mixed.assert_same(found, wanted)
    assert [(bad.source, bad.error, bad.line, bad.sample) for bad in ours.bad_samples()] == [
        (bad.source, bad.error, bad.line, bad.sample) for bad in theirs.bad_samples()
    ]
    assert calls
    assert "decodes on the device" in ours.explain()


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_damage_inside_of_the_compressed_data_is_no_error_as_on_the_host(
    policy: str, tmp_path: Path, calls: list[int]
) -> None:
    whole, middle = mixed.jpeg(11), len(mixed.jpeg(11)) // 2
    files = mixed.write(
        tmp_path,
        [
            whole[:middle] + b"\xff\xd9",
            whole[:middle] + bytes(100) + whole[middle + 100 :],
            whole[:middle] + b"\xff\xd9" + whole[middle:],
            whole[:middle] + whole[middle + 50 :],
            mixed.jpeg(4),
        ],
    )
    ours, theirs = (
        mixed.pipeline(files, device, mixed.OPERATORS["image"], on_error=policy) for device in ("mixed", "cpu")
    )
    for (images, _), (expected, _) in zip(mixed.batches(ours, 2), mixed.batches(theirs, 2), strict=True):
        for found, wanted in zip(images, expected, strict=True):
            assert found.shape == wanted.shape
            if emulated():  # decoders of devices fill missing parts differently
                np.testing.assert_array_equal(found, wanted)
    assert not ours.bad_samples()
    assert not theirs.bad_samples()
    assert calls
    if emulated():
        assert calls[0] == mixed.BATCH


@pytest.mark.parametrize("processes", [0, 1])
def test_skipped_files_of_all_kinds(processes: int, tmp_path: Path, calls: list[int]) -> None:
    bad = [mixed.damaged("no quantization tables"), mixed.other("PNG", 1)[:900], mixed.jpeg(3, progressive=True)[:2000]]
    good = [
        mixed.jpeg(0),
        mixed.other("PNG", 2),
        mixed.jpeg(4, progressive=True),
        *(mixed.jpeg(seed) for seed in range(6)),
    ]
    files = mixed.write(tmp_path, [good[0], bad[0], *good[1:3], bad[1], *good[3:], bad[2]])
    options: dict[str, Any] = {"on_error": "skip"}
    ours = mixed.pipeline(files, "mixed", mixed.OPERATORS["image"], **options, processes=processes)
    theirs = mixed.pipeline(files, "cpu", mixed.OPERATORS["image"], **options)
    try:
        for (images, labels), (expected, expected_labels) in zip(
            mixed.batches(ours, 4), mixed.batches(theirs, 4), strict=True
        ):
            assert labels == expected_labels
            for found, wanted in zip(images, expected, strict=True):
                mixed.assert_same(found, wanted)
        assert [str(sample) for sample in ours.bad_samples()] == [str(sample) for sample in theirs.bad_samples()]
        assert len({sample.source for sample in ours.bad_samples()}) == len(bad)
    finally:
        ours.close()
    assert calls


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("name", ["crop", "random crop", "slice"])
def test_files_are_skipped_before_windows(name: str, processes: int, tmp_path: Path, calls: list[int]) -> None:
    """The host rejects a file for any window, so the check does not need the windows."""
    # The windows of some end before the data do.
    bad = [mixed.jpeg(seed)[: len(mixed.jpeg(seed)) * 7 // 8] for seed in (1, 2)] + [
        mixed.jpeg(3, progressive=True)[:2500]
    ]
    bad += [mixed.damaged("no quantization tables"), mixed.damaged("text"), mixed.other("PNG", 1)[:-200]]
    good = [mixed.jpeg(0), mixed.other("PNG", 2), mixed.jpeg(4, progressive=True), mixed.jpeg(9, orientation=6)]
    good += [mixed.jpeg(seed) for seed in range(5, 10)]
    paths = mixed.write(tmp_path, [good[0], *bad, *good[1:]])
    options: dict[str, Any] = {"on_error": "skip"}
    ours = mixed.pipeline(paths, "mixed", mixed.OPERATORS[name], **options, processes=processes)
    theirs = mixed.pipeline(paths, "cpu", mixed.OPERATORS[name], **options)
    try:
        mixed.assert_same_batches(ours, theirs, 9)
        assert [str(sample) for sample in ours.bad_samples()] == [str(sample) for sample in theirs.bad_samples()]
        assert {sample.source for sample in ours.bad_samples()} == {*paths[1:7]}
    finally:
        ours.close()
    assert "decodes on the device" in ours.explain()
    assert calls


@pytest.mark.parametrize(
    ("name", "operator"),
    [("image", "image"), ("random crop", "image_random_crop"), ("crop", "image_crop"), ("slice", "image_slice")],
)
def test_errors_before_a_decoder_name_it(name: str, operator: str, tmp_path: Path, calls: list[int]) -> None:
    files = mixed.write(
        tmp_path, [mixed.damaged("no quantization tables"), *(mixed.jpeg(seed) for seed in range(mixed.BATCH))]
    )
    pipe = mixed.pipeline(files, "mixed", mixed.OPERATORS[name], on_error="skip")
    pipe.run()
    assert {sample.operator for sample in pipe.bad_samples()} == {f"fn.decoders.{operator}"}
    with pytest.raises(DecodeError, match=rf"^fn\.decoders\.{operator}: "):
        mixed.pipeline(files[:1], "mixed", mixed.OPERATORS[name], on_error="skip").run()
    assert calls

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def without_reader() -> Any:
        encoded = fn.external_source(source=lambda: [np.zeros(9, np.uint8)])
        given = {"shape": [1, 1]} if name == "slice" else {}
        return getattr(fn.decoders, operator)(encoded, device="mixed", on_error="skip", **given)

    with pytest.raises(GraphError, match=rf"^fn\.decoders\.{operator}: "):
        without_reader().build()


@pytest.mark.parametrize("name", ["crop", "slice"])
def test_windows_outside_of_images_are_errors_that_are_not_skipped(name: str, tmp_path: Path, calls: list[int]) -> None:
    def cropped(encoded: Any, device: str) -> Any:
        if name == "crop":
            return fn.decoders.image_crop(encoded, device=device, crop=[75, 90])
        return fn.decoders.image_slice(encoded, device=device, start=[0, 0], shape=[90, 75])

    paths = mixed.write(tmp_path, [mixed.damaged("text"), *(mixed.jpeg(seed) for seed in (1, 2, 3, 4, 5))])
    strings: list[str] = []
    for device in ("mixed", "cpu"):
        pipe = mixed.pipeline(paths, device, cropped, on_error="skip", prefetch_queue_depth=1)
        with pytest.raises(IndexingError) as caught:
            pipe.run()
        strings.append(str(caught.value))
        assert f"fn.decoders.image_{name}: " in strings[-1]
        assert "04.img" in strings[-1]
    assert strings[0] == strings[1]
    assert calls


def test_skipping_before_a_crop_that_is_fused_with_the_decoder(tmp_path: Path, calls: list[int]) -> None:
    files = mixed.write(
        tmp_path, [mixed.jpeg(0), mixed.damaged("no quantization tables"), *(mixed.jpeg(seed) for seed in range(2, 7))]
    )

    def cropped(encoded: Any, device: str) -> Any:
        return fn.random_resized_crop(fn.decoders.image(encoded, device=device), size=[24, 32])

    ours, theirs = (mixed.pipeline(files, device, cropped, on_error="skip") for device in ("mixed", "cpu"))
    for (images, labels), (expected, expected_labels) in zip(
        mixed.batches(ours, 3), mixed.batches(theirs, 3), strict=True
    ):
        assert labels == expected_labels
        for found, wanted in zip(images, expected, strict=True):
            assert np.abs(found.astype(float) - wanted).mean() < mixed.LARGEST_MEAN_ON_DEVICES
    assert [str(sample) for sample in ours.bad_samples()] == [str(sample) for sample in theirs.bad_samples()]
    assert "decodes on the device" in ours.explain()
    assert calls


def test_what_the_device_cannot_decode_is_decoded_on_the_host(
    many: list[str], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device's decoder returns None or an image with a wrong shape."""
    original = NvImageCodecDecoder.decode
    wrong = itertools.cycle([lambda image: None, lambda image: image[1:], lambda image: image])

    def decode(self: Any, *arguments: Any, **options: Any) -> list[Any]:
        return [change(image) for change, image in zip(wrong, original(self, *arguments, **options), strict=False)]

    monkeypatch.setattr(NvImageCodecDecoder, "decode", decode)
    for processors in (1, 4):
        monkeypatch.setattr(decode_on_device, "available_processors", lambda count=processors: count)
        ours, theirs = (mixed.pipeline(many, device, mixed.OPERATORS["image"]) for device in ("mixed", "cpu"))
        for (images, _), (expected, _) in zip(mixed.batches(ours, 3), mixed.batches(theirs, 3), strict=True):
            for found, wanted in zip(images, expected, strict=True):
                mixed.assert_same(found, wanted)


@pytest.mark.parametrize("name", mixed.OPERATORS)
def test_explain_counts_images_that_the_host_decoded(
    name: str, many: list[str], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = mixed.pipeline(many[4:12], "mixed", mixed.OPERATORS[name], prefetch_queue_depth=1)
    assert "decoded by the host" not in pipe.explain()
    pipe.run()  # five JPEG files, one of which is rotated
    rotated = int(name in ("crop", "random crop", "slice"))
    assert f": {rotated} of 5 images were decoded by the host\n" in pipe.explain() + "\n"
    original = NvImageCodecDecoder.decode
    monkeypatch.setattr(
        NvImageCodecDecoder, "decode", lambda *given, **options: [None, *original(*given, **options)[1:]]
    )
    pipe.run()  # a rotated JPEG file, a PNG and a BMP file, and two JPEG files again
    text = f": {2 * rotated + 3} of 10 images were decoded by the host; the device's decoder returned no image for 1"
    assert text in pipe.explain()


@pytest.mark.parametrize("failing", ["memory", "nvImageCodec"])
def test_pipeline_is_usable_after_a_failure_of_the_device(
    failing: str, many: list[str], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = mixed.pipeline(many, "mixed", mixed.OPERATORS["image"], prefetch_queue_depth=1)
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
            decoder = device_jpeg.open_decoder(device, HardwareDecoder())
            patch.setattr(decoder, "_decoder", Failing())
        with pytest.raises(DeviceError) as caught:
            pipe.run()
    text = str(caught.value)
    assert ("no memory left" if failing == "memory" else "nvImageCodec cannot decode on") in text
    assert "fn.decoders.image" in text
    assert "mixed_pipelines.py" in text
    assert "batch_size" in text
    assert len(pipe.run()[0]) == mixed.BATCH


def test_the_decoder_is_closed_with_the_last_pipeline(
    many: list[str], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    monkeypatch.setattr(device_jpeg, "_users", set())  # without those of other tests
    pipes = [mixed.pipeline(many, "mixed", mixed.OPERATORS[name]) for name in ("image", "options")]
    for pipe in pipes:
        pipe.run()
    assert device_jpeg._opened.cache_info().currsize >= 2
    pipes.pop().close()
    del pipe
    gc.collect()
    assert device_jpeg._opened.cache_info().currsize >= 2
    pipes.pop().close()
    gc.collect()
    assert device_jpeg._opened.cache_info().currsize == 0


# Rows and columns of the window in a decoder's arguments, and as slices.
WINDOWS: dict[str, tuple[dict[str, Any], Any]] = {
    "whole": ({}, np.s_[:, :]),
    "of one size": ({"crop": (40, 50), "crop_pos_x": 0.0, "crop_pos_y": 1.0}, np.s_[-40:, :50]),
    "of several sizes": ({"start": (5, 7), "rel_end": (1.0, 1.0), "axes": (0, 1)}, np.s_[5:, 7:]),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("output_type", [types.RGB, types.BGR, types.GRAY])
@pytest.mark.parametrize("are_of_one_size", [False, True])
def test_planes_of_torchvision_are_reordered_together(
    are_of_one_size: bool,
    output_type: types.DALIImageType,
    window: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It returns the planes of each image, and a launch for each would take more time than the decoding."""
    arguments, part = WINDOWS[window]
    names = {"whole": "image", "of one size": "image_crop", "of several sizes": "image_slice"}
    decoder = getattr(fn.decoders, names[window])

    def decoded(file: Any, mode: str) -> np.ndarray[Any, Any]:
        return simplejpeg.decode_jpeg(bytes(file), mode, fastdct=False, fastupsample=False)

    def decode_jpeg(sources: list[torch.Tensor], mode: str, device: str) -> list[torch.Tensor]:
        return [torch.from_numpy(decoded(source.numpy(), mode).transpose(2, 0, 1).copy()) for source in sources]

    fake = SimpleNamespace(decode_jpeg=decode_jpeg, ImageReadMode=SimpleNamespace(RGB="RGB", GRAY="GRAY"))
    monkeypatch.setattr(torchvision_jpeg, "require", lambda _package: fake)
    device_jpeg._why_not.cache_clear()
    device_jpeg._opened.cache_clear()
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "torchvision")
    paths = mixed.write(tmp_path, [mixed.jpeg(12 * seed if are_of_one_size else seed) for seed in range(14)])
    compute = StageRunner._run_on_batch
    modes: list[Launches] = []

    def counted(runner: StageRunner, iteration: Any, state: Any) -> None:
        modes.append(Launches())
        with modes[-1]:
            compute(runner, iteration, state)

    counts: list[int] = []
    for batch_size in (3, 14):

        @pipeline_def(batch_size=batch_size, num_threads=1, device_id=0, prefetch_queue_depth=1)
        def pipeline() -> Any:
            encoded, _ = fn.readers.file(files=paths)
            return decoder(encoded, device="mixed", output_type=output_type, **arguments)

        pipe = pipeline()
        pipe.build()
        with monkeypatch.context() as patch:
            patch.setattr(StageRunner, "_run_on_batch", counted)
            (images,) = pipe.run()
        counts.append(sum(len(mode.names) for mode in modes))
        modes.clear()
        for path, image in zip(paths, images, strict=False):
            expected = decoded(Path(path).read_bytes(), output_type.name)
            np.testing.assert_array_equal(np.asarray(image.as_cpu()), expected[part])
        assert f": 0 of {batch_size} images were decoded by the host" in pipe.explain()
    device_jpeg._why_not.cache_clear()
    device_jpeg._opened.cache_clear()
    assert counts[0] == counts[1]


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
    pipe = mixed.pipeline(many, "mixed", lambda encoded, device: fn.decoders.image(encoded, device=device, **arguments))
    text = pipe.explain()
    assert "decodes on the host" in text
    assert reason in text
    pipe.run()
    assert not calls


@pytest.mark.usefixtures("emulated_gpu")
def test_emulation_decodes_on_the_host(many: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALIFY_DEVICE_DECODER", raising=False)
    assert "decodes on the host (emulation" in mixed.pipeline(many, "mixed", mixed.OPERATORS["image"]).explain()
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "host")
    assert "DALIFY_DEVICE_DECODER selects the host" in mixed.pipeline(many, "mixed", mixed.OPERATORS["image"]).explain()
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "nvimgcodek")
    with pytest.raises(ArgumentValueError, match="Did you mean 'nvimgcodec'"):
        mixed.pipeline(many, "mixed", mixed.OPERATORS["image"]).build()


def test_explain_names_the_decoder(many: list[str], calls: list[int]) -> None:
    text = mixed.pipeline(many, "mixed", mixed.OPERATORS["image"]).explain()
    assert "decodes on the device (nvImageCodec)" in text
    assert "is copied to the GPU" not in text.replace("readers", "")
