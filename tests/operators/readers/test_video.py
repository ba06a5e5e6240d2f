"""fn.readers.video and fn.readers.video_resizecompared with plain decoding; DALI has both for GPUs only."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import types
from dalify.base.errors import ArgumentValueError, DTypeError, ReaderError
from dalify.codecs import video_index
from dalify.codecs.video import Video
from dalify.codecs.video_index import Division, VideoIndex
from dalify.codecs.video_table import FrameTable
from dalify.formats.files.video_list import videos_given
from tests.helpers.real_dali import run_dali
from tests.helpers.videos import FORMS, UNEVEN_TIMES_MS, plain_frames, write_video


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    names = {"closed": "closed.mp4", "uneven": "uneven.mp4"}
    return {key: write_video(folder / name, FORMS[name][0], **FORMS[name][1]) for key, name in names.items()}


def read(batches: int, name: str = "video", count: int = 2, **arguments: Any) -> list[list[np.ndarray]]:
    """Return the samples of each output, of all batches in order."""

    @dalify.pipeline_def(batch_size=count, num_threads=2, device_id=None, seed=3)
    def graph():
        result = getattr(dalify.fn.readers, name)(**arguments)
        return tuple(result) if isinstance(result, (list, tuple)) else result

    pipe = graph()
    try:
        found: list[list[np.ndarray]] = []
        for _ in range(batches):
            outputs = pipe.run()
            found = found or [[] for _ in outputs]
            for samples, batch in zip(found, outputs, strict=True):
                samples += [np.array(batch.at(i)) for i in range(len(batch))]
        return found
    finally:
        pipe.close()


def test_sequences_labels_numbers_times(videos):
    clips, labels, numbers, seconds = read(
        3,
        filenames=[str(videos["closed"]), str(videos["uneven"])],
        labels=[],
        sequence_length=9,
        pad_sequences=True,
        enable_frame_num="sequence",
        enable_timestamps=True,
    )
    first, second = plain_frames(videos["closed"]), plain_frames(videos["uneven"])
    for place, (video, start) in enumerate([(0, 0), (0, 9), (0, 18), (0, 27), (1, 0), (1, 9)]):
        frames, times = ((first, np.arange(30) * 0.04), (second, np.array(UNEVEN_TIMES_MS) / 1000))[video]
        count = min(9, len(frames) - start)
        np.testing.assert_array_equal(clips[place][:count], frames[start : start + count])
        assert not clips[place][count:].any()
        assert labels[place].tolist() == [video]
        np.testing.assert_array_equal(numbers[place], [*range(start, start + count), *[-1] * (9 - count)])
        np.testing.assert_allclose(seconds[place], [*times[start : start + count], *[-1] * (9 - count)])


def test_floats(videos):
    arguments = {"filenames": [str(videos["closed"])], "sequence_length": 4, "dtype": types.FLOAT}
    expected = plain_frames(videos["closed"])[:4].astype(np.float32)
    np.testing.assert_array_equal(read(1, count=1, **arguments)[0][0], expected)
    np.testing.assert_allclose(read(1, count=1, normalized=True, **arguments)[0][0], expected / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "part", "expected"),
    [
        ({"file_list_frame_num": True}, "3 8", range(3, 8)),
        ({"file_list_frame_num": True}, "-8 -2", range(22, 28)),
        ({"file_list_frame_num": True}, "2.5 6.5", range(3, 6)),
        ({}, "0.13 0.27", range(4, 6)),
        ({"file_list_include_preceding_frame": True}, "0.13 0.27", range(3, 7)),
        ({}, "0.12 0.24", range(3, 6)),
        ({"file_list_frame_num": True, "file_list_include_preceding_frame": True}, "2.5 6.5", range(3, 6)),
        ({}, "1.0", range(25, 30)),
    ],
    ids=str,
)
def test_parts(videos, tmp_path, given, part, expected):
    listed = tmp_path / "list.txt"
    listed.write_text(f"{videos['closed']} 7 {part}\n")
    arguments = {"sequence_length": len(expected), "enable_frame_num": True, **given}
    clips, labels, starts = read(1, count=1, file_list=str(listed), allow_outside_root=True, **arguments)
    assert (int(labels[0][0]), int(starts[0][0])) == (7, expected.start)
    np.testing.assert_array_equal(clips[0], plain_frames(videos["closed"])[expected.start : expected.stop])


def test_class_folders_have_labels_only(videos, tmp_path):
    for folder in ("b", "a"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "film.mp4").write_bytes(videos["closed"].read_bytes())
    outputs = read(2, file_root=str(tmp_path), sequence_length=15, enable_frame_num=True, enable_timestamps=True)
    assert [label.tolist() for label in outputs[1]] == [[0], [0], [1], [1]]
    assert len(outputs) == 2


@pytest.mark.parametrize("given", [{"size": [20, 30]}, {"resize_shorter": 31.0}, {"resize_x": 100.0}], ids=str)
def test_resized_as_by_dali(videos, given):
    arguments = {"interp_type": types.INTERP_CUBIC, **given}
    (clips,) = read(1, "video_resize", 1, filenames=[str(videos["closed"])], sequence_length=4, **arguments)
    frames = [plain_frames(videos["closed"])[:4]]
    (theirs,) = run_dali("resize", frames, layouts="FHWC", **{**arguments, "interp_type": "INTERP_CUBIC"})
    assert np.abs(clips[0].astype(int) - theirs.astype(int)).max() <= 1


def test_resized_to_a_size_per_sample(videos):
    @dalify.pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def graph():
        width = dalify.fn.external_source(source=lambda: [np.float32(20 + 10 * i) for i in range(3)])
        video = str(videos["closed"])
        return dalify.fn.readers.video_resize(filenames=[video], sequence_length=2, resize_x=width, resize_y=17.0)

    pipe = graph()
    (clips,) = pipe.run()
    assert [clips.at(i).shape for i in range(3)] == [(2, 17, 20 + 10 * i, 3) for i in range(3)]
    pipe.close()


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"channels": 1}, ArgumentValueError, "channels must be 3"),
        ({"dtype": types.INT16}, DTypeError, "types.UINT8 or types.FLOAT"),
        ({"normalized": True}, ArgumentValueError, "FLOAT"),
        ({"filenames": ["/no/such.mp4"]}, ReaderError, "such"),
        ({"sequence_length": 99}, ReaderError, "need 99 frames"),
    ],
    ids=str,
)
def test_mistakes(videos, arguments, kind, message):
    with pytest.raises(kind, match=message):
        read(1, **{"filenames": [str(videos["closed"])], "sequence_length": 2, **arguments})


READERS = {
    "video": dalify.fn.readers.video,
    "video_resize": lambda **arguments: dalify.fn.readers.video_resize(resize_x=16, resize_y=16, **arguments),
    "experimental": dalify.fn.experimental.readers.video,
}


@pytest.fixture
def damaged(videos, tmp_path) -> list[Path]:
    """A good video, one that is cut off, a good one, and an empty file."""
    good = videos["closed"].read_bytes()
    contents = [good, good[:400], good, b""]
    paths = [tmp_path / f"{number}.mp4" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def damaged_pipeline(reader: str, paths: list[Path], stride: int = 1, **options: Any) -> Any:
    files: dict[str, Any] = {"filenames": [str(path) for path in paths], "labels": list(range(len(paths)))}

    @dalify.pipeline_def(batch_size=2, num_threads=2, device_id=None, **options)
    def graph():
        frames, *_ = READERS[reader](sequence_length=5, step=1000, stride=stride, **files)
        return frames

    return graph()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_videos_that_cannot_be_opened_are_bad_samples(damaged, reader, policy):
    with closing(damaged_pipeline(reader, damaged, on_error=policy)) as pipe:
        batches = [np.array(frames.at(index)) for (frames,) in (pipe.run() for _ in range(4)) for index in range(2)]
        bad = {sample.source for sample in pipe.bad_samples()}
    assert bad == {str(damaged[1]), str(damaged[3])}
    is_blank = [not frames.any() for frames in batches]
    assert is_blank == [policy == "replace" and number % 2 == 1 for number in range(8)]


@pytest.mark.parametrize("reader", READERS)
def test_without_a_policy_they_are_errors_when_the_pipeline_is_built(damaged, reader):
    pipe = damaged_pipeline(reader, damaged)
    with pytest.raises(ReaderError, match=r"cannot read the video '.*1\.mp4'"):
        pipe.build()


def test_parts_of_videos_that_cannot_be_opened(damaged, tmp_path):
    """Each part of them is one sample, also if it is specified in seconds."""
    starts = (0, 0.1)
    lines = [f"{path.name} {number} {start} 0.2" for number, path in enumerate(damaged) for start in starts]
    (tmp_path / "list.txt").write_text("\n".join(lines))

    @dalify.pipeline_def(batch_size=8, num_threads=2, device_id=None, on_error="replace")
    def graph():
        return dalify.fn.readers.video(file_list=str(tmp_path / "list.txt"), sequence_length=2, step=100)

    with closing(graph()) as pipe:
        frames, labels = pipe.run()
        assert [int(label) for label in np.asarray(labels.as_array()).ravel()] == [0, 0, 1, 1, 2, 2, 3, 3]
        is_blank = [not np.array(frames.at(index)).any() for index in range(8)]
        assert is_blank == [False, False, True, True] * 2
        assert len(pipe.bad_samples()) == 4


def test_a_run_needs_one_video_that_is_long_enough(damaged):
    with pytest.raises(ReaderError, match=r"cannot read the video '.*1\.mp4'"):
        damaged_pipeline("video", [damaged[1], damaged[3]], on_error="skip").build()
    with pytest.raises(ReaderError, match=r"cannot read the video '.*1\.mp4'"):
        damaged_pipeline("video", damaged, stride=50, on_error="skip").build()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_videos_that_cannot_be_opened_in_processes(damaged, method):
    with closing(damaged_pipeline("video", damaged, on_error="skip", processes=2, py_start_method=method)) as pipe:
        batches = [np.array(frames.at(index)) for (frames,) in (pipe.run() for _ in range(4)) for index in range(2)]
        assert {sample.source for sample in pipe.bad_samples()} == {str(damaged[1]), str(damaged[3])}
    assert all(frames.any() for frames in batches)


def test_tables_that_were_used_last_are_kept(videos, monkeypatch):
    names = [str(videos["closed"]), str(videos["uneven"])]
    created: list[str] = []
    read_table = Video._read_table

    def counted(video: Video) -> FrameTable:
        created.append(str(video._source))
        return read_table(video)

    monkeypatch.setattr(Video, "_read_table", counted)
    monkeypatch.setattr(video_index, "_OPEN_PER_THREAD", 1)
    for max_bytes in (1 << 20, 1):
        monkeypatch.setattr(video_index, "_MAX_TABLE_BYTES", max_bytes)
        created.clear()
        index = VideoIndex(videos_given(names, None), Division(3, uniform=True))
        first = [index[number].read().frames for number in (0, 1, 0, 1)]
        assert created == (names if max_bytes > 1 else names * 2)
        for found, again in zip(first[:2], first[2:], strict=True):
            np.testing.assert_array_equal(found, again)


def test_files_do_not_wait_for_each_other(videos, monkeypatch):
    barrier = threading.Barrier(2, timeout=20)
    read_table = Video._read_table

    def together(video: Video) -> FrameTable:
        barrier.wait()  # fails unless the tables of both files are created at the same time
        return read_table(video)

    monkeypatch.setattr(Video, "_read_table", together)
    index = VideoIndex(videos_given([str(path) for path in videos.values()], None), Division(3, uniform=True))
    with ThreadPoolExecutor(2) as threads:
        assert len(list(threads.map(lambda number: index[number].read(), range(2)))) == 2


def test_a_table_is_created_once_for_all_threads(videos, monkeypatch):
    created: list[Video] = []
    read_table = Video._read_table

    def slow(video: Video) -> FrameTable:
        created.append(video)
        time.sleep(0.1)
        return read_table(video)

    monkeypatch.setattr(Video, "_read_table", slow)
    index = VideoIndex(videos_given([str(videos["closed"])], None), Division(3, uniform=True))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: index[0].read(), range(4)))
    assert len(created) == 1
