"""Minimum synonym swaps by integer programming: how far an attack overshoots, AUA and MMWS, with exact values.

The published network: 200 words, embedding 2, 64 ReLU. Published values are means over the texts that can be broken.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from ..defending.cell_steps import Step
from ..pages.sheets.plots import drawn_bars, drawn_lengths
from ..pages.sheets.sheet import Figure
from .paper_plan import (
    Cell,
    Paper,
    Setting,
    Table,
    ends,
    figures,
    json_in,
    lines_in,
    mean,
    percent,
    report,
    row,
    rows_in,
)

METHODS = {"none": "baseline", "ada:textfooler": "TextFooler", "ada:exact": "minimal examples"}
ACCURACY = {
    "sst2": {"none": ("0.838", "0.280"), "ada:textfooler": ("0.820", "0.478"), "ada:exact": ("0.820", "0.516")},
    "imdb": {"none": ("0.819", "0"), "ada:textfooler": ("0.815", "0"), "ada:exact": ("0.807", "0")},
}
"""Table 3: accuracy, and accuracy under attack, the same by TextFooler and by the integer program."""
MMWS = {
    "sst2": {"none": "1.99", "ada:textfooler": "2.31", "ada:exact": "2.49"},
    "imdb": {"none": "4.81", "ada:textfooler": "5.86", "ada:exact": "7.28"},
}
"""Table 4."""
TABLE_1 = {"sst2": ("67 K", "870", "9"), "imdb": ("25 K", "25 K", "159")}
"""Training texts, test texts, mean number of words."""
TEXTS = {"sst2": (100, 500), "imdb": (20, 1000)}
SHOWN, MOST_SHOWN, LONGEST = 12, 6, 8
"""Texts of a figure of times, swaps of an example, numbers of swaps with a column."""
EXAMPLES = {"sst2": 300, "imdb": 60}
"""Training texts that are attacked at --size small."""
TIMED = (15, 500)
"""Texts on which our engine and Gurobi are timed."""
EPOCHS = {"sst2": 4, "imdb": 6}
SHIFT = {"sst2": 40, "imdb": 0}


def steps(setting: Setting) -> Iterator[Step]:
    for name, data in setting.data.items():
        training: dict[str, object] = {"epochs": EPOCHS[name], "dropout": 0.2, "word_dropout": 0.2}
        training |= {"shift": SHIFT[name], "batch": setting.pick(32, 128)}
        network: dict[str, object] = {"architecture": "mmws", "embedding": 2, "hidden": (64,)}
        recipe = setting.recipe(name, replace(data, length=200), network, training)
        asked = ("--methods", ",".join(METHODS), "--seeds", setting.pick("0", "0,1,2"), "--attacks", "textfooler")
        limits = ("--limit", setting.pick(*TEXTS[name]), "--seconds", setting.pick(2, 60))
        examples = ("--training-texts", setting.pick(EXAMPLES[name], 2000))
        yield setting.step(name, "defend", recipe, *asked, *limits, *examples)
        task = cell(setting, name, "none") / "model" / "task.toml"
        timed = ("--engines", ",".join(engines()), "--limit", setting.pick(*TIMED), "--seconds", setting.pick(3, 60))
        yield setting.bench(f"{name}-times", "exact", task, *timed)


def engines() -> tuple[str, ...]:
    """Ours, and Gurobi with the paper's own program, if it is installed; else HiGHS or SCIP."""
    for solver, module in (("gurobi", "gurobipy"), ("highs", "highspy"), ("scip", "pyscipopt")):
        if importlib.util.find_spec(module) is not None:
            return ("exact", solver)
    return ("exact",)


def cell(setting: Setting, data: str, method: str, seed: int = 0) -> Path:
    return setting.runs / data / data / method.replace(":", "-") / f"seed-{seed}"


def unbreakable(run: Path) -> tuple[float, float] | None:
    """Share of the texts that stay right whatever is swapped: low as proved, high as not known to be broken."""
    lines = lines_in(run)
    if not lines:
        return None
    proved = sum(line["status"] == "unbreakable" for line in lines)
    broken = sum(line["min_swaps"]["high"] is not None for line in lines)
    return proved / len(lines), 1 - broken / len(lines)


