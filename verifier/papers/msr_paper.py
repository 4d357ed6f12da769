"""Maximal safe radius: intervals instead of averages of loose ends, by embedding, by position and by architecture."""

from __future__ import annotations

from collections.abc import Iterator

from ..defending.cell_steps import Step
from ..pages.sheets.plots import Series, drawn_lines
from ..pages.sheets.sheet import Figure
from .paper_plan import Cell, Paper, Setting, Table, ends, json_in, percent

DIMENSIONS = {5: "0.278", 10: "0.141", 25: "0.023", 50: "0.004"}
"""Table 2: lower bounds of CNN-Cert on SST with embeddings of Keras."""
TABLE_3 = {"imdb": ("0.055", "6.0", "1.4", "0.986"), "ag": ("0.002", "50.0", "15.6", "0.852"),
           "sst2": ("0.004", "52.2", "19.9", "0.813")}  # fmt: skip
"""Keras 50d: lower bound, substitutions % per text and per word, upper bound."""
SMALL = (5, 10)


def dimensions(setting: Setting) -> tuple[int, ...]:
    return SMALL if setting.size == "small" else tuple(DIMENSIONS)


def steps(setting: Setting) -> Iterator[Step]:
    for name, data in setting.data.items():
        for size in dimensions(setting):
            run = f"{name}-cnn-{size}"
            network: dict[str, object] = {"architecture": "cnn", "embedding": size, "filters": 16, "width": 3}
            training: dict[str, object] = {"epochs": setting.pick(2, 6), "batch": 64, "word_dropout": 0.1}
            recipe = setting.recipe(run, data, network, training)
            yield setting.step(f"{run}-model", "train", recipe, parallel=False)
            yield from measured(setting, run, "one", ("--saliency",) if size == dimensions(setting)[-1] else ())
            if size == dimensions(setting)[-1]:
                yield from measured(setting, run, "2", ())


def measured(setting: Setting, run: str, words: str, more: tuple[str, ...]) -> Iterator[Step]:
    task = setting.runs / f"{run}-model" / "task.toml"
    asked = ("--quantity", "msr", "--norm", "l2", "--words", words, "--limit", setting.pick(5, 100))
    yield setting.step(f"{run}-{words}", "measure", task, *asked, "--seconds", setting.pick(4, 60), *more)


def tables(setting: Setting) -> Iterator[Table]:
    rows = []
    for name, data in setting.data.items():
        for size in dimensions(setting):
            run = setting.runs / f"{name}-cnn-{size}-one"
            summary = json_in(run / "summary.json")
            if summary is None:
                continue
            told = DIMENSIONS[size] if name == "sst2" else ""
            rows.append((
                Cell(data.title), Cell(str(size)),
                Cell(ends(summary["normalised"], 4), told, run / "report.html"),
                Cell(f"{summary['sets_exact']} of {summary['sets']}"),
                Cell(ends(summary["safe_radius"], 4)),
            ))  # fmt: skip
    yield Table(
        "Table 2",
        "Safe radius of one word by the dimension of the embedding",
        ("data", "dimension", "radius / diameter", "words exact", "least of a text"),
        tuple(rows),
        "Mean over words, L2, divided by the embedding's diameter; low end proved, high end a point or word that "
        "onnxruntime answers otherwise. Exact: the ends differ by at most 0.1 %. Published: lower bounds of CNN-Cert.",
    )
    yield substitutions(setting)
    yield several(setting)
    yield by_position(setting)


def substitutions(setting: Setting) -> Table:
    rows = []
    for name, data in setting.data.items():
        run = setting.runs / f"{name}-cnn-{dimensions(setting)[-1]}-one"
        summary = json_in(run / "summary.json")
        if summary is None:
            continue
        told = TABLE_3[name]
        rows.append((
            Cell(data.title),
            Cell(ends(summary["normalised"], 4), f"{told[0]} to {told[3]}", run / "report.html"),
            Cell(percent(summary["words_that_change_it"] / max(1, summary["sets"])), ""),
            Cell(str(summary["any_word"]["proved"] + summary["any_word"]["evaluated"])),
        ))  # fmt: skip
    return Table(
        "Table 3",
        "Substitutions of one word",
        ("data", "radius / diameter", "words with a substitution %", "words safe against any word"),
        tuple(rows),
        "With a substitution: some word of the vocabulary, put there, changes the class; every one was looked at. Safe "
        "against any word: none does. Published: its bounds, at dimension 50.",
    )


def several(setting: Setting) -> Table:
    rows = []
    for name, data in setting.data.items():
        for words in ("one", "2"):
            run = setting.runs / f"{name}-cnn-{dimensions(setting)[-1]}-{words}"
            summary = json_in(run / "summary.json")
            if summary is not None:
                found = Cell(ends(summary["safe_radius"], 4), "", run / "report.html")
                rows.append(
                    (Cell(data.title), Cell(words), found, Cell(f"{summary['exact']} of {summary['measured']}"))
                )
    return Table(
        "Table 6 and 8",
        "One word and two words that move together",
        ("data", "words", "least of a text", "texts exact"),
        tuple(rows),
        "Mean over texts of the least radius over the sets of words looked at, in units of the embedding.",
    )


def by_position(setting: Setting) -> Table:
    drawings, rows = [], []
    for name, data in setting.data.items():
        run = setting.runs / f"{name}-cnn-{dimensions(setting)[-1]}-one"
        lows = [low for low in (json_in(run / "summary.json") or {}).get("by_position", ()) if low is not None]
        if not lows:
            continue
        most = max(lows)
        points = tuple((float(place), low / most, low / most) for place, low in enumerate(lows))
        drawing = drawn_lines(f"{data.title}: low ends by position", [Series("cnn", points)], "position")
        drawings.append(Figure(f"Figure 6, {data.title}", drawing, "Low ends, divided by their greatest."))
        rows.append((Cell(data.title), Cell(f"{min(lows):.4f}", "", run / "report.html"), Cell(f"{most:.4f}")))
    return Table(
        "Figure 6",
        "Low ends by position",
        ("data", "least", "greatest"),
        tuple(rows),
        "Means over texts.",
        figures=tuple(drawings),
    )


PAPER = Paper(
    "msr",
    "Assessing robustness of text classification through maximal safe radius computation",
    ("sst2", "imdb", "ag"),
    steps,
    tables,
    (
        "Embeddings are trained with the networks, as the paper's of Keras; the data set NEWS is not in registries.",
        "Human judgements of the substitutions (figure 4) are the pages' witnesses.",
    ),
)
