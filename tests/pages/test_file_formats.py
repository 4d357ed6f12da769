"""What a run found in the formats of other programs: read back by other readers, it says the same."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from report_rows import facts, made_lines
from tiny import write_task

from swapproof.verifier.cli import main
from swapproof.verifier.pages.formats.code_findings import as_sarif
from swapproof.verifier.pages.formats.file_formats import COLUMNS, FORMATS
from swapproof.verifier.pages.formats.parquet_rows import as_parquet
from swapproof.verifier.pages.page import chosen_radii
from swapproof.verifier.runs.run_summary import summary_from

Capture = pytest.CaptureFixture[str]
TEXTS = 60


def made(radius: int | None = None, **changes: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A summary and its lines, of which these keys are others."""
    lines = [line | changes for line in made_lines(TEXTS, seed=5)[0]]
    return summary_from(lines, facts(TEXTS) | ({} if radius is None else {"radius": str(radius)})), lines


def junit(summary: dict[str, Any], lines: list[dict[str, Any]]) -> ElementTree.Element:
    return ElementTree.fromstring("".join(FORMATS["junit"](summary, lines)).encode())


def verdicts(suite: ElementTree.Element, group: str) -> list[str]:
    found = [one for one in suite.iter("testcase") if one.get("classname") == group]
    return [next((child.tag for child in one if child.tag != "system-out"), "passed") for one in found]


class TestJunit:
    def test_every_text_passes_fails_or_is_open_as_the_required_radius_says(self) -> None:
        summary, lines = made(radius=2)
        suite = junit(summary, lines)
        expected = []
        for line in lines:
            low, high = line["min_swaps"]["low"], line["min_swaps"]["high"]
            match line["status"]:
                case "already_wrong":
                    expected.append("skipped")
                case "unbreakable":
                    expected.append("passed")
                case _ if high is not None and high <= 2:
                    expected.append("failure")
                case status:
                    expected.append("passed" if status != "ambiguous" and low > 2 else "error")
        assert verdicts(suite, "texts") == expected
        assert {"passed", "failure", "skipped"} <= set(expected)
        assert summary["verdict"]["exit_code"] == 1
        assert verdicts(suite, "run") == verdicts(suite, "required") == ["failure"]
        for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[attribute]) == len(suite.findall(f"testcase/{kind}"))
        assert int(suite.attrib["tests"]) == TEXTS + 2

    def test_without_a_requirement_all_that_checked_passes(self) -> None:
        suite = junit(*made())
        assert set(verdicts(suite, "texts")) == set(verdicts(suite, "run")) == {"passed"}

    def test_what_did_not_check_is_an_error(self) -> None:
        suite = junit(*made(contradiction="a proof is refused"))
        assert set(verdicts(suite, "texts")) == set(verdicts(suite, "run")) == {"error"}

    def test_a_run_that_says_little_does_not_pass(self) -> None:
        summary, lines = made(radius=1, candidates=0)
        assert verdicts(junit(summary, lines), "run") == ["error"]

    def test_characters_that_xml_cannot_write_are_replaced(self) -> None:
        summary, lines = made(text="a\x00b\x1b[31m <b> & ]]> \ufffe \N{CLAPPER BOARD}")
        names = {one.get("name") for one in junit(summary, lines).iter("testcase")}
        assert "text 0: a\ufffdb\ufffd[31m <b> & ]]> \ufffd \N{CLAPPER BOARD}" in names


class TestCsv:
    def test_every_text_is_one_row_whatever_it_says(self) -> None:
        text = 'commas, "quotes"\nand\r\nlines; =1+1'
        summary, lines = made(text=text)
        rows = list(csv.DictReader(io.StringIO("".join(FORMATS["csv"](summary, lines)), newline="")))
        assert [int(row["id"]) for row in rows] == list(range(TEXTS))
        assert {row["text"] for row in rows} == {text}
        assert list(rows[0]) == list(COLUMNS)
        for row, line in zip(rows, lines, strict=True):
            assert (row["low"], row["high"]) == tuple(
                "" if end is None else str(end) for end in line["min_swaps"].values()
            )
            assert row["label"] == summary["labels"][line["label"]]


class TestTables:
    def test_the_table_has_as_many_cells_as_columns_and_nothing_unescaped(self) -> None:
        summary, lines = made()
        summary["model"] = {"file": "a_model & 50 % #1 {x} \\ ~ ^ $.onnx"}
        text = "".join(FORMATS["latex"](summary, lines))
        columns = re.search(r"begin\{tabular\}\{([lr]+)\}", text)
        assert columns is not None
        head, row = (line for line in text.splitlines() if line.endswith(r"\\"))
        cells = re.split(r"(?<!\\)&", row.removesuffix(r"\\"))
        assert len(cells) == len(head.split("&")) == len(columns[1])
        assert cells[0].strip() == (
            r"a\_model \& 50 \% \#1 \{x\} \textbackslash{} \textasciitilde{} \textasciicircum{} \$.onnx"
        )

    def test_the_card_has_metadata_that_yaml_readers_read(self) -> None:
        yaml = pytest.importorskip("yaml")
        summary, lines = made()
        summary["model"] = {"file": 'a "model": #1.onnx'}
        _, head, body = "".join(FORMATS["card"](summary, lines)).split("---\n", 2)
        (model,) = yaml.safe_load(head)["model-index"]
        assert model["name"] == 'a "model": #1.onnx'
        metrics = model["results"][0]["metrics"]
        assert metrics[0] == {"type": "accuracy", "value": summary["accuracy"]}
        assert [metric["value"] for metric in metrics[1:]] == [low for _, low, _ in chosen_radii(summary)]
        assert body.index("keep the right answer under any 2 swaps") < body.index("| swaps |")

    def test_what_is_evaluated_is_not_called_proved(self) -> None:
        summary, lines = made(level="replay")
        for name in ("latex", "card"):
            text = "".join(FORMATS[name](summary, lines))
            assert "evaluated in full, not proved" in text
            assert "proved, float32" not in text

    def test_a_run_that_says_little_claims_nothing_in_its_card(self) -> None:
        text = "".join(FORMATS["card"](*made(candidates=0)))
        assert "certified_accuracy" not in text.split("---\n", 2)[1]
        assert "there is nothing to swap in any text" in text


