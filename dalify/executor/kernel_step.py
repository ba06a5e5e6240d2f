"""The base class of steps that call kernels: arguments, random numbers, specs, memory for results, errors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dalify.base.errors import DalifyError, DTypeError, LimitError, ShapeError
from dalify.base.failure_context import failure_context
from dalify.base.limits import check_shape, current
from dalify.base.narrow import is_array, is_list, is_tuple
from dalify.base.optional import LazyModule, torch
from dalify.base.recent import Recent
from dalify.base.wording import counted
from dalify.data import Array, Batch, Spec, torch_dtype
from dalify.data.samples import Samples
from dalify.executor.frame import Frame
from dalify.executor.origins import origins_of
from dalify.executor.shape_table import ShapeTable
from dalify.executor.step_call import StepCall
from dalify.executor.step_function import StepFunction
from dalify.executor.steps import Step, cause, device_error, is_foreign, located, note_sample, with_substitutes
from dalify.executor.values import Argument
from dalify.graph import Edge, Node, rule_arguments
from dalify.registry import RANDOM_STATE, Form, Kernel, KernelOperator, OperatorFunction

if TYPE_CHECKING:
    from dalify.kernels.random import philox
    from dalify.kernels.random.philox import SampleDraws
else:
    # This imports numba, which pipelines without random numbers do not need.
    philox = LazyModule("dalify.kernels.random.philox", "drawing random numbers")

_CACHE_LIMIT = 4096
MAX_DIMENSIONS = 32  # of a sample: the limit of many NumPy functions
_BYTES = np.dtype(np.uint8)
# Arguments that kernels may declare in addition to the parameters of the operator.
_CONTEXT = frozenset({"spec", "specs", "out_spec", "out_specs", "count", "draws", "memory", "is_discarded"})


class KernelStep(Step):
    """Calls the kernel of an operator; subclasses differ in the form of the chunk that they pass to the kernel.

    Args:
        node: the node to compute.
        inputs: slots of the inputs; None for a missing optional one.
        outputs: slots of the results.
        argument_slots: slots of per-sample arguments by name.
        device: ``cpu`` or ``gpu``.
        seed: combined seed of pipeline and node; None for operators without random numbers.
        stream: distinguishes the random numbers of nodes with the same seed.
    """

    def __init__(
        self,
        node: Node,
        inputs: tuple[int | None, ...],
        outputs: tuple[int, ...],
        argument_slots: Mapping[str, int],
        device: str,
        seed: int | None,
        stream: int,
    ) -> None:
        super().__init__(node, inputs, outputs)
        operator = node.operator
        assert isinstance(operator, KernelOperator), f"dalify bug: {operator.name} has no kernels"
        self.device = device
        self._operator = operator
        self._kernel = self._kernel_of(operator)
        self._is_allocating = self._kernel.form.is_allocating
        self._seed = seed
        self._stream = stream
        self._static: dict[str, Any] = {}
        self._arguments: dict[str, Argument] = {}
        self._rule_arguments = rule_arguments(node)
        for name, parameter in operator.parameters.items():
            value = node.arguments.get(name, parameter.default)
            if parameter.kind == "static":
                self._static[name] = value
            else:
                slot = argument_slots.get(name)
                self._arguments[name] = Argument(parameter, None if isinstance(value, Edge) else value, slot)
        self._constants = {name: self._static[name] for name in self._kernel.names if name in self._static}
        self._repeated = not argument_slots  # then the arguments depend only on the number of samples
        self._last_arguments: tuple[int, dict[str, Any]] = (0, {})
        self._given = {name: argument for name, argument in self._arguments.items() if argument.slot is not None}
        prepare = operator.prepare_function
        self._kernel_function = self._bound(self._kernel)
        self._prepare_function = None if prepare is None else self._bound(prepare)
        # Without inputs and random shapes, everything except the call depends only on the number of samples.
        self._is_constant = (
            self._repeated and not inputs and not (operator.is_random and operator.prepare_function is not None)
        )
        self._wanted = frozenset(self._kernel.names) & _CONTEXT
        self._varying = tuple(name for name in operator.shaping if name in argument_slots)
        self._missing = sum(1 for item in operator.inputs if not item.is_variadic) - len(inputs)
        self._specs: Recent[tuple[Spec, ...]] = Recent(_CACHE_LIMIT)
        self._known_open_specs: tuple[list[Any], tuple[Spec, ...]] = ([], ())  # for the last types and layouts

    @property
    def random_stream(self) -> tuple[int, int]:
        """Seed and stream of the random numbers."""
        assert self._seed is not None, f"dalify bug: {self._operator.name} has no random numbers"
        return self._seed, self._stream

    def _kernel_of(self, operator: KernelOperator) -> Kernel:
        """Return the kernel that the step calls."""
        return operator.kernels[self.device]

    def _bound(self, function: OperatorFunction) -> StepFunction:
        """Return a function of the operator with the arguments of the step."""
        return StepFunction(function, self._static, self._given)

    def run(self, frame: Frame) -> None:
        """Compute the outputs of the chunk's samples."""
        inputs: list[Batch | None] = []  # few function calls, here and below, for speed
        origins: Any = None  # as in `origins_of`
        for slot in self.inputs:
            batch = None if slot is None else frame.values[slot]
            inputs.append(batch)
            if origins is None and batch is not None:
                origins = batch.origins
        branch = self.node.branch
        count = frame.count if branch is None else len(frame.positions(branch))
        if count == 0:
            for slot in self.outputs:
                frame.values[slot] = None
            return
        if self._missing > 0:
            inputs += [None] * self._missing
        if frame.substitutes and self.node in frame.substitutes:
            inputs[0] = with_substitutes(inputs[0], self.node, frame, self._operator.substitute_function)
        call = StepCall(frame, inputs, count, origins, {})
        try:
            known, arguments = self._last_arguments
            if known != count or not self._repeated:
                arguments = self._argument_values(frame, count)
            call.arguments = arguments
            if self._seed is not None:
                call.draws = self._draws(frame, frame.positions(branch), arguments)
            results = self._compute(call)
        except Exception as error:
            if isinstance(error, DalifyError) and failure_context(error).failure is None:
                note_sample(error, 0, None)  # the sample of an argument, counted from the start of the chunk
            refusal = device_error(error, self.node) if self.device == "gpu" else None
            if refusal is not None:
                raise refusal from error
            if is_foreign(error, self.node) and failure_context(error).sample is None and count > 1:
                self._raise_of_sample(call)
            raise self._locate_error(error, call) from cause(error, self.node)
        # After a kernel the cache is cold: `zip` would take several times as long.
        for output, slot in enumerate(self.outputs):
            frame.values[slot] = results[output]

    def _raise_of_sample(self, call: StepCall) -> None:
        """Compute the samples of a chunk one by one, and raise the error of the first that fails.

        For errors of libraries, which do not contain the sample. Operators that need the whole batch are excluded.
        """
        if self._kernel.form is Form.BATCH or self._operator.whole_batch is not None:
            return
        frame = call.frame
        positions = frame.positions(self.node.branch)
        arguments = self._argument_values(frame, call.count)
        for sample in range(call.count):
            index = int(positions[sample]) - frame.start
            alone = frame.part(index, index + 1, None)
            xs = [None if batch is None else batch.slice(sample, sample + 1) for batch in call.inputs]
            one = {
                name: value if value is None or isinstance(value, str) else value[sample : sample + 1]
                for name, value in arguments.items()
            }
            draws = self._draws(frame, positions[sample : sample + 1], arguments)
            try:
                self._compute(StepCall(alone, xs, 1, origins_of(xs), one, draws))
            except Exception as error:
                failure_context(error).sample = sample
                raise self._locate_error(error, call) from cause(error, self.node)

    def _draws(self, frame: Frame, positions: np.ndarray[Any, Any], arguments: Mapping[str, Any]) -> SampleDraws | None:
        """Return the random numbers of samples; None for operators without random numbers."""
        if self._seed is None:
            return None
        state = arguments.get(RANDOM_STATE.name)
        if state is not None:
            return philox.Draws(philox.seed_of(state[0])).at(positions)
        if frame.rows is not None and self._kernel.form is not Form.BATCH:
            return philox.Draws(self._seed, self._stream).at(frame.rows[positions])
        drawing = frame.drawing.get(self.node.number) or (self._seed, self._stream, frame.step)
        return philox.SampleDraws(philox.Draws(*drawing), positions)

    def _argument_values(self, frame: Frame, count: int) -> dict[str, Any]:
        """Return the per-sample arguments by name. Do not modify them."""
        known, constants = self._last_arguments
        if known != count:
            constants = {
                name: argument.array(frame, count)
                for name, argument in self._arguments.items()
                if argument.slot is None
            }
            self._last_arguments = (count, constants)
        if self._repeated:
            return constants
        values = dict(constants)
        for name, argument in self._given.items():
            values[name] = argument.array(frame, count)
        return values

    def _locate_error(self, error: Exception, call: StepCall) -> Exception:
        sample: int | None = failure_context(error).sample
        origin = None
        if sample is not None:
            if call.origins is not None:
                origin = call.origins[sample]
            sample = int(call.frame.positions(self.node.branch)[sample])
        return located(error, self.node, sample, origin)

    def _context(self, name: str, call: StepCall, specs: tuple[Spec, ...]) -> Any:
        """Return an argument that a kernel declares in addition to parameters. Specs have no shapes."""
        if name == "spec":
            return _open_spec_of(call.inputs)
        if name == "specs":
            return tuple(None if batch is None else batch.open_spec() for batch in call.inputs)
        if name == "out_spec":
            return specs[0] if specs[0].shape is None else specs[0].replace(shape=None)
        if name == "out_specs":
            return specs
        return call.count if name == "count" else call.draws

    @abstractmethod
    def _compute(self, call: StepCall) -> list[Batch]:
        """Return the outputs of the samples."""

    def _call_kernel(self, filled: list[Any], xs: list[Any], named: dict[str, Any], start: int, size: int) -> Any:
        """Call the kernel; record the sample of an error."""
        try:
            return self._kernel.function(*filled, *xs, **named)
        except Exception as error:
            note_sample(error, start, 0 if size == 1 else None)
            raise

    def _as_batches(self, results: Any, specs: tuple[Spec, ...], origins: Any) -> list[Batch]:
        """Return batches for the value of an allocating kernel: a tuple for several outputs, None for no output."""
        parts = (results,) if len(specs) == 1 and not is_tuple(results) else results or ()
        return [self._as_batch(part, spec, origins) for part, spec in zip(parts, specs, strict=True)]

    def _as_batch(self, result: Any, spec: Spec, origins: Any) -> Batch:
        """Return the batch for one output: a batch, an array or a list of arrays."""
        if isinstance(result, Batch):
            return result
        data = (None, result) if is_list(result) else (result, None)
        fits = origins is not None and len(origins) == len(result)
        return Batch(*data, spec.layout or "", self.device, origins if fits else None)

    def _allocate(
        self, frame: Frame, output: int, start: int, count: int, spec: Spec, shape: tuple[int, ...] | None
    ) -> Array:
        """Return memory for samples of an output with equal shapes."""
        assert shape is not None, f"dalify bug: {self._operator.name} gave no shape"
        if spec.dtype is None:
            raise DTypeError("the element type of the result is not known.", operator=self._operator.public_name)
        if self.device == "gpu":
            return torch.empty((count, *shape), dtype=torch_dtype(spec.dtype), device=frame.torch_device)
        dtype, slot = spec.dtype.numpy, self.outputs[output]
        if self.node.branch is not None or slot not in frame.collectors:
            return frame.arena.empty((count, *shape), dtype)
        return frame.memory(slot, count, shape, dtype, start)

    def _memory_of(self, call: StepCall, output: int, spec: Spec, shapes: Any, like: Any = None) -> Batch:
        """Return an uninitialized batch for samples of equal shapes (a tuple) or different shapes (a `ShapeTable`).

        Args:
            call: the samples.
            output: index of the output.
            spec: dtype and layout of the output.
            shapes: shapes of the output.
            like: the samples of the first input, or None.
        """
        if not isinstance(shapes, ShapeTable):
            dense = self._allocate(call.frame, output, 0, call.count, spec, shapes)
            return Batch(dense, None, spec.layout or "", self.device, call.origins, spec.dtype)
        if spec.dtype is None:
            raise DTypeError("the element type of the result is not known.", operator=self._operator.public_name)
        offsets, size_bytes = shapes.block_offsets(spec.dtype.numpy.itemsize)
        block, is_lasting = self._block(call.frame, output, size_bytes)
        ragged = block, offsets, shapes.shapes
        batch = Batch(None, None, spec.layout or "", self.device, call.origins, spec.dtype, ragged)
        batch.is_lasting = is_lasting
        Samples.of_batch(batch).table = shapes
        return batch

    def _block(self, frame: Frame, output: int, size_bytes: int) -> tuple[np.ndarray[Any, Any], bool]:
        """Return memory for a ragged chunk, and whether it is not scratch memory."""
        collector = frame.collectors.get(self.outputs[output])
        allocate = frame.arena.empty if collector is None else collector.block
        return allocate((size_bytes,), _BYTES), collector is not None

    def _prepare(self, call: StepCall, function: StepFunction | None = None) -> dict[str, Any]:
        """Return the result of `prepare`.

        Args:
            call: the samples.
            function: `prepare` with other constants; by default with the constants of the step.
        """
        function = function or self._prepare_function
        if function is None:
            return {}
        named = function.named(call.arguments, call.count)
        if "draws" in function.names:
            named["draws"] = call.draws
        if "count" in function.names:
            named["count"] = call.count
        if "spec" in function.names:
            named["spec"] = _open_spec_of(call.inputs)
        try:
            return dict(function.function(*call.inputs, **named))
        except Exception as error:
            if not self._varying:
                self._specs_of_sample(call, 0)  # raises the error of the rule for an input of the wrong type
            note_sample(error, 0, None)
            raise

    def _specs_of_sample(
        self, call: StepCall, sample: int, shape: tuple[int, ...] | None = None, layout: str | None = None
    ) -> tuple[Spec, ...]:
        """Return the specs of the outputs of one sample.

        Args:
            call: the samples.
            sample: index of the sample.
            shape: shape that ``prepare`` specifies; None for the shape of the rule.
            layout: layout that ``prepare`` specifies; None for the layout of the rule.
        """
        # Lists, because generators are slower.
        in_specs = tuple([None if batch is None else batch.spec_of(sample) for batch in call.inputs])
        # Values of arguments that determine shapes and differ between samples.
        shaping: tuple[Any, ...] = tuple([_plain(call.arguments[name][sample]) for name in self._varying])
        described = [None if x is None else (x.dtype, x.layout, x.ndim, x.shape) for x in in_specs]
        key = (*described, shaping, shape, layout)
        out_specs = self._specs.get(key)
        if out_specs is None:
            rule_arguments = {**self._rule_arguments, **dict(zip(self._varying, shaping, strict=True))}
            try:
                out_specs = with_layout(self._operator.apply_rule(in_specs, rule_arguments), layout)
            except DalifyError as error:
                failure_context(error).sample = sample
                raise
            if shape is not None:
                out_specs = tuple(spec.replace(shape=shape) for spec in out_specs)
            for spec in out_specs:
                self._check_size(spec.shape, spec, sample)
            self._specs.put(key, out_specs)
        return out_specs

    def _open_specs(self, inputs: list[Batch | None], layout: str | None = None) -> tuple[Spec, ...]:
        """Return the specs of the results without their shapes.

        Args:
            inputs: inputs of the step.
            layout: layout that ``prepare`` specifies; None for the layout of the rule.
        """
        key: list[Any] = [layout]
        for batch in inputs:
            key.append(None if batch is None else (batch.dtype, batch.layout, batch.ndim))
        known, specs = self._known_open_specs
        if known != key:
            opened = tuple(None if batch is None else batch.open_spec() for batch in inputs)
            specs = with_layout(self._operator.apply_rule(opened, self._rule_arguments), layout)
            self._known_open_specs = key, specs
        return specs

    def _check_sizes(self, table: ShapeTable, spec: Spec) -> None:
        """Check the size of the largest of samples of different shapes."""
        # The exact check is also needed for empty samples, for instance, because other extents may be too large.
        most_bytes = table.most_elements * (1 if spec.dtype is None else spec.dtype.numpy.itemsize)
        if not table.is_full or most_bytes > current().max_sample_bytes or table.shapes.shape[1] > MAX_DIMENSIONS:
            self._check_size(table.shape(table.largest), spec, table.largest)

    def _check_size(self, shape: tuple[int, ...] | None, spec: Spec, start: int) -> None:
        if shape is None:
            return
        if len(shape) > MAX_DIMENSIONS:
            raise ShapeError(f"a result has {counted(len(shape), 'dimension')}; the maximum is {MAX_DIMENSIONS}.")
        try:
            check_shape(shape, 1 if spec.dtype is None else spec.dtype.numpy.itemsize, "a result")
        except LimitError as error:
            failure_context(error).sample = start
            # If two operators were joined, the last one with such an argument determines the shape.
            error.argument = next(
                (name for name in reversed(self._operator.shaping) if name in self.node.arguments), None
            )
            raise


def _open_spec_of(inputs: Sequence[Batch | None]) -> Spec | None:
    """Return the spec of the first input that is not absent, without shapes."""
    for batch in inputs:
        if batch is not None:
            return batch.open_spec()
    return None


def with_layout(specs: tuple[Spec, ...], layout: str | None) -> tuple[Spec, ...]:
    """Return specs with the layout that ``prepare`` specifies; None for the layout of the rule."""
    return specs if layout is None else tuple(spec.replace(layout=layout) for spec in specs)


def _plain(value: Any) -> Any:
    if is_array(value):
        return tuple(value.tolist()) if value.ndim else value.item()
    return cast("Any", value).item() if isinstance(value, np.generic) else value
