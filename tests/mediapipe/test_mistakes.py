"""Errors of MediaPipe's operators and pipes, and their messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DalifyError,
    DTypeError,
    GraphError,
    LayoutError,
    PipelineStateError,
    ReaderError,
    ShapeError,
    SourceError,
    UnknownArgumentError,
    UnknownOperatorError,
)
from dalify.mediapipe import MediaPipe, fn
from dalify.mediapipe.media_types import dtype as dt
from dalify.mediapipe.media_types import ftype, imgtype, readerOutType
from dalify.mediapipe.operators.cpu_nodes.cpu_nodes import media_function
from dalify.mediapipe.operators.reader_nodes.reader_nodes import (
    media_ext_reader_op_impl,
    media_ext_reader_op_tensor_info,
)
from tests.helpers.messages import own_text
from tests.mediapipe.graphs import BATCH, FLOATS, IMAGES, PLANES, SCALES, Graph, given, run


def normalized(**options: Any) -> Any:
    one = fn.Constant(constant=1.0)
    return fn.CropMirrorNorm(**options)(given(IMAGES, "CWHN"), one(), one())


def part(axes: list[int], starts: list[int], ends: list[int]) -> Any:
    return fn.Slice(axes=axes, starts=starts, ends=ends)(given(IMAGES, "CWHN"))


class TooShort(media_function):
    def __call__(self, *inputs: np.ndarray) -> np.ndarray:
        return np.zeros(BATCH - 1)


class Planes(media_function):
    def __call__(self, *inputs: np.ndarray) -> np.ndarray:
        return np.zeros((BATCH, 5, 4))


class Files(media_ext_reader_op_impl):
    def __iter__(self) -> Files:
        self.batches = iter([([b"content"] * BATCH, np.zeros(BATCH))])
        return self

    def __next__(self) -> Any:
        return next(self.batches)

    def __len__(self) -> int:
        return 1

    def get_media_output_type(self) -> int:
        return readerOutType.BUFFER_LIST

    def gen_output_info(self) -> Any:
        return [media_ext_reader_op_tensor_info(kind, [BATCH]) for kind in (dt.UINT8, dt.FLOAT32)]


class Unknown(Files):
    def get_media_output_type(self) -> int:
        return 7


IMAGE = {"output_format": imgtype.RGB_P, "resize": [8, 8]}


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: fn.Reshapes(size=[1]), UnknownOperatorError, "no operator 'Reshapes'. Did you mean 'Reshape'"),
        (lambda: fn.Nothing(), UnknownOperatorError, "Available: Add, "),
        (lambda: fn.ExtHpuOp(), UnknownOperatorError, "fn.ExtCpuOp and fn.MediaFunc"),
        (lambda: fn.Crop(crop_width=3), UnknownArgumentError, "no argument 'crop_width'.*Available: crop_w"),
        (lambda: fn.Crop(3), ArgumentTypeError, "keyword arguments only"),
        (lambda: fn.Cast(), ArgumentTypeError, "needs the argument 'dtype'"),
        (lambda: fn.Crop()(), ArgumentTypeError, r"takes 1 input \(images\); got 0"),
        (lambda: fn.CropMirrorNorm()(given(IMAGES)), ArgumentTypeError, r"3 inputs \(images, mean, inv_std\); got 1"),
        (lambda: fn.SSDMetadata()(), ArgumentTypeError, "takes 5 to 6 inputs; got 0"),
        (lambda: fn.Crop()(IMAGES), ArgumentTypeError, "result of another operator; got ndarray"),
        (lambda: fn.Cast(dtype="float8")(given(FLOATS)), ArgumentValueError, "bfloat16"),
        (lambda: fn.Flip()(given(IMAGES, "CWHN")), ArgumentValueError, "one of horizontal"),
        (lambda: fn.Flip(horizontal=2)(given(IMAGES, "CWHN")), ArgumentValueError, "0 or 1"),
        (lambda: fn.Brightness()(given(FLOATS)), DalifyError, "an image is required"),
        (lambda: fn.Transpose(permutation=[1, 0])(given(SCALES)), ArgumentValueError, "batch last"),
        (lambda: fn.Reshape(size=[1, 5])(given(SCALES)), ShapeError, "end with the batch size 3"),
        (lambda: fn.ImageDecoder(**IMAGE)(given(FLOATS)), DalifyError, "paths or files"),
        (lambda: fn.Pad(pads=[1, 2])(given(PLANES, "WHCN")), ArgumentValueError, "pads"),
        (lambda: fn.Resize(mode=5)(given(PLANES, "WHCN")), ArgumentValueError, "nearest"),
        (lambda: fn.ColorSpaceConversion(colorSpaceMode=4)(given(PLANES, "WHCN")), ArgumentValueError, "RGB to BGR"),
        (lambda: fn.MediaConst(data=[1, 2], shape=[3], dtype=dt.INT8)(), ShapeError, "2 elements"),
        (lambda: fn.CoinFlip()(fn.Constant(constant=1.5)()), ArgumentValueError, r"in \[0, 1\]; got 1.5"),
        (lambda: fn.MediaFunc(func=TooShort, shape=[BATCH], dtype=dt.INT8)(), SourceError, "batch of 3.*counts sam"),
        (
            lambda: fn.MediaFunc(func=Planes, shape=[4, 5, BATCH + 1], dtype=dt.INT8)(),
            SourceError,
            r"with shape \(3, 5, 4\); the declared shape is \(4, 5, 4\)",
        ),
        (
            lambda: fn.MediaFunc(func=Planes, shape=[5, 4, BATCH], dtype=dt.INT8)(),
            SourceError,
            r"with shape \(5, 4\); the declared shape is \(4, 5\).*reverse order.*shape=\[4, 5, 3\]",
        ),
        (lambda: fn.ReadImageDatasetFromDir()(), ArgumentValueError, "specify dir or file_list"),
        (lambda: fn.ReadImageDatasetFromDir(dir="/nowhere")(), ReaderError, "/nowhere"),
        (lambda: fn.CocoReader(root=".", annfile="/nowhere.json")(), ReaderError, "nowhere"),
        (lambda: fn.ReadNumpyDatasetFromDir(file_list=["a.txt"])(), ReaderError, "numpy.save"),
        (lambda: fn.Split(axis=3, num_outputs=2)(given(PLANES, "WHCN"))[0], ArgumentValueError, r"in \[0, 2\]; got 3"),
        (lambda: fn.Gather()(given(FLOATS), given(SCALES)), ShapeError, "needs data with a layout"),
        (lambda: fn.Clamp(lowerBound=5)(given(FLOATS)), ArgumentValueError, "above upperBound=0"),
        (lambda: fn.Concat(axis=-1)(given(FLOATS), given(FLOATS)), ArgumentValueError, "not a dimension of a sample"),
        (lambda: fn.Normalize()(given(FLOATS)), ShapeError, "fn.Normalize needs data with a layout"),
        (lambda: fn.Pad(pads=[])(given(FLOATS)), ShapeError, "fn.Pad needs data with a layout"),
        (
            lambda: fn.Crop(crop_w=0, crop_h=2)(given(IMAGES, "CWHN")),
            ArgumentValueError,
            "or all of them 0; got crop_w=0",
        ),
        (
            lambda: fn.Crop(crop_w=2, crop_h=2, crop_d=3)(given(IMAGES, "CWHN")),
            ArgumentValueError,
            "is only for volumes",
        ),
        (lambda: normalized(mirror=3), ArgumentValueError, "mirror must be 0 or 1; got 3"),
        (lambda: normalized(crop_h=3), ArgumentValueError, "got crop_w=0, crop_h=3"),
        (
            lambda: fn.Resize(scaleDim1=0.0)(given(IMAGES, "CWHN")),
            ArgumentValueError,
            "must be positive; got 0.0 and 1.0",
        ),
        (lambda: part([0, 1], [0], [1]), ArgumentValueError, "must have the same length; got 2, 1 and 1"),
        (lambda: fn.Gather()(given(IMAGES, "CWHN"), given(SCALES)), DTypeError, "needs integer indices; got float32"),
        (lambda: fn.GatherND()(given(IMAGES, "CWHN"), given(FLOATS)), DTypeError, "needs integer indices; got float32"),
        (
            lambda: fn.GatherND()(given(IMAGES, "CWHN"), given(np.zeros((BATCH, 2, 9), np.int32))),
            ShapeError,
            r"tuples of 1 to 3 integers; got shape \(2, 9\)",
        ),
        (lambda: fn.Cast(dtype=dt.INT8, round_mode=1)(given(FLOATS)), ArgumentValueError, "use 0"),
        (
            lambda: fn.Slice(axes=[0], starts=[0], ends=[2], steps=[2])(given(IMAGES, "CWHN")),
            ArgumentValueError,
            "must be 1",
        ),
        (lambda: fn.ColorSpaceConversion()(given(FLOATS)), LayoutError, "needs images"),
        (lambda: fn.CropWindowGen(type=3)(given(FLOATS)), ArgumentValueError, "RANDOMIZED_ASPECT_RATIO_CROP; got 3"),
        (lambda: fn.Resize(scaleDim3=2.0)(given(IMAGES, "CWHN")), ArgumentValueError, "use fn.Zoom"),
        (lambda: fn.Normalize(batch=True)(given(IMAGES, "CWHN")), ArgumentValueError, "normalized separately"),
        (lambda: fn.Normalize(axis=9)(given(IMAGES, "CWHN")), ArgumentValueError, "of the 3 dimensions; got 0b1001"),
        (lambda: fn.Pad(pads=[1] * 6, mode=9)(given(IMAGES, "CWHN")), ArgumentValueError, "symmetric.; got 9"),
        (lambda: fn.MediaConst(data=[1], shape=[1], batch_broadcast=False)(), ShapeError, "end with the batch size 3"),
        (lambda: fn.RandomUniform(shape=[2, 2])(), ShapeError, "end with the batch size 3"),
        (lambda: fn.BasicCrop(patch_size=[1, 1, 1])(given(IMAGES, "CWHN")), LayoutError, "CDHW are required; got lay"),
        (lambda: fn.ReadImageDatasetFromDir(file_list=["a"])(), ArgumentValueError, "needs file_classes"),
        (
            lambda: fn.ReadImageDatasetFromDir(file_list=["a"], file_classes=["x"], class_list=["y"])(),
            ArgumentValueError,
            "'x' of file_classes is not in class_list",
        ),
        (
            lambda: fn.ReadImageDatasetFromDir(file_list=["a"], file_classes=["x"], drop_remainder=True)(),
            ReaderError,
            "1 items, fewer than a batch of 3",
        ),
        (
            lambda: fn.ReadNumpyDatasetFromDir(file_list=["a.npy"], dtype=["int8", "int8"])(),
            ArgumentValueError,
            "2 entries for 1 output",
        ),
        (lambda: fn.ReadNumpyDatasetFromDir()(), ArgumentValueError, "specify dir and pattern"),
        (
            lambda: fn.ReadNumpyDatasetFromDir(num_outputs=2, file_list=["a.npy"])(),
            ArgumentValueError,
            "need 2 lists or patterns of files; got 1",
        ),
        (
            lambda: fn.ReadNumpyDatasetFromDir(num_outputs=2, file_list=[["a.npy"], ["b.npy", "c.npy"]])(),
            ReaderError,
            r"same positive number of files; found \[1, 2\]",
        ),
        (
            lambda: fn.MediaExtReaderOp(impl=Files, num_outputs=3)(),
            ArgumentValueError,
            "returns 2 results, but num_outp",
        ),
        (lambda: fn.MediaExtReaderOp(impl=Unknown)(), ArgumentValueError, "BUFFER_LIST; got 7"),
        (lambda: fn.MediaExtReaderOp(impl=5)(), ArgumentTypeError, "a class with the method __iter__; got 5"),
        (lambda: fn.MediaExtReaderOp(impl=lambda x: 5)(), ArgumentTypeError, "the method __iter__; got <func"),
        (lambda: fn.ExtCpuOp(impl=lambda x: x)(given(FLOATS)), ArgumentTypeError, "the method __call__; got <func"),
        (lambda: fn.ExtCpuOp(impl=5)(given(FLOATS)), ArgumentTypeError, "the method __call__; got 5"),
        (lambda: 3, ArgumentTypeError, "must return a node"),
        (lambda: (), ArgumentTypeError, "got tuple of nothing"),
        (lambda: (given(FLOATS), (given(FLOATS),)), ArgumentTypeError, "got tuple of Node, tuple"),
    ],
)
def test_mistakes_are_reported(make: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        run(make)
    assert re.search(f"(?s){text}", own_text(caught.value))
    assert re.search(r"(test_mistakes|graphs)\.py:\d+ in", str(caught.value))


def test_mistakes_that_show_in_a_run_name_the_line() -> None:
    def make() -> Any:
        images = given(IMAGES, "CWHN")
        return fn.Crop(crop_w=50, crop_h=50)(images)  # larger than the images

    with pytest.raises(DalifyError, match=r"(?s)a crop window of 50 x 50 does not fit.*# larger than the images"):
        run(make)


def test_options_of_decoders_are_listed(photo_folder: Path) -> None:
    def make(**options: Any) -> Any:
        files, _ = fn.ReadImageDatasetFromDir(dir=str(photo_folder))()
        return fn.ImageDecoder(**{**IMAGE, **options})(files)

    for options, text in (
        ({"resampling_mode": ftype.BOX}, "ftype.BICUBIC"),
        ({"output_format": "bgr"}, "imgtype.RGB_P"),
        ({"random_crop_type": 9}, "CENTER_CROP"),
        ({"resize": [3]}, "2 positive numbers"),
        ({"resize": 8}, "2 positive numbers; got 8"),
        ({"crop_after_resize": [1, 2, 3]}, "4 numbers of at least 0"),
    ):
        with pytest.raises(ArgumentValueError, match=text):
            run(lambda options=options: make(**options))
    with pytest.raises(ArgumentValueError, match="num_slices - 1"):
        run(lambda: fn.ReadImageDatasetFromDir(dir=str(photo_folder), num_slices=2, slice_index=2)()[1])
    with pytest.raises(ArgumentValueError, match="at least 1"):
        run(lambda: fn.ReadImageDatasetFromDir(dir=str(photo_folder), num_slices=0)()[1])


def test_errors_of_users_classes_name_the_operator() -> None:
    class WithoutParameters:
        pass

    with pytest.raises(TypeError, match="takes no arguments") as caught:
        run(lambda: fn.MediaExtReaderOp(impl=WithoutParameters)())
    assert "in mediapipe.fn.MediaExtReaderOp at" in caught.value.__notes__[0]


def test_mistakes_around_pipes(photo_folder: Path) -> None:
    with pytest.raises(ArgumentValueError, match="hpu"):
        MediaPipe(device="tpu")
    with pytest.raises(ArgumentValueError, match="prefetch_depth"):
        MediaPipe(prefetch_depth=-1)
    with pytest.raises(ArgumentValueError, match="batch_size"):
        MediaPipe(batch_size=0)
    with pytest.raises(ArgumentValueError, match="on_error must be one of raise, replace"):
        MediaPipe(on_error="skip")
    with pytest.raises(ArgumentValueError, match="repeat count"):
        MediaPipe().set_repeat_count("two")  # pyright: ignore[reportArgumentType]
    with pytest.raises(GraphError, match="does not define definegraph"):
        MediaPipe().build()

    class Forgetful(MediaPipe):
        def __init__(self) -> None:
            pass

    with pytest.raises(PipelineStateError, match=r"super\(\).__init__"):
        Forgetful().build()
    with pytest.raises(PipelineStateError, match="no reader"):
        len(Graph(lambda: fn.Constant(constant=1)()))
    with pytest.raises(ArgumentValueError, match="repeat count"):
        Graph(lambda: None).set_repeat_count(0)
    with pytest.raises(GraphError, match="cannot be unpacked"):
        run(lambda: tuple(fn.Constant(constant=1)()))


def test_errors_name_operators_of_mediapipe() -> None:
    """Also errors of the operators to which their calls are translated."""

    def images() -> Any:
        files, _ = fn.MediaExtReaderOp(impl=Files, num_outputs=2)()
        return fn.ImageDecoder(**IMAGE)(files)

    with pytest.raises(DalifyError, match="known image format") as caught:
        run(images)
    assert str(caught.value).startswith("mediapipe.fn.ImageDecoder: ")


def test_the_line_of_definegraph() -> None:
    class Empty(MediaPipe):
        def definegraph(self) -> Any:
            pass

    pipe = Empty(device="cpu", batch_size=BATCH)
    with pytest.raises(ArgumentTypeError, match=r"(?s)got NoneType.*in definegraph\(\)\s+def definegraph\(self\)"):
        pipe.build()
