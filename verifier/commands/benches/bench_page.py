"""`bench page`: the tables of a page of measurements, written from the results that are kept beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.models.errors import unreadable

from ...bench.markdown_table import markdown
from ...runs.run_folder import write_atomically

FOLDER = "measurements"
"""Beside the page: NAME.json for the table NAME."""
TABLE = re.compile(r"<!-- table ([a-z0-9-]+) -->\n(?:\|.*\n)*")
"""The place of a table in a page, and what stands there now."""
RUN_COLUMNS = ("model", "sentences", "said beforehand", "taken", "overhead", "command", "threads", "load")


def bench_page(page: Path) -> str:
    """The page with its tables written anew."""
    try:
        text = page.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{page}: cannot be read ({error})") from error

    def written(place: re.Match[str]) -> str:
        return f"<!-- table {place[1]} -->\n{table_of(page.parent / FOLDER / f'{place[1]}.json')}"

    return TABLE.sub(written, text)


def write_page(page: Path) -> None:
    write_atomically(page, bench_page(page).encode())


def table_of(path: Path) -> str:
    """In Markdown. `columns` and `rows` as they were written down, or what `bench run --json` left, one after the
    other, as `runs`."""
    try:
        kept = json.loads(path.read_bytes())
        runs = kept.get("runs")
        rows = kept["rows"] if runs is None else [run_row(run) for run in runs]
        return markdown(kept["columns"] if runs is None else RUN_COLUMNS, rows)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: no results of a table ({type(error).__name__}: {error})") from error


def run_row(run: Mapping[str, Any]) -> list[str]:
    best, taken = run["best_batch"], run["run"]
    bare = "" if best is None else f"{100 * run['overhead']:+.1f} % (batches of {best})"
    swaps = "1 swap" if run["radius"] == 1 else f"up to {run['radius']} swaps"
    return [
        run["model"],
        f"{run['sentences']:,} of {run['texts']} texts, {swaps}",
        f"{run['estimated']:.1f} s",
        f"{taken['wall']:.1f} s ({taken['cpu']:.1f} CPU)",
        bare,
        f"`{run['command']}`",
        str(run["threads"]),
        f"{run['load']:.0f} to {run['load_after']:.0f}",
    ]
