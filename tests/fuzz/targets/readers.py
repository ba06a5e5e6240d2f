"""Readers: datasets with one or a few changed files, read through a new pipeline each time."""

from __future__ import annotations

import functools
import random
import re
import resource
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import dalify
from dalify import fn
from dalify.base.errors import DalifyError
from tests.fuzz.formats import mutated_file
from tests.fuzz.inputs import Input
from tests.fuzz.outcomes import OK, Outcome, of_error
from tests.fuzz.seeds import AUDIO, IMAGES, VIDEOS
from tests.fuzz.targets.base import Target, bytes_of, same_outputs
from tests.operators.readers.datasets import DATASETS

_COUNT = 4
_BATCH_SIZE = 3
_RUNS = 3
# Maximum number of samples that are read one by one, for comparison; videos have more.
_MAX_SINGLE = 24
# Few inputs, because starting worker processes takes longer than reading an input.
_SHARE_WITH_PROCESSES = 0.05
# Each call of a library in a helper process may take six seconds of processor time before it is an error.
_SECONDS_OF_HELPERS = 90.0
_POLICIES = (b"raise", b"skip", b"replace")
_HERE = b"@FOLDER@"  # stands for the dataset's folder inside files and arguments
_FORMATS = {
    ".arrow": "arrow",
    ".avi": "riff",
    ".fits": "fits",
    ".h5": "hdf5",
    ".idx": "text",
    ".jpg": "jpeg",
    ".json": "json",
    ".mdb": "lmdb",
    ".mkv": "ebml",
    ".mp4": "mp4",
    ".npy": "npy",
    ".parquet": "parquet",
    ".png": "png",
    ".rec": "recordio",
    ".tar": "tar",
    ".tfrecord": "tfrecord",
    ".txt": "text",
    ".wav": "riff",
    ".webm": "ebml",
}
_LEFT_ALONE = {"lock.mdb"}

Arguments = Mapping[str, Any]


