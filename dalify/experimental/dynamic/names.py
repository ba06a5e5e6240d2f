"""Names of operators and readers in dynamic mode: ``ndd.resize``, ``ndd.readers.File``."""

from __future__ import annotations

import sys
from typing import Any

from dalify.api import Namespace, install
from dalify.base.errors import UnknownOperatorError
from dalify.experimental.dynamic.calls import make_dynamic
from dalify.experimental.dynamic.reader import make_reader
from dalify.experimental.dynamic.rng import RNG, get_default_rng, set_seed
from dalify.registry import Operator, Source, catalog, pascal_case


def install_names(root: str) -> Namespace:
    """Create the namespaces of dynamic mode, and register them for ``import``."""
    top = install(root, "ndd", _member, lambda name: name)
    for name in catalog.namespaces():
        parent_name, _, own = name.rpartition(".")
        if own == "readers":  # classes: a reader has a position in its data
            readers = Namespace(f"{root}.{name}", f"ndd.{name}", f"{name}.", make_reader, pascal_case)
            parent = sys.modules[f"{root}.{parent_name}"] if parent_name else top
            parent.__dict__[own] = sys.modules[readers.__name__] = readers
    random = sys.modules[f"{root}.random"]
    for member in (RNG, get_default_rng, set_seed):
        random.__dict__[member.__name__] = member
    return top


def _member(operator: Operator, public_name: str) -> Any:
    if isinstance(operator, Source):
        hint = "Use ndd.ExternalSource, or a reader of ndd.readers."
        raise UnknownOperatorError(f"{public_name} is a data source of pipelines.", hint=hint)
    return make_dynamic(operator, public_name)
