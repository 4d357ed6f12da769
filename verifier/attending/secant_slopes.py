"""The least and the greatest slope of secants of a curve, from a point to an interval (FORMAT section 17.3)."""

from __future__ import annotations

import numpy as np

from swapproof.encodings.network import Floats, Function
from swapproof.encodings.smooth.curves import CURVES
from swapproof.proofs import exact_network as exact

from .cell_plan import TooLoose

FUNCTIONS: tuple[Function, ...] = ("exp", "tanh", "sigmoid", "erf", "reciprocal", "sqrt")
"""By their numbers in the canonical network, less 1."""
STEEPEST = 2.0 / np.sqrt(np.pi)
"""The slope of erf at 0."""

Bent = exact.Rectifier | exact.Curve


def needs_positive(layer: Bent) -> bool:
    return isinstance(layer, exact.Curve) and FUNCTIONS[layer.function - 1] in ("reciprocal", "sqrt")


def value(layer: Bent, x: Floats) -> Floats:
    if isinstance(layer, exact.Rectifier):
        return np.maximum(x, layer.p / layer.q * x)
    if needs_positive(layer) and not (x > 0).all():
        raise TooLoose("1/x, or a root, of what may be 0 or less")
    return np.asarray(CURVES[FUNCTIONS[layer.function - 1]](x))


def slopes(layer: Bent, origin: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    if isinstance(layer, exact.Rectifier):
        slope = layer.p / layer.q
        return rectifier_slope(slope, origin, low, slope), rectifier_slope(slope, origin, high, 1.0)
    function = FUNCTIONS[layer.function - 1]
    if needs_positive(layer):
        if not ((low > 0).all() and (origin > 0).all()):
            raise TooLoose("1/x, or a root, of what may be 0 or less")
        if function == "reciprocal":
            return -1 / (low * origin), -1 / (high * origin)
        root = np.sqrt(origin)
        return 1 / (np.sqrt(high) + root), 1 / (np.sqrt(low) + root)
    low, high = np.minimum(low, origin), np.maximum(high, origin)
    if function == "exp":
        return np.exp(low), np.exp(high)
    far = np.maximum(-low, high)
    near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    if function == "erf":
        return STEEPEST * np.exp(-far * far), STEEPEST * np.exp(-near * near)
    ends = [np.asarray(CURVES[function](x)) for x in (far, near)]
    least, most = [1 - x * x if function == "tanh" else x * (1 - x) for x in ends]
    return least, most


def rectifier_slope(slope: float, origin: Floats, x: Floats, at_zero: float) -> Floats:
    """To one point; the derivative where both are one."""
    apart = np.where(x == origin, 1.0, x - origin)
    secant = (np.maximum(x, slope * x) - np.maximum(origin, slope * origin)) / apart
    return np.where(x == origin, np.where(x > 0, 1.0, np.where(x < 0, slope, at_zero)), secant)
