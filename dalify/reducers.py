"""The pickler of callbacks for worker processes, under DALI's import path."""

from dalify.sources import pickling

__all__ = ["DaliCallbackPickler"]

DaliCallbackPickler = pickling._Pickler
