"""An endpoint is a classifier: asked only if allowed, patient, bounded, and never believed beyond what it answers."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import pickle
import socket
import ssl
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_server import server

from swapproof.models.deployed import http_endpoint
from swapproof.models.deployed.answers.score_rows import Unreachable
from swapproof.models.deployed.classifier import Deployment, NoAnswer
from swapproof.models.deployed.http_endpoint import AUTHORIZATION, HttpEndpoint
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.errors import BadInput

LABELS = ("negative", "positive")
TEXTS = [("a fine film",), ("bad",), ("not that good at all",)]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_endpoint, "FIRST_PAUSE", 0.002)
    monkeypatch.delenv(AUTHORIZATION, raising=False)


def opened(url: str, fields: int = 1, moving: int | None = None, **options: Any) -> HttpEndpoint:
    options = {"response": "scores", **options}
    deployment = Deployment(
        "endpoint",
        url,
        fields=fields,
        moving=moving,
        labels=LABELS,
        allow_endpoint=True,
        options={key: value for key, value in options.items() if value is not None},
    )
    endpoint = open_classifier(deployment)
    assert isinstance(endpoint, HttpEndpoint)
    return endpoint


def lengths(asked: Any, number: int) -> Any:
    return {"scores": [len(asked["text"]), 1.5]}


def test_every_text_is_sent_and_its_scores_come_back_in_order() -> None:
    with server(lengths) as served:
        assert opened(served.url).scores(TEXTS).tolist() == [[11, 1.5], [3, 1.5], [20, 1.5]]
    assert sorted(asked["text"] for asked in served.asked) == sorted(text for (text,) in TEXTS)
    assert len(set(served.peers)) == 1  # one connection for all


def test_a_server_that_hangs_up_after_each_answer_costs_no_attempt() -> None:
    with server(lengths, protocol="HTTP/1.0") as served:
        assert opened(served.url, attempts=1).scores(TEXTS).shape == (3, 2)
    assert len(set(served.peers)) == 3


def test_a_kept_connection_that_was_closed_meanwhile_costs_no_attempt() -> None:
    def once(asked: Any, number: int) -> Any:
        def hang_up(handler: BaseHTTPRequestHandler) -> None:
            body = json.dumps(lengths(asked, number)).encode()
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()  # promises to stay, and does not
            handler.wfile.write(body)

        return hang_up

    with server(once) as served:
        endpoint = opened(served.url, attempts=1)
        for sentence in TEXTS:
            endpoint.scores([sentence])
            time.sleep(0.02)
    assert len(served.asked) == 3


def test_forked_processes_do_not_share_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(lengths) as served:
        endpoint = opened(served.url)
        endpoint.scores(TEXTS[:1])
        monkeypatch.setattr(os, "getpid", lambda: -1)
        endpoint.scores(TEXTS)
    assert served.peers[0] != served.peers[1] == served.peers[3]


def test_whole_batches_are_one_request() -> None:
    def answer(asked: Any, number: int) -> Any:
        return {"predictions": [{"p": [0.25, len(text)]} for text in asked["instances"]]}

    with server(answer) as served:
        endpoint = opened(served.url, request='{"instances": {texts}, "n": 1}', response="predictions[*].p", batch=2)
        assert endpoint.scores(TEXTS)[:, 1].tolist() == [11, 3, 20]
    assert [len(asked["instances"]) for asked in served.asked] == [2, 1]


@pytest.mark.parametrize(("moving", "text"), [(0, "first"), (1, "second")])
def test_of_pairs_text_is_what_moves_and_context_the_other(moving: int, text: str) -> None:
    with server(lambda asked, number: {"scores": [0.0, 1.0]}) as served:
        opened(served.url, fields=2, moving=moving).scores([("first", "second")])
    assert served.asked[0]["text"] == text
    assert {served.asked[0]["text"], served.asked[0]["context"]} == {"first", "second"}
    batches = opened(served.url, fields=2, moving=moving, request='{"a": {texts}, "b": {contexts}}').template
    filled = json.loads(batches.filled([("first", "second")] * 2))
    assert filled["a"] == [text] * 2 != filled["b"]


def test_texts_are_values_whatever_they_hold() -> None:
    odd = '{context} {text} "quoted" \\ \n 👋 \u2028'
    with server(lengths) as served:
        opened(served.url, request='{"a": {"text": {text}}, "text": {text}}').scores([(odd,)])
    assert served.asked == [{"a": {"text": odd}, "text": odd}]


@pytest.mark.parametrize(
    ("response", "said", "row"),
    [
        ("$", [0.1, 0.9], [0.1, 0.9]),
        ("$", 0.75, [0.75]),
        ("$", [[0.1, 0.9]], [0.1, 0.9]),
        ("score", {"score": 3}, [3]),
        ("out[1].logits", {"out": [0, {"logits": [1, 2]}]}, [1, 2]),
        ("$.out[0][1]", {"out": [[0, [3, 4]]]}, [3, 4]),
        ("[*].p", [{"p": 0.25}, {"p": 0.75}], [0.25, 0.75]),
        ("[0]", [[{"label": "positive", "score": 0.9}, {"label": "negative", "score": 0.1}]], [0.1, 0.9]),
        ("[*].score", [{"label": "positive", "score": 0.9}, {"label": "negative", "score": 0.1}], [0.1, 0.9]),
        ("scores", {"scores": {"Positive": 0.9, "Negative": 0.1}}, [0.1, 0.9]),
    ],
)
def test_scores_are_found_where_the_path_says(response: str, said: Any, row: list[float]) -> None:
    with server(lambda asked, number: said) as served:
        assert opened(served.url, response=response).scores(TEXTS[:1]).tolist() == [row]


def test_without_a_path_the_answer_says_where_the_numbers_are() -> None:
    said = {"id": "x", "result": [{"probabilities": [0.1, 0.9]}], "top": {"score": 0.9}}
    with server(lambda asked, number: said) as served, pytest.raises(BadInput) as refused:
        opened(served.url, response=None).scores(TEXTS)
    assert "answers numbers at result[0].probabilities, top.score: say in [model] response" in str(refused.value)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ((200, {}, b'{"scores": [NaN, 1]}'), "answered NaN"),
        ((200, {}, b'{"scores": [null, 1]}'), "answered None, where a score is needed"),
        ((200, {}, b'{"scores": ["0.5", 1]}'), 'answered "0.5", where a score is needed'),
        ((200, {}, b'{"scores": [true, false]}'), "answered True"),
        ((200, {}, b'{"scores": []}'), "answered rows without a score"),
        ((200, {}, b'{"score": [1, 2]}'), "has nothing at [model] response: scores of numbers at score"),
        ((200, {}, b'{"scores": [1e400, 2' + b"0" * 5000), "answered what is not JSON"),
        ((200, {}, b"[" * 100_000), "answered what is not JSON"),
        ((200, {}, b"<html>\n<head>\x07 Welcome"), "(200: <html> <head>\\x07 Welcome) answered what is not JSON"),
        ((200, {}, b""), "(200) answered nothing"),
        ((204, {}, b""), "(204) answered nothing"),
        ((200, {}, b"\xff\xfe\xff"), "answered what is not JSON"),
        ((422, {}, b'{"detail": "too long"}'), '(422: {"detail": "too long"}) refused'),
        ((400, {}, b"x" * 5000), "(400: " + "x" * 80 + ") refused"),
    ],
)
def test_what_is_no_answer_is_said_in_one_line_without_a_second_attempt(said: Any, problem: str) -> None:
    with server(lambda asked, number: said) as served, pytest.raises(NoAnswer) as refused:
        opened(served.url).scores(TEXTS[:1])
    assert problem in str(refused.value)
    assert str(refused.value).startswith(served.url)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400
    assert len(served.asked) == 1


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_a_batch_of_the_wrong_length_is_asked_in_halves_and_then_refused(rows: int) -> None:
    request = '{"texts": {texts}}'
    with server(lambda asked, number: [[0.0, 1.0]] * rows) as served:
        if rows == 1:  # each alone is answered
            assert opened(served.url, request=request, response="$").scores(TEXTS).shape == (3, 2)
            return
        with pytest.raises(NoAnswer, match=rf'answered {rows} rows to 1 text; the text is "bad"'):
            opened(served.url, request=request, response="$").scores(TEXTS)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ((401, {}, b"who are you"), f"(401: who are you) wants authorization: set the variable {AUTHORIZATION}"),
        ((404, {}, b"lost"), "(404: lost) does not take requests (POST) at this address"),
        ((307, {"Location": "http://u:pw@other.example:81/x?key=1"}, b""), "redirects to http://other.example:81/x: "),
        ((302, {"Location": "//[bad"}, b""), "redirects to what is no address"),
    ],
)
def test_what_will_never_answer_ends_at_once(said: Any, problem: str) -> None:
    with server(lambda asked, number: said) as served, pytest.raises(BadInput) as refused:
        opened(served.url).scores(TEXTS)
    assert problem in str(refused.value)
    assert len(served.asked) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_busy_servers_are_asked_again(status: int) -> None:
    def answer(asked: Any, number: int) -> Any:
        return (status, {}, b"busy") if number < 2 else lengths(asked, number)

    with server(answer) as served:
        assert opened(served.url).scores(TEXTS[:1]).tolist() == [[11, 1.5]]
        assert len(served.asked) == 3
    with server(lambda asked, number: (status, {}, b"busy")) as served:
        with pytest.raises(Unreachable, match=rf"has no answer after 2 attempts \({status}: busy\)"):
            opened(served.url, attempts=2, request='{"x": {texts}}').scores(TEXTS)
        assert len(served.asked) == 2  # no halves: fewer texts are no remedy


def test_a_server_that_says_when_to_come_back_is_heard() -> None:
    def answer(asked: Any, number: int) -> Any:
        return lengths(asked, number) if number else (429, {"Retry-After": "1"}, b"")

    with server(answer) as served:
        started = time.monotonic()
        opened(served.url).scores(TEXTS[:1])
        assert time.monotonic() - started >= 1
    with server(lambda asked, number: (503, {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}, b"")) as served:
        with pytest.raises(Unreachable, match="asks to come back in"):
            opened(served.url).scores(TEXTS[:1])
        assert len(served.asked) == 1


def silent(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1)


def dripping_body(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(20):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def dripping_without_length(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\n\r\n{"scores": [1, 2]}')
    for _ in range(20):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def dripping_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(20):
        handler.wfile.write(f"X-{number}: 1\r\n".encode())
        time.sleep(0.05)


def hanging_up(handler: BaseHTTPRequestHandler) -> None:
    """Nothing is sent."""


def breaking_off(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"scores": [1, 2]}')


def babbling(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        (silent, "nothing whole within 0.2 s"),
        (dripping_body, "nothing whole within 0.2 s"),
        (dripping_without_length, "nothing whole within 0.2 s"),
        (dripping_headers, "nothing whole within 0.2 s"),
        (hanging_up, "the connection was closed without an answer"),
        (breaking_off, "the connection broke in the middle of the answer"),
        (babbling, "what came back is not HTTP"),
    ],
)
def test_what_never_becomes_whole_is_waited_for_no_longer_than_said(
    behaviour: Callable[[BaseHTTPRequestHandler], None], problem: str
) -> None:
    with server(lambda asked, number: behaviour) as served:
        started = time.monotonic()
        with pytest.raises(Unreachable) as refused:
            opened(served.url, timeout=0.2, attempts=2).scores(TEXTS[:1])
        assert time.monotonic() - started < 1.8  # 2 s is what two take to their end
    assert f"has no answer after 2 attempts ({problem}" in str(refused.value)
    assert len(served.asked) == 2


@pytest.fixture
def certified(tmp_path: Path) -> tuple[Path, Path]:
    """The certificate of 127.0.0.1, signed by itself, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    today = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(today).not_valid_after(today + datetime.timedelta(days=1))
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = builder.add_extension(alternative, critical=True).sign(key, hashes.SHA256())
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (tmp_path / "certificate.pem").write_bytes(certificate.public_bytes(encoding))
    (tmp_path / "key.pem").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    return tmp_path / "certificate.pem", tmp_path / "key.pem"


