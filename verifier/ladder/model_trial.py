"""A model tried before anything is claimed of it: does it fit the task, does the network read from it answer alike?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.agreement import Agreement, agree, outputs, random_sentences
from swapproof.encodings.errors import BadInput, Disagreement, Unsupported
from swapproof.encodings.network import Indices, Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.encodings.query import Query
from swapproof.encodings.regions.arithmetic import LIMIT, Ends
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.sequences.sentence_margins import margins_of
from swapproof.encodings.space import SwapSpace

from ..smooth_remarks import SEEN, remarks_seen
from ..tasks.inputs import Inputs
from .optimiser import blamed, refuse_merges
from .replay import DEPENDENCE, Original, Replay, batch_dependence, session_of

ALIKE = 1000
"""Texts that a model that was made from the one given must answer as that does."""
REAL, RANDOM = 64, 64
"""Sentences compared, of the texts and at random."""
LENGTHS, TEXTS = 3, 4
"""Different lengths tried when the model takes any, and texts of each when every text has a network of its own."""
BOTH_WAYS = "; a witness must break the text both alone and in a batch"
FINEST = 2.0**-64
"""Of the precisions that proofs of smooth networks have."""
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
    from_given: Likeness | None = None
    """Of a model that was made from the one given: how far it answers alike."""
    seen: tuple[str, ...] = ()
    """What is said of a smooth network."""

    @property
    def remarks(self) -> tuple[str, ...]:
        found = [*self.seen]
        if self.batch_dependence is not None:
            found.append(f"{self.batch_dependence}{BOTH_WAYS}")
        return (*found, *remarks_on(self.model, self.network, self.unnamed))

    def facts(self) -> dict[str, str | int]:
        """For the report."""
        return {
            "file": self.model.path.name,
            **facts_on(self.model, self.network, self.unnamed),
            "largest_difference_from_onnxruntime": (
                f"{self.agreement.difference:.3g} on {self.agreement.sentences} sentences, where rounding allows "
                f"{self.agreement.bound:.3g}"
            ),
            **({} if self.from_given is None else {"largest_difference_from_the_model_given": self.from_given.told}),
        }


@dataclass(frozen=True)
class Likeness:
    """The largest difference in what decides, on so many texts, all answered alike."""

    difference: float
    texts: int

    @property
    def told(self) -> str:
        return f"{self.difference:.3g} on {self.texts} texts, all answered alike"


def remarks_on(model: Model, network: Network, unnamed: int) -> list[str]:
    """What a reader of the report should know of this network."""
    found = [] if model.given is None else [model.given.remark]
    if network.inexact:
        # Without the model's file, which has another name in the run folder.
        places = ", ".join("node " + reason.partition(": node ")[2] for reason in network.inexact)
        found.append(f"rounded constants ({places}): proofs speak of the network of proofs/lower.py, which rounds none")
    if unnamed:
        found.append(f"{unnamed} rows of the embedding have no word in the vocabulary")
    return found


def seen_when_tried(remark: str) -> bool:
    """Whether this is a remark on what the model did on one machine, and need not do on another."""
    if SEEN.fullmatch(remark) is not None:
        return True
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


def tried(model: Model, length: int | None, inputs: Inputs, *, smooth: bool = False) -> Trial:
    """Read the network, `smooth` or not, and compare it with onnxruntime on real and random tokens."""
    replay = Replay.open(model)
    best: tuple[Network, Agreement] | None = None
    dependence = None
    for network, real, space in samples(model, length, inputs, smooth=smooth):
        tokens, own = np.concatenate([real, random_sentences(network, RANDOM)]), replay.of(space)
        dependence = dependence or dependence_on(own, network, tokens[:FITTING])
        try:
            try:
                agreement = agree(network, numbers_of(own.outputs if dependence is None else alone(own)), tokens)
            except Disagreement:
                if dependence is not None or (dependence := dependence_on(own, network, tokens)) is None:
                    raise
                agreement = agree(network, numbers_of(alone(own)), tokens)
        except Disagreement as error:
            raise Disagreement(explained(own, network, tokens, str(error))) from None
        refuse_immense(model, network, space)
        if best is None or agreement.difference > best[1].difference:
            best = network, agreement
    if best is None:
        raise BadInput(f"{model.named}: no text to try it on")
    refuse_merges(model)
    network, agreement = best
    unnamed = network.vocabulary_size - inputs.vocabulary.size
    seen = tuple(remarks_seen(model, network, [text.frozen.space for text in inputs.texts]))
    return Trial(model, network, agreement, unnamed, dependence, likeness(model, inputs), seen)


def dependence_on(replay: Replay, network: Network, tokens: Indices) -> str | None:
    """How the answer to one of these depends on the others, by more than two evaluations of the network differ."""
    return batch_dependence(replay, tokens, 2 * outputs(network, tokens)[1])


def likeness(model: Model, inputs: Inputs) -> Likeness | None:
    """A model that was made from the one given must answer the texts as that does; Disagreement where it does not."""
    if model.given is None:
        return None
    original, replay, worst = Original.of(model, model.given), Replay.open(model), 0.0
    texts = inputs.texts[:ALIKE]
    for text in texts:
        space = text.frozen.space
        tokens = np.array([space.original], dtype=np.int64)
        logits = replay.of(space).outputs(tokens)
        answers = int(original.answers(space, tokens)[0]), int(logits[0].argmax())
        if answers[0] != answers[1]:
            raise Disagreement(
                f"{model.given.path}: the model given answers {answers[0]} for text {text.id}, and what was made of it "
                f"to be read answers {answers[1]} ({'; '.join(model.given.notes)}): run it instead"
            )
        own, made = original.values(space, tokens, logits)
        worst = max(worst, float(np.abs(own - made).max()))
    return Likeness(worst, len(texts))


def explained(replay: Replay, network: Network, tokens: Indices, difference: str) -> str:
    """The difference, and whether onnxruntime's optimiser makes it."""
    model = replay.model
    unoptimised = Replay(session_of(model.path, optimised=False), model, constants=replay.constants)
    deployed, plain = alone(replay), alone(unoptimised)
    try:
        agree(network, plain, tokens)
    except (BadInput, Disagreement):
        return f"{model.named}: {difference}"
    worst = int(np.abs(deployed(tokens) - plain(tokens)).max(axis=1).argmax())
    sentence = tokens[worst : worst + 1].astype(model.input_type)
    return blamed(model.path, model.proto, replay.feeds(sentence), difference)


