"""Checks ball certificates (FORMAT.md, section 16) with exact integers, by the regions and trees of check_box.py.

    python -I -S proofs/check_ball.py CERTIFICATE.json            its model beside it, or in the folder above

It loads check_box.py, and through it check.py and what that loads, and ball_forms.py for smooth networks, from beside
it, and nothing else of ours.
Like them it believes no number it can compute, and says `accepted 1 of 1` as its very last act, leaving with 0;
otherwise 4 (refused) or 2 (nothing to check: no file, or a model outside the format).
"""

from __future__ import annotations

import base64
import importlib.util
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, isqrt, lcm
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING or __package__:
    from . import ball_forms as forms
    from . import check, check_box
    from . import exact_network as networks
    from . import lower as lowering
else:
    found = importlib.util.spec_from_file_location("check_box", Path(__file__).with_name("check_box.py"))
    check_box = sys.modules["check_box"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(check_box)
    check, networks, lowering = check_box.check, check_box.networks, check_box.lowering
    found = importlib.util.spec_from_file_location("ball_forms", Path(__file__).with_name("ball_forms.py"))
    forms = sys.modules["ball_forms"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(forms)

GRID, Refused, Unusable = check.GRID, check.Refused, check.Unusable
require, need = check.require, check.need
MAX_INPUTS, MAX_CASES = 1_000_000, 100_000

# -------------------------------------------------------------------------------------------------------- the network


class NumericModel(check_box.NumericModel):
    """A network of up to a million numbers; Softmax and the like may stand anywhere but at its end."""

    most = MAX_INPUTS + lowering.MAX_CLASSES

    @property
    def has_head(self) -> bool:
        return any(node.operator in lowering.HEADS and self.output in node.outputs for node in self.nodes[-1:])


def read_model(data: bytes, files: Mapping[str, bytes] | None = None) -> NumericModel:
    """The ONNX file of a ball certificate with its external tensor files (name -> bytes)."""
    return NumericModel(data, files or {})


class Whole(check_box.Network):
    """The canonical network with the exact values of all elements at the center."""

    def __init__(self, data: bytes, numbers: Mapping[bytes, bytes], scale: int, center: Sequence[int]) -> None:
        super().__init__(data, numbers, scale)
        self.values = self.start()
        self.values[self.inputs.start : self.inputs.stop] = center
        self.evaluate(self.layers[1:], self.values)


class Moving(check_box.Network):
    """The network of a case (section 16.3): of every layer the elements that move; the others are numbers."""

    def __init__(self, whole: Whole, free: Sequence[int], stop: float) -> None:
        self.input_scale, self.positions, self.reached = whole.input_scale, 0, None
        moves = self.moves(whole, free, stop)
        kept = {i for layer in whole.layers if isinstance(layer, check.Maximum) for i in windowed(layer, moves)}
        kept.update(whole.logits)
        self.owner: list[check.Layer] = []
        self.constants: list[int] = []
        self.names: dict[int, int] = {}  # of what is here, by its number in the whole network
        for i in sorted(kept - moves):
            self.names[i] = len(self.owner)
            self.constants.append(whole.values[i])
            self.add(check.Layer, (), 1, whole.owner[i].scale)
        self.layers: list[check.Layer] = []
        for layer in whole.layers:
            check.in_time(stop)
            here = [i for i in range(layer.start, layer.start + layer.size) if i in moves]
            start = len(self.owner)
            self.layers.append(self.part(whole, layer, here, moves))
            self.names.update((i, start + place) for place, i in enumerate(here))
        self.logits = tuple([self.names[i] for i in whole.logits])
        self.scale, self.factors = self.common(self.logits)
        self.earlier = [layer for layer in self.layers if not layer.depth]
        self.later = [layer for layer in self.layers if layer.depth]
        self.nonlinear = [layer for layer in self.later if isinstance(layer, check.Rectifier | check.Maximum)]
        inputs = self.layers[0]
        self.inputs = range(inputs.start, inputs.start + inputs.size)
        read = {i for layer in self.later for i in check.sources_of(layer)}.union(self.logits, self.inputs)
        self.cut = sorted(i for i in read if not self.owner[i].depth)
        self.slot = {i: slot for slot, i in enumerate(self.cut)}

    @staticmethod
    def moves(whole: Whole, free: Sequence[int], stop: float) -> set[int]:
        """The elements that move, by their numbers in the whole network."""
        found = {whole.inputs.start + i for i in free}
        for layer in whole.layers[1:]:
            check.in_time(stop)
            if isinstance(layer, check.Affine):
                moving = [not found.isdisjoint(elements) for elements in layer.lists]
                here = [moving[row.read] for row in layer.rows]
            elif isinstance(layer, check.Maximum):
                here = [not found.isdisjoint(layer.sources[w.start : w.stop]) for w in layer.windows]
            else:
                if not isinstance(layer, check.Rectifier):
                    raise Refused("a layer of which nothing is known")
                here = [i in found for i in layer.sources]
            found.update(layer.start + place for place, moved in enumerate(here) if moved)
        return found

    def part(self, whole: Whole, layer: check.Layer, here: list[int], moves: set[int]) -> check.Layer:
        """The elements `here` of a layer, of what it reads those that move."""
        places = [i - layer.start for i in here]
        if isinstance(layer, check.Affine):
            return self.lines(whole, layer, places, moves)
        if isinstance(layer, check.Rectifier):
            sources = [self.names[layer.sources[place]] for place in places]
            factors = [layer.factors[place] for place in places]
            parts = {"sources": sources, "factors": factors, "p": layer.p, "q": layer.q}
            return self.add(check.Rectifier, sources, len(here), layer.scale, **parts)
        if isinstance(layer, check.Maximum):
            windows: list[range] = []
            sources, factors = [], []
            for place in places:
                window = layer.windows[place]
                pairs = sorted((self.names[layer.sources[at]], layer.factors[at]) for at in window)
                windows.append(range(len(sources), len(sources) + len(pairs)))
                sources += [name for name, _ in pairs]
                factors += [factor for _, factor in pairs]
            parts = {"sources": sources, "factors": factors, "windows": windows}
            return self.add(check.Maximum, sources, len(here), layer.scale, **parts)
        return self.add(check.Layer, (), len(here), layer.scale)

    def lines(self, whole: Whole, layer: check.Affine, places: list[int], moves: set[int]) -> check.Layer:
        """Rows of what moves; the rest of each is a number."""
        rows: list[Any] = []
        lists: list[tuple[int, ...]] = []
        of: dict[int, tuple[int, list[int], list[int]]] = {}
        for place in places:
            row = layer.rows[place]
            if row.read not in of:
                elements = layer.lists[row.read]
                moving = [k for k, i in enumerate(elements) if i in moves]
                values = [0 if i in moves else whole.values[i] for i in elements]
                of[row.read] = len(lists), moving, values
                lists.append(tuple([self.names[elements[k]] for k in moving]))
            at, moving, values = of[row.read]
            bias = row.bias + sum(map(mul, row.weights, values))
            rows.append(networks.Row(at, [row.weights[k] for k in moving], [], bias))
        read = {i for elements in lists for i in elements}
        none: dict[str, Any] = {"weights": [], "pairs": [], "biases": [], "size_scale": 1, "bias_scale": 1, "units": []}
        found = self.add(check.Affine, read, len(rows), layer.scale, lists=lists, shared={}, **none)
        vars(found)["rows"] = rows  # which else would be computed from what is none here
        return found


def windowed(layer: check.Maximum, moves: set[int]) -> Iterable[int]:
    """What windows read that have an element which moves."""
    for window in layer.windows:
        elements = layer.sources[window.start : window.stop]
        if not moves.isdisjoint(elements):
            yield from elements


# ------------------------------------------------------------------------------------------------------------ regions


def root(number: int) -> int:
    """The least integer whose square is no less."""
    return isqrt(number - 1) + 1 if number > 0 else 0


class Ball(check_box.Inputs):
    """Inputs between ends and in the ellipsoid that the first ends hold; `middle` and `half` are those of it."""

    middle: list[int]
    half: list[int]

    @classmethod
    def around(cls, space: check_box.Space, middle: list[int], half: list[int]) -> Ball:
        found = cls(space, tuple([(c - h, c + h) for c, h in zip(middle, half, strict=True)]), None, {})
        found.middle, found.half = middle, half
        return found

    def moved(self, ends: check_box.Ends, plane: check_box.Plane | None, kept: check_box.Kept) -> Ball:
        found = Ball(self.space, ends, plane, kept, self.phases)
        found.middle, found.half = self.middle, self.half
        return found

    def extremes(self, function: Sequence[int]) -> check_box.Bounds:
        """|sum of f (x - c)| is at most the root of the sum of (f h)^2."""
        low, high = super().extremes(function)
        at, reach = sum(map(mul, function, self.middle)), root(sum([x * x for x in map(mul, function, self.half)]))
        return max(low, at - reach), min(high, at + reach)

    def column_extremes(self, slot: int) -> check_box.Bounds:
        return self.extremes(self.space.columns[slot])


# --------------------------------------------------------------------------------------------------- the certificate

CERTIFICATE = {
    "format": "swapproof ball certificate",
    "version": 1,
    "recipe": re.compile("ball-1|forms-1"),
    "model": check.CERTIFICATE["model"],
    "network": check.HASH,
    "inputs": range(1, MAX_INPUTS + 1),
    "outputs": range(1, 1024),
    "label": range(1024),
    "rivals": [range(1024)],
    "norm": re.compile("l2|linf"),
}
PRECISION = range(16, 257)
NUMBERS = {"form": range(1, 3), "numbers": check.BASE64}
SMOOTH_CASE = {"free": [(range(MAX_INPUTS), range(1, MAX_INPUTS + 1))], "radius": check_box.RATIONAL}
CASE = SMOOTH_CASE | {"trees": [check.BASE64]}


@dataclass(frozen=True)
class Case:
    """Inputs that move, how far, and for each rival the proof that it beats the label nowhere there (in a certificate
    of forms there are none)."""

    free: list[int]
    radius: Fraction
    trees: list[bytes]


@dataclass(frozen=True)
class Claim:
    """A certificate as it was read: `top` are its plain parts."""

    top: dict[str, Any]
    center: list[Fraction]
    widths: list[Fraction]
    cases: list[Case]
    precision: int = 0
    """Of forms; 0 where trees are the proofs."""

    def halves(self, case: Case) -> list[Fraction]:
        """How far the free inputs may move, each alone."""
        return [case.radius * self.widths[i % len(self.widths)] for i in case.free]


@dataclass(frozen=True)
class Verdict:
    """An accepted certificate: what it says in one plain sentence."""

    cases: int
    nodes: int
    leaves: int
    sentence: str


def plain_bytes(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    require(base64.b64encode(data).decode() == text, "base64 that is not canonical")
    return data


def read_numbers(entry: Any, what: str) -> list[Fraction]:
    check.expect(entry, NUMBERS, what)
    data, size = plain_bytes(entry["numbers"]), 4 * entry["form"]
    require(data and len(data) % size == 0, f"{what}: no numbers of this form")
    found = [float(number) for number in memoryview(data).cast("f" if size == 4 else "d")]
    require(all(map(isfinite, found)), f"{what}: numbers that are none")
    return list(map(Fraction, found))


def read_case(entry: Any, inputs: int, rivals: int, smooth: bool) -> Case:
    check.expect(entry, SMOOTH_CASE if smooth else CASE, "a case")
    free: list[int] = []
    for first, count in entry["free"]:
        require(not free or first > free[-1] + 1, "runs of free inputs that touch or descend")
        require(first + count <= inputs, "a free input that there is not")
        free += range(first, first + count)
    require(free, "a case without free inputs")
    radius = check_box.rational(entry["radius"])
    require(0 < radius < 1 << check_box.MAX_INPUT_BITS, "a radius out of range")
    trees = [] if smooth else entry["trees"]
    require(smooth or len(trees) == rivals, "one tree for each rival is needed")
    return Case(free, radius, list(map(plain_bytes, trees)))


def read_certificate(data: bytes) -> Claim:
    """Raises Refused for what is none."""
    top = check.parse_canonical(data)
    smooth = type(top) is dict and top.get("recipe") == "forms-1"
    keys = {*CERTIFICATE, "center", "widths", "cases", *(["precision"] if smooth else [])}
    require(type(top) is dict and top.keys() == keys and type(top["cases"]) is list, "no ball certificate")
    plain = {key: top[key] for key in CERTIFICATE}
    check.expect(plain, CERTIFICATE, "a certificate")
    names = [name for name, _ in top["model"]["tensors"]]
    require(names == sorted(set(names)), "tensor files must ascend")
    label, rivals = top["label"], top["rivals"]
    fits = rivals and rivals == sorted(set(rivals)) and label not in rivals
    require(fits and max(label, *rivals) < top["outputs"], "a label or rivals that are no classes")
    center, widths = read_numbers(top["center"], "center"), read_numbers(top["widths"], "widths")
    require(len(center) == top["inputs"], "a center of another size")
    require(top["inputs"] % len(widths) == 0 and min(widths) > 0, "widths that fit the inputs, above 0, are needed")
    require(1 <= len(top["cases"]) <= MAX_CASES, "no cases, or too many")
    if smooth:
        check.expect(top["precision"], PRECISION, "a precision")
    cases = [read_case(each, len(center), len(rivals), smooth) for each in top["cases"]]
    return Claim(plain, center, widths, cases, top["precision"] if smooth else 0)


def bound_to(claim: Claim, model: NumericModel, stop: float) -> lowering.Lowered:
    """The network that the certificate is about."""
    top = claim.top
    require(top["model"]["sha256"] == model.sha256, "made for another model: the SHA-256 differs")
    require(dict(top["model"]["tensors"]) == model.tensors, "made for other external tensors")
    require(top["inputs"] == model.inputs, f"the model has {model.inputs} inputs")
    lowered = model.lower(stop)
    require(top["network"] == lowered.sha256, "made for another network: its SHA-256 differs")
    require(top["outputs"] == model.outputs, f"the model has {model.outputs} outputs")
    halves = [half for case in claim.cases for half in claim.halves(case)]
    require(max(map(abs, [*claim.center, *halves])) < 1 << check_box.MAX_INPUT_BITS, "an input out of range")
    return lowered


def whole_of(claim: Claim, lowered: lowering.Lowered) -> Whole:
    """The network of the certificate at its center, over a scale that makes all ends integers."""
    halves = [half for case in claim.cases for half in claim.halves(case)]
    scale = lcm(1 << GRID, *{number.denominator for number in (*claim.center, *halves)})
    networks.narrow(scale)
    return Whole(lowered.data, lowered.numbers, scale, [int(number * scale) for number in claim.center])


@dataclass(frozen=True)
class Place:
    """The ball of a case as integers over the scale of the inputs, and what holds in it: `space` is the network's."""

    space: check_box.Space
    middle: list[int]
    half: list[int]
    norm: str

    @classmethod
    def of(cls, claim: Claim, case: Case, whole: Whole, stop: float) -> Place:
        scale = whole.input_scale
        middle = [int(claim.center[i] * scale) for i in case.free]
        half = [int(number * scale) for number in claim.halves(case)]
        return cls(check_box.Space(Moving(whole, case.free, stop), stop), middle, half, claim.top["norm"])

    def tree(
        self, label: int, rival: int, data: bytes, stop: float, make: Callable[..., check_box.Tree] = check_box.Tree
    ) -> check_box.Tree:
        """That of this rival, to be walked. `make` makes it: for producers one that goes on after a leaf that does not
        hold.
        """
        beaten = check_box.Constraint({label: Fraction(1), rival: Fraction(-1)}, {}, Fraction(0), label < rival)
        ends = tuple([(c - h, c + h) for c, h in zip(self.middle, self.half, strict=True)])
        found = make(self.space, ends, [beaten], data, stop)
        if self.norm == "l2":
            found.start = check_box.Region(Ball.around(self.space, self.middle, self.half))
        return found


def forms_of(claim: Claim, lowered: lowering.Lowered, stop: float) -> forms.BallForms:
    """Those of all elements at the center (section 16.6)."""
    return forms.BallForms(forms.Network(lowered.data, lowered.numbers), claim.precision, claim.center, stop)


def check_forms(claim: Claim, case: Case, smooth: forms.BallForms) -> tuple[int, int]:
    """One of each for every rival; raises Refused where forms do not prove it."""
    top = claim.top
    found = smooth.beaten(top["label"], top["rivals"], case.free, claim.halves(case), top["norm"])
    require(all(found), "a margin that may not be above 0")
    return len(found), len(found)


def check_case(claim: Claim, case: Case, whole: Whole | None, stop: float) -> tuple[int, int]:
    """The numbers of nodes and leaves of its trees; raises Refused when they do not prove it."""
    require(whole, "no network for trees")
    place, nodes, leaves = Place.of(claim, case, whole, stop), 0, 0  # type: ignore[arg-type]
    for rival, data in zip(claim.top["rivals"], case.trees, strict=True):
        tree = place.tree(claim.top["label"], rival, data, stop)
        tree.walk()
        nodes, leaves = nodes + tree.nodes, leaves + tree.leaves
    return nodes, leaves


def check_claims(claim: Claim, model: NumericModel, stop: float) -> Verdict:
    """Raises Refused when the certificate does not prove what it claims, Unusable when the model is outside the
    format."""
    lowered, nodes, leaves = bound_to(claim, model, stop), 0, 0
    smooth = forms_of(claim, lowered, stop) if claim.precision else None
    whole = None if smooth else whole_of(claim, lowered)
    for number, case in enumerate(claim.cases, 1):
        try:
            found = check_forms(claim, case, smooth) if smooth else check_case(claim, case, whole, stop)
        except Refused as error:
            raise Refused(f"case {number}: {error}") from None
        nodes, leaves = nodes + found[0], leaves + found[1]
        require(nodes <= check_box.MAX_NODES, "the trees are too large")
    top, many = claim.top, f"{len(claim.cases)} ball{'s' * (len(claim.cases) != 1)}"
    kept = f"class {top['label']} is beaten by none of {len(top['rivals'])} at any point of {many} ({top['norm']}, real"
    sentence = f"{top['model']['file']}: {kept}; whose point the center is, is not checked here); {leaves} leaves"
    return Verdict(len(claim.cases), nodes, leaves, sentence)


# -------------------------------------------------------------------------------------------------------------- files


def check_file(path: Path, seconds: float = check.SECONDS) -> Verdict:
    """Check one certificate; the model lies beside it, or in the folder above one called `certificates`."""
    stop = time.monotonic() + seconds
    claim = read_certificate(check.read_file(path, check.MAX_CERTIFICATE))
    folder, bound = check.folder_of(path), claim.top["model"]
    data, *tensors = [
        check.read_file(folder / name, check.MAX_FILE)
        for name in (bound["file"], *[name for name, _ in bound["tensors"]])
    ]
    require(check.sha256(data) == bound["sha256"], "made for another model: the SHA-256 differs")
    model = read_model(data, dict(zip([name for name, _ in bound["tensors"]], tensors, strict=True)))
    return check_claims(claim, model, stop)


def main(arguments: list[str]) -> int:
    """Exit code 0 after `accepted 1 of 1`; 4 when it was refused; 2 when there is nothing to check."""

    def say(line: str, stream: TextIO = sys.stdout) -> None:
        print(line.encode("ascii", "backslashreplace").decode(), flush=True, file=stream)

    seconds = check.SECONDS
    if len(arguments) == 3 and arguments[0] == "--seconds" and re.fullmatch("[0-9]{1,9}", arguments[1]):
        seconds, arguments = float(arguments[1]), arguments[2:]
    try:
        usable = len(arguments) == 1 and not arguments[0].startswith("--")
        need(usable, "usage: check_ball.py [--seconds S] CERTIFICATE.json")
        sentence = check_file(Path(arguments[0]), seconds).sentence
    except Unusable as error:
        say(f"check_ball.py: {error}", sys.stderr)
        return 2
    except Exception as error:
        met = "" if isinstance(error, Refused) else f"the checker met {type(error).__name__}: "
        say(f"refused {Path(arguments[0]).name}: {met}{error}")
        say("refused 1 of 1")
        return 4
    say(f"{Path(arguments[0]).name}: {sentence}")
    say("accepted 1 of 1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
