"""``DataNode``: a graph value, which exists per sample when the pipeline runs; and the functions that create one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from dalify.base.errors import ArgumentTypeError, ConditionError, PipelineStateError, short_repr
from dalify.base.not_iterable import NotIterable
from dalify.base.source_line import SourceLine
from dalify.data.dtypes import DALIDataType
from dalify.graph.branch import current_branch, entered
from dalify.graph.evaluator import Tracing, current_evaluator
from dalify.graph.expression import Expression, TracedValue
from dalify.graph.node import Branch, Edge, new_edge
from dalify.graph.specs import edge_spec
from dalify.graph.subscript import index_entries
from dalify.graph.trace import (
    constant_edge,
    followed_branch,
    is_promotable,
    make_node,
    on_one_device,
    transferred_edge,
)
from dalify.registry import KernelOperator, Operator, Role, catalog


class DataNode(TracedValue["DataNode"], metaclass=NotIterable):
    """One output of an operator in a pipeline's graph.

    It has no value while the pipeline is defined. It supports arithmetic, indexing and, inside functions decorated with
    ``@pipeline_def``, conditions, and can be passed to operators.
    """

    __slots__ = ()

    def _apply(self, function: str, *operands: Any) -> DataNode:
        return arithmetic(function, operands)

    @property
    def name(self) -> str:
        """Name of the node that computes this value."""
        return self.edge.node.label

    @property
    def device(self) -> str:
        """``cpu`` or ``gpu``."""
        return self.edge.device

    @property
    def index(self) -> int:
        """Index of the output of the operator, from 0."""
        return self.edge.output

    @property
    def source(self) -> Any:
        """The operator that computes this value."""
        return self.edge.node.operator

    @property
    def ndim(self) -> int | None:
        """Number of dimensions of a sample, or None if it is not known from the graph."""
        return edge_spec(self.edge).ndim

    @property
    def dtype(self) -> DALIDataType | None:
        """Element type, or None if it is not known from the graph."""
        return edge_spec(self.edge).dtype

    @property
    def layout(self) -> str | None:
        """Layout, or None if it is not known from the graph."""
        return edge_spec(self.edge).layout

    def gpu(self) -> DataNode:
        """Return the value copied to the GPU; itself if it is there already."""
        return transfer(self, "gpu")

    def cpu(self) -> DataNode:
        """Return the value copied to the CPU; itself if it is there already."""
        return transfer(self, "cpu")

    def shape(self, *, dtype: DALIDataType | None = None, device: str = "cpu") -> DataNode:
        """Return the shape of each sample, a vector of ``ndim`` integers.

        Args:
            dtype: type of the integers; INT64 if None.
            device: device of the result.
        """
        result = apply("_shape", self, dtype=DALIDataType.INT64 if dtype is None else dtype)
        return result.gpu() if device == "gpu" else result.cpu()

    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """Return a property of each sample: ``source_info`` (its origin) or ``layout``, as bytes (UINT8, 1-D).

        Args:
            key: name of the property.
            device: device of the result.
        """
        result = apply("get_property", self, key=key)
        return result.gpu() if device == "gpu" else result.cpu()

    def source_info(self, *, device: str = "cpu") -> DataNode:
        """Return the origin of each sample, as bytes (UINT8, 1-D).

        Args:
            device: device of the result.
        """
        return self.property("source_info", device=device)

    def __getitem__(self, val: Any) -> DataNode:
        """Return an element or a slice of each sample.

        Args:
            val: integers, slices, nodes with one integer per sample, ``newaxis``, ``...``, or a tuple of these.
        """
        return _subscript(self, val)

    def __bool__(self) -> NoReturn:
        raise ConditionError(
            "a graph value was used as a condition, but it has no value while the pipeline is defined.",
            line=(line := SourceLine.capture()),
            hint="`if`, `and`, `or` and `not` work on graph values only in code that dalify can rewrite. "
            + (
                "This code has no source file: save it in a file or run it in a notebook."
                if line is not None and not line.text
                else "Library code, wrappers such as functools.lru_cache, functions marked with @do_not_convert, and "
                "pipelines with enable_conditionals=False are not rewritten."
            ),
        )

    def _reject(self, use: str, hint: str) -> NoReturn:
        operator = self.edge.node.operator
        name = operator.public_name
        is_outside = not isinstance(current_evaluator(), Tracing)  # of a pipeline, so the user may expect a result
        if is_outside and isinstance(operator, KernelOperator) and name.startswith("fn."):
            hint = f"{name} adds a node to a pipeline. Call eager{name[2:]} to compute at once."
        raise ConditionError.here(
            f"a graph value cannot be {use}: it has no value while the pipeline is defined.", hint=hint
        )

    def __iter__(self) -> NoReturn:
        operator = self.edge.node.operator
        several = "; set num_outputs= for several" if "num_outputs" in operator.parameters else ""
        self._reject(
            "iterated over or unpacked",
            f"It is one output of {operator.public_name}{several}. Index it, x[0], x[1], or use fn.reductions or "
            "fn.per_frame.",
        )

    def __len__(self) -> NoReturn:
        self._reject(
            "the argument of len()",
            "Use x.shape()[0], which is a graph value. Functions of torch need data: call them in fn.python_function.",
        )

    def __int__(self) -> NoReturn:
        self._reject("converted with int()", "Use fn.cast(x, dtype=types.INT32).")

    def __index__(self) -> NoReturn:
        self._reject(
            "used as a Python integer",
            "range() and indices of lists need numbers that are known now. A graph value can be indexed by a graph "
            "value: x[index].",
        )

    def __float__(self) -> NoReturn:
        self._reject(
            "converted with float()", "Use fn.cast(x, dtype=types.FLOAT), or a function of dalify.math instead of math."
        )

    def __format__(self, specification: str) -> str:
        """Return the ``repr``; a format such as ``:.2f`` needs a value."""
        if specification:
            self._reject("formatted", "Create the pipeline with debug=True to print values, or print its outputs.")
        return repr(self)

    def __round__(self, digits: int | None = None) -> NoReturn:
        self._reject(
            "rounded with round()",
            "Use fn.cast(x, dtype=types.INT32), which rounds, or dalify.math.floor(x + 0.5).",
        )

    def __matmul__(self, other: object) -> NoReturn:
        self._reject("an operand of `@`", "Multiply matrices with fn.transforms.combine, or use fn.python_function.")

    __rmatmul__ = __matmul__

    def __divmod__(self, other: object) -> NoReturn:
        self._reject("an operand of divmod()", "Write x // y and x % y.")

    __rdivmod__ = __divmod__

    def __contains__(self, value: object) -> NoReturn:
        self._reject("searched with `in`", "Compare and reduce: fn.reductions.max(x == value).")

    def __array_function__(self, function: Any, *_: object) -> NoReturn:
        # Otherwise NumPy computes with an array whose element is the graph value: flip() returns it unchanged.
        self._reject(
            f"an argument of {function.__module__}.{function.__name__}()",
            "Use operators of dalify.fn, such as fn.reductions.mean, or call NumPy in fn.python_function.",
        )

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        # Otherwise NumPy makes an array of one object.
        self._reject("converted to an array", "Omit the conversion, or do it in fn.python_function.")

    def get(self) -> Any:
        """Return the value for the samples of this run: a tensor list. In debug mode only.

        Returns:
            the samples; None inside a condition that is true for no sample.

        Raises:
            PipelineStateError: the pipeline does not run with ``debug=True``, or the run has ended.
        """
        is_known, value = current_evaluator().value(self.edge)
        if not is_known:
            raise PipelineStateError.here(
                "a graph value has no value while the graph is defined.",
                hint="Create the pipeline with debug=True: its function then runs with the values of each batch.",
            )
        return value

    def __repr__(self) -> str:
        """Return operator, device and the user's line; values only in debug mode."""
        is_known, value = current_evaluator().value(self.edge)
        if is_known:
            return f"<DataNode {self.edge.node!r}:\n{'no samples' if value is None else value}>"
        return f"<DataNode {self.edge.node!r}>"


