"""Transforms of users that return several views of one image, as contrastive methods need them.

For example::

    class TwoCrops:
        def __init__(self, transform):
            self.transform = transform

        def __call__(self, image):
            return [self.transform(image), self.transform(image)]

The syntax tree of the method is evaluated with a symbol for the image. A method is supported if it only calls
transforms that are attributes of the object, each with the image, and returns a list or tuple of all results. It may
use variables, ``append``, and loops over ``range`` and over lists of transforms. Then the image is decoded once, and
each transform is converted to a plan.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch

from dalify.plugin.pytorch.dropin.getitem import MISSING, NotEvaluatedError, attribute_of, syntax_of
from dalify.plugin.pytorch.dropin.lowering import lower_transform
from dalify.plugin.pytorch.dropin.opening import Decoder
from dalify.plugin.pytorch.dropin.plan import NotRecognizedError, TransformPlan, ViewsPlan
from dalify.plugin.pytorch.dropin.registration import TRANSFORMS
from dalify.plugin.pytorch.dropin.sample_form import MAX_VIEWS
from dalify.plugin.pytorch.dropin.steps import CenterCrop, RandomCrop, RandomResizedCrop

_CREATING = CenterCrop, RandomCrop, RandomResizedCrop


@dataclass(frozen=True)
class Views:
    """The transforms of several views of one image.

    Attributes:
        transforms: one for each view, in the order of the calls.
        kind: list or tuple, the type of the result.
        order: the place of each view in `transforms`, in the order of the result.
    """

    transforms: tuple[Callable[[Any], Any], ...]
    kind: type
    order: tuple[int, ...]


def views_of(transform: Any) -> Views | None:
    """Return the transforms that a transform of a user calls for each of its views; None for other transforms."""
    if isinstance(transform, Views):
        return transform
    kind: Any = type(transform)
    function = inspect.getattr_static(kind, "__call__", None)
    if not isinstance(function, FunctionType) or kind.__getattribute__ is not object.__getattribute__:
        return None
    if function.__code__.co_freevars or not hasattr(transform, "__dict__"):
        return None
    definition = syntax_of(function)
    if definition is None or len(definition.args.args) != 2:
        return None
    try:
        return _Evaluation(transform, function, definition).result()
    except NotEvaluatedError:
        return None


def plan_of(transform: Any, channels: int, decoder: Decoder | None) -> TransformPlan:
    """Convert a transform that returns one image, or several views of it; see `lower_transform`.

    Raises:
        NotRecognizedError: the views of a dataset, not of a transform, cannot be computed.
    """
    views = views_of(transform)
    if views is None or type(transform) in TRANSFORMS:
        return lower_transform(transform, channels, decoder)
    plans = tuple(lower_transform(each, channels, decoder) for each in views.transforms)
    missing = next((plan for plan in plans if not _has_own_image(plan)), None)
    if missing is None:
        return ViewsPlan.of(plans, views.kind, views.order)
    if transform is views:
        assert missing.reason is not None
        raise NotRecognizedError(*missing.reason)
    return lower_transform(transform, channels, decoder)


def _has_own_image(plan: TransformPlan) -> bool:
    """Return whether the user's transforms cannot modify the common image of the views.

    Other transforms of Pillow images, such as a flip that is not applied, may return the image that they get.
    """
    creates = plan.table is not None or any(isinstance(step, _CREATING) for step in plan.steps)
    return bool(plan.names) and (creates or not plan.unsupported)


_IMAGE = object()


class _Results(list[Any]):
    """A list that the method creates."""


@dataclass(frozen=True)
class _View:
    """The result of a call, by its number."""

    number: int


class _Evaluation:
    """Evaluates a method with a symbol for the image.

    Values are `_IMAGE`, a `_View`, `_Results` and tuples of these, and known objects.
    """

    def __init__(self, transform: Any, function: FunctionType, definition: ast.FunctionDef) -> None:
        self._transform, self._globals = transform, function.__globals__
        self._body = definition.body
        own, image = (parameter.arg for parameter in definition.args.args)
        self._names: dict[str, Any] = {own: transform, image: _IMAGE}
        self._calls: list[Callable[[Any], Any]] = []

    def result(self) -> Views:
        """Return the views; NotEvaluatedError for other methods."""
        found = self._run(self._body)
        if type(found) not in (_Results, tuple) or not all(isinstance(each, _View) for each in found):
            raise NotEvaluatedError
        order = tuple(view.number for view in found)
        if not order or sorted(order) != list(range(len(self._calls))):  # results that are unused, or used twice
            raise NotEvaluatedError
        return Views(tuple(self._calls), tuple if type(found) is tuple else list, order)

    def _run(self, statements: list[ast.stmt]) -> Any:
        """Return the value that the statements return; None if they return nothing."""
        for statement in statements:
            match statement:
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    pass
                case ast.Return(value=ast.expr() as value):
                    return self._value(value)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._names[name] = self._value(value)
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value], keywords=[]
                    )
                ) if isinstance(values := self._names.get(name), _Results):
                    values.append(self._value(value))
                case ast.For(target=ast.Name(id=name), iter=values, body=body, orelse=[]):
                    for each in self._items(values):
                        self._names[name] = each
                        if self._run(body) is not None:
                            raise NotEvaluatedError
                case _:
                    raise NotEvaluatedError
        return None

    def _value(self, expression: ast.expr) -> Any:
        match expression:
            case ast.List(elts=parts):
                return _Results(map(self._value, parts))
            case ast.Tuple(elts=parts):
                return tuple(map(self._value, parts))
            case ast.ListComp(
                elt=element, generators=[ast.comprehension(target=ast.Name(id=name), iter=values, ifs=[], is_async=0)]
            ):
                outer, found = dict(self._names), _Results()
                for each in self._items(values):
                    self._names[name] = each
                    found.append(self._value(element))
                self._names = outer
                return found
            case ast.Call(func=function, args=[argument], keywords=[]) if self._value(argument) is _IMAGE:
                transform = self._value(function)
                if not callable(transform) or transform is self._transform or len(self._calls) == MAX_VIEWS:
                    raise NotEvaluatedError
                self._calls.append(transform)
                return _View(len(self._calls) - 1)
            case ast.Name(id=name) if name in self._names:
                return self._names[name]
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if self._names.get(
                name, MISSING
            ) is self._transform and not attribute.startswith("__"):
                value = attribute_of(self._transform, attribute)
                if value is not MISSING:
                    return value
            case _:
                pass
        raise NotEvaluatedError

    def _items(self, expression: ast.expr) -> Iterator[Any]:
        """Return the values of a loop: integers, or transforms of a list that is an attribute."""
        match expression:
            case ast.Call(func=ast.Name(id="range"), args=[count], keywords=[]) if (
                "range" not in self._names and "range" not in self._globals
            ):
                end = count.value if isinstance(count, ast.Constant) else self._value(count)
                if type(end) is int and end <= MAX_VIEWS:
                    return iter(range(end))
            case ast.Attribute():
                values = self._value(expression)
                if type(values) in (list, tuple, torch.nn.ModuleList):
                    return iter(values)
            case _:
                pass
        raise NotEvaluatedError
