"""Tables of MP4 files that declare billions of samples in a few bytes."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from dalify.base.errors import DecodeError, LimitError
from dalify.base.limits import Limits, applied
from dalify.codecs.mp4_tables import check_declared_samples
from dalify.codecs.video import Video
from tests.helpers.videos import FORMS, write_video


def box(kind: bytes, *contents: bytes) -> bytes:
    joined = b"".join(contents)
    return struct.pack(">I4s", 8 + len(joined), kind) + joined


def with_tables(*tables: bytes) -> bytes:
    inside = box(b"trak", box(b"mdia", box(b"minf", box(b"stbl", *tables))))
    return box(b"ftyp", b"isom", bytes(4)) + box(b"moov", inside)


def sizes(sample_bytes: int, count: int) -> bytes:
    return box(b"stsz", struct.pack(">III", 0, sample_bytes, count))


def run(count: int) -> bytes:
    return box(b"moof", box(b"traf", box(b"trun", struct.pack(">II", 0, count))))


def compressed(header: bytes) -> bytes:
    return box(b"moov", box(b"cmov", box(b"cmvd", bytes(4) + zlib.compress(header))))


SMALL = with_tables(sizes(1, 10))
COMPRESSED = with_tables(sizes(1, 1 << 31))[16:]


@pytest.mark.parametrize("as_file", [False, True])
@pytest.mark.parametrize(
    "data",
    [
        with_tables(sizes(1, 1 << 31)),
        with_tables(sizes(1 << 20, 1000)),
        with_tables(sizes(1, 10), sizes(1, 200)),
        SMALL + run(1 << 30),
        SMALL + run(100) * 3,
        struct.pack(">I4sQ", 1, b"mdat", 16) + with_tables(sizes(1, 1 << 30)),
        compressed(COMPRESSED),
        compressed(bytes(65 << 20)),
    ],
)
def test_more_samples_than_bytes_are_refused(data: bytes, as_file: bool, tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(data)
    with pytest.raises(DecodeError, match="damaged"):
        Video(str(path) if as_file else data)


@pytest.mark.parametrize(
    "data", [SMALL, with_tables(sizes(0, 1 << 31)), b"RIFF" + bytes(99), b"\0", SMALL[:30], b"\0\0\0\0ftyp"]
)
def test_others_are_left_to_the_library(data: bytes) -> None:
    check_declared_samples(data)


def test_empty_files() -> None:
    with pytest.raises(DecodeError, match="it is empty"):
        check_declared_samples(b"")


def test_compressed_headers_are_not_nested() -> None:
    with pytest.raises(DecodeError, match="contains another compressed header"):
        check_declared_samples(compressed(compressed(SMALL)))


def test_the_limit_of_declared_samples() -> None:
    with applied(Limits(max_declared_samples=9)), pytest.raises(LimitError, match="max_declared_samples"):
        check_declared_samples(SMALL)


@pytest.mark.parametrize("name", [name for name in FORMS if name.endswith(".mp4")])
def test_real_files_pass(name: str, tmp_path: Path) -> None:
    codec, options = FORMS[name]
    path = write_video(tmp_path / name, codec, count=20, **options)
    check_declared_samples(str(path))
    check_declared_samples(Path(path).read_bytes())
