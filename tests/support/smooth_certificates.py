"""Certificates about smooth networks for the folders accepted/ and refused/, which write_cases.py writes."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graph_builder import Builder, floats, tokens
from smooth_cases import CURVES, LENGTH, ROWS, Made, cell, model
from smooth_values import chains_of, logits_of, steps_of

from swapproof.proofs import check, lower
from swapproof.proofs.writing import certificate as c
from swapproof.proofs.writing.certificate import Boxes, Chain, Enumerate, Expansion, Open, Precision, Segment, Words

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A model, a text, the options of each of its words (the original first), a label."""

    data: bytes
    text: tuple[int, ...]
    words: tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]
    label: int
    classes: int

    @property
    def network(self) -> check.Network:
        found = self.lowered
        return check.Network(found.data, found.numbers, found.no_float32)

    @property
    def lowered(self) -> lower.Lowered:
        return lower.read_model(self.data).lower([["words", list(self.text)]], list(self.words))

    def statement(self, **claims: Any) -> c.Statement:
        rivals = tuple(each for each in range(self.classes) if each != self.label)
        return c.Statement(
            id=0,
            model=c.File("model.onnx", hashlib.sha256(self.data).hexdigest()),
            tensors=(),
            vocabulary=None,
            text=hashlib.sha256(b"").hexdigest(),
            synonyms=None,
            network=self.lowered.sha256,
            inputs=(c.Input("words", self.text),),
            words=tuple(c.Word(start, options) for start, options in self.words),
            label=self.label,
            rivals=rivals,
            recipe="smooth-1",
            **claims,
        )

    def sentences(self, swaps: int) -> Iterator[tuple[int, ...]]:
        for options in itertools.product(*[range(len(options)) for _, options in self.words]):
            if sum(map(bool, options)) <= swaps:
                yield options

    def drop(self, network: check.Network, options: Sequence[int]) -> float:
        """The least of the margins of the label, in floats."""
        text = list(self.text)
        for (start, given), option in zip(self.words, options, strict=True):
            text[start : start + len(given[option])] = given[option]
        logits = logits_of(network, text)
        return min(logits[self.label] - z for each, z in enumerate(logits) if each != self.label)

    def accepts(self, statement: c.Statement) -> bool:
        try:
            check.check_certificate(c.write_certificate(statement), lower.read_model(self.data))
        except check.Refused:
            return False
        return True


def made(make: Made, seed: int, size: float) -> Case:
    """Words at three positions or four, one of them on two positions; the label is what the model answers."""
    rng = np.random.default_rng(seed)
    data = model(make, seed, size=size)
    text = tuple(int(x) for x in rng.integers(0, ROWS, LENGTH))
    words = []
    for start, width, count in ((0, 1, 3), (1, 1, 2), (2, 2, 3), (4, 1, 2)):
        options = [text[start : start + width]]
        while len(options) < count:
            new = tuple(int(x) for x in rng.integers(0, ROWS, width))
            options += [new] if new not in options else []
        words.append((start, tuple(options)))
    case = Case(data, text, tuple(words), 0, 3)
    logits = logits_of(case.network, text)
    return Case(data, text, tuple(words), logits.index(max(logits)), 3)


def steps(case: Case) -> tuple[Segment, ...]:
    space = check.Space(case.network, case.words, case.label, case.text)
    return tuple(Segment(*each) for each in steps_of(space))


def expansion(case: Case, reach: int = 9) -> Expansion:
    space = check.Space(case.network, case.words, case.label, case.text)
    return Expansion(reach, tuple(Chain(first, layers, bool(order)) for first, layers, order in chains_of(space)))


def proved(make: Made, tree: Callable[[Case], c.Node], level: c.Level, size: float = 0.3) -> tuple[Case, c.Statement]:
    """The first seed whose text is proved for one swap at least, and for one less than breaks it if any number does."""
    for seed in range(200):
        case = made(make, seed, size)
        network = case.network
        drops = {options: case.drop(network, options) for options in case.sentences(4)}
        broken = [options for options, drop in drops.items() if drop < -1e-3]
        shortest = min(broken, key=lambda options: sum(map(bool, options)), default=(1,) * 5)
        swaps = sum(map(bool, shortest)) - 1
        if (size == 1 and not broken) or swaps < 1:
            continue
        levels: Any = ("real", "kernel", "replay") if level == "kernel" else ("real", "replay")
        upper = c.Upper(tuple((i, option) for i, option in enumerate(shortest) if option), levels) if broken else None
        statement = case.statement(lower=c.Lower(swaps, level, tree(case)), upper=upper)
        if case.accepts(statement):
            return case, statement
    raise SystemExit(f"no seed is proved, of size {size}")


