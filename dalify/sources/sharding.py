"""Which part of the data this process reads.

Alone because it is asked in two places: where a reader begins, and where a saved run is divided anew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import is_loaded, torch

__all__ = ["resolved_shard"]


def resolved_shard(arguments: Mapping[str, Any]) -> tuple[int, int]:
    """Return ``shard_id`` and ``num_shards``.

    Args:
        arguments: of a reader. With ``shard="auto"`` they are the rank and the number of the processes of
            ``torch.distributed``, where it was initialised; else those that the launcher has left in the environment as
            RANK and WORLD_SIZE; else 0 and 1.

    Raises:
        ArgumentValueError: another ``shard``, or one that is told twice.
    """
    shard = arguments.get("shard")
    told = arguments["shard_id"], arguments["num_shards"]
    if shard is None:
        return told
    if shard != "auto":
        raise ArgumentValueError(
            f"shard must be 'auto' or left out; got {shard!r}.", hint="Numbers are given as shard_id= and num_shards=."
        )
    if told != (0, 1):
        raise ArgumentValueError("shard='auto' and shard_id or num_shards exclude each other.")
    if is_loaded("torch.distributed") and torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return _number("RANK", 0), _number("WORLD_SIZE", 1)


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise ArgumentValueError(
            f"shard='auto' reads the environment variable {name}, which is {text!r} and no number."
        ) from None
