"""What a run of `measure --quantity kappa` writes: the table of words, the summary, the figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Unsupported

from ..synonyms.part_of_speech import same_part_of_speech
from .kappa import DEFINITION, DEVIATIONS, Kappa, population_interval

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
) -> dict[str, Any]:
    """`flipped` [texts of D+, words], `labels` [texts of D+]; `texts` were asked for; `about` says how it was found."""
    low, high = kappa.rho
    return {
        "quantity": "kappa",
        "rho": {"low": float(low), "high": float(high)},
        "rho_exact": [str(low), str(high)],
        "texts": texts,
        "answered_correctly": kappa.texts,
        "words": len(kappa.words),
        "accuracy": kappa.texts / texts,
        "rho_of_the_distribution": population_interval(kappa.shares),
        "texts_no_word_flips": int((~flipped.any(axis=1)).sum()),
        "words_that_flip_no_text": int((kappa.high == 0).sum()),
        "highest_kappa": dangerous(kappa, flipped, labels, names, texts),
        **about,
        "definition": DEFINITION,
        "deviations_from_the_paper": list(DEVIATIONS),
    }


def dangerous(
    kappa: Kappa, flipped: NDArray[np.bool_], labels: NDArray[np.int64], names: Sequence[str], texts: int
) -> list[dict[str, Any]]:
    """The words of greatest kappa, the share of each class they flip, and the accuracy when anyone may use one."""
    rows = kappa.table()[:TOP]
    tags = parts_of_speech([word for word, _, _ in rows])
    found = []
    for (word, low, high), tag in zip(rows, tags, strict=True):
        column = flipped[:, kappa.words.index(word)]
        by_class = {
            name: round(float(column[labels == label].mean()), 6)
            for label, name in enumerate(names)
            if (labels == label).any()
        }
        after = (kappa.texts - int(column.sum())) / texts
        found.append(
            {"word": word, "low": low, "high": high, "part_of_speech": tag, "by_class": by_class,
             "accuracy_against_it": round(after, 6)}
        )  # fmt: skip
    return found


def parts_of_speech(words: Sequence[str]) -> list[str | None]:
    """Of words by themselves, by the tagger that is installed; None without one."""
    try:
        tagger = same_part_of_speech().tagger
    except Unsupported:
        return [None] * len(words)
    return [tags[0] for tags in tagger([[word] for word in words])]


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
        from ..counting.plots import INK, SHADE, new_figure, save

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
