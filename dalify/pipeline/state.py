"""What a saved state of a pipeline looks like: plain data with a description of the graph and a check sum.

Alone because the format must be readable in one place. A state is JSON: reading one executes nothing. It is told apart
from the state of another graph by a digest per kind of operator, so that the error can say which operators differ, and
from one that was changed or cut off by its check sum.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalify.base.errors import CheckpointError
from dalify.base.whole_files import write_whole
from dalify.executor.assembly import shard_of
from dalify.graph import Edge, Graph, Node, rule_arguments
from dalify.passes import CACHE_ARGUMENTS, is_cache

__all__ = ["FORMAT", "check_graph", "describe", "divides", "dumps", "merged", "opened", "sealed", "shard_of", "write"]

FORMAT = "dalify state 1"
_MOST = 1 << 64
_DESCRIPTION = re.compile(r"[0-9]{1,9}-[0-9a-f]{1,64}")
_KEYS = {"format", "batch_size", "seed", "graph", "number", "at_end", "sources"}

# Of a reader, what decides on the order counts. Where the data lie may change; how many there are, its sampler checks.
_READER_ARGUMENTS = {
    "random_shuffle",
    "shuffle_after_epoch",
    "shuffle_after_epoch_seed",
    "stick_to_shard",
    "pad_last_batch",
}
_SOURCE_ARGUMENTS = {"num_outputs", "cycle", "batch", "batch_info", "repeat_last"}


def describe(graph: Graph) -> dict[str, str]:
    """Return what a state knows of its graph: per operator ``count-digest``, and a digest of what is joined to what.

    Devices, caches, lines of source code, Python functions and paths are left out: they may change.
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
        branch = node.branch
        while branch is not None:
            joints.append([*place(branch.condition), branch.taken])
            branch = branch.parent
    joints.append([place(edge) for edge in graph.outputs])
    return {name: f"{len(items)}-{_digest(items)}" for name, items in sorted(uses.items())} | {
        "joined": _digest(joints)
    }


def _changes_nothing(node: Node) -> bool:
    """Tell whether a node only brings data to another device, or keeps them."""
    return node.operator.name == "_transfer" or is_cache(node)


def _arguments(node: Node) -> list[Any]:
    operator = node.operator
    arguments = rule_arguments(node)
    if operator.is_reader:
        names = _READER_ARGUMENTS
    elif operator.public_name == "fn.external_source":
        names = _SOURCE_ARGUMENTS
    else:
        # Neither where a function is called nor what is kept changes a result.
        names = set(arguments) - CACHE_ARGUMENTS - {"parallel"}
    values = {name: _plain(arguments[name]) for name in sorted(names)}
    # Without defaults: an argument that a later version adds must not make a state useless.
    return [[name, value] for name, value in values.items() if value != _plain(operator.parameters[name].default)]


def _plain(value: Any) -> Any:
    """Return something that is the same in every process for equal values."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float, np.number, np.bool_)):
        return float(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return [value.dtype.str, list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    return type(value).__name__


def _digest(data: Any) -> str:
    return hashlib.sha256(_canonical(data)).hexdigest()[:10]


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with its check sum, as data that went through JSON: tuples are lists, keys are texts.

    Raises:
        CheckpointError: a source's own state is nothing that JSON can hold.
    """
    try:
        text = _canonical(state)
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"the state_dict() of a source gives what JSON cannot hold: {error}.",
            hint="Return numbers, texts, lists and dictionaries from it.",
        ) from None
    return {**json.loads(text), "check": hashlib.sha256(text).hexdigest()[:16]}


def opened(saved: Mapping[str, Any] | bytes | str) -> dict[str, Any]:
    """Return what ``sealed`` got.

    Args:
        saved: what ``state_dict`` or ``checkpoint`` returned.

    Raises:
        CheckpointError: no state, one of another version, or one that was changed.
    """
    try:
        state = dict(saved) if isinstance(saved, Mapping) else json.loads(saved)
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"this is no checkpoint: {error}.", hint="Pass what checkpoint() or state_dict() of a pipeline returned."
        ) from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise CheckpointError(f"this is no checkpoint that can be read: its format is {found!r}, expected {FORMAT!r}.")
    check = state.pop("check", None)
    try:
        is_whole = sealed(state)["check"] == check and set(state) - {"iterator"} == _KEYS
    except CheckpointError:
        is_whole = False
    if not is_whole:
        raise CheckpointError("this checkpoint was damaged or changed: its check sum does not fit.")
    if not _has_types(state):
        raise CheckpointError("this checkpoint was not made by a pipeline: its entries are of other types.")
    return json.loads(_canonical(state))


