"""`bench papers`: the tables of finished papers as one page of Markdown; what people wrote between its marks stays."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.models.errors import unreadable

from ...bench.markdown_table import markdown
from ...bench.surroundings import processor
from ...papers.paper_page import LITTLE, agreed
from ...papers.paper_runs import NAME
from ...runs.overwriting import refuse_to_replace
from ...runs.run_folder import write_atomically
from ...versions import version

FIRST = "# The papers' tables as measured"
PROSE = re.compile(r"<!-- words ([a-z]+) -->\n(.*?)<!-- end -->", re.DOTALL)
"""What people wrote about a paper's tables."""
SUMMARY = (
    "paper",
    "measured",
    "exit code",
    "runs accepted",
    "texts compared",
    "contradictions",
    "processor time without checks",
)
Paper = Mapping[str, Any]


def bench_papers(folders: Sequence[Path], page: Path) -> str:
    """The page, with the words that stand in it now."""
    return "\n".join(lines_of([finished(folder) for folder in folders], words_in(page))) + "\n"


def write_papers(folders: Sequence[Path], page: Path, seconds: Path | None) -> None:
    refuse_to_replace(page, lambda path: path.read_bytes().startswith(FIRST.encode()))
    write_atomically(page, bench_papers(folders, page).encode())
    if seconds is not None:
        found = {paper["paper"]: paper["cpu_seconds_of"] for paper in map(finished, folders)}
        write_atomically(seconds, (json.dumps(found, indent=1) + "\n").encode())


def finished(folder: Path) -> Paper:
    path = folder / NAME
    try:
        found = dict(json.loads(path.read_bytes()))
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path}: not what `swapproof paper` leaves: {error}") from error
    if "tables" not in found:
        raise BadInput(f"{path}: unfinished; give the same `swapproof paper` command again")
    return found


def words_in(page: Path) -> dict[str, str]:
    """By paper."""
    try:
        return dict(PROSE.findall(page.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{page}: cannot be read ({error})") from error


def lines_of(papers: Sequence[Paper], words: Mapping[str, str]) -> Iterator[str]:
    sizes = sorted({paper["size"] for paper in papers})
    yield FIRST
    yield ""
    yield f"Written by `swapproof bench papers`, {datetime.date.today().isoformat()}, swapproof {version('swapproof')}."
    yield f"Each paper by `swapproof paper NAME --size {' or '.join(sizes)} --data FOLDER --out DIR`, on {machine()}."
    yield "Published numbers stand in brackets: they are of other models, splits and candidates, and no target."
    yield "An interval [low, high] is proved or evaluated from below and witnessed from above; a ? is a high end that"
    yield "nobody knows. What each paper's commands are: [PAPERS.md](PAPERS.md)."
    yield ""
    yield markdown(SUMMARY, [summary_row(paper) for paper in papers]).rstrip("\n")
    for paper in papers:
        yield ""
        yield f"## {paper['paper']}: {paper['title']}"
        yield ""
        yield f"<!-- words {paper['paper']} -->"
        yield f"{words.get(paper['paper'], '')}<!-- end -->"
        yield ""
        yield f"* {agreed(paper['compared_texts'], paper['disagreements'])}"
        yield from remark_lines(paper["remarks"])
        for table in paper["tables"]:
            yield from table_lines(table)


def remark_lines(remarks: Sequence[str]) -> Iterator[str]:
    """Runs that say little for one reason stand together."""
    runs: dict[str, list[str]] = {}
    for remark in remarks:
        run, little, reason = remark.partition(LITTLE)
        if little:
            runs.setdefault(reason, []).append(f"`{run.removeprefix('runs/')}`")
        else:
            yield f"* {remark}"
    for reason, names in runs.items():
        yield f"* {', '.join(names)}{LITTLE.replace('says', 'say') if len(names) > 1 else LITTLE}{reason}"


def summary_row(paper: Paper) -> list[str]:
    accepted = sum(code == 0 for code in paper["checked"].values())
    return [
        paper["paper"],
        paper["measured"],
        str(paper["exit_code"]),
        f"{accepted} of {len(paper['checked'])}",
        f"{paper['compared_texts']:,}",
        str(len(paper["disagreements"])),
        f"{paper['cpu_seconds']:,.0f} s",
    ]


def machine() -> str:
    load = f", load {os.getloadavg()[0]:.0f}" if hasattr(os, "getloadavg") else ""
    return f"a machine of {os.cpu_count()} cores ({processor()}), Python {platform.python_version()}{load}"


def table_lines(table: Mapping[str, Any]) -> Iterator[str]:
    if not table["rows"]:
        return
    rows = [[shown(cell) for cell in row] for row in table["rows"]]
    yield ""
    yield f"### {table['name']}. {table['caption']}"
    yield ""
    yield markdown([column or " " for column in table["columns"]], rows).rstrip("\n")
    yield ""
    yield table["definition"]
    for note in table["notes"]:
        yield f"* {note}"


def shown(cell: Mapping[str, Any]) -> str:
    said = f"{cell['ours']} ({cell['published']})" if cell["published"] else str(cell["ours"])
    return said.replace("|", "\\|").replace("*", "\\*")
