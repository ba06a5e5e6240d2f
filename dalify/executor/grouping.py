"""Divide the samples of a chunk into groups for kernel calls, without calling them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.narrow import is_array, is_list, is_tuple
from dalify.data import Array, Batch, Spec, stack_samples

__all__ = ["NOTHING_WANTED", "Wanted", "find_runs", "open_spec_of", "take_group"]

# Larger samples are passed to kernels one by one, because stacking them costs more than the calls.
_STACKING_LIMIT_BYTES = 1 << 16


class Wanted:
    """Shapes and layout that ``prepare`` specifies instead of the rule.

    Attributes:
        shapes: a list with one shape per sample or int64 ``[N, ndim]``; a tuple: the shape of all samples; None: the
            result of the rule.
        layout: None: the result of the rule.
    """

    __slots__ = ("layout", "shapes")

    def __init__(self, shapes: Any = None, layout: str | None = None) -> None:
        self.shapes = shapes
        self.layout = layout

    def shape_of(self, sample: int) -> tuple[int, ...] | None:
        """Return the shape of one sample; None for the result of the rule."""
        if self.shapes is None:
            return None
        return tuple(map(int, self.shapes if is_tuple(self.shapes) else self.shapes[sample]))

    def applied(self, specs: tuple[Spec, ...], shape: tuple[int, ...] | None) -> tuple[Spec, ...]:
        """Return the specs of the rule with the specified shapes and layout."""
        if shape is not None:
            specs = tuple(spec.replace(shape=shape) for spec in specs)
        if self.layout is not None:
            specs = tuple(spec.replace(layout=self.layout) for spec in specs)
        return specs


NOTHING_WANTED = Wanted()


def find_runs(
    inputs: list[Batch | None], arguments: Mapping[str, Any], varying: Mapping[str, Any], out_shapes: Any, count: int
) -> list[tuple[int, int]]:
    """Return the groups as ranges: consecutive samples of equal shapes and equal shaping arguments.

    Args:
        inputs: inputs of the step.
        arguments: per-sample arguments; a list contains vectors of different lengths.
        varying: arguments that determine shapes and differ between samples.
        out_shapes: a list or array if shapes of results may differ.
        count: number of samples.
    """
    ragged: list[Any] = [array for array in arguments.values() if type(array) is list]
    listed = is_list(out_shapes) or is_array(out_shapes)
    is_one = count == 1 or not (ragged or listed or varying)
    for batch in inputs:
        is_one = is_one and (count == 1 or batch is None or batch.dense is not None)
    if is_one:
        return [(0, count)]
    columns: list[Any] = []
    large = False
    for batch in inputs:
        if batch is not None and batch.dense is None:
            columns.append(batch.shapes())
            large = large or any(sample.nbytes > _STACKING_LIMIT_BYTES for sample in batch.samples)
    if large:
        return [(index, index + 1) for index in range(count)]
    if listed:
        shapes = out_shapes.tolist() if is_array(out_shapes) else out_shapes
        columns.append([tuple(shape) for shape in shapes])
    for array in varying.values():
        columns.append([tuple(row) if getattr(row, "ndim", 0) else row for row in array])
    columns += [[vector.shape for vector in vectors] for vectors in ragged]
    keys = list(zip(*columns, strict=True))
    runs: list[tuple[int, int]] = []
    start = 0
    for index in range(1, count + 1):
        if index == count or keys[index] != keys[start]:
            runs.append((start, index))
            start = index
    return runs


def open_spec_of(inputs: Sequence[Batch | None]) -> Spec | None:
    """Return the spec of the first input that is not absent, without shapes."""
    for batch in inputs:
        if batch is not None:
            return batch.open_spec()
    return None


def take_group(batch: Batch, start: int, stop: int, is_elementwise: bool = False) -> Array:
    """Return samples as one array ``[N, ...]``, contiguous on the CPU, as compiled kernels require.

    Args:
        batch: the batch.
        start: index of the first sample.
        stop: index after the last one.
        is_elementwise: whether a repeated sample may stay a view with stride 0.
    """
    if batch.dense is not None:
        dense = batch.dense
        group = dense if start == 0 and stop == len(dense) else dense[start:stop]
    elif stop - start == 1:
        group = batch.samples[start][None]
    else:
        return stack_samples(batch.samples[start:stop])
    if batch.device == "gpu":
        return group.contiguous()
    if group.flags.c_contiguous or (is_elementwise and group.strides[0] == 0):
        return group
    return np.ascontiguousarray(group)
