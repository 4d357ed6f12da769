"""report.html of `measure --quantity pr`: how PR is distributed, which texts are weakest, for one radius or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..printing.pr_printing import about, interval, sentences, sureness
from .plots import Series, drawn_histogram, drawn_lines, drawn_violins
from .sheet import BANNERS, Card, Column, Figure, Grid, Part, Row, Rows, Sheet

Summary = Mapping[str, Any]
Lines = Sequence[Mapping[str, Any]]
MOSTLY = "share of texts whose PR is above 0.9"
VIOLIN = (
    "The density of the texts' PR (of middles, where a text is an interval), its quartiles (bar) and its median "
    "(line): a Gaussian kernel of Silverman's width, mirrored at 0 and 1."
)


def pr_sheet(summary: Summary, lines: Lines) -> Sheet:
    found = measured(lines)
    claim = (
        f"On average {interval(summary['robust_fraction'])} of the sentences with at most {swaps(summary['radius'])} "
    )
    claim += f"keep their label, over {summary['measured']:,} texts ({sureness(summary['confidence'])})."
    if summary["robust_fraction"]["low"] is None:
        claim = "No text was measured."
    return Sheet(
        title="How many of its sentences keep their label?",
        lead=f"PR at radius {summary['radius']} of {summary['texts']:,} labelled texts.",
        banner=BANNERS[summary["verdict"]["exit_code"]],
        claim=claim,
        said=f"{weakest(found)}{capital(summary['verdict']['sentence'])}.",
        warnings=tuple(f"{capital(one)}." for one in [*sentences(summary)][1:]),
        definition=f"{summary['definition']}.",
        cards=tuple(cards(summary)),
        parts=(
            Part(
                "How PR is distributed",
                (
                    Figure("PR of the texts, all and by class", violins(found), VIOLIN),
                    Figure("PR of the texts", drawn_histogram("Texts by PR", middles(found), "PR"),
                           "Texts by PR, in steps of 0.05; of an interval its middle counts."),
                ),
                (by_class(found),),
            ),
            Part("What was measured", said=tuple(f"{capital(one)}." for one in about(summary))),
        ),
        rows=rows(lines),
        closing="`swapproof check RUN` on the folder of this page checks every count, and draws every sample again.",
    )  # fmt: skip


def radii_sheet(summary: Summary, runs: Mapping[int, Lines]) -> Sheet:
    """Of several radii: one violin for each, as in figure 5 of the PDP paper, and the curve of the means."""
    each = sorted(summary["runs"].values(), key=lambda one: int(one["radius"]))
    worst = max(one["verdict"]["exit_code"] for one in each)
    groups = [(f"r = {radius}", middles(measured(lines))) for radius, lines in sorted(runs.items())]
    points = tuple(
        (one["radius"], one["robust_fraction"]["low"], one["robust_fraction"]["high"])
        for one in each
        if one["robust_fraction"]["low"] is not None
    )
    claims = (f"{interval(one['robust_fraction'])} with at most {swaps(one['radius'])}" for one in each)
    return Sheet(
        title="How many of its sentences keep their label?",
        lead=f"PR of {each[0]['texts']:,} labelled texts, at radius {', '.join(str(one['radius']) for one in each)}.",
        banner=BANNERS[worst],
        claim=f"On average this share of the sentences keeps its label: {'; '.join(claims)}.",
        said=" ".join(f"r = {one['radius']}: {one['verdict']['sentence']}." for one in each),
        definition=f"{each[0]['definition']}.",
        parts=(
            Part(
                "PR by radius",
                (
                    Figure("PR of the texts", drawn_violins("PR by radius", groups, "PR"), VIOLIN),
                    Figure(
                        "Mean PR",
                        drawn_lines("Mean PR by radius", [Series("mean PR", points)] if points else [], "swaps"),
                        "The mean over the texts; a band where it is an interval, at the confidence of the table.",
                    ),
                ),
                (radii_grid(each),),
            ),
        ),
        closing="Each radius has a folder and a page of its own, radius-R/report.html.",
    )


def radii_grid(each: Sequence[Summary]) -> Grid:
    columns = ("radius", "texts", "already wrong", "exact", "bracketed", "sampled", "mean PR", "PR > 0.9", "confidence")
    return Grid(
        "Every radius",
        columns,
        tuple(
            (
                str(one["radius"]),
                *(f"{one[name]:,}" for name in ("texts", "already_wrong", "exact", "deterministic", "sampled")),
                interval(one["robust_fraction"]),
                interval(one["share_above_0.9"]),
                sureness(one["confidence"]),
            )
            for one in each
        ),
        f"Mean PR: over the texts answered rightly. PR > 0.9: {MOSTLY}. Confidence: with which both of a row hold.",
    )


def measured(lines: Lines) -> list[Mapping[str, Any]]:
    return [line for line in lines if line["robust_fraction"] is not None]


def middles(found: Lines) -> list[float]:
    return [(line["robust_fraction"]["low"] + line["robust_fraction"]["high"]) / 2 for line in found]


def classes(found: Lines) -> list[str]:
    return sorted({line["label"] for line in found})


def violins(found: Lines) -> Any:
    groups = [("all", middles(found))]
    groups += [(label, middles([line for line in found if line["label"] == label]))
               for label in classes(found)]  # fmt: skip
    return drawn_violins("PR of the texts", groups, "PR")


def by_class(found: Lines) -> Grid:
    made = []
    for name, own in [("all", found), *((label, [line for line in found if line["label"] == label])
                      for label in classes(found))]:  # fmt: skip
        ends = [sum(line["robust_fraction"][end] for line in own) / len(own) for end in ("low", "high")] if own else []
        least = min((line["robust_fraction"]["low"] for line in own), default=0.0)
        made.append((name, f"{len(own):,}", "" if not ends else interval({"low": ends[0], "high": ends[1]}),
                     f"{least:.4f}" if own else ""))  # fmt: skip
    definition = "Mean: of the texts' low ends and of their high ends; least: the smallest low end."
    return Grid("PR by class", ("texts", "number", "mean PR", "least"), tuple(made), definition)


def cards(summary: Summary) -> Iterator[Card]:
    yield Card(interval(summary["robust_fraction"]), "mean PR", "over the texts that are answered rightly")
    yield Card(interval(summary["share_above_0.9"]), "PR > 0.9", MOSTLY)
    for name, words, meaning in (
        ("exact", "exact", "every sentence was counted"),
        ("deterministic", "bracketed", "what is not settled counts as broken at one end and as robust at the other"),
        ("sampled", "sampled", "drawn uniformly, with an interval at a stated confidence"),
        ("already_wrong", "already wrong", "answered wrongly without a swap, and left out"),
    ):
        yield Card(f"{summary[name]:,}", words, meaning)


def rows(lines: Lines) -> Rows:
    """The weakest texts first."""

    def strength(line: Mapping[str, Any]) -> tuple[bool, float, int]:
        found = line["robust_fraction"]
        return found is None, 0.0 if found is None else found["low"], line["id"]

    def each() -> Iterator[Row]:
        for line in sorted(lines, key=strength):
            found = line["robust_fraction"]
            cells = (
                line["id"],
                None if found is None else [found["low"], found["high"]],
                line["status"].replace("_", " "),
                line["label"],
                None if found is None else int(found["total"]) if len(found["total"]) < 16 else found["total"],
                line["positions"],
                line.get("level", ""),
                line["seconds"],
                line["text"],
            )
            yield cells, [] if found is None else [(f"At most {swaps(line['radius'])}", told(found), ())]

    return Rows(
        "Weakest first: texts of which the smallest share of sentences keeps the label; those left out come last.",
        (
            Column("text", "number"), Column("PR", "number"), Column("status", "choice"), Column("label", "choice"),
            Column("sentences", "number"), Column("words", "number"), Column("level", "choice"),
            Column("seconds", "number"), Column("what is said", "text"),
        ),
        len(lines),
        each,
        "PR: the share of sentences that keep the label, as [low, high] where it is not exact. Sentences: those with "
        "at most so many swaps, the original included. Seconds: of the whole text.",
    )  # fmt: skip


def told(found: Mapping[str, Any]) -> str:
    said = f"{found['total']} sentences"
    if "robust" in found:
        said += f": {found['robust']} keep the label, {found['broken']} lose it, {found['open']} are not settled"
    if "sample" in found:
        sample = found["sample"]
        said += f"; sample: {', '.join(f'{name} {value}' for name, value in sample.items() if name != 'seed')}"
    return said + "."


def weakest(found: Lines) -> str:
    if not found:
        return ""
    line = min(found, key=lambda line: (line["robust_fraction"]["low"], line["id"]))
    return f"The weakest text, {line['id']}, keeps {interval(line['robust_fraction'])}. "


def swaps(number: int) -> str:
    return "1 swap" if number == 1 else f"{number} swaps"


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
