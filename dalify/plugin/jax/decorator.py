"""``data_iterator``: a pipeline function becomes a function that returns an iterator, with one pipeline per device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from dalify.base.errors import ArgumentValueError
from dalify.pipeline import pipeline_def
from dalify.plugin.base_iterator import LastBatchPolicy
from dalify.plugin.frameworks import framework
from dalify.plugin.jax.arrays import on_devices
from dalify.plugin.jax.iterator import DALIGenericIterator

__all__ = ["data_iterator", "decorated"]

jax = framework("jax")


def data_iterator(
    pipeline_fn: Callable[..., Any] | None = None,
    output_map: Sequence[str] = (),
    size: int = -1,
    reader_name: str | None = None,
    auto_reset: str | bool | None = False,
    last_batch_padded: bool = False,
    last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
    prepare_first_batch: bool = True,
    sharding: Any = None,
    devices: Sequence[Any] | None = None,
    pmap_compatible: bool | None = None,
) -> Any:
    """Turn a pipeline function into a function that returns an iterator of JAX arrays.

    That function takes the arguments of the pipeline function, as keywords those of ``Pipeline``, and ``checkpoints=``.
    With ``sharding`` or ``devices`` it makes one pipeline for each device of this process; the pipeline function then
    takes ``shard_id`` and ``num_shards``, which count the devices of all processes, and may take ``device_id``.

    Args:
        pipeline_fn: what ``pipeline_def`` takes, or has made.
        output_map: names of the outputs, in their order.
        size: see ``DALIGenericIterator``, as most others.
        reader_name: name of the reader.
        auto_reset: whether the next epoch begins by itself.
        last_batch_padded: with ``size``: the reader has ``pad_last_batch=True``.
        last_batch_policy: FILL, DROP or PARTIAL.
        prepare_first_batch: begin to compute the first batches at once.
        sharding: of JAX; the arrays have it.
        devices: of JAX, in the place of ``sharding``: the arrays are as ``jax.pmap`` takes them.
        pmap_compatible: give the arrays a first axis of devices; None: with ``devices``.

    Raises:
        ArgumentValueError: ``sharding`` and ``devices``.

    Example:
        >>> @data_iterator(output_map=["images", "labels"], reader_name="Reader", sharding=sharding)
        ... def training(folder, shard_id=0, num_shards=1):
        ...     shard = {"shard_id": shard_id, "num_shards": num_shards}
        ...     jpegs, labels = fn.readers.file(file_root=folder, name="Reader", **shard)
        ...     return fn.resize(fn.decoders.image(jpegs), size=224), labels
        >>> for batch in training("photos", batch_size=32):
        ...     state = train_step(state, batch)
    """
    options = {
        "output_map": output_map,
        "size": size,
        "reader_name": reader_name,
        "auto_reset": auto_reset,
        "last_batch_padded": last_batch_padded,
        "last_batch_policy": last_batch_policy,
        "prepare_first_batch": prepare_first_batch,
    }
    return decorated(DALIGenericIterator, pipeline_fn, options, sharding, devices, pmap_compatible)


def decorated(
    iterator: Callable[..., Any],
    pipeline_fn: Callable[..., Any] | None,
    options: dict[str, Any],
    sharding: Any,
    devices: Sequence[Any] | None,
    pmap_compatible: bool | None,
) -> Any:
    """Return the decorator, or what it makes of a function, for one class of iterators.

    Args:
        iterator: the class.
        pipeline_fn: the function, or None for the decorator.
        options: of the iterator.
        sharding: see ``data_iterator``.
        devices: see ``data_iterator``.
        pmap_compatible: see ``data_iterator``.
    """
    if sharding is not None and devices is not None:
        raise ArgumentValueError(
            "sharding and devices exclude each other.", hint="sharding for jax.jit, devices for jax.pmap."
        )
    if devices is not None:
        sharding = on_devices(devices)
        pmap_compatible = True if pmap_compatible is None else pmap_compatible
    options = {**options, "sharding": sharding, "pmap_compatible": pmap_compatible}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        factory = function if getattr(function, "_is_pipeline_def", False) else pipeline_def(function)

        @functools.wraps(function)
        def make(*args: Any, checkpoints: Sequence[Any] | None = None, **kwargs: Any) -> Any:
            shards = [kwargs] if sharding is None else [{**kwargs, **each} for each in _shards(sharding)]
            if checkpoints is not None:
                if len(checkpoints) != len(shards):
                    raise ArgumentValueError(
                        f"there are {len(checkpoints)} checkpoints for {len(shards)} pipelines.",
                        hint="Pass what checkpoints() of the iterator returned.",
                    )
                pairs = zip(shards, checkpoints, strict=True)
                shards = [{**each, "checkpoint": checkpoint} for each, checkpoint in pairs]
            return iterator([factory(*args, **each) for each in shards], **options)

        return make

    return decorate if pipeline_fn is None else decorate(pipeline_fn)


def _shards(sharding: Any) -> list[dict[str, int]]:
    """Return the arguments of each pipeline: one for every device of this process, in the order of the samples."""
    number = sharding.num_devices
    places = sharding.devices_indices_map((number,))
    starts = sorted({place[0].start or 0 for place in places.values()})
    own: dict[int, Any] = {}
    for device in sharding.addressable_devices:
        own.setdefault(places[device][0].start or 0, device)
    return [
        {"device_id": _device_id(own[start], index), "shard_id": starts.index(start), "num_shards": len(starts)}
        for index, start in enumerate(sorted(own))
    ]


def _device_id(device: Any, index: int) -> int:
    number = getattr(device, "local_hardware_id", None)
    return index if number is None else number
