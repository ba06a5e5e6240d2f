"""How the samples of an output become one value of a batch, also where their shapes differ.

Alone because it is one decision per output, in one place: ``collate={"boxes": "list", "sound": Pad(multiple=8)}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, ShapeError, option_error_text
from dalify.data import TensorListCPU, TensorListGPU
from dalify.plugin.pytorch.tensors import tensor_of

__all__ = ["COLLATIONS", "Collation", "Packed", "Pad", "collations", "sparse"]

Output = TensorListCPU | TensorListGPU
Collation = Callable[[str, Output, int], Any]


class Packed(NamedTuple):
    """Samples of different length, one behind the other.

    Attributes:
        values: ``[total, ...]``: all samples, joined along their first axis.
        offsets: int64 ``[N + 1]``: sample ``i`` is ``values[offsets[i]:offsets[i + 1]]``.
    """

    values: torch.Tensor
    offsets: torch.Tensor


@dataclass(frozen=True)
class Pad:
    """Make samples equally large: ``[N, longest, ...]``, filled at the end of each axis.

    Args:
        value: what to fill with.
        multiple: extents are rounded up to a multiple, one for all axes or one for each; 1: as large as the largest
            sample.
    """

    value: float = 0
    multiple: int | Sequence[int] = 1

    def __call__(self, name: str, output: Output, count: int) -> torch.Tensor:
        """Return the tensor."""
        tensors = _tensors(output, count)
        if not tensors:
            return _dense_of_none(output)
        ndim = tensors[0].ndim
        multiples = [self.multiple] * ndim if isinstance(self.multiple, int) else list(self.multiple)
        if len(multiples) != ndim or any(item < 1 for item in multiples):
            raise ArgumentValueError(
                f"the samples of the output {name!r} have {ndim} axes; multiple must be a number of at least 1, or one "
                f"for each axis: got {self.multiple!r}."
            )
        shape = [
            math.ceil(max(tensor.shape[axis] for tensor in tensors) / multiple) * multiple
            for axis, multiple in enumerate(multiples)
        ]
        padded = tensors[0].new_full((len(tensors), *shape), self.value)
        for row, tensor in zip(padded, tensors, strict=True):
            row[tuple(slice(extent) for extent in tensor.shape)] = tensor
        return padded


def _dense(name: str, output: Output, count: int) -> torch.Tensor:
    """Return one tensor ``[N, ...]`` of the outputs' own memory.

    Raises:
        ShapeError: samples differ in shape.
    """
    if not output.is_dense_tensor():
        shapes = [tuple(shape) for shape in output.shape()]
        odd = next(index for index, shape in enumerate(shapes) if shape != shapes[0])
        raise ShapeError(
            f"the samples of the output {name!r} have different shapes and cannot be one tensor: "
            f"sample 0 is {shapes[0]}, sample {odd} is {shapes[odd]}.",
            hint="Bring them to one size in the pipeline with fn.resize, fn.crop or fn.pad, or tell what they should "
            f"become: collate={{{name!r}: ...}} with one of {', '.join(map(repr, list(COLLATIONS)[1:]))} or Pad(...).",
        )
    return tensor_of(output.as_tensor())[:count]


def _listed(name: str, output: Output, count: int) -> list[torch.Tensor]:
    """Return a list of N tensors."""
    return _tensors(output, count)


def _nested(name: str, output: Output, count: int) -> torch.Tensor:
    """Return a nested tensor of torch: jagged where only the first axis differs, strided otherwise."""
    tensors = _tensors(output, count)
    if not tensors:
        offsets = torch.zeros(1, dtype=torch.int64)
        return torch.nested.nested_tensor_from_jagged(_dense_of_none(output), offsets, min_seqlen=0, max_seqlen=0)
    is_jagged = tensors[0].ndim > 0 and len({tensor.shape[1:] for tensor in tensors}) == 1
    return torch.nested.nested_tensor(tensors, layout=torch.jagged if is_jagged else torch.strided)


def _packed(name: str, output: Output, count: int) -> Packed:
    """Return all samples joined along their first axis, and where each begins.

    Raises:
        ShapeError: single values, or samples that differ in another axis than the first.
    """
    tensors = _tensors(output, count)
    if not tensors:
        return Packed(_dense_of_none(output), torch.zeros(1, dtype=torch.int64))
    if tensors[0].ndim == 0 or len({tensor.shape[1:] for tensor in tensors}) > 1:
        shapes = sorted({tuple(tensor.shape) for tensor in tensors})
        raise ShapeError(
            f"the samples of the output {name!r} cannot be packed: they may differ in their first axis only, and are "
            f"{', '.join(map(str, shapes[:4]))}.",
            hint="Use 'pad', 'list' or 'nested'.",
        )
    lengths = torch.tensor([0, *(len(tensor) for tensor in tensors)])
    return Packed(torch.cat(tensors), lengths.cumsum(0))


def sparse(name: str, output: Output, count: int) -> torch.Tensor:
    """Return a sparse tensor of shape ``[N, longest, ...]``, sparse in its first two dimensions.

    Raises:
        ShapeError: single values.
    """
    tensors = _tensors(output, count)
    if not tensors:
        return _dense_of_none(output).to_sparse()
    if any(tensor.ndim == 0 for tensor in tensors):
        raise ShapeError(f"the samples of the output {name!r} are single values, which SPARSE_COO_TAG cannot join.")
    lengths = torch.tensor([len(tensor) for tensor in tensors])
    rows = torch.repeat_interleave(torch.arange(len(tensors)), lengths)
    columns = torch.cat([torch.arange(length) for length in lengths.tolist()])
    values = torch.cat(tensors)
    size = (len(tensors), int(lengths.max()), *values.shape[1:])
    return torch.sparse_coo_tensor(torch.stack([rows, columns]).to(values.device), values, size, check_invariants=False)


COLLATIONS: dict[str, Collation] = {
    "dense": _dense,
    "pad": Pad(),
    "list": _listed,
    "nested": _nested,
    "packed": _packed,
}


def collations(chosen: Any, names: Sequence[str]) -> list[Collation]:
    """Return what to do with each output.

    Args:
        chosen: of the user: for all outputs, or by name; None: dense.
        names: of the outputs.

    Raises:
        ArgumentValueError: an output or a way that does not exist.
        ArgumentTypeError: something else.
    """
    if chosen is None or isinstance(chosen, (str, Pad)):
        return [_collation("dense" if chosen is None else chosen)] * len(names)
    if not isinstance(chosen, Mapping):
        raise ArgumentTypeError(
            f"collate must be a dictionary by the names of the outputs; got {chosen!r}.",
            hint="For instance: collate={'boxes': 'list'}.",
        )
    for name in chosen:
        if name not in names:
            raise ArgumentValueError(option_error_text("a name in collate", name, names))
    return [_collation(chosen.get(name, "dense")) for name in names]


def _collation(chosen: Any) -> Collation:
    if isinstance(chosen, Pad):
        return chosen
    if chosen not in COLLATIONS:
        raise ArgumentValueError(option_error_text("collate", chosen, [*COLLATIONS, "Pad(...)"]))
    return COLLATIONS[chosen]


def _dense_of_none(output: Output) -> torch.Tensor:
    """Return ``[0, ...]`` for the last batch of a shard that has no sample left, with a sample's type and extents."""
    sample = tensor_of(output[0])
    return sample.new_empty((0, *sample.shape))


def _tensors(output: Output, count: int) -> list[torch.Tensor]:
    return [tensor_of(sample) for sample in list(output)[:count]]
