"""A classifier behind an address: texts go out as JSON, scores come back as JSON."""

from __future__ import annotations

import email.utils
import http.client
import json
import os
import random
import re
import socket
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, NoReturn
from urllib.parse import SplitResult, urlsplit

from ..errors import BadInput, one_line, visible
from .answers.json_paths import Step, Template, described, one_row, steps_of, taken, template_of
from .answers.score_rows import Unreachable, in_batches, score_rows
from .classifier import Deployment, Identity, NoAnswer, Scores, SpeltOut, Variants
from .swapped_text import Fields, SwapText

AUTHORIZATION = "SWAPPROOF_ENDPOINT_AUTHORIZATION"
"""The environment variable whose value is sent as the header `Authorization`, and kept nowhere."""
ATTEMPTS = 3
TIMEOUT = 10.0
BATCH = 32
MOST_BYTES = 4 << 20
EXCERPT = 80
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 60.0
"""Seconds: before a second attempt, doubled for each one more; and the longest that a server may ask for."""
REMARK = "an endpoint may answer otherwise another day: what it runs is no part of the run"
OPEN_REMARK = "the texts were sent without encryption"


@dataclass(eq=False)
class HttpEndpoint:
    """One request at a time over one connection, which is kept open where the server does."""

    identity: Identity
    url: SplitResult
    template: Template
    response: tuple[Step, ...] | None
    labels: tuple[str, ...] = ()
    batch: int = 1
    attempts: int = ATTEMPTS
    timeout: float = TIMEOUT
    per_second: float | None = None
    token: str | None = field(default=None, repr=False)
    _kept: list[http.client.HTTPConnection] = field(default_factory=list, init=False, repr=False)
    """The open connection, if there is one."""
    _process: int = field(default_factory=os.getpid, init=False, repr=False)
    _next: float = field(default=0.0, init=False, repr=False)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, _close, self._kept)

    def __getstate__(self) -> NoReturn:
        raise TypeError("an open endpoint is not sent to another process, which opens its own")

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        with self._one_at_a_time:
            if self._process != os.getpid():  # forked: two processes on one connection would mix up their answers
                _close(self._kept)
                self._process = os.getpid()
            return in_batches(self._ask, sentences, self.batch)

    def variants(self, text: SwapText) -> Variants:
        return SpeltOut(self, text)

    def answer(self, sentence: Fields) -> Any:
        """The JSON that comes back for one sentence, for whoever asks where its scores stand."""
        status, data = self._answered(self.template.filled([sentence]).encode("ascii"))
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise NoAnswer(
                f"{self.identity.name} ({status}: {self._excerpt(data)}) answered what is not JSON"
            ) from None

    def _ask(self, sentences: Sequence[Fields]) -> Scores:
        status, data = self._answered(self.template.filled(sentences).encode("ascii"))
        who = f"{self.identity.name} ({status}: {self._excerpt(data)})"
        if not data.strip():
            raise NoAnswer(f"{self.identity.name} ({status}) answered nothing")
        try:
            answer = json.loads(data, parse_constant=_constant)
        except (ValueError, RecursionError) as error:  # ValueError: not JSON, not UTF-8, a number of too many digits
            problem = "NaN" if isinstance(error, _NotANumber) else "what is not JSON"
            raise NoAnswer(f"{who} answered {problem}") from None
        if self.response is None:
            raise BadInput(f"{who} answers {described(answer)}: say in [model] response where the scores are")
        try:
            value = taken(answer, self.response)
        except LookupError as error:
            raise NoAnswer(f"{who} has nothing at [model] response: {error.args[0]}") from None
        return score_rows(value if self.template.whole else one_row(value), len(sentences), self.labels, who)

    def _answered(self, body: bytes) -> tuple[int, bytes]:
        """After as many attempts as it takes; what no attempt will change is refused at once."""
        problem = ""
        for attempt in range(self.attempts):
            pause = FIRST_PAUSE * 2**attempt * (0.5 + random.random())
            self._wait_for_turn()
            try:
                status, headers, data = self._exchanged(body)
            except (OSError, http.client.HTTPException) as error:
                problem = self._without_token(_told(error, self.timeout))
            else:
                if status != 429 and status < 500:
                    return self._accepted(status, headers, data)
                problem = f"{status}: {self._excerpt(data)}"
                asked = _seconds(headers.get("Retry-After"))
                if asked > LONGEST_PAUSE:
                    raise Unreachable(f"{self.identity.name} asks to come back in {asked:.0f} s ({problem})")
                pause = max(pause, asked)
            if attempt + 1 < self.attempts:
                time.sleep(pause)
        tries = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        raise Unreachable(f"{self.identity.name} has no answer after {tries} ({problem})")

    def _accepted(self, status: int, headers: Message, data: bytes) -> tuple[int, bytes]:
        name, said = self.identity.name, self._excerpt(data)
        if len(data) > MOST_BYTES:
            raise NoAnswer(f"{name} ({status}: {said}) answered more than {MOST_BYTES >> 20} MB")
        if 200 <= status < 300:
            return status, data
        if 300 <= status < 400:
            target = headers.get("Location")
            shown = self._without_token(visible(_name_of_text(target or "")))
            raise BadInput(f"{name} ({status}) redirects to {shown}: redirects are not followed; give that address")
        if status in (401, 403):
            raise BadInput(f"{name} ({status}: {said}) wants authorization: set the variable {AUTHORIZATION}")
        if status in (404, 405):
            raise BadInput(f"{name} ({status}: {said}) does not take requests (POST) at this address")
        raise NoAnswer(f"{name} ({status}: {said}) refused")

    def _exchanged(self, body: bytes) -> tuple[int, Message, bytes]:
        """One request; again at once if a connection that was kept open turns out to be closed."""
        kept = bool(self._kept)
        try:
            return self._once(body)
        except (ConnectionError, http.client.BadStatusLine) as error:  # nothing came back
            if not kept or isinstance(error, TimeoutError):
                raise
            return self._once(body)

    def _once(self, body: bytes) -> tuple[int, Message, bytes]:
        """All of it in `timeout` seconds, however slowly it comes in."""
        connection = self._kept.pop() if self._kept else self._opened()
        late = threading.Event()
        stop = threading.Timer(self.timeout, _stop, (connection.sock, late))
        stop.daemon = True
        stop.start()
        try:
            connection.request("POST", self._target, body, self._headers)
            answer = connection.getresponse()
            data = answer.read(MOST_BYTES + 1)
            if len(data) <= MOST_BYTES and answer.length:
                raise http.client.IncompleteRead(b"", answer.length)
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: closed while it was read
            connection.close()
            raise TimeoutError if late.is_set() else error from None
        finally:
            stop.cancel()
        if late.is_set():  # a body that ends where the connection does would look whole
            connection.close()
            raise TimeoutError
        if len(data) > MOST_BYTES or answer.will_close or connection.sock is None:
            connection.close()
        else:
            self._kept.append(connection)
        return answer.status, answer.headers, data

    def _opened(self) -> http.client.HTTPConnection:
        host, port = self.url.hostname or "", self.url.port
        if self.url.scheme == "https":
            import ssl

            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=self.timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self.timeout)
        connection.connect()
        return connection

    @property
    def _target(self) -> str:
        return (self.url.path or "/") + (f"?{self.url.query}" if self.url.query else "")

    @property
    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "swapproof"}
        return headers | ({"Authorization": self.token} if self.token else {})

    def _wait_for_turn(self) -> None:
        if self.per_second is not None:
            time.sleep(max(0.0, self._next - time.monotonic()))
            self._next = time.monotonic() + 1 / self.per_second

    def _excerpt(self, data: bytes) -> str:
        text = self._without_token(" ".join(data[:4096].decode("utf-8", "replace").split()))
        return visible(text[:EXCERPT]) or "nothing"

    def _without_token(self, text: str) -> str:
        """Servers repeat what they were sent when something is wrong with it."""
        secrets = [self.token, self.token.split()[-1]] if self.token else []
        for secret in secrets:
            text = text.replace(secret, "***")
        return text


