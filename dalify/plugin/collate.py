"""Collation of the samples of an output, also if their shapes differ: ``collate={"boxes": "list", "audio": Pad()}``.

Results are NumPy arrays, or torch tensors on a device; the iterators convert them to tensors of their framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dalify import kernels
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ShapeError,
    check_option,
    option_error_text,
    short_repr,
)
from dalify.base.optional import torch
from dalify.base.wording import counted
from dalify.data import (
    DeviceSamples,
    Samples,
    TensorCPU,
    TensorGPU,
    TensorListCPU,
    TensorListGPU,
    batch_of,
    joined_torch,
)

__all__ = ["COLLATIONS", "Collation", "Packed", "Pad", "array_of", "arrays_of", "collations", "empty_dense"]

Output = TensorListCPU | TensorListGPU
Collation = Callable[[str, Output, int], Any]


class Packed(NamedTuple):
    """Concatenated samples of different lengths.

    Attributes:
        values: ``[total, ...]``: all samples, concatenated along their first axis.
        offsets: int64 ``[N + 1]``: sample ``i`` is ``values[offsets[i]:offsets[i + 1]]``.
    """

    values: Any
    offsets: Any


@dataclass(frozen=True)
class Pad:
    """Pad samples to the same shape, at the end of each axis: ``[N, longest, ...]``.

    Args:
        value: fill value.
        multiple: extents are rounded up to this multiple, an integer for all axes or one per axis.
    """

    value: float = 0
    multiple: int | Sequence[int] = 1

    def __call__(self, name: str, output: Output, count: int) -> Any:
        """Return the padded array of the first ``count`` samples."""
        if not count:
            return empty_dense(output)
        batch = batch_of(output)
        shapes = batch.shape_array()[:count]
        ndim = shapes.shape[1]
        multiples = [self.multiple] * ndim if isinstance(self.multiple, int) else list(self.multiple)
        if len(multiples) != ndim or any(item < 1 for item in multiples):
            raise ArgumentValueError(
                f"the samples of the output {name!r} have {counted(ndim, 'axis')}; multiple must be a positive "
                f"integer, or one per axis; got {short_repr(self.multiple)}."
            )
        largest = shapes.max(0).tolist()
        shape = [-(-extent // multiple) * multiple for extent, multiple in zip(largest, multiples, strict=True)]
        fill = np.asarray(self.value).astype(batch.dtype.numpy)
        if isinstance(output, TensorListGPU):
            x = DeviceSamples.of_batch(batch.slice(0, count))
            found = DeviceSamples.empty(np.broadcast_to(np.array(shape, np.int64), shapes.shape), x.dtype, x.device)
            if found.block.numel():
                kernels.window_samples_torch(found, x, np.zeros_like(shapes), fill_values=fill.item())
            return found.dense
        padded = np.full((count, *shape), fill, fill.dtype)
        target = Samples.of_dense(padded)
        kernels.copy_strided(target.window(np.zeros_like(shapes), shapes), Samples.of_batch(batch.slice(0, count)))
        return padded


def array_of(value: TensorCPU | TensorGPU) -> Any:
    """Return a NumPy array, or a torch tensor on a device, that shares the memory."""
    return np.asarray(value) if isinstance(value, TensorCPU) else torch.from_dlpack(value)


def arrays_of(output: Output, count: int) -> list[Any]:
    """Return the arrays of the first ``count`` samples."""
    if isinstance(output, TensorListCPU):
        return batch_of(output).samples[:count]
    return [array_of(output[index]) for index in range(count)]


def empty_dense(output: Output) -> Any:
    """Return an empty array ``[0, ...]`` with the dtype and extents of the first sample."""
    return array_of(output[0])[None][:0]


def _dense(name: str, output: Output, count: int) -> Any:
    """Return one array ``[N, ...]`` that shares the memory of the output.

    Raises:
        ShapeError: samples differ in shape.
    """
    hint = (
        "Use fn.resize, fn.crop or fn.pad in the pipeline to make the shapes equal, or specify "
        f"collate={{{name!r}: ...}} with 'pad', 'list', 'packed' or Pad(...)."
    )
    batch_of(output).check_uniform(f"the samples of the output {name!r}", hint)
    dense = array_of(output.as_tensor())
    return dense if count == len(dense) else dense[:count]


def _listed(name: str, output: Output, count: int) -> list[Any]:
    """Return a list of N arrays."""
    return arrays_of(output, count)


def _packed(name: str, output: Output, count: int) -> Packed:
    """Return all samples concatenated along their first axis, and their offsets.

    Raises:
        ShapeError: samples have no axes, or differ in other axes than the first.
    """
    samples = arrays_of(output, count)
    if not samples:
        return Packed(empty_dense(output), np.zeros(1, np.int64))
    if samples[0].ndim == 0 or len({tuple(sample.shape[1:]) for sample in samples}) > 1:
        shapes = sorted({tuple(sample.shape) for sample in samples})
        raise ShapeError(
            f"the samples of the output {name!r} cannot be packed: only their first axes may differ; the shapes are "
            f"{', '.join(map(str, shapes[:4]))}.",
            hint="Use 'pad' or 'list'.",
        )
    joined = np.concatenate(samples) if isinstance(samples[0], np.ndarray) else joined_torch(samples)
    return Packed(joined, np.cumsum([0, *(len(sample) for sample in samples)], dtype=np.int64))


COLLATIONS: dict[str, Collation] = {
    "dense": _dense,
    "pad": Pad(),
    "list": _listed,
    "packed": _packed,
}


def collations(chosen: Any, names: Sequence[str], known: Mapping[str, Collation] = COLLATIONS) -> list[Collation]:
    """Return the collation of each output.

    Args:
        chosen: the user's argument: one for all outputs, or a dictionary by name; None for dense.
        names: names of the outputs.
        known: collations of the framework, by name.

    Raises:
        ArgumentValueError: an unknown output or collation.
        ArgumentTypeError: the argument has another type.
    """
    if chosen is None or isinstance(chosen, (str, Pad)):
        return [_collation("dense" if chosen is None else chosen, known)] * len(names)
    if not isinstance(chosen, Mapping):
        raise ArgumentTypeError(
            f"collate must be a string, Pad, or a dictionary with names of outputs as keys; got {short_repr(chosen)}.",
            hint="For instance: collate={'boxes': 'list'}.",
        )
    for name in chosen:
        check_option("a name in collate", name, names)
    return [_collation(chosen.get(name, "dense"), known) for name in names]


def _collation(chosen: Any, known: Mapping[str, Collation]) -> Collation:
    if isinstance(chosen, Pad):
        return chosen
    if chosen not in known:
        raise ArgumentValueError(option_error_text("collate", chosen, [*known, "Pad(...)"]))
    return known[chosen]
