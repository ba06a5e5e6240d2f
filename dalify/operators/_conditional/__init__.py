"""Operators for conditional execution: split and merge samples, and negate.

The rewriter and the passes insert them; users do not call them.
"""
