"""A Hugging Face tokenizer as it is deployed: whole sentences, or pairs of them, with special tokens, cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...encoded import check_length
from ...errors import BadInput, one_line
from ...subwords import tokenizer_of
from ...vocabulary_files import BLANKS, CONFIG, TokenizerFile, disagreeing
from ..swapped_text import Fields
from .token_rows import FEW, Ids, Limit, Padding, TokenRows


@dataclass(frozen=True, eq=False)
class SubwordRows:
    """`length` is what the task says that texts are cut and padded to, `fixed` the length of the model's input where it
    has one, `fields` the number of texts that are joined."""

    path: Path
    file: TokenizerFile
    length: int | None = None
    fixed: int | None = None
    pad: str | None = None
    lowercase: bool = False
    fields: int = 1
    table: int | None = None
    types: bool = False
    """Whether the model reads which text of a pair a token belongs to."""

    def __post_init__(self) -> None:
        if self.content.get("model", {}).get("dropout"):
            raise BadInput(f"{self.path}: draws its merges by lot (model.dropout): no text has one reading")
        if self.length is not None:
            check_length(self.length)
            special = self.whole.num_special_tokens_to_add(self.fields > 1)
            if self.length <= special:
                raise BadInput(
                    f"{self.path}: adds {special} special tokens, which leaves no room in a length of {self.length}"
                )
        highest = max(self.whole.get_vocab(with_added_tokens=False).values(), default=0)
        if self.table is not None and highest >= self.table:
            raise BadInput(
                f"{self.path}: {self.shown(highest)!r} has the id {highest}, and the model's table {self.table} rows: "
                "this is the tokenizer of another model"
            )
        if self.pad is not None and self.whole.token_to_id(self.pad) is None:
            raise BadInput(f"{self.path}: has no padding token {self.pad!r}")

    @cached_property
    def content(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.file.content)
        return read

    @cached_property
    def whole(self) -> Any:
        """Neither cutting nor padding."""
        tokenizer = tokenizer_of(self.file.content, str(self.path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def limit(self) -> Limit:
        """Where the deployed code cuts, as far as the files and the task say it."""
        if self.length is not None:
            return Limit(at=self.length)
        said = self.file.said_lengths(self.path.name)
        shortest = min(said.values(), default=None)
        key = "set length to where the deployed code cuts"
        if self.fixed is not None and (shortest is None or shortest > self.fixed):
            return Limit(most=self.fixed, why=f"the model reads {self.fixed}; {key}")
        if len(set(said.values())) > 1:
            return Limit(most=shortest, why=f"{disagreeing(said)}; {key}")
        return Limit(at=shortest)

    @cached_property
    def cutting(self) -> Any:
        """The tokenizer that cuts."""
        if self.limit.at is None:
            return self.whole
        tokenizer = tokenizer_of(self.file.content, str(self.path))
        tokenizer.no_padding()
        own = tokenizer.truncation or {}
        tokenizer.enable_truncation(
            self.limit.at,
            strategy=own.get("strategy", "longest_first"),
            direction=self.file.cut_side or own.get("direction", "right"),
        )
        return tokenizer

    @cached_property
    def padding(self) -> Padding:
        own = self.content.get("padding") or {}
        strategy = own.get("strategy")
        stated = strategy.get("Fixed") if isinstance(strategy, dict) else None
        width = self.length or self.fixed or stated
        identity = own.get("pad_id") if self.pad is None else self.whole.token_to_id(self.pad)
        if identity is None and width is not None:
            raise BadInput(
                f"{self.path}: names no padding token, which texts shorter than {width} tokens need: set pad"
            )
        return Padding(
            id=identity or 0,
            type=own.get("pad_type_id") or 0,
            left=(self.file.pad_side or str(own.get("direction", "")).lower()) == "left",
            width=width,
            multiple=1 if self.length or self.fixed else own.get("pad_to_multiple_of") or 1,
        )

    @property
    def first_position(self) -> int | None:
        """RoBERTa counts from the id of its padding on, and gives the padding that id."""
        return self.padding.id + 1 if self.file.skips_padding else None

    @cached_property
    def separators(self) -> str:
        return BLANKS if reads_apart(self.content) else ""

    @property
    def remarks(self) -> tuple[str, ...]:
        return self.file.remarks

    @property
    def files(self) -> tuple[tuple[str, Path], ...]:
        beside = [] if self.file.config is None else [(CONFIG, self.file.config)]
        return ((f"vocabulary{self.path.suffix.lower()}", self.path), *beside)

    @cached_property
    def words(self) -> tuple[str, ...]:
        special = {token["content"] for token in self.content.get("added_tokens") or ()}
        marks = str.maketrans("", "", "#▁Ġ")
        read = (token.translate(marks) for token in sorted(self.whole.get_vocab()) if token not in special)
        words = [word for word in read if word.isalpha()] or ["a"]
        return tuple(words[int(index)] for index in np.random.default_rng(0).integers(len(words), size=FEW))

    def rows(self, sentences: Sequence[Fields]) -> TokenRows:
        read = self.read(self.cutting, sentences)
        self.limit.check(read.sizes)
        return read

    def uncut(self, sentences: Sequence[Fields]) -> TokenRows:
        return self.read(self.whole, sentences)

    def plain(self, read: TokenRows) -> bool:
        """Added tokens are found before all others. Some take the white space beside them; where pieces carry white
        space, texts begin and end at any of them. Such may only stand where they are put around every text."""
        carried = any(step.get("type") == BYTES for step in _steps(self.content.get("pre_tokenizer"), "pretokenizers"))
        every = self.content.get("added_tokens") or ()
        added = [token["id"] for token in every if carried or token.get("lstrip") or token.get("rstrip")]
        around = self.uncut([("",) * self.fields])
        found = np.concatenate([[0], np.cumsum(np.isin(read.ids, added))])
        counts = found[read.starts + read.sizes] - found[read.starts]
        return bool((counts == np.isin(around.ids, added).sum()).all())

    def fitted(self, read: TokenRows, spell: Callable[[Ids], Sequence[Fields]]) -> TokenRows:
        self.limit.check(read.sizes)
        if self.limit.at is None or not (read.sizes > self.limit.at).any():
            return read
        long = np.flatnonzero(read.sizes > self.limit.at)
        return read.replaced(long, self.rows(spell(long)))

    def shown(self, identity: int) -> str:
        return str(self.whole.id_to_token(identity) or "")

    def unknown_in(self, sentences: Sequence[Fields]) -> tuple[int, int]:
        """Without the special tokens around."""
        model = self.content.get("model", {})
        identity = model.get("unk_id")
        if identity is None and model.get("unk_token") is not None:
            identity = self.whole.token_to_id(model["unk_token"])
        read = self.uncut(sentences)
        total = len(read.ids) - len(sentences) * self.whole.num_special_tokens_to_add(self.fields > 1)
        return 0 if identity is None else int((read.ids == identity).sum()), total

    def read(self, tokenizer: Any, sentences: Sequence[Fields]) -> TokenRows:
        folded = [tuple(map(str.lower, fields)) for fields in sentences] if self.lowercase else sentences
        given = [fields[0] if len(fields) == 1 else fields for fields in folded]
        # The fast one leaves out offsets, and of pairs that no post-processor joins which text a token is of.
        encode = tokenizer.encode_batch if self.types and self.fields > 1 else tokenizer.encode_batch_fast
        try:
            encodings = encode(given)
        except Exception as error:  # the library raises nothing narrower
            raise BadInput(
                f"{self.path}: cannot encode {self.unreadable(tokenizer, given)}: {one_line(error)}"
            ) from error
        types = [encoding.type_ids for encoding in encodings] if self.types else None
        return TokenRows.of([encoding.ids for encoding in encodings], types)

    def unreadable(self, tokenizer: Any, given: Sequence[Any]) -> str:
        """The first of the sentences that cannot be read."""
        for sentence in given:
            try:
                tokenizer.encode_batch_fast([sentence])
            except Exception:
                shown = sentence if isinstance(sentence, str) else " | ".join(sentence)
                return repr(shown[:40])
        return "these texts together"


# --- which tokenizers read the parts of a text one by one ---------------------------------------------------------

BYTES = "ByteLevel"
SPLITTING = frozenset({"BertPreTokenizer", "Whitespace", "WhitespaceSplit"})
"""Pre-tokenisers that always split at white space, and leave it out."""
INSIDE = SPLITTING | {"Punctuation", "Digits"}
"""Pre-tokenisers that split what they are given further, looking no further than that."""
CHARACTERS = frozenset({"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents"})
"""Normalisers that change characters, with the marks combined with them, and nothing across white space."""
MODELS = frozenset({"WordLevel", "WordPiece", "BPE", "Unigram"})
"""Models that read every piece of the pre-tokenisation by itself."""
FRAMES = frozenset({"TemplateProcessing", "BertProcessing", "RobertaProcessing", BYTES})
"""Post-processors that put special tokens around what was read."""


def reads_apart(content: dict[str, Any]) -> bool:
    """Whether parts of a text between white space are read without regard to each other, by the tokenizer's own parts.

    Only known ones count. White space must stand between the parts before and after a swap: no part may begin with it,
    end with it or be empty. Byte-level pieces carry the one space before them, which does not move.
    """
    for token in content.get("added_tokens") or ():
        spelt = token.get("content", " ")
        # What is normalised before it is compared may get white space there.
        if any(map(str.isspace, spelt)) or (token.get("normalized") and not spelt.isascii()):
            return False
    normalisers = [step.get("type") for step in _steps(content.get("normalizer"), "normalizers")]
    splitters = _steps(content.get("pre_tokenizer"), "pretokenizers")
    framed = all(step.get("type") in FRAMES for step in _steps(content.get("post_processor"), "processors"))
    if not splitters or not framed or content.get("model", {}).get("type") not in MODELS:
        return False
    if splitters[0].get("type") == BYTES:
        return len(splitters) == 1 and splitters[0].get("use_regex", True) and set(normalisers) <= {"NFC"}
    return (
        set(normalisers) <= CHARACTERS
        and splitters[0].get("type") in SPLITTING
        and all(step.get("type") in INSIDE for step in splitters)
    )


def _steps(part: Any, name: str) -> list[dict[str, Any]]:
    """One part, or those of a sequence of them."""
    if not part:
        return []
    if part.get("type") == "Sequence":
        return [step for inner in part.get(name, ()) for step in _steps(inner, name)]
    return [part]
