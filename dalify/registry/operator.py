"""The class of operators and the decorator that declares them.

``@operator`` turns a function into an Operator: its signature is the schema, its docstring the documentation, its
body the rule that maps specs of inputs to specs of outputs. Kernels are attached per device. Everything else
(functions, classes, stubs, documentation, the executor) is derived from this definition.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, overload

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, UnknownArgumentError, suggestion
from dalify.base.optional import LazyModule
from dalify.data.spec import Spec
from dalify.registry.legacy import RETIRED_ARGUMENTS, old_arguments
from dalify.registry.pairs import Pair, PairCondition, PairKind
from dalify.registry.parameter_group import (
    Parameters,
    group_of,
    merged_documentation,
    pack,
    packing,
    parameters_of_group,
)
from dalify.registry.parameters import NO_DEFAULT, Parameter, parameter_of
from dalify.registry.reader_options import READER_PARAMETERS, check_reader_options
from dalify.registry.role import Role

__all__ = ["COMMON_PARAMETERS", "RANDOM_STATE", "SEED", "Input", "Kernel", "Operator", "operator"]

_Options = ParamSpec("_Options")

_OPERATORS_PACKAGE = "dalify.operators."
_MAX_OUTPUTS = 1 << 16

# DALI's random operators take the state of a generator, which its dynamic mode makes: 28 bytes or more. It replaces the
# seed: the batch depends on nothing else. Names with an underscore are neither documented nor part of signatures.
RANDOM_STATE = Parameter("_random_state", "per_sample", np.uint32, True, True, None, "list[int]")

SEED = parameter_of("seed", int, -1)

# Accepted by every operator; used by the graph and the executor, not by kernels.
COMMON_PARAMETERS = ("name", "device", "preserve", "bytes_per_sample_hint", "seed")


@dataclass(frozen=True, slots=True)
class Input:
    """One positional input of an operator."""

    name: str
    is_optional: bool = False
    is_variadic: bool = False


class Kernel:
    """A function that computes an operator on one device.

    Args:
        function: ``f(out, ..., x, ..., *, parameters)``.
        device: ``cpu``, ``gpu`` or ``mixed``.
        takes_samples: the function receives all samples of a chunk in one call, as `Samples`.
        groups: groups of arguments by name, which the function may declare instead of single arguments.

    Attributes:
        function: takes the fields of groups instead of the groups.
        inner: the given function.
        declared: its keyword-only parameters.
        groups: the groups among them, by name.
        names: the keyword-only parameters of `function`.
        takes_samples: the function receives all samples of a chunk in one call, as `Samples`; on the GPU, as
            `DeviceSamples`.
    """

    __slots__ = ("declared", "device", "function", "groups", "inner", "names", "takes_samples")

    def __init__(
        self,
        function: Callable[..., Any],
        device: str,
        *,
        takes_samples: bool = False,
        groups: Mapping[str, type[Parameters]] | None = None,
    ) -> None:
        self.inner = function
        self.declared = _keyword_only(function)
        self.groups = {name: group for name, group in (groups or {}).items() if name in self.declared}
        self.function = packing(function, self.groups)
        self.device = device
        self.takes_samples = takes_samples
        self.names = _keyword_only(self.function)


def _keyword_only(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(item.name for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY)


class Operator:
    """An operator: schema, rule and kernels. Created by the ``operator`` decorator.

    Attributes:
        name: path below ``fn``, e.g. ``decoders.image``.
        doc: the docstring.
        inputs: positional inputs.
        is_variadic: whether it takes any number of inputs.
        required_inputs: names of the inputs that a call must have.
        parameters: keyword arguments by name.
        own_names: names of the arguments in the signature, including those of groups, without common and hidden ones.
        groups: groups of arguments, by the name that rules and kernels give them; see ``parameter_group``.
        old_arguments: deprecated argument names and their replacements.
        rule: the decorated function.
        kernels: by device.
        mixed_applies: whether the kernel for ``mixed`` is used, see ``mixed_samples``; None without one.
        checked_by: name of the operator that checks samples before that kernel, see ``mixed_samples``.
        pairs: how the operator is changed before other operators, by their names and kind; see ``before``.
        outputs: number of outputs, or a function of the constant arguments that returns it.
        is_batchwise: kernels take and return whole batches.
        whole_batch: function of the constant arguments and ``on_error`` that returns whether a per-sample operator
            must receive the whole batch in one chunk.
        is_allocating: kernels return their results instead of filling output arrays.
        selection: see ``selects``.
        is_view: kernels return views of their first input; see ``view``.
        is_listed: kernels take all samples in one call, as a list per input.
        is_ragged: kernels take samples with different first extents in one call, as ``Rows``.
        is_random: draws random numbers; takes ``seed``.
        role: what it is for in a graph. A reader has ``index`` and ``read`` and takes the common reader arguments.
        is_foldable: computed when the graph is built if all inputs are constants.
        is_elementwise: the kernel of the CPU, made by `on_groups`, computes each element by itself. It may get its
            first input as the output.
        is_serial: runs for one batch at a time, in order, as required by Python functions of users.
        has_side_effect: kept even if its outputs are not used.
        takes_mixed: whether the device ``mixed`` is supported: CPU inputs, GPU outputs.
        needs: required optional packages, or a function of the constant arguments that returns them. Checked when a
            pipeline is built.
        runs_user_code: calls Python code of the user; its exceptions keep their class and are also RuntimeErrors.
        effect_function: function of the constant arguments that returns the side effect of a use; see ``effect``.
        stands_for: the expression of the user that this operator implements; used in messages.
        prepares_from_shapes: `prepare` depends only on shapes and arguments; see ``geometry``.
        constructor: positional arguments of the class, in order: ``ops.PythonFunction(function)``.
        alphabetical: the arguments are sorted by name, those of groups among the others.
        stores_any_float: ``dtype`` can be any floating-point type, so that no cast is needed for 16-bit outputs.
        operator_count: number of operators whose Python code it runs for a chunk; it determines the number of chunks.
    """

    def __init__(
        self,
        rule: Callable[..., Any],
        *,
        name: str | None = None,
        outputs: int | Callable[[Mapping[str, Any]], int] = 1,
        batchwise: bool = False,
        whole_batch: Callable[[Mapping[str, Any]], bool] | None = None,
        allocating: bool = False,
        listed: bool = False,
        ragged: bool = False,
        random: bool = False,
        reader: bool = False,
        role: Role = Role.KERNEL,
        foldable: bool = False,
        elementwise: bool = False,
        serial: bool = False,
        side_effect: bool = False,
        mixed: bool = False,
        user_code: bool = False,
        needs: Sequence[LazyModule] | Callable[[Mapping[str, Any]], Sequence[LazyModule]] = (),
        effect: Callable[[Mapping[str, Any]], str] | None = None,
        stands_for: str | None = None,
        constructor: tuple[str, ...] = (),
        alphabetical: bool = False,
        stores_any_float: bool = False,
        operator_count: int = 1,
    ) -> None:
        self.rule = rule
        self.name = name or rule.__module__.removeprefix(_OPERATORS_PACKAGE)
        self.doc = inspect.getdoc(rule) or ""
        self.outputs = outputs
        self.is_batchwise = batchwise
        self.whole_batch = whole_batch
        self.is_allocating = allocating
        self.is_view = False
        self.selection: Kernel | None = None
        self.is_listed = listed
        self.is_ragged = ragged
        self.is_random = random
        self.role = Role.READER if reader else role
        self.is_foldable = foldable
        self.is_elementwise = elementwise
        self.is_serial = serial
        self.has_side_effect = side_effect
        self.takes_mixed = mixed
        self.runs_user_code = user_code
        self.needs = needs
        self.effect_function = effect
        self._stands_for = stands_for
        self.constructor = constructor
        self.stores_any_float = stores_any_float
        self.operator_count = operator_count
        self.kernels: dict[str, Kernel] = {}
        self.mixed_applies: Callable[[Mapping[str, Any]], tuple[bool, str]] | None = None
        self.checked_by: str | None = None
        self.pairs: dict[tuple[str, PairKind], Pair] = {}
        self.prepare_function: Kernel | None = None
        self.prepares_from_shapes = False
        self.index_function: Callable[..., Sequence[Any]] | None = None
        self.read_function: Kernel | None = None
        self.read_many_function: Kernel | None = None
        self.arrange_function: Callable[[list[Any], Mapping[str, Any]], Any] | None = None
        self.origin_function: Callable[[Any], str] | None = None
        self.identity_function: Callable[[Any], tuple[str, str]] | None = None
        self.identity_names: tuple[str, ...] = ()
        self.substitute_function: Kernel | None = None
        self.feed_function: Callable[..., Sequence[Callable[[], Sequence[Any]]]] | None = None
        self.inputs, self.parameters, self.groups = _schema_of(rule)
        self.is_variadic = any(item.is_variadic for item in self.inputs)
        self.required_inputs = [item.name for item in self.inputs if not item.is_optional and not item.is_variadic]
        if alphabetical:
            self.parameters = dict(sorted(self.parameters.items()))
        if self.groups:
            names = [*(item.name for item in self.inputs), *self.parameters]
            self.doc = merged_documentation(self.doc, names, self.groups.values())
        self.own_names = tuple(item for item in self.parameters if not item.startswith("_"))
        if reader:
            self.parameters = {**self.parameters, **READER_PARAMETERS}
        if random:
            self.parameters = {**self.parameters, RANDOM_STATE.name: RANDOM_STATE}
        self.old_arguments = old_arguments(self.name, self.parameters)
        # With shaping arguments, the rule must run for every sample.
        self.shaping = tuple(item.name for item in self.parameters.values() if item.kind == "shaping")
        self.__doc__ = self.doc
        self.__name__ = rule.__name__
        self.__module__ = rule.__module__

    @property
    def is_reader(self) -> bool:
        """Whether it reads the entries of an index."""
        return self.role is Role.READER

    @property
    def is_fed(self) -> bool:
        """Whether the program supplies its data."""
        return self.role is Role.FED

    @property
    def is_source(self) -> bool:
        """Whether it produces data."""
        return self.role.is_source

    @property
    def public_name(self) -> str:
        """The name as users write it: ``fn.decoders.image``, ``indexing``."""
        return self._stands_for or f"fn.{self.name}"

    def cpu(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the CPU kernel (NumPy arrays)."""
        self.kernels["cpu"] = Kernel(function, "cpu", groups=self.groups)
        return function

    def cpu_samples(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the CPU kernel that takes all samples of a chunk in one call, whatever their shapes, as `Samples`."""
        self.kernels["cpu"] = Kernel(function, "cpu", takes_samples=True, groups=self.groups)
        return function

    def gpu(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the GPU kernel (torch tensors; parameters are NumPy arrays)."""
        self.kernels["gpu"] = Kernel(function, "gpu", groups=self.groups)
        return function

    def gpu_samples(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the GPU kernel that takes all samples of a chunk in one call, whatever their shapes.

        Inputs and outputs are `DeviceSamples`: one buffer, and offsets and shapes on the host.
        """
        self.kernels["gpu"] = Kernel(function, "gpu", takes_samples=True, groups=self.groups)
        return function

    def mixed_samples(
        self, applies: Callable[[Mapping[str, Any]], tuple[bool, str]], checked_by: str
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Attach the kernel for the device ``mixed``: inputs are `Samples` on the host, outputs `DeviceSamples`.

        Args:
            applies: function of the constant arguments that returns whether the kernel is used, and
                what it uses or why not, for ``explain()``. Otherwise the CPU kernel is used, and results are copied.
            checked_by: name of an operator that returns its input, and raises for samples that the CPU kernel rejects.
                It runs on the CPU before the kernel for ``on_error="skip"``, which needs a sample of the reader instead
                of a bad one. It takes arguments of the same names.
        """

        def attach(function: Callable[..., Any]) -> Callable[..., Any]:
            self.kernels["mixed"] = Kernel(function, "mixed", takes_samples=True, groups=self.groups)
            self.mixed_applies = applies
            self.checked_by = checked_by
            return function

        return attach

    def view(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach one kernel for all devices, of an allocating operator that returns views of its input."""
        self.is_view = True
        self.cpu(function)
        return self.gpu(function)

    def selects(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach a function that returns which elements of each sample the result of an allocating operator contains.

        The CPU uses it instead of the kernel for samples of different shapes and for operators with several inputs. It
        receives the first input as `Samples`, other inputs as arrays ``[N]``, and constants, and returns `Samples` with
        strides: of one output, or a list of these.
        """
        self.selection = Kernel(function, "cpu", takes_samples=True, groups=self.groups)
        return function

    def effect(self, arguments: Mapping[str, Any]) -> str:
        """Return the side effect of a use of the operator, as a verb phrase; "" for none.

        Serialized graphs from untrusted sources must not contain operators with effects.

        Args:
            arguments: specified arguments by name.
        """
        if self.effect_function is not None:
            return self.effect_function(arguments)
        if self.runs_user_code:
            return "runs Python code"
        return "writes files" if self.has_side_effect else ""

    def prepare(self, function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Attach a function that runs before the samples are grouped.

        It receives the inputs of the chunk as Batches and the named parameters (per-sample ones as arrays), and returns
        further per-sample arrays for the kernel, for instance random crop windows. A key ``out_shapes`` (a list with
        one shape per sample, or a tuple: one shape for all) overrides the shape from the rule, except for outputs that
        are single numbers, ``out_layout`` (a str) the layout.
        """
        self.prepare_function = Kernel(function, "cpu", groups=self.groups)
        return function

    def geometry(self, function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Attach a `prepare` function that depends only on shapes, types and arguments, not on values.

        Its result is cached for chunks of one shape with constant arguments.
        """
        self.prepares_from_shapes = True
        return self.prepare(function)

    def index(self, function: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
        """Attach the index function of a reader: from the arguments to the sequence of entries."""
        self.index_function = function
        return function

    def read(self, function: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        """Attach the read function of a reader: from one entry of the index to a tuple of arrays, one per output.

        Its keyword-only parameters receive the arguments of these names: normalized constants, and per-sample arguments
        as the value of the sample: an array ``[k]`` for lists, and None if not specified.
        """
        self.read_function = Kernel(function, "cpu", groups=self.groups)
        return function

    def read_many(self, function: Callable[..., tuple[Any, ...] | None]) -> Callable[..., tuple[Any, ...] | None]:
        """Attach a fast path of a reader for the entries of a chunk: ``read_many(index, numbers, *, names)``.

        It receives the result of ``index``, the entry numbers, int64 ``[N]``, and arguments by name like ``read``. For
        each output, it returns the same as N calls of ``read``: an array ``[N, ...]``, a `Batch` on the CPU or a list
        of N arrays. Samples do not overlap. It never raises. If a sample needs special handling, it returns None:
        ``read`` is then called for each entry and reports the failing one. It is not called if an argument varies per
        sample, or for remote files.
        """
        self.read_many_function = Kernel(function, "cpu")
        return function

    def before(
        self, consumer: str, kind: PairKind, *, into: str, takes: Sequence[str], keeps: Sequence[str] | None = None
    ) -> Callable[[PairCondition], PairCondition]:
        """Attach the condition under which the operator, before another one, is replaced by a third one; see `Pair`.

        Args:
            consumer: name of the operator that reads the result.
            kind: see `PairKind`.
            into: see `Pair`, like the following arguments.
            takes: see `into`.
            keeps: see `into`.
        """

        def attach(function: PairCondition) -> PairCondition:
            kept = None if keeps is None else tuple(keeps)
            self.pairs[consumer, kind] = Pair(into, tuple(takes), kept, function)
            return function

        return attach

    def arrange(self, function: Callable[[list[Any], Mapping[str, Any]], Any]) -> Callable[..., Any]:
        """Attach a function that arranges the output nodes for the user, given the nodes and the arguments."""
        self.arrange_function = function
        return function

    def origin(self, function: Callable[[Any], str]) -> Callable[[Any], str]:
        """Attach the function of a reader that returns the origin of an entry: its file name or key."""
        self.origin_function = function
        return function

    def identity(self, *names: str) -> Callable[[Callable[[Any], tuple[str, str]]], Callable[[Any], tuple[str, str]]]:
        """Attach the function of a reader that identifies an entry, as a key for caches.

        It receives an entry and returns two strings: a key for the location of the data, the same in all processes and
        for all shards, and a state that changes when the data changes. It may raise OSError if the data does not exist.

        Args:
            names: arguments of ``index`` that affect the data of an entry but are not part of the key. Arguments of
                ``read`` are always included. For a file name, size and modification time are included.
        """

        def attach(function: Callable[[Any], tuple[str, str]]) -> Callable[[Any], tuple[str, str]]:
            self.identity_function = function
            self.identity_names = names
            return function

        return attach

    def feed(self, function: Callable[..., Sequence[Callable[[], Sequence[Any]]]]) -> Callable[..., Any]:
        """Attach the function for ``pipe.feed_input(name, data)``, of an operator without inputs and kernels.

        It receives the list of fed samples, ``batch_size``, and the constant arguments by name, and returns one
        function per iteration of the data. They are called in order, when the iterations start; each returns, for each
        output, an array ``[N, ...]`` or a list of N arrays.
        """
        self.feed_function = function
        self.role = Role.FED
        return function

    def substitute(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the function that returns a placeholder for a bad sample, for ``on_error="replace"``.

        For a reader, it receives an entry of the index and constant arguments by name, and returns a tuple of arrays
        like ``read``; it never raises. None stands for zeros shaped like a readable sample, which is also the default
        of readers without this function. For a decoder, it receives an input sample that cannot be decoded and returns
        one that can. A decoder with this function accepts ``on_error``.
        """
        self.substitute_function = Kernel(function, "cpu", groups=self.groups)
        self.parameters.setdefault("on_error", READER_PARAMETERS["on_error"])
        return function

    def apply_rule(self, specs: Sequence[Spec | None], arguments: Mapping[str, Any]) -> tuple[Spec, ...]:
        """Return the specs of the outputs.

        Args:
            specs: specs of the inputs; trailing optional ones may be missing.
            arguments: arguments by name; the rule receives those that it declares.

        Raises:
            DalifyError: invalid inputs or arguments.
        """
        named = {name: arguments[name] for name in self.own_names if name in arguments}
        if self.is_reader:
            check_reader_options(arguments)
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
            raise UnknownArgumentError(
                f"unknown argument {name!r}.{suggestion(name, known)}",
                operator=self.public_name,
                hint=f"Valid arguments: {', '.join(listed) or 'none'}.",
            )
        return found

    def check_names(self, names: Iterable[str], others: Sequence[str] = ()) -> None:
        """Check the names of arguments before the call that uses them.

        Args:
            names: names of the user; those of all operators, old ones and retired ones are accepted.
            others: further accepted names.

        Raises:
            UnknownArgumentError: the operator does not have the argument.
        """
        accepted = (self.parameters, COMMON_PARAMETERS, self.old_arguments, RETIRED_ARGUMENTS, others)
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


class _Declaration(Protocol[_Options]):
    @overload
    def __call__(self, rule: Callable[..., Any], /) -> Operator: ...
    @overload
    def __call__(self, *_: _Options.args, **options: _Options.kwargs) -> Callable[[Callable[..., Any]], Operator]: ...


def _with_options_of(
    _: Callable[Concatenate[Callable[..., Any], _Options], Operator],
) -> Callable[[Callable[..., Any]], _Declaration[_Options]]:
    """Give a decorator the options of a class, so that they are listed only there."""
    return lambda decorator: decorator


@_with_options_of(Operator)
def operator(rule: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declare an operator.

    Args:
        rule: a function whose positional-only parameters are inputs (``Spec``; with default None: optional; ``*xs``:
            any number), whose other parameters are the arguments of the operator, and which returns the Spec, or tuple
            of Specs, of the outputs.
        options: keyword arguments of ``Operator``; its attributes of the same names, some with ``is_``, describe them.
    """
    if rule is not None:
        return Operator(rule, **options)
    return functools.partial(Operator, **options)
