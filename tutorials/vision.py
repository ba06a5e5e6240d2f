"""torchvision for tutorials, also if its compiled extension does not match the installed torch.

With a matching torchvision, write ``from torchvision import datasets, transforms``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

from tests.helpers.torchvision_import import import_torchvision

__all__ = ["datasets", "transforms"]

transforms = import_torchvision("torchvision.transforms")
datasets = import_torchvision("torchvision.datasets")
