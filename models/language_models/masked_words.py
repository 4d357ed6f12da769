"""Words that a masked language model proposes for every place of a text; the model lies in a local folder."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..encoded import Span
from ..errors import BadInput, Unsupported
from .opening_errors import why

PROPOSED = 50
"""Words for each place, as in BERT-Attack (48), BAE and CLARE (50)."""
AT_ONCE = 32
"""Texts in one batch."""
BEGINS = ("\u0120", "\u2581")
"""What a piece begins with that begins a word, in byte-pair and unigram vocabularies; WordPiece marks the others."""


@dataclass(frozen=True, eq=False)
class MaskedWords:
    """`in_place`: the word is left where it stands (BERT-Attack); else it is masked (BAE, CLARE)."""

    tokenizer: Any
    model: Any
    in_place: bool
    marks: bool
    """Whether pieces that begin a word are marked."""

    @classmethod
    def open(cls, folder: Path, *, in_place: bool) -> MaskedWords:
        missing = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
        if missing:
            raise Unsupported(f"a masked language model needs {', '.join(missing)}: pip install {' '.join(missing)}")
        if not (folder / "config.json").is_file():
            raise BadInput(
                f"{folder}: no config.json; give a folder with a model and its tokenizer; none is downloaded"
            )
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
            model = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True).eval()
        except Exception as error:  # transformers raises whatever its parts raise
            raise BadInput(
                f"{folder}: not a masked language model that transformers opens ({why(folder, error)})"
            ) from None
        if tokenizer.mask_token is None or not tokenizer.is_fast:
            raise BadInput(f"{folder}: its tokenizer has no mask, or does not say where its pieces stand")
        marks = any(piece.startswith(BEGINS) for piece in tokenizer.tokenize("a a"))
        return cls(tokenizer, model, in_place, marks)

    def candidates(self, text: str, spans: Sequence[Span]) -> list[tuple[str, ...]]:
        """For the words at these characters of the text, the likeliest whole words first."""
        mask = self.tokenizer.mask_token
        words = [text[start:end] for start, end in spans]
        if self.in_place:
            given = [(text, start) for start, _ in spans]
        else:
            given = [(f"{text[:start]}{mask}{text[end:]}", start) for start, end in spans]
        found: list[tuple[str, ...]] = []
        for first in range(0, len(given), AT_ONCE):
            found += self.proposed(given[first : first + AT_ONCE])
        return [
            tuple(one for one in some if one.lower() != own.lower()) for some, own in zip(found, words, strict=True)
        ]

    def proposed(self, given: Sequence[tuple[str, int]]) -> list[tuple[str, ...]]:
        """For (text, character): whole words at the piece that holds this character; none where it was cut off."""
        import torch

        texts = [text for text, _ in given]
        read = self.tokenizer(texts, padding=True, truncation=True, return_offsets_mapping=True, return_tensors="pt")
        places = read.pop("offset_mapping").tolist()
        with torch.inference_mode():
            logits = self.model(**read).logits
        found = []
        for row, (_, character) in enumerate(given):
            piece = next((at for at, (a, b) in enumerate(places[row]) if a <= character < b), None)
            ranked = [] if piece is None else logits[row, piece].argsort(descending=True)[: 8 * PROPOSED].tolist()
            found.append(tuple(word for id in ranked if (word := self.whole_word(id)) is not None)[:PROPOSED])
        return found

    def whole_word(self, id: int) -> str | None:
        """What a piece of the vocabulary is as a word; None of parts of words, marks and special tokens."""
        piece = self.tokenizer.convert_ids_to_tokens(id)
        if id in self.tokenizer.all_special_ids:
            return None
        if self.marks and not piece.startswith(BEGINS):
            return None
        word = piece.lstrip("".join(BEGINS))
        return word if word.isalpha() else None
