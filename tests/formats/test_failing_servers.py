"""Failing servers cause no wrong data, no endless wait, bounded memory, and no bad data in the cache."""

from __future__ import annotations

import gzip
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from dalify import fn, pipeline_def
from dalify.base import limits
from dalify.base.errors import DecodeError, LimitError, ReaderError
from dalify.formats.files import storage
from dalify.formats.files.disk_cache import DiskCache

pytest.importorskip("aiohttp")

CONTENTS = bytes(range(256)) * 40


class Handler(http.server.BaseHTTPRequestHandler):
    """Calls `server.answer` with the remaining answers."""

    server: Any

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers.get("Range")))
        with suppress(ConnectionError):
            self.server.answer(self)

    do_HEAD = do_GET  # noqa: N815

    def say(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """Answer with a status, headers (`_` for `-`) and a body; its length only where it is among them."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def whole(self, body: bytes = CONTENTS, status: int = 200, **headers: str) -> None:
        """Answer correctly as a server without support for ranges."""
        self.say(status, body, Content_Length=str(len(body)), **headers)

    def part(self, body: bytes = CONTENTS, **headers: str) -> None:
        """Answer correctly."""
        first = self.headers.get("Range")
        if first is None:
            self.whole(body, **headers)
            return
        start, _, stop = first.removeprefix("bytes=").partition("-")
        contents = body[int(start) : int(stop) + 1 if stop else None]
        place = f"bytes {start}-{int(start) + len(contents) - 1}/{len(body)}"
        self.say(206, contents, Content_Length=str(len(contents)), Content_Range=place, **headers)

    def log_message(self, *arguments: Any) -> None:
        """Do not log."""


@contextmanager
def serving(answer: Callable[[Handler], None]) -> Iterator[tuple[str, Any]]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        server.asked, server.answer = [], answer  # pyright: ignore[reportAttributeAccessIssue]
        server.handle_error = lambda *_: None
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/file.bin", server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    storage.configure(cache_folder=tmp_path / "cache", timeout_s=20, retries=0)
    yield tmp_path / "cache"
    storage.configure()


def kept(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("*")) if cache.exists() else []


def cut(handler: Handler) -> None:
    handler.say(200, CONTENTS[:1000], Content_Length=str(len(CONTENTS)))
    handler.close_connection = True


def cut_chunks(handler: Handler) -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.say(200, b"3e8\r\n" + CONTENTS[:1000] + b"\r\n", Transfer_Encoding="chunked")
    handler.close_connection = True


def nothing(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def nonsense(handler: Handler) -> None:
    handler.wfile.write(b"what is this\r\n\r\n")
    handler.close_connection = True


def circle(handler: Handler) -> None:
    handler.say(302, Location=f"{handler.path}x", Content_Length="0")


def negative(handler: Handler) -> None:
    handler.say(200, CONTENTS, Content_Length="-5")


def bad_gzip(handler: Handler) -> None:
    handler.whole(b"this was never compressed", Content_Encoding="gzip")


# Behavior of the server, and text of the error.
FAILURES: dict[str, tuple[Callable[[Handler], None], str]] = {
    "body shorter than declared": (cut, "payload is not completed"),
    "chunks without the last one": (cut_chunks, "payload is not completed"),
    "closes at once": (nothing, "disconnected|reset"),
    "no HTTP": (nonsense, "one attempt"),
    "redirects forever": (circle, "too many redirects"),
    "negative length": (negative, "one attempt"),
    "not the encoding that it says": (bad_gzip, "one attempt"),
    "busy": (lambda handler: handler.whole(b"busy", 503), "503"),
    "too many requests": (lambda handler: handler.whole(b"slowly", 429), "429"),
    "internal error": (lambda handler: handler.whole(b"oh", 500), "500"),
    "no content": (lambda handler: handler.say(204), "204"),
    "a range that was not requested": (
        lambda handler: handler.whole(CONTENTS[:10], 206, Content_Range="bytes 0-9/10240"),
        "not requested",
    ),
    "absent": (lambda handler: handler.whole(b"no", 404), "no such file"),
    "gone": (lambda handler: handler.whole(b"no", 410), "no such file"),
    "forbidden": (lambda handler: handler.whole(b"no", 403), "403"),
    "keys are missing": (lambda handler: handler.whole(b"no", 401), "401"),
}
RANGE_FAILURES: dict[str, tuple[Callable[[Handler], None], str]] = {
    "another part": (
        lambda handler: handler.whole(CONTENTS[:20], 206, Content_Range="bytes 0-19/10240"),
        "instead of",
    ),
    "fewer bytes": (
        lambda handler: handler.whole(CONTENTS[20:30], 206, Content_Range="bytes 20-29/10240"),
        "instead of",
    ),
    "fewer bytes than it says": (
        lambda handler: handler.whole(CONTENTS[20:30], 206, Content_Range="bytes 20-39/10240"),
        "10 bytes instead of 20",
    ),
    "does not say which part": (lambda handler: handler.whole(CONTENTS[20:40], 206), "an unspecified range"),
    "invalid range of the part": (
        lambda handler: handler.whole(CONTENTS[20:40], 206, Content_Range="bytes twenty-39/*"),
        "an unspecified range",
    ),
    "a compressed part": (
        lambda handler: handler.whole(
            gzip.compress(CONTENTS[20:40]), 206, Content_Range="bytes 20-39/10240", Content_Encoding="gzip"
        ),
        "not requested",
    ),
    "no such part": (lambda handler: handler.whole(b"", 416, Content_Range="bytes */10"), "ends before byte 40"),
    "all of it, which is too short": (lambda handler: handler.whole(CONTENTS[:30]), "ends before byte 40"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str, cache: Path) -> None:
    answer, message = FAILURES[name]
    with serving(answer) as (url, server):
        with pytest.raises(ReaderError, match=message) as caught:
            storage.read(url)
        assert repr(url) in str(caught.value)
        assert not kept(cache)
        server.answer = Handler.part
        assert storage.read(url).tobytes() == CONTENTS
        assert len(kept(cache)) == 1


@pytest.mark.parametrize("name", RANGE_FAILURES)
def test_failures_of_parts(name: str, cache: Path) -> None:
    answer, message = RANGE_FAILURES[name]
    with serving(answer) as (url, server):
        with pytest.raises(ReaderError, match=message):
            storage.read(url, 20, 20)
        assert not kept(cache)
        server.answer = Handler.part
        assert storage.read(url, 20, 20).tobytes() == CONTENTS[20:40]


@pytest.mark.parametrize("name", FAILURES)
def test_failures_while_a_file_is_copied(name: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the middle of several parts."""
    monkeypatch.setattr(storage, "_PART_BYTES", 4000)
    answer = FAILURES[name][0]

    def fails_at_the_end(handler: Handler) -> None:
        (answer if (handler.headers.get("Range") or "").startswith("bytes=8000") else Handler.part)(handler)

    with serving(fails_at_the_end) as (url, server):
        with pytest.raises(ReaderError):
            storage.local_copy(url)
        assert not kept(cache)
        server.answer = Handler.part
        assert Path(storage.local_copy(url)).read_bytes() == CONTENTS


def test_a_server_that_ignores_ranges() -> None:
    with serving(Handler.whole) as (url, _):
        assert storage.read(url, 20, 20).tobytes() == CONTENTS[20:40]
        assert storage.read(url, 10_000).tobytes() == CONTENTS[10_000:]


def test_file_that_changes_while_it_is_copied(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(storage, "_PART_BYTES", 4000)

    def changing(handler: Handler) -> None:
        handler.part(ETag='"new"' if (handler.headers.get("Range") or "").startswith("bytes=8") else '"old"')

    with serving(changing) as (url, _), pytest.raises(ReaderError, match="changed while it was copied"):
        storage.local_copy(url)
    assert not kept(cache)


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler: handler.say(200, CONTENTS[:700]),
        lambda handler: handler.whole(b"<html>log in</html>", Content_Type="text/html; charset=utf-8"),
    ],
    ids=["no length", "a web page"],
)
def test_responses_that_may_be_wrong_are_not_cached(answer: Callable[[Handler], None], cache: Path) -> None:
    with serving(answer) as (url, _):
        storage.read(url)
        copy = storage.local_copy(url)
    assert not kept(cache)
    assert Path(copy).parent != cache