def test_encrypted_endpoints_are_asked_where_their_certificate_is_trusted(
    certified: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = certified
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with server(lambda asked, number: lengths(asked, number) if number < 3 else dripping_body, tls=context) as served:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            opened(served.url, attempts=1).scores(TEXTS)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert opened(served.url, attempts=1).scores(TEXTS).shape == (3, 2)
        with pytest.raises(Unreachable, match=r"nothing whole within 0\.5 s"):
            opened(served.url, attempts=1, timeout=0.5).scores(TEXTS)
    assert len(served.asked) == 4


def test_nobody_there_is_said() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with pytest.raises(Unreachable, match=r"no answer after 3 attempts \(Connection refused\)"):
        opened(url).scores(TEXTS)


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_endpoint, "MOST_BYTES", 1 << 20)
    endless = server(lambda asked, number: (200, {}, b" " * (5 << 20) + b"[1, 2]"))
    with endless as served, pytest.raises(NoAnswer, match="answered more than 1 MB"):
        opened(served.url, response="$").scores(TEXTS[:1])


def test_no_more_requests_a_second_than_allowed() -> None:
    with server(lengths) as served:
        endpoint = opened(served.url, per_second=50)
        started = time.monotonic()
        endpoint.scores([("a",)] * 11)
        assert time.monotonic() - started >= 10 / 50


