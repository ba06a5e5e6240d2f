"""Iterators of NumPy arrays over pipelines, for frameworks without a plugin."""

from dalify.plugin.collate import Packed, Pad
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.generic_iterator import ClassificationIterator, GenericIterator

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "LastBatchPolicy", "Packed", "Pad"]


class DALIGenericIterator(GenericIterator):
    """Returns per batch a list with one dictionary of NumPy arrays per pipeline; see `GenericIterator`.

    Outputs on a device are copied to main memory.

    Example:
        >>> loader = DALIGenericIterator(pipe, ["images", "labels"], reader_name="Reader")
        >>> for (batch,) in loader:
        ...     model.partial_fit(batch["images"].reshape(len(batch["images"]), -1), batch["labels"])
    """


class DALIClassificationIterator(ClassificationIterator, DALIGenericIterator):
    """A ``DALIGenericIterator`` for pipelines with two outputs, named ``data`` and ``label``."""
