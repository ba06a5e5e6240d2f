"""Readers and calls of dynamic mode as nodes of ``torchdata``: ``nodes.ToTorch(nodes.DictMapper(reader, decode))``.

Requires ``torchdata``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from torchdata.nodes import BaseNode

from dalify.base.errors import ArgumentValueError
from dalify.base.wording import counted
from dalify.experimental.dynamic import reader as readers

_STATE, _SOURCE = "reader", "source"
_T = TypeVar("_T")


class Reader(BaseNode[dict[str, Any]]):
    """A reader as a node: its epochs are those of the node, its items are dicts.

    Args:
        reader_type: class of the reader, ``ndd.readers.File``.
        batch_size: size of the batches; None for tensors.
        output_names: keys of the dicts; by default ``data`` and ``label`` for a reader with two outputs.
        arguments: arguments of the reader.
    """

    def __init__(
        self,
        reader_type: type[readers.Reader],
        *,
        batch_size: int | None,
        output_names: Iterable[str] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        self._reader = reader_type(**arguments)
        self._batch_size = batch_size
        self._names = ("data", "label") if output_names is None else tuple(output_names)
        self._epoch: Iterator[Any] = iter(())
        self._has_begun = False

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Start an epoch at the position of the reader, or continue the epoch of a state."""
        super().reset(initial_state)
        if initial_state and initial_state[_STATE] is not None:
            self._reader.set_state(initial_state[_STATE])
            self._epoch = self._reader.rest_of_epoch(self._batch_size)
        else:
            self._epoch = self._reader.next_epoch(self._batch_size)

    def next(self) -> dict[str, Any]:
        """Return the next outputs.

        Raises:
            ArgumentValueError: the number of names differs from the number of outputs.
        """
        outputs = next(self._epoch)
        self._has_begun = True
        if isinstance(outputs, dict):
            return outputs
        if len(outputs) != len(self._names):
            raise ArgumentValueError.here(
                f"output_names has {counted(len(self._names), 'name')} for {counted(len(outputs), 'output')}: "
                f"{', '.join(self._names)}.",
                hint="Specify output_names=[...].",
            )
        return dict(zip(self._names, outputs, strict=True))

    def get_state(self) -> dict[str, Any]:
        """Return the position of the reader."""
        return {_STATE: str(self._reader.get_state()) if self._has_begun else None}

    def get_metadata(self) -> dict[str, Any]:
        """Return sizes and sharding of the reader."""
        return self._reader.get_metadata(self._batch_size)


class _Mapped(BaseNode[_T]):
    """A node that converts the dicts of another one."""

    def __init__(self, source: BaseNode[dict[str, Any]]) -> None:
        super().__init__()
        self._source = source

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Start the epoch of the source."""
        super().reset(initial_state)
        self._source.reset(None if initial_state is None else initial_state[_SOURCE])

    def get_state(self) -> dict[str, Any]:
        """Return the position of the source."""
        return {_SOURCE: self._source.state_dict()}


class DictMapper(_Mapped[dict[str, Any]]):
    """Applies a function to one entry of the dicts of a node.

    Args:
        source: the node.
        map_fn: function from tensor or batch to tensor or batch.
        key: key of the entry.
    """

    def __init__(self, source: BaseNode[dict[str, Any]], map_fn: Callable[[Any], Any], key: str = "data") -> None:
        super().__init__(source)
        self._function = map_fn
        self._key = key

    def next(self) -> dict[str, Any]:
        """Return the next dict."""
        outputs = next(self._source)
        return {**outputs, self._key: self._function(outputs[self._key])}


class ToTorch(_Mapped[tuple[Any, ...]]):
    """Converts the dicts of a node to tuples of torch tensors, in the order of the dicts.

    Args:
        source: the node.
        output_stream: accepted but ignored: tensors are ready on torch's current stream.
    """

    def __init__(self, source: BaseNode[dict[str, Any]], output_stream: Any = None) -> None:
        super().__init__(source)

    def next(self) -> tuple[Any, ...]:
        """Return the next tensors."""
        return tuple(value.torch() for value in next(self._source).values())
