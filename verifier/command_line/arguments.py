"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# `readable=False`: what cannot be read is said by whoever reads it, in one line.
TaskFile = Annotated[
    Path, typer.Argument(metavar="TASK.toml", help="Which model, which texts, which swaps.", readable=False)
]
Out = Annotated[
    Path,
    typer.Option("--out", help="The run folder: a new one, or one to resume.", show_default=False, readable=False),
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Work on a Ray cluster: auto, ray://HOST:PORT or HOST:PORT; --jobs N then takes N of its processors.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object in place of tables.")]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Load a pickled model, which may run any code when it is loaded.")
]
AllowEndpoint = Annotated[
    bool, typer.Option("--allow-endpoint", help="Send texts to the endpoint that the task names.")
]
RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False, readable=False)
]
