"""What is read as a certificate here is read alike by check.py: no spelling is accepted that it refuses."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from screening_cases import ACCEPTED, REFUSED, same_or_nothing, screen_of

from swapproof.proofs import check
from swapproof.verifier.screening import Unsure, canonical

ODD: tuple[Any, ...] = (
    True, False, None, 0, 1, -1, 2, 1.0, 1e999, 2**31, 2**63, 10**19, "", "real", "replay", "0", "01", "a b", "\n",
    [], {}, [[]], [1, 1], [[0, 1]], {"a": 1},
)  # fmt: skip


def nodes(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value: what holds it, and its key or index."""
    found: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        holder = stack.pop()
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                stack.append(holder[key])
    return found


def changed(top: Any, chosen: random.Random) -> bytes:
    """Another value, key or order somewhere; or the bytes themselves touched."""
    top = copy.deepcopy(top)
    holder, key = chosen.choice(nodes(top))
    match chosen.randrange(6):
        case 0 | 1:
            holder[key] = chosen.choice(ODD)
        case 2 if isinstance(holder[key], int):
            holder[key] += chosen.choice((-1, 1, 2**16, 2**31, 2**63))
        case 3 if isinstance(holder, list):
            holder.insert(key, chosen.choice((holder[key], *ODD)))
        case 4:
            del holder[key]
        case _ if isinstance(holder[key], list):
            chosen.shuffle(holder[key])
        case _:
            pass
    data = bytearray(json.dumps(top, sort_keys=True, separators=(",", ":")).encode())
    if chosen.random() < 0.3:
        at = chosen.randrange(len(data))
        match chosen.randrange(4):
            case 0:
                data[at] = chosen.choice(b'0123456789-+.eE[]{},:" \n\t\\utrfalsn\x80\xff')
            case 1:
                del data[at]
            case 2:
                data.insert(at, chosen.choice(b'0 -,"[]{}'))
            case _:
                data[at:at] = data[at : at + chosen.randrange(1, 40)]
    return bytes(data)


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_no_other_spelling_or_content_is_accepted_than_by_the_checker(path: Path) -> None:
    """Sixty changed versions of each accepted certificate."""
    top = json.loads(path.read_bytes())
    screen = screen_of(path.parent, top)
    chosen = random.Random(path.stem)
    for _ in range(60):
        data = changed(top, chosen)
        try:
            value = canonical(data)
        except Unsure:
            continue
        found = screen.verdict(value, 60.0)
        if found is not None:
            assert found == check.check_certificate(data, screen.checked, screen.vocabulary_sha256)


@pytest.mark.parametrize("path", [*ACCEPTED, *REFUSED], ids=lambda path: path.stem)
def test_what_the_checker_parses_is_parsed_alike(path: Path) -> None:
    """And what is not canonical in shape is not parsed."""
    data = path.read_bytes()
    try:
        value = check.parse_canonical(data)
    except check.Refused:
        return
    assert canonical(data) == value


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_certificates_prepared_together_get_the_same_verdicts(path: Path) -> None:
    """Whatever is prepared beside them."""
    data = path.read_bytes()
    top = json.loads(data)
    screen = screen_of(path.parent, top)
    chosen = random.Random(path.stem)
    others = [changed(top, chosen) for _ in range(5)]
    tops = [top, *[json.loads(other) for other in others if parses(other)]]
    screen.prepare(tops)
    for value in tops:
        same_or_nothing(screen, json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def parses(data: bytes) -> bool:
    try:
        check.parse_canonical(data)
    except check.Refused:
        return False
    return True


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":-0}', b'{"a":01}', b'{"a":[1, 2]}', b'{"a":1}\n', b'\t{"a":1}', b'{"a":1 }', b'{"a":"\\u0041"}',
        b'{"b":1,"a":2}', b'{"a":1,"a":1}', b'{"a":"\x7f"}', b'{"format":"swapproof certificate", "x":1}',
        b'{"format":"swapproof certificate"}\r', b' {"format":"swapproof  certificate"}',
    ],
)  # fmt: skip
def test_json_that_can_be_spelt_otherwise_is_not_canonical(data: bytes) -> None:
    with pytest.raises(Unsure):
        canonical(data)


def test_strings_with_spaces_and_minus_zeros_are_compared_in_full() -> None:
    value = {"a": "b c", "b": "weights-00001", "c": [1, -2]}
    assert canonical(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()) == value
