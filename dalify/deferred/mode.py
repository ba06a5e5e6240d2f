"""``with dalify.lazy():`` — where calls are put off, and what users ask lazy mode for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from dalify.base.errors import ArgumentValueError
from dalify.base.optional import LazyModule
from dalify.base.processors import available_processors
from dalify.base.source_line import SourceLine
from dalify.deferred.statistics import COUNTS, Statistics
from dalify.eager.functions import RECORDER

if TYPE_CHECKING:
    from dalify.deferred import tape
else:
    # `import dalify` comes here, and most programs put nothing off.
    tape = LazyModule("dalify.deferred.tape", "lazy mode")

__all__ = ["Lazy", "lazy"]


class Lazy:
    """Lazy mode: ``dalify.lazy``.

    In ``with dalify.lazy():`` the operators of ``dalify.eager`` compute nothing. They return values that know their
    type, dimensions, layout and number of samples, and that are computed when their data are asked for: by ``get()``,
    ``numpy()``, ``torch()``, ``np.asarray``, indexing, iteration, ``print``, or by any method of a tensor list or an
    array. Everything that a value depends on is then one graph, which goes through the passes of pipelines (fused,
    deduplicated, without what nobody holds any more) and runs on several threads.

    *Plans* are kept: a graph that differs from an earlier one only in its data, in the number and size of its samples,
    in seeds or in the line where it was written is run without being planned again. ``statistics()`` counts. Compiled
    loops are kept on disk by numba, as in all modes.

    *Equal results.* Random numbers go by the order of calls, so a program draws in lazy mode what it draws without.
    Arrays are copied when they are given: what is done to them afterwards changes no result. Users' Python functions,
    and what writes files, run at once and as often as they are called.

    *Errors* that need no data are raised by the call; others when the value is computed, with the line of the call.
    Other values can then still be computed.

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
        """Put off the calls of ``dalify.eager`` in a block, in this thread.

        What the block leaves behind is computed when it is needed, after the block as well.

        Args:
            num_threads: threads that compute; 1: the one that asks for a value; None: as many as this process has
                processors.
            copy: copy arrays that are given to operators. Without, the user must not change them before what is made of
                them was computed.

        Raises:
            ArgumentValueError: not a positive number of threads.
        """
        if num_threads is not None and (
            isinstance(num_threads, bool) or not isinstance(num_threads, int) or num_threads < 1
        ):
            raise ArgumentValueError(
                f"num_threads must be a positive integer; got {num_threads!r}.", line=SourceLine.capture()
            )
        return self._block(num_threads or available_processors(), copy)

    @contextmanager
    def _block(self, num_threads: int, copy: bool) -> Iterator[None]:
        own = self._tape()
        outer, before = RECORDER.get(), (own.num_threads, own.copies)
        own.num_threads, own.copies = num_threads, copy
        token = RECORDER.set(own.record)
        try:
            yield
        finally:
            RECORDER.reset(token)
            if outer is not None:
                own.num_threads, own.copies = before

    def flush(self) -> None:
        """Compute all values of this thread that somebody holds.

        Raises:
            Exception: the first error, after all others have been computed.
        """
        self._tape().flush()

    def statistics(self) -> Statistics:
        """Return the counts of this process, of all threads: plans, operators, fallbacks to the CPU."""
        return COUNTS.shown()

    def explain(self) -> str:
        """Return what the passes did with the graph that this thread computed last; "" before the first one."""
        report = self._tape().report
        return "" if report is None else str(report)

    def _tape(self) -> tape.Tape:
        found = getattr(self._local, "tape", None)
        if found is None:
            found = self._local.tape = tape.Tape()
        return found


lazy = Lazy()
