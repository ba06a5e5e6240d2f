"""What conditions become.

Splitting and merging of samples, and negation. Written by the rewriter and the passes, not by users.
"""
