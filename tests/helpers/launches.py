"""Records the calls of torch that an accelerator would execute."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Launches(TorchDispatchMode):
    """A ``with`` block that notes what its thread calls, except views and allocations.

    Attributes:
        names: names of the functions.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if not func.is_view and name not in ("lift_fresh", "is_pinned") and not name.startswith("empty"):
            self.names.append(name)
        return func(*args, **(kwargs or {}))
