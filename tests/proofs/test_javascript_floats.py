"""check.js chooses by floating point what it adds up exactly: its maxima are those of Python's integers on numbers made
to mislead floats.

One node process answers thousands of cases, by direct calls of the functions that check.js keeps inside.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm
from pathlib import Path

import pytest

CHECKER = Path(__file__).parents[2] / "proofs" / "check.js"
TIMES = 40 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1
SECONDS = 600

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

# Reads a case a line. An element is an affine function of the words: its value for the original, and what each swap
# adds, by word. Answers for each region the greatest sum, and the greatest over patterns as a fraction.
DRIVER = r"""
const { swapproofChecker } = require(process.argv[1]);
const { Words, Space, makeCell, greatestSum, greatestOverPatterns } = swapproofChecker().inside;
const integer = (text) => (text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text));
for (const line of require("node:fs").readFileSync(0, "utf8").split("\n").filter((text) => text !== "")) {
  const { sizes, elements, dens, regions, factors, ids, weights } = JSON.parse(line);
  const firstOf = sizes.map((_, word) => sizes.slice(0, word).reduce((a, b) => a + b, 0));
  const swaps = sizes.reduce((a, b) => a + b, 0);
  const layers = dens.map((den) => ({ den: integer(den) }));
  const network = { layers, layerOf: layers.map((_, id) => id), denOf: ({ den }) => den };
  const slots = elements.map(({ changes }) => new Map(changes.map(([word, amounts]) => {
    return [word, { amounts: amounts.map(integer), cell: null, most: 0n, least: 0n }];
  })));
  const words = Object.assign(Object.create(Words.prototype), {
    network, sizes: sizes.map((n) => n + 1), firstOf, swaps, slots, rows: [], zeros: new Float64Array(swaps),
    original: elements.map(({ original }) => integer(original)),
  });
  const terms = factors.map((x, id) => [words.row(id), integer(x)]);
  const pairs = weights.map((pair) => pair.map(integer));
  const group = { keeps: true, known: null };
  let cells = [];
  for (const region of regions) {
    // A cell that has not changed is the same object, as in a tree.
    const before = cells;
    const isSame = (chosen, word) => String(before[word]?.chosen) === String(chosen);
    cells = region.chosen.map((chosen, word) => (isSame(chosen, word) ? before[word] : makeCell(chosen)));
    const { plan } = Object.assign(new Space(words, region.swaps), { cells });
    try {
      const sum = greatestSum(plan, terms);
      const { num, den } = greatestOverPatterns({ plan, network }, group, ids, pairs);
      console.log([sum, num, den].map((x) => x.toString(16)).join(" "));
    } catch (error) {
      console.log(`no answer: ${error}`);
    }
  }
}
"""


@dataclass(frozen=True)
class Element:
    """value = original + sum over the swapped words of changes[word][option - 1]."""

    original: int
    changes: dict[int, list[int]]
    den: int = 1

    def value(self, sentence: tuple[int, ...]) -> int:
        return self.original + sum(
            amounts[sentence[word] - 1] for word, amounts in self.changes.items() if sentence[word]
        )


@dataclass(frozen=True)
class Region:
    """The options of each word (0 is the original), and the greatest number of swaps."""

    chosen: list[list[int]]
    swaps: int

    def sentences(self) -> list[tuple[int, ...]]:
        return [sentence for sentence in product(*self.chosen) if sum(option > 0 for option in sentence) <= self.swaps]


@dataclass(frozen=True)
class Case:
    """sum of factors[id] x_id, and sum over j of one of weights[j] times x_ids[j], at their greatest in each region."""

    sizes: list[int]
    elements: list[Element]
    regions: list[Region]
    factors: list[int]
    ids: list[int]
    weights: list[tuple[int, int]]

    def line(self) -> str:
        return json.dumps({
            "sizes": self.sizes, "dens": [hex(element.den) for element in self.elements],
            "elements": [
                {"original": hex(e.original), "changes": [(p, [hex(x) for x in c]) for p, c in e.changes.items()]}
                for e in self.elements
            ],
            "regions": [{"chosen": r.chosen, "swaps": r.swaps} for r in self.regions],
            "factors": [hex(x) for x in self.factors], "ids": self.ids,
            "weights": [[hex(weight) for weight in pair] for pair in self.weights],
        })  # fmt: skip


def answers_of_node(cases: list[Case]) -> list[str]:
    text = "\n".join(case.line() for case in cases)
    command = ["node", "-e", DRIVER, str(CHECKER)]
    result = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.splitlines()


def compare(cases: list[Case], answers: list[tuple[int, Fraction]]) -> None:
    """Each answer of node is the right one."""
    said = answers_of_node(cases)
    regions = [(case, region) for case in cases for region in case.regions]
    assert len(said) == len(answers) == len(regions)
    for (total, greatest), line, (case, region) in zip(answers, said, regions, strict=True):
        assert not line.startswith("no answer"), (line, case, region)
        found, numerator, denominator = (int(number, 16) for number in line.split())
        assert found == total, (case, region)
        assert Fraction(numerator, denominator) == greatest, (case, region)


def by_enumeration(case: Case, sentences: list[tuple[int, ...]]) -> tuple[int, Fraction]:
    """Both maxima, sentence by sentence; the best pattern takes the greater weight times value of each element."""
    values = [[element.value(sentence) for element in case.elements] for sentence in sentences]
    den = lcm(*(case.elements[id].den for id in case.ids))
    scaled = [
        (id, [weight * (den // case.elements[id].den) for weight in pair])
        for id, pair in zip(case.ids, case.weights, strict=True)
    ]
    return (
        max(sum(x * y for x, y in zip(case.factors, row, strict=True)) for row in values),
        Fraction(max(sum(max(pair[0] * row[id], pair[1] * row[id]) for id, pair in scaled) for row in values), den),
    )


def by_greed(case: Case, region: Region) -> tuple[int, Fraction]:
    """Both maxima: the forced words, then the greatest gains."""

    def greatest(terms: list[tuple[int, int]]) -> int:
        total = sum(weight * case.elements[id].original for id, weight in terms)
        gains = []
        free = region.swaps
        for word, chosen in enumerate(region.chosen):
            amounts = [
                sum(
                    weight * case.elements[id].changes[word][option - 1]
                    for id, weight in terms
                    if word in case.elements[id].changes
                )
                for option in chosen
                if option
            ]
            if 0 in chosen:
                gains += [max(amounts)] if amounts else []
            else:
                total += max(amounts)
                free -= 1
        return total + sum(sorted((gain for gain in gains if gain > 0), reverse=True)[:free])

    assert all(element.den == 1 for element in case.elements)
    patterns = product(*case.weights)
    most = max(greatest(list(zip(case.ids, pattern, strict=True))) for pattern in patterns)
    return greatest(list(enumerate(case.factors))), Fraction(most)


# ---- numbers that floats confuse -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """One kind of integers, of about `size` bits."""

    kind: str
    size: int
    source: random.Random
    middle: int

    def draw(self) -> int:
        source, few = self.source, self.source.randint(-2, 2)
        match self.kind:
            case "near":  # equal but for the last bits
                return self.middle + few
            case "opposite":
                return source.choice([-1, 1]) * self.middle + few
            case "powers":
                return source.choice([-1, 1]) * (1 << source.randint(0, self.size)) + source.randint(-1, 1)
            case "steps":  # a whole number of units, or just below or above
                return source.randint(-4, 4) * (1 << max(self.size - source.randint(36, 48), 8)) + few
            case "any":
                return source.choice([-1, 1]) * source.getrandbits(source.randint(1, self.size))
            case "long":
                return source.choice([-1, 1]) * source.getrandbits(self.size)
        return few


KINDS = ["near", "opposite", "powers", "steps", "any", "long", "few"]
SIZES = [1, 8, 40, 52, 53, 54, 63, 64, 65, 100, 200, 200, 200, 1000, 1100, 3000, 9000]


def numbers(source: random.Random) -> Numbers:
    size = source.choice(SIZES)
    return Numbers(source.choice(KINDS), size, source, source.getrandbits(size) | 1 << (size - 1))


def full(source: random.Random) -> Numbers:
    """All bits are set but the last, so sums are as large as their lengths let them be."""
    size = 4 * source.randint(10, 60)
    return Numbers("near", size, source, 2**size - 3)


def random_elements(sizes: list[int], count: int, source: random.Random) -> list[Element]:
    """Some elements are others turned around, so that their sums cancel; some are the same."""
    kind = numbers(source)
    elements: list[Element] = []
    for _ in range(count):
        if source.random() < 0.2:
            kind = numbers(source)
        if elements and source.random() < 0.4:
            other, sign = source.choice(elements), source.choice([-1, -1, 1])
            changes = {p: [sign * x + source.randint(-1, 1) for x in c] for p, c in other.changes.items()}
            elements.append(Element(sign * other.original + source.randint(-1, 1), changes))
            continue
        reached = [word for word in range(len(sizes)) if source.random() < 0.9]
        changes = {word: [kind.draw() for _ in range(sizes[word])] for word in reached}
        elements.append(Element(kind.draw(), changes))
    return elements


def needles(words: int, count: int, bits: int, source: random.Random) -> list[Element]:
    """Multiples of 2^bits, less 1: once all words are swapped they add up to 0, 1 or 2."""
    elements = []
    for _ in range(count):
        steps = [source.randint(1, 4) << bits for _ in range(words)]
        changes = {word: [step - 1] for word, step in enumerate(steps)}
        elements.append(Element(words + source.randint(0, 2) - sum(steps), changes))
    return elements


def blinded(elements: list[Element], sizes: list[int], bits: int) -> list[Element]:
    """One more option of each word, which the regions do not hold, so large that floats hardly see the others."""
    sizes[:] = [n + 1 for n in sizes]
    return [Element(e.original, {p: [*c, 2**bits] for p, c in e.changes.items()}, e.den) for e in elements]


def random_weights(count: int, source: random.Random) -> list[tuple[int, int]]:
    """As of slopes value / 64, alpha from 0 to 1 and a coefficient; or any."""
    kind = numbers(source)
    pairs = []
    for _ in range(count):
        c, value = kind.draw(), source.choice([0, 64, source.randint(0, 64)])
        alpha = source.choice([0, 0, 64, source.randint(0, 64)])
        pairs.append(source.choice([(abs(c) * (alpha - value), abs(c) * (64 - value)), (c, kind.draw())]))
    return pairs


def random_region(sizes: list[int], source: random.Random) -> Region:
    """Some words are forced or cannot be swapped; often as many are forced as can be swapped, or all but one."""
    chosen = [
        sorted(source.sample(range(n + 1), source.randint(1, n + 1))) if source.random() < 0.4 else list(range(n + 1))
        for n in sizes
    ]
    forced = sum(0 not in options for options in chosen)
    return Region(chosen, source.choice([source.randint(0, len(sizes)), forced, forced + 1]))


def random_case(source: random.Random) -> Case:
    sizes = [source.choice([0, 1, 1, 2, 2, 3]) for _ in range(source.randint(1, 5))]
    regions = [random_region(sizes, source) for _ in range(3)]
    count = source.randint(1, 8)
    ids = [source.randrange(count) for _ in range(source.randint(1, 8))]
    elements = random_elements(sizes, count, source)
    if source.random() < 0.4:
        elements = blinded(elements, sizes, source.choice([60, 80, 200, 1200]))
    if source.random() < 0.3:
        elements = [Element(e.original, e.changes, source.choice([1, 3, 2**100, 6])) for e in elements]
    factors = numbers(source)
    return Case(sizes, elements, regions, [factors.draw() for _ in elements], ids, random_weights(len(ids), source))


def needle_case(source: random.Random) -> Case:
    """The pattern that is truly the best looks worse than that of zeros, by about its number of products."""
    sizes = [1] * source.randint(1, 5)
    regions = [Region([[0, 1] for _ in sizes], len(sizes)), random_region(sizes, source)]
    count, bits = source.randint(1, 8), source.randint(24, 100)
    elements = blinded(needles(len(sizes), count, bits, source), sizes, bits + source.randint(30, 36))
    ids = source.sample(range(count), source.randint(1, count))
    return Case(sizes, elements, regions, [1] * count, ids, [source.choice([(0, 1), (0, 1), (-1, 1)]) for _ in ids])


@pytest.mark.parametrize("part", range(TIMES))
def test_maxima_in_small_regions_are_those_of_all_sentences(part: int) -> None:
    """Near-equal, opposite and blinded numbers of up to 9,000 bits, words that are forced."""
    source = random.Random(part)
    cases: list[Case] = []
    answers: list[tuple[int, Fraction]] = []
    while len(cases) < 1500:
        case = source.choice([random_case, random_case, random_case, needle_case])(source)
        sentences = [region.sentences() for region in case.regions]
        kept = [region for region, inside in zip(case.regions, sentences, strict=True) if inside]
        if kept:
            cases.append(Case(case.sizes, case.elements, kept, case.factors, case.ids, case.weights))
            answers += [by_enumeration(case, inside) for inside in sentences if inside]
    compare(cases, answers)


@pytest.mark.parametrize("part", range(TIMES))
def test_maxima_over_many_words_and_terms_are_those_of_the_greedy_choice(part: int) -> None:
    """Up to 40 words and 255 terms, and from no swap to all: the border of what is swapped lies among equals."""
    source = random.Random(1000 + part)
    cases: list[Case] = []
    answers: list[tuple[int, Fraction]] = []
    for _ in range(300):
        words = source.randint(6, 40)
        sizes = [source.choice([1, 1, 2]) for _ in range(words)]
        chosen = [
            source.choice([[0], list(range(1, n + 1))]) if source.random() < 0.1 else list(range(n + 1)) for n in sizes
        ]
        forced = sum(0 not in options for options in chosen)
        regions = [Region(chosen, source.randint(forced, words)) for _ in range(3)]
        count = source.choice([1, 2, 7, 15, 16, 255 if words < 9 else 3])
        elements = random_elements(sizes, count, source)
        if source.random() < 0.4:
            elements = blinded(elements, sizes, source.choice([60, 80, 200, 1200]))
        factors = numbers(source)
        if source.random() < 0.1:
            count, factors, large = 15, full(source), full(source)
            elements = [
                Element(large.draw(), {word: [large.draw() for _ in range(n)] for word, n in enumerate(sizes)})
                for _ in range(count)
            ]
        ids = [source.randrange(count) for _ in range(source.randint(1, 3))]
        case = Case(sizes, elements, regions, [factors.draw() for _ in elements], ids, random_weights(len(ids), source))
        cases.append(case)
        answers += [by_greed(case, region) for region in regions]
    compare(cases, answers)
