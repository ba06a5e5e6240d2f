"""The base class of the steps of a plan, one per node; constants; and the location of errors in steps.

A step reads and writes the values of a frame by slot.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify.base.bad_data import report_bad_data
from dalify.base.errors import DalifyError, DecodeError, DeviceError, OperatorError, ReaderError
from dalify.base.failure_context import failure_context
from dalify.base.fork_gate import working
from dalify.base.interrupts import can_be_interrupted, kept_interrupts
from dalify.base.optional import is_loaded, torch
from dalify.base.processors import thread_seconds
from dalify.base.user_error import as_runtime_error, without_stop_iteration
from dalify.data import Batch, array_dtype
from dalify.executor.frame import Frame
from dalify.graph import Node
from dalify.registry import KernelOperator, OperatorFunction, Reader, Source


class Step(ABC):
    """One node of a plan, ready to run.

    Args:
        node: the node to compute.
        inputs: slots of the inputs; None for a missing optional one.
        outputs: slots of the results.
        steps: steps that it contains and runs with ``run_steps``.

    Attributes:
        may_wait: True if it may wait for something other than the GIL and a processor, for instance for a file.
        is_awaited: True if a fork waits for its end; False for user code, for reading by other threads and processes,
            and for steps that contain others, which are awaited one by one.
        observer: called after each run; None to measure nothing.
    """

    def __init__(
        self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...], steps: Sequence[Step] = ()
    ) -> None:
        self.node = node
        self.inputs = inputs
        self.outputs = outputs
        self.steps = steps
        runs_others = node.operator.runs_user_code or bool(steps)
        self.may_wait = runs_others or isinstance(node.operator, Reader)
        self.is_awaited = not runs_others
        self.observer: Callable[[Step, Frame], None] | None = None

    @abstractmethod
    def run(self, frame: Frame) -> None:
        """Compute the outputs of the frame's samples."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The location of a failure.

    Attributes:
        node: node of the operator.
        position: position of the sample in its batch; None if the error does not belong to a sample.
        origin: origin of the sample; None if unknown.
        is_dropped: True if a cached copy of the sample was deleted, so that reading it again fetches it again.
    """

    node: Node
    position: int | None
    origin: str | None
    is_dropped: bool = False


def located(error: Exception, node: Node, sample: int | None = None, origin: str | None = None) -> Exception:
    """Return an error with operator, the user's line, sample, and its origin.

    An exception of a library becomes an error of dalify: ``ReaderError`` for readers, ``DecodeError`` for decoders,
    ``OperatorError`` for other operators. An exception of a user's function keeps its class and is also a RuntimeError;
    exceptions of sources and datasets do not change, except for ``StopIteration`` of datasets, which would end the
    epoch. Raise it ``from cause(error, node)``.
    """
    if is_foreign(error, node):
        error = _translated(error, node)
    elif node.operator.runs_user_code and not isinstance(node.operator, Source):
        error = as_runtime_error(error)
    elif isinstance(node.operator, Reader):
        error = without_stop_iteration(error, "the dataset")
    if failure_context(error).failure is None:
        is_dropped = False
        if isinstance(error, (DecodeError, ReaderError)):
            # Errors of a reader's index have no origin; their message contains the file.
            note, is_dropped = report_bad_data(error.origin or origin or error.message)
            error.hint = " ".join(filter(None, (error.hint, note)))
        failure = Failure(node, sample, origin, is_dropped)
        failure_context(error).failure = failure
    if isinstance(error, DalifyError):
        node.locate(error, sample=sample, origin=origin)
        return error
    if failure_context(error).note is None:
        call = node.call_of(None)
        place = f" at {call.line}" if call.line else ""
        where = "" if sample is None else f", sample {sample} of the batch"
        where += f", from {origin}" if origin else ""
        failure_context(error).note = note = f"in {call.operator}{place}{where}"
        error.add_note(note)
    return error


def is_foreign(error: Exception, node: Node) -> bool:
    """Return whether a library raised an error: not dalify, user code, or a failed import or assertion."""
    return not (
        isinstance(error, (DalifyError, ImportError, AssertionError))
        or node.operator.runs_user_code
        or failure_context(error).failure is not None
    )


# Start of the messages of torch and Triton if a function of the driver fails.
_DRIVER_ERRORS = ("CUDA error", "HIP error", "Triton Error")


def device_error(error: Exception, node: Node) -> Exception | None:
    """Return the error to raise if the device has no memory left for a step, or failed; None for other errors."""
    if not is_loaded("torch"):
        return None
    text = str(error).strip().split("\n", 1)[0].rstrip(".")
    has_no_memory = isinstance(error, torch.OutOfMemoryError)
    if not has_no_memory and not (isinstance(error, RuntimeError) and text.startswith(_DRIVER_ERRORS)):
        return None
    error.__traceback__ = None  # its frames would keep the tensors of the step
    if has_no_memory or "out of memory" in text:
        # Only torch's message states which memory is exhausted.
        other = "" if has_no_memory else ", or the host no page-locked memory,"
        refusal = DeviceError(
            f"the device has no memory left{other} for this batch ({text}).",
            hint="Use a smaller batch_size or prefetch_queue_depth, or leave more of the device's memory to the "
            "pipeline. The next batch is computed as usual.",
        )
    else:
        refusal = DeviceError(
            f"the device failed ({text}).",
            hint="An operator before this one may be the cause: with the environment variable CUDA_LAUNCH_BLOCKING=1 "
            "the error names it. This process can no longer use the device: restart it.",
        )
    return located(refusal, node)


def cause(error: Exception, node: Node) -> BaseException | None:
    """Return the cause for raising ``located(error, node, ...)``."""
    return error if is_foreign(error, node) else error.__cause__


def described(error: Exception) -> str:
    """Return class and message of an error of a library as text."""
    text = str(error).strip().rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _translated(error: Exception, node: Node) -> DalifyError:
    if isinstance(node.operator, Reader):
        return ReaderError(f"the sample cannot be read ({described(error)}).")
    if is_decoder(node):
        return DecodeError(f"the sample cannot be decoded ({described(error)}).")
    return OperatorError(f"the operator failed ({described(error)}).")


def is_decoder(node: Node) -> bool:
    """Return whether a node can get another sample instead of a sample that it cannot decode."""
    return isinstance(node.operator, KernelOperator) and node.operator.substitute_function is not None


def with_substitutes(batch: Batch | None, node: Node, frame: Frame, substitute: OperatorFunction | None) -> Batch:
    """Return the input of a decoder, with bad samples replaced by samples that can be decoded."""
    assert batch is not None, "dalify bug: a bad sample in no batch"
    assert substitute is not None, "dalify bug: no substitute for a bad sample"
    bad = frame.substitutes[node]
    positions = frame.positions(node.branch).tolist()
    samples = [
        substitute.function(sample) if position in bad else sample
        for position, sample in zip(positions, batch.samples, strict=True)
    ]
    return Batch(None, samples, batch.layout, batch.device, batch.origins, batch.dtype)


def note_sample(error: Exception, start: int, known: int | None) -> None:
    """Record the sample of a chunk that caused an error.

    Args:
        error: error of a function that was called with the samples from ``start``; ``of_sample`` may have set one.
        start: index of the first sample in the chunk.
        known: index of the sample, if the error does not contain it; None if unknown.
    """
    if failure_context(error).sample is not None:
        return
    within = getattr(error, "sample", None)
    within = within if isinstance(within, int) else known
    if within is not None:
        failure_context(error).sample = start + within
    if isinstance(error, DalifyError):
        error.sample = None


def walk(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps, including nested ones."""
    for step in steps:
        yield step
        yield from walk(step.steps)


