"""check.html in a headless Chromium: an auditor's page accepts a good run, names what it refuses, needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "proofs" / "check.html"
ACCEPTED = ROOT / "tests" / "proofs" / "accepted"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 60

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")


class Browser:
    """Speaks the DevTools protocol over two pipes: one JSON text per message, each closed by a zero byte."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        read_ours, write_theirs = os.pipe()
        read_theirs, write_ours = os.pipe()
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
            f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        # Chromium reads from descriptor 3 and writes to descriptor 4; the shell puts the pipes there.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{read_theirs} 4>&{write_theirs}', "bash", *command],
            pass_fds=(read_theirs, write_theirs),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_theirs)
        os.close(write_theirs)
        self.input = os.fdopen(write_ours, "wb", buffering=0)
        self.output = os.fdopen(read_ours, "rb")
        self.number = 0
        self.session: str | None = None
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.send("Network.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        self.input.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def receive(self) -> Any:
        text = bytearray()
        while (byte := self.output.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            text += byte
        message = json.loads(bytes(text))
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def value(self, expression: str) -> Any:
        return self.send("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def open(self, address: str) -> None:
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && typeof swapproofChecker === 'function'")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + SECONDS
        while self.value(condition) is not True:
            assert time.monotonic() < end, f"{condition} did not come true: {self.value('document.body.innerText')}"
            time.sleep(0.05)

    def choose(self, folder: Path) -> tuple[list[str], str]:
        """Picks a folder as its user would; gives the lines and the verdict."""
        self.start(folder)
        return self.verdict()

    def start(self, folder: Path) -> None:
        document = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=document, selector="#folder")["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(folder)])

    def drop(self, folder: Path) -> tuple[list[str], str]:
        """Drops a folder on the page; gives the lines and the verdict."""
        data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, x=200, y=200, data=data)
        return self.verdict()

    def verdict(self) -> tuple[list[str], str]:
        self.wait("/^(accepted|refused|not checked)/.test(document.getElementById('verdict').textContent)")
        lines = self.value("[...document.querySelectorAll('#lines li')].map((item) => item.textContent)")
        return lines, self.value("document.getElementById('verdict').textContent")

    def close(self) -> None:
        self.session = None
        try:
            self.send("Browser.close")
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()
            self.input.close()
            self.output.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder of three certificates over two models, one of them with an external tensor file."""
    folder = tmp_path / "run"
    (folder / "certificates").mkdir(parents=True)
    for number, name in enumerate(("paper", "external", "two_layers")):
        certificate = json.loads((ACCEPTED / f"{name}.json").read_bytes())
        certificate["id"] = number
        files = [certificate["model"]["file"], *(tensor for tensor, _ in certificate["model"]["tensors"])]
        files += [certificate["vocabulary"]["file"]] if certificate["vocabulary"] is not None else []
        for file in files:
            shutil.copy(ACCEPTED / file, folder / file)
        text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
        (folder / "certificates" / f"{number:06}.json").write_text(text)
    return folder


def test_a_chosen_folder_is_accepted_with_one_sentence_for_each_certificate(browser: Browser, run: Path) -> None:
    browser.open(PAGE.as_uri())
    lines, verdict = browser.choose(run)
    assert verdict == "accepted 3 of 3"
    assert [line.split(":")[0] for line in lines[:3]] == ["000000.json", "000001.json", "000002.json"]
    assert lines[3].startswith("Merkle root ")
    assert len(lines) == 4


def test_a_dropped_folder_is_accepted(browser: Browser, run: Path) -> None:
    browser.open(PAGE.as_uri())
    assert browser.drop(run)[1] == "accepted 3 of 3"


def test_a_refused_certificate_is_named_and_the_run_is_not_accepted(browser: Browser, run: Path) -> None:
    file = run / "certificates" / "000001.json"
    file.write_bytes(file.read_bytes().replace(b'"label":1', b'"label":0').replace(b'"rivals":[0]', b'"rivals":[1]'))
    browser.open(PAGE.as_uri())
    lines, verdict = browser.choose(run)
    assert verdict == "refused 1 of 3"
    assert [line for line in lines if line.startswith("refused ")] == [lines[1]]
    assert lines[1].startswith("refused 000001.json: ")


def test_a_count_is_shown_with_its_numbers(browser: Browser, run: Path) -> None:
    certificate = json.loads((run / "certificates" / "000000.json").read_bytes())
    several = [choices for choices in certificate["choices"] if len(choices) > 1]
    total = 1 + sum(len(choices) - 1 for choices in several)
    tree = base64.b64encode(b"\3").decode()
    count = {"level": "real", "recipe": "linear-1", "swaps": 1, "tree": tree, "robust": "0", "broken": "0"}
    certificate |= {"lower": None, "upper": None, "count": count | {"total": str(total)}}
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    (run / "certificates" / "000000.json").write_text(text)
    browser.open(PAGE.as_uri())
    lines, verdict = browser.choose(run)
    assert verdict == "accepted 3 of 3"
    assert f"of the {total} sentences with at most 1 swap, at least 0 are proved" in lines[0]
    about = browser.value("document.getElementById('about').textContent")
    assert about.startswith("3 accepted, 0 refused of 3; ")


def test_the_page_answers_during_a_long_check_and_can_be_stopped(browser: Browser, run: Path) -> None:
    """Hundreds of texts with thousands of sentences: meanwhile the page says how far it is, and its button works."""
    certificate = json.loads((run / "certificates" / "000000.json").read_bytes())
    choices = [[*at, *sorted(set(range(7)) - set(at))] for at in certificate["choices"]]
    space = hashlib.sha256(json.dumps(choices, separators=(",", ":")).encode()).hexdigest()
    count = {"level": "real", "recipe": "linear-1", "swaps": len(choices), "tree": base64.b64encode(b"\2").decode()}
    count |= {"robust": "1", "broken": "1", "total": str(7 ** len(choices))}
    certificate |= {"choices": choices, "lower": None, "upper": None, "space": space, "count": count}
    for number in range(400):
        text = json.dumps(certificate | {"id": number}, sort_keys=True, separators=(",", ":"))
        (run / "certificates" / f"{number:06}.json").write_text(text)
    browser.open(PAGE.as_uri())
    browser.start(run)
    browser.wait(
        "/ refused of 400, now 000[0-9]{3}.json; [1-9][0-9]* s$/.test(document.getElementById('about').textContent)"
    )
    assert browser.value("document.getElementById('verdict').textContent") == "Checking\u2026"
    browser.value("document.getElementById('stop').click()")
    assert browser.verdict()[1] == "not checked: stopped before the end"


def test_a_missing_model_is_said_so(browser: Browser, run: Path) -> None:
    (run / "paper.onnx").unlink()
    browser.open(PAGE.as_uri())
    assert browser.choose(run)[1] == "not checked: paper.onnx is missing"


def test_a_second_folder_replaces_the_verdict_of_the_first(browser: Browser, run: Path) -> None:
    browser.open(PAGE.as_uri())
    assert browser.choose(run)[1] == "accepted 3 of 3"
    (run / "certificates" / "000001.json").write_bytes(b"{}")
    (run / "certificates" / "000002.json").unlink()
    browser.value("document.getElementById('verdict').textContent = ''")
    lines, verdict = browser.drop(run)
    assert verdict == "refused 1 of 2"
    assert len(lines) == 2


def test_the_page_reads_nothing_but_its_own_two_files(browser: Browser, run: Path) -> None:
    browser.requests.clear()
    browser.open(PAGE.as_uri())
    browser.choose(run)
    asked = {address for address in browser.requests if not address.startswith("blob:")}
    assert asked == {PAGE.as_uri(), PAGE.with_name("check.js").as_uri()}
