"""The transforms, one kind per file; import them from ``dalify.experimental.torchvision``."""
