"""A small web server on this machine that can be slow, fail and stall, to simulate networks."""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Behavior:
    """Behavior of the server; may be changed while it runs.

    Attributes:
        delay_s: delay before every response, in seconds.
        failures: number of next responses that are an internal error.
        asked: paths of all requests for contents.
        largest_at_once: maximum number of simultaneous requests.
        sent_bytes: number of bytes sent for parts of files.
    """

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.failures = 0
        self.asked: list[str] = []
        self.largest_at_once = 0
        self.sent_bytes = 0
        self._at_once = 0
        self._lock = threading.Lock()

    @contextmanager
    def counted(self, path: str) -> Iterator[bool]:
        """Record a request; return whether it should fail."""
        with self._lock:
            self.asked.append(path)
            self._at_once += 1
            self.largest_at_once = max(self.largest_at_once, self._at_once)
            fails = self.failures > 0
            self.failures -= fails
        try:
            yield fails
        finally:
            with self._lock:
                self._at_once -= 1


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any, behavior: Behavior, **named: Any) -> None:
        self._behavior = behavior
        super().__init__(*arguments, **named)

    def do_GET(self) -> None:
        with self._behavior.counted(self.path) as fails:
            time.sleep(self._behavior.delay_s)
            if fails:
                self.send_error(503)
                return
            first = self.headers.get("Range")
            if first is None or not first.startswith("bytes="):
                super().do_GET()
                return
            contents = Path(self.translate_path(self.path)).read_bytes()
            start, _, stop = first.removeprefix("bytes=").partition("-")
            part = contents[int(start) : int(stop) + 1 if stop else None]
            self.send_response(206)
            self.send_header("Content-Length", str(len(part)))
            self.send_header("Content-Range", f"bytes {start}-{int(start) + len(part) - 1}/{len(contents)}")
            self.end_headers()
            self.wfile.write(part)
            self._behavior.sent_bytes += len(part)

    def log_message(self, *arguments: Any) -> None:
        """Do not log."""


@contextmanager
def web_server(folder: Path) -> Iterator[tuple[str, Behavior]]:
    """Serve a folder; yield its URL and the object that controls the behavior of the server."""
    behavior = Behavior()
    handler = functools.partial(_Handler, directory=str(folder), behavior=behavior)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", behavior
        finally:
            server.shutdown()
            thread.join()
