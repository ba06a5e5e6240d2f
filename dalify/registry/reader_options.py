"""The arguments that all readers have in addition to their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.registry.parameters import Parameter, parameter_of

__all__ = ["READER_PARAMETERS", "check_reader_options"]

READER_PARAMETERS: dict[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        parameter_of("random_shuffle", bool, False),
        parameter_of("initial_fill", int, 1024),
        parameter_of("num_shards", int, 1),
        parameter_of("shard_id", int, 0),
        parameter_of("stick_to_shard", bool, False),
        parameter_of("shuffle_after_epoch", bool, False),
        parameter_of("shuffle_after_epoch_seed", int, None),
        parameter_of("pad_last_batch", bool, False),
        parameter_of("prefetch_queue_depth", int, 1),
        parameter_of("read_ahead", bool, False),
        parameter_of("tensor_init_bytes", int, 1048576),
        parameter_of("dont_use_mmap", bool, False),
        parameter_of("lazy_init", bool, False),
        parameter_of("skip_cached_images", bool, False),
        parameter_of("use_o_direct", bool, False),
        parameter_of("on_error", str, None),
        parameter_of("shard", str, None),
        parameter_of("sampler", object, None),
    )
}


def check_reader_options(arguments: Mapping[str, Any]) -> None:
    """Refuse values that DALI refuses of options that have no effect here.

    Raises:
        ArgumentValueError: no batch would be prefetched, or an option requires another one.
    """
    if arguments["prefetch_queue_depth"] < 1:
        raise ArgumentValueError(f"prefetch_queue_depth must be at least 1; got {arguments['prefetch_queue_depth']}.")
    if arguments["use_o_direct"] and not arguments["dont_use_mmap"]:
        raise ArgumentValueError(
            "use_o_direct requires dont_use_mmap=True.",
            hint="Omit use_o_direct: it has no effect in dalify.",
        )
