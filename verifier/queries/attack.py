"""Inputs at which all atoms may hold: projected gradient descent on the worst atom, from many starts at once."""

from __future__ import annotations

import numpy as np

from swapproof.encodings.bounds.normal_form import Functions, Stack, applied, handed_back
from swapproof.encodings.network import Floats

from .question import Question

STARTS, STEPS = 64, 40


def worst(question: Question, x: Floats) -> Floats:
    """[n]: the greatest of the atoms at points [n, inputs]; all hold where it is <= 0."""
    return np.asarray(atoms_at(question.stack, question.atoms, x)[1].max(axis=1, initial=-np.inf))


def atoms_at(stack: Stack, atoms: Functions, x: Floats) -> tuple[list[Floats], Floats]:
    """The inputs of all neurons, and the atoms [n, K]."""
    inputs, _ = stack.values(x)
    return inputs, applied(atoms, [x, *(np.maximum(z, 0.0) for z in inputs)])


def descent(question: Question, x: Floats) -> tuple[Floats, Floats]:
    """The worst atom at x, and its gradient in x: the analytic one, backwards through the layers."""
    inputs, found = atoms_at(question.stack, question.atoms, x)
    rows = found.argmax(axis=1)

    def through(i: int, given: Floats | None) -> Floats | None:
        return None if given is None else given * (inputs[i - 1] > 0)

    gradient = handed_back(question.stack.layers, {j: w[rows] for j, w in question.atoms.weights.items()}, through)
    return found.max(axis=1), np.zeros_like(x) if gradient is None else gradient


def attack(question: Question, source: np.random.Generator, starts: int = STARTS, steps: int = STEPS) -> Floats:
    """The points met, the best first; stops early when all atoms hold at one of them.

    Half of the points move by the sign of the gradient, half along it; steps shrink from a third of the box.
    """
    low, high = question.low, question.high
    width = high - low
    x = low + width * source.random((starts, len(low)))
    x[0] = (low + high) / 2
    best_x, best = x.copy(), np.full(starts, np.inf)
    signs = (np.arange(starts) % 2 == 0)[:, None]
    for step in range(steps):
        value, slope = descent(question, x)
        improved = value < best
        best = np.where(improved, value, best)
        best_x = np.where(improved[:, None], x, best_x)
        if (best <= 0).any() and step > 0:
            break
        size = 0.35 * (1 - step / steps) ** 1.5 + 1e-4
        along = slope * width
        norm = np.sqrt((along**2).sum(axis=1, keepdims=True)) + 1e-300
        move = np.where(signs, np.sign(slope), along / norm * np.sqrt(len(low)))
        x = np.clip(x - size * width * move, low, high)
    order = np.argsort(best, kind="stable")
    return np.asarray(best_x[order])
