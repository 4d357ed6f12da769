"""Certificates for unsat: what is claimed is settled before the search, and what was found is checked after it."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from swapproof.encodings.bounds.normal_form import Stack
from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.network import Floats, Network, Rectifier
from swapproof.encodings.vnnlib.linear_property import Atom, Property
from swapproof.proofs import check, check_box
from swapproof.proofs.writing import box_certificate as tree
from swapproof.proofs.writing.certificate import File
from swapproof.proofs.writing.grown_tree import grown

from ..runs.external_tensors import location, tensors
from ..screening.boxes.float_network import FloatNetwork
from ..screening.boxes.screened_tree import Screened, screened
from ..screening.form.unsure import Unsure
from .search_tree import TreeLayer, TreeRecord

if TYPE_CHECKING:
    from swapproof.encodings.onnx_files.numeric_input import NumericModel

DEEPEST, ROUNDS = 4, 4
"""How often a leaf that does not hold is halved before it is searched again, and how often a tree is gone through."""

WIDER = "a certificate bounds maxima less closely than the search; more time may do"
SCREENING, GROWING = 0.3, 0.6
"""The parts of the time left in which leaves are screened where there are maxima, and a tree is grown anew."""

Again = Callable[[int, Sequence[Fraction], Sequence[Fraction], bool], bytes]
"""Of a case, a smaller box, and whether neurons may be split: a tree, empty when none was found."""


@dataclass(frozen=True)
class Certified:
    """Whether the certificate is there, and at which level it was checked, or why it is not."""

    written: bool
    remark: str


@dataclass(frozen=True, eq=False)
class Plan:
    """A certificate but for its trees; `beside` are the files that will lie beside it, by name."""

    target: Path
    statement: tree.Statement
    beside: dict[str, bytes]
    space: check_box.Space
    exact: bool
    """Whether check_box.py must accept it before it is there."""

    def certify(self, records: Sequence[TreeRecord], until: float, again: Again) -> Certified:
        """Writes the certificate, once every leaf of it holds; else says why it is not written."""
        folder = self.target.parent
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.beside.items():
            if not (folder / name).exists():
                (folder / name).write_bytes(data)
        draft = self.target.with_name(f"{self.target.name}.draft")
        try:
            draft.write_bytes(self.written([record.encoded() for record in records]))
            exact = self.exact or any(record.near for record in records)
            screened_here = None if exact else self.screened(draft, self.screened_until(until), again)
            if screened_here is None:
                self.accept(draft, until, again)
            draft.replace(self.target)
        except check.Refused as error:
            return Certified(False, f"no certificate: {error}{f' ({WIDER})' if self.has_maxima else ''}")
        finally:
            draft.unlink(missing_ok=True)
        name = self.target.name
        if screened_here is None:
            return Certified(True, f"{name}: accepted by proofs/check_box.py, in exact arithmetic")
        return Certified(
            True,
            f"{name}: its {screened_here} leaves hold in float64, all rounding taken off; "
            "`swapproof check` on it is exact",
        )

    def screened(self, draft: Path, until: float, again: Again) -> int | None:
        """How many leaves hold, split where they must be, in the draft; None where float64 does not settle it."""
        _, cases = check_box.read_certificate(check.read_file(draft, check.MAX_CERTIFICATE))
        try:
            network = FloatNetwork(self.space)
            found = [followed(network, case, until, partial(again, number)) for number, case in enumerate(cases)]
        except Unsure:
            return None
        check.require(sum(each.nodes for each in found) <= check_box.MAX_NODES, "the trees are too large")
        draft.write_bytes(self.written([each.tree for each in found]))
        check_box.read_certificate(check.read_file(draft, check.MAX_CERTIFICATE))
        return None if any(each.unsure for each in found) else sum(each.leaves for each in found)

    @property
    def has_maxima(self) -> bool:
        return any(isinstance(layer, check.Maximum) for layer in self.space.network.layers)

    def screened_until(self, until: float) -> float:
        """Where there are maxima some time is left to grow a tree."""
        now = time.monotonic()
        return now + (until - now) * (SCREENING if self.has_maxima else 1.0)

    def accept(self, draft: Path, until: float, again: Again) -> None:
        """Raises Refused unless check_box.py accepts the draft, its trees being mended until it does."""
        reason = refusal(draft, until)
        if reason is not None and self.has_maxima:  # whose bounds the checker finds less closely than the search
            now = time.monotonic()
            with suppress(check.Refused):
                draft.write_bytes(self.written(grown(draft, now + GROWING * (until - now))))
                reason = refusal(draft, until)
        for _ in range(ROUNDS):
            if reason is not None:
                draft.write_bytes(self.written(mended(draft, until, again)))
                reason = refusal(draft, until)
        if reason is not None:
            raise check.Refused(reason)

    def written(self, trees: Sequence[bytes]) -> bytes:
        cases = [replace(case, tree=found) for case, found in zip(self.statement.cases, trees, strict=True)]
        return tree.write_box_certificate(replace(self.statement, cases=cases))

    def record(self, network: Network, stack: Stack, atoms: int) -> TreeRecord:
        return TreeRecord(names(network, self.space.network, stack), stack.widths[1:], atoms)


def plan(query: Path, property: Property, model: NumericModel, target: Path, *, exact: bool = False) -> Plan:
    """Raises BadInput, Unsupported or Unusable when the format cannot say that this query has no answer."""
    if target.is_dir():
        raise BadInput(f"--proof {target}: is a folder; give the file to be written")
    if any(target.exists() and target.samefile(path) for path in (query, model.path)):
        raise BadInput(f"--proof {target}: would replace what is proved; give another file")
    beside: dict[str, bytes] = {}
    held = {name: (model.path.parent / name).read_bytes() for name in external_files(model)}
    files = [keep(target.parent, beside, path.name, path.read_bytes()) for path in (model.path, query)]
    bound = [keep(target.parent, beside, name, data, fixed=True) for name, data in held.items()]
    if target.name in beside:
        raise BadInput(f"--proof {target}: has the name of a file that must lie beside it; give another name")
    cases = [
        tree.Case(list(zip(case.low, case.high, strict=True)), list(map(constraint, case.atoms)), b"")
        for case in property.cases
    ]
    try:
        checked = check_box.read_model(model.path.read_bytes(), held)
        digest, sizes = checked.lower().sha256, (property.inputs.size, property.outputs.size)
        statement = tree.Statement(files[0], bound, digest, files[1], *sizes, cases)
        top, read = check_box.read_certificate(tree.write_box_certificate(statement))
        space = check_box.space_of(top, read, checked, math.inf)
    except check.Refused as error:
        raise Unsupported(f"--proof: {query.name} is outside the certificate format: {error}") from None
    except check.Unusable as error:
        raise Unsupported(f"--proof: {model.path.name} is outside the certificate format: {error}") from None
    return Plan(target, statement, beside, space, exact)


def constraint(atom: Atom) -> tree.Constraint:
    return tree.Constraint(atom.inputs, atom.outputs, atom.constant, atom.strict)


def external_files(model: NumericModel) -> list[str]:
    import onnx

    proto = onnx.load(model.path, load_external_data=False)
    return sorted({location(tensor) for tensor in tensors(proto.graph) if tensor.data_location == tensor.EXTERNAL})


def keep(folder: Path, beside: dict[str, bytes], name: str, data: bytes, *, fixed: bool = False) -> File:
    """A name for this file in the folder: its own, or with its hash when another file has that already."""
    digest = hashlib.sha256(data).hexdigest()
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    stem, dot, ending = ("f" + plain if plain[0] in ".-" else plain).rpartition(".")
    stem, ending = (stem, dot + ending) if dot else (ending, "")
    for chosen in (f"{stem[:60]}{ending[:20]}", f"{stem[:60]}-{digest[:12]}{ending[:20]}"):
        there = folder / chosen
        if beside.get(chosen, data) == data and (not there.exists() or there.read_bytes() == data):
            if fixed and chosen != name:
                break
            beside[chosen] = data
            return File(chosen, digest)
    raise BadInput(f"--proof: {folder / name} is another file than the one to be kept there; choose an empty folder")


def names(network: Network, checked: check.Network, stack: Stack) -> list[TreeLayer | None]:
    """What the checker calls the layers of the normal form: rectifiers by their index, maxima not at all."""
    known = canonical_network(network, inputs="numbers").layer_of
    rectifiers = [index if isinstance(network.nodes[index].layer, Rectifier) else None for index in stack.sources]
    found = [None if index is None else known.get(index) for index in rectifiers]
    layers: list[TreeLayer | None] = []
    for number, width in zip(found, stack.widths[1:], strict=True):
        layer = None if number is None else checked.layers[number]
        if number is not None and isinstance(layer, check.Rectifier) and layer.size == width:
            layers.append(TreeLayer(number, layer.p / layer.q))
        else:
            layers.append(None)
    return layers


def followed(
    network: FloatNetwork,
    case: check_box.Case,
    until: float,
    again: Callable[[Sequence[Fraction], Sequence[Fraction], bool], bytes],
) -> Screened:
    """The tree of a case, or one that is searched anew where that has leaves that do not hold, however they are
    split."""

    def around(low: Floats, high: Floats, phases: bool) -> bytes:
        return again([Fraction(float(end)) for end in low], [Fraction(float(end)) for end in high], phases)

    found = screened(network, case, until, around)
    if not found.unsure:
        return found
    other = again([low for low, _ in case.box], [high for _, high in case.box], True)
    return screened(network, replace(case, tree=other), until, around) if other else found


def refusal(certificate: Path, until: float) -> str | None:
    try:
        check_box.check_file(certificate, until - time.monotonic())
    except check.Refused as error:
        return str(error)
    return None


def mended(certificate: Path, until: float, again: Again) -> list[bytes]:
    """The trees, with leaves that do not hold split until they do, or searched again."""
    top, cases = check_box.read_certificate(certificate.read_bytes())
    folder, bound = certificate.parent, top["model"]
    held = {name: (folder / name).read_bytes() for name, _ in bound["tensors"]}
    model = check_box.read_model((folder / bound["file"]).read_bytes(), held)
    walks: list[Mending] = []

    def make(*arguments: object) -> Mending:
        walks.append(Mending(*arguments))  # type: ignore[arg-type]
        walks[-1].again = partial(again, len(walks) - 1)
        return walks[-1]

    check_box.check_claims(top, cases, model, until, make)
    return [bytes(walk.out + case.tree[walk.copied :]) for walk, case in zip(walks, cases, strict=True)]


class Mending(check_box.Tree):
    """The checker's walk, but for leaves that do not hold: `out` is the new tree of what stood before `copied`."""

    def __init__(
        self,
        space: check_box.Space,
        ends: check_box.Ends,
        constraints: list[check_box.Constraint],
        data: bytes,
        stop: float,
    ) -> None:
        super().__init__(space, ends, constraints, data, stop)
        self.out, self.copied, self.scale = bytearray(), 0, space.network.input_scale
        count = len(constraints)
        units = [[int(i == one) for i in range(count)] for one in range(count)]
        self.plain = [tree.linear(tree.Multipliers(unit)) for unit in units]
        self.again: Callable[[Sequence[Fraction], Sequence[Fraction], bool], bytes] = lambda *_: b""

    def holds(self, region: check_box.Region) -> bool:
        began = self.at - 1
        if not super().holds(region):
            leaf = self.data[began : self.at]
            try:
                found = self.halved(region, leaf, DEEPEST)
            except check.Refused:
                ends, scale = region.inputs.ends, self.scale
                lows, highs = ([Fraction(each[side], scale) for each in ends] for side in (0, 1))
                found = self.again(lows, highs, not region.inputs.phases)
                check.require(found, "a region that was refuted in floating point is not, in exact arithmetic")
            self.out += self.data[self.copied : began] + found
            self.copied = self.at
        return True

    def halved(self, region: check_box.Region, leaf: bytes, depth: int) -> bytes:
        """The region split at the input that matters most to this leaf, and again where that is not enough."""
        check.in_time(self.space.stop)
        data, at = self.data, self.at
        try:
            for tried in (leaf, *self.plain):
                self.data, self.at = tried, 1
                if super().holds(region):
                    return tried
            self.data = leaf
            check.require(depth, "a leaf does not hold, however finely it is split")
            self.at = 1
            found = self.plane(region)
            weights = found[1] if found else [0]
            ends = region.inputs.ends
            _, place = max(
                (abs(c) * (high - low), i) for i, (c, (low, high)) in enumerate(zip(weights, ends, strict=True))
            )
            low, high = ends[place]
            check.require(low < high, "a leaf does not hold at a single point")
            exponent = min(check.GRID, max(0, (16 * self.scale // (high - low)).bit_length()))
            middle = (low + high << exponent) // (2 * self.scale)
            split = tree.split_input(place, exponent, middle)
            self.data, self.at = split, 1
            halves = self.split_input(region)
        finally:
            self.data, self.at = data, at
        return split + b"".join(self.halved(half, leaf, depth - 1) for half in halves)
