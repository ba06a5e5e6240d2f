"""Modules whose members are operators of the catalog: ``fn``, ``fn.readers``, ``ops`` etc.

The file of an operator is imported at the first access.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import UnknownOperatorError, suggestion
from dalify.graph import called_as
from dalify.registry import Operator, catalog
from dalify.registry.legacy import HIDDEN_NAMES, LEGACY_DEFAULTS, LEGACY_NAMES


class Namespace(ModuleType):
    """A module that creates its members from the catalog.

    Args:
        module: import name, e.g. ``dalify.fn.readers``.
        public: public name, e.g. ``fn.readers``.
        prefix: prefix of the operators' names, e.g. ``readers.``.
        make: creates the member from operator and public name.
        spell: converts the last part of an operator's name to the member's name.
    """

    def __init__(
        self,
        module: str,
        public: str,
        prefix: str,
        make: Callable[[Operator, str], Any],
        spell: Callable[[str], str],
    ) -> None:
        super().__init__(module, f"Operators of dalify as ``{public}``; see the documentation of each.")
        self.__dict__["_public"] = public
        self.__dict__["_prefix"] = prefix
        self.__dict__["_make"] = make
        self.__dict__["_spell"] = spell

    def _members(self) -> dict[str, str]:
        """Return the names of all operators of this namespace, by names without case and underscores."""
        prefix: str = self._prefix
        known = [name for name in [*LEGACY_NAMES, *HIDDEN_NAMES, *catalog.names()] if name.startswith(prefix)]
        return {_plain(name[len(prefix) :]): name for name in known if "." not in name[len(prefix) :]}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{self._prefix}{name}" in catalog.namespaces():  # of an operator that was added later
            return _add_namespace(self, name)
        old = self._find(name)
        modern = catalog.resolve(old)
        operator = catalog.find(modern)
        member = self._make(operator, f"{self._public}.{name}")
        defaults = LEGACY_DEFAULTS.get(old.rpartition(".")[2])
        if defaults and modern != old:
            member = _with_defaults(member, defaults)
        if modern == old or old in HIDDEN_NAMES:
            self.__dict__[name] = member  # cached: the next access does not call __getattr__
        else:
            warn_deprecated(f"{self._public}.{name} is now called {self._spelled(modern)}.")
            if isinstance(member, type):
                own: dict[str, Any] = {"public_name": f"{self._public}.{name}"}
                own |= {"__module__": member.__module__, "__doc__": member.__doc__}
                member = type(member.__name__, (member,), own)
            else:
                member = _called_as(member, operator, f"fn.{old}")
        return member

    def _spelled(self, operator_name: str) -> str:
        """Return the public name of an operator in any namespace of this API."""
        *path, own = operator_name.split(".")
        return ".".join([self._public.partition(".")[0], *path, self._spell(own)])

    def _find(self, name: str) -> str:
        members = self._members()
        found = members.get(_plain(name))
        exact = self._spell("a_b") == "a_b"  # names of functions are exact, names of classes ignore case
        if found is None or (exact and found[len(self._prefix) :] != name):
            public = dir(self)  # also the namespaces in this one, and no old names
            names = (self._spelled(full) for full in catalog.names())
            same = sorted(full for full in names if full.endswith(f".{name}") and ".experimental." not in full)
            similar = f" Did you mean {' or '.join(same)}?" if same else suggestion(name, public)
            raise UnknownOperatorError(
                f"there is no operator {self._public}.{name}.{similar}",
                hint=f"{self._public} has: {', '.join(public)}." if len(public) < 12 else "",
            )
        return found

    def _forget(self, operator_name: str) -> None:
        """Drop the member of an operator that was added, replaced or removed."""
        prefix: str = self._prefix
        own = operator_name.removeprefix(prefix)
        if operator_name.startswith(prefix) and "." not in own:
            for name in [name for name in self.__dict__ if _plain(name) == _plain(own)]:
                del self.__dict__[name]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, like modules: functions that are pickled by value have ``fn`` among their globals."""
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        """Return the public names, for completion."""
        names = [name for name in self._members().values() if name not in LEGACY_NAMES and name not in HIDDEN_NAMES]
        spelled = {
            self._spell(name[len(self._prefix) :]) for name in names if not name.rpartition(".")[2].startswith("_")
        }
        prefix: str = self._prefix
        inner = {name[len(prefix) :].partition(".")[0] for name in catalog.namespaces() if name.startswith(prefix)}
        own = {name for name in self.__dict__ if not name.startswith("_")}
        return sorted(spelled | own | {name for name in inner if not name.startswith("_")})


def module_hooks(space: Namespace, module: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module with the members of a namespace in addition to its own.

    Args:
        space: the namespace.
        module: the names of the module. Members are added to them, except old names, which warn each time, and
            operators of users, which can be removed.
    """

    def find(name: str) -> Any:
        member = getattr(space, name)
        if name in vars(space) and catalog.added(name) is None:
            module[name] = member  # Python finds it directly next time
        return member

    return find, lambda: sorted({*dir(space), *module["__all__"]})


def _add_namespace(parent: Namespace, name: str) -> Namespace:
    """Create a namespace inside another one and register it in ``sys.modules``."""
    space = Namespace(
        f"{parent.__name__}.{name}", f"{parent._public}.{name}", f"{parent._prefix}{name}.", parent._make, parent._spell
    )
    parent.__dict__[name] = sys.modules[space.__name__] = space
    catalog.watch(space._forget)
    return space


def _with_defaults(member: Any, defaults: Mapping[str, Any]) -> Any:
    """Return a function or class with other default arguments."""
    wrapped = member.__init__ if isinstance(member, type) else member

    @functools.wraps(wrapped)
    def wrapper(*values: Any, **arguments: Any) -> Any:
        return wrapped(*values, **{**defaults, **arguments})

    parameters = inspect.signature(member).parameters.values()
    changed = [item.replace(default=defaults.get(item.name, item.default)) for item in parameters]
    signature = inspect.Signature(changed)
    if isinstance(member, type):
        return type(member.__name__, (member,), {"__init__": wrapper, "__signature__": signature})
    wrapper.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
    return wrapper


def _called_as(function: Callable[..., Any], operator: Operator, name: str) -> Callable[..., Any]:
    """Return the function of an operator whose errors have another name."""

    @functools.wraps(function)
    def wrapper(*values: Any, **arguments: Any) -> Any:
        with called_as(operator, name):
            return function(*values, **arguments)

    return wrapper


def _plain(name: str) -> str:
    return name.replace("_", "").lower() if not name.startswith("_") else name


def install(root: str, public: str, make: Callable[[Operator, str], Any], spell: Callable[[str], str]) -> Namespace:
    """Create the namespaces of one API and register them in ``sys.modules``.

    Args:
        root: import name of the outermost one, e.g. ``dalify.fn``.
        public: public name, e.g. ``fn``.
        make: creates the member from operator and public name.
        spell: converts the last part of an operator's name to the member's name.
    """
    top = Namespace(root, public, "", make, spell)
    catalog.watch(top._forget)
    for name in sorted(catalog.namespaces()):
        parent_name, _, own = name.rpartition(".")
        parent = sys.modules[f"{root}.{parent_name}"] if parent_name else top
        _add_namespace(typing.cast("Namespace", parent), own)
    return top