def open_endpoint(deployment: Deployment) -> HttpEndpoint:
    """No request is made before the first question."""
    try:
        url = urlsplit(deployment.source)
        name = name_of(url)
        (url.hostname or "").encode("idna")  # as whoever resolves it does
    except ValueError:
        raise BadInput("endpoint: not an address such as http://127.0.0.1:8000/classify") from None
    if url.scheme not in ("http", "https") or not url.hostname or not re.fullmatch("[!-~]+", deployment.source):
        raise BadInput("endpoint: not an address such as http://127.0.0.1:8000/classify, with %20 for a space")
    if "@" in url.netloc:
        raise BadInput(f"endpoint {name}: the address holds a password: set the variable {AUTHORIZATION} instead")
    if not deployment.allow_endpoint:
        raise BadInput(
            f"endpoint {name}: asked only with --allow-endpoint: every text, and every sentence that is made of it, "
            "is sent there in a request of its own or with others"
        )
    token = os.environ.get(AUTHORIZATION) or None
    if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
        raise BadInput(f"{AUTHORIZATION}: holds characters that no header can")
    options = deployment.options
    template = template_of(options.get("request"), deployment.fields, deployment.moving)
    if "batch" in options and not template.whole:
        raise BadInput("[model] batch: has no effect where request takes one {text} at a time; write {texts}")
    away = url.scheme == "http" and url.hostname not in ("127.0.0.1", "::1", "localhost")
    return HttpEndpoint(
        identity=Identity("endpoint", name, remarks=(REMARK, *([OPEN_REMARK] if away else []))),
        url=url,
        template=template,
        response=None if options.get("response") is None else steps_of(options["response"]),
        labels=deployment.labels,
        batch=options.get("batch", BATCH) if template.whole else 1,
        attempts=options.get("attempts", ATTEMPTS),
        timeout=options.get("timeout", TIMEOUT),
        per_second=options.get("per_second"),
        token=token,
    )


def name_of(url: SplitResult) -> str:
    """Without user, password, query and fragment: keys stand there."""
    port = f":{url.port}" if url.port else ""
    host = url.hostname or ""
    place = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{place}{port}{url.path}" if host else url.path


def _name_of_text(address: str) -> str:
    try:
        return name_of(urlsplit(address)) or "nowhere"
    except ValueError:
        return "what is no address"


class _NotANumber(ValueError):
    """NaN in the place of a number."""


def _constant(name: str) -> float:
    if name == "NaN":
        raise _NotANumber
    return float(name)


def _close(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _stop(connection: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):  # it was closed meanwhile
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _seconds(retry_after: str | None) -> float:
    """Of a header that holds seconds or a date; 0 where it holds neither."""
    if retry_after is None:
        return 0.0
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


def _told(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing whole within {timeout:g} s"
    if isinstance(error, http.client.IncompleteRead):
        return "the connection broke in the middle of the answer"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was closed without an answer"
    if isinstance(error, http.client.HTTPException):
        return f"what came back is not HTTP: {type(error).__name__}"
    return visible(getattr(error, "strerror", None) or one_line(error))
