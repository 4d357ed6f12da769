"""Searching for an effective defender: Aua by the constraints, defences, and the norm of FreeLB and PGD."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..defending.cell_steps import Step
from ..pages.sheets.plots import Series, drawn_lines
from ..pages.sheets.sheet import Figure
from ..runs.run_folder import write_atomically
from .paper_plan import Cell, Paper, Setting, Table, ends, figures, json_in, mean, percent

METHODS = {
    "none": "baseline",
    "ada:textfooler": "ADA",
    "mixada:textfooler": "MixADA",
    "pgd": "PGD-K",
    "freelb": "FreeLB",
    "ta-vat": "TA-VAT",
    "infobert": "InfoBERT",
    "dne": "DNE",
    "ascc": "ASCC",
    "substitute": "SAFER",
    "mask": "RanMASK",
    "freelb++": "FreeLB++",
}
SMALL = ("none", "ada:textfooler", "pgd", "freelb", "ascc", "freelb++")
FULL_ATTACKS = ("textfooler", "textbugger-words", "pwws")
SMALL_ATTACKS = ("textfooler", "textbugger-words")
PUBLISHED = {  # BERT: Clean, then Aua, Suc and #Query of TextFooler and TextBugger
    "ag": {
        "infobert": ("95.1", "31.8", "66.5", "369.9", "36.3", "61.8", "391.6"),
        "dne": ("93.9", "28.7", "69.8", "367.9", "28.2", "70.3", "377.6"),
        "ascc": ("92.3", "28.2", "69.6", "326.5", "37.0", "60.1", "307.4"),
        "substitute": ("94.3", "31.8", "66.1", "350.1", "41.2", "56.1", "398.8"),
        "mask": ("91.7", "37.9", "58.7", "583.4", "45.0", "50.9", "626.8"),
        "freelb++": ("95.1", "51.5", "46.0", "419.1", "55.9", "41.4", "416.9"),
    },
    "imdb": {
        "none": ("92.1", "10.3", "88.8", "488.2", "5.3", "94.3", "438.5"),
        "ada:textfooler": ("91.9", "19.0", "79.5", "837.1", "16.1", "82.6", "910.7"),
        "mixada:textfooler": ("91.9", "19.0", "79.6", "523.0", "11.5", "87.6", "518.7"),
        "pgd": ("93.2", "26.0", "72.3", "577.5", "18.9", "79.9", "624.9"),
        "freelb": ("93.0", "29.4", "68.3", "605.0", "22.9", "75.3", "586.8"),
        "ta-vat": ("93.0", "28.2", "69.7", "606.2", "22.8", "75.5", "681.0"),
        "infobert": ("92.0", "19.2", "79.2", "541.8", "12.7", "86.3", "491.1"),
        "dne": ("90.4", "28.0", "68.2", "1222.5", "26.5", "69.5", "1488.0"),
        "ascc": ("87.8", "19.4", "77.8", "646.1", "14.1", "83.9", "542.5"),
        "substitute": ("91.5", "39.5", "57.8", "1701.7", "40.0", "57.5", "2372.2"),
        "mask": ("92.3", "22.0", "74.6", "1493.4", "18.0", "79.2", "1794.9"),
        "freelb++": ("93.2", "45.3", "51.0", "1025.9", "42.9", "53.6", "1094.0"),
    },
}
NORMS = {"0.01": ("94.9", "21.8", "95.4", "30.5"), "0.1": ("95.3", "43.6", "95.5", "36.1"),
         "1": ("95.2", "45.2", "94.9", "45.8"), "0": ("95.2", "45.2", "94.9", "45.8")}  # fmt: skip
"""Table 4: Clean and Aua (TextFooler) of PGD-K and FreeLB; 0 is no projection."""
RHO_MAX = {"ag": "0.3", "imdb": "0.1"}
CANDIDATES = (1, 2, 4, 8)
SHARES = ("0.05", "0.1", "0.2", "0.3")
FIGURE_ATTACKS = ("textfooler", "pwws", "textbugger-words", "greedy", "genetic")
STEPS = (2, 5, 10, 30)


def methods(setting: Setting) -> tuple[str, ...]:
    return SMALL if setting.size == "small" else tuple(METHODS)


def attacks(setting: Setting) -> tuple[str, ...]:
    return SMALL_ATTACKS if setting.size == "small" else FULL_ATTACKS


def keys(setting: Setting, name: str, text: str) -> Path:
    """A file for `defend --keys`."""
    path = setting.folder / "recipes" / f"{name}.keys.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    return path


def steps(setting: Setting) -> Iterator[Step]:
    limit = ("--limit", setting.pick(40, 1000))
    for name, data in setting.data.items():
        network: dict[str, object] = {"architecture": "cnn", "embedding": 16, "filters": 32, "width": 3}
        training: dict[str, object] = {"epochs": setting.pick(2, 6), "dropout": 0.1, "word_dropout": 0.1}
        recipe = setting.recipe(name, data, network, training)
        plain = ("--training-texts", setting.pick(200, 2000), "--seconds", setting.pick(1, 10), *limit)
        few = keys(setting, "steps", "[pgd]\nsteps = 3\n[freelb]\nsteps = 3\n['freelb++']\nsteps = 3\n")
        small: tuple[object, ...] = ("--keys", few) if setting.size == "small" else ()
        asked: tuple[object, ...] = ("--methods", ",".join(methods(setting)), "--attacks", ",".join(attacks(setting)))
        yield setting.step(name, "defend", recipe, *asked, *plain, *small)
        if name == "ag" or len(setting.data) == 1:
            for norm in NORMS:
                values = f"[pgd]\nnorm = {norm}\nsteps = 3\n[freelb]\nnorm = {norm}\nsteps = 3\n"
                bound: tuple[object, ...] = ("--keys", keys(setting, f"norm-{norm}", values))
                asked = ("--methods", "pgd,freelb", "--attacks", "textfooler", *bound)
                yield setting.step(f"{name}-norm-{norm}", "defend", recipe, *asked, *plain)
            for number in STEPS if setting.size == "full" else STEPS[:2]:
                bound = ("--keys", keys(setting, f"steps-{number}", f"['freelb++']\nsteps = {number}\n"))
                asked = ("--methods", "freelb++", "--attacks", "textfooler", *bound)
                yield setting.step(f"{name}-steps-{number}", "defend", recipe, *asked, *plain)
        task = setting.runs / name / name / "none" / "seed-0" / "model" / "task.toml"
        for attack in FIGURE_ATTACKS[: setting.pick(3, 5)]:
            for most in CANDIDATES:
                said: tuple[object, ...] = ("--method", attack, "--k-max", most, "--rho-max", RHO_MAX[name])
                yield setting.step(f"{name}-{attack}-k-{most}", "attack", task, *said, *limit)
            for bound_share in SHARES:
                said = ("--method", attack, "--rho-max", bound_share)
                yield setting.step(f"{name}-{attack}-rho-{bound_share}", "attack", task, *said, *limit)


def tables(setting: Setting) -> Iterator[Table]:
    yield from constraints(setting)
    for number, (name, data) in enumerate(setting.data.items()):
        yield defended(setting, name, data.title, f"Table {2 + number}")
    yield from norms(setting)


def aua(run: Path) -> float | None:
    summary = json_in(run / "summary.json")
    return None if summary is None else float(summary["aua"]["share"])


def constraints(setting: Setting) -> Iterator[Table]:
    for name, data in setting.data.items():
        rows, drawings = [], []
        for option, values, words in (("k", CANDIDATES, "candidates a word"), ("rho", SHARES, "share of words")):
            series = []
            for attack in FIGURE_ATTACKS[: setting.pick(3, 5)]:
                found = [(value, aua(setting.runs / f"{name}-{attack}-{option}-{value}")) for value in values]
                rows.append((
                    Cell(f"{attack}, by {words}"),
                    *(
                        Cell(f"{value}: {percent(one)}", "",
                             setting.runs / f"{name}-{attack}-{option}-{value}" / "report.html")
                        for value, one in found
                    ),
                ))  # fmt: skip
                points = tuple((float(value), one, one) for value, one in found if one is not None)
                series.append(Series(attack, points))
            if any(one.points for one in series):
                lines = tuple((f"line engine-{number}", one.name) for number, one in enumerate(series))
                drawing = drawn_lines(f"{data.title}: Aua by {words}", series, words)
                drawings.append(Figure(f"{data.title}: Aua by {words}", drawing, "Accuracy under attack.", lines))
        yield Table(
            "Figure 1",
            f"{data.title}: accuracy under attack by the constraints, undefended",
            ("attack", *("",) * len(CANDIDATES)),
            tuple(rows),
            "value: Aua %, of all texts. By candidates: at the paper's share of words; by share of words: all "
            "candidates of the table. Shares are rounded down. Similarity is the synonym table's affair.",
            figures=tuple(drawings),
        )


def defended(setting: Setting, name: str, title: str, number: str) -> Table:
    rows = []
    for method in methods(setting):
        found, page = figures(setting, name, method)
        told = PUBLISHED.get(name, {}).get(method, ("",) * 7)
        cells = [Cell(METHODS[method]), Cell(percent(mean(found, "Clean")), told[0], page)]
        for place, attack in enumerate(attacks(setting)):
            printed = told[1 + 3 * place : 4 + 3 * place] if place < 2 else ("", "", "")
            query = mean(found, f"{attack} #Query")
            cells += [
                Cell(percent(mean(found, f"{attack} Aua")), printed[0]),
                Cell(percent(mean(found, f"{attack} Suc")), printed[1]),
                Cell("-" if query is None else f"{query:.1f}", printed[2]),
            ]
        run = setting.runs / name / name / method.replace(":", "-") / "seed-0" / "certify" / "report.html"
        cells += [Cell(percent(mean(found, f"certified@{radius}")), "", run) for radius in (1, 2)]
        cells.append(Cell(ends({"low": mean(found, "MMWS low"), "high": mean(found, "MMWS high")}), "", run))
        rows.append(tuple(cells))
    columns = [column for attack in attacks(setting) for column in (f"{attack} Aua %", "Suc %", "#Query")]
    return Table(
        number,
        f"{title}: defences",
        ("method", "Clean %", *columns, "certified@1 %", "certified@2 %", "MMWS"),
        tuple(rows),
        "Aua: still right under the attack, of all texts; Suc: broken, of those attacked; #Query: sentences asked "
        "about, before any cache. certified@r: proved, of all texts. Published: BERT, TextBugger with typos.",
    )


def norms(setting: Setting) -> Iterator[Table]:
    name = "ag" if "ag" in setting.data else next(iter(setting.data), "")
    if not name:
        return
    rows: list[tuple[Cell, ...]] = []
    for norm, told in NORMS.items():
        for place, (method, title) in enumerate((("pgd", "PGD-K"), ("freelb", "FreeLB"))):
            found, page = figures(setting, f"{name}-norm-{norm}", method)
            rows.append((
                Cell(title), Cell("w/o" if norm == "0" else norm),
                Cell(percent(mean(found, "Clean")), told[2 * place], page),
                Cell(percent(mean(found, "textfooler Aua")), told[2 * place + 1], page),
                Cell(percent(mean(found, "certified@1")), "", page),
            ))  # fmt: skip
    yield Table(
        "Table 4",
        f"{setting.data[name].title}: the norm of a perturbation",
        ("method", "norm", "Clean %", "TextFooler Aua %", "certified@1 %"),
        tuple(rows),
        "w/o: no projection. Three steps of ascent here; the paper's number of them is in its table 4.",
    )
    rows = []
    for number in STEPS if setting.size == "full" else STEPS[:2]:
        found, page = figures(setting, f"{name}-steps-{number}", "freelb++")
        rows.append((Cell(str(number)), Cell(percent(mean(found, "Clean")), "", page),
                     Cell(percent(mean(found, "textfooler Aua")), "", page),
                     Cell(percent(mean(found, "certified@1")), "", page)))  # fmt: skip
    columns = ("steps", "Clean %", "TextFooler Aua %", "certified@1 %")
    yield Table("Figure 2", "FreeLB++ by its steps of ascent", columns, tuple(rows), "One seed.")


PAPER = Paper(
    "defender",
    "Searching for an effective defender",
    ("ag", "imdb"),
    steps,
    tables,
    (
        "BERT-Attack needs a masked language model from a folder (`swapproof attack --language-model`).",
        "Published numbers are of BERT; ours of a convolutional network trained here, which can be certified.",
        "At --size small: fewer defences, three steps of ascent, one seed.",
    ),
)
