"""The size of a resize and the filters that compute it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalify.base.errors import DTypeError
from dalify.data import DALIDataType, DALIInterpType
from dalify.kernels.images.resample import WHOLE_RESULTS
from dalify.kernels.images.resample_axes import resample_axes
from dalify.kernels.images.resize_geometry import (
    ResizeGeometry,
    check_resize_arguments,
    chunk_geometry,
    resize_geometry,
)
from dalify.parameter_groups.crop import CropWindow
from dalify.registry import AnySamples, Parameters, PerSample, Shaping, Spec


@dataclass
class ResizeRegion(Parameters):
    """The region of the source that a resized sample shows, and how its extents are computed.

    Attributes:
        max_size: maximum extents of the result, one for all axes or one each; 0 or less: no limit. Modes that keep the
            aspect ratio still keep it.
        mode: ``default``: missing extents are scaled like the others; ``stretch``: missing extents are not changed;
            ``not_larger``: keep the aspect ratio, with no extent above its size; ``not_smaller``: keep it, with none
            below.
        roi_start: start of the source region.
        roi_end: end of the source region in pixels, one number per spatial axis. Less than `roi_start`:
            mirrored. Wide filters also read pixels around the region.
        roi_relative: the region is in fractions of the extents, 0 to 1.
        subpixel_scale: if a computed extent is not an integer, adjust the region about its center to keep the exact
            scale.
    """

    max_size: list[float] | None = None
    mode: str = "default"
    roi_start: Shaping[list[float]] | None = None
    roi_end: Shaping[list[float]] | None = None
    roi_relative: bool = False
    subpixel_scale: bool = True

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that are the same for all samples, by name."""
        return self.named("mode", "max_size", "roi_relative", "subpixel_scale")


