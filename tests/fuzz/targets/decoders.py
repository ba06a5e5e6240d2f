"""Decoders: a good and a changed file in one batch, fed to pipelines that are used again."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dalify
from dalify import fn, types
from dalify.base.errors import DalifyError, DTypeError, IndexingError, PipelineStateError, ShapeError
from tests.fuzz.formats import mutated_file
from tests.fuzz.inputs import Input
from tests.fuzz.outcomes import OK, Outcome, of_error
from tests.fuzz.seeds import AUDIO, IMAGES, VIDEOS, lz4_block
from tests.fuzz.targets.base import Target, bytes_of, same_outputs

Graph = Callable[[Any], Any]
_FILE, _WAY = "file", ":way"

_IMAGE_WAYS: dict[str, Graph] = {
    "rgb": fn.decoders.image,
    "any": lambda x: fn.decoders.image(x, output_type=types.ANY_DATA),
    "gray": lambda x: fn.decoders.image(x, output_type=types.GRAY),
    "ycbcr": lambda x: fn.decoders.image(x, output_type=types.YCbCr, adjust_orientation=False),
    "deep": lambda x: fn.decoders.image(x, output_type=types.ANY_DATA, dtype=types.UINT16),
    "float": lambda x: fn.decoders.image(x, dtype=types.FLOAT),
    "crop": lambda x: fn.decoders.image_crop(x, crop=[7, 9]),
    "random crop": lambda x: fn.decoders.image_random_crop(x, seed=3),
    "slice": lambda x: fn.decoders.image_slice(x, rel_start=[0.1, 0.2], rel_end=[0.9, 0.7], axis_names="HW"),
    "shape": fn.peek_image_shape,
    "resized": lambda x: fn.resize(fn.decoders.image(x), size=[10, 12]),
}
_AUDIO_WAYS: dict[str, Graph] = {
    "float": lambda x: tuple(fn.decoders.audio(x)),
    "mono": lambda x: tuple(fn.decoders.audio(x, downmix=True)),
    "resampled": lambda x: tuple(fn.decoders.audio(x, sample_rate=11025.0, downmix=True)),
    "int16": lambda x: tuple(fn.decoders.audio(x, dtype=types.INT16)),
}
_VIDEO_WAYS: dict[str, Graph] = {
    "all": fn.decoders.video,
    "some": lambda x: fn.decoders.video(x, frames=[3, 0, 5, 3]),
    "window": lambda x: fn.decoders.video(x, start_frame=2, sequence_length=9, pad_mode="constant"),
}
_NUMPY_WAYS: dict[str, Graph] = {
    "float": lambda x: fn.decoders.numpy(x, dtype=types.FLOAT),
}


class DecoderTarget(Target):
    """A decoder on the files of one format.

    Args:
        name: of the target.
        form: of ``tests.fuzz.formats``.
        make: makes the valid files.
        ways: graphs on the fed files, by name.
        packages: that it needs.
    """

    def __init__(
        self,
        name: str,
        form: str,
        make: Callable[[], Sequence[bytes]],
        ways: Mapping[str, Graph],
        packages: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.packages = packages  # pyright: ignore[reportAttributeAccessIssue]
        self._form = form
        self._make = make
        self._ways = ways
        self._pipes: dict[tuple[str, str], Any] = {}
        self._good: list[np.ndarray] = []
        self._expected: dict[str, list[list[np.ndarray]]] = {}

    def prepare(self, folder: Path) -> list[Input]:
        """Run every graph with every valid file."""
        seeds = self._make()
        self._good = [np.frombuffer(seed, np.uint8) for seed in seeds]
        for way, graph in self._ways.items():
            for policy in ("raise", "replace"):
                pipe = dalify.Pipeline(
                    batch_size=2, num_threads=1, prefetch_queue_depth=1, seed=1, on_error=policy, device_id=None
                )
                with pipe:
                    made = graph(fn.external_source(name="file", dtype=types.UINT8, ndim=1))
                    pipe.set_outputs(*(made if isinstance(made, tuple) else (made,)))
                pipe.build()
                self._pipes[way, policy] = pipe
            # Decoders that draw windows give another one for each batch: only results without draws are compared.
            self._expected[way] = self._run(way, "raise", [self._good[0], self._good[0]])
        inputs = [{_FILE: seed, _WAY: way.encode()} for seed in seeds for way in self._ways]
        for given in inputs:
            self.run(given)
        return inputs

    def mutated(self, given: Input, other: Input, rng: random.Random) -> Input:
        """Change the file, and perhaps the graph."""
        way = rng.choice(list(self._ways)).encode() if rng.random() < 0.3 else given[_WAY]
        return {_FILE: mutated_file(given[_FILE], other[_FILE], self._form, rng), _WAY: way}

    def _run(self, way: str, policy: str, samples: list[np.ndarray]) -> list[list[np.ndarray]]:
        return bytes_of(self._pipes[way, policy].run(file=samples))

    def run(self, given: Input) -> Outcome:
        """Decode the file together with a valid one; the result of the valid one must not change."""
        way, good = given[_WAY].decode(), self._good[0]
        bad = np.frombuffer(given[_FILE], np.uint8)
        try:
            outputs = self._run(way, "raise", [good, bad])
            return self._beside(way, outputs) or OK
        except Exception as error:
            found = of_error(error, isinstance(error, DalifyError) and error.sample == 1)
            # A window outside of the image, or arrays that make no batch, are not one sample's mistake: not replaced.
            if found.is_finding or isinstance(error, (IndexingError, ShapeError, DTypeError)):
                return found
        try:
            again = self._run(way, "raise", [good, good])
        except Exception as error:
            return _wrong("good files fail after the error", error)
        if not self._is_random(way) and not same_outputs(again, self._expected[way]):
            return Outcome("wrong", "Different", "good files give another result after the error")
        try:
            outputs = self._run(way, "replace", [good, bad])
        except Exception as error:
            return _wrong("on_error='replace' does not replace the sample", error)
        return self._beside(way, outputs) or found

    def _beside(self, way: str, outputs: list[list[np.ndarray]]) -> Outcome | None:
        expected = [[samples[0]] for samples in self._expected[way]]
        if self._is_random(way) or same_outputs([[samples[0]] for samples in outputs], expected):
            return None
        return Outcome("wrong", "Different", "the good file next to the changed one gives another result")

    def _is_random(self, way: str) -> bool:
        return way == "random crop"

    def check(self) -> Outcome:
        """Decode good files in every way."""
        for way in self._ways:
            try:
                again = self._run(way, "raise", [self._good[0], self._good[0]])
            except Exception as error:
                return _wrong("good files fail", error)
            if not self._is_random(way) and not same_outputs(again, self._expected[way]):
                return Outcome("wrong", "Different", f"good files give another result: {way}")
        return OK


def _wrong(what: str, error: Exception) -> Outcome:
    found = of_error(error, True)
    return Outcome("wrong", found.error, f"{what}: {error}"[:2000], found.place, found.traceback or str(error))


class InflateTarget(Target):
    """LZ4 blocks with shapes that fit or do not."""

    name = "decoders.inflate"

    def __init__(self) -> None:
        self._pipe: Any = None
        self._good = np.frombuffer(lz4_block(bytes(range(48)) * 2), np.uint8)

    def prepare(self, folder: Path) -> list[Input]:
        """Inflate valid blocks."""
        self._pipe = dalify.Pipeline(batch_size=2, num_threads=1, prefetch_queue_depth=1, device_id=None)
        with self._pipe:
            data = fn.external_source(name="file", dtype=types.UINT8, ndim=1)
            shape = fn.external_source(name="shape", dtype=types.INT32, ndim=1)
            self._pipe.set_outputs(fn.decoders.inflate(data, shape=shape, dtype=types.UINT8, algorithm="LZ4"))
        self._pipe.build()
        blocks = [self._good.tobytes(), lz4_block(b"a" * 96), lz4_block(bytes(300)), b"\x50hello"]
        inputs = [
            {_FILE: block, ":shape": shape} for block, shape in zip(blocks, (b"96", b"8 12", b"300", b"5"), strict=True)
        ]
        for given in inputs:
            self.run(given)
        return inputs

    def mutated(self, given: Input, other: Input, rng: random.Random) -> Input:
        """Change the block, or the shape."""
        shape = given[":shape"]
        if rng.random() < 0.3:
            numbers = [0, 1, -1, 5, 96, 97, 95, 8, 12, 1 << 20, (1 << 31) - 1, -(1 << 31), 65536]
            shape = b" ".join(b"%d" % rng.choice(numbers) for _ in range(rng.randrange(1, 4)))
        return {_FILE: mutated_file(given[_FILE], other[_FILE], "any", rng), ":shape": shape}

    def run(self, given: Input) -> Outcome:
        """Inflate together with a good block of one dimension."""
        shape = np.array(given[":shape"].split(), np.int32)
        good_shape = np.array([96] + [1] * (len(shape) - 1), np.int32)
        try:
            self._pipe.run(file=[self._good, np.frombuffer(given[_FILE], np.uint8)], shape=[good_shape, shape])
            found = OK
        except Exception as error:
            found = of_error(error, isinstance(error, DalifyError) and error.sample is not None)
        return found if found.is_finding else self._after(found)

    def _after(self, found: Outcome) -> Outcome:
        check = self.check()
        return check if check.is_finding else found

    def check(self) -> Outcome:
        """Inflate good blocks."""
        try:
            self._pipe.run(file=[self._good] * 2, shape=[np.array([96], np.int32)] * 2)
        except Exception as error:
            return _wrong("good blocks fail after the error", error)
        return OK


class FedVideoTarget(DecoderTarget):
    """``experimental.inputs.video``: a video that is fed to a pipeline, for each input a new one."""

    def prepare(self, folder: Path) -> list[Input]:
        """Make the files."""
        inputs = [{_FILE: seed, _WAY: way.encode()} for seed in self._make() for way in self._ways]
        for given in inputs:
            self.run(given)
        return inputs

    def run(self, given: Input) -> Outcome:
        """Feed the file and run to its end."""
        pipe = dalify.Pipeline(batch_size=2, num_threads=1, prefetch_queue_depth=1, device_id=None)
        try:
            with pipe:
                pipe.set_outputs(self._ways[given[_WAY].decode()](None))
            pipe.build()
            pipe.feed_input("video", np.frombuffer(given[_FILE], np.uint8)[None])
            for _ in range(6):
                pipe.run()
        except (StopIteration, PipelineStateError):  # all that was fed has come out
            return OK
        except Exception as error:
            return of_error(error, isinstance(error, DalifyError) and (error.operator or error.line) is not None)
        finally:
            pipe.close()
        return OK

    def check(self) -> Outcome:
        """No pipeline is kept."""
        return OK


_FED_WAYS: dict[str, Graph] = {
    "whole": lambda _: fn.experimental.inputs.video(name="video", sequence_length=3),
    "partial": lambda _: fn.experimental.inputs.video(name="video", sequence_length=4, last_sequence_policy="pad"),
}


def _numpy_files() -> list[bytes]:
    import io

    found = []
    arrays = [
        np.arange(6.0, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0, dtype=np.float32).reshape(2, 3)),
    ]
    arrays += [np.arange(4, dtype=np.float32), np.float32(3), np.zeros((0, 3), np.float32), np.ones((2, 2), ">f4")]
    for array in arrays:
        file = io.BytesIO()
        np.save(file, array)
        found.append(file.getvalue())
    return found


TARGETS: list[Target] = [
    *(DecoderTarget(f"image.{name}", form, make, _IMAGE_WAYS) for name, (form, make) in IMAGES.items()),
    *(DecoderTarget(f"audio.{name}", form, make, _AUDIO_WAYS, ("soundfile",)) for name, (form, make) in AUDIO.items()),
    *(DecoderTarget(f"video.{name}", form, make, _VIDEO_WAYS, ("av",)) for name, (form, make) in VIDEOS.items()),
    FedVideoTarget("video.fed", "mp4", VIDEOS["mp4"][1], _FED_WAYS, ("av",)),
    DecoderTarget("decoders.numpy", "npy", _numpy_files, _NUMPY_WAYS),
    InflateTarget(),
]
