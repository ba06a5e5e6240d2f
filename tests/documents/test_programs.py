"""Programs that were published for DALI run with the import root changed, and have their described results."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from tests.documents import programs_002, programs_004
from tests.helpers.photos import write_photo_folder

# The programs are old, and so are the names that they use; one test below looks at the warnings.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def emulated_accelerator(monkeypatch: pytest.MonkeyPatch, photo_folder: Path) -> None:
    """Emulate GPU 0, which the programs select, on torch's CPU device."""
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
    monkeypatch.setattr(programs_002, "image_dir", str(photo_folder))
    monkeypatch.setattr(programs_004, "image_dir", str(photo_folder))


@pytest.fixture
def imagenet_folder(tmp_path: Path) -> Path:
    """`train` and `val`, each with class folders."""
    write_photo_folder(tmp_path / "train", images_per_class=5, longest_side=90)
    write_photo_folder(tmp_path / "val", images_per_class=3, longest_side=90)
    return tmp_path


def on_the_real_dali(module: types.ModuleType) -> types.ModuleType:
    """The same program text with DALI's import root."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8").replace("dalify", "nvidia.dali")
    twin = types.ModuleType(module.__name__ + "_dali")
    exec(compile(text, str(module.__file__), "exec"), twin.__dict__)
    twin.image_dir = module.image_dir
    return twin


def _reader_in_order(reader: Callable[..., Any], *, file_root: str, **_: Any) -> Any:
    return reader(file_root=file_root)


def test_simple_pipeline_reads_in_order(photo_list: list[tuple[Path, int]]) -> None:
    pipe = programs_004.SimplePipeline(8, 1, 0)
    pipe.build()
    images, labels = pipe.run()
    assert not images.is_dense_tensor()
    assert labels.is_dense_tensor()
    labels_tensor = labels.as_tensor()
    assert list(labels_tensor.shape()) == [8, 1]
    assert np.array(labels_tensor).ravel().tolist() == [label for _, label in photo_list[:8]]
    for index, (path, _) in enumerate(photo_list[:8]):
        with Image.open(path) as photo:
            expected = np.asarray(photo.convert("RGB")).astype(int)
        assert images.at(index).shape == expected.shape
        # Decoders may round differently in the color conversion.
        assert np.abs(images.at(index) - expected).max() <= 4


@pytest.mark.usefixtures("oracle")
def test_simple_pipeline_equals_dali() -> None:
    ours, theirs = programs_004.SimplePipeline(8, 1, None), on_the_real_dali(programs_004).SimplePipeline(8, 1, None)
    for pipe in (ours, theirs):
        pipe.build()
    (images, labels), (expected_images, expected_labels) = ours.run(), theirs.run()
    assert np.array_equal(labels.as_array(), expected_labels.as_array())
    for index in range(8):
        assert np.abs(images.at(index).astype(int) - expected_images.at(index)).max() <= 1


def test_shuffled_pipeline_gives_every_photo_once(photo_list: list[tuple[Path, int]]) -> None:
    pipe = programs_004.ShuffledSimplePipeline(len(photo_list), 2, 0)
    pipe.build()
    images, labels = pipe.run()
    found = np.array(labels.as_tensor()).ravel().tolist()
    assert sorted(found) == sorted(label for _, label in photo_list)
    assert found != sorted(found)
    shapes = sorted(images.at(index).shape for index in range(len(photo_list)))
    expected = []
    for path, _ in photo_list:
        with Image.open(path) as photo:
            expected.append((photo.height, photo.width, 3))
    assert shapes == sorted(expected)


def test_show_images_draws_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plt, "show", lambda: None)  # there may be no screen
    monkeypatch.setattr(plt, "figure", lambda figsize, figure=plt.figure: figure(figsize=(4, 2)))
    pipe = programs_004.SimplePipeline(8, 1, 0)
    pipe.build()
    images, _ = pipe.run()
    programs_004.show_images(images)
    assert sum(len(axes.images) for axes in plt.gcf().axes) == 8
    plt.close("all")


@pytest.mark.parametrize(
    "program",
    [
        programs_004.RotatedSimplePipeline,
        programs_004.RandomRotatedSimplePipeline,
        programs_004.RandomRotatedGPUPipeline,
    ],
)
def test_rotated_pipelines_enlarge_the_canvas(program: type, photo_list: list[tuple[Path, int]]) -> None:
    pipe = program(len(photo_list), 2, 0)
    pipe.build()
    images, _ = pipe.run()
    if program is programs_004.RandomRotatedGPUPipeline:
        assert type(images).__name__ == "TensorListGPU"
        images = images.as_cpu()
    areas = sorted(np.prod(images.at(index).shape[:2]) for index in range(len(photo_list)))
    original = []
    for path, _ in photo_list:
        with Image.open(path) as photo:
            original.append(photo.height * photo.width)
    assert all(rotated >= plain for rotated, plain in zip(areas, sorted(original), strict=True))
    assert sum(areas) > sum(original)


@pytest.mark.usefixtures("oracle")
def test_rotated_pipeline_equals_dali(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = on_the_real_dali(programs_004)
    pipes = []
    for module in (programs_004, twin):
        # The order of a shuffle differs between the libraries; everything else is compared.
        in_order = partial(_reader_in_order, module.ops.FileReader)
        monkeypatch.setattr(module.ops, "FileReader", in_order)
        pipe = module.RotatedSimplePipeline(6, 1, None)
        pipe.build()
        pipes.append(pipe)
    (images, _), (expected, _) = (pipe.run() for pipe in pipes)
    for index in range(6):
        assert images.at(index).shape == expected.at(index).shape
        # One level of the decoder, one of the interpolation.
        assert np.abs(images.at(index).astype(int) - expected.at(index)).max() <= 2


def test_hybrid_pipeline_decodes_to_the_accelerator() -> None:
    pipe = programs_004.HybridPipeline(8, 1, 0)
    pipe.build()
    images, _ = pipe.run()
    assert type(images).__name__ == "TensorListGPU"
    assert images.as_cpu().at(0).shape[2] == 3


@pytest.mark.parametrize("program", [programs_004.ShuffledSimplePipeline, programs_004.HybridPipeline])
def test_speed_test_prints_a_speed(program: type, capsys: pytest.CaptureFixture[str]) -> None:
    programs_004.speedtest(program, 4, 2)
    match = re.fullmatch(r"Speed: (\S+) imgs/s\n", capsys.readouterr().out)
    assert match is not None
    assert float(match[1]) > 0


@pytest.mark.filterwarnings("ignore:size does not take shards")  # DALI, too, would rather have it name the reader
@pytest.mark.parametrize(("kind", "photos"), [("train", 15), ("val", 9)])
def test_imagenet_iterator(kind: str, photos: int, imagenet_folder: Path) -> None:
    loader = programs_004.get_imagenet_iter_dali(
        type=kind,
        image_dir=str(imagenet_folder),
        batch_size=4,
        num_threads=2,
        crop=64,
        device_id=0,
        num_gpus=1,
        val_size=72,
    )
    batches = 0
    labels_seen = []
    for _, data in enumerate(loader):
        images = data[0]["data"]
        labels = data[0]["label"].squeeze().long()
        assert images.shape == (4, 3, 64, 64)
        assert images.dtype.is_floating_point
        assert abs(float(images.mean())) < 3  # normalized: not 0 to 255 any more
        labels_seen += labels.tolist()
        batches += 1
    assert batches == -(-photos // 4)
    assert set(labels_seen) == {0, 1, 2}


def test_slides_pipeline_resizes_on_the_accelerator() -> None:
    pipe = programs_002.SimplePipeline(4, 1, 0)
    pipe.build()
    images, labels = pipe.run()
    assert images.as_cpu().as_array().shape == (4, 224, 224, 3)
    assert np.array(labels.as_tensor()).ravel().tolist() == [0, 0, 0, 0]


def test_slides_detection_pipeline_mirrors_boxes_with_images(photo_list: list[tuple[Path, int]]) -> None:
    box = np.array([[0.1, 0.2, 0.4, 0.6]], np.float32)
    pipe = programs_002.DetectionPipeline(8, 2, None, lambda info: box)
    pipe.build()
    images, boxes, labels = pipe.run()
    assert np.array(labels.as_tensor()).ravel().tolist() == [label for _, label in photo_list[:8]]
    horizontal, vertical = [0.6, 0.2, 0.9, 0.6], [0.1, 0.4, 0.4, 0.8]
    both = [horizontal[0], vertical[1], horizontal[2], vertical[3]]
    for index in range(8):
        assert any(np.allclose(boxes.at(index)[0], one) for one in (box[0], horizontal, vertical, both))
        assert images.at(index).shape[2] == 3


def test_slides_take_first() -> None:
    pipe = programs_002.TakeFirst(2, 1, None, lambda info: np.arange(12).reshape(3, 4) + info.idx_in_epoch)
    pipe.build()
    first, _ = pipe.run()
    assert first.as_array().tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]


def test_old_names_name_their_replacement() -> None:
    with pytest.warns(DeprecationWarning, match=r"ops\.decoders\.Image"):
        programs_002.SimplePipeline(2, 1, 0).build()
    with pytest.warns(DeprecationWarning, match=r"ops\.readers\.File"):
        programs_004.SimplePipeline(2, 1, 0).build()
