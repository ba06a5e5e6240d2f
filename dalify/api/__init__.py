"""``fn`` and ``ops``: functions and classes of operators, created from the catalog."""

from dalify.api.functions import keyword_parameters, make_function, to_user_outputs
from dalify.api.namespace import Namespace, install

__all__ = ["Namespace", "install", "keyword_parameters", "make_function", "to_user_outputs"]
