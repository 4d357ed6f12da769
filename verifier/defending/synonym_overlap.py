"""Whether a defender saw the synonyms that it is attacked with."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from swapproof.models.defences.synonym_pairs import read_synonyms


def overlap(defender: Path, attacker: Path) -> dict[str, Any]:
    """Shares of the defender's words and pairs that the attacker has too, and of the attacker's that the defender has.

    A pair is a word with one of the synonyms listed for it.
    """
    tables = {"defender": read_synonyms(defender), "attacker": read_synonyms(attacker)}
    words = {name: {word for word, others in table.items() if others} for name, table in tables.items()}
    pairs = {name: {(word, other) for word in table for other in table[word]} for name, table in tables.items()}
    return {
        "equal": defender.read_bytes() == attacker.read_bytes() or pairs["defender"] == pairs["attacker"],
        "defender_sha256": hashlib.sha256(defender.read_bytes()).hexdigest(),
        "attacker_sha256": hashlib.sha256(attacker.read_bytes()).hexdigest(),
        **{
            f"{what}_of_{name}": part(sets[name], sets[other])
            for what, sets in (("words", words), ("pairs", pairs))
            for name, other in (("defender", "attacker"), ("attacker", "defender"))
        },
    }


def part(own: set[Any], others: set[Any]) -> float:
    """The share of its own that the others have too; all of nothing."""
    return round(len(own & others) / len(own), 6) if own else 1.0


def sentence(found: dict[str, Any]) -> str:
    if found["equal"]:
        return "the defender's synonyms are the attacker's"
    of = {name: f"{found[name]:.1%}" for name in found if name.startswith(("words", "pairs"))}
    return (
        f"the attacker has {of['words_of_defender']} of the defender's words and {of['pairs_of_defender']} of its "
        f"pairs; the defender has {of['words_of_attacker']} and {of['pairs_of_attacker']} of the attacker's"
    )
