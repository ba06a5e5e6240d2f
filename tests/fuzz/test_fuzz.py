"""A short run of the harness: it finds every kind of mistake, and none in dalify."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import psutil
import pytest

from tests.fuzz.__main__ import reproduce
from tests.fuzz.campaign import Campaign
from tests.fuzz.formats import FORMATS, mutated_file
from tests.fuzz.inputs import load, packed, save, unpacked
from tests.fuzz.minimize import minimized
from tests.fuzz.processes import Server, Warm, seconds_on_input
from tests.fuzz.report import findings_text
from tests.fuzz.seeds import IMAGES
from tests.fuzz.slot import Slot
from tests.fuzz.targets import TARGETS
from tests.helpers.programs import running

# Number of inputs by prefix of the target's name; the longest prefix applies. About a second each.
_INPUTS = {
    "audio.": 150,
    "checkpoint": 150,
    "decoders.": 300,
    "graph_text": 60,
    "graphs": 120,
    "graphs.readers": 50,
    "image.": 250,
    "reader.": 60,
    "reader.fits": 30,
    "reader.hdf5": 25,
    "reader.zarr": 8,
    "video.": 40,
}


def _inputs(name: str) -> int:
    return max((len(given), count) for given, count in _INPUTS.items() if name.startswith(given))[1]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_target_has_findings():
    result = Campaign(seed=1, jobs=2, inputs=_inputs).run()
    assert not result.broken, findings_text(result)
    assert [finding.key for finding in result.confirmed] == [], findings_text(result)
    assert set(result.counts) | set(result.skipped) == {name for name in TARGETS if not name.startswith("_")}
    for name, counts in result.counts.items():
        assert counts["inputs"] >= _inputs(name)
    # Arguments are refused where a graph is traced; what fails later is what this is about.
    graphs = result.counts["graphs"]
    assert graphs["past_tracing"] > 0.7 * graphs["inputs"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_kind_of_mistake_is_found_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    result = Campaign(["_mistakes"], seed=3, inputs=lambda name: 60, out=tmp_path).run()
    found = {finding.outcome.kind for finding in result.confirmed}
    assert found == {"unnamed", "raw", "memory", "wrong", "crash", "hang"}
    counts = result.counts["_mistakes"]
    assert 50 <= counts["inputs"] <= 60  # one that comes back just as it is ended is not counted
    assert all(counts[kind] for kind in (*found, "ok", "clean", "warned", "printed"))
    assert any("a library says so" in note for note in result.notes["_mistakes"])
    crash = next(finding for finding in result.confirmed if finding.outcome.kind == "crash")
    assert crash.outcome.error == "SIGSEGV"
    assert crash.folder is not None
    description, given = load(crash.folder)
    assert given == {"way": b"crash"}, "not minimal"
    assert description["target"] == "_mistakes"
    assert reproduce(crash.folder) == 1
    assert capsys.readouterr().out.startswith("crash SIGSEGV at ")
    warm = Warm()
    try:
        with Server(warm, tmp_path / "slots", "_mistakes") as server:
            assert [server.outcome(given).kind for _ in range(2)] == ["crash", "crash"]
            assert server.outcome({"way": b"ok"}).kind == "ok"
    finally:
        warm.close()


def test_time_on_an_input_is_that_of_dalify(tmp_path: Path):
    """Neither compilations nor the load of the machine count."""
    slot = Slot(tmp_path / "slot", create=True)
    with running("import time\nwhile True: time.sleep(3600)") as process:
        cpu = psutil.Process(process.pid).cpu_times()
        assert seconds_on_input(slot, process.pid) == 0.0, "no input"
        now = time.monotonic_ns()
        slot.set("started_ns", now - 30 * 10**9)
        slot.set("started_cpu_us", round(1e6 * (cpu.user + cpu.system)))
        assert 5.0 <= seconds_on_input(slot, process.pid) < 6.0
        slot.set("compiled_ns", 12 * 10**9)
        assert 3.0 <= seconds_on_input(slot, process.pid) < 4.0
        slot.set("compiling_ns", now - 18 * 10**9)
        assert seconds_on_input(slot, process.pid) < 1.0
        slot.set("started_cpu_us", round(1e6 * (cpu.user + cpu.system - 40)))
        assert 9.0 <= seconds_on_input(slot, process.pid) < 11.0, "processor time"


def test_inputs_are_kept(tmp_path: Path):
    given = {"a/b.bin": bytes(range(256)), "c.json": b"", ":way": b"plain"}
    assert unpacked(packed(given)) == given
    save(tmp_path / "x", given, {"target": "t"})
    assert load(tmp_path / "x") == ({"target": "t"}, given)


def test_minimized():
    data = bytes(range(200)) + b"NEEDLE" + bytes(100)
    found = minimized({"a": data, ":b": b"kept"}, lambda given: b"NEEDLE" in given["a"])
    assert found == {"a": b"NEEDLE", ":b": b"kept"}
    document = {"nodes": [{"x": 1}, {"bad": [1, 2, {"deep": True}]}], "more": "text" * 9}
    text = json.dumps(document).encode()
    found = minimized({"a": text}, lambda given: b"deep" in given["a"])
    assert json.loads(found["a"]) == {"nodes": [{"bad": [{"deep": True}]}]}


def test_mutations_repeat_and_repair_check_sums():
    form, make = IMAGES["png"]
    first, second = make()[:2]
    one = [mutated_file(first, second, form, random.Random(seed)) for seed in range(300)]
    assert one == [mutated_file(first, second, form, random.Random(seed)) for seed in range(300)]
    assert len(set(one)) > 250
    assert FORMATS["png"].repaired(first) == first
    broken = bytearray(first)
    broken[-1] ^= 1  # the check sum of the last chunk
    assert FORMATS["png"].repaired(bytes(broken)) == first
