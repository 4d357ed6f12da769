"""`vipr`: a certificate as an integer program and a proof that it has no solution, for checkers of such proofs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput, Disagreement, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import Model, network_of, open_model
from swapproof.encodings.programs.exact_functions import exact_functions
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.check import SECONDS, Files, Refused, Unusable, parse_canonical

from ..exit_codes import HOLDS
from ..runs.overwriting import is_exported, refuse_to_replace
from ..runs.run_folder import existing, write_atomically
from ..runs.run_summary import swaps
from ..vipr.vipr_bounds import Element, Region
from ..vipr.vipr_proof import Derivation

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Size:
    """Of the file that was written."""

    variables: int
    constraints: int
    derivations: int
    characters: int


def vipr(folder: Path, id: int, out: Path, megabytes: int) -> int:
    """Write the certificate of one text; it is checked before."""
    run = existing(folder)
    refuse_to_replace(out, is_exported)
    path = run.certificate(id)
    if not path.is_file():
        raise BadInput(f"{folder}: no certificate of a text {id}")
    try:
        verdict, data = Files(folder).check(path, SECONDS)
    except (Refused, Unusable) as error:
        raise Disagreement(f"{path}: {error}") from None
    size = write_vipr(data, open_model(run.model), out, megabytes * MEBIBYTE)
    print(
        f"{out}: {size.variables:,} variables, {size.constraints:,} constraints, {size.derivations:,} derivations, "
        f"{size.characters:,} characters"
    )
    print(f"it proves: text {id}: no sentence with at most {swaps(verdict.low - 1)} changes the class, over the reals")
    return HOLDS


def write_vipr(certificate: bytes, model: Model, out: Path, most: int = 1024 * MEBIBYTE) -> Size:
    """The low end of a certificate that was accepted; `most` characters of derivations."""
    top = parse_canonical(certificate)
    lower = top["lower"]
    if lower is None:
        held = "only a witness" if top["count"] is None else "only a count of sentences, which is not written"
        raise BadInput(f"the certificate of text {top['id']} proves no low end, {held}")
    choices = tuple(tuple(options) for options in top["choices"])
    network = network_of(model, len(choices), choices)
    query = Query(network, SwapSpace(choices), top["label"], tuple(top["rivals"]))
    derivation = Derivation(query, exact_functions(query), lower["swaps"], most)
    Walk(derivation, base64.b64decode(lower["tree"]), top["rivals"]).run()
    proof, characters = derivation.proof, 0

    def pieces() -> Iterator[bytes]:
        nonlocal characters
        for line in proof.lines(remarks(top, certificate, query)):
            characters += len(line) + 1
            yield f"{line}\n".encode("ascii")

    write_atomically(out, pieces())
    return Size(len(proof.program.names), proof.given, len(proof.reasons), characters)


def remarks(top: dict[str, Any], certificate: bytes, query: Query) -> Iterator[str]:
    others = ", ".join(map(str, query.rivals))
    most = swaps(top["lower"]["swaps"])
    yield f"swapproof: in no sentence with at most {most} does a class of ({others}) beat class {query.label}"
    yield "over the reals, with the exact weights of the model; rounding of float32 is not spoken of here"
    yield f"text {top['id']}, SHA-256 {top['text']}"
    yield f"model SHA-256 {top['model']['sha256']}"
    yield f"certificate SHA-256 {hashlib.sha256(certificate).hexdigest()}"
    yield "x[p,t]: token t stands at position p; z, y, a of [n,e]: input, output, phase of element e of rectifier n"
    yield "to trust the program, make it again from the model: swapproof vipr writes the same bytes every time"


@dataclass(eq=False)
class Walk:
    """Reads the tree and derives an absurdity for every node, children first."""

    derivation: Derivation
    data: bytes
    rivals: list[int]
    at: int = 0

    def __post_init__(self) -> None:
        layers = self.derivation.exact.layers
        self.nodes = {layer.number: layer.node for layer in layers if layer.number is not None}

    def run(self) -> None:
        """Regions wait with whether the tree speaks of them; pairs are assumptions that join two results."""
        waiting: list[tuple[Region, bool] | tuple[int, int]] = [(self.derivation.root.region, True)]
        done: list[int] = []
        while waiting:
            first, second = waiting.pop()
            if not isinstance(first, Region):
                right, left = done.pop(), done.pop()
                done.append(self.derivation.combine_sides(left, first, right, second))
                continue
            sides = self.node(first) if second else self.leaf(first)
            if isinstance(sides, int):
                done.append(sides)
            elif isinstance(sides, Region):
                waiting.append((sides, True))
            else:
                told = bool(second) and self.told
                (left_region, low), (right_region, high) = sides
                waiting += [(low, high), (right_region, told), (left_region, told)]
        if not (len(done) == 1 and self.at == len(self.data)):
            raise Disagreement("the tree is not one tree")

    def leaf(self, region: Region) -> int | list[tuple[Region, int]]:
        self.told = False
        found = self.derivation.close(region)
        if not isinstance(found, int) and (region.betas or region.slopes):
            # Multipliers are chosen for the leaf as it was; elsewhere they may only weaken its bounds.
            region = replace(region, betas={}, slopes={})
            found = self.derivation.close(region)
        if isinstance(found, int):
            return found
        position, choice = found
        words = region.words
        left = frozenset({choice}) if words.forced(position) else frozenset({0})
        return self.derivation.words_sides(region, position, left)

    def node(self, region: Region) -> int | Region | list[tuple[Region, int]]:
        """A split, the region of a setter's only child, or a leaf."""
        derive, kind = self.derivation, self.byte()
        self.told = True
        match kind:
            case 0 | 1 | 2:
                return self.leaf(region)
            case 4:
                position = self.number()
                return derive.words_sides(region, position, self.mask(derive.query.space.choices[position]))
            case 5:
                return derive.phase_sides(region, self.element())
            case 6:
                positions = frozenset(self.ascending(self.number()))
                return derive.budget_sides(region, positions, self.number())
            case 7:
                chosen = self.mask(self.rivals)
                return derive.rivals_sides(region, tuple(r for at, r in enumerate(self.rivals) if at in chosen))
            case 8:
                slopes = {element: Fraction(value, 64) for element, value in self.table()}
                return replace(region, slopes={**region.slopes, **slopes})
            case 9:
                unit = 1 << self.number()
                betas = {element: Fraction(value, unit) for element, value in self.table()}
                return replace(region, betas={**region.betas, **betas})
            case 10:
                joint: dict[Element, tuple[int, Fraction]] = {}
                for group in range(self.number()):
                    joint.update({element: (group, Fraction(value, 64)) for element, value in self.entries()})
                return replace(region, joint=joint)
        raise Unsupported(f"byte {kind} of a proof tree is none that can be written as VIPR")

    # ---- bytes

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        value = shift = 0
        while (byte := self.byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def mask(self, options: Iterable[int]) -> frozenset[int]:
        size = len(list(options))
        bits = int.from_bytes(bytes(self.byte() for _ in range((size + 7) // 8)), "little")
        return frozenset(at for at in range(size) if bits >> at & 1)

    def ascending(self, count: int) -> Iterator[int]:
        value = 0
        for _ in range(count):
            value += self.number()
            yield value

    def element(self) -> Element:
        number, element = self.number(), self.number()
        return self.nodes[number], element

    def table(self) -> Iterator[tuple[Element, int]]:
        for _ in range(self.number()):
            yield from self.entries()

    def entries(self) -> Iterator[tuple[Element, int]]:
        node, element = self.nodes[self.number()], 0
        for _ in range(self.number()):
            element += self.number()
            yield (node, element), self.number()
