"""Readers and decoders of clips compared with a plain decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify.base.errors import ArgumentValueError, DalifyError, LayoutError, ReaderError
from dalify.mediapipe import fn
from dalify.mediapipe.media_types import clipSampler, imgtype, randomCropType
from dalify.mediapipe.media_types import dtype as dt
from tests.helpers.videos import plain_frames, write_video
from tests.mediapipe.graphs import BATCH, Graph

LENGTHS = {"a": 20, "b": 14, "c": 9, "d": 3}
SIZE = (24, 32)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders of one video each, at 25 frames per second."""
    folder = tmp_path_factory.mktemp("videos")
    for name, count in LENGTHS.items():
        (folder / name).mkdir()
        write_video(folder / name / "film.mp4", "mpeg4", count=count, size=SIZE, gop=6)
    return folder


def clips(videos: Path, decoder: Any = None, epochs: Any = 1, **options: Any) -> list[Any]:
    """Images, label, and numbers of the frames of each clip."""

    def make() -> Any:
        reader = fn.ReadVideoDatasetFromDir(
            **{"dir": str(videos), "shuffle": False, "label_dtype": dt.INT32, **options}
        )
        files, labels, frames, first = reader()
        decode = fn.VideoDecoder(**{"resize": [SIZE[1], SIZE[0]], "output_format": imgtype.RGB_I, **(decoder or {})})
        return decode(files, frames, first), labels, frames, first

    found = []
    pipe = Graph(make)
    for _ in range(epochs):
        for outputs in pipe:
            images, labels, frames, first = (output.as_nparray() for output in outputs)
            found += list(zip(images, labels.tolist(), (frames + first).tolist(), strict=True))[: outputs[0].valid]
    return found


@pytest.fixture(scope="module")
def pictures(videos: Path) -> list[np.ndarray]:
    """All frames of each video."""
    return [plain_frames(videos / name / "film.mp4") for name in LENGTHS]


def test_clips_spread_evenly(videos: Path, pictures: list[np.ndarray]) -> None:
    options = {"frames_per_clip": 4, "clips_per_video": 2, "step_between_clips": 5}
    found = clips(videos, sampler=clipSampler.UNIFORM_SAMPLER, **options)
    assert [(label, frames[0], len(frames)) for _, label, frames in found] == [
        (0, 0, 4), (0, 15, 4), (1, 0, 4), (1, 10, 4), (2, 0, 4), (2, 5, 4),
    ]  # fmt: skip
    for images, label, frames in found:
        np.testing.assert_array_equal(images, pictures[label][frames])


def test_another_rate_leaves_frames_out(videos: Path) -> None:
    options = {"frames_per_clip": 3, "clips_per_video": 99, "sampler": clipSampler.UNIFORM_SAMPLER}
    found = clips(videos, target_frame_rate=10, step_between_clips=3, **options)
    assert [frames for _, label, frames in found if label == 0] == [[0, 2, 5], [7, 10, 12]]


def test_clips_at_one_position(videos: Path) -> None:
    found = clips(videos, fixed_clip_mode=True, start_frame_index=6, frames_per_clip=3, clips_per_video=5)
    assert [(label, frames) for _, label, frames in found] == [(label, [6, 7, 8]) for label in range(3)]


