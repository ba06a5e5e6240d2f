"""If passes join two operators, an error names the call that it belongs to."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import ArgumentValueError, DalifyError, IndexingError, LimitError, ShapeError
from dalify.pipeline.pipeline import parts_of
from tests.passes.test_push_crop_into_resize import names_in

BATCH_SIZE = 24
BAD = 17  # position of the bad sample in the batch
JOINED = {
    "_color_twist_normalize",
    "_crop_resize",
    "_decode_for_crop",
    "_decode_for_resize",
    "_random_resized_crop_normalize",
    "_resize_crop_mirror_normalize",
    "_resize_twist_normalize",
}


def varying(good: Any, bad: Any) -> Any:
    samples = [np.array(bad if position == BAD else good, np.float32) for position in range(BATCH_SIZE)]
    return fn.external_source(source=lambda: samples)


def joined_pipeline(device: str, images: Callable[[], Any], resize: Callable[[Any], Any], normalize: Any) -> Pipeline:
    @pipeline_def(batch_size=BATCH_SIZE, num_threads=3, device_id=None if device == "cpu" else 0)
    def pipeline() -> Any:
        pixels = images()
        resized = resize(pixels.gpu() if device == "gpu" else pixels)
        return normalize(resized)

    return pipeline()


def arrays(height: int = 40) -> Any:
    samples = [np.zeros((height if position == BAD else 40, 50 + position, 3), np.uint8) for position in range(24)]
    return fn.external_source(source=lambda: samples, layout="HWC", dtype=types.UINT8, ndim=3)


def without_pixels() -> Any:
    return arrays(0)


def normalized(image: Any) -> Any:
    return fn.crop_mirror_normalize(image, mean=[1.0], std=[2.0])


def normalized_by_varying_means(image: Any) -> Any:
    return fn.crop_mirror_normalize(image, mean=varying([1.0], [1.0, 2.0]))


def cropped_outside(image: Any) -> Any:
    return fn.crop_mirror_normalize(image, crop=[32, 32], crop_pos_x=1.5)


def resized(image: Any) -> Any:
    return fn.resize(image, size=[50, 50])


def resized_to_nan(image: Any) -> Any:
    return fn.resize(image, size=varying([50, 50], [50, np.nan]))


def resized_to_huge(image: Any) -> Any:
    return fn.resize(image, size=varying([50, 50], [50, 1e9]))


def resized_to_pairs(image: Any) -> Any:
    return fn.resize(image, resize_x=varying([50, 50], [50, 50]))


def cropped_beyond(image: Any) -> Any:
    return fn.resize_crop_mirror(image, size=[50, 50], crop=[32, 32], crop_pos_x=varying(0.5, 1.5))


def cropped_at_nan(image: Any) -> Any:
    return fn.resize_crop_mirror(image, size=varying([50, 50], [np.nan, 50]), crop=[32, 32])


def randomly_cropped(image: Any) -> Any:
    return fn.random_resized_crop(image, size=[20, 20])


CASES = [
    (arrays, resized_to_nan, normalized, ArgumentValueError, "fn.resize", BAD),
    (arrays, resized_to_huge, normalized, LimitError, "fn.resize", BAD),
    (arrays, resized_to_pairs, normalized, ShapeError, "fn.resize", None),
    (arrays, resized, cropped_outside, ArgumentValueError, "fn.crop_mirror_normalize", 0),
    (arrays, cropped_beyond, normalized, ArgumentValueError, "fn.resize_crop_mirror", BAD),
    (arrays, cropped_at_nan, normalized, ArgumentValueError, "fn.resize_crop_mirror", BAD),
    (arrays, randomly_cropped, normalized_by_varying_means, ShapeError, "fn.crop_mirror_normalize", BAD),
    (arrays, cropped_beyond, normalized_by_varying_means, ArgumentValueError, "fn.resize_crop_mirror", BAD),
    (without_pixels, randomly_cropped, normalized, ShapeError, "fn.random_resized_crop", BAD),
]


def check(pipe: Pipeline, kind: type[DalifyError], operator: str, sample: int | None) -> None:
    assert names_in(pipe) & JOINED
    for _ in range(2):  # the pipeline can be used afterwards
        with pytest.raises(kind) as caught:
            pipe.run()
        error = caught.value
        assert error.operator == operator
        assert error.line is not None
        assert f"{operator}(" in linecache.getline(error.line.filename, error.line.line)
        # Chunks may be computed in any order, and without a sample each is wrong.
        assert sample is None or error.sample == sample


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(("images", "resize", "normalize", "kind", "operator", "sample"), CASES)
@pytest.mark.usefixtures("gpu")
def test_the_call_with_the_wrong_argument_is_named(
    device: str,
    images: Callable[[], Any],
    resize: Callable[[Any], Any],
    normalize: Callable[[Any], Any],
    kind: type[DalifyError],
    operator: str,
    sample: int | None,
) -> None:
    check(joined_pipeline(device, images, resize, normalize), kind, operator, sample)


def cropped(image: Any) -> Any:
    return fn.crop(image, crop=[30, 30])


def cropped_to_varying_sizes(image: Any) -> Any:
    return fn.crop(image, crop_h=varying(20, 60), crop_w=20)


def cropped_at_varying_positions(image: Any) -> Any:
    return fn.crop(image, crop=[30, 30], crop_pos_x=varying(0.5, np.nan))


@pytest.mark.parametrize(
    ("crop", "resize", "kind", "operator"),
    [
        (cropped_to_varying_sizes, resized, IndexingError, "fn.crop"),
        (cropped_at_varying_positions, resized, ArgumentValueError, "fn.crop"),
        (cropped, resized_to_nan, ArgumentValueError, "fn.resize"),
        (cropped, resized_to_huge, LimitError, "fn.resize"),
    ],
)
def test_crop_and_resize_raise_their_own_errors(
    crop: Callable[[Any], Any], resize: Callable[[Any], Any], kind: type[DalifyError], operator: str
) -> None:
    check(joined_pipeline("cpu", arrays, crop, resize), kind, operator, BAD)


@pytest.mark.parametrize("first", [resized, lambda image: image], ids=["resized", "whole"])
@pytest.mark.parametrize("normalize", [normalized, normalized_by_varying_means])
def test_the_colors_of_gray_images_are_an_error_of_the_colors(first: Callable[[Any], Any], normalize: Any) -> None:
    channels = [1 if position == BAD else 3 for position in range(BATCH_SIZE)]

    def images() -> Any:
        samples = [np.zeros((40, 50, count), np.uint8) for count in channels]
        return fn.external_source(source=lambda: samples, layout="HWC", dtype=types.UINT8, ndim=3)

    def recolored(image: Any) -> Any:
        return fn.color_twist(first(image), brightness=1.5)

    check(joined_pipeline("cpu", images, recolored, normalize), ShapeError, "fn.color_twist", BAD)


@pytest.mark.parametrize("resize", [cropped_beyond, cropped_at_nan])
def test_the_decoder_is_not_named_for_the_resize_after_it(photo_folder: Path, resize: Callable[[Any], Any]) -> None:
    def images() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder), pad_last_batch=True)
        return fn.decoders.image(encoded, on_error="skip")

    pipe = joined_pipeline("cpu", images, resize, normalized)
    assert "_decode_for_resize" in names_in(pipe)
    check(pipe, ArgumentValueError, "fn.resize_crop_mirror", BAD)


def test_a_damaged_file_is_an_error_of_the_decoder(photo_folder: Path) -> None:
    path = sorted(photo_folder.rglob("*.jpg"))[0]
    damaged = np.frombuffer(path.read_bytes()[:300], np.uint8)

    def images() -> Any:
        return fn.decoders.image(fn.external_source(source=lambda: [damaged] * BATCH_SIZE))

    pipe = joined_pipeline("cpu", images, randomly_cropped, normalized)
    assert "_decode_for_crop" in names_in(pipe)
    check(pipe, DalifyError, "fn.decoders.image", None)


@pytest.mark.parametrize(
    ("filters", "options", "operator"),
    [
        ({"nfilter": -1}, {}, "fn.mel_filter_bank"),
        ({"mel_formula": "x"}, {}, "fn.mel_filter_bank"),
        ({"sample_rate": -1.0}, {}, "fn.mel_filter_bank"),
        ({"freq_low": -1.0}, {}, "fn.mel_filter_bank"),
        ({"freq_low": 1e9}, {}, "fn.mel_filter_bank"),
        ({"freq_high": 1e9}, {}, "fn.mel_filter_bank"),
        ({}, {"reference": -1.0}, "fn.to_decibels"),
        ({}, {"multiplier": float("inf")}, "fn.to_decibels"),
    ],
)
def test_the_wrong_argument_of_a_spectrum_names_its_call(
    filters: dict[str, Any], options: dict[str, Any], operator: str
) -> None:
    """The type of the data is not declared, so the arguments are checked by the operator that replaces all three."""

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        audio = fn.external_source(lambda: [np.zeros(2000, np.float32)] * 2)
        spectrum = fn.spectrogram(audio)
        bands = fn.mel_filter_bank(spectrum, **filters)
        return fn.to_decibels(bands, **options)

    with pytest.raises(ArgumentValueError) as caught:
        pipeline().run()
    assert caught.value.operator == operator


@pytest.mark.parametrize(
    ("window", "size", "operator"),
    [
        ({"crop_h": 3}, {"size": [5, 5]}, "fn.crop"),
        ({"crop": [30, 30], "rounding": "x"}, {"size": [5, 5]}, "fn.crop"),
        ({"crop": [30]}, {"size": [5, 5]}, "fn.crop"),
        ({"crop_w": 3}, {"size": [5, 5]}, "fn.crop"),
        ({"crop": [30, 30]}, {"size": [5, 5], "mode": "x"}, "fn.resize"),
        ({"crop": [30, 30]}, {"size": [5, 5], "roi_start": [1, 1]}, "fn.resize"),
        ({"crop": [30, 30]}, {"size": [5, 5], "roi_end": [1, 1]}, "fn.resize"),
        ({"crop": [30, 30]}, {"resize_shorter": 5, "mode": "stretch"}, "fn.resize"),
        ({"crop": [30, 30]}, {"resize_shorter": 4, "resize_longer": 5}, "fn.resize"),
    ],
)
def test_a_crop_before_a_resize_is_checked(window: dict[str, Any], size: dict[str, Any], operator: str) -> None:
    """Also if the type of the data is not declared, so that only the operator that replaces both checks it."""

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        images = fn.external_source(lambda: [np.zeros((40, 50, 3), np.uint8)] * 2, layout="HWC")
        return fn.resize(fn.crop(images, **window), **size)

    with pytest.raises(ArgumentValueError) as caught:
        pipeline().run()
    assert caught.value.operator == operator


@pytest.mark.parametrize(
    "axes", [{"axes": [5]}, {"axis_names": "q"}, {"axes": [1, 1]}, {"axes": [1], "axis_names": "t"}]
)
def test_wrong_axes_after_decibels_are_errors_of_normalize(axes: dict[str, Any]) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        audio = fn.external_source(lambda: [np.ones(2000, np.float32)] * 2)
        return fn.normalize(fn.to_decibels(fn.mel_filter_bank(fn.spectrogram(audio))), **axes)

    with pytest.raises(DalifyError) as caught:
        pipeline().run()
    assert caught.value.operator == "fn.normalize"
    assert "test_errors_of_joined_operators.py" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "operator"),
    [
        ({"random_area": [2.0, 3.0]}, "fn.random_resized_crop"),
        ({"random_aspect_ratio": [2.0, 1.0]}, "fn.random_resized_crop"),
        ({"num_attempts": 0}, "fn.random_resized_crop"),
        ({"num_attempts": 1 << 30}, "fn.random_resized_crop"),
    ],
)
def test_a_random_crop_after_a_decoder_is_checked(options: dict[str, Any], operator: str, photo_folder: Path) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.random_resized_crop(fn.decoders.image(encoded), size=[20, 20], **options)

    with pytest.raises(ArgumentValueError) as caught:
        pipeline().run()
    assert caught.value.operator == operator


def test_words_of_messages_are_not_arguments() -> None:
    """Only ``DalifyError.argument`` selects the call."""

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        return fn.crop_mirror_normalize(fn.resize(arrays(), size=[50, 50]), mean=[1.0])

    pipe = pipeline()
    pipe.build()
    built = parts_of(pipe).builder.built
    assert built is not None
    (node,) = [node for node in built.graph.nodes() if node.calls]
    for argument, operator in ((None, "fn.resize"), ("mean", "fn.crop_mirror_normalize"), ("crop", "fn.resize")):
        error = DalifyError("mean brightness is too high.", argument=argument)
        node.locate(error)
        assert error.operator == operator
