"""Whole run folders, as a dishonest producer or a broken disk may change them: `check` accepts no false statement,
ends in a moment, and says in one line what it met; also what stops a command from outside."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tiny import ROWS, SYNONYMS, model, write_task

from swapproof.verifier.audit.handed_over.bundled_run import differences, how_far
from swapproof.verifier.cli import main
from swapproof.verifier.counting.whole_runs.pr_summary import summarise
from swapproof.verifier.pages.report_file import write_report
from swapproof.verifier.runs.run_folder import Run
from swapproof.verifier.runs.run_summary import summary_of
from swapproof.verifier.runs.store import Store

Capture = pytest.CaptureFixture[str]
Change = Callable[[Any], object]
COMMAND = [sys.executable, "-c", "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that tests copy before they change them: certified, counted, sampled, of several radii, of kappa."""
    folder = tmp_path_factory.mktemp("made")
    task = str(write_task(folder / "task", [*ROWS, ("a good stuff film", "positive"), ("awful", "positive")]))
    table = {**SYNONYMS, "good": [*SYNONYMS["good"], "splendid", "the film"], "stuff": ["film"]}
    (folder / "task" / "synonyms.json").write_text(json.dumps(table))
    pr = ["measure", task, "--quantity", "pr", "--radius"]
    assert main(["certify", task, "--out", str(folder / "certified")]) == 0
    assert main([*pr, "2", "--out", str(folder / "counted")]) == 0
    assert main([*pr, "2", "--sampled", "--samples", "5", "--out", str(folder / "sampled")]) == 0
    assert main([*pr, "1,2", "--out", str(folder / "radii")]) == 0
    assert main(["measure", task, "--quantity", "kappa", "--limit", "3", "--out", str(folder / "kappa")]) == 0
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(made / name, tmp_path / name))


@pytest.fixture
def undecided(tmp_path: Path) -> Path:
    """A run in which rounding decides every text, and no sentence breaks one: large equal numbers are added to both
    logits, so that float32 answers `negative` to everything."""
    task = write_task(tmp_path / "task", [row for row in ROWS if row[1] == "negative"])
    proto = model()
    (last,) = (one for one in proto.graph.initializer if one.name == "b2")
    last.CopyFrom(numpy_helper.from_array(np.full(2, 2.0**30, dtype=np.float32), "b2"))
    onnx.save(proto, tmp_path / "task" / "model.onnx")
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    return tmp_path / "run"


