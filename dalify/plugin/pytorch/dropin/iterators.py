"""One epoch of a loader: in the caller's thread, or in threads that replace torch's worker processes.

Each thread corresponds to one worker of torch: it gets every n-th batch, has generators with the seeds of that worker,
and computes its samples one by one, so it draws the same random numbers. Indices are requested from the sampler at the
same time as in torch, because samplers may draw from torch's default generator.
"""

from __future__ import annotations

import queue
import random
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _utils
from torch.utils.data.dataloader import _BaseDataLoaderIter

from dalify.base.fork_gate import working
from dalify.base.fork_hook import Owner
from dalify.base.interrupts import Completion, deferred_interrupts, kept_interrupts
from dalify.base.threads import Thread, ends_with_program
from dalify.plugin.pytorch.dropin.draws import RandomStates, TorchDraws
from dalify.plugin.pytorch.dropin.fetching import Fetcher
from dalify.plugin.pytorch.dropin.hybrid import AcceleratedDataset
from dalify.plugin.pytorch.dropin.sources import ArraySource, FileSource


class CallerIterator(_BaseDataLoaderIter):
    """Computes each batch when it is requested, with torch's default generator."""

    def __init__(self, loader: Any, fetcher: Fetcher) -> None:
        super().__init__(loader)
        self._fetcher = fetcher
        self._draws = TorchDraws(torch.default_generator)

    def _next_data(self) -> Any:
        indices = self._next_index()
        if not self._fetcher.change_monitor.is_unchanged():  # the user has changed the dataset during the epoch
            data = self._collate_fn(AcceleratedDataset(self._fetcher.dataset).__getitems__(indices))
        else:
            with working(), kept_interrupts():
                data = self._fetcher.fetch(indices, self._draws)
            if self._fetcher.collate is not None:
                data = self._fetcher.collate(data)
        return _utils.pin_memory.pin_memory(data, self._pin_memory_device) if self._pin_memory else data


class _Failure(NamedTuple):
    """A batch that a thread neither computed nor replaced by the error of a sample."""

    error: BaseException | None

    def reraise(self) -> None:
        """Raise the error in the caller's thread."""
        reason = "it has ended" if self.error is None else repr(self.error)
        raise RuntimeError(f"a thread of the DataLoader failed: {reason}") from self.error


_NOT_COMPUTED = object()  # a dataset may return None


class _Task:
    """One batch: computed by a thread, collected by the caller."""

    def __init__(self, indices: Any, worker: _Worker) -> None:
        self.indices = indices
        self.worker = worker
        self.data: Any = _NOT_COMPUTED
        self.failure: BaseException | None = None  # an error that could not be stored as data
        self.is_sent = False
        self.is_computed = Completion()
        self.is_collated = Completion()


class _Worker:
    """A thread's replacement for a worker process of torch: index, queue and generators."""

    def __init__(self, number: int, count: int, base_seed: int, fetcher: Fetcher) -> None:
        self.number = number
        self.fetcher = fetcher
        self.tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self.is_closed = False
        self.has_ended = False
        self.failure: BaseException | None = None  # why the thread has ended
        generator = torch.Generator()
        generator.manual_seed(base_seed + number)
        self.draws = TorchDraws(generator, random.Random(base_seed + number))
        seed_words = _utils.worker._generate_state(base_seed, number)
        self._numpy_state = np.random.RandomState(seed_words).get_state()
        self._info = _utils.worker.WorkerInfo(
            id=number, num_workers=count, seed=base_seed + number, dataset=fetcher.dataset
        )

    def run(self) -> None:
        """Compute batches until the queue contains None; runs in the thread."""
        try:
            self._run()
        except BaseException as error:  # no memory between two batches, for example
            self.failure = error
        finally:
            # Set before the queue is emptied: a thread that adds a batch afterwards reads it and does not wait.
            self.has_ended = True
            self._fail_rest()

    def _run(self) -> None:
        # A collate function may draw from the generators, so the samples of the next batch must wait for it.
        waits = self.fetcher.collate is not None and self.fetcher.is_random
        while not self.is_closed:
            task = None
            try:
                task = self.tasks.get()
                if task is None or self.is_closed:
                    return
                task.data = self._computed(task)
                task.is_computed.set()
                if waits and not self.is_closed:
                    task.is_collated.wait()
            except BaseException as error:  # no memory for a traceback, for example; the next batch is computed
                if task is not None:
                    task.failure = error
                    task.is_computed.set()
            del task

    def _fail_rest(self) -> None:
        """Wake up threads that wait for batches that will not be computed."""
        with suppress(queue.Empty):
            while True:
                task = self.tasks.get_nowait()
                if task is not None:
                    task.is_computed.set()

    def _computed(self, task: _Task) -> Any:
        try:
            with working():
                return self.fetcher.fetch(task.indices, self.draws)
        except BaseException:  # also of sys.exit(); it is raised when the batch is requested
            return self.wrapped_error()

    def wrapped_error(self) -> Any:
        """Return the current exception in torch's wrapper, to be raised in the caller's thread."""
        return ExceptionWrapper(where=f"in DataLoader worker process {self.number}")

    @contextmanager
    def active_generators(self) -> Iterator[None]:
        """Use the generators of this worker as those of the process within the context."""
        outer, info = RandomStates.current(), _utils.worker._worker_info
        RandomStates(self.draws.generator.get_state(), self.draws.python.getstate(), self._numpy_state).restore()
        _utils.worker._worker_info = self._info
        try:
            yield
        finally:
            torch_state, python_state, self._numpy_state = RandomStates.current()
            self.draws.generator.set_state(torch_state)
            self.draws.python.setstate(python_state)
            outer.restore()
            _utils.worker._worker_info = info


