"""Whether a network and the deployed model that it was read from answer alike, up to rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput, Disagreement
from .evaluation import logits, values
from .network import Head, Indices, Network
from .rounding.float_errors import rounding_errors

Array = NDArray[Any]

AT_ONCE = 32
"""Sentences evaluated together: bounds memory on wide networks."""
DOUBLE = 2.0**-53
FUNCTION_UNITS = 32.0
"""Runtimes compute exp, log, the logistic function and tanh by their own approximations, within this many units."""
SINGLE = 2.0**-24
NOTHING = 2.0**-20
"""Beside logits of 0."""
SAMPLED = 64.0
"""How many times as far as numpy's float32 the float32 of a runtime may be from a smooth network.

A bound of the worst case doubles with every step of a recurrence and is soon no bound. So one evaluation in float32 is
taken as a sample of what rounding does to these sentences. Functions of runtimes err by up to 2**-21 where numpy's err
by 2**-24, which is 8 times as far, and another order of summation may give as much again. A network that was read
wrongly, say with two gates exchanged, is thousands of times as far away. Networks of doubles are no nearer: a scale
beside a product of matrices becomes a float32 attribute of onnxruntime's FusedMatMul.
"""


@dataclass(frozen=True)
class Agreement:
    """The largest difference met between the model's outputs and the network's, and the bound that held there."""

    difference: float
    bound: float
    sentences: int


def agree(network: Network, run: Callable[[Indices], Array], tokens: Indices) -> Agreement:
    """Compare on these sentences [batch, length]; `run` gives the model's outputs [batch, classes].

    Raises Disagreement where an output is further from the network's than rounding can take it, BadInput where the
    model overflows.
    """
    worst = Agreement(0.0, 0.0, len(tokens))
    for start in range(0, len(tokens), AT_ONCE):
        part = np.asarray(tokens[start : start + AT_ONCE], dtype=np.int64)
        answers = np.asarray(run(part))
        if answers.shape != (len(part), network.classes):
            raise Disagreement(
                f"the model answers with shape {list(answers.shape)} for {len(part)} sentences; "
                f"{[len(part), network.classes]} was expected"
            )
        expected, bounds = outputs(network, part)
        finite = np.isfinite(answers)
        if not finite.all():
            row, column = (int(place) for place in np.argwhere(~finite)[0])
            met = f"the model answers {answers[row, column]} for class {column} of sentence {start + row}"
            if np.isfinite(bounds[row]).all():
                raise Disagreement(f"{met}, and the network {expected[row, column]:.9g}")
            raise BadInput(f"{met}: its numbers grow beyond what its float type can hold; such a model has no answer")
        apart = np.abs(answers.astype(np.float64) - expected)
        beyond = ~(apart <= bounds)
        if beyond.any():
            row, column = (int(i) for i in np.unravel_index(np.argmax(np.where(beyond, apart, -1.0)), apart.shape))
            raise Disagreement(
                f"the model answers {answers[row, column]:.9g} for class {column} of sentence {start + row} and the "
                f"network {expected[row, column]:.9g}: a difference of {apart[row, column]:.3g}, where rounding "
                f"explains {bounds[row, column]:.3g}"
            )
        row, column = (int(i) for i in np.unravel_index(np.argmax(apart), apart.shape))
        if apart[row, column] >= worst.difference:
            worst = Agreement(float(apart[row, column]), float(bounds[row, column]), len(tokens))
    return worst


def random_sentences(network: Network, count: int, seed: int = 0) -> Indices:
    """[count, length] token ids, uniform over the vocabulary, or over the choices that the network is for."""
    chosen = np.random.default_rng(seed)
    if network.choices is None:
        return chosen.integers(network.vocabulary_size, size=(count, network.length))
    return np.stack([chosen.choice(np.array(options, dtype=np.int64), count) for options in network.choices], axis=1)


def outputs(network: Network, tokens: Indices) -> tuple[Array, Array]:
    """[batch, classes]: the network's outputs, its head applied, and how far a float evaluation may be from them."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float64 the bounds are infinite
        if network.is_smooth:
            return headed(network.head, *sampled(network, tokens), max(network.unit, SINGLE))
        found = values(network, tokens)
        sizes = {index: np.abs(array) for index, array in found.items()}
        last = len(network.nodes) - 1
        own = rounding_errors(network, sizes, DOUBLE)  # of the float64 evaluation here
        sizes = {index: size + own[index] for index, size in sizes.items()}
        errors = rounding_errors(network, sizes)[last][:, 0] + own[last][:, 0]
        return headed(network.head, found[last][:, 0], errors, max(network.unit, DOUBLE))


def sampled(network: Network, tokens: Indices) -> tuple[Array, Array]:
    """[batch, classes]: the logits, and how far floats may be from them, as one evaluation shows (SAMPLED)."""
    found = logits(network, tokens)
    apart = np.abs(logits(network, tokens, np.float32) - found)
    largest = np.abs(found).max()
    moved = np.where(np.isfinite(apart), apart, 0.0).max() + SINGLE * (1.0 + largest)
    return found, np.full(found.shape, SAMPLED * max(network.unit, SINGLE) / SINGLE * moved)


def lost_in_float32(network: Network, tokens: Indices) -> float:
    """How far one evaluation in float32 is from the logits over the reals, as a share of the largest."""
    with np.errstate(over="ignore", invalid="ignore"):
        exact, single = logits(network, tokens), logits(network, tokens, np.float32)
    return float(np.abs(single - exact).max() / (np.abs(exact).max() + NOTHING))


def headed(head: Head, logits: Array, errors: Array, unit: float) -> tuple[Array, Array]:
    """The head's values of logits that are known up to errors, and the errors of these values.

    d softmax / dz is at most 1/2 in the maximum norm, d log_softmax 2, d sigmoid 1/4, d tanh 1.
    """
    own, widest = FUNCTION_UNITS * unit, errors.max(axis=1, keepdims=True)
    highest = logits.max(axis=1, keepdims=True)
    total = np.exp(logits - highest).sum(axis=1, keepdims=True)
    match head:
        case "logits":
            return logits, errors
        case "softmax":
            bound = widest / 2 + own + logits.shape[1] * unit
            return np.exp(logits - highest) / total, np.broadcast_to(bound, logits.shape)
        case "log_softmax":
            result = logits - highest - np.log(total)
            travelled = np.abs(logits) + np.abs(highest) + np.abs(result) + logits.shape[1]
            return result, errors + widest + own * (1.0 + travelled)
        case "sigmoid":
            return 0.5 * (1.0 + np.tanh(logits / 2)), errors / 4 + own
        case "tanh":
            return np.tanh(logits), errors + own
