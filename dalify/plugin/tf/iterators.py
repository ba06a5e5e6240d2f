"""Iterators over pipelines that return TensorFlow tensors; DALI's TensorFlow plugin has no such iterators."""

from __future__ import annotations

from typing import Any

from dalify.plugin.frameworks import by_dlpack, framework
from dalify.plugin.generic_iterator import ClassificationIterator, GenericIterator

tensorflow = framework("tensorflow", plugin="tf")
_ALIGNMENT_BYTES = 64  # TensorFlow kernels require it


class DALIGenericIterator(GenericIterator):
    """Returns per batch a list with one dictionary of eager TensorFlow tensors per pipeline.

    The tensors share the memory of the pipeline's outputs; see `GenericIterator`. For ``model.fit``, use
    ``DALIDataset``.

    Example:
        >>> loader = DALIGenericIterator(pipe, ["images", "labels"], reader_name="Reader")
        >>> for (batch,) in loader:
        ...     model.train_on_batch(batch["images"], batch["labels"])
    """

    def _tensor(self, array: Any) -> Any:
        return tensorflow.experimental.dlpack.from_dlpack(by_dlpack(array, _ALIGNMENT_BYTES).__dlpack__())


class DALIClassificationIterator(ClassificationIterator, DALIGenericIterator):
    """A ``DALIGenericIterator`` for pipelines with two outputs, named ``data`` and ``label``."""
