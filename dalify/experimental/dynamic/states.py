"""``Checkpoint``: the states of readers and random number generators in one file.

Every context has a checkpoint, which ``ndd.checkpoint.current`` returns.
"""

from __future__ import annotations

import json
import re
import string
from pathlib import Path
from typing import Any, Protocol

from dalify.base.errors import ArgumentTypeError, ArgumentValueError, CheckpointError, suggestion
from dalify.base.whole_files import write_file

_RESERVED_PREFIX = "__op_"


class StateString:
    """State of a reader or generator. ``set_state`` also accepts ``str(state)``."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text!r})"

    def __eq__(self, other: object) -> bool:
        """Compare with another state, or with its string."""
        return str(other) == self._text if isinstance(other, (StateString, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


class Stateful(Protocol):
    """An object whose state a checkpoint can contain: a reader or generator."""

    def get_state(self) -> Any:
        """Return the position; ``set_state`` accepts its ``str()``."""
        ...

    def set_state(self, value: Any, /) -> None:
        """Continue at a position."""
        ...


_VERSION = 1  # of the serialized checkpoint


class Checkpoint:
    """The states of readers and random number generators, by name.

    To save, ``register`` the objects, ``collect`` their states, and ``save``. To resume, ``load``, and ``register`` new
    objects under the same names; each object continues at its state.

    Example:
        >>> checkpoint = ndd.checkpoint.Checkpoint()
        >>> rng = ndd.random.RNG(seed=7)
        >>> checkpoint.register(rng, "rng")
        'rng'
        >>> checkpoint.collect()
        >>> later = ndd.checkpoint.Checkpoint()
        >>> later.deserialize(checkpoint.serialize())
        >>> resumed = ndd.random.RNG()
        >>> later.register(resumed, "rng")
        'rng'
        >>> resumed() == rng()
        True
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all objects and states."""
        self._members: dict[str, Any] = {}
        self._states: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}
        self._pending: set[str] = set()  # names of loaded states that are not restored yet
        self._is_complete = False
        self._is_loaded = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the registered objects."""
        return tuple(self._members)

    @property
    def is_complete(self) -> bool:
        """Whether the states were set by ``collect``."""
        return self._is_complete

    @property
    def is_loaded(self) -> bool:
        """Whether the states were loaded."""
        return self._is_loaded

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: str) -> bool:
        """Return whether an object is registered under a name."""
        return name in self._members

    def register(self, op: Stateful, name: str | None = None) -> str:
        """Add a reader or generator; it continues at the loaded state of its name.

        Args:
            op: the reader or generator.
            name: any name; by default objects are numbered. It replaces an object that was registered before.

        Raises:
            ArgumentTypeError: the object has no ``get_state`` and ``set_state``.
            ArgumentValueError: the name is empty, or starts with the prefix of numbered names.
            CheckpointError: the state belongs to another class; the loaded states do not contain the name; the states
                were collected already; the object has another name, or the name another object.
        """
        if not (hasattr(op, "get_state") and hasattr(op, "set_state")):
            hint = "Register readers and generators (RNG)."
            raise ArgumentTypeError.here(f"{type(op).__name__} has no state.", hint=hint)
        if name is None:
            known = next((key for key, member in self._members.items() if member is op), None)
            name = known or f"{_RESERVED_PREFIX}{len(self._members)}"
        elif not name:
            raise ArgumentValueError.here("a name must not be empty.")
        elif name.startswith(_RESERVED_PREFIX):
            raise ArgumentValueError.here(
                f"names that begin with {_RESERVED_PREFIX!r} are reserved for the checkpoint."
            )
        self._check_registration(op, name)
        self._members[name] = op
        if name in self._pending:
            self._restore_member(name)
        return name

    def _check_registration(self, op: Stateful, name: str) -> None:
        other = next((key for key, member in self._members.items() if member is op and key != name), None)
        if other is not None:
            raise CheckpointError.here(f"this object is already registered as {other!r}; it cannot also be {name!r}.")
        before = self._members.get(name)
        if before is not None:
            if type(before) is not type(op):
                raise CheckpointError.here(
                    f"{name!r} is a {_kind_of(type(before))} and cannot be replaced by a {_kind_of(type(op))}."
                )
            return
        if self._is_complete:
            message = f"{name!r} cannot be registered after the states have been collected."
            raise CheckpointError.here(message, hint="Call clear() first.")
        if self._is_loaded and name not in self._states:
            known = suggestion(name, self._states)
            raise CheckpointError.here(f"the checkpoint that was loaded has no state {name!r}.{known}")

    def _restore_member(self, name: str) -> None:
        """Set a registered object to its state."""
        member, kind = self._members[name], self._kinds.get(name)
        if kind is not None and kind != _kind_of(type(member)):
            raise CheckpointError.here(f"the state {name!r} belongs to a {kind}, not to a {_kind_of(type(member))}.")
        member.set_state(self._states[name])
        self._pending.discard(name)

    def collect(self) -> None:
        """Get the states of all registered objects.

        Raises:
            CheckpointError: a loaded state has no registered object.
        """
        self._check_registered()
        self._states = {name: member.get_state() for name, member in self._members.items()}
        self._kinds = {name: _kind_of(type(member)) for name, member in self._members.items()}
        self._pending.clear()
        self._is_complete, self._is_loaded = True, False

    def restore(self) -> None:
        """Set all registered objects to their states; ``register`` also does this.

        Raises:
            CheckpointError: a loaded state has no registered object, or an object has no state.
        """
        if not self._states:
            return
        self._check_registered()
        missing = [name for name in self._members if name not in self._states]
        if missing:
            raise CheckpointError.here(f"missing states: {', '.join(missing)}.")
        for name in sorted(self._pending):
            self._restore_member(name)

    def _check_registered(self) -> None:
        unregistered = [name for name in self._states if name not in self._members]
        if unregistered:
            raise CheckpointError.here(
                f"states without a registered object: {', '.join(unregistered)}.",
                hint="Register the object under this name.",
            )

    def get_state(self, name: str) -> Any:
        """Return a state; None before there is one.

        Raises:
            CheckpointError: no object has this name.
        """
        if name not in self._members:
            raise CheckpointError.here(f"nothing is registered as {name!r}.{suggestion(name, self._members)}")
        return self._states.get(name)

    def set_state(self, name: str, value: Any, op_type: type | str | None = None) -> None:
        """Set a state, which ``register`` or ``restore`` applies.

        Args:
            name: name of the object.
            value: argument for ``set_state`` of the object.
            op_type: class of the object, or its name.

        Raises:
            CheckpointError: the states were collected, and no object has this name.
            ArgumentTypeError: ``op_type`` is not a class or its name.
        """
        if op_type is not None and not isinstance(op_type, (type, str)):
            raise ArgumentTypeError.here(f"op_type must be a class or its name; got {op_type!r}.")
        if self._is_complete and name not in self._members:
            raise CheckpointError.here(f"nothing is registered as {name!r}.{suggestion(name, self._members)}")
        self._states[name] = value
        self._kinds.pop(name, None)
        if op_type is not None:
            self._kinds[name] = op_type if isinstance(op_type, str) else _kind_of(op_type)
        self._pending.add(name)

    def serialize(self) -> str:
        """Return the states as JSON.

        Raises:
            CheckpointError: there are no states.
        """
        if not self._states:
            raise CheckpointError.here("there are no states to serialize.", hint="Call collect() first.")
        states = {
            name: {"state": str(state), **({"type": self._kinds[name]} if name in self._kinds else {})}
            for name, state in self._states.items()
        }
        return json.dumps({"version": _VERSION, "states": states})

    def deserialize(self, data: str) -> None:
        """Load a result of ``serialize``; ``register`` or ``restore`` applies the states.

        Raises:
            CheckpointError: the value is not a result of ``serialize``.
        """
        try:
            found = json.loads(data)
            read = found["states"]
            if found["version"] != _VERSION:
                raise ValueError  # written by a later version
            states = {name: item["state"] for name, item in read.items()}
            kinds = {name: item["type"] for name, item in read.items() if "type" in item}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise CheckpointError.here("not a serialized checkpoint.") from None
        self._states, self._kinds, self._pending = states, kinds, set(states)
        self._is_complete, self._is_loaded = False, True

    def save(self, filename: str) -> str:
        """Write the states to a file with a new number.

        Args:
            filename: name with a placeholder for the number: ``"checkpoint_{seq:04d}.json"``.

        Returns:
            the name of the file.

        Raises:
            ArgumentValueError: the name has no placeholder.
            CheckpointError: there are no states.
        """
        numbers = _numbered(filename)
        text = self.serialize()
        path = Path(filename.format(seq=max(numbers, default=-1) + 1))
        write_file(path, text.encode(), is_durable=True)  # atomic, also in a crash
        return str(path)

    def load(self, filename: str) -> str:
        """Read the file with the highest number, see ``deserialize``.

        Args:
            filename: name with a placeholder for the number: ``"checkpoint_{seq:04d}.json"``.

        Returns:
            the name of the file.

        Raises:
            ArgumentValueError: the name has no placeholder.
            FileNotFoundError: the file does not exist.
        """
        numbers = _numbered(filename)
        if not numbers:
            raise FileNotFoundError(f"checkpoint {filename!r} does not exist")
        path = numbers[max(numbers)]
        self.deserialize(path.read_text(encoding="utf-8"))
        return str(path)


def _kind_of(kind: type) -> str:
    return kind.__qualname__


def _numbered(filename: str) -> dict[int, Path]:
    """Return the files of a pattern by their numbers.

    Raises:
        ArgumentValueError: the pattern has no placeholder.
    """
    parts = list(string.Formatter().parse(Path(filename).name))
    if [name for _, name, _, _ in parts if name is not None] != ["seq"]:
        raise ArgumentValueError.here(
            f"the name of a checkpoint requires one placeholder for its number; got {filename!r}.",
            hint="Use 'checkpoint_{seq:04d}.json'.",
        )
    pattern = "".join(re.escape(text) + (r"(\d+)" if name else "") for text, name, _, _ in parts)
    folder = Path(filename).parent
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    found = [(match, folder / name) for name in names if (match := re.fullmatch(pattern, name))]
    return {int(match.group(1)): path for match, path in found}
