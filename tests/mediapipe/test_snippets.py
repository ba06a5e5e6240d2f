"""Program 9: a snippet for every operator, as in the pages of its documentation, on the CPU and for an accelerator.

What the numbers have to be is the matter of other tests; here they have to be there, and the same in both places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify.mediapipe import MediaPipe, fn
from dalify.mediapipe.media_types import MetadataOps, ftype, imgtype, randomCropType
from dalify.mediapipe.media_types import dtype as dt
from dalify.mediapipe.operators.cpu_nodes.cpu_nodes import media_ext_cpu_op_impl, media_function
from dalify.mediapipe.operators.reader_nodes.reader_nodes import media_ext_reader_op_impl
from tests.helpers.videos import write_video
from tests.mediapipe.test_programs import coco

__all__ = ["coco"]

BATCH = 2
# The table of section "operators" of docs/mediapipe.md; a reader that a test registers is none of them.
NAMES = """
    Add BasicCrop BitwiseAnd BitwiseOr BitwiseXor Brightness Cast Clamp CocoReader CoinFlip ColorSpaceConversion
    Concat Constant Contrast Crop CropMirrorNorm CropWindowGen ExtCpuOp Flip Gather GatherND GaussianBlur Hue
    ImageDecoder MediaConst MediaExtReaderOp MediaFunc MemCpy Mult Neg Normalize Pad RandomBiasedCrop RandomFlip
    RandomNormal RandomUniform ReadImageDatasetFromDir ReadNumpyDatasetFromDir ReadVideoDatasetFromDir ReduceMax
    ReduceMin Reshape Resize SSDBBoxFlip SSDCropWindowGen SSDEncode SSDMetadata Saturation Slice Split Sub Transpose
    VideoDecoder Where Zoom
