"""Commands that show, compare, mend and hand over runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import AsJson, RunFolder


def report(
    run: RunFolder,
    junit: Annotated[
        Path | None, typer.Option(help="Also as JUnit XML: what is required, and every text.", show_default=False)
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Also every text as CSV.", show_default=False)] = None,
    latex: Annotated[Path | None, typer.Option(help="Also the numbers as a LaTeX table.", show_default=False)] = None,
    card: Annotated[
        Path | None, typer.Option(help="Also a section of a model card: Markdown with YAML.", show_default=False)
    ] = None,
    sarif: Annotated[
        Path | None, typer.Option(help="Also the texts that are broken, as SARIF.", show_default=False)
    ] = None,
    parquet: Annotated[Path | None, typer.Option(help="Also every text as Parquet.", show_default=False)] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            help="Show beside it a run of attack or measure, of the same texts and model; may be given again.",
            metavar="RUN",
            show_default=False,
            readable=False,
        ),
    ] = None,
    mlflow: Annotated[
        str | None,
        typer.Option(help="Log it to MLflow: the address of a server or a store.", metavar="URI", show_default=False),
    ] = None,
    experiment: Annotated[str, typer.Option(help="--mlflow: the experiment that it is put into.")] = "swapproof",
    alone: Annotated[bool, typer.Option("--alone", help="Show no other runs beside it any more.")] = False,
    json: AsJson = False,
) -> None:
    """Show what a run found, also as report.html."""
    from ..commands.report import command

    if beside and alone:
        raise typer.BadParameter("--alone shows none", param_hint="--beside")
    files = {"junit": junit, "csv": csv, "latex": latex, "card": card, "sarif": sarif, "parquet": parquet}
    raise typer.Exit(
        command(
            run,
            as_json=json,
            files=files,
            beside=() if alone else beside,
            mlflow=None if mlflow is None else (mlflow, experiment),
        )
    )


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Folders of runs, two or more.", show_default=False, readable=False),
    ],
    out: Annotated[Path, typer.Option("--out", help="A folder for what is found.", show_default=False, readable=False)],
    json: AsJson = False,
) -> None:
    """Compare runs over the same texts and swaps.

    Models or defences side by side: paired differences with intervals, who moved, what got worse; compare.html, .json
    and .csv. The first run is what the others are compared with. Runs of certify, attack or measure, of one kind.
    """
    from ..commands.deciding.compare_runs import command

    raise typer.Exit(command(runs, out, as_json=json))


def reject(
    word: Annotated[str, typer.Argument(help="A word.", show_default=False)],
    other: Annotated[str, typer.Argument(help="What is no synonym of it.", show_default=False)],
    task: Annotated[
        Path, typer.Option("--task", metavar="TASK.toml", help="Whose list it is put on.", readable=False)
    ] = Path("task.toml"),
    json: AsJson = False,
) -> None:
    """Reject a pair of words: neither stands for the other any more.

    The pair goes on the list that [swaps] rejected names, which freezing honours and counts; certify then settles the
    texts that this changes, and keeps the others.
    """
    from ..commands.deciding.reject_synonyms import command

    raise typer.Exit(command(word, other, task, as_json=json))


def bundle(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The archive: a new .zip file.", show_default=False)] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Sign with this private ed25519 key.", show_default=False)
    ] = None,
    verify: Annotated[
        Path | None, typer.Option("--verify", help="Check this archive instead of making one.", show_default=False)
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option("--public-key", help="Whose signature it must bear.", show_default=False)
    ] = None,
    new_key: Annotated[
        Path | None, typer.Option("--new-key", help="Make a pair of keys instead.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Pack a run for an auditor, or check such an archive.

    It holds model, certificates, checkers and a statement of their hashes; a run that does not check is refused.
    """
    from ..commands.bundle import command

    raise typer.Exit(command(run, out, key, verify, public_key, new_key, as_json=json))


def vipr(
    run: RunFolder,
    text_id: Annotated[int, typer.Option("--text-id", min=0, help="Which text.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The .vipr file.", show_default=False)],
    most_megabytes: Annotated[int, typer.Option(min=1, help="Give up on a longer derivation.")] = 1024,
    json: AsJson = False,
) -> None:
    """Write a certificate for checkers of integer programs.

    An integer program made from the model with exact rationals, and a proof in VIPR 1.0 that it has no solution.
    """
    from ..commands.write_vipr import vipr

    raise typer.Exit(vipr(run, text_id, out, most_megabytes, as_json=json))