@dataclass
class ResizeSize(ResizeRegion):
    """Extents of a resized image, and the region of the source that it shows.

    Attributes:
        size: extents in pixels, one for all spatial axes or one each, outermost first; 0: computed from the others;
            negative: mirrored.
        resize_shorter: extent of the shortest axis in pixels; the aspect ratio is kept.
        resize_longer: extent of the longest axis in pixels; the aspect ratio is kept.
        resize_x: extent of W in pixels; 0: computed from the others; negative: mirrored.
        resize_y: the same for H.
        resize_z: the same for D.
    """

    size: Shaping[list[float]] | None = None
    resize_shorter: Shaping[float] | None = None
    resize_longer: Shaping[float] | None = None
    resize_x: Shaping[float] | None = None
    resize_y: Shaping[float] | None = None
    resize_z: Shaping[float] | None = None

    @property
    def shaping(self) -> dict[str, Any]:
        """The arguments that can vary per sample, by name."""
        extents = ("size", "resize_shorter", "resize_longer", "resize_x", "resize_y", "resize_z")
        return self.named(*extents, "roi_start", "roi_end")

    def check(self) -> None:
        """Raise ArgumentValueError if the size is not specified in exactly one way, or for an unknown mode."""
        check_resize_arguments(mode=self.mode, **self.shaping)

    def geometry(self, extents: Sequence[int]) -> ResizeGeometry:
        """Return size and source window of one sample; see `resize_geometry`."""
        return resize_geometry(extents, **self.options, **self.shaping)

    def chunk(self, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return sizes, starts and ends of the source windows of a chunk; see `chunk_geometry`. Do not modify them."""
        content = extents.tobytes()
        known, found = self._last[0]
        if found is None or content != known:
            found = chunk_geometry(extents, **self._checked)
            self._last[0] = content, found
        return found

    def edges(self, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the same, with starts and ends in float32, as `resample_axes` needs them. Do not modify them."""
        found = self.chunk(extents)
        known, rounded = self._last_edges[0]
        if rounded is None or found is not known:
            sizes, start, end = found
            rounded = sizes, start.astype(np.float32), end.astype(np.float32)
            self._last_edges[0] = found, rounded
        return rounded

    @cached_property
    def _last_edges(self) -> list[tuple[Any, tuple[np.ndarray, np.ndarray, np.ndarray] | None]]:
        """The last result of `chunk`, and the result of `edges` for it."""
        return [(None, None)]

    @cached_property
    def _last(self) -> list[tuple[bytes, tuple[np.ndarray, np.ndarray, np.ndarray] | None]]:
        """The last extents, often the extents of a constant crop, and their result."""
        return [(b"", None)]

    @cached_property
    def _checked(self) -> dict[str, Any]:
        """The arguments of `chunk_geometry`, checked: the rule checks only while the graph is built."""
        self.check()
        return {**self.options, **self.shaping}


@dataclass(slots=True)
class Filters(Parameters):
    """Filters of a resize.

    Attributes:
        antialias: widen the filter when downscaling, so that no pixel is skipped. Ignored by nearest-neighbor
            interpolation.
        interp_type: filter for downscaling and upscaling; by default INTERP_LINEAR.
        mag_filter: filter for upscaling; by default `interp_type`.
        min_filter: filter for downscaling; by default `interp_type`.
    """

    antialias: bool = True
    interp_type: PerSample[DALIInterpType] | None = None
    mag_filter: PerSample[DALIInterpType] | None = None
    min_filter: PerSample[DALIInterpType] | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of `resample_axes`, by name."""
        return self.named("antialias", "interp_type", "min_filter", "mag_filter")

    def resample(
        self,
        out: AnySamples,
        x: AnySamples,
        layout: str,
        start: np.ndarray,
        end: np.ndarray,
        parts: np.ndarray | None = None,
    ) -> None:
        """Fill results from windows of the sources; see `resample_axes`."""
        resample_axes(out, x, layout, start, end, parts, **self.values)

    def kinds(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the filters for downscaling and upscaling of `count` samples, int32 [N] each."""
        both: Any = self.interp_type
        if both is None:
            both = np.full(count, int(DALIInterpType.INTERP_LINEAR), np.int32)
        smaller, larger = (both if kind is None else kind for kind in (self.min_filter, self.mag_filter))
        return np.asarray(smaller, np.int32), np.asarray(larger, np.int32)


def result_type(x: Spec, dtype: DALIDataType | None) -> DALIDataType | None:
    """Return the element type of a resized input.

    Raises:
        DTypeError: the requested dtype is neither FLOAT nor the dtype of the input.
    """
    if dtype not in (None, x.dtype, DALIDataType.FLOAT):
        raise DTypeError(
            f"dtype must be types.FLOAT or the element type of the input; got {dtype.text}.", argument="dtype"
        )
    return dtype or x.dtype


def cropped_sources(
    target: ResizeSize, window: CropWindow, letters: str, extents: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start and end of the source windows of crops of resized samples, and the extents of the crops.

    Args:
        target: size after the resize.
        window: crop, in pixels of the resized samples.
        letters: letters of the k spatial axes.
        extents: int64 [N, k], of the sources.

    Returns:
        float [N, k], float [N, k] and int64 [N, k].
    """
    sizes, start, end = target.chunk(extents)
    crop_start, windows = window.windows(sizes, letters, "pad", skips_whole=False)
    # Map the crop window from pixels of the resized image to pixels of the source.
    scale = (end - start) / np.maximum(sizes, 1)
    return start + crop_start * scale, start + (crop_start + windows) * scale, windows


def cropped_parts(
    target: ResizeSize, window: CropWindow, extents: np.ndarray, device: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what an operator on a device resamples to compute crops of resized images.

    On the CPU, the source windows are those of the resize, and the crops are parts of its results: integers are equal
    to those of a resize before the crop. On a GPU, the windows are those of `cropped_sources`, and positions are
    rounded differently.

    Args:
        target: see `cropped_sources`, like the following arguments.
        window: crop.
        extents: of the sources, int64 [N, 2].
        device: ``cpu`` or ``gpu``.

    Returns:
        float [N, 2], float [N, 2], the extents of the crops, int64 [N, 2], and `parts` of `Windows`.
    """
    if device == "gpu":
        return *cropped_sources(target, window, "HW", extents), WHOLE_RESULTS
    sizes, start, end = target.edges(extents)
    crop_start, windows = window.windows(sizes, "HW", "pad", skips_whole=False)
    return start, end, windows, np.concatenate([np.maximum(sizes, 1), crop_start], 1)
