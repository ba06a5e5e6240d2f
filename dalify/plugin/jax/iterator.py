"""Iterators that return a dictionary of JAX arrays per batch, and a decorator that creates one pipeline per device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import IteratorArgumentError, ShapeError
from dalify.base.wording import counted
from dalify.data import to_host
from dalify.pipeline import Pipeline, pipeline_def
from dalify.plugin.collate import Pad
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.frameworks import framework
from dalify.plugin.generic_iterator import GenericIterator, naming_the_output, without_output_map
from dalify.plugin.jax.arrays import Division, as_jax, on_devices

jax = framework("jax")


class DALIGenericIterator(GenericIterator):
    """Returns one dictionary of JAX arrays per batch; see `GenericIterator`.

    Without `sharding`, the batches of several pipelines are stacked: ``[pipelines, N, ...]``. With a JAX sharding, each
    pipeline provides one part of the array, and a single pipeline provides all parts. `pmap_compatible` adds a first
    axis of devices to the arrays, for ``jax.pmap``. See `GenericIterator` for the other arguments. The policy PARTIAL,
    which returns a smaller array, and the collations ``list`` and ``packed`` require one pipeline on one device.

    Raises:
        IteratorArgumentError: the number of pipelines differs from the number of parts of the sharding, or arguments
            cannot be used together.
        ShapeError: (in an epoch) samples or batches differ in shape, or cannot be divided over the devices.

    Example:
        >>> loader = DALIGenericIterator(pipe, ["images", "labels"], reader_name="Reader")
        >>> for batch in loader:
        ...     state = train_step(state, batch["images"], batch["labels"])
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        sharding: Any = None,
        pmap_compatible: bool | None = None,
        *,
        fresh_epochs: bool = False,
        collate: Mapping[str, str | Pad] | str | Pad | None = None,
        valid_name: str | None = None,
    ) -> None:
        count = 1 if isinstance(pipelines, Pipeline) else max(1, len(pipelines))  # the base class rejects an empty list
        if sharding is not None and not isinstance(sharding, jax.sharding.Sharding):
            raise IteratorArgumentError(f"sharding must be a sharding of JAX; got {type(sharding).__name__}.")
        self._join = _joining(sharding, count, bool(pmap_compatible))
        if self._join is not None:
            _check_joined(last_batch_policy, collate)
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            last_batch_padded=last_batch_padded,
            last_batch_policy=last_batch_policy,
            prepare_first_batch=prepare_first_batch,
            fresh_epochs=fresh_epochs,
            collate=collate,
            valid_name=valid_name,
        )

    def _tensor(self, array: Any) -> Any:
        return as_jax(array) if self._join is None else array

    def __next__(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride] -- DALI's form for JAX
        """Return the next batch.

        Raises:
            StopIteration: the epoch is over.
            ShapeError: the batches of the pipelines differ in shape, or cannot be divided over the devices.
        """
        batches = super().__next__()
        join = self._join
        if join is None:
            return batches[0]
        joined: dict[str, Any] = {}
        for name in batches[0]:
            arrays = _alike(name, [batch[name] for batch in batches])
            with naming_the_output(name):
                joined[name] = join(name, arrays)
        return joined


class DALIClassificationIterator(DALIGenericIterator):
    """A ``DALIGenericIterator`` for pipelines with two outputs, named ``data`` and ``label``."""

    @without_output_map(DALIGenericIterator.__init__)
    def __init__(self, pipelines: Any, *rest: Any, **options: Any) -> None:
        super().__init__(pipelines, ["data", "label"], *rest, **options)


def _joining(sharding: Any, count: int, has_device_axis: bool) -> Callable[[str, list[Any]], Any] | None:
    """Return the function that combines the batches of the pipelines; None for one pipeline on one device."""
    if sharding is None and count == 1 and not has_device_axis:
        return None
    if sharding is None and count > 1:
        return lambda name, arrays: as_jax(
            np.stack([to_host(a) if not isinstance(a, np.ndarray) else a for a in arrays])
        )
    if sharding is None:
        sharding = on_devices(jax.local_devices()[:1])
    divide = Division(sharding, count)
    if not has_device_axis:
        return divide
    if count == 1 and sharding.num_devices > 1:
        raise IteratorArgumentError(
            "pmap_compatible requires one pipeline per device.",
            hint=f"Create {counted(sharding.num_devices, 'pipeline')}, with shard_id from 0.",
        )
    return lambda name, arrays: divide(name, [array[None] for array in arrays])