def split(case: Case) -> c.Node:
    """Word 0 as it is and otherwise; precisions by subtree, the inner one holds."""
    return Words(0, frozenset({0}), Precision(64, Precision(24, Enumerate())), Precision(40, Boxes(())))


def hand(table: Sequence[Sequence[float]], then: Callable[[Builder, str], str]) -> Case:
    """One word that may be any row of a table; the two logits are made of that row, class 0 is the label."""
    b = Builder()
    x = b.call("Flatten", b.call("Gather", b.constant(np.array(table, np.float32)), "tokens"))
    b.node("Identity", [then(b, x)], ["out"])
    data = b.proto([tokens(1, 1)], [floats("out", 1, 2)], opset=17).SerializeToString()
    return Case(data, (0,), ((0, tuple((row,) for row in range(len(table)))),), 0, 2)


def against(curve: str, bias: float) -> Callable[[Builder, str], str]:
    """A curve of the number against a constant."""

    def then(b: Builder, x: str) -> str:
        weights, offsets = np.array([[1, 0]], np.float32), np.array([0, bias], np.float32)
        return b.call("Gemm", b.call(curve, x), b.constant(weights), b.constant(offsets))

    return then


Q = 16
UNIT = 2.0**-Q
TANH: float = math.floor(math.tanh(0.5) * 2**Q) * UNIT
"""The lower end of tanh(1/2) at precision 16."""
EXPANSION = Expansion(0, (Chain(0, 2),))
"""Of that model: its embedding and its curve."""
LOST = (2**0 + 1) * UNIT
"""What section 15.3 widens a tanh by at that precision: ceil(2^(16-21)) + 1 units."""


def read_twice(bias: float) -> Callable[[Builder, str], str]:
    """bias + relu(v + 1) - relu(v) + w - relu(w), v = tanh(x) + 1 and w = x + 1: what reads v and w cancels, but each
    reader may have a value of its own, two units (section 15.3) from the sum. With as much for v + 1 and E = 6, a bias
    of -1 and 2 (2 + 2 + 1) + 6 units is not enough."""

    def then(b: Builder, x: str) -> str:
        one = b.constant(np.array([1], np.float32))
        v, w = b.call("Add", b.call("Tanh", x), one), b.call("Add", x, one)
        parts = b.call("Relu", b.call("Add", v, one)), b.call("Relu", v), w, b.call("Relu", w)
        weights = np.array([[1, 0], [-1, 0], [1, 0], [-1, 0]], np.float32)
        offsets = np.array([bias, 0], np.float32)
        return b.call("Gemm", b.call("Concat", *parts, axis=1), b.constant(weights), b.constant(offsets))

    return then


def kernel_error() -> int:
    """E of z_0 - z_1 in the model of `against`, in units, by the page: a row with one term, and a row with a bias."""
    term, bias = math.ceil(math.tanh(0.5) * (1 << Q)) + 2, math.ceil(TANH * (1 << Q))
    return math.ceil(4 * 257 * term / 2**32) + math.ceil(3 * 257 * bias / 2**32) + 2 + 1


def one_word(case: Case, tree: c.Node, level: c.Level = "real") -> c.Statement:
    return case.statement(lower=c.Lower(1, level, tree))


