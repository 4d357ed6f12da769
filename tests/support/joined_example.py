"""The embedded example with its words in lower case and spaces between them, so that any tool splits them alike.

Beside its texts stand pairs of them: longer ones, where a search must choose.
"""

from __future__ import annotations

import csv
import re
import shutil
from itertools import combinations
from pathlib import Path

WORD = r"[a-z0-9]+|[^\sa-z0-9]"
LONGEST, PAIRS = 32, 24
"""Words that the network reads; texts of the same label that are put together."""
EXAMPLE = Path(__file__).parents[2] / "verifier" / "example"


def write_joined(folder: Path) -> Path:
    """The task file."""
    folder.mkdir(parents=True)
    for name in ("model.onnx", "vocabulary.json", "synonyms.json"):
        shutil.copy(EXAMPLE / name, folder / name)
    with (EXAMPLE / "texts.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    texts = [(row["label"], re.findall(WORD, row["text"].lower())) for row in rows]
    pairs = [(label, [*one, *two]) for (label, one), (other, two) in combinations(texts, 2) if label == other]
    pairs = [pair for pair in pairs if len(pair[1]) <= LONGEST][:PAIRS]
    lines = [f"{label}\t{' '.join(words)}" for label, words in (*texts, *pairs)]
    lines.insert(0, "label\ttext")
    (folder / "texts.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = (EXAMPLE / "task.toml").read_text()
    (folder / "task.toml").write_text(re.sub(r"(?m)^split = .*$", 'split = "whitespace"', task))
    return folder / "task.toml"
