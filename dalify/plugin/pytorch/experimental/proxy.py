"""A pipeline as the transform of a torch dataset: torch's workers collect samples, the pipeline computes batches.

A torch dataset calls ``server.proxy(sample)`` instead of a transform and gets a reference. Torch's default collation
converts the references of a batch to one reference and sends the samples to the process of the pipeline. `DataLoader`
replaces the references by the results.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

import torch
import torch.multiprocessing
from torch.utils import data as torch_data
from torch.utils.data._utils.collate import default_collate_fn_map

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, BatchSizeError, PipelineStateError
from dalify.base.threads import Thread
from dalify.base.wording import counted
from dalify.graph import DataNode, Edge
from dalify.pipeline import Pipeline
from dalify.plugin.pytorch.torch_utils import to_torch_tensor


@dataclass
class DALIPipelineRunRef:
    """A batch of a pipeline, before or after it is computed.

    Attributes:
        batch_id: unique id among the batches of all workers.
        call_args: samples by the names of the pipeline's inputs; may be empty after the batch was sent.
        is_scheduled: True if the samples were sent to the pipeline.
        is_complete: True if all samples were collected.
    """

    batch_id: Any
    call_args: dict[str, list[Any]] = field(default_factory=dict)
    is_scheduled: bool = False
    is_complete: bool = False


@dataclass
class DALIOutputSampleRef:
    """A reference to an output of the pipeline for one sample, until torch collates a batch of references.

    Attributes:
        proxy: the proxy that created it.
        pipe_run_ref: the batch of the sample.
        output_idx: index of the output.
        sample_idx: index of the sample in the batch.
    """

    proxy: Any
    pipe_run_ref: DALIPipelineRunRef
    output_idx: int
    sample_idx: int


@dataclass
class DALIOutputBatchRef:
    """A reference to an output of the pipeline for a batch; ``DALIServer.produce_data`` replaces it by the data.

    Attributes:
        pipe_run_ref: the batch.
        output_idx: index of the output.
    """

    pipe_run_ref: DALIPipelineRunRef
    output_idx: int


class _Proxy:
    """The transform that datasets call; it is sent to torch's worker processes with the dataset.

    Args:
        names: names of the inputs of the pipeline.
        outputs: number of outputs of the pipeline.
        requests: queue to the process of the pipeline.
        deterministic: do not send batches from the workers.
    """

    def __init__(self, names: Sequence[str], outputs: int, requests: Any, deterministic: bool) -> None:
        self._names = list(names)
        self._outputs = outputs
        self._requests = requests
        self._deterministic = deterministic
        self._current: dict[Any, DALIPipelineRunRef] = {}  # by worker: the batch that is being collected

    def __call__(self, *samples: Any, **named: Any) -> Any:
        """Add a sample to the current batch: by position or name if the pipeline has one input, otherwise by name.

        Returns:
            A reference; a tuple of references if the pipeline has several outputs.

        Raises:
            ArgumentValueError: the inputs do not match the inputs of the pipeline.
        """
        given = dict(zip(self._names, samples, strict=False)) | named if len(self._names) == 1 else named
        if sorted(given) != sorted(self._names) or len(samples) + len(named) != len(self._names):
            how = f"({self._names[0]})" if len(self._names) == 1 else f"({'=..., '.join(self._names)}=...)"
            raise ArgumentValueError.here(
                f"the proxy of this pipeline is called like this: proxy{how}; it got {counted(len(samples), 'input')} "
                f"by position and {', '.join(named) or 'none'} by name."
            )
        worker = torch_data.get_worker_info()
        key = (os.getpid(), threading.get_ident() if worker is None else worker.id)
        run = self._current.get(key)
        if run is None or run.is_complete:
            number = 0 if run is None else run.batch_id[2] + 1
            # Random bytes, so that ids are unique among processes, threads and epochs.
            run = self._current[key] = DALIPipelineRunRef((*key, number, os.urandom(8)))
        for name, value in given.items():
            run.call_args.setdefault(name, []).append(value)
        number = len(run.call_args[self._names[0]]) - 1
        refs = tuple(DALIOutputSampleRef(self, run, output, number) for output in range(self._outputs))
        return refs[0] if len(refs) == 1 else refs

    def collated(self, samples: Sequence[DALIOutputSampleRef]) -> DALIOutputBatchRef:
        """Return a reference to the batch of the samples, and send the batch unless the server is deterministic.

        If another sample of a batch failed in the dataset, the samples before it are dropped.

        Raises:
            BatchSizeError: the samples are from several batches, or not in the order of the batch.
        """
        first = samples[0]
        run, start, stop = first.pipe_run_ref, first.sample_idx, first.sample_idx + len(samples)
        is_first_output = not run.is_complete
        run.is_complete = True  # also after an error: the next sample begins another batch
        if any(item.pipe_run_ref is not run or item.output_idx != first.output_idx for item in samples):
            raise BatchSizeError("the samples of a batch of torch belong to different batches of the pipeline.")
        if [item.sample_idx for item in samples] != list(range(start, stop)):
            raise BatchSizeError("the samples of a batch are not in the order in which the proxy got them.")
        if is_first_output:
            run.call_args = {name: values[start:stop] for name, values in run.call_args.items()}
        if not self._deterministic and not run.is_scheduled:
            # A copy, because the queue pickles it later, and the reference that torch sends must not hold the samples.
            self._requests.put(DALIPipelineRunRef(run.batch_id, run.call_args, True, True))
            run.call_args, run.is_scheduled = {}, True
        return DALIOutputBatchRef(run, first.output_idx)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the incomplete batches of this process."""
        return {**self.__dict__, "_current": {}}


