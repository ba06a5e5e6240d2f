"""fn.per_frame compared with the real DALI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import LayoutError, ShapeError
from dalify.data import Batch
from dalify.executor.values import argument_array
from dalify.registry import catalog
from tests.helpers.both import assert_same_as_dali, run_here
from tests.helpers.one_operator import run_dalify

RANDOM = np.random.default_rng(0)
IMAGES = [RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 50, 3), (31, 44, 3))]
SEQUENCES = [RANDOM.integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)]


def test_layouts():
    @dalify.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph():
        data = dalify.fn.external_source(source=lambda: [np.zeros((3, 2), np.float32)])
        named = dalify.fn.external_source(source=lambda: [np.zeros((3, 2), np.float32)], layout="AB")
        return dalify.fn.per_frame(data), dalify.fn.per_frame(named, replace=True)

    pipe = graph()
    pipe.build()
    assert [batch.layout() for batch in pipe.run()] == ["F*", "FB"]


def test_argument_per_frame(device):
    @dalify.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph():
        video = dalify.fn.external_source(source=lambda: SEQUENCES, layout="FHWC")
        return dalify.fn.brightness(video, brightness=dalify.fn.per_frame(np.float32([0, 1, 0.5])))

    pipe = graph()
    pipe.build()
    result = np.array(pipe.run()[0].as_cpu()[0])
    assert (result[0] == 0).all()
    np.testing.assert_array_equal(result[1], SEQUENCES[0][1])


def test_mistakes():
    with pytest.raises(LayoutError, match="does not start with F"):
        run_dalify("per_frame", IMAGES, layouts="HWC")
    with pytest.raises(LayoutError, match="must have an axis of frames"):
        run_dalify("per_frame", [np.float32(1)])


# -- arguments by frame: those with a layout that starts with F, of sequences ------------------------------------------

VIDEOS = [RANDOM.integers(0, 256, (frames, 8, 10, 3), dtype=np.uint8) for frames in (3, 2)]
VOLUMES = [RANDOM.integers(0, 256, (frames, 4, 5, 6, 1), dtype=np.uint8) for frames in (3, 2)]
MATRIX = np.float32([[0.8, 0.1, 1], [-0.1, 0.9, 0.5]])
PROJECTION = np.float32([[0.8, 0.1, 1], [-0.1, 0.9, 0.5], [0, 0, 1]])
# Operator and argument, one entry, and further arguments.
BY_FRAME: dict[tuple[str, str], tuple[Any, dict[str, Any]]] = {
    ("brightness", "brightness"): (np.float32(0.5), {}),
    ("brightness", "brightness_shift"): (np.float32(0.1), {}),
    ("brightness_contrast", "brightness"): (np.float32(0.5), {}),
    ("brightness_contrast", "brightness_shift"): (np.float32(0.1), {}),
    ("brightness_contrast", "contrast"): (np.float32(0.5), {}),
    ("brightness_contrast", "contrast_center"): (np.float32(50), {"contrast": 0.5}),
    ("color_twist", "brightness"): (np.float32(0.5), {}),
    ("color_twist", "contrast"): (np.float32(0.5), {}),
    ("color_twist", "hue"): (np.float32(30), {}),
    ("color_twist", "saturation"): (np.float32(0.5), {}),
    ("contrast", "contrast"): (np.float32(0.5), {}),
    ("contrast", "contrast_center"): (np.float32(50), {"contrast": 0.5}),
    ("gaussian_blur", "sigma"): (np.float32([0.5, 0.7]), {}),
    ("gaussian_blur", "window_size"): (np.int32([3, 5]), {"sigma": 1.0}),
    ("hsv", "hue"): (np.float32(30), {}),
    ("hsv", "saturation"): (np.float32(0.5), {}),
    ("hsv", "value"): (np.float32(0.5), {}),
    ("hue", "hue"): (np.float32(30), {}),
    ("laplacian", "scale"): (np.float32([0.5, 0.7]), {}),
    ("laplacian", "smoothing_size"): (np.int32([3, 5]), {}),
    ("laplacian", "window_size"): (np.int32([3, 5]), {}),
    ("rotate", "angle"): (np.float32(30), {"keep_size": True}),
    ("rotate", "axis"): (np.float32([1, 0.2, 0.1]), {"angle": 30.0, "keep_size": True}),
    ("saturation", "saturation"): (np.float32(0.5), {}),
    ("warp_affine", "matrix"): (MATRIX, {}),
    ("experimental.warp_perspective", "matrix"): (PROJECTION, {}),
}
OF_VALUES = [name for name, (entry, _) in BY_FRAME.items() if np.ndim(entry) == 0]


def _by_frame(name: tuple[str, str], entries: list[Any], layout: str) -> tuple[Any, list[Any], list[str]]:
    """Return a graph with a call, its inputs, and their layouts."""
    operator, argument = name
    videos, video_layout = (VOLUMES, "FDHWC") if argument == "axis" else (VIDEOS, "FHWC")

    def graph(package: Any, videos: Any, values: Any) -> list[Any]:
        function = package.fn
        for part in operator.split("."):
            function = getattr(function, part)
        return [function(videos, **{argument: values}, **BY_FRAME[name][1])]

    return graph, [videos, entries], [video_layout, layout]


def _entries(name: tuple[str, str], counts: tuple[int, ...]) -> list[Any]:
    """Return entries for so many frames of each sample; they differ except in odd windows."""
    entry = np.asarray(BY_FRAME[name][0])
    is_integer = entry.dtype.kind == "i"
    return [
        np.stack(
            [entry + (frame % 2) * 2 if is_integer else entry * np.float32(1 + frame / 10) for frame in range(count)]
        )
        for count in counts
    ]


def _layout(name: tuple[str, str], first: str) -> str:
    return first + "ABC"[: np.ndim(BY_FRAME[name][0])]


@pytest.mark.parametrize("name", BY_FRAME, ids=".".join)
@pytest.mark.parametrize("counts", [(3, 2), (1, 1)])
def test_entries_by_frame(name, counts):
    graph, inputs, layouts = _by_frame(name, _entries(name, counts), _layout(name, "F"))
    assert_same_as_dali(graph, *inputs, layouts=layouts, atol=1)


@pytest.mark.parametrize("name", BY_FRAME, ids=".".join)
def test_too_many_frames(name):
    graph, inputs, layouts = _by_frame(name, _entries(name, (4, 4)), _layout(name, "F"))
    with pytest.raises(ShapeError):
        run_here(graph, *inputs, layouts=layouts)


# Three values for a volume are one axis.
@pytest.mark.parametrize("name", [name for name in BY_FRAME if name[1] != "axis"], ids=".".join)
@pytest.mark.parametrize("first", ["", "X"])
def test_entries_without_the_layout_of_frames(name, first, oracle):
    """Several values are not one per frame, even if there are as many."""
    graph, inputs, layouts = _by_frame(name, _entries(name, (3, 2)), _layout(name, first) if first else "")
    with pytest.raises(ShapeError):
        run_here(graph, *inputs, layouts=layouts)
    with pytest.raises(RuntimeError):
        assert_same_as_dali(graph, *inputs, layouts=layouts)


@pytest.mark.parametrize("name", OF_VALUES, ids=".".join)
def test_constants_are_not_by_frame(name, oracle):
    operator, argument = name
    for package in (dalify, oracle):
        with package.Pipeline(2, 1, None):
            video = package.fn.external_source(lambda: VIDEOS, layout="FHWC")
            with pytest.raises(TypeError):
                getattr(package.fn, operator)(video, **{argument: [0.5, 0.7, 0.6]})


def test_the_layout_of_frames_has_no_meaning_for_images():
    def graph(package: Any, images: Any, sigmas: Any, matrices: Any) -> list[Any]:
        return [
            package.fn.gaussian_blur(images, sigma=sigmas),
            package.fn.warp_affine(images, matrix=matrices),
        ]

    images = [video[0] for video in VIDEOS]
    inputs = [images, [np.float32([0.5, 0.9])] * 2, [MATRIX, MATRIX * 0.9]]
    assert_same_as_dali(graph, *inputs, layouts=["HWC", "F", "FX"], atol=1)


def test_channels_before_frames():
    """Each channel has the frames: the entries count for all channels."""

    def graph(package: Any, videos: Any, sigmas: Any, windows: Any) -> list[Any]:
        return [
            package.fn.gaussian_blur(videos, sigma=sigmas),
            package.fn.laplacian(videos, window_size=windows, dtype=package.types.FLOAT),
        ]

    videos = [np.ascontiguousarray(video.transpose(3, 0, 1, 2)) for video in VIDEOS]
    sigmas = [np.float32([[0.5, 0.7], [1, 0.2], [0.8, 0.8]]), np.float32([[0.9, 0.3], [0.5, 1.1]])]
    windows = [np.int32([3, 5, 7]), np.int32([5, 3])]
    assert_same_as_dali(graph, videos, sigmas, windows, layouts=["CFHW", "FX", "F"], atol=1)


@pytest.mark.parametrize("sizes", [None, [5, 6]])
@pytest.mark.parametrize("counts", [(3, 2), (1, 1)])
def test_images_warped_by_a_sequence_of_matrices(sizes, counts):
    """An input with one matrix for each frame makes a sequence of an image."""

    def graph(package: Any, images: Any, matrices: Any, projections: Any) -> list[Any]:
        size = {} if sizes is None else {"size": sizes}
        return [
            package.fn.warp_affine(images, matrices, **size),
            package.fn.experimental.warp_perspective(images, projections, **size),
        ]

    images = [VIDEOS[0][0], VIDEOS[1][1, :6]]
    matrices = _entries(("warp_affine", "matrix"), counts)
    projections = _entries(("experimental.warp_perspective", "matrix"), counts)
    assert_same_as_dali(graph, images, matrices, projections, layouts=["HWC", "F**", "F**"], atol=1)


# -- shapes of graph values: lists have one axis, matrices two ---------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "argument", "value", "others"),
    [
        ("pad", "shape", np.int32([9, 12]), {"axis_names": "HW"}),
        ("pad", "align", np.int32([4, 8]), {"axis_names": "HW"}),
        ("crop", "crop", np.float32([3, 4]), {}),
        ("resize", "size", np.float32([4, 5]), {}),
        ("slice", "start", np.int32([1, 2]), {"shape": [2, 2], "axis_names": "HW"}),
        ("crop_mirror_normalize", "mean", np.float32([1, 2, 3]), {}),
        ("reshape", "shape", np.int32([10, 8, 3]), {}),
        ("warp_affine", "size", np.float32([4, 5]), {"matrix": [1, 0, 0, 0, 1, 0]}),
        ("gaussian_blur", "sigma", np.float32([1, 2]), {}),
        ("warp_affine", "matrix", MATRIX, {}),
        ("experimental.warp_perspective", "matrix", PROJECTION, {}),
        ("transforms.translation", "offset", np.float32([1, 2]), {}),
        ("transforms.scale", "scale", np.float32([1, 2]), {}),
        ("coord_transform", "M", np.float32([[1, 2], [3, 4], [5, 6]]), {}),
        ("coord_transform", "MT", np.float32([[1, 2, 3], [3, 4, 5]]), {}),
        ("coord_transform", "T", np.float32([1, 2]), {}),
        ("random.uniform", "shape", np.int32([2, 3]), {}),
    ],
)
def test_axes_of_arguments(operator, argument, value, others, oracle):
    def graph(package: Any, images: Any, points: Any, given: Any) -> list[Any]:
        function = package.fn
        for part in operator.split("."):
            function = getattr(function, part)
        inputs = [points] if operator == "coord_transform" else [images]
        if operator.startswith(("transforms", "random")):
            inputs = []
        return [function(*inputs, **{argument: given}, **others)]

    images, points = [video[0] for video in VIDEOS], [np.float32([[1, 2], [3, 4]])] * 2

    def inputs(shape: Any) -> list[Any]:
        return [images, points, [value.reshape(shape)] * 2]

    if operator != "random.uniform":
        assert_same_as_dali(graph, *inputs(value.shape), layouts=["HWC", "", ""], atol=1)
    wrong = [(1, *value.shape), (value.size, 1)]
    wrong += [(1, value.size)] if value.ndim == 1 else [value.shape[::-1]] * (value.shape != value.shape[::-1])
    wrong += [(value.size,)] if value.ndim == 2 else []
    for shape in wrong:
        with pytest.raises(ShapeError):
            run_here(graph, *inputs(shape), layouts=["HWC", "", ""])
        with pytest.raises(RuntimeError):
            assert_same_as_dali(graph, *inputs(shape), layouts=["HWC", "", ""])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_numbers_in_separate_memory(shape):
    batch = Batch(None, [np.full(shape, number, np.float64) for number in (1, 0)], "")
    parameters = {name: catalog.find(name).parameters for name in ("preemphasis_filter", "brightness")}
    assert argument_array(parameters["preemphasis_filter"]["preemph_coeff"], batch).tolist() == [1, 0]
    assert argument_array(parameters["brightness"]["brightness"], batch).tolist() == [[1], [0]]
