"""Iterators over pipes: the last batch, the order of results, their memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, PipelineStateError
from dalify.mediapipe import MediaPipe, fn
from dalify.mediapipe.media_types import dtype as dt
from dalify.mediapipe.media_types import imgtype
from dalify.mediapipe.plugins.iterator_pytorch import HPUSsdPytorchIterator, ResnetPytorchIterator
from tests.mediapipe.programs import CocoPipe
from tests.mediapipe.test_programs import coco

__all__ = ["coco"]


class Pipe(MediaPipe):
    def __init__(self, folder: Path) -> None:
        super().__init__("cpu", 2, 5)
        self.folder = folder

    def definegraph(self) -> Any:
        reader = fn.ReadImageDatasetFromDir(dir=str(self.folder), shuffle=False, label_dtype=dt.UINT32)
        files, labels = reader()
        return fn.ImageDecoder(resize=[8, 6], output_format=imgtype.RGB_I)(files), labels


@pytest.mark.parametrize(("last_batch", "sizes"), [("pad", [5, 5, 5]), ("partial", [5, 5, 2])])
def test_the_last_batch(photo_folder: Path, last_batch: str, sizes: list[int]) -> None:
    iterator = ResnetPytorchIterator(Pipe(photo_folder), last_batch=last_batch)
    for _ in range(2):
        batches = list(iterator)
        assert [len(images) for images, _ in batches] == [len(labels) for _, labels in batches] == sizes
        assert batches[0][0].shape == (5, 6, 8, 3)
        assert batches[0][1].dtype == torch.int64
    assert len(iterator) == 3


def test_batches_keep_their_values(photo_folder: Path) -> None:
    batches, copies = [], []
    for images, _ in ResnetPytorchIterator(Pipe(photo_folder)):
        batches.append(images)
        copies.append(images.clone())
    assert all(torch.equal(batch, copy) for batch, copy in zip(batches, copies, strict=True))


def test_an_epoch_can_be_left(photo_folder: Path) -> None:
    iterator = ResnetPytorchIterator(Pipe(photo_folder))
    first = next(iter(iterator))[0]
    assert torch.equal(next(iter(iterator))[0], first)
    assert len(list(iterator)) == 3


def test_ssd(photo_folder: Path, coco: Path) -> None:
    iterator = HPUSsdPytorchIterator(mediapipe=CocoPipe(str(photo_folder), str(coco), 2))
    images, ids, (heights, widths), boxes, labels = next(iter(iterator))
    assert images.shape == (2, 3, 40, 40)
    assert ids.tolist() == [100, 102]
    assert heights.dtype == widths.dtype == labels.dtype == torch.int64
    assert boxes.shape == (2, 200, 4)


def test_other_packages_take_outputs(photo_folder: Path) -> None:
    images, _ = Pipe(photo_folder).run()
    array = images.as_cpu().as_nparray()
    np.testing.assert_array_equal(np.asarray(images), array)
    np.testing.assert_array_equal(np.from_dlpack(images), array)
    assert (len(images), images.dtype, images.device) == (5, "uint8", "cpu")
    assert "shape=(5, 6, 8, 3)" in repr(images)


def test_mistakes(photo_folder: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="must be a MediaPipe"):
        ResnetPytorchIterator(mediapipe=None)
    with pytest.raises(ArgumentValueError, match="partial"):
        ResnetPytorchIterator(Pipe(photo_folder), last_batch="half")
    with pytest.raises(ArgumentValueError, match="needs a pipe with images, ids, sizes, boxes and labels; it has 2"):
        next(HPUSsdPytorchIterator(mediapipe=Pipe(photo_folder)))
    iterator = ResnetPytorchIterator(Pipe(photo_folder))
    with pytest.raises(PipelineStateError, match="no tensor at this address"):
        iterator.proxy_device.get_tensor(1)
    pipe = Pipe(photo_folder)
    pipe.build()
    pipe.close()
    with pytest.raises(PipelineStateError, match="closed"):
        pipe.run()