def numbers_of(run: Callable[[Indices], NDArray[Any]]) -> Callable[[Indices], NDArray[Any]]:
    """What the model answers; Unsupported, so that it is run, where that is no number."""

    def asked(tokens: Indices) -> NDArray[Any]:
        answers = run(tokens)
        wrong = answers[~np.isfinite(answers)]
        if len(wrong):
            raise Unsupported(
                f"it answers {wrong[0]} to a sentence that it was tried on, of the texts or drawn at random: "
                "it divides by zero, takes a root of a negative number, or its numbers grow beyond their type"
            )
        return answers

    return asked


def alone(replay: Replay) -> Callable[[Indices], NDArray[Any]]:
    """Each sentence in a batch of its own."""
    return lambda tokens: np.concatenate([replay.outputs(tokens[row : row + 1]) for row in range(len(tokens))])


def samples(
    model: Model, length: int | None, inputs: Inputs, *, smooth: bool
) -> Iterator[tuple[Network, Indices, SwapSpace]]:
    """A network, the tokens of texts it is for, and the space of one: for the one length or a few of those that occur,
    and the constants with each."""
    spaces = [text.frozen.space for text in inputs.texts if length in (None, text.frozen.space.length)]
    frames = sorted({space.frame for space in spaces})
    step = max(1, len(frames) // LENGTHS)
    for chosen in frames[::step][:LENGTHS]:
        some = [space for space in spaces if space.frame == chosen][:REAL]
        network = network_read(model, some[0], smooth=smooth)
        refuse_misfits(model, network, inputs)
        if network.choices is None:
            yield network, np.array([space.original for space in some], dtype=np.int64), some[0]
        else:
            for space in some[:TEXTS]:
                yield network_read(model, space, smooth=smooth), np.array([space.original], dtype=np.int64), space


def network_read(model: Model, space: SwapSpace, *, smooth: bool) -> Network:
    """Unsupported, so that the model is run, whatever keeps this program from reading it: onnxruntime has loaded it."""
    try:
        return network_for(model, space, smooth=smooth)
    except BadInput as error:
        raise Unsupported(str(error)) from None


def refuse_immense(model: Model, network: Network, space: SwapSpace) -> None:
    """Proofs of smooth networks are of numbers below 2**40: Unsupported where a text as it stands makes larger ones.

    Also where nothing comes of them, as of lines that are hidden whole: layouts leave these out.
    """
    if not network.is_smooth:
        return
    question = replace(question_of(Query.of(network, space, 0)), layout=None)
    _, ends = margins_of(question, question.whole(0), Ends(FINEST))
    if not np.isfinite(ends).all():
        raise Unsupported(
            f"{model.named}: numbers of {LIMIT:.2g} and more between its layers, as huge weights make them, and masks "
            "that hide whole lines: proofs of recurrent and attending networks are of smaller ones"
        )


def refuse_misfits(model: Model, network: Network, inputs: Inputs) -> None:
    if network.classes != len(inputs.labels):
        raise BadInput(
            f"{model.named}: answers {network.classes} classes, and [model] labels names {len(inputs.labels)}: "
            f"{', '.join(inputs.labels)}"
        )
    size = inputs.vocabulary.size
    if size > network.vocabulary_size:
        raise BadInput(
            f"{inputs.vocabulary.source}: has ids up to {size - 1}, and the embedding of {model.named} has "
            f"{network.vocabulary_size} rows: this vocabulary is of another model"
        )