def _check_joined(policy: LastBatchPolicy, collate: Any) -> None:
    if policy is LastBatchPolicy.PARTIAL:
        raise IteratorArgumentError(
            "last_batch_policy=PARTIAL returns different shapes, which several pipelines or devices cannot join.",
            hint="Use LastBatchPolicy.FILL, with valid_name='valid' for a mask, or DROP.",
        )
    ways = collate.values() if isinstance(collate, Mapping) else [collate]
    for way in ways:
        if way not in (None, "dense") and not isinstance(way, Pad):
            raise IteratorArgumentError(
                f"collate={way!r} does not return an array that several pipelines or devices can join.",
                hint="Use 'dense' or Pad(multiple=...).",
            )


def _alike(name: str, arrays: list[Any]) -> list[Any]:
    shapes = [tuple(array.shape) for array in arrays]
    if len(set(shapes)) > 1:
        raise ShapeError(
            f"the output {name!r} has different shapes in the pipelines: {', '.join(map(str, shapes))}.",
            hint="Make the sizes of samples equal in the pipeline, for instance with fn.resize, fn.crop or fn.pad.",
        )
    return arrays


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
    """Convert a pipeline function to a function that returns an iterator of JAX arrays.

    That function takes the arguments of the pipeline function, keyword arguments of ``Pipeline``, and ``checkpoints=``.
    With ``sharding`` or ``devices`` it creates one pipeline per device of this process. Then the pipeline function must
    have the parameters ``shard_id`` and ``num_shards``, which count the devices of all processes, and may have
    ``device_id``.

    `pipeline_fn` may have the decorator ``pipeline_def``. With JAX devices in `devices` instead of `sharding`, the
    arrays have the form for ``jax.pmap``, unless `pmap_compatible` is False. See ``DALIGenericIterator`` for the other
    arguments.

    Raises:
        IteratorArgumentError: both ``sharding`` and ``devices`` are specified.

    Example:
        >>> @data_iterator(output_map=["images", "labels"], reader_name="Reader", sharding=sharding)
        ... def training(folder, shard_id=0, num_shards=1):
        ...     shard = {"shard_id": shard_id, "num_shards": num_shards}
        ...     jpegs, labels = fn.readers.file(file_root=folder, name="Reader", **shard)
        ...     return fn.resize(fn.decoders.image(jpegs), size=224), labels
        >>> for batch in training("photos", batch_size=32):
        ...     state = train_step(state, batch)
    """
    return decorated(DALIGenericIterator, **locals())


def decorated(
    iterator: Callable[..., Any],
    pipeline_fn: Callable[..., Any] | None,
    sharding: Any,
    devices: Sequence[Any] | None,
    pmap_compatible: bool | None,
    **options: Any,
) -> Any:
    """Return the decorated function, or the decorator if `pipeline_fn` is None.

    `iterator` is a class of iterators; see ``data_iterator`` for the other arguments.
    """
    if sharding is not None and devices is not None:
        raise IteratorArgumentError(
            "sharding and devices cannot be used together.", hint="sharding for jax.jit, devices for jax.pmap."
        )
    if devices is not None:
        sharding = on_devices(devices)
        pmap_compatible = True if pmap_compatible is None else pmap_compatible

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        factory = function if getattr(function, "_is_pipeline_def", False) else pipeline_def(function)

        @functools.wraps(function)
        def make(*args: Any, checkpoints: Sequence[Any] | None = None, **kwargs: Any) -> Any:
            shards = [kwargs] if sharding is None else [{**kwargs, **each} for each in _shards(sharding)]
            if checkpoints is not None:
                if len(checkpoints) != len(shards):
                    raise IteratorArgumentError(
                        f"got {counted(len(checkpoints), 'checkpoint')} for {counted(len(shards), 'pipeline')}.",
                        hint="Pass the result of checkpoints() of the iterator.",
                    )
                pairs = zip(shards, checkpoints, strict=True)
                shards = [{**each, "checkpoint": checkpoint} for each, checkpoint in pairs]
            pipelines = [factory(*args, **each) for each in shards]
            return iterator(pipelines, sharding=sharding, pmap_compatible=pmap_compatible, **options)

        return make

    return decorate if pipeline_fn is None else decorate(pipeline_fn)


def _shards(sharding: Any) -> list[dict[str, int]]:
    """Return the arguments of one pipeline per device of this process, in the order of the samples."""
    number = sharding.num_devices
    slices = sharding.devices_indices_map((number,))
    starts = sorted({part[0].start or 0 for part in slices.values()})
    own: dict[int, Any] = {}
    for device in sharding.addressable_devices:
        own.setdefault(slices[device][0].start or 0, device)
    return [
        {"device_id": _device_id(own[start], index), "shard_id": starts.index(start), "num_shards": len(starts)}
        for index, start in enumerate(sorted(own))
    ]


def _device_id(device: Any, index: int) -> int:
    number = getattr(device, "local_hardware_id", None)
    return index if number is None else number
