"""Sections 15.1 and 15.3 of FORMAT.md for one sentence, element by element in fractions: slow, the same to the unit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import Any

import mpmath
from smooth_values import EXACT

from swapproof.proofs import check
from swapproof.proofs import exact_network as networks

Element = tuple[int, int, int, int, int]
"""Low, high, size, roundings, error, in units; the last three are 0 at level real."""


class Plain:
    def __init__(self, space: check.Space, q: int, kernel: bool) -> None:
        self.space, self.network, self.q, self.kernel = space, space.network, q, kernel
        self.whole: dict[int, tuple[int, int, int]] = {}
        if kernel:
            for i, x in enumerate(self.network.constants):
                self.whole[i] = ceil(abs(Fraction(x << q, self.network.owner[0].scale))), 0, 0
            for layer in self.network.earlier:
                self.whole_layer(layer)

    def whole_layer(self, layer: networks.Layer) -> None:
        if isinstance(layer, networks.Embedding):
            for at, p in enumerate(layer.positions):
                for k in range(layer.width):
                    most = max(abs(layer.row(token)[k]) for token in self.space.tokens[p])
                    self.whole[layer.start + at * layer.width + k] = ceil(Fraction(most << self.q, layer.scale)), 0, 0
        else:
            for place in range(layer.size):
                self.whole[layer.start + place] = self.rounding(layer, place, self.whole)[1:]

    def terms(self, layer: Any, place: int) -> tuple[list[tuple[int, Fraction]], Fraction]:
        at, of = layer.pairs[place]
        weights = [Fraction(w, layer.size_scale) for w in layer.weights[of]]
        return list(zip(layer.lists[at], weights, strict=True)), Fraction(layer.biases[place], layer.bias_scale)

    def rounding(self, layer: Any, place: int, known: Any) -> tuple[int, int, int, int]:
        """a, s, n, e of a row."""
        terms, bias = self.terms(layer, place)
        sne = {i: known[i][-3:] for i, _ in terms}
        used = [(i, w) for i, w in terms if w and sne[i][0]]
        n = len(used) + 3 + sum(sne[i][1] for i, w in used if abs(w) == 1)
        n += max((sne[i][1] for i, w in used if abs(w) != 1), default=0)
        total = sum(abs(w) * sne[i][0] for i, w in terms) + abs(bias) * 2**self.q
        a = ceil(n * 257 * total / 2**32) + 1
        return a, ceil(total), n, ceil(sum(abs(w) * sne[i][2] for i, w in terms)) + a

    def widened(self, low: int, high: int, by: int) -> Element:
        low, high = (low - by, high + by) if self.kernel else (low, high)
        return low, high, max(-low, high) if self.kernel else 0, 0, 0

    def curve(self, function: int, low: int, high: int) -> Element:
        q, one = self.q, 1 << 2 * self.q
        if function == 5:
            low, high = floor(Fraction(one, high)), ceil(Fraction(one, low))
        elif function == 6:
            low, high = isqrt(low << q), -(-isqrt((high << q) * 4**40 - 1) // 2**40) if high else 0
        else:
            with mpmath.workprec(600):
                low, high = (
                    int(rounded(mpmath.ldexp(EXACT[function](mpmath.ldexp(x, -q)), q)))
                    for rounded, x in ((mpmath.floor, low), (mpmath.ceil, high))
                )
        p = max(-low, high)
        by = {1: ceil(Fraction(p, 2**22)), 5: ceil(Fraction(p, 2**23)), 6: ceil(Fraction(p, 2**23))}
        return self.widened(low, high, by.get(function, ceil(Fraction(2**q, 2**21))) + 1)

    def intervals(self, text: Sequence[int]) -> list[Element]:
        network, q = self.network, self.q
        exact = network.start()
        network.evaluate(network.earlier, exact, text)
        found: list[Element] = []
        for layer in [network.owner[0]] * bool(network.constants) + network.layers:
            for place in range(layer.size):
                i = layer.start + place
                if not layer.depth:
                    number = Fraction(exact[i] << q, layer.scale)
                    s, n, e = self.whole[i] if self.kernel else (0, 0, 0)
                    found.append((floor(number) - e, ceil(number) + e, s, n, e))
                elif isinstance(layer, networks.Affine):
                    terms, bias = self.terms(layer, place)
                    low = floor(sum(w * found[j][w < 0] for j, w in terms) + bias * 2**q)
                    high = ceil(sum(w * found[j][w > 0] for j, w in terms) + bias * 2**q)
                    a, *rest = self.rounding(layer, place, found) if self.kernel else (0, 0, 0, 0)
                    found.append((low - a, high + a, *rest))
                elif isinstance(layer, networks.Rectifier):
                    low, high, *_ = found[layer.sources[place]]
                    alpha = Fraction(layer.p, layer.q)
                    by = ceil(Fraction(4 * 257 * max(-low, high), 2**32)) + 1 if alpha else 0
                    ends = floor(max(low, 0) + alpha * min(low, 0)), ceil(max(high, 0) + alpha * min(high, 0))
                    found.append(self.widened(*ends, by))
                elif isinstance(layer, networks.Maximum):
                    window = [found[layer.sources[at]] for at in layer.windows[place]]
                    found.append(self.widened(max(x[0] for x in window), max(x[1] for x in window), 0))
                elif isinstance(layer, networks.Product):
                    x, y = found[layer.firsts[place]][:2], found[layer.seconds[place]][:2]
                    products = [Fraction(a * b, 2**q) for a in x for b in y]
                    if layer.firsts[place] == layer.seconds[place]:
                        products = [Fraction(a * a, 2**q) for a in x] + [Fraction(0)] * (x[0] < 0 < x[1])
                    low, high = floor(min(products)), ceil(max(products))
                    found.append(self.widened(low, high, ceil(Fraction(2 * 257 * max(-low, high), 2**32)) + 1))
                elif isinstance(layer, networks.Curve):
                    found.append(self.curve(layer.function, *found[layer.sources[place]][:2]))
        return found
