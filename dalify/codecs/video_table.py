"""Which frames a video has, and from which packet each one can be decoded.

Alone because "frame number 317" is no notion of video files: they hold packets, in the order of decoding, with
timestamps. The table is made by reading all packets once, without decoding them, so that frames are the same whether a
video is decoded from its beginning or entered anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FrameTable", "is_shown", "table_of"]

_VP8_SHOWN = 1 << 4


@dataclass(frozen=True, eq=False, slots=True)
class FrameTable:
    """The frames of a video in the order in which they are shown.

    Attributes:
        frame_pts: timestamp of each frame, ascending; None where timestamps are missing or ambiguous. Then frames are
            numbered by decoding from the beginning.
        packet_pts: timestamp of each packet, in decoding order.
        packet_dts: where to send a container for a packet.
        entries: for each packet that decoding can begin with, its number; ascending, the first is 0.
        count: number of frames.
        time_base: seconds per unit of the timestamps.
    """

    frame_pts: NDArray[np.int64] | None
    packet_pts: NDArray[np.int64]
    packet_dts: NDArray[np.int64]
    entries: NDArray[np.int64]
    count: int
    time_base: Fraction

    def number_of(self, pts: int | None) -> int | None:
        """Return the number of the frame with a timestamp; None where there is none."""
        if pts is None or self.frame_pts is None:
            return None
        number = int(np.searchsorted(self.frame_pts, pts))
        return number if number < self.count and self.frame_pts[number] == pts else None

    def entry_for(self, frame: int) -> int:
        """Return which of ``entries`` is the last one from which a frame can be decoded.

        Frames that are shown before a key frame but stored behind it may need what was before that (open groups of
        pictures): for them it is no entry.
        """
        if self.frame_pts is None:
            return 0
        reachable = np.flatnonzero(self.packet_pts[self.entries] <= self.frame_pts[frame])
        return int(reachable[-1]) if len(reachable) else 0

    def packet_of(self, pts: int | None) -> int | None:
        """Return the number of the packet with a timestamp; None where there is none or more than one."""
        found = np.flatnonzero(self.packet_pts == pts) if pts is not None else ()
        return int(found[0]) if len(found) == 1 else None

    def seconds(self, frames: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the times of frames; NaN where the file tells none."""
        if self.frame_pts is None:
            return np.full(len(frames), np.nan)
        return self.frame_pts[frames].astype(np.float64) * float(self.time_base)


def is_shown(packet: Any, codec: str) -> bool:
    """Tell whether a packet gives a frame: some are only decoded for others to refer to."""
    if packet.is_discard:
        return False
    return codec != "vp8" or bool(memoryview(packet)[0] & _VP8_SHOWN)


def table_of(packets: Iterable[Any], codec: str, time_base: Fraction) -> FrameTable:
    """Make the table of a video.

    Args:
        packets: all of its packets, in the order of the file.
        codec: name of the decoder.
        time_base: of the stream.
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
