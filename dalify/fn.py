"""Operators as functions. ``fn.readers.file`` is defined in ``dalify/operators/readers/file.py``."""

import sys

from dalify.api.conditional import merge, not_, split
from dalify.api.functions import make_function
from dalify.api.namespace import install

# The module is replaced by one that looks up its members in the catalog on first access.
_module = install(__name__, "fn", make_function, lambda name: name)
for _member in (merge, not_, split):
    _module._conditional.__dict__[_member.__name__] = _member
sys.modules[__name__] = _module
