"""What connects pipelines with frameworks: iterators, and operators that call the user's own functions."""
