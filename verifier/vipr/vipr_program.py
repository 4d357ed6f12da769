"""The integer program of a certificate: a sentence with at most k swaps in which some rival beats the label.

    x[p, t] in {0, 1}, sum over t of x[p, t] = 1         token t stands at position p
    sum of x[p, t], t not the original <= k              the budget
    z[n, e] = affine function of x and earlier y         what element e of the rectifier at node n reads
    y >= z,  y >= slope z,  a in {0, 1}                  y = max(z, slope z), slope = 0 for Relu
    y <= z - (1 - slope) L (1 - a),  y <= slope z + (1 - slope) U a
    logit[r] - logit[label] >= d                         for the rival r; with w[r] in {0, 1}, sum = 1, for several:
    logit[r] - logit[label] >= d - (d + B) (1 - w[r])

All is made from the ONNX file with exact rationals. d is 0 where the rival wins ties, else the reciprocal of a common
denominator of all values that the difference can take. L, U and B are valid by the first lines of the derivation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm

from swapproof.encodings.programs.exact_functions import Exact, Function
from swapproof.encodings.programs.vipr_certificate import Program
from swapproof.encodings.query import Query

from .vipr_bounds import ZERO, Bounding, Element, difference, negative

COARSE = 1 << 16
"""L, U and B are rounded outwards to multiples of its reciprocal."""


@dataclass(frozen=True, eq=False)
class Rival:
    """margin = logit[label] - logit[rival]; `step` is d, `most` is B."""

    margin: Function
    step: Fraction
    most: Fraction


@dataclass(frozen=True, eq=False)
class Written:
    """The program, and the numbers in it that are no weights."""

    program: Program
    rivals: dict[int, Rival]
    room: dict[Element, tuple[Fraction, Fraction]]
    """L and U."""


def program_of(query: Query, exact: Exact, swaps: int, root: Bounding) -> Written:
    """`root` holds the bounds of the whole space."""
    room = {
        element: (
            min(Fraction(floor(ends.low * COARSE), COARSE), ZERO),
            max(Fraction(ceil(ends.high * COARSE), COARSE), ZERO),
        )
        for element, ends in root.bounds.items()
    }
    rivals = {rival: rival_of(query, exact, rival, root) for rival in query.rivals}
    program = Program()
    add_words(program, query, swaps, several=len(rivals) > 1)
    for layer in exact.layers:
        for e, function in enumerate(layer.inputs):
            add_rectifier(program, layer.node, e, layer.slope, function, room[layer.node, e])
    for r, rival in rivals.items():
        terms = terms_of(program, negative(rival.margin))
        right = rival.step + rival.margin.constant
        if len(rivals) > 1:
            terms[program.variables["rival", r]] = -(rival.most + rival.step)
            right = rival.margin.constant - rival.most
        program.add(("beats", r), f"beats[{r}]", "G", right, terms)
    return Written(program, rivals, room)


def rival_of(query: Query, exact: Exact, rival: int, root: Bounding) -> Rival:
    margin = difference(exact.logits[query.label], exact.logits[rival])
    most = max(-root.lower([(margin, Fraction(-1))], {}).value, ZERO)
    step = ZERO if rival < query.label else Fraction(1, denominator(exact, margin))
    return Rival(margin, step, Fraction(ceil(most * COARSE), COARSE))


def denominator(exact: Exact, target: Function) -> int:
    """One for all values that the function can take in a sentence: words are whole numbers."""
    common: dict[int, int] = {}

    def of(function: Function) -> int:
        parts = [function.constant, *function.words.values()]
        found = lcm(*(part.denominator for part in parts))
        return lcm(found, *(c.denominator * common[n] for (n, _), c in function.units.items()))

    for layer in exact.layers:
        common[layer.node] = lcm(*(of(function) for function in layer.inputs)) * layer.slope.denominator
    return of(target)


def add_words(program: Program, query: Query, swaps: int, *, several: bool) -> None:
    space, budget = query.space, {}
    for p in space.swappable:
        numbers = []
        for c, token in enumerate(space.choices[p]):
            numbers.append(program.variable(("choice", p, c), f"x[{p},{token}]", integer=True))
            program.add(("choice", p, c), f"x[{p},{token}]>=0", "G", ZERO, {numbers[-1]: Fraction(1)})
        program.add(("one", p), f"one[{p}]", "E", Fraction(1), dict.fromkeys(numbers, Fraction(1)))
        budget.update(dict.fromkeys(numbers[1:], Fraction(1)))
    program.add(("budget",), "budget", "L", Fraction(swaps), budget)
    if several:
        chosen = {r: program.variable(("rival", r), f"w[{r}]", integer=True) for r in query.rivals}
        for r, number in chosen.items():
            program.add(("rival", r), f"w[{r}]>=0", "G", ZERO, {number: Fraction(1)})
        program.add(("one", "rivals"), "one[rivals]", "E", Fraction(1), dict.fromkeys(chosen.values(), Fraction(1)))


def add_rectifier(
    program: Program, n: int, e: int, slope: Fraction, function: Function, room: tuple[Fraction, Fraction]
) -> None:
    z, y = (program.variable((kind, n, e), f"{kind}[{n},{e}]") for kind in "zy")
    a = program.variable(("a", n, e), f"a[{n},{e}]", integer=True)
    one, rest, (low, high), where = Fraction(1), 1 - slope, room, f"[{n},{e}]"
    program.add(("a low", n, e), f"a{where}>=0", "G", ZERO, {a: one})
    program.add(("a high", n, e), f"a{where}<=1", "L", one, {a: one})
    minus = {v: -c for v, c in terms_of(program, function).items()}
    program.add(("define", n, e), f"define{where}", "E", function.constant, {**minus, z: one})
    program.add(("above", n, e), f"above{where}", "G", ZERO, {y: one, z: -one})
    program.add(("leak", n, e), f"leak{where}", "G", ZERO, {y: one, z: -slope})
    program.add(("on", n, e), f"on{where}", "L", -rest * low, {y: one, z: -one, a: -rest * low})
    program.add(("off", n, e), f"off{where}", "L", ZERO, {y: one, z: -slope, a: -rest * high})


def terms_of(program: Program, function: Function) -> dict[int, Fraction]:
    """Without the constant."""
    words = {program.variables["choice", p, c]: value for (p, c), value in function.words.items()}
    return {**words, **{program.variables["y", n, e]: value for (n, e), value in function.units.items()}}
