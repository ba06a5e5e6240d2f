"""``scripts/device_check.sh`` runs all tests for accelerators without collecting the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/device_check.sh"


def test_files_of_all_tests_for_devices_are_found(request: pytest.FixtureRequest) -> None:
    """Of the tests that were collected with this one: all of them in a run of the whole suite."""
    pattern = re.search("^for_devices='(.+)'$", SCRIPT.read_text(), re.MULTILINE)
    assert pattern is not None
    files = {item.path for item in request.session.items if item.get_closest_marker("gpu") is not None}
    missing = [path for path in files if not re.search(pattern[1], path.read_text(), re.MULTILINE)]
    assert not missing
