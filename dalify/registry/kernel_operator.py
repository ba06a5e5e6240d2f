"""The operators with kernels, and the forms in which kernels get the samples of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial, partialmethod
from typing import Any, Unpack

import numpy as np

from dalify.data.batch import Batch
from dalify.registry.groups import on_groups
from dalify.registry.operator import Operator, OperatorFunction, OperatorOptions, declaration_of
from dalify.registry.pairs import Pair, PairCondition, PairKind
from dalify.registry.parameter_group import Parameters
from dalify.registry.parameters import Parameter
from dalify.registry.source import READER_PARAMETERS

# DALI's random operators accept the state of a generator, which its dynamic mode creates: at least 28 bytes. It
# replaces the seed: random numbers depend on nothing else. Names with an underscore are neither documented nor in
# signatures.
RANDOM_STATE = Parameter("_random_state", "per_sample", np.uint32, True, True, None, "list[int]")


class Form(Enum):
    """The form in which a kernel gets the samples of a chunk. It determines the step that calls the kernel."""

    SAMPLES = "takes all samples of a chunk, of any shapes, and fills `Samples`, on the GPU `DeviceSamples`"
    NEW_SAMPLES = "takes `Samples` or `DeviceSamples`, and returns its results in new memory"
    ELEMENTS = "fills arrays ``[N, ...]``, see `on_groups`, and computes each element independently"
    ROWS = "takes the rows of all samples of a chunk in one call, and fills `Rows`"
    NEW_ROWS = "takes `Rows`, and returns its results in new memory"
    VIEW = "returns views of arrays or tensors ``[N, ...]``"
    SELECTION = "returns views of some elements, and has a function that selects from samples of different shapes"
    BATCH = "takes and returns whole batches"
    CHUNK = "takes and returns the batches of a chunk"

    @property
    def is_allocating(self) -> bool:
        """Whether kernels return their results instead of filling outputs."""
        return self not in (Form.SAMPLES, Form.ELEMENTS, Form.ROWS)


class Kernel(OperatorFunction):
    """A function that computes an operator on one device.

    Args:
        function: ``f(out, ..., x, ..., *, parameters)``.
        form: the form in which the function gets samples.
        groups: see `OperatorFunction`.
    """

    __slots__ = ("form",)

    def __init__(
        self, function: Callable[..., Any], form: Form, groups: Mapping[str, type[Parameters]] | None = None
    ) -> None:
        super().__init__(function, groups)
        self.form = form


class MixedKernel(Kernel):
    """A kernel for the device ``mixed``; see ``KernelOperator.mixed_samples``.

    Attributes:
        applies: whether it is used.
        checked_by: name of the operator that checks samples before it.
        parse: the function that parses samples before the turn of their batch.
    """

    __slots__ = ("applies", "checked_by", "parse")

    def __init__(
        self,
        function: Callable[..., Any],
        groups: Mapping[str, type[Parameters]],
        applies: Callable[[Mapping[str, Any]], tuple[bool, str]],
        checked_by: str,
        parse: Callable[[Batch, str], Any],
    ) -> None:
        super().__init__(function, Form.SAMPLES, groups)
        self.applies = applies
        self.checked_by = checked_by
        self.parse = parse


class SelectionKernel(Kernel):
    """A kernel that returns views of its input; see ``KernelOperator.cpu_selection``.

    Attributes:
        selects: the function for samples of different shapes.
    """

    __slots__ = ("selects",)

    def __init__(
        self, function: Callable[..., Any], groups: Mapping[str, type[Parameters]], selects: Callable[..., Any]
    ) -> None:
        super().__init__(function, Form.SELECTION, groups)
        self.selects = OperatorFunction(selects, groups)


class PrepareFunction(OperatorFunction):
    """A function that runs before a kernel; see ``KernelOperator.prepare``.

    Attributes:
        value_inputs: names of the inputs whose values it reads; None for all. See ``geometry``.
    """

    __slots__ = ("value_inputs",)

    def __init__(
        self,
        function: Callable[..., Any],
        groups: Mapping[str, type[Parameters]],
        value_inputs: tuple[str, ...] | None,
    ) -> None:
        super().__init__(function, groups)
        self.value_inputs = value_inputs


class KernelOperator(Operator):
    """An operator that computes its outputs with kernels.

    Args:
        rule: see `Operator`.
        random: see `Operator.is_random`.
        serial: see `Operator.is_serial`.
        side_effect: see `Operator.has_side_effect`.
        foldable: see the attributes, like the following ones.
        stores_any_float: see `foldable`.
        operator_count: see `Operator.operator_count`.
        whole_batch: see `foldable`.
        options: see `OperatorOptions`.

    Attributes:
        kernels: by device: ``cpu``, ``gpu`` and ``mixed``.
        prepare_function: see ``prepare``.
        substitute_function: see ``substitute``.
        scalar_draw_function: see ``scalar_draw``.
        pairs: how the operator is changed before other operators, by their names and kind; see ``before``.
        is_foldable: computed when the graph is built if all inputs are constants.
        stores_any_float: ``dtype`` can be any floating-point type, so that no cast is needed for 16-bit outputs.
        whole_batch: function of the constant arguments and ``on_error`` that returns whether a per-sample operator
            must receive the whole batch in one chunk.
    """

    def __init__(
        self,
        rule: Callable[..., Any],
        *,
        random: bool = False,
        serial: bool = False,
        side_effect: bool = False,
        foldable: bool = False,
        stores_any_float: bool = False,
        operator_count: int = 1,
        whole_batch: Callable[[Mapping[str, Any]], bool] | None = None,
        **options: Unpack[OperatorOptions],
    ) -> None:
        super().__init__(rule, {RANDOM_STATE.name: RANDOM_STATE} if random else None, **options)
        self.is_random = random
        self.is_serial = serial
        self.has_side_effect = side_effect
        self.is_foldable = foldable
        self.stores_any_float = stores_any_float
        self.operator_count = operator_count
        self.whole_batch = whole_batch
        self.kernels: dict[str, Kernel] = {}
        self.prepare_function: PrepareFunction | None = None
        self.substitute_function: OperatorFunction | None = None
        self.scalar_draw_function: OperatorFunction | None = None
        self.pairs: dict[tuple[str, PairKind], Pair] = {}

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices with kernels, without ``mixed``."""
        return tuple(device for device in ("cpu", "gpu") if device in self.kernels)

    @property
    def mixed(self) -> MixedKernel | None:
        """The kernel for the device ``mixed``; None without one."""
        kernel = self.kernels.get("mixed")
        return kernel if isinstance(kernel, MixedKernel) else None

    @property
    def is_batchwise(self) -> bool:
        """Whether kernels take whole batches."""
        return any(kernel.form is Form.BATCH for kernel in self.kernels.values())

    def needs_batch(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether all samples of a batch are computed together.

        Args:
            arguments: constant arguments and ``on_error``.
        """
        return self.is_batchwise or (self.whole_batch is not None and self.whole_batch(arguments))

    def _attach(self, device: str, form: Form, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the kernel of a device."""
        self.kernels[device] = Kernel(function, form, self.groups)
        return function

    # Decorators that attach kernels; `Form` describes what the kernels take and return.
    cpu_samples = partialmethod(_attach, "cpu", Form.SAMPLES)
    gpu_samples = partialmethod(_attach, "gpu", Form.SAMPLES)
    cpu_new_samples = partialmethod(_attach, "cpu", Form.NEW_SAMPLES)
    gpu_new_samples = partialmethod(_attach, "gpu", Form.NEW_SAMPLES)
    cpu_rows = partialmethod(_attach, "cpu", Form.ROWS)
    gpu_rows = partialmethod(_attach, "gpu", Form.ROWS)
    cpu_new_rows = partialmethod(_attach, "cpu", Form.NEW_ROWS)
    gpu_new_rows = partialmethod(_attach, "gpu", Form.NEW_ROWS)
    cpu_batch = partialmethod(_attach, "cpu", Form.BATCH)
    gpu_batch = partialmethod(_attach, "gpu", Form.BATCH)
    cpu_chunk = partialmethod(_attach, "cpu", Form.CHUNK)

    def cpu_elements(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the CPU kernel of arrays ``[N, ...]`` that computes each element independently.

        Its output may be its first input, and its arrays may be one row with the elements of all samples of a chunk.
        """
        self._attach("cpu", Form.ELEMENTS, on_groups(repeats=True)(function))
        return function

    def view(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach one kernel for all devices that returns views of its input, in another shape or layout."""
        self._attach("gpu", Form.VIEW, function)
        return self._attach("cpu", Form.VIEW, function)

    def cpu_selection(self, selects: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Attach the CPU kernel that returns views of its input ``[N, ...]``: elements of each sample.

        Args:
            selects: function that is called instead for samples of different shapes and for operators with several
                inputs. It receives the first input as `Samples`, other inputs as arrays ``[N]``, and constants, and
                returns `Samples` with strides: of one output, or a list of these.
        """

        def attach(function: Callable[..., Any]) -> Callable[..., Any]:
            self.kernels["cpu"] = SelectionKernel(function, self.groups, selects)
            return function

        return attach

    def mixed_samples(
        self,
        applies: Callable[[Mapping[str, Any]], tuple[bool, str]],
        *,
        checked_by: str,
        parse: Callable[[Batch, str], Any],
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Attach the kernel for the device ``mixed``: inputs are `Samples` on the host, outputs `DeviceSamples`.

        Args:
            applies: function of the constant arguments that returns whether the kernel is used, and
                what it uses or why not, for ``explain()``. Otherwise the CPU kernel is used, and results are copied.
            checked_by: name of an operator that returns its input, and raises for samples that the CPU kernel rejects.
                It runs on the CPU before the kernel for ``on_error="skip"``, which needs a sample of the reader instead
                of a bad one. It takes arguments of the same names.
            parse: function of the first input and the torch device. It runs before the turn of the batch, while the
                kernel computes earlier batches, and its result is the attribute `parsed` of the first input. The kernel
                must not need it: it is None if the function raises, and for samples that replace others.
        """

        def attach(function: Callable[..., Any]) -> Callable[..., Any]:
            self.kernels["mixed"] = MixedKernel(function, self.groups, applies, checked_by, parse)
            return function

        return attach

    def prepare(self, function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Attach a function that runs before the kernel.

        It receives the inputs of the chunk as Batches and the named parameters (per-sample ones as arrays), and returns
        further per-sample arrays for the kernel, for instance random crop windows. The key ``out_shapes`` (int64
        ``[N, ndim]``, a list of N shapes, or a tuple: one shape for all) replaces the shapes from the rule, except for
        outputs that are scalars. The key ``out_layout`` (a string) replaces the layout.
        """
        return self._attach_prepare(function, None)

    def geometry(self, function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Attach a `prepare` function that depends only on shapes, types and arguments, not on values.

        Its result is cached for chunks of one shape with constant arguments.
        """
        return self._attach_prepare(function, ())

    def geometry_unless(
        self, *value_inputs: str
    ) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., dict[str, Any]]]:
        """Attach a `prepare` function that reads values of the named inputs.

        Without these inputs, or if they are constants, it is a `geometry`.
        """
        return partial(self._attach_prepare, value_inputs=value_inputs)

    def _attach_prepare(
        self, function: Callable[..., dict[str, Any]], value_inputs: tuple[str, ...] | None
    ) -> Callable[..., dict[str, Any]]:
        self.prepare_function = PrepareFunction(function, self.groups, value_inputs)
        return function

    def scalar_draw(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the function that describes one random number for each sample as a `ScalarDraw`.

        It receives constant arguments, per-sample ones as arrays ``[1, ...]``, and returns None if they ask for other
        numbers or are invalid. The numbers of several such operators are drawn together, not by the kernel.
        """
        self.scalar_draw_function = OperatorFunction(function, self.groups)
        return function

    def before(
        self,
        consumer: str,
        kind: PairKind,
        *,
        into: str,
        takes: Sequence[str],
        keeps: Sequence[str] | None = None,
        adds: Mapping[str, Any] | None = None,
    ) -> Callable[[PairCondition], PairCondition]:
        """Attach the condition under which a third operator replaces this one before another operator; see `Pair`.

        Args:
            consumer: name of the operator that reads the result.
            kind: see `PairKind`.
            into: see `Pair`, also for the following arguments.
            takes: see `into`.
            keeps: see `into`.
            adds: see `into`; None for none.
        """

        def attach(function: PairCondition) -> PairCondition:
            kept = None if keeps is None else tuple(keeps)
            self.pairs[consumer, kind] = Pair(into, tuple(takes), kept, adds or {}, function)
            return function

        return attach

    def substitute(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the function that returns a placeholder for a bad sample, for ``on_error="replace"``.

        It receives an input sample that cannot be decoded and returns one that can. A decoder with this function
        accepts ``on_error``.
        """
        self.substitute_function = OperatorFunction(function, self.groups)
        self.parameters.setdefault("on_error", READER_PARAMETERS["on_error"])
        return function


operator = declaration_of(KernelOperator)
"""Declare an operator with kernels."""
