"""dalify: DALI's programming model on every machine. A plain Python function becomes a data pipeline.

>>> from dalify import fn, pipeline_def, types
"""

import importlib as _importlib
from typing import Any as _Any

from dalify import data_node, eager, fn, math, ops, pipeline, plugin_manager, tensors, types
from dalify.deferred import lazy
from dalify.graph import DataNode
from dalify.graph import new_axis as newaxis
from dalify.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, pipeline_def

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "data_node",
    "eager",
    "fn",
    "lazy",
    "math",
    "newaxis",
    "ops",
    "pipeline",
    "pipeline_def",
    "plugin_manager",
    "tensors",
    "types",
]
__version__ = "0.1.0"

# Modules that are attributes of the package and imported on first access.
_MODULES = frozenset(
    {
        "auto_aug",
        "backend",
        "backend_impl",
        "custom",
        "experimental",
        "external_source",
        "internal",
        "limits",
        "pickling",
        "plugin",
        "python_function_plugin",
        "reducers",
        "samplers",
        "storage",
        "sysconfig",
        "tfrecord",
    }
)


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name == "__cuda_version__":
        return _importlib.import_module(f"{__name__}.backend").__cuda_version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
