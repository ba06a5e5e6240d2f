"""Writers of container formats, written from their specifications and independent of the package under test."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# -- protocol buffers --------------------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """Encode an integer, negative ones as 64 bits."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def field(number: int, value: bytes | str | int | float) -> bytes:
    """Encode one field: bytes by their length, integers as varint, floats in 32 bits."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


# -- tf.Example in TFRecord --------------------------------------------------------------------------------------------


def example(features: Mapping[str, Any], *, packed: bool = True) -> bytes:
    """Encode a ``tf.Example``.

    Args:
        features: by name, bytes or a list of bytes, integers, or floats.
        packed: encode the numbers of a list together; if False, one by one, as the format also allows.
    """
    entries = b"".join(field(1, field(1, name) + field(2, _feature(value, packed))) for name, value in features.items())
    return field(1, entries)


def _feature(value: Any, packed: bool) -> bytes:
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    if not items:
        return b""
    if isinstance(items[0], bytes):
        return field(1, b"".join(field(1, item) for item in items))
    if isinstance(items[0], float):
        if packed:
            return field(2, field(1, struct.pack(f"<{len(items)}f", *items)))
        return field(2, b"".join(field(1, float(item)) for item in items))
    if packed:
        return field(3, field(1, b"".join(map(varint, items))))
    return field(3, b"".join(field(1, item) for item in items))


def _crc32c_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def masked_crc(data: bytes) -> int:
    """Return the checksum of TFRecord: CRC-32C, rotated, with a constant added."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def write_tfrecord(path: Path, payloads: Sequence[bytes], index: Path | None = None) -> None:
    """Write records and the index for DALI."""
    offset = 0
    lines = []
    with path.open("wb") as file:
        for payload in payloads:
            length = struct.pack("<Q", len(payload))
            record = length + struct.pack("<I", masked_crc(length)) + payload + struct.pack("<I", masked_crc(payload))
            file.write(record)
            lines.append(f"{offset} {len(record)}\n")
            offset += len(record)
    if index is not None:
        index.write_text("".join(lines))


# -- MXNet RecordIO ----------------------------------------------------------------------------------------------------

_MAGIC = 0xCED7230A


def write_recordio(path: Path, index: Path, items: Sequence[tuple[bytes, float | Sequence[float]]]) -> None:
    """Write image bytes with one label, or with several."""
    offset = 0
    lines = []
    with path.open("wb") as file:
        for number, (image, label) in enumerate(items):
            if isinstance(label, (int, float)):
                header = struct.pack("<IfQQ", 0, label, number, 0)
            else:
                header = struct.pack("<IfQQ", len(label), 0.0, number, 0) + struct.pack(f"<{len(label)}f", *label)
            offset_before = offset
            for kind, part in _split_at_magic(header + image):
                padded = part + bytes(-len(part) % 4)
                file.write(struct.pack("<II", _MAGIC, kind << 29 | len(part)) + padded)
                offset += 8 + len(padded)
            lines.append(f"{number}\t{offset_before}\n")
    index.write_text("".join(lines))


def _split_at_magic(data: bytes) -> list[tuple[int, bytes]]:
    """Return the parts of a record; the format splits it at its magic number at multiples of four bytes."""
    mark = struct.pack("<I", _MAGIC)
    cuts = [place for place in range(0, len(data) - 3, 4) if data[place : place + 4] == mark]
    if not cuts:
        return [(0, data)]
    starts = [0, *(place + 4 for place in cuts)]
    ends = [*cuts, len(data)]
    kinds = [1, *[2] * (len(cuts) - 1), 3]
    return [(kind, data[start:end]) for kind, start, end in zip(kinds, starts, ends, strict=True)]


# -- LMDB of Caffe and Caffe2 ------------------------------------------------------------------------------------------


def write_lmdb(folder: Path, values: Sequence[bytes]) -> None:
    """Write records under the keys 00000000, 00000001, …."""
    import lmdb

    with lmdb.open(str(folder), map_size=1 << 26) as environment, environment.begin(write=True) as transaction:
        for number, value in enumerate(values):
            transaction.put(f"{number:08d}".encode(), value)


def caffe_datum(
    data: bytes | None, label: int | None = None, *, shape: tuple[int, int, int] | None = None, encoded: bool = False
) -> bytes:
    """Encode Caffe's ``Datum``: an encoded image, or bytes with channels, height and width."""
    parts = b"" if shape is None else b"".join(field(number, extent) for number, extent in enumerate(shape, 1))
    parts += b"" if data is None else field(4, data)
    parts += b"" if label is None else field(5, label)
    return parts + (field(7, 1) if encoded else b"")


def caffe2_tensor(value: bytes | Sequence[int] | Sequence[float], dims: Sequence[int] | None = None) -> bytes:
    """Encode one Caffe2 ``TensorProto``: string, integers or floats."""
    if isinstance(value, bytes):
        return b"".join(field(1, extent) for extent in dims or (1,)) + field(2, 4) + field(6, value)
    shape = b"".join(field(1, extent) for extent in dims or (len(value),))
    if any(isinstance(item, float) for item in value):
        return shape + field(2, 1) + field(3, struct.pack(f"<{len(value)}f", *value))
    return shape + field(2, 2) + field(4, b"".join(varint(int(item)) for item in value))


def caffe2_record(*tensors: bytes) -> bytes:
    """Encode Caffe2's ``TensorProtos``."""
    return b"".join(field(1, tensor) for tensor in tensors)
