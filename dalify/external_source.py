"""``external_source`` and its class, under DALI's import path."""

from dalify import fn, ops

external_source = fn.external_source
ExternalSource = ops.ExternalSource

__all__ = ["ExternalSource", "external_source"]
