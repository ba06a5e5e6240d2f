"""One ``fn.external_source`` as the executor sees it: something that gives a batch for each of its outputs.

Alone because it joins what the other files keep apart: where data come from (in process, in workers) and what is made
of them (conversion, checks), and because it is where an error learns which source and which output it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import BatchSizeError, DalifyError
from dalify.data.batch import Batch
from dalify.data.dtypes import DALIDataType
from dalify.sources.convert import BatchConverter
from dalify.sources.external import ExternalSource
from dalify.sources.parallel import ParallelSource

__all__ = ["ExternalInput", "per_output"]


def per_output(value: Any, num_outputs: int, default: Any = None) -> list[Any]:
    """Return one value per output, of a value for all outputs or a list that may be short.

    Args:
        value: a single value, or a list or tuple whose items belong to the first outputs.
        num_outputs: how many values are wanted.
        default: for outputs behind the end of a list, and in place of None.
    """
    values = list(value) if isinstance(value, (list, tuple)) else [value] * num_outputs
    values += [default] * (num_outputs - len(values))
    return [default if each is None else each for each in values[:num_outputs]]


class ExternalInput:
    """Gives the batches of all outputs of one external source.

    Args:
        source: where the data come from.
        dtype: declared element type, or one per output; see ``per_output``.
        ndim: declared number of dimensions, or one per output.
        layout: layout, or one per output.
        no_copy: use the user's memory as it is. Data of worker processes are never copied.
        allocate: makes the memory of dense batches: ``allocate(shape, dtype)``.

    Attributes:
        source: where the data come from.

    Raises:
        LayoutError: a layout and an ndim contradict each other.
    """

    def __init__(
        self,
        source: ExternalSource | ParallelSource,
        *,
        dtype: DALIDataType | Sequence[DALIDataType] | None = None,
        ndim: int | Sequence[int] | None = None,
        layout: str | Sequence[str] | None = None,
        no_copy: bool = False,
        allocate: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]] = np.empty,
    ) -> None:
        self.source = source
        count = source.num_outputs or 1
        columns = zip(per_output(dtype, count), per_output(ndim, count), per_output(layout, count, ""), strict=True)
        self._converters = [
            BatchConverter(
                dtype=each_dtype,
                ndim=each_ndim,
                layout=each_layout,
                batch_size=source.batch_size,
                copy=not no_copy and isinstance(source, ExternalSource),
                allocate=allocate,
            )
            for each_dtype, each_ndim, each_layout in columns
        ]

    def next_batch(self) -> list[Batch]:
        """Return one batch per output.

        Raises:
            StopIteration: the data are at their end; also every time until ``reset``.
            BatchSizeError: too many samples, or outputs with different numbers of them.
            DalifyError: data that cannot be used, see ``BatchConverter``.
            Exception: whatever the source raises.
        """
        raw = self.source.next_batch()
        batches: list[Batch] = []
        try:
            for data, convert in zip(raw, self._converters, strict=True):
                batches.append(convert(data))
            sizes = [len(batch) for batch in batches]
            if len(set(sizes)) > 1:
                raise BatchSizeError(
                    f"The outputs have different numbers of samples: {', '.join(map(str, sizes))}.",
                    hint="Give every output of a batch the same number of samples.",
                )
        except DalifyError as error:
            callback = self.source.callback
            output = f"output {len(batches)} of " if len(batches) < len(self._converters) > 1 else ""
            error.locate(line=callback.line, operator="fn.external_source", origin=f"{output}{callback.name}")
            raise
        return batches

    def reset(self) -> None:
        """Begin the next epoch."""
        self.source.reset()

    def close(self) -> None:
        """Let go of the source."""
        self.source.close()

    def state(self) -> dict[str, int]:
        """Return the state as JSON-ready integers."""
        return self.source.state()

    def restore(self, state: dict[str, int]) -> None:
        """Continue where a source was when ``state()`` was taken; see the sources.

        Raises:
            CheckpointError: a state that does not belong to this source.
        """
        self.source.restore(state)
