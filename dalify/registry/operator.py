"""The base class of all kinds of operators.

A declaration such as ``@operator`` turns a function into an operator: its signature is the schema, its docstring the
documentation, its body the rule that maps specs of inputs to specs of outputs. The kinds of operators are subclasses:
`KernelOperator`, `Reader`, `FedSource` and `Structural`. Everything else (functions, classes, stubs, documentation, the
executor) is derived from this definition.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

from dalify.base.errors import ArgumentValueError, DalifyError, UnknownArgumentError, suggestion
from dalify.base.optional import LazyModule
from dalify.data.spec import Spec
from dalify.registry.legacy import SIMILAR_ARGUMENTS, old_arguments, retired_arguments
from dalify.registry.parameter_group import (
    Parameters,
    group_of,
    merged_documentation,
    pack,
    packing,
    parameters_of_group,
)
from dalify.registry.parameters import NO_DEFAULT, Parameter, parameter_of

_Options = ParamSpec("_Options")
_Kind = TypeVar("_Kind", bound="Operator", covariant=True)

_OPERATORS_PACKAGE = "dalify.operators."
_MAX_OUTPUTS = 1 << 16

SEED = parameter_of("seed", int, -1)

# Accepted by every operator; used by the graph and the executor, not by kernels.
COMMON_PARAMETERS = ("name", "device", "preserve", "bytes_per_sample_hint", "seed")


class Input(NamedTuple):
    """One positional input of an operator."""

    name: str
    is_optional: bool = False
    is_variadic: bool = False


class OperatorFunction:
    """A function that is attached to an operator: it receives the arguments that it declares.

    Args:
        function: ``f(..., *, parameters)``.
        groups: groups of arguments by name, which the function may declare instead of single arguments.

    Attributes:
        function: takes the fields of groups instead of the groups.
        inner: the given function.
        declared: its keyword-only parameters.
        groups: the groups among them, by name.
        names: the keyword-only parameters of `function`.
    """

    __slots__ = ("declared", "function", "groups", "inner", "names")

    def __init__(self, function: Callable[..., Any], groups: Mapping[str, type[Parameters]] | None = None) -> None:
        self.inner = function
        self.declared = _keyword_only(function)
        self.groups = {name: group for name, group in (groups or {}).items() if name in self.declared}
        self.function = packing(function, self.groups)
        self.names = _keyword_only(self.function)


def _keyword_only(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(item.name for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY)


class OperatorOptions(TypedDict, total=False):
    """The options of every kind of operator; see the attributes of `Operator`.

    Attributes:
        name: path below ``fn``; by default the path of the file.
        outputs: see `Operator`, like `needs` and `constructor`.
        mixed: see `Operator.takes_mixed`.
        needs: see `outputs`.
        user_code: see `Operator.runs_user_code`.
        effect: see `Operator.effect_function`.
        stands_for: the expression of the user that the operator implements; used in messages.
        constructor: see `outputs`.
        alphabetical: the arguments are sorted by name, including arguments of groups.
    """

    name: str
    outputs: int | Callable[[Mapping[str, Any]], int]
    mixed: bool
    needs: Sequence[LazyModule] | Callable[[Mapping[str, Any]], Sequence[LazyModule]]
    user_code: bool
    effect: Callable[[Mapping[str, Any]], str]
    stands_for: str
    constructor: tuple[str, ...]
    alphabetical: bool


class Operator:
    """An operator: its schema and its rule.

    Args:
        rule: a function whose positional-only parameters are inputs (``Spec``; with default None: optional; ``*xs``:
            any number), whose other parameters are the arguments of the operator, and which returns the Spec, or tuple
            of Specs, of the outputs.
        added: parameters that the kind of the operator adds to the parameters of the rule.
        options: the options of the declaration.

    Attributes:
        name: path below ``fn``, e.g. ``decoders.image``.
        doc: the docstring.
        inputs: positional inputs.
        is_variadic: whether it takes any number of inputs.
        required_inputs: names of the inputs that a call must have.
        parameters: keyword arguments by name.
        own_names: names of the arguments in the signature, including arguments of groups, except common and hidden
            arguments.
        shaping: names of the arguments with which the rule must run for every sample.
        groups: groups of arguments, by the name that rules and kernels give them; see ``parameter_group``.
        old_arguments: deprecated argument names and their replacements.
        retired_arguments: argument names that have no effect.
        rule: the decorated function.
        outputs: number of outputs, or a function of the constant arguments that returns it.
        takes_mixed: whether the device ``mixed`` is supported: CPU inputs, GPU outputs.
        needs: required optional packages, or a function of the constant arguments that returns them. Checked when a
            pipeline is built.
        runs_user_code: calls Python code of the user; its exceptions keep their class and are also RuntimeErrors.
        effect_function: function of the constant arguments that returns the side effect of a use; see ``effect``.
        constructor: positional arguments of the class, in order: ``ops.PythonFunction(function)``.
        is_random: draws random numbers; takes ``seed``. This and the following apply to operators with kernels only.
        is_serial: runs for one batch at a time, in order, as required by Python functions of users.
        has_side_effect: kept even if its outputs are not used.
        operator_count: number of operators as which it counts when the time of Python code for a chunk is estimated.
    """

    is_random = False
    is_serial = False
    has_side_effect = False
    operator_count = 1

    def __init__(
        self, rule: Callable[..., Any], added: Mapping[str, Parameter] | None = None, **options: Unpack[OperatorOptions]
    ) -> None:
        if unknown := options.keys() - OperatorOptions.__optional_keys__:
            raise TypeError(f"{rule.__name__}: {type(self).__name__} has no option {min(unknown)!r}")
        self.rule = rule
        self.name = options.get("name") or rule.__module__.removeprefix(_OPERATORS_PACKAGE)
        self.doc = inspect.getdoc(rule) or ""
        self.outputs = options.get("outputs", 1)
        self.takes_mixed = options.get("mixed", False)
        self.needs = options.get("needs", ())
        self.runs_user_code = options.get("user_code", False)
        self.effect_function = options.get("effect")
        self.constructor = options.get("constructor", ())
        self._stands_for = options.get("stands_for")
        self.inputs, self.parameters, self.groups = _schema_of(rule)
        self.is_variadic = any(item.is_variadic for item in self.inputs)
        self.required_inputs = [item.name for item in self.inputs if not item.is_optional and not item.is_variadic]
        if options.get("alphabetical"):
            self.parameters = dict(sorted(self.parameters.items()))
        if self.groups:
            names = [*(item.name for item in self.inputs), *self.parameters]
            self.doc = merged_documentation(self.doc, names, self.groups.values())
        self.own_names = tuple(item for item in self.parameters if not item.startswith("_"))
        self.parameters |= added or {}
        self.old_arguments = old_arguments(self.name, self.parameters)
        self.retired_arguments = retired_arguments(self.name)
        self.shaping = tuple(item.name for item in self.parameters.values() if item.kind == "shaping")
        self.__doc__ = self.doc
        self.__name__ = rule.__name__
        self.__module__ = rule.__module__

    @property
    def takes_seed(self) -> bool:
        """Whether it has a seed: its outputs depend on more than inputs and arguments."""
        return self.is_random

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that users may specify, without ``mixed``."""
        return ("cpu",) if self.takes_mixed else ("cpu", "gpu")

    @property
    def public_name(self) -> str:
        """The name as users write it: ``fn.decoders.image``, ``indexing``."""
        return self._stands_for or f"fn.{self.name}"

    def effect(self, arguments: Mapping[str, Any]) -> str:
        """Return the side effect of a use of the operator, as a verb phrase; "" for none.

        Serialized graphs from untrusted sources must not contain operators with effects.
        """
        if self.effect_function is not None:
            return self.effect_function(arguments)
        if self.runs_user_code:
            return "runs Python code"
        return "writes files" if self.has_side_effect else ""

    def apply_rule(self, specs: Sequence[Spec | None], arguments: Mapping[str, Any]) -> tuple[Spec, ...]:
        """Return the specs of the outputs.

        Args:
            specs: specs of the inputs; trailing optional ones may be missing.
            arguments: arguments by name; the rule receives those that it declares.

        Raises:
            DalifyError: invalid inputs or arguments.
        """
        named = {name: arguments[name] for name in self.own_names if name in arguments}
        try:
            result = self.rule(*specs, **self.grouped(named))
        except DalifyError:
            raise
        except (ArithmeticError, ValueError, MemoryError, RuntimeError) as error:  # from NaN, infinity or huge extents
            message = str(error).rstrip(".") or type(error).__name__
            raise ArgumentValueError(f"the result of these arguments cannot be computed: {message}.") from error
        return (result,) if isinstance(result, Spec) else tuple(result or ())

    def grouped(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as the rule takes them: with one object for the arguments of each group."""
        return pack(self.groups, dict(arguments))

    def output_count(self, arguments: Mapping[str, Any]) -> int:
        """Return the number of outputs for the specified arguments and ``input_count``, the number of inputs.

        Raises:
            ArgumentValueError: the number of outputs is out of range.
        """
        count = self.outputs
        if not isinstance(count, int):
            count = count({**{name: item.default for name, item in self.parameters.items()}, **arguments})
        if not 0 <= count <= _MAX_OUTPUTS:
            raise ArgumentValueError(f"the number of outputs must be between 0 and {_MAX_OUTPUTS}; got {count}.")
        return count

    def needed_packages(self, arguments: Mapping[str, Any]) -> Sequence[LazyModule]:
        """Return the optional packages that the operator needs with the given constant arguments."""
        return self.needs(arguments) if callable(self.needs) else self.needs

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by name.

        Raises:
            UnknownArgumentError: the operator has no such argument.
        """
        found = self.parameters.get(name)
        if found is None:
            listed = [item for item in self.parameters if not item.startswith("_")]
            known = [*listed, *COMMON_PARAMETERS]
            similar = SIMILAR_ARGUMENTS.get(name)
            hint = f" Did you mean {similar!r}?" if similar in listed else suggestion(name, known)
            raise UnknownArgumentError(
                f"unknown argument {name!r}.{hint}",
                operator=self.public_name,
                hint=f"Valid arguments: {', '.join(listed) or 'none'}.",
            )
        return found

    def check_names(self, names: Iterable[str], others: Sequence[str] = ()) -> None:
        """Check the names of arguments before the call that uses them.

        Args:
            names: names that the user specified; common, old and retired arguments are accepted.
            others: further accepted names.

        Raises:
            UnknownArgumentError: the operator does not have the argument.
        """
        accepted = (self.parameters, COMMON_PARAMETERS, self.old_arguments, self.retired_arguments, others)
        for name in names:
            if not any(name in known for known in accepted):
                self.parameter(name)

    def __reduce__(self) -> str:
        """Pickle the operator by name: it is an attribute of its module."""
        return self.__name__

    def __repr__(self) -> str:
        """Return the public name."""
        return f"<operator {self.public_name}>"


def _schema_of(
    rule: Callable[..., Any],
) -> tuple[tuple[Input, ...], dict[str, Parameter], dict[str, type[Parameters]]]:
    hints = typing.get_type_hints(rule, include_extras=True)
    inputs: list[Input] = []
    parameters: dict[str, Parameter] = {}
    groups: dict[str, type[Parameters]] = {}
    for item in inspect.signature(rule).parameters.values():
        has_default = item.default is not inspect.Parameter.empty
        if item.kind is inspect.Parameter.POSITIONAL_ONLY:
            inputs.append(Input(item.name, is_optional=has_default))
        elif item.kind is inspect.Parameter.VAR_POSITIONAL:
            inputs.append(Input(item.name, is_variadic=True))
        elif (group := group_of(hints.get(item.name))) is not None:
            groups[item.name] = group
            parameters |= {field.name: field for field in parameters_of_group(group)}
        else:
            default = item.default if has_default else NO_DEFAULT
            positional = item.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters[item.name] = parameter_of(item.name, hints[item.name], default, is_positional=positional)
    return tuple(inputs), parameters, groups


class _Declaration(Protocol[_Options, _Kind]):
    @overload
    def __call__(self, rule: Callable[..., Any], /) -> _Kind: ...
    @overload
    def __call__(self, *_: _Options.args, **options: _Options.kwargs) -> Callable[[Callable[..., Any]], _Kind]: ...


def declaration_of(
    kind: Callable[Concatenate[Callable[..., Any], _Options], _Kind],
) -> _Declaration[_Options, _Kind]:
    """Return the decorator that declares operators of a kind, with or without the options of its class."""

    def declare(rule: Callable[..., Any] | None = None, /, *_: Any, **options: Any) -> Any:
        make: Callable[..., Any] = functools.partial(kind, **options)
        return make if rule is None else make(rule)

    return declare
