"""Run kernels of the accelerator on a device whose memory the host cannot read, and print what they should not do.

In emulation, host and device are the same to torch: a kernel that mixes their tensors, or that reads a value of the
device, works. Here tensors of the device have a device of their own and no elements (torch's `FakeTensorMode`), so
torch raises where they are mixed with others and where a value is needed. `Watch` notes copies between the two.

In a process of its own, because torch cannot forget a device::

    python -m tests.operators.battery.separate_device OPERATOR... > findings.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dalify import fn
from dalify.executor import assembly
from dalify.executor.stage_runner import StageRunner
from dalify.kernels.arrays import wide_torch
from dalify.kernels.arrays.upload_torch import uploaded
from dalify.kernels.images import clahe
from dalify.pipeline import do_not_convert
from tests.operators.battery.run_case import built, nodes_of
from tests.operators.battery.variants import EVERYTHING, Variant, variants_of

DEVICE = "remote"
_ROOT = f"{Path(__file__).parents[3] / 'dalify'}/"
# On CUDA, torch implements only these functions, and views, for all types.
_OF_ALL_TYPES = ("device", "empty", "empty_strided", "new_empty", "fill_", "zero_", "copy_", "_to_copy", "clone")
_WIDE_UNSIGNED = ("torch.uint16", "torch.uint32", "torch.uint64")
# Copies by these do not wait, or are meant.
_COPIES = ("executor/device_steps.py", "kernels/arrays/upload_torch.py")
_REGISTER = "_setup_privateuseone_for_python_backend"


def is_possible() -> bool:
    """Return whether this torch can register a device in Python."""
    return hasattr(backend_registration, _REGISTER)


class Watch(TorchDispatchMode):
    """Notes what torch does not do on a device, or only by waiting, and the place of errors.

    Copies between host and device that wait, functions that do not support unsigned integers wider than 8 bits on CUDA,
    and where float64 begins on the device.

    Attributes:
        notes: what was noted, with the line of dalify.
    """

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            result = func(*args, **(kwargs or {}))
        except Exception as error:
            self._note(f"{func.overloadpacket.__name__}: {type(error).__name__}")
            raise
        given, made = (
            [item for item in tree_leaves(part) if isinstance(item, torch.Tensor)] for part in (args, result)
        )
        kinds = {tensor.device.type for tensor in (*given, *made)}
        if len(kinds) > 1 and not _place().startswith(_COPIES):
            self._note("copies from the device" if made and made[0].device.type == "cpu" else "copies to the device")
        name = func.overloadpacket.__name__
        is_general = func.is_view or name in _OF_ALL_TYPES or _place().startswith("sources/user_function.py")
        if not is_general and any(str(item.dtype) in _WIDE_UNSIGNED and item.device.type == DEVICE for item in given):
            self._note(f"{name} of unsigned integers")
        wide = (torch.float64, torch.complex128)
        has_been_wide = any(tensor.dtype in wide for tensor in given)
        if not has_been_wide and any(tensor.dtype in wide and tensor.device.type == DEVICE for tensor in made):
            self._note("float64")
        return result

    def _note(self, text: str) -> None:
        self.notes.append(f"{text} @ {_place()}")


def _place() -> str:
    """Return file and function of dalify that called torch."""
    frame: FrameType | None = sys._getframe(1)  # `traceback.extract_stack` also reads the source lines of all frames
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_ROOT):
            return f"{code.co_filename.removeprefix(_ROOT)}:{code.co_name}"
        frame = frame.f_back
    return ""


@contextmanager
def watched(notes: list[str]) -> Iterator[None]:
    """Compute the stages of the device on the separate device, and note what they do."""
    compute: Callable[..., None] = StageRunner._run_on_batch

    def on_device(runner: StageRunner, iteration: Any, state: Any) -> None:
        if state.stage.kind != "device":
            compute(runner, iteration, state)
            return
        watch = Watch()
        try:
            with FakeTensorMode(allow_non_fake_inputs=True), watch:
                compute(runner, iteration, state)
        finally:
            notes.extend(watch.notes)

    with (
        mock.patch.object(StageRunner, "_run_on_batch", on_device),
        mock.patch.object(assembly, "find_device", return_value=DEVICE),
        # It fills page-locked memory of torch, which has no elements here.
        mock.patch.object(clahe, "uploaded_together", lambda device, *tables: [uploaded(t, device) for t in tables]),
        # Tensors of one element would otherwise have a value, and would be copied.
        mock.patch.object(FakeTensorMode, "may_turn_const", return_value=False),
        # As on Apple's devices.
        mock.patch.object(wide_torch, "_WITHOUT_FLOAT64", {DEVICE}),
    ):
        yield


def findings_of_use(variant: Variant, folder: Path) -> list[str]:
    """Return what was noted for one use of an operator, and the error if there is one."""

    def graph() -> Any:
        return tuple(nodes_of(variant.operator, variant.case, variant.samples, folder, "gpu"))

    return findings(do_not_convert(graph), len(variant.samples))


def condition(shapes: list[tuple[int, ...]]) -> Any:
    """Return a graph that runs one of three branches for each sample and merges the results."""
    kinds = [np.array(number % 3) for number in range(len(shapes))]

    def graph() -> Any:
        data = fn.external_source(lambda: [np.ones(shape, np.uint8) for shape in shapes], layout="HWC").gpu()
        kind = fn.external_source(lambda: kinds)
        if kind == 0:
            data = fn.flip(data)
        elif kind == 1:
            data = fn.copy(data)
        return data

    return graph


# Samples of one shape, and of several.
CONDITIONS = {"conditions, uniform": [(4, 5, 3)] * 7, "conditions, ragged": [(4 + n, 5, 3) for n in range(7)]}


def findings(graph: Callable[[], Any], count: int) -> list[str]:
    """Return what was noted for a graph, and the error if there is one."""
    notes: list[str] = []
    with watched(notes):
        try:
            with built(graph, count=count, device="gpu") as pipe:
                pipe.run()
        except Exception as error:
            notes.append(f"error @ {type(error).__module__}.{type(error).__qualname__}")
    return list(dict.fromkeys(notes))


def main(names: list[str]) -> None:
    """Print the findings of operators and conditions as JSON: what was noted, and the variants with it, by name."""
    getattr(backend_registration, _REGISTER)(DEVICE)
    found: dict[str, dict[str, list[str]]] = {}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", DALIFY_DEVICE=DEVICE):
        for name in names:
            notes = found[name] = {}
            for variant in variants_of(name, everything=EVERYTHING):
                if EVERYTHING or not variant.is_general or variant.label in ("typical", "of int32", "of uint16"):
                    for note in findings_of_use(variant, Path(folder)):
                        notes.setdefault(note, []).append(variant.label)
        for name, shapes in CONDITIONS.items():
            found[name] = {note: [] for note in findings(condition(shapes), len(shapes))}
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
