"""Strings that dalify writes and reads: serialized graphs and checkpoints."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dalify
from dalify import fn, types
from dalify.base.errors import DalifyError, PipelineStateError
from dalify.pipeline.state import sealed
from tests.fuzz.inputs import Input
from tests.fuzz.mutations import mutated_json
from tests.fuzz.outcomes import OK, Outcome, of_error
from tests.fuzz.targets.base import Target
from tests.helpers.photos import drawn_photo, write_photo_folder

_TEXT = "text.json"
_HERE = "@FOLDER@"
_PHOTOS = [drawn_photo(12, 14, number) for number in range(2)]


def _photos() -> Any:
    return fn.external_source(name="photos", dtype=types.UINT8, ndim=3, layout="HWC")


def _images() -> Any:
    encoded, labels = fn.readers.file(file_root=f"{_HERE}/photos", random_shuffle=True, name="Reader")
    images = fn.random_resized_crop(fn.decoders.image(encoded), size=[8, 8])
    return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[120.0] * 3, std=[60.0] * 3), labels


def _branches() -> Any:
    photos = _photos()
    if fn.random.coin_flip():
        photos = fn.rotate(photos, angle=fn.random.uniform(range=[-30.0, 30.0]), keep_size=True)
    else:
        photos = fn.flip(photos)
    return photos, fn.shapes(photos) * 2 + 1


def _many() -> Any:
    photos = _photos()
    blurred = fn.gaussian_blur(fn.resize(photos, resize_x=9), sigma=1.5)
    return fn.cast(blurred[2:, :5], dtype=types.FLOAT) / 255.0, fn.reductions.mean(photos, axis_names="HW")


def _values() -> Any:
    noise = fn.random.normal(shape=[3, 4])
    return fn.cat(noise, fn.constant(fdata=[1.0] * 12, shape=[3, 4]), axis=0), fn.pad(noise, align=[8])


def _numpy() -> Any:
    return fn.readers.numpy(
        file_root=f"{_HERE}/arrays", shuffle_after_epoch=True, num_shards=2, shard_id=1, name="Reader"
    )


_GRAPHS: dict[str, Callable[[], Any]] = {
    "images": _images,
    "branches": _branches,
    "many": _many,
    "values": _values,
    "numpy": _numpy,
}


def _pipeline(name: str) -> Any:
    return dalify.pipeline_def(_GRAPHS[name])(
        batch_size=2, num_threads=1, prefetch_queue_depth=1, seed=5, device_id=None
    )


def _write_data(folder: Path) -> None:
    write_photo_folder(folder / "photos", images_per_class=2, longest_side=24)
    (folder / "arrays").mkdir()
    for number in range(5):
        np.save(folder / "arrays" / f"{number}.npy", np.arange(6).reshape(2, 3) + number)


def _run_some(pipe: Any, count: int = 3) -> Outcome:
    """Run batches, with `feed_input` for pipelines that need it."""
    found = OK
    for _ in range(count):
        try:
            with contextlib.suppress(PipelineStateError):  # not all graphs have such a source
                pipe.feed_input("photos", _PHOTOS)
            pipe.run()
        except StopIteration:
            break
        except Exception as error:
            found = of_error(error, isinstance(error, DalifyError))
            if found.is_finding:
                break
    return found


class GraphText(Target):
    """``Pipeline.deserialize`` on changed strings."""

    name = "graph_text"

    def __init__(self) -> None:
        self._folder = ""

    def prepare(self, folder: Path) -> list[Input]:
        """Serialize some pipelines."""
        _write_data(folder)
        self._folder = str(folder)
        inputs = []
        for name in _GRAPHS:
            text = _pipeline(name).serialize()
            inputs += [{_TEXT: text, ":options": way} for way in (b"given", b"own")]
        for given in inputs:
            self.run(given)
        return inputs

    def mutated(self, given: Input, other: Input, rng: random.Random) -> Input:
        """Change values of the document."""
        return {_TEXT: mutated_json(given[_TEXT], other[_TEXT], rng), ":options": given[":options"]}

    def run(self, given: Input) -> Outcome:
        """Make a pipeline of the text and run it."""
        text = given[_TEXT].replace(_HERE.encode(), self._folder.encode())
        # The user chooses the number of threads; it is not data; the batch size may be that of the text.
        options: dict[str, Any] = {"num_threads": 1, "device_id": None, "prefetch_queue_depth": 1}
        if given[":options"] == b"given":
            options |= {"batch_size": 2, "seed": 1}
        pipe = None
        try:
            pipe = dalify.Pipeline.deserialize(text, **options)
            pipe.build()
        except Exception as error:
            if pipe is not None:
                pipe.close()
            return of_error(error, isinstance(error, DalifyError), past_tracing=False)
        try:
            return _run_some(pipe, 2)
        finally:
            pipe.close()


class Checkpoint(Target):
    """``load_state_dict`` and ``checkpoint=`` on changed states, most of them with the right check sum."""

    name = "checkpoint"
    _WAYS = (b"load", b"constructor", b"later", b"list")

    def __init__(self) -> None:
        self._folder = Path()

    def prepare(self, folder: Path) -> list[Input]:
        """Save the states of some pipelines."""
        _write_data(folder)
        self._folder = folder
        inputs = []
        for name in _GRAPHS:
            pipe = self._made(name)
            for _ in range(2):
                _run_some(pipe, 1)
                text = pipe.checkpoint()
                inputs += [{_TEXT: text, ":graph": name.encode(), ":way": way} for way in self._WAYS]
            pipe.close()
        for given in inputs:
            self.run(given)
        return inputs

    def _made(self, name: str, **options: Any) -> Any:
        text = _pipeline(name).serialize().replace(_HERE.encode(), bytes(self._folder))
        return dalify.Pipeline.deserialize(text, **options)

    def mutated(self, given: Input, other: Input, rng: random.Random) -> Input:
        """Change values, and mostly make the check sum right."""
        text = mutated_json(given[_TEXT], other[_TEXT], rng)
        if rng.random() < 0.85:
            with contextlib.suppress(DalifyError, ValueError, TypeError, AttributeError, RecursionError):
                text = _resealed(text)
        return {_TEXT: text, ":graph": given[":graph"], ":way": rng.choice(self._WAYS)}

    def run(self, given: Input) -> Outcome:
        """Restore and run on."""
        way, name, text = given[":way"], given[":graph"].decode(), given[_TEXT]
        pipe, state = None, text
        if way == b"load":
            try:
                state = json.loads(text)
            except (ValueError, RecursionError):
                return OK  # Python's parser
        try:
            if way == b"constructor":
                pipe = self._made(name, checkpoint=text)
                pipe.build()
            else:
                pipe = self._made(name)
                if way == b"later":
                    _run_some(pipe, 1)
                pipe.load_state_dict([text, text] if way == b"list" else state)
                pipe.build()
        except Exception as error:
            found = of_error(error, isinstance(error, DalifyError), past_tracing=False)
            if found.is_finding or pipe is None:
                return found
        try:
            return _run_some(pipe, 2)
        finally:
            pipe.close()


def _resealed(text: bytes) -> bytes:
    """Return a checkpoint with the check sum of its contents."""
    state = json.loads(text)
    state.pop("check", None)
    return json.dumps(sealed(state)).encode()


TARGETS: list[Target] = [GraphText(), Checkpoint()]
