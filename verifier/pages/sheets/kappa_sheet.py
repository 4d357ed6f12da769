"""report.html of `measure --quantity kappa`: the most dangerous words, what they do, and rho."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..printing.kappa_printing import ends, ratio, remarks
from .plots import Series, drawn_histogram, drawn_lines
from .sheet import BANNERS, Card, Column, Figure, Grid, Part, Row, Rows, Sheet

Word = tuple[str, float, float]
CURVE = 200
"""Points of the curve of all words."""


def kappa_sheet(summary: Mapping[str, Any], table: Sequence[Word], lines: Sequence[Mapping[str, Any]]) -> Sheet:
    """`table`: word, low and high, the most dangerous first; `lines` of results.jsonl."""
    rho = summary["rho"]
    shown = f"{rho['low']:.6f}" if rho["low"] == rho["high"] else f"between {rho['low']:.6f} and {rho['high']:.6f}"
    worst = summary["highest_kappa"][:1]
    said = [
        f"“{one['word']}” alone flips {100 * one['low']:.1f} % of the texts: against it accuracy is "
        f"{ratio(one['accuracy_against_it'])} in place of {summary['accuracy']:.4f}."
        for one in worst
    ]
    return Sheet(
        title="Which single words flip the answer?",
        lead=f"kappa of {summary['words']:,} words over {summary['answered_correctly']:,} texts answered rightly.",
        banner=BANNERS[summary["verdict"]["exit_code"]],
        claim=f"rho is {shown}: so large a share of texts and words do not flip.",
        said=" ".join([*said, f"{capital(summary['verdict']['sentence'])}."]),
        definition=f"{summary['definition']}. {'. '.join(summary['deviations_from_the_paper'])}.",
        cards=tuple(cards(summary)),
        parts=(*requirements(summary), dangerous(summary), spread(table, lines),
               Part("How it was found", said=tuple(f"{one}." for one in remarks(summary)))),
        rows=rows(table),
        closing="kappa has no certificates: `swapproof check RUN` asks the model again, of words drawn for each text.",
    )  # fmt: skip


def cards(summary: Mapping[str, Any]) -> Iterator[Card]:
    far = summary["rho_of_the_distribution"]
    yield Card(f"{summary['rho']['low']:.6f}", "rho, at least", "1 less the mean of kappa over all words")
    low, high = far["empirical_bernstein"]
    yield Card(f"{low:.4f} to {high:.4f}", f"rho of the population, {100 * far['confidence']:g} %",
               "empirical Bernstein; if the texts were drawn from it at random")  # fmt: skip
    yield Card(f"{summary['texts_no_word_flips']:,}", "texts that no word flips", "of those answered rightly")
    yield Card(f"{summary['words_that_flip_no_text']:,}", "words that flip no text", "put anywhere in any of them")
    yield Card(f"{summary['already_wrong']:,}", "already wrong", "left out")


def requirements(summary: Mapping[str, Any]) -> Iterator[Part]:
    asked = summary.get("requirements", ())
    if asked:
        made = tuple((one["sentence"], one["answer"]) for one in asked)
        grid = Grid("What was required of this run", ("required", "answer"), made,
                    "True or false as far as the ends of rho say it; else not settled.", "required")  # fmt: skip
        yield Part("Requirements", (), (grid,))


def dangerous(summary: Mapping[str, Any]) -> Part:
    """The words of greatest kappa and what they do to accuracy."""
    words = summary["highest_kappa"]
    names = sorted({name for one in words for name in one["by_class"]})
    first = Grid(
        "Words of greatest kappa",
        ("word", "kappa", "accuracy against it", *(f"flips of {name}" for name in names), "part of speech"),
        tuple(
            (
                one["word"], ends(one["low"], one["high"]), ratio(one["accuracy_against_it"]),
                *(ratio(one["by_class"].get(name)) for name in names), one["part_of_speech"] or "",
            )
            for one in words
        ),
        "Kappa: the share of texts answered rightly that the word flips, put in the place of any one word. Accuracy "
        "against it: texts answered rightly that it does not flip / all texts. Flips of a class: the share of its "
        "texts answered rightly that the word flips.",
    )  # fmt: skip
    second = Grid(
        "What they do to accuracy",
        ("word", "texts with it", "accuracy", "it removed", "texts without it", "accuracy", "it put in"),
        tuple(
            (
                one["word"], f"{one['texts_with_it']:,}", ratio(one["accuracy_with_it"]),
                ratio(one["accuracy_with_it_removed"]), f"{one['texts_without_it']:,}",
                ratio(one["accuracy_without_it"]), ratio(one["accuracy_with_it_put_in"]),
            )
            for one in words
        ),
        "As deployed, over all texts. Removed: every occurrence; put in: at the place where it does most harm.",
    )  # fmt: skip
    return Part("The most dangerous words", (), (first, second))


def spread(table: Sequence[Word], lines: Sequence[Mapping[str, Any]]) -> Part:
    step = max(1, len(table) // CURVE)
    points = tuple((float(place), low, high) for place, (_, low, high) in list(enumerate(table))[::step])
    shares = [line["words_that_flip_it"] / line["words"] for line in lines if line["words"]]
    return Part(
        "All words and all texts",
        (
            Figure("Words, most dangerous first", drawn_lines("kappa of all words", [Series("kappa", points)], "words"),
                   "kappa of every word; a band where it is an interval."),
            Figure("Words by kappa", drawn_histogram("Words by kappa", [low for _, low, _ in table], "kappa"),
                   "Words by the low end of kappa, in steps of 0.05."),
            Figure("Texts by share of words that flip them",
                   drawn_histogram("Texts by share of words", shares, "share of the words"),
                   "Texts answered rightly, in steps of 0.05."),
        ),
    )  # fmt: skip


def rows(table: Sequence[Word]) -> Rows:
    def each() -> Iterator[Row]:
        for place, (word, low, high) in enumerate(table):
            yield (place + 1, word, [low, high]), []

    return Rows(
        "The most dangerous first.",
        (Column("place", "number"), Column("word"), Column("kappa", "number")),
        len(table),
        each,
        "kappa: the share of texts that the word flips, as [low, high] where it is not known.",
        noun="words",
        opens=False,
    )


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
