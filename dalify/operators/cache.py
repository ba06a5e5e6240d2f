"""Cache computed samples across epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalify.data.sample_memory import check_cache_options
from dalify.registry import Spec, structural


def _effect(arguments: Mapping[str, Any]) -> str:
    return "writes files" if arguments.get("cache_folder") else ""


@structural(outputs=lambda arguments: arguments["input_count"], effect=_effect)
def cache(
    *xs: Spec,
    cache_size: int = 1024,
    cache_type: str = "threshold",
    cache_threshold: int = 0,
    cache_folder: str = "",
) -> tuple[Spec, ...]:
    """Cache samples across epochs: the operators before this one run once for each sample of a reader.

    A cached sample is not decoded or computed again, and its file is not read, unless another part of the graph needs
    it. All operators between the reader and this one must be deterministic: random numbers, external sources,
    operators that process whole batches, and Python functions without ``deterministic=True`` raise an error. The cache
    key of a sample consists of the reader's record of it (path, size and modification time of a file, or the position
    in a container), all preceding operators with their arguments, and the version of dalify.

    In memory, all pipelines of a process that compute the same data share one cache. Outside pipelines, and with
    ``debug=True``, nothing is cached.

    Args:
        *xs: data to cache, on the CPU. All inputs of a sample are cached together.
        cache_size: maximum size in MiB, of these samples in memory or of all samples in the folder. 0 disables
            the cache.
        cache_type: "threshold": cache samples in order until the cache is full; "largest": keep the largest samples
            (in memory only).
        cache_threshold: minimum size: cache only samples whose first input has more bytes than this.
        cache_folder: folder for the cache, which processes of this machine can share and which persists; by default the
            cache is in the memory of this process.

    Returns:
        the same data, one output for each input.

    Raises:
        CacheError: a preceding operator is not deterministic; the message names it and its line.
        ArgumentValueError: an unknown type, or a negative size.

    Example:
        >>> encoded, labels = fn.readers.file(file_root="photos", random_shuffle=True)  # doctest: +SKIP
        >>> images = fn.resize(fn.decoders.image(encoded), size=[256, 256])  # doctest: +SKIP
        >>> images = fn.cache(images, cache_size=4096)  # doctest: +SKIP
    """
    check_cache_options(cache_type, cache_size, cache_threshold, cache_folder)
    return xs
