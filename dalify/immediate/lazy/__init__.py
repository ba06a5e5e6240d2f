"""Lazy mode: calls on data are recorded, and computed together as one graph. ``dalify.deferred`` publishes it."""
