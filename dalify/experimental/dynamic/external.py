"""``ExternalSource``: ``source = ndd.ExternalSource(generator)``, then ``source()``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, BatchSizeError, SourceError, option_error_text
from dalify.base.wording import counted
from dalify.data import TensorListCPU, TensorListGPU
from dalify.experimental.dynamic.batch import Batch
from dalify.experimental.dynamic.context import EvalContext
from dalify.experimental.dynamic.functions import as_batch, as_tensor
from dalify.experimental.dynamic.tensor import Tensor

_CYCLES = {None: "no", False: "no", "no": "no", True: "quiet", "quiet": "quiet", "raise": "raise"}


class ExternalSource:
    """Returns the next tensor or batch of a function or an iterable at each call.

    Args:
        source: a function without arguments, an iterable, or a generator function. It returns a Batch, a tensor
            list, or data for a tensor; for several outputs, a tuple of these.
        num_outputs: number of outputs.
        cycle: for an iterable: ``"no"`` (also False, None) ends with StopIteration; ``"quiet"`` (also True) restarts;
            ``"raise"`` ends with StopIteration and restarts at the next call.
        device: device of the outputs.
        layout: letters of the dimensions; a sequence specifies one layout per output.
        dtype: element type; a sequence specifies one type per output.

    Raises:
        ArgumentTypeError: the source is not a function or an iterable.
        ArgumentValueError: ``cycle`` for a function, or an unknown value.

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
        if inspect.isgeneratorfunction(source):
            self._begin: Callable[[], Iterator[Any]] | None = source
        elif isinstance(source, Iterable):
            self._begin = lambda: iter(source)
        elif callable(source):
            self._begin = None
        else:
            raise ArgumentTypeError.here(f"a source must be a function or an iterable; got {type(source).__name__}.")
        if not isinstance(cycle, (str, bool, type(None))) or cycle not in _CYCLES:
            raise ArgumentValueError.here(option_error_text("cycle", cycle, ("no", "quiet", "raise")))
        if cycle is not None and self._begin is None:
            raise ArgumentValueError.here("cycle is only valid for iterables; a function is called for every batch.")
        self._source: Any = source
        self._iterator: Iterator[Any] | None = None if self._begin is None else self._begin()
        self._cycle = _CYCLES[cycle]
        self._num_outputs = num_outputs
        self._device = device
        self._layouts = _per_output(layout, num_outputs, "layout")
        self._dtypes = _per_output(dtype, num_outputs, "dtype")

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Return the next result of the source; a tuple of several outputs.

        Args:
            batch_size: size of batches; single tensors are repeated for every sample.

        Raises:
            StopIteration: the source has ended.
            SourceError: the number of outputs is wrong, or tensors and batches are mixed.
            BatchSizeError: a batch has another size.
        """
        given = self._next()
        outputs = given if self._num_outputs > 1 else (given,)
        if not isinstance(outputs, (tuple, list)) or len(outputs) != self._num_outputs:
            raise SourceError.here(f"the source must return {counted(self._num_outputs, 'output')}; got {given!r}.")
        made = [self._made(*item) for item in zip(outputs, self._layouts, self._dtypes, strict=True)]
        if batch_size is not None:
            made = [Batch.broadcast(item, batch_size) if isinstance(item, Tensor) else item for item in made]
            odd = next((item.batch_size for item in made if item.batch_size != batch_size), None)
            if odd is not None:
                raise BatchSizeError.here(
                    f"the source returned a batch of {counted(odd, 'sample')} instead of {batch_size}."
                )
        if len({type(item) for item in made}) > 1:
            raise SourceError.here("the source returned both a tensor and a batch.", hint="Specify batch_size.")
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
        """Yield the results of the source until its end.

        Args:
            batch_size: size of batches.
            ctx: accepted but ignored.
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
        raise ArgumentValueError.here(f"{name} has {counted(len(value), 'entry')} for {counted(count, 'output')}.")
    return list(value)
