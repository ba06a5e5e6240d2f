"""Every operator compared with recorded results of the real DALI, with unusual types, layouts, shapes and arguments.

DALI's results are recorded (`record`), so these tests need no DALI; where it is installed, the record is checked, too.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dalify.base.errors import DalifyError
from tests.operators.battery.cases import CASES
from tests.operators.battery.record import FOLDER, Recording, fingerprint, is_compared, thinned
from tests.operators.battery.run_case import NAMES, Output, has_gpu_kernel, run_case, run_case_on_dali
from tests.operators.battery.variants import EVERYTHING, Variant, variants_of

WITH_GPU = [name for name in NAMES if name in CASES and has_gpu_kernel(name)]
COMPARED = [name for name in NAMES if is_compared(name)]
each_compared = pytest.mark.parametrize("name", COMPARED)
recording = functools.lru_cache(8)(Recording)

Recorded = list[tuple[str, list[tuple[str, list[int], np.ndarray]]]]


def as_recorded(outputs: list[Output]) -> Recorded:
    """Return a result in the form of a recorded one."""
    return [(layout, [(str(s.dtype), list(s.shape), thinned(s)) for s in samples]) for layout, samples in outputs]


def difference(variant: Variant, ours: list[Output], theirs: Recorded, *, is_other_device: bool = False) -> str:
    """Describe how a result differs from the recorded one beyond the tolerance; an empty string if it does not."""
    if len(ours) != len(theirs):
        return f"{len(ours)} outputs, {len(theirs)} recorded"
    for number, ((layout, samples), (other_layout, others)) in enumerate(zip(ours, theirs, strict=True)):
        if layout != other_layout:
            return f"output {number}: layout {layout!r}, recorded {other_layout!r}"
        for sample, (dtype, shape, elements) in zip(samples, others, strict=True):
            if str(sample.dtype) != dtype or list(sample.shape) != shape:
                return f"output {number}: {sample.dtype}{list(sample.shape)}, recorded {dtype}{shape}"
            problem = _difference_of_values(variant, thinned(sample), elements, is_other_device)
            if problem:
                return f"output {number}: {problem}"
    return ""


def _difference_of_values(variant: Variant, ours: np.ndarray, theirs: np.ndarray, is_other_device: bool) -> str:
    if np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"):
        return ""
    case = variant.case
    with np.errstate(invalid="ignore"):
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        apart = np.where(ours == theirs, 0, apart)
    scale = float(np.abs(theirs[np.isfinite(theirs)].astype(np.float64)).max(initial=0))
    is_exact = case.atol == 0 == case.rtol
    resolution = {"float16": 2e-3, "float32": 2e-5}.get(str(ours.dtype), 1e-6)
    share = case.share
    if is_other_device:  # positions are rounded elsewhere, and many lie between two pixels: matrices have few digits
        resolution, share = max(resolution, 3e-5), max(share, 0.05)
    allowed = 0.0 if is_exact else max(case.rtol, resolution) * scale
    if ours.dtype.kind in "iu" and not is_exact:
        allowed += max(case.atol, 1)
    wrong = ~(apart <= allowed)
    if wrong.mean() <= (case.share if is_exact else share):
        return ""
    return f"largest difference {np.nanmax(apart):g}, allowed {allowed:g}, {wrong.mean():.1%} of elements"


def test_every_compared_operator_has_a_record() -> None:
    assert {path.stem for path in FOLDER.glob("*.npz")} == set(COMPARED), (
        "python -m tests.operators.battery.record NAME"
    )


@each_compared
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_results_equal_the_records(name: str, folder: Path) -> None:
    """Variants that DALI accepts give equal results; those that it rejects give a result or an error of dalify."""
    problems = []
    for variant in variants_of(name, everything=EVERYTHING):
        entry = recording(name).entries.get(variant.key)
        if entry is None or entry["data"] != fingerprint(variant, folder):
            continue
        try:
            ours = run_case(name, variant.case, folder, variant.samples)
        except DalifyError as error:
            if not entry["status"] and variant.label not in variant.case.refused:
                problems.append(f"{variant.label}: refused: {' '.join(str(error).split())}")
            continue
        except Exception as error:
            problems.append(f"{variant.label}: {type(error).__name__}: {error}")
            continue
        if not entry["status"] and variant.label not in variant.case.different:
            problem = difference(variant, ours, recording(name).outputs(variant.key))
            problems += [f"{variant.label}: {problem}"] if problem else []
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("name", WITH_GPU)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_gpu_equals_cpu(name: str, folder: Path, gpu: str) -> None:
    """Both devices accept the same, and give the same."""
    problems = []
    for variant in variants_of(name, everything=EVERYTHING):
        if not (variant.is_general or EVERYTHING):
            continue
        results: list[list[Output] | None] = []
        for device in ("cpu", gpu):
            try:
                results.append(run_case(name, variant.case, folder, variant.samples, device=device))
            except DalifyError:
                results.append(None)
            except Exception as error:
                problems.append(f"{variant.label} on {device}: {type(error).__name__}: {error}")
        if len(results) < 2 or results[0] is results[1] is None:
            continue
        on_cpu, on_gpu = results
        if on_cpu is None or on_gpu is None:
            problems.append(f"{variant.label}: refused on one device only")
            continue
        problem = difference(variant, on_gpu, as_recorded(on_cpu), is_other_device=True)
        problems += [f"{variant.label}: {problem}"] if problem else []
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_expected_differences_exist(folder: Path) -> None:
    """Every listed difference still exists."""
    for name, case in CASES.items():
        made = {variant.label: variant for variant in variants_of(name)}
        for label in [*case.refused, *case.different]:
            variant = made[label]
            assert not recording(name).entries[variant.key]["status"], variant.key
            if label in case.refused:
                with pytest.raises(DalifyError):
                    run_case(name, variant.case, folder, variant.samples)
            else:
                ours = run_case(name, variant.case, folder, variant.samples)
                assert difference(variant, ours, recording(name).outputs(variant.key))


@pytest.mark.parametrize("name", [name for name in COMPARED if name in {"flip", "resize", "slice", "cast", "rotate"}])
def test_records_equal_dali(name: str, folder: Path, oracle: ModuleType) -> None:
    """The real DALI gives what was recorded, where it is installed; for some operators, since all were recorded so."""
    for variant in variants_of(name):
        entry = recording(name).entries[variant.key]
        if entry["status"] != "" or entry["data"] != fingerprint(variant, folder):
            continue
        theirs = run_case_on_dali(name, variant.case, folder, oracle, variant.samples)
        assert not difference(variant, theirs, recording(name).outputs(variant.key)), variant.label
