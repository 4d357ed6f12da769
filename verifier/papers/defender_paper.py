"""Searching for an effective defender: Aua by the constraints, defences, norms, ensembles and shared synonyms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..defending.cell_steps import Step
from ..pages.sheets.plots import Series, drawn_lines
from ..pages.sheets.sheet import Figure
from .paper_data import Dataset, defenders_synonyms
from .paper_plan import Cell, Paper, Setting, Table, ends, figures, json_in, mean, percent, report, row, share

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
SMALL = {
    "ag": ("none", "ada:textfooler", "pgd", "freelb", "dne", "ascc", "substitute", "mask", "freelb++"),
    "imdb": ("none", "freelb", "freelb++"),
}
ATTACKS = {"textfooler": "TextFooler", "textbugger-words": "TextBugger"}
PUBLISHED = {  # BERT: Clean, then Aua, Suc and #Query of TextFooler and TextBugger
    "ag": {
        "none": ("94.5", "19.1", "79.6", "317.4", "23.5", "75.0", "320.6"),
        "ada:textfooler": ("94.4", "38.6", "58.9", "404.6", "43.3", "53.9", "418.3"),
        "mixada:textfooler": ("94.3", "37.5", "60.3", "410.7", "36.4", "61.4", "423.5"),
        "pgd": ("94.7", "24.8", "73.9", "353.5", "26.7", "71.9", "367.1"),
        "freelb": ("94.7", "31.6", "66.7", "382.1", "32.9", "65.4", "390.6"),
        "ta-vat": ("94.8", "31.0", "67.3", "382.5", "34.2", "63.9", "415.2"),
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
NORMS = {"0.01": (("94.9", "21.8", "77.0"), ("95.4", "30.5", "68.0")),
         "0.1": (("95.3", "43.6", "54.3"), ("95.5", "36.1", "62.2")),
         "1": (("95.2", "45.2", "55.3"), ("94.9", "45.8", "51.7")),
         "0": (("95.2", "45.2", "55.3"), ("94.9", "45.8", "51.7"))}  # fmt: skip
"""Table 4: Clean, and Aua and Suc of TextFooler, of PGD-K and FreeLB; 0 is no projection."""
ENSEMBLES = {
    ("substitute", "logits"): ("94.3", "31.8", "66.1", "41.2", "56.1"),
    ("substitute", "votes"): ("", "78.6", "17.6", "69.0", "28.0"),
    ("mask-5", "logits"): ("94.5", "21.5", "77.3", "41.2", "56.1"),
    ("mask-5", "votes"): ("", "68.6", "26.9", "62.5", "34.0"),
    ("mask", "logits"): ("91.7", "37.9", "58.7", "49.5", "46.1"),
    ("mask", "votes"): ("", "47.9", "48.2", "57.4", "37.6"),
}
"""Table 5: Clean, then Aua and Suc of TextFooler and TextBugger."""
SMOOTHED = {"substitute": "SAFER", "mask-5": "RanMASK-5%", "mask": "RanMASK-90%"}
SHARED = {  # table 6: with the attacker's synonyms
    "substitute": ("93.8", "46.6", "50.3", "55.4", "40.9"),
    "dne": ("93.4", "44.9", "54.0", "42.2", "56.6"),
    "ascc": ("91.4", "39.0", "57.3", "44.2", "51.6"),
}
RHO_MAX = {"ag": "0.3", "imdb": "0.1"}
K_MAX = 50
LENGTH = {"ag": 50, "imdb": 100}
"""Words that a network reads at --size small."""
CANDIDATES = ((1, 3, 8), (1, 2, 4, 8))
SHARES = (("0.05", "0.1", "0.3"), ("0.05", "0.1", "0.2", "0.3"))
FIGURE_ATTACKS = ("textfooler", "pwws", "textbugger-words", "deepwordbug")
STEPS = ((2, 10), (2, 5, 10, 30))


def methods(setting: Setting, name: str) -> tuple[str, ...]:
    return SMALL[name] if setting.size == "small" else tuple(METHODS)


def limits(name: str) -> tuple[object, ...]:
    return ("--rho-max", RHO_MAX[name], "--k-max", K_MAX, "--q-max")


def steps(setting: Setting) -> Iterator[Step]:
    texts = ("--limit", setting.pick(20, 1000))
    defenders = defenders_synonyms(setting.folder / "data")
    for name, data in setting.data.items():
        cut = replace(data, length=setting.pick(LENGTH[name], data.length))
        network: dict[str, object] = {"architecture": "cnn", "embedding": 16, "filters": 32, "width": 3}
        training: dict[str, object] = {"epochs": setting.pick(4, 6), "dropout": 0.1, "word_dropout": 0.1}
        training["batch"] = setting.pick(16, 64)
        recipe = setting.recipe(name, cut, network, training)
        plain = ("--training-texts", setting.pick(200, 2000), "--seconds", setting.pick(0.5, 10), *texts)

        def defended(run: str, keys: str, *asked: object, own: bool = True, attacks: str = "textfooler") -> Step:
            written = setting.write(f"{run}.keys.toml", keys)
            unseen: tuple[object, ...] = ("--synonyms", defenders) if own else ()
            told = ("--keys", written, "--attacks", attacks, *limits(name), *unseen, *plain)  # noqa: B023
            return setting.step(run, "defend", recipe, *asked, *told)  # noqa: B023

        both, asked_for = ",".join(ATTACKS), methods(setting, name)
        yield defended(name, keys_of(setting, asked_for), "--methods", ",".join(asked_for), attacks=both)
        if name == main(setting):
            for norm in setting.pick(("0.01", "0"), tuple(NORMS)):
                values = f"[pgd]\nnorm = {norm}\nsteps = 3\n[freelb]\nnorm = {norm}\nsteps = 3\n"
                yield defended(f"{name}-norm-{norm}", values, "--methods", "pgd,freelb")
            for number in setting.pick(*STEPS):
                values = f"[pgd]\nnorm = 0\nsteps = {number}\n['freelb++']\nsteps = {number}\n"
                yield defended(f"{name}-steps-{number}", values, "--methods", "pgd,freelb++")
            yield defended(f"{name}-mask-5", "[mask]\nrate = 0.05\n", "--methods", "mask", attacks=both)
            for method in SMOOTHED:
                task = votes(setting, name, cut, method)
                asked = ("--compare", both, *limits(name), *texts)
                yield setting.step(f"{name}-{method}-votes", "attack", task, *asked)
            yield defended(f"{name}-shared", "", "--methods", ",".join(SHARED), own=False, attacks=both)
        if name not in constrained(setting):
            continue
        task = place(setting, name, "none") / "model" / "task.toml"
        compared = ("--compare", ",".join(FIGURE_ATTACKS))
        for most in setting.pick(*CANDIDATES):
            bounds = ("--k-max", most, "--rho-max", RHO_MAX[name])
            yield setting.step(f"{name}-k-{most}", "attack", task, *compared, *bounds, *texts)
        for bound_share in setting.pick(*SHARES):
            yield setting.step(f"{name}-rho-{bound_share}", "attack", task, *compared, "--rho-max", bound_share, *texts)


def keys_of(setting: Setting, asked_for: Sequence[str]) -> str:
    """Fewer steps of ascent at --size small; RanMASK hides nine words of ten, as in table 2."""
    steps = {"pgd": 3, "freelb": 3, "freelb++": 10} if setting.size == "small" else {}
    lines = [f"['{method}']\nsteps = {number}\n" for method, number in steps.items() if method in asked_for]
    return "".join([*lines, *(["[mask]\nrate = 0.9\n"] if "mask" in asked_for else [])])


def main(setting: Setting) -> str:
    """The data set of the smaller experiments: AG News, as in the paper."""
    return "ag" if "ag" in setting.data else next(iter(setting.data), "")


def constrained(setting: Setting) -> tuple[str, ...]:
    """The data sets of figure 1."""
    return (main(setting),) if setting.size == "small" else tuple(setting.data)


def place(setting: Setting, name: str, method: str, run: str | None = None) -> Path:
    return setting.runs / (run or name) / name / method.replace(":", "-") / "seed-0"


def base_of(setting: Setting, name: str, method: str) -> Path:
    """The network that is smoothed."""
    return place(setting, name, method.removesuffix("-5"), f"{name}-mask-5" if method == "mask-5" else None) / "model"


def votes(setting: Setting, name: str, data: Dataset, method: str) -> Path:
    """A task about the vote of a network that `defend` trained to be smoothed; `train` leaves one about its mean."""
    base = Path("..") / base_of(setting, name, method).relative_to(setting.folder)
    noise = {
        "mask-5": 'method = "ranmask"\nrate = 0.05\nmask = "xunkx"\n',
        "mask": 'method = "ranmask"\nrate = 0.9\nmask = "xunkx"\n',
        "substitute": f'method = "safer"\nsynonyms = "{base}/noise_synonyms.json"\nmax_per_word = 8\n',
    }[method]
    read = 'pad = "<pad>"\nunknown = "<unk>"\nlowercase = true\nsplit = "words"\n'
    smoothing = (
        f'[base]\nonnx = "{base}/model.onnx"\nvocabulary = "{base}/vocabulary.json"\nlength = {data.length}\n{read}\n'
        f'[smoothing]\n{noise}combine = "votes"\n'
    )
    written = setting.write(f"{name}-{method}-votes.smoothing.toml", smoothing)
    task = (
        f'[model]\nsmoothed = "{written.name}"\nlabels = {list(data.labels)}\nsplit = "words"\n\n'
        f'[data]\nfile = "{base}/held_out.jsonl"\ntext = "text"\nlabel = "label"\n\n'
        f'[swaps]\nfile = "../data/{setting.synonyms.name}"\nmax_per_word = 8\n'
    )
    return setting.write(f"{name}-{method}-votes.toml", task)


def tables(setting: Setting) -> Iterator[Table]:
    yield from constraints(setting)
    for number, (name, data) in enumerate(setting.data.items()):
        yield defended_by(setting, name, data.title, f"Table {2 + number}")
    if main(setting):
        yield norms(setting, main(setting))
        yield by_steps(setting, main(setting))
        yield ensembles(setting, main(setting))
        yield shared_synonyms(setting, main(setting))


def shares(run: Path) -> tuple[str, str, str]:
    """Clean, Aua and Suc of an attack."""
    summary = json_in(run / "summary.json") or {}
    clean, aua, suc = (share(summary.get(key)) for key in ("clean", "aua", "suc"))
    return clean, aua, suc


def constraints(setting: Setting) -> Iterator[Table]:
    for name in constrained(setting):
        data, rows, drawings = setting.data[name], [], []
        for option, values, words in (("k", setting.pick(*CANDIDATES), "candidates a word"),
                                      ("rho", setting.pick(*SHARES), "share of words")):  # fmt: skip
            series = []
            for attack in FIGURE_ATTACKS:
                cells, points = [], []
                for value in values:
                    run = setting.runs / f"{name}-{option}-{value}" / attack
                    summary = json_in(run / "summary.json")
                    cells.append(Cell(f"{value}: {shares(run)[1]}", "", report(run)))
                    if summary is not None:
                        points.append((float(value), summary["aua"]["share"], summary["aua"]["share"]))
                rows.append(row((f"{attack}, by {words}",), None, *cells))
                series.append(Series(attack, tuple(points)))
            if any(one.points for one in series):
                lines = tuple((f"line engine-{number}", one.name) for number, one in enumerate(series))
                drawing = drawn_lines(f"{data.title}: Aua by {words}", series, words)
                drawings.append(Figure(f"{data.title}: Aua by {words}", drawing, "Accuracy under attack.", lines))
        yield Table(
            "Figure 1",
            f"{data.title}: accuracy under attack by the constraints, undefended",
            ("attack", *("value: Aua %",) * len(setting.pick(*CANDIDATES))),
            tuple(rows),
            "Aua: still answered rightly under the attack, of all texts. By candidates: at the paper's share of "
            "words; by "
            "share of words: all candidates of the table.",
            (SHARE_NOTE, "BERT-Attack needs a masked language model, which is in no package: "
             "`swapproof attack --language-model FOLDER` runs it."),
            figures=tuple(drawings),
        )  # fmt: skip


def two_ends(found: Mapping[str, Any], low: str, high: str, factor: float = 100.0, digits: int = 1) -> str:
    return ends({"low": mean(found, low), "high": mean(found, high)}, digits, factor)


def proofs_of(found: Mapping[str, Any], run: Path) -> tuple[Cell, ...]:
    """certified@1, certified@2 and MMWS."""
    page = report(run / "certify")
    shown = [two_ends(found, f"certified@{radius}", f"unbroken@{radius}") for radius in (1, 2)]
    return (*(Cell(one, "", page) for one in shown), Cell(two_ends(found, "MMWS low", "MMWS high", 1.0, 2), "", page))


def under_attack(
    found: Mapping[str, Any], run: Path, attack: str, told: Sequence[str], *, queries: bool = True
) -> list[Cell]:
    """Aua, Suc and #Query."""
    page, query = report(run / f"attack-{attack}"), mean(found, f"{attack} #Query")
    cells = [Cell(percent(mean(found, f"{attack} {what}")), one, page)
             for what, one in zip(("Aua", "Suc"), told, strict=False)]  # fmt: skip
    if queries:
        cells.append(Cell("-" if query is None else f"{query:.1f}", told[2], page))
    return cells


