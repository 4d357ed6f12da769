"""A Hugging Face tokenizer.json as a vocabulary whose words may take several tokens."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from .encoded import Encoded, Span, check_length, constants_of, empty, spans_of
from .errors import BadInput, Unsupported, one_line


@dataclass(frozen=True, eq=False)
class TokenizerVocabulary:
    """A Hugging Face tokenizer.json: a word is one piece of its pre-tokenisation, and may take several tokens.

    Truncation and padding are what the file says, their lengths and padding token overridden by ours. Special tokens
    stay in `tokens` and are no words. `content` is the file's text. `cut` says where texts are cut, whatever the file
    says; `disputed` are lengths that files beside each other say, so that no longer text can be read.
    """

    source: str
    content: str
    pad: str | None = None
    unknown: str | None = None
    lowercase: bool = False
    pad_side: str | None = None
    cut_side: str | None = None
    cut: int | None = None
    disputed: str | None = None
    skips_padding: bool = False
    """Whether its models count positions as RoBERTa does."""
    _ready: dict[int | None, Any] = field(default_factory=dict, init=False, repr=False)
    _known: dict[str, tuple[int, ...] | None] = field(default_factory=dict, init=False, repr=False)

    follows_case: ClassVar[bool] = False

    @cached_property
    def size(self) -> int:
        """The highest id + 1."""
        return int(max(self._whole.get_vocab(with_added_tokens=True).values())) + 1

    @property
    def self_contained(self) -> bytes | None:
        """A tokenizer.json that says the same without other files; None where the file is one."""
        same = Path(self.source).read_bytes().decode("utf-8-sig") == self.content
        return None if same else self.content.encode()

    def encode(self, text: str, length: int | None = None) -> Encoded:
        """At most and, padded, exactly `length` tokens; when None, as many as the file says."""
        check_length(length)
        whole = self._run(self._whole, text)
        everything = self._words(whole, text)
        if not everything:
            raise empty(text)
        tokenizer = self._at(length)
        if self.disputed is not None and len(whole.ids) > tokenizer.truncation["max_length"]:
            raise BadInput(
                f"a text of {len(whole.ids)} tokens: {self.disputed}; set length to where the deployed code cuts"
            )
        encoding = self._run(tokenizer, text)
        tokens = tuple(encoding.ids)
        if length is not None and len(tokens) < length:
            raise BadInput(
                f"{self.source}: names no padding token, which a text of {len(tokens)} tokens needs: set pad"
            )
        # A word that the cut went through keeps some tokens in the input, but is a word no longer.
        kept = {
            span: places
            for span, places in self._words(encoding, text).items()
            if len(places) == len(everything.get(span, ()))
        }
        return Encoded(
            text=text,
            words=tuple(text[start:end] for start, end in kept),
            spans=tuple(kept),
            tokens=tokens,
            places=tuple((places[0], len(places)) for places in kept.values()),
            cut=len(everything) - len(kept),
            unknown=tuple(
                index
                for index, places in enumerate(kept.values())
                if any(tokens[place] in self._reserved for place in places)
            ),
            whole=tuple(everything),
            constants=constants_of(tuple(encoding.attention_mask), tuple(encoding.type_ids)),
        )

    def splits(self, word: str) -> bool:
        """Never: a tokenizer has no entries but its tokens."""
        return False

    def tokens_of(self, word: str) -> tuple[int, ...] | None:
        """The ids a replacement word takes wherever it stands; None when it is unknown, reserved, or not one word.

        None also when the ids depend on what stands before the word (byte-level tokenizers mark a preceding space):
        a swap of tokens would then not be the swap of words that it claims to be.
        """
        if word not in self._known:
            self._known[word] = self._tokens_of(word)
        return self._known[word]

    def in_place(self, text: str) -> tuple[list[int], dict[Span, list[int]]]:
        """All ids of a text, neither cut nor padded, and the places of each word among them."""
        encoding = self._run(self._whole, text)
        return list(encoding.ids), self._words(encoding, text)

    def ids_of(self, texts: Sequence[str]) -> list[list[int]]:
        """All ids of each of these, neither cut nor padded."""
        try:
            found = self._whole.encode_batch_fast([self._folded(text) for text in texts])
        except Exception as error:  # the library raises nothing narrower
            raise BadInput(f"{self.source}: cannot encode {texts[0][:40]!r}: {one_line(error)}") from error
        return [list(encoding.ids) for encoding in found]

    def _folded(self, text: str) -> str:
        # Character by character would lose the final sigma, and whole texts the places: the lengths agree either way.
        return "".join(piece.lower() for piece in re.split(r"(\s+)", text)) if self.lowercase else text

    def _tokens_of(self, word: str) -> tuple[int, ...] | None:
        found: set[tuple[int, ...]] = set()
        for before, after, possible in (("", "", True), ("a ", " a", True), ("(", ")", False)):
            text = before + word + after
            encoding = self._run(self._whole, text, special=False)
            places = self._words(encoding, text).get((len(before), len(before) + len(word)))
            if places:
                found.add(tuple(encoding.ids[place] for place in places))
            elif possible:
                return None
        if len(found) != 1:
            return None
        tokens = found.pop()
        return None if self._reserved.intersection(tokens) else tokens

    def _words(self, encoding: Any, text: str) -> dict[Span, list[int]]:
        """The character span of every word in `text`, with the indices of its tokens.

        Tokens belong together when the tokenizer says so and no white space lies between them. White space that a
        token carries in front is not part of the word.
        """
        origin = self._origin(text)
        ends = [end for _, end in spans_of(text, "whitespace")]
        groups: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for place, (word, (start, end)) in enumerate(zip(encoding.word_ids, encoding.offsets, strict=True)):
            if word is None:  # a special token or padding
                continue
            covered = [index for index in origin[start:end] if not text[index].isspace()]
            first = origin[start] if start < len(origin) else len(text)
            characters, places = groups.setdefault((word, bisect_right(ends, first)), ([], []))
            characters.extend(covered)
            places.append(place)
        return {(min(characters), max(characters) + 1): places for characters, places in groups.values() if characters}

    def _run(self, tokenizer: Any, text: str, special: bool = True) -> Any:
        try:
            return tokenizer.encode(self._folded(text), add_special_tokens=special)
        except Exception as error:  # the library raises nothing narrower
            raise BadInput(f"{self.source}: cannot encode {text[:40]!r}: {one_line(error)}") from error

    def _origin(self, text: str) -> Sequence[int]:
        """For every character the tokenizer sees, the index of the one it comes from: 'İ' becomes two."""
        if not self.lowercase:
            return range(len(text))
        return [index for index, character in enumerate(text) for _ in character.lower()]

    @cached_property
    def stored(self) -> Mapping[str, Any]:
        """What the file says."""
        found: dict[str, Any] = json.loads(self.content)
        return found

    @cached_property
    def _whole(self) -> Any:
        tokenizer = tokenizer_of(self.content, self.source)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def _at(self, length: int | None) -> Any:
        """The tokenizer set to cut and pad to `length`."""
        if length in self._ready:
            return self._ready[length]
        tokenizer = tokenizer_of(self.content, self.source)
        padding = tokenizer.padding or {}
        truncation = tokenizer.truncation or {}
        stated = truncation.get("max_length")
        limits = (length, self.cut) if self.cut is not None else (length, stated)
        limit = min((one for one in limits if one is not None), default=None)
        if limit is not None:
            special = tokenizer.num_special_tokens_to_add(False)
            if limit <= special:
                raise BadInput(
                    f"{self.source}: adds {special} special tokens, which leaves no room in a length of {limit}"
                )
            tokenizer.enable_truncation(limit, direction=self.cut_side or truncation.get("direction", "right"))
        identity = padding.get("pad_id") if self.pad is None else tokenizer.token_to_id(self.pad)
        wanted = bool(padding) or length is not None
        if wanted and identity is None and self.pad is not None:
            raise BadInput(f"{self.source}: has no padding token {self.pad!r}")
        if wanted and identity is not None:
            tokenizer.enable_padding(
                direction=self.pad_side or padding.get("direction", "right"),
                pad_id=identity,
                length=length if length is not None else padding.get("length"),
                pad_to_multiple_of=None if length is not None else padding.get("pad_to_multiple_of"),
            )
        self._ready[length] = tokenizer
        return tokenizer

    @cached_property
    def _reserved(self) -> frozenset[int]:
        """Ids that are no words: padding, the unknown token, special tokens."""
        stored = self.stored
        model = stored["model"]
        padding = stored.get("padding") or {}
        names = {self.pad, self.unknown, model.get("unk_token"), padding.get("pad_token")}
        names |= {token["content"] for token in stored.get("added_tokens") or () if token.get("special")}
        ids = {self._whole.token_to_id(name) for name in names if name is not None} - {None}
        return frozenset(ids | ({model["unk_id"]} if isinstance(model.get("unk_id"), int) else set()))


def tokenizer_of(content: str, source: str) -> Any:
    """The tokenizer of this JSON text."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise Unsupported(f"{source}: a tokenizer.json needs the package tokenizers: pip install tokenizers") from error
    try:
        return Tokenizer.from_str(content)
    except Exception as error:  # the library raises nothing narrower
        raise BadInput(f"{source}: not a tokenizer.json that `tokenizers` can read: {one_line(error)}") from error
