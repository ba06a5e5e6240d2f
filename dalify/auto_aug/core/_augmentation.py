"""The class of augmentations: a user's function of data and a parameter, called with a magnitude bin.

The parameters of all bins are computed once, when the graph is built, and looked up when it runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from dalify import types
from dalify.auto_aug.core._bins import SignedBin, check_bin, check_bin_count, signed_bin
from dalify.base.errors import ArgumentTypeError, ArgumentValueError, option_error_text
from dalify.frontend import rewrite
from dalify.graph import DataNode

MagnitudeRange: TypeAlias = "tuple[float, float] | list[float] | np.ndarray | None"
_DEVICES = ("cpu", "gpu", "auto")
_TYPES = {np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.int64): np.dtype(np.int32)}
_UNCHANGED = "unchanged"
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Augmentation:
    """A function of data and a parameter that is called with a magnitude bin; created by ``@augmentation``.

    Args:
        op: ``op(data, parameter, ...) -> data``, composed of operators.
        mag_range: first and last magnitude, or one magnitude for each bin; None: the parameter is None.
        randomly_negate: negate magnitudes with probability one half, per sample.
        mag_to_param: converts a magnitude to the parameter: a number, list or array, always of the same shape and type.
        param_device: device of the parameter: "cpu", "gpu", or "auto" for the device of the data.
        name: name in messages and in `excluded`; by default the name of the function.

    Raises:
        ArgumentTypeError: `op` is not a function with at least two positional arguments.
        ArgumentValueError: an unknown `param_device`.
    """

    def __init__(
        self,
        op: Callable[..., DataNode],
        mag_range: MagnitudeRange = None,
        randomly_negate: bool | None = None,
        mag_to_param: Callable[[float], Any] | None = None,
        param_device: str | None = None,
        name: str | None = None,
    ) -> None:
        self._op = op
        self._mag_range = mag_range
        self._randomly_negate = randomly_negate
        self._mag_to_param = mag_to_param
        self._param_device = param_device
        self._name = name
        if param_device not in (None, *_DEVICES):
            raise ArgumentValueError.here(option_error_text("param_device", param_device, _DEVICES))
        self._extra, self._required, self._takes_all = _named_arguments(op, self.name)
        # Conditions on graph values work inside the function, as in pipeline functions.
        self._traced = op if (getattr(op, "__module__", "") or "").startswith("dalify.") else rewrite(op)

    @property
    def op(self) -> Callable[..., DataNode]:
        """The function."""
        return self._op

    @property
    def mag_range(self) -> MagnitudeRange:
        """First and last magnitude, one magnitude for each bin, or None."""
        return self._mag_range

    @property
    def randomly_negate(self) -> bool:
        """Whether magnitudes are negated randomly."""
        return bool(self._randomly_negate)

    @property
    def mag_to_param(self) -> Callable[[float], Any]:
        """The function from magnitude to parameter."""
        return self._mag_to_param if self._mag_to_param is not None else np.float32

    @property
    def param_device(self) -> str:
        """Device of the parameter: ``cpu``, ``gpu`` or ``auto``."""
        return self._param_device or "cpu"

    @property
    def name(self) -> str:
        """Name in messages and in `excluded`."""
        return self._name or getattr(self._op, "__name__", type(self._op).__name__)

    def takes(self, keyword: str) -> bool:
        """Return whether the function has a further argument of that name."""
        return self._takes_all or keyword in self._extra

    def augmentation(
        self,
        mag_range: Any = _UNCHANGED,
        randomly_negate: Any = _UNCHANGED,
        mag_to_param: Any = _UNCHANGED,
        param_device: Any = _UNCHANGED,
        name: Any = _UNCHANGED,
        augmentation_cls: type[Augmentation] | None = None,
    ) -> Augmentation:
        """Return a copy with changed settings. The settings are the arguments of the class; the others are kept.

        `mag_to_param` can be None, for the magnitude itself; `augmentation_cls` is the class of the result.
        """
        changes = {
            "mag_range": mag_range,
            "mag_to_param": mag_to_param,
            "randomly_negate": randomly_negate,
            "param_device": param_device,
            "name": name,
        }
        settings = self._settings()
        settings.update((key, new) for key, new in changes.items() if not (isinstance(new, str) and new == _UNCHANGED))
        return (augmentation_cls or type(self))(self._op, **settings)

    def __call__(
        self,
        data: DataNode,
        *,
        magnitude_bin: int | DataNode | SignedBin | None = None,
        num_magnitude_bins: int | None = None,
        **kwargs: Any,
    ) -> DataNode:
        """Apply the augmentation.

        Args:
            data: input of the function.
            magnitude_bin: 0 to `num_magnitude_bins` - 1: a number, a graph value, or a result of `signed_bin`. Not
                needed without `mag_range`.
            num_magnitude_bins: number of bins from the first magnitude to the last.
            kwargs: further arguments; those that the function does not accept are ignored.

        Returns:
            ``op(data, mag_to_param(magnitude), ...)``, with ``magnitude = linspace(*mag_range, num_magnitude_bins)
            [magnitude_bin]``, negated by the sign.

        Raises:
            ArgumentTypeError: a bin or an argument of the function is missing or has the wrong type.
            ArgumentValueError: a bin out of range, an invalid `mag_range`, or parameters of different shapes.
        """
        if not isinstance(data, DataNode):
            raise ArgumentTypeError.here(
                f"augmentations are applied to graph values; got {type(data).__name__}.",
                hint="Call them in a function decorated with @pipeline_def, or pass a graph value as the data.",
            )
        missing = [name for name in self._required if name not in kwargs]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            raise ArgumentTypeError.here(
                f"the augmentation {self.name} requires the argument{plural} {', '.join(missing)}.",
                hint=f"Write {self.name}(data, magnitude_bin=…, num_magnitude_bins=…, {missing[0]}=…).",
            )
        parameter = self._parameter(data, magnitude_bin, num_magnitude_bins)
        result = self._traced(data, parameter, **{name: value for name, value in kwargs.items() if self.takes(name)})
        if not isinstance(result, DataNode):
            raise ArgumentTypeError.here(
                f"an augmentation must return one graph value; {self.name} returned {type(result).__name__}."
            )
        return result

    def _parameter(self, data: DataNode, magnitude_bin: Any, count: int | None) -> DataNode | None:
        if self._mag_range is None:
            return None
        if magnitude_bin is None or count is None:
            missing = "magnitude_bin" if magnitude_bin is None else "num_magnitude_bins"
            raise ArgumentTypeError.here(
                f"the augmentation {self.name} has magnitudes and requires {missing}.",
                hint=f"For example {self.name}(data, magnitude_bin=3, num_magnitude_bins=11).",
            )
        check_bin_count(count)
        bin_only = magnitude_bin.bin if isinstance(magnitude_bin, SignedBin) else magnitude_bin
        if not isinstance(bin_only, DataNode):
            check_bin(bin_only, count)
        elif bin_only.dtype is not None and not bin_only.dtype.is_integer:
            raise ArgumentTypeError.here(
                f"magnitude_bin must have integer elements; the graph value has {bin_only.dtype.text} elements.",
                hint="Draw it as integers: fn.random.uniform(range=[0, 10], dtype=types.INT32).",
            )
        if self.randomly_negate:
            signed = magnitude_bin if isinstance(magnitude_bin, SignedBin) else signed_bin(bin_only)
            index: Any = signed.signed_magnitude_idx
        else:
            index = bin_only
        table = self._table(count)
        parameter = types.Constant(table)[index] if isinstance(index, DataNode) else types.Constant(table[index])
        needs_gpu = self.param_device == "gpu" or (self.param_device == "auto" and data.device == "gpu")
        node = parameter.node() if isinstance(parameter, types.ScalarConstant) else parameter
        return node.gpu() if needs_gpu else node

    def _table(self, count: int) -> np.ndarray:
        """Return the parameters of all bins; magnitudes that can be negated come in pairs."""
        magnitudes = self._magnitudes(count).tolist()
        if self.randomly_negate:
            magnitudes = [signed for magnitude in magnitudes for signed in (magnitude, -magnitude)]
        rows = [np.asarray(self.mag_to_param(magnitude)) for magnitude in magnitudes]
        kinds = {(row.shape, row.dtype) for row in rows}
        if len({shape for shape, _ in kinds}) > 1 or rows[0].dtype.kind not in "biuf":
            found = ", ".join(sorted(f"{dtype}{list(shape)}" for shape, dtype in kinds))
            raise ArgumentValueError.here(
                f"mag_to_param of {self.name} must return numbers of the same shape and type for all magnitudes; got "
                f"{found}."
            )
        table = np.stack(rows)
        return table.astype(_TYPES.get(table.dtype, table.dtype))

    def _magnitudes(self, count: int) -> np.ndarray:
        given = self._mag_range
        if isinstance(given, np.ndarray):
            if given.ndim != 1 or given.dtype.kind not in "iuf":
                raise ArgumentValueError.here(
                    f"a mag_range array must be 1-D with one number per bin; the mag_range of {self.name} has shape "
                    f"{given.shape} and type {given.dtype}."
                )
            if len(given) != count:
                raise ArgumentValueError.here(
                    f"mag_range of {self.name} has {len(given)} magnitudes, but num_magnitude_bins is {count}."
                )
            return given
        try:
            low, high = (float(limit) for limit in given or ())
        except (TypeError, ValueError):
            raise ArgumentValueError.here(
                f"mag_range must be two numbers or a NumPy array with one magnitude per bin; {self.name} has {given!r}."
            ) from None
        return np.linspace(low, high, count)

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the class, without the function."""
        return {
            "mag_range": self._mag_range,
            "mag_to_param": self._mag_to_param,
            "randomly_negate": self._randomly_negate,
            "param_device": self._param_device,
            "name": self._name,
        }

    def __repr__(self) -> str:
        given = [f"{key}={value!r}" for key, value in self._settings().items() if value is not None]
        return f"Augmentation({', '.join([repr(self._op), *given])})"


def _named_arguments(op: Any, name: str) -> tuple[frozenset[str], tuple[str, ...], bool]:
    """Return the names of further arguments, those without a default, and whether all names are accepted."""
    if isinstance(op, Augmentation):
        raise ArgumentTypeError.here(
            f"{op.name} is already an augmentation.",
            hint=f"Change its settings with {op.name}.augmentation(...), or decorate the function, {op.name}.op.",
        )
    if not callable(op):
        raise ArgumentTypeError.here(f"an augmentation must be a function; got {op!r}.")
    parameters = list(inspect.signature(op).parameters.values())
    takes_any = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    if len(positional) < 2 and not takes_any:
        raise ArgumentTypeError.here(
            f"an augmentation must take at least two positional arguments, data and parameter; {name} takes "
            f"{len(positional)}.",
            hint=f"For example def {name if name.isidentifier() else 'augment'}(data, parameter): …",
        )
    further = [parameter for parameter in parameters if parameter not in positional[:2]]
    named = [parameter for parameter in further if parameter.kind in _BY_NAME]
    required = tuple(parameter.name for parameter in named if parameter.default is inspect.Parameter.empty)
    takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    return frozenset(parameter.name for parameter in named), required, takes_all