def defended_by(setting: Setting, name: str, title: str, number: str) -> Table:
    rows = []
    for method in methods(setting, name):
        found, page = figures(setting, name, method)
        told = PUBLISHED.get(name, {}).get(method, ("",) * 7)
        run = place(setting, name, method)
        cells = [Cell(percent(mean(found, "Clean")), told[0], page)]
        for at, attack in enumerate(ATTACKS):
            cells += under_attack(found, run, attack, told[1 + 3 * at : 4 + 3 * at])
        rows.append(row((METHODS[method],), page, *cells, *proofs_of(found, run)))
    columns = [column for attack in ATTACKS.values() for column in (f"{attack}: Aua %", "Suc %", "#Query")]
    return Table(
        number,
        f"{title}: defences",
        ("method", "Clean %", *columns, "certified@1 %", "certified@2 %", "MMWS"),
        tuple(rows),
        "Aua: still right under the attack, of all texts; Suc: broken, of those attacked, which were answered rightly; "
        "#Query: sentences asked about, before any cache, mean over attacked texts. certified@r: no sentence with at "
        "most "
        "r swaps breaks it, of all texts; [proved, not known to be broken].",
        (BUGS_NOTE, SHARE_NOTE, QUERY_NOTE, SIMILARITY_NOTE, SYNONYM_NOTE,
         "SAFER and RanMASK are deployed as the mean of logits over 100 random texts, as in the paper; what is "
         "certified of "
         "them is evaluated in full. Their released certificates are not sound: `measure --quantity vote` has sound "
         "ones."),
    )  # fmt: skip


