"""What a run of `measure --quantity kappa` writes: the table of words, the summary, the figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kappa import DEFINITION, DEVIATIONS, Kappa, population_interval
from .word_effects import MOST_WORDS, count_parts_of_speech, parts_of_speech

Effect = Callable[[int], Mapping[str, Any]]
"""What the word of this number does to accuracy."""

TOP = 20
"""Words of greatest kappa shown with what they do."""
LISTED = 100
"""Words of several tokens listed by name."""


def summary_of(
    kappa: Kappa,
    flipped: NDArray[np.bool_],
    labels: NDArray[np.int64],
    names: Sequence[str],
    texts: int,
    about: Mapping[str, Any],
    effect: Effect,
) -> dict[str, Any]:
    """`flipped` [texts of D+, words], `labels` [texts of D+]; `texts` were asked for; `about` says how it was found."""
    low, high = kappa.rho
    answered = kappa.texts - about["ambiguous"]
    return {
        "quantity": "kappa",
        "rho": {"low": float(low), "high": float(high)},
        "rho_exact": [str(low), str(high)],
        "texts": texts,
        "answered_correctly": answered,
        "words": len(kappa.words),
        "accuracy": answered / texts,
        "rho_of_the_distribution": population_interval(kappa.least, kappa.most),
        "texts_no_word_flips": int((kappa.most == 0).sum()),
        "words_that_flip_no_text": int((kappa.high == 0).sum()),
        "highest_kappa": dangerous(kappa, flipped, labels, names, texts, effect),
        "parts_of_speech": count_parts_of_speech([word for word, _, _ in kappa.table()[:MOST_WORDS]]),
        **about,
        "definition": DEFINITION,
        "deviations_from_the_paper": list(DEVIATIONS),
    }


def dangerous(
    kappa: Kappa,
    flipped: NDArray[np.bool_],
    labels: NDArray[np.int64],
    names: Sequence[str],
    texts: int,
    effect: Effect,
) -> list[dict[str, Any]]:
    """The words of greatest kappa, the share of each class they flip, and what they do to accuracy."""
    rows = kappa.table()[:TOP]
    _, tags = parts_of_speech([word for word, _, _ in rows])
    found = []
    for (word, low, high), tag in zip(rows, tags, strict=True):
        number = kappa.words.index(word)
        column = flipped[:, number]
        by_class = {
            name: round(float(column[labels == label].mean()), 6)
            for label, name in enumerate(names)
            if (labels == label).any()
        }
        after = (len(column) - int(column.sum())) / texts
        found.append(
            {"word": word, "low": low, "high": high, "part_of_speech": tag, "by_class": by_class,
             "accuracy_against_it": round(after, 6), **effect(number)}
        )  # fmt: skip
    return found


def csv_of(kappa: Kappa) -> bytes:
    """kappa.csv: word, low, high; greatest first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("word", "low", "high"))
    writer.writerows(kappa.table())
    return text.getvalue().encode()


def write_parquet(kappa: Kappa, file: Path) -> bool:
    """The same as a Parquet file, if pyarrow is installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return False
    words, low, high = (list(column) for column in zip(*kappa.table(), strict=True))
    pyarrow.parquet.write_table(pyarrow.table({"word": words, "low": low, "high": high}), file)
    return True


def draw(kappa: Kappa, file: Path) -> bool:
    """kappa of all words, greatest first, and how it is distributed, if matplotlib is installed."""
    try:
        from ..pages.pr_plots import INK, SHADE, new_figure, save

        figure, (left, right) = new_figure(2)
    except ImportError:
        return False
    rows = kappa.table()
    left.plot([high for _, _, high in rows], color=SHADE)
    left.plot([low for _, low, _ in rows], color=INK)
    left.set_xlabel("words, most dangerous first")
    left.set_ylabel("kappa")
    right.hist([low for _, low, _ in rows], bins=40, color=INK)
    right.set_xlabel("kappa")
    right.set_ylabel("words")
    save(figure, file)
    return True
