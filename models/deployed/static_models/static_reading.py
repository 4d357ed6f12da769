"""Static embeddings with linear heads or heads of ReLUs, read as networks: a row of numbers for every spelling.

A sentence's vectors are summed and divided by their number n. Layers with ReLU between them are positively
homogeneous once their biases are multiplied by n: n times the logits is what they make of the sum, and the same class
wins. So each row ends with its number of vectors, which the layers read as their bias and hand on. Where there is no
bias, neither n nor an L2 norm moves a margin to the other side of 0, and both are left out.

model2vec divides the mean x / n by its norm and e = 10^-32. With biases that is not left out: they are multiplied by
t = |x| + e n in place of n, and each row ends with its e n. So a sum of 0 is divided as it is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ...word_network import ReadTexts, Unreadable, VectorNorm, WordNetwork
from ..static_embeddings import StaticClassifier
from ..swapped_text import SwapText
from .exact_products import multiplied, two_sum
from .static_heads import NO_DIVISION, LabelLoss, Layer, PooledLayers
from .text_units import spellings_of

Floats = NDArray[np.float64]
HALF_A_BIT = 2.0**-53


def read_static(classifier: StaticClassifier, spellings: Sequence[str]) -> WordNetwork | Unreadable:
    """The network whose row i is spelling i's: the same class wins wherever the sentence is the sum of its words, which
    `fits` tells."""
    if classifier.lines.interplay is not None:
        return Unreadable(classifier.lines.interplay)
    head = classifier.head
    layers = label_layers(head) if isinstance(head, LabelLoss) else pooled_layers(head)
    if isinstance(layers, str):
        return Unreadable(layers)
    ids = [classifier.lines.keep(one) for one in classifier.lines.units(spellings)]
    ids.append(classifier.lines.closing)
    rows, lost = added_up(classifier, ids)
    if not np.isfinite(rows).all():
        return Unreadable("a vector of the texts is not a number")
    biased = any(layer.bias.any() for layer in layers)
    if biased and isinstance(head, PooledLayers) and head.normal:
        rest = NO_DIVISION * np.array(list(map(len, ids)), dtype=np.float64)[:, None]
        rows, lost = np.concatenate([rows, rest], axis=1), np.concatenate([lost, np.zeros((len(ids), 1))], axis=1)
        return made(rows, lost, compared(layers), VectorNorm())
    if biased:
        rows = np.concatenate([rows, np.array(list(map(len, ids)), dtype=np.float64)[:, None]], axis=1)
        lost = np.concatenate([lost, np.zeros((len(ids), 1))], axis=1)
        layers = carried(layers)
    if layers and 2 * len(layers[0].bias) < rows.shape[1]:
        rows, lost, layers = projected(rows, lost, layers)
    return made(rows, lost, layers, None)


def made(rows: Floats, lost: Floats, layers: Sequence[Layer], norm: VectorNorm | None) -> WordNetwork:
    """The last row is what every sentence begins with."""
    remarks = []
    if lost.any():
        rounded, largest = np.count_nonzero(lost.any(axis=1)), lost.max()
        remarks.append(f"the rows of {rounded} of {len(rows)} spellings are rounded, by at most {largest:.1e}")
    network = tuple((layer.weight, layer.bias) for layer in layers)
    return WordNetwork(rows[:-1], rows[-1], network, remarks=tuple(remarks), norm=norm)


def compared(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Of two classes, one logit as 0 and the other as the difference, which is then one product with the vector: bounds
    of one are tighter than those of two. Where float64 does not hold the difference, they stay as they are."""
    (*before, last) = layers
    if len(last.bias) != 2 or not (last.weight[0].any() or last.bias[0]):
        return tuple(layers)
    weight, lost = two_sum(last.weight[1], -last.weight[0])
    bias, more = two_sum(last.bias[1:], -last.bias[:1])
    if lost.any() or more.any():
        return tuple(layers)
    return (*before, Layer(np.stack([np.zeros_like(weight), weight]), np.append(0.0, bias)))


def read_texts(
    classifier: StaticClassifier, spellings: Sequence[str], texts: Sequence[SwapText]
) -> ReadTexts | Unreadable:
    """The network of these texts, as far as they fit."""
    network = read_static(classifier, spellings)
    if isinstance(network, Unreadable):
        return network
    return ReadTexts(network, tuple(fits(classifier, text) for text in texts))


