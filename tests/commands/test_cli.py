"""The command line as a whole, on a tiny model: reports, usage, other commands, and their exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_runs import Capture
from tiny import write_task

from swapproof.verifier.cli import main

ROOT = Path(__file__).parents[2]


class TestOthers:
    def test_progress_that_no_terminal_shows_is_a_plain_line_on_stderr(self, monkeypatch: Any, capsys: Capture) -> None:
        from swapproof.verifier.pages import progress

        def told_until(wanted: str) -> str:
            found = ""
            while wanted not in found:
                captured = capsys.readouterr()
                assert captured.out == ""
                found += captured.err
            return next(line for line in found.splitlines() if wanted in line)

        monkeypatch.setattr(progress, "EVERY", 0.001)
        with progress.progress("certify", 10, 4) as advance:
            assert told_until("certify: 4 of 10").endswith(" s so far")  # also while one text takes long
            advance(1, "exact")
            advance(2, "already_wrong")
            assert told_until("certify: 7 of 10").startswith("certify: 7 of 10 (2 already wrong, 1 exact), about ")

    def test_no_arguments_and_unknown_commands_are_usage_errors(self, capsys: Capture) -> None:
        assert main([]) == 2
        assert main(["measur"]) == 2
        assert main(["certify"]) == 2
        assert main(["--help"]) == 0
        assert "certify" in capsys.readouterr().out

    def test_version_is_that_of_the_distribution(self, capsys: Capture) -> None:
        assert main(["--version"]) == 0
        name, version = capsys.readouterr().out.split()
        assert name == "swapproof"
        assert version[0].isdigit()

    def test_a_short_h_is_help_everywhere(self, capsys: Capture) -> None:
        for command in ([], ["certify"], ["bench", "exact"]):
            assert main([*command, "-h"]) == 0
            short = capsys.readouterr().out
            assert main([*command, "--help"]) == 0
            assert short == capsys.readouterr().out != ""

    @pytest.mark.parametrize(
        ("words", "completed"), [("swapproof cert", "certify"), ("swapproof check --q", "--quiet")]
    )
    def test_the_shell_completes_commands_and_options(self, words: str, completed: str) -> None:
        script = str(Path(sys.executable).with_name("swapproof"))
        asked = {"_SWAPPROOF_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        run = subprocess.run([script], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
        assert run.stdout.split() == [completed]

    def test_the_completion_of_a_shell_is_shown(self, capsys: Capture, monkeypatch: Any) -> None:
        monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
        assert main(["--show-completion", "bash"]) == 0
        assert "_SWAPPROOF_COMPLETE=complete_bash" in capsys.readouterr().out

    def test_help_of_every_command_loads_nothing_heavy(self) -> None:
        code = (
            "import sys; from swapproof.verifier.cli import main\n"
            "for command in ('demo', 'certify', 'check', 'report', 'train', 'doctor'):\n"
            "    assert main([command, '--help']) == 0\n"
            "heavy = ('numpy', 'torch', 'onnx', 'onnxruntime', 'gurobipy', 'jinja2', 'rich')\n"
            "print(*(name for name in heavy if name in sys.modules), file=sys.stderr)"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stderr.split() == []

    def test_doctor_names_what_is_absent_and_what_it_costs(self, capsys: Capture, monkeypatch: Any) -> None:
        import importlib.metadata

        from swapproof.verifier.commands import doctor

        def without_torch(name: str) -> str | None:
            return None if name == "torch" else importlib.metadata.version("numpy")

        monkeypatch.setattr(doctor, "version", without_torch)
        assert main(["doctor"]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if " torch " in line]
        assert "absent" in line
        assert "no `swapproof train`" in line

    def test_an_interrupt_has_its_own_exit_code(self, monkeypatch: Any, capsys: Capture) -> None:
        from swapproof.verifier.commands import doctor

        def interrupted() -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(doctor, "doctor", interrupted)
        assert main(["doctor"]) == 130
        assert "interrupted" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "place", "said"),
        [
            ("certify task.toml --out run", "certify.certify", "a run can be resumed by the same command\n"),
            (
                "certify task.toml --out run --no-resume",
                "certify.certify",
                "a run can be resumed by the same command without --no-resume\n",
            ),
            ("measure task.toml --quantity pr --out run", "measure_pr.command", "can be resumed by the same command\n"),
            ("demo", "demo.demo", "can be resumed by the same command\n"),
            (
                "train recipe.toml --out folder",
                "train",
                "no folder was written; the same command goes on from what was kept",
            ),
            ("bench exact task.toml", "benches.bench_exact.bench_exact", "the same command measures everything again"),
            ("bench check run", "benches.bench_check.bench_check", "the same command measures everything again"),
            ("check run", "check_evidence.question_of", "the same command starts from the beginning"),
            ("verify q.vnnlib", "verify.command", "the same command starts from the beginning"),
        ],
    )
    def test_an_interrupt_says_what_that_command_leaves(
        self, arguments: str, place: str, said: str, monkeypatch: Any, capsys: Capture
    ) -> None:
        """Only runs of certify and measure go on where they were."""

        def interrupted(*arguments: Any, **options: Any) -> None:
            raise KeyboardInterrupt

        whole = "swapproof.models.training.train" if place == "train" else f"swapproof.verifier.commands.{place}"
        monkeypatch.setattr(whole, interrupted)
        assert main(arguments.split()) == 130
        assert said in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments",
        [
            "verify --batch missing",
            "train missing --out out",
            "certify missing --out out",
            "bundle --verify missing",
            "bundle RUN --out out --key missing",
            "bench check RUN",
            "report MEASURED",
        ],
    )
    def test_a_missing_file_is_said_in_one_way(
        self, arguments: str, run: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        """`no such file`, never a number of the operating system; a folder in its place is said to be one."""
        missing = tmp_path / "missing"
        if "RUN" in arguments and "bench" in arguments:
            missing = run / "results.jsonl"
            missing.unlink()
        if "MEASURED" in arguments:
            measured = tmp_path / "measured"
            task = run / "task.toml"
            measure = ["measure", str(task), "--quantity", "pr", "--radius", "1", "--limit", "1"]
            assert main([*measure, "--out", str(measured)]) == 0
            missing = measured / "summary.json"
            missing.unlink()
        places = {
            "missing": str(missing),
            "out": str(tmp_path / "out"),
            "RUN": str(run),
            "MEASURED": str(missing.parent),
        }
        command = [places.get(word, word) for word in arguments.split()]
        capsys.readouterr()
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert (
            "the run is not finished" in line if "MEASURED" in arguments else line.endswith(f"{missing}: no such file")
        )
        missing.mkdir()
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(f"{missing}: a directory, where a file is needed")

    @pytest.mark.parametrize("met", ["\n", "\t", "\x07", "\x85", "\u200b", "\u2028", "\u00a0", "\ufeff"])
    def test_a_character_that_does_not_show_is_named_by_its_escape(
        self, met: str, task: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        """In a word of the table, a key of the task, and the word of a frozen space."""
        escape = met.encode("unicode_escape").decode()
        certify = ["certify", str(task), "--out", str(tmp_path / "run")]
        (task.parent / "synonyms.json").write_text(json.dumps({f"good{met}film": 1}))
        assert main(certify) == 2
        (line,) = capsys.readouterr().err.split("\n")[:-1]
        assert f'the word "good{escape}film" has a number' in line
        text = task.read_text()
        task.write_text(f'{text}\n"a{escape}b" = 1\n'.replace(r"\xa0", met).replace(r"\x", r"\u00"))
        assert main(certify) == 2
        (line,) = capsys.readouterr().err.split("\n")[:-1]
        assert f"a{escape}b" in line
        assert met not in line
        task.write_text(
            text.replace('file = "synonyms.json"', 'frozen = "spaces.jsonl"').replace("max_per_word = 8", "")
        )
        (task.parent / "spaces.jsonl").write_text(json.dumps({"id": 0, "choices": [["a"], [f"go{met}od"], ["film"]]}))
        assert main(certify) == 2
        (line,) = capsys.readouterr().err.split("\n")[:-1]
        assert f'word 1 begins with "go{escape}od"' in line

    def test_a_path_that_cannot_be_is_one_line_without_a_number(self, capsys: Capture) -> None:
        assert main(["check", "x" * 300]) == 2
        assert capsys.readouterr().err == f"swapproof: {'x' * 300}: File name too long\n"

    @pytest.mark.parametrize("command", ["report", "check"])
    def test_output_that_finds_no_room_is_one_line(self, run: Path, command: str) -> None:
        code = "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"
        with Path("/dev/full").open("w") as full:
            arguments = [sys.executable, "-c", code, command, str(run)]
            done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.endswith("swapproof: No space left on device\n")

    def test_a_terminal_without_our_letters_shows_a_text_all_the_same(self, tmp_path: Path) -> None:
        task = write_task(tmp_path / "task", [("a good Köşe", "positive")])
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        code = "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"
        arguments = [sys.executable, "-c", code, "report", str(tmp_path / "run")]
        done = subprocess.run(
            arguments, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True
        )
        assert b"a good K\\xf6\\u015fe" in done.stdout

    def test_a_bug_is_not_dressed_as_bad_input(self, monkeypatch: Any, capsys: Capture) -> None:
        from swapproof.verifier.commands import doctor

        def broken() -> None:
            raise ValueError("a bug")

        monkeypatch.setattr(doctor, "doctor", broken)
        assert main(["doctor"]) == 70
        said = capsys.readouterr().err
        assert said.startswith("Traceback")
        assert said.endswith("ValueError: a bug\n")

    def test_demo_certifies_checks_and_shows_two_witnesses(self, tmp_path: Path, capsys: Capture) -> None:
        assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
        out = capsys.readouterr().out
        assert "accepted 24 of 24" in out
        assert out.count(", until these words are swapped:") == 2
        assert " → " in out
        assert out.splitlines()[-1] == f"The run folder: {tmp_path / 'demo'}, with report.html"
        assert (tmp_path / "demo" / "report.html").is_file()
