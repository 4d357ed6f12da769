"""Vocabulary files as they lie on disk: words in JSON or one a line, tokenizers of Keras, BERT and Hugging Face."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .encoded import Pattern, Split
from .errors import BadInput, Unsupported, one_line, unreadable
from .readers import KeyTwice, keys_once

CONFIG = "tokenizer_config.json"
"""What Hugging Face keeps beside a tokenizer: its padding token and sides, and the longest text of the model."""
UNBOUNDED = 1_000_000
"""A `model_max_length` above it says that nobody knows."""


@dataclass(frozen=True, eq=False)
class WordFile:
    """Word -> id. `split`, `lowercase` and `unknown` only where the file itself says them (Keras)."""

    ids: Mapping[str, int]
    split: Split | None = None
    lowercase: bool | None = None
    unknown: str | None = None


@dataclass(frozen=True, eq=False)
class TokenizerFile:
    """`content` is a tokenizer.json, with the padding token that its tokenizer_config.json names, where it has none."""

    content: str
    longest: int | None = None
    """Of the model, by the same; the sides too."""
    pad_side: str | None = None
    cut_side: str | None = None
    config: Path | None = None
    family: str = ""
    """The class of Hugging Face's that reads it."""
    remarks: tuple[str, ...] = ()

    def said_lengths(self, name: str) -> dict[str, int]:
        """By file, the longest text of the model; `name` is that of the tokenizer."""
        own = (json.loads(self.content).get("truncation") or {}).get("max_length")
        told = {name: own, CONFIG: self.longest}
        return {file: length for file, length in told.items() if isinstance(length, int)}

    @property
    def skips_padding(self) -> bool:
        """Whether positions are counted as RoBERTa does: from the id of its padding on, which the padding keeps."""
        steps = _steps(json.loads(self.content).get("post_processor"))
        roberta = any(step.get("type") == "RobertaProcessing" for step in steps)
        return roberta or any(name in self.family.lower() for name in ("roberta", "camembert", "xlm-r"))

    def settled(self, pad: str | None) -> str:
        """A tokenizer.json that says by itself what the settings beside it say: sides, and where texts are cut."""
        content = json.loads(self.content)
        padding, truncation = content.get("padding"), content.get("truncation")
        shortest = min(self.said_lengths("").values(), default=None)
        if padding is None and pad is not None and self.pad_side is not None:
            padding = content["padding"] = _padding(content, pad, 0)
        if self.pad_side is not None and isinstance(padding, dict):
            padding["direction"] = self.pad_side.capitalize()
        if shortest is not None or self.cut_side is not None:
            plain: dict[str, Any] = {"strategy": "LongestFirst", "stride": 0}
            stated = truncation if isinstance(truncation, dict) else plain
            content["truncation"] = {
                **stated,
                "direction": (self.cut_side or stated.get("direction", "Right")).capitalize(),
                "max_length": UNBOUNDED if shortest is None else shortest,
            }
        return self.content if content == json.loads(self.content) else json.dumps(content, ensure_ascii=False)


def disagreeing(said: Mapping[str, int]) -> str:
    """Lengths by the files that say them."""
    return " and ".join(f"{name} says {length}" for name, length in said.items())


def read_vocabulary_file(path: Path) -> WordFile | TokenizerFile:
    """Told apart by content; `.txt` holds one word a line."""
    if path.suffix.lower() == ".txt":
        lines = _lines(path)
        config, beside = _config(path)
        special = {name: _name(config.get(name)) or default for name, default in BERT_TOKENS.items()}
        if {special["unk_token"], special["cls_token"], special["sep_token"]} <= set(lines):
            content, remarks = _bert(lines, config, special)
            return _tokenizer(content, None, config, beside, remarks)
        return WordFile(_ids_of_lines(lines, str(path)))
    read, text = _json(path)
    if isinstance(read, dict) and (isinstance(read.get("model"), dict) or isinstance(read.get("added_tokens"), list)):
        config, beside = _config(path)
        return _tokenizer(read, text, config, beside, tuple(_differences(read, config)))
    if isinstance(read, dict) and read.get("class_name") == "Tokenizer" and isinstance(read.get("config"), dict):
        return _keras(read["config"], str(path))
    if isinstance(read, list):
        ids = _ids_of_list(read, str(path))
    elif isinstance(read, dict):
        ids = _ids_of_map(read, str(path))
    else:
        raise BadInput(f'{path}: neither a list of words, nor a map {{"word": id}}, nor a tokenizer.json')
    if not ids:
        raise BadInput(f"{path}: holds no words")
    return WordFile(ids)


# --- Hugging Face -----------------------------------------------------------------------------------------------

BERT_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def _config(path: Path) -> tuple[dict[str, Any], Path | None]:
    """What stands beside the file."""
    beside = path.with_name(CONFIG)
    if beside == path or not beside.is_file():
        return {}, None
    read, _ = _json(beside)
    if not isinstance(read, dict):
        raise BadInput(f"{beside}: not a table of settings")
    return read, beside


