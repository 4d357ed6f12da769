"""Screening says what check.py says, or nothing: on the folders of certificates, random proofs and broken ones."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from proof_cases import KINDS, Case, Maker, Prover, make_case, min_swaps, statement, witness
from screening_cases import ACCEPTED, PROOFS, REFUSED, mutated, same_or_nothing, screen_of

from swapproof.encodings.errors import BadInput, Disagreement, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.process_copy import COPIES, CORES, ProcessCopy
from swapproof.verifier.screening import Screen, screen

SCREENED = {
    "bag", "enumerated", "limits", "masked", "paper", "plane", "residual", "straight", "two_layers", "with-joint",
    "with-words",
}  # fmt: skip
"""Of the accepted certificates, some that must not need the exact checker."""


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_the_verdict_on_an_accepted_certificate_is_that_of_the_checker(path: Path) -> None:
    """Or there is none, for the few that float64 does not decide."""
    data = path.read_bytes()
    screened = same_or_nothing(screen_of(path.parent, json.loads(data)), data)
    assert screened or path.stem not in SCREENED


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_refused_certificate_is_never_accepted(path: Path) -> None:
    """Whatever is wrong with it."""
    try:
        top = check.parse_canonical(path.read_bytes())
        screen = screen_of(path.parent, top)
    except (check.Refused, check.Unusable, BadInput, Unsupported, KeyError, OSError, TypeError):
        return  # it is refused before a tree is looked at
    assert screen.verdict(top, 60.0) is None


def proved(kind: Any, seed: int) -> tuple[Case, c.Statement] | None:
    """A random text, and a certificate of all that is true of it, with splits and multipliers drawn at random."""
    case = make_case(kind, seed)
    least, sentence = min_swaps(case)
    swaps = len(case.choices) if least is None else least - 1
    if swaps < 0:
        return None
    tree = Prover(case, swaps, "real", random.Random(seed), small=2).prove()
    if tree is None:
        return None
    upper = None if least is None else c.Upper(witness(case, sentence), ("real", "replay"))
    return case, statement(case, lower=c.Lower(swaps, "real", tree), upper=upper)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_random_proofs_get_the_verdict_of_the_checker(kind: Any, tmp_path: Path) -> None:
    """With every kind of split and multiplier; the true claim is not refused, and one more swap is not accepted."""
    for seed in range(8):
        found = proved(kind, seed)
        if found is None:
            continue
        case, claim = found
        path = tmp_path / f"{seed}.onnx"
        path.write_bytes(case.data)
        try:
            screen = Screen(open_model(path), read_model(case.data), None)
        except (BadInput, Unsupported):
            continue
        same_or_nothing(screen, c.write_certificate(claim))
        same_or_nothing_of_more(screen, claim)


def same_or_nothing_of_more(screen: Screen, claim: c.Statement) -> None:
    """The same tree for one more swap, and without its witness."""
    lower = claim.lower
    assert lower is not None
    more = c.Lower(lower.swaps + 1, lower.level, lower.tree)
    top = json.loads(c.write_certificate(claim))
    top["lower"]["swaps"], top["upper"] = more.swaps, None
    found = screen.verdict(top, 60.0)
    if found is not None:
        data = json.dumps(top, sort_keys=True, separators=(",", ":")).encode()
        assert found == check.check_certificate(data, screen.checked)


WITH_PROOF = [path for path in ACCEPTED if json.loads(path.read_bytes())["lower"] is not None]


@pytest.mark.parametrize("path", WITH_PROOF, ids=lambda path: path.stem)
def test_no_broken_tree_is_accepted_that_the_checker_refuses(path: Path) -> None:
    """A hundred mutants of each accepted proof, some of them claiming another number of swaps."""
    top = json.loads(path.read_bytes())
    screen = screen_of(path.parent, top)
    chosen = random.Random(path.stem)
    tree = base64.b64decode(top["lower"]["tree"])
    for _ in range(100):
        lower = {**top["lower"], "tree": base64.b64encode(mutated(tree, chosen)).decode()}
        lower["swaps"] = max(0, lower["swaps"] + chosen.choice((-1, 0, 0, 0, 1)))
        data = json.dumps({**top, "lower": lower, "upper": None}, sort_keys=True, separators=(",", ":")).encode()
        same_or_nothing(screen, data)


@pytest.mark.skipif(not COPIES, reason="processes are not copied here")
def test_several_cores_say_what_one_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """And give the same reason where they say nothing; a copy that dies changes nothing either."""
    monkeypatch.setattr(screen, "MOST_LEAVES", 1)
    monkeypatch.setattr(screen, "WORTH_A_COPY", 1)
    (path,) = (path for path in ACCEPTED if path.stem == "residual")
    top = json.loads(path.read_bytes())
    lower = top["lower"]
    claims = [top, *({**top, "upper": None, "lower": {**lower, "swaps": lower["swaps"] + more}} for more in (1, 2))]
    said: list[Any] = []
    for cores, dies in ((1, False), (2, False), (3, False), (3, True)):
        CORES.may_use(cores)
        if dies:
            monkeypatch.setattr(ProcessCopy, "result", ProcessCopy.end)
        found = screen_of(path.parent, top)
        said.append(([found.verdict(one, 60.0) for one in claims], found.reasons))
        CORES.may_use(1)
    assert said[0][0][0] is not None
    assert any(reason.startswith("a linear leaf") for reason in said[0][1])
    assert all(one == said[0] for one in said)


def test_another_reading_of_the_model_is_noticed(tmp_path: Path) -> None:
    """Nothing is claimed of a network that is not the checker's."""
    folder = PROOFS / "accepted"
    top = json.loads((folder / "paper.json").read_bytes())
    other = tmp_path / "other.onnx"
    other.write_bytes(KINDS[0](Maker(random.Random(5), 4), 2))
    screen = Screen(open_model(other), read_model((folder / "paper.onnx").read_bytes()), None)
    with pytest.raises(Disagreement, match="read in two ways"):
        screen.verdict(top, 60.0)
