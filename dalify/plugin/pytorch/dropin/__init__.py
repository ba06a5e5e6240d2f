"""A DataLoader that gives torch's batches and makes those of known datasets and transforms with dalify's kernels."""
