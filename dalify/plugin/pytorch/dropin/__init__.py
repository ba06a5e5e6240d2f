"""A DataLoader with torch's batches; dalify's kernels compute those of supported datasets and transforms."""
