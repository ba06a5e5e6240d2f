"""Measure how near every operator comes to DALI and to other references: ``python -m docs.parity [operator ...]``.

Writes the figures to `parity.json` and the table to `parity.md`; the pages of the operators show them, too. The cases
and their variants are those of the tests. What DALI gives is read from the tests' record, so DALI is not needed.
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
from dalify.registry import catalogue
from tests.operators.cases import CASES, SAMPLES, Case
from tests.operators.record import Recording, fingerprint, is_compared, thinned
from tests.operators.references import REFERENCES
from tests.operators.run_case import ALL, NAMES, Output, run_case
from tests.operators.test_references import reference_of
from tests.operators.variant_differences import DIFFERENT, REFUSED
from tests.operators.variants import variants_of

__all__ = ["FIGURES", "PAGE", "page", "shown"]

FIGURES = Path(__file__).with_name("parity.json")
PAGE = Path(__file__).with_name("parity.md")

HEADING = """# Parity

Made by `python -m docs.parity` from the cases of `tests/operators`: {count} operators with {variants} variants, which
are other element types, layouts, shapes (one pixel, no rows), arguments and ragged batches. Integers show the largest
difference in levels, floats the largest difference relative to the largest value of the sample; `=` means equal to the
last bit.

- **DALI**: our CPU kernels beside the real DALI 2 on the CPU, over all variants that both accept.
- **GPU**: our GPU kernels, carried out by torch on the CPU, beside our CPU kernels. An operator that has none runs on
  the CPU in a GPU pipeline, too, between copies; `Pipeline.explain` says so.
- **other**: the typical case beside something independent: Pillow, OpenCV, SciPy, NumPy or the formula in float64.
- **promise**: what the tests hold beside DALI. "but for 2%" is the part of the elements that may differ by more.

Where results differ from DALI's on purpose stands [below](#different-on-purpose), with the reasons.

