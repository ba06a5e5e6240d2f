"""One of several processes that JAX joins: batches divided over the devices of all. Run by `test_jax.py`.

Arguments: address of the coordinator, number of processes, number of this one. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import jax
import numpy as np

from dalify import fn, pipeline_def
from dalify.plugin.jax import DALIGenericIterator, data_iterator


def main(coordinator: str, processes: int, number: int) -> dict[str, Any]:
    """Return the data on the devices of this process."""
    jax.distributed.initialize(coordinator, num_processes=processes, process_id=number)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("b",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("b"))

    @data_iterator(output_map=["x"], sharding=sharding)
    def shards(shard_id: int, num_shards: int) -> Any:
        return fn.external_source(source=lambda: np.full((2, 1), 100 * num_shards + shard_id, np.int32))

    batch = next(shards(batch_size=2, num_threads=1))["x"]

    @pipeline_def(batch_size=4, num_threads=1)
    def whole() -> Any:
        return fn.external_source(source=lambda: np.arange(4, dtype=np.int32) + 10 * number)

    divided = next(DALIGenericIterator(whole(), ["x"], sharding=sharding))["x"]
    return {
        "shape": batch.shape,
        "parts": _parts(batch),
        "divided shape": divided.shape,
        "divided": _parts(divided),
    }


def _parts(array: Any) -> list[list[int]]:
    shards = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start)
    return [np.asarray(shard.data).ravel().tolist() for shard in shards]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