def accepted() -> dict[str, tuple[Case, c.Statement]]:
    found = {
        "lstm-enumerated": proved(cell("LSTM", "bidirectional", 0), lambda case: Enumerate(), "real", 1),
        "lstm-boxes": proved(
            cell("LSTM", "bidirectional", 1), lambda case: Precision(24, Boxes(steps(case))), "real", 1
        ),
        "lstm-kernel": proved(cell("LSTM", "reverse", 0), lambda case: Precision(28, Boxes(steps(case))), "kernel"),
        "gru-kernel": proved(
            cell("GRU", "bidirectional", 0, "BS"), lambda case: Precision(40, Enumerate()), "kernel", 1
        ),
        "gru-boxes": proved(
            cell("GRU", "forward", 1, "BI", linear_before_reset=1),
            lambda case: Precision(20, Boxes(steps(case))),
            "real",
        ),
        "rnn-split": proved(cell("RNN", "forward", 0, "B"), split, "real"),
        "attention": proved(CURVES["attention"], lambda case: Precision(48, Enumerate()), "real", 1),
        "normalised": proved(CURVES["LayerNormalization"], split, "real"),
        "gelu": proved(CURVES["Gelu tanh"], lambda case: Enumerate(), "kernel"),
        "powers": proved(CURVES["Pow -0.5"], lambda case: Boxes(()), "real"),
    }
    tie = hand([[0.5], [0.75]], against("Tanh", TANH))
    found["margin-of-zero"] = tie, one_word(tie, Precision(Q, Boxes()))
    found["margin-of-zero-enumerated"] = tie, one_word(tie, Precision(Q, Enumerate()))
    least = hand([[0.5], [0.75]], against("Tanh", TANH - LOST - (kernel_error() + 1) * UNIT))
    found["kernel-margin"] = least, one_word(least, Precision(Q, Boxes()), "kernel")
    huge = hand([[2.0**100], [-(2.0**90)]], against("Sigmoid", -(2.0**-20)))
    found["saturated"] = huge, one_word(huge, Boxes())
    case, _ = found["lstm-enumerated"]
    forced = Words(0, frozenset({0}), Enumerate(), Words(1, frozenset({0}), Enumerate(), Boxes()))
    found["empty-region"] = case, case.statement(lower=c.Lower(1, "real", forced))
    found["count"] = case, counted(case)
    found["lstm-expansion"] = proved(
        cell("LSTM", "bidirectional", 0), lambda case: Precision(24, expansion(case)), "real"
    )
    found["lstm-expansion-of-one-swap"] = proved(
        cell("LSTM", "forward", 0, "B", stacked=2), lambda case: Precision(48, expansion(case)), "real", 1
    )
    found["gru-expansion-kernel"] = proved(
        cell("GRU", "bidirectional", 0, "BS"), lambda case: Precision(32, expansion(case, 1)), "kernel"
    )
    found["expansion-without-chains"] = proved(CURVES["Gelu"], lambda case: Expansion(0), "kernel")
    found["expansion-split"] = proved(cell("RNN", "forward", 1, "B"), expanded_apart, "real")
    found["expansion-of-zero"] = tie, one_word(tie, Precision(Q, EXPANSION))
    found["expansion-kernel-margin"] = least, one_word(least, Precision(Q, EXPANSION), "kernel")
    case, _ = found["lstm-expansion"]
    part = Precision(32, Expansion(9, (Chain(1, 7, False),)))
    found["expansion-chain-of-no-swap"] = case, case.statement(lower=c.Lower(0, "real", part))
    readers = hand([[0.5], [0.75]], read_twice(-1 + 17 * UNIT))
    found["expansion-read-twice"] = readers, one_word(readers, Precision(Q, Expansion(0)), "kernel")
    return found


def expanded_apart(case: Case) -> c.Node:
    """Word 0 as it is, and each of its other options by itself: about another sentence each."""
    return Words(
        0,
        frozenset({0}),
        Precision(32, expansion(case)),
        Words(0, frozenset({1}), Expansion(0), Precision(40, expansion(case, 0))),
    )


def counted(case: Case) -> c.Statement:
    """Robust, broken and open sentences; more swaps than `lower` could prove."""
    network = case.network
    drops = {options: case.drop(network, options) for options in case.sentences(2)}
    kept = [drop for options, drop in drops.items() if not options[0]]
    swapped = [drop for options, drop in drops.items() if options[0]]
    here = kept if min(kept) < 0 else swapped
    tree = Words(0, frozenset({0}), *(Enumerate() if each is here else Open() for each in (kept, swapped)))
    robust, broken = sum(drop > 0 for drop in here), sum(drop < 0 for drop in here)
    return case.statement(count=c.Count(2, "real", tree, robust, broken, len(drops)))


