"""fn.experimental.inputs.video, fed by hand, against plain decoding and the real DALI."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify.base.errors import ArgumentValueError, DecodeError, PipelineStateError, SourceError
from dalify.registry import COMMON_PARAMETERS, catalog
from tests.helpers.videos import FORMS, plain_frames, write_video


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    names = {"even": "vp9.webm", "uneven": "uneven.webm", "open": "open.mp4"}
    return {key: write_video(folder / name, FORMS[name][0], **FORMS[name][1]) for key, name in names.items()}


def contents(path: Path) -> np.ndarray:
    return np.frombuffer(path.read_bytes(), np.uint8)


def pipeline(batch_size: int, depth: int = 2, **arguments: Any) -> dalify.Pipeline:
    @dalify.pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, prefetch_queue_depth=depth)
    def graph():
        return dalify.fn.experimental.inputs.video(name="video", **arguments)

    return graph()


def run(pipe: Any) -> tuple[str, list[np.ndarray]]:
    (batch,) = pipe.run()
    return batch.layout(), [np.array(batch.at(i)) for i in range(len(batch))]


@pytest.mark.parametrize("batch_size", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("policy", ["partial", "pad"])
def test_batches_equal_dali(videos, oracle, batch_size, depth, policy):
    arguments = {"sequence_length": 7, "last_sequence_policy": policy}
    pipe = pipeline(batch_size, depth, **arguments)
    theirs = oracle.Pipeline(batch_size, 1, None, prefetch_queue_depth=depth)
    with theirs:
        theirs.set_outputs(oracle.fn.experimental.inputs.video(name="video", **arguments))
    theirs.build()
    for name in ("even", "uneven"):
        pipe.feed_input("video", [contents(videos[name])])
        theirs.feed_input("video", [contents(videos[name])])
    for _ in range(-(-5 // batch_size) + -(-3 // batch_size)):
        layout, clips = run(pipe)
        (batch,) = theirs.run()
        assert layout == "FHWC"
        assert len(clips) == len(batch)
        for index, clip in enumerate(clips):
            np.testing.assert_array_equal(clip, np.array(batch.at(index)))
    with pytest.raises(PipelineStateError, match=r"no data were fed to the experimental\.inputs\.video 'video'"):
        pipe.run()
    pipe.feed_input("video", contents(videos["open"])[None])
    np.testing.assert_array_equal(run(pipe)[1][0], plain_frames(videos["open"])[:7])
    pipe.close()


def test_together_with_other_data_and_operators(videos, gpu):
    @dalify.pipeline_def(batch_size=4, num_threads=2, device_id=0, prefetch_queue_depth=1)
    def graph():
        clips = dalify.fn.experimental.inputs.video(name="video", sequence_length=8, device="mixed")
        return dalify.fn.flip(clips), clips, dalify.fn.random.uniform()

    pipe = graph()
    flipped, clips, draws = pipe.run(video=[contents(videos["open"])])
    expected = plain_frames(videos["open"])
    assert len(draws) == 4
    for index in range(4):
        clip = np.array(clips.as_cpu().at(index))
        np.testing.assert_array_equal(clip, expected[8 * index : 8 * index + 8])
        np.testing.assert_array_equal(np.array(flipped.as_cpu().at(index)), clip[:, :, ::-1])
    pipe.close()


def test_mistakes(videos):
    for arguments, message in (({"sequence_length": 0}, "at least 1"), ({"last_sequence_policy": "drop"}, "partial")):
        with pytest.raises(ArgumentValueError, match=message):
            pipeline(2, **{"sequence_length": 3, **arguments}).build()
    pipe = pipeline(2, sequence_length=30)
    video = contents(videos["even"])
    with pytest.raises(SourceError, match="one-dimensional of type uint8"):
        pipe.feed_input("video", [video.astype(np.float32)])
    with pytest.raises(SourceError, match="2 videos were fed at once"):
        pipe.feed_input("video", [video, video])
    with pytest.raises(DecodeError, match="cannot open the video"):
        pipe.feed_input("video", [video[:20]])
    pipe.feed_input("video", [video])
    assert len(run(pipe)[1][0]) == 30
    pipe.close()


def test_damage_is_reported_and_the_pipeline_continues(videos):
    whole = videos["open"].read_bytes()
    start, end = whole.index(b"mdat") + 4, whole.index(b"moov") - 4
    half = start + (end - start) // 2
    pipe = pipeline(1, sequence_length=10)
    pipe.feed_input("video", [np.frombuffer(whole[:half] + bytes(end - half) + whole[end:], np.uint8)])
    pipe.feed_input("video", [contents(videos["even"])])
    np.testing.assert_array_equal(run(pipe)[1][0][:5], plain_frames(videos["open"])[:5])
    for _ in range(2):
        with pytest.raises(DecodeError):
            pipe.run()
    np.testing.assert_array_equal(run(pipe)[1][0], plain_frames(videos["even"])[:10])
    pipe.close()


def test_schema_equals_dali(oracle):
    theirs = inspect.signature(oracle.fn.experimental.inputs.video).parameters
    ours = catalog.find("experimental.inputs.video").parameters
    assert set(ours) == {name for name in theirs if name not in COMMON_PARAMETERS}
    for name, parameter in ours.items():
        assert parameter.is_required or parameter.default == theirs[name].default
