"""Assignments of a branch to attributes, items and globals, here called stores: ``self.x = ..``, ``d["k"] = ..``.

Each store is recorded, undone before the other branch is traced, and merged. Stores may be in any function that a
branch calls; `conditional` handles local variables.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dalify.base.context_stack import Assigned
from dalify.base.narrow import is_dictionary, is_list
from dalify.base.source_line import SourceLine
from dalify.frontend.values import ABSENT, Merger, Unusable, copied
from dalify.graph import Branch, entered


class _Store:
    """One attribute or item: its value before and after the branch."""

    __slots__ = ("after", "before", "is_item", "key", "line", "owner")

    def __init__(self, owner: Any, key: Any, is_item: bool) -> None:
        self.owner = owner
        self.key = key
        self.is_item = is_item
        self.before = self.after = self.value()
        self.line: SourceLine | None = None

    def value(self) -> Any:
        try:
            return self.owner[self.key] if self.is_item else getattr(self.owner, self.key)
        except (LookupError, AttributeError, ValueError):  # ValueError: an empty closure cell
            return ABSENT

    def put(self, value: Any) -> None:
        if value is ABSENT:
            if self.value() is ABSENT:
                return
            if self.is_item:
                del self.owner[self.key]
            else:
                delattr(self.owner, self.key)
        elif value is not self.value():
            if self.is_item:
                self.owner[self.key] = value
            else:
                setattr(self.owner, self.key, value)

    @property
    def name(self) -> str:
        if type(self.owner).__name__ == "cell":
            return "a nonlocal variable"
        if not self.is_item:
            return f"{type(self.owner).__name__}.{self.key}"
        is_globals = is_dictionary(self.owner) and "__builtins__" in self.owner
        return str(self.key) if is_globals else f"{type(self.owner).__name__}[{self.key!r}]"


class BranchStores:
    """The stores of one branch while it is traced.

    Attributes:
        parent: stores of the enclosing branch.
        scope: variables at the start of the branch; objects reachable from them existed before it.
        branch: the branch of the graph.
        own: objects that were created in the branch, by id.
    """

    def __init__(self, parent: BranchStores | None, scope: dict[str, Any], branch: Branch) -> None:
        self.parent = parent
        self.scope = scope
        self.branch = branch
        self.own: dict[int, Any] = {}
        self.table: dict[tuple[int, bool, Any], _Store] = {}

    def close(self) -> None:
        """Save the stores of the branch and restore the previous values."""
        for store in self.table.values():
            store.after = copied(store.value())
        for store in reversed(self.table.values()):
            store.put(store.before)


_ACTIVE: ContextVar[BranchStores | None] = ContextVar("dalify_branch_stores", default=None)


def active() -> BranchStores | None:
    """Return the stores of the innermost branch that is traced in this thread."""
    return _ACTIVE.get()


@contextmanager
def traced(branch: Branch, scope: dict[str, Any]) -> Generator[BranchStores]:
    """Trace the ``with`` block as a branch; its stores are undone, also after an exception."""
    stores = BranchStores(_ACTIVE.get(), scope, branch)
    with Assigned(_ACTIVE, stores):
        try:
            with entered(branch):
                yield stores
        except BaseException:
            stores.close()
            raise


def note(owner: Any, key: Any, *, is_item: bool) -> None:
    """Record an attribute or item before it changes."""
    stores = _ACTIVE.get()
    if stores is None:
        return
    if is_item and is_list(owner) and isinstance(key, int) and key < 0:
        key += len(owner)  # so that each item has one key
    place = (id(owner), is_item, key)
    store = stores.table.get(place)
    if store is None:
        store = stores.table[place] = _Store(owner, key, is_item)
    store.line = SourceLine.capture()


def merge_stores(merger: Merger, if_true: BranchStores, if_false: BranchStores) -> None:
    """Set every attribute and item that a branch stored to its merged value, after both branches were closed."""
    for place in [*if_true.table, *(place for place in if_false.table if place not in if_true.table)]:
        first, second = if_true.table.get(place), if_false.table.get(place)
        store = first or second
        assert store is not None, "dalify bug: a store of neither branch"
        values = tuple(store.before if one is None else one.after for one in (first, second))
        lines = (None if first is None else first.line, None if second is None else second.line)
        value = merger.merged(store.name, (values[0], values[1]), lines)
        # An item of only one branch is no error here, because its object may have been created in the branch; reading
        # it for samples of the other branch is.
        if type(value) is Unusable and all(one is not ABSENT for one in values):
            raise value.reason()
        note(store.owner, store.key, is_item=store.is_item)
        store.put(value)
