"""Functions over arrays of any meaning: arithmetic, conversion, reductions, gathering."""
