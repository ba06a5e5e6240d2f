"""Reads annotations: COCO and NeMo manifests."""
