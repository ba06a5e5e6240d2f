"""Import torchvision with any build of torch.

torchvision's compiled part needs one exact build of torch. With another build (the CPU one, for instance) it is not
loaded, and the import fails in the Python part, which refers to operators that the compiled part declares. Declaring
these two is sufficient for tests and benchmarks, because the transforms are Python code with torch and Pillow.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType

SCHEMAS = [
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
]

# Must exist until the process ends: declarations are removed if their library is garbage collected.
_declared = []


def import_torchvision(name: str = "torchvision.transforms") -> ModuleType:
    """Import torchvision or one of its modules.

    Args:
        name: dotted path, e.g. ``torchvision.transforms.v2``.

    Raises:
        ImportError: torchvision or torch is not installed.
    """
    with warnings.catch_warnings():
        # It warns that its image reader cannot be loaded, which tests do not use.
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except RuntimeError:
            _declare_operators()
            return importlib.import_module(name)


def _declare_operators() -> None:
    torch = importlib.import_module("torch")
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        library.define(schema)
    _declared.append(library)
    for module in [module for module in sys.modules if module.split(".")[0] == "torchvision"]:
        del sys.modules[module]  # remnants of the failed import
