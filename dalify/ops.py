"""Operators as classes, DALI's older API. ``ops.readers.File`` is defined in ``dalify/operators/readers/file.py``."""

import sys

from dalify.api.classes import make_class
from dalify.api.compose import compose
from dalify.api.namespace import install
from dalify.api.registration import (
    Reload,
    cpu_ops,
    gpu_ops,
    mixed_ops,
    python_op_factory,
    register_cpu_op,
    register_gpu_op,
)
from dalify.registry.schema import pascal_case

_module = install(__name__, "ops", make_class, pascal_case)
_module.__dict__["Compose"] = compose
for _member in (cpu_ops, gpu_ops, mixed_ops, python_op_factory, register_cpu_op, register_gpu_op, Reload):
    _module.__dict__[_member.__name__] = _member
sys.modules[__name__] = _module
