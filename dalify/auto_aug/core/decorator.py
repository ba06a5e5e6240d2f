"""``@augmentation``: a function of data and a parameter becomes an augmentation with bins of magnitudes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from dalify.auto_aug.core._augmentation import Augmentation, MagnitudeRange
from dalify.graph import DataNode

__all__ = ["augmentation"]


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
    """Make an augmentation of a function.

    Args:
        function: ``function(data, parameter, ...) -> data``, of operators; conditions on graph values work in it.
        mag_range: first and last magnitude; or a numpy array with one magnitude for each bin. Without it the parameter
            is None.
        randomly_negate: negate magnitudes with probability one half, sample by sample.
        mag_to_param: makes the parameter of a magnitude: a number, list or array, of one shape and type for all
            magnitudes. It is called once for each bin when the graph is built, so it cannot use operators. By default
            the magnitude itself, as FLOAT.
        param_device: where the parameter lies: "cpu" (default), "gpu", or "auto" for the device of the data.
        name: that of the function by default.
        augmentation_cls: a class derived from Augmentation to make.

    Raises:
        ArgumentTypeError: `function` takes fewer than two positional arguments, or is an augmentation already.
        ArgumentValueError: an unknown `param_device`.

    Example:
        >>> @augmentation(mag_range=(0, 45), randomly_negate=True)
        ... def tilt(data, angle, fill_value=0):
        ...     return fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=True)
    """

    def made(function: Callable[..., DataNode]) -> Augmentation:
        kind = augmentation_cls or Augmentation
        return kind(function, mag_range, randomly_negate, mag_to_param, param_device, name)

    return made if function is None else made(function)
