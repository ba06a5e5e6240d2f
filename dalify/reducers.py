"""The pickler of callbacks for worker processes, under DALI's import path."""

from dalify.sources.pickling import ValuePickler

__all__ = ["DaliCallbackPickler"]

DaliCallbackPickler = ValuePickler