def test_nothing_is_sent_unless_it_was_allowed() -> None:
    with server(lengths) as served:
        with pytest.raises(BadInput, match="asked only with --allow-endpoint: every text, and every sentence"):
            open_classifier(Deployment("endpoint", served.url, options={"response": "scores"}))
        opened(served.url)
    assert not served.asked


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(AUTHORIZATION, "Bearer s3cr3t-t0ken")
    return "s3cr3t-t0ken"


def test_the_token_is_sent_and_shown_nowhere(token: str) -> None:
    def echo(asked: Any, number: int) -> Any:
        return (400, {}, f"bad {served.headers[-1]['Authorization']}; {token}".encode())

    with server(echo) as served:
        endpoint = opened(served.url)
        with pytest.raises(NoAnswer) as refused:
            endpoint.scores(TEXTS)
    assert served.headers[0]["Authorization"] == f"Bearer {token}"
    assert "400: bad ***; ***" in str(refused.value)
    assert token not in f"{refused.value} {endpoint!r} {endpoint.identity}"
    with pytest.raises(TypeError):
        pickle.dumps(endpoint)


def test_a_token_that_no_header_can_hold_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTHORIZATION, "Bearer s3cr3t\r\nX: y")
    with pytest.raises(BadInput) as refused:
        opened("http://127.0.0.1:9/")
    assert "s3cr3t" not in str(refused.value)


