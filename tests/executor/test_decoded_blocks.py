"""Samples that are decoded separately are stored in one block, which is not overwritten."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base.errors import DecodeError

RANDOM = np.random.default_rng(0)
SHAPES = {"uniform": [(9, 7, 3)] * 4, "ragged": [(9, 7, 3), (9, 8, 3), (1, 1, 3), (30, 2, 3)]}


def random_images(shapes):
    return [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]


def encoded(image):
    return cv2.imencode(".png", image[..., ::-1])[1].reshape(-1)


@pipeline_def(batch_size=4, num_threads=3, device_id=None)
def decoding(source, is_divided=False):
    files = fn.external_source(source=source)
    images = fn.decoders.image(files)
    if is_divided and fn.shapes(files)[0] % 2 == 0:  # some samples belong to a branch
        images = fn.decoders.image(files)
    return images, fn.crop(images, crop=[1, 1])


@pytest.mark.parametrize("is_divided", [False, True])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_results_are_kept(shapes, is_divided):
    batches = [random_images(shapes) for _ in range(5)]
    with decoding(iter([list(map(encoded, batch)) for batch in batches]), is_divided) as pipe:
        results = [pipe.run() for _ in batches]
    for (images, corners), batch in zip(results, batches, strict=True):
        for number, image in enumerate(batch):
            np.testing.assert_array_equal(images.as_cpu().at(number), image)
            height, width, _ = image.shape
            row, column = int(0.5 * (height - 1) + 0.5), int(0.5 * (width - 1) + 0.5)
            np.testing.assert_array_equal(corners.as_cpu().at(number)[0, 0], image[row, column])


def test_the_bad_one_is_named():
    files = list(map(encoded, random_images(SHAPES["ragged"])))
    files[2] = files[2][:40]
    with decoding(lambda: files) as pipe, pytest.raises(DecodeError) as caught:
        pipe.run()
    assert caught.value.sample == 2
