"""Marks of tests that need an operating system."""

import os
import sys

import pytest

needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs fork and signals, of Linux or macOS")
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc or memory files, of Linux")
