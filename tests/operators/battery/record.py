"""Record the results of the real DALI for every variant: ``python -m tests.operators.battery.record [operator ...]``.

`recorded/` has one file per operator, so that parity is tested where DALI cannot be installed. Of long results every
k-th element is kept. A variant that DALI rejects is recorded as refused, one that ends its process as crashed: each
runs in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.operators.battery.case import Data, Each
from tests.operators.battery.cases import CASES
from tests.operators.battery.run_case import NAMES, Output, run_case_on_dali
from tests.operators.battery.variants import Variant, variants_of

FOLDER = Path(__file__).with_name("recorded")
_MAX_ELEMENTS = 250


def is_compared(name: str) -> bool:
    """Whether DALI has the operator on the CPU, with results that do not depend on its random numbers."""
    return name in CASES and not CASES[name].not_compared_with_dali and not CASES[name].not_recorded


def thinned(sample: np.ndarray) -> np.ndarray:
    """Return the elements of a sample that are recorded."""
    flat = sample.reshape(-1)
    step = -(-flat.size // _MAX_ELEMENTS)
    # An odd step selects elements of every channel of an image.
    return flat if step <= 1 else flat[:: step | 1]


def fingerprint(variant: Variant, folder: Path) -> str:
    """Return a digest of data and arguments: a result that was recorded for others is no reference."""
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        samples = value.samples if isinstance(value, Data) else value.values if isinstance(value, Each) else None
        if samples is None:
            digest.update(repr(value).replace(str(folder), "").encode())
            return
        for index in variant.samples:
            digest.update(f"{samples[index].dtype}{samples[index].shape}{value.layout}".encode())
            digest.update(samples[index].tobytes())

    for data in variant.case.inputs:
        add(data)
    for name, value in sorted(variant.case.given(folder).items()):
        add(name)
        if not callable(value):
            add(value)
    return digest.hexdigest()[:12]


class Recording:
    """Recorded results of one operator, by the key of the variant.

    Attributes:
        entries: key -> ``{"data": fingerprint, "status": "refused" | "crashed" | "", "outputs": [...]}``.
    """

    def __init__(self, name: str) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self._blob = b""
        self._file = FOLDER / f"{name}.npz"
        if self._file.exists():
            with np.load(self._file) as stored:
                self.entries = json.loads(stored["index"].tobytes())
                self._blob = stored["blob"].tobytes()

    def outputs(self, key: str) -> list[tuple[str, list[tuple[str, list[int], np.ndarray]]]]:
        """Return of each output its layout and of each sample dtype, shape and the recorded elements."""
        result = []
        for layout, samples in self.entries[key]["outputs"]:
            arrays = []
            for dtype, shape, start, count in samples:
                arrays.append((dtype, shape, np.frombuffer(self._blob, dtype, count, start)))
            result.append((layout, arrays))
        return result

    def write(self, found: dict[str, dict[str, Any]]) -> None:
        """Write new results in place of the old ones."""
        blob = bytearray()
        places: dict[bytes, int] = {}

        def stored(elements: np.ndarray) -> tuple[int, int]:
            data = elements.tobytes()
            if data not in places:
                places[data] = len(blob)
                blob.extend(data)
            return places[data], elements.size

        entries: dict[str, dict[str, Any]] = {}
        for key, entry in sorted(found.items()):
            outputs = [
                (layout, [(str(sample.dtype), list(sample.shape), *stored(thinned(sample))) for sample in samples])
                for layout, samples in entry["outputs"]
            ]
            entries[key] = {**entry, "outputs": outputs}
        index = json.dumps(entries, separators=(",", ":")).encode()
        FOLDER.mkdir(exist_ok=True)
        np.savez_compressed(self._file, index=np.frombuffer(index, np.uint8), blob=np.frombuffer(bytes(blob), np.uint8))


def _run(variant: Variant, folder: Path, connection: Any) -> None:
    import nvidia.dali.fn  # noqa: F401
    from nvidia import dali

    try:
        connection.send(run_case_on_dali(variant.operator, variant.case, folder, dali, variant.samples))
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")


def dali_result(variant: Variant, folder: Path) -> list[Output] | str | None:
    """Return DALI's outcome of a variant: results, the text of an error, or None if its process crashed."""
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(variant, folder, its))
    process.start()
    its.close()
    try:
        return mine.recv() if mine.poll(30) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def main() -> None:
    """Record the named operators, or all."""
    import nvidia.dali.fn  # noqa: F401 -- before forking: every process would load it again

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", default=[name for name in NAMES if is_compared(name)])
    operators = parser.parse_args().operators
    with tempfile.TemporaryDirectory() as text, contextlib.chdir(text):
        folder = Path(text) / "cases"
        folder.mkdir()
        for name in operators:
            found: dict[str, dict[str, Any]] = {}
            for variant in variants_of(name):
                data = fingerprint(variant, folder)  # which writes the files of a reader, before the other process
                result = dali_result(variant, folder)
                status = "crashed" if result is None else "refused" if isinstance(result, str) else ""
                outputs = [] if result is None or isinstance(result, str) else result
                found[variant.key] = {"data": data, "status": status, "outputs": outputs}
            Recording(name).write(found)
            counts = [entry["status"] for entry in found.values()]
            print(
                f"{name}: {len(counts)} variants, {counts.count('refused')} refused, {counts.count('crashed')} crashed"
            )


if __name__ == "__main__":
    main()
