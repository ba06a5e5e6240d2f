"""Measure the differences of every operator from DALI and other references: ``python -m docs.parity [operator ...]``.

Writes the figures to `out/parity.json`, for the table and the pages of the operators in the documentation site. The
cases and their variants are those of the tests. DALI's results are read from the record of the tests, so DALI is not
needed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dalify.base.errors import DalifyError
from dalify.registry import KernelOperator, Source, catalog
from tests.operators.battery.case import SAMPLES, Case
from tests.operators.battery.cases import CASES
from tests.operators.battery.record import Recording, fingerprint, is_compared, thinned
from tests.operators.battery.run_case import ALL, NAMES, Output, has_gpu_kernel, run_case
from tests.operators.battery.test_references import reference_of
from tests.operators.battery.variants import variants_of

FIGURES = Path(__file__).parents[1] / "out" / "parity.json"

HEADING = """# Parity

Measured by `python -m docs.parity` with the cases of `tests/operators`: {count} operators with {variants} variants:
other element types, layouts, shapes (one pixel, no rows), arguments and ragged batches. For integers the figure is
the largest absolute difference, for floats the largest difference relative to the maximum of the sample; `=` means
equal bit for bit.

- **DALI**: dalify's CPU kernels compared with DALI 2 on the CPU, over all variants that both accept.
- **GPU**: dalify's GPU kernels, executed by torch on the CPU, compared with its CPU kernels. In a GPU pipeline an
  operator without GPU kernels runs on the CPU, with copies; `Pipeline.explain` reports it.
- **other**: the typical case compared with an independent reference: Pillow, OpenCV, SciPy, NumPy or the formula in
  float64.
- **tolerance**: what the tests require against DALI. "except 2%" is the fraction of elements that may differ by more.