def call(operator: Operator, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> DataNode | list[DataNode] | None:
    """Create a node for one call of an operator, and pass it to the active evaluator.

    Args:
        operator: the operator.
        inputs: positional arguments: nodes, or numbers and arrays that become constants.
        arguments: keyword arguments of the user.

    Returns:
        one DataNode, a list of several, or None for an operator without outputs.

    Raises:
        DalifyError: wrong number of inputs, unknown or unusable arguments; with the user's line.
    """
    node = make_node(operator, inputs, arguments, current_evaluator().receive_node)
    results = [DataNode(Edge(node, output)) for output in range(node.output_count)]
    return results[0] if len(results) == 1 else (results or None)


def split(node: DataNode, predicate: DataNode) -> tuple[DataNode, DataNode]:
    """Split a value by a predicate into values of two open branches: true samples and false samples.

    Args:
        node: the value.
        predicate: one boolean or number per sample.
    """
    line = SourceLine.capture()
    parent = followed_branch([node.edge, predicate.edge])
    sides: list[DataNode] = []
    for taken in (True, False):
        with entered(Branch(predicate.edge, taken, parent, line, is_open=True)):
            sides.append(apply("copy", node))
    return sides[0], sides[1]


def apply(name: str, *inputs: Any, **arguments: Any) -> DataNode:
    """Call an operator with one output by its name."""
    result = call(catalog.find(name), inputs, arguments)
    assert isinstance(result, DataNode), f"dalify bug: {name} does not have one output"
    return result


def constant(value: Any, dtype: DALIDataType | None = None, layout: str = "", device: str = "cpu") -> DataNode:
    """Create a node with the same value for every sample.

    Args:
        value: number or array. As in DALI, Python integers are INT32 and Python floats FLOAT; arrays keep their type;
            lists of Python numbers follow the rule for numbers.
        dtype: element type, instead of that rule.
        layout: layout of an array.
        device: device of the result, ``cpu`` or ``gpu``.

    Raises:
        ArgumentValueError: another device.
        IntegerRangeError: an integer does not fit 32 bits and there is no dtype.
        GraphError: not a number, an array, or a nested list of numbers.
    """
    return DataNode(constant_edge(value, dtype, layout, device))


def transfer(node: DataNode, device: str) -> DataNode:
    """Return a copy on another device; the node itself if it is there already."""
    edge = transferred_edge(node.edge, device)
    return node if edge is node.edge else DataNode(edge)


def merge(
    condition: DataNode,
    if_true: DataNode,
    if_false: DataNode,
    name: str = "",
    lines: tuple[SourceLine | None, SourceLine | None] = (None, None),
) -> DataNode:
    """Create the node that is ``if_true`` for samples whose condition is true and ``if_false`` for the others.

    Args:
        condition: one boolean or number per sample.
        if_true: value from the true branch of the condition, or before it.
        if_false: value from the false branch, or before it.
        name: name of the variable, for messages; "and" or "or" for the result of such an expression.
        lines: where the two values were assigned.
    """
    edges, device = on_one_device([if_true.edge, if_false.edge])
    inputs, arguments = (condition.edge, *edges), {"variable": name, "lines": lines}
    branch = followed_branch([condition.edge])
    return DataNode(new_edge(Role.MERGE, inputs, arguments, device, branch=branch, line=SourceLine.capture()))


def choose(index: DataNode, sides: Sequence[Callable[[], DataNode]]) -> DataNode:
    """Trace all sides and return the value that is ``sides[index]()`` for each sample.

    Like a chain of ``if index == k``, but samples are split and joined once for any number of sides.

    Args:
        index: one integer per sample, on the CPU, at least 0 and less than the number of sides; other values are an
            error when the pipeline runs.
        sides: at least one; each returns the value of its branch.

    Raises:
        ConditionError: the index is on the GPU.
    """
    line = SourceLine.capture()
    if index.device == "gpu":
        raise ConditionError(
            "the index that selects a branch is on the GPU; the branch of each sample is decided on the CPU.",
            line=line,
            hint="Compute it with device='cpu', or copy it with .cpu().",
        )
    parent = current_branch()
    values: list[Edge] = []
    for number, side in enumerate(sides):
        with entered(Branch(index.edge, number, parent, line)):
            values.append(side().edge)
    edges, device = on_one_device(values)
    return DataNode(new_edge(Role.JOIN, (index.edge, *edges), {}, device, branch=parent, line=line))


def logical_not(node: DataNode) -> DataNode:
    """Create the node that is true if a value is false or zero."""
    return apply("_conditional.not_", node)


def arithmetic(function: str, operands: Sequence[Any]) -> DataNode:
    """Create the node of an element-wise function of nodes, typed constants and numbers."""
    for operand in operands:
        if not isinstance(operand, Expression) and not is_promotable(operand):
            raise ArgumentTypeError.here(
                "an operand of arithmetic and comparisons with graph values must be a number, an array or a graph "
                f"value; got {short_repr(operand)}."
            )
    return apply("arithmetic", *operands, function=function)


def _subscript(node: DataNode, index: Any) -> DataNode:
    entries, nodes = index_entries(index, DataNode, "a graph value or newaxis")
    return apply("tensor_subscript", node, *nodes, items=entries)
