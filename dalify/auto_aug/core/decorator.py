"""``@augmentation``: turns a function of data and a parameter into an augmentation with magnitude bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from dalify.auto_aug.core._augmentation import Augmentation, MagnitudeRange
from dalify.graph import DataNode


@overload
def augmentation(
    function: Callable[..., DataNode],
    *,
    mag_range: MagnitudeRange = ...,
    randomly_negate: bool | None = ...,
    mag_to_param: Callable[[float], Any] | None = ...,
    param_device: str | None = ...,
    name: str | None = ...,
    augmentation_cls: type[Augmentation] | None = ...,
) -> Augmentation: ...


@overload
def augmentation(
    function: None = None,
    *,
    mag_range: MagnitudeRange = ...,
    randomly_negate: bool | None = ...,
    mag_to_param: Callable[[float], Any] | None = ...,
    param_device: str | None = ...,
    name: str | None = ...,
    augmentation_cls: type[Augmentation] | None = ...,
) -> Callable[[Callable[..., DataNode]], Augmentation]: ...


def augmentation(
    function: Callable[..., DataNode] | None = None,
    *,
    mag_range: MagnitudeRange = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[float], Any] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Any:
    """Turn a function into an augmentation.

    Args:
        function: ``function(data, parameter, ...) -> data``, composed of operators; can contain conditions on graph
            values.
        mag_range: first and last magnitude; or a NumPy array with one magnitude per bin. Without it the parameter
            is None.
        randomly_negate: negate magnitudes with probability one half, per sample.
        mag_to_param: converts a magnitude to the parameter: a number, list or array, of the same shape and type for all
            magnitudes. It is called once per bin when the graph is built, so it cannot use operators. By default the
            parameter is the magnitude as FLOAT.
        param_device: device of the parameter: "cpu" (default), "gpu", or "auto" for the device of the data.
        name: by default the name of the function.
        augmentation_cls: subclass of Augmentation to instantiate.

    Raises:
        ArgumentTypeError: `function` takes fewer than two positional arguments, or is already an augmentation.
        ArgumentValueError: an unknown `param_device`.

    Example:
        >>> @augmentation(mag_range=(0, 45), randomly_negate=True)
        ... def tilt(data, angle, fill_value=0):
        ...     return fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=True)
    """

    def make(function: Callable[..., DataNode]) -> Augmentation:
        kind = augmentation_cls or Augmentation
        return kind(function, mag_range, randomly_negate, mag_to_param, param_device, name)

    return make if function is None else make(function)