def run_steps(steps: Iterable[Step], frame: Frame) -> None:
    """Run steps one after the other. A fork waits for each, except for user code and other processes."""
    is_interruptible, lock = can_be_interrupted(), working()
    for step in steps:
        is_timed = frame.is_timed and step.may_wait
        waited_s = frame.waited_s
        begin_s = time.perf_counter() - thread_seconds() if is_timed else 0.0
        if not step.is_awaited:
            step.run(frame)
        elif is_interruptible:
            with lock, kept_interrupts():
                step.run(frame)
        else:
            with lock:
                step.run(frame)
        if step.observer is not None:
            with lock:
                step.observer(step, frame)
        if is_timed:
            # This includes the waits of nested steps, which may have added them to the same frame.
            frame.waited_s = waited_s + (time.perf_counter() - thread_seconds()) - begin_s


class LiteralStep(Step):
    """A constant, with the same memory for every sample."""

    def __init__(self, node: Node, outputs: tuple[int, ...]) -> None:
        super().__init__(node, (), outputs)
        self._value: np.ndarray[Any, Any] = node.arguments["value"]
        self._layout: str = node.arguments.get("layout", "")
        self._dtype = array_dtype(self._value)
        self._batch: Batch | None = None  # of the last chunk, because most chunks have the same number of samples

    def run(self, frame: Frame) -> None:
        """Repeat the value without copying."""
        batch = self._batch
        if batch is None or len(batch) != frame.count:
            dense = np.broadcast_to(self._value, (frame.count, *self._value.shape))
            batch = self._batch = Batch(dense, None, self._layout, "cpu", None, self._dtype)
        frame.values[self.outputs[0]] = batch
