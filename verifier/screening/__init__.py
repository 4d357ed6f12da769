"""Proofs checked at speed: in float64 with error bounds, and where these decide nothing, by proofs/check.py.

tree        bytes -> leaves           moves, linear_part   what swaps add to the cut, with errors
sets        selection of swaps        lines, magnitudes    relaxations with doubts, weights of errors
substituted, margins, joint           linear leaves        sentences       enumerating leaves
claims      E(r) from above           coverage             models it holds for
screen      one proof                 verdict              one certificate
"""

from .verdict import Screen

__all__ = ["Screen"]
