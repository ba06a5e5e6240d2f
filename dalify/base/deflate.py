"""Decompresses deflate streams and computes CRC-32 checksums, with ISA-L.

Without the package ``isal``, zlib takes more than twice as long to decompress, and fifty times as long for checksums.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_library: Any = zlib
with suppress(ImportError):  # there is no build for some processors
    _library = importlib.import_module("isal.isal_zlib")

DeflateError: type[Exception] = _library.error
decompressobj: Callable[..., Any] = _library.decompressobj
crc32: Callable[..., int] = _library.crc32