def tables(setting: Setting) -> Iterator[Table]:
    names = list(setting.data)
    yield data_sets(setting)
    yield surplus(setting)
    yield times(setting)
    yield examples(setting)
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        for method, title in METHODS.items():
            found, page = figures(setting, name, method)
            clean, attacked = ACCURACY[name][method]
            exact = unbreakable(cell(setting, name, method) / "certify")
            ends_of = None if exact is None else dict(zip(("low", "high"), exact, strict=True))
            folder, told = cell(setting, name, method), percent(float(attacked))
            rows.append(row(
                (setting.data[name].title, title), page, (percent(mean(found, "Clean")), percent(float(clean))),
                Cell(percent(mean(found, "textfooler Aua")), told, report(folder / "attack-textfooler")),
                Cell(ends(ends_of, 1, 100.0), told, report(folder / "certify")),
            ))  # fmt: skip
    yield Table(
        "Table 3",
        "Accuracy under attack, with no limit on the number of swaps",
        ("data", "trained on", "accuracy %", "AUA by TextFooler %", "AUA exact %"),
        tuple(rows),
        "AUA: texts still answered rightly, of all texts. Exact: texts that no sentence of swaps breaks, proved; where "
        "some are open an interval. Accuracy: of the texts asked about too. Means over seeds, the exact column of "
        "seed 0.",
        ("Texts that the model already answers wrongly count against AUA, as texts that are broken do.",),
    )
    yield minimum_swaps(setting)
    yield histograms(setting)


def minimum_swaps(setting: Setting) -> Table:
    rows = []
    for name, data in setting.data.items():
        for method, title in METHODS.items():
            found, page = figures(setting, name, method)
            summary = json_in(cell(setting, name, method) / "certify" / "summary.json") or {}
            certified = report(cell(setting, name, method) / "certify")
            counts = [str(summary.get(key, "-")) for key in ("already_wrong", "exact", "unbreakable", "open")]
            rows.append(row((data.title, title), page, (mmws(found), MMWS[name][method]),
                            *(Cell(one, "", certified) for one in counts)))  # fmt: skip
    return Table(
        "Table 4",
        "MMWS",
        ("data", "trained on", "MMWS", "already wrong", "exact", "unbreakable", "open"),
        tuple(rows),
        "Mean of the least number of swaps over texts that can be broken; [low, high] where texts are open. Means over "
        "seeds; numbers of texts of seed 0. Every value has its certificate, which `swapproof check` accepted.",
        ("The paper does not say what it does with texts that nothing breaks, nor with those unfinished: here they are "
         "counted apart, and open ones widen the interval.",
         "A strict inequality needs a tolerance in a solver; here rounding never decides: exact arithmetic does."),
    )  # fmt: skip


def mmws(found: Mapping[str, Any]) -> str:
    return ends({"low": mean(found, "MMWS low"), "high": mean(found, "MMWS high")})


def data_sets(setting: Setting) -> Table:
    rows = []
    for name, data in setting.data.items():
        page = cell(setting, name, "none") / "model" / "training.json"
        number = (json_in(page) or {}).get("rows", {})
        lengths = [len(str(one["text"]).split()) for one in rows_in(data.test)]
        words = f"{sum(lengths) / len(lengths):.0f}" if lengths else "-"
        train, test, mean_words = TABLE_1[name]
        told = ((str(number.get(part, "-")), said) for part, said in (("train", train), ("held_out", test)))
        rows.append(row((data.title,), page, *told, Cell(words, mean_words)))
    columns = ("data", "train", "test", "mean number of words")
    return Table("Table 1", "Data", columns, tuple(rows), "Words of the held-out texts, parted by white space.")


def surplus(setting: Setting) -> Table:
    """Figure 1, left, of the baselines."""
    rows, drawings = [], []
    for name, data in setting.data.items():
        base = cell(setting, name, "none")
        exact = minima(base)
        more = Counter(found - exact[text] for text, found in taken(base).items() if text in exact)
        if not more:
            continue
        number = sum(more.values())
        overshoot = sum(surplus * count for surplus, count in more.items()) / number
        attack = report(base / "attack-textfooler")
        rows.append(
            row(
                (data.title,),
                report(base / "certify"),
                f"{number}",
                *(Cell(one, "", attack) for one in (percent(more[0] / number), f"{overshoot:.2f}", f"{max(more)}")),
            )
        )
        bars = [(str(surplus), more[surplus]) for surplus in range(max(more) + 1)]
        drawings.append(
            Figure(f"{data.title}: TextFooler's surplus", drawn_bars(f"{data.title}: surplus", bars, "swaps too many"),
                   "Texts by how many more swaps TextFooler took than the proved minimum.")
        )  # fmt: skip
    return Table(
        "Figure 1, left",
        "TextFooler beside the exact minimum, baseline networks",
        ("data", "texts both broke", "at the minimum %", "mean surplus", "greatest"),
        tuple(rows),
        "Texts that TextFooler broke and whose minimum is proved. Seed 0.",
        figures=tuple(drawings),
    )


def minima(folder: Path) -> dict[int, int]:
    """Proved ones, of texts that can be broken."""
    return {
        line["id"]: int(line["min_swaps"]["high"]) for line in lines_in(folder / "certify") if line["status"] == "exact"
    }


