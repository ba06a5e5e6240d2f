"""Normalize data to mean 0 and standard deviation 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalify.base.errors import ArgumentValueError, DalifyError, ShapeError
from dalify.base.narrow import is_array
from dalify.data import DALIDataType, DeviceSamples, Samples
from dalify.kernels.arrays.normalize import (
    batch_statistics,
    check_parameter,
    given_factors,
    kept_shape,
    normalize_samples_torch,
    parameter_axes,
    per_result,
    scale_factors,
)
from dalify.kernels.arrays.normalize import normalize as normalize_cpu
from dalify.kernels.arrays.reduce import result_counts
from dalify.parameter_groups.normalization import Standardization
from dalify.registry import AnySamples, AnyShape, PerSample, Spec, Vectors, operator


@operator(alphabetical=True, whole_batch=lambda arguments: arguments.get("batch", False))
def normalize(
    x: Spec,
    /,
    *,
    batch: bool = False,
    dtype: DALIDataType = DALIDataType.FLOAT,
    mean: PerSample[AnyShape[list[float]]] | None = None,
    standardization: Standardization,
    stddev: PerSample[AnyShape[list[float]]] | None = None,
) -> Spec:
    """Normalize data by mean and standard deviation: (x - mean) / sqrt(stddev**2 + epsilon) * scale + shift.

    Both are computed per sample, over all axes or the specified ones, unless they are specified. If the standard
    deviation is 0, the result is `shift`.

    Args:
        x: data of any type.
        axes: axes over which mean and standard deviation are computed; by default all, or if `mean` or `stddev` has
            several entries, the axes other than those (channels preferred) that match them. Negative axes count from
            the end.
        batch: compute over all samples of the batch together; extents along the other axes must match.
        ddof: delta degrees of freedom: the divisor of the variance is the number of values minus `ddof`. Ignored if
            `stddev` is specified.
        dtype: type of the result; integers are rounded and saturated.
        mean: mean in units of the data: one number, or one for each position along the axes that are not in `axes`; by
            default computed.
        stddev: standard deviation, like `mean`.

    Returns:
        same shape and layout.

    Raises:
        ArgumentValueError: no axes, or `mean` or `stddev` does not match them.
        IndexingError: an axis does not exist.
        LayoutError: a letter of `axis_names` is not in the layout.
        ShapeError: with `batch`, extents of other axes differ; without axes, `mean` or `stddev` matches no axes.

    Example:
        >>> standard = fn.normalize(images, axis_names="HW", epsilon=1e-6)  # doctest: +SKIP
    """
    if not standardization.chosen_axes(x) and x.ndim:
        raise ArgumentValueError("axes must not be empty.")
    if standardization.epsilon < 0:
        raise ArgumentValueError(f"epsilon must not be negative; got {standardization.epsilon:g}.")
    return x.replace(dtype=dtype)


def _axes(
    spec: Spec, shape: Sequence[int], standardization: Standardization, *given: np.ndarray | None
) -> tuple[int, ...]:
    if not standardization.has_axes:
        counts = {values.shape[1] for values in given if values is not None} - {1}
        if counts:
            layout = spec.layout or ""
            channels = layout.index("C") if "C" in layout else len(shape) - 1
            return parameter_axes(shape, max(counts), channels)
    return standardization.chosen_axes(Spec(layout=spec.layout, ndim=len(shape)))


def _of_batch(
    x: AnySamples, spec: Spec, standardization: Standardization, mean: Vectors | None, stddev: Vectors | None
) -> tuple[Vectors, np.ndarray | None]:
    """Return mean and factor of each sample; if not given, they are computed from all samples together."""
    if any(values is not None and len(values[0]) != 1 for values in (mean, stddev)):
        raise ArgumentValueError("with batch=True, mean and stddev must be a single number.")
    chosen = _axes(spec, x.shapes[0].tolist(), standardization)
    center = None if mean is None else np.asarray(mean[:1], np.float64)
    found, squares, number = batch_statistics(x, chosen, center)
    factor = scale_factors(squares, number, standardization.ddof, standardization.epsilon, standardization.scale, np)
    return (
        np.repeat(found, len(x), axis=0) if mean is None else mean,
        np.repeat(np.asarray(factor), len(x), axis=0) if stddev is None else None,
    )


def _resolve(shape, standardization, mean, stddev, factor, spec):
    """Return axes, mean and factor for samples of a shape; a mean or factor that the kernel must compute is None."""
    mean, stddev = (None if values is None else np.asarray(values, np.float64) for values in (mean, stddev))
    chosen = _axes(spec, shape, standardization, mean, stddev)
    kept = kept_shape(shape, chosen)
    check_parameter(mean, "mean", kept)
    check_parameter(stddev, "stddev", kept)
    if stddev is not None:
        factor = given_factors(stddev, standardization.epsilon, standardization.scale)
    return chosen, mean, factor


@normalize.cpu_samples
def _(
    out: Samples,
    x: Samples,
    *,
    batch: bool,
    mean: Vectors | None,
    standardization: Standardization,
    stddev: Vectors | None,
    spec: Spec,
) -> None:
    factor = None
    if batch and (mean is None or stddev is None):
        mean, factor = _of_batch(x, spec, standardization, mean, stddev)
    elif mean is None and stddev is None:  # the same axes for all samples
        normalize_cpu(out, x, None, None, standardization.chosen_axes(spec), **standardization.options)
        return
    given = mean, stddev, factor
    kinds = _axes_of_samples(spec, x, standardization, mean, stddev)
    for chosen in dict.fromkeys(kinds):
        numbers = [n for n, kind in enumerate(kinds) if kind == chosen]
        if len(numbers) == len(x):
            _normalize_alike(out, x, chosen, standardization, *given)
        else:
            rows = np.array(numbers)
            taken = [None if values is None else [values[n] for n in numbers] for values in given]
            try:
                _normalize_alike(out.take(rows), x.take(rows), chosen, standardization, *taken)
            except ArgumentValueError as error:
                error.sample = None if error.sample is None else numbers[error.sample]
                raise


def _axes_of_samples(
    spec: Spec, x: Samples, standardization: Standardization, mean: Vectors | None, stddev: Vectors | None
) -> list[tuple[int, ...]]:
    """Return the axes of each sample; the axes of a given mean depend on the extents."""
    given = [values for values in (mean, stddev) if values is not None]
    rows = [np.asarray(values[0])[None] for values in given]
    first = _axes(spec, x.shapes[0].tolist(), standardization, *rows)
    if standardization.has_axes or all(is_array(v) and v.shape[1] == 1 for v in given):
        return [first] * len(x)
    channels = (spec.layout or "").find("C") % x.ndim
    is_alike = all(map(is_array, given)) and channels not in first and len(first) == x.ndim - 1
    if is_alike and (x.extents(channels) == x.shapes[0, channels]).all():
        return [first] * len(x)
    found: list[tuple[int, ...]] = []
    for n, shape in enumerate(x.shapes.tolist()):
        try:
            found.append(_axes(spec, shape, standardization, *(np.asarray(values[n])[None] for values in given)))
        except ShapeError as error:
            error.sample = n
            raise
    return found


def _normalize_alike(
    out: Samples,
    x: Samples,
    axes: tuple[int, ...],
    standardization: Standardization,
    mean: Vectors | None,
    stddev: Vectors | None,
    factor: Vectors | None,
) -> None:
    """Normalize samples along the same axes."""
    counts = result_counts(x, axes)
    means, deviations, factors = (
        None if values is None else per_result(values, name, counts)
        for name, values in (("mean", mean), ("stddev", stddev), ("stddev", factor))
    )
    if deviations is not None:
        factors = given_factors(deviations, standardization.epsilon, standardization.scale)
    normalize_cpu(out, x, means, factors, axes, **standardization.options)


@normalize.gpu_samples
def _(
    out: DeviceSamples,
    x: DeviceSamples,
    *,
    batch: bool,
    mean: Vectors | None,
    standardization: Standardization,
    stddev: Vectors | None,
    spec: Spec,
) -> None:
    batch_factor = None
    if batch and (mean is None or stddev is None):
        mean, batch_factor = _of_batch(x, spec, standardization, mean, stddev)
    elif mean is None and stddev is None:
        none = [None] * len(x)
        chosen = [_axes(spec, x.shapes[0].tolist(), standardization)] * len(x)
        normalize_samples_torch(out, x, none, none, chosen, **standardization.options)
        return
    chosen: list[tuple[int, ...]] = []
    centers: list[np.ndarray | None] = []
    factors: list[np.ndarray | None] = []
    for n, shape in enumerate(x.shapes.tolist()):
        given = (mean, stddev, batch_factor)
        one, two, three = (None if values is None else values[n][None] for values in given)
        try:
            found, center, factor = _resolve(shape, standardization, one, two, three, spec)
        except DalifyError as error:
            error.sample = n
            raise
        chosen.append(found)
        centers.append(_per_result(center, shape, found))
        factors.append(_per_result(factor, shape, found))
    normalize_samples_torch(out, x, centers, factors, chosen, **standardization.options)


def _per_result(values: np.ndarray | None, shape: list[int], axes: tuple[int, ...]) -> np.ndarray | None:
    """Return a parameter of a sample with its number of dimensions: one number, or one for each result."""
    if values is None:
        return None
    return values.reshape([1] * len(shape) if values.size == 1 else kept_shape(shape, axes))
