"""What conditions become: splitting and merging of samples, and negation. Written by the rewriter and the passes, not by users."""
