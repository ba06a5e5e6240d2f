"""Integration with frameworks: iterators, and operators that call user functions."""
