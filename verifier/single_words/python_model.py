"""kappa and rho of a model that is a Python object, such as a torch module: EUBA, and brute force beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from swapproof.encodings.errors import BadInput

from .brute_force import Cost, cost_of, flips_by_force
from .euba.euba_classifier import Differentiable, WholeSentences
from .euba.euba_flips import Euba, Variant
from .kappa import Kappa, kappa_of
from .subject import Subject


@dataclass(frozen=True, eq=False)
class ModelEstimate:
    """`euba` holds kappa from below; `by_force` as it is, if that was asked for; `cost` says what that takes."""

    euba: Kappa
    by_force: Kappa | None
    already_wrong: int
    queries: int
    cost: Cost

    @property
    def gap(self) -> Fraction | None:
        """What EUBA's rho is above the true one, at most."""
        return None if self.by_force is None else self.euba.rho[1] - self.by_force.rho[0]


def kappa_of_model(
    model: Differentiable,
    words: Mapping[str, int],
    texts: Sequence[Sequence[int]],
    labels: Sequence[int],
    *,
    mask: int,
    fixed: Collection[int] = (),
    m: int = 512,
    variant: Variant = "paper",
    brute_force: bool = False,
) -> ModelEstimate:
    """kappa of `words` (each with its token) over `texts` of token ids.

    `mask`: the token of EUBA's mask; `fixed`: tokens that are never replaced, the padding for one. Texts that the model
    answers with another label than theirs are left out and counted.
    """
    if not words or not texts or len(texts) != len(labels):
        raise BadInput(f"{len(words)} words, {len(texts)} texts, {len(labels)} labels: some words, and a label a text")
    subjects = []
    for tokens, label in zip(texts, labels, strict=True):
        positions = tuple(place for place, token in enumerate(tokens) if token not in fixed)
        if len(tokens) and int(model.answers(np.array([tokens], dtype=np.int64))[0]) == label:
            subjects.append(Subject(tuple(tokens), positions, label))
    if not subjects:
        raise BadInput("the model answers no text correctly, so kappa is not defined")
    ids = np.array(list(words.values()), dtype=np.int64)
    euba = Euba(WholeSentences(model), ids, mask, m, variant)
    found = kappa_of(list(words), euba.run(subjects))
    cost = cost_of(model.answers, ids, subjects)
    by_force = None
    if brute_force:
        rows = [flips_by_force(model.answers, ids, subject, batch=cost.batch) for subject in subjects]
        flipped, unknown = (np.array(column) for column in zip(*rows, strict=True))
        by_force = kappa_of(list(words), flipped, unknown)
    return ModelEstimate(found, by_force, len(texts) - len(subjects), euba.queries, cost)
