"""Where file formats declare lengths, counts and extents, and how their check sums are made right again.

Each walker reads the little that it needs and stops at the first thing that it does not understand: it is given files
that were changed already.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.fuzz.mutations import Field, mutated_bytes, mutated_json, numbers_in_text
from tests.helpers.containers import masked_crc

_MAX_FIELDS = 600


@dataclass(frozen=True)
class Format:
    """Knowledge about a file format.

    Attributes:
        fields: finds places of lengths, counts and extents.
        repaired: makes check sums right, so that changes get past them.
        tokens: bytes with a meaning.
        is_json: the file is one JSON document.
    """

    fields: Callable[[bytes], Iterable[Field]] = lambda data: ()
    repaired: Callable[[bytes], bytes] = lambda data: data
    tokens: tuple[bytes, ...] = ()
    is_json: bool = False


def mutated_file(data: bytes, other: bytes, name: str, rng: random.Random) -> bytes:
    """Return a file with changes that suit its format.

    Args:
        data: contents.
        other: another file of the format.
        name: of the format, in ``FORMATS``.
        rng: decides.
    """
    form = FORMATS[name]
    if form.is_json:
        return mutated_json(data, other, rng)
    fields: list[Field] = []
    try:
        for field in form.fields(data):
            fields.append(field)
            if len(fields) >= _MAX_FIELDS:
                break
    except (IndexError, struct.error, ValueError, OverflowError):
        pass
    changed = mutated_bytes(data, other, fields, form.tokens, rng)
    if rng.random() < 0.75:
        try:
            return form.repaired(changed)
        except (IndexError, struct.error, ValueError, OverflowError):
            pass
    return changed


def _integers(start: int, stop: int, size: int, kind: str) -> Iterable[Field]:
    return (Field(place, size, kind) for place in range(start, stop - size + 1, size))


# -- images ------------------------------------------------------------------------------------------------------------


def _jpeg(data: bytes) -> Iterable[Field]:
    place = 2
    while place + 4 <= len(data):
        if data[place] != 0xFF:
            place += 1
            continue
        marker = data[place + 1]
        if marker in (0x00, 0x01, 0xFF) or 0xD0 <= marker <= 0xD9:
            place += 2
            continue
        length = int.from_bytes(data[place + 2 : place + 4], "big")
        body = place + 4
        yield Field(place + 2, 2, "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame: precision, height, width, components
            yield from (Field(body, 1, "big"), Field(body + 5, 1, "big"))
            yield from [Field(body + 1, 2, "big"), Field(body + 3, 2, "big")] * 4
            yield from _integers(body + 6, place + 2 + length, 1, "big")
        elif marker in (0xC4, 0xDB, 0xDA, 0xDD, 0xEE):
            yield from _integers(body, min(body + 20, place + 2 + length), 1, "big")
        elif marker == 0xE1 and data[body : body + 4] == b"Exif":
            yield from _tiff_at(data, body + 6)
        place += 2 + length


def _tiff(data: bytes) -> Iterable[Field]:
    return _tiff_at(data, 0)


def _tiff_at(data: bytes, base: int) -> Iterable[Field]:
    kind = "little" if data[base : base + 2] == b"II" else "big"

    def number(start: int, size: int) -> int:
        return int.from_bytes(data[start : start + size], "little" if kind == "little" else "big")

    yield Field(base + 4, 4, kind)
    directory = base + number(base + 4, 4)
    for _ in range(4):
        count = number(directory, 2)
        yield Field(directory, 2, kind)
        for entry in range(directory + 2, min(directory + 2 + 12 * count, len(data) - 12), 12):
            yield from (Field(entry, 2, kind), Field(entry + 2, 2, kind), Field(entry + 4, 4, kind))
            yield from (Field(entry + 8, 4, kind), Field(entry + 8, 2, kind))
        following = directory + 2 + 12 * count
        yield Field(following, 4, kind)
        if not number(following, 4):
            return
        directory = base + number(following, 4)


def _png_chunks(data: bytes) -> Iterable[tuple[int, int]]:
    place = 8
    while place + 12 <= len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        yield place, length
        place += 12 + length


def _png(data: bytes) -> Iterable[Field]:
    for place, length in _png_chunks(data):
        yield Field(place, 4, "big")
        if data[place + 4 : place + 8] == b"IHDR":
            yield from [Field(place + 8, 4, "big"), Field(place + 12, 4, "big")] * 4
            yield from _integers(place + 16, place + 21, 1, "big")
        elif length <= 64:
            yield from _integers(place + 8, place + 8 + length, 1, "big")


def _png_repaired(data: bytes) -> bytes:
    changed = bytearray(data)
    for place, length in _png_chunks(data):
        end = place + 8 + length
        changed[end : end + 4] = zlib.crc32(data[place + 4 : end]).to_bytes(4, "big")
    return bytes(changed)


def _gif(data: bytes) -> Iterable[Field]:
    yield from [Field(6, 2, "little"), Field(8, 2, "little")] * 4
    yield from _integers(10, 13, 1, "little")
    for place in range(13, len(data) - 10):
        if data[place] == 0x2C:
            yield from _integers(place + 1, place + 9, 2, "little")
            yield Field(place + 9, 1, "little")


def _bmp(data: bytes) -> Iterable[Field]:
    yield from _integers(2, 14, 4, "little")
    yield from [Field(18, 4, "little"), Field(22, 4, "little"), Field(28, 2, "little"), Field(30, 4, "little")] * 2
    yield from _integers(14, 54, 4, "little")


def _pnm(data: bytes) -> Iterable[Field]:
    return numbers_in_text(data, 0, 24)


def _riff(data: bytes) -> Iterable[Field]:
    yield Field(4, 4, "little")
    waiting = [(12, len(data))]
    while waiting:
        place, stop = waiting.pop()
        while place + 8 <= stop:
            name, length = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
            yield Field(place + 4, 4, "little")
            body = place + 8
            if name == b"LIST":
                waiting.append((body + 4, min(stop, body + length)))
            elif name == b"VP8X":
                yield from (Field(body, 1, "little"), *[Field(body + 4, 3, "little"), Field(body + 7, 3, "little")] * 4)
            elif name == b"VP8 ":
                yield from [Field(body + 6, 2, "little"), Field(body + 8, 2, "little"), Field(body, 3, "little")] * 4
            elif name == b"VP8L":
                yield from [Field(body + 1, 4, "little")] * 8
            elif name in (b"fmt ", b"fact"):
                yield from _integers(body, min(body + length, body + 40), 2, "little")
                yield from _integers(body, min(body + length, body + 40), 4, "little")
            else:
                yield from _integers(body, min(body + length, body + 64, stop), 4, "little")
            place = body + length + length % 2


_CONTAINERS = {
    b"moov",
    b"trak",
    b"mdia",
    b"minf",
    b"stbl",
    b"edts",
    b"dinf",
    b"iprp",
    b"ipco",
    b"jp2h",
    b"mvex",
    b"udta",
}


def _boxes(data: bytes) -> Iterable[Field]:
    """MP4, AVIF and JPEG 2000."""
    waiting = [(0, len(data))]
    while waiting:
        place, stop = waiting.pop()
        while place + 8 <= stop:
            length, name = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
            yield Field(place, 4, "big")
            end = min(stop, place + length) if length >= 8 else stop
            if name in _CONTAINERS:
                waiting.append((place + 8, end))
            elif name == b"meta":
                waiting.append((place + 12, end))
            elif name == b"jp2c":
                yield from _codestream(data, place + 8)
            elif name not in (b"mdat", b"free"):
                times = 4 if name in (b"ispe", b"ihdr", b"stsz", b"stsc", b"stco", b"stts", b"tkhd") else 1
                yield from [*_integers(place + 8, min(end, place + 120), 4, "big")] * times
                yield from _integers(place + 8, min(end, place + 60), 2, "big")
            place = end if length >= 8 else stop


def _codestream(data: bytes, start: int) -> Iterable[Field]:
    place = start + 2
    while place + 4 <= len(data) and data[place] == 0xFF:
        length = int.from_bytes(data[place + 2 : place + 4], "big")
        yield Field(place + 2, 2, "big")
        if data[place + 1] == 0x51:  # sizes
            yield from [*_integers(place + 6, place + 38, 4, "big")] * 4
        yield from _integers(place + 4, min(place + 2 + length, place + 60), 1, "big")
        place += 2 + length


# -- audio and video ---------------------------------------------------------------------------------------------------


def _flac(data: bytes) -> Iterable[Field]:
    place, last = 4, False
    while not last and place + 4 <= len(data):
        last = bool(data[place] & 128)
        length = int.from_bytes(data[place + 1 : place + 4], "big")
        yield Field(place + 1, 3, "big")
        if data[place] & 127 == 0:
            yield from _integers(place + 4, place + 4 + 10, 2, "big")
            yield from [Field(place + 14, 8, "big"), Field(place + 14, 3, "big"), Field(place + 18, 4, "big")] * 3
        place += 4 + length


def _ogg_pages(data: bytes) -> Iterable[tuple[int, int]]:
    place = 0
    while data[place : place + 4] == b"OggS":
        segments = data[place + 26]
        end = place + 27 + segments + sum(data[place + 27 : place + 27 + segments])
        yield place, min(end, len(data))
        place = end


def _ogg(data: bytes) -> Iterable[Field]:
    for place, end in _ogg_pages(data):
        yield from (Field(place + 5, 1, "little"), Field(place + 6, 8, "little"), Field(place + 14, 4, "little"))
        yield from (Field(place + 18, 4, "little"), Field(place + 26, 1, "little"))
        body = place + 27 + data[place + 26]
        yield from _integers(place + 27, body, 1, "little")
        yield from _integers(body, min(end, body + 64), 1, "little")


def _ogg_table() -> list[int]:
    table = []
    for value in range(256):
        crc = value << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
        table.append(crc)
    return table


_OGG_TABLE = _ogg_table()


def _ogg_repaired(data: bytes) -> bytes:
    changed = bytearray(data)
    for place, end in _ogg_pages(data):
        changed[place + 22 : place + 26] = bytes(4)
        crc = 0
        for byte in changed[place:end]:
            crc = (crc << 8 & 0xFFFFFFFF) ^ _OGG_TABLE[crc >> 24 ^ byte]
        changed[place + 22 : place + 26] = crc.to_bytes(4, "little")
    return bytes(changed)


def _mp3(data: bytes) -> Iterable[Field]:
    for place in range(len(data) - 4):
        if data[place] == 0xFF and data[place + 1] & 0xE0 == 0xE0:
            yield from _integers(place + 1, place + 4, 1, "big")
            for mark in (b"Xing", b"Info"):
                found = data.find(mark, place, place + 64)
                if found >= 0:
                    yield from _integers(found + 4, found + 16, 4, "big")


_EBML_MASTERS = {0x1A45DFA3, 0x18538067, 0x1654AE6B, 0xAE, 0xE0, 0x1F43B675, 0x1549A966, 0xA0, 0x1C53BB6B, 0xBB, 0xB7}


def _ebml(data: bytes) -> Iterable[Field]:
    """Matroska and WebM: lengths as written, without their length marks."""
    waiting = [(0, len(data))]
    while waiting:
        place, stop = waiting.pop()
        while place + 2 <= stop:
            width = 9 - data[place].bit_length()
            name = int.from_bytes(data[place : place + width], "big")
            place += width
            size = 9 - data[place].bit_length()
            length = int.from_bytes(data[place : place + size], "big") & (1 << 7 * size) - 1
            yield Field(place, size, "big")
            place += size
            if name in _EBML_MASTERS:
                waiting.append((place, min(stop, place + length)))
            elif length <= 8:
                yield Field(place, length or 1, "big")
            place += length


# -- arrays and containers ---------------------------------------------------------------------------------------------


def _npy(data: bytes) -> Iterable[Field]:
    yield Field(8, 2, "little")
    yield Field(6, 2, "little")
    yield from numbers_in_text(data, 10, 128) * 4


def _fits(data: bytes) -> Iterable[Field]:
    for card in range(0, min(len(data), 2880 * 4), 80):
        if data[card + 8 : card + 10] == b"= ":
            yield from numbers_in_text(data, card + 10, card + 30)


def _tar(data: bytes) -> Iterable[Field]:
    place = 0
    while place + 512 <= len(data):
        yield from [Field(place + 124, 12, "octal")] * 4
        yield from (Field(place + 100, 8, "octal"), Field(place + 136, 12, "octal"), Field(place + 156, 1, "big"))
        size = int(data[place + 124 : place + 135].strip(b"\0 ") or b"0", 8)
        place += 512 + (size + 511) // 512 * 512


def _tar_repaired(data: bytes) -> bytes:
    changed = bytearray(data)
    for place in range(0, len(changed) - 511, 512):
        if changed[place + 257 : place + 262] == b"ustar":
            changed[place + 148 : place + 156] = b" " * 8
            changed[place + 148 : place + 156] = b"%06o\0 " % sum(changed[place : place + 512])
    return bytes(changed)


def _tfrecords(data: bytes) -> Iterable[tuple[int, int]]:
    place = 0
    while place + 16 <= len(data):
        length = int.from_bytes(data[place : place + 8], "little")
        yield place, length
        place += 16 + length


def _tfrecord(data: bytes) -> Iterable[Field]:
    for place, length in _tfrecords(data):
        yield Field(place, 8, "little")
        yield from _integers(place + 12, min(place + 12 + length, place + 40), 1, "little")


def _tfrecord_repaired(data: bytes) -> bytes:
    changed = bytearray(data)
    for place, length in _tfrecords(data):
        changed[place + 8 : place + 12] = masked_crc(data[place : place + 8]).to_bytes(4, "little")
        end = place + 12 + length
        if end + 4 <= len(data):
            changed[end : end + 4] = masked_crc(data[place + 12 : end]).to_bytes(4, "little")
    return bytes(changed)


def _recordio(data: bytes) -> Iterable[Field]:
    for place in range(0, len(data) - 8, 4):
        if data[place : place + 4] == b"\x0a\x23\xd7\xce":
            yield from [Field(place + 4, 4, "little")] * 3
            yield Field(place + 8, 4, "little")


def _parquet(data: bytes) -> Iterable[Field]:
    yield Field(len(data) - 8, 4, "little")
    footer = int.from_bytes(data[-8:-4], "little")
    yield from _integers(max(0, len(data) - 8 - footer), len(data) - 8, 1, "little")


def _arrow(data: bytes) -> Iterable[Field]:
    # Tables of offsets and lengths: any aligned integer may be one.
    fields = [*_integers(0, len(data), 4, "little"), *_integers(0, len(data), 8, "little")]
    return fields[:: max(1, len(fields) // 500)] if len(fields) > 500 else fields


def _hdf5(data: bytes) -> Iterable[Field]:
    for place in range(0, len(data) - 8, 8):
        value = int.from_bytes(data[place : place + 8], "little")
        if 0 < value < 1 << 20:
            yield Field(place, 8, "little")
    for place in range(0, min(len(data), 4096) - 2, 2):
        if 0 < int.from_bytes(data[place : place + 2], "little") < 64:
            yield Field(place, 2, "little")


def _lmdb(data: bytes) -> Iterable[Field]:
    for page in range(0, len(data), 4096):
        yield from _integers(page, page + 16, 2, "little")
        if page < 8192:
            yield from _integers(page + 16, page + 152, 8, "little")
            yield from _integers(page + 16, page + 152, 4, "little")
        else:
            yield from _integers(page + 16, min(page + 64, len(data)), 2, "little")


def _text(data: bytes) -> Iterable[Field]:
    return numbers_in_text(data)


_LINES = (
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b"\0",
    b"\xff",
    b"../",
    b"/",
    b"http://127.0.0.1:9/",
    b"-",
    b".",
    b"\xe2\x98\x83",
)

FORMATS: dict[str, Format] = {
    "any": Format(),
    "arrow": Format(_arrow, tokens=(b"ARROW1\0\0", b"\xff\xff\xff\xff", bytes(8))),
    "avif": Format(_boxes, tokens=(b"ftypavif", b"ispe", b"iloc", b"iref", b"grid", b"auxC", b"irot", b"\0\0\0\1")),
    "bmp": Format(_bmp, tokens=(b"BM",)),
    "ebml": Format(
        _ebml, tokens=(b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\xff", b"\x01\xff\xff\xff\xff\xff\xff\xff")
    ),
    "fits": Format(_fits, tokens=(b"END".ljust(80), b"XTENSION= 'BINTABLE'".ljust(80), b"ZIMAGE  = T".ljust(80))),
    "flac": Format(_flac, tokens=(b"fLaC", b"\xff\xf8")),
    "gif": Format(_gif, tokens=(b"GIF89a", b"\x21\xf9\x04", b"\x2c", b"\x3b")),
    "hdf5": Format(_hdf5, tokens=(b"TREE", b"SNOD", b"HEAP", b"OHDR", b"FRHP", b"BTHD", b"\xff" * 8)),
    "jp2": Format(
        _boxes, tokens=(b"\xff\x4f", b"\xff\x51", b"\xff\x52", b"\xff\x90", b"\xff\x93", b"\xff\xd9", b"pclr")
    ),
    "jpeg": Format(
        _jpeg,
        tokens=(
            *(b"\xff" + bytes([marker]) for marker in (0xD8, 0xD9, 0xC0, 0xC2, 0xC4, 0xDA, 0xD0, 0x00, 0xC9, 0xCC)),
            b"\xff\xee\0\x0eAdobe\0d\0\0\0\0\0",
            b"\xff\xdd\0\x04\0\1",
        ),
    ),
    "json": Format(is_json=True),
    "lmdb": Format(_lmdb),
    "mp3": Format(_mp3, tokens=(b"ID3\4\0\0\0\0\x7f\x7f", b"\xff\xfb\x90", b"Xing", b"Info", b"LAME")),
    "mp4": Format(_boxes, tokens=(b"moov", b"mdat", b"stsz", b"ctts", b"elst", b"moof", b"\0\0\0\1", b"\0\0\1\x65")),
    "npy": Format(
        _npy, tokens=(b"'<f8'", b"'|O'", b"'<U9'", b"True", b"False", b"(,)", b"(-1,)", b"[('a', '<i4')]", b"{")
    ),
    "ogg": Format(_ogg, _ogg_repaired, (b"OggS", b"\1vorbis", b"\3vorbis", b"\5vorbis", b"OpusHead")),
    "parquet": Format(_parquet, tokens=(b"PAR1", b"PARE", b"\x15\x00", b"\x19\xfc")),
    "png": Format(
        _png, _png_repaired, (b"IDAT", b"PLTE", b"tRNS", b"IEND", b"iCCP", b"acTL", b"fcTL", b"eXIf", b"sBIT")
    ),
    "pnm": Format(_pnm, tokens=(b"P1\n", b"P3\n", b"P4\n", b"P5\n", b"P6\n", b"P7\n", b"Pf\n", b"#", b"\n")),
    "recordio": Format(_recordio, tokens=(b"\x0a\x23\xd7\xce",)),
    "riff": Format(
        _riff, tokens=(b"RIFF", b"LIST", b"data", b"fmt ", b"VP8X", b"VP8L", b"AL" + b"PH", b"ANMF", b"idx1", b"movi")
    ),
    "tar": Format(_tar, _tar_repaired, (b"ustar\0" + b"00", b"ustar  \0", b"././@LongLink", b"30 size=99999999999\n")),
    "text": Format(_text, tokens=_LINES),
    "tfrecord": Format(_tfrecord, _tfrecord_repaired),
    "tiff": Format(_tiff, tokens=(b"II*\0", b"MM\0*", b"II+\0")),
}
"""By name."""
