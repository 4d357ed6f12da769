"""Section 4.3 of FORMAT.md read back from its bytes, evaluated exactly, and bounded as section 8 says: plain."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

FUNCTIONS: dict[int, Callable[[Any], Any]] = {
    1: np.exp,
    2: np.tanh,
    3: lambda x: 1.0 / (1.0 + np.exp(-x)),
    4: np.vectorize(math.erf),
    5: lambda x: 1.0 / x,
    6: np.sqrt,
}
GRID = Fraction(1, 2**64)
UNIT = Fraction(257, 2**32)


class Bytes:
    """Section 4.3 of FORMAT.md, read back; `numbers` are what the hashes in it stand for."""

    def __init__(self, data: bytes, numbers: dict[str, bytes]) -> None:
        self.data, self.at, self.behind = data, 0, numbers
        self.sizes: tuple[list[Fraction], list[Fraction], list[int]] | None = None
        assert self.take(16) == b"swapproof net 2\n"
        self.float32, self.positions = self.u32(), self.u32()
        count = self.u32()
        self.constants = self.numbers()
        assert len(self.constants) == count
        assert self.constants == sorted(set(self.constants))
        self.layers = [self.layer() for _ in range(self.u32())]
        self.logits = self.u32s(self.u32())
        assert self.at == len(data)

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u32s(self, count: int) -> list[int]:
        return list(struct.unpack(f"<{count}I", self.take(4 * count)))

    def numbers(self) -> list[Fraction]:
        form = self.u32()
        kept = self.behind[self.take(32).hex()]
        assert kept[:1] == str(form).encode()
        if form == 3:
            pairs = [text.split("/") for text in kept[1:].decode().split(",")]
            found = [Fraction(int(p, 16), int(q, 16)) for p, q in pairs]
            assert [f"{x.numerator:x}/{x.denominator:x}" for x in found] == [f"{p}/{q}" for p, q in pairs]
            return found
        array = np.frombuffer(kept[1:], dtype="<f4" if form == 1 else "<f8")
        assert not (np.signbit(array) & (array == 0)).any()
        return [Fraction(float(number)) for number in array]

    def layer(self) -> tuple[Any, ...]:
        kind = self.u32()
        if kind == 1:
            rows, columns = self.u32(), self.u32()
            table = self.numbers()
            return kind, [table[row * columns : (row + 1) * columns] for row in range(rows)], self.u32s(self.u32())
        if kind == 2:
            lists = [self.u32s(self.u32()) for _ in range(self.u32())]
            lengths = self.u32s(self.u32())
            flat = iter(self.numbers())
            weights = [[next(flat) for _ in range(length)] for length in lengths]
            assert next(flat, None) is None
            pairs = [(self.u32(), self.u32()) for _ in range(self.u32())]
            for distinct, used in ((lists, [a for a, _ in pairs]), (weights, [b for _, b in pairs])):
                assert len({tuple(x) for x in distinct}) == len(distinct)
                assert list(dict.fromkeys(used)) == list(range(len(distinct)))
            return kind, lists, weights, pairs, self.numbers()
        if kind == 3:
            return kind, self.numbers()[0], self.u32s(self.u32())
        if kind == 5:
            read = self.u32s(2 * self.u32())
            return kind, list(zip(read[::2], read[1::2], strict=True))
        if kind == 6:
            function = self.u32()
            return kind, FUNCTIONS[function], self.u32s(self.u32())
        assert kind == 4
        windows = [self.u32s(self.u32()) for _ in range(self.u32())]
        assert all(window == sorted(set(window)) for window in windows)
        return kind, windows

    def logits_of(self, tokens: Sequence[int]) -> list[Fraction]:
        x = self.values(tokens)
        return [x[k] for k in self.logits]

    def values(self, tokens: Sequence[int]) -> list[Fraction]:
        """Of all elements."""
        assert len(tokens) == self.positions
        x = list(self.constants)
        for kind, *parts in self.layers:
            match kind:
                case 1:
                    table, positions = parts
                    x += [number for position in positions for number in table[tokens[position]]]
                case 2:
                    lists, weights, pairs, biases = parts
                    rows = zip(pairs, biases, strict=True)
                    x += [
                        sum((w * x[k] for w, k in zip(weights[b], lists[a], strict=True)), bias)
                        for (a, b), bias in rows
                    ]
                case 3:
                    alpha, read = parts
                    x += [max(x[k], 0) + alpha * min(x[k], 0) for k in read]
                case 4:
                    x += [max(x[k] for k in window) for window in parts[0]]
                case 5:
                    x += [x[a] * x[b] for a, b in parts[0]]
                case 6:
                    function, read = parts
                    x += [function(x[k]) for k in read]
        return x

    def floats_of(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """The logits in float64, which any network has."""
        x = np.array([float(c) for c in self.constants])
        for kind, *parts in self.layers:
            match kind:
                case 1:
                    table, positions = parts
                    found = [number for position in positions for number in table[tokens[position]]]
                case 2:
                    lists, weights, pairs, biases = parts
                    found = [
                        float(np.dot(np.array(weights[b], dtype=np.float64), x[lists[a]])) + float(bias)
                        for (a, b), bias in zip(pairs, biases, strict=True)
                    ]
                case 3:
                    alpha, read = parts
                    found = [max(x[k], 0.0) + float(alpha) * min(x[k], 0.0) for k in read]
                case 4:
                    found = [x[window].max() for window in parts[0]]
                case 5:
                    found = [x[a] * x[b] for a, b in parts[0]]
                case 6:
                    function, read = parts
                    found = function(x[read])
            x = np.concatenate([x, np.array(found, dtype=np.float64)])
        return np.asarray(x[self.logits])

    def rounding(self, choices: Sequence[Sequence[int]], tokens: Sequence[int] | None = None) -> list[Fraction] | None:
        """Section 8: e of every logit over the whole space, or of one sentence; None if it is refused."""
        A = [ceil64(abs(c)) for c in self.constants]
        e, n = [Fraction(0)] * len(A), [0] * len(A)
        known = list(self.constants) + [None] * 10**6
        exact = None if tokens is None else self.values(tokens)
        whole = None if tokens is None else self.sizes
        straight: list[bool] = [True] * len(A)
        for kind, *parts in self.layers:
            start = len(A)
            if kind == 1:
                table, positions = parts
                for position in positions:
                    rows = zip(*(table[t] for t in choices[position]), strict=True)
                    A += [ceil64(max(map(abs, column))) for column in rows]
                e += [Fraction(0)] * (len(A) - start)
            elif kind == 2:
                lists, weights, pairs, biases = parts
                for (a, b), bias in zip(pairs, biases, strict=True):
                    terms = [(abs(w), k) for w, k in zip(weights[b], lists[a], strict=True)]
                    live = [(w, k) for w, k in terms if w and A[k] + e[k]]
                    count = len(live) + 3 + sum(n[k] for w, k in live if w == 1)
                    count += max((n[k] for w, k in live if w != 1), default=0)
                    total = sum((w * (A[k] + e[k]) for w, k in terms), abs(bias))
                    most = max([total, abs(bias), *(w for w, _ in terms), *(A[k] + e[k] for _, k in live)])
                    if count > 65280 or most > 2**40:
                        return None
                    A.append(ceil64(sum((w * A[k] for w, k in terms), abs(bias))))
                    grown = sum((w * e[k] for w, k in terms), Fraction(0)) + count * UNIT * total
                    e.append(ceil64(grown) + GRID)
                    n.append(count)
            elif kind == 3:
                alpha, read = parts
                for k in read:
                    low, high = (-A[k], A[k]) if known[k] is None else (known[k], known[k])
                    if exact is not None:
                        low = high = exact[k]
                    low, high = -ceil64(-low), ceil64(high)
                    if alpha == 0:
                        dead = high + e[k] <= 0
                        A.append(Fraction(0) if dead else max(high, Fraction(0)))
                        e.append(Fraction(0) if dead else e[k])
                    else:
                        A.append(max(-low, high))
                        if A[-1] + e[k] > 2**40:
                            return None
                        e.append(ceil64(e[k] + 4 * UNIT * (A[-1] + e[k])) + GRID)
            else:
                for window in parts[0]:
                    ends = [(-A[k], A[k]) if known[k] is None else (known[k], known[k]) for k in window]
                    if exact is not None:
                        ends = [(exact[k], exact[k]) for k in window]
                    A.append(max(-max(-ceil64(-low) for low, _ in ends), max(ceil64(high) for _, high in ends)))
                    e.append(max(e[k] for k in window))
            n += [0] * (len(A) - len(n))
            linear = kind in (1, 2) and all(straight[k] for k in read_by(kind, parts))
            straight += [linear] * (len(A) - start)
            if linear and whole is not None:
                sizes, errors, counts = whole
                A[start:], e[start:], n[start:] = sizes[start : len(A)], errors[start : len(A)], counts[start : len(A)]
        if whole is None:
            self.sizes = A, e, n
        return [e[k] for k in self.logits]


def read_by(kind: int, parts: Sequence[Any]) -> set[int]:
    return {k for row in parts[0] for k in row} if kind == 2 else set()


def ceil64(x: Fraction) -> Fraction:
    return Fraction(ceil(x * 2**64), 2**64)
