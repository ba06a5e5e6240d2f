"""What arguments mean that many operators take, so that no docstring has to tell it again.

Alone because these arguments belong to the house (the graph, the readers' samplers) and not to an operator.
"""

from __future__ import annotations

__all__ = ["COMMON", "READERS"]

COMMON: dict[str, str] = {
    "name": "of the node, in messages, drawings and `reader_meta`; made of the operator's name where not given.",
    "device": '`"cpu"`, `"gpu"`, or `"mixed"` where the operator takes that; where its inputs are, by default.',
    "bytes_per_sample_hint": "accepted for DALI's sake.",
    "preserve": "keep the node although no output needs it.",
    "seed": "of random operators and shuffling readers; drawn from the pipeline's seed by default.",
}

READERS: dict[str, str] = {
    "random_shuffle": "give the samples in random order: an exact permutation, another one in each epoch.",
    "initial_fill": "size of DALI's shuffle buffer. Here shuffling is exact and needs none; only where entries "
    "come in blocks (row groups of Parquet, chunks of HDF5 and Zarr) it is the fewest that are shuffled together.",
    "num_shards": "number of parts of the data, one for each process.",
    "shard_id": "which part to read, from 0.",
    "stick_to_shard": "read the same part in every epoch, not the next one.",
    "shuffle_after_epoch": "one order for all processes, drawn anew for each epoch; not with `random_shuffle`.",
    "shuffle_after_epoch_seed": "of that order.",
    "pad_last_batch": "fill the last batch with its last sample, and all parts to one length.",
    "prefetch_queue_depth": "number of batches that DALI's reader prepares; accepted.",
    "read_ahead": "accepted for DALI's sake; reading ahead is the executor's.",
    "tensor_init_bytes": "accepted for DALI's sake.",
    "dont_use_mmap": "accepted for DALI's sake.",
    "lazy_init": "accepted for DALI's sake.",
    "skip_cached_images": "accepted for DALI's sake.",
    "use_o_direct": "accepted for DALI's sake.",
    "on_error": "what a sample that cannot be read does: an error (default), or another one takes its place.",
    "shard": '`"auto"` takes number and part from the environment of a distributed run.',
    "sampler": "which samples make an epoch: one of `dalify.samplers`, or one of torch's.",
}
