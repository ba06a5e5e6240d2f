"""Groups of arguments that several operators share, with what is computed from them.

Each group is declared and documented once; see ``registry/parameter_group.py``. Operators import the modules, so that a
crop does not import decoders.
"""