def test_web_pages_are_kept_where_they_are_asked_for(cache: Path) -> None:
    with serving(lambda handler: handler.whole(b"<html>", Content_Type="text/html")) as (url, _):
        storage.read(url.replace("file.bin", "page.html"))
    assert len(kept(cache)) == 1


# -- without end


def endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(bytes(1 << 20))


def endless_chunks(handler: Handler) -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while True:
        handler.wfile.write(b"100000\r\n" + bytes(1 << 20) + b"\r\n")


def declared(handler: Handler) -> None:
    handler.say(200, bytes(100), Content_Length=str(1 << 44))


def bomb(handler: Handler) -> None:
    handler.whole(BOMB, Content_Encoding="gzip")


BOMB = gzip.compress(bytes(64 << 20))


@pytest.mark.parametrize("answer", [endless, endless_chunks, declared, bomb], ids=lambda answer: answer.__name__)
def test_response_bodies_are_limited(answer: Callable[[Handler], None], cache: Path) -> None:
    with serving(answer) as (url, _), limits.applied(limits.as_limits({"max_sample_bytes": 4 << 20})):
        with pytest.raises(LimitError, match="more than the limit max_sample_bytes=4,194,304"):
            storage.read(url)
        with pytest.raises((LimitError, ReaderError)):
            storage.local_copy(url)
    assert not kept(cache)