def projected(rows: Floats, lost: Floats, layers: Sequence[Layer]) -> tuple[Floats, Floats, tuple[Layer, ...]]:
    """Rows of what the first layer, which has no bias, makes of them: far fewer numbers, as sums of two float64."""
    weight = layers[0].weight
    high, low, missing = multiplied(rows, weight)
    missing = missing + lost @ np.abs(weight).T
    if not low.any() and len(layers) == 1:
        return high, missing, ()
    outputs = len(weight)
    both = Layer(np.tile(np.eye(outputs), 2), np.zeros(outputs))
    return np.concatenate([high, low], axis=1), missing, (both, *layers[1:])


def pooled_layers(head: PooledLayers) -> tuple[Layer, ...] | str:
    """The layers over the sum of the vectors, or why there are none."""
    if head.half:
        return "the mean of its vectors is rounded to half precision"
    last = head.layers[-1] if head.layers else None
    if last is None or len(last.bias) > 1:
        return head.layers
    if head.activation != "sigmoid":
        return "it answers a single score that is no probability"
    weight, bias = np.zeros_like(last.weight), np.zeros_like(last.bias)  # of the class that wins from 0.5 down
    return (*head.layers[:-1], Layer(np.vstack([weight, last.weight]), np.concatenate([bias, last.bias])))


def label_layers(head: LabelLoss) -> tuple[Layer, ...] | str:
    labels = len(head.counts)
    if head.loss == "softmax":
        return (Layer(head.outputs, np.zeros(labels)),)
    if head.loss == "hs" and labels == 2:  # one node: what lies right of it wins where its value is positive
        (_, right), weight = head.tree[0], np.zeros_like(head.outputs)
        weight[right] = head.outputs[0]
        return (Layer(weight, np.zeros(labels)),)
    if head.loss == "hs":
        return "its labels are leaves of a tree, whose probabilities are products along a path"
    return "its sigmoid is a table of 512 steps, and labels on the same step are equal"


def carried(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """With the number of vectors as one input more, which is the bias, and one output more of all but the last."""
    found = []
    for place, layer in enumerate(layers):
        weight = np.concatenate([layer.weight, layer.bias[:, None]], axis=1)
        if place < len(layers) - 1:
            on = np.zeros((1, weight.shape[1]))
            on[0, -1] = 1.0
            weight = np.concatenate([weight, on])
        found.append(Layer(weight, np.zeros(len(weight))))
    return tuple(found)


def added_up(classifier: StaticClassifier, ids: Sequence[list[int]]) -> tuple[Floats, Floats]:
    """The sum of each list's rows, and a bound of what rounding took from it: 0 where it is exact."""
    width = classifier.vectors.shape[1]
    sums, lost = np.zeros((len(ids), width)), np.zeros((len(ids), width))
    lengths = np.array([len(one) for one in ids], dtype=np.int64)
    for place in range(lengths.max(initial=0)):
        longer = np.flatnonzero(lengths > place)
        added = classifier.vectors.rows(np.array([ids[one][place] for one in longer.tolist()], dtype=np.int64))
        sums[longer], rest = two_sum(sums[longer], added)
        lost[longer] += np.abs(rest) + (np.abs(added) * HALF_A_BIT if classifier.vectors.rounded else 0.0)
    return sums, lost


def fits(classifier: StaticClassifier, text: SwapText) -> str | None:
    """Why the sentences of this text are not the sums of their words; None: they are."""
    found = classifier.apart(text)
    if isinstance(found, str):
        return found
    words = [spellings_of(text, word) for word in range(len(text.spans))]
    flat = iter(classifier.lines.units([spelling for spellings in words for spelling in spellings]))
    apart = [[classifier.lines.keep(next(flat)) for _ in spellings] for spellings in words]
    if added(one[0] for one in apart) != added(one[0] for one in found.ids):
        return (
            'its words are other tokens one by one than in the text; a split such as "whitespace" may keep them whole'
        )
    for unit, ids in zip(found.units, found.ids, strict=True):
        if len(unit.words) == 1 and list(unit.spellings) == words[unit.words[0]]:  # a word that stands alone
            continue
        for number, spelling in enumerate(unit.spellings):
            expected = added([ids[0]])
            for word, stride in zip(unit.words, unit.strides, strict=True):
                expected.update(apart[word][number // stride % len(words[word])])
                expected.subtract(apart[word][0])
            expected.subtract(ids[number])
            if any(expected.values()):
                return f"{spelling!r} is read as other tokens than its words one by one"
    if not sum(min(map(len, ids)) for ids in found.ids) + len(classifier.lines.closing):
        return "a sentence may have no token that is known"
    return None


def added(lists: Iterable[list[int]]) -> Counter[int]:
    """How often each token is there."""
    return Counter(chain.from_iterable(lists))
