"""Operators as classes, DALI's older way. ``ops.readers.File`` is the file ``dalify/operators/readers/file.py``."""

import sys

from dalify.api.classes import make_class, pascal_case
from dalify.api.compose import compose
from dalify.api.namespace import install

_module = install(__name__, "ops", make_class, pascal_case)
_module.__dict__["Compose"] = compose
sys.modules[__name__] = _module
