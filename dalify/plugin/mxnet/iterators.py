"""The iterators of DALI's MXNet plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalify.base.errors import IteratorArgumentError, OutputMapError, option_error_text
from dalify.plugin.epochs import LastBatchPolicy
from dalify.plugin.frameworks import framework
from dalify.plugin.generic_iterator import GenericIterator
from dalify.plugin.mxnet.tensors import as_mxnet

mxnet = framework("mxnet", install="mxnet")


class DALIGenericIterator(GenericIterator):
    """Returns per batch a list with one ``mxnet.io.DataBatch`` per pipeline; see `GenericIterator`.

    `output_map` has a pair of a name and ``DATA_TAG`` or ``LABEL_TAG`` for each output, `data_layout` is the layout of
    the batches that ``provide_data`` returns, and `squeeze_labels` converts labels ``[N, 1]`` to ``[N]``. The other
    arguments are those of `GenericIterator`; `options` are fresh_epochs, collate and valid_name, which adds an array to
    the data.
    """

    DATA_TAG = "data"
    LABEL_TAG = "label"

    def __init__(
        self,
        pipelines: Any,
        output_map: Sequence[tuple[str, str]],
        size: int = -1,
        reader_name: str | None = None,
        data_layout: str = "NCHW",
        fill_last_batch: bool | None = None,
        auto_reset: bool | str | None = False,
        squeeze_labels: bool = True,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        **options: Any,
    ) -> None:
        for entry in output_map:
            if isinstance(entry, str) or len(entry) != 2:
                raise OutputMapError(
                    f"an entry of output_map must be a name and a tag; got {entry!r}.",
                    hint="For instance: ('images', DALIGenericIterator.DATA_TAG).",
                )
            if entry[1] not in (self.DATA_TAG, self.LABEL_TAG):
                raise IteratorArgumentError(
                    option_error_text("a tag in output_map", entry[1], (self.DATA_TAG, self.LABEL_TAG))
                )
        self._tags = dict(output_map)
        self._squeezes_labels = squeeze_labels
        self._data_layout = data_layout
        self._described: tuple[list[Any], list[Any]] | None = None
        super().__init__(
            pipelines,
            [name for name, _ in output_map],
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            **options,
        )

    def _tensor(self, array: Any) -> Any:
        return as_mxnet(array)

    def __next__(self) -> list[Any]:
        """Return the next ``DataBatch`` of each pipeline.

        Raises:
            StopIteration: the epoch is over.
        """
        return [self._data_batch(batch) for batch in super().__next__()]

    def _data_batch(self, batch: dict[str, Any]) -> Any:
        labels = {name: batch.pop(name) for name, tag in self._tags.items() if tag == self.LABEL_TAG}
        if self._squeezes_labels:
            labels = {
                name: value.reshape((value.shape[0],)) if len(value.shape) == 2 and value.shape[1] == 1 else value
                for name, value in labels.items()
            }
        if self._described is None:
            describe = mxnet.io.DataDesc
            self._described = (
                [
                    describe(name, value.shape, value.dtype, self._data_layout)
                    for name, value in batch.items()
                    if not isinstance(value, (list, tuple))  # collated to several arrays
                ],
                [describe(name, value.shape, value.dtype) for name, value in labels.items()],
            )
        return mxnet.io.DataBatch(data=list(batch.values()), label=list(labels.values()), pad=0)

    @property
    def provide_data(self) -> list[Any]:
        """Names, shapes and types of the data, as ``mxnet.io.DataDesc``; empty before the first batch."""
        return [] if self._described is None else self._described[0]

    @property
    def provide_label(self) -> list[Any]:
        """Names, shapes and types of the labels, as ``mxnet.io.DataDesc``; empty before the first batch."""
        return [] if self._described is None else self._described[1]


class DALIClassificationIterator(DALIGenericIterator):
    """A ``DALIGenericIterator`` for pipelines with two outputs: data and labels.

    `data_name` and `label_name` are their names. See ``DALIGenericIterator`` for the other arguments.
    """

    def __init__(
        self,
        pipelines: Any,
        size: int = -1,
        reader_name: str | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        **options: Any,
    ) -> None:
        tags = [(data_name, self.DATA_TAG), (label_name, self.LABEL_TAG)]
        super().__init__(pipelines, tags, size, reader_name, **options)


class DALIGluonIterator(GenericIterator):
    """Returns per batch a list with one list of arrays per pipeline, one array per output, for Gluon.

    `output_types` has ``DENSE_TAG`` (one array) or ``SPARSE_TAG`` (a list of one array per sample) for each output; all
    are dense by default. The other arguments are those of `GenericIterator`, without output_map, collate and
    valid_name.
    """

    DENSE_TAG = "dense"
    SPARSE_TAG = "sparse"

    def __init__(
        self,
        pipelines: Any,
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        first = pipelines[0] if isinstance(pipelines, (list, tuple)) else pipelines
        tags = [self.DENSE_TAG] * first.num_outputs if output_types is None else list(output_types)
        ways = {self.DENSE_TAG: "dense", self.SPARSE_TAG: "list"}
        for tag in tags:
            if tag not in ways:
                raise IteratorArgumentError(option_error_text("output_types", tag, ways))
        names = [str(index) for index in range(len(tags))]
        collate = {name: ways[tag] for name, tag in zip(names, tags, strict=True)}
        super().__init__(pipelines, names, size, reader_name, collate=collate, **options)

    def _tensor(self, array: Any) -> Any:
        return as_mxnet(array)

    def __next__(self) -> list[Any]:
        """Return the next arrays of each pipeline.

        Raises:
            StopIteration: the epoch is over.
        """
        return [list(batch.values()) for batch in super().__next__()]
