"""Base classes that programs import for their own operators."""
