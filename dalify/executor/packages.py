"""Checks at build time that the optional packages of all operators are installed."""

from __future__ import annotations

from collections.abc import Iterable

from dalify.base.optional import LazyModule, fsspec, require
from dalify.executor.steps import cause, located
from dalify.graph import Node, rule_arguments


def check_packages(nodes: Iterable[Node]) -> None:
    """Import the optional packages that operators need.

    Raises:
        MissingPackageError: a package is not installed; with operator and the user's line.
    """
    for node in nodes:
        if node.operator.needs:
            for package in node.operator.needed_packages(rule_arguments(node)):
                _check(package, node)


def check_remote_package(node: Node) -> None:
    """Import the package for reading from URLs, for a reader of URLs.

    Raises:
        MissingPackageError: the package is not installed; with operator and the user's line.
    """
    _check(fsspec, node)


def _check(package: LazyModule, node: Node) -> None:
    try:
        require(package)
    except ImportError as error:
        raise located(error, node) from cause(error, node)
