"""Values during the evaluation of a ``__getitem__``: the image of the sample, and containers with it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

import torch

from dalify.plugin.pytorch.dropin.getitem import NotEvaluatedError
from dalify.plugin.pytorch.dropin.opening import Decoder
from dalify.plugin.pytorch.dropin.sample_form import IMAGE, MAX_VIEWS, NamedParts, SampleForm, ViewPlace, is_named_tuple
from dalify.plugin.pytorch.dropin.working_folder import WorkingFolder

PATH = "dalify_path"
"""The variable with the path of the image."""

SAMPLE = "dalify_sample"
"""The variable with a function that returns path and label of a sample of another dataset."""

EXPRESSIONS = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Dict, ast.DictComp,
    ast.FormattedValue, ast.GeneratorExp, ast.IfExp, ast.JoinedStr, ast.List, ast.ListComp, ast.Name, ast.Set,
    ast.SetComp, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp,
)  # fmt: skip
"""The kinds of expressions that may be evaluated without the image."""


@dataclass(frozen=True)
class InnerImages:
    """The images of another dataset whose samples are tuples of image and label, or dictionaries.

    Attributes:
        lookup: returns path and label of a sample; see `SeparatedImage.lookup`.
        image: the image, with the transform of that dataset.
        opens_files: see `SeparatedImage`.
        columns: the keys of samples that are dictionaries, and which of them is the image; None for tuples. The label
            in `lookup` is then such a dictionary.
    """

    lookup: Callable[[Any], tuple[Any, Any]]
    image: OpenedImage
    opens_files: bool
    columns: dict[str, bool] | None = None


FindImages = Callable[[Any, FunctionType | None], InnerImages | None]
"""Returns the images of a dataset that a ``__getitem__`` reads, which may be that of a superclass."""


@dataclass(frozen=True)
class SeparatedImage:
    """A method ``__getitem__`` without its operations on the image.

    Attributes:
        lookup: returns the path of a sample, or its array or file in memory, and a tuple of its other values.
        form: the places of these values in a sample.
        views: the image with all transforms; several times if the sample has several views of it, in the order of
            the transforms.
        opens_files: whether Pillow receives an open file instead of its path.
        user_code: the first function or value in `lookup` that may be the user's; empty for none.
        watched: the attributes on which this result depends.
        inner: another dataset that returns the images; None for none.
        has_late_code: whether `lookup` returns a `Begun` in place of the tuple, to be finished after the transforms.
        is_joint: whether it returns a `Begun` with values that the transform gets together with the image.
        folder: resolves the relative paths of other files that `lookup` opens.
    """

    lookup: Callable[[Any], tuple[Any, Any]]
    form: SampleForm
    views: tuple[OpenedImage, ...]
    opens_files: bool
    user_code: str
    watched: tuple[str, ...]
    inner: Any
    has_late_code: bool
    is_joint: bool
    folder: WorkingFolder


class Begun(NamedTuple):
    """A call of a method without its operations on the image, before the transforms.

    Attributes:
        values: values that the transform gets together with the image.
        finish: runs the rest of the method, for the transformed values; returns the other values of the sample.
    """

    values: tuple[Any, ...]
    finish: Callable[[Any], tuple[Any, ...]]

    @classmethod
    def start(cls, create: Callable[[Any], Generator[Any, Any, Any]], index: Any) -> tuple[Any, Begun]:
        """Run a generator to its only ``yield``; return the path that it yields, and the rest."""
        generator = create(index)
        path, values = next(generator)

        def finish(results: Any) -> Any:
            try:
                generator.send(results)
            except StopIteration as end:
                return end.value
            raise AssertionError("dalify bug: a second value")

        return path, cls(values, finish)


@dataclass(frozen=True)
class OpenedImage:
    """The image of the sample.

    Attributes:
        is_rgb: whether it was converted to RGB.
        decode: decodes a file to a tensor or an array; None if Pillow opens it.
        transforms: the transforms that were applied, in order.
        calls: the numbers of these calls among all calls of transforms.
    """

    is_rgb: bool
    decode: Decoder | None = None
    transforms: tuple[Any, ...] = ()
    calls: tuple[int, ...] = ()

    def is_view_of(self, other: OpenedImage) -> bool:
        """Return whether an image was transformed, and was before the transforms what another image was."""
        return bool(self.calls) and (self.is_rgb, self.decode) == (other.is_rgb, other.decode)

    @property
    def is_pillow(self) -> bool:
        """Whether it is an image of Pillow before the transforms."""
        return self.decode is None or self.decode.gives_images


@dataclass(frozen=True)
class OpenedFile:
    """A file opened with ``open``, and the name of a variable with its path."""

    path: str


@dataclass
class Container:
    """A tuple, named tuple, list or dictionary that may contain the image.

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
                    return ast.copy_location(loaded(part), node)
            case _:
                pass
        return self.generic_visit(node)


