"""Omits the tests of frameworks that are not installed; `test_frameworks.py` lists these in one line."""

from __future__ import annotations

import importlib.util

from tests.helpers.frameworks import MISSING

_TESTS = {"jax": ["test_jax*.py"], "tensorflow": ["test_tensorflow*.py"], "paddle": ["test_paddle*.py"]}
collect_ignore_glob = [pattern for name in MISSING for pattern in _TESTS[name]]
if importlib.util.find_spec("ray") is None:
    collect_ignore_glob.append("ray")
