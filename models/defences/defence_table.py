"""The defences that a recipe can name: adding one is a file beside this one and a line in this table."""

from __future__ import annotations

from .changed_words import A2t, Masked, Rand, SpDefence, Substituted
from .given_vectors import CounterFitted, GivenVectors
from .gradient_ascent import FreeLb, FreeLbPlusPlus, InfoBert, Pgd, TaVat
from .listed_examples import Ada, MixAda
from .live_examples import AdaLive
from .no_defence import NoDefence
from .smooth_contract import Contract, Smooth, SmoothContract
from .swap_margins import CrownIbp, Ibp, SmoothIbp, SwapHinge
from .synonym_hull import Ascc, Dne
from .training_rule import Defence

DEFENCES: dict[str, type[Defence]] = {
    "none": NoDefence,
    "ada": Ada,
    "mixada": MixAda,
    "pgd": Pgd,
    "freelb": FreeLb,
    "freelb++": FreeLbPlusPlus,
    "ta-vat": TaVat,
    "infobert": InfoBert,
    "dne": Dne,
    "ascc": Ascc,
    "ibp": Ibp,
    "crown-ibp": CrownIbp,
    "smooth-ibp": SmoothIbp,
    "a2t": A2t,
    "ada-live": AdaLive,
    "rand": Rand,
    "sp-defense": SpDefence,
    "mask": Masked,
    "substitute": Substituted,
    "smooth-contract": SmoothContract,
    "smooth": Smooth,
    "contract": Contract,
    "swap-hinge": SwapHinge,
    "vectors": GivenVectors,
    "counter-fit": CounterFitted,
}


def method_of(defence: Defence) -> str:
    """What a recipe calls this defence."""
    return next(name for name, kind in DEFENCES.items() if type(defence) is kind)
