"""The tokenizer of a Hugging Face folder as one tokenizer.json that gives what calling the tokenizer gives.

A call of a transformers tokenizer sets truncation and padding itself, whatever tokenizer.json says of them, and some
tokenizer classes build their rules anew from the vocabulary alone. So the file is written from the tokenizer as it was
loaded, and compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from ..errors import BadInput, Unsupported, one_line
from .checkpoint_folder import Checkpoint
from .torch_modules import quiet

Side = Literal["left", "right"]
Texts = tuple[str, ...]
"""One text, or the two of a pair."""
NO_LIMIT = 10**6
"""Above this, model_max_length means that nobody said any."""
AWKWARD = (
    "",
    "  two  spaces\tand a tab\n",
    "ÀÉÎ Ünïcode naïve İstanbul",
    "don't stop-now (really)!?",
    "ﬁne ½ ①",
    "日本語 text",
)


@dataclass(frozen=True, eq=False)
class FastTokenizer:
    """`called` is the transformers tokenizer, `length` the number of tokens to which a call cuts."""

    source: str
    called: Any
    length: int | None
    side: Side

    def cut_to(self, length: int | None) -> FastTokenizer:
        return replace(self, length=length)

    def padded_on(self, side: Side) -> FastTokenizer:
        return replace(self, side=side)

    @cached_property
    def ready(self) -> Any:
        """Of the library `tokenizers`: cuts as a call does, and pads a batch to its longest."""
        from tokenizers import Tokenizer

        ready = Tokenizer.from_str(self.called.backend_tokenizer.to_str())
        return self._set(ready)

    @property
    def content(self) -> str:
        """The text of a tokenizer.json."""
        return str(self.ready.to_str(pretty=False))

    @cached_property
    def ids(self) -> dict[str, int]:
        return dict(self.called.backend_tokenizer.get_vocab(with_added_tokens=True))

    @property
    def highest_id(self) -> int:
        return max(self.ids.values())

    def tokens_from(self, id: int) -> set[str]:
        """Those with this id or a higher one."""
        return {token for token, number in self.ids.items() if number >= id}

    @property
    def settings(self) -> dict[str, object]:
        """What tokenizer_config.json says of the same."""
        said = {"padding_side": self.side, "truncation_side": self.called.truncation_side}
        return said if self.length is None else {**said, "model_max_length": self.length}

    def encode(self, sentences: Sequence[Texts]) -> list[Any]:
        """Padded to the longest."""
        return list(self.ready.encode_batch([given if len(given) > 1 else given[0] for given in sentences]))

    def alone(self, texts: Texts) -> dict[str, list[int]]:
        """What a call with truncation gives for one sentence, in a list: a call without drops an empty second text."""
        cut = {"truncation": True, "max_length": self.length} if self.length is not None else {}
        with quiet():
            called = self.called(*([text] for text in texts), return_attention_mask=True, **cut)
        return {name: rows[0] for name, rows in called.items()}

    def check(self, sentences: Sequence[Texts]) -> None:
        """The file gives what a call gives."""
        for texts in sentences:
            called = self.alone(texts)
            encoding = self.encode([texts])[0]
            types = called.get("token_type_ids")
            if encoding.ids != called["input_ids"] or (types is not None and encoding.type_ids != types):
                name = type(self.called).__name__
                raise Unsupported(
                    f"{self.source}: {name} reads {' / '.join(texts)[:40]!r} otherwise than a tokenizer.json can say"
                )

    def differs(self, other: str, sentences: Sequence[Texts]) -> int:
        """For how many sentences the tokenizer.json with this content gives other tokens."""
        from tokenizers import Tokenizer

        asked = [given if len(given) > 1 else given[0] for given in sentences]
        theirs = self._set(Tokenizer.from_str(other)).encode_batch(asked)
        return sum(a.ids != b.ids for a, b in zip(theirs, self.encode(sentences), strict=True))

    def _set(self, tokenizer: Any) -> Any:
        if self.length is None:
            tokenizer.no_truncation()
        else:
            tokenizer.enable_truncation(self.length, strategy="longest_first", direction=self.called.truncation_side)
        tokenizer.enable_padding(
            direction=self.side,
            pad_id=self.called.pad_token_id,
            pad_type_id=self.called.pad_token_type_id,
            pad_token=self.called.pad_token,
        )
        return tokenizer


def load_tokenizer(checkpoint: Checkpoint) -> FastTokenizer:
    from transformers import AutoTokenizer

    folder = checkpoint.folder
    try:
        with quiet():
            called = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the libraries raise all kinds
        raise BadInput(f"{folder}: its tokenizer cannot be loaded: {one_line(error)[:200]}") from error
    name = type(called).__name__
    if getattr(called, "backend_tokenizer", None) is None:
        raise Unsupported(f"{folder}: {name} is written in Python only; tokenizers with a tokenizer.json are run")
    if getattr(called, "split_special_tokens", False):
        raise Unsupported(f"{folder}: split_special_tokens is something that no tokenizer.json can say")
    if called.pad_token_id is None:
        raise BadInput(f"{folder}: names no padding token; set pad_token in tokenizer_config.json")
    if set(called.get_vocab().values()) <= set(called.all_special_ids):  # what classes make of nothing
        raise BadInput(f"{folder}: {name} finds no vocabulary in it: save its tokenizer anew (save_pretrained)")
    length = called.model_max_length if called.model_max_length < NO_LIMIT else None
    return FastTokenizer(str(folder), called, length, "left" if called.padding_side == "left" else "right")


def made_up(tokenizer: FastTokenizer, fields: int, longest: int, number: int = 48) -> list[Texts]:
    """Sentences of words drawn from the vocabulary, short ones and one that is cut."""
    import numpy as np

    generator = np.random.default_rng(0)
    special = set(tokenizer.called.all_special_ids)
    ids = sorted({*tokenizer.ids.values()} - special)

    def text(words: int) -> str:
        drawn = [ids[place] for place in generator.integers(len(ids), size=words).tolist()]
        return " ".join(tokenizer.called.backend_tokenizer.decode([word]).strip() for word in drawn)

    sizes = [*(1 + index % 24 for index in range(number - 1)), longest]
    return [tuple(text(max(1, size // (field + 1))) for field in range(fields)) for size in sizes]


def awkward(tokenizer: FastTokenizer, fields: int) -> list[Texts]:
    """Texts that tokenizers of one vocabulary read in different ways."""
    added = " ".join(str(token) for token in tokenizer.called.all_special_tokens)
    return [tuple(text for _ in range(fields)) for text in (*AWKWARD, f"a {added} b")]


def own_file(checkpoint: Checkpoint) -> str | None:
    """The content of the folder's tokenizer.json."""
    path = checkpoint.folder / "tokenizer.json"
    if not path.exists():
        return None
    return path.read_text(encoding="utf-8")
