"""What DALI calls experimental: ``dalify.experimental.dynamic``, operators without a pipeline under DALI's names."""
