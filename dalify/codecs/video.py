"""Decodes selected frames of a video, each exactly as if all frames before it had been decoded.

FFmpeg (through PyAV) demuxes and decodes; this module determines where decoding starts and which frames are skipped.
"""

from __future__ import annotations

import errno
import io
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any

from dalify.base.errors import DalifyError, DecodeError
from dalify.base.limits import check_count, check_image, current
from dalify.base.optional import LazyModule
from dalify.base.wording import counted
from dalify.codecs.mp4_tables import check_declared_samples
from dalify.codecs.video_hardware import hardware_decoder, hardware_error
from dalify.codecs.video_table import FrameTable, table_of

av: Any = LazyModule("av", "decoding videos", "dalify[video]")

# Codecs for which non-reference frames can be skipped. In HEVC and AV1, references depend on layers.
_SKIPPABLE = frozenset({"h264", "mpeg4", "mpeg2video", "mpeg1video"})
# For skipping up to this many packets, reading is faster than seeking.
_NEAR_PACKETS = 64
_DISCARDED = 2  # FFmpeg's packet flag: decoded, but not shown
# These are not containers: they refer to other files or URLs, or to devices.
_REJECTED_FORMATS = frozenset(
    {"applehttp", "avisynth", "concat", "dash", "hls", "image2", "imf", "lavfi", "rtp", "rtsp", "sap", "sdp", "tty"}
    | {"vapoursynth", "webm_dash_manifest"}
)
# Decoding a frame is retried from earlier key frames; in damaged videos, these limits end the retries.
_PACKETS_PER_PACKET = 16
_FREE_PACKETS = 10_000
_STRICT = {"err_detect": "crccheck+explode"}  # damage is an error
_UNSUPPORTED_HINT = "Convert the video to H.264, or install a build of PyAV with the decoder."


