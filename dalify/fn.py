"""Operators as functions. ``fn.readers.file`` is the file ``dalify/operators/readers/file.py``."""

import sys

from dalify.api.conditional import merge, not_, split
from dalify.api.functions import make_function
from dalify.api.namespace import install

# The module is replaced by one whose members are found in the catalogue when they are first named.
_module = install(__name__, "fn", make_function, lambda name: name)
for _member in (merge, not_, split):
    _module._conditional.__dict__[_member.__name__] = _member
sys.modules[__name__] = _module
