"""Operations on single pixels: conversion, brightness and contrast, and color matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.data.device_samples import DeviceSamples
from dalify.kernels.arrays.upload_torch import uploaded_together
from dalify.kernels.triton.conversion import saturated
from dalify.kernels.triton.launching import element_type, launch
from dalify.kernels.triton.package import constexpr, tl, triton

_BLOCK = 2048
_PIXELS = 512


@triton.jit(do_not_specialize=["tiles"])
def _line(
    out_at,
    x_at,
    sizes,
    factor,
    summand,
    tiles,
    X: constexpr,
    OUT: constexpr,
    CONVERT: constexpr,
    BLOCK: constexpr,
):
    program = tl.program_id(0)
    n = program // tiles
    place = (program % tiles) * BLOCK + tl.arange(0, BLOCK)
    is_there = place < tl.load(sizes + n)
    value = tl.load(tl.load(x_at + n).to(tl.pointer_type(X)) + place, mask=is_there, other=0)
    if CONVERT:
        if X != OUT:
            value = saturated(value.to(tl.float32), OUT)
    else:
        value = saturated(value.to(tl.float32) * tl.load(factor + n) + tl.load(summand + n), OUT)
    tl.store(tl.load(out_at + n).to(tl.pointer_type(OUT)) + place, value, mask=is_there)


def _launch_line(out: DeviceSamples, x: DeviceSamples, factor: np.ndarray | None, summand: np.ndarray | None) -> None:
    sizes = x.shapes.prod(1)
    tiles = -(-int(sizes.max(initial=0)) // _BLOCK)
    if not tiles:
        return
    like = np.zeros(len(x), np.float32)
    parts = [like if values is None else np.asarray(values, np.float32) for values in (factor, summand)]
    described = uploaded_together(x.device, out.addresses, x.addresses, sizes.astype(np.int32), *parts)
    launch(
        _line, x.device, len(x) * tiles, *described, tiles, X=element_type(x.dtype), OUT=element_type(out.dtype),
        CONVERT=factor is None, BLOCK=_BLOCK,
    )  # fmt: skip


def saturate_cast_samples(out: DeviceSamples, x: DeviceSamples) -> None:
    """`dalify.kernels.arrays.convert.saturate_cast_samples` for samples on a device."""
    _launch_line(out, x, None, None)


def scale_shift(out: DeviceSamples, x: DeviceSamples, factor: np.ndarray, summand: np.ndarray) -> None:
    """`dalify.kernels.arrays.pointwise.scale_shift` for samples on a device."""
    _launch_line(out, x, factor, summand)


@triton.jit(do_not_specialize=["tiles"])
def _matrix(
    out_at,
    x_at,
    pixels,
    matrix,
    offset,
    tiles,
    X: constexpr,
    OUT: constexpr,
    INPUTS: constexpr,
    OUTPUTS: constexpr,
    BLOCK: constexpr,
):
    program = tl.program_id(0)
    n = program // tiles
    place = (program % tiles) * BLOCK + tl.arange(0, BLOCK)
    is_there = place < tl.load(pixels + n)
    x = tl.load(x_at + n).to(tl.pointer_type(X)) + place * INPUTS
    out = tl.load(out_at + n).to(tl.pointer_type(OUT)) + place * OUTPUTS
    row = matrix + n.to(tl.int64) * INPUTS * OUTPUTS
    for k in tl.static_range(OUTPUTS):
        value = tl.load(row + k * INPUTS) * tl.load(x, mask=is_there, other=0).to(tl.float32)
        for c in tl.static_range(1, INPUTS):
            value += tl.load(row + k * INPUTS + c) * tl.load(x + c, mask=is_there, other=0).to(tl.float32)
        value += tl.load(offset + n * OUTPUTS + k)
        tl.store(out + k, saturated(value, OUT), mask=is_there)


def apply_matrix(out: DeviceSamples, x: DeviceSamples, matrix: np.ndarray, offset: np.ndarray) -> None:
    """`dalify.kernels.images.color_matrix.apply_matrix` for samples on a device."""
    outputs, inputs = matrix.shape[1:]
    pixels = x.shapes.prod(1) // inputs
    tiles = -(-int(pixels.max(initial=0)) // _PIXELS)
    if not tiles:
        return
    parts: list[Any] = [np.asarray(values, np.float32) for values in (matrix, offset)]
    described = uploaded_together(x.device, out.addresses, x.addresses, pixels.astype(np.int32), *parts)
    launch(
        _matrix, x.device, len(x) * tiles, *described, tiles, X=element_type(x.dtype), OUT=element_type(out.dtype),
        INPUTS=inputs, OUTPUTS=outputs, BLOCK=_PIXELS,
    )  # fmt: skip
