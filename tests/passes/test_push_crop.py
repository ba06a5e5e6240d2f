"""A decoder that knows the crop behind it leaves out rows, and nobody sees a difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, passes, pipeline_def, types
from dalify.base.errors import DecodeError
from dalify.pipeline.pipeline import parts_of

SIZE = [40, 56]


def names_in(pipe: Pipeline) -> set[str]:
    """Operators of the graph after all passes."""
    pipe.build()
    built = parts_of(pipe).builder.built
    assert built is not None
    return {node.operator.name for node in built.graph.nodes()}


def both_ways(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Pipeline]) -> tuple[Pipeline, Pipeline]:
    """Build one pipeline with the pass and one without it."""
    pushed = make()
    assert "_decode_for_crop" in names_in(pushed)
    with monkeypatch.context() as patch:
        patch.setattr(passes, "PASSES", tuple(item for item in passes.PASSES if item[0] is not passes.push_crop))
        plain = make()
        assert "_decode_for_crop" not in names_in(plain)
    return pushed, plain


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"interp_type": types.INTERP_LANCZOS3},
        {"interp_type": types.INTERP_NN},
        {"antialias": False, "random_area": [0.01, 0.1]},
        {"dtype": types.FLOAT, "num_attempts": 1, "random_aspect_ratio": [0.2, 5.0]},
    ],
)
def test_same_pixels(photo_folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]) -> None:
    @pipeline_def(batch_size=8, num_threads=2, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.random_resized_crop(fn.decoders.image(encoded), size=SIZE, **arguments)

    pushed, plain = both_ways(monkeypatch, pipeline)
    for _ in range(4):
        np.testing.assert_array_equal(pushed.run()[0].as_array(), plain.run()[0].as_array())


def test_only_where_nobody_else_reads_the_image(photo_folder: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=1, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        images = fn.decoders.image(encoded)
        return fn.random_resized_crop(images, size=SIZE), images.shape()

    assert "_decode_for_crop" not in names_in(pipeline())


@pytest.mark.usefixtures("gpu")
def test_mixed(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALIFY_DEVICE_DECODER", "host")  # others round parts of images differently

    @pipeline_def(batch_size=4, num_threads=2, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        return fn.random_resized_crop(fn.decoders.image(encoded, device="mixed"), size=SIZE)

    pushed, plain = both_ways(monkeypatch, pipeline)
    found, wanted = (pipe.run()[0].as_cpu().as_array() for pipe in (pushed, plain))
    np.testing.assert_array_equal(found, wanted)


def test_errors_name_the_operator_that_the_user_wrote(tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8 not a picture")

    @pipeline_def(batch_size=1, num_threads=1)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(files=[str(tmp_path / "broken.jpg")])
        return fn.random_resized_crop(fn.decoders.image(encoded), size=SIZE)

    with pytest.raises(DecodeError) as caught:
        pipeline().run()
    assert str(caught.value).startswith("fn.decoders.image: ")
    assert "broken.jpg" in str(caught.value)
    assert "fn.random_resized_crop(fn.decoders.image(encoded), size=SIZE)" in str(caught.value)
