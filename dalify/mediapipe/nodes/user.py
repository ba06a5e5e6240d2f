"""Operators that run user code: external readers and functions on whole batches."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalify import fn as dali
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, SourceError, option_error_text, short_repr
from dalify.base.wording import counted
from dalify.mediapipe.backend.operator_specs import OperatorSpec
from dalify.mediapipe.media_types import dtype as types
from dalify.mediapipe.media_types import readerOutType, to_dalify_type
from dalify.mediapipe.node import Lowering, Operation, Value, operator, with_layout
from dalify.mediapipe.nodes.readers import path_rows


@dataclass(frozen=True)
class FrameworkParams:
    """Information about the pipe for a user's reader.

    Attributes:
        batch_size: samples per batch.
    """

    batch_size: int


class _ExternalReader:
    """Batches of a user's reader, checked."""

    def __init__(self, reader: Any, count: int, kind: str, dtypes: Sequence[Any]) -> None:
        self._reader = reader
        self._count = count
        self._kind = kind
        self._dtypes = dtypes
        self._iterator: Any = None

    def start_epoch(self) -> None:
        self._iterator = iter(self._reader)

    def next_batch(self) -> tuple[tuple[Any, ...], int]:
        batch = next(self._iterator)
        name = f"{type(self._reader).__name__}.__next__"
        results = [batch[0] if _is_nested(batch) else batch] if self._count == 1 else batch
        if not isinstance(results, (list, tuple)) or len(results) != self._count:
            found = f"{len(results)} results" if isinstance(results, (list, tuple)) else type(results).__name__
            raise SourceError(f"{name} returned {found}, but num_outputs is {self._count}.")
        listed = results[0]
        if not isinstance(listed, (list, tuple, np.ndarray)) or not len(listed):
            wanted = "files as uint8 arrays" if self._kind == "file" else "paths"
            found = "none" if isinstance(listed, (list, tuple, np.ndarray)) else type(listed).__name__
            raise SourceError(f"the first result of {name} must be a list of {wanted}; got {found}.")
        first = [_file(each, name) for each in listed] if self._kind == "file" else path_rows(listed)
        others = [
            _array(each, dtype, f"result {index} of {name}")
            for index, (each, dtype) in enumerate(zip(results[1:], self._dtypes[1:], strict=True), 1)
        ]
        for index, each in enumerate(others, 1):
            if each.ndim == 0 or len(each) != len(first):
                raise SourceError(
                    f"result {index} of {name} has shape {each.shape}, but there are {counted(len(first), 'file')}."
                )
        return (first, *others), len(first)

    def __len__(self) -> int:
        return len(self._reader)


def _is_nested(batch: Any) -> bool:
    """Return whether the only result is nested in a list of results."""
    return isinstance(batch, (list, tuple)) and len(batch) == 1 and isinstance(batch[0], (list, tuple))


def _file(content: Any, name: str) -> np.ndarray[Any, Any]:
    if isinstance(content, (bytes, bytearray, memoryview)):
        return np.frombuffer(content, np.uint8)
    return _array(content, np.uint8, f"a file of {name}, whose get_media_output_type() is BUFFER_LIST,")


def _array(value: Any, dtype: Any, what: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"{what} is not an array{'' if dtype is None else f' of {np.dtype(dtype)}'}: {error}"
        ) from error


_Kind = inspect.Parameter


def _seed(context: Lowering, seed: int | None) -> int | None:
    return context.seed if seed is None else seed


def _create(cls: Any, params: dict[str, Any], framework: FrameworkParams, method: str) -> Any:
    """Create a user's object: older classes take one argument, newer ones two. Other objects are used as they are.

    Raises:
        ArgumentTypeError: the object does not have this method.
    """
    created = cls
    if callable(cls):
        try:
            parameters = list(inspect.signature(cls).parameters.values())
        except ValueError:  # a builtin class
            parameters = []
        kinds = [item.kind for item in parameters]
        positional = [kind for kind in kinds if kind in (_Kind.POSITIONAL_ONLY, _Kind.POSITIONAL_OR_KEYWORD)]
        takes_two = len(positional) > 1 or _Kind.VAR_POSITIONAL in kinds
        created = cls(params, framework) if takes_two else cls(params)
    if not hasattr(created, method):
        raise ArgumentTypeError(
            f"impl must be a class with the method {method}; got {short_repr(cls)}.",
            hint="Pass the class itself, not an instance or a function.",
        )
    return created


