"""Small smooth networks as canonical forms, made by hand, and what they compute, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator

from swapproof.encodings.canonical import Form
from swapproof.encodings.canonical_layers import PADDING, Bends, Curved, Greatest, Lookup, Pairs, Rows, Step
from swapproof.encodings.network import Indices
from swapproof.encodings.regions.compiling import compiled
from swapproof.encodings.regions.region import Question
from swapproof.encodings.regions.tails import margins

FUNCTIONS = {
    "exp": math.exp,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "erf": math.erf,
    "reciprocal": lambda x: 1 / x,
    "sqrt": math.sqrt,
}


class Building:
    """Lays down layers and numbers their elements."""

    def __init__(self, constants: Sequence[float]) -> None:
        self.constants = np.array(sorted(constants))
        self.steps: list[Step] = []
        self.size = len(self.constants)

    def constant(self, number: float) -> int:
        return int(np.flatnonzero(self.constants == number)[0])

    def add(self, step: Step) -> Indices:
        self.steps.append(step)
        self.size += step.size
        return np.arange(self.size - step.size, self.size)

    def dense(self, read: Indices, matrix: Any, bias: Any) -> Indices:
        """One list for all rows; matrix [read, rows]."""
        rows = matrix.shape[1]
        nothing = np.zeros(rows, dtype=np.int64)
        return self.add(Rows(np.asarray(read)[None], tuple(matrix.T), nothing, np.arange(rows), np.asarray(bias)))

    def blend(self, lists: Indices, weights: Any) -> Indices:
        """A list for each row, and one sequence of weights."""
        rows = len(lists)
        nothing = np.zeros(rows, dtype=np.int64)
        return self.add(
            Rows(np.asarray(lists), (np.asarray(weights, float),), np.arange(rows), nothing, np.zeros(rows))
        )

    def beside_zeros(self, states: Sequence[Sequence[Indices]]) -> list[tuple[list[Indices], int]]:
        """Of each direction the states, laid down once more as rows with lists of their own, and a 0 beside them."""
        read = np.concatenate([np.concatenate(own) for own in states])
        lists = np.append(read, PADDING if len(states[0]) % 2 else self.constant(0.0))[:, None]
        count = len(read)
        of = np.concatenate([np.arange(count), np.full(len(states) * 2, count)])
        none = np.minimum(of // count, 1)
        weights = (np.ones(1), np.zeros(1 - len(states[0]) % 2))
        laid = self.add(Rows(lists, weights, of, none, np.zeros(len(of))))
        parts = np.split(laid[:count], len(states))
        return [([*np.split(part, len(own))], int(laid[-1])) for part, own in zip(parts, states, strict=True)]

    def form(self, logits: Indices) -> Form:
        return Form(self.constants, tuple(self.steps), logits)


def recurrent(drawn: Generator, length: int, units: int, *, tail: str) -> Form:
    """A bidirectional LSTM; `tail`: what joins its states: their mean, their mean beside zeros for words that are not
    there, their greatest, or a hidden layer."""
    made, width = Building((0.0, 1.0)), 3
    words = made.add(Lookup(drawn.normal(size=(12, width)), np.arange(length))).reshape(length, width)
    states: list[list[Indices]] = []
    for forward in (True, False):
        matrix = drawn.normal(size=(width + units + 1, 4 * units)) * 0.7
        bias = drawn.normal(size=4 * units) * 0.3
        h = c = np.full(units, made.constant(0.0))
        own: dict[int, Indices] = {}
        for place in range(length) if forward else reversed(range(length)):
            gates = made.dense(np.concatenate([words[place], h, [made.constant(1.0)]]), matrix, bias)
            opened = made.add(Curved("sigmoid", gates[: 3 * units]))
            new = made.add(Curved("tanh", gates[3 * units :]))
            i, o, f = opened.reshape(3, units)
            kept = made.add(Pairs(np.concatenate([np.stack([f, c], 1), np.stack([i, new], 1)])))
            c = made.blend(kept.reshape(2, units).T, [1.0, 1.0])
            h = made.add(Pairs(np.stack([o, made.add(Curved("tanh", c))], 1)))
            own[place] = h
        states.append([own[place] for place in range(length)])
    if tail == "padded":
        states = [[*laid, np.full(units, last)] for laid, last in made.beside_zeros(states)]
    lists = np.concatenate([np.stack(own, axis=1) for own in states])
    length = lists.shape[1]
    pooled = made.add(Greatest(lists)) if tail == "greatest" else made.blend(lists, np.full(length, 1 / length))
    if tail == "hidden":
        hidden = made.dense(pooled, drawn.normal(size=(2 * units, 3)), drawn.normal(size=3))
        pooled = made.add(Bends(0.0, hidden))
    return made.form(made.dense(pooled, drawn.normal(size=(len(pooled), 3)) * 2, drawn.normal(size=3) * 0.2))


def gated(drawn: Generator, length: int, units: int, *, start: bool) -> Form:
    """A bidirectional GRU that resets behind the product, and the mean of its states; `start`: not from 0."""
    first = np.round(drawn.normal(size=units), 3) if start else np.zeros(units)
    made, width = Building(sorted({0.0, 1.0, *first.tolist()})), 3
    words = made.add(Lookup(drawn.normal(size=(12, width)), np.arange(length))).reshape(length, width)
    states = []
    for forward in (True, False):
        matrix, bias = drawn.normal(size=(width + units + 1, 2 * units)) * 0.7, drawn.normal(size=2 * units) * 0.3
        again, read = drawn.normal(size=(units + 1, units)) * 0.7, drawn.normal(size=(width, units)) * 0.7
        added = drawn.normal(size=units) * 0.3
        h = np.array([made.constant(number) for number in first])
        own: dict[int, Indices] = {}
        for place in range(length) if forward else reversed(range(length)):
            rows = made.dense(np.concatenate([words[place], h, [made.constant(1.0)]]), matrix, bias)
            z, r = made.add(Curved("sigmoid", rows)).reshape(2, units)
            inner = made.dense(np.append(h, made.constant(1.0)), again, np.zeros(units))
            reset = made.add(Pairs(np.stack([r, inner], 1)))
            taken = made.dense(words[place], read, added)
            new = made.add(Curved("tanh", made.blend(np.stack([taken, reset], 1), [1.0, 1.0])))
            least = np.zeros(units, dtype=np.int64)
            rest = made.add(Rows(z[:, None], (np.array([-1.0]),), np.arange(units), least, np.ones(units)))
            pairs = np.concatenate([np.stack([rest, new], 1), np.stack([z, h], 1)])
            h = made.blend(made.add(Pairs(pairs)).reshape(2, units).T, [1.0, 1.0])
            own[place] = h
        states.append(np.stack([own[place] for place in range(length)], axis=1))
    pooled = made.blend(np.concatenate(states), np.full(length, 1 / length))
    return made.form(made.dense(pooled, drawn.normal(size=(2 * units, 3)) * 2, drawn.normal(size=3) * 0.2))


def attending(drawn: Generator, length: int) -> Form:
    """One head of attention, divided by its sum, with a root and squares behind it."""
    made, width = Building((0.0, 1.0)), 2
    words = made.add(Lookup(drawn.normal(size=(12, width)), np.arange(length))).reshape(length, width)
    query, key = drawn.normal(size=(2, width, width))
    asked = [made.dense(own, query, np.zeros(width)) for own in words]
    keys = [made.dense(own, key, np.zeros(width)) for own in words]
    answers = []
    for place in range(length):
        pairs = np.array([[a, b] for other in keys for a, b in zip(asked[place], other, strict=True)])
        scores = made.blend(made.add(Pairs(pairs)).reshape(length, width), np.ones(width))
        top = made.add(Greatest(scores[None]))
        shifted = made.blend(np.stack([scores, np.repeat(top, length)], 1), [1.0, -1.0])
        sizes = made.add(Curved("exp", shifted))
        share = made.add(Curved("reciprocal", made.blend(sizes[None], np.ones(length))))
        weights = made.add(Pairs(np.stack([sizes, np.repeat(share, length)], 1)))
        weighted = made.add(Pairs(np.array([[w, x] for x in range(width) for w in weights]).reshape(-1, 2)))
        weighted = made.add(Pairs(np.array([[weights[j], words[j][x]] for x in range(width) for j in range(length)])))
        answers.append(made.blend(weighted.reshape(width, length), np.ones(length)))
    pooled = made.blend(np.stack(answers, axis=1), np.full(length, 1 / length))
    squares = made.add(Pairs(np.stack([pooled, pooled], 1)))
    root = made.add(Curved("sqrt", made.dense(squares, np.ones((width, 1)), [0.1])))
    bent = made.add(Curved("erf", pooled))
    return made.form(made.dense(np.concatenate([bent, root]), drawn.normal(size=(width + 1, 2)), drawn.normal(size=2)))


def bagged(drawn: Generator, length: int) -> Form:
    """Words added up; of the sums the root of their squares, other products, a tanh, and what is affine."""
    made, width = Building((0.0, 1.0)), 3
    words = made.add(Lookup(drawn.normal(size=(12, width)), np.arange(length))).reshape(length, width)
    sums = made.blend(words.T, drawn.normal(size=length))
    mixed = made.dense(np.append(sums, made.constant(1.0)), drawn.normal(size=(width + 1, 2)), drawn.normal(size=2))
    squares = made.add(Pairs(np.stack([sums, sums], 1)))
    root = made.add(Curved("sqrt", made.dense(squares, drawn.random((width, 1)), [0.01])))
    pairs = made.add(Pairs(np.stack([np.append(sums, mixed), np.append(mixed, sums)], 1)))
    products = made.dense(np.append(pairs, made.constant(1.0)), drawn.normal(size=(width + 3, 2)), drawn.normal(size=2))
    bent = made.add(Curved("tanh", mixed))
    read = np.concatenate([bent, root, made.add(Curved("sigmoid", products)), mixed])
    return made.form(made.dense(read, drawn.normal(size=(len(read), 3)), drawn.normal(size=3)))


def values(form: Form, tokens: Sequence[int]) -> list[float]:
    """Of all elements, one by one."""
    found = [float(number) for number in form.constants]
    for step in form.steps:
        match step:
            case Lookup(table, positions):
                found += [float(x) for p in positions for x in table[tokens[p]]]
            case Rows(lists, weights, list_of, weights_of, bias):
                new = []
                for at, of, added in zip(list_of, weights_of, bias, strict=True):
                    members = [i for i in lists[at] if i != PADDING]
                    new.append(math.fsum([w * found[i] for w, i in zip(weights[of], members, strict=False)] + [added]))
                found += new
            case Bends(slope, read):
                found += [max(found[i], 0) + slope * min(found[i], 0) for i in read]
            case Greatest(windows):
                found += [max(found[i] for i in window) for window in windows]
            case Pairs(read):
                found += [found[i] * found[j] for i, j in read]
            case Curved(function, read):
                found += [FUNCTIONS[function](found[i]) for i in read]
    return found


def asked(form: Form, original: Sequence[int], options: Sequence[tuple[int, tuple[int, ...]]], label: int) -> Question:
    """`options`: (position, tokens, the original first) of every word."""
    program = compiled(form)
    rivals = [other for other in range(len(form.logits)) if other != label]
    return Question(
        program,
        margins(program, label, rivals),
        np.array(original),
        tuple(position for position, _ in options),
        tuple(tokens for _, tokens in options),
    )


def sentences(question: Question, options: Sequence[Sequence[int]], most: int) -> list[tuple[int, tuple[int, ...]]]:
    """(swaps, tokens) of every sentence with these options of each word and at most so many swaps."""
    found = []
    for chosen in product(*options):
        swaps = sum(option > 0 for option in chosen)
        if swaps <= most:
            tokens = question.original.tolist()
            for word, option in enumerate(chosen):
                tokens[question.positions[word]] = question.tokens[word][option]
            found.append((swaps, tuple(tokens)))
    return found


def margins_at(question: Question, form: Form, tokens: Sequence[int], label: int) -> list[float]:
    """Of the label against every other class, in order."""
    found = values(form, tokens)
    logits = [found[i] for i in form.logits]
    return [logits[label] - z for other, z in enumerate(logits) if other != label]