class Video:
    """An open video with random access to its frames. Not thread-safe.

    Args:
        source: a path, or the bytes of a file.
        table: table of the same file; None to create it on demand.

    Attributes:
        height: height of the frames in pixels.
        width: width of the frames in pixels.

    Raises:
        DecodeError: the source is not a video or cannot be decoded.
        ArgumentValueError, DeviceError: see ``hardware_decoder``.
    """

    def __init__(self, source: str | bytes, table: FrameTable | None = None) -> None:
        self._source = source
        self._table = table
        self._cached_packets: list[Any] | None = None  # packets of a video in memory, read once
        self._uses_hardware = True  # if the user selects it
        self._is_damaged = False  # FFmpeg conceals damage; until it is found, damage is an error
        self._entry = 0  # number of the packet at which the decoder started
        self._is_at_end = True  # the decoder must be restarted
        self._skips = False
        self._last_frame = -1  # number of the last decoded frame
        self._pending: deque[Any] = deque()  # decoded frames that were not returned yet
        self._packets_left = _FREE_PACKETS
        with _decode_errors():
            self._open()
            self.height: int = self._codec.height
            self.width: int = self._codec.width
        if not self.height or not self.width:
            raise DecodeError("the video stream does not specify its frame size; the file may be truncated.")
        check_image(self.height, self.width, "the video")

    def _open(self) -> None:
        source = io.BytesIO(self._source) if isinstance(self._source, bytes) else self._source
        options = {"max_pixels": str(current().max_image_pixels)}
        hardware = hardware_decoder() if self._uses_hardware else None
        try:
            check_declared_samples(self._source)
            self._container: Any = av.open(
                source,
                options=options,
                container_options={"format_whitelist": _formats(), "protocol_whitelist": "file"},
                hwaccel=hardware,
                **_metadata_options(),
            )
        except (av.FFmpegError, OSError, ValueError) as error:
            if isinstance(error, DalifyError):
                raise
            if hardware is None:
                raise DecodeError(f"cannot open the video: {_reason(error)}.") from None
            self._uses_hardware = False
            self._open()  # raises the error of a file that is not a video
            self.close()
            raise hardware_error(error) from None
        stream = next(iter(self._container.streams.video), None)
        if stream is None:
            may_be_truncated = "" if self._container.streams else "; it may be truncated"
            raise DecodeError(f"the file has no video stream{may_be_truncated}.")
        if stream.codec_context is None:
            raise DecodeError("FFmpeg has no decoder for the format of the video.", hint=_UNSUPPORTED_HINT)
        stream.codec_context.thread_count = 1  # samples are decoded in parallel
        # The limit is also for frames that are larger than declared.
        stream.codec_context.options = options if self._is_damaged else options | _STRICT
        self._stream: Any = stream
        self._codec: Any = stream.codec_context
        self._packets: Iterator[Any] = self._demuxed()
        self._next_packet = 0  # number of the next packet

    @property
    def table(self) -> FrameTable:
        """The frames of the video; found by reading all packets."""
        if self._table is None:
            self._table = self._read_table()
        return self._table

    @property
    def quick_count(self) -> int:
        """The number of frames, from the index of the container if possible, otherwise from the packets."""
        if self._table is None and "mp4" in self._container.format.name:
            with _decode_errors():
                listed = sum(1 for entry in self._stream.index_entries if not entry.flags & _DISCARDED)
                if listed and listed == self._stream.frames:
                    return listed
        return self.table.count

    def _read_table(self) -> FrameTable:
        with _decode_errors():
            packets: Iterator[Any] = (packet for packet in self._packets if packet.size)
            if isinstance(self._source, bytes):
                packets = iter(kept := list(packets))
                self._cached_packets = kept
            table = table_of(packets, self._codec.name, self._stream.time_base or Fraction(1))
            count = len(table.packet_pts)
            check_count(count, f"the video has {counted(count, 'frame')}")
            self._next_packet = count
            if table.frame_pts is not None or not count:
                return table
            # Without usable timestamps, decoded frames are counted.
            self._packets_left = count + _FREE_PACKETS
            self._restart(0, table)
            try:
                count = sum(1 for _ in self._decoded(frozenset()))
            except (av.FFmpegError, ValueError):
                self._is_damaged = True
                self._restart(0, table)
                count = sum(1 for _ in self._decoded(frozenset()))
        return FrameTable(None, table.packet_pts, table.packet_dts, table.entries[:1], count, table.time_base)

    def frames(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """Decode frames.

        Args:
            numbers: frame numbers, strictly ascending, from 0 to ``table.count - 1``.

        Yields:
            the number of a frame and the frame (``av.VideoFrame``), in the requested order.

        Raises:
            DecodeError: the data is damaged, or the decoder does not return a frame.
        """
        done = 0
        try:
            for item in self._frames(numbers):
                yield item
                done += 1
        except DecodeError:
            if self._is_damaged:
                raise
            # Decode again on the host, where FFmpeg conceals damage.
            self._uses_hardware = False
            self._is_damaged = True
            yield from self._frames(numbers[done:])

    def _frames(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        table = self.table
        self._packets_left = _PACKETS_PER_PACKET * len(table.packet_pts) + _FREE_PACKETS
        if self._is_damaged:
            self._is_at_end = True  # what the decoder conceals depends on what it has decoded
        try:
            with _decode_errors():
                if table.frame_pts is None:
                    yield from self._by_counting(numbers)
                else:
                    yield from self._by_timestamps(numbers, table)
        except Exception:
            self._is_at_end = True
            raise

    def _by_counting(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        for number in numbers:
            if self._is_at_end or number <= self._last_frame:
                self._restart(0, self.table)
            for frame in self._decoded(frozenset()):
                self._last_frame += 1
                if self._last_frame == number:
                    yield number, frame
                    break
            else:
                raise DecodeError(f"the video ends before its frame {number}.")

    def _by_timestamps(self, numbers: Sequence[int], table: FrameTable) -> Iterator[tuple[int, Any]]:
        assert table.frame_pts is not None, "dalify bug: unknown timestamps"
        wanted = frozenset(table.frame_pts[list(numbers)].tolist()) if len(numbers) else frozenset()
        for number in numbers:
            entry = table.entry_for(number)
            step = 1
            # Decoding continues, unless the frame was passed or a later key frame precedes it.
            restarts = self._is_at_end or number <= self._last_frame or int(table.entries[entry]) > self._next_packet
            restarts = restarts or (self._is_damaged and int(table.entries[entry]) != self._entry)
            while True:
                if restarts:
                    self._restart(int(table.entries[entry]), table)
                frame = self._next_until(number, wanted, table)
                if frame is not None:
                    yield number, frame
                    break
                # Not a true key frame, for example with intra refresh: retry from an earlier one.
                if restarts:
                    if entry == 0:
                        raise DecodeError(f"the decoder does not return frame {number}; the video may be damaged.")
                    entry = max(0, entry - step)
                    step *= 2
                restarts = True

    def _next_until(self, number: int, wanted: frozenset[int], table: FrameTable) -> Any:
        """Decode until a frame is returned; None if a later frame or the end of the video is reached first."""
        for frame in self._decoded(wanted):
            found = table.number_of(frame.pts)
            if found is None:
                continue
            self._last_frame = max(self._last_frame, found)
            if found == number:
                return frame
            if found > number:
                return None
        return None

    def _decoded(self, wanted: frozenset[int]) -> Iterator[Any]:
        """Yield frames from the current position to the end of the video.

        Args:
            wanted: timestamps of needed frames; others may be skipped if they are not references. Empty for all frames.
        """
        pending = self._pending
        while pending:
            yield pending.popleft()
        if self._is_at_end:
            return
        codec = self._codec
        can_skip = bool(wanted) and codec.name in _SKIPPABLE
        for packet in self._packets:
            if not packet.size:
                continue
            self._next_packet += 1
            self._packets_left -= 1
            if self._packets_left < 0:
                raise DecodeError("the video is damaged: its frames are not at their declared positions.")
            if can_skip:
                self._skip(packet.pts not in wanted)
            pending.extend(codec.decode(packet))
            while pending:
                yield pending.popleft()
        self._is_at_end = True
        pending.extend(codec.decode(None))
        while pending:
            yield pending.popleft()

    def _skip(self, skips: bool) -> None:
        if skips != self._skips:
            self._skips = skips
            self._codec.skip_frame = "NONREF" if skips else "DEFAULT"

    def _restart(self, first: int, table: FrameTable) -> None:
        """Seek to a packet and flush the decoder; the decoder of a damaged video is created again."""
        if self._is_damaged:
            self.close()
            self._open()
        if self._cached_packets is not None:
            self._packets = iter(self._cached_packets[first:])
        elif not 0 <= first - self._next_packet <= _NEAR_PACKETS or not self._skip_packets(first - self._next_packet):
            self._seek(first, table)
        if self._codec.is_open:
            self._codec.flush_buffers()
        self._skip(False)
        self._pending.clear()
        self._next_packet = self._entry = first
        self._is_at_end = False
        self._last_frame = -1

    def _seek(self, first: int, table: FrameTable) -> None:
        """Position ``_packets`` at a packet of the file."""
        if table.frame_pts is not None:
            self._container.seek(int(min(table.packet_dts[first], table.packet_pts[first])), stream=self._stream)
            packets = self._demuxed()
            for packet in packets:
                found = table.packet_of(packet.pts) if packet.size else None
                if found is None or found > first:
                    break
                if found == first:
                    self._packets = _with_first(packet, packets)
                    return
        # The container has no index of its packets, or a wrong one.
        self.close()
        self._open()
        self._skip_packets(first)

    def _demuxed(self) -> Iterator[Any]:
        try:
            yield from self._container.demux(self._stream)
        except IndexError:  # raised by PyAV for a packet of a stream that starts in the middle of a file
            raise DecodeError("the file is damaged: a stream starts in the middle of it.") from None

    def _skip_packets(self, count: int) -> bool:
        """Skip ``count`` packets; return whether there were enough."""
        while count:
            packet = next(self._packets, None)
            if packet is None:
                return False
            count -= bool(packet.size)
        return True

    def close(self) -> None:
        """Close the file."""
        self._packets = iter(())
        self._container.close()


def _with_first(packet: Any, packets: Iterator[Any]) -> Iterator[Any]:
    yield packet
    yield from packets


@contextmanager
def _decode_errors() -> Iterator[None]:
    """Convert exceptions of PyAV to DecodeError."""
    try:
        yield
    except (DalifyError, ImportError):
        raise
    except Exception as error:
        if isinstance(error, MemoryError) and not isinstance(error, av.FFmpegError):
            raise
        raise _decode_error(error) from None


def _decode_error(error: Exception) -> DecodeError:
    """Return the error for an exception of PyAV."""
    reason = _reason(error)
    if isinstance(error, MemoryError):  # FFmpeg's, also for invalid sizes
        return DecodeError("FFmpeg cannot allocate memory: the video is damaged, or memory is exhausted.")
    if isinstance(error, _unsupported()):
        return DecodeError(f"FFmpeg does not support the video: {reason}.", hint=_UNSUPPORTED_HINT)
    # Demuxers also report damaged data as an input/output error.
    if isinstance(error, OSError) and error.errno != errno.EIO:
        return DecodeError(f"cannot read the video: {reason}.")
    return DecodeError(f"the video is damaged: {reason}.")


@cache
def _unsupported() -> tuple[type[Exception], ...]:
    """Return the exceptions for features that this build of FFmpeg does not implement."""
    named = av.error.LookupError, av.error.PatchWelcomeError, av.error.ExperimentalError
    return NotImplementedError, av.codec.codec.UnknownCodecError, *named


@cache
def _metadata_options() -> dict[str, str]:
    """Return the option of ``av.open`` that accepts metadata that is not UTF-8; PyAV 19 and later always accept it."""
    return {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}


@cache
def _formats() -> str:
    """Return the formats that FFmpeg may detect, as a format whitelist."""
    return ",".join(sorted(av.formats_available - _REJECTED_FORMATS))


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).rstrip(".")
