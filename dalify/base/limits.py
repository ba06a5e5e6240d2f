"""Limits on sizes that files or data declare, checked before memory is allocated.

A few hundred bytes can declare an image of gigabytes. Decoders, readers and operators compare output sizes that depend
on data with the current limits: those of the pipeline that runs in this thread, otherwise those of the process. They do
not apply to torch's DataLoader accelerated by ``dalify.plugin.pytorch``, where Pillow's limit
(``PIL.Image.MAX_IMAGE_PIXELS``) applies as in torch. dalify's decoders ignore Pillow's limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, NoReturn, TypeVar, cast

from dalify.base.context_stack import Assigned
from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    LimitError,
    UnknownArgumentError,
    short_repr,
    suggestion,
)
from dalify.base.wording import counted

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a pipeline or process. Each is an integer of at least 1.

    Attributes:
        max_image_pixels: height times width of an encoded image or video frame. 2**28 pixels are an RGB image of
            16384 x 16384, or 768 MiB.
        max_sample_bytes: size of one sample that is read, decoded or computed by an operator.
        max_declared_samples: records, rows, audio samples per channel, or video frames that the header of one file
            may declare.
        max_dimensions: dimensions of a sample that a header may declare.
    """

    max_image_pixels: int = 1 << 28
    max_sample_bytes: int = 2 << 30
    max_declared_samples: int = (1 << 31) - 1
    max_dimensions: int = 32

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise ArgumentTypeError(f"{name} must be an integer; got {value!r}.")
            if value < 1:
                raise ArgumentValueError(f"{name} must be at least 1; got {value}.")


_NAMES = frozenset(field.name for field in fields(Limits))
_of_process = Limits()
# Per thread, and inherited by asyncio tasks, in which libraries may decode.
_of_context: ContextVar[Limits | None] = ContextVar("limits", default=None)


def configure(**limits: int) -> None:
    """Change the limits of this process; pipelines with their own limits ignore them.

    Args:
        limits: new values by name, see ``Limits``. Other limits keep their value.

    Raises:
        UnknownArgumentError: a name is not that of a limit.
        ArgumentTypeError: a value is not an integer.
        ArgumentValueError: a value is below 1.
    """
    global _of_process
    _of_process = _changed(_of_process, limits)


def current() -> Limits:
    """Return the current limits of this thread."""
    return _of_context.get() or _of_process


_NOTHING = nullcontext()


def applied(limits: Limits | None) -> AbstractContextManager[None]:
    """Apply limits to the current thread inside a ``with`` block; None keeps the current limits."""
    return _NOTHING if limits is None else Assigned(_of_context, limits)


def within(limits: Limits | None, function: Callable[..., T]) -> Callable[..., T]:
    """Return a function that applies limits and calls another function, on any thread or process.

    Args:
        limits: limits of a pipeline; None for the limits of the process.
        function: function to call. The result can be pickled if the function can.
    """
    return function if limits is None else partial(_call_within, limits, function)


def _call_within(limits: Limits, function: Callable[..., T], /, *arguments: Any, **named: Any) -> T:
    with applied(limits):
        return function(*arguments, **named)


def of_thread() -> Limits | None:
    """Return the limits of the pipeline that runs on this thread, or None."""
    return _of_context.get()


def as_limits(given: Limits | Mapping[str, int] | None) -> Limits | None:
    """Convert a user's limits: ``Limits``, a dictionary of changes to the limits of the process, or None.

    Raises:
        UnknownArgumentError: a name is not that of a limit.
        ArgumentTypeError: the argument has another type, or a value is not an integer.
        ArgumentValueError: a value is below 1.
    """
    if given is None or isinstance(given, Limits):
        return given
    if not isinstance(cast("object", given), Mapping):  # users may pass anything
        raise ArgumentTypeError(
            f"limits must be dalify.limits.Limits, a dictionary or None; got {short_repr(given)}.",
            hint="For instance: limits={'max_image_pixels': 400_000_000}.",
        )
    return _changed(current(), given)


def _changed(limits: Limits, changes: Mapping[str, Any]) -> Limits:
    for name in changes:
        if name not in _NAMES:
            raise UnknownArgumentError(f"unknown limit {name!r}.{suggestion(str(name), _NAMES)}")
    return replace(limits, **changes)


def check_image(height: int, width: int, what: str = "the image") -> None:
    """Check the size of an encoded image or video frame.

    Args:
        height: rows.
        width: columns.
        what: start of the message, for instance ``the JPEG``.

    Raises:
        LimitError: more pixels than ``max_image_pixels``.
    """
    if height * width > current().max_image_pixels:
        _refuse(f"{what} declares {width} x {height} = {height * width:,} pixels", "max_image_pixels", height * width)


def check_sample_bytes(size_bytes: int, what: str = "the sample") -> None:
    """Check the size of a sample.

    Args:
        size_bytes: its size.
        what: start of the message, for instance ``the decompressed sample``.

    Raises:
        LimitError: more bytes than ``max_sample_bytes``.
    """
    if size_bytes > current().max_sample_bytes:
        _refuse(f"{what} needs {size_bytes:,} bytes", "max_sample_bytes", size_bytes)


def check_shape(shape: Sequence[int], item_bytes: int, what: str = "the sample") -> None:
    """Check the size of a sample with a shape.

    Args:
        shape: extents. An extent of 0 counts as 1, because NumPy rejects such shapes if the other extents overflow.
        item_bytes: size of one element.
        what: start of the message.

    Raises:
        LimitError: more bytes than ``max_sample_bytes``.
    """
    # A single C call suffices for shapes without an extent of 0.
    size_bytes = (math.prod(shape) or math.prod(extent or 1 for extent in shape)) * item_bytes
    if size_bytes > current().max_sample_bytes:
        extents = " x ".join(map(str, shape))
        _refuse(f"{what} of shape {extents} needs {size_bytes:,} bytes", "max_sample_bytes", size_bytes)


def check_count(count: int, what: str) -> None:
    """Check the number of records, rows, audio samples or frames that a header declares.

    Args:
        count: the declared number.
        what: the declaration with its number, for instance ``the file declares 12 rows``.

    Raises:
        LimitError: more than ``max_declared_samples``.
    """
    if count > current().max_declared_samples:
        _refuse(what, "max_declared_samples", count)


def check_dimensions(count: int, what: str = "the sample") -> None:
    """Check the number of dimensions that a header declares.

    Args:
        count: dimensions.
        what: start of the message, for instance ``the NumPy file``.

    Raises:
        LimitError: more than ``max_dimensions``.
    """
    if count > current().max_dimensions:
        _refuse(f"{what} declares {counted(count, 'dimension')}", "max_dimensions", count)


def _refuse(what: str, name: str, needed: int) -> NoReturn:
    number = str(needed) if needed < 1 << 63 else "..."
    raise LimitError(
        f"{what}, more than the limit {name}={getattr(current(), name):,}.",
        hint=f"If the data can be trusted, raise the limit: @pipeline_def(limits={{'{name}': {number}}}), or for the "
        f"whole process: dalify.limits.configure({name}={number}).",
    )
