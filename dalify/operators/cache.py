"""Keep what was computed of a sample for the next time that it comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.data.sample_memory import check_cache_options
from dalify.registry import Spec, operator


def _effect(arguments: Mapping[str, Any]) -> str:
    return "writes files" if arguments.get("cache_folder") else ""


@operator(outputs=lambda arguments: arguments["input_count"], allocating=True, effect=_effect)
def cache(
    *xs: Spec,
    cache_size: int = 1024,
    cache_type: str = "threshold",
    cache_threshold: int = 0,
    cache_folder: str = "",
) -> tuple[Spec, ...]:
    """Keep samples for the next epoch: what is in front of this operator is computed once for each sample of a reader.

    A sample that is in the cache is neither decoded nor otherwise computed, and its file is not read, unless something
    outside needs its contents. Everything between the reader and this operator has to give the same in each epoch:
    random numbers, external sources, operators that look at the whole batch, and Python functions without
    ``deterministic=True`` are refused. A sample is known by what its reader knows of it (path, size and time of change
    of a file; the place in a container), by all operators in front and their arguments, and by the version of dalify.

    In memory, all pipelines of a process that compute the same share one cache. Outside of pipelines, and with
    ``debug=True``, nothing is kept.

    Args:
        *xs: what is to be kept, on the CPU. All come from the cache together.
        cache_size: bound in MiB: in memory for these samples, in a folder for all samples in it. With 0 nothing is
            kept.
        cache_type: "threshold": keep what comes first, until the cache is full; "largest": keep the largest samples
            (in memory only).
        cache_threshold: only samples whose first value has more than so many bytes are kept.
        cache_folder: a folder that all processes of this machine may share; it outlasts them. The memory of this
            process where not given.

    Returns:
        the same, one output for each input.

    Raises:
        CacheError: something in front is not the same in each epoch; names it and its line.
        ArgumentValueError: an unknown type, or a negative size.

    Example:
        >>> encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True)  # doctest: +SKIP
        >>> images = fn.resize(fn.decoders.image(encoded), size=[256, 256])  # doctest: +SKIP
        >>> images = fn.cache(images, cache_size=4096)  # doctest: +SKIP
    """
    check_cache_options(cache_type, cache_size, cache_threshold, cache_folder)
    return xs


@cache.view
def _(*xs):
    return xs