def taken(folder: Path) -> dict[int, int]:
    """Swaps of TextFooler, of texts that it broke."""
    lines = lines_in(folder / "attack-textfooler")
    return {line["id"]: int(line["min_swaps"]["high"]) for line in lines if line["min_swaps"]["high"]}


def times(setting: Setting) -> Table:
    """Figure 1, right."""
    rows, drawings = [], []
    for name, data in setting.data.items():
        run = setting.runs / f"{name}-times"
        answers = [one for one in rows_in(run / "answers.jsonl") if "cpu_seconds" in one]
        for engine in dict.fromkeys(one["engine"] for one in answers):
            own = [one for one in answers if one["engine"] == engine]
            seconds = sorted(one["seconds"] for one in own)
            solved = sum(one["status"] in ("exact", "unbreakable") for one in own)
            rows.append(row((data.title, engine), report(run), f"{solved} of {len(own)}", f"{median(seconds):.3f}",
                            f"{seconds[-1]:.3f}"))  # fmt: skip
            bars = [(f"text {one['id']}", float(one["seconds"])) for one in own][:SHOWN]
            drawings.append(Figure(f"{data.title}: {engine}", drawn_lengths(f"{data.title}: {engine}", bars, "s"),
                                   "Seconds of the first texts."))  # fmt: skip
    return Table(
        "Figure 1, right",
        "Times, ours beside a solver's on the paper's own program",
        ("data", "engine", "solved", "median s", "greatest s"),
        tuple(rows),
        "Seconds of the clock, one thread. exact: all of ours, without the check of certificates; of the solver its "
        "optimisation alone, whose lower end is its claim. By `swapproof bench exact`.",
        figures=tuple(drawings),
    )


def examples(setting: Setting) -> Table:
    """Table 2: texts on which TextFooler took more than the minimum first."""
    rows = []
    for name, data in setting.data.items():
        base = cell(setting, name, "none")
        attacked = {line["id"]: line for line in lines_in(base / "attack-textfooler") if line["witness"]}
        both = [(line, attacked[line["id"]]) for line in lines_in(base / "certify")
                if line["status"] == "exact" and line["id"] in attacked]  # fmt: skip
        both.sort(key=lambda pair: pair[0]["min_swaps"]["high"] - pair[1]["min_swaps"]["high"])
        for least, other in both[:2]:
            for title, line, run in (("TextFooler", other, "attack-textfooler"), ("ours", least, "certify")):
                rows.append(row((data.title, str(least["id"]), title), report(base / run),
                                str(line["min_swaps"]["high"]), swapped(line)))  # fmt: skip
    return Table(
        "Table 2",
        "Sentences that fool the baseline: TextFooler's, and one with the least number of swaps",
        ("data", "text", "by", "swaps", "words swapped"),
        tuple(rows),
        "The two texts of each data set on which TextFooler takes the most more. Whole sentences: the pages of the "
        "runs.",
    )


def swapped(line: Mapping[str, Any]) -> str:
    told = [f"{one['from']} → {one['to']}" for one in line["witness"]["swaps"]]
    return ", ".join(told[:MOST_SHOWN]) + (", …" if len(told) > MOST_SHOWN else "")


def histograms(setting: Setting) -> Table:
    rows, drawings = [], []
    for name, data in setting.data.items():
        for method, title in METHODS.items():
            folder = cell(setting, name, method)
            for by, found, run in (
                ("ours", minima(folder), "certify"),
                ("TextFooler", taken(folder), "attack-textfooler"),
            ):
                if not found:
                    continue
                swaps = Counter(found.values())
                shown = [str(swaps[number]) for number in range(1, LONGEST + 1)]
                more = sum(count for number, count in swaps.items() if number > LONGEST)
                rows.append(row((data.title, title, by), report(folder / run), *shown, str(more)))
                bars = [(str(number), swaps[number]) for number in range(1, max(swaps) + 1)]
                name_of = f"{data.title}, {title}: {by}"
                drawings.append(Figure(name_of, drawn_bars(name_of, bars, "swaps"), "Texts by their number of swaps."))
    return Table(
        "Figure 2",
        "Texts by their number of swaps",
        ("data", "trained on", "by", *map(str, range(1, LONGEST + 1)), "more"),
        tuple(rows),
        "Ours: proved minima; TextFooler: what it took. Seed 0.",
        figures=tuple(drawings),
    )


PAPER = Paper(
    "mmws",
    "Minimum synonym swaps by integer programming",
    ("sst2", "imdb"),
    steps,
    tables,
    (
        "Table 5 and figure 3 are human evaluations.",
        "Where Gurobi's free licence is too small another solver takes its place, and its row says so.",
        "The paper filters candidates by GloVe cosine, sentence similarity and part of speech; here they are a table.",
    ),
    few={"imdb": 10_000},
)