def test_the_command_writes_them_beside_the_page(tmp_path: Path, capsys: Capture) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run), "--radius", "2"]) == 1
    asked = [part for name in FORMATS for part in (f"--{name}", str(tmp_path / f"out.{name}"))]
    assert main(["report", str(run), *asked]) == 1
    suite = ElementTree.parse(tmp_path / "out.junit").getroot()
    assert int(suite.attrib["tests"]) == 10
    lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == [line["text"] for line in lines]
    assert (tmp_path / "out.latex").read_text().count("\\\\\n") == 2
    assert (tmp_path / "out.card").read_text().startswith("---\nmodel-index:")
    assert main(["check", str(run)]) == 0


def test_only_earlier_exports_are_written_over(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("pyarrow")
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run)]) == 0
    names = [*FORMATS, "sarif", "parquet"]
    files = {name: tmp_path / f"out.{name}" for name in names}
    asked = [part for name in names for part in (f"--{name}", str(files[name]))]
    assert main(["report", str(run), *asked]) == main(["report", str(run), *asked]) == 0

    def refused(*options: str) -> str:
        capsys.readouterr()
        assert main(["report", str(run), *options]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    kept = {path: path.read_bytes() for path in (task, *files.values(), *run.glob("*.*")) if path.is_file()}
    for name in names:
        other = files["csv" if name != "csv" else "junit"]
        assert "this command did not write it" in refused(f"--{name}", str(task))
        assert "this command did not write it" in refused(f"--{name}", str(other))
        for inside in ("results.jsonl", "store.sqlite", "new.txt"):
            assert "lies in the folder of the run" in refused(f"--{name}", str(run / inside))
    assert "named by --csv and --card" in refused("--csv", str(tmp_path / "new"), "--card", str(tmp_path / "new"))
    assert "did not write it" in refused("--junit", str(tmp_path / "new"), "--csv", str(task))
    assert {path: path.read_bytes() for path in kept} == kept
    assert not (tmp_path / "new").exists()


def test_measurements_have_none_of_them(tmp_path: Path, capsys: Capture) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    assert main(["measure", str(task), "--quantity", "pr", "--radius", "1", "--out", str(run)]) == 0
    capsys.readouterr()
    assert main(["report", str(run), "--csv", str(tmp_path / "out.csv")]) == 2
    assert capsys.readouterr().err == f"swapproof: {run}: --csv can be had of runs of `certify` only\n"
    assert not (tmp_path / "out.csv").exists()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    task, run = write_task(tmp_path / "task"), tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run)]) == 0
    capsys.readouterr()
    assert main(["report", str(run), "--csv", str(tmp_path / "none" / "out.csv")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


class TestSarif:
    def test_every_broken_text_is_a_finding_at_its_line(self) -> None:
        summary, lines = made(radius=2)
        found = json.loads("".join(as_sarif(summary, lines)))
        assert found["version"] == "2.1.0"
        (run,) = found["runs"]
        rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
        assert {one["ruleId"] for one in run["results"]} == {"requirement-violated", "text-broken"} <= rules
        broken = [
            line["id"] for line in lines if line["status"] != "already_wrong" and (line["min_swaps"]["high"] or 99) <= 2
        ]
        texts = [one for one in run["results"] if one["ruleId"] == "text-broken"]
        places = [one["locations"][0]["physicalLocation"] for one in texts]
        assert [place["region"]["startLine"] - 1 for place in places] == broken
        assert {place["artifactLocation"]["uri"] for place in places} == {"texts.jsonl"}
        assert {one["level"] for one in texts} == {"error"}
        assert all(one["message"]["text"] for one in run["results"])

    def test_what_nobody_required_is_no_error(self) -> None:
        found = json.loads("".join(as_sarif(*made())))
        assert {one["level"] for one in found["runs"][0]["results"]} == {"note"}


def test_parquet_holds_the_columns_of_the_csv() -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    summary, lines = made()
    rows = pyarrow.read_table(io.BytesIO(as_parquet(summary, lines))).to_pylist()
    assert [row["id"] for row in rows] == [line["id"] for line in lines]
    assert [row["high"] for row in rows] == [line["min_swaps"]["high"] for line in lines]
    assert list(rows[0]) == list(COLUMNS)


def test_the_command_writes_sarif_and_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    run = tmp_path / "run"
    assert main(["certify", str(write_task(tmp_path / "task")), "--out", str(run), "--radius", "1"]) == 1
    files = [f"--{name}={tmp_path / name}" for name in ("sarif", "parquet")]
    assert main(["report", str(run), *files]) == 1
    assert json.loads((tmp_path / "sarif").read_text())["runs"][0]["results"]
    assert (tmp_path / "parquet").read_bytes()[:4] == b"PAR1"