def refused(good: dict[str, tuple[Case, c.Statement]]) -> dict[str, tuple[Case, Json, str]]:
    """Name -> (case, certificate, a part of the reason)."""
    bad: dict[str, tuple[Case, Json, str]] = {}

    def put(name: str, case: Case, statement: c.Statement | Json, reason: str) -> None:
        value = statement if isinstance(statement, dict) else json.loads(c.write_certificate(statement))
        bad[name] = case, value, reason

    lstm, claim = good["lstm-enumerated"]
    base: Json = json.loads(c.write_certificate(claim))
    last = len(lstm.network.layers)

    def tree(name: str, data: bytes, reason: str) -> None:
        part = {**base["lower"], "tree": base64.b64encode(data).decode()}
        put(name, lstm, {**base, "lower": part}, reason)

    tree("linear-leaf", b"\1", "tree byte 1")
    tree("slopes", bytes([8, 1, 2, 1, 0, 64, 2]), "tree byte 8")
    tree("joint", bytes([10, 0, 2]), "tree byte 10")
    tree("broken-leaf", bytes([16, base["rivals"][0]]), "tree byte 16")
    tree("reserved-leaf", b"\x1b", "tree byte 27")
    tree("precision-of-15", bytes([11, 15, 2]), "precision of 15")
    tree("precision-of-65", bytes([11, 65, 2]), "precision of 65")
    tree("precision-alone", bytes([11, 32]), "ends too early")
    tree("boxes-cut", bytes([24, 1, 0, 1]), "ends too early")
    tree("segment-without-layers", bytes([24, 1, 0, 0, 0]), "a segment that is empty")
    tree("segment-beyond-the-layers", bytes([24, 1, last - 1, 2, 0]), "a segment that is empty, or beyond")
    tree("segment-of-no-word", bytes([24, 1, 0, 1, 4]), "a segment that is empty, or beyond")
    tree("segments-that-read-each-other", bytes([24, 2, 0, last - 3, 0, 0, 3, 0]), "otherwise than its option")
    tree("open", b"\3", "open leaf")
    tree("expansion-cut", bytes([26, 0, 1, 0]), "ends too early")
    tree("chain-without-layers", bytes([26, 0, 1, 0, 0, 0]), "a chain that is empty")
    tree("chain-beyond-the-layers", bytes([26, 0, 1, last - 1, 2, 0]), "a chain that is empty, beyond")
    tree("chain-in-no-order", bytes([26, 0, 1, 0, last, 2]), "in no order")
    tree("chain-out-of-order", bytes([26, 9, 1, 2, last - 3, 1]), "a chain that does not read in order")
    tree("expansion-of-two-others", bytes([4, 0, 1, 2, 26, 9, 0]), "with several options")
    put("recipe-linear", lstm, {**base, "lower": {**base["lower"], "recipe": "linear-2"}}, "the recipe linear-2")
    put("level-float32", lstm, {**base, "lower": {**base["lower"], "level": "float32"}}, "the level float32")
    put("witness-float32", lstm, {**base, "upper": {**base["upper"], "levels": ["float32"]}}, "the level float32")
    put(
        "levels-unordered",
        lstm,
        {**base, "upper": {**base["upper"], "levels": ["kernel", "real"]}},
        "impossible levels",
    )
    first = base["upper"]["swaps"][:1]
    put(
        "witness-shorter",
        lstm,
        {**base, "lower": None, "upper": {"levels": ["real"], "swaps": first}},
        "changes nothing",
    )
    stronger = {**base["lower"], "swaps": base["lower"]["swaps"] + 1}
    put("stronger-claim", lstm, {**base, "lower": stronger, "upper": None}, "is not safe")
    boxes: Json = json.loads(c.write_certificate(good["lstm-boxes"][1]))
    stronger = {**boxes["lower"], "swaps": boxes["lower"]["swaps"] + 1}
    put("stronger-boxes", good["lstm-boxes"][0], {**boxes, "lower": stronger, "upper": None}, "does not hold")
    expanded, other = (
        good["lstm-expansion-of-one-swap"],
        json.loads(c.write_certificate(good["lstm-expansion-of-one-swap"][1])),
    )
    part = {**other["lower"], "swaps": other["lower"]["swaps"] + 1}
    put("stronger-expansion", expanded[0], {**other, "lower": part, "upper": None}, "does not hold")
    short = hand([[0.5], [0.75]], against("Tanh", TANH + UNIT))
    put("expansion-unit-short", short, one_word(short, Precision(Q, EXPANSION)), "does not hold")
    put("unit-short", short, one_word(short, Precision(Q, Boxes())), "does not hold")
    put("unit-short-enumerated", short, one_word(short, Precision(Q, Enumerate())), "is not safe")
    tie, _ = good["margin-of-zero"]
    fine = hand([[0.5], [0.75]], against("Tanh", math.floor(math.tanh(0.5) * 2**20) * 2.0**-20))
    put("precision-too-small", fine, one_word(fine, Precision(Q, Boxes())), "does not hold")
    other = Case(tie.data, tie.text, tie.words, 1, 2)
    put("expansion-of-zero-against", other, one_word(other, Precision(Q, EXPANSION)), "does not hold")
    put("margin-of-zero-against", other, one_word(other, Precision(Q, Boxes())), "does not hold")
    least = hand([[0.5], [0.75]], against("Tanh", TANH - LOST - kernel_error() * UNIT))
    put("expansion-kernel-unit-short", least, one_word(least, Precision(Q, EXPANSION), "kernel"), "does not hold")
    readers = hand([[0.5], [0.75]], read_twice(-1 + 16 * UNIT))
    claim = one_word(readers, Precision(Q, Expansion(0)), "kernel")
    put("expansion-read-twice-unit-short", readers, claim, "does not hold")
    put("kernel-unit-short", least, one_word(least, Precision(Q, Boxes()), "kernel"), "does not hold")
    attention = json.loads(c.write_certificate(good["attention"][1]))
    part = {**attention["lower"], "level": "kernel"}
    put("kernel-of-softmax", good["attention"][0], {**attention, "lower": part}, "no claim at level kernel")

    def two(b: Builder, x: str) -> str:
        return b.call("Gemm", x, b.constant(np.array([[1, 0]], np.float32)))

    big = hand([[2.0**20], [2.0**21]], lambda b, x: two(b, b.call("Mul", x, x)))
    put("product-of-2-to-the-40", big, one_word(big, Enumerate()), "2**40 or more")
    steep = hand([[1], [29]], lambda b, x: two(b, b.call("Exp", x)))
    put("exp-of-29", steep, one_word(steep, Boxes()), "exp of more than 28")
    zero = hand([[1], [-1]], lambda b, x: two(b, b.call("Reciprocal", b.call("Tanh", x))))
    put("reciprocal-of-both-signs", zero, one_word(zero, Boxes()), "1/x where x may be 0")
    root = hand([[1], [-1]], lambda b, x: two(b, b.call("Sqrt", x)))
    put("root-below-zero", root, one_word(root, Enumerate()), "the root of what may be below 0")
    heavy = hand(
        [[1], [2]], lambda b, x: two(b, b.call("Mul", b.call("Tanh", x), b.constant(np.array([2.0**41], np.float32))))
    )
    put("kernel-heavy", heavy, one_word(heavy, Enumerate(), "kernel"), "terms, their sums or their number")
    whole: Json = json.loads(c.write_certificate(good["count"][1]))
    wrong = {**whole["count"], "broken": str(int(whole["count"]["broken"]) + 1)}
    put("count-broken", good["count"][0], {**whole, "count": wrong}, "broken is another")
    plain = hand([[1], [2]], two)
    for name, data, reason in (
        ("precision", bytes([11, 32, 2]), "byte 11"),
        ("boxes", bytes([24, 0]), "byte 24"),
        ("expansion", bytes([26, 0, 0]), "byte 26"),
    ):
        value = json.loads(c.write_certificate(one_word(plain, Enumerate())))
        part = {**value["lower"], "recipe": "linear-2", "tree": base64.b64encode(data).decode()}
        put(f"{name}-in-a-linear-network", plain, {**value, "lower": part}, reason)
    value = json.loads(c.write_certificate(one_word(plain, Enumerate())))
    put("recipe-of-a-linear-network", plain, value, "the recipe smooth-1")
    part = {**value["lower"], "recipe": "linear-2", "level": "kernel"}
    put("level-of-a-linear-network", plain, {**value, "lower": part}, "the level kernel")
    return bad


def files() -> tuple[dict[str, bytes], dict[str, tuple[bytes, str]]]:
    """Of both folders; the second with reasons, which models lack."""
    good = accepted()
    kept: dict[str, bytes] = {}
    for number, (name, (case, statement)) in enumerate(good.items(), 300):
        value = {**json.loads(c.write_certificate(statement)), "id": number}
        kept |= written(f"smooth-{name}", case, value)
    turned: dict[str, tuple[bytes, str]] = {}
    for name, (case, value, reason) in refused(good).items():
        for file, data in written(f"smooth-{name}", case, value).items():
            turned[file] = data, reason if file.endswith(".json") else ""
    return kept, turned


def written(name: str, case: Case, value: Json) -> dict[str, bytes]:
    """A certificate, and its model, which is named by its hash where it stands for many."""
    value["model"] = {**value["model"], "file": f"smooth-{value['model']['sha256'][:12]}.onnx"}
    data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return {f"{name}.json": data, value["model"]["file"]: case.data}
