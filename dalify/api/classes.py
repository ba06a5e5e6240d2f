"""Operators as classes, DALI's older API: ``resize = ops.Resize(size=224)``, later ``resize(images)``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from dalify.api.functions import apply_operator, input_parameters, keyword_parameters
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, locating
from dalify.base.narrow import is_list
from dalify.base.source_line import SourceLine
from dalify.graph import called_as
from dalify.registry import Operator
from dalify.registry.op_spec import OpSpec
from dalify.registry.schema import OpSchema, schema_name


class OperatorInstance:
    """An operator with some of its arguments; calling it creates a node.

    Args:
        arguments: keyword arguments, the same for every call.
    """

    operator: Operator
    public_name: str
    schema_name: str

    def __init__(self, *inputs: Any, **arguments: Any) -> None:
        with locating(SourceLine.capture()), called_as(self.operator, self.public_name):
            if inputs:
                name = self.public_name
                raise ArgumentTypeError(
                    f"{name}() takes no inputs: they are passed to its instances.", hint=f"Write {name}(...)(x)."
                )
            self.operator.check_names(arguments)
        # Lists are copied, so that changes to them after the constructor have no effect, as in DALI.
        self.arguments = {name: self._copied(name, value) for name, value in arguments.items()}

    def _copied(self, name: str, value: Any) -> Any:
        parameter = self.operator.parameters.get(name)
        is_plain = parameter is not None and parameter.is_list and parameter.element is not object
        return list(value) if is_plain and is_list(value) else value

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Call the operator with the arguments of the constructor and of the call; None is not given."""
        with called_as(self.operator, self.public_name):
            return apply_operator(self.operator, inputs, self.with_arguments(arguments))

    def with_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the constructor and of a call.

        Raises:
            ArgumentValueError: an argument is specified in both.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        for name in given:
            if self.arguments.get(name) is not None:
                raise ArgumentValueError.here(
                    f"{name} was specified already, in the constructor.",
                    operator=self.public_name,
                    hint=f"Specify {name} only in the call, or create another operator.",
                )
        return {**self.arguments, **given}

    @property
    def device(self) -> str:
        """The specified device; ``cpu`` by default."""
        return self.arguments.get("device") or "cpu"

    @property
    def preserve(self) -> bool:
        """Whether it runs even if no output needs it."""
        return bool(self.arguments.get("preserve", False))

    @property
    def schema(self) -> OpSchema:
        """The schema of the operator."""
        return OpSchema(self.operator, self.operator.name)

    @property
    def spec(self) -> OpSpec:
        """The arguments of the constructor."""
        return OpSpec(self.schema_name, {"device": self.device, **self.arguments})

    def __repr__(self) -> str:
        """Return the class and the names of the arguments, no data."""
        return f"{type(self).__name__}({', '.join(self.arguments)})"


class _PositionalInstance(OperatorInstance):
    """An operator whose first arguments may be given by position, like ``ExternalSource(source)``."""

    def __init__(self, *values: Any, **arguments: Any) -> None:
        names = _by_position(self.operator)
        given_twice = [name for name in names[: len(values)] if name in arguments]
        if len(values) > len(names) or given_twice:
            problem = (
                f"the argument {given_twice[0]} was specified twice: by position and as {given_twice[0]}=."
                if given_twice
                else f"takes at most {len(names)} positional arguments ({', '.join(names)}); got {len(values)}."
            )
            raise ArgumentTypeError.here(problem, operator=self.public_name)
        super().__init__(**dict(zip(names, values, strict=False)), **arguments)


def make_class(operator: Operator, public_name: str) -> type[OperatorInstance]:
    """Create the class of an operator, with its signature and documentation."""
    positional = _by_position(operator)
    base = _PositionalInstance if positional else OperatorInstance
    module, _, name = public_name.rpartition(".")

    def __call__(self: OperatorInstance, *inputs: Any, **arguments: Any) -> Any:  # noqa: N807 -- with a signature
        return OperatorInstance.__call__(self, *inputs, **arguments)

    __call__.__doc__ = base.__call__.__doc__
    keywords = keyword_parameters(operator)
    keywords = [item if item.name in positional else _optional(item) for item in keywords]
    optional = [_optional(item.replace(kind=item.KEYWORD_ONLY)) for item in keywords]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    inputs = input_parameters(operator)
    __call__.__signature__ = inspect.Signature([itself, *inputs, *optional])  # pyright: ignore[reportFunctionMemberAccess]
    members = {
        "operator": operator,
        "public_name": public_name,
        "schema_name": schema_name(operator.name),
        "__doc__": operator.doc,
        "__module__": f"dalify.{module}",
        "__call__": __call__,
        "__signature__": inspect.Signature(_reordered(keywords, positional)),
    }
    return cast("type[OperatorInstance]", type(name, (base,), members))


def _optional(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return an optional keyword: required arguments may be passed to the constructor or to the call."""
    is_needed = parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    return parameter.replace(default=None) if is_needed else parameter


def _by_position(operator: Operator) -> list[str]:
    """Return the positional arguments of the constructor."""
    return list(operator.constructor) or [item.name for item in operator.parameters.values() if item.is_positional]


def _reordered(parameters: list[inspect.Parameter], first: list[str]) -> list[inspect.Parameter]:
    by_name = {item.name: item for item in parameters}
    positional = [by_name[name].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in first]
    for index, item in enumerate(positional):
        if index and positional[index - 1].default is not item.empty and item.default is item.empty:
            # Still required, but Python does not allow a required parameter here.
            positional[index] = item.replace(default=None)
    return [*positional, *(item for item in parameters if item.name not in first)]
