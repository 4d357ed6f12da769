"""report.html of `attack`: what one attack broke, or how several compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..attack_figures import by_requests, by_swaps, curves, key_style, scatter, swaps_of
from ..printing.attack_printing import (
    COLUMNS,
    compared_columns,
    compared_row,
    little_said,
    log_sentence,
    measured_sentences,
    number,
    percent,
    row_of,
)
from .plots import Series, drawn_bars, drawn_lines
from .sheet import BANNERS, Card, Column, Figure, Grid, Part, Row, Rows, Sheet

Summary = Mapping[str, Any]
Lines = Sequence[Mapping[str, Any]]
MOST_RADII = 15
EXACT = "exact minimum"


def attack_sheet(summary: Summary, lines: Lines) -> Sheet:
    """Of one attack."""
    broken = [line for line in lines if is_broken(line)]
    said = "" if not broken else f"It took {number(summary['swaps'], 2)} swaps on average. "
    return Sheet(
        title=f"What does {summary['method']} break?",
        lead=f"{summary['method']} against {summary['texts']:,} labelled texts, {summary['attacked']:,} of which it "
        "attacks.",
        banner="neutral" if summary["verdict"]["exit_code"] == 0 else BANNERS[summary["verdict"]["exit_code"]],
        claim=f"{summary['method']} breaks {percent(summary['suc'])} of the {summary['attacked']:,} texts it attacks; "
        f"accuracy falls from {percent(summary['clean'])} to {percent(summary['aua'])}.",
        said=f"{said}What it does not break is not proved robust. {sentences(summary)}",
        warnings=tuple(warnings([summary])),
        definition=summary["definition"],
        cards=tuple(cards(summary)),
        parts=(
            Part(
                "Swaps",
                (
                    Figure("Accuracy under this attack", accuracy_drawn({summary["method"]: lines}),
                           "Texts answered rightly that the attack did not break with so many swaps / all texts."),
                    Figure("Texts by swaps", swaps_drawn(lines), "Broken texts by the number of swaps it took."),
                ),
                (by_class(lines), by_length(lines)),
            ),
        ),
        rows=rows(lines),
        closing="`swapproof check RUN` on the folder of this page replays every sentence.",
    )  # fmt: skip


def attacks_sheet(summary: Summary, runs: Mapping[str, Lines]) -> Sheet:
    """Of several attacks on the same texts."""
    each, found = list(summary["runs"].values()), summary["comparison"]
    code = max(one["verdict"]["exit_code"] for one in each)
    exact = {int(id): least for id, least in summary.get("exact", {}).items()}
    keys = tuple((f"line engine-{place % 6}", name) for place, name in enumerate(runs))
    return Sheet(
        title="Which attack finds most?",
        lead=f"{', '.join(runs)} on the same {found['texts']:,} texts and frozen swaps.",
        banner="neutral" if code == 0 else BANNERS[code],
        claim=claim_of(found),
        said=" ".join(f"{one['method']}: {sentences(one)}" for one in each),
        definition=each[0]["definition"],
        warnings=tuple(warnings(each)),
        parts=(
            Part(
                "Side by side",
                (
                    *against(runs, exact),
                    Figure("Accuracy under attack", accuracy_drawn(runs),
                           "Texts answered rightly that the attack did not break with so many swaps / all.", keys),
                ),
                (
                    Grid("Attacks", COLUMNS, tuple(tuple(row_of(one)) for one in each), each[0]["definition"]),
                    Grid("Compared", tuple(compared_columns(found)),
                         tuple(tuple(compared_row(one)) for one in found["methods"]),
                         f"{found['definition']}."),
                ),
            ),
        ),
        rows=compared_rows(runs),
        closing="Each attack has a folder and a page of its own, NAME/report.html.",
    )  # fmt: skip


def claim_of(found: Summary) -> str:
    """Of a comparison: who breaks most texts, or that all break as many."""
    methods = found["methods"]
    best = max(methods, key=lambda one: (one["succ"], one["win"]))
    together = f"some attack breaks {found['breakable']:,}."
    if len(methods) > 1 and len({one["succ"] for one in methods}) == 1:
        tie = f"The attacks tie: each breaks {best['succ']:,} of {found['texts']:,} texts"
        return f"{tie}." if best["succ"] == found["breakable"] else f"{tie}; {together}"
    return f"{best['method']} breaks {best['succ']:,} of {found['texts']:,} texts; {together}"


def sentences(one: Summary) -> str:
    return " ".join((f"{capital(one['verdict']['sentence'])}.", *measured_sentences(one)))


def warnings(each: Sequence[Summary]) -> Iterator[str]:
    yield from little_said(each)
    for said in dict.fromkeys(remark for one in each for remark in one.get("remarks", ())):
        yield f"{capital(said)}."
    for one in each:
        if "textattack" in one:
            yield log_sentence(one["textattack"])


def against(runs: Mapping[str, Lines], exact: Mapping[int, int | None]) -> Iterator[Figure]:
    """As figures 3 and 4 of the PDP paper: every attack against the exact minimum, or against the first one."""
    highs = {name: {line["id"]: swaps_of(line) for line in lines} for name, lines in runs.items()}
    known = {id: least for id, least in exact.items() if least is not None}
    base, others = (EXACT, known) if known else next(iter(highs.items()), ("", {}))
    for name, own in highs.items():
        if name == base:
            continue
        pairs = [(least, high) for id, least in others.items() if least and (high := own.get(id)) is not None]
        yield Figure(
            f"Swaps: {name} against {base}",
            scatter(base, name, pairs),
            f"{len(pairs)} texts that both break. The area of a dot is its number of texts; on the dotted line both "
            "need as many swaps.",
        )
    attacked = sum(line["status"] != "already_wrong" for line in next(iter(runs.values()), ()))
    swaps = {name: by_swaps(lines, attacked) for name, lines in runs.items()}
    if known:
        swaps[EXACT] = by_swaps(
            [{"status": "exact", "min_swaps": {"high": least}} for least in known.values()], attacked
        )
    yield Figure(
        "Success by number of swaps",
        curves("Success by number of swaps", "at most so many swaps", swaps),
        f"Share of {attacked} texts that were answered rightly and are broken with at most so many swaps.",
        keys_of(swaps),
    )
    requests = {name: by_requests(lines, attacked) for name, lines in runs.items()}
    yield Figure(
        "Success by number of requests",
        curves("Success by number of requests", "at most so many requests a text", requests, logarithmic=True),
        "Share of these texts that are broken by a search that ended after at most so many requests.",
        keys_of(requests),
    )


def keys_of(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((key_style(place), name) for place, name in enumerate(names))


def is_broken(line: Mapping[str, Any]) -> bool:
    return line["status"] != "already_wrong" and line["min_swaps"]["high"] is not None


def accuracy_drawn(runs: Mapping[str, Lines]) -> Any:
    highest = max([1, *(line["min_swaps"]["high"] for lines in runs.values() for line in lines if is_broken(line))])
    radii = range(min(highest, MOST_RADII) + 1)
    series = []
    for name, lines in runs.items():
        right = [line for line in lines if line["status"] != "already_wrong" and not line["attack"].get("failed")]
        highs = [line["min_swaps"]["high"] for line in right]
        kept = [sum(high is None or high > radius for high in highs) / max(1, len(lines)) for radius in radii]
        series.append(Series(name, tuple((radius, share, share) for radius, share in zip(radii, kept, strict=True))))
    return drawn_lines("Accuracy under attack by number of swaps", series, "swaps allowed", steps=True)


def swaps_drawn(lines: Lines) -> Any:
    highs = [line["min_swaps"]["high"] for line in lines if is_broken(line)]
    bars = [(str(swaps), highs.count(swaps)) for swaps in range(1, max([1, *highs]) + 1)]
    return drawn_bars("Broken texts by number of swaps", bars, "swaps", every=max(1, len(bars) // 12))


def cards(summary: Summary) -> Iterator[Card]:
    yield Card(percent(summary["suc"]), "broken (Suc)", f"{summary['broken']:,} of {summary['attacked']:,} attacked")
    yield Card(percent(summary["clean"]), "accuracy (Clean)", "of all texts")
    yield Card(percent(summary["aua"]), "accuracy under attack (Aua)", "still answered rightly, of all texts")
    yield Card(percent(summary["asr1"]), "broken by one swap (ASR1)", "of the texts attacked")
    yield Card(number(summary["swaps"], 2), "swaps", "mean over broken texts")
    yield Card(number(summary["requests"], 1), "requests", "sentences asked about, mean over attacked texts")


GROUPED = "Attacked: texts answered rightly. Broken: of these, by this attack. Swaps: mean over broken texts."


def by_class(lines: Lines) -> Grid:
    labels = sorted({line["label"] for line in lines})
    groups = [(label, [line for line in lines if line["label"] == label]) for label in labels]
    return grouped("class", groups)


def by_length(lines: Lines) -> Grid:
    """Quarters of the texts by length."""
    ordered = sorted(lines, key=lambda line: (line["positions"], line["id"]))
    quarters = [ordered[len(ordered) * k // 4 : len(ordered) * (k + 1) // 4] for k in range(4)]
    named = [(f"{some[0]['positions']} to {some[-1]['positions']} words", some) for some in quarters if some]
    return grouped("length", named)


def grouped(what: str, groups: Sequence[tuple[str, Lines]]) -> Grid:
    made = []
    for name, own in groups:
        right = [line for line in own if line["status"] != "already_wrong"]
        broken = [line["min_swaps"]["high"] for line in right if is_broken(line)]
        made.append((
            name, f"{len(own):,}", f"{len(right):,}", f"{len(broken):,}",
            f"{len(broken) / len(right):.1%}" if right else "-", f"{sum(broken) / len(broken):.2f}" if broken else "-",
        ))  # fmt: skip
    columns = (what, "texts", "attacked", "broken", "of attacked", "swaps")
    return Grid(f"By {what}", columns, tuple(made), GROUPED)


def outcome(line: Mapping[str, Any]) -> str:
    if line["status"] == "already_wrong":
        return "already wrong"
    if line["attack"].get("failed"):
        return "no answer"
    return "broken" if is_broken(line) else "not broken"


def strength(line: Mapping[str, Any]) -> tuple[bool, float, int]:
    high = line["min_swaps"]["high"]
    return line["status"] == "already_wrong", 10**9 if high is None else high, line["id"]


def rows(lines: Lines) -> Rows:
    def each() -> Iterator[Row]:
        for line in sorted(lines, key=strength):
            swaps = () if line["witness"] is None else line["witness"]["swaps"]
            cells = (
                line["id"], outcome(line), line["min_swaps"]["high"] if is_broken(line) else None,
                line["label"], line["positions"], line["requests"], line["seconds"], line["text"],
            )  # fmt: skip
            yield cells, [("The sentence that fools the model", line["text"], swaps)] if swaps else []

    return Rows(
        "Weakest first: texts that few swaps break; those already wrong come last.",
        (
            Column("text", "number"), Column("outcome", "choice"), Column("swaps", "number"), Column("label", "choice"),
            Column("words", "number"), Column("requests", "number"), Column("seconds", "number"),
            Column("what is said", "text"),
        ),
        len(lines),
        each,
        "Swaps: those of the sentence found, replayed through the deployed model. Requests: sentences asked about.",
    )  # fmt: skip


def compared_rows(runs: Mapping[str, Lines]) -> Rows:
    """Every text with the swaps that each attack needs."""
    first = next(iter(runs.values()))
    others = {name: {line["id"]: line for line in lines} for name, lines in runs.items()}

    def each() -> Iterator[Row]:
        for line in sorted(first, key=lambda line: min(strength(own[line["id"]]) for own in others.values())):
            found = [own[line["id"]] for own in others.values()]
            cells = (
                line["id"],
                *(one["min_swaps"]["high"] if is_broken(one) else outcome(one) for one in found),
                line["label"],
                line["positions"],
                line["text"],
            )
            details = [
                (name, line["text"], own[line["id"]]["witness"]["swaps"])
                for name, own in others.items()
                if own[line["id"]]["witness"] is not None
            ]
            yield cells, details

    return Rows(
        "Weakest first.",
        (Column("text", "number"), *(Column(name, "number") for name in runs), Column("label", "choice"),
         Column("words", "number"), Column("what is said", "text")),
        len(first),
        each,
        "The swaps that each attack took.",
    )  # fmt: skip


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
