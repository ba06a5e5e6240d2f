"""A decoder before a crop or resize decodes only a part, with the same result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError, DecodeError
from tests.helpers.built_graph import names_in, omit_passes

SIZE = [40, 56]


def both_ways(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Pipeline], decoder: str = "_decode_for_crop"
) -> tuple[Pipeline, Pipeline]:
    """Build one pipeline with the pass and one without it."""
    pushed = make()
    assert decoder in names_in(pushed)
    with monkeypatch.context() as patch:
        omit_passes(patch, "push_crop")
        plain = make()
        assert decoder not in names_in(plain)
    return pushed, plain


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"interp_type": types.INTERP_LANCZOS3},
        {"interp_type": types.INTERP_NN},
        {"antialias": False, "random_area": [0.01, 0.1]},
        {"dtype": types.FLOAT, "num_attempts": 1, "random_aspect_ratio": [0.2, 5.0]},
    ],
)
def test_same_pixels(photo_folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]) -> None:
    @pipeline_def(batch_size=8, num_threads=2, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.random_resized_crop(fn.decoders.image(encoded), size=SIZE, **arguments)

    pushed, plain = both_ways(monkeypatch, pipeline)
    for _ in range(4):
        np.testing.assert_array_equal(pushed.run()[0].as_array(), plain.run()[0].as_array())


@pytest.mark.parametrize(
    "arguments",
    [
        {"resize_shorter": 60, "crop": [40, 56]},
        {"resize_shorter": 60, "crop": [40, 56], "mirror": 3, "crop_pos_x": 0.0, "crop_pos_y": 1.0},
        {"size": [300, 500], "crop": [20, 30], "interp_type": types.INTERP_LANCZOS3},
        {"resize_longer": 50, "crop": [80, 90], "crop_pos_x": 0.2},  # larger than the image: the border is repeated
        {"size": [90, 90], "crop": [20, 20], "roi_start": [0.3, 1.2], "roi_end": [0.9, 0.1], "roi_relative": True},
        {"size": [90, 90], "crop": [9, 9], "roi_start": [-2.0, 1.5], "roi_end": [-1.0, 2.5], "roi_relative": True},
        {"size": [30, -40], "crop": [11, 12], "antialias": False, "interp_type": types.INTERP_CUBIC},
        {"resize_x": 77, "crop": [30, 30], "dtype": types.FLOAT, "interp_type": types.INTERP_NN},
        {"resize_shorter": 60},
    ],
)
@pytest.mark.parametrize("output_type", [types.RGB, types.GRAY])
def test_same_pixels_after_a_resize(
    photo_folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], output_type: types.DALIImageType
) -> None:
    @pipeline_def(batch_size=8, num_threads=2, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.resize_crop_mirror(fn.decoders.image(encoded, output_type=output_type), **arguments)

    pushed, plain = both_ways(monkeypatch, pipeline, "_decode_for_resize")
    for ours, whole in zip(pushed.run()[0], plain.run()[0], strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(whole))


def test_same_pixels_with_arguments_per_sample(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=8, num_threads=2, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        size = fn.random.uniform(range=[30, 90], shape=[2])
        position = fn.random.uniform(range=[0.0, 1.0])
        return fn.resize_crop_mirror(fn.decoders.image(encoded), size=size, crop=[20, 25], crop_pos_x=position)

    pushed, plain = both_ways(monkeypatch, pipeline, "_decode_for_resize")
    for _ in range(3):
        np.testing.assert_array_equal(pushed.run()[0].as_array(), plain.run()[0].as_array())


def test_validation(photo_folder: Path) -> None:
    """The crop becomes part of the resize, and the decoder omits pixels outside of it."""

    @pipeline_def(batch_size=8, num_threads=2, seed=5)
    def pipeline(is_whole: bool) -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        decoded = fn.decoders.image(encoded)
        images = fn.crop_mirror_normalize(fn.resize(decoded, resize_shorter=64), crop=[40, 56], mirror=1)
        return (images, decoded) if is_whole else images

    pushed, plain = pipeline(is_whole=False), pipeline(is_whole=True)
    assert "_decode_for_resize" in names_in(pushed)
    assert {"decoders.image", "_resize_crop_mirror_normalize"} <= names_in(plain)
    np.testing.assert_array_equal(pushed.run()[0].as_array(), plain.run()[0].as_array())


def test_an_impossible_crop_is_an_error_of_the_crop(photo_folder: Path) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        position = fn.external_source(lambda: np.array([0.5, 1.5], np.float32))
        images = fn.decoders.image(encoded)
        return fn.resize_crop_mirror(images, size=[30, 30], crop=[20, 20], crop_pos_x=position)

    with pytest.raises(ArgumentValueError, match=r"fn\.resize_crop_mirror: crop_pos_x must be in \[0, 1\]; got 1\.5"):
        pipeline().run()


def test_only_where_nothing_else_reads_the_image(photo_folder: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=1, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        images = fn.decoders.image(encoded)
        return fn.random_resized_crop(images, size=SIZE), images.shape()

    assert "_decode_for_crop" not in names_in(pipeline())


@pytest.mark.usefixtures("gpu")
def test_mixed(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "host")  # others round parts of images differently

    @pipeline_def(batch_size=4, num_threads=2, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.random_resized_crop(fn.decoders.image(encoded, device="mixed"), size=SIZE)

    pushed, plain = both_ways(monkeypatch, pipeline)
    found, wanted = (pipe.run()[0].as_cpu().as_array() for pipe in (pushed, plain))
    np.testing.assert_array_equal(found, wanted)


def test_errors_name_the_operator_that_the_user_wrote(tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8 not a picture")

    @pipeline_def(batch_size=1, num_threads=1)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(files=[str(tmp_path / "broken.jpg")])
        return fn.random_resized_crop(fn.decoders.image(encoded), size=SIZE)

    with pytest.raises(DecodeError) as caught:
        pipeline().run()
    assert str(caught.value).startswith("fn.decoders.image: ")
    assert "broken.jpg" in str(caught.value)
    assert "fn.random_resized_crop(fn.decoders.image(encoded), size=SIZE)" in str(caught.value)
