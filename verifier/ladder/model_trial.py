"""A model tried before anything is claimed of it: does it fit the task, does the network read from it answer alike?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.agreement import Agreement, agree, outputs, random_sentences
from swapproof.encodings.errors import BadInput, Disagreement
from swapproof.encodings.network import Indices, Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_of

from ..runs.inputs import Inputs
from .optimiser import blamed, refuse_merges
from .replay import DEPENDENCE, Replay, batch_dependence, session_of

REAL, RANDOM = 64, 64
"""Sentences compared, of the texts and at random."""
LENGTHS, TEXTS = 3, 4
"""Different lengths tried when the model takes any, and texts of each when every text has a network of its own."""
BOTH_WAYS = "; a witness must break the text both alone and in a batch"
FITTING = 8
"""Sentences whose answers are compared alone and together."""


@runtime_checkable
class Seen(Protocol):
    """What a run needs to know of its model, whether or not its network could be read."""

    @property
    def model(self) -> Model: ...

    @property
    def batch_dependence(self) -> str | None: ...

    @property
    def remarks(self) -> tuple[str, ...]: ...

    def facts(self) -> dict[str, str | int]:
        """For the report."""


@dataclass(frozen=True)
class Trial:
    """What was seen of the model; `unnamed`: rows of the embedding that no word of the vocabulary names."""

    model: Model
    network: Network
    agreement: Agreement
    unnamed: int
    batch_dependence: str | None

    @property
    def remarks(self) -> tuple[str, ...]:
        found = []
        if self.batch_dependence is not None:
            found.append(f"{self.batch_dependence}{BOTH_WAYS}")
        return (*found, *remarks_on(self.network, self.unnamed))

    def facts(self) -> dict[str, str | int]:
        """For the report."""
        return {
            "file": self.model.path.name,
            **facts_on(self.model, self.network, self.unnamed),
            "largest_difference_from_onnxruntime": (
                f"{self.agreement.difference:.3g} on {self.agreement.sentences} sentences, where rounding allows "
                f"{self.agreement.bound:.3g}"
            ),
        }


def remarks_on(network: Network, unnamed: int) -> list[str]:
    """What a reader of the report should know of this network."""
    found = []
    if network.inexact:
        # Without the model's file, which has another name in the run folder.
        places = ", ".join("node " + reason.partition(": node ")[2] for reason in network.inexact)
        found.append(f"rounded constants ({places}): proofs speak of the network of proofs/lower.py, which rounds none")
    if unnamed:
        found.append(f"{unnamed} rows of the embedding have no word in the vocabulary")
    return found


def seen_when_tried(remark: str) -> bool:
    """Whether this is a remark on what the model did on one machine, and need not do on another."""
    return remark.endswith(BOTH_WAYS) and DEPENDENCE.fullmatch(remark.removesuffix(BOTH_WAYS)) is not None


def facts_on(model: Model, network: Network, unnamed: int) -> dict[str, str | int]:
    """What the model's file says, the same wherever it is read."""
    return {
        "opset": model.opset,
        "tokens": "any number" if model.length is None else model.length,
        "classes": network.classes,
        "embedding_rows": network.vocabulary_size,
        "embedding_rows_without_a_word": unnamed,
        "hidden_units": network.hidden,
        "final_function": "none" if network.head == "logits" else network.head,
    }


def tried(model: Model, length: int | None, inputs: Inputs) -> Trial:
    """Read the network, and compare it with onnxruntime on real and random tokens."""
    replay = Replay.open(model)
    best: tuple[Network, Agreement] | None = None
    dependence = None
    for network, real in samples(model, length, inputs):
        tokens = np.concatenate([real, random_sentences(network, RANDOM)])
        few = tokens[:FITTING]
        dependence = dependence or batch_dependence(replay, few, 2 * outputs(network, few)[1])
        try:
            agreement = agree(network, replay.outputs if dependence is None else alone(replay), tokens)
        except Disagreement as error:
            raise Disagreement(explained(model, network, tokens, str(error))) from None
        if best is None or agreement.difference > best[1].difference:
            best = network, agreement
    if best is None:
        raise BadInput(f"{model.path}: no text to try it on")
    refuse_merges(model)
    network, agreement = best
    return Trial(model, network, agreement, network.vocabulary_size - inputs.vocabulary.size, dependence)


def explained(model: Model, network: Network, tokens: Indices, difference: str) -> str:
    """The difference, and whether onnxruntime's optimiser makes it."""
    deployed, plain = alone(Replay.open(model)), alone(Replay(session_of(model.path, optimised=False), model))
    try:
        agree(network, plain, tokens)
    except (BadInput, Disagreement):
        return f"{model.path}: {difference}"
    worst = int(np.abs(deployed(tokens) - plain(tokens)).max(axis=1).argmax())
    sentence = tokens[worst : worst + 1].astype(model.input_type)
    return blamed(model.path, model.proto, {model.input: sentence}, difference)


def alone(replay: Replay) -> Callable[[Indices], NDArray[Any]]:
    """Each sentence in a batch of its own."""
    return lambda tokens: np.concatenate([replay.outputs(tokens[row : row + 1]) for row in range(len(tokens))])


def samples(model: Model, length: int | None, inputs: Inputs) -> Iterator[tuple[Network, Indices]]:
    """A network and the tokens of texts it is for, for the one length or a few of those that occur."""
    spaces = [text.frozen.space for text in inputs.texts]
    lengths = [length] if length is not None else sorted({space.length for space in spaces})
    step = max(1, len(lengths) // LENGTHS)
    for chosen in lengths[::step][:LENGTHS]:
        some = [space for space in spaces if space.length == chosen][:REAL]
        if not some:
            continue
        network = network_of(model, chosen, some[0].choices)
        refuse_misfits(model, network, inputs)
        if network.choices is None:
            yield network, np.array([space.original for space in some], dtype=np.int64)
        else:
            for space in some[:TEXTS]:
                yield network_of(model, chosen, space.choices), np.array([space.original], dtype=np.int64)


def refuse_misfits(model: Model, network: Network, inputs: Inputs) -> None:
    if network.classes != len(inputs.labels):
        raise BadInput(
            f"{model.path}: answers {network.classes} classes, and [model] labels names {len(inputs.labels)}: "
            f"{', '.join(inputs.labels)}"
        )
    size = inputs.vocabulary.size
    if size > network.vocabulary_size:
        raise BadInput(
            f"{inputs.vocabulary.source}: has ids up to {size - 1}, and the embedding of {model.path} has "
            f"{network.vocabulary_size} rows: this vocabulary is of another model"
        )
