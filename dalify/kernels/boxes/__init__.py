"""Functions over boxes and connected components."""