def said(capsys: Capture, *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors; never both accepted and refused, never more than one line of errors."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert code != 4 or ("refused" in out and not any(line.startswith("accepted") for line in lines))
    assert code != 2 or (len(err.splitlines()) == 1 and "Traceback" not in err)
    return code, out, err


def change(run: Path, stage: str, what: int | str, how: Change) -> None:
    """Change a line (by its text) or a fact (by its name), and make all accounts anew, as an insider would."""
    with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
        key, place = ("value", "facts WHERE name") if isinstance(what, str) else ("line", "results WHERE id")
        [(text,)] = store.execute(f"SELECT {key} FROM {place} = ?", (what,))
        value = json.loads(text)
        changed = json.dumps(how(value) or value, ensure_ascii=False)
        table, column = place.split(" WHERE ")
        store.execute(f"UPDATE {table} SET {key} = ? WHERE {column} = ?", (changed, what))
    with Store.open(run / "store.sqlite", readonly=True) as opened:
        lines, facts = list(opened.lines(stage)), opened.facts()
        if stage == "min_swaps":
            summary = summary_of(opened)
        else:
            asked, about = json.loads(facts["measure"]), json.loads(facts["about"])
            every = [json.loads(line) for line in lines]
            summary = summarise(every, asked["radius"], json.loads(facts["total"]), Fraction(asked["delta"]))
            summary |= {"remarks": about["remarks"], "swaps": about["swaps"]}
    (run / "results.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (run / "summary.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    if stage == "min_swaps":
        write_report(Run(run))


class TestFiles:
    """One file of the run is another one."""

    @pytest.mark.parametrize("kind", ["pipe", "device", "circle", "nowhere"])
    @pytest.mark.parametrize("place", ["model.onnx", "report.html", "store.sqlite", "certificates/000000.json"])
    def test_what_is_no_file_is_not_waited_for(
        self, copied: Callable[[str], Path], capsys: Capture, kind: str, place: str
    ) -> None:
        """A pipe that nobody writes, a device without end, a link to itself or to nothing."""
        run = copied("certified")
        (run / place).unlink()
        if kind == "pipe":
            os.mkfifo(run / place)
        else:
            target = {"device": "/dev/zero", "circle": Path(place).name, "nowhere": "nowhere"}[kind]
            (run / place).symlink_to(target)
        for command in ("check", "report"):
            code, out, err = said(capsys, command, run)
            assert (code, out) == (2, "")
            assert Path(place).name in err

    @pytest.mark.parametrize("name", ["certified", "counted"])
    def test_every_changed_file_is_found(
        self, made: Path, copied: Callable[[str], Path], capsys: Capture, name: str
    ) -> None:
        """Each cut, doubled, emptied, taken away, swapped with that of another run, or no text at all."""
        run = copied(name)
        assert said(capsys, "check", run)[0] == 0
        others = (made / "radii" / "radius-1", made / "certified")
        for path in sorted(path for path in run.rglob("*") if path.suffix not in ("", ".png") and path.is_file()):
            if path.parent.name == "certificates" and path.stem != "000000":
                continue
            honest = path.read_bytes()
            ways = [b"", honest[: len(honest) // 2], b"{}\n", b"[" * 99_999]
            if path.suffix != ".sqlite":  # of which nothing behind its end is read
                ways += [honest + honest, b"\xff\xfe" + honest, b"".join(honest.splitlines(keepends=True)[::-1]) + b"x"]
            found = [folder / path.relative_to(run) for folder in others]
            ways += [other.read_bytes() for other in found if other.exists()]
            for way in ways:
                if way == honest:
                    continue
                path.write_bytes(way)
                assert said(capsys, "check", run)[0] in (2, 4), (path, way[:60])
            path.unlink()
            code = said(capsys, "check", run)[0]
            assert code == 0 if path.name in ("summary.json", "report.html") else code in (2, 4), path
            path.write_bytes(honest)
        assert said(capsys, "check", run)[0] == 0

    @pytest.mark.parametrize("name", ["certified", "counted"])
    def test_texts_that_are_numbered_or_described_otherwise_are_refused(
        self, copied: Callable[[str], Path], capsys: Capture, name: str
    ) -> None:
        """Their order alone says which is which: no result would change."""
        run = copied(name)
        lines = [json.loads(line) for line in (run / "texts.jsonl").read_text().splitlines()]
        for changed in ({"id": 7}, {"note": "audited"}):
            texts = [lines[0] | changed, *lines[1:]]
            (run / "texts.jsonl").write_text("".join(f"{json.dumps(text)}\n" for text in texts))
            assert "texts.jsonl is not the file" in said(capsys, "check", run)[1]

    def test_a_root_without_its_certificates_is_refused(
        self, made: Path, tmp_path: Path, copied: Callable[[str], Path], capsys: Capture
    ) -> None:
        run = copied("certified")
        (run / "certificates" / "root").write_text("0" * 64 + "\n")
        (run / "certificates" / "000003.json").unlink()
        assert said(capsys, "check", run)[0] == 4

    def test_a_measurement_has_the_page_of_its_own_lines(
        self, made: Path, copied: Callable[[str], Path], capsys: Capture
    ) -> None:
        run = copied("counted")
        shutil.copy(made / "certified" / "report.html", run / "report.html")
        assert "report.html is not the page" in said(capsys, "check", run)[1]
        assert said(capsys, "report", run)[0] == 0
        assert said(capsys, "check", run)[0] == 0

    def test_a_file_larger_than_the_memory_is_one_line(self, copied: Callable[[str], Path]) -> None:
        run = copied("certified")
        os.truncate(run / "results.jsonl", 6 << 30)
        limited = ["sh", "-c", 'ulimit -v 3000000; exec "$@"', "sh", *COMMAND, "check", str(run)]
        done = subprocess.run(limited, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("swapproof: out of memory")

    @pytest.mark.parametrize("key", ["proved", "verdict"])
    def test_a_summary_of_a_measurement_says_nothing_else(
        self, copied: Callable[[str], Path], capsys: Capture, key: str
    ) -> None:
        """No key more, none twice, no true for 1."""
        run = copied("counted")
        summary = json.loads((run / "summary.json").read_text())
        for text in (
            json.dumps(summary | {"proved": "all of it"}),
            f'{{"{key}": 0, {json.dumps(summary | {key: 1})[1:]}',
            json.dumps(summary | {"already_wrong": False}),
        ):
            (run / "summary.json").write_text(text)
            assert "summary.json" in said(capsys, "check", run)[1]


class TestAccounts:
    """Store, results, summary and report say the same, and it is not so."""

    @pytest.mark.parametrize(
        ("how", "refusal"),
        [
            (lambda line: line.update(level="formally verified"), "is no level of truth"),
            (lambda line: line.update(predicted=None), "nothing is known of the model's answer"),
            (lambda line: line.update(reason="proved by hand"), "gives the reason 'proved by hand'"),
            (lambda line: line.update(engine="a formal proof"), "names the engine 'a formal proof'"),
            (lambda line: line.update(predicted=bool(line["predicted"])), "as its predicted, not a whole number"),
            (lambda line: line["min_swaps"].update(high=float(line["min_swaps"]["high"])), "not a whole number"),
            (lambda line: line.update(evaluations=-1), "has -1 as its evaluations"),
            (lambda line: line.update(seconds=-1.0), "has -1.0 as its seconds"),
            (lambda line: line.update(contradiction="a proof is refused"), "did not check: a proof is refused"),
        ],
    )
    def test_a_line_that_says_what_nothing_backs_is_refused(
        self, copied: Callable[[str], Path], capsys: Capture, how: Change, refusal: str
    ) -> None:
        run = copied("certified")
        change(run, "min_swaps", 0, how)
        assert refusal in said(capsys, "check", run)[1]

    def test_witnesses_are_said_to_be_replayed(self, copied: Callable[[str], Path], capsys: Capture) -> None:
        """check.py says of the same witnesses that it does not check what was replayed."""
        out = said(capsys, "check", copied("certified"))[1]
        assert ", replayed)" in out
        assert "not checked" not in out

    def test_a_certificate_of_no_text_is_refused(self, copied: Callable[[str], Path], capsys: Capture) -> None:
        """A killed run may leave one of a text that has no line yet, but none of a text that it has not."""
        run = copied("certified")
        value = json.loads((run / "certificates" / "000000.json").read_text()) | {"id": 77}
        stranger = json.dumps(value, sort_keys=True, separators=(",", ":"))
        (run / "certificates" / "000077.json").write_text(stranger)
        assert "refused 000077.json: the run has no such text" in said(capsys, "check", run)[1]

    def test_files_that_a_certificate_confuses_are_refused(
        self, copied: Callable[[str], Path], capsys: Capture
    ) -> None:
        """The vocabulary under the name of the model, both with their own hashes."""
        run = copied("certified")
        path = run / "certificates" / "000000.json"
        value = json.loads(path.read_text())
        value["model"]["file"], value["vocabulary"]["file"] = value["vocabulary"]["file"], value["model"]["file"]
        path.write_text(json.dumps(value, sort_keys=True, separators=(",", ":")))
        assert "refused 000000.json: made for another model" in said(capsys, "check", run)[1]

    def test_only_a_text_that_rounding_decides_is_ambiguous(
        self, copied: Callable[[str], Path], capsys: Capture
    ) -> None:
        """Ambiguous texts count in no mean: whoever calls the weak ones so has the better mean."""
        run = copied("certified")
        before = json.loads((run / "summary.json").read_text())["mmws"]
        line = json.loads((run / "results.jsonl").read_text().splitlines()[0])
        assert line["min_swaps"] == {"low": 1, "high": 1}
        unsure = {"status": "ambiguous", "reason": "rounding", "min_swaps": {"low": 0, "high": 1}}
        change(run, "min_swaps", 0, lambda line: line.update(unsure))
        assert json.loads((run / "summary.json").read_text())["mmws"]["low"] > before["low"]
        assert "rounding does not decide it" in said(capsys, "check", run)[1]

    def test_a_text_that_is_answered_wrongly_is_not_open(self, copied: Callable[[str], Path], capsys: Capture) -> None:
        run = copied("certified")
        lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
        (wrong,) = [line["id"] for line in lines if line["status"] == "already_wrong"]
        change(run, "min_swaps", wrong, lambda line: line.update(status="open", reason="out of time", level="float32"))
        assert "claims to be open, with a witness of 0 swaps" in said(capsys, "check", run)[1]

    @pytest.mark.parametrize(
        ("how", "refusal"),
        [
            (lambda about: about["remarks"].append("independently audited"), "remarks 'independently audited'"),
            (lambda about: about["model"].update(formally_verified="yes"), "the key 'model.formally_verified'"),
            (lambda about: about.update(certified_by="a notary"), "the key 'certified_by'"),
            (lambda about: about["swaps"]["fixed"].update({"unknown word": 9}), "9 do not move (unknown word)"),
            (lambda about: about["swaps"].update(considered=999), "numbers of swaps were considered"),
        ],
    )
    @pytest.mark.parametrize(("name", "stage"), [("certified", "min_swaps"), ("counted", "pr")])
    def test_what_a_run_says_of_itself_follows_from_its_files(
        self, copied: Callable[[str], Path], capsys: Capture, name: str, stage: str, how: Change, refusal: str
    ) -> None:
        run = copied(name)
        change(run, stage, "about", how)
        assert refusal in said(capsys, "check", run)[1]

    def test_a_sampled_line_cannot_count_sentences(self, copied: Callable[[str], Path], capsys: Capture) -> None:
        """With numbers of robust sentences, which nothing proves, its low end is certain for the mean."""
        run = copied("sampled")
        before = json.loads((run / "summary.json").read_text())["robust_fraction"]
        line = json.loads((run / "results.jsonl").read_text().splitlines()[4])
        counted = line["robust_fraction"] | {"robust": line["robust_fraction"]["total"], "broken": "0", "open": "0"}
        change(run, "pr", 4, lambda line: line.update(robust_fraction=counted))
        assert json.loads((run / "summary.json").read_text())["robust_fraction"] != before
        assert "counts sentences, and no certificate does" in said(capsys, "check", run)[1]

    @pytest.mark.parametrize(
        ("name", "how", "refusal"),
        [
            ("sampled", lambda line: line["robust_fraction"].update(total="1000"), "1000 sentences, and there are"),
            ("sampled", lambda line: line["robust_fraction"].pop("sample"), "nothing was counted or sampled"),
            ("counted", lambda line: line.update(certificate="certificates/000003.json"), "as its certificate, not"),
            ("counted", lambda line: line["robust_fraction"].update(open="0 "), "do not add up"),
        ],
    )
    def test_a_measured_line_that_says_what_nothing_backs_is_refused(
        self, copied: Callable[[str], Path], capsys: Capture, name: str, how: Change, refusal: str
    ) -> None:
        run = copied(name)
        change(run, "pr", 0, lambda line: None if how(line) is line else line)
        assert refusal in said(capsys, "check", run)[1]

    @pytest.mark.parametrize("radius", [10**30, "x", 2.5, -1])
    def test_a_radius_that_is_none_or_has_no_end_is_no_wait(
        self, copied: Callable[[str], Path], capsys: Capture, radius: Any
    ) -> None:
        run = copied("certified")
        with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
            store.execute("UPDATE facts SET value = ? WHERE name = 'radius'", (json.dumps(radius),))
        assert said(capsys, "check", run)[0] == 4
        assert said(capsys, "report", run)[0] in (1, 2, 3)

    @pytest.mark.parametrize("low", [10**30, "x", None, [1]])
    def test_swaps_that_no_text_has_are_no_wait(self, copied: Callable[[str], Path], capsys: Capture, low: Any) -> None:
        run = copied("certified")
        with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
            [(text,)] = store.execute("SELECT line FROM results WHERE id = 0")
            line = json.dumps(json.loads(text) | {"min_swaps": {"low": low, "high": 3}})
            store.execute("UPDATE results SET line = ? WHERE id = 0", (line,))
            lines = [line for (line,) in store.execute("SELECT line FROM results ORDER BY id")]
        (run / "results.jsonl").write_text("".join(f"{line}\n" for line in lines))
        assert said(capsys, "check", run)[0] == 4
        assert said(capsys, "report", run)[0] == 2

    @pytest.mark.parametrize(
        "question", ["{}", "[]", "1", "null", '{"quantity": "pr"}', '{"quantity": "pr", "radius": 2}']
    )
    @pytest.mark.parametrize("name", ["certified", "counted", "kappa"])
    def test_a_question_that_is_none_is_one_line(
        self, copied: Callable[[str], Path], capsys: Capture, name: str, question: str
    ) -> None:
        run = copied(name)
        with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
            store.execute("INSERT OR REPLACE INTO facts VALUES ('measure', ?)", (question,))
        assert said(capsys, "check", run)[0] == 2
        assert said(capsys, "report", run)[0] == 2
        assert said(capsys, "bundle", run, "--out", run / "b.zip")[0] == 2

    @pytest.mark.parametrize("line", ["{}", "[]", "1", "null", '{"status": "sampled"}', '{"id": 0, "seconds": "x"}'])
    def test_a_store_whose_lines_are_none_is_one_line(
        self, copied: Callable[[str], Path], capsys: Capture, line: str
    ) -> None:
        run = copied("certified")
        with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
            store.execute("UPDATE results SET line = ? WHERE id = 0", (line,))
        assert said(capsys, "report", run)[0] == 2
        assert said(capsys, "check", run)[0] == 4


class TestLeftOut:
    """The list of what was left out is the one that was written."""

    def test_the_list_is_recorded_also_by_a_run_that_goes_on(self, made: Path, copied: Callable[[str], Path]) -> None:
        run = copied("counted")
        with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
            [before] = store.execute("SELECT value FROM facts WHERE name = 'left_out'")
            store.execute("DELETE FROM facts WHERE name = 'left_out'")
        task = str(made / "task" / "task.toml")
        assert main(["measure", task, "--quantity", "pr", "--radius", "2", "--out", str(run)]) == 0
        with closing(sqlite3.connect(run / "store.sqlite")) as store:
            assert list(store.execute("SELECT value FROM facts WHERE name = 'left_out'")) == [before]

    @pytest.mark.parametrize("recorded", [True, False])
    @pytest.mark.parametrize(
        "rows",
        [
            [],
            ["word,candidate,reason,positions"],
            ["word,candidate,reason,positions", "good,splendid,not in vocabulary,8", "stuff,film,unknown word,1"],
            ["word,candidate,reason,positions", "good,fine,not in vocabulary,x"],
            ["word,candidate,reason,positions", "good,fine"],
        ],
    )
    def test_another_list_is_refused(
        self, copied: Callable[[str], Path], capsys: Capture, recorded: bool, rows: list[str]
    ) -> None:
        """Without the hash, as in older runs, as far as its sums and words tell."""
        run = copied("counted")
        (run / "left_out.csv").write_text("".join(f"{row}\n" for row in rows))
        if not recorded:
            with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
                store.execute("DELETE FROM facts WHERE name = 'left_out'")
        code, out, _ = said(capsys, "check", run)
        assert code == 4
        assert ("left_out.csv is another list" if recorded else "refused") in out

    def test_a_missing_list_is_refused(self, copied: Callable[[str], Path], capsys: Capture) -> None:
        run = copied("counted")
        (run / "left_out.csv").unlink()
        assert "left_out.csv is missing" in said(capsys, "check", run)[1]

    def test_a_list_that_an_older_run_did_not_record_is_named(
        self, copied: Callable[[str], Path], capsys: Capture
    ) -> None:
        run = copied("counted")
        assert "not covered" not in said(capsys, "check", run)[1]
        with closing(sqlite3.connect(run / "store.sqlite", isolation_level=None)) as store:
            store.execute("DELETE FROM facts WHERE name = 'left_out'")
        code, out, _ = said(capsys, "check", run)
        assert code == 0
        assert "left_out.csv is not covered" in out
        text = (run / "left_out.csv").read_text()
        (run / "left_out.csv").write_text(text.replace("splendid", "terrible"))
        assert said(capsys, "check", run)[0] == 0  # the sums are the same: this is what is not covered


class TestNothingClaimed:
    """A run in which nothing was proved or broken is whole, and proves nothing."""

    def test_it_is_neither_refused_nor_accepted(self, undecided: Path, capsys: Capture) -> None:
        assert {json.loads(line)["status"] for line in (undecided / "results.jsonl").read_text().splitlines()} == {
            "ambiguous"
        }
        code, out, _ = said(capsys, "check", undecided)
        assert code == 3
        assert "no text was proved or broken (3 ambiguous)" in out.splitlines()[-1]
        assert "accepted" not in out
        assert "refused" not in out
        assert said(capsys, "bundle", undecided, "--out", undecided / "b.zip")[0] == 2

    def test_its_accounts_are_compared(self, undecided: Path, capsys: Capture) -> None:
        honest = (undecided / "summary.json").read_text()
        (undecided / "summary.json").write_text(honest.replace('"ambiguous": 3', '"ambiguous": 2'))
        assert "summary.json says ambiguous = 2" in said(capsys, "check", undecided)[1]

    def test_the_folder_of_its_certificates_may_be_lost(self, undecided: Path, capsys: Capture) -> None:
        """It is empty, and archives of files have no empty folders."""
        (undecided / "certificates").rmdir()
        assert said(capsys, "check", undecided)[0] == 3

    def test_certificates_that_were_taken_away_are_missed(self, copied: Callable[[str], Path], capsys: Capture) -> None:
        run = copied("certified")
        shutil.rmtree(run / "certificates")
        assert "holds no certificates; run certify again" in said(capsys, "check", run)[2]


class TestRadii:
    """The folder of several radii."""

    def test_its_report_is_what_the_measurement_showed(
        self, made: Path, tmp_path: Path, copied: Callable[[str], Path], capsys: Capture
    ) -> None:
        task = str(made / "task" / "task.toml")
        capsys.readouterr()
        assert main(["measure", task, "--quantity", "pr", "--radius", "1,2", "--out", str(made / "radii")]) == 0
        shown = capsys.readouterr().out.partition("\nThe run folder")[0]
        code, printed = said(capsys, "report", copied("radii"))[:2]
        assert (code, printed.rpartition("\n\n")[0] + "\n") == (0, shown)

    def test_one_without_certificates_may_have_lost_the_folder(
        self, copied: Callable[[str], Path], capsys: Capture
    ) -> None:
        """Nothing is claimed there, or what is claimed is missed: never a traceback."""
        folder = copied("radii")
        shutil.rmtree(folder / "radius-1" / "certificates")
        assert said(capsys, "check", folder)[0] in (2, 4)

    def test_one_without_its_summary_is_to_be_finished(self, copied: Callable[[str], Path], capsys: Capture) -> None:
        run = copied("radii")
        (run / "summary.json").unlink()
        code, _, err = said(capsys, "report", run)
        assert code == 2
        assert "the run is not finished" in err

    @pytest.mark.parametrize("name", ["radii", "counted", "kappa"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda summary: {},
            lambda summary: {"verdict": {"exit_code": 0}},
            lambda summary: {**summary, "verdict": {"exit_code": 77, "sentence": ""}, "runs": {}},
            lambda summary: {**summary, "runs": {"1": {"verdict": 1}}},
            lambda summary: dict.fromkeys(summary),
            lambda summary: dict.fromkeys(summary, ()),
            lambda summary: dict.fromkeys(summary, 1e400),
        ],
    )
    def test_the_report_of_a_summary_that_is_none_is_one_line(
        self, copied: Callable[[str], Path], capsys: Capture, name: str, change: Change
    ) -> None:
        run = copied(name)
        summary = json.loads((run / "summary.json").read_text())
        (run / "summary.json").write_text(json.dumps(change(summary)))
        code, _, err = said(capsys, "report", run)
        assert code == 2
        assert "not the summary of a measurement" in err

    @pytest.mark.parametrize("name", ["counted", "kappa"])
    @pytest.mark.parametrize(
        ("file", "content"), [("results.jsonl", None), ("results.jsonl", "[1]\n"), ("texts.jsonl", None)]
    )
    def test_the_report_names_the_file_that_is_lost_or_damaged(
        self, copied: Callable[[str], Path], capsys: Capture, name: str, file: str, content: str | None
    ) -> None:
        run = copied(name)
        (run / file).unlink()
        if content is not None:
            (run / file).write_text(content)
        code, _, err = said(capsys, "report", run)
        assert (code, err.count("\n")) == (2, 1)
        assert f"{file}: {'cannot be read' if content is None else 'damaged'}" in err


def group_lives(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


class TestHandedOver:
    """Whoever puts a bundle together anew, without a signature, can change any file of it and all hashes."""

    @pytest.mark.parametrize(
        ("name", "file", "before", "after", "refusal"),
        [
            ("certified", "texts.jsonl", '"label": "positive"', '"label": "negative"', "another label"),
            ("certified", "texts.jsonl", '"label"', '"note": 1, "label"', "texts.jsonl is not the file"),
            ("certified", "results.jsonl", '{"id": 0', '{"id": 7, "id": 0', "a key occurs twice"),
            ("certified", "results.jsonl", '"to": "fine"', '"to": "fine1"', "is no synonym there"),
            ("certified", "results.jsonl", '"levels": ["real"', '"levels": ["verified"', "other levels"),
            ("certified", "results.jsonl", '"candidates": ', '"candidates": 1', "another number of single swaps"),
            ("certified", "summary.json", '"kept": ', '"kept": 1', "says another thing of the number of swaps"),
            ("certified", "summary.json", '"remarks": []', '"remarks": ["audited"]', "summary.json remarks 'audited'"),
            ("certified", "summary.json", '"remarks"', '"proved": 1, "remarks"', "summary.json has the key 'proved'"),
            ("certified", "manifest.json", '"vocabulary": "', '"vocabulary": "0', "another SHA-256 of the vocabulary"),
            ("certified", "task.toml", '"spaces.jsonl"', '"../other.jsonl"', "other.jsonl"),
            ("counted", "summary.json", '"exact": ', '"exact": 1', "summary.json says exact"),
            ("counted", "summary.json", '"remarks"', '"proved": 1, "remarks"', "says other things than a measurement"),
        ],
    )
    def test_what_it_says_beside_its_files_is_compared(
        self, copied: Callable[[str], Path], name: str, file: str, before: str, after: str, refusal: str
    ) -> None:
        run = copied(name)
        assert not list(differences(run))
        assert "claim no more than the certificates state" in how_far(run)
        text = (run / file).read_text()
        assert before in text
        (run / file).write_text(text.replace(before, after, 1))
        assert any(refusal in fault for fault in differences(run))

    def test_a_certificate_about_fewer_swaps_is_refused(self, copied: Callable[[str], Path]) -> None:
        """It proves what it says, and not what is said beside it of all swaps."""
        run = copied("certified")
        path = run / "certificates" / "000007.json"
        certificate = json.loads(path.read_bytes())
        assert certificate["upper"] is None
        certificate["words"] = [[start, options[:2]] for start, options in certificate["words"]]
        path.write_text(json.dumps(certificate, sort_keys=True, separators=(",", ":")))
        assert "text 7: the certificate is for other words or options" in set(differences(run))

    def test_texts_that_are_said_to_be_ambiguous_are_counted(self, copied: Callable[[str], Path]) -> None:
        """No certificate shows it, so the sentence says how many there are."""
        run = copied("certified")
        unsure = {"status": "ambiguous", "reason": "rounding", "min_swaps": {"low": 0, "high": 1}}
        change(run, "min_swaps", 0, lambda line: line.update(unsure))
        assert not list(differences(run))
        assert "but that rounding decides 1 texts" in how_far(run)


class TestStopped:
    """SIGTERM and SIGHUP are Ctrl-C by other means."""

    @pytest.mark.parametrize("jobs", ["1", "2"])
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_a_run_that_is_stopped_can_be_resumed(
        self, tmp_path: Path, capsys: Capture, number: signal.Signals, jobs: str
    ) -> None:
        """The signal goes to the whole group of processes, as batch systems send it; none of them stays."""
        task, run = write_task(tmp_path / "task", ROWS * 40), tmp_path / "run"
        command = ["certify", str(task), "--out", str(run), "--jobs", jobs]
        process = subprocess.Popen(
            [*COMMAND, *command],
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # nohup, under which tests may run, ignores one
        )
        deadline = time.monotonic() + 60
        while not (run / "certificates" / "000010.json").exists() and time.monotonic() < deadline:
            time.sleep(0.002)
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        *progress, last = err.decode().splitlines()
        assert last == "swapproof: interrupted; a run can be resumed by the same command"
        assert all(line.startswith("certify: ") for line in progress), progress
        while group_lives(process.pid) and time.monotonic() < deadline + 60:  # to be cleared away takes a moment
            time.sleep(0.01)
        assert not group_lives(process.pid)
        lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
        assert 8 <= len(lines) < len(ROWS) * 40
        assert not any("killed" in (line.get("reason") or "") for line in lines)
        assert said(capsys, "check", run, "--jobs", "1")[0] == 3
        assert main(command) == 0

    def test_what_is_ignored_stays_ignored(self, tmp_path: Path) -> None:
        """`nohup` ignores SIGHUP for us."""
        task, run = write_task(tmp_path / "task", ROWS * 5), tmp_path / "run"
        command = [*COMMAND, "certify", str(task), "--out", str(run)]
        ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
        process = subprocess.Popen([*ignoring, *command], stdout=subprocess.DEVNULL, start_new_session=True)
        while not (run / "certificates" / "000001.json").exists() and process.poll() is None:
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGHUP)
        assert process.wait(timeout=60) == 0

    def test_a_command_leaves_the_handlers_of_its_process(self, made: Path) -> None:
        before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
        assert main(["check", str(made / "certified")]) == 0
        assert before == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
