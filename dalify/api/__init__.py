"""``fn`` and ``ops``: functions and classes of operators, created from the catalog."""