def _tokenizer(
    content: dict[str, Any],
    text: str | None,
    config: dict[str, Any],
    beside: Path | None,
    remarks: tuple[str, ...],
) -> TokenizerFile:
    """With the padding token of the configuration written into it."""
    given = content.get("padding")
    padding = dict(given) if isinstance(given, dict) else None
    pad = _name(config.get("pad_token"))
    if padding is None and pad is not None:
        padding = _padding(content, pad, _whole(config.get("pad_token_type_id")) or 0)
    if padding != given:
        content, text = {**content, "padding": padding}, None
    longest = _whole(config.get("model_max_length"))
    return TokenizerFile(
        content=json.dumps(content, ensure_ascii=False) if text is None else text,
        longest=longest if longest is not None and 0 < longest < UNBOUNDED else None,
        pad_side=_side(config, "padding_side", beside),
        cut_side=_side(config, "truncation_side", beside),
        config=beside,
        family=str(config.get("tokenizer_class") or ""),
        remarks=remarks,
    )


def _padding(content: dict[str, Any], pad: str, kind: int) -> dict[str, Any] | None:
    """To the longest of a batch, by this token; None where there is no such token."""
    if (identity := _token_id(content, pad)) is None:
        return None
    return {
        "strategy": "BatchLongest",
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": identity,
        "pad_type_id": kind,
        "pad_token": pad,
    }


