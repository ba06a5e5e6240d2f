"""A pipeline as the transform of a torch dataset: its samples are collected by torch's workers and computed in batches.

A torch dataset calls ``server.proxy(sample)`` where it would call a transform; what it gets is a reference. Torch's
default collation makes one reference to a batch of these, and sends the samples to the process of the pipeline.
`DataLoader` puts the results in the place of the references.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

import torch
import torch.multiprocessing
from torch.utils import data as torch_data
from torch.utils.data._utils.collate import default_collate_fn_map

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, BatchSizeError, PipelineStateError
from dalify.base.source_line import SourceLine
from dalify.graph import DataNode, Edge
from dalify.pipeline import Pipeline
from dalify.plugin.pytorch.torch_utils import to_torch_tensor

__all__ = ["DALIOutputBatchRef", "DALIOutputSampleRef", "DALIPipelineRunRef", "DALIServer", "DataLoader"]


@dataclass
class DALIPipelineRunRef:
    """One batch that a pipeline is to compute, or has computed.

    Attributes:
        batch_id: names the batch among those of all workers.
        call_args: samples by the names of the pipeline's inputs; none any more once the batch was sent.
        is_scheduled: the samples were sent to the pipeline.
        is_complete: all samples are there.
    """

    batch_id: Any
    call_args: dict[str, list[Any]] = field(default_factory=dict)
    is_scheduled: bool = False
    is_complete: bool = False


@dataclass
class DALIOutputSampleRef:
    """Stands for an output of the pipeline for one sample, until torch collates a batch of them.

    Attributes:
        proxy: that made it.
        pipe_run_ref: the batch that it belongs to.
        output_idx: number of the output.
        sample_idx: number of the sample in the batch.
    """

    proxy: Any
    pipe_run_ref: DALIPipelineRunRef
    output_idx: int
    sample_idx: int


@dataclass
class DALIOutputBatchRef:
    """Stands for an output of the pipeline for a batch, until ``DALIServer.produce_data`` puts the data there.

    Attributes:
        pipe_run_ref: the batch.
        output_idx: number of the output.
    """

    pipe_run_ref: DALIPipelineRunRef
    output_idx: int


class _Proxy:
    """What datasets call in the place of a transform; it goes to torch's worker processes with the dataset.

    Args:
        names: of the inputs of the pipeline.
        outputs: number of outputs of the pipeline.
        requests: to the process of the pipeline.
        deterministic: do not send batches from the workers.
    """

    def __init__(self, names: Sequence[str], outputs: int, requests: Any, deterministic: bool) -> None:
        self._names = list(names)
        self._outputs = outputs
        self._requests = requests
        self._deterministic = deterministic
        self._current: dict[Any, DALIPipelineRunRef] = {}  # by worker: the batch that is being collected

    def __call__(self, *samples: Any, **named: Any) -> Any:
        """Take a sample: by position where the pipeline has one input, by name where it has several.

        Returns:
            a reference; a tuple of them where the pipeline has several outputs.

        Raises:
            ArgumentValueError: other inputs than the pipeline has.
        """
        given = dict(zip(self._names, samples, strict=False)) | named if len(self._names) == 1 else named
        if sorted(given) != sorted(self._names) or len(samples) + len(named) != len(self._names):
            how = f"({self._names[0]})" if len(self._names) == 1 else f"({'=..., '.join(self._names)}=...)"
            raise ArgumentValueError(
                f"the proxy of this pipeline is called like this: proxy{how}; it got {len(samples)} inputs by position "
                f"and {', '.join(named) or 'none'} by name.",
                line=SourceLine.capture(),
            )
        worker = torch_data.get_worker_info()
        key = (os.getpid(), threading.get_ident() if worker is None else worker.id)
        run = self._current.get(key)
        if run is None or run.is_complete:
            # A name that no other process, thread or epoch can have given.
            run = self._current[key] = DALIPipelineRunRef((*key, os.urandom(8)))
        for name, value in given.items():
            run.call_args.setdefault(name, []).append(value)
        number = len(run.call_args[self._names[0]]) - 1
        refs = tuple(DALIOutputSampleRef(self, run, output, number) for output in range(self._outputs))
        return refs[0] if len(refs) == 1 else refs

    def collated(self, samples: Sequence[DALIOutputSampleRef]) -> DALIOutputBatchRef:
        """Return a reference to the batch of some samples, and send it, but for a deterministic server.

        Raises:
            BatchSizeError: they are not one batch, in its order.
        """
        first = samples[0]
        run = first.pipe_run_ref
        if any(item.pipe_run_ref is not run or item.output_idx != first.output_idx for item in samples):
            raise BatchSizeError("the samples of a batch of torch belong to different batches of the pipeline.")
        if [item.sample_idx for item in samples] != list(range(len(samples))):
            raise BatchSizeError("the samples of a batch are not in the order in which the proxy got them.")
        run.is_complete = True
        if not self._deterministic and not run.is_scheduled:
            # A copy: the queue pickles it in a thread, and the reference that torch sends must not hold the samples.
            self._requests.put(DALIPipelineRunRef(run.batch_id, run.call_args, True, True))
            run.call_args, run.is_scheduled = {}, True
        return DALIOutputBatchRef(run, first.output_idx)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the batches that are being collected here."""
        return {**self.__dict__, "_current": {}}


