"""Documentation of the arguments that many operators share; their docstrings do not repeat it."""

from __future__ import annotations

COMMON: dict[str, str] = {
    "name": "name of the node in messages, drawings and `reader_meta`; derived from the operator's name by default.",
    "device": '`"cpu"`, `"gpu"`, or `"mixed"` if the operator supports it; by default the device of its inputs.',
    "bytes_per_sample_hint": "ignored; accepted for compatibility with DALI.",
    "preserve": "keep the node even if no output needs it.",
    "seed": "seed of random operators and shuffling readers; derived from the pipeline's seed by default.",
}

READERS: dict[str, str] = {
    "random_shuffle": "return the samples in random order: an exact permutation, different in each epoch.",
    "initial_fill": "size of DALI's shuffle buffer. Shuffling is exact and needs no buffer; for entries "
    "stored in blocks (row groups of Parquet, chunks of HDF5 and Zarr) it is the minimum number shuffled together.",
    "num_shards": "number of shards of the data, one per process.",
    "shard_id": "index of the shard to read, from 0.",
    "stick_to_shard": "read the same shard in every epoch, not the next one.",
    "shuffle_after_epoch": "one order of all shards, different in each epoch; not with `random_shuffle`.",
    "shuffle_after_epoch_seed": "seed for `shuffle_after_epoch`.",
    "pad_last_batch": "fill the last batch with its last sample, and pad all shards to the same length.",
    "prefetch_queue_depth": "number of batches that DALI's reader prepares; ignored.",
    "read_ahead": "ignored; the executor reads ahead. Accepted for compatibility with DALI.",
    "tensor_init_bytes": "ignored; accepted for compatibility with DALI.",
    "dont_use_mmap": "ignored; accepted for compatibility with DALI.",
    "lazy_init": "ignored; accepted for compatibility with DALI.",
    "skip_cached_images": "ignored; accepted for compatibility with DALI.",
    "use_o_direct": "ignored; accepted for compatibility with DALI, which requires ``dont_use_mmap=True``.",
    "on_error": 'what happens if a sample cannot be read: `"raise"` (default), `"skip"` or `"replace"`.',
    "shard": '`"auto"` takes number and index of the shard from the environment of a distributed run.',
    "sampler": "which samples make up an epoch: a sampler of `dalify.samplers` or of torch.",
}