""".split()  # noqa: SIM905 -- sixty names read better so


class Half(media_function):
    def __call__(self, *inputs: np.ndarray) -> np.ndarray:
        return (inputs[0] // 2).astype(np.uint8)


class Pair(media_ext_cpu_op_impl):
    def __call__(self, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return inputs[0], inputs[0][:, :1]


class Files(media_ext_reader_op_impl):
    def __init__(self, params: dict[str, Any]) -> None:
        self.files = params["priv_params"]

    def __iter__(self) -> Iterator[Any]:
        for place in range(0, len(self.files), BATCH):
            yield [self.files[place : place + BATCH]]

    def __next__(self) -> Any:
        raise StopIteration

    def __len__(self) -> int:
        return len(self.files) // BATCH


class Snippets:
    """What the operators are tried with.

    Args:
        device: of each operator.
        photos: class folders.
        annotations: of COCO's form, for them.
        folder: with videos in class folders, and volumes.
    """

    def __init__(self, device: str, photos: Path, annotations: Path, folder: Path) -> None:
        self.device, self.photos, self.annotations, self.folder = device, str(photos), str(annotations), folder

    def op(self, name: str, **arguments: Any) -> Any:
        return getattr(fn, name)(device=self.device, **arguments)

    def files(self) -> Any:
        return self.op("ReadImageDatasetFromDir", dir=self.photos, shuffle=False, format="JPEG")()

    def image(self) -> Any:
        decode = self.op("ImageDecoder", output_format=imgtype.RGB_P, resize=[16, 12], resampling_mode=ftype.LINEAR)
        return decode(self.files()[0])

    def number(self, value: float, dtype: str = dt.FLOAT32) -> Any:
        return self.op("Constant", constant=value, dtype=dtype)()

    def video(self) -> Any:
        return self.op("ReadVideoDatasetFromDir", dir=str(self.folder / "films"), frames_per_clip=2, shuffle=False)()

    def volumes(self) -> Any:
        return self.op(
            "ReadNumpyDatasetFromDir", dir=str(self.folder), pattern=["x_*.npy", "y_*.npy"], num_outputs=2,
            dtype=[dt.FLOAT32, dt.UINT8], shuffle=False,
        )()  # fmt: skip

    def boxes(self) -> Any:
        return self.op("CocoReader", root=self.photos, annfile=self.annotations, shuffle=False)()

    def constant(self, values: Any, dtype: str) -> Any:
        array = np.asarray(values)
        return self.op("MediaConst", data=array, shape=list(array.shape[::-1]), dtype=dtype)()

    def make(self, name: str) -> Any:
        op: Callable[..., Any] = self.op
        match name:
            case "Add" | "Sub" | "Mult" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor":
                return op(name, dtype=dt.INT32)(self.image(), self.constant([[[3]], [[5]], [[9]]], dt.INT32))
            case "Neg" | "Cast":
                return op(name, dtype=dt.INT32)(self.image())
            case "Clamp":
                return op(name, lowerBound=20.0, upperBound=99.0)(self.image())
            case "Concat":
                return op(name, axis=2)(self.image(), self.image())
            case "Split":
                return op(name, axis=0, num_outputs=2)(self.image())
            case "Slice":
                return op(name, axes=[0, 1], starts=[2, 1], ends=[7, 9])(self.image())
            case "Where":
                return op(name)(self.image(), self.image(), op("Neg", dtype=dt.UINT8)(self.image()))
            case "Gather":
                return op(name, axis=2)(self.image(), self.constant([2, 0], dt.INT32))
            case "GatherND":
                return op(name)(self.image(), self.constant([[2, 0, 1], [0, 3, 4]], dt.INT32))
            case "ReduceMin" | "ReduceMax":
                return op(name, reductionDimension=1)(self.image())
            case "Reshape":
                return op(name, size=[16, 36, BATCH], layout="CWN", tensorDim=3)(self.image())
            case "Transpose":
                return op(name, permutation=[2, 0, 1, 3], tensorDim=4)(self.image())
            case "MemCpy":
                return op(name)(self.image())
            case "Constant":
                return self.number(3, dt.INT16)
            case "MediaConst":
                return self.constant([[1, 2, 3]], dt.INT16)
            case "CoinFlip":
                return op(name, seed=3)(self.number(0.5))
            case "RandomUniform":
                return op(name, low=1.0, high=2.0, seed=3)()
            case "RandomNormal":
                return op(name, mean=1.0, seed=3, shape=[4, BATCH])(self.number(0.1))
            case "MediaFunc":
                return op(name, func=Half, shape=[16, 12, 3, BATCH], dtype=dt.UINT8)(self.image())
            case "ExtCpuOp":
                return op(name, impl=Pair, num_outputs=2)(self.image())
            case "MediaExtReaderOp":
                paths = sorted(str(path) for path in Path(self.photos).glob("*/*.jpg"))
                return op("ImageDecoder", resize=[8, 8])(op(name, impl=Files, num_outputs=1, priv_params=paths)())
            case "ReadImageDatasetFromDir":
                return self.files()[1]
            case "ReadNumpyDatasetFromDir":
                return self.volumes()
            case "ReadVideoDatasetFromDir":
                return self.video()[1:]
            case "CocoReader":
                return self.boxes()[1:]
            case "ImageDecoder":
                middle = randomCropType.CENTER_CROP
                return op(name, resize=[16, 12], random_crop_type=middle, resampling_mode=ftype.BICUBIC)(
                    self.files()[0]
                )
            case "CropWindowGen":
                files, _ = self.files()
                window = op(name, resize_width=12, resize_height=10, seed=3)(files)
                return op("ImageDecoder", resize=[12, 10])(files, window), window
            case "VideoDecoder":
                files, _, frames, first = self.video()
                return op(name, resize=[16, 12], frames_per_clip=2, max_frame_vid=2)(files, frames, first)
            case "Crop":
                return op(name, crop_w=10, crop_h=8, crop_pos_x=0.5, crop_pos_y=1.0)(self.image())
            case "CropMirrorNorm":
                mean, factor = (self.constant([[[value]]] * 3, dt.FLOAT32) for value in (100.0, 0.01))
                return op(name, mirror=1, crop_w=8, crop_h=8, dtype=dt.FLOAT32)(self.image(), mean, factor)
            case "RandomFlip":
                flips = op("CoinFlip", seed=3)(self.number(0.5))
                return op(name, horizontal=1)(self.image(), flips)
            case "Flip":
                return op(name, vertical=1)(self.image())
            case "Brightness":
                return op(name, brightness_scale=1.2)(self.image())
            case "Contrast":
                return op(name, contrast_scale=0.7)(self.image())
            case "Saturation":
                return op(name, saturation_level=0.4)(self.image())
            case "Hue":
                return op(name, degree=20.0)(self.image())
            case "ColorSpaceConversion":
                return op(name, colorSpaceMode=1)(self.image())
            case "Resize":
                return op(name, mode=1, scaleDim1=2.0, scaleDim2=0.5)(self.image())
            case "Normalize":
                return op(name, scale=2.0, shift=1.0, axis=3)(op("Cast", dtype=dt.FLOAT32)(self.image()))
            case "Pad":
                return op(name, pads=[1, 0, 0, 0, 0, 2, 0, 0, 0, 0], value=7.0)(self.image())
            case "GaussianBlur":
                return op(name)(self.volumes()[0], op("RandomUniform", low=0.5, high=1.5, seed=2)())
            case "Zoom":
                return op(name, patch_size=[6, 5, 4])(*self.volumes(), self.constant([3, 4, 5], dt.INT32))
            case "BasicCrop":
                return op(name, patch_size=[4, 4, 2], num_channels=1, center_crop=True)(self.volumes()[0])
            case "RandomBiasedCrop":
                return op(name, patch_size=[4, 4, 2], over_sampling=0.4, seed=1)(*self.volumes())
            case "SSDCropWindowGen":
                _, _, sizes, boxes, labels, lengths, _ = self.boxes()
                return op(name, seed=1)(sizes, boxes, labels, lengths)
            case "SSDBBoxFlip":
                _, _, _, boxes, _, lengths, _ = self.boxes()
                return op(name)(op("CoinFlip", seed=3)(self.number(0.5)), boxes, lengths)
            case "SSDEncode":
                return op(name)(*self.boxes()[3:6])
            case "SSDMetadata":
                return op(name, workers=1, serialize=[MetadataOps.crop, MetadataOps.encode], seed=1)(*self.boxes()[1:6])
        raise AssertionError(name)


class Pipe(MediaPipe):
    def __init__(self, snippets: Snippets, name: str, device: str, num_threads: int = 1, seed: int = 1) -> None:
        super().__init__(device, 2, BATCH, num_threads, name, seed=seed)
        self.snippets, self.name = snippets, name

    def definegraph(self) -> Any:
        return self.snippets.make(self.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Videos in class folders, and volumes."""
    folder = tmp_path_factory.mktemp("snippets")
    draw = np.random.default_rng(0)
    for number in range(2):
        (folder / "films" / str(number)).mkdir(parents=True)
        write_video(folder / "films" / str(number) / "film.mp4", "mpeg4", count=4, size=(24, 32))
        np.save(folder / f"x_{number}.npy", draw.normal(size=(1, 5, 6, 7)).astype(np.float32))
        np.save(folder / f"y_{number}.npy", draw.integers(0, 3, (1, 5, 6, 7)).astype(np.uint8))
    return folder


