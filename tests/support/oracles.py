"""What engines are compared with: plain enumeration, over the reals and in onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from random_networks import Sample

from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.onnx_files.onnx_reading import Model, network_of, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.text_verdict import Verdict


def loaded(sample: Sample, folder: Path) -> tuple[Model, Replay]:
    model = open_model(sample.save(folder))
    return model, Replay.open(model)


def query_of(model: Model, choices: tuple[tuple[int, ...], ...], label: int) -> Query:
    return Query.of(network_of(model, len(choices)), SwapSpace.of(choices), label)


def all_sentences(space: SwapSpace, most_swaps: int) -> Iterator[tuple[int, ...]]:
    """The sentences of at most this many swaps, by plain recursion."""
    positions = space.swappable

    def extend(start: int, chosen: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, ...]]:
        yield space.sentence(chosen)
        if len(chosen) < most_swaps:
            for number in range(start, len(positions)):
                for token in space.choices[positions[number]][1:]:
                    yield from extend(number + 1, (*chosen, (positions[number], token)))

    yield from extend(0, ())


def won_by(logits: list[Fraction]) -> int:
    """argmax, the lowest index winning ties."""
    return max(range(len(logits)), key=lambda c: (logits[c], -c))


def least_swaps_over_reals(query: Query) -> int | None:
    """min_swaps by exact arithmetic on every sentence; None when nothing breaks the text."""
    broken = [
        len(query.space.swaps_of(tokens))
        for tokens in all_sentences(query.space, len(query.space.swappable))
        if won_by(exact_logits(query.network, tokens)[0]) != query.label
    ]
    return min(broken, default=None)


def least_swaps_deployed(query: Query, replay: Replay) -> int | None:
    """min_swaps by onnxruntime on every sentence, in one batch."""
    sentences = list(all_sentences(query.space, len(query.space.swappable)))
    answers = replay.answers(np.array(sentences, dtype=np.int64))
    return min(
        (
            len(query.space.swaps_of(tokens))
            for tokens, answer in zip(sentences, answers, strict=True)
            if answer != query.label
        ),
        default=None,
    )


def assert_fits_deployed(verdict: Verdict, deployed: int | None) -> None:
    """A witness is as short as onnxruntime allows; what rounding decides claims no more than onnxruntime shows."""
    interval = verdict.interval
    if verdict.status == "ambiguous":
        assert interval.low_float32 <= (deployed if deployed is not None else interval.ceiling)
    elif verdict.status != "open":
        assert interval.high == deployed