class ReaderTarget(Target):
    """A reader on a small dataset.

    Args:
        name: of the target.
        reader: public name below ``fn``.
        write: writes so many entries into an empty folder and returns the arguments.
        ways: further arguments, by name; the input selects one.
        packages: that it needs.
        changes: names of the files that are changed, as a pattern; all where not given.
        seconds: what an input may take.
    """

    def __init__(
        self,
        name: str,
        reader: str,
        write: Callable[[Path, int], Arguments],
        ways: Mapping[str, Arguments] | None = None,
        packages: tuple[str, ...] = (),
        changes: str = "*",
        seconds: float = Target.seconds,
    ) -> None:
        self.name = name
        self.packages = packages  # pyright: ignore[reportAttributeAccessIssue]
        self._function = functools.reduce(getattr, reader.split("."), fn)
        self._write = write
        self._ways = ways or {"plain": {}}
        self._changes = changes
        self.seconds = seconds
        self._folder = Path()
        self._arguments: dict[str, Any] = {}
        self._good: Input = {}
        self._expected: dict[bytes, list[Any]] = {}
        self._count = 0

    def prepare(self, folder: Path) -> list[Input]:
        """Write the dataset and read it in every way."""
        self._folder = folder
        source = folder / "valid"
        source.mkdir()
        given = {key: value(dalify) if callable(value) else value for key, value in self._write(source, _COUNT).items()}
        self._arguments = _replaced(given, str(source), _HERE.decode())
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.name not in _LEFT_ALONE:
                self._good[str(path.relative_to(source))] = path.read_bytes().replace(bytes(source), _HERE)
        inputs = []
        for way in self._ways:
            self._expected[way.encode()] = self._read({**self._good, ":way": way.encode(), ":on_error": b"raise"})
            inputs += [{**self._good, ":way": way.encode(), ":on_error": policy} for policy in _POLICIES]
        for seed in inputs:
            self.run(seed)
        return inputs

    def mutated(self, given: Input, other: Input, rng: random.Random) -> Input:
        """Change one file, sometimes several or their presence."""
        names = [name for name in self._good if Path(name).match(self._changes)]
        changed = dict(given)
        for _ in range(1 if rng.random() < 0.85 else rng.randrange(2, 5)):
            name = rng.choice(names)
            if name not in changed:
                continue
            draw = rng.random()
            if draw < 0.01:
                del changed[name]
            elif draw < 0.02:
                changed[name] = b""
            elif draw < 0.04:
                changed[name] = changed.get(rng.choice(names), b"")
            else:
                form = _FORMATS.get(Path(name).suffix, "any")
                changed[name] = mutated_file(changed[name], other.get(rng.choice(names), b""), form, rng)
        changed[":on_error"] = rng.choice(_POLICIES)
        if rng.random() < 0.3:
            changed[":way"] = rng.choice(list(self._ways)).encode()
        changed.pop(":processes", None)
        if rng.random() < _SHARE_WITH_PROCESSES:
            changed[":processes"] = b"2"
        return changed

    def _read(self, given: Input, *, is_single: bool = False, processes: int = 0) -> list[Any]:
        """Read some batches.

        Args:
            given: the input.
            is_single: read each sample once, in a batch of its own.
            processes: number of worker processes.

        Returns:
            the outputs or the error of each batch.
        """
        self._count += 1
        folder = self._folder / f"{self._count}"
        for name, data in given.items():
            if not name.startswith(":"):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                # Data that a mutation copied into another file must not depend on the folder.
                names_files = _HERE in self._good.get(name, b"")
                path.write_bytes(data.replace(_HERE, bytes(folder)) if names_files else data)
        pipe = dalify.Pipeline(
            batch_size=1 if is_single else _BATCH_SIZE,
            num_threads=1,
            prefetch_queue_depth=1,
            seed=1,
            on_error="raise" if is_single else given[":on_error"].decode(),
            device_id=None,
            processes=processes,
        )
        found: list[Any] = []
        try:
            with pipe:
                arguments = _replaced(self._arguments, _HERE.decode(), str(folder))
                made = self._function(name="reader", **{**arguments, **self._ways[given[":way"].decode()]})
                made = list(made.values()) if isinstance(made, dict) else made
                pipe.set_outputs(*(made if isinstance(made, (tuple, list)) else (made,)))
            pipe.build()
            size: Any = pipe.epoch_size("reader")
            for _ in range(min(size, _MAX_SINGLE) if is_single else _RUNS):
                try:
                    found.append(bytes_of(pipe.run()))
                except Exception as error:
                    found.append(error)
            return found
        finally:
            pipe.close()
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, given: Input) -> Outcome:
        """Read some batches; each is data or an error that names its origin."""
        names = [Path(name).name for name in self._good]
        try:
            found = self._read(given)
        except Exception as error:
            return of_error(error, _is_named(error, names))
        outcomes = [of_error(item, _is_named(item, names)) for item in found if isinstance(item, Exception)]
        worst = [item for item in outcomes if item.is_finding]
        if worst:
            return worst[0]
        wrong = self._cost(given, found) if given[":on_error"] != b"raise" else ""
        if not wrong and given.get(":processes"):
            wrong = self._in_processes(given, found)
        if wrong:
            return Outcome("wrong", "Different", wrong)
        return outcomes[0] if outcomes else OK

    def _cost(self, given: Input, found: list[Any]) -> str:
        """Return what a damaged sample costs besides itself, in a run that skips or replaces it; "" if nothing."""
        policy = given[":on_error"].decode()
        failed = [item for item in found if isinstance(item, Exception)]
        try:
            single = self._read(given, is_single=True)
        except DalifyError:  # a video that cannot be opened
            changed = [name for name, data in self._good.items() if given.get(name) != data]
            is_one = len(changed) == 1 and not changed[0].endswith(".txt")
            return f"on_error='{policy}' raises an error: {failed[0]}" if failed and is_one else ""
        if len(single) >= _MAX_SINGLE:
            return ""
        good = [item for item in single if not isinstance(item, Exception)]
        kinds = {tuple((output[0].dtype.str, output[0].ndim) for output in item) for item in good}
        if len(kinds) != 1:  # no sample can be read, or they cannot form a batch, so that some are bad
            return ""
        # Replacements are drawn: if most samples are bad, all that are tried may be bad.
        if failed and 2 * len(good) >= len(single):
            return (
                f"on_error='{policy}' raises an error although {len(good)} of {len(single)} samples can be read: "
                f"{type(failed[0]).__name__}: {failed[0]}"
            )
        if failed:
            return ""
        is_in_order = not any("shuffle" in name for name in self._ways[given[":way"].decode()])
        for place in range(_BATCH_SIZE * len(found)):
            number = place % len(single)
            sample = [[output[place % _BATCH_SIZE]] for output in found[place // _BATCH_SIZE]]
            if policy == "skip" and not any(same_outputs(sample, item) for item in good):
                return f"on_error='skip': sample {place} is none of the samples that can be read"
            if policy == "skip" or not is_in_order or isinstance(single[number], Exception):
                continue
            if not same_outputs(sample, single[number]):
                return f"on_error='replace': sample {place} can be read, and was changed"
        return ""

    def _in_processes(self, given: Input, found: list[Any]) -> str:
        """Return how worker processes change the result; "" if they do not."""
        with _any_address_space():  # the input has been read with the limit already
            again = self._read(given, processes=int(given[":processes"]))
        for number, (one, other) in enumerate(zip(found, again, strict=True)):
            if isinstance(one, Exception) or isinstance(other, Exception):
                if _described(one) != _described(other):
                    return f"batch {number} of processes is {_described(other)}, and {_described(one)} of threads"
            elif not same_outputs(one, other):
                return f"batch {number} of processes differs from that of threads"
        return ""

    def check(self) -> Outcome:
        """Read the good data again."""
        for way, expected in self._expected.items():
            found = self._read({**self._good, ":way": way, ":on_error": b"raise"})
            for one, other in zip(found, expected, strict=True):
                if isinstance(one, Exception):
                    return Outcome("wrong", type(one).__name__, f"good files fail: {one}")
                if not isinstance(other, Exception) and not same_outputs(one, other):
                    return Outcome("wrong", "Different", f"good files give another result: {way.decode()}")
        return OK


@contextmanager
def _any_address_space() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _described(item: Any) -> str:
    """Return class and message of an error, without folders."""
    if not isinstance(item, Exception):
        return "a batch"
    message = item.message if isinstance(item, DalifyError) else str(item)
    return f"{type(item).__name__}: {re.sub(r'/[^ ]*/', '', message)}"


def _is_named(error: Exception, names: list[str]) -> bool:
    if not isinstance(error, DalifyError):
        return False
    # Before the first sample: the message quotes a path, be it one that the data were made to name.
    is_quoted = re.search(r"'[^']*[./][^']*'", error.message) is not None
    return error.sample is not None or bool(error.origin) or is_quoted or any(name in error.message for name in names)


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    return [_replaced(item, old, new) for item in value] if type(value) in (list, tuple) else value


def _images(folder: Path, count: int) -> Arguments:
    made = IMAGES["jpeg"][1]()
    for number in range(count):
        (folder / f"{number}.jpg").write_bytes(made[number])
    (folder / "list.txt").write_text("".join(f"{number}.jpg {number * 3}\n" for number in range(count)))
    return {"file_list": str(folder / "list.txt")}


def _numpy_list(folder: Path, count: int) -> Arguments:
    for number in range(count):
        np.save(folder / f"{number}.npy", np.arange(12, dtype=np.int16).reshape(3, 4) + number)
    (folder / "list.txt").write_text("".join(f"{number}.npy\n" for number in range(count)))
    return {"file_list": str(folder / "list.txt"), "file_root": str(folder)}


def _videos(folder: Path, count: int, parts: tuple[str, str] = ("0 0.2", "0.04 0.24")) -> Arguments:
    for number, (suffix, (_, make)) in enumerate(list(VIDEOS.items())[:count]):
        (folder / f"{number}.{suffix}").write_bytes(make()[-1])
    lines = [f"{folder}/0.mp4 3", f"{folder}/1.mkv 1 {parts[0]}", f"{folder}/2.avi 2 {parts[1]}", f"{folder}/3.webm 0"]
    (folder / "list.txt").write_text("\n".join(lines) + "\n")
    return {"file_list": str(folder / "list.txt"), "sequence_length": 3}


def _videos_by_frames(folder: Path, count: int) -> Arguments:
    return {**_videos(folder, count, ("0 4", "1 6")), "file_list_frame_num": True}


def _video_names(folder: Path, count: int) -> Arguments:
    _videos(folder, count)
    (folder / "list.txt").unlink()
    names = sorted(map(str, folder.iterdir()))
    return {"filenames": names, "labels": list(range(len(names))), "sequence_length": 2}


def _sequences(folder: Path, count: int) -> Arguments:
    made = IMAGES["png"][1]()
    for video in range(2):
        for number in range(count):
            path = folder / f"film{video}" / f"{number}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(made[video])
    return {"file_root": str(folder), "sequence_length": 2}


def _speech(folder: Path, count: int) -> Arguments:
    """As in the tests of the reader, with other formats in addition to WAV."""
    given = dict(DATASETS["readers.nemo_asr"](folder, count))
    (folder / "0.wav").write_bytes(AUDIO["flac"][1]()[0])
    return given


def _indexed_archives(folder: Path, count: int) -> Arguments:
    """As in the tests of the reader, with the text files that DALI's ``wds2idx`` writes."""
    given = DATASETS["readers.webdataset"](folder, count)
    indices = []
    for path in map(Path, given["paths"]):
        places: dict[str, list[str]] = {}
        with tarfile.open(path) as archive:
            for member in archive:
                stem, _, extension = member.name.partition(".")
                line = f"{extension} {member.offset_data} {member.size} {member.name}"
                places.setdefault(stem, []).append(line)
        lines = [" ".join(items) for items in places.values()]
        path.with_suffix(".idx").write_text("\n".join([f"v1.2 {len(lines)}", *lines]) + "\n")
        indices.append(str(path.with_suffix(".idx")))
    return {**given, "index_paths": indices}


_SHUFFLED: Arguments = {"random_shuffle": True, "initial_fill": 3}
_BOTH: Mapping[str, Arguments] = {"plain": {}, "shuffled": _SHUFFLED}

TARGETS: list[Target] = [
    ReaderTarget(
        "reader.fits",
        "experimental.readers.fits",
        DATASETS["experimental.readers.fits"],
        None,
        ("astropy",),
        seconds=_SECONDS_OF_HELPERS,
    ),
    ReaderTarget("reader.arrow", "readers.arrow", DATASETS["readers.arrow"], _BOTH, ("pyarrow",)),
    ReaderTarget("reader.caffe", "readers.caffe", DATASETS["readers.caffe"], _BOTH, ("lmdb",)),
    ReaderTarget("reader.caffe2", "readers.caffe2", DATASETS["readers.caffe2"], _BOTH, ("lmdb",)),
    ReaderTarget(
        "reader.coco",
        "readers.coco",
        DATASETS["readers.coco"],
        {
            "polygons": {},
            "pixels": {"polygon_masks": False, "pixelwise_masks": True},
            "relative": {"ratio": True, "ltrb": True, "skip_empty": True},
            "boxes": {"polygon_masks": False, "avoid_class_remapping": True, "include_iscrowd": False},
        },
        ("pycocotools",),
        "*.json",
    ),
    ReaderTarget("reader.file_list", "readers.file", _images, _BOTH, (), "*.txt"),
    ReaderTarget(
        "reader.hdf5", "readers.hdf5", DATASETS["readers.hdf5"], _BOTH, ("h5py",), seconds=_SECONDS_OF_HELPERS
    ),
    ReaderTarget("reader.mxnet", "readers.mxnet", DATASETS["readers.mxnet"], _BOTH),
    ReaderTarget(
        "reader.nemo_asr",
        "readers.nemo_asr",
        _speech,
        {"plain": {}, "resampled": {"sample_rate": 11025.0}, "channels": {"downmix": False, "max_duration": 9.0}},
        ("soundfile",),
    ),
    ReaderTarget(
        "reader.numpy",
        "readers.numpy",
        DATASETS["readers.numpy"],
        {
            "whole": {},
            "window": {"roi_start": [1], "roi_axes": [0]},
            "padded": {"roi_start": [-1, 1], "roi_end": [5, 9], "out_of_bounds_policy": "pad"},
            "kept": {"cache_header_information": True, "rel_roi_shape": [0.5, 0.5]},
        },
    ),
    ReaderTarget("reader.numpy_list", "readers.numpy", _numpy_list, _BOTH, (), "*.txt"),
    ReaderTarget("reader.parquet", "readers.parquet", DATASETS["readers.parquet"], _BOTH, ("pyarrow",)),
    ReaderTarget(
        "reader.sequence", "readers.sequence", _sequences, {"plain": {}, "strided": {"stride": 2}}, (), "*.png"
    ),
    ReaderTarget("reader.tfrecord", "readers.tfrecord", DATASETS["readers.tfrecord"], _BOTH),
    ReaderTarget(
        "reader.video",
        "readers.video",
        _video_names,
        {"plain": {}, "timed": {"enable_timestamps": True, "enable_frame_num": "sequence", "pad_sequences": True}},
        ("av",),
    ),
    ReaderTarget(
        "reader.video_list",
        "readers.video",
        _videos,
        {"plain": {}, "rounded": {"file_list_include_preceding_frame": True, "step": 1}},
        ("av",),
        "*.txt",
    ),
    ReaderTarget("reader.video_frame_list", "readers.video", _videos_by_frames, None, ("av",), "*.txt"),
    ReaderTarget(
        "reader.video_experimental",
        "experimental.readers.video",
        _video_names,
        {"plain": {}, "strided": {"stride": 2}},
        ("av",),
    ),
    ReaderTarget(
        "reader.webdataset",
        "readers.webdataset",
        DATASETS["readers.webdataset"],
        {**_BOTH, "incomplete": {"missing_component_behavior": "empty"}},
    ),
    ReaderTarget("reader.webdataset_index", "readers.webdataset", _indexed_archives, _BOTH),
    ReaderTarget("reader.zarr", "readers.zarr", DATASETS["readers.zarr"], _BOTH, ("zarr",)),
]