| operator | devices | element types | variants | DALI | GPU | other | promise |
|---|---|---|---|---|---|---|---|
"""


_DECODER = "CPU only: codecs are libraries for CPUs"
_FEW_NUMBERS = "CPU only, as in DALI: a few numbers for each sample"
_FILES = "CPU only, as in DALI: it works on files"
_NO_GPU = {
    "batch_permutation": _FEW_NUMBERS,
    "decoders.audio": _DECODER,
    "decoders.image": _DECODER,
    "decoders.image_crop": _DECODER,
    "decoders.image_random_crop": _DECODER,
    "decoders.image_slice": _DECODER,
    "decoders.inflate": "CPU only: each byte may depend on the one before it",
    "decoders.numpy": _FILES,
    "decoders.video": _DECODER,
    "dump_image": "CPU only: it writes files",
    "experimental.numba_function": "CPU only: it compiles the user's function for CPUs",
    "io.file.read": _FILES,
    "optical_flow": "CPU only: OpenCV computes it; DALI has a unit of NVIDIA's hardware do so",
    "peek_image_shape": _FILES,
    "random_bbox_crop": _FEW_NUMBERS,
    "roi_random_crop": _FEW_NUMBERS,
    "segmentation.random_object_bbox": "CPU only, as in DALI: objects are found by following their pixels",
    "segmentation.select_masks": _FEW_NUMBERS,
}


class _Largest:
    """The largest differences seen, of integers and of floats."""

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


def measure(name: str, recording: Recording, folder: Path) -> dict[str, Any]:
    """Return the figures of one operator."""
    case = CASES[name]
    has_gpu = "gpu" in catalogue.find(name).kernels
    dali, gpu, other = _Largest(), _Largest(), _Largest()
    types = [str(case.inputs[0].samples[0].dtype)] if case.inputs else []
    for variant in variants_of(name):
        try:
            ours = run_case(name, variant.case, folder, variant.samples)
            on_gpu = run_case(name, variant.case, folder, variant.samples, device="gpu") if has_gpu else []
        except DalifyError:
            continue
        except Exception as error:  # for the tests to judge; the other variants still have their figures
            print(f"{variant.key}: {type(error).__name__}: {error}")
            continue
        if variant.label.startswith("of "):
            types.append(variant.label[3:])
        entry = recording.entries.get(variant.key)
        is_recorded = entry is not None and not entry["status"] and entry["data"] == fingerprint(variant, folder)
        if is_recorded and variant.key not in DIFFERENT:
            dali.count += 1
            for (_, samples), (_, recorded) in zip(ours, recording.outputs(variant.key), strict=True):
                for sample, (_, _, elements) in zip(samples, recorded, strict=True):
                    dali.add(thinned(sample), elements)
        if has_gpu:
            gpu.count += 1
            for one, two in zip(_arrays(on_gpu), _arrays(ours), strict=True):
                gpu.add(one, two)
    found: dict[str, Any] = {"types": types, "promise": _promise(case)}
    if is_compared(name) and dali.count:
        found["dali"] = {"variants": dali.count, **dali.figures()}
    if gpu.count:
        found["gpu"] = {"variants": gpu.count, **gpu.figures()}
    if name in REFERENCES:
        ours = run_case(name, case, folder, (*ALL, SAMPLES) if case.inputs else ALL)
        for one, two in zip(_arrays(ours), _arrays(reference_of(name, folder)), strict=True):
            other.add(one, two)
        found["other"] = {"what": REFERENCES[name].what, **other.figures()}
    return found


def _promise(case: Case) -> str:
    if case.not_beside_dali:
        return ""
    parts = [f"{case.atol:g}"] if case.atol else []
    parts += [f"{case.rtol:g} of floats"] if case.rtol else []
    text = ", ".join(parts) or "="
    return f"{text}, but for {case.share:.0%}" if case.share else text


def shown(figures: dict[str, Any] | None) -> str:
    """Return largest differences as text."""
    if figures is None:
        return ""
    parts = []
    if "integers" in figures:
        parts.append(f"{figures['integers']:g}" if figures["integers"] else "=")
    if "floats" in figures:
        parts.append(f"{figures['floats']:.0e} of floats" if figures["floats"] else "= floats")
    text = ", ".join(parts) or "="
    return "=" if text == "=, = floats" else text.replace("= floats", "=") if len(parts) == 1 else text


def why_not_beside_dali(name: str) -> str:
    """Return why there is nothing of DALI to compare an operator with."""
    return CASES[name].not_beside_dali or "DALI's results depend on more than the data"


def why_no_gpu(name: str) -> str:
    """Return why there are no GPU kernels to compare."""
    return "a source" if not catalogue.find(name).kernels else _NO_GPU[name]


def why_no_other(name: str) -> str:
    """Return why nothing else computes the same."""
    if catalogue.find(name).is_random:
        return "random: its tests look at the distribution"
    return "by its own tests"


def page(figures: dict[str, dict[str, Any]]) -> str:
    """Return the table.

    Args:
        figures: by operator, as measured.
    """
    rows = []
    for name in NAMES:
        if name not in figures or name not in CASES:
            continue
        found = figures[name]
        kernels = ", ".join(sorted(catalogue.find(name).kernels)) or "cpu"
        types = "any" if len(found["types"]) >= 12 else ", ".join(found["types"]) or "no inputs"
        cells = (
            f"[`fn.{name}`](operators/{name}.md)",
            kernels,
            types,
            str(found.get("dali", found.get("gpu", {"variants": 1}))["variants"]),
            shown(found.get("dali")) or why_not_beside_dali(name),
            shown(found.get("gpu")) or why_no_gpu(name),
            f"{shown(found['other'])} ({found['other']['what']})" if "other" in found else why_no_other(name),
            found["promise"] or "–",
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    count = sum(sum(1 for _ in variants_of(name)) for name in NAMES if name in CASES)
    text = HEADING.format(count=len(rows), variants=count) + "".join(rows)
    text += "\n## Different on purpose\n\n| operator | variant | here | why |\n|---|---|---|---|\n"
    for table, here in ((REFUSED, "refused"), (DIFFERENT, "another result")):
        for key, reason in sorted(table.items()):
            name, _, label = key.partition(" | ")
            text += f"| `fn.{name}` | {label} | {here} | {reason} |\n"
    return text


def main() -> None:
    """Measure the named operators, or all, and write figures and table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", default=NAMES)
    operators = [name for name in parser.parse_args().operators if name in CASES]
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    os.environ.setdefault("DALIFY_DEVICE", "cpu")
    recording = Recording()
    with tempfile.TemporaryDirectory() as text, contextlib.chdir(text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(text) / "cases"
        folder.mkdir()
        for name in operators:
            figures[name] = measure(name, recording, folder)
    figures = {name: figures[name] for name in sorted(figures) if name in NAMES}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
