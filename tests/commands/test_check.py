"""`check` on runs of a tiny model: which it accepts, and what it says of those that were changed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runs import Capture, results
from tiny import ROWS, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.ladder import station

ROOT = Path(__file__).parents[2]


def interrupt_at(id: int, settle_one: Callable[..., Any]) -> Callable[..., Any]:
    """Settles texts until this one, where the user presses Ctrl-C."""

    def settled(at: station.Station, text: Any) -> Any:
        if text.id == id:
            raise KeyboardInterrupt
        return settle_one(at, text)

    return settled


class TestCheck:
    """`check` accepts what is proved, and refuses a line that claims more."""

    def test_a_finished_run_is_accepted_last_of_all(self, run: Path, capsys: Capture) -> None:
        for arguments in ([], ["--exact"], ["--jobs", "1"]):
            assert main(["check", str(run), *arguments]) == 0
            assert capsys.readouterr().out.splitlines()[-1] == "accepted 8 of 8"

    def test_many_certificates_are_checked_in_several_processes(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task", ROWS * 4)
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        assert main(["check", str(tmp_path / "run"), "--jobs", "2"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == "accepted 32 of 32"

    def test_of_many_texts_that_are_accepted_the_first_have_a_line(self, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(write_task(tmp_path / "task", ROWS * 5)), "--out", str(run)]) == 0
        capsys.readouterr()
        assert main(["check", str(run)]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert [line[:6] for line in shown[:24]] == [f"{id:06d}" for id in range(24)]
        assert shown[24] == "and 16 more texts of which nothing is refused"
        assert (len(shown), shown[-1]) == (27, "accepted 40 of 40")
        assert main(["check", str(run), "--quiet"]) == 0
        assert capsys.readouterr().out.splitlines() == shown[25:]

    def test_what_is_refused_has_a_line_wherever_it_is(self, tmp_path: Path, capsys: Capture) -> None:
        run = tmp_path / "run"
        assert main(["certify", str(write_task(tmp_path / "task", ROWS * 5)), "--out", str(run)]) == 0
        for id in (30, 39):
            (run / "certificates" / f"{id:06d}.json").write_bytes(b"{}")
        capsys.readouterr()
        assert main(["check", str(run), "--quiet"]) == 4
        out = capsys.readouterr().out
        assert "refused 000030.json: " in out
        assert "refused 000039.json: " in out
        assert "text 0" not in out

    def test_the_bare_checker_accepts_the_run_too(self, run: Path) -> None:
        command = [sys.executable, "-I", "-S", str(ROOT / "proofs" / "check.py"), str(run)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[-1] == "accepted 8 of 8"

    @pytest.mark.parametrize(
        ("id", "change"),
        [
            (1, {"min_swaps": {"low": 4, "high": 4}}),
            (1, {"min_swaps": {"low": 3, "high": None}, "status": "open"}),
            (1, {"min_swaps": {"low": 2, "high": 2}}),
            (1, {"min_swaps": {"low": 6, "high": None}, "status": "unbreakable"}),
            (1, {"witness": None}),
            (1, {"witness": {"swaps": [{"position": 1, "from": "great", "to": "fine"}]}}),
            (1, {"witness": {"swaps": [{"position": 0, "from": "the", "to": "bad"}]}}),
            (1, {"certificate": "certificates/000000.json"}),
            (1, {"certificate": None}),
            (1, {"text": "the great great fine movie"}),
            (1, {"label": 0}),
            (1, {"predicted": 0}),
            (1, {"candidates": 8}),
            (1, {"positions": 6}),
            (1, {"cut": 1}),
            (1, {"unknown": 1}),
            (1, {"witness": {"sentence": "an awful movie"}}),
            (1, {"witness": {"levels": ["replay"]}}),
            (1, {"witness": {"swaps": []}}),
            (1, {"status": "already_wrong"}),
            (1, {"status": "proved"}),
            (2, {"min_swaps": {"low": 9, "high": None}}),
            (2, {"min_swaps": {"low": 2, "high": 2}, "status": "exact"}),
        ],
    )
    def test_a_line_that_claims_something_else_is_refused(
        self, run: Path, capsys: Capture, id: int, change: dict[str, Any]
    ) -> None:
        lines = results(run)
        if change.get("witness"):
            change = {"witness": lines[id]["witness"] | change["witness"]}
        lines[id] |= change
        (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (run / "summary.json").unlink()
        assert main(["check", str(run)]) == 4
        out = capsys.readouterr().out
        assert f"refused {id:06d}.json: the line" in out
        assert "accepted" not in out

    def test_a_wrong_answer_is_claimed_at_the_level_that_its_certificate_shows(
        self, tmp_path: Path, capsys: Capture
    ) -> None:
        task = write_task(tmp_path / "task", [("awful film", "positive")])
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        [line] = results(tmp_path / "run")
        assert (line["status"], line["level"]) == ("already_wrong", "float32")
        (tmp_path / "run" / "results.jsonl").write_text(json.dumps(line | {"level": "replay"}) + "\n")
        assert main(["check", str(tmp_path / "run")]) == 4
        assert "the line claims replay, and the wrong answer is shown at float32" in capsys.readouterr().out

    def test_a_swap_placed_at_another_word_is_refused(self, run: Path, capsys: Capture) -> None:
        lines = results(run)
        lines[1]["witness"]["swaps"][0]["characters"][0] += 1
        (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert main(["check", str(run)]) == 4
        assert "elsewhere than the text does" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("certificates/000001.json", lambda data: data.replace(b'"swaps":2', b'"swaps":3')),
            ("certificates/000001.json", lambda data: data[:-1]),
            ("certificates/000001.json", lambda data: data.replace(b'"label":1', b'"label":0')),
            ("model.onnx", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
            ("spaces.jsonl", lambda data: data.replace(b'"fine"', b'"poor"', 1)),
            ("texts.jsonl", lambda data: data.replace(b"a good film", b"a fine film")),
            ("vocabulary.json", lambda data: data + b" "),
            ("summary.json", lambda data: data.replace(b'"exact": 4', b'"exact": 5')),
        ],
    )
    def test_a_changed_file_is_refused(
        self, run: Path, capsys: Capture, name: str, change: Callable[[bytes], bytes]
    ) -> None:
        data = (run / name).read_bytes()
        assert change(data) != data
        (run / name).write_bytes(change(data))
        assert main(["check", str(run)]) in (2, 4)
        assert "accepted" not in capsys.readouterr().out

    def test_a_run_that_found_nothing_has_nothing_to_check(self, tmp_path: Path, capsys: Capture) -> None:
        task = write_task(tmp_path / "task", [("the a the", "positive")])
        assert main(["certify", str(task), "--out", str(tmp_path / "run"), "--engines", "greedy"]) == 0
        capsys.readouterr()
        assert main(["check", str(tmp_path / "run")]) == 3
        out = capsys.readouterr().out
        assert "no text was proved or broken (1 open)" in out
        assert "accepted" not in out

    def test_texts_without_a_line_are_counted(self, task: Path, tmp_path: Path, capsys: Capture) -> None:
        """A run that was interrupted has none for the rest."""
        run = tmp_path / "run"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(station.Station, "settle", interrupt_at(6, station.Station.settle))
            assert main(["certify", str(task), "--out", str(run)]) == 130
        rest = 8 - len(results(run))
        assert 0 < rest < 8
        capsys.readouterr()
        assert main(["check", str(run)]) == 3
        out = capsys.readouterr().out
        said = f"incomplete: {rest} of the run's 8 texts have no line in results.jsonl: they are not settled"
        assert said in out
        assert "accepted" not in out
        assert main(["check", str(run), "--json"]) == 3
        found = json.loads(capsys.readouterr().out)
        assert found["exit_code"] == 3
        assert found["accepted"]
        assert found["remarks"][0].startswith(said)

    def test_a_missing_certificate_is_refused(self, run: Path) -> None:
        (run / "certificates" / "000001.json").unlink()
        assert main(["check", str(run)]) == 4

    def test_a_certificate_of_another_text_is_refused(self, run: Path) -> None:
        shutil.copy(run / "certificates" / "000000.json", run / "certificates" / "000001.json")
        assert main(["check", str(run)]) == 4

    def test_a_folder_that_is_no_run_is_bad_input(self, tmp_path: Path, capsys: Capture) -> None:
        assert main(["check", str(tmp_path)]) == 2
        assert main(["check", str(tmp_path / "absent")]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 2

    @pytest.mark.parametrize("command", ["check", "report"])
    def test_a_run_without_its_store_names_the_file_and_what_to_do(
        self, run: Path, command: str, capsys: Capture
    ) -> None:
        """The folder of an unpacked bundle, say; what is advised does check it."""
        (run / "store.sqlite").unlink()
        assert main([command, str(run)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "it has no store.sqlite; copy it from where the run was made, or make the run again" in line
        (advised,) = re.findall("`python (-I -S proofs/check.py .*)`", line)
        assert subprocess.run([sys.executable, *advised.split()], cwd=ROOT, check=False).returncode == 0
        (run / "store.sqlite").write_text("something else")
        assert main([command, str(run)]) == 2
        assert "its store.sqlite is another file" in capsys.readouterr().err

    def test_a_folder_of_runs_names_one_of_them(self, run: Path, tmp_path: Path, capsys: Capture) -> None:
        assert main(["report", str(tmp_path)]) == 2
        assert f"{run} may be one" in capsys.readouterr().err
