"""The candidates that were left out of the swaps of each text, by the reason: left_out.csv, word by word.

The list counts places over all texts. Where a candidate was left out at some places of its word only, which a filter
that looks at the sentence does, the page says at how many.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ...runs.left_out_swaps import LEFT_OUT
from ...runs.run_folder import Run

MOST = 8 << 20
"""Characters of the list, beyond which a page is given without."""

Lists = dict[str, dict[str, list[str]]]
"""Word -> reason -> candidates."""


def left_out_words(run: Run) -> Mapping[str, Any] | None:
    """`words`: (word, [(reason, candidates), ...]); `texts`: by the id of a text, the numbers of its words among
    these. None when that is too much for a page, or the run has no list."""
    path = run.folder / LEFT_OUT
    try:
        if not path.exists() or path.stat().st_size > MOST:
            return None
        texts = words_of(run.spaces)
        total = Counter(word for words in texts.values() for word in words)
        lists = lists_in(path, total)
    except (OSError, ValueError, TypeError, LookupError, csv.Error) as error:
        raise BadInput(f"{path}: not the list of a run ({type(error).__name__}: {error})") from None
    numbers = {word: number for number, word in enumerate(lists)}
    return {
        "words": [[word, [[reason, found] for reason, found in lists[word].items()]] for word in lists],
        "texts": {
            str(id): [numbers[word] for word in dict.fromkeys(words) if word in numbers] for id, words in texts.items()
        },
    }


def lists_in(path: Path, total: Mapping[str, int]) -> Lists:
    found: Lists = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, strict=True):
            word, times = row["word"], int(row["positions"])
            where = "" if times == total[word] else f", at {times:,} of the {total[word]:,} places of this word"
            found.setdefault(word, {}).setdefault(row["reason"] + where, []).append(row["candidate"])
    return found


def words_of(spaces: Path) -> dict[int, list[str]]:
    """The words of each text, as the list spells them."""
    with spaces.open("rb") as file:
        lines = map(json.loads, file)
        return {int(line["id"]): [options[0].lower() for options in line["choices"]] for line in lines}