def test_limit_of_a_pipeline_counts_where_samples_are_read_ahead() -> None:
    @pipeline_def(batch_size=1, num_threads=1, limits={"max_sample_bytes": 1000}, on_error="skip")
    def reading(urls: list[str]) -> Any:
        return fn.readers.file(files=urls)[0]

    def answer(handler: Handler) -> None:
        handler.whole(bytes(10) if "small" in handler.path else bytes(5000))

    with serving(answer) as (url, _):
        pipe = reading([url, url.replace("file", "small")])
        assert [pipe.run()[0].at(0).size for _ in range(2)] == [10, 10]
        assert "max_sample_bytes" in pipe.bad_samples()[0].error
        pipe.close()


def test_slow_responses() -> None:
    """`timeout_s` applies to the whole response, also if data arrive slowly."""
    stopped = threading.Event()

    def dripping(handler: Handler) -> None:
        handler.say(200, b"", Content_Length=str(len(CONTENTS)))
        for byte in CONTENTS:
            handler.wfile.write(bytes([byte]))
            if stopped.wait(0.05):
                return

    storage.configure(timeout_s=0.5, retries=0)
    began = time.perf_counter()
    with serving(dripping) as (url, _), pytest.raises(ReaderError, match=r"Timeout.*at most 0\.5 s"):
        storage.read(url)
    stopped.set()
    assert time.perf_counter() - began < 60  # all of it would take 512 s


# -- patience