def test_all_operators_have_a_snippet() -> None:
    assert set(NAMES) == {name for name in fn.OPERATORS if not name.endswith("Reader") or name == "CocoReader"}


@pytest.mark.parametrize("name", NAMES)
def test_snippet(name: str, photo_folder: Path, coco: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def outputs(op_device: str, device: str) -> list[np.ndarray]:
        with Pipe(Snippets(op_device, photo_folder, coco, folder), name, device) as pipe:
            return [output.as_cpu().as_nparray() for output in pipe.run()]

    on_cpu = outputs("cpu", "cpu")
    assert all(array.size for array in on_cpu)
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")  # torch's CPU device emulates the accelerator
    for found, expected in zip(outputs("hpu", "mixed"), on_cpu, strict=True):
        assert found.dtype == expected.dtype
        if name in ("Resize", "Normalize"):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 if found.dtype == np.float32 else 1)
        else:
            # A decoder and its resize may round a level the other way, and factors make more of that.
            np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-5, atol=2)


@pytest.mark.parametrize("name", [name for name in NAMES if "seed" in fn.OPERATORS[name].operator.parameters])
def test_draws_depend_only_on_the_seed(name: str, photo_folder: Path, coco: Path, folder: Path) -> None:
    """The random numbers of an operator with a seed do not depend on the number of threads and the seed of the pipe."""

    def outputs(num_threads: int, seed: int) -> list[np.ndarray]:
        with Pipe(Snippets("cpu", photo_folder, coco, folder), name, "cpu", num_threads, seed) as pipe:
            return [output.as_nparray() for output in pipe.run()]

    for found, expected in zip(outputs(4, 1), outputs(1, 2), strict=True):
        np.testing.assert_array_equal(found, expected)
