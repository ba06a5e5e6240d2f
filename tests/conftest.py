"""Fixtures for all tests."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.orphans import end_programs_with_this_process
from tests.helpers.photos import write_photo_folder
from tests.helpers.processes import end_children_since

# Kernels compile during a first example, so a deadline would measure the compiler.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Where torch's CPU device emulates a GPU, tests run the kernels of the GPU.
os.environ.setdefault("DALIFY_EMULATED_KERNELS", "torch")
# While they wait for work, threads of torch would otherwise occupy processors that other processes of pytest need.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

PROJECT = Path(__file__).parent.parent


@pytest.hookimpl(trylast=True)  # after that of `pytest-rerunfailures`
def pytest_configure(config: pytest.Config) -> None:
    """Send each message of `pytest-rerunfailures` to the main process without delay; there are two per test.

    Otherwise the system delays the second message until the first one is acknowledged, which takes 40 ms.
    """
    connection = getattr(getattr(config, "failures_db", None), "sock", None)
    if connection is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def pytest_sessionstart() -> None:
    """End all programs of tests also if this process is killed."""
    end_programs_with_this_process()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """End the processes that a test has started when it fails, and so did not end itself."""
    report = yield
    if report.failed and call.when == "call":
        with suppress(OSError):  # a fixture may still limit the number of open files; an error would end pytest
            end_children_since(call.start)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect no garbage meanwhile: it would traverse the growing number of tests many times."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: `gc.collect` would traverse them in hundreds of tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Exclude what a test module leaves, such as compiled functions, from garbage collection in the next ones."""
    result = yield
    # Not in the teardown, during which the item still refers to its fixtures: what only they need would stay forever.
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return result


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders `cat`, `dog`, `owl`, four JPEGs each, longest side 120 pixels. Read only: the session shares it."""
    folder = tmp_path_factory.mktemp("photos")
    write_photo_folder(folder)
    return folder


@pytest.fixture(scope="session")
def numbered_files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Thirteen files of one byte, their number."""
    folder = tmp_path_factory.mktemp("numbered")
    for number in range(13):
        Path(folder, f"{number:02}.dat").write_bytes(bytes([number]))
    return [str(path) for path in sorted(folder.iterdir())]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Without the garbage collector, only the last reference frees an object."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def photo_list(photo_folder: Path) -> list[tuple[Path, int]]:
    """The files of `photo_folder` with their labels, in a reader's order."""
    classes = sorted(path.name for path in photo_folder.iterdir())
    return [(path, classes.index(path.parent.name)) for path in sorted(photo_folder.glob("*/*.jpg"))]


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """Folder of real media in many formats, which is not part of this repository."""
    folder = Path(os.environ.get("DALIFY_SAMPLE_DATA", PROJECT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no sample data at {folder}; see CONTRIBUTING.md")
    return folder


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """The real DALI (`nvidia.dali` with `fn`, `types`, `pipeline_def`); build its pipelines with device_id=None."""
    reason = "the real DALI is not installed; see CONTRIBUTING.md"
    dali = pytest.importorskip("nvidia.dali", reason=reason)
    pytest.importorskip("nvidia.dali.fn", reason=reason)
    return dali


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the mark `gpu` to all tests that run on an accelerator where there is one."""
    for item in items:
        if _runs_on_accelerator(item):
            item.add_marker(pytest.mark.gpu)


def _runs_on_accelerator(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return "gpu" in item.fixturenames or ("device" in item.fixturenames and parameters.get("device") == "gpu")


@pytest.fixture(params=["cpu", "gpu"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both devices of an operator; without an accelerator, torch's CPU device runs the GPU kernels."""
    if request.param == "gpu":
        _find_device(monkeypatch)
    return request.param


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> str:
    """The device ``gpu``: torch's CPU device where there is no accelerator."""
    _find_device(monkeypatch)
    return "gpu"


def _find_device(monkeypatch: pytest.MonkeyPatch) -> None:
    # `make test-versions` runs some tests without torch.
    torch = pytest.importorskip("torch", reason="devices need torch")
    if not torch.accelerator.is_available():
        monkeypatch.setenv("DALIFY_DEVICE", "cpu")


@pytest.fixture
def emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run ``device="gpu"`` on torch's CPU device, also where there is an accelerator: for tests of emulation."""
    monkeypatch.setenv("DALIFY_DEVICE", "cpu")