def _collate(samples: Sequence[DALIOutputSampleRef], *, collate_fn_map: Any = None) -> DALIOutputBatchRef:
    return samples[0].proxy.collated(samples)


default_collate_fn_map[DALIOutputSampleRef] = _collate


@dataclass(frozen=True)
class _EndedWorkers:
    """A message to the server: these workers have ended, and the results of their batches are not needed.

    Attributes:
        keys: process id and number of each worker; the ids of its batches begin with them.
    """

    keys: frozenset[tuple[int, int]]


class DALIServer:
    """Runs a pipeline for the samples that ``proxy`` collects, in a separate thread.

    If a loop is left early, its remaining results are kept until the server stops; with a `DataLoader` of this module,
    until its loop ends.

    Args:
        pipeline: the pipeline; its inputs are its external sources without a source.
        deterministic: compute the batches in the order in which they are requested, so that random numbers do not
            depend on the speed of the workers; batches are then not computed in advance.

    Raises:
        ArgumentTypeError: the argument is not a pipeline.
        PipelineStateError: the pipeline has no inputs.

    Example:
        >>> with DALIServer(pipe) as server:  # doctest: +SKIP
        ...     dataset = torchvision.datasets.ImageFolder(folder, transform=server.proxy, loader=read_bytes)
        ...     for images, labels in DataLoader(server, dataset, batch_size=64, num_workers=4):
        ...         train(images, labels)
    """

    def __init__(self, pipeline: Pipeline, deterministic: bool = False) -> None:
        if not isinstance(pipeline, Pipeline):
            raise ArgumentTypeError.here(f"a DALIServer needs a pipeline; got {pipeline!r}.")
        self._pipeline = pipeline
        self._inputs = _inputs_of(pipeline)
        if not self._inputs:
            raise PipelineStateError.here("the pipeline has no inputs.", hint="Add fn.external_source(name='images').")
        self._deterministic = deterministic
        self._requests = torch.multiprocessing.Queue()
        self._results: dict[Any, tuple[torch.Tensor, ...] | Exception] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stops = threading.Event()
        self._proxy = _Proxy(list(self._inputs), pipeline.num_outputs, self._requests, deterministic)

    @property
    def proxy(self) -> Any:
        """The transform for the dataset."""
        return self._proxy

    def produce_data(self, obj: Any) -> Any:
        """Replace references by the results of the pipeline; wait until these are computed.

        Args:
            obj: nested lists, tuples, dictionaries and objects with references. Lists, dictionaries and objects are
                changed in place.

        Returns:
            The structure with the results.

        Raises:
            Exception: the error that the pipeline raised for this batch.
        """
        return self._produced(obj, {}, {})

    def _produced(self, obj: Any, done: dict[int, Any], outputs: dict[Any, tuple[torch.Tensor, ...]]) -> Any:
        if isinstance(obj, DALIOutputBatchRef):
            run = obj.pipe_run_ref
            if run.batch_id not in outputs:
                outputs[run.batch_id] = self._outputs_of(run)
            return outputs[run.batch_id][obj.output_idx]
        if id(obj) in done:  # the structure contains itself
            return done[id(obj)]
        done[id(obj)] = obj
        if isinstance(obj, list):
            obj[:] = [self._produced(item, done, outputs) for item in obj]
        elif isinstance(obj, tuple):
            items = [self._produced(item, done, outputs) for item in obj]
            if any(new is not old for new, old in zip(items, obj, strict=True)):
                obj = type(obj)(*items) if hasattr(obj, "_fields") else type(obj)(items)
        elif isinstance(obj, dict):
            obj.update({key: self._produced(value, done, outputs) for key, value in obj.items()})
        elif isinstance(getattr(obj, "__dict__", None), dict) and not isinstance(obj, (type, torch.Tensor)):
            for name, value in list(vars(obj).items()):
                new = self._produced(value, done, outputs)
                if new is not value:
                    setattr(obj, name, new)
        return obj

    def _outputs_of(self, run: DALIPipelineRunRef) -> tuple[torch.Tensor, ...]:
        if not run.is_scheduled:
            self._requests.put(DALIPipelineRunRef(run.batch_id, run.call_args, True, True))
            run.is_scheduled = True
        with self._changed:
            while run.batch_id not in self._results:
                if self._thread is None or not self._thread.is_alive():
                    raise PipelineStateError(
                        "the server is not running.", hint="Use it in a with statement, or call start_thread()."
                    )
                self._changed.wait(0.2)  # the thread may end meanwhile
            found = self._results.pop(run.batch_id)
        if isinstance(found, Exception):
            raise found
        return found

    def _drop(self, is_abandoned: Callable[[Any], bool]) -> None:
        """Drop the results of the batches with certain ids."""
        with self._changed:
            for batch_id in list(filter(is_abandoned, self._results)):
                del self._results[batch_id]

    # -- the thread ----------------------------------------------------------------------------------------------------

    def start_thread(self) -> None:
        """Start serving requests; prefer the server in a with statement."""
        if self._thread is None:
            self._stops.clear()
            thread = Thread(self._serve, "dalify-proxy")
            thread.start()
            self._thread = thread

    def stop_thread(self) -> None:
        """Stop serving requests; results that were not fetched are dropped."""
        if self._thread is not None:
            self._stops.set()
            self._requests.put(None)  # the thread may be waiting for a request
            self._thread.join()
            self._thread = None
            self._results.clear()

    @property
    def is_running(self) -> bool:
        """Whether requests are served."""
        return self._thread is not None

    def __enter__(self) -> Self:
        self.start_thread()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, tb: Any) -> None:
        self.stop_thread()

    def _serve(self) -> None:
        pending: list[Any] = []
        while not self._stops.is_set():
            request = self._next_request(waits=not pending)
            if isinstance(request, _EndedWorkers):
                while pending:  # batches that the workers sent before they ended
                    self._collect(pending.pop(0))
                self._drop(lambda batch_id, keys=request.keys: batch_id[:2] in keys)
            elif request is not None:
                try:
                    for name, samples in request.call_args.items():
                        self._pipeline.feed_input(self._inputs[name], samples)
                    self._pipeline.schedule_run()
                    pending.append(request.batch_id)
                except Exception as error:
                    self._deliver(request.batch_id, error)
            if pending and (request is None or len(pending) >= self._depth):
                self._collect(pending.pop(0))
        while pending:  # so that the pipeline can be used afterwards
            self._collect(pending.pop(0))

    @property
    def _depth(self) -> int:
        depth = self._pipeline.prefetch_queue_depth
        return max(depth.values()) if isinstance(depth, Mapping) else depth

    def _next_request(self, waits: bool) -> DALIPipelineRunRef | _EndedWorkers | None:
        try:
            return self._requests.get(block=waits)
        except queue.Empty:
            return None
        except (OSError, EOFError, RuntimeError):  # the worker ended before its tensors were received
            return None

    def _collect(self, batch_id: Any) -> None:
        try:
            outputs = self._pipeline.outputs()
            self._deliver(batch_id, tuple(to_torch_tensor(output.as_tensor(), False) for output in outputs))
        except Exception as error:
            self._deliver(batch_id, error)

    def _deliver(self, batch_id: Any, result: tuple[torch.Tensor, ...] | Exception) -> None:
        with self._changed:
            self._results[batch_id] = result
            self._changed.notify_all()

    def __reduce__(self) -> NoReturn:
        """Raise an error: a server has a thread and a pipeline; pickle its proxy instead."""
        raise PipelineStateError(
            "a DALIServer cannot be pickled.", hint="Pass server.proxy to datasets, not the server."
        )