def _bert(lines: list[str], config: dict[str, Any], special: dict[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tokenizer.json of a vocab.txt, as Hugging Face's BertTokenizer makes it."""
    ids = {line: index for index, line in enumerate(lines)}  # of words given twice the last one, as there
    remarks: tuple[str, ...] = ()
    lower = config.get("do_lower_case")
    if not isinstance(lower, bool):
        # BertTokenizer lower-cases unless told otherwise; a vocabulary with capitals is made for text as it stands.
        lower = not any(line != line.lower() for line in lines if line not in special.values() and line[:1] != "[")
        found = "holds no capitals: texts are" if lower else "holds capitals: texts are not"
        remarks = (f"the vocabulary {found} lower-cased (no {CONFIG} beside it says do_lower_case)",)
    accents = config.get("strip_accents")
    chinese = config.get("tokenize_chinese_chars")
    first, last = special["cls_token"], special["sep_token"]
    single = [_special_token(first, 0), _sequence("A", 0), _special_token(last, 0)]
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": ids[name],
                "content": name,
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
                "special": True,
            }
            for name in sorted(special.values(), key=lambda name: ids.get(name, -1))
            if name in ids
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": chinese if isinstance(chinese, bool) else True,
            "strip_accents": accents if isinstance(accents, bool) else None,
            "lowercase": lower,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, _sequence("B", 1), _special_token(last, 1)],
            "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in (first, last)},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": special["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }
    if _name(config.get("pad_token")) is None:
        config["pad_token"] = special["pad_token"]
    return content, remarks


def _special_token(name: str, kind: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": kind}}


def _sequence(name: str, kind: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": kind}}


def _differences(content: dict[str, Any], config: dict[str, Any]) -> Iterable[str]:
    """Where libraries that read one of the two files, or both, tokenise differently."""
    normaliser, lower = content.get("normalizer"), config.get("do_lower_case")
    if isinstance(normaliser, dict) and normaliser.get("type") == "BertNormalizer" and isinstance(lower, bool):
        deployed = normaliser.get("lowercase")
        if isinstance(deployed, bool) and deployed != lower:
            yield (
                f"tokenizer.json {'lower-cases' if deployed else 'does not lower-case'}, and {CONFIG} says "
                f"do_lower_case = {str(lower).lower()}: read as tokenizer.json says"
            )


def _token_id(content: dict[str, Any], token: str) -> int | None:
    for added in content.get("added_tokens") or ():
        if isinstance(added, dict) and added.get("content") == token:
            return _whole(added.get("id"))
    model = content.get("model")
    words = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(words, dict):
        return _whole(words.get(token))
    if isinstance(words, list):
        return next(
            (index for index, piece in enumerate(words) if isinstance(piece, list) and piece[:1] == [token]), None
        )
    return None


def _steps(part: Any) -> list[dict[str, Any]]:
    """One post-processor, or those of a sequence of them."""
    if not isinstance(part, dict):
        return []
    if part.get("type") == "Sequence":
        return [step for inner in part.get("processors", ()) for step in _steps(inner)]
    return [part]


def _name(token: object) -> str | None:
    """A token is a string, or a table with its content."""
    named = token.get("content") if isinstance(token, dict) else token
    return named if isinstance(named, str) else None


def _side(config: dict[str, Any], key: str, beside: Path | None) -> str | None:
    side = config.get(key)
    if side not in (None, "left", "right"):
        raise BadInput(f"{beside}: {key} is {json.dumps(side)[:40]}: it can be left or right")
    return side


def _whole(number: object) -> int | None:
    return int(number) if isinstance(number, int | float) and not isinstance(number, bool) and number < 1e18 else None


# --- Keras ------------------------------------------------------------------------------------------------------


def _keras(config: dict[str, Any], source: str) -> WordFile:
    """What `Tokenizer.to_json()` writes: the words below `num_words` are known, of marks in `filters` none is read."""
    index, filters, split = config.get("word_index"), config.get("filters", ""), config.get("split", " ")
    if isinstance(index, str):
        try:
            index = json.loads(index)
        except ValueError as error:
            raise BadInput(f"{source}: word_index is not JSON ({one_line(error)})") from error
    if not isinstance(index, dict) or not isinstance(filters, str) or not isinstance(split, str):
        raise BadInput(f"{source}: a Keras tokenizer without a word_index, filters and split that can be read")
    if config.get("char_level"):
        raise Unsupported(f"{source}: a Keras tokenizer of characters; only those of words are read")
    if len(split) != 1:
        raise Unsupported(f"{source}: splits texts at {split!r}; only one character can be read")
    ids = _ids_of_map(index, source)
    number, unknown = config.get("num_words"), config.get("oov_token")
    if isinstance(number, int):
        ids = {word: identity for word, identity in ids.items() if identity < number}
    if not ids:
        raise BadInput(f"{source}: holds no words")
    return WordFile(
        ids,
        split=Pattern(f"[^{re.escape(filters + split)}]+"),
        lowercase=bool(config.get("lower", True)),
        unknown=unknown if isinstance(unknown, str) else "",
    )


# --- words ------------------------------------------------------------------------------------------------------


def _decoded(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}: not UTF-8 ({error.reason})") from error


def _lines(path: Path) -> list[str]:
    """Without the last line end."""
    text = _decoded(path).replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n")


def _json(path: Path) -> tuple[object, str]:
    """The JSON of a file and its text; a key given twice is an error."""
    text = _decoded(path)
    try:
        return json.loads(text, object_pairs_hook=keys_once), text
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} line {error.lineno}: not JSON ({error.msg}, column {error.colno})") from error
    except RecursionError as error:
        raise BadInput(f"{path}: JSON nested too deep") from error
    except KeyTwice as error:
        raise BadInput(f"{path}: {error}") from None
    except ValueError as error:
        raise BadInput(f"{path}: not JSON ({one_line(error)})") from error


def _ids_of_lines(lines: list[str], source: str) -> dict[str, int]:
    """One word a line; an empty line is an id without a word."""
    ids: dict[str, int] = {}
    for index, line in enumerate(lines):
        if len(words := line.split()) > 1:
            raise BadInput(f"{source} line {index + 1}: holds {len(words)} words; one a line is read, its line its id")
        if line.strip() in ids:
            raise BadInput(f"{source} line {index + 1}: repeats {line.strip()!r} of line {ids[line.strip()] + 1}")
        if words:
            ids[words[0]] = index
    if not ids:
        raise BadInput(f"{source}: holds no words")
    return ids


def _ids_of_list(content: list[object], source: str) -> dict[str, int]:
    ids: dict[str, int] = {}
    for index, word in enumerate(content):
        checked = _word(word, source, f"entry {index}")
        if checked in ids:
            raise BadInput(f"{source}: entry {index} repeats {checked!r}, which is entry {ids[checked]}")
        ids[checked] = index
    return ids


def _ids_of_map(content: dict[str, object], source: str) -> dict[str, int]:
    ids: dict[str, int] = {}
    owners: dict[int, str] = {}
    for word, identity in content.items():
        _word(word, source, f"key {word!r}")
        if not isinstance(identity, int) or isinstance(identity, bool):
            raise BadInput(f"{source}: {word!r} has the id {json.dumps(identity)[:40]}, which is not an integer")
        if identity < 0:
            raise BadInput(f"{source}: {word!r} has the negative id {identity}")
        if identity in owners:
            raise BadInput(f"{source}: {owners[identity]!r} and {word!r} share the id {identity}")
        ids[word] = identity
        owners[identity] = word
    return ids


def _word(word: object, source: str, where: str) -> str:
    if not isinstance(word, str):
        raise BadInput(f"{source}: {where} is {json.dumps(word)[:40]}, which is not a word")
    if any("\ud800" <= character <= "\udfff" for character in word):
        raise BadInput(f"{source}: {where} holds half a surrogate pair, which is no character")
    return word


def separators_of(split: Split) -> str:
    """White space at which a text falls into parts whose words do not depend on each other; "" where it is not known.

    A word vocabulary then reads a text as its parts one by one.
    """
    if not isinstance(split, Pattern):
        return BLANKS
    if split.pattern in APART:
        return BLANKS
    if (negated := re.fullmatch(r"\[\^(.*)\]\+", split.pattern, re.DOTALL)) and not re.search(
        r"(?<!\\)[\[\]]|\\[a-zA-Z]", negated[1]
    ):
        # Runs of whatever is not in a list: a character of the list ends every word.
        return "".join(blank for blank in BLANKS if not split.compiled.match(blank))
    return ""


BLANKS = " \t\n\r"
APART = frozenset({r"\S+", r"\w+", r"\b\w+\b", r"\w\w+", r"\b\w\w+\b", r"(?u)\b\w\w+\b"})
"""Expressions none of whose matches sees beyond white space."""