def _collate(samples: Sequence[DALIOutputSampleRef], *, collate_fn_map: Any = None) -> DALIOutputBatchRef:
    return samples[0].proxy.collated(samples)


default_collate_fn_map[DALIOutputSampleRef] = _collate


class DALIServer:
    """Runs a pipeline for the samples that ``proxy`` collects, in a thread of its own.

    Args:
        pipeline: its inputs are external sources without source.
        deterministic: compute the batches in the order in which they are asked for, so that random numbers do not
            depend on which worker is the quickest; nothing is then computed ahead.

    Raises:
        ArgumentTypeError: no pipeline.
        PipelineStateError: the pipeline has no inputs.

    Example:
        >>> with DALIServer(pipe) as server:  # doctest: +SKIP
        ...     dataset = torchvision.datasets.ImageFolder(folder, transform=server.proxy, loader=read_bytes)
        ...     for images, labels in DataLoader(server, dataset, batch_size=64, num_workers=4):
        ...         train(images, labels)
    """

    def __init__(self, pipeline: Pipeline, deterministic: bool = False) -> None:
        line = SourceLine.capture()
        if not isinstance(pipeline, Pipeline):
            raise ArgumentTypeError(f"a DALIServer needs a pipeline; got {pipeline!r}.", line=line)
        self._pipeline = pipeline
        self._inputs = _inputs_of(pipeline)
        if not self._inputs:
            raise PipelineStateError(
                "the pipeline has no inputs.", line=line, hint="Give it a fn.external_source(name='images')."
            )
        self._deterministic = deterministic
        self._requests = torch.multiprocessing.Queue()
        self._results: dict[Any, tuple[torch.Tensor, ...] | Exception] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stops = threading.Event()
        self._proxy = _Proxy(list(self._inputs), pipeline.num_outputs, self._requests, deterministic)

    @property
    def proxy(self) -> Any:
        """What the dataset calls in the place of a transform."""
        return self._proxy

    def produce_data(self, obj: Any) -> Any:
        """Put the results of the pipeline in the place of the references to them.

        Args:
            obj: lists, tuples, dictionaries and objects in one another, with references anywhere in them. Lists,
                dictionaries and objects are changed in place.

        Returns:
            the same with the data; waits until they are there.

        Raises:
            Exception: what the pipeline raised for this batch.
        """
        return self._produced(obj, {}, {})

    def _produced(self, obj: Any, done: dict[int, Any], outputs: dict[Any, tuple[torch.Tensor, ...]]) -> Any:
        if isinstance(obj, DALIOutputBatchRef):
            run = obj.pipe_run_ref
            if run.batch_id not in outputs:
                outputs[run.batch_id] = self._outputs_of(run)
            return outputs[run.batch_id][obj.output_idx]
        if id(obj) in done:  # a structure that holds itself
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

    # -- the thread ----------------------------------------------------------------------------------------------------

    def start_thread(self) -> None:
        """Begin to serve; better use the server in a with statement."""
        if self._thread is None:
            self._stops.clear()
            self._thread = threading.Thread(target=self._serve, name="dalify-proxy", daemon=True)
            self._thread.start()

    def stop_thread(self) -> None:
        """End to serve; what was asked for and not computed is dropped."""
        if self._thread is not None:
            self._stops.set()
            self._requests.put(None)  # it may wait for a request
            self._thread.join()
            self._thread = None
            self._results.clear()

    @property
    def is_running(self) -> bool:
        """Whether requests are served."""
        return self._thread is not None

    def __enter__(self) -> Self:
        """Begin to serve."""
        self.start_thread()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, tb: Any) -> None:
        """End to serve."""
        self.stop_thread()

    def _serve(self) -> None:
        pending: list[Any] = []
        while not self._stops.is_set():
            request = self._next_request(waits=not pending)
            if request is not None:
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

    def _next_request(self, waits: bool) -> DALIPipelineRunRef | None:
        try:
            return self._requests.get(block=waits)
        except queue.Empty:
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
        """Refuse to be pickled: it has a thread and a pipeline; its proxy can be sent."""
        raise PipelineStateError("a DALIServer cannot be pickled.", hint="Give datasets server.proxy, not the server.")


def _inputs_of(pipeline: Pipeline) -> dict[str, DataNode]:
    """Return the external sources without source of a pipeline, by their names."""
    pipeline.build()
    nodes = [node for node in pipeline.external_sources() if node.arguments.get("source") is None]
    return {node.label: DataNode(Edge(node, 0)) for node in nodes}


class DataLoader(torch_data.DataLoader[Any]):
    """A torch DataLoader whose batches hold the results of a pipeline.

    Args:
        dali_server: whose proxy the dataset calls; started where it does not run.
        arguments: of torch's DataLoader.
        named: of torch's DataLoader.
    """

    def __init__(self, dali_server: DALIServer, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.dali_server = dali_server
        self.server_started_by_loader = False

    def ensure_server_listening(self) -> None:
        """Start the server where it does not run."""
        if not self.dali_server.is_running:
            self.dali_server.start_thread()
            self.server_started_by_loader = True

    def __iter__(self) -> Iterator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Yield the batches with the results in the place of the references."""
        self.ensure_server_listening()
        for batch in super().__iter__():
            self.ensure_server_listening()
            yield self.dali_server.produce_data(batch)

    def __del__(self) -> None:
        """Stop the server that it started."""
        if getattr(self, "server_started_by_loader", False):
            self.dali_server.stop_thread()
