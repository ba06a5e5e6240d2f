"""The programs of `programs.py`, their numbers compared with Pillow's and plain pipelines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
import torch
from PIL import Image

from dalify import fn, pipeline_def
from dalify.mediapipe.plugins.iterator_pytorch import (
    CPUHPUResnetPytorchIterator,
    CPUHPUUnet3DPytorchIterator,
    HPUGenericPytorchIterator,
    HPUResnetPytorchIterator,
)
from tests.mediapipe import programs
from tests.mediapipe.programs import INVERSE_STD, MEAN

Files = list[tuple[Path, int]]
# The programs use an accelerator if there is one; its resize may round differently by one of 255 levels.
LEVELS = 1 if os.environ.get("DALIFY_DEVICE") or torch.accelerator.is_available() else 0


def decoded(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


def resized(paths: list[Path], size: list[int], **options: object) -> np.ndarray:
    """What a plain pipeline makes of the files: [N, H, W, 3]."""

    @pipeline_def(batch_size=len(paths), num_threads=1)
    def plain():
        encoded, _ = fn.readers.file(files=[str(path) for path in paths])
        return fn.resize(fn.decoders.image(encoded), size=size, **options)

    return np.asarray(plain().run()[0].as_tensor())


def normalized(images: np.ndarray) -> np.ndarray:
    return ((images.astype(np.float64) - MEAN) * INVERSE_STD).transpose(0, 3, 1, 2)


def test_resnet_evaluation(photo_folder: Path, photo_list: Files) -> None:
    pipe = programs.ResnetPipe(str(photo_folder), is_training=False, batch_size=5, shuffle=False)
    batches = list(HPUResnetPytorchIterator(mediapipe=pipe))
    assert [images.shape for images, _ in batches] == [(5, 3, 24, 24)] * 3
    assert len(HPUResnetPytorchIterator(mediapipe=pipe)) == 3
    labels = torch.cat([labels for _, labels in batches])
    assert labels.dtype == torch.int64
    assert labels[:12].tolist() == [label for _, label in photo_list]
    expected = normalized(resized([path for path, _ in photo_list], [30, 30])[:, 3:27, 3:27])
    np.testing.assert_allclose(torch.cat([images for images, _ in batches])[:12], expected, atol=1e-4 + 0.02 * LEVELS)


def test_resnet_evaluation_is_close_to_pillow(photo_folder: Path, photo_list: Files) -> None:
    pipe = programs.ResnetPipe(str(photo_folder), is_training=False, batch_size=4, shuffle=False, device="cpu")
    images, _ = next(iter(HPUResnetPytorchIterator(mediapipe=pipe)))
    for image, (path, _) in zip(images.numpy(), photo_list[:4], strict=True):
        small = np.asarray(Image.fromarray(decoded(path)).resize((30, 30), Image.Resampling.BILINEAR))
        difference = np.abs(image - normalized(small[None, 3:27, 3:27])[0]) / INVERSE_STD.reshape(3, 1, 1)
        assert difference.max() < 3  # of 255


def test_resnet_training(photo_folder: Path) -> None:
    def epochs(instance: int) -> list[tuple[np.ndarray, np.ndarray]]:
        pipe = programs.ResnetPipe(
            str(photo_folder),
            is_training=True,
            batch_size=2,
            shuffle=True,
            num_instances=2,
            instance_id=instance,
        )
        iterator = HPUResnetPytorchIterator(mediapipe=pipe)
        return [(images.numpy(), labels.numpy()) for _ in range(2) for images, labels in iterator]

    first, again, other = epochs(0), epochs(0), epochs(1)
    assert len(first) == len(other) == 6
    for (images, labels), (same, same_labels) in zip(first, again, strict=True):
        np.testing.assert_array_equal(images, same)
        np.testing.assert_array_equal(labels, same_labels)
        assert images.dtype == np.float32
        assert images.shape == (2, 3, 24, 24)
    # Each label occurs four times in the folder: both shards together return all of them in each epoch.
    for epoch in (slice(3), slice(3, 6)):
        seen = np.concatenate([labels for _, labels in [*first[epoch], *other[epoch]]])
        assert sorted(seen.tolist()) == [0] * 4 + [1] * 4 + [2] * 4
    assert not np.array_equal(first[0][0], first[3][0])


def test_new_resnet(photo_folder: Path, photo_list: Files) -> None:
    pipe = programs.NewResnetPipe(str(photo_folder), 6)
    pipe.build()
    pipe.iter_init()
    images, labels, windows, flips = (output.as_cpu().as_nparray() for output in pipe.run())
    assert labels.dtype == np.int32
    assert labels.tolist() == [label for _, label in photo_list[:6]]
    for index, (path, _) in enumerate(photo_list[:6]):
        image = decoded(path)
        height, width = image.shape[:2]
        x, y, w, h = np.rint(windows[index] * [width, height, width, height]).astype(int)
        part = Image.fromarray(image[y : y + h, x : x + w]).resize((24, 24), Image.Resampling.BILINEAR)
        expected = normalized(np.asarray(part)[None])[0]
        expected = expected[..., ::-1] if flips[index] else expected
        difference = np.abs(images[index] - expected) / INVERSE_STD.reshape(3, 1, 1)
        assert np.quantile(difference, 0.99) < 3  # at its border a part is decoded with other colors than the whole
    assert set(flips.tolist()) <= {0, 1}
    iterator = CPUHPUResnetPytorchIterator(mediapipe=pipe)
    assert [batch[1].dtype for batch in iterator] == [torch.int64] * 2


def test_tensorflow(photo_folder: Path, photo_list: Files) -> None:
    pipe = programs.TensorFlowPipe(str(photo_folder), 4)
    pipe.build()
    runs = [pipe.run() for _ in range(7)]  # an epoch has three batches, and the count of repeats has no end
    images = runs[0][0]
    assert images.shape == (4, 24, 24, 3)
    assert images.fcd_shape == (3, 24, 24, 4)
    assert images.dtype == "bfloat16"
    assert images.torch().dtype == torch.bfloat16
    expected = []
    for path, _ in photo_list[:4]:
        small = resized([path], [32, 32], mode="not_smaller")[0]
        top, left = ((extent - 32) / 2 for extent in small.shape[:2])
        middle = small[int(top + 0.5) : int(top + 0.5) + 32, int(left + 0.5) : int(left + 0.5) + 32]
        expected.append(middle[4:28, 4:28].astype(np.float32) - MEAN)
    rounded = torch.tensor(np.stack(expected)).bfloat16().float().numpy()
    np.testing.assert_allclose(images.torch().float().cpu().numpy(), rounded, rtol=0, atol=LEVELS)
    np.testing.assert_array_equal(runs[0][0].as_cpu().as_nparray(), runs[3][0].as_cpu().as_nparray())
    np.testing.assert_array_equal(runs[6][1].as_cpu().as_nparray(), runs[0][1].as_cpu().as_nparray())


@pytest.fixture
def coco(photo_folder: Path, photo_list: Files, tmp_path: Path) -> Path:
    """Annotations of five images, one without boxes."""
    images = []
    for index, (path, _) in enumerate(photo_list[:5]):
        height, width = decoded(path).shape[:2]
        name = str(path.relative_to(photo_folder))
        images.append({"id": 100 + index, "file_name": name, "height": height, "width": width})
    boxes = [
        {"id": 1, "image_id": 100, "category_id": 7, "bbox": [1, 2, 10, 20]},
        {"id": 2, "image_id": 100, "category_id": 90, "bbox": [3, 4, 5, 6]},
        {"id": 3, "image_id": 102, "category_id": 7, "bbox": [0, 0, 30, 30]},
        {"id": 4, "image_id": 103, "category_id": 90, "bbox": [9, 9, 9, 9]},
        {"id": 5, "image_id": 104, "category_id": 7, "bbox": [5.5, 5, 7, 8]},
    ]
    categories = [{"id": 90, "name": "b"}, {"id": 7, "name": "a"}]
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    return path


def test_coco(photo_folder: Path, photo_list: Files, coco: Path) -> None:
    pipe = programs.CocoPipe(str(photo_folder), str(coco), 3)
    assert pipe.pipe_name == "coco"
    first, last = list(programs.CocoIterator(mediapipe=pipe))
    assert first[1].tolist() == [100, 102, 103]
    assert last[1].tolist() == [104]
    assert first[0].shape == last[0].shape == (3, 3, 40, 40)
    height, width = decoded(photo_list[0][0]).shape[:2]
    corners = np.array([[1, 2, 11, 22], [3, 4, 8, 10], [0, 0, 0, 0]])
    np.testing.assert_allclose(first[2][0, :3] * [width, height, width, height], corners, rtol=1e-6)
    expected = resized([photo_list[index][0] for index in (0, 2, 3)], [40, 40])[..., ::-1].transpose(0, 3, 1, 2)
    np.testing.assert_allclose(first[0].cpu().numpy(), expected, rtol=0, atol=LEVELS)
    pipe.iter_init()
    outputs = [output.as_cpu().as_nparray() for output in pipe.run()]
    assert outputs[4].shape == (3, 200)
    assert outputs[4][0, :3].tolist() == [2, 1, 0]
    assert outputs[5].tolist() == [2, 1, 1]
    assert outputs[6].tolist() == [3]
    assert outputs[2].tolist() == [list(decoded(photo_list[index][0]).shape[:2]) for index in (0, 2, 3)]


class EpochSampler(list):
    def set_epoch(self, epoch: int) -> None:
        self[:] = np.random.default_rng(epoch).permutation(len(self)).tolist()


def test_clip(photo_list: Files) -> None:
    dataset = [
        (str(path), np.full(5, index, np.int32), np.full((3, 2), index / 2, np.float32))
        for index, (path, _) in enumerate(photo_list)
    ]
    pipe = programs.ClipPipe(dataset, EpochSampler(range(12)), 4)
    iterator = HPUGenericPytorchIterator(mediapipe=pipe)
    assert len(iterator) == 3
    epochs = [list(iterator) for _ in range(2)]
    for epoch, batches in enumerate(epochs):
        order = np.random.default_rng(epoch).permutation(12)
        tokens = torch.cat([batch[1] for batch in batches])
        assert tokens.shape == (12, 5)
        assert tokens[:, 0].tolist() == order.tolist()
        assert torch.cat([batch[2] for batch in batches])[:, 2, 1].tolist() == (order / 2).tolist()
    index = int(epochs[0][0][1][0, 0])
    image = Image.fromarray(decoded(photo_list[index][0]))
    scale = 24 / min(image.size)
    size = tuple(round(extent * scale) for extent in image.size)
    small = np.asarray(image.resize(size, Image.Resampling.BICUBIC))
    top, left = (int((extent - 24) / 2 + 0.5) for extent in small.shape[:2])
    expected = normalized(small[None, top : top + 24, left : left + 24])[0]
    difference = np.abs(epochs[0][0][0][0].numpy() - expected) / INVERSE_STD.reshape(3, 1, 1)
    assert np.quantile(difference, 0.95) < 4


@pytest.fixture
def volumes(tmp_path: Path) -> tuple[list[str], list[str]]:
    random = np.random.default_rng(0)
    images, labels = [], []
    for index, shape in enumerate([(12, 14, 13), (10, 16, 12), (9, 12, 11)]):
        label = np.zeros((1, *shape), np.uint8)
        label[0, 2:6, 3:9, 4:8] = 1 + index % 2
        image = random.normal(size=(1, *shape)).astype(np.float32)
        for kind, array, names in (("x", image, images), ("y", label, labels)):
            np.save(tmp_path / f"{kind}_{index}.npy", array)
            names.append(str(tmp_path / f"{kind}_{index}.npy"))
    return images, labels


def test_unet_validation(volumes: tuple[list[str], list[str]]) -> None:
    pipe = programs.UnetPipe(*volumes, 1, is_training=False)
    found = list(CPUHPUUnet3DPytorchIterator(mediapipe=pipe))
    for (image, label), image_file, label_file in zip(found, *volumes, strict=True):
        np.testing.assert_array_equal(image[0].numpy(), np.load(image_file))
        np.testing.assert_array_equal(label[0].numpy(), np.load(label_file))


def test_unet_training(volumes: tuple[list[str], list[str]]) -> None:
    pipe = programs.UnetPipe(*volumes, 3, is_training=True)
    (image, label), *_ = list(CPUHPUUnet3DPytorchIterator(mediapipe=pipe))
    assert image.shape == label.shape == (3, 1, 6, 10, 8)
    assert image.dtype == torch.float32
    assert label.dtype == torch.uint8
    assert torch.isfinite(image).all()
    assert set(label.unique().tolist()) <= {0, 1, 2}


def test_queue(photo_list: Files) -> None:
    queue: SimpleQueue[list[bytes] | None] = SimpleQueue()
    paths = [path for path, _ in photo_list]
    for count, height, width in ((3, 20, 30), (2, 16, 16)):
        chosen = paths[:count]
        queue.put([path.read_bytes() for path in chosen])
        queue.put(None)
        pipe = programs.QueuePipe(queue, count, height, width)
        pipe.build()
        pipe.iter_init()
        (images,) = pipe.run()
        expected = resized(chosen, [height, width]).transpose(0, 3, 1, 2)
        np.testing.assert_array_equal(images.as_cpu().as_nparray(), expected)
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.close()
        pipe.close()


def test_an_accelerator_is_used_where_there_is_one(
    photo_folder: Path, photo_list: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")  # torch's CPU device emulates it
    pipe = programs.ResnetPipe(str(photo_folder), is_training=False, batch_size=4, shuffle=False)
    pipe.build()
    images, labels = pipe.run()
    assert images.device == "hpu"
    assert labels.device == "cpu"
    expected = normalized(resized([path for path, _ in photo_list[:4]], [30, 30])[:, 3:27, 3:27])
    np.testing.assert_allclose(images.as_cpu().as_nparray(), expected, atol=0.05)
