"""What may stand in place of every word, frozen before an attack begins: other spaces than the task's own swaps."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.space import SwapSpace

from ..synonyms.filters import Filter, MaxPerWord, in_order
from ..synonyms.freezing import Freezing, FrozenText, digest_of
from ..tasks.inputs import Inputs, Text
from .recipes import Transformation
from .typing_errors import typing_errors

WORDS_OF_KAPPA = 50
Candidates = Callable[[Text], Sequence[Sequence[str]]]
"""For every word of a text, what may stand in its place."""


def refrozen(
    inputs: Inputs,
    transformation: Transformation,
    k_max: int | None,
    kappa: Path | None,
    language_model: Path | None,
    filters: Iterable[Filter] = (),
) -> Inputs:
    """The same texts with these spaces, of each word the first `k_max` candidates.

    `filters` are those of the task. They hold for other candidates than its own too, but for their number."""
    allowed = in_order(one for one in filters if not isinstance(one, MaxPerWord))
    match transformation:
        case "task":
            return (
                inputs
                if k_max is None
                else refilled(inputs, [fewer(text, k_max) for text in inputs.texts], inputs.source)
            )
        case "typos":
            return with_candidates(inputs, errors_of, k_max, "typing errors", allowed)
        case "words and typos":
            return with_candidates(inputs, words_and_errors, k_max, f"{inputs.source}, and typing errors", allowed)
        case "kappa":
            words = most_capable(kappa)
            return with_candidates(
                inputs, lambda text: [words] * len(text.frozen.words), k_max, "words by kappa", allowed
            )
        case "masked" | "in place":
            words_of = masked_words(language_model, in_place=transformation == "in place")
            return with_candidates(inputs, words_of, k_max, "a masked language model", allowed)


def with_candidates(
    inputs: Inputs, candidates: Candidates, k_max: int | None, source: str, filters: Sequence[Filter] = ()
) -> Inputs:
    spaces = [frozen(text, filtered(text, candidates(text), filters), k_max) for text in inputs.texts]
    return refilled(inputs, spaces, source)


def filtered(text: Text, candidates: Sequence[Sequence[str]], filters: Sequence[Filter]) -> list[list[str]]:
    words = [options[0] for options in text.frozen.words]
    found = [list(some) for some in candidates]
    for one in filters:
        for place, some in enumerate(found):
            if some:
                keeps = one.keeps(words, place, some)
                found[place] = [word for word, keep in zip(some, keeps, strict=True) if keep]
    return found


def refilled(inputs: Inputs, spaces: Sequence[FrozenText], source: str) -> Inputs:
    texts = tuple(replace(text, frozen=space) for text, space in zip(inputs.texts, spaces, strict=True))
    considered = sum(len(words) - 1 for space in spaces for words in space.words)
    freezing = Freezing(tuple(spaces), {}, {}, considered, (), digest_of(spaces))
    return replace(inputs, texts=texts, freezing=freezing, source=source, table={})


def fewer(text: Text, k_max: int) -> FrozenText:
    """The text's own space with the first candidates of every word."""
    own, choices = text.frozen, list(text.frozen.space.choices)
    for first, _ in text.encoded.places:
        choices[first] = choices[first][: k_max + 1]
    words = tuple(options[: k_max + 1] for options in own.words)
    return FrozenText(own.id, words, replace(own.space, choices=tuple(choices)))


def frozen(text: Text, candidates: Sequence[Sequence[str]], k_max: int | None) -> FrozenText:
    """Numbers of options stand for tokens: such spaces are put to the model as sentences."""
    words = tuple(
        (own[0], *list(dict.fromkeys(one for one in some if one and one != own[0]))[:k_max])
        for own, some in zip(text.frozen.words, candidates, strict=True)
    )
    return FrozenText(text.id, words, SwapSpace(tuple(tuple(range(len(options))) for options in words)))


def errors_of(text: Text) -> list[tuple[str, ...]]:
    return [typing_errors(options[0]) for options in text.frozen.words]


def words_and_errors(text: Text) -> list[tuple[str, ...]]:
    return [(*options[1:], *typing_errors(options[0])) for options in text.frozen.words]


def most_capable(file: Path | None) -> tuple[str, ...]:
    """The 50 words of the greatest kappa, by its high end and then by its low end, of a kappa.csv."""
    if file is None:
        raise BadInput("sp-attack needs --kappa FILE: the kappa.csv of `swapproof measure --quantity kappa`")
    try:
        with file.open(newline="", encoding="utf-8") as opened:
            rows = list(csv.DictReader(opened))
        ranked = sorted(rows, key=lambda row: (-float(row["high"]), -float(row["low"]), row["word"]))
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror})") from None
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise BadInput(f"{file}: not a kappa.csv with the columns word, low, high ({error})") from None
    return tuple(row["word"] for row in ranked[:WORDS_OF_KAPPA])


def masked_words(folder: Path | None, *, in_place: bool) -> Candidates:
    if folder is None:
        raise Unsupported(
            "this attack takes its candidates from a masked language model: give --language-model FOLDER, a model and "
            "its tokenizer as transformers saves them; none is downloaded"
        )
    from swapproof.models.language_models.masked_words import MaskedWords

    model = MaskedWords.open(folder, in_place=in_place)
    return lambda text: model.candidates(text.encoded.text, text.encoded.spans)
