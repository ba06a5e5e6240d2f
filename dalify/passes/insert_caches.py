"""Inserts caches after decoders with cache arguments, and rejects caches of data that differ between epochs.

A decoder on the device has its own cache there, which needs no node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dalify.base.errors import CacheError
from dalify.graph import Edge, Graph, Node, new_edge, rewrite, rule_arguments, upstream, upstream_readers
from dalify.passes.report import Report
from dalify.registry import FedSource, KernelOperator, Reader, Role, catalog

_OF_CACHE = ("cache_size", "cache_type", "cache_threshold", "cache_folder")
CACHE_ARGUMENTS = frozenset({*_OF_CACHE, "cache_batch_copy", "cache_debug"})


def insert_caches(graph: Graph, report: Report) -> Graph:
    """Return the graph with a ``fn.cache`` after each decoder with cache arguments.

    A decoder of samples without identity has no cache, as in DALI.

    Args:
        graph: any graph.
        report: a note is added for every such decoder.

    Raises:
        CacheError: a ``fn.cache`` cannot work at its position; with its line.
    """

    def change(node: Node, _new_edge: Callable[[Edge], Edge]) -> Node | tuple[Edge, ...]:
        if node.role is Role.CACHE:
            error = _error(node)
            if error is not None:
                raise error
            return node
        if "cache_type" not in node.operator.parameters:
            return node
        given = rule_arguments(node)
        if not given["cache_size"] or not (given["cache_type"] or given["cache_folder"]):
            return node
        arguments = {name: value for name, value in node.arguments.items() if name not in CACHE_ARGUMENTS}
        decoder = replace(node, arguments=arguments)
        mixed = node.operator.mixed if isinstance(node.operator, KernelOperator) else None
        if node.device == "mixed" and not given["cache_folder"] and mixed is not None and mixed.applies(arguments)[0]:
            error = _error(node) or _error_of_several_readers(node)
            if error is not None:
                report.note("insert_caches", f"{node!r} is not cached: {error.message}")
                return decoder
            report.note("insert_caches", f"{node!r} is cached on the device")
            return node
        decoder = replace(decoder, device="cpu" if node.device == "mixed" else node.device)
        options = {name: given[name] for name in _OF_CACHE if given[name] != ""}
        cache = new_edge(Role.CACHE, (Edge(decoder, 0),), options, node.device, branch=node.branch, line=node.line)
        error = _error(cache.node)
        if error is not None:
            report.note("insert_caches", f"{node!r} is not cached: {error.message}")
            return replace(node, arguments=arguments)
        report.note("insert_caches", f"{node!r} is cached")
        return (cache,)

    return rewrite(graph, change)


def _error(cache: Node) -> CacheError | None:
    """Return the error of a cache that cannot work, or None."""
    if cache.branch is not None:
        return _cache_error(cache, "it is inside a condition.", "Place fn.cache before or after the condition.")
    if cache.device == "gpu":
        return _cache_error(cache, "caches are on the CPU.", "Place fn.cache before .gpu().")
    for node in upstream(cache):
        found = _obstacle(node)
        if found is not None:
            what, hint = found
            place = f" at {node.line}" if node.line else ""
            return _cache_error(cache, f"it depends on {node.operator.public_name}{place}, {what}", hint)
    if not upstream_readers(cache):
        return _cache_error(
            cache, "there is no reader before it, so samples have no identity.", "Cache data that come from a reader."
        )
    return None


def _error_of_several_readers(decoder: Node) -> CacheError | None:
    """Return the error of a cache on the device whose samples come from several readers, or None."""
    is_single = len(upstream_readers(decoder)) == 1
    return None if is_single else _cache_error(decoder, "it depends on several readers.", "Use fn.cache.")


def _cache_error(cache: Node, why: str, hint: str) -> CacheError:
    return CacheError(
        f"the input cannot be cached: {why}", line=cache.line, hint=hint, operator=cache.operator.public_name
    )


def _obstacle(node: Node) -> tuple[str, str] | None:
    """Return the reason why the result of a node differs between epochs, and a hint; None if it does not differ."""
    operator = node.operator
    if operator.is_random:
        return "which is random.", "Place fn.cache before it."
    if isinstance(operator, FedSource):
        return "whose samples have no identity.", "Read the data with a reader."
    if isinstance(operator, Reader):
        if operator.entry_identity is None:
            readers = [catalog.find(name) for name in catalog.names() if "readers." in name]
            names = ", ".join(item.name for item in readers if isinstance(item, Reader) and item.entry_identity)
            return "which cannot detect whether its data have changed.", f"These readers can: {names}."
        return None
    if operator.runs_user_code and not _is_deterministic(node):
        return (
            "which calls a function that may return different results each time.",
            "If it depends only on its inputs, use fn.python_function(..., deterministic=True).",
        )
    if operator.has_side_effect and not operator.runs_user_code:
        return "which has side effects.", "Place it after fn.cache."
    if node.output_device != "cpu":
        return "which runs on the GPU; caches are on the CPU.", "Place fn.cache before .gpu()."
    if (
        isinstance(operator, KernelOperator)
        and not operator.runs_user_code
        and operator.needs_batch({**node.arguments, "on_error": "raise"})
    ):
        return (
            "which processes the whole batch: its result for a sample depends on the other samples.",
            "Place it after fn.cache.",
        )
    return None


def _is_deterministic(node: Node) -> bool:
    return bool(node.arguments.get("deterministic")) and not node.arguments.get("batch_processing")
