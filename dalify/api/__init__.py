"""``fn`` and ``ops``: functions and classes of operators, created from the catalog."""

from dalify.api.classes import OperatorInstance
from dalify.api.functions import apply_operator, keyword_parameters, make_function, to_user_outputs
from dalify.api.namespace import Namespace, install, module_hooks

__all__ = [
    "Namespace",
    "OperatorInstance",
    "apply_operator",
    "install",
    "keyword_parameters",
    "make_function",
    "module_hooks",
    "to_user_outputs",
]
