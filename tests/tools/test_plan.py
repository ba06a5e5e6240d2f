"""``python -m dalify.tools.plan``: its output, errors and measurements, and that its page shows the same output."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dalify.tools.plan import main
from tests.helpers.platforms import needs_posix

ROOT = Path(__file__).parents[2]
JOB = ["--gpus", "8", "--images-per-second", "3000"]
PROGRAM = "python -m dalify.tools.plan "


def shown_plans() -> list[tuple[str, str]]:
    """Return the commands on the page, and the output below each."""
    page = (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
    found = re.findall(r"^```\n\$ " + re.escape(PROGRAM) + r"(.*)\n((?:.*\n)*?)```", page, re.MULTILINE)
    return [(command, text.strip("\n")) for command, text in found]


def test_the_page_shows_plans_for_8_and_1000_gpus() -> None:
    gpus = [re.search(r"--gpus ([\d,]+)", command) for command, _ in shown_plans()]
    assert {"8", "1000"} <= {match.group(1) for match in gpus if match}


@pytest.mark.parametrize(
    ("options", "storage"), [("--gpus 64", "13.2"), ("--gpus 1000 --cores-per-node 128", "207")], ids=["64", "1000"]
)
def test_more_machines_need_the_same_on_each(options: str, storage: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
    assert f"`{options}`" in page
    per_machine = ("Recommended", "each GPU's pipeline", "cores of a GPU node", "network of a GPU node", "memory of")

    def lines(command: str) -> list[str]:
        main([*command.split(), "--images-per-second", "3000"])
        return capsys.readouterr().out.splitlines()

    def kept(found: list[str]) -> list[str]:
        texts = [line.strip().split(". ")[0].replace("of 128", "of 64") for line in found]
        return [text for text in texts if text.startswith(per_machine)]

    many = lines(options)
    assert len(kept(many)) == len(per_machine)
    assert kept(many) == kept(lines("--gpus 8"))
    assert f"read from storage      {storage} GB/s in total" in "\n".join(many)


@pytest.mark.parametrize(("command", "text"), shown_plans())
def test_the_page_shows_what_is_printed(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(shlex.split(command))
    assert capsys.readouterr().out.strip("\n") == text


def test_it_runs_as_a_program() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "dalify.tools.plan", *JOB], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr
    assert "num_threads=3" in ran.stdout
    assert ran.stderr == ""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main([*JOB, *arguments]) == status
    text = capsys.readouterr().out
    assert all(len(line) <= 120 and line == line.rstrip() for line in text.splitlines())
    return text


def test_recommendations(capsys: pytest.CaptureFixture[str]) -> None:
    assert "send JPEG, decode where the images are used. 1 GPU node, no other nodes." in printed(capsys)
    assert "num_threads=6, processes=4" in printed(capsys, "--python-ms", "1")
    assert "num_threads=15\n" in printed(capsys, "--gpus", "2", "--images-per-second", "20000")
    assert "num_threads=30, processes=5" in printed(capsys, "--gpus", "2", "--images-per-second", "40000")
    remote = printed(capsys, "--cores-per-node", "24")
    assert "on 1 CPU node, send uint8" in remote
    assert "RayPipeline(workers=3, cpus_per_worker=6)" in remote
    assert "1 GPU that takes 3,000 images/s" in printed(capsys, "--gpus", "1")
    assert "2,000 images/s per core" in printed(capsys, "--images-per-second-per-core", "2000")


def test_the_table_says_why_a_way_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--gbit-per-node", "10", status=1)
    assert "Nothing fits" in text
    assert "JPEG: a GPU node receives 13 Gbit/s and has 10" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gpus", "0"], "--gpus: must be at least 1"),
        (["--gpus", "2.5"], "--gpus: '2.5' is not an integer"),
        (["--gpus", "many"], "--gpus: 'many' is not an integer"),
        (["--images-per-second", "-3"], "--images-per-second: must be above 0"),
        (["--images-per-second", "nan"], "--images-per-second: must be above 0"),
        (["--images-per-second", "inf"], "--images-per-second: must be above 0"),
        (["--images-per-second", "fast"], "--images-per-second: 'fast' is not a number"),
        (["--headroom", "-1"], "--headroom: must be at least 0"),
        (["--megapixels", "0"], "--megapixels: must be above 0"),
        (["--dtype", "int4"], "--dtype: invalid choice: 'int4'"),
        (["--size", "0"], "--size: must be at least 1"),
        (["--size", "224", "--values-per-image", "3"], "--size and --values-per-image cannot be used together"),
        (
            ["--images-per-second-per-core", "1000", "--measure", "a:b"],
            "--measure and --images-per-second-per-core cannot be used together",
        ),
        (["--images-per-second-per-core", "1000", "--python-ms", "2"], "--python-ms=2 is part of the 1 ms"),
        (["--measure", "nothing"], "--measure takes MODULE:FUNCTION"),
        (["--measure", "no_such_module:f"], "there is no module 'no_such_module'"),
        (["--measure", "math:no_such"], "math has no function 'no_such'"),
        (["--measure", "a:b", "--dtype", "uint8"], "--measure determines the output"),
    ],
)
def test_invalid_values_are_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main([*JOB, *arguments])
    assert raised.value.code == 2
    reported = capsys.readouterr()
    assert message in reported.err.replace("\n", " ")
    assert reported.out == ""


def test_a_job_must_be_specified(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "--gpus, --images-per-second" in capsys.readouterr().err


OWN = """
import time
import numpy as np
from dalify import fn, types
from dalify.pipeline import pipeline_def

def works(value):
    end = time.process_time() + 0.004
    while time.process_time() < end:
        pass
    return np.full((10, 10, 3), 1, np.float32)

@pipeline_def(batch_size=4, num_threads=1)
def pipeline():
    return fn.python_function(fn.random.uniform(range=[0.0, 1.0]), function=works), fn.random.uniform(range=[0.0, 1.0])

@pipeline_def(batch_size=4, num_threads=1, processes=1)
def in_processes():
    return fn.random.uniform(range=[0.0, 1.0])

@pipeline_def(batch_size=2, num_threads=1)
def short():
    return fn.external_source([np.zeros((2, 5), np.uint8)] * 4, cycle="raise")

def nothing():
    return 3

def broken():
    raise LookupError("the data are gone")
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "planned_by_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "planned_by_a_test", raising=False)
    return "planned_by_a_test"


def test_a_pipeline_is_measured(own_module: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--measure", f"{own_module}:pipeline", "--seconds", "0.3", "--images-per-second", "100")
    assert "becomes 300 values of float32" in text
    found = re.search(r"  ([\d.]+) ms of CPU time per image", text)
    assert found is not None
    assert 3.5 <= float(found.group(1)) < 40  # what the function takes, and some overhead


def test_data_that_ends_begins_again(own_module: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--measure", f"{own_module}:short", "--seconds", "0.1", "--images-per-second", "1")
    assert "becomes 5 values of uint8" in text


def test_only_pipelines_can_be_measured(own_module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*JOB, "--measure", f"{own_module}:nothing"]) == 1
    assert "must return a Pipeline; got int" in capsys.readouterr().err


@needs_posix
def test_worker_processes_cannot_be_measured(own_module: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*JOB, "--measure", f"{own_module}:in_processes"])
    assert "the pipeline has worker processes" in capsys.readouterr().err


def test_errors_of_the_users_code_are_its_own(own_module: str) -> None:
    with pytest.raises(LookupError, match="the data are gone"):
        main([*JOB, "--measure", f"{own_module}:broken"])
