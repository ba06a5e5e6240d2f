"""Operators as functions. ``fn.readers.file`` is the file ``dalify/operators/readers/file.py``."""

import sys

from dalify.api.functions import make_function
from dalify.api.namespace import install

# The module is replaced by one whose members are found in the catalogue when they are first named.
sys.modules[__name__] = install(__name__, "fn", make_function, lambda name: name)
