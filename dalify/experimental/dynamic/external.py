"""``ExternalSource``: ``source = ndd.ExternalSource(generator)``, then ``source()``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, BatchSizeError, SourceError, option_error_text
from dalify.base.source_line import SourceLine
from dalify.data import TensorListCPU, TensorListGPU
from dalify.experimental.dynamic.batch import Batch
from dalify.experimental.dynamic.context import EvalContext
from dalify.experimental.dynamic.functions import as_batch, as_tensor
from dalify.experimental.dynamic.tensor import Tensor

__all__ = ["ExternalSource"]

_CYCLES = {None: "no", False: "no", "no": "no", True: "quiet", "quiet": "quiet", "raise": "raise"}


class ExternalSource:
    """Asks a function or an iterable for the next tensor or batch, each time it is called.

    Args:
        source: a function without arguments, an iterable, or a generator function. What it gives is a Batch, a tensor
            list, or what a tensor is made of; a tuple of these for several outputs.
        num_outputs: how many.
        cycle: of an iterable: ``"no"`` (also False, None) ends with StopIteration; ``"quiet"`` (also True) begins anew;
            ``"raise"`` ends with StopIteration and begins anew with the next call.
        device: where the data are wanted.
        layout: letters of the dimensions; a sequence for one of each output.
        dtype: element type; a sequence for one of each output.

    Raises:
        ArgumentTypeError: nothing that can be asked.
        ArgumentValueError: ``cycle`` of a function, or another word.

    Example:
        >>> source = ndd.ExternalSource([[1, 2], [3, 4]])
        >>> source().torch()
        tensor([1, 2], dtype=torch.int32)
    """

    def __init__(
        self,
        source: Callable[[], Any] | Iterable[Any],
        num_outputs: int = 1,
        *,
        cycle: str | bool | None = None,
        device: Any = "cpu",
        layout: str | Sequence[str] | None = None,
        dtype: Any = None,
    ) -> None:
        line = SourceLine.capture()
        if inspect.isgeneratorfunction(source):
            self._begin: Callable[[], Iterator[Any]] | None = source
        elif isinstance(source, Iterable):
            self._begin = lambda: iter(source)
        elif callable(source):
            self._begin = None
        else:
            raise ArgumentTypeError(
                f"a source must be a function or an iterable; got {type(source).__name__}.", line=line
            )
        if not isinstance(cycle, (str, bool, type(None))) or cycle not in _CYCLES:
            raise ArgumentValueError(option_error_text("cycle", cycle, ("no", "quiet", "raise")), line=line)
        if cycle is not None and self._begin is None:
            raise ArgumentValueError(
                "cycle is only valid for iterables; a function is called for every batch.", line=line
            )
        self._source: Any = source
        self._iterator: Iterator[Any] | None = None if self._begin is None else self._begin()
        self._cycle = _CYCLES[cycle]
        self._num_outputs = num_outputs
        self._device = device
        self._layouts = _per_output(layout, num_outputs, "layout")
        self._dtypes = _per_output(dtype, num_outputs, "dtype")

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Return what the source gives next; a tuple of several outputs.

        Args:
            batch_size: of a batch; what is one tensor goes with every sample.

        Raises:
            StopIteration: the source is at its end.
            SourceError: another number of outputs, or tensors and batches together.
            BatchSizeError: a batch of another size.
        """
        given = self._next()
        line = SourceLine.capture()
        outputs = given if self._num_outputs > 1 else (given,)
        if not isinstance(outputs, (tuple, list)) or len(outputs) != self._num_outputs:
            raise SourceError(f"the source must return {self._num_outputs} outputs; got {given!r}.", line=line)
        made = [self._made(*item) for item in zip(outputs, self._layouts, self._dtypes, strict=True)]
        if batch_size is not None:
            made = [Batch.broadcast(item, batch_size) if isinstance(item, Tensor) else item for item in made]
            odd = next((item.batch_size for item in made if item.batch_size != batch_size), None)
            if odd is not None:
                raise BatchSizeError(
                    f"the source returned a batch of {odd} samples instead of {batch_size}.", line=line
                )
        if len({type(item) for item in made}) > 1:
            raise SourceError("the source returned both a tensor and a batch.", line=line, hint="Specify batch_size.")
        return made[0] if self._num_outputs == 1 else tuple(made)

    def _next(self) -> Any:
        if self._begin is None:
            return self._source()
        if self._iterator is None:
            self._iterator = self._begin()
        try:
            return next(self._iterator)
        except StopIteration:
            if self._cycle == "no":
                raise
            self._iterator = None
            if self._cycle == "raise":
                raise
        self._iterator = self._begin()
        return next(self._iterator)

    def _made(self, item: Any, layout: str | None, dtype: Any) -> Tensor | Batch:
        make = as_batch if isinstance(item, (Batch, TensorListCPU, TensorListGPU)) else as_tensor
        return make(item, dtype, self._device, layout or None)

    def captured(self, batch_size: int, ctx: EvalContext | None = None) -> Iterator[Any]:
        """Yield what the source gives until its end.

        Args:
            batch_size: of a batch.
            ctx: accepted.
        """
        while True:
            try:
                item = self(batch_size=batch_size)
            except StopIteration:
                return
            yield item


def _per_output(value: Any, count: int, name: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ArgumentValueError(f"{name} has {len(value)} entries for {count} outputs.", line=SourceLine.capture())
    return list(value)
