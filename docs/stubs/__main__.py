"""Write the stubs into the source tree."""

from __future__ import annotations

from docs.stubs import PACKAGE, write

write(PACKAGE)
