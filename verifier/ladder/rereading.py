"""A witness is a sentence: read again from its text, it must give exactly the tokens that were judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swapproof.models.errors import BadInput, visible
from swapproof.models.vocabulary import Vocabulary

from ..runs.run_folder import Run
from ..tasks.inputs import Inputs, vocabulary_of
from ..tasks.opened_model import opened_in
from ..tasks.task import read_task
from .token_length import length_of


@dataclass(frozen=True)
class Reading:
    """How the texts of a run become tokens."""

    vocabulary: Vocabulary
    length: int | None

    @classmethod
    def of(cls, run: Run) -> Reading:
        task = read_task(run.task)
        return cls(vocabulary_of(task, run.vocabulary), length_of(task, opened_in(run)))

    def misreads(self, sentence: str, judged: Sequence[int]) -> str | None:
        """How the sentence, read from its text, differs from these tokens; None when it does not."""
        try:
            read = self.vocabulary.encode(sentence, self.length).tokens
        except BadInput as error:
            return f"the sentence {visible(sentence)!r} cannot be read: {error}"
        if read == tuple(judged):
            return None
        place = next((at for at, (one, other) in enumerate(zip(read, judged, strict=False)) if one != other), None)
        where = f"{len(read)} tokens, not {len(judged)}" if place is None else f"token {place} is {read[place]}, not "
        where += "" if place is None else str(judged[place])
        return f"the sentence {visible(sentence)!r} is read as other tokens than those that were judged ({where})"


def misread(run: Run, inputs: Inputs, lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The witnesses of these lines of results.jsonl that are other sentences than their swaps of tokens."""
    texts, reading = {text.id: text for text in inputs.texts}, Reading.of(run)
    for line in lines:
        if line.get("witness") is None:
            continue
        text = texts[line["id"]]
        tokens = list(text.encoded.tokens)
        for swap in line["witness"]["swaps"]:
            position = text.encoded.places[swap["position"]][0]
            words = text.frozen.words[swap["position"]]
            tokens[position] = text.frozen.space.choices[position][words.index(swap["to"])]
        fault = reading.misreads(line["witness"]["sentence"], tokens)
        if fault is not None:
            yield f"text {line['id']}: {fault}"
