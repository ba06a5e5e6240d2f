"""Batches that actors of Ray compute are those of one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.frameworks import imported
from tests.plugin.ray.pipelines import EPOCH, Samples, assert_equal, batches, photos

ray = imported("ray")
from dalify.plugin.ray import RayPipeline  # noqa: E402
from tests.helpers.ray_cluster import RayCluster, eventually  # noqa: E402


@pytest.fixture(scope="module")
def expected(photo_folder: Path) -> list[Samples]:
    """Two epochs of one process."""
    pipe = photos(photo_folder)
    try:
        return batches(pipe, 2 * EPOCH)
    finally:
        pipe.close()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_batches_are_those_of_one_process(
    ray_cluster: RayCluster, photo_folder: Path, expected: list[Samples], workers: int
) -> None:
    ray_cluster.fill_up()
    pipe = RayPipeline(photos(photo_folder), workers=workers)
    pipe.build()
    eventually(lambda: len(pipe.nodes) == workers, "all workers ready")
    assert len(set(pipe.nodes)) == workers
    assert_equal(batches(pipe, 2 * EPOCH), expected)
    pipe.close()


def test_a_state_goes_from_one_kind_to_the_other(
    ray_cluster: RayCluster, photo_folder: Path, expected: list[Samples]
) -> None:
    ray_cluster.fill_up()
    kinds = [
        lambda: photos(photo_folder),
        lambda: RayPipeline(photos(photo_folder), workers=2),
        lambda: photos(photo_folder, processes=2, py_start_method="spawn"),
        lambda: RayPipeline(photos(photo_folder), workers=1),
        lambda: photos(photo_folder),
    ]
    state, found = None, []
    for kind in kinds:
        pipe = kind()
        if state is not None:
            pipe.load_state_dict(state)
        found += batches(pipe, 1)
        state = pipe.state_dict()
        pipe.close()
    assert_equal(found, expected[: len(kinds)])