def test_the_name_of_an_endpoint_holds_no_secrets() -> None:
    endpoint = opened("http://localhost:81/v1/classify?key=s3cr3t#part")
    assert endpoint.identity.name == "http://localhost:81/v1/classify"
    assert endpoint._target == "/v1/classify?key=s3cr3t"
    with pytest.raises(BadInput) as refused:
        opened("https://user:s3cr3t@host.example/classify")
    assert "the address holds a password" in str(refused.value)
    assert "s3cr3t" not in str(refused.value)


def test_texts_that_travel_in_the_open_are_remarked() -> None:
    assert any("without encryption" in remark for remark in opened("http://192.0.2.1/x").identity.remarks)
    assert len(opened("https://192.0.2.1/x").identity.remarks) == 1


@pytest.mark.parametrize(
    ("options", "fields", "problem"),
    [
        ({"request": '{"text": "{text}"}'}, 1, "not JSON once {text} is a string with its quotation marks"),
        ({"request": '{"text": text}'}, 1, "needs {text} or {texts}, and there is neither"),
        ({"request": "[{text}, {texts}]"}, 1, "and there is {text}, {texts}"),
        ({"request": "[{text}, {context}]"}, 1, "and there is {context}, {text}"),
        ({"request": '{"text": {text}}'}, 2, "pairs need {text} and {context} or {texts} and {contexts}"),
        ({"response": "a b"}, 1, '"a b" is no path at " b"'),
        ({"response": "[-1]"}, 1, "is no path at"),
        ({"batch": 4}, 1, "[model] batch: has no effect where request takes one {text} at a time"),
    ],
)
def test_templates_and_paths_that_cannot_work_are_refused_before_anything_is_sent(
    options: dict[str, Any], fields: int, problem: str
) -> None:
    with pytest.raises(BadInput) as refused:
        opened("http://127.0.0.1:9/", fields=fields, moving=0, **options)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://host/x", "http://", "http://[::1", "http://host:99999/", "http://host/a b"),
        *("http://a..b/", f"http://{'a' * 64}.example/"),  # no name of a host can be so
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="not an address such as http://127"):
        opened(url)


def test_infinite_scores_are_scores() -> None:
    with server(lambda asked, number: (200, {}, b'{"scores": [-Infinity, 1e999]}')) as served:
        np.testing.assert_array_equal(opened(served.url).scores(TEXTS[:1]), [[-np.inf, np.inf]])
