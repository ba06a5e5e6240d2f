"""The table of the frames of a video, and the packets from which each frame can be decoded.

Video files contain packets in decoding order, with timestamps instead of frame numbers. The table is created by reading
all packets once, without decoding them, so that frames are the same from whatever position a video is decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

_VP8_SHOWN = 1 << 4


@dataclass(frozen=True, eq=False, slots=True)
class FrameTable:
    """The frames of a video in presentation order.

    Attributes:
        frame_pts: timestamp of each frame, ascending; None if timestamps are missing or ambiguous. Frames are then
            counted by decoding from the start.
        packet_pts: timestamp of each packet, in decoding order.
        packet_dts: seek position of each packet.
        entries: indices of the packets from which decoding can start; ascending, the first is 0.
        count: number of frames.
        time_base: seconds per unit of the timestamps.
    """

    frame_pts: NDArray[np.int64] | None
    packet_pts: NDArray[np.int64]
    packet_dts: NDArray[np.int64]
    entries: NDArray[np.int64]
    count: int
    time_base: Fraction

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        arrays = self.packet_pts, self.packet_dts, self.entries
        return sum(array.nbytes for array in arrays) + (0 if self.frame_pts is None else self.frame_pts.nbytes)

    def number_of(self, pts: int | None) -> int | None:
        """Return the number of the frame with a timestamp, or None."""
        if pts is None or self.frame_pts is None:
            return None
        number = int(np.searchsorted(self.frame_pts, pts))
        return number if number < self.count and self.frame_pts[number] == pts else None

    def entry_for(self, frame: int) -> int:
        """Return the index of the last of ``entries`` from which a frame can be decoded.

        Frames that are shown before a key frame but stored after it may refer to earlier frames (open GOP), so they
        cannot be decoded from that key frame.
        """
        if self.frame_pts is None:
            return 0
        reachable = np.flatnonzero(self.packet_pts[self.entries] <= self.frame_pts[frame])
        return int(reachable[-1]) if len(reachable) else 0

    def packet_of(self, pts: int | None) -> int | None:
        """Return the number of the packet with a timestamp; None if there is none or more than one."""
        found = np.flatnonzero(self.packet_pts == pts) if pts is not None else ()
        return int(found[0]) if len(found) == 1 else None

    def seconds(self, frames: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the times of frames; NaN if the file does not specify them."""
        if self.frame_pts is None:
            return np.full(len(frames), np.nan)
        return self.frame_pts[frames].astype(np.float64) * float(self.time_base)


def is_shown(packet: Any, codec: str) -> bool:
    """Return whether a packet produces a visible frame; some packets are only decoded as references."""
    if packet.is_discard:
        return False
    return codec != "vp8" or bool(memoryview(packet)[0] & _VP8_SHOWN)


def table_of(packets: Iterable[Any], codec: str, time_base: Fraction) -> FrameTable:
    """Create the table of a video.

    Args:
        packets: all packets, in file order.
        codec: name of the decoder.
        time_base: time base of the stream.
    """
    rows = [(packet.pts, packet.dts, packet.is_keyframe, is_shown(packet, codec)) for packet in packets if packet.size]
    count = sum(1 for row in rows if row[3])
    packet_pts = np.array([_known(pts) for pts, _, _, _ in rows], np.int64)
    packet_dts = np.array([_known(pts if dts is None else dts) for pts, dts, _, _ in rows], np.int64)
    is_entry = np.array([row[2] for row in rows], bool)
    is_entry[:1] = True
    frame_pts = np.sort(packet_pts[np.array([row[3] for row in rows], bool)])
    is_clear = bool(rows) and all(row[0] is not None for row in rows) and len(np.unique(packet_pts)) == len(rows)
    return FrameTable(
        frame_pts if is_clear else None, packet_pts, packet_dts, np.flatnonzero(is_entry), count, time_base
    )


def _known(timestamp: int | None) -> int:
    return np.iinfo(np.int64).min if timestamp is None else timestamp