@operator(outputs="num_outputs")
def MediaExtReaderOp(
    context: Lowering, /, *, impl: Any, num_outputs: int = 1, seed: int | None = None, priv_params: Any = None
) -> tuple[Value, ...]:
    """Read with a user-defined class, see ``media_ext_reader_op_impl``.

    Args:
        context: the graph.
        impl: the class.
        num_outputs: number of results; the first is files, or paths of files.
        seed: passed to the class; by default the seed of the pipe.
        priv_params: passed to the class.

    Returns:
        `num_outputs` batches.
    """
    params = {"priv_params": priv_params, "seed": _seed(context, seed), "num_outputs": num_outputs}
    return _read(context, _create(impl, params, FrameworkParams(context.batch_size), "__iter__"), num_outputs)


def _read(context: Lowering, reader: Any, num_outputs: int) -> tuple[Value, ...]:
    """Query the outputs of a user's reader, and read with it."""
    output = getattr(reader, "get_media_output_type", lambda: readerOutType.FILE_LIST)()
    if output not in (readerOutType.FILE_LIST, readerOutType.BUFFER_LIST):
        names = ["readerOutType.FILE_LIST", "readerOutType.BUFFER_LIST"]
        raise ArgumentValueError(option_error_text("get_media_output_type()", output, names))
    information = getattr(reader, "gen_output_info", lambda: None)()
    infos = list(information) if information is not None else []
    if infos and len(infos) != num_outputs:
        raise ArgumentValueError(f"gen_output_info() returns {len(infos)} results, but num_outputs is {num_outputs}.")
    dtypes = [info.dtype or None for info in infos] if infos else [None] * num_outputs
    kind = "path" if output == readerOutType.FILE_LIST else "file"
    source = _ExternalReader(reader, num_outputs, kind, [_numpy_type(dtype) for dtype in dtypes])
    files, *others = context.read(source, num_outputs)
    rounded = [dtype == types.BFLOAT16 for dtype in dtypes[1:]]
    arrays = [Value(node, is_bfloat16=rounds) for node, rounds in zip(others, rounded, strict=True)]
    return (Value(files, kind=kind), *arrays)


def _numpy_type(dtype: str | None) -> str | None:
    return types.FLOAT32 if dtype == types.BFLOAT16 else dtype


def registered_reader(spec: OperatorSpec) -> type[Operation]:
    """Make an operator of a reader registered with ``schema.add_operator``."""

    def lower(context: Lowering, /, **arguments: Any) -> tuple[Value, ...]:
        reader: Any = spec.node_class(spec.name, spec.guid, None, [], {**spec.params, **arguments}, None, None)
        reader.set_params(FrameworkParams(context.batch_size))
        return _read(context, reader, spec.num_outputs)

    lower.__name__ = spec.name
    lower.__doc__ = spec.node_class.__doc__
    lower.__annotations__ = {"context": Lowering, **dict.fromkeys(spec.params, object)}
    kind = inspect.Parameter.KEYWORD_ONLY
    arguments = [inspect.Parameter(name, kind, default=default) for name, default in spec.params.items()]
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_ONLY)
    lower.__signature__ = inspect.Signature([context, *arguments])
    return operator(outputs=spec.num_outputs, inputs=(0, 0))(lower)


