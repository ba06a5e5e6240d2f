"""Converts arrays of a pipeline to JAX arrays, without a copy if possible, on one device or sharded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalify.base.errors import IteratorArgumentError, ShapeError
from dalify.base.wording import counted
from dalify.plugin.frameworks import framework

jax = framework("jax")


def as_jax(array: Any, device: Any = None) -> Any:
    """Return a JAX array.

    It shares the memory of the array if JAX supports it: on the CPU for contiguous arrays, aligned to 64 bytes, with
    a dtype of JAX. 64-bit dtypes become 32-bit dtypes unless ``jax_enable_x64`` is set.

    Args:
        array: a NumPy array, or a torch tensor on a device.
        device: a JAX device or sharding; None for JAX's default device if the array is a NumPy array.
    """
    if isinstance(array, np.ndarray):
        return jax.device_put(array, device, may_alias=True)
    array = jax.dlpack.from_dlpack(array.contiguous())
    return array if device is None else jax.device_put(array, device)


def on_devices(devices: Sequence[Any]) -> Any:
    """Return the sharding that divides the first axis over devices."""
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("device"))


class Division:
    """Creates one JAX array from the parts of this process.

    The sharding divides the first axis, the samples, among the devices. Each pipeline provides one part; a single
    pipeline provides all parts of this process.

    Args:
        sharding: a JAX sharding; it may also replicate data on several devices, or divide other axes.
        pipelines: number of pipelines in this process.

    Raises:
        IteratorArgumentError: the number of pipelines differs from the number of parts.
    """

    def __init__(self, sharding: Any, pipelines: int) -> None:
        self.sharding = sharding
        trial = (sharding.num_devices,) * max(1, len(getattr(sharding, "spec", ())))
        # The numbers of parts of all processes and of this one do not depend on the extent of the axis.
        self._parts = sharding.num_devices // sharding.shard_shape(trial)[0]
        self._own = len({index[0].start for index in sharding.addressable_devices_indices_map(trial).values()})
        if pipelines not in (1, self._own):
            raise IteratorArgumentError(
                f"the sharding divides a batch of this process into {self._own} parts, but there are {pipelines} "
                "pipelines.",
                hint=f"Pass one pipeline per part, {self._own} in total, or a single pipeline, whose batches are "
                "divided.",
            )

    def __call__(self, name: str, arrays: Sequence[Any]) -> Any:
        """Return the JAX array of all parts.

        Args:
            name: name of the output, for errors.
            arrays: one per pipeline, of equal shapes.

        Raises:
            ShapeError: the samples cannot be divided equally over the devices.
        """
        rows, rest = sum(len(array) for array in arrays), tuple(arrays[0].shape[1:])
        if rows % self._own:
            raise ShapeError(
                f"the output {name!r} has {counted(rows, 'sample')}, which do not divide over {self._own} devices.",
                hint=f"Choose a batch size that is a multiple of {self._own}, and LastBatchPolicy.FILL or DROP.",
            )
        shape = (rows // self._own * self._parts, *rest)
        try:
            slices = self.sharding.addressable_devices_indices_map(shape)
        except (ValueError, IndexError) as error:
            raise ShapeError(
                f"the output {name!r} of shape {shape} does not divide over the devices: {error}"
            ) from error
        starts = sorted({part[0].start or 0 for part in slices.values()})
        height = rows // self._own
        parts = (
            arrays if len(arrays) == self._own else [arrays[0][k * height : (k + 1) * height] for k in range(self._own)]
        )
        of_start = dict(zip(starts, parts, strict=True))
        pieces = [
            as_jax(of_start[part[0].start or 0][(slice(None), *part[1:])], device) for device, part in slices.items()
        ]
        return jax.make_array_from_single_device_arrays(shape, self.sharding, pieces)
