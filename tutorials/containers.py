"""Writers of the container formats of tutorial 07, and a web server with the latency of remote storage."""

from __future__ import annotations

import functools
import http.server
import io
import struct
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import lmdb

__all__ = ["far_storage", "write_lmdb", "write_recordio", "write_tar", "write_tfrecord"]

Photo = tuple[bytes, int]


def write_tar(path: Path, photos: Sequence[Photo]) -> None:
    """Write a WebDataset archive: two adjacent files per sample, 0000.jpg and 0000.label (int32)."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number, (encoded, label) in enumerate(photos):
            for extension, contents in (("jpg", encoded), ("label", struct.pack("<i", label))):
                member = tarfile.TarInfo(f"{number:04}.{extension}")
                member.size = len(contents)
                archive.addfile(member, io.BytesIO(contents))


def write_tfrecord(path: Path, photos: Sequence[Photo]) -> None:
    """Write records: length, checksum of the length, a `tf.Example`, and its checksum."""
    table = []  # CRC-32C
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)

    def check_sum(data: bytes) -> bytes:
        crc = 0xFFFFFFFF
        for byte in data:
            crc = crc >> 8 ^ table[(crc ^ byte) & 255]
        crc ^= 0xFFFFFFFF
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    with path.open("wb") as file:
        for encoded, label in photos:
            texts = _field(1, _field(1, encoded))  # a Feature with a BytesList
            numbers = _field(3, _field(1, _number(label)))  # one with a packed Int64List
            features = ((b"jpg", texts), (b"label", numbers))
            payload = _field(1, b"".join(_field(1, _field(1, name) + _field(2, value)) for name, value in features))
            length = struct.pack("<Q", len(payload))
            file.write(length + check_sum(length) + payload + check_sum(payload))


def write_recordio(path: Path, photos: Sequence[Photo]) -> None:
    """Write MXNet records (magic number, length, header with the label, photograph) and their index.

    `im2rec` splits a photograph that contains the magic number. This function does not.
    """
    places = []
    with path.open("wb") as file:
        for number, (encoded, label) in enumerate(photos):
            record = struct.pack("<IfQQ", 0, label, number, 0) + encoded
            places.append(f"{number}\t{file.tell()}\n")
            file.write(struct.pack("<II", 0xCED7230A, len(record)) + record + bytes(-len(record) % 4))
    path.with_suffix(".idx").write_text("".join(places))


def write_lmdb(folder: Path, photos: Sequence[Photo]) -> None:
    """Write a Caffe database: a sorted map from keys to `Datum` messages."""
    size = 2 * sum(len(encoded) for encoded, _ in photos) + (1 << 20)
    with lmdb.open(str(folder), map_size=size) as database, database.begin(write=True) as transaction:
        for number, (encoded, label) in enumerate(photos):
            datum = _field(4, encoded) + b"\x28" + _number(label) + b"\x38\x01"  # data, label, "is encoded"
            transaction.put(f"{number:08}".encode(), datum)


def _number(value: int) -> bytes:
    """Encode a varint: seven bits per byte; the eighth bit is set if another byte follows."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _number(value >> 7)


def _field(number: int, value: bytes) -> bytes:
    """Encode a field of a protocol buffer: number, length, bytes."""
    return bytes([number << 3 | 2]) + _number(len(value)) + value


class _Answers(http.server.SimpleHTTPRequestHandler):
    """Serve files and byte ranges after a delay."""

    protocol_version = "HTTP/1.1"  # keeps connections open, like storage servers
    disable_nagle_algorithm = True  # otherwise the body is sent 40 ms after the header
    delay_s = 0.0

    def do_GET(self) -> None:
        time.sleep(self.delay_s)
        wanted = self.headers.get("Range")
        path = Path(self.translate_path(self.path))
        if wanted is None or not path.is_file():
            super().do_GET()
            return
        start, stop = (int(text) for text in wanted.removeprefix("bytes=").split("-"))
        with path.open("rb") as file:
            file.seek(start)
            part = file.read(stop + 1 - start)
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{path.stat().st_size}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        """Disable logging."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # the default of 5 would delay further connections by a second


@contextmanager
def far_storage(folder: Path, delay_s: float) -> Iterator[str]:
    """Serve a folder with a delay of `delay_s` per request; yield its URL."""
    handler = functools.partial(type("Answers", (_Answers,), {"delay_s": delay_s}), directory=str(folder))
    with _Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
