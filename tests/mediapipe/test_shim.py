"""Programs with the imports of Gaudi's package run as they are once the shim is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import dalify.mediapipe
from dalify.base.errors import PipelineStateError
from dalify.mediapipe import habana_dataloader, shim
from tests.mediapipe import programs


@pytest.fixture
def installed() -> Iterator[None]:
    shim.install()
    yield
    shim.uninstall()


def their_programs() -> ModuleType:
    """The programs as they were before the root of their imports was changed."""
    text = Path(programs.__file__).read_text().replace("dalify.mediapipe", "habana_frameworks.mediapipe")
    module = ModuleType("their_programs")
    exec(compile(text, programs.__file__, "exec"), module.__dict__)
    return module


@pytest.mark.usefixtures("installed")
def test_a_program_runs_as_it_is(photo_folder: Path) -> None:
    module = their_programs()
    pipe = module.ResnetPipe(str(photo_folder), is_training=False, batch_size=4, shuffle=False)
    same = programs.ResnetPipe(str(photo_folder), is_training=False, batch_size=4, shuffle=False)
    for outputs, expected in zip(pipe, same, strict=True):
        for output, other in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(output.as_cpu().as_nparray(), other.as_cpu().as_nparray())


@pytest.mark.usefixtures("installed")
def test_modules_are_the_same_objects() -> None:
    theirs = importlib.import_module("habana_frameworks.mediapipe.plugins.iterator_pytorch")
    assert theirs is importlib.import_module("dalify.mediapipe.plugins.iterator_pytorch")
    assert theirs.__name__ == "dalify.mediapipe.plugins.iterator_pytorch"
    assert importlib.import_module("habana_frameworks.mediapipe") is dalify.mediapipe
    shim.install()  # a second time has no effect
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("habana_frameworks.mediapipe.nothing")


@pytest.mark.usefixtures("installed")
def test_the_loader_has_its_name() -> None:
    theirs = importlib.import_module("habana_dataloader")
    assert theirs.HabanaDataLoader is habana_dataloader.HabanaDataLoader


def test_the_real_package_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "habana_frameworks").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PipelineStateError, match="is installed"):
        shim.install()


def test_uninstall_removes_the_names() -> None:
    shim.install()
    importlib.import_module("habana_frameworks.mediapipe.fn")
    shim.uninstall()
    assert not [name for name in sys.modules if name.startswith("habana")]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("habana_frameworks.mediapipe")