def _call_function(
    context: Lowering,
    function: Any,
    xs: Sequence[Value],
    dtypes: Sequence[str | None],
    shape: tuple[int, ...] | None,
    has_batch: bool,
    letters: str,
) -> tuple[Value, ...]:
    """Call a user's function once per batch.

    Args:
        context: the graph.
        function: the function.
        xs: the inputs.
        dtypes: dtypes of the results.
        shape: declared shape of a sample of each result, in the order of arrays; None for any.
        has_batch: whether the first dimension of the results counts samples.
        letters: layout of the results.
    """
    size = context.batch_size
    count = len(dtypes)
    kinds = [_numpy_type(dtype) for dtype in dtypes]

    def run(*inputs: Any) -> tuple[Any, ...]:
        result = function(*inputs)
        results = list(result) if count > 1 else [result]
        name = type(function).__name__
        if len(results) != count:
            raise SourceError(f"{name} returned {len(results)} results instead of {count}.")
        arrays = [_array(each, dtype, f"the result of {name}") for each, dtype in zip(results, kinds, strict=True)]
        length = len(inputs[0]) if inputs else size
        for each in arrays:
            if has_batch and (each.ndim == 0 or len(each) != length):
                raise SourceError(
                    f"{name} returned an array with shape {each.shape} for a batch of {length}.",
                    hint="The first dimension of the array counts samples; shape= of the operator lists it last.",
                )
            own = each.shape[has_batch:]
            if shape is not None and own != shape:
                raise SourceError(
                    f"{name} returned {'samples' if has_batch else 'an array'} with shape {own}; the declared shape "
                    f"is {shape}.",
                    hint="The extents of shape= are in reverse order, the fastest dimension first: "
                    f"shape={[*own[::-1], *([size] if has_batch else [])]}.",
                )
        if not has_batch:
            return tuple(np.broadcast_to(each, (length, *each.shape)) for each in arrays)
        return tuple(arrays)

    if not xs:
        nodes = dali.external_source(source=lambda: run(), num_outputs=count)
    else:

        def of_lists(*lists: Any) -> Any:
            results = run(*[np.stack(each) for each in lists])
            return tuple(list(each) for each in results) if count > 1 else list(results[0])

        nodes = dali.python_function(
            *[value.node.cpu() for value in xs], function=of_lists, num_outputs=count, batch_processing=True
        )
        nodes = nodes if count > 1 else [nodes]
    return tuple(
        Value(with_layout(node, letters), letters, has_batch, is_bfloat16=dtype == types.BFLOAT16)
        for node, dtype in zip(nodes, dtypes, strict=True)
    )


@operator(inputs=(0, 4))
def MediaFunc(
    context: Lowering,
    /,
    *xs: Value,
    func: Any,
    shape: Sequence[int],
    dtype: str = types.UINT8,
    seed: int | None = None,
    priv_params: Any = None,
    layout: str = "",
) -> Value:
    """Call a user-defined class once per batch, see ``media_function``.

    Args:
        context: the graph.
        *xs: up to four batches, passed as arrays ``[N, …]``.
        func: the class.
        shape: extents of the result, fastest dimension first and batch last.
        dtype: dtype of the result.
        seed: passed to the class; by default the seed of the pipe.
        priv_params: passed to the class.
        layout: letters of the dimensions, in the same order.
    """
    to_dalify_type(dtype)
    extents = np.array(shape, np.uint32)
    params = {"shape": extents, "dtype": dtype, "seed": _seed(context, seed), "priv_params": priv_params}
    has_batch = len(extents) > 0 and int(extents[-1]) == context.batch_size
    letters = layout[:-1][::-1] if has_batch else layout[::-1]
    declared = tuple(int(extent) for extent in (extents[:-1] if has_batch else extents)[::-1])
    return _call_function(context, func(params), xs, [dtype], declared, has_batch, letters)[0]


@operator(inputs=(1, 10), outputs="num_outputs")
def ExtCpuOp(
    context: Lowering,
    /,
    *xs: Value,
    impl: Any,
    num_outputs: int = 1,
    dtype: str | None = None,
    seed: int | None = None,
    priv_params: Any = None,
) -> tuple[Value, ...]:
    """Call a user-defined class once per batch, see ``media_ext_cpu_op_impl``.

    Args:
        context: the graph.
        *xs: one to ten batches, passed as arrays ``[N, …]``.
        impl: the class.
        num_outputs: number of results.
        dtype: dtype of the results; by default the dtype of the arrays.
        seed: passed to the class; by default the seed of the pipe.
        priv_params: passed to the class.
    """
    params = {"priv_params": priv_params, "seed": _seed(context, seed), "num_outputs": num_outputs}
    function = _create(impl, params, FrameworkParams(context.batch_size), "__call__")
    return _call_function(context, function, xs, [dtype] * num_outputs, None, True, "")
