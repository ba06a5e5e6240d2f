"""The options of a pipeline: all arguments of DALI's ``Pipeline`` and dalify's own, checked once and immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from enum import Enum
from operator import index
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dalify.base.deprecation import warn_deprecated
from dalify.base.errors import (
    ON_ERROR,
    ArgumentRangeError,
    ArgumentTypeError,
    ArgumentValueError,
    MissingKeyError,
    SerializationError,
    UnknownArgumentError,
    WrongObjectError,
    as_switch,
    check_option,
    short_repr,
    suggestion,
)
from dalify.base.limits import Limits, as_limits
from dalify.base.narrow import is_dictionary, is_integer, is_list_or_tuple, is_number, is_tuple
from dalify.base.processors import available_processors
from dalify.base.wording import counted
from dalify.data.dtypes import DALIDataType

if TYPE_CHECKING:
    from dalify.executor.remote import BatchService

_START_METHODS = ("fork", "spawn", "forkserver")
# Dtype of output images; None for no conversion.
PRECISIONS = {"fp32": None, "fp16": DALIDataType.FLOAT16, "bf16": DALIDataType.BFLOAT16}
# Minimum and maximum of integers.
_BOUNDS = {
    "batch_size": (1, 1 << 24),
    "num_threads": (1, 1 << 12),
    "py_num_workers": (0, 1 << 12),
    "processes": (0, 1 << 12),
    "bytes_per_sample": (0, 1 << 63),
}
_INTEGERS = (*_BOUNDS, "seed", "device_id")
_SWITCHES = (
    "exec_pipelined",
    "exec_async",
    "exec_dynamic",
    "enable_conditionals",
    "enable_checkpointing",
    "set_affinity",
    "enable_memory_stats",
    "experimental_exec_dynamic",
)
_MAX_DEPTH = 1 << 12
_MAX_TIMEOUT_S = 1_000_000
# Options in a serialized pipeline, and the enumerations among them.
_KEPT = (
    "batch_size",
    "num_threads",
    "device_id",
    "seed",
    "exec_pipelined",
    "exec_async",
    "exec_dynamic",
    "prefetch_queue_depth",
    "set_affinity",
    "enable_memory_stats",
    "stream_policy",
    "concurrency",
    "output_dtype",
    "output_ndim",
    "output_layout",
)
_RETIRED = ("max_streams", "default_cuda_stream_priority")


class StreamPolicy(Enum):
    """Number of streams that a pipeline uses on the device; dalify always uses one."""

    UNSPECIFIED = 0
    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48


class OperatorConcurrency(Enum):
    """DALI's choice of operators that may run at the same time; no effect in dalify."""

    UNSPECIFIED = 0
    NONE = 2
    BACKEND = 4
    FULL = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """The checked arguments of a pipeline; ``Pipeline`` documents them."""

    batch_size: int
    num_threads: int
    device_id: int | None = None
    seed: int | None = None
    exec_pipelined: bool = True
    exec_async: bool = True
    prefetch_queue_depth: int | Mapping[str, int] = 2
    exec_dynamic: bool | None = None
    enable_conditionals: bool = True
    enable_checkpointing: bool = False
    checkpoint: Any = None
    py_num_workers: int | None = 1
    py_start_method: str = "fork"
    py_callback_pickler: Any = None
    callback_timeout_s: float | None = None
    output_dtype: Any = None
    output_ndim: Any = None
    output_layout: Any = None
    on_error: str = "raise"
    max_error_rate: float | None = None
    limits: Limits | None = None
    precision: str = "fp32"
    processes: int = 0
    taps: tuple[str, ...] = ()
    stream_policy: StreamPolicy | None = None
    concurrency: OperatorConcurrency | None = None
    bytes_per_sample: int = 0
    set_affinity: bool = False
    enable_memory_stats: bool = False
    experimental_exec_dynamic: bool | None = None

    def given(self) -> dict[str, Any]:
        """Return the arguments by name, for creating an equal pipeline."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PipelineOptions:
        """Check the arguments of the user.

        Raises:
            UnknownArgumentError: an argument is unknown.
            ArgumentTypeError: batch_size is missing, or an argument has the wrong type.
            ArgumentValueError: an argument is out of range.
        """
        given = {name: _plain(name, value) for name, value in given.items()}
        for name in _RETIRED:
            value = given.pop(name, None)
            if not _is_unset(value) and not (is_integer(value) and value == 0):
                warn_deprecated(f"The pipeline argument {name!r} no longer has an effect and can be omitted.")
        for name in _SWITCHES:
            value = given.get(name)
            if value is not None and not isinstance(value, str):
                given[name] = as_switch(name, value)
        if given.get("experimental_exec_dynamic") is not None:
            warn_deprecated("The pipeline argument 'experimental_exec_dynamic' is now called 'exec_dynamic'.")
            given["exec_dynamic"] = given["experimental_exec_dynamic"]
        for name in given:
            if name not in OPTION_NAMES:
                text = f"a pipeline has no argument {name!r}.{suggestion(name, OPTION_NAMES)}"
                raise UnknownArgumentError(text, hint=OPTIONS_TEXT)
        if _is_unset(given.get("batch_size")):
            raise ArgumentTypeError("a pipeline requires batch_size.", hint="For instance: batch_size=32.")
        if _is_unset(given.get("num_threads")):
            given["num_threads"] = min(8, available_processors())
        seed = given.get("seed")
        if isinstance(seed, int) and seed < 0:  # in DALI, a negative seed means a random one
            given["seed"] = None
        taps = given.get("taps")
        if isinstance(taps, str):
            given["taps"] = (taps,)
        elif isinstance(taps, (list, set, frozenset)):
            given["taps"] = tuple(cast("Iterable[Any]", taps))
        given["limits"] = as_limits(given.get("limits"))
        options = cls(**given)
        options._check()
        return options

    def _check(self) -> None:
        for name, (minimum, maximum) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None or name != "py_num_workers":
                _check_integer(name, value, minimum, maximum)
        for name in _SWITCHES:
            if isinstance(value := getattr(self, name), str):  # "False" would be true
                raise ArgumentTypeError(f"{name} must be True or False; got {short_repr(value)}.")
        for name, kind in (("stream_policy", StreamPolicy), ("concurrency", OperatorConcurrency)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise WrongObjectError(f"{name} must be a member of {kind.__name__}, or None; got {short_repr(value)}.")
        for name in ("seed", "device_id"):
            value = getattr(self, name)
            if value is not None and not is_integer(value):
                raise ArgumentTypeError(f"{name} must be an integer or None; got {short_repr(value)}.")
        if self.device_id is not None and not -(1 << 31) <= self.device_id < 1 << 31:
            raise ArgumentRangeError(f"device_id must be a 32-bit integer; got {short_repr(self.device_id)}.")
        self._check_time_and_rate()
        self._check_expectations()
        taps: Any = self.taps
        if not is_tuple(taps) or not all(isinstance(name, str) for name in taps):
            raise ArgumentTypeError(f"taps must be a list of names; got {short_repr(taps)}.")
        choices = {"on_error": ON_ERROR, "precision": tuple(PRECISIONS), "py_start_method": _START_METHODS}
        for name, known in choices.items():
            check_option(name, getattr(self, name), known)
        self._check_depth()

    def _check_time_and_rate(self) -> None:
        timeout_s, rate = self.callback_timeout_s, self.max_error_rate
        if timeout_s is not None:
            if not is_number(timeout_s):
                raise ArgumentTypeError(
                    f"callback_timeout_s must be a number of seconds or None; got {short_repr(timeout_s)}."
                )
            if not 0 < timeout_s <= _MAX_TIMEOUT_S:
                raise ArgumentValueError(
                    f"callback_timeout_s must be above 0 and at most {_MAX_TIMEOUT_S}; got {short_repr(timeout_s)}."
                )
        if rate is not None and not (is_number(rate) and 0 <= rate <= 1):
            raise ArgumentValueError(f"max_error_rate must be a fraction in [0, 1], or None; got {short_repr(rate)}.")

    def _check_expectations(self) -> None:
        """Check the expected properties of outputs; `check_output_count` checks their number."""
        for dtype in _listed(self.output_dtype):
            if dtype is not None and not isinstance(dtype, DALIDataType):
                raise ArgumentTypeError(
                    "output_dtype must be a type such as types.FLOAT, a list of these, or None; "
                    f"got {short_repr(dtype)}."
                )
            if dtype is DALIDataType.NO_TYPE:
                raise ArgumentValueError("output_dtype must not be NO_TYPE; use None for any type.")
        for ndim in _listed(self.output_ndim):
            if ndim is not None and not is_integer(ndim):
                raise ArgumentTypeError(
                    f"output_ndim must be an integer, a list of these, or None; got {short_repr(ndim)}."
                )
            if ndim is not None and ndim < 0:
                raise ArgumentValueError(f"output_ndim must not be negative; got {ndim}.")
        for layout in _listed(self.output_layout):
            if layout is not None and not isinstance(layout, str):
                raise ArgumentTypeError(
                    f"output_layout must be a string, a list of these, or None; got {short_repr(layout)}."
                )

    def _check_depth(self) -> None:
        depths = self.prefetch_queue_depth
        values: list[Any] = list(depths.values()) if isinstance(depths, Mapping) else [depths]
        if isinstance(depths, Mapping) and set(depths) != {"cpu_size", "gpu_size"}:
            raise MissingKeyError(
                "prefetch_queue_depth as a dict needs the keys 'cpu_size' and 'gpu_size'; "
                f"got {sorted(map(str, depths))}."
            )
        if not all(map(is_integer, values)):
            raise ArgumentTypeError(
                f"prefetch_queue_depth must be an integer, or a dict of integers; got {short_repr(depths)}."
            )
        if min(values) < 1:
            raise ArgumentValueError(f"prefetch_queue_depth must be at least 1; got {short_repr(depths)}.")
        if max(values) > _MAX_DEPTH:
            raise ArgumentValueError(f"prefetch_queue_depth must be at most {_MAX_DEPTH}; got {short_repr(depths)}.")
        if isinstance(depths, Mapping) and (not self.exec_async or self.exec_dynamic):
            option = "exec_dynamic=True" if self.exec_async else f"exec_async={self.exec_async!r}"
            raise ArgumentValueError(
                f"prefetch_queue_depth as a dict cannot be used with {option}; got {short_repr(depths)}.",
                hint=f"Omit one of them, or write prefetch_queue_depth={max(values)}.",
            )

    @property
    def depth(self) -> int:
        """Number of batches in progress at the same time."""
        if not (self.exec_pipelined and self.exec_async):
            return 1
        depth = max(self.depth_of("cpu"), self.depth_of("gpu"))
        # Each process computes one batch. With prefetching, another one is queued for it, so that it is busy while the
        # consumer waits for a slow batch.
        return depth + max(0, self.processes - 1) * min(depth, 2)

    @property
    def is_separated(self) -> bool:
        """Whether the queue sizes of the CPU and the device were specified separately."""
        return isinstance(self.prefetch_queue_depth, Mapping)

    def depth_of(self, device: str) -> int:
        """Return the specified number of batches in progress, on ``cpu`` or ``gpu``."""
        depths = self.prefetch_queue_depth
        return depths[f"{device}_size"] if isinstance(depths, Mapping) else depths

    @property
    def is_dynamic(self) -> bool | None:
        """``exec_dynamic``, or DALI's default."""
        is_default = self.exec_pipelined and self.exec_async and not self.is_separated
        return True if self.exec_dynamic is None and is_default else self.exec_dynamic

    def as_json(self) -> dict[str, Any]:
        """Return the serialized options as JSON-ready data; ``options_from_json`` is the inverse."""
        kept = {name: getattr(self, name) for name in _KEPT}
        for name, kind in _ENUMS.items():
            kept[name] = _mapped(lambda item, kind=kind: None if item is None else kind(item).name, kept[name])
        return {name: value for name, value in kept.items() if value is not None}

    def check_output_count(self, count: int) -> None:
        """Check that lists of expected properties have one item per output.

        Raises:
            ArgumentValueError: the length of output_dtype, output_ndim or output_layout is not ``count``.
        """
        for name in ("output_dtype", "output_ndim", "output_layout"):
            value = getattr(self, name)
            if is_list_or_tuple(value) and len(value) != count:
                raise ArgumentValueError(
                    f"{name} has {counted(len(value), 'item')}, but the pipeline has {counted(count, 'output')}.",
                    hint="Pass one item per output (None for no check), or one value for all.",
                )

    def expected(self, name: str, index: int) -> Any:
        """Return the expected dtype, ndim or layout (``name``) of an output; None for no check."""
        value = getattr(self, f"output_{name}")
        return value[index] if is_list_or_tuple(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSetup:
    """The options of a pipeline for its engine; the graph is passed separately.

    Attributes:
        options: options of the pipeline.
        seed: seed of the pipeline, 64 bits.
        name: prefix of thread names.
        service: computes batches instead of ``options.processes``; None without one.
        state: state of an engine of the same graph to continue from; None for the first batch.
    """

    options: PipelineOptions
    seed: int
    name: str
    service: BatchService | None
    state: dict[str, Any] | None


_ENUMS: dict[str, type[Enum]] = {
    "stream_policy": StreamPolicy,
    "concurrency": OperatorConcurrency,
    "output_dtype": DALIDataType,
}


def options_from_json(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a pipeline from the result of ``PipelineOptions.as_json``.

    Raises:
        SerializationError: the argument is not a dictionary, or contains an unknown option or enumeration member.
    """
    if not isinstance(saved, dict) or not saved.keys() <= set(_KEPT):
        raise SerializationError("this serialized pipeline is damaged: its options are not options of a pipeline.")
    given = dict(saved)
    for name, kind in _ENUMS.items():
        try:
            given[name] = _mapped(lambda item, kind=kind: None if item is None else kind[item], given.get(name))
        except (KeyError, TypeError):
            raise SerializationError(f"this serialized pipeline is damaged: {name} is {saved[name]!r}.") from None
    return given


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    return [function(item) for item in value] if is_list_or_tuple(value) else function(value)


def _check_integer(name: str, value: Any, minimum: int, maximum: int) -> None:
    if not is_integer(value):
        raise ArgumentTypeError(f"{name} must be an integer; got {short_repr(value)}.")
    if value < minimum:
        raise ArgumentValueError(f"{name} must be at least {minimum}; got {short_repr(value)}.")
    if value > maximum:
        raise ArgumentValueError(f"{name} must be at most {maximum}; got {short_repr(value)}.")


def _is_unset(value: Any) -> bool:
    return value is None or (is_integer(value) and value == -1)


def _plain(name: str, value: Any) -> Any:
    """Return an integer option as int, and other NumPy scalars as Python numbers, also in lists and dictionaries.

    Values that cannot be converted are returned unchanged; ``PipelineOptions`` rejects them.
    """
    with suppress(Exception):  # of the user's class
        if name in _INTEGERS and not isinstance(value, bool):
            return index(value)
    if is_list_or_tuple(value):
        return [_python_number(item) for item in value]
    if is_dictionary(value):
        return {key: _python_number(item) for key, item in value.items()}
    return _python_number(value)


def _python_number(value: Any) -> Any:
    return cast("Any", value).item() if isinstance(value, np.generic) else value


def _listed(value: Any) -> Sequence[Any]:
    return value if is_list_or_tuple(value) else [value]


OPTION_NAMES = frozenset(field.name for field in fields(PipelineOptions)) | set(_RETIRED)
"""The names of all arguments of a pipeline."""
OPTIONS_TEXT = f"The pipeline accepts: {', '.join(sorted(OPTION_NAMES.difference(_RETIRED)))}."
