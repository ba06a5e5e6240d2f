"""An error of an image is an error of its sample: the sample is named, and can be skipped or replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dalify import fn, pipeline_def
from dalify.base.errors import DecodeError
from dalify.codecs import decode_batch as group
from tests.helpers.hostile_images import bombs, encoded
from tests.helpers.photos import encode_image

COUNT = 8
BAD = 3


def truncated_palette() -> bytes:
    return encode_image(
        Image.radial_gradient("L").resize((40, 30)).convert("P", palette=Image.Palette.ADAPTIVE), "BMP"
    )[:1500]


SPOILT: dict[str, Callable[[], bytes]] = {
    "palette": truncated_palette,
    **{name: (lambda name=name: bombs()[name]) for name in bombs()},
    "jpeg 2000 without header": lambda: encoded("JPEG2000").replace(b"jp2h", b"free"),
    "png": lambda: encoded("PNG")[:60],
}
DECODERS: dict[str, Callable[[Any], Any]] = {
    "image": lambda encoded: fn.decoders.image(encoded),
    "crop": lambda encoded: fn.decoders.image_crop(encoded, crop=[8, 8]),
    "slice": lambda encoded: fn.decoders.image_slice(encoded, rel_start=[0, 0], rel_shape=[0.2, 0.2]),
    "random crop": lambda encoded: fn.decoders.image_random_crop(encoded, seed=1),
    "cropped later": lambda encoded: fn.random_resized_crop(fn.decoders.image(encoded), size=[8, 8], seed=1),
    "shape": lambda encoded: fn.peek_image_shape(encoded),
}


def files(folder: Path, bad: bytes) -> list[str]:
    paths = [folder / f"{number}.bin" for number in range(COUNT)]
    for number, path in enumerate(paths):
        path.write_bytes(bad if number == BAD else encoded("PNG"))
    return [str(path) for path in paths]


def decoding(paths: list[str], decoder: str, on_error: str) -> Any:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, on_error=on_error)
    def pipeline() -> Any:
        return DECODERS[decoder](fn.readers.file(files=paths)[0])

    return pipeline()


def check(paths: list[str], decoder: str, on_error: str) -> None:
    pipe = decoding(paths, decoder, on_error)
    if on_error == "raise":
        with pytest.raises(DecodeError) as caught:
            pipe.run()
        assert f"sample {BAD} of the batch, from {paths[BAD]}" in str(caught.value)
        assert len(pipe.run()[0]) == 4  # the next run returns the next batch
        return
    for _ in range(COUNT // 4):
        assert len(pipe.run()[0]) == 4
    assert [sample.source for sample in pipe.bad_samples()] == [paths[BAD]]


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("name", SPOILT)
def test_damaged_files(name: str, on_error: str, tmp_path: Path) -> None:
    check(files(tmp_path, SPOILT[name]()), "image", on_error)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_every_decoder(decoder: str, on_error: str, tmp_path: Path) -> None:
    check(files(tmp_path, bombs()["jpeg"]), decoder, on_error)


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("kind", [MemoryError, OSError, AssertionError, KeyError, UserWarning])
def test_any_exception_is_an_error_of_the_sample(
    kind: type[Exception], on_error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = b"a mark of this file"
    paths = files(tmp_path, encoded("PNG") + mark)
    original = group.decode_image

    def fails(data: np.ndarray, *arguments: Any, **named: Any) -> Any:
        if data.tobytes().endswith(mark):
            raise kind("of a library")
        return original(data, *arguments, **named)

    monkeypatch.setattr(group, "decode_image", fails)
    if kind is AssertionError:  # raised by dalify: a bug, which must not be skipped
        with pytest.raises(AssertionError):
            decoding(paths, "image", on_error).run()
    else:
        check(paths, "image", on_error)
