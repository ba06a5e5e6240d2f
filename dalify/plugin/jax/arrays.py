"""Arrays of a pipeline as JAX arrays: of the same memory where possible, on one device or divided over several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import IteratorArgumentError, ShapeError
from dalify.plugin.frameworks import framework

__all__ = ["Division", "as_jax", "on_devices"]

jax = framework("jax")


def as_jax(array: Any, device: Any = None) -> Any:
    """Return a JAX array.

    It has the memory of the array where JAX can use it: on a CPU, aligned to 64 bytes, its elements one after the
    other, and of a type that JAX has. 64-bit types become 32-bit ones unless JAX was told ``jax_enable_x64``.

    Args:
        array: of NumPy, or of torch on a device.
        device: a device of JAX, or a sharding; JAX's default for NumPy arrays where None.
    """
    if isinstance(array, np.ndarray):
        return jax.device_put(array, device, may_alias=True)
    array = jax.dlpack.from_dlpack(array.contiguous())
    return array if device is None else jax.device_put(array, device)


def on_devices(devices: Sequence[Any]) -> Any:
    """Return the sharding that divides the first axis over devices."""
    return jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), ("device",)), _by("device"))


def _by(axis: str) -> Any:
    return jax.sharding.PartitionSpec(axis)


class Division:
    """Makes one JAX array of the parts that this process has.

    The first axis, that of samples, goes over the devices in the order of the sharding. Each pipeline feeds one part of
    it; a single pipeline feeds all parts of this process.

    Args:
        sharding: of JAX; also one that keeps copies on several devices, or divides other axes, too.
        pipelines: how many there are in this process.

    Raises:
        IteratorArgumentError: more or fewer pipelines than parts.
    """

    def __init__(self, sharding: Any, pipelines: int) -> None:
        self.sharding = sharding
        trial = (sharding.num_devices,) * max(1, len(getattr(sharding, "spec", ())))
        # The number of parts, of all processes and of this one, does not depend on the extent of the axis.
        self._parts = sharding.num_devices // sharding.shard_shape(trial)[0]
        self._own = len({index[0].start for index in sharding.addressable_devices_indices_map(trial).values()})
        if pipelines not in (1, self._own):
            raise IteratorArgumentError(
                f"the sharding divides a batch of this process into {self._own} parts, and there are {pipelines} "
                "pipelines.",
                hint=f"Give one pipeline for each part, {self._own}, or a single one whose batches are divided.",
            )

    def __call__(self, name: str, arrays: Sequence[Any]) -> Any:
        """Return the array.

        Args:
            name: of the output, for errors.
            arrays: one for each pipeline, equally shaped.

        Raises:
            ShapeError: they do not divide over the devices.
        """
        rows, rest = sum(len(array) for array in arrays), tuple(arrays[0].shape[1:])
        if rows % self._own:
            raise ShapeError(
                f"the output {name!r} has {rows} samples, which do not divide over {self._own} devices.",
                hint=f"Choose a batch size that is a multiple of {self._own}, and LastBatchPolicy.FILL or DROP.",
            )
        shape = (rows // self._own * self._parts, *rest)
        try:
            places = self.sharding.addressable_devices_indices_map(shape)
        except (ValueError, IndexError) as error:
            raise ShapeError(
                f"the output {name!r} of shape {shape} does not divide over the devices: {error}"
            ) from error
        starts = sorted({place[0].start or 0 for place in places.values()})
        height = rows // self._own
        parts = (
            arrays if len(arrays) == self._own else [arrays[0][k * height : (k + 1) * height] for k in range(self._own)]
        )
        of_start = dict(zip(starts, parts, strict=True))
        pieces = [
            as_jax(of_start[place[0].start or 0][(slice(None), *place[1:])], device) for device, place in places.items()
        ]
        return jax.make_array_from_single_device_arrays(shape, self.sharding, pieces)
