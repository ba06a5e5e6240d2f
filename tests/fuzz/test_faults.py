"""A short run of the program that counts interrupts and kills; times are not tested, because machines are busy."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from tests.fuzz.faults import Row, death_of_workers, kill_programs, kill_workers, press, table
from tests.helpers.photos import write_photo_folder
from tests.helpers.platforms import needs_linux

pytestmark = needs_linux


def test_a_few_faults_of_each_kind(tmp_path: Path) -> None:
    write_photo_folder(tmp_path)
    chance = random.Random(0)
    rows = {
        "Ctrl-C": press("iterator", 1, tmp_path, chance),
        "program": kill_programs("dataset, late", 1, tmp_path, chance),
        "workers": kill_workers("source", "fork", 3, chance),
        "fork server": kill_workers("fork server", "forkserver", 1, chance),
        "death": death_of_workers("exit", 2),
    }
    assert [row.count for row in rows.values()] == [1, 1, 3, 1, 2]
    assert not any(row.wrong for row in rows.values()), table("all", rows)


def test_table() -> None:
    rows = {"one": Row(2, [1.0, 3.0], wrong=Counter({"status 1": 1})), "other": Row(1, [2.0])}
    assert table("kills", rows).splitlines()[2:] == [
        "| one | 2 | 2.000 s | 3.000 s |  | 1 x status 1 |  |",
        "| other | 1 | 2.000 s | 2.000 s |  | none |  |",
        "| all | 3 | 2.000 s | 3.000 s |  | 1 x status 1 |  |",
    ]
