"""Rank and number of processes, from torch.distributed or the launcher's environment."""

from __future__ import annotations

from typing import Any

import pytest
import torch.distributed

from dalify.base.errors import ArgumentValueError
from dalify.sources.sharding import resolved_shard

ALONE = {"shard_id": 0, "num_shards": 1}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def test_as_told() -> None:
    assert resolved_shard({"shard_id": 2, "num_shards": 3}) == (2, 3)
    assert resolved_shard({"shard": None, **ALONE}) == (0, 1)


def test_nobody_started_several() -> None:
    assert resolved_shard({"shard": "auto", **ALONE}) == (0, 1)


def test_environment_of_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert resolved_shard({"shard": "auto", **ALONE}) == (3, 8)
    assert resolved_shard(ALONE) == (0, 1)


def test_group_of_torch(tmp_path: Any) -> None:
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=store)
    try:
        assert resolved_shard({"shard": "auto", **ALONE}) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shard": "all", **ALONE}, "shard must be 'auto' or left out; got 'all'"),
        ({"shard": "auto", "shard_id": 1, "num_shards": 2}, "exclude each other"),
    ],
)
def test_mistakes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        resolved_shard(arguments)


def test_environment_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(ArgumentValueError, match="RANK, which is 'first'"):
        resolved_shard({"shard": "auto", **ALONE})
