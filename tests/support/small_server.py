"""An HTTP server on this machine that answers a bounded number of requests as a test says, and remembers them."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST_REQUESTS = 400


@dataclass
class Served:
    url: str
    asked: list[Any] = field(default_factory=list)
    """The JSON of each request."""
    headers: list[dict[str, str]] = field(default_factory=list)
    peers: list[tuple[str, int]] = field(default_factory=list)
    """One for each request; the same for those that came over one connection."""


Answer = Callable[[Any, int], Any]
"""Of the JSON of a request and its number, from 0: JSON; (status, headers, body); or a function that is handed the
handler, to misbehave."""


@contextmanager
def server(answer: Answer, *, protocol: str = "HTTP/1.1", tls: ssl.SSLContext | None = None) -> Iterator[Served]:
    served = Served("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = protocol
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            number = len(served.asked)
            served.asked.append(asked)
            served.headers.append(dict(self.headers))
            served.peers.append(self.client_address)
            if number >= MOST_REQUESTS:
                self.close_connection = True
                return
            said = answer(asked, number)
            if callable(said):
                self.close_connection = True
                said(self)
                return
            status, headers, body = said if isinstance(said, tuple) else (200, {}, json.dumps(said).encode())
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: what was asked is in `asked`."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients that hang up are part of the tests."""

    with Quiet(("127.0.0.1", 0), Handler) as listening:
        if tls is not None:
            listening.socket = tls.wrap_socket(listening.socket, server_side=True)
        served.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{listening.server_address[1]}/classify"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield served
        finally:
            listening.shutdown()
            thread.join()