def _has_types(state: Mapping[str, Any]) -> bool:
    """Tell whether the entries of a state can be used, whoever wrote them."""
    numbers = [state["batch_size"], state["number"], state["seed"]]
    graph, sources = state["graph"], state["sources"]
    return (
        all(type(number) is int and 0 <= number < _MOST for number in numbers)
        and isinstance(state["at_end"], bool)
        and isinstance(graph, dict)
        and all(
            isinstance(text, str) and (name == "joined" or _DESCRIPTION.fullmatch(text)) for name, text in graph.items()
        )
        and isinstance(sources, list)
        and all(source is None or isinstance(source, dict) for source in sources)
    )


def merged(states: Sequence[dict[str, Any]], shard: tuple[int, int] | None) -> dict[str, Any]:
    """Return the states of all shards as one, for one shard of the same or of another division.

    Args:
        states: what ``opened`` returned for each.
        shard: ``shard_id`` and ``num_shards`` of who goes on; None where nothing is divided.

    Raises:
        CheckpointError: they are not of one moment.
    """
    numbers = sorted({state["number"] for state in states})
    if len(numbers) > 1 or len({len(state["sources"]) for state in states}) > 1:
        raise CheckpointError(
            f"the checkpoints are not of one moment: they were made before the batches {numbers}.",
            hint="Save the states of all shards after the same batch.",
        )
    if len(states) == 1 or shard is None:
        return states[0]
    # Random numbers of augmentations go by the seed: the new shards should not all have that of one old shard.
    own = states[shard[0] % len(states)]
    for state in states:
        if any(_is_reader(item) and (item["shard_id"], item["num_shards"]) == shard for item in state["sources"]):
            own = state
    sources = [
        {"shards": [state["sources"][place] for state in states]} if _is_reader(item) else item
        for place, item in enumerate(own["sources"])
    ]
    return {**own, "sources": sources}


def _is_reader(source: Any) -> bool:
    return isinstance(source, dict) and {"num_shards", "shard_id"} <= source.keys()


def divides(state: Mapping[str, Any], shard: tuple[int, int] | None) -> bool:
    """Tell whether a state is of another number of shards."""
    found = [item for source in state["sources"] if source for item in source.get("shards", [source])]
    return shard is not None and any(_is_reader(item) and item["num_shards"] != shard[1] for item in found)


def check_graph(state: Mapping[str, Any], graph: Graph, batch_size: int) -> None:
    """Refuse the state of another pipeline.

    Raises:
        CheckpointError: with what differs.
    """
    if state["batch_size"] != batch_size:
        raise CheckpointError(
            f"the checkpoint was made with batch_size={state['batch_size']}, the pipeline has {batch_size}: "
            "random numbers go by batches.",
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
            problems.append(f"{name} was used {before} times, now {after}")
        elif saved[name] != now[name]:
            problems.append(f"{name} has other arguments")
    if not problems:
        assert joined[0] != joined[1], "dalify bug: two descriptions differ in nothing"
        problems.append("the operators are joined in another way")
    problems = [
        text for text in problems if not text.startswith("fn._")
    ] or problems  # what users wrote, where it says enough
    raise CheckpointError(
        f"the checkpoint belongs to another pipeline: {'; '.join(problems)}.",
        hint="Restore with the pipeline that made it.",
    )


def dumps(state: Mapping[str, Any]) -> bytes:
    """Return a sealed state as JSON text, UTF-8."""
    return json.dumps(state, separators=(",", ":")).encode()


def write(path: str | os.PathLike[str], text: bytes) -> None:
    """Write a file so that at any moment, also that of a crash, the old or the new contents are there in whole."""
    write_whole(path, [text], is_durable=True)
