"""EUBA beside the exact value: which model it asks, what that costs, and how far its rho is off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.models.vocabulary import UNKNOWN, Vocabulary

from ...tasks.task import Task
from ..brute_force import cpu_seconds
from ..flip_matrix import FlipMatrix
from ..kappa import kappa_of
from ..kappa_setting import Setting
from ..replacements import ids_of
from .euba_classifier import Classifier, WholeSentences
from .euba_flips import Euba, Variant
from .gradient_autograd import ByAutograd
from .gradient_differences import ByDifferences
from .known_network import KnownNetwork

MASKS = ("<mask>", "[MASK]")


@dataclass(frozen=True, eq=False)
class Method:
    """EUBA with everything that what it finds depends on."""

    euba: Euba
    stage: str
    mask: str
    gradients: str


def classifier_of(setting: Setting) -> Classifier:
    """The network that was read, else the model with gradients by torch, or by finite differences."""
    if setting.network is not None:
        return KnownNetwork(setting.network, len(setting.answered.subjects[0].tokens))
    return WholeSentences(differentiated(setting))


def differentiated(setting: Setting) -> ByAutograd | ByDifferences:
    subject, plain = setting.answered.subjects[0], ByDifferences.of(setting.replay)
    plain.refuse_other_readers(subject)
    try:
        return ByAutograd.of(plain, subject)
    except Unsupported:
        return plain


def method_of(setting: Setting, classifier: Classifier, m: int, variant: Variant, seconds: float) -> Method:
    mask, token = mask_of(setting.inputs.vocabulary, setting.task)
    gradients = "of the network as read, by central differences in float64"
    named: object = classifier
    if (model := paid_model(classifier)) is not None:
        named, gradients = model, model.accuracy(setting.answered.subjects[0], token)
    euba = Euba(classifier, setting.candidates.tokens, token, m, variant, seconds)
    of = f"{setting.level} answers by {type(named).__name__}"
    return Method(euba, f"euba {variant}, m = {m}, {seconds} seconds a text, {of}", mask, gradients)


def paid_model(classifier: Classifier) -> ByAutograd | ByDifferences | None:
    """The model behind it, if its gradients have to be paid for in sentences."""
    if isinstance(classifier, WholeSentences) and isinstance(classifier.model, (ByAutograd, ByDifferences)):
        return classifier.model
    return None


def mask_of(vocabulary: Vocabulary, task: Task) -> tuple[str, int]:
    """The mask token of the vocabulary, else its unknown token."""
    ids = ids_of(vocabulary)
    for name in (*MASKS, task.model.unknown, UNKNOWN):
        if isinstance(name, str) and name in ids:
            return name, ids[name]
    raise BadInput(f"{vocabulary.source}: has neither a mask nor an unknown token, one of which EUBA needs")


# ---- what it costs


def gradient_sentences(setting: Setting, model: ByAutograd | ByDifferences) -> int:
    return model.sentences_per_gradient * sum(len(subject.positions) for subject in setting.answered.subjects)


def ways(setting: Setting) -> str:
    """What can be done about a model that we cannot read, and at what cost."""
    try:
        sentences = gradient_sentences(setting, differentiated(setting))
        euba = (
            f"--euba 512 finds flips only, by the work of {sentences:,} sentences for its gradients "
            f"({cpu_seconds(sentences * setting.cost.each)}) and those that it tries"
        )
    except Unsupported as error:
        euba = f"--euba cannot be used ({error})"
    return f"--brute-force would evaluate {setting.cost.sentence}; {euba}"


def costs(setting: Setting, method: Method | None, *, brute_force: bool) -> list[str]:
    """What is going to be done, said before it is."""
    cost, said = setting.cost, []
    if brute_force:
        said.append(f"brute force: {cost.sentence}")
    model = None if method is None else paid_model(method.euba.classifier)
    if method is not None and model is not None:
        sentences = gradient_sentences(setting, model)
        least = 2 * min(method.euba.m, len(setting.candidates.words)) * len(setting.answered.subjects)
        said.append(
            f"EUBA: the work of {sentences:,} sentences for gradients, about {cpu_seconds(sentences * cost.each)}; "
            f"then {least:,} or more are tried, {cpu_seconds(least * cost.each)} or more"
        )
    return said


# ---- what it is worth


def beside(
    found: FlipMatrix | None, flips: FlipMatrix | None, method: Method | None, *, same_model: bool
) -> tuple[FlipMatrix, dict[str, Any]]:
    """The best known A, and what EUBA says beside it: its rho less the true one.

    Its flips are taken where nothing was known, if the same model answered both.
    """
    if flips is None or method is None:
        if found is None:
            raise ValueError("neither flips that were found nor a method that estimates them")
        return found, {}
    rho = rho_of(flips)[1]
    about: dict[str, Any] = {
        "m": method.euba.m,
        "kept_as": method.stage,
        "variant": method.euba.variant,
        "mask": method.mask,
        "gradients": method.gradients,
        "rho": float(rho),
        "flips_found": int(flips.flipped.sum()),
        "queries": flips.about["queries"],
        "cpu_seconds": round(flips.cpu_seconds, 3),
        "beside": None,
    }
    if found is None:
        return flips, {"euba": about}
    unknown = np.zeros_like(found.flipped) if found.unknown is None else found.unknown
    wrong = int((flips.flipped & ~found.flipped & ~unknown).sum())
    if same_model:
        found = replace(found, flipped=found.flipped | (flips.flipped & unknown), unknown=unknown & ~flips.flipped)
    low, high = rho_of(found)
    about |= {
        "beside": found.about["kind"],
        "gap": {"low": float(rho - high), "high": float(rho - low)},
        "flips": int(found.flipped.sum()),
        "flips_that_are_none": wrong,
    }
    return found, {"euba": about}


def rho_of(found: FlipMatrix) -> tuple[Fraction, Fraction]:
    return kappa_of([""] * found.flipped.shape[1], found.flipped, found.unknown).rho