def test_random_clips_differ_from_epoch_to_epoch(videos: Path) -> None:
    def epochs(**options: Any) -> list[Any]:
        return [frames for _, _, frames in clips(videos, epochs=2, frames_per_clip=2, clips_per_video=3, **options)]

    found = epochs(seed=3)
    assert found == epochs(seed=3)
    assert found[: len(found) // 2] != found[len(found) // 2 :]
    shared = [epochs(seed=3, num_slices=2, slice_index=number) for number in (0, 1)]
    assert sorted([*shared[0], *shared[1]]) == sorted(found)


def test_parts_and_sizes(videos: Path, pictures: list[np.ndarray]) -> None:
    options = {"fixed_clip_mode": True, "frames_per_clip": 3}
    planes = clips(videos, {"output_format": imgtype.RGB_P, "crop_after_resize": [2, 3, 20, 10]}, **options)
    for images, label, _ in planes:
        np.testing.assert_array_equal(images, pictures[label][:3, 3:13, 2:22].transpose(0, 3, 1, 2))
    for images, label, _ in clips(
        videos, {"random_crop_type": randomCropType.CENTER_CROP, "resize": [24, 24]}, **options
    ):
        np.testing.assert_array_equal(images, pictures[label][:3, :, 4:28])
    random = {"random_crop_type": randomCropType.RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP, "resize": [12, 12], "seed": 1}
    parts = [images for images, _, _ in clips(videos, random, **options)]
    assert [images.shape for images in parts] == [(3, 12, 12, 3)] * 4
    again = [images for images, _, _ in clips(videos, random, **options)]
    np.testing.assert_array_equal(parts, again)


def test_operators_of_images_take_clips(videos: Path, pictures: list[np.ndarray]) -> None:
    def make() -> Any:
        files, _, frames, first = fn.ReadVideoDatasetFromDir(dir=str(videos), shuffle=False, frames_per_clip=2)()
        clip = fn.VideoDecoder(resize=[SIZE[1], SIZE[0]])(files, first, frames)
        mean = fn.MediaConst(data=[10, 20, 30], shape=[1, 1, 3], dtype=dt.FLOAT32)()
        factor = fn.MediaConst(data=[2, 3, 4], shape=[1, 1, 3], dtype=dt.FLOAT32)()
        return fn.CropMirrorNorm(crop_w=10, crop_h=8)(fn.Flip(horizontal=1)(clip), mean, factor), first, frames

    found, first, frames = (output.as_nparray() for output in Graph(make).run())
    assert found.shape == (BATCH, 2, 3, 8, 10)
    for index in range(BATCH):
        whole = pictures[index][(first + frames)[index]][:, :, ::-1][:, :8, :10].astype(np.float64)
        expected = ((whole - [10, 20, 30]) * [2, 3, 4]).transpose(0, 3, 1, 2)
        np.testing.assert_allclose(found[index], expected, rtol=1e-5)


def test_a_decoder_alone_begins_with_the_video(videos: Path, pictures: list[np.ndarray]) -> None:
    def make() -> Any:
        files, *_ = fn.ReadVideoDatasetFromDir(dir=str(videos), shuffle=False)()
        return fn.VideoDecoder(resize=[SIZE[1], SIZE[0]], output_format=imgtype.RGB_I, frames_per_clip=3)(files)

    (found,) = Graph(make).run()
    np.testing.assert_array_equal(found.as_nparray(), np.stack([pictures[index][:3] for index in range(BATCH)]))


def test_mistakes(videos: Path) -> None:
    (videos / "d" / "text.avi").write_text("no film")
    for options, kind, text in (
        ({"sampler": 9}, ArgumentValueError, r"clipSampler\.RANDOM_SAMPLER"),
        ({"frames_per_clip": 0}, ArgumentValueError, "at least 1"),
        ({"frames_per_clip": 99}, ReaderError, "none of the 4 videos has 99 frames"),
        ({"format": "avi"}, ReaderError, r"text\.avi"),
        ({"decoder": {"output_format": "bgr"}}, ArgumentValueError, r"imgtype\.RGB_P"),
        ({"decoder": {"random_crop_type": 9}}, ArgumentValueError, "CENTER_CROP"),
    ):
        with pytest.raises(DalifyError, match=text) as caught:
            clips(videos, **options)
        assert isinstance(caught.value, kind)

    def make() -> Any:
        files, _, frames, _ = fn.ReadVideoDatasetFromDir(dir=str(videos))()
        return fn.VideoDecoder(resize=[8, 8])(files, frames)

    with pytest.raises(LayoutError, match="both results"):
        Graph(make).run()
