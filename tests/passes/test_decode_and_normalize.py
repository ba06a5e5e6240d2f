"""A decoder, the random crop and the normalization after it become one operator, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import DecodeError, LimitError, ShapeError
from dalify.codecs import decode_batch
from dalify.codecs.jpeg_decoder import JpegDecoder
from tests.helpers.built_graph import omit_passes
from tests.passes.test_push_crop_into_resize import names_in

JOINED = "_decode_random_crop_normalize"
PARTS = {"_decode_for_crop", "_random_resized_crop_normalize"}


@pytest.fixture
def mixed_files(tmp_path: Path) -> Path:
    """Files of all kinds that decoders treat differently."""
    folder = tmp_path / "files" / "0"
    folder.mkdir(parents=True)
    random = np.random.default_rng(3)
    turned = Image.Exif()
    turned[0x0112] = 6
    options: list[tuple[str, dict[str, Any]]] = [
        ("jpg", {"quality": 90}),
        ("jpg", {"progressive": True}),
        ("jpg", {"subsampling": 0}),
        ("jpg", {"subsampling": 2, "exif": turned}),
        ("png", {}),
        ("bmp", {}),
    ]
    for number in range(24):
        kind, given = options[number % len(options)]
        height, width = random.integers(20, 300, 2)
        pixels = random.integers(0, 255, (1 + height // 8, 1 + width // 8, 3), np.uint8)
        image = Image.fromarray(pixels).resize((int(width), int(height)))
        image = image.convert("L") if number % 7 == 5 else image
        image.save(folder / f"{number:02d}.{kind}", **given)
    return folder.parent


def define(folder: Path, size: Any = 40, *, device: str = "cpu", batch_size: int = 7, **given: Any) -> Pipeline:
    def taken(*names: str) -> dict[str, Any]:
        return {name: given.pop(name) for name in names if name in given}

    pipeline_options = taken("on_error", "limits", "num_threads")
    decoding = taken("output_type", "adjust_orientation", "use_fast_idct")
    cropping = taken(
        "random_area", "random_aspect_ratio", "num_attempts", "interp_type", "mag_filter", "antialias", "seed"
    )

    @pipeline_def(batch_size=batch_size, seed=5, **{"num_threads": 2, **pipeline_options})
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(folder), random_shuffle=True)
        images = fn.random_resized_crop(fn.decoders.image(encoded, device=device, **decoding), size=size, **cropping)
        normalizing: dict[str, Any] = {name: value() if callable(value) else value for name, value in given.items()}
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **normalizing)

    return pipeline()


def pixels(pipe: Any) -> np.ndarray[Any, Any]:
    return pipe.run()[0].as_array()


def separate(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Pipeline]) -> Pipeline:
    with monkeypatch.context() as patch:
        omit_passes(patch, "fuse")
        pipe = make()
        assert not names_in(pipe) & {JOINED, "_random_resized_crop_normalize"}
    return pipe


@pytest.mark.parametrize("load_after", [0, 10**9])
@pytest.mark.parametrize(
    ("size", "options"),
    [
        (40, {}),
        ([24, 56], {"mean": [100.0, 110.0, 120.0], "std": [50.0, 51.0, 52.0], "scale": 2.0, "shift": 1.0}),
        (16, {"random_area": [0.9, 1.0]}),  # the images need more memory than the results
        (16, {"batch_size": 1}),
        (200, {"random_area": [0.01, 0.1], "seed": 3}),
        (40, {"interp_type": types.INTERP_LANCZOS3, "output_type": types.BGR}),
        (40, {"interp_type": types.INTERP_CUBIC, "antialias": False, "adjust_orientation": False}),
        (40, {"use_fast_idct": True, "num_attempts": 1, "random_aspect_ratio": [0.2, 5.0]}),
    ],
)
def test_results_equal_those_of_separate_operators(
    mixed_files: Path, monkeypatch: pytest.MonkeyPatch, load_after: int, size: Any, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(decode_batch, "jpeg_decoder", JpegDecoder(load_after, load_after))
    joined = define(mixed_files, size, **options)
    assert JOINED in names_in(joined)
    assert not names_in(joined) & PARTS
    other = separate(monkeypatch, lambda: define(mixed_files, size, **options))
    for _ in range(5):
        np.testing.assert_array_equal(pixels(joined), pixels(other))


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (40, {"output_type": types.GRAY}),
        (40, {"output_type": types.ANY_DATA}),
        (40, {"output_type": types.YCbCr}),
        (40, {"interp_type": types.INTERP_NN}),
        (40, {"mag_filter": types.INTERP_NN}),
        ([40, 8], {}),
        (40, {"dtype": types.FLOAT16}),
        (40, {"output_layout": "HWC"}),
        (40, {"mean": lambda: fn.random.uniform(range=[0.0, 1.0], shape=[3])}),
    ],
)
def test_what_is_not_joined(photo_folder: Path, size: Any, options: dict[str, Any]) -> None:
    pipe = define(photo_folder, size, **options)
    assert JOINED not in names_in(pipe)
    pipe.run()


def damaged(folder: Path) -> Path:
    path = sorted(folder.rglob("*.jpg"))[2]
    path.write_bytes(path.read_bytes()[:300])
    return path


def test_a_damaged_file_is_an_error_of_the_decoder(mixed_files: Path) -> None:
    path = damaged(mixed_files)
    pipe = define(mixed_files, batch_size=6)
    found: list[DecodeError] = []
    for _ in range(8):  # two epochs; after an error, the next batch is computed as usual
        try:
            pipe.run()
        except DecodeError as error:
            found.append(error)
    assert [error.operator for error in found] == ["fn.decoders.image"] * 2
    assert all(str(error.origin).endswith(path.name) for error in found)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_damaged_files_are_replaced(mixed_files: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    damaged(mixed_files)
    joined = define(mixed_files, on_error=policy)
    other = separate(monkeypatch, lambda: define(mixed_files, on_error=policy))
    for _ in range(8):
        np.testing.assert_array_equal(pixels(joined), pixels(other))
    assert joined.bad_samples() == other.bad_samples() != []


def test_large_images_are_refused(mixed_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"max_sample_bytes": 60_000}
    texts: list[str] = []
    for pipe in (
        define(mixed_files, 20, limits=limits),
        separate(monkeypatch, lambda: define(mixed_files, 20, limits=limits)),
    ):
        with pytest.raises(LimitError) as caught:
            pipe.run()
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_the_wrong_number_of_means_is_an_error_of_the_normalization(photo_folder: Path) -> None:
    pipe = define(photo_folder, mean=[1.0, 2.0], on_error="skip")
    assert JOINED in names_in(pipe)
    with pytest.raises(ShapeError, match=r"mean must be one number or one for each of the 3 channels; got 2") as caught:
        pipe.run()
    assert caught.value.operator == "fn.crop_mirror_normalize"


@pytest.mark.parametrize("num_threads", [1, 2, 5, 16])
def test_threads_do_not_change_results(mixed_files: Path, num_threads: int) -> None:
    one, other = define(mixed_files, num_threads=1), define(mixed_files, num_threads=num_threads)
    for _ in range(4):
        np.testing.assert_array_equal(pixels(one), pixels(other))