def loaded(name: str) -> ast.Name:
    """Return an expression that reads a variable."""
    return ast.Name(name, ast.Load())


def assigned(name: str) -> ast.Name:
    """Return an expression that assigns a variable."""
    return ast.Name(name, ast.Store())


def views_in(leaves: Iterable[Any], count: int) -> list[OpenedImage]:
    """Return the views of the image in a sample, in the order of their transforms; NotEvaluatedError for other images.

    Args:
        leaves: the parts of the sample.
        count: the number of calls of transforms. Each must be for one view, and those for one view must be consecutive.
    """
    views = sorted((leaf for leaf in leaves if isinstance(leaf, OpenedImage)), key=lambda image: image.calls)
    calls = [call for image in views for call in image.calls]
    if not views or calls != list(range(count)):
        raise NotEvaluatedError
    if len(views) > 1 and not all(image.is_view_of(views[0]) for image in views):
        raise NotEvaluatedError
    return views


def template_of(value: Any, numbers: Iterator[int], views: list[OpenedImage]) -> Any:
    """Return a sample with the places of the views of the image, and numbers in place of the other values."""
    if isinstance(value, OpenedImage):
        return IMAGE if len(views) == 1 else ViewPlace(views.index(value))
    if not isinstance(value, Container):
        return next(numbers)
    parts = {name: template_of(part, numbers, views) for name, part in value.parts.items()}
    if is_named_tuple(value.kind):
        return NamedParts(value.kind, tuple(parts.values()))
    return parts if value.kind is dict else value.kind(parts.values())


def expression_of(value: Any) -> ast.expr:
    """Return an expression for a container without the image, or for a value; NotEvaluatedError for the image."""
    if isinstance(value, str):
        return loaded(value)
    if isinstance(value, ast.expr):
        return value
    if not isinstance(value, Container) or is_named_tuple(value.kind):
        raise NotEvaluatedError
    parts = [expression_of(part) for part in value.parts.values()]
    if value.kind is dict:
        return ast.Dict([ast.Constant(name) for name in value.parts], parts)
    return ast.Tuple(parts, ast.Load()) if value.kind is tuple else ast.List(parts, ast.Load())


def truth_of(value: Any) -> bool:
    """Return the truth of a value; only if that cannot depend on code of the user."""
    if value is None or isinstance(value, bool | int | float | str | list | tuple | dict):
        return bool(value)
    kind = type(value)
    if hasattr(kind, "__bool__") or (hasattr(kind, "__len__") and not isinstance(value, torch.nn.Sequential)):
        raise NotEvaluatedError
    return bool(value)


def unrolled(expression: ast.ListComp, constant: Callable[[ast.expr], Any]) -> ast.List:
    """Return the list for ``[value for name in range(count)]`` whose value does not depend on the name.

    Args:
        expression: the list comprehension; NotEvaluatedError for other forms.
        constant: returns a value that is the same for all samples.
    """
    match expression.generators:
        case [
            ast.comprehension(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range"), args=[end], keywords=[]),
                ifs=[],
                is_async=0,
            )
        ]:
            count = constant(end)
            names = (node.id for node in ast.walk(expression.elt) if isinstance(node, ast.Name))
            if type(count) is int and 0 < count <= MAX_VIEWS and name not in names:
                return ast.copy_location(ast.List([expression.elt] * count, ast.Load()), expression)
        case _:
            pass
    raise NotEvaluatedError


def yielded(values: list[ast.expr]) -> ast.Yield:
    """Return an expression that yields the path and a tuple of values."""
    return ast.Yield(ast.Tuple([loaded(PATH), ast.Tuple(values, ast.Load())], ast.Load()))