def _close(workers: list[_Worker], tasks: dict[int, _Task]) -> None:
    for worker in workers:
        worker.is_closed = True
        worker.tasks.put(None)
    for task in tasks.values():
        task.is_collated.set()


class ThreadIterator(_BaseDataLoaderIter):
    """Computes batches in advance, in one thread per worker of the loader."""

    def __init__(self, loader: Any, fetcher: Fetcher) -> None:
        super().__init__(loader)
        self._fetcher = fetcher
        self._owner = Owner()
        if loader.prefetch_factor < 1:  # torch asserts it
            raise AssertionError("prefetch_factor must be at least 1")
        self._prefetch_batches = loader.prefetch_factor * self._num_workers
        self._tasks: dict[int, _Task] = {}
        for source in fetcher.sources.values():
            # torch's workers have their own copy of labels, and their own working folder.
            if isinstance(source, ArraySource):
                source.keep_labels()
            elif isinstance(source, FileSource):
                source.folder.keep()
        self._workers = [
            _Worker(number, self._num_workers, int(self._base_seed), fetcher) for number in range(self._num_workers)
        ]
        # Threads hold a reference to their worker, not to the iterator, so they end when it is deleted.
        self._finalizer = weakref.finalize(self, _close, self._workers, self._tasks)
        for worker in self._workers:
            thread = Thread(worker.run, f"dalify-loader-{worker.number}")
            ends_with_program(thread, self._finalizer)
            thread.start()
        self._reset(loader, first_iter=True)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        # A loader with persistent workers begins an epoch in a forked child, or after one of its threads has failed.
        if not first_iter and (not self._owner.is_this_process or any(worker.has_ended for worker in self._workers)):
            loader._iterator = ThreadIterator(loader, self._fetcher)
            return
        # Batches in progress are finished first, as by torch's persistent workers: they may draw random numbers.
        for number in sorted(self._tasks):
            self._collect(self._tasks.pop(number))
        super()._reset(loader, first_iter)
        self._sent = self._received = 0
        for _ in range(self._prefetch_batches):
            self._send_next()

    def _send_next(self) -> None:
        try:
            indices = self._next_index()
        except StopIteration:
            return
        task = _Task(indices, self._workers[self._sent % self._num_workers])
        with deferred_interrupts():
            self._tasks[self._sent] = task
            self._sent += 1
            self._put(task)

    @staticmethod
    def _put(task: _Task) -> None:
        task.worker.tasks.put(task)
        task.is_sent = True

    def _collect(self, task: _Task) -> Any:
        """Wait for a batch and call the user's collate function."""
        if not self._owner.is_this_process:  # fork does not copy threads
            raise RuntimeError(
                "this iterator of the DataLoader was created in another process; create one in this process"
            )
        if not task.is_sent:  # an error interrupted `_send_next` after the batch was numbered
            self._put(task)
        if not task.worker.has_ended and not task.is_computed.wait(self._timeout if self._timeout > 0 else None):
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        data: Any = task.data
        if task.failure is not None or data is _NOT_COMPUTED:
            data = _Failure(task.failure or task.worker.failure)
        if self._fetcher.collate is not None and not isinstance(data, (ExceptionWrapper, _Failure)):
            try:
                with task.worker.active_generators():
                    data = self._fetcher.collate(data)
            except Exception:
                data = task.worker.wrapped_error()
        task.is_collated.set()
        return data

    def _next_data(self) -> Any:
        if self._received == self._sent:
            if not self._persistent_workers:
                self._finalizer()
            raise StopIteration
        data = self._collect(self._tasks[self._received])
        del self._tasks[self._received]
        self._received += 1
        self._send_next()
        if isinstance(data, (ExceptionWrapper, _Failure)):
            data.reraise()
        return _utils.pin_memory.pin_memory(data, self._pin_memory_device) if self._pin_memory else data
