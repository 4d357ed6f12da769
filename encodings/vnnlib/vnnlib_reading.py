"""VNN-LIB queries, versions 1.0 and 2.0, read: one network, one input and one output tensor, linear facts.

    1.0   (declare-const X_0 Real) ... (assert (<= X_0 1.5)) (assert (or (and ...) ...))
    2.0   (vnnlib-version <2.0>) (declare-network N (declare-input X float32 [1,5]) (declare-output Y float32 [1,2]))
          (assert (<= X[0,3] 1.5))

Both have `and`, `or`, the comparisons <= >= < > == !=, and the arithmetic + - *; one factor of a product is a number.
Anything else is refused with its line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from ..errors import BadInput, OutOfTime, Unsupported
from .linear_property import Atom, Property, Tensor
from .parentheses import Group, Term, Word, groups
from .property_cases import LARGEST, And, Formula, Or, cases_of

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
LARGEST_EXPONENT = 1000
LONGEST = 4000
"""Characters of a number."""
LONGEST_INDEX = 18
"""Digits of an index or a size: no file declares so many numbers, and Python refuses to read thousands of digits."""
OLD_NAME = re.compile(r"([XY])_(0|[1-9]\d*)", re.ASCII)
COMPARISONS = ("<=", ">=", "<", ">", "=", "==", "!=")
SUPPORTED = "and, or, <=, >=, <, >, ==, !=, +, - and * are read"


@dataclass(frozen=True)
class Linear:
    """A linear term; keys are ("X", i) and ("Y", j)."""

    coefficients: dict[tuple[str, int], Fraction]
    constant: Fraction

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        merged = dict(self.coefficients)
        for key, value in other.coefficients.items():
            merged[key] = merged.get(key, Fraction(0)) + sign * value
        return Linear({k: v for k, v in merged.items() if v}, self.constant + sign * other.constant)

    def times(self, factor: Fraction) -> Linear:
        return Linear({k: factor * v for k, v in self.coefficients.items() if factor}, factor * self.constant)


@dataclass
class Reader:
    """What is known so far of the file that is read."""

    source: str
    version: int = 0
    network: str = ""
    old: dict[str, dict[int, int]] = field(default_factory=lambda: {"X": {}, "Y": {}})
    """Version 1: numbers declared, with their lines."""
    tensors: dict[str, tuple[str, Tensor]] = field(default_factory=dict)
    """Version 2: name -> ("X" or "Y", tensor)."""
    until: float | None = None
    """In seconds of time.monotonic()."""
    asserted: list[Formula] = field(default_factory=list)

    def bad(self, line: int, what: str) -> BadInput:
        return BadInput(f"{self.source} line {line}: {what}")

    def unsupported(self, line: int, what: str) -> Unsupported:
        return Unsupported(f"{self.source} line {line}: {what}")

    def command(self, group: Group) -> None:
        name = head(group)
        match name:
            case "vnnlib-version":
                self.versions(group)
            case "declare-network":
                self.declare_network(group)
            case "declare-const" | "declare-fun":
                self.declare_old(group)
            case "assert":
                if len(group.parts) != 2:
                    raise self.bad(group.line, "assert takes one formula")
                self.asserted.append(self.formula(group.parts[1]))
            case "set-logic" | "set-info" | "set-option" | "check-sat" | "get-model" | "get-value" | "exit":
                return  # SMT-LIB's frame, which says nothing about the query
            case _:
                raise self.unsupported(
                    group.line,
                    f"{name or 'a group without a name'}: declare-const (1.0), vnnlib-version and declare-network "
                    "(2.0) and assert are read",
                )

    def versions(self, group: Group) -> None:
        words = [part.text for part in group.parts[1:] if isinstance(part, Word)]
        found = re.fullmatch(r"<?([0-9]+)\.([0-9]+)>?", "".join(words))
        if found is None or found[1] not in ("1", "2"):
            raise self.unsupported(group.line, f"vnnlib-version {' '.join(words)}: 1.0 and 2.0 are read")
        if self.version:
            raise self.bad(group.line, "vnnlib-version belongs at the top, once")
        self.version = int(found[1])

    def declare_old(self, group: Group) -> None:
        words = group.parts[1:]
        if head(group) == "declare-fun" and len(words) == 3 and words[1] == Group((), words[1].line):
            words = (words[0], words[2])
        if len(words) != 2 or not all(isinstance(word, Word) for word in words):
            raise self.bad(group.line, "a declaration is (declare-const NAME Real)")
        name, kind = (word.text for word in words if isinstance(word, Word))
        if self.version == 2 or self.tensors:
            raise self.bad(group.line, f"{name}: version 2.0 declares tensors inside declare-network")
        self.version = 1
        if kind != "Real":
            raise self.unsupported(group.line, f"{name} is {kind}: only Real is read")
        found = OLD_NAME.fullmatch(name)
        if found is None:
            raise self.bad(group.line, f"{name}: inputs are X_0, X_1, ... and outputs Y_0, Y_1, ...")
        if len(found[2]) > LONGEST_INDEX:
            raise self.bad(group.line, f"{name[:20]}...: more than {LONGEST_INDEX} digits; numbers begin with 0")
        numbers = self.old[found[1]]
        if int(found[2]) in numbers:
            raise self.bad(group.line, f"{name} is declared twice")
        numbers[int(found[2])] = group.line

    def declare_network(self, group: Group) -> None:
        if self.version == 1:
            raise self.bad(group.line, "declare-network belongs to version 2.0, and this file is of version 1.0")
        self.version = 2
        if self.network:
            raise self.unsupported(group.line, "a second network; one is supported")
        if len(group.parts) < 3 or not isinstance(group.parts[1], Word):
            raise self.bad(group.line, "(declare-network NAME (declare-input ...) (declare-output ...))")
        self.network = group.parts[1].text
        sides = {"declare-input": "X", "declare-output": "Y"}
        for part in group.parts[2:]:
            if not isinstance(part, Group):
                raise self.bad(part.line, f"{part.text!r} inside declare-network")
            name = head(part)
            if name not in sides:
                raise self.unsupported(part.line, f"{name}: one declare-input and one declare-output are supported")
            tensor = self.tensor(part)
            if tensor.name in self.tensors:
                raise self.bad(part.line, f"{tensor.name} is declared twice")
            if any(side == sides[name] for side, _ in self.tensors.values()):
                raise self.unsupported(part.line, f"a second {name}; one is supported")
            self.tensors[tensor.name] = (sides[name], tensor)

    def tensor(self, group: Group) -> Tensor:
        words = [part.text for part in group.parts[1:] if isinstance(part, Word)]
        if len(words) == 4 and words[3].startswith('"'):
            words = words[:3]  # the name the tensor has in the model: there is only one
        if len(words) != 3 or len(group.parts) < 4 or not words[2].startswith("["):
            raise self.bad(group.line, f"({head(group)} NAME TYPE [SIZES])")
        shape = self.indices(words[2], group.line)
        if any(size < 1 for size in shape):
            raise self.bad(group.line, f"{words[0]} has sizes {list(shape)}; they must be above 0")
        if words[1].lower() not in ("real", "float16", "float32", "float64"):
            raise self.unsupported(group.line, f"{words[0]} is {words[1]}: Real and floats are supported")
        return Tensor(words[0], words[1], shape, group.line)

    def indices(self, text: str, line: int) -> tuple[int, ...]:
        inside = text[1:-1].strip()
        if not inside:
            return ()
        parts = [part.strip() for part in inside.split(",")]
        if not all(part.isascii() and part.isdecimal() for part in parts):
            raise self.bad(line, f"{text}: whole numbers separated by commas are needed")
        if any(len(part) > LONGEST_INDEX for part in parts):
            raise self.bad(line, f"{text[:20]}...: a number of more than {LONGEST_INDEX} digits")
        return tuple(int(part) for part in parts)

    def formula(self, term: Term) -> Formula:
        if self.until is not None and time.monotonic() > self.until:
            raise OutOfTime(f"{self.source} line {term.line}: not read in time")
        if isinstance(term, Word):
            raise self.bad(term.line, f"{term.text!r} where a formula is needed")
        name, parts = head(term), term.parts[1:]
        if name in ("and", "or"):
            if not parts:
                raise self.bad(term.line, f"an empty {name}")
            inner = tuple(self.formula(part) for part in parts)
            return And(inner, term.line) if name == "and" else Or(inner, term.line)
        if name not in COMPARISONS:
            raise self.unsupported(term.line, f"{name or 'a group without a name'} in a formula: {SUPPORTED}")
        sides = list(self.operands(parts))
        if len(sides) != 2:
            raise self.bad(term.line, f"{name} compares two terms, not {len(sides)}")
        difference = sides[0].plus(sides[1], -1)
        if any(abs(value) > LARGEST for value in (difference.constant, *difference.coefficients.values())):
            raise self.bad(term.line, f"{name} with a number beyond {float(LARGEST):g}; smaller ones are read")
        less, greater = difference, difference.times(Fraction(-1))
        match name:
            case "<=" | "<":
                return atom(less, name == "<", term.line)
            case ">=" | ">":
                return atom(greater, name == ">", term.line)
            case "!=":
                return Or((atom(less, True, term.line), atom(greater, True, term.line)), term.line)
            case _:
                return And((atom(less, False, term.line), atom(greater, False, term.line)), term.line)

    def operands(self, parts: Sequence[Term]) -> Iterator[Linear]:
        """The terms in a row; an index in brackets belongs to the name before it."""
        at = 0
        while at < len(parts):
            part = parts[at]
            following = parts[at + 1] if at + 1 < len(parts) else None
            index = following if isinstance(following, Word) and following.text.startswith("[") else None
            if isinstance(part, Group):
                yield self.arithmetic(part)
            else:
                yield self.word(part, index)
                at += index is not None
            at += 1

    def word(self, word: Word, index: Word | None) -> Linear:
        if NUMBER.fullmatch(word.text):
            if index is not None:
                raise self.bad(word.line, f"{word.text}{index.text}: a number has no elements")
            return Linear({}, self.number(word))
        if word.text in self.tensors:
            side, tensor = self.tensors[word.text]
            places = self.indices(index.text, word.line) if index is not None else ()
            if not tensor.shape and places == (0,):
                places = ()
            fits = len(places) == len(tensor.shape)
            if not fits or any(place >= size for place, size in zip(places, tensor.shape, strict=True)):
                shown = f"{word.text}{index.text if index is not None else ''}"
                raise self.bad(word.line, f"{shown}: {word.text} has shape {list(tensor.shape)}")
            flat = 0
            for place, size in zip(places, tensor.shape, strict=True):
                flat = flat * size + place
            return Linear({(side, flat): Fraction(1)}, Fraction(0))
        found = OLD_NAME.fullmatch(word.text)
        known = found is not None and len(found[2]) <= LONGEST_INDEX and int(found[2]) in self.old[found[1]]
        if found is None or not known or index is not None:
            raise self.bad(word.line, f"{word.text[:30]} is not declared")
        return Linear({(found[1], int(found[2])): Fraction(1)}, Fraction(0))

    def number(self, word: Word) -> Fraction:
        exponent = re.search(r"[eE]([+-]?[0-9]+)$", word.text)
        if len(word.text) > LONGEST or (exponent and abs(int(exponent[1])) > LARGEST_EXPONENT):
            raise self.bad(word.line, f"{word.text[:20]}: a number too long, or beyond 10 to the {LARGEST_EXPONENT}")
        return Fraction(word.text)

    def arithmetic(self, group: Group) -> Linear:
        name, terms = head(group), list(self.operands(group.parts[1:]))
        if name not in ("+", "-", "*"):
            raise self.unsupported(group.line, f"{name or 'a group without a name'} in a term: {SUPPORTED}")
        if not terms:
            raise self.bad(group.line, f"an empty {name}")
        result = terms[0]
        if name == "-" and len(terms) == 1:
            return result.times(Fraction(-1))
        for term in terms[1:]:
            if name == "*":
                if result.coefficients and term.coefficients:
                    raise self.unsupported(group.line, "a product of two variables; one factor must be a number")
                result = result.times(term.constant) if not term.coefficients else term.times(result.constant)
            else:
                result = result.plus(term, 1 if name == "+" else -1)
        return result

    def sides(self) -> tuple[Tensor, Tensor]:
        if self.version == 2:
            found = dict(self.tensors.values())
            if len(found) < 2:
                raise BadInput(
                    f"{self.source}: declare-network with one declare-input and one declare-output is needed"
                )
            return found["X"], found["Y"]
        for side, numbers in self.old.items():
            missing = next((n for n in range(len(numbers)) if n not in numbers), None)
            if not numbers or missing is not None:
                raise BadInput(f"{self.source}: {side}_{missing or 0} is not declared")
        first = {side: min(numbers.values()) for side, numbers in self.old.items()}
        tensors = [Tensor(side, "Real", (len(self.old[side]),), first[side], numbered=True) for side in ("X", "Y")]
        return tensors[0], tensors[1]


def head(group: Group) -> str:
    first = group.parts[0] if group.parts else None
    return first.text if isinstance(first, Word) else ""


def atom(linear: Linear, strict: bool, line: int) -> Atom:
    parts = {side: {n: c for (s, n), c in linear.coefficients.items() if s == side} for side in "XY"}
    return Atom(parts["X"], parts["Y"], linear.constant, strict, line)


def read_vnnlib(path: Path, until: float | None = None) -> Property:
    """Raises OutOfTime when time.monotonic() has passed `until`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}: not UTF-8 ({error.reason})") from None
    return parsed(text, str(path), until)


def parsed(text: str, source: str = "query", until: float | None = None) -> Property:
    """The property of a text; `source` is named in errors."""
    reader = Reader(source, until=until)
    for group in groups(text, source, until):
        reader.command(group)
    inputs, outputs = reader.sides()
    cases = cases_of(reader.asserted, inputs, source, until)
    return Property(reader.version, reader.network, inputs, outputs, cases, source)
