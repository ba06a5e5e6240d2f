"""Converts decoded video frames to arrays in DALI's color spaces.

Results are bit-exact with DALI's CPU decoder: chroma is interpolated linearly at full resolution, the matrix is always
that of BT.601, and the value range is that of the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalify.base.errors import DecodeError
from dalify.codecs.chroma import FULL_RANGE, STUDIO_RANGE, is_supported, planes_to_rgb
from dalify.codecs.video import av
from dalify.data.dtypes import DALIImageType

_FORMATS = {DALIImageType.RGB: "rgb24", DALIImageType.YCbCr: "yuv444p"}
# Formats that ``chroma`` converts; the deprecated names with a j have full range.
_PLANAR = frozenset({"yuv420p", "yuv422p", "yuv444p", "yuvj420p", "yuvj422p", "yuvj444p"})
_FULL_RANGE = 2


class FrameConverter:
    """Converts the frames of one video; reuses the tables of FFmpeg's converter. Not thread-safe.

    Args:
        image_type: RGB, or YCbCr in the range of the file.
    """

    def __init__(self, image_type: DALIImageType = DALIImageType.RGB) -> None:
        reformatter = av.video.reformatter
        self._is_planar = image_type == DALIImageType.YCbCr
        self._format = _FORMATS[image_type]
        flags = reformatter.Interpolation
        self._flags = flags.BILINEAR | flags.FULL_CHR_H_INT | flags.ACCURATE_RND
        self._matrix = reformatter.Colorspace.ITU601
        self._reformatter = reformatter.VideoReformatter()
        self._form: tuple[Any, ...] = ()  # format of the previous frame
        self._sites: list[bool] = []  # chroma sites that agree with the frames so far: on the left pixel, or between

    def fill(self, out: np.ndarray[Any, Any], frame: Any) -> None:
        """Convert a frame.

        Args:
            out: uint8 ``[height, width, 3]``, output.
            frame: ``av.VideoFrame``.

        Raises:
            DecodeError: the size of the frame is not the size of the video.
        """
        if (frame.height, frame.width) != out.shape[:2]:
            raise DecodeError(
                f"the frame size changes within the video: {out.shape[0]} x {out.shape[1]}, "
                f"then {frame.height} x {frame.width}."
            )
        form = (frame.format.name, int(frame.color_range) == _FULL_RANGE, frame.height, frame.width)
        if form != self._form:
            self._form = form
            is_known = (
                form[0] in _PLANAR and not self._is_planar and is_supported(frame.planes, frame.width, frame.height)
            )
            self._sites = [False, True] if is_known else []
        if len(self._sites) == 1:
            self._compiled(out, frame, self._sites[0])
            return
        self._convert(out, frame)
        if self._sites:
            # The chroma site is found by comparison with FFmpeg's converter; frames without color agree with both.
            trial = np.empty_like(out)
            self._sites = [site for site in self._sites if self._agrees(trial, out, frame, site)]
            if form[0].endswith("444p"):
                self._sites = self._sites[:1]

    def _agrees(self, trial: np.ndarray[Any, Any], out: np.ndarray[Any, Any], frame: Any, site: bool) -> bool:
        self._compiled(trial, frame, site)
        return np.array_equal(trial, out)

    def _compiled(self, out: np.ndarray[Any, Any], frame: Any, site: bool) -> None:
        height, width = out.shape[:2]
        is_full = self._form[1] or "j" in self._form[0]
        luma, cb, cr = (_rows(plane, plane.width) for plane in frame.planes)
        planes_to_rgb(out.reshape(height, 3 * width), luma, cb, cr, FULL_RANGE if is_full else STUDIO_RANGE, site)

    def _convert(self, out: np.ndarray[Any, Any], frame: Any) -> None:
        converted = self._reformatter.reformat(
            frame,
            format=self._format,
            src_colorspace=self._matrix,
            dst_colorspace=self._matrix,
            interpolation=self._flags,
            threads=1,
        )
        if self._is_planar:
            for channel, plane in enumerate(converted.planes):
                out[..., channel] = _rows(plane, out.shape[1])
        else:
            (plane,) = converted.planes
            out.reshape(out.shape[0], -1)[...] = _rows(plane, 3 * out.shape[1])


def _rows(plane: Any, width: int) -> np.ndarray[Any, Any]:
    """Return the bytes of a plane, without the padding of rows."""
    return np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height, :width]
