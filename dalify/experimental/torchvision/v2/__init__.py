"""The transforms, one file per kind; import them from ``dalify.experimental.torchvision``."""
