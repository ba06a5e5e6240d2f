"""Values during the evaluation of a ``__getitem__``: the image of the sample, and containers with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dalify.plugin.pytorch.dropin.sample_form import IMAGE


@dataclass(frozen=True)
class OpenedImage:
    """The image of the sample.

    Attributes:
        is_rgb: whether it was converted to RGB.
        transforms: the transforms that were applied.
    """

    is_rgb: bool
    transforms: tuple[Any, ...] = ()


@dataclass(frozen=True)
class OpenedFile:
    """A file opened with ``open``, and the name of a variable with its path."""

    path: str


@dataclass
class Container:
    """A tuple, list or dictionary that may contain the image.

    Attributes:
        kind: its type.
        parts: images, containers, and names of variables with other values, by index or key.
    """

    kind: type
    parts: dict[Any, Any] = field(default_factory=dict)

    def leaves(self) -> Iterator[Any]:
        """Yield images and names, in order."""
        for part in self.parts.values():
            if isinstance(part, Container):
                yield from part.leaves()
            else:
                yield part


class PartReader(ast.NodeTransformer):
    """Replaces values of containers, ``name["key"]``, by their variables."""

    def __init__(self, symbols: dict[str, Any]) -> None:
        self._symbols = symbols

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the variable of a value, or an unchanged expression."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                container = self._symbols.get(name)
                part = container.parts.get(key) if isinstance(container, Container) else None
                if isinstance(part, str):
                    return ast.copy_location(ast.Name(part, ast.Load()), node)
            case _:
                pass
        return self.generic_visit(node)


def template_of(value: Any, numbers: Iterator[int]) -> Any:
    """Return a sample with `IMAGE` in place of the image, and numbers in place of the other values."""
    if isinstance(value, OpenedImage):
        return IMAGE
    if not isinstance(value, Container):
        return next(numbers)
    parts = {name: template_of(part, numbers) for name, part in value.parts.items()}
    return parts if value.kind is dict else value.kind(parts.values())
