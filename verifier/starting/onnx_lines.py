"""What an ONNX file and the files beside it say of themselves, as lines of a task file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swapproof.models.deployed.opening.onnx_signature import roles_of
from swapproof.models.encoded import Pattern, Split, spans_of
from swapproof.models.errors import BadInput
from swapproof.models.recognition.class_labels import folded
from swapproof.models.recognition.onnx_contents import TABLES, OnnxContents, Port, read_contents
from swapproof.models.recognition.token_files import (
    PADS,
    UNKNOWNS,
    TokenFile,
    fit,
    fits,
    ids_of,
    misfit,
    named_among,
    vocabulary_beside,
)
from swapproof.models.recognition.word_lookup import CLOSE, folds_case, readings
from swapproof.models.vocabulary import read_vocabulary

from .decisions import Undecided, as_setting, decide
from .drafts import Draft
from .telling import Findings

NARROW = 0.02
"""A difference of shares of known words that settles little."""
FLOATS = ("float32", "float64", "float16", "bfloat16")


def describe_onnx(
    path: Path, draft: Draft, findings: Findings, texts: Sequence[str], pair: Sequence[str]
) -> OnnxContents:
    """Inputs, output, length, vocabulary, each where the user did not say it; `texts` are some of the data, `pair` the
    columns of two texts that are read together."""
    contents = read_contents(path)
    parameters, size = contents.parameters, sum(file.stat().st_size for file in (path, *contents.external))
    findings.tell("Model", f"{path.name}: ONNX, opset {contents.opset}, {parameters:,} parameters, {bytes_shown(size)}")
    given = draft.get("model", "inputs")
    if given is None:
        roles = recognised(contents, pair)
        if len(roles) > 1:
            draft.set("model", "inputs", roles, "what each input is for, by its name and type")
        reasons = ", ".join(f"{name} ({role})" for name, role in roles.items())
    else:
        unknown = sorted({*given} ^ {port.name for port in contents.inputs})
        if unknown:
            names = ", ".join(port.name for port in contents.inputs)
            raise BadInput(
                f"--set inputs: the inputs of {path.name} are {names}: say the role of each, and of no other"
            )
        roles, reasons = dict(given), f"{', '.join(f'{name} ({role})' for name, role in given.items())}, as you said"
    findings.tell("Model", f"inputs: {reasons}")
    choose_output(contents, draft, findings)
    if "tokens" not in roles.values():
        return contents
    tokens = next(port for port in contents.inputs if roles.get(port.name) == "tokens")
    set_length(tokens, draft, findings)
    set_vocabulary(contents, tokens, draft, findings, texts)
    return contents


def choose_output(contents: OnnxContents, draft: Draft, findings: Findings) -> None:
    outputs = contents.outputs
    if draft.get("model", "output") is not None:
        return
    rows = [port for port in outputs if port.type in (*FLOATS, TABLES) and may_be_scores(port)]
    if not rows:
        raise BadInput(f"{contents.path}: {no_scores(outputs)}")
    if len(outputs) == 1:
        findings.tell("Model", f"output: {outputs[0].name}, {outputs[0]}")
        return
    named = [port for port in rows if "logit" in port.name.lower()] or [
        port for port in rows if re.search("prob|score", port.name.lower())
    ]
    if len(rows) == 1:
        chosen, why = rows[0], "the only one that holds a row of scores for each text"
    elif len(named) == 1:
        chosen, why = named[0], "by its name"
    else:
        names = ", ".join(f"{port.name} ({port})" for port in rows)
        name = decide(
            f"The model has {len(outputs)} outputs. Which holds the scores of the classes?",
            {port.name: f"{port.name}  {port}" for port in rows},
            f"{contents.path}: the outputs {names} may all hold the scores: say which: --set output={rows[0].name}",
        )
        chosen, why = next(port for port in rows if port.name == name), "as you said"
    others = ", ".join(port.name for port in outputs if port is not chosen)
    draft.set("model", "output", chosen.name, f"one of {len(outputs)} outputs, {why}; not used: {others}")
    findings.tell("Model", f"output: {chosen.name}, {chosen}; {why}; not used: {others}")


def recognised(contents: OnnxContents, pair: Sequence[str] = ()) -> dict[str, str]:
    """Input -> role; or a line that says how to say them. `pair`: columns of two texts, in the order of the model:
    inputs that are called like them read them."""
    ports = {port.name: port for port in contents.inputs}
    named = {folded(name): name for name in ports}
    first: dict[str, str] = {}
    if len(pair) == 2 and all(folded(column) in named for column in pair):
        first = {named[folded(column)]: "tokens" for column in pair}
    others = [port for name, port in ports.items() if name not in first]
    found = roles_of(
        [Seen(port.name, f"tensor({ONNX_TYPES.get(port.type, port.type)})", port.shape or ()) for port in others]
    )
    if first and not others:
        return first
    if isinstance(found, str):
        raise BadInput(f"{contents.path}: {as_setting(found)}")
    return first | found


def may_be_scores(port: Port) -> bool:
    """A row for each text: no more than one axis beside the first is longer than 1."""
    return port.shape is None or len([size for size in port.shape[1:] if size != 1]) <= 1


def no_scores(outputs: Sequence[Port]) -> str:
    port = outputs[0]
    if port.type in FLOATS and port.shape is not None and len(port.shape) > 2:
        return (
            f"its output {port.name} is {port}: scores for every position, and not one row for each text; a Python "
            "function that picks the row which your code uses can be given instead: package.module:function"
        )
    return f"its output {port.name} is {port}, which is no row of scores: export the logits or probabilities"


@dataclass(frozen=True)
class Seen:
    """An input as onnxruntime would show it."""

    name: str
    type: str
    shape: Sequence[Any]


ONNX_TYPES = {"float32": "float", "float64": "double"}


def set_length(tokens: Port, draft: Draft, findings: Findings) -> None:
    length = tokens.shape[1] if tokens.shape is not None and len(tokens.shape) == 2 else None
    if isinstance(length, int):
        if draft.get("model", "length") is None:
            draft.set("model", "length", length, f"the model's input {tokens.name} is {tokens}: so many tokens exactly")
        findings.tell("Model", f"length: {length} tokens, no more and no fewer; texts are padded or cut to that")
    elif draft.get("model", "length") is None:
        findings.tell("Model", "length: any number of tokens")


def set_vocabulary(
    contents: OnnxContents, tokens: Port, draft: Draft, findings: Findings, texts: Sequence[str]
) -> None:
    rows = max((shape[0] for name, _, shape in contents.lookups if name == tokens.name), default=None)
    given = draft.get("model", "vocabulary")
    if given is None:
        found = vocabulary_beside(contents.path, rows)
        draft.set("model", "vocabulary", found.path.absolute(), found.reason)
    else:
        read = read_vocabulary(given)
        found = TokenFile(given, read, "")
        if rows is not None and not fits(read, rows):
            raise misfit(found, rows, contents.path)
        found = TokenFile(given, read, fit(found, rows))
    findings.tell("Tokens", f"{found.path.name}: {found.reason}")
    if not found.is_tokenizer:
        ids = {
            word: identity for word, identity in ids_of(found.vocabulary).items() if identity < (rows or identity + 1)
        }
        if not isinstance(getattr(found.vocabulary, "split", None), Pattern):  # else the file says it all itself
            set_reading(ids, draft, findings, texts)
        set_special(found, ids, draft, texts)


def set_reading(ids: dict[str, int], draft: Draft, findings: Findings, texts: Sequence[str]) -> None:
    """How words are told apart and looked up: as knows the most of the texts."""
    tried = readings(texts, ids)
    split, lowercase = draft.get("model", "split"), draft.get("model", "lowercase")
    allowed = [r for r in tried if split in (None, r.split) and lowercase in (None, r.lowercase)]
    if not allowed:  # an expression of the user's own
        return
    best = allowed[0]
    turned = next((r for r in allowed if r.split == best.split and r.lowercase != best.lowercase), best)
    if lowercase is None and best.known - turned.known <= CLOSE and folds_case(ids):
        best = best if best.lowercase else turned
        draft.set("model", "lowercase", True, "no word of the vocabulary has a capital letter")
    elif lowercase is None:
        reason = f"so {best.known:.1%} of the words are known, and {turned.known:.1%} otherwise"
        draft.set("model", "lowercase", best.lowercase, reason)
    others = [r for r in tried if r.split != best.split]
    if split is None and others:
        shares = f"{best.name}: {best.known:.1%} of the words are known; {others[0].name}: {others[0].known:.1%}"
        written = {"pattern": best.split.pattern} if isinstance(best.split, Pattern) else best.split
        if all(words_of(text, best.split) == words_of(text, others[0].split) for text in texts):
            draft.set(
                "model", "split", written, f"so {best.known:.1%} of the words are known; {others[0].name} is the same"
            )
        else:
            draft.set("model", "split", written, shares)
            if best.known - others[0].known < NARROW:
                findings.doubt(f"how texts are split into words: {shares}")
    findings.tell(
        "Tokens",
        f"words: split {best.name}{', in lower case' if best.lowercase else ''}; so {best.known:.1%} of those in "
        f"{len(texts)} texts are known, the most of {len(tried)} ways",
    )
    if best.known < 0.5:
        findings.doubt(
            f"{1 - best.known:.0%} of the words are unknown to the vocabulary: it may be of another model, or the "
            "texts of another language"
        )


def words_of(text: str, split: Split) -> list[str]:
    return [text[start:end] for start, end in spans_of(text, split)]


def set_special(found: TokenFile, ids: dict[str, int], draft: Draft, texts: Sequence[str]) -> None:
    """The padding token, what unknown words are read as, and where texts that are too long are cut."""
    if draft.get("model", "pad") is None:
        name = named_among(PADS, ids)
        if name is not None:
            draft.set("model", "pad", name, "the padding token, by its name")
        elif 0 not in ids.values():
            draft.set("model", "pad", 0, "no word has the id 0, which Keras and others keep for padding")
        elif draft.get("model", "length") is not None:
            raise Undecided(
                f"{found.path}: no word of it looks like padding, which texts shorter than the model need: say which "
                "word or id it is: --set pad=0"
            )
    if draft.get("model", "unknown") is not None:
        return
    name = named_among(UNKNOWNS, ids)
    if name is not None:
        draft.set("model", "unknown", name, "what words that the vocabulary lacks are read as, by its name")
        return
    missing = unknown_words(found, ids, draft, texts)
    if missing:
        shown = ", ".join(missing[:3])
        choices = {"": "nothing: they are left out, as a tokenizer of Keras without oov_token does"}
        choices |= {"0": "the id 0"} if 0 not in ids.values() else {}
        value = decide(
            f"{len(missing)} words of the texts are unknown to the vocabulary ({shown}). What are they read as?",
            choices,
            f"{found.path}: {len(missing)} words of {len(texts)} texts are not in it ({shown}), and no entry looks "
            "like the unknown token: say what they are read as, a word or an id (--set unknown=1), or that they are "
            "left out, as Keras does without oov_token (--set 'unknown=\"\"')",
        )
        draft.set("model", "unknown", int(value) if value else "", "as you said")


def unknown_words(found: TokenFile, ids: dict[str, int], draft: Draft, texts: Sequence[str]) -> list[str]:
    """Different ones, as they are looked up."""
    read = found.vocabulary
    own = getattr(read, "split", "whitespace")
    said: Any = draft.get("model", "split") or "whitespace"
    split: Split = own if isinstance(own, Pattern) else Pattern(said["pattern"]) if isinstance(said, dict) else said
    lowercase = draft.get("model", "lowercase") or getattr(read, "lowercase", False)
    words = (word for text in texts for word in words_of(text, split))
    return list(dict.fromkeys(word for word in words if (word.lower() if lowercase else word) not in ids))


def bytes_shown(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
