"""Proofs checked at speed: in float64 with error bounds, and where these decide nothing, by proofs/check.py.

statement   bytes -> certificate      tree                 bytes -> leaves
kernels, linear_part, moves           what swaps add to the cut, with errors
sets, ranks selection of swaps        lines, magnitudes    relaxations with doubts, weights of errors
substituted, margins, joint           linear leaves        sentences            enumerating leaves
census      numbers of sentences      together             many texts at once
claims      E(r) from above           witness              one sentence
agreed_network                        both readings write one network
screen, verdict                       one proof, one certificate
"""

from .form.statement import canonical
from .form.unsure import Unsure
from .verdict import Screen

__all__ = ["Screen", "Unsure", "canonical"]
