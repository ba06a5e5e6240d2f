"""Divides a graph into stages.

A *segment* is a sequence of per-sample operators. A thread computes all of them for a chunk of samples, so that data
remain in the CPU cache and there is no barrier between operators. Whole-batch operators, serial user functions and the
device have separate stages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dalify.base.processors import emulated
from dalify.data.entries import Entries
from dalify.executor.branch_steps import MergeStep, SplitStep
from dalify.executor.cache_step import CacheStep, SerialStep, UncachedStep
from dalify.executor.cached_mixed_step import CachedMixedStep
from dalify.executor.device_samples_step import (
    CompiledElementwiseStep,
    CompiledStep,
    DeviceSamplesStep,
    MixedStep,
    ParseStep,
)
from dalify.executor.device_steps import TransferStep
from dalify.executor.elementwise_step import ElementwiseStep
from dalify.executor.reader_step import ReaderStep
from dalify.executor.step_class import step_class
from dalify.executor.steps import LiteralStep, Step
from dalify.graph import Branch, Edge, Graph, Node, upstream, upstream_readers
from dalify.kernels.dispatch import reason_against
from dalify.registry import RANDOM_STATE, FedSource, KernelOperator, Reader, Role

StageKind = Literal["segment", "batch", "device"]


@dataclass(frozen=True, eq=False, slots=True)
class Stage:
    """Steps that run together.

    Attributes:
        kind: ``segment``: per chunk, on all threads; ``batch``: once per batch; ``device``: once per batch, on the
            device's stream.
        is_serial: True if batches run one after the other, in their order.
        steps: steps in order.
        reads: slots from earlier stages, with the branch of each.
        publishes: slots that later stages or the user need, with the branch of each.
    """

    kind: StageKind
    is_serial: bool
    steps: list[Step] = field(default_factory=list[Step])
    reads: dict[int, Branch | None] = field(default_factory=dict[int, "Branch | None"])
    publishes: dict[int, Branch | None] = field(default_factory=dict[int, "Branch | None"])


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """The stages that the engine runs for every batch.

    Attributes:
        stages: stages in order.
        slot_count: number of values.
        outputs: slots of the outputs.
        readers: steps of readers, by slot of the first output.
        externals: nodes of external sources with the slots of their outputs.
        pinned: slots that device stages read.
        caches: steps of caches.
        device_caches: steps of decoders with caches on the device.
    """

    stages: list[Stage] = field(default_factory=list[Stage])
    slot_count: int = 0
    outputs: tuple[int, ...] = ()
    readers: dict[int, ReaderStep] = field(default_factory=dict[int, ReaderStep])
    externals: list[tuple[Node, tuple[int, ...]]] = field(default_factory=list["tuple[Node, tuple[int, ...]]"])
    pinned: set[int] = field(default_factory=set[int])
    caches: list[CacheStep] = field(default_factory=list[CacheStep])
    device_caches: list[CachedMixedStep] = field(default_factory=list[CachedMixedStep])

    def describe_decoders(self) -> list[str]:
        """Return the decoded images of each decoder that has run on the device, as lines for `explain()`."""
        steps = [step for stage in self.stages for step in stage.steps if isinstance(step, MixedStep)]
        return [f"{step.node!r}: {step.counts}" for step in steps if step.counts.total]

    def describe_kernels(self, device: str | None) -> list[str]:
        """Return the libraries of the kernels for all samples on the device, as lines for `explain()`.

        Args:
            device: torch device; None without one.
        """
        if device is None:
            return []
        lines: list[str] = []
        for kinds, is_emulation in (((CompiledStep, CompiledElementwiseStep), True), ((DeviceSamplesStep,), False)):
            steps = [step for stage in self.stages for step in stage.steps if type(step) in kinds]
            names = ", ".join(sorted({step.node.operator.name for step in steps}))
            if not names:
                continue
            reason = "emulation" if is_emulation else reason_against(device)
            kernels = "CPU kernels" if is_emulation else "torch kernels"
            if reason is None:
                lines.append(f"Triton kernels, or torch kernels where they do not support the arguments: {names}")
            else:
                lines.append(f"{kernels}: {names} ({reason})")
        return lines


def make_plan(
    graph: Graph, seeds: Mapping[Node, tuple[int, int]], indices: Mapping[Node, Entries[Any]], on_error: str = "raise"
) -> Plan:
    """Return the stages of a placed graph.

    Args:
        graph: the graph after all passes.
        seeds: seed and stream number of random nodes.
        indices: results of the ``index`` functions of readers.
        on_error: handling of bad samples for nodes that do not specify it.
    """
    homes = _cached_nodes(graph, on_error)
    keys: dict[Node, tuple[int, int]] = {}
    nodes = graph.nodes()
    uses = Counter([*graph.outputs, *(edge for node in nodes for edge in node.edges())])
    planner = _Planner(seeds, indices, on_error, homes, uses)
    for node in nodes:
        keys[node] = _stage_key(node, keys, on_error)
    # The sort is stable, and the key of a node is at least those of its inputs, so inputs remain before the node.
    for node in sorted(nodes, key=keys.__getitem__):
        planner.add(node)
    return planner.finish(graph)


# Order of independent stages. Whole-batch stages such as random draws come first, so that they do not divide a segment.
_RANKS: dict[tuple[StageKind, bool], int] = {
    ("batch", False): 0,
    ("batch", True): 1,
    ("segment", False): 2,
    ("device", False): 3,
    ("device", True): 3,
}


def _stage_key(node: Node, keys: Mapping[Node, tuple[int, int]], on_error: str) -> tuple[int, int]:
    """Return depth and rank of the earliest stage in which a node can run.

    The depth increases if the rank would decrease.
    """
    if isinstance(node.operator, FedSource) or node.role is Role.LITERAL:
        return (0, 0)
    rank = _RANKS[_kind_of(node, on_error), _is_serial(node)]
    depths = [depth + (rank < other) for depth, other in (keys[edge.node] for edge in node.edges())]
    return (max(depths, default=0), rank)


_STRUCTURAL_STEPS: dict[Role, Callable[[Node, tuple[int | None, ...], tuple[int, ...]], Step]] = {
    Role.SPLIT: SplitStep,
    Role.MERGE: MergeStep,
    Role.JOIN: MergeStep,
    Role.TRANSFER: TransferStep,
    Role.CACHE: UncachedStep,
}


class _Planner:
    def __init__(
        self,
        seeds: Mapping[Node, tuple[int, int]],
        indices: Mapping[Node, Entries[Any]],
        on_error: str,
        homes: Mapping[Node, Node],
        uses: Mapping[Edge, int],
    ) -> None:
        self._homes = homes
        self._uses = uses
        self._cache_inputs: dict[Node, list[Step]] = {cache: [] for cache in homes.values()}
        self._seeds = seeds
        self._indices = indices
        self._on_error = on_error
        self._slots: dict[Edge, int] = {}
        self._stage_of: dict[Node, int] = {}
        self._literals: dict[Node, LiteralStep] = {}
        self._plan = Plan()
        self._stages = self._plan.stages

    def add(self, node: Node) -> None:
        outputs = tuple(self._slot(Edge(node, output)) for output in range(node.output_count))
        if isinstance(node.operator, FedSource):
            self._plan.externals.append((node, outputs))
            return
        if node.role is Role.LITERAL:
            self._literals[node] = LiteralStep(node, outputs)
            return
        inputs = tuple(None if edge is None else self._slot(edge) for edge in node.inputs)
        step = self._step(node, inputs, outputs)
        home = self._homes.get(node)
        if home is not None:  # it runs in the step of a cache
            self._cache_inputs[home].append(SerialStep(step) if _is_serial(node) else step)
            return
        edges = list(self._read_from_outside(node))
        index = self._place(node, edges)
        stage = self._stages[index]
        self._stage_of[node] = index
        for edge in edges:
            self._import(edge, stage, index)
        overwritten = self._only_read_by(node, stage)
        if overwritten is not None and type(step) is ElementwiseStep:
            step.overwrite(overwritten)
        stage.steps.append(step)

    def _only_read_by(self, node: Node, stage: Stage) -> ElementwiseStep | None:
        """Return the element-wise step of the stage for the first input if only this node reads it, otherwise None."""
        edge = node.inputs[0] if node.inputs else None
        if edge is None or self._uses[edge] > 1:
            return None
        return next((step for step in stage.steps if step.node is edge.node and type(step) is ElementwiseStep), None)

    def _read_from_outside(self, node: Node) -> Iterator[Edge]:
        """Yield the inputs of a node, and of the nodes that run in its step."""
        for edge in node.edges():
            if edge.node in self._homes:
                yield from self._read_from_outside(edge.node)
            else:
                yield edge

    def _slot(self, edge: Edge) -> int:
        return self._slots.setdefault(edge, len(self._slots))

    def _place(self, node: Node, edges: list[Edge]) -> int:
        kind = _kind_of(node, self._on_error)
        serial = _is_serial(node)
        earliest = max((self._stage_of.get(edge.node, 0) for edge in edges), default=0)
        for index in range(earliest, len(self._stages)):
            stage = self._stages[index]
            if stage.kind == kind and stage.is_serial == (serial or kind == "device"):
                return index
        # Serial, because the device's stream runs batches in order.
        self._stages.append(Stage(kind, serial or kind == "device"))
        return len(self._stages) - 1

    def _import(self, edge: Edge, stage: Stage, index: int) -> None:
        slot = self._slot(edge)
        literal = self._literals.get(edge.node)
        if literal is not None:
            if literal not in stage.steps:
                stage.steps.append(literal)
            return
        made_in = self._stage_of.get(edge.node)
        if made_in == index:
            return
        stage.reads[slot] = edge.node.branch
        if made_in is not None:
            self._stages[made_in].publishes[slot] = edge.node.branch
        if stage.kind == "device":
            self._plan.pinned.add(slot)

    def _step(self, node: Node, inputs: tuple[int | None, ...], outputs: tuple[int, ...]) -> Step:
        operator = node.operator
        if node.role is Role.CACHE and upstream_readers(node):
            return self._cache_step(node, outputs)
        if node.role is not None:
            return _STRUCTURAL_STEPS[node.role](node, inputs, outputs)
        slots = {name: self._slot(value) for name, value in node.arguments.items() if isinstance(value, Edge)}
        if isinstance(operator, Reader):
            reader = self._plan.readers[outputs[0]] = ReaderStep(node, operator, outputs, self._indices[node], slots)
            return reader
        assert isinstance(operator, KernelOperator), f"dalify bug: no step for {node!r}"
        seed, stream = self._seeds.get(node, (None, 0))
        reader = self._reader_of_cached(node)
        if reader is not None:
            decoder = CachedMixedStep(node, reader, inputs, outputs, slots, node.device, seed, stream)
            self._plan.device_caches.append(decoder)
            return decoder
        step = step_class(operator, node.device, emulated())
        return step(node, inputs, outputs, slots, node.device, seed, stream)

    def _reader_of_cached(self, node: Node) -> ReaderStep | None:
        """Return the reader of the samples of a decoder with a cache on the device; None for other nodes."""
        if node.device != "mixed" or not (node.arguments.get("cache_size") and node.arguments.get("cache_type")):
            return None
        readers = upstream_readers(node)  # none in immediate computation
        return self._plan.readers[self._slot(Edge(readers[0], 0))] if readers else None

    def _cache_step(self, node: Node, outputs: tuple[int, ...]) -> CacheStep:
        inside = {item for item in self._homes if self._is_inside(item, node)}
        read = {edge for item in (node, *inside) for edge in item.edges() if edge.node not in inside}
        slots = [self._slot(Edge(reader, 0)) for reader in upstream_readers(node)]
        made = CacheStep(
            node,
            tuple(self._slot(edge) for edge in node.edges()),
            outputs,
            self._cache_inputs.get(node, []),
            {self._slot(edge): edge.node.branch for edge in read},
            {slot: self._plan.readers[slot] for slot in slots},
        )
        self._plan.caches.append(made)
        return made

    def _is_inside(self, node: Node, cache: Node) -> bool:
        home = self._homes.get(node)
        return home is not None and (home is cache or self._is_inside(home, cache))

    def finish(self, graph: Graph) -> Plan:
        for edge in graph.outputs:
            literal = self._literals.get(edge.node)
            if literal is not None:
                home = next((stage for stage in self._stages if stage.kind == "batch" and not stage.is_serial), None)
                if home is None:
                    home = Stage("batch", False)
                    self._stages.append(home)
                if literal not in home.steps:
                    home.steps.insert(0, literal)
                home.publishes[self._slot(edge)] = None
            elif edge.node in self._stage_of:
                self._stages[self._stage_of[edge.node]].publishes[self._slot(edge)] = edge.node.branch
        outputs = tuple(self._slots[edge] for edge in graph.outputs)
        stages = [ahead for stage in self._stages for ahead in (*_parsing_before(stage), stage)]
        return replace(self._plan, stages=stages, slot_count=len(self._slots), outputs=outputs)


def _parsing_before(stage: Stage) -> list[Stage]:
    """Return the stage that parses files for the decoders of a device stage; [] without such decoders."""
    decoders = {step.inputs[0]: step for step in stage.steps if type(step) is MixedStep}  # one for each input
    reads = {slot: branch for slot, branch in stage.reads.items() if slot in decoders}
    return [Stage("batch", False, [ParseStep(decoders[slot]) for slot in reads], reads)] if reads else []


def _kind_of(node: Node, on_error: str) -> StageKind:
    operator = node.operator
    if node.role is Role.TRANSFER or node.device != "cpu":
        return "device"
    if isinstance(operator, Reader):
        return "segment"
    if isinstance(operator, KernelOperator):
        policy = node.arguments.get("on_error") or on_error
        if operator.needs_batch({**node.arguments, "on_error": policy}):
            return "batch"
    if RANDOM_STATE.name in node.arguments:  # the value of the first sample is used for all
        return "batch"
    if _is_serial(node) or (not node.inputs and not _has_argument_nodes(node)):
        return "batch"
    return "segment"


def _is_serial(node: Node) -> bool:
    """Return whether a node must compute batches one after the other; users can declare functions parallel."""
    return node.operator.is_serial and not node.arguments.get("parallel")


def _cached_nodes(graph: Graph, on_error: str) -> dict[Node, Node]:
    """Return, for nodes that do not run for cached samples, the innermost cache that is the only consumer."""
    nodes = graph.nodes()
    users: defaultdict[Node, set[Node]] = defaultdict(set)
    for node in nodes:
        for edge in node.needs():
            users[edge.node].add(node)
    # A deterministic function has no side effects that would require a call.
    called = {node for node in graph.sinks if not node.arguments.get("deterministic")}
    kept = {edge.node for edge in graph.outputs} | called
    found: dict[Node, Node] = {}
    # From the last cache to the first, so that nodes that only an earlier cache needs belong to the earlier one.
    for cache in [node for node in reversed(nodes) if node.role is Role.CACHE]:
        if not upstream_readers(cache):
            continue  # constant data are not cached
        own = {cache}
        for node in reversed(upstream(cache)):
            if node not in kept and _can_be_cached(node, on_error) and users[node] <= own:
                own.add(node)
                found[node] = cache
    return found


def _can_be_cached(node: Node, on_error: str) -> bool:
    """Return whether a node can run in the step of a cache."""
    if node.operator.runs_user_code:
        return bool(node.arguments.get("deterministic"))
    return node.role is not Role.LITERAL and _kind_of(node, on_error) == "segment"


def _has_argument_nodes(node: Node) -> bool:
    return any(isinstance(value, Edge) for value in node.arguments.values())
