"""A missing optional package is one error when the pipeline is built, for any handling of bad samples."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalify
from dalify import eager, fn, pipeline_def
from dalify.base.errors import MissingPackageError

# Operator -> package, the extra that installs it, and a use of the operator.
USES: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "decoders.video": ("av", "video", lambda path: fn.decoders.video(fn.readers.file(files=[path])[0])),
    "readers.video": ("av", "video", lambda path: fn.readers.video(filenames=[path], sequence_length=1)),
    "readers.video_resize": (
        "av",
        "video",
        lambda path: fn.readers.video_resize(filenames=[path], sequence_length=1, size=[8, 8]),
    ),
    "experimental.readers.video": (
        "av",
        "video",
        lambda path: fn.experimental.readers.video(filenames=[path], sequence_length=1),
    ),
    "experimental.inputs.video": (
        "av",
        "video",
        lambda path: fn.experimental.inputs.video(name="video", sequence_length=1),
    ),
    "readers.parquet": ("pyarrow", "arrow", lambda path: fn.readers.parquet(paths=[path], columns=["a"])),
    "readers.arrow": ("pyarrow", "arrow", lambda path: fn.readers.arrow(source=path, columns=["a"])),
    "readers.hdf5": ("h5py", "hdf5", lambda path: fn.readers.hdf5(paths=[path], datasets=["a"])),
    "readers.zarr": ("zarr", "zarr", lambda path: fn.readers.zarr(paths=[path], arrays=["a"])),
    "experimental.readers.fits": ("astropy", "fits", lambda path: fn.experimental.readers.fits(files=[path])),
    "readers.coco": (
        "pycocotools",
        "coco",
        lambda path: fn.readers.coco(file_root=".", annotations_file=path, pixelwise_masks=True),
    ),
}


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Simulate a missing package, even if it was imported before."""
    for name in list(sys.modules):
        if name.split(".")[0] == package:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("name", USES)
def test_a_missing_package_is_found_when_the_pipeline_is_built(
    name: str, on_error: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package, extra, use = USES[name]
    (tmp_path / "file").write_bytes(b"no data are read")
    without(monkeypatch, package)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, on_error=on_error)
    def pipeline() -> Any:
        found = use(str(tmp_path / "file"))
        return tuple(found) if isinstance(found, (tuple, list)) else found

    with pytest.raises(MissingPackageError) as caught:
        pipeline().build()
    text = str(caught.value)
    assert f"the package {package!r}, which is not installed" in text
    assert f"dalify[{extra}]" in text
    assert f"fn.{name}" in text
    assert Path(__file__).name in text


def test_a_package_that_the_arguments_do_not_need_may_be_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, "pycocotools")
    path = tmp_path / "annotations.json"
    path.write_text(
        '{"images": [{"id": 1, "file_name": "a", "width": 1, "height": 1}], "annotations": [], "categories": []}'
    )
    (tmp_path / "a").write_bytes(b"a")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline() -> Any:
        return fn.readers.coco(file_root=str(tmp_path), annotations_file=str(path), skip_empty=False)

    pipeline().run()


def test_immediate_and_lazy_calls_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "av")
    with pytest.raises(MissingPackageError, match=r"dalify\[video\]"):
        eager.decoders.video(np.zeros(10, np.uint8), sequence_length=3)
    with pytest.raises(MissingPackageError, match=r"dalify\[video\]"), dalify.lazy():
        np.asarray(eager.decoders.video(np.zeros(10, np.uint8), sequence_length=4))


def test_files_elsewhere_need_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "fsspec")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, on_error="skip")
    def pipeline() -> Any:
        return fn.readers.file(files=["memory://a.jpg"])

    with pytest.raises(MissingPackageError, match=r"dalify\[remote\]"):
        pipeline().build()
