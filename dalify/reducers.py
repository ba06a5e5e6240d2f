"""The pickler of callbacks that travel to worker processes, under DALI's import path."""

from dalify.sources import pickling

__all__ = ["DaliCallbackPickler"]

DaliCallbackPickler = pickling._Pickler
