"""Operators that users add: checks of their definition, of the results of rules, and of the results of kernels.

The operators of the package are checked by tests; custom operators are checked when they are defined and when they run.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from types import FunctionType, UnionType
from typing import Any

from dalify.base.errors import DalifyError, DTypeError, OperatorDefinitionError, OperatorError, ShapeError
from dalify.base.narrow import is_list, is_tuple
from dalify.base.source_line import SourceLine
from dalify.base.wording import counted
from dalify.data.batch import array_dtype
from dalify.data.spec import Spec
from dalify.registry import catalog
from dalify.registry.groups import on_groups
from dalify.registry.kernel_operator import Form, Kernel, KernelOperator
from dalify.registry.operator import COMMON_PARAMETERS, Operator
from dalify.registry.parameter_group import packing
from dalify.registry.parameters import VARIES

# Values that kernels can request besides the arguments of the operator.
CONTEXT_NAMES = ("spec", "specs", "out_spec", "out_specs", "count", "draws")
_RESERVED = frozenset({*COMMON_PARAMETERS, *CONTEXT_NAMES, "memory", "batch_size", "rng", "on_error"})
_PART = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_ELEMENTS = (bool, int, float)
_KINDS = inspect.Parameter


class CustomOperator(KernelOperator):
    """An operator that was defined outside of the package.

    Args:
        rule: the rule; its signature is the schema.
        name: path below ``fn``: ``vignette``, ``mylab.vignette``.
        outputs: number of outputs.
        allocating: kernels return their results instead of filling ``out``.
        random: kernels draw random numbers.

    Attributes:
        place: where it was defined.
        is_allocating: see `allocating`.

    Raises:
        OperatorDefinitionError: an invalid name or signature.
    """

    def __init__(
        self, rule: Callable[..., Any], name: str, *, outputs: int = 1, allocating: bool = False, random: bool = False
    ) -> None:
        if not isinstance(rule, FunctionType):
            hint = f"To name it, write @operator(name={rule!r})." if isinstance(rule, str) else ""
            raise _invalid(f"an operator is defined by a function; got {rule!r}.", None, hint)
        self.place = SourceLine.of_code(rule.__code__)
        self.is_allocating = allocating
        _check_name(name, self.place)
        if type(outputs) is not int or outputs < 1:
            raise _invalid(f"outputs must be a positive integer; got {outputs!r}.", self.place)
        _check_signature(rule, f"fn.{name}", self.place)
        try:
            super().__init__(rule, name=name, outputs=outputs, random=random)
        except DalifyError as error:  # the default of a parameter
            raise _invalid(f"fn.{name}: {error.message}", self.place) from error
        _check_parameters(self, self.place)
        self.old_arguments = {}

    def cpu(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the CPU kernel (NumPy arrays)."""
        self.kernels["cpu"] = self._kernel(function, "cpu")
        return function

    def gpu(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the GPU kernel (torch tensors; arguments are NumPy arrays)."""
        self.kernels["gpu"] = self._kernel(function, "gpu")
        return function

    def _attach_prepare(
        self, function: Callable[..., dict[str, Any]], value_inputs: tuple[str, ...] | None
    ) -> Callable[..., dict[str, Any]]:
        if self.kernels:
            raise _invalid(f"attach the prepare function of {self.public_name} before its kernels.", _line(function))
        return super()._attach_prepare(function, value_inputs)

    def apply_rule(self, specs: Sequence[Spec | None], arguments: Mapping[str, Any]) -> tuple[Spec, ...]:
        """Return the specs of the outputs; see `Operator.apply_rule`.

        Raises:
            DalifyError: the rule raised an exception, or did not return one Spec for each output.
        """
        try:
            found = super().apply_rule(specs, arguments)
        except DalifyError as error:
            if error.__cause__ is None:
                raise
            raise self._rule_failed(error.__cause__) from error.__cause__
        except Exception as error:  # the rule is code of the user, which can raise any class
            raise self._rule_failed(error) from error
        if len(found) != self.outputs or not all(isinstance(item, Spec) for item in typing.cast("list[object]", found)):
            kinds = ", ".join(type(item).__name__ for item in found) or "nothing"
            raise OperatorError(
                f"the rule must return {counted(typing.cast('int', self.outputs), 'Spec')}; it returned {kinds}.",
                hint=f"The rule is defined in {self.place}.",
            )
        is_known = all(spec is None or spec.shape is not None for spec in specs)
        if is_known and not self.is_allocating and not any(arguments.get(name) is VARIES for name in self.shaping):
            self._check_complete(found)
        return found

    def output_count(self, arguments: Mapping[str, Any]) -> int:
        """Return the number of outputs; called for each use.

        Raises:
            OperatorDefinitionError: the operator has no CPU or GPU function.
        """
        if not self.kernels:
            raise OperatorDefinitionError(
                "the operator has no CPU or GPU function.",
                operator=self.public_name,
                hint=f"Attach one with @{self.__name__}.cpu; the operator is defined in {self.place}.",
            )
        return super().output_count(arguments)

    def _rule_failed(self, error: BaseException) -> OperatorError:
        text = str(error).strip().rstrip(".")
        hint = f"The rule is defined in {self.place}."
        if isinstance(error, AssertionError) or "_Varies" in text:
            hint += " An argument that varies per sample is VARIES in the rule; compare with `is VARIES`."
            text = "" if isinstance(error, AssertionError) else text.replace("_Varies", "VARIES")
        elif "NoneType" in text:
            hint += " While the graph is built, spec.shape is None."
        return OperatorError(f"the rule failed ({type(error).__name__}{': ' * bool(text)}{text}).", hint=hint)

    def _check_complete(self, found: Sequence[Spec]) -> None:
        """Reject specs without type or shape when samples are computed: they determine the memory of results."""
        for index, spec in enumerate(found):
            missing = "dtype" if spec.dtype is None else "shape" if spec.shape is None else None
            if missing is not None:
                raise OperatorError(
                    f"the rule returned no {missing} for output {index}, although the inputs are known.",
                    hint=f"The rule is defined in {self.place}. Return spec.replace({missing}=...), or declare the "
                    "operator allocating=True.",
                )

    def _kernel(self, function: Callable[..., Any], device: str) -> Kernel:
        line = _line(function)
        if device in self.kernels:  # prepared calls would keep the previous function
            raise _invalid(
                f"{self.public_name} has a {device.upper()} function already.",
                line,
                "To change an operator, define it and its functions again, with replace=True.",
            )
        self._check_kernel(function, device, line)
        own = inspect.signature(function)
        wanted = {name for name, item in own.parameters.items() if item.kind is _KINDS.KEYWORD_ONLY}
        added = [name for name in ("count", "out_specs") if name not in wanted]

        @functools.wraps(function)
        def checked(*arrays: Any, **named: Any) -> Any:
            count, out_specs = named["count"], named["out_specs"]
            for name in added:
                del named[name]
            try:
                results = function(*arrays, **named)
            except AssertionError as error:  # otherwise reported as an internal error of dalify
                raise OperatorError(f"an assertion failed{': ' * bool(str(error))}{error}.") from error
            if self.is_allocating:
                return self._checked_results(results, count, out_specs)
            if results is not None:
                raise OperatorError(
                    f"the {device.upper()} function returned a {type(results).__name__}; it must write its result into "
                    f"{next(iter(own.parameters))} and return None.",
                    hint="Write `out[...] = result`, or declare the operator allocating=True.",
                )
            return None

        keywords = [_KINDS(name, _KINDS.KEYWORD_ONLY) for name in added]
        checked.__signature__ = own.replace(  # pyright: ignore[reportAttributeAccessIssue]
            parameters=[*own.parameters.values(), *keywords]
        )
        grouped = on_groups(
            outputs=0 if self.is_allocating else typing.cast("int", self.outputs),
            shaping=self.shaping,
            constants=[item.name for item in self.parameters.values() if item.kind == "static"],
        )
        form = Form.NEW_SAMPLES if self.is_allocating else Form.SAMPLES
        return Kernel(grouped(packing(checked, self.groups)), form)

    def _check_kernel(self, function: Callable[..., Any], device: str, line: SourceLine | None) -> None:
        """Compare the signature of a kernel with inputs, outputs and arguments."""
        outputs = 0 if self.is_allocating else typing.cast("int", self.outputs)
        parameters = list(inspect.signature(function).parameters.values())
        positional = [
            item for item in parameters if item.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)
        ]
        rest = [item for item in parameters if item.kind is _KINDS.VAR_POSITIONAL]
        expected = ["out" if outputs == 1 else f"out{index}" for index in range(outputs)]
        expected += ["*" * item.is_variadic + item.name for item in self.inputs]
        minimum = sum(not name.startswith("*") for name in expected)
        if (len(positional) != minimum and not (rest and len(positional) <= minimum)) or (
            any(name.startswith("*") for name in expected) and not rest
        ):
            raise _invalid(
                f"the {device.upper()} function of {self.public_name} must take ({', '.join(expected)}) and arguments "
                f"after `*`; it takes ({', '.join(str(item) for item in [*positional, *rest])}).",
                line,
            )
        if self.prepare_function is not None:
            return  # it returns further arguments
        allowed = [*self.parameters, *self.groups, *CONTEXT_NAMES]
        for item in parameters:
            if item.kind is _KINDS.VAR_KEYWORD or (item.kind is _KINDS.KEYWORD_ONLY and item.name not in allowed):
                raise _invalid(
                    f"the {device.upper()} function of {self.public_name} takes {item.name}, which is not an argument "
                    "of the operator.",
                    line,
                    f"It can take, after `*`: {', '.join(allowed)}.",
                )

    def _checked_results(self, results: Any, count: int, out_specs: Sequence[Spec]) -> Any:
        """Compare the results of an allocating kernel with the specs of the rule."""
        found: tuple[Any, ...] = results if is_tuple(results) else (results,)
        if len(found) != len(out_specs):
            raise OperatorError(f"the function must return {len(out_specs)} results; it returned {len(found)}.")
        for result, spec in zip(found, out_specs, strict=True):
            if not is_list(result) and not hasattr(result, "shape"):
                raise OperatorError(
                    f"the function must return an array [N, ...] or a list of N arrays; it returned a "
                    f"{type(result).__name__}."
                )
            if len(result) != count:
                raise ShapeError(f"the function returned {counted(len(result), 'sample')} for a group of {count}.")
            samples: list[Any] = result if is_list(result) else [result]
            for sample in samples:
                shape: tuple[int, ...] = tuple(sample.shape)[0 if samples is result else 1 :]
                if spec.ndim is not None and len(shape) != spec.ndim:
                    raise ShapeError(
                        f"the rule returned {counted(spec.ndim, 'dimension')}; the result has {len(shape)}: {shape}."
                    )
                if spec.dtype is not None and array_dtype(sample) is not spec.dtype:
                    raise DTypeError(f"the rule returned {spec.dtype.text}; the result is {array_dtype(sample).text}.")
        return results

    def functions(self) -> list[Callable[..., Any]]:
        """Return the user's functions that affect results, for keys of caches."""
        kernels = [inspect.unwrap(kernel.function) for kernel in self.kernels.values()]
        prepare = self.prepare_function
        return [self.rule, *kernels, *([prepare.function] if prepare else [])]

    def __reduce__(self) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Pickle by name if the module can be imported, otherwise by the user's functions."""
        module: Any = sys.modules.get(self.__module__)
        is_importable = self.__module__ != "__main__" or hasattr(module, "__file__")
        if is_importable and getattr(module, self.__name__, None) is self:
            return _imported, (self.__module__, self.__name__)
        options = {"outputs": self.outputs, "allocating": self.is_allocating, "random": self.is_random}
        kernels = {device: inspect.unwrap(kernel.function) for device, kernel in self.kernels.items()}
        prepare = self.prepare_function and (self.prepare_function.function, self.prepare_function.value_inputs)
        # Evaluated: a function that is pickled by value has no names that only its annotations use.
        hints = typing.get_type_hints(self.rule, include_extras=True)
        return _rebuilt, (self.rule, hints, self.name, options, prepare, kernels)


def _imported(module: str, name: str) -> CustomOperator:
    return getattr(importlib.import_module(module), name)


def _rebuilt(
    rule: Callable[..., Any],
    hints: dict[str, Any],
    name: str,
    options: dict[str, Any],
    prepare: tuple[Callable[..., dict[str, Any]], tuple[str, ...] | None] | None,
    kernels: dict[str, Callable[..., Any]],
) -> CustomOperator:
    """Return the registered operator if it is the same, otherwise an unregistered copy."""
    known = catalog.added(name)
    if isinstance(known, CustomOperator) and known.rule is rule:
        return known
    rule.__annotations__ = hints
    made = CustomOperator(rule, name, **options)
    if prepare is not None:
        attach = made.prepare if prepare[1] is None else made.geometry_unless(*prepare[1])
        attach(prepare[0])
    for device, function in kernels.items():
        (made.cpu if device == "cpu" else made.gpu)(function)
    return made


def _invalid(message: str, line: SourceLine | None, hint: str = "") -> OperatorDefinitionError:
    return OperatorDefinitionError(message, line=line or SourceLine.capture(), hint=hint)


def _line(function: Callable[..., Any]) -> SourceLine | None:
    code = getattr(function, "__code__", None)
    return None if code is None else SourceLine.of_code(code)


def _check_name(name: object, line: SourceLine) -> None:
    parts = name.split(".") if isinstance(name, str) else []
    if not parts or not all(_PART.fullmatch(part) and not iskeyword(part) for part in parts):
        raise _invalid(
            f"{name!r} cannot be the name of an operator.",
            line,
            "Use lower-case words joined by single underscores, after a namespace if you like: vignette, "
            "mylab.lens_flare.",
        )
    if "readers" in parts[:-1]:
        text = f"{name!r} cannot be the name of an operator: only readers can be in a namespace named readers."
        raise _invalid(text, line)


def _check_signature(rule: Callable[..., Any], public_name: str, line: SourceLine) -> None:
    """Reject inputs that are not positional-only Specs, and arguments without annotation."""
    try:
        hints = typing.get_type_hints(rule, include_extras=True)
    except Exception as error:
        raise _invalid(f"{public_name}: an annotation cannot be evaluated ({error}).", line) from error
    for item in inspect.signature(rule).parameters.values():
        is_spec = hints.get(item.name) is Spec or Spec in typing.get_args(hints.get(item.name))
        if item.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.VAR_POSITIONAL):
            if not is_spec:
                raise _invalid(f"{public_name}: annotate the input {item.name} as Spec.", line, f"{item.name}: Spec")
            if item.default not in (_KINDS.empty, None):
                raise _invalid(f"{public_name}: the default of the input {item.name} can only be None.", line)
        elif item.kind is _KINDS.VAR_KEYWORD:
            raise _invalid(f"{public_name}: list all arguments; **{item.name} is not supported.", line)
        elif is_spec:
            raise _invalid(
                f"{public_name}: the input {item.name} must be positional-only.", line, "Write `/` after the inputs."
            )
        elif item.kind is _KINDS.POSITIONAL_OR_KEYWORD:
            raise _invalid(
                f"{public_name}: {item.name} must be positional-only (an input) or keyword-only (an argument).",
                line,
                "Write `/` after the inputs and `*` before the arguments.",
            )
        elif item.name not in hints:
            raise _invalid(
                f"{public_name}: the argument {item.name} has no annotation.",
                line,
                f"For example {item.name}: int, or {item.name}: PerSample[float] = 1.0.",
            )
        elif item.name in _RESERVED:
            raise _invalid(f"{public_name}: the argument name {item.name!r} has a meaning for all operators.", line)
    result = hints.get("return", Spec)
    is_tuple = typing.get_origin(result) is tuple
    if result is not Spec and not is_tuple and not isinstance(result, UnionType):
        raise _invalid(f"{public_name}: a rule returns a Spec, or a tuple of Specs; it is annotated {result!r}.", line)


def _check_parameters(operator: Operator, line: SourceLine) -> None:
    for name in operator.own_names:
        item = operator.parameters[name]
        if item.kind != "static" and item.element not in _ELEMENTS:
            raise _invalid(
                f"{operator.public_name}: the argument {item.name} cannot vary per sample: only bool, int, float and "
                "lists of them can.",
                line,
            )
