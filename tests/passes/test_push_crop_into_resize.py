"""A resize before a crop computes only the pixels of the crop, exactly the same ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalify import Pipeline, fn, pipeline_def, types
from dalify.base.errors import IndexingError
from tests.helpers.built_graph import names_in, omit_passes


def prepared(folder: Path, resizing: dict[str, Any], cropping: dict[str, Any]) -> Pipeline:
    @pipeline_def(batch_size=8, num_threads=2, seed=5)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(folder))
        images = fn.resize(fn.decoders.image(encoded), **resizing)
        return fn.crop_mirror_normalize(images, mean=[10.0, 20.0, 30.0], std=[2.0], **cropping)

    return pipeline()


@pytest.mark.parametrize(
    ("resizing", "cropping"),
    [
        ({"resize_shorter": 60}, {"crop": [56, 48]}),
        ({"resize_shorter": 60}, {"crop": [56, 48], "crop_pos_x": 0.0, "crop_pos_y": 1.0, "mirror": 1}),
        ({"resize_shorter": 60, "interp_type": types.INTERP_TRIANGULAR}, {"crop_h": 31, "crop_w": 57}),
        ({"size": [80, 70], "interp_type": types.INTERP_CUBIC}, {"crop": [80, 13], "rounding": "truncate"}),
        ({"resize_shorter": 300, "dtype": types.FLOAT}, {"crop": [224, 224], "output_layout": "HWC"}),
        # Narrow crops, at the border where other halves are rounded to even, and nearest pixels.
        ({"size": [30, 30]}, {"crop": [24, 24]}),
        ({"size": [33, 45]}, {"crop": [33, 4], "crop_pos_x": 1.0}),
        ({"size": [33, 45], "antialias": False}, {"crop": [9, 5], "output_layout": "HWC"}),
        ({"size": [47, 39], "interp_type": types.INTERP_NN}, {"crop": [20, 30], "crop_pos_y": 0.75}),
        ({"size": [200, 39], "min_filter": types.INTERP_NN}, {"crop": [120, 30], "crop_pos_y": 0.75}),
    ],
)
def test_same_pixels(
    photo_folder: Path, monkeypatch: pytest.MonkeyPatch, resizing: dict[str, Any], cropping: dict[str, Any]
) -> None:
    fused = prepared(photo_folder, resizing, cropping)
    names = names_in(fused)
    assert names & {"_resize_crop", "_resize_crop_mirror_normalize"}
    assert "resize" not in names
    with monkeypatch.context() as patch:
        omit_passes(patch, "push_crop")
        plain = prepared(photo_folder, resizing, cropping)
        assert "resize" in names_in(plain)
    for _ in range(3):
        found, wanted = (pipe.run()[0].as_array() for pipe in (fused, plain))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", [kind.name for kind in types.DALIInterpType])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize(("size", "crop"), [([30, 33], [17, 20]), ([61, 30], [50, 9])])
def test_integers_of_all_filters(
    monkeypatch: pytest.MonkeyPatch, size: list[int], crop: list[int], channels: int, dtype: type, kind: str
) -> None:
    random = np.random.default_rng(0)
    images = [random.integers(0, 256, (*extents, channels)).astype(dtype) for extents in ((40, 50), (31, 77), (90, 20))]
    filters: dict[str, Any] = dict.fromkeys(("min_filter", "mag_filter"), types.DALIInterpType[kind])

    @pipeline_def(batch_size=3, num_threads=1)
    def pipeline() -> Any:
        fed = fn.external_source(lambda: images, layout="HWC", dtype=types.INT16 if dtype == np.int16 else types.UINT8)
        resized = fn.resize(fed, size=size, **filters)
        return fn.crop_mirror_normalize(resized, crop=crop, crop_pos_x=0.25, crop_pos_y=1.0)

    moved = pipeline()
    assert "resize" not in names_in(moved)
    with monkeypatch.context() as patch:
        omit_passes(patch, "push_crop")
        plain = pipeline()
        assert "resize" in names_in(plain)
    np.testing.assert_array_equal(moved.run()[0].as_array(), plain.run()[0].as_array())


@pytest.mark.parametrize(
    ("resizing", "cropping"),
    [
        ({"resize_shorter": 40}, {"crop": [41, 40]}),
        ({"resize_longer": 60}, {"crop": [8, 8]}),
        ({"resize_shorter": 60, "max_size": 64}, {"crop": [32, 32]}),
        ({"resize_x": 60}, {"crop": [8, 8]}),
        ({"resize_shorter": 60}, {"crop": [8, 3]}),
    ],
)
def test_not_where_the_window_may_not_fit_or_is_narrow(
    photo_folder: Path, resizing: dict[str, Any], cropping: dict[str, Any]
) -> None:
    assert not names_in(prepared(photo_folder, resizing, cropping)) & {
        "_resize_crop",
        "_resize_crop_mirror_normalize",
    }


def test_a_window_that_does_not_fit_is_still_an_error(photo_folder: Path) -> None:
    pipe = prepared(photo_folder, {"resize_shorter": 40}, {"crop": [4000, 40]})
    with pytest.raises(IndexingError, match=r"fn\.crop_mirror_normalize"):
        pipe.run()


def test_not_where_another_operator_reads_the_resized_image(photo_folder: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        images = fn.resize(fn.decoders.image(encoded), resize_shorter=60)
        return fn.crop_mirror_normalize(images, crop=[32, 32]), images.shape()

    assert "_resize_crop" not in names_in(pipeline())


def test_not_where_the_resize_also_gives_the_original_size(photo_folder: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def pipeline() -> Any:
        encoded, _ = fn.readers.file(file_root=str(photo_folder))
        images = fn.decoders.image(encoded)
        resized, size = fn.resize(images, resize_shorter=60, save_attrs=True)
        return fn.crop_mirror_normalize(resized, crop=[32, 32]), size, images.shape()

    pipe = pipeline()
    assert "_resize_crop" not in names_in(pipe)
    _, sizes, shapes = (output.as_array() for output in pipe.run())
    np.testing.assert_array_equal(sizes, shapes[:, :2])
