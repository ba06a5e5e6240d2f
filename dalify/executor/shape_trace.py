"""Computes the shapes of results for samples of different shapes by one call of the rule.

Most rules copy extents from their inputs, or set constants. Such a rule is called once, with placeholders for the
extents that differ between samples. The placeholders in its result identify the source of each extent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dalify.base.optional import LazyModule
from dalify.base.recent import Recent
from dalify.data import Batch, Spec
from dalify.executor.shape_table import ShapeTable

if TYPE_CHECKING:
    from dalify.kernels.arrays import shapes as compiled
else:
    # This imports numba, which pipelines without compiled kernels do not need.
    compiled = LazyModule("dalify.kernels.arrays.shapes", "shapes of samples")

_CACHE_LIMIT = 4096


class _Extent:
    """A placeholder for an extent. A rule that computes with it, or compares it with another extent, fails."""

    __slots__ = ("axis", "input_index")

    def __init__(self, input_index: int, axis: int) -> None:
        self.input_index = input_index
        self.axis = axis

    def _fail(self, *_: object) -> NoReturn:
        raise TypeError("the rule depends on extents")

    def __eq__(self, other: object) -> bool:
        return other is self or self._fail()

    # Other operations of objects raise TypeError by default.
    __hash__ = __bool__ = __format__ = __repr__ = _fail  # pyright: ignore[reportAssignmentType]


class TracedShapes(NamedTuple):
    """The results of a rule.

    Attributes:
        specs: specs of the outputs, without shapes.
        copies: for each output, indices of inputs with the last two arguments of `copy_extents` for each.
        same: for each output, the index of an input with the same shapes; None if there is none.
        constants: for each output, its shape if no extent is copied, otherwise None.
    """

    specs: tuple[Spec, ...]
    copies: list[list[tuple[int, NDArray[np.int64], NDArray[np.int64]]]]
    same: list[int | None]
    constants: list[tuple[int, ...] | None]

    def shapes(self, inputs: Sequence[ShapeTable | None], count: int) -> list[tuple[int, ...] | ShapeTable]:
        """Return the shapes of each output, as a tuple if they are equal."""
        found: list[Any] = []
        for spec, copies, same, constant in zip(self.specs, self.copies, self.same, self.constants, strict=True):
            if constant is not None:
                found.append(constant)
                continue
            if same is not None:
                found.append(inputs[same])
                continue
            shapes = np.empty((count, len(copies[0][1])), np.int64)
            for index, columns, extents in copies:
                given = inputs[index]
                assert given is not None, "dalify bug: an extent of an absent input"
                compiled.copy_extents(shapes, given.shapes, columns, extents)
            found.append(ShapeTable(shapes, 1 if spec.dtype is None else spec.dtype.numpy.itemsize))
        return found


def trace_shapes(
    rule: Callable[[tuple[Spec | None, ...]], tuple[Spec, ...]],
    inputs: Sequence[Spec | None],
    extents: Sequence[tuple[int, ...] | None],
    alike: Sequence[int] | None = None,
) -> TracedShapes | None:
    """Return the shapes of results as a function of the shapes of inputs; None if the rule computes with extents.

    Args:
        rule: returns the specs of the outputs.
        inputs: specs of the inputs without shapes.
        extents: for each input, the extents that are equal for all samples, -1 for the others.
        alike: for each input, the index of the first input with the same first extents; None if they may all differ.
    """
    given: list[Any] = []
    firsts = [_Extent(index, 0) for index in range(len(inputs))]
    for index, (spec, known) in enumerate(zip(inputs, extents, strict=True)):
        if spec is None or known is None:
            given.append(None)
            continue
        shape: Any = [_Extent(index, axis) if extent < 0 else extent for axis, extent in enumerate(known)]
        if alike is not None and shape and isinstance(shape[0], _Extent):
            shape[0] = firsts[alike[index]]
        shape = tuple(shape)
        given.append(spec.replace(shape=shape))
    try:
        results = rule(tuple(given))
    except Exception:  # placeholders may cause any error; an error of the user is raised again for its sample
        return None
    sources: list[list[int | tuple[int, int]]] = []
    for result in results:
        if result.shape is None:
            return None
        axes: list[Any] = list(result.shape)
        if not all(isinstance(extent, (int, np.integer, _Extent)) for extent in axes):
            return None
        sources.append([(x.input_index, x.axis) if isinstance(x, _Extent) else int(x) for x in axes])
    copies = [
        None if known is None else [(index, axis) if extent < 0 else extent for axis, extent in enumerate(known)]
        for index, known in enumerate(extents)
    ]
    same = [copies.index(axes) if axes in copies else None for axes in sources]
    constants: list[Any] = [
        tuple(axes) if all(isinstance(source, int) for source in axes) else None for axes in sources
    ]
    specs = tuple(result.replace(shape=None) for result in results)
    return TracedShapes(specs, [_copies(axes) for axes in sources], same, constants)


def _copies(axes: Sequence[int | tuple[int, int]]) -> list[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Return the copies of an output, see `TracedShapes`; the first one also sets the constant extents."""
    extents = np.array([source if isinstance(source, int) else -1 for source in axes], np.int64)
    found: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
    for index in dict.fromkeys(source[0] for source in axes if not isinstance(source, int)):
        columns = [source[1] if not isinstance(source, int) and source[0] == index else -1 for source in axes]
        found.append((index, np.array(columns, np.int64), np.full(len(axes), -1) if found else extents))
    return found


class ShapeTrace:
    """The traced results of one rule, cached by dtypes, layouts and equal extents of the inputs."""

    def __init__(self, rule: Callable[[tuple[Spec | None, ...]], tuple[Spec, ...]]) -> None:
        self._rule = rule
        self._known: Recent[list[TracedShapes | None]] = Recent(_CACHE_LIMIT)

    def of(self, inputs: Sequence[Batch | None], shapes: Sequence[ShapeTable | None]) -> TracedShapes | None:
        """Return the shapes of the results by the shapes of the inputs; None if the rule computes with extents.

        Args:
            inputs: the inputs.
            shapes: shapes of their samples; None for absent inputs.
        """
        # Lists, because generators are slower.
        extents = tuple([None if each is None else each.extents for each in shapes])
        kinds = tuple([None if batch is None else (batch.dtype, batch.layout) for batch in inputs])

        def trace() -> list[TracedShapes | None]:
            opened = [
                None if batch is None else Spec(batch.dtype, batch.ndim, batch.layout, None, batch.device)
                for batch in inputs
            ]
            return [trace_shapes(self._rule, opened, extents)]

        return self._known.get_or_make((kinds, extents), trace)[0][0]
