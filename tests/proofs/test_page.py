"""check.html in a headless Chromium: an auditor's page accepts a good run, names what it refuses, needs no network."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
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

    def drop(self, *things: Path) -> tuple[list[str], str]:
        """Drops folders or files on the page, all at once; gives the lines and the verdict."""
        self.let_fall(*things)
        return self.verdict()

    def let_fall(self, *things: Path) -> None:
        data = {"items": [], "files": [str(thing) for thing in things], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, x=200, y=200, data=data)

    def text(self, name: str) -> str:
        text: str = self.value(f"document.getElementById('{name}').textContent")
        return text

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


def spoil(file: Path) -> None:
    """Label and rival change places: the certificate is refused."""
    file.write_bytes(file.read_bytes().replace(b'"label":1', b'"label":0').replace(b'"rivals":[0]', b'"rivals":[1]'))


def test_a_chosen_folder_is_accepted_with_one_sentence_for_each_certificate(browser: Browser, run: Path) -> None:
    browser.open(PAGE.as_uri())
    lines, verdict = browser.choose(run)
    assert verdict == "accepted 3 of 3 (folder run)"
    assert [line.split(":")[0] for line in lines[:3]] == ["000000.json", "000001.json", "000002.json"]
    assert lines[3].startswith("Merkle root ")
    assert len(lines) == 4


def test_a_dropped_folder_is_accepted(browser: Browser, run: Path) -> None:
    browser.open(PAGE.as_uri())
    assert browser.drop(run)[1] == "accepted 3 of 3 (folder run)"


def test_a_refused_certificate_is_named_and_the_run_is_not_accepted(browser: Browser, run: Path) -> None:
    spoil(run / "certificates" / "000001.json")
    browser.open(PAGE.as_uri())
    lines, verdict = browser.choose(run)
    assert verdict == "refused 1 of 3 (folder run)"
    assert [line for line in lines if line.startswith("refused ")] == [lines[0]]
    assert lines[0].startswith("refused 000001.json: ")


def test_refusals_stand_before_everything_else(browser: Browser, run: Path) -> None:
    """Both in the order of the certificates, also when the refused are neither first nor last."""
    data = json.loads((run / "certificates" / "000000.json").read_bytes())
    for number in range(8):
        text = json.dumps(data | {"id": number}, sort_keys=True, separators=(",", ":"))
        (run / "certificates" / f"{number:06}.json").write_text(text)
    for number in (2, 5):
        spoil(run / "certificates" / f"{number:06}.json")
    browser.open(PAGE.as_uri())
    lines, verdict = browser.choose(run)
    assert verdict == "refused 2 of 8 (folder run)"
    assert [line.split(":")[0] for line in lines] == [
        *(f"refused {number:06}.json" for number in (2, 5)), *(f"{number:06}.json" for number in (0, 1, 3, 4, 6, 7)),
    ]  # fmt: skip


def test_a_wrong_root_stands_before_what_was_accepted(browser: Browser, run: Path) -> None:
    (run / "certificates" / "root").write_text("0" * 64 + "\n")
    browser.open(PAGE.as_uri())
    lines, verdict = browser.choose(run)
    assert verdict == "refused 1 of 3 (folder run)"
    assert lines[0] == "refused root: certificates/root is another Merkle root"
    assert len(lines) == 4


WAYS: dict[str, Callable[[Browser, Path], tuple[list[str], str]]] = {"chosen": Browser.choose, "dropped": Browser.drop}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inner", ["backup", "certificates/old", "old", "zz/deeper"])
def test_a_run_inside_the_dropped_one_does_not_speak_for_it(
    browser: Browser, run: Path, inner: str, way: str, tmp_path: Path
) -> None:
    """The good one inside, before or after in the alphabet, is ignored, and said to be."""
    shutil.copytree(run, tmp_path / "copy")
    shutil.move(tmp_path / "copy", run / inner)
    spoil(run / "certificates" / "000001.json")
    browser.open(PAGE.as_uri())
    lines, verdict = WAYS[way](browser, run)
    assert verdict == "refused 1 of 3 (folder run)"
    assert lines[0].startswith("refused 000001.json: ")
    assert browser.text("where").endswith(f"certificates of their own, run/{inner}.")


@pytest.mark.parametrize("way", WAYS)
def test_several_runs_are_named_and_none_is_checked(browser: Browser, run: Path, way: str) -> None:
    """Whether beside each other, or one inside the other, below the dropped folder."""
    for names in (("radius-1", "radius-2"), ("radius-1", "radius-1/certificates/inner")):
        folder = run.with_name("-".join(names).replace("/", "-"))
        folder.mkdir()
        for name in names:
            shutil.copytree(run, folder / name)
        browser.open(PAGE.as_uri())
        lines, verdict = WAYS[way](browser, folder)
        below = ", ".join(f"{folder.name}/{name}" for name in names)
        assert verdict == f"not checked: {folder.name} holds 2 runs, {below}; drop one of them"
        assert lines == []
        assert browser.text("about") == browser.text("where") == ""


def test_only_ten_of_many_runs_are_named(browser: Browser, run: Path) -> None:
    for number in range(12):
        shutil.copytree(run / "certificates", run.parent / "many" / f"{number:02}" / "certificates")
    browser.open(PAGE.as_uri())
    verdict = browser.choose(run.parent / "many")[1]
    assert verdict.startswith("not checked: many holds 12 runs, many/00, many/01, ")
    assert verdict.endswith(", many/09 and 2 more; drop one of them")


@pytest.mark.parametrize("way", WAYS)
def test_the_only_run_below_the_dropped_folder_is_checked_and_named(browser: Browser, run: Path, way: str) -> None:
    """As in the archive of a run, where the checkers lie beside it."""
    outer = run.parent / "archive"
    outer.mkdir()
    shutil.move(run, outer / "run")
    shutil.copy(PAGE, outer)
    browser.open(PAGE.as_uri())
    assert WAYS[way](browser, outer)[1] == "accepted 3 of 3 (folder archive/run)"
    assert browser.text("where") == "Checked is archive/run, the only folder in archive that holds certificates."


def test_a_run_folder_may_be_called_certificates(browser: Browser, run: Path) -> None:
    """But the folder of the certificates is no run."""
    browser.open(PAGE.as_uri())
    verdict = browser.choose(run / "certificates")[1]
    assert verdict == "not checked: certificates holds no folder certificates; drop a run folder"
    shutil.copytree(run, run.parent / "certificates")
    browser.open(PAGE.as_uri())
    assert browser.choose(run.parent / "certificates")[1] == "accepted 3 of 3 (folder certificates)"


def test_things_dropped_together_are_what_one_folder_holds(browser: Browser, run: Path, tmp_path: Path) -> None:
    """All of a run, without its folder, is that run; two runs, also of the same name, are not one; files are none."""
    (tmp_path / "elsewhere").mkdir()
    shutil.copytree(run, tmp_path / "elsewhere" / "run")
    shutil.copytree(run, tmp_path / "second")
    spoil(run / "certificates" / "000001.json")
    for things, expected in (
        (sorted(run.iterdir()), "refused 1 of 3 (folder what was dropped)"),
        ([tmp_path / "second", *run.iterdir()], "refused 1 of 3 (folder what was dropped)"),
        ([run, tmp_path / "second"], "not checked: what was dropped holds 2 runs, run, second; drop one of them"),
        (
            [run / "certificates" / "000000.json", run / "paper.onnx"],
            "not checked: what was dropped holds no folder certificates; drop a run folder",
        ),
    ):
        browser.open(PAGE.as_uri())
        assert browser.drop(*things)[1] == expected
    # Chromium gives one of the two another name. Where a browser does not, they are not taken for one.
    browser.open(PAGE.as_uri())
    assert browser.drop(tmp_path / "elsewhere" / "run", run)[1].startswith("not checked: ")
    twice = 'findRun([["run/certificates/000000.json", null], ["run/certificates/000000.json", null]]).reason'
    assert browser.value(twice) == "two things of the same name were dropped; drop one run folder"


@pytest.mark.parametrize("name", ["000001.json", "root"])
def test_a_folder_in_place_of_a_file_is_not_read_over(browser: Browser, run: Path, name: str) -> None:
    (run / "certificates" / name).unlink(missing_ok=True)
    (run / "certificates" / name).mkdir()
    (run / "certificates" / name / "file").write_text("")
    browser.open(PAGE.as_uri())
    shown = name if name.endswith(".json") else f"certificates/{name}"
    assert browser.choose(run)[1] == f"not checked: {shown} cannot be read: it is a folder (folder run)"


def test_only_the_last_dropped_folder_is_checked(browser: Browser, run: Path, tmp_path: Path) -> None:
    """Also if the one before it takes longer to be listed; meanwhile no verdict on any other is shown."""
    shutil.copytree(run, tmp_path / "slow")
    browser.open(PAGE.as_uri())
    assert browser.choose(run)[1] == "accepted 3 of 3 (folder run)"
    browser.value(
        "{ const quick = filesBelow; const gate = new Promise((done) => { window.release = done; });"
        "filesBelow = async (item) => {"
        " const files = await quick(item); await gate; window.listed = true; return files; } }"
    )
    browser.let_fall(tmp_path / "slow")
    browser.wait("document.getElementById('verdict').textContent === 'Reading\u2026'")
    assert browser.value("document.getElementById('verdict').className") == ""
    assert browser.choose(run)[1] == "accepted 3 of 3 (folder run)"
    browser.value("release()")
    browser.wait("window.listed === true")
    assert browser.verdict()[1] == "accepted 3 of 3 (folder run)"


def test_the_page_says_what_it_reads(browser: Browser) -> None:
    browser.open(PAGE.as_uri())
    said = browser.value("document.querySelector('main p').innerText")
    assert "vocabulary.json" in said
    assert "alone" not in said


def test_a_count_is_shown_with_its_numbers(browser: Browser, run: Path) -> None:
    certificate = json.loads((run / "certificates" / "000000.json").read_bytes())
    total = 1 + sum(len(options) - 1 for _, options in certificate["words"])
    tree = base64.b64encode(b"\3").decode()
    count = {"level": "real", "recipe": "linear-2", "swaps": 1, "tree": tree, "robust": "0", "broken": "0"}
    certificate |= {"lower": None, "upper": None, "count": count | {"total": str(total)}}
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    (run / "certificates" / "000000.json").write_text(text)
    browser.open(PAGE.as_uri())
    lines, verdict = browser.choose(run)
    assert verdict == "accepted 3 of 3 (folder run)"
    assert f"of the {total} sentences with at most 1 swap, at least 0 are proved" in lines[0]
    about = browser.value("document.getElementById('about').textContent")
    assert about.startswith("3 accepted, 0 refused of 3; ")


def test_the_page_answers_during_a_long_check_and_can_be_stopped(browser: Browser, run: Path) -> None:
    """Hundreds of texts with thousands of sentences: meanwhile the page says how far it is, and its button works."""
    certificate = json.loads((run / "certificates" / "000000.json").read_bytes())
    tokens = certificate["inputs"][0][1]
    others = [sorted(set(range(7)) - {token}) for token in tokens]
    words = [[at, [[token], *([other] for other in others[at])]] for at, token in enumerate(tokens)]
    count = {"level": "real", "recipe": "linear-2", "swaps": len(words), "tree": base64.b64encode(b"\2").decode()}
    count |= {"robust": "1", "broken": "1", "total": str(7 ** len(words))}
    certificate |= {"words": words, "lower": None, "upper": None, "count": count}
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
    assert browser.choose(run)[1] == "not checked: paper.onnx is missing (folder run)"


def test_a_second_folder_replaces_the_verdict_of_the_first(browser: Browser, run: Path) -> None:
    browser.open(PAGE.as_uri())
    assert browser.choose(run)[1] == "accepted 3 of 3 (folder run)"
    (run / "certificates" / "000001.json").write_bytes(b"{}")
    (run / "certificates" / "000002.json").unlink()
    browser.value("document.getElementById('verdict').textContent = ''")
    lines, verdict = browser.drop(run)
    assert verdict == "refused 1 of 2 (folder run)"
    assert len(lines) == 2


def test_the_page_reads_nothing_but_its_own_two_files(browser: Browser, run: Path) -> None:
    browser.requests.clear()
    browser.open(PAGE.as_uri())
    browser.choose(run)
    asked = {address for address in browser.requests if not address.startswith("blob:")}
    assert asked == {PAGE.as_uri(), PAGE.with_name("check.js").as_uri()}
