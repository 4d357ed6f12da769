"""`vipr`: a certificate as an integer program and a proof that it has no solution, for checkers of such proofs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput, Disagreement, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.encodings.programs.exact_functions import exact_functions
from swapproof.encodings.query import Query
from swapproof.encodings.word_options import space_of
from swapproof.proofs.check import SECONDS, Files, parse_canonical
from swapproof.proofs.onnx_file import Refused, Unusable
from swapproof.proofs.writing.certificate import Enumerate, Joint, Linear, Node, Rivals, Slopes, Words
from swapproof.proofs.writing.tree_reader import decode_tree

from ..engines.proof_tree import rectifier_layers
from ..exit_codes import HOLDS
from ..gates.known_ends import swaps
from ..pages.printing.json_printing import print_json
from ..runs.overwriting import is_exported, refuse_to_replace
from ..runs.run_folder import existing, write_atomically
from ..tasks.opened_model import opened_in
from ..vipr.vipr_bounds import Element, Region
from ..vipr.vipr_proof import Derivation, Unproved

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Size:
    """Of the file that was written."""

    variables: int
    constraints: int
    derivations: int
    characters: int


def vipr(folder: Path, id: int, out: Path, megabytes: int, *, as_json: bool = False) -> int:
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
    size = write_vipr(data, opened_in(run), out, megabytes * MEBIBYTE)
    proves = f"text {id}: no sentence with at most {swaps(verdict.low - 1)} changes the class, over the reals"
    if as_json:
        print_json({"exit_code": HOLDS, "file": str(out), **asdict(size), "proves": proves})
        return HOLDS
    print(
        f"{out}: {size.variables:,} variables, {size.constraints:,} constraints, {size.derivations:,} derivations, "
        f"{size.characters:,} characters"
    )
    print(f"it proves: {proves}")
    return HOLDS


def write_vipr(certificate: bytes, model: Model, out: Path, most: int = 1024 * MEBIBYTE) -> Size:
    """The low end of a certificate that was accepted; `most` characters of derivations."""
    top = parse_canonical(certificate)
    lower = top["lower"]
    if lower is None:
        held = "only a witness" if top["count"] is None else "only a count of sentences, which is not written"
        raise BadInput(f"the certificate of text {top['id']} proves no low end, {held}")
    space = space_of(top["inputs"], top["words"])
    query = Query(network_for(model, space), space, top["label"], tuple(top["rivals"]))
    derivation = Derivation(query, exact_functions(query), lower["swaps"], most)
    nodes = {layer: node for node, layer in (rectifier_layers(query.network) or {}).items()}
    sizes = [len(options) for _, options in top["words"]]
    starts = [start - space.offset for start, _ in top["words"]]
    Walk(derivation, nodes, starts).run(decode_tree(base64.b64decode(lower["tree"]), sizes, query.rivals))
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


@dataclass(frozen=True, eq=False)
class Part:
    """A region and the tree that closes it, None for one to be closed here; `line` is what it assumes beyond."""

    region: Region
    tree: Node | None
    line: int = -1


@dataclass(frozen=True, eq=False)
class Walk:
    """Derives an absurdity for every node of a tree, children first."""

    derivation: Derivation
    nodes: Mapping[int, int]
    """Layer of the canonical network -> rectifier node."""
    starts: Sequence[int]
    """Of the words."""

    def run(self, tree: Node) -> None:
        """Pairs are assumptions that join two results."""
        waiting: list[Part | tuple[int, int]] = [Part(self.derivation.root.region, tree)]
        done: list[int] = []
        while waiting:
            part = waiting.pop()
            if not isinstance(part, Part):
                right, left = done.pop(), done.pop()
                done.append(self.derivation.combine_sides(left, part[0], right, part[1]))
                continue
            match self.parts(part.region, part.tree):
                case int() as absurd:
                    done.append(absurd)
                case [only]:
                    waiting.append(only)
                case [left_part, right_part]:
                    waiting += [(left_part.line, right_part.line), right_part, left_part]

    def parts(self, region: Region, tree: Node | None) -> int | list[Part]:
        """The sides of a split, the region of a setter's only child, or the absurdity of a leaf."""
        derive = self.derivation
        match tree:
            case None | Linear() | Enumerate():
                return self.leaf(region)
            case Words(word, left_options, left, right):
                sides = derive.words_sides(region, self.starts[word], left_options)
            case Rivals(left_rivals, left, right):
                sides = derive.rivals_sides(region, tuple(sorted(left_rivals)))
            case Slopes(values, inner):
                # Heights of maxima are left out: what they close is split further.
                slopes = {
                    (self.nodes[layer], e): Fraction(v, 64)
                    for layer, own in values.items()
                    if layer in self.nodes
                    for e, v in own.items()
                }
                return [Part(replace(region, slopes={**region.slopes, **slopes}), inner)]
            case Joint(groups, inner):
                joint: dict[Element, tuple[int, Fraction]] = {}
                for number, (layer, members) in enumerate(groups):
                    joint |= {(self.nodes[layer], e): (number, Fraction(v, 64)) for e, v in members.items()}
                return [Part(replace(region, joint=joint), inner)]
            case _:
                raise Unsupported(f"a node {type(tree).__name__} of a proof tree cannot be written as VIPR")
        return [Part(side, below, line) for (side, line), below in zip(sides, (left, right), strict=True)]

    def leaf(self, region: Region) -> int | list[Part]:
        found = self.derivation.close(region)
        if isinstance(found, Unproved) and region.slopes:
            # Slopes are chosen for the leaf as it was; elsewhere they may only weaken its bounds.
            region = replace(region, slopes={})
            found = self.derivation.close(region)
        if isinstance(found, int):
            return found
        position, choice = self.derivation.worst(found)
        left = frozenset({choice}) if region.words.forced(position) else frozenset({0})
        return [Part(side, None, line) for side, line in self.derivation.words_sides(region, position, left)]
