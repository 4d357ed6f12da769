"""Rules of one text: its line may say no more than its certificate, and both must be about this text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import inputs_of, swaps_of, words_of
from swapproof.models.errors import unreadable
from swapproof.proofs.onnx_file import Refused

from ..runs.results import pieces
from ..runs.run_folder import Run
from ..tasks.inputs import Text
from .line_claims import exaggerations


@dataclass(frozen=True)
class Spaces:
    """SHA-256 of spaces.jsonl, and of each of its lines, that of text 0 first."""

    file: str
    lines: tuple[str, ...]

    @classmethod
    def at(cls, run: Run) -> Spaces:
        whole, lines = hashlib.sha256(), []
        try:
            with run.spaces.open("rb") as file:
                for raw in file:
                    whole.update(raw)
                    lines.append(hashlib.sha256(raw).hexdigest())
        except OSError as error:
            raise unreadable(run.spaces, error) from error
        return cls(whole.hexdigest(), tuple(lines))

    def of(self, id: int) -> tuple[str, ...]:
        """What a certificate of this text may be bound to: its line, or, as they once were, the whole file."""
        return (*self.lines[id : id + 1], self.file)


def bind(statement: Mapping[str, Any], text: Text, spaces: Spaces, classes: int) -> None:
    """What the certificate is about must be this text of this run."""
    expect(statement["text"] == hashlib.sha256(text.encoded.text.encode()).hexdigest(), "is of another text")
    expect(statement["label"] == text.label, "is for another label")
    expect(statement["synonyms"] in spaces.of(text.id), "is for other frozen swaps than spaces.jsonl")
    expect([statement["inputs"], statement["words"]] == as_stated(text.frozen.space), "is for other words or options")
    rivals = [c for c in range(classes) if c != text.label]
    expect(statement["rivals"] == rivals, "does not speak of all other classes")


def as_stated(space: SwapSpace) -> list[Any]:
    """Inputs and words as they are read from JSON."""
    inputs = [[role, list(integers)] for role, integers in inputs_of(space)]
    return [inputs, [[start, [list(option) for option in options]] for start, options in words_of(space)]]


def agree(line: Mapping[str, Any], text: Text, statement: Mapping[str, Any] | None) -> list[list[int]]:
    """The swaps of a line that says of this text no more than the statement of its certificate; else Refused."""
    described(line, text)
    for fault in exaggerations(line, text.id, statement, len(text.encoded.words)):
        raise Refused(f"the line {fault}")
    swaps = [] if line["witness"] is None else list(tokens(text, line["witness"]["swaps"]))
    if statement is not None and statement["upper"] is not None:
        about = statement["inputs"], statement["words"]
        stated = [list(swap) for swap in swaps_of(*about, statement["upper"]["swaps"])]
        expect(swaps == stated, "has another witness than the certificate", "line")
        spelt(line["witness"], text, statement["upper"]["levels"])
    return swaps


def tokens(text: Text, swaps: Iterable[Mapping[str, Any]]) -> Iterator[list[int]]:
    """[position in the model's input, token] of swaps that are given by word."""
    for swap in sorted(swaps, key=lambda swap: int(swap["position"])):
        words = text.frozen.words[swap["position"]]
        position = text.encoded.places[swap["position"]][0]
        expect(words[0] == swap["from"], f"swaps {swap['from']!r}, where the text has {words[0]!r}", "line")
        expect(swap["to"] in words[1:], f"swaps in {swap['to']!r}, which is no synonym there", "line")
        yield [position, text.frozen.space.choices[position][words.index(swap["to"])]]


def described(line: Mapping[str, Any], text: Text) -> None:
    """Raises Refused when a line is about another text than the run's."""
    expect(line["text"] == text.encoded.text and line["label"] == text.label, "has another text or label", "line")
    expect(line.get("answer") == text.answer, "has another answer of the deployed system", "line")
    expect(line["positions"] == len(text.encoded.words), "has another number of words", "line")
    expect(line["cut"] == text.encoded.cut, "has another number of words that the model does not read", "line")
    expect(line["unknown"] == len(text.encoded.unknown), "has another number of unknown words", "line")
    expect(line["candidates"] == text.frozen.space.candidates, "has another number of single swaps", "line")


def spelt(witness: Mapping[str, Any], text: Text, levels: Sequence[str]) -> None:
    """What a reader sees of a witness, the sentence and its levels of truth, is what its swaps and certificate say."""
    for swap in witness["swaps"]:
        span = list(text.encoded.spans[swap["position"]])
        expect(swap["characters"] == span, f"places the word {swap['from']!r} elsewhere than the text does", "line")
    sentence = "".join(piece.after for piece in pieces(text.encoded.text, witness["swaps"]))
    expect(witness["sentence"] == sentence, "spells another sentence than its swaps make", "line")
    expect(witness["levels"] == list(levels), "has other levels for its witness than the certificate", "line")


def expect(fact: bool, otherwise: str, who: str = "certificate") -> None:
    if not fact:
        raise Refused(f"the {who} {otherwise}")
