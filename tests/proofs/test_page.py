"""check.html in a headless Chromium: an auditor's page accepts a good run, names what it refuses, needs no network."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chromium import CHROMIUM, Browser

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "proofs" / "check.html"
ACCEPTED = ROOT / "tests" / "proofs" / "accepted"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")


class Auditor(Browser):
    """One that shows check.html."""

    def show(self) -> None:
        self.open(PAGE.as_uri(), "typeof swapproofChecker === 'function'")

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

    def verdict(self) -> tuple[list[str], str]:
        self.wait("/^(accepted|refused|not checked)/.test(document.getElementById('verdict').textContent)")
        lines = self.value("[...document.querySelectorAll('#lines li')].map((item) => item.textContent)")
        return lines, self.value("document.getElementById('verdict').textContent")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Auditor]:
    with Auditor.begun(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


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


def test_a_chosen_folder_is_accepted_with_one_sentence_for_each_certificate(browser: Auditor, run: Path) -> None:
    browser.show()
    lines, verdict = browser.choose(run)
    assert verdict == "accepted 3 of 3 (folder run)"
    assert [line.split(":")[0] for line in lines[:3]] == ["000000.json", "000001.json", "000002.json"]
    assert lines[3].startswith("Merkle root ")
    assert len(lines) == 4


def test_a_dropped_folder_is_accepted(browser: Auditor, run: Path) -> None:
    browser.show()
    assert browser.drop(run)[1] == "accepted 3 of 3 (folder run)"


def test_a_refused_certificate_is_named_and_the_run_is_not_accepted(browser: Auditor, run: Path) -> None:
    spoil(run / "certificates" / "000001.json")
    browser.show()
    lines, verdict = browser.choose(run)
    assert verdict == "refused 1 of 3 (folder run)"
    assert [line for line in lines if line.startswith("refused ")] == [lines[0]]
    assert lines[0].startswith("refused 000001.json: ")


def test_refusals_stand_before_everything_else(browser: Auditor, run: Path) -> None:
    """Both in the order of the certificates, also when the refused are neither first nor last."""
    data = json.loads((run / "certificates" / "000000.json").read_bytes())
    for number in range(8):
        text = json.dumps(data | {"id": number}, sort_keys=True, separators=(",", ":"))
        (run / "certificates" / f"{number:06}.json").write_text(text)
    for number in (2, 5):
        spoil(run / "certificates" / f"{number:06}.json")
    browser.show()
    lines, verdict = browser.choose(run)
    assert verdict == "refused 2 of 8 (folder run)"
    assert [line.split(":")[0] for line in lines] == [
        *(f"refused {number:06}.json" for number in (2, 5)), *(f"{number:06}.json" for number in (0, 1, 3, 4, 6, 7)),
    ]  # fmt: skip


def test_a_wrong_root_stands_before_what_was_accepted(browser: Auditor, run: Path) -> None:
    (run / "certificates" / "root").write_text("0" * 64 + "\n")
    browser.show()
    lines, verdict = browser.choose(run)
    assert verdict == "refused 1 of 3 (folder run)"
    assert lines[0] == "refused root: certificates/root is another Merkle root"
    assert len(lines) == 4


WAYS: dict[str, Callable[[Auditor, Path], tuple[list[str], str]]] = {
    "chosen": Auditor.choose,
    "dropped": Auditor.drop,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inner", ["backup", "certificates/old", "old", "zz/deeper"])
def test_a_run_inside_the_dropped_one_does_not_speak_for_it(
    browser: Auditor, run: Path, inner: str, way: str, tmp_path: Path
) -> None:
    """The good one inside, before or after in the alphabet, is ignored, and said to be."""
    shutil.copytree(run, tmp_path / "copy")
    shutil.move(tmp_path / "copy", run / inner)
    spoil(run / "certificates" / "000001.json")
    browser.show()
    lines, verdict = WAYS[way](browser, run)
    assert verdict == "refused 1 of 3 (folder run)"
    assert lines[0].startswith("refused 000001.json: ")
    assert browser.text("where").endswith(f"certificates of their own, run/{inner}.")


@pytest.mark.parametrize("way", WAYS)
def test_several_runs_are_named_and_none_is_checked(browser: Auditor, run: Path, way: str) -> None:
    """Whether beside each other, or one inside the other, below the dropped folder."""
    for names in (("radius-1", "radius-2"), ("radius-1", "radius-1/certificates/inner")):
        folder = run.with_name("-".join(names).replace("/", "-"))
        folder.mkdir()
        for name in names:
            shutil.copytree(run, folder / name)
        browser.show()
        lines, verdict = WAYS[way](browser, folder)
        below = ", ".join(f"{folder.name}/{name}" for name in names)
        assert verdict == f"not checked: {folder.name} holds 2 runs, {below}; drop one of them"
        assert lines == []
        assert browser.text("about") == browser.text("where") == ""


def test_only_ten_of_many_runs_are_named(browser: Auditor, run: Path) -> None:
    for number in range(12):
        shutil.copytree(run / "certificates", run.parent / "many" / f"{number:02}" / "certificates")
    browser.show()
    verdict = browser.choose(run.parent / "many")[1]
    assert verdict.startswith("not checked: many holds 12 runs, many/00, many/01, ")
    assert verdict.endswith(", many/09 and 2 more; drop one of them")


@pytest.mark.parametrize("way", WAYS)
def test_the_only_run_below_the_dropped_folder_is_checked_and_named(browser: Auditor, run: Path, way: str) -> None:
    """As in the archive of a run, where the checkers lie beside it."""
    outer = run.parent / "archive"
    outer.mkdir()
    shutil.move(run, outer / "run")
    shutil.copy(PAGE, outer)
    browser.show()
    assert WAYS[way](browser, outer)[1] == "accepted 3 of 3 (folder archive/run)"
    assert browser.text("where") == "Checked is archive/run, the only folder in archive that holds certificates."


def test_runs_of_balls_and_the_folder_of_one_box(browser: Auditor, tmp_path: Path) -> None:
    """A run as any other; a box lies beside its model, and in a run it is refused."""
    kept = ROOT / "tests" / "proofs" / "numbers" / "accepted"

    def put(name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept / f"{name}.json", path)
        model = json.loads(path.read_bytes())["model"]["file"]
        shutil.copy(kept / model, path.parents[path.parent.name == "certificates"])

    put("ball-l2-exact", tmp_path / "run" / "certificates" / "000000.json")
    put("box-phases-and-betas", tmp_path / "proof" / "certificate.json")
    lines, verdict = browser.drop(tmp_path / "run")
    assert verdict == "accepted 1 of 1 (folder run)"
    assert lines[-1].startswith("Merkle root ")
    assert browser.drop(tmp_path / "proof")[1] == "accepted 1 of 1 (folder proof)"
    assert browser.text("where") == "Checked is one certificate, certificate.json."
    put("box-phases-and-betas", tmp_path / "run" / "certificates" / "000001.json")
    lines, verdict = browser.drop(tmp_path / "run")
    assert verdict == "refused 1 of 2 (folder run)"
    assert "stands alone" in lines[0]


def test_a_run_folder_may_be_called_certificates(browser: Auditor, run: Path) -> None:
    """But the folder of the certificates is no run."""
    browser.show()
    verdict = browser.choose(run / "certificates")[1]
    assert verdict == "not checked: certificates holds no folder certificates; drop a run folder"
    shutil.copytree(run, run.parent / "certificates")
    browser.show()
    assert browser.choose(run.parent / "certificates")[1] == "accepted 3 of 3 (folder certificates)"


def test_things_dropped_together_are_what_one_folder_holds(browser: Auditor, run: Path, tmp_path: Path) -> None:
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
        browser.show()
        assert browser.drop(*things)[1] == expected
    # Chromium gives one of the two another name. Where a browser does not, they are not taken for one.
    browser.show()
    assert browser.drop(tmp_path / "elsewhere" / "run", run)[1].startswith("not checked: ")
    twice = 'findRun([["run/certificates/000000.json", null], ["run/certificates/000000.json", null]]).reason'
    assert browser.value(twice) == "two things of the same name were dropped; drop one run folder"


@pytest.mark.parametrize("name", ["000001.json", "root"])
def test_a_folder_in_place_of_a_file_is_not_read_over(browser: Auditor, run: Path, name: str) -> None:
    (run / "certificates" / name).unlink(missing_ok=True)
    (run / "certificates" / name).mkdir()
    (run / "certificates" / name / "file").write_text("")
    browser.show()
    shown = name if name.endswith(".json") else f"certificates/{name}"
    assert browser.choose(run)[1] == f"not checked: {shown} cannot be read: it is a folder (folder run)"


def test_only_the_last_dropped_folder_is_checked(browser: Auditor, run: Path, tmp_path: Path) -> None:
    """Also if the one before it takes longer to be listed; meanwhile no verdict on any other is shown."""
    shutil.copytree(run, tmp_path / "slow")
    browser.show()
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


def test_the_page_says_what_it_reads(browser: Auditor) -> None:
    browser.show()
    said = browser.value("document.querySelector('main p').innerText")
    assert "vocabulary.json" in said
    assert "alone" not in said


def test_a_count_is_shown_with_its_numbers(browser: Auditor, run: Path) -> None:
    certificate = json.loads((run / "certificates" / "000000.json").read_bytes())
    total = 1 + sum(len(options) - 1 for _, options in certificate["words"])
    tree = base64.b64encode(b"\3").decode()
    count = {"level": "real", "recipe": "linear-2", "swaps": 1, "tree": tree, "robust": "0", "broken": "0"}
    certificate |= {"lower": None, "upper": None, "count": count | {"total": str(total)}}
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    (run / "certificates" / "000000.json").write_text(text)
    browser.show()
    lines, verdict = browser.choose(run)
    assert verdict == "accepted 3 of 3 (folder run)"
    assert f"of the {total} sentences with at most 1 swap, at least 0 are proved" in lines[0]
    about = browser.value("document.getElementById('about').textContent")
    assert about.startswith("3 accepted, 0 refused of 3; ")


def test_the_page_answers_during_a_long_check_and_can_be_stopped(browser: Auditor, run: Path) -> None:
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
    browser.show()
    browser.start(run)
    browser.wait(
        "/ refused of 400, now 000[0-9]{3}.json; [1-9][0-9]* s$/.test(document.getElementById('about').textContent)"
    )
    assert browser.value("document.getElementById('verdict').textContent") == "Checking\u2026"
    browser.value("document.getElementById('stop').click()")
    assert browser.verdict()[1] == "not checked: stopped before the end"


def test_a_missing_model_is_said_so(browser: Auditor, run: Path) -> None:
    (run / "paper.onnx").unlink()
    browser.show()
    assert browser.choose(run)[1] == "not checked: paper.onnx is missing (folder run)"


def test_a_second_folder_replaces_the_verdict_of_the_first(browser: Auditor, run: Path) -> None:
    browser.show()
    assert browser.choose(run)[1] == "accepted 3 of 3 (folder run)"
    (run / "certificates" / "000001.json").write_bytes(b"{}")
    (run / "certificates" / "000002.json").unlink()
    browser.value("document.getElementById('verdict').textContent = ''")
    lines, verdict = browser.drop(run)
    assert verdict == "refused 1 of 2 (folder run)"
    assert len(lines) == 2


def test_the_page_reads_nothing_but_its_own_two_files(browser: Auditor, run: Path) -> None:
    browser.requests.clear()
    browser.show()
    browser.choose(run)
    asked = {address for address in browser.requests if not address.startswith("blob:")}
    assert asked == {PAGE.as_uri(), PAGE.with_name("check.js").as_uri()}
