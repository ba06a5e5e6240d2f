"""decoders.image through pipelines."""

from __future__ import annotations

import io
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dalify import fn, pipeline_def, types
from dalify.base.errors import DecodeError, DTypeError
from tests.helpers.real_dali import run_dali


def decoded(files: list[str], operator: Any = fn.decoders.image, **arguments: Any) -> list[np.ndarray]:
    """Decode files as one batch in a pipeline; the result on the host."""

    @pipeline_def(batch_size=len(files), num_threads=2, seed=1)
    def graph() -> Any:
        encoded, _ = fn.readers.file(files=files)
        return operator(encoded, **arguments)

    (images,) = graph().run()
    return [np.asarray(image) for image in images.as_cpu()]


def encoded_of(files: list[str]) -> list[np.ndarray]:
    return [np.fromfile(path, np.uint8) for path in files]


@pytest.fixture(scope="module")
def files(photo_list: list[tuple[Path, int]]) -> list[str]:
    return [str(path) for path, _ in photo_list]


@pytest.mark.parametrize("output_type", ["RGB", "BGR", "GRAY", "YCbCr"])
def test_batches_equal_dali(files: list[str], output_type: str) -> None:
    ours = decoded(files, output_type=getattr(types, output_type))
    theirs = run_dali("decoders.image", encoded_of(files), output_type=output_type)
    for image, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(image, expected)


def inks() -> dict[str, np.ndarray]:
    """CMYK in squares of one color, which JPEG preserves; once without Adobe's segment, and once called YCCK there."""
    colors = np.random.default_rng(5).integers(0, 256, (20, 20, 4), np.uint8)
    image = Image.frombytes("CMYK", (160, 160), colors.repeat(8, 0).repeat(8, 1).tobytes())
    files = {}
    for kind in ("JPEG", "TIFF"):
        file = io.BytesIO()
        image.save(file, kind, quality=100)
        files[kind] = file.getvalue()
    data = files["JPEG"]
    start = data.index(b"\xff\xee")
    end = start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    files["without segment"] = data[:start] + data[end:]
    files["YCCK"] = data[: end - 1] + b"\2" + data[end:]
    return {name: np.frombuffer(data, np.uint8) for name, data in files.items()}


@pytest.mark.parametrize("output_type", ["RGB", "BGR", "GRAY"])
@pytest.mark.parametrize("name", ["JPEG", "TIFF", "without segment", "YCCK"])
def test_inks_equal_dali(name: str, output_type: str) -> None:
    data = inks()[name]

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph() -> Any:
        encoded = fn.external_source(lambda: [data])
        return fn.decoders.image(encoded, output_type=getattr(types, output_type))

    (expected,) = run_dali("decoders.image", [data], output_type=output_type)
    with closing(graph()) as pipe:
        np.testing.assert_array_equal(np.asarray(pipe.run()[0][0]), expected)


@pytest.mark.parametrize("dtype", ["FLOAT", "UINT16", "INT16"])
def test_element_types_equal_dali(files: list[str], dtype: str) -> None:
    ours = decoded(files[:3], dtype=getattr(types, dtype))
    theirs = run_dali("decoders.image", encoded_of(files[:3]), dtype=dtype)
    for image, expected in zip(ours, theirs, strict=True):
        assert image.dtype == expected.dtype
        np.testing.assert_allclose(image, expected, rtol=2e-7)


def test_results_of_mixed_are_on_the_gpu(device: str, files: list[str]) -> None:
    name = {"cpu": "cpu", "gpu": "mixed"}[device]

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def graph() -> Any:
        encoded, _ = fn.readers.file(files=files)
        images = fn.decoders.image(encoded, device=name, hybrid_huffman_threshold=1, hw_decoder_load=0.5)
        assert images.device == device
        return images

    (images,) = graph().run()
    np.testing.assert_array_equal(np.asarray(images.as_cpu()[0]), np.asarray(Image.open(files[0])))


def test_wrong_data_are_named_with_their_file(tmp_path: Path, files: list[str]) -> None:
    path = tmp_path / "broken.jpg"
    path.write_bytes(Path(files[0]).read_bytes()[:900])
    other = tmp_path / "text.jpg"
    other.write_text("hello")
    for name, message in ((path, "truncated JPEG"), (other, "starts with b'hello'")):
        with pytest.raises(DecodeError, match=message) as caught:
            decoded([files[0], files[1], str(name)])
        assert str(name) in str(caught.value)
        assert "sample 2" in str(caught.value)
        assert "test_image.py" in str(caught.value)


def test_images_need_no_decoder(files: list[str]) -> None:
    with pytest.raises(DTypeError, match="needs encoded files"):
        decoded(files[:1], lambda encoded: fn.decoders.image(fn.decoders.image(encoded)))
    with pytest.raises(DTypeError, match="bool"):
        decoded(files[:1], dtype=types.BOOL)
