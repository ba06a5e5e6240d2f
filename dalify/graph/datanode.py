"""``DataNode``: a graph value, which exists per sample when the pipeline runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from dalify.base.errors import ConditionError, PipelineStateError
from dalify.base.not_iterable import NotIterable
from dalify.base.source_line import SourceLine
from dalify.data.dtypes import DALIDataType
from dalify.graph.evaluator import current_evaluator

if TYPE_CHECKING:
    from dalify.graph.node import Edge

__all__ = ["ArithmeticMixin", "DataNode", "Expression", "hook", "install", "new_axis"]

_T = TypeVar("_T")


class _NewAxis:
    """A new axis of extent one in an index.

    ``x[newaxis]``, or with a letter for the layout, ``x[newaxis("F")]``.
    """

    __slots__ = ("name",)

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def __call__(self, name: str) -> _NewAxis:
        """Return a new axis with a layout letter."""
        return _NewAxis(name)

    def __repr__(self) -> str:
        return "dalify.newaxis" if self.name is None else f"dalify.newaxis({self.name!r})"


new_axis = _NewAxis()


class ArithmeticMixin(Generic[_T]):
    """Mixin that maps Python's operators to named functions: ``a + b`` is ``_apply("add", a, b)``."""

    __slots__ = ()

    if TYPE_CHECKING:  # subclasses define it

        def _apply(self, function: str, *operands: Any) -> _T: ...

    def __add__(self, other: Any) -> _T:
        return self._apply("add", self, other)

    def __radd__(self, other: Any) -> _T:
        return self._apply("add", other, self)

    def __sub__(self, other: Any) -> _T:
        return self._apply("sub", self, other)

    def __rsub__(self, other: Any) -> _T:
        return self._apply("sub", other, self)

    def __mul__(self, other: Any) -> _T:
        return self._apply("mul", self, other)

    def __rmul__(self, other: Any) -> _T:
        return self._apply("mul", other, self)

    def __truediv__(self, other: Any) -> _T:
        return self._apply("fdiv", self, other)

    def __rtruediv__(self, other: Any) -> _T:
        return self._apply("fdiv", other, self)

    def __floordiv__(self, other: Any) -> _T:
        return self._apply("div", self, other)

    def __rfloordiv__(self, other: Any) -> _T:
        return self._apply("div", other, self)

    def __mod__(self, other: Any) -> _T:
        return self._apply("mod", self, other)

    def __rmod__(self, other: Any) -> _T:
        return self._apply("mod", other, self)

    def __pow__(self, other: Any) -> _T:
        return self._apply("pow", self, other)

    def __rpow__(self, other: Any) -> _T:
        return self._apply("pow", other, self)

    def __lshift__(self, other: Any) -> _T:
        return self._apply("lshift", self, other)

    def __rlshift__(self, other: Any) -> _T:
        return self._apply("lshift", other, self)

    def __rshift__(self, other: Any) -> _T:
        return self._apply("rshift", self, other)

    def __rrshift__(self, other: Any) -> _T:
        return self._apply("rshift", other, self)

    def __and__(self, other: Any) -> _T:
        return self._apply("bitand", self, other)

    def __rand__(self, other: Any) -> _T:
        return self._apply("bitand", other, self)

    def __or__(self, other: Any) -> _T:
        return self._apply("bitor", self, other)

    def __ror__(self, other: Any) -> _T:
        return self._apply("bitor", other, self)

    def __xor__(self, other: Any) -> _T:
        return self._apply("bitxor", self, other)

    def __rxor__(self, other: Any) -> _T:
        return self._apply("bitxor", other, self)

    def __lt__(self, other: Any) -> _T:
        return self._apply("lt", self, other)

    def __le__(self, other: Any) -> _T:
        return self._apply("leq", self, other)

    def __gt__(self, other: Any) -> _T:
        return self._apply("gt", self, other)

    def __ge__(self, other: Any) -> _T:
        return self._apply("geq", self, other)

    def __eq__(self, other: Any) -> Any:
        return self._apply("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return self._apply("neq", self, other)

    __hash__ = object.__hash__

    def __neg__(self) -> _T:
        return self._apply("minus", self)

    def __pos__(self) -> _T:
        return self._apply("plus", self)

    def __invert__(self) -> _T:
        return self._apply("bitnot", self)

    def __abs__(self) -> _T:
        return self._apply("abs", self)


class Expression(ArithmeticMixin["DataNode"]):
    """Base class of graph values and typed constants with arithmetic.

    A subclass provides ``_apply(function, *operands)`` and ``node()``.
    """

    __slots__ = ()

    # With this, NumPy calls `node.__radd__` for `array + node` instead of adding the node to every element.
    __array_ufunc__ = None

    if TYPE_CHECKING:  # subclasses define it

        def node(self) -> DataNode:
            """Return the expression as a graph value."""
            ...

    def as_argument(self) -> Any:
        """Return the value for a keyword argument of an operator."""
        return self


class DataNode(Expression, metaclass=NotIterable):
    """One output of an operator in a pipeline's graph.

    It has no value while the pipeline is defined. It supports arithmetic, indexing and, inside functions decorated with
    ``@pipeline_def``, conditions, and can be passed to operators.
    """

    __slots__ = ("edge",)

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    def _apply(self, function: str, *operands: Any) -> DataNode:
        return _hooks["arithmetic"](function, operands)

    def node(self) -> DataNode:
        """Return itself."""
        return self

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
        return _hooks["infer"](self.edge).ndim

    @property
    def dtype(self) -> DALIDataType | None:
        """Element type, or None if it is not known from the graph."""
        return _hooks["infer"](self.edge).dtype

    @property
    def layout(self) -> str | None:
        """Layout, or None if it is not known from the graph."""
        return _hooks["infer"](self.edge).layout

    def gpu(self) -> DataNode:
        """Return the value copied to the GPU; itself if it is there already."""
        return _hooks["transfer"](self, "gpu")

    def cpu(self) -> DataNode:
        """Return the value copied to the CPU; itself if it is there already."""
        return _hooks["transfer"](self, "cpu")

    def shape(self, *, dtype: DALIDataType | None = None, device: str = "cpu") -> DataNode:
        """Return the shape of each sample, a vector of ``ndim`` integers.

        Args:
            dtype: type of the integers; INT64 if None.
            device: device of the result.
        """
        result = _hooks["apply"]("_shape", self, dtype=DALIDataType.INT64 if dtype is None else dtype)
        return result.gpu() if device == "gpu" else result.cpu()

    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """Return a property of each sample: ``source_info`` (its origin) or ``layout``, as bytes (UINT8, 1-D).

        Args:
            key: name of the property.
            device: device of the result.
        """
        result = _hooks["apply"]("get_property", self, key=key)
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
        return _hooks["subscript"](self, val)

    def __bool__(self) -> NoReturn:
        raise ConditionError(
            "a graph value was used as a condition, but it has no value yet: it may differ per sample.",
            line=SourceLine.capture(),
            hint="Inside a function decorated with @pipeline_def, `if`, `and`, `or` and `not` work on graph "
            "values; this code was not "
            "rewritten\n  (library code, code without a source file, enable_conditionals=False, or @do_not_convert).",
        )

    def _refuse(self, what: str, hint: str) -> NoReturn:
        raise ConditionError(f"{what} a graph value, which has no value yet.", line=SourceLine.capture(), hint=hint)

    def __iter__(self) -> NoReturn:
        self._refuse(
            "cannot iterate over",
            "The size of a graph value is not known yet; use indexing, fn.reductions or fn.per_frame.",
        )

    def __len__(self) -> NoReturn:
        self._refuse("cannot take len() of", "Use node.shape(), e.g. node.shape()[0].")

    def __int__(self) -> NoReturn:
        self._refuse("cannot convert with int()", "Use fn.cast(node, dtype=types.INT32).")

    def __index__(self) -> NoReturn:
        self._refuse("cannot use as a Python index", "Index a node by a node: data[index].")

    def __float__(self) -> NoReturn:
        self._refuse("cannot convert with float()", "Use fn.cast(node, dtype=types.FLOAT).")

    def __round__(self, digits: int | None = None) -> NoReturn:
        self._refuse(
            "cannot round()", "Use fn.cast(node, dtype=types.INT32), which rounds, or dalify.math.floor(node + 0.5)."
        )

    def __matmul__(self, other: object) -> NoReturn:
        self._refuse("cannot use `@` on", "Multiply matrices with fn.transforms.combine, or use fn.python_function.")

    __rmatmul__ = __matmul__

    def __divmod__(self, other: object) -> NoReturn:
        self._refuse("cannot take divmod() of", "Write node // other and node % other.")

    __rdivmod__ = __divmod__

    def __contains__(self, value: object) -> NoReturn:
        self._refuse("cannot use `in` on", "Compare and reduce: fn.reductions.max(node == value).")

    def get(self) -> Any:
        """Return the value for the samples of this run: a tensor list. In debug mode only.

        Returns:
            None inside a condition that is true for no sample.

        Raises:
            PipelineStateError: the pipeline does not run with ``debug=True``, or the run has ended.
        """
        is_known, value = current_evaluator().value(self.edge)
        if not is_known:
            raise PipelineStateError(
                "a graph value has no value while the graph is defined.",
                line=SourceLine.capture(),
                hint="Create the pipeline with debug=True: its function then runs with the values of each batch.",
            )
        return value

    def __repr__(self) -> str:
        """Return operator, device and the user's line; values only in debug mode."""
        is_known, value = current_evaluator().value(self.edge)
        if is_known:
            return f"<DataNode {self.edge.node!r}:\n{'no samples' if value is None else value}>"
        return f"<DataNode {self.edge.node!r}>"


# The methods of DataNode create nodes, and creating nodes creates DataNodes. To avoid an import cycle, trace.py
# registers its functions here.
_hooks: dict[str, Any] = {}


def install(**functions: Any) -> None:
    """Register the functions that create nodes."""
    _hooks.update(functions)


def hook(name: str) -> Any:
    """Return a registered function."""
    return _hooks[name]
