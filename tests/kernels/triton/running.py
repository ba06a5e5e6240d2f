"""Runs a graph on the CPU, with torch kernels, and with Triton kernels."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import ml_dtypes  # noqa: F401 -- registers bfloat16
import numpy as np

from dalify import fn, pipeline_def
from dalify.data.dtypes import from_numpy

SIZES = ((13, 37), (40, 21), (1, 5))
DTYPES = ("uint8", "int16", "float16", "float32")


def images(dtype: str, channels: int, layout: str = "HWC", sizes: Sequence[tuple[int, int]] = SIZES) -> list[Any]:
    """Return images of several sizes with values of the whole range of bytes."""
    generator = np.random.default_rng(7)
    found = [generator.integers(0, 256, (*size, channels)).astype(dtype) for size in sizes]
    if layout == "CHW":
        found = [np.ascontiguousarray(image.transpose(2, 0, 1)) for image in found]
    return found


def modules() -> list[Any]:
    """Return the modules of Triton kernels."""
    names = ("windows", "resampling", "pointwise", "warping", "convolution", "erasing", "joining")
    return [importlib.import_module(f"dalify.kernels.triton.{name}") for name in names]


def results(
    graph: Callable[..., Any], data: Sequence[Any], layout: str, device: str, arguments: Sequence[Any] = ()
) -> list[list[np.ndarray]]:
    """Return the batches of a graph's outputs.

    Args:
        graph: ``graph(images, *arguments)`` returns one or several nodes.
        data: images.
        layout: of them.
        device: ``cpu`` or ``gpu``.
        arguments: one list per argument, of one array per sample.
    """

    @pipeline_def(batch_size=len(data), num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline() -> Any:
        # With the type and the number of dimensions, which passes need and decoders know.
        known = {"dtype": from_numpy(data[0].dtype), "ndim": data[0].ndim}
        x = fn.external_source(source=iter([list(data)]), layout=layout, **known)
        given = [fn.external_source(source=iter([list(values)])) for values in arguments]
        found = graph(x.gpu() if device == "gpu" else x, *given)
        return found if isinstance(found, tuple) else (found,)

    built = pipeline()
    outputs = built.run()
    return [[np.asarray(sample) for sample in (output.as_cpu() if device == "gpu" else output)] for output in outputs]


def compare(
    graph: Callable[..., Any],
    data: Sequence[Any],
    layout: str,
    *,
    tolerance: float,
    arguments: Sequence[Any] = (),
    launches: int | None = 1,
    torch_tolerance: float | None = None,
) -> None:
    """Compare the results of Triton kernels with those of the CPU and of torch.

    Args:
        graph: as in `results`.
        data: as in `results`.
        layout: as in `results`.
        tolerance: largest difference from the CPU.
        arguments: as in `results`.
        launches: number of launches for the whole chunk; None if Triton does not compute this.
        torch_tolerance: largest difference from torch, if another.
    """
    expected = results(graph, data, layout, "cpu", arguments)
    with mock.patch.dict(os.environ, DALIFY_TRITON="0"):
        reference = results(graph, data, layout, "gpu", arguments)
    counts: list[str] = []
    patches = []
    for module in modules():
        original = module.launch

        def counted(kernel: Any, *others: Any, original: Any = original, **constants: Any) -> None:
            counts.append(kernel.__name__)
            original(kernel, *others, **constants)

        patches.append(mock.patch.object(module, "launch", counted))
    for patch in patches:
        patch.start()
    try:
        found = results(graph, data, layout, "gpu", arguments)
    finally:
        for patch in patches:
            patch.stop()
    assert len(counts) == (launches or 0), counts
    for values, others, bound in ((found, expected, tolerance), (found, reference, torch_tolerance or tolerance)):
        for output, wanted in zip(values, others, strict=True):
            for sample, right in zip(output, wanted, strict=True):
                assert sample.dtype == right.dtype
                assert sample.shape == right.shape
                np.testing.assert_allclose(sample.astype(np.float64), right.astype(np.float64), rtol=0, atol=bound)
