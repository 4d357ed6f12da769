"""A certificate's proof tree, node by node, as VIPR derivations: every split an integer disjunction, every leaf a sum.

A leaf that its certificate closes by enumeration, or that does not close here as it stands, is split further until
linear bounds close it: in a region of a single sentence they are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from swapproof.encodings.errors import Disagreement, Unsupported
from swapproof.encodings.programs.exact_functions import Exact, Layer, Vectors
from swapproof.encodings.programs.priced_words import Key, Words, contradiction
from swapproof.encodings.programs.vipr_certificate import Proof
from swapproof.encodings.query import Query

from .vipr_bounds import ZERO, Bounding, Element, Member, Reason, Region, upper_line
from .vipr_program import Written, program_of

ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class Unproved:
    """The bounds of a region, and a rival that may win by these."""

    at: Bounding
    rival: int


@dataclass(eq=False)
class Derivation:
    """Lines of a proof, each added when it is first needed."""

    query: Query
    exact: Exact
    swaps: int
    most: int
    """Characters."""
    root: Bounding = field(init=False)
    written: Written = field(init=False)
    proof: Proof = field(init=False)
    layers: dict[int, Layer] = field(init=False)
    lines: dict[Bounding, dict[Key, int]] = field(default_factory=dict)
    """Of every region, what was derived for it."""

    def __post_init__(self) -> None:
        space = self.query.space
        sizes = {p: len(space.choices[p]) for p in space.swappable}
        allowed = {p: frozenset(range(size)) for p, size in sizes.items()}
        words = Words(sizes, allowed, {}, self.swaps, ("budget",))
        self.root = Bounding(self.exact, Vectors(space), Region(words, tuple(sorted(self.query.rivals))))
        self.root.compute()
        self.written = program_of(self.query, self.exact, self.swaps, self.root)
        self.proof = Proof(self.written.program, self.most)
        self.layers = {layer.node: layer for layer in self.exact.layers}
        self.lines[self.root] = {}
        self.vouch_for_numbers()

    def vouch_for_numbers(self) -> None:
        """L <= z <= U from the rows of earlier layers alone, and logit[label] - logit[rival] <= B."""
        for element in self.root.bounds:
            self.end(self.root, element, 1)
            self.end(self.root, element, -1)
        if len(self.written.rivals) > 1:
            for rival in self.written.rivals.values():
                self.proof.combine(self.resolved(self.root, self.root.lower([(rival.margin, -ONE)], {}).by))

    # ---- lines

    def number(self, *key: Key) -> int:
        return self.proof.numbers[key]

    def variable(self, *key: Key) -> int:
        return self.written.program.variables[key]

    def resolved(self, at: Bounding, reason: Reason) -> dict[int, Fraction]:
        """Keys of rows replaced by line numbers."""
        found: dict[int, Fraction] = {}
        for key, c in reason.multipliers().items():
            match key:
                case int():
                    number = key
                case ("upper", int(n), int(e)):
                    number = self.upper(at, (n, e))
                case ("joint", int(n), tuple(members)):
                    number = self.joined(self.root if at.joint_as_wider else at, n, key, members)
                case _:
                    number = self.proof.numbers[key]
            found[number] = found.get(number, ZERO) + c
        return found

    def kept(self, at: Bounding, key: Key) -> int | None:
        return self.lines.setdefault(at, {}).get(key)

    def assumed(self, element: Element, sign: int) -> int:
        """The rectifier is off (a <= 0) or on (a >= 1)."""
        a = {self.variable("a", *element): ONE}
        return self.proof.assume("G", ONE, a) if sign > 0 else self.proof.assume("L", ZERO, a)

    def side(self, element: Element, sign: int) -> int:
        """- y + z >= 0 when it is on, - y + slope z >= 0 when it is off."""
        known = self.kept(self.root, ("side", element, sign))
        if known is None:
            rest = 1 - self.layers[element[0]].slope
            low, high = self.written.room[element]
            row, push = (("on", *element), -rest * low) if sign > 0 else (("off", *element), -rest * high)
            known = self.proof.combine({self.proof.numbers[row]: -ONE, self.assumed(element, sign): push})
            self.lines[self.root]["side", element, sign] = known
        return known

    def end(self, at: Bounding, element: Element, sign: int) -> int:
        """z >= low, or - z >= - high."""
        ends, whole = at.bounds[element], self.root.bounds[element]
        value, by = (ends.low, ends.low_by) if sign > 0 else (-ends.high, ends.high_by)
        if at is not self.root and value == (whole.low if sign > 0 else -whole.high):
            return self.end(self.root, element, sign)
        known = self.kept(at, ("end", element, sign))
        if known is None:
            known = self.proof.combine(self.resolved(at, by), value)
            self.lines[at]["end", element, sign] = known
        return known

    def upper(self, at: Bounding, element: Element) -> int:
        """- y + s z >= - t."""
        ends, whole = at.bounds[element], self.root.bounds[element]
        if at is not self.root and (ends.low, ends.high) == (whole.low, whole.high):
            return self.upper(self.root, element)
        known = self.kept(at, ("upper", element))
        if known is None:
            slope = self.layers[element[0]].slope
            s, t = upper_line(slope, ends.low, ends.high)
            sides = []
            for side, share in ((-1, s - slope), (1, 1 - s)):
                used = {self.side(element, side): ONE}
                if share:
                    used[self.end(at, element, -side)] = share
                sides.append(self.proof.combine(used, -t) if share or t else self.side(element, side))
            known = self.proof.unsplit(sides[0], self.assumed(element, -1), sides[1], self.assumed(element, 1))
            self.lines[at]["upper", element] = known
        return known

    def joined(self, at: Bounding, n: int, key: Key, members: tuple[Member, ...]) -> int:
        """sum of c (- y + slope z) >= - T, pattern by pattern."""
        known = self.kept(at, key)
        if known is None:
            bound = at.joint[key]
            lines = {pattern: self.pattern(at, n, key, members, pattern) for pattern in bound.patterns}
            for width in range(len(members) - 1, -1, -1):
                element = (n, members[width][0])
                low, high = self.assumed(element, -1), self.assumed(element, 1)
                starts = sorted({pattern[:width] for pattern in lines})
                lines = {s: self.proof.unsplit(lines[*s, 0], low, lines[*s, 1], high) for s in starts}
            known = self.lines[at][key] = lines[()]
        return known

    def pattern(self, at: Bounding, n: int, key: Key, members: tuple[Member, ...], pattern: tuple[int, ...]) -> int:
        """sum of c (- y + slope z) >= - its part of T, where these members are on and the others off."""
        by = at.joint[key].patterns[pattern][1]
        if by is None:
            return self.pattern(self.root, n, key, members, pattern)
        known = self.kept(at, (key, pattern))
        if known is None:
            used = self.resolved(at, by)
            for active, (e, c, _) in zip(pattern, members, strict=True):
                line = self.side((n, e), 1 if active else -1)
                used[line] = used.get(line, ZERO) + c
            known = self.lines[at][key, pattern] = self.proof.combine(used)
        return known

    # ---- leaves

    def close(self, region: Region) -> int | Unproved:
        """The number of an absurdity."""
        empty = contradiction(region.words)
        if empty is not None:
            rows = Reason({key: Fraction(c) for key, c in empty.items()})
            return self.proof.combine(self.resolved(self.root, rows))
        root = self.root
        inherited = Bounding(self.exact, root.vectors, region, root.bounds, wider=root, joint_as_wider=True)
        own = Bounding(self.exact, root.vectors, region, wider=root)
        for at in (inherited, own):
            if at is own:
                own.compute()
            proved = {rival: self.margin(at, rival) for rival in region.rivals}
            if None not in proved.values():
                found = self.against_all(region, at, {r: by for r, by in proved.items() if by is not None})
                self.lines.pop(at, None)
                return found
        return Unproved(own, next(rival for rival, by in proved.items() if by is None))

    def margin(self, at: Bounding, rival: int) -> Reason | None:
        """Multipliers that give margin > - d."""
        stated = self.written.rivals[rival]
        found = at.lower([(stated.margin, ONE)], {}, margin=True)
        return found.by if found.value + stated.step > 0 else None

    def against_all(self, region: Region, at: Bounding, proved: Mapping[int, Reason]) -> int:
        """An absurdity for each rival, and for all of them together."""
        several = len(self.written.rivals) > 1
        absurd: dict[int, int] = {}
        for rival, by in proved.items():
            used = self.resolved(at, by)
            used[self.number("beats", rival)] = ONE
            if several:
                stated = self.written.rivals[rival]
                used[self.chosen((rival,), 1)] = stated.most + stated.step
            absurd[rival] = self.proof.combine(used)
        if not several:
            return next(iter(absurd.values()))
        none: dict[int, Fraction] = {self.chosen((rival,), -1): -ONE for rival in absurd}
        if isinstance(region.rivals_key, int):
            none[region.rivals_key] = ONE
        current = self.proof.combine({**none, self.number("one", "rivals"): ONE})
        for rival, one in absurd.items():
            current = self.proof.unsplit(current, self.chosen((rival,), -1), one, self.chosen((rival,), 1))
        return current

    def chosen(self, rivals: tuple[int, ...], sign: int) -> int:
        """One of these rivals wins, or none of them."""
        terms = {self.variable("rival", r): ONE for r in rivals}
        return self.proof.assume("G", ONE, terms) if sign > 0 else self.proof.assume("L", ZERO, terms)

    def worst(self, unproved: Unproved) -> tuple[int, int]:
        """The undecided swap, (position, choice), that lowers the bound most."""
        at, rival = unproved.at, unproved.rival
        words, found = at.region.words, at.lower([(self.written.rivals[rival].margin, ONE)], {}, margin=True)
        undecided = words.undecided()
        if not undecided:
            raise Disagreement(
                f"over the reals class {rival} beats class {self.query.label} in a sentence said to be safe"
            )
        by = found.by.multipliers()
        costs = {p: {c: by.get(("choice", p, c), ZERO) for c in words.swaps(p)} for p in undecided}
        ones = {p: by.get(("one", p), ZERO) for p in undecided}
        position = min(undecided, key=lambda p: (ones[p], p))
        return position, min(costs[position], key=lambda c: (costs[position][c], c))

    # ---- splits

    def words_sides(self, region: Region, position: int, left: frozenset[int]) -> list[tuple[Region, int]]:
        """The choices in `left`, and the others; with what each assumes."""
        terms = {self.variable("choice", position, c): ONE for c in left}
        within, beyond = self.proof.assume("G", ONE, terms), self.proof.assume("L", ZERO, terms)
        words, one = region.words, self.number("one", position)
        others: dict[int, Fraction] = {beyond: -ONE}
        earlier = words.excluded.get(position)
        if isinstance(earlier, int):
            others[earlier] = ONE
        rows = (self.excluding({within: ONE, one: -ONE}), self.excluding(others))
        sides = []
        for kept, row, line in (
            (left, rows[0], within),
            (words.allowed[position] - left, rows[1], beyond),
        ):
            part = replace(
                words,
                allowed={**words.allowed, position: kept},
                excluded={**words.excluded, position: row},
            )
            sides.append((replace(region, words=part), line))
        return sides

    def excluding(self, multipliers: dict[int, Fraction]) -> int:
        key = ("excluding", *sorted(multipliers.items()))
        known = self.kept(self.root, key)
        if known is None:
            known = self.lines[self.root][key] = self.proof.combine(multipliers)
        return known

    def rivals_sides(self, region: Region, left: tuple[int, ...]) -> list[tuple[Region, int]]:
        within, beyond = self.chosen(left, 1), self.chosen(left, -1)
        others: dict[int, Fraction] = {beyond: -ONE}
        if isinstance(region.rivals_key, int):
            others[region.rivals_key] = ONE
        rows = self.excluding({within: ONE, self.number("one", "rivals"): -ONE}), self.excluding(others)
        right = tuple(rival for rival in region.rivals if rival not in left)
        return [
            (replace(region, rivals=rivals, rivals_key=row), line)
            for rivals, row, line in ((left, rows[0], within), (right, rows[1], beyond))
        ]

    def combine_sides(self, left: int, low: int, right: int, high: int) -> int:
        if not (self.proof.constraints[left].absurd and self.proof.constraints[right].absurd):
            raise Unsupported("a side of a split does not end in an absurdity")
        return self.proof.unsplit(left, low, right, high)
