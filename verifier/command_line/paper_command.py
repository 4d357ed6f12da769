"""The command `paper`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .arguments import AsJson, OnCluster


def paper(
    name: Annotated[str, typer.Argument(metavar="NAME", help="pdp, defender, msr, mmws or sp.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", help="A new folder, or one to go on with.", show_default=False, readable=False)
    ],
    size: Annotated[Literal["small", "full"], typer.Option(help="Few texts, or as many as the paper.")] = "small",
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with sst2, mr, imdb, ag_news, synonyms.",
            show_default="installed packages",
            readable=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    cluster: OnCluster = None,
    json: AsJson = False,
) -> None:
    """Run a paper's experiments; print its tables beside what is proved.

    Every step is a command that you could give yourself, shown as it begins and kept in commands.sh; every run is
    checked, and every cell links to its run. A killed one goes on.
    """
    from ..commands.papers.write_paper import command
    from ..papers.paper_runs import PaperOptions

    raise typer.Exit(command(name, out, PaperOptions(size, data, jobs, cluster), as_json=json))
