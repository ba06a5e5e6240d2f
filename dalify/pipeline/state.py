"""The format of saved states: JSON data with a description of the graph and a checksum.

Reading a state executes no code. It contains a digest per kind of operator, so that errors can name the operators that
differ. The checksum detects modified and truncated states.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from dalify.base.errors import CheckpointError
from dalify.base.narrow import is_array, is_dictionary, is_list, is_list_or_tuple
from dalify.base.wording import counted
from dalify.graph import Edge, FedSource, Graph, Node, Reader, Role, rule_arguments
from dalify.passes import CACHE_ARGUMENTS

FORMAT = "dalify state 1"
_MAX_INTEGER = 1 << 64
_DESCRIPTION = re.compile(r"[0-9]{1,9}-[0-9a-f]{1,64}")
_KEYS = {"format", "batch_size", "seed", "graph", "number", "at_end", "sources"}

# Only arguments of readers that determine the order. Paths may change; the sampler checks the number of entries.
_READER_ARGUMENTS = {
    "random_shuffle",
    "shuffle_after_epoch",
    "shuffle_after_epoch_seed",
    "stick_to_shard",
    "pad_last_batch",
}
_SOURCE_ARGUMENTS = {"num_outputs", "cycle", "batch", "batch_info", "repeat_last"}


def describe(graph: Graph) -> dict[str, str]:
    """Return the description of a graph in a state: per operator ``count-digest``, and a digest of the connections.

    Devices, caches, source lines, Python functions and paths are not included, because they may change.
    """
    nodes = [node for node in graph.nodes() if not _changes_nothing(node)]
    numbers = {node: index for index, node in enumerate(nodes)}

    def place(edge: Edge) -> list[int]:
        while _changes_nothing(edge.node):
            edge = list(edge.node.edges())[edge.output]
        return [numbers[edge.node], edge.output]

    uses: defaultdict[str, list[Any]] = defaultdict(list)
    joints: list[Any] = []
    for node in nodes:
        uses[node.operator.public_name].append([node.name, node.seed, node.output_count, _arguments(node)])
        joints.append([place(edge) for edge in node.edges()])
        joints.extend([*place(branch.condition), branch.taken] for branch in node.branches())
    joints.append([place(edge) for edge in graph.outputs])
    return {name: f"{len(items)}-{_digest(items)}" for name, items in sorted(uses.items())} | {
        "joined": _digest(joints)
    }


def _changes_nothing(node: Node) -> bool:
    """Return whether a node is a transfer or a cache."""
    return node.role in (Role.TRANSFER, Role.CACHE)


def _arguments(node: Node) -> list[Any]:
    operator = node.operator
    arguments = rule_arguments(node)
    if isinstance(operator, Reader):
        names = _READER_ARGUMENTS
    elif isinstance(operator, FedSource) and operator.feed_function is None:
        names = _SOURCE_ARGUMENTS
    else:
        # Caching, and the process that calls a function, do not change results.
        names = set(arguments) - CACHE_ARGUMENTS - {"parallel"}
    values = {name: _plain(arguments[name]) for name in sorted(names)}
    # Without defaults, so that states remain valid if a later version adds an argument.
    return [[name, value] for name, value in values.items() if value != _plain(operator.parameters[name].default)]


def _plain(value: Any) -> Any:
    """Return a representation that is the same in every process for equal values."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float, np.number, np.bool_)):
        return float(cast("float", value))
    if is_list_or_tuple(value):
        return [_plain(item) for item in value]
    if is_array(value) and value.dtype.kind in "biuf":
        return [value.dtype.str, list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    return type(value).__name__


def _digest(data: Any) -> str:
    return hashlib.sha256(_canonical(data)).hexdigest()[:10]


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with its checksum as JSON-ready data: tuples become lists, keys become strings.

    Raises:
        CheckpointError: JSON cannot represent the state of a source.
    """
    try:
        text = _canonical(state)
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"JSON cannot represent the state_dict() of a source: {error}.",
            hint="Return numbers, strings, lists and dictionaries from it.",
        ) from None
    return {**json.loads(text), "check": hashlib.sha256(text).hexdigest()[:16]}


def opened(saved: Mapping[str, Any] | bytes | str) -> dict[str, Any]:
    """Verify and return the state in the result of ``sealed``.

    Args:
        saved: result of ``state_dict`` or ``checkpoint``.

    Raises:
        CheckpointError: the argument is not a state, has another version, or was modified.
    """
    try:
        state: Any = dict(saved) if isinstance(saved, Mapping) else json.loads(saved)
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"not a checkpoint: it is not JSON ({error}).",
            hint="Pass the result of checkpoint() or state_dict() of a pipeline. Checkpoints of DALI cannot be read.",
        ) from None
    if not is_dictionary(state) or state.get("format") != FORMAT:
        found = state.get("format") if is_dictionary(state) else type(state).__name__
        raise CheckpointError(f"not a checkpoint of this version: its format is {found!r}, expected {FORMAT!r}.")
    check = state.pop("check", None)
    try:
        is_whole = sealed(state)["check"] == check and set(state) - {"iterator"} == _KEYS
    except CheckpointError:
        is_whole = False
    if not is_whole:
        raise CheckpointError("the checkpoint is damaged or was modified: its checksum does not match.")
    if not _has_types(state):
        raise CheckpointError("the checkpoint was not created by a pipeline: its entries have unexpected types.")
    return json.loads(_canonical(state))


def _has_types(state: Mapping[str, Any]) -> bool:
    """Return whether the entries of a state have the expected types."""
    numbers = [state["batch_size"], state["number"], state["seed"]]
    graph, sources = state["graph"], state["sources"]
    return (
        all(type(number) is int and 0 <= number < _MAX_INTEGER for number in numbers)
        and isinstance(state["at_end"], bool)
        and is_dictionary(graph)
        and all(
            isinstance(text, str) and (name == "joined" or _DESCRIPTION.fullmatch(text)) for name, text in graph.items()
        )
        and is_list(sources)
        and all(source is None or is_dictionary(source) for source in sources)
    )


def merged(states: Sequence[dict[str, Any]], shard: tuple[int, int] | None) -> dict[str, Any]:
    """Merge the states of all shards to the state of one shard, for the same or another number of shards.

    Args:
        states: results of ``opened``.
        shard: ``shard_id`` and ``num_shards`` of the new shard; None without sharding.

    Raises:
        CheckpointError: the states were not saved after the same batch.
    """
    numbers = sorted({state["number"] for state in states})
    if len(numbers) > 1 or len({len(state["sources"]) for state in states}) > 1:
        raise CheckpointError(
            f"the checkpoints were saved after different batches; their next batches are {numbers}.",
            hint="Save the states of all shards after the same batch.",
        )
    if len(states) == 1 or shard is None:
        return states[0]
    # So that new shards have different seeds, on which random augmentations depend.
    own = states[shard[0] % len(states)]
    for state in states:
        if any(_is_reader(item) and (item["shard_id"], item["num_shards"]) == shard for item in state["sources"]):
            own = state
    sources = [
        {"shards": [state["sources"][number] for state in states]} if _is_reader(item) else item
        for number, item in enumerate(own["sources"])
    ]
    return {**own, "sources": sources}


def _is_reader(source: Any) -> bool:
    return isinstance(source, dict) and {"num_shards", "shard_id"} <= source.keys()


def divides(state: Mapping[str, Any], shard: tuple[int, int] | None) -> bool:
    """Return whether a state has another number of shards."""
    found = [item for source in state["sources"] if source for item in source.get("shards", [source])]
    return shard is not None and any(_is_reader(item) and item["num_shards"] != shard[1] for item in found)


def check_graph(state: Mapping[str, Any], graph: Graph, batch_size: int) -> None:
    """Check that a state belongs to a graph.

    Raises:
        CheckpointError: the state does not belong to the graph; the message names the differences.
    """
    if state["batch_size"] != batch_size:
        raise CheckpointError(
            f"the checkpoint was made with batch_size={state['batch_size']}, the pipeline has {batch_size}: "
            "random numbers depend on it.",
            hint=f"Use batch_size={state['batch_size']}.",
        )
    saved, now = dict(state["graph"]), describe(graph)
    if saved == now:
        return
    joined = saved.pop("joined", None), now.pop("joined")
    problems: list[str] = []
    for name in sorted({*saved, *now}):
        before, after = (int(texts.get(name, "0").split("-")[0]) for texts in (saved, now))
        if before != after:
            problems.append(f"{name} was used {counted(before, 'time')}, now {after}")
        elif saved[name] != now[name]:
            problems.append(f"{name} has different arguments")
    if not problems:
        assert joined[0] != joined[1], "dalify bug: the descriptions do not differ"
        problems.append("the operators are connected differently")
    problems = [
        text for text in problems if not text.startswith("fn._")
    ] or problems  # operators of the user, if any of them differ
    raise CheckpointError(
        f"the checkpoint belongs to another pipeline: {'; '.join(problems)}.",
        hint="Restore with the pipeline that made it.",
    )