def norms(setting: Setting, name: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for norm in setting.pick(("0.01", "0"), tuple(NORMS)):
        for (method, title), (clean, *told) in zip((("pgd", "PGD-K"), ("freelb", "FreeLB")), NORMS[norm], strict=True):
            found, page = figures(setting, f"{name}-norm-{norm}", method)
            run = place(setting, name, method, f"{name}-norm-{norm}")
            attacked = under_attack(found, run, "textfooler", told, queries=False)
            rows.append(row((title, "w/o" if norm == "0" else norm), page, (percent(mean(found, "Clean")), clean),
                            *attacked, *proofs_of(found, run)))  # fmt: skip
    return Table(
        "Table 4",
        f"{setting.data[name].title}: the norm of a perturbation",
        ("method", "norm", "Clean %", "TextFooler: Aua %", "Suc %", "certified@1 %", "certified@2 %", "MMWS"),
        tuple(rows),
        "w/o: no projection. Three steps of ascent. Columns as in table 2.",
        ("Norms are of a text's whole perturbation, in units of the embedding: BERT's vectors are longer than ours, "
         "so that "
         "equal norms are not equally large.",),
    )  # fmt: skip


def by_steps(setting: Setting, name: str) -> Table:
    rows, drawings = [], []
    series: dict[str, list[tuple[float, float, float]]] = {}
    for number in setting.pick(*STEPS):
        for method, title in (("pgd", "PGD-K++"), ("freelb++", "FreeLB++")):
            found, page = figures(setting, f"{name}-steps-{number}", method)
            run = place(setting, name, method, f"{name}-steps-{number}")
            aua = mean(found, "textfooler Aua")
            rows.append(
                row((title, str(number)), page, percent(mean(found, "Clean")), percent(aua), *proofs_of(found, run))
            )
            if aua is not None:
                series.setdefault(title, []).append((float(number), aua, aua))
    if series:
        lines = [Series(title, tuple(points)) for title, points in series.items()]
        keys = tuple((f"line engine-{at}", one.name) for at, one in enumerate(lines))
        drawing = drawn_lines("Aua by the steps of ascent", lines, "steps of ascent")
        drawings.append(Figure("Figure 2", drawing, "Accuracy under TextFooler.", keys))
    return Table(
        "Figure 2",
        f"{setting.data[name].title}: without projection, by the steps of ascent",
        ("method", "steps", "Clean %", "TextFooler: Aua %", "certified@1 %", "certified@2 %", "MMWS"),
        tuple(rows),
        "Columns as in table 2. The paper's curves rise up to 5 steps (Clean), and 10 or 30 (Aua); it prints no "
        "numbers.",
        figures=tuple(drawings),
    )


def ensembles(setting: Setting, name: str) -> Table:
    rows = []
    for (method, combined), told in ENSEMBLES.items():
        if combined == "logits":
            folder = base_of(setting, name, method).parent
            runs = [folder / f"attack-{attack}" for attack in ATTACKS]
        else:
            runs = [setting.runs / f"{name}-{method}-votes" / attack for attack in ATTACKS]
        clean = shares(runs[0])[0]
        cells = [Cell(one, said, report(run)) for at, run in enumerate(runs)
                 for one, said in zip(shares(run)[1:], told[1 + 2 * at : 3 + 2 * at], strict=True)]  # fmt: skip
        title = f"{SMOOTHED[method]} ({'logit' if combined == 'logits' else 'voting'})"
        rows.append(row((title,), report(runs[0]), (clean, told[0]), *cells))
    return Table(
        "Table 5",
        f"{setting.data[name].title}: the mean of logits or the vote",
        ("method", "Clean %", *(column for attack in ATTACKS.values() for column in (f"{attack}: Aua %", "Suc %"))),
        tuple(rows),
        "Columns as in table 2, over 100 random texts of each sentence, the same ones whenever it is asked about.",
        ("A vote answers with shares of its answers, which an attack by scores cannot follow far: the paper asks that "
         "defences be judged by the mean of logits.",),
    )  # fmt: skip


def shared_synonyms(setting: Setting, name: str) -> Table:
    rows = []
    for method, told in SHARED.items():
        for run, words, said in ((f"{name}-shared", "w", told), (name, "w/o", without(name, method))):
            found, page = figures(setting, run, method)
            folder = place(setting, name, method, run)
            cells = [Cell(percent(mean(found, "Clean")), said[0], page)]
            for at, attack in enumerate(ATTACKS):
                cells += under_attack(found, folder, attack, said[1 + 2 * at : 3 + 2 * at], queries=False)
            rows.append(row((f"{METHODS[method]} ({words})",), page, *cells, *proofs_of(found, folder)))
    columns = [column for attack in ATTACKS.values() for column in (f"{attack}: Aua %", "Suc %")]
    return Table(
        "Table 6",
        f"{setting.data[name].title}: with the attacker's synonyms, and without",
        ("method", "Clean %", *columns, "certified@1 %", "certified@2 %", "MMWS"),
        tuple(rows),
        "w: the defender learns from the table that attacks; w/o: from another one. Columns as in table 2.",
        (SYNONYM_NOTE, *overlaps(setting, name)),
    )


def without(name: str, method: str) -> tuple[str, ...]:
    """Of table 2: Clean, Aua and Suc of both attacks."""
    told = PUBLISHED.get(name, {}).get(method, ("",) * 7)
    return (told[0], told[1], told[2], told[4], told[5])


def overlaps(setting: Setting, name: str) -> list[str]:
    """What `defend` says of both tables."""
    said = (json_in(setting.runs / name / "table.json") or {}).get("remarks", ())
    return [one.partition(": ")[2] for one in said if "synonyms" in one][:1]


BUGS_NOTE = (
    "TextBugger here is its part that swaps words, which on one table of synonyms is TextFooler's search: both columns "
    "are equal. `attack --method textbugger` adds its typing errors."
)
SHARE_NOTE = "The share times the number of words is rounded down; released tools round it up."
QUERY_NOTE = (
    "At most K_max x words requests a text (K_max 50, of which the synonym table has at most 8 a word); released tools "
    "count the first request too."
)
SIMILARITY_NOTE = (
    "The paper asks for a similarity of 0.84 by USE; released tools compare with the previous text and not below 15 "
    "words. Here similarity is the synonym table's affair; `--similarity` compares with the original, always."
)
SYNONYM_NOTE = (
    "Defenders learn from the demo's synonyms (Open English WordNet), never from those that attack, but where table 6 "
    "says so."
)

PAPER = Paper(
    "defender",
    "Searching for an effective defender",
    ("ag", "imdb"),
    steps,
    tables,
    (
        "BERT-Attack needs a masked language model from a folder (`swapproof attack --language-model`), and no "
        "package has "
        "one.",
        "Published numbers are of BERT, and of TextBugger with typing errors; ours of a convolutional network, which "
        "can be "
        "certified, and of TextBugger's search over the table's words.",
        "At --size small: fewer defences, three steps of ascent (ten of FreeLB++), one seed, shorter texts, "
        "and figure 1 of AG News only.",
    ),
    few={"imdb": 4000, "ag": 4000},
)
