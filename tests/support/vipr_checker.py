"""A checker of VIPR certificates 1.0 of infeasibility, written from their specification and from nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

Terms = dict[int, Fraction]


class Rejected(ValueError):
    """The file is not a proof."""


@dataclass(frozen=True)
class Constraint:
    name: str
    sense: int
    """1: >=, 0: =, -1: <=."""
    right: Fraction
    terms: Terms

    @property
    def absurd(self) -> bool:
        wrong = (self.sense >= 0 and self.right > 0) or (self.sense <= 0 and self.right < 0)
        return not self.terms and wrong

    def dominates(self, other: Constraint) -> bool:
        if self.absurd:
            return True
        if self.terms != other.terms:
            return False
        if other.sense > 0:
            return self.sense >= 0 and self.right >= other.right
        if other.sense < 0:
            return self.sense <= 0 and self.right <= other.right
        return self.sense == 0 and self.right == other.right

    def holds(self, point: dict[int, Fraction]) -> bool:
        left = sum((c * point.get(v, Fraction(0)) for v, c in self.terms.items()), Fraction(0))
        return left >= self.right if self.sense > 0 else left <= self.right if self.sense < 0 else left == self.right


@dataclass(frozen=True)
class Checked:
    """What was proved: that no point satisfies these constraints with whole numbers for these variables."""

    names: list[str]
    integers: set[int]
    given: list[Constraint]
    reasons: list[list[str]]
    derived: list[Constraint]


def require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise Rejected(otherwise)


class Reader:
    """Words of the file, one after the other."""

    def __init__(self, text: str) -> None:
        lines = text.split("\n")
        start = next(number for number, line in enumerate(lines) if not line.startswith("%"))
        self.words = " ".join(lines[start:]).split()
        self.at = 0

    def word(self) -> str:
        require(self.at < len(self.words), "the file ends too early")
        self.at += 1
        return self.words[self.at - 1]

    def expect(self, *words: str) -> None:
        for word in words:
            found = self.word()
            require(found == word, f"{found} where {word} was expected")

    def index(self, below: int) -> int:
        word = self.word()
        require(word.isdecimal() and int(word) < below, f"{word} is no index below {below}")
        return int(word)

    def value(self) -> Fraction:
        try:
            return Fraction(self.word())
        except (ValueError, ZeroDivisionError) as error:
            raise Rejected(str(error)) from None

    def pairs(self, below: int) -> Terms:
        found: Terms = {}
        for _ in range(self.index(1 << 30)):
            index = self.index(below)
            require(index not in found, f"index {index} twice")
            found[index] = self.value()
        return {index: value for index, value in found.items() if value}

    def constraint(self, variables: int) -> Constraint:
        name, sense = self.word(), self.word()
        require(sense in ("G", "E", "L"), f"{sense} is no sense")
        right = self.value()
        return Constraint(name, {"G": 1, "E": 0, "L": -1}[sense], right, self.pairs(variables))


def check_infeasible(text: str) -> Checked:
    """Raises Rejected unless the last derived constraint is an absurdity without assumptions."""
    reader = Reader(text)
    reader.expect("VER", "1.0", "VAR")
    names = [reader.word() for _ in range(reader.index(1 << 30))]
    require(len(set(names)) == len(names), "a variable twice")
    reader.expect("INT")
    integers = {reader.index(len(names)) for _ in range(reader.index(1 << 30))}
    reader.expect("OBJ", "min")
    reader.pairs(len(names))
    reader.expect("CON")
    count, bounds = reader.index(1 << 30), reader.index(1 << 30)
    known = [reader.constraint(len(names)) for _ in range(count)]
    require(all(len(row.terms) == 1 for row in known[:bounds]), "bounds are not of one variable")
    require(len({row.name for row in known}) == len(known), "a constraint name twice")
    reader.expect("RTP", "infeas", "SOL", "0", "DER")
    assumptions: list[frozenset[int]] = [frozenset()] * count
    reasons: list[list[str]] = []
    derived = reader.index(1 << 30)
    require(derived > 0, "nothing is derived")
    for _ in range(derived):
        claim = reader.constraint(len(names))
        start = reader.at
        assumptions.append(derive(reader, claim, known, assumptions, integers))
        reasons.append(reader.words[start : reader.at])
        reader.expect("-1")
        known.append(claim)
    require(reader.at == len(reader.words), "words after the end")
    require(known[-1].absurd, "the last constraint is no absurdity")
    require(not assumptions[-1], "the last constraint rests on assumptions")
    return Checked(names, integers, known[:count], reasons, known[count:])


def derive(
    reader: Reader,
    claim: Constraint,
    known: list[Constraint],
    assumptions: list[frozenset[int]],
    integers: set[int],
) -> frozenset[int]:
    """The assumptions on which the claim rests."""
    reader.expect("{")
    kind = reader.word()
    rests: frozenset[int]
    if kind == "asm":
        rests = frozenset({len(known)})
    elif kind in ("lin", "rnd"):
        multipliers = reader.pairs(len(known))
        found = combination(multipliers, known)
        if kind == "rnd":
            found = rounded(found, integers)
        require(found.dominates(claim), f"{claim.name} does not follow")
        rests = frozenset().union(*(assumptions[index] for index in multipliers))
    elif kind == "uns":
        one, low, other, high = (reader.index(len(known)) for _ in range(4))
        require(known[one].dominates(claim) and known[other].dominates(claim), f"{claim.name} is not on both sides")
        sides = sorted((known[low], known[high]), key=lambda row: row.sense)
        require([row.sense for row in sides] == [-1, 1], "a disjunction of the wrong senses")
        require(sides[0].terms == sides[1].terms, "a disjunction of different left sides")
        whole = all(v in integers and c.denominator == 1 for v, c in sides[0].terms.items())
        whole = whole and sides[0].right.denominator == 1
        require(whole and sides[1].right == sides[0].right + 1, "no disjunction of whole numbers")
        rests = (assumptions[one] - {low}) | (assumptions[other] - {high})
    else:
        raise Rejected(f"{kind} is no reason")
    reader.expect("}")
    return rests


def combination(multipliers: Terms, known: list[Constraint]) -> Constraint:
    signs = {known[index].sense * (1 if factor > 0 else -1) for index, factor in multipliers.items()} - {0}
    require(len(signs) <= 1, "no suitable linear combination")
    terms: Terms = {}
    right = Fraction(0)
    for index, factor in multipliers.items():
        right += factor * known[index].right
        for variable, c in known[index].terms.items():
            terms[variable] = terms.get(variable, Fraction(0)) + factor * c
    return Constraint("", signs.pop() if signs else 0, right, {v: c for v, c in terms.items() if c})


def rounded(row: Constraint, integers: set[int]) -> Constraint:
    whole = all(v in integers and c.denominator == 1 for v, c in row.terms.items())
    require(whole and row.sense != 0, "this cannot be rounded")
    return Constraint(row.name, row.sense, Fraction(ceil(row.right) if row.sense > 0 else floor(row.right)), row.terms)
