"""`paper`: plans are commands that there are, tables follow from the runs, and what is done is not done again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import pytest
import typer

from swapproof.encodings.errors import BadInput
from swapproof.verifier.cli import app, main
from swapproof.verifier.defending.cell_steps import Ended, Step
from swapproof.verifier.pages.sheets.plots import drawn_points
from swapproof.verifier.papers import mmws_paper, paper_estimate, pdp_paper, sp_paper
from swapproof.verifier.papers.paper_data import Dataset, datasets
from swapproof.verifier.papers.paper_page import latex_of
from swapproof.verifier.papers.paper_plan import Cell, Paper, Setting, Table, ends, json_in
from swapproof.verifier.papers.paper_runs import PaperOptions, work_through
from swapproof.verifier.papers.paper_table import PAPERS

SENTENCES = [("a good film", 1), ("a bad film", 0), ("good plot", 1), ("bad plot indeed", 0)]
SYNONYMS = {"good": ["fine", "bad"], "film": ["movie"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in ("sst2", "mr", "imdb", "ag_news", "snli", "synonyms"):
        (folder / name).mkdir()
    for name, text in (("train", "sentence"), ("dev", "content")):
        rows = SENTENCES * 10 if name == "train" else [(f"{said} , again", label) for said, label in SENTENCES]
        lines = [f"label\t{text}", *(f"{label}\t{said}" for said, label in rows)]
        (folder / "sst2" / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    lines = [f"{split}\t{label}\t{said}" for split in ("train", "test") for said, label in SENTENCES]
    (folder / "mr" / "mr_all.tsv").write_text("\n".join(["split\tlabel\tsentence", *lines]) + "\n")
    reviews = [json.dumps({"text": said, "label": label}) for said, label in SENTENCES * 10]
    (folder / "imdb" / "train.jsonl.gz").write_bytes(gzip.compress("\n".join(reviews).encode()))
    (folder / "ag_news" / "train.csv").write_text("".join(f'{label},"{said}"\n' for said, label in SENTENCES * 10))
    pairs = [f"{said}\t{said}\t{label}" for said, label in SENTENCES * 10]
    (folder / "snli" / "dev.tsv").write_text("\n".join(["premise\thypothesis\tlabel", *pairs]) + "\n")
    (folder / "synonyms" / "table.json").write_text(json.dumps(SYNONYMS))
    return folder


def setting_of(paper: Paper, data: Path, out: Path, size: str = "small") -> Setting:
    found, missing = datasets(paper.datasets, data, out / "data")
    assert missing == []
    return Setting(out, size, found, data / "synonyms" / "table.json", jobs=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", ["small", "full"])
@pytest.mark.parametrize("name", PAPERS)
def test_every_step_is_a_command_with_options_that_it_has(name: str, size: str, data: Path, tmp_path: Path) -> None:
    steps = list(PAPERS[name].steps(setting_of(PAPERS[name], data, tmp_path, size)))
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group) or hasattr(group, "commands")
    for step in steps:
        name, *arguments = step.arguments
        command = group.commands[name]
        if name == "bench":
            command = command.commands[arguments.pop(0)]
        command.make_context(name, list(arguments))
        assert any(argument == str(step.out) or argument.startswith(f"{step.out}/") for argument in arguments)
    assert len({step.out for step in steps}) == len(steps)


@pytest.mark.parametrize("name", PAPERS)
def test_tables_of_nothing_have_no_numbers(name: str, data: Path, tmp_path: Path) -> None:
    """Before any run: layouts, published numbers, and nothing of ours."""
    tables = list(PAPERS[name].tables(setting_of(PAPERS[name], data, tmp_path)))
    assert tables
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        missing = [cell for row in table.rows for cell in row if cell.ours == "-" or cell.ours.endswith(": -")]
        assert all(cell.run is not None for cell in missing)
        linked = [cell.ours for row in table.rows for cell in row if cell.run is not None]
        assert set(linked) <= {"-"} or all(one.endswith(": -") for one in linked)
    assert latex_of(PAPERS[name], tables).count("\\begin{tabular}") == sum(bool(table.rows) for table in tables)


@pytest.mark.parametrize("name", PAPERS)
def test_the_full_size_hands_the_cluster_on_and_says_beforehand_what_it_costs(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = replace(setting_of(PAPERS[name], data, tmp_path, "full"), cluster="auto", jobs=4)
    steps = list(PAPERS[name].steps(setting))
    for step in steps:
        together = step.arguments[0] in ("certify", "attack", "defend", "measure") and "kappa" not in step.arguments
        assert ("--cluster" in step.arguments) == together
    few = replace(setting_of(PAPERS[name], data, tmp_path / "small"), jobs=1)
    known = {step.out.name: 2.0 for step in PAPERS[name].steps(few)}
    measured = tmp_path / "measured.json"
    measured.write_text(json.dumps({name: known}))
    monkeypatch.setattr(paper_estimate, "MEASURED", measured)
    assert "of one processor" in paper_estimate.expected(PAPERS[name], setting, steps)
    assert paper_estimate.expected(PAPERS[name], few, list(PAPERS[name].steps(few))).startswith(
        f"about {paper_estimate.shown(2.0 * len(known))} of one processor"
    )
    measured.unlink()
    assert (
        paper_estimate.expected(PAPERS[name], setting, steps) == f"{len(steps)} of {len(steps)} commands are to be done"
    )


def in_process(arguments: Sequence[str]) -> Ended:
    return Ended(main(list(arguments)), "")


def one_network(setting: Setting) -> Iterator[Step]:
    network: dict[str, object] = {"architecture": "mean", "embedding": 4}
    recipe = setting.recipe("sst2", setting.data["sst2"], network, {"epochs": 20, "dropout": 0.0}, vocabulary=20)
    yield setting.step("model", "train", recipe)
    yield setting.step("certified", "certify", setting.runs / "model" / "task.toml")


def test_a_folder_that_was_moved_goes_on_with_any_number_of_jobs(data: Path, tmp_path: Path) -> None:
    """What is done is known by what was asked, not by where it lies or how many worked on it."""

    def leaving(arguments: Sequence[str]) -> Ended:
        if "--out" in arguments:
            Path(arguments[arguments.index("--out") + 1]).mkdir()
            asked.append(arguments[0])
        return Ended(0, "", 2.5)

    asked: list[str] = []
    paper = replace(TINY, tables=lambda setting: iter(()))
    work_through(paper, tmp_path / "out", PaperOptions(data=data), command=leaving)
    assert asked == ["train", "certify"]
    (tmp_path / "out").rename(tmp_path / "moved")
    made, _ = work_through(paper, tmp_path / "moved", PaperOptions(data=data, jobs=3), command=leaving)
    assert asked == ["train", "certify"]
    assert made.costs == {"model": 2.5, "certified": 2.5}
    assert str(tmp_path) not in (tmp_path / "moved" / "commands.sh").read_text()


def test_a_recipe_that_changed_is_refused(data: Path, tmp_path: Path) -> None:
    setting = setting_of(TINY, data, tmp_path)
    setting.write("one.toml", "one")
    setting.write("one.toml", "one")
    with pytest.raises(BadInput, match="says something else"):
        setting.write("one.toml", "two")


def one_table(setting: Setting) -> Iterator[Table]:
    run = setting.runs / "certified"
    mmws = ends((json_in(run / "summary.json") or {}).get("mmws"))
    cell = Cell(mmws, "1.99", run / "report.html")
    yield Table("Table 4", "MMWS", ("data", "MMWS"), ((Cell("SST-2 & <more>"), cell),), "A mean.")


TINY = Paper("tiny", "A tiny paper", ("sst2",), one_network, one_table)


def test_a_paper_is_worked_through_and_goes_on(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out, options = tmp_path / "out", PaperOptions(data=data)
    made, code = work_through(TINY, out, options, command=in_process)
    assert code == 0
    assert made.checked == {"runs/certified": 0}
    summary = json.loads((out / "runs" / "certified" / "summary.json").read_text())
    assert made.tables[0].rows[0][1].ours == ends(summary["mmws"])
    page = (out / "paper.html").read_text()
    assert 'href="runs/certified/report.html"' in page
    assert "SST-2 &amp; &lt;more&gt;" in page
    assert "(1.99)" in page
    assert "SST-2 \\& " in (out / "paper.tex").read_text()
    assert [line.split()[:2] for line in (out / "commands.sh").read_text().splitlines()[2:]] == [
        ["swapproof", "train"],
        ["swapproof", "certify"],
    ]
    before, asked = (out / "paper.json").read_bytes(), []

    def watched(arguments: Sequence[str]) -> Ended:
        asked.append(arguments[0])
        return in_process(arguments)

    again, _ = work_through(TINY, out, options, command=watched)
    assert asked == ["check"]
    assert again.tables == made.tables
    assert (out / "paper.json").read_bytes() == before
    with pytest.raises(BadInput, match="of size small, not full"):
        work_through(TINY, out, replace(options, size="full"), command=in_process)


def test_a_run_that_is_not_accepted_decides_the_exit_code(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out, options = tmp_path / "out", PaperOptions(data=data)
    work_through(TINY, out, options, command=in_process)
    results = out / "runs" / "certified" / "results.jsonl"
    results.write_text(results.read_text().replace('"low": 1', '"low": 2'))
    made, code = work_through(TINY, out, options, command=in_process)
    assert (code, made.checked) == (4, {"runs/certified": 4})


def test_a_step_that_fails_is_said_and_the_rest_goes_on(data: Path, tmp_path: Path) -> None:
    def failing(arguments: Sequence[str]) -> Ended:
        return Ended(2, "no room left")

    made, code = work_through(TINY, tmp_path / "out", PaperOptions(data=data), command=failing)
    assert code == 3
    assert [one for one in made.remarks if "no room left" in one] != []
    assert made.tables[0].rows[0][1].ours == "-"


def test_runs_that_say_little_are_named_and_every_run_is_checked(data: Path, tmp_path: Path) -> None:
    """One class whatever the text, by hand."""
    out = tmp_path / "out"
    summaries = {"certified": {"vacuous": ["one class whatever the text"]}, "kappa": {"quantity": "kappa"}}

    def left(setting: Setting) -> Iterator[Step]:
        for name in summaries:
            yield setting.step(name, "certify", "task.toml")

    def leaving(arguments: Sequence[str]) -> Ended:
        if arguments[0] == "certify":
            folder = Path(arguments[arguments.index("--out") + 1])
            folder.mkdir()
            (folder / "manifest.json").write_text("{}")
            (folder / "results.jsonl").write_text("")
            (folder / "summary.json").write_text(json.dumps(summaries[folder.name]))
        return Ended(0, "")

    made, code = work_through(replace(TINY, steps=left), out, PaperOptions(data=data), command=leaving)
    assert (code, made.checked) == (0, {"runs/certified": 0, "runs/kappa": 0})
    assert "runs/certified says little: one class whatever the text" in made.remarks
    assert "says little: one class whatever the text" in (out / "paper.html").read_text()


def test_data_that_is_not_there_is_left_out_and_said(data: Path, tmp_path: Path) -> None:
    (tmp_path / "some" / "sst2").mkdir(parents=True)
    for path in (data / "sst2").iterdir():
        (tmp_path / "some" / "sst2" / path.name).write_bytes(path.read_bytes())
    found, missing = datasets(("sst2", "ag"), tmp_path / "some", tmp_path / "data")
    assert list(found) == ["sst2"]
    assert missing == ["AG News is left out: give its folder with --data"]
    (tmp_path / "some" / "sst2" / "dev.tsv").write_text("label\twords\n1\tgood\n")
    with pytest.raises(BadInput, match="SST-2 are not as they are read here"):
        datasets(("sst2",), tmp_path / "some", tmp_path / "other")


def test_a_folder_of_something_else_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds other things"):
        work_through(TINY, tmp_path, PaperOptions(data=data), command=in_process)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_surplus_of_an_attack_is_over_proved_minima(tmp_path: Path) -> None:
    """By hand: broken with 3 where 2 is proved, with 2 where 2 is, one open, one that it missed."""
    folder = tmp_path / "runs" / "sst2" / "sst2" / "none" / "seed-0"
    lines: dict[str, list[tuple[int | None, int | None]]] = {
        "certify": [(2, 2), (2, 2), (1, 3), (1, 1)],
        "attack-textfooler": [(None, 3), (None, 2), (None, 3), (None, None)],
    }
    for run, intervals in lines.items():
        (folder / run).mkdir(parents=True)
        rows = [
            {"id": number, "status": "exact" if low == high else "open", "min_swaps": {"low": low, "high": high}}
            for number, (low, high) in enumerate(intervals)
        ]
        (folder / run / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = Dataset("sst2", "SST-2", ("0", "1"), 8, tmp_path, tmp_path, "here")
    setting = Setting(tmp_path, "small", {"sst2": dataset}, tmp_path)
    table = mmws_paper.surplus(setting)
    assert [cell.ours for cell in table.rows[0]] == ["SST-2", "2", "50.0", "0.50", "1"]


def test_a_win_is_no_tie() -> None:
    """By hand: a tie, a text with fewer, a text that only one attack broke."""
    found = {"pdp": {1: 2, 2: 1, 3: 5}, "textfooler": {1: 2, 2: 3}, "sempso": {1: 4}}
    assert pdp_paper.wins(found) == {"pdp": 2, "textfooler": 0, "sempso": 0}


def test_a_scatter_has_a_point_for_each_pair_and_says_what_it_is() -> None:
    drawing = drawn_points("swaps", [("SemPSO", [(1, 2), (3, 3)]), ("<b>", [(2, 2)])], "PDP", "others")
    assert drawing.count("<circle") == 3
    assert "<title>SemPSO: 1 and 2</title>" in drawing
    assert "<b>" not in drawing


def test_success_by_similarity_counts_the_texts_that_were_broken(tmp_path: Path) -> None:
    """By hand: two broken, one of them by a sentence above 0.8, one withstood, one wrong before."""
    folder = tmp_path / "runs" / "mr-similar-sp-attack"
    folder.mkdir(parents=True)
    found = [{"similarity": 0.85}, {"similarity": 0.75}, None]
    rows = [*({"status": "open", "witness": one} for one in found), {"status": "already_wrong", "witness": None}]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = Dataset("mr", "MR", ("0", "1"), 8, tmp_path, tmp_path, "here")
    table = sp_paper.similar(Setting(tmp_path, "small", {"mr": dataset}, tmp_path))
    assert [cell.ours for cell in table.rows[0]] == ["MR", "sp-attack", "66.7", "66.7", "33.3", "0.0"]