def _inputs_of(pipeline: Pipeline) -> dict[str, DataNode]:
    """Return the external sources of a pipeline that have no source, by name."""
    pipeline.build()
    nodes = [node for node in pipeline.external_sources() if node.arguments.get("source") is None]
    return {node.label: DataNode(Edge(node, 0)) for node in nodes}


class DataLoader(torch_data.DataLoader[Any]):
    """A torch DataLoader whose batches contain the results of a pipeline.

    Args:
        dali_server: the server whose proxy the dataset calls; it is started if it is not running.
        arguments: positional arguments of torch's DataLoader.
        named: keyword arguments of torch's DataLoader.
    """

    def __init__(self, dali_server: DALIServer, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.dali_server = dali_server
        self.server_started_by_loader = False

    def ensure_server_listening(self) -> None:
        """Start the server if it is not running."""
        if not self.dali_server.is_running:
            self.dali_server.start_thread()
            self.server_started_by_loader = True

    def __iter__(self) -> Iterator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Yield the batches with the results instead of the references."""
        server = self.dali_server
        self.ensure_server_listening()
        batches: Any = super().__iter__()
        workers = frozenset((process.pid, number) for number, process in enumerate(getattr(batches, "_workers", ())))
        try:
            for batch in batches:
                self.ensure_server_listening()
                outputs: dict[Any, tuple[torch.Tensor, ...]] = {}
                yield server._produced(batch, {}, outputs)
                # Batches of persistent workers arrive in order, so earlier ones are from a loop that was left.
                newest = {batch_id[:2]: batch_id[2] for batch_id in outputs if batch_id[:2] in workers}
                server._drop(lambda batch_id, newest=newest: batch_id[2] < newest.get(batch_id[:2], 0))
        finally:
            if workers and not self.persistent_workers:
                batches._shutdown_workers()  # their last requests are then in the queue, before the message
                server._requests.put(_EndedWorkers(workers))

    def __del__(self) -> None:
        """Stop the server if this loader started it."""
        if getattr(self, "server_started_by_loader", False):
            self.dali_server.stop_thread()
