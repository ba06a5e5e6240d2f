"""A cluster of Ray with three nodes on this machine, shared by the tests of a session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.photo_pipelines import EPOCH, Samples, batches, photos
from tests.helpers.processes import end_children_since

# Ray leaves files open and sockets to the collector.
_RAYS_WARNINGS = (
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::DeprecationWarning:ray.*",
    "ignore::FutureWarning:ray.*",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings of Ray."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for rule in _RAYS_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(rule))


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[object]:
    """Give a head without CPUs and three nodes of one CPU, in a `RayCluster`. Small stores: some batches fill them."""
    from tests.helpers.ray_cluster import RayCluster

    start = time.time()
    cluster = RayCluster()
    try:
        yield cluster
    finally:
        try:
            cluster.close()
        finally:
            end_children_since(start)


@pytest.fixture(scope="session")
def expected(photo_folder: Path) -> list[Samples]:
    """Return two epochs of one process."""
    pipe = photos(photo_folder)
    try:
        return batches(pipe, 2 * EPOCH)
    finally:
        pipe.close()
