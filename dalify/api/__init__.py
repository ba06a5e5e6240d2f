"""The ways to call the registry.

Functions (``fn``) and classes (``ops``). Made from the catalogue; no operator is named here.
"""
