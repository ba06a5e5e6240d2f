"""``dalify.lazy``: the context manager of lazy mode, and its functions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from dalify.base.errors import ArgumentValueError
from dalify.base.narrow import is_integer
from dalify.base.optional import LazyModule
from dalify.base.processors import available_processors
from dalify.graph import current_evaluator, evaluating
from dalify.immediate.lazy.statistics import COUNTS, Statistics

if TYPE_CHECKING:
    from dalify.immediate.lazy import tape
else:
    # Imported at first use, because `import dalify` imports this module.
    tape = LazyModule("dalify.immediate.lazy.tape", "lazy mode")


class Lazy:
    """Lazy mode: ``dalify.lazy``.

    In ``with dalify.lazy():`` the operators of ``dalify.eager`` compute nothing. They return values with known
    type, dimensions, layout and number of samples, which are computed when their data are accessed: by ``get()``,
    ``numpy()``, ``torch()``, ``np.asarray``, indexing, iteration, ``print``, or by any method of a tensor list or an
    array. Everything that a value depends on is then one graph, which is optimized by the passes of pipelines (fused,
    deduplicated, pruned) and runs on several threads.

    *Plans* are cached: a graph that differs from an earlier one only in its data, the number and size of its
    samples, seeds or source lines reuses its plan. ``statistics()`` counts them. Compiled kernels are cached on
    disk, as in all modes.

    *Equal results.* Random numbers depend on the order of calls, so they are the same as in eager mode. Input arrays
    are copied, so later changes to them have no effect. User functions, and operators that write files, run
    immediately, once per call.

    *Errors* that do not depend on data are raised by the call; others when the value is computed, with the line of the
    call. Other values can still be computed.

    Example:
        >>> with dalify.lazy():
        ...     small = eager.resize(image, size=(20, 20))
        ...     flipped = eager.flip(small)
        >>> flipped.numpy().shape
        (20, 20, 3)
    """

    def __init__(self) -> None:
        self._local = threading.local()

    def __call__(self, *, num_threads: int | None = None, copy: bool = True) -> AbstractContextManager[None]:
        """Return a context manager that records the calls of ``dalify.eager`` in this thread.

        Values are computed when they are needed, also after the block.

        Args:
            num_threads: number of threads; 1: the calling thread; None: the number of processors.
            copy: copy input arrays. With False, they must not be modified before the values that depend on them were
                computed.

        Raises:
            ArgumentValueError: not a positive number of threads.
        """
        if num_threads is not None and not (is_integer(num_threads) and num_threads >= 1):
            raise ArgumentValueError.here(f"num_threads must be a positive integer; got {num_threads!r}.")
        return self._block(num_threads or available_processors(), copy)

    @contextmanager
    def _block(self, num_threads: int, copy: bool) -> Iterator[None]:
        own = self._tape()
        is_nested, before = current_evaluator().is_lazy, (own.num_threads, own.copies)
        own.num_threads, own.copies = num_threads, copy
        try:
            with evaluating(tape.Recorder(own)):
                yield
        finally:
            if is_nested:
                own.num_threads, own.copies = before

    def flush(self) -> None:
        """Compute all live values of this thread.

        Raises:
            Exception: the first error, after all others have been computed.
        """
        self._tape().flush()

    def statistics(self) -> Statistics:
        """Return the counts of this process, of all threads: plans, operators, fallbacks to the CPU."""
        return COUNTS.snapshot()

    def explain(self) -> str:
        """Return the report of the passes for the graph that this thread computed last; "" before the first one."""
        report = self._tape().report
        return "" if report is None else str(report)

    def _tape(self) -> tape.Tape:
        found = getattr(self._local, "tape", None)
        if found is None:
            found = self._local.tape = tape.Tape()
        return found


lazy = Lazy()
