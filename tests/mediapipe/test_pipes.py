"""Pipes: creation, epochs, devices, and names in messages."""

from __future__ import annotations

import itertools
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dalify.base.errors import ArgumentValueError
from dalify.mediapipe import MediaPipe, fn, media_types
from dalify.mediapipe.media_types import dtype as dt
from dalify.mediapipe.media_types import imgtype, layout, readerOutType
from dalify.mediapipe.operators.reader_nodes.reader_nodes import media_ext_reader_op_impl


class Pipe(MediaPipe):
    """Photographs in their order; what its constructor gets is MediaPipe's."""

    folder: str

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.input = fn.ReadImageDatasetFromDir(dir=self.folder, shuffle=False, label_dtype="uint32")

    def definegraph(self) -> Any:
        files, labels = self.input()
        return fn.ImageDecoder(resize=[8, 6], output_format=imgtype.RGB_I)(files), labels


@pytest.fixture(autouse=True)
def folder(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pipe, "folder", str(photo_folder), raising=False)


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (("cpu", 3, 4, 2, "name"), {}),
        (("cpu", 3, 4, "name"), {}),
        (("cpu", 3, 4, 3, 224, 224, "name"), {"layout": layout.NHWC}),
        (("cpu", 3, 4, 3, 224, 224, "name", layout.NHWC), {}),
        ((), {"device": "cpu", "prefetch_depth": 3, "batch_size": 4, "num_threads": 2, "pipe_name": "name"}),
        ((), {"device": "cpu", "queue_depth": 3, "batch_size": 4, "pipe_name": "name"}),
    ],
    ids=["new", "old", "very old", "very old, layout", "names", "old names"],
)
def test_constructors(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    pipe = Pipe(*args, **options)
    assert (pipe.device, pipe.pipe_name, pipe.getBatchSize()) == ("cpu", "name", 4)
    assert pipe.as_pipeline().max_batch_size == 4
    assert [len(labels) for _, labels in pipe] == [4, 4, 4]


def test_defaults() -> None:
    pipe = Pipe()
    assert (pipe.device, pipe.getBatchSize(), pipe.pipe_name) == ("cpu", 1, None)


def test_epochs() -> None:
    pipe = Pipe("cpu", 2, 5)
    pipe.build()
    pipe.build()  # no effect
    assert len(pipe) == 3
    for _ in range(2):
        pipe.iter_init()
        labels = [pipe.run()[1].as_nparray().tolist() for _ in range(3)]
        assert list(itertools.chain(*labels))[:12] == [0] * 4 + [1] * 4 + [2] * 4
        for _ in range(2):
            with pytest.raises(StopIteration):
                pipe.run()
    pipe.iter_init()
    first = pipe.run()[1].as_nparray().tolist()
    pipe.iter_init()  # in the middle of an epoch
    assert pipe.run()[1].as_nparray().tolist() == first
    pipe.close()
    pipe.close()


def test_repeats() -> None:
    pipe = Pipe("cpu", 2, 6)
    pipe.set_repeat_count(3)
    assert len(list(pipe)) == 6
    assert len(list(pipe)) == 6


def test_pipes_whose_constructor_failed_can_be_deleted() -> None:
    class Unfinished(MediaPipe):
        def __init__(self) -> None:
            raise RuntimeError

        def __del__(self) -> None:
            super().__del__()

    with pytest.raises(RuntimeError):
        Unfinished()
    Unfinished.__new__(Unfinished).__del__()


def test_types_are_strings() -> None:
    assert np.zeros(2, dtype=dt.UINT32).dtype == np.uint32
    assert dt.FLOAT32 == "float32"
    assert Pipe("cpu", 1, 2).run()[1].dtype == dt.UINT32


def test_long_chains_are_translated_without_recursion() -> None:
    count = sys.getrecursionlimit()

    class Pipe(MediaPipe):
        def definegraph(self) -> Any:
            node = one = fn.Constant(constant=1.0)()
            for _ in range(count):
                node = fn.Add()(node, one)
            return node

    output = Pipe(device="cpu", batch_size=2, num_threads=1).run()[0]
    np.testing.assert_array_equal(output.as_cpu().as_nparray(), count + 1)


def test_constants() -> None:
    """The members that programs and documents use, with their documented values."""
    filters = [media_types.ftype.LANCZOS, media_types.ftype.NEAREST, media_types.ftype.BI_LINEAR]
    assert [*filters, media_types.ftype.BICUBIC, media_types.ftype.BOX] == [1, 2, 3, 4, 6]
    assert (layout.NHWC, layout.NCHW, layout.FHWC, layout.NA) == ("CWHN", "WHCN", "CWHC", "")
    for kind, names in {
        "ftype": "LINEAR SPLINE",
        "imgtype": "RGB_I RGB_P",
        "randomCropType": "NO_RANDOM_CROP CENTER_CROP RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP",
        "decoderStage": "ENABLE_ALL_STAGES",
        "readerOutType": "FILE_LIST BUFFER_LIST",
        "clipSampler": "RANDOM_SAMPLER",
        "MetadataOps": "crop flip encode",
        "dtype": "INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 FLOAT16 BFLOAT16 FLOAT32 NDT",
    }.items():
        assert set(names.split()) <= set(vars(getattr(media_types, kind)))


@pytest.mark.parametrize("device", ["mixed", "legacy", "hpu", "hpu:0", "gaudi2", "Gaudi3", "gpu", "cuda:0", "auto"])
def test_devices(device: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv("DALIFY_DEVICE", raising=False)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    caplog.set_level(logging.INFO, "dalify.mediapipe")
    images, _ = Pipe(device, 1, 2).run()
    assert images.device == "cpu"
    lines = [record.getMessage() for record in caplog.records if record.name == "dalify.mediapipe"]
    assert lines == [f"no accelerator on this machine: the pipe of device {device!r} runs on the CPU"]
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    images, labels = Pipe(device, 1, 2).run()
    assert (images.device, labels.device) == ("hpu", "cpu")


def test_where_operators_run_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    text = Pipe("mixed", 1, 2).explain()
    assert re.search(r"decoders\.image.* is copied to the GPU", text)


def test_readers_may_be_local_classes(photo_list: list[tuple[Path, int]]) -> None:
    paths = [path for path, _ in photo_list]

    class Contents(media_ext_reader_op_impl):
        """Its second argument is the batch size; closures need no pickling."""

        def __init__(self, params: dict[str, Any], fw_params: Any) -> None:
            self.size = fw_params.batch_size

        def __iter__(self) -> Iterator[Any]:
            for place in range(0, len(paths), self.size):
                numbers = np.arange(place, place + self.size)
                yield [np.frombuffer(paths[number].read_bytes(), np.uint8) for number in numbers], numbers

        def __next__(self) -> Any:
            raise StopIteration

        def __len__(self) -> int:
            return len(paths) // self.size

        def get_media_output_type(self) -> int:
            return readerOutType.BUFFER_LIST

    class Contained(Pipe):
        def definegraph(self) -> Any:
            files, numbers = fn.MediaExtReaderOp(impl=Contents, num_outputs=2)()
            return fn.ImageDecoder(resize=[8, 6], output_format=imgtype.RGB_I)(files), numbers

    for (images, numbers), (expected, _) in zip(Contained("cpu", 2, 4), Pipe("cpu", 2, 4), strict=True):
        np.testing.assert_array_equal(images.as_nparray(), expected.as_nparray())
        assert numbers.as_nparray().tolist()[0] % 4 == 0


def test_messages_name_operator_argument_value_and_line() -> None:
    class Wrong(Pipe):
        def definegraph(self) -> Any:
            return fn.ImageDecoder(resize=[8, 8], resampling_mode=77)(self.input()[0])

    with pytest.raises(ArgumentValueError) as caught:
        Wrong("cpu", 1, 2).build()
    for text in (
        "mediapipe.fn.ImageDecoder",
        "resampling_mode",
        "77",
        "test_pipes.py",
        "fn.ImageDecoder(resize=[8, 8]",
    ):
        assert text in str(caught.value)