@pytest.mark.parametrize("value", ["3", lambda: formatdate(time.time() + 3.9, usegmt=True)], ids=["seconds", "date"])
def test_retry_after_of_servers_is_respected(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(storage.time, "sleep", waits.append)
    storage.configure(retries=1, timeout_s=60)
    text = value if isinstance(value, str) else value()
    with serving(lambda handler: handler.whole(b"", 503, Retry_After=text)) as (url, _), pytest.raises(ReaderError):
        storage.read(url)
    assert 2.5 < max(waits) <= 3.9


@pytest.mark.parametrize("value", ["1000000", "never", "-3", "1e9"])
def test_no_server_makes_a_run_wait_forever(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(storage.time, "sleep", waits.append)
    storage.configure(retries=1, timeout_s=2)
    with serving(lambda handler: handler.whole(b"", 429, Retry_After=value)) as (url, _), pytest.raises(ReaderError):
        storage.read(url)
    assert max(waits) <= 2


@pytest.mark.parametrize("name", ["absent", "forbidden", "redirects forever"])
def test_permanent_failures_are_not_retried(name: str) -> None:
    storage.configure(retries=3)
    with serving(FAILURES[name][0]) as (url, server):
        with pytest.raises(ReaderError):
            storage.read(url)
        assert sum(path == "/file.bin" for _, path, _ in server.asked) == 1


# -- copies are verified when they are used


@pytest.mark.parametrize("change", ["truncated", "emptied", "altered", "replaced", "linked", "older format"])
@pytest.mark.parametrize("is_container", [False, True], ids=["entry", "copy"])
def test_damaged_copies_are_fetched_again(change: str, is_container: bool, cache: Path, tmp_path: Path) -> None:
    def read(url: str) -> bytes:
        return Path(storage.local_copy(url)).read_bytes() if is_container else storage.read(url).tobytes()

    with serving(Handler.part) as (url, server):
        read(url)
        path = next(path for path in cache.iterdir() if path.suffix == (".copy" if is_container else ""))
        whole = path.read_bytes()
        if change == "truncated":
            with path.open("r+b") as file:
                file.truncate(len(whole) - 1)
        elif change == "emptied":
            path.write_bytes(b"")
        elif change == "altered":
            path.write_bytes(whole[:-1] + b"\0")
        elif change == "replaced":
            (tmp_path / "other").write_bytes(whole[:-1] + b"\0")
            (tmp_path / "other").replace(path)
        elif change == "linked":
            (tmp_path / "secret").write_bytes(whole[:-1] + b"\0")
            path.unlink()
            path.symlink_to(tmp_path / "secret")
        else:
            path.write_bytes(CONTENTS[:-1] + b"\0")
        asked = len(server.asked)
        assert read(url) == CONTENTS
        assert len(server.asked) > asked
        if change == "linked":
            assert (tmp_path / "secret").read_bytes() == whole[:-1] + b"\0"
        asked = len(server.asked)
        assert read(url) == CONTENTS
        assert len(server.asked) == asked


def test_copies_that_were_moved_are_used(cache: Path, tmp_path: Path) -> None:
    """Another inode and another time, as after a restore: the checksum is decisive."""
    with serving(Handler.part) as (url, server):
        path = Path(storage.local_copy(url))
        (tmp_path / "other").write_bytes(path.read_bytes())
        (tmp_path / "other").replace(path)
        storage.configure(cache_folder=cache)
        asked = len(server.asked)
        assert Path(storage.local_copy(url)).read_bytes() == CONTENTS
        assert len(server.asked) == asked


def test_copy_without_its_seal_is_not_used(cache: Path) -> None:
    """The state after a process dies between writing the two files."""
    with serving(Handler.part) as (url, server):
        path = Path(storage.local_copy(url))
        path.with_suffix(".seal").unlink()
        storage.configure(cache_folder=cache)
        asked = len(server.asked)
        assert Path(storage.local_copy(url)).read_bytes() == CONTENTS
        assert len(server.asked) > asked


def test_nothing_else_in_the_folder_is_touched(cache: Path) -> None:
    """The folder may contain unrelated files."""
    cache.mkdir()
    (cache / "thesis.tex").write_bytes(bytes(5000))
    (cache / "folder").mkdir()
    storage.configure(cache_folder=cache, cache_bytes=3000, retries=0)
    with serving(lambda handler: handler.whole(bytes(1000))) as (url, _):
        for number in range(6):
            storage.read(f"{url}/{number}")
            storage.local_copy(f"{url}/copy/{number}")
    assert (cache / "thesis.tex").stat().st_size == 5000
    assert (cache / "folder").is_dir()


def test_unfinished_files_of_dead_processes_are_deleted(cache: Path) -> None:
    old, young = (f"{letter * 32}.{'0' * 16}.part" for letter in "ab")
    cache.mkdir()
    for name in (old, young):
        (cache / name).write_bytes(bytes(2000))
    os.utime(cache / old, (0, 0))
    storage.configure(cache_folder=cache, cache_bytes=3000, retries=0)
    with serving(lambda handler: handler.whole(bytes(1400))) as (url, _):
        for number in range(3):
            storage.read(f"{url}/{number}")
    assert not (cache / old).exists()
    assert (cache / young).exists()


def test_files_are_for_their_user_and_links_are_not_followed(cache: Path, tmp_path: Path) -> None:
    with serving(Handler.part) as (url, _):
        storage.read(url)
        storage.local_copy(url)
    assert {path.stat().st_mode & 0o777 for path in cache.iterdir()} == {0o600}
    assert cache.stat().st_mode & 0o777 == 0o700


PROGRAM = """
import sys
from dalify.formats.files import storage
storage.configure(cache_folder=sys.argv[1], retries=0)
for _ in range(10):
    for number in range(20):
        assert storage.read(f"{sys.argv[2]}/{number}").tobytes() == bytes([number]) * 5000
    assert open(storage.local_copy(f"{sys.argv[2]}/copy"), "rb").read() == b"copy" * 5000
"""


def test_processes_that_fill_a_cache_together(cache: Path) -> None:
    def answer(handler: Handler) -> None:
        name = handler.path.rpartition("/")[2]
        handler.part(b"copy" * 5000 if name == "copy" else bytes([int(name)]) * 5000)

    with serving(answer) as (url, _):
        processes = [
            subprocess.Popen([sys.executable, "-c", PROGRAM, str(cache), url], stderr=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        try:
            errors = [process.communicate(timeout=120)[1] for process in processes]
        finally:
            for process in processes:
                process.kill()
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    assert not [name for name in kept(cache) if name.endswith(".part")]


def test_a_copy_without_its_checksum_file_is_left_to_the_process_that_writes_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process looks for the copy after it is written, and before its checksum file is."""
    write_checksum = DiskCache._write_checksum
    seen: list[bool] = []

    def look_and_write(self: DiskCache, path: Path, size_bytes: int, checksum: int) -> None:
        seen.append(DiskCache(str(cache), 10**6).has_copy(path))
        write_checksum(self, path, size_bytes, checksum)

    monkeypatch.setattr(DiskCache, "_write_checksum", look_and_write)
    with serving(lambda handler: handler.part(b"copy" * 5000)) as (url, _):
        copy = Path(storage.local_copy(url))
    assert seen == [False]
    assert copy.parent == cache
    assert copy.read_bytes() == b"copy" * 5000
    assert DiskCache(str(cache), 10**6).has_copy(copy)


# -- what the reader says


@pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
def decoding(urls: list[str]) -> Any:
    return fn.decoders.image(fn.readers.file(files=urls)[0])


def photo() -> bytes:
    return cv2.imencode(".png", np.full((4, 5, 3), 7, np.uint8))[1].tobytes()


@pytest.mark.parametrize("page", [b"<html>busy, try later</html>", photo()[:60]], ids=["a web page", "cut"])
def test_what_cannot_be_decoded_is_fetched_again(page: bytes, cache: Path) -> None:
    """A bad response with a correct length is not cached."""
    with serving(lambda handler: handler.whole(page)) as (url, server):
        urls = [f"{url}/{number}" for number in range(2)]
        with pytest.raises(DecodeError, match=r"cached copy '.*cache.[0-9a-f]{32}' was deleted"):
            decoding(urls).run()
        for number in range(2):  # as a program of an earlier version, or another process, may have left them
            storage.read(urls[number])
        server.answer = lambda handler: handler.whole(photo())
        pipe = decoding(urls)
        assert [tuple(image.shape()) for image in pipe.run()[0]] == [(4, 5, 3)] * 2
        assert not pipe.bad_samples()
        pipe.close()


def test_a_file_that_stays_bad_is_requested_twice_and_fails_its_sample(cache: Path) -> None:
    def answer(handler: Handler) -> None:
        handler.whole(photo() if "good" in handler.path else b"nonsense")

    with serving(answer) as (url, server):
        pipe = decoding([f"{url}/good", f"{url}/bad"], on_error="skip", prefetch_queue_depth=1)
        pipe.run()
        assert [sample.source for sample in pipe.bad_samples()] == [f"{url}/bad"]
        pipe.close()
        assert sum(path.endswith("bad") for _, path, _ in server.asked) <= 6  # of up to three batches that were started


@pytest.mark.parametrize("keeps", [True, False], ids=["cache", "no cache"])
def test_container_that_cannot_be_opened_is_fetched_again(keeps: bool, cache: Path) -> None:
    annotations = {"images": [{"id": 1, "file_name": "1.png", "width": 5, "height": 4}], "categories": []}

    def answer(handler: Handler) -> None:
        is_json = handler.path.endswith(".json")
        handler.whole(b"{not yet" if is_json and bad else json.dumps(document).encode() if is_json else photo())

    document, bad = {**annotations, "annotations": []}, True

    @pipeline_def(batch_size=1, num_threads=1)
    def reading(url: str) -> Any:
        return fn.readers.coco(file_root=url, annotations_file=f"{url}/a.json")[0]

    storage.configure(cache_folder=cache if keeps else None, retries=0)
    with serving(answer) as (url, _):
        with pytest.raises(ReaderError, match="was deleted; it will be downloaded again"):
            reading(url).build()
        bad = False
        pipe = reading(url)
        assert pipe.run()[0].at(0).tobytes() == photo()
        pipe.close()