[Intended differences](#intended-differences) from DALI are listed below, with their reasons.

| operator | devices | element types | variants | DALI | GPU | other | tolerance |
|---|---|---|---|---|---|---|---|
"""


_DECODER = "CPU only: the codecs are libraries and compiled code for CPUs"
_IMAGE_DECODER = 'no GPU kernel; with device="mixed", a library can decode on the GPU'
_FEW_NUMBERS = "CPU only, as in DALI: a few numbers per sample"
_FILES = "CPU only, as in DALI: it accesses files"
_NO_GPU = {
    "batch_permutation": _FEW_NUMBERS,
    "decoders.audio": _DECODER,
    "decoders.image": _IMAGE_DECODER,
    "decoders.image_crop": _IMAGE_DECODER,
    "decoders.image_random_crop": _IMAGE_DECODER,
    "decoders.image_slice": _IMAGE_DECODER,
    "decoders.inflate": "CPU only: each byte may depend on the previous bytes",
    "decoders.numpy": _FILES,
    "decoders.video": _DECODER,
    "dump_image": "CPU only: it writes files",
    "experimental.numba_function": "CPU only: it compiles the user's function for CPUs",
    "io.file.read": _FILES,
    "optical_flow": "CPU only: OpenCV computes it; DALI uses NVIDIA's optical flow hardware",
    "peek_image_shape": _FILES,
    "random_bbox_crop": _FEW_NUMBERS,
    "roi_random_crop": _FEW_NUMBERS,
    "segmentation.random_object_bbox": "CPU only, as in DALI: labeling connected components is sequential",
    "segmentation.select_masks": _FEW_NUMBERS,
}


class _Largest:
    """The largest differences of integers and of floats so far."""

    def __init__(self) -> None:
        self.count = 0
        self.integers: float | None = None
        self.floats: float | None = None

    def add(self, ours: np.ndarray, theirs: np.ndarray) -> None:
        if ours.dtype.kind not in "iufb" or ours.shape != theirs.shape:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            one, other = ours.astype(np.float64), theirs.astype(np.float64)
            apart = np.abs(one - other)
        apart = float(np.nanmax(np.where(one == other, 0, apart), initial=0))
        if ours.dtype.kind == "f":
            scale = float(np.abs(other[np.isfinite(other)]).max(initial=0))
            self.floats = max(self.floats or 0.0, apart / scale if scale else 0.0)
        else:
            self.integers = max(self.integers or 0.0, apart)

    def figures(self) -> dict[str, float]:
        found = {"integers": self.integers, "floats": self.floats}
        return {name: float(f"{value:.1e}") for name, value in found.items() if value is not None}


def _arrays(outputs: Iterable[Output]) -> list[np.ndarray]:
    return [sample for _, samples in outputs for sample in samples]


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Measure one operator."""
    recording = Recording(name)
    case = CASES[name]
    has_gpu = has_gpu_kernel(name)
    dali, gpu, other = _Largest(), _Largest(), _Largest()
    types = [str(case.inputs[0].samples[0].dtype)] if case.inputs else []
    for variant in variants_of(name):
        try:
            ours = run_case(name, variant.case, folder, variant.samples)
            on_gpu = run_case(name, variant.case, folder, variant.samples, device="gpu") if has_gpu else []
        except DalifyError:
            continue
        except Exception as error:  # the tests report it; measure the other variants
            print(f"{variant.key}: {type(error).__name__}: {error}")
            continue
        if variant.label.startswith("of "):
            types.append(variant.label[3:])
        entry = recording.entries.get(variant.key)
        is_recorded = entry is not None and not entry["status"] and entry["data"] == fingerprint(variant, folder)
        if is_recorded and variant.label not in case.different:
            dali.count += 1
            for (_, samples), (_, recorded) in zip(ours, recording.outputs(variant.key), strict=True):
                for sample, (_, _, elements) in zip(samples, recorded, strict=True):
                    dali.add(thinned(sample), elements)
        if has_gpu:
            gpu.count += 1
            for one, two in zip(_arrays(on_gpu), _arrays(ours), strict=True):
                gpu.add(one, two)
    found: dict[str, Any] = {"types": types, "promise": promise(case)}
    if is_compared(name) and dali.count:
        found["dali"] = {"variants": dali.count, **dali.figures()}
    if gpu.count:
        found["gpu"] = {"variants": gpu.count, **gpu.figures()}
    if case.reference:
        ours = run_case(name, case, folder, (*ALL, SAMPLES) if case.inputs else ALL)
        for one, two in zip(_arrays(ours), _arrays(reference_of(name, folder)), strict=True):
            other.add(one, two)
        found["other"] = {"what": case.reference.what, **other.figures()}
    return found


def promise(case: Case) -> str:
    """Return what the tests require of a case compared with DALI."""
    if case.not_compared_with_dali:
        return ""
    parts = [f"{case.atol:g}"] if case.atol else []
    parts += [f"{case.rtol:g} of floats"] if case.rtol else []
    text = ", ".join(parts) or "="
    return f"{text}, except {case.share:.0%}" if case.share else text


def shown(figures: dict[str, Any] | None) -> str:
    """Format largest differences."""
    if figures is None:
        return ""
    parts = []
    if "integers" in figures:
        parts.append(f"{figures['integers']:g}" if figures["integers"] else "=")
    if "floats" in figures:
        parts.append(f"{figures['floats']:.0e} of floats" if figures["floats"] else "= floats")
    text = ", ".join(parts) or "="
    return "=" if text == "=, = floats" else text.replace("= floats", "=") if len(parts) == 1 else text


def why_not_compared_with_dali(name: str) -> str:
    """Return why an operator is not compared with DALI."""
    return CASES[name].not_compared_with_dali or "DALI's results depend on more than the data"


def why_no_gpu(name: str) -> str:
    """Return why an operator has no GPU kernel."""
    return "a reader or source" if isinstance(catalog.find(name), Source) else _NO_GPU[name]


def why_no_other(name: str) -> str:
    """Return why there is no other reference."""
    if catalog.find(name).is_random:
        return "random: the tests of the operator check the distribution"
    return "in the tests of the operator"


def page(figures: dict[str, dict[str, Any]]) -> str:
    """Return the table.

    Args:
        figures: measured figures by operator.
    """
    rows = []
    for name in NAMES:
        if name not in figures or name not in CASES:
            continue
        found = figures[name]
        operator = catalog.find(name)
        kernels = ", ".join(sorted(operator.kernels)) if isinstance(operator, KernelOperator) else "cpu"
        types = "any" if len(found["types"]) >= 12 else ", ".join(found["types"]) or "no inputs"
        cells = (
            f"[`fn.{name}`](operators/{name}.md)",
            kernels,
            types,
            str(found.get("dali", found.get("gpu", {"variants": 1}))["variants"]),
            shown(found.get("dali")) or why_not_compared_with_dali(name),
            shown(found.get("gpu")) or why_no_gpu(name),
            f"{shown(found['other'])} ({found['other']['what']})" if "other" in found else why_no_other(name),
            found["promise"] or "–",
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    count = sum(sum(1 for _ in variants_of(name)) for name in NAMES if name in CASES)
    text = HEADING.format(count=len(rows), variants=count) + "".join(rows)
    text += "\n## Intended differences\n\n| operator | variant | dalify's result | reason |\n|---|---|---|---|\n"
    for attribute, here in (("refused", "error"), ("different", "different result")):
        for name in sorted(CASES):
            for label, reason in sorted(getattr(CASES[name], attribute).items()):
                text += f"| `fn.{name}` | {label} | {here} | {reason} |\n"
    return text


def figures() -> dict[str, dict[str, Any]]:
    """Return the figures of the last measurement by operator; none if there was none."""
    return json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}


def measure_all(names: list[str]) -> None:
    """Measure operators and write their figures."""
    found = figures()
    os.environ.setdefault("DALIFY_DEVICE", "cpu")
    with tempfile.TemporaryDirectory() as text, contextlib.chdir(text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(text) / "cases"
        folder.mkdir()
        for name in names:
            found[name] = measure(name, folder)
    found = {name: found[name] for name in sorted(found) if name in NAMES}
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Measure the specified operators, or all, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", default=NAMES)
    measure_all([name for name in parser.parse_args().operators if name in CASES])


if __name__ == "__main__":
    main()
