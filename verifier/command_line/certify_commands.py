"""Commands about certificates of swaps: from a model to a checked run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import AllowEndpoint, AsJson, OnCluster, Out, TaskFile, TrustPickle


def demo(
    out: Annotated[Path, typer.Option("--out", help="The run folder.")] = Path("runs/demo"),
    json: AsJson = False,
) -> None:
    """Certify, check and show a small example."""
    from ..commands.demo import demo

    raise typer.Exit(demo(out, as_json=json))


def init(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A file or folder (ONNX, Hugging Face, scikit-learn, model2vec, fastText), package.module:function, "
            "or a URL.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path, typer.Option("--data", help="Labelled texts: .csv, .tsv, .jsonl, .json, .parquet.", readable=False)
    ],
    synonyms: Annotated[
        Path | None,
        typer.Option("--synonyms", help="A synonym table.", show_default="WordNet, if installed", readable=False),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The task file to write.", readable=False)] = Path("task.toml"),
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Say what cannot be told: a key of the task file.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a task file that is there.")] = False,
    trust_pickle: TrustPickle = False,
    allow_endpoint: AllowEndpoint = False,
    json: AsJson = False,
) -> None:
    """Write a task file for a model of any kind.

    Looks at the model and the data, tries a few texts, and says what it found and what it could not tell.
    """
    from ..commands.init_task import command

    raise typer.Exit(
        command(
            model,
            data,
            synonyms,
            out,
            settings or [],
            force=force,
            trust_pickle=trust_pickle,
            allow_endpoint=allow_endpoint,
            as_json=json,
        )
    )


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="As `init` takes it.", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
    trust_pickle: TrustPickle = False,
) -> None:
    """Show what a model is made of, and whether it will be read or run.

    Inputs and their roles, outputs, operators, sizes, and everything that cannot be read, all at once.
    """
    from ..commands.inspect_model import command

    raise typer.Exit(command(model, as_json=json, trust_pickle=trust_pickle))


def certify(
    task: TaskFile,
    out: Out,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    radius: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Require every text that is answered rightly to be robust to R swaps; decides the exit code.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="Require 'certified@2 >= 0.70' or 'accuracy >= 0.9', shares of all texts, 'mmws >= 3' or "
            "'no_text_broken_by = 1'; may be given again.",
            metavar="WHAT",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Require it to be no worse than this run: as much certified, at every number of swaps.",
            metavar="RUN",
            show_default=False,
            readable=False,
        ),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            help="Engines, in order; there are also attacks such as pdp, and gurobi, scip, highs, z3.",
            show_default="greedy,exact,enumerate",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Time for each text; with more than a run had, its open texts are gone on with.")
    ] = 60.0,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    cluster: OnCluster = None,
    small_proofs: Annotated[
        bool, typer.Option("--small-proofs", help="Take more time for proofs of fewer leaves.")
    ] = False,
    resume: Annotated[bool, typer.Option(help="Go on with a run in this folder, or start it anew.")] = True,
    trust_pickle: TrustPickle = False,
    allow_endpoint: AllowEndpoint = False,
    json: AsJson = False,
) -> None:
    """Find the minimum number of swaps of every text.

    Each is an interval whose ends carry evidence: a checked proof, and a sentence that fools the model.
    """
    from ..commands.certify import command

    code = command(
        task,
        out,
        limit,
        radius,
        engines,
        seconds,
        jobs,
        require=require or (),
        small_proofs=small_proofs,
        resume=resume,
        trust_pickle=trust_pickle,
        allow_endpoint=allow_endpoint,
        as_json=json,
        baseline=baseline,
        cluster=cluster,
    )
    raise typer.Exit(code)


def shards(
    task: TaskFile,
    count: Annotated[int, typer.Option(min=1, help="How many.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False, readable=False)],
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    run: Annotated[
        str, typer.Option(help="What array.sh does with each: 'attack --method pdp', say.", metavar="COMMAND")
    ] = "certify",
    json: AsJson = False,
) -> None:
    """Cut a task into shards for machines that share files.

    Writes one task file for each shard, and array.sh, which a SLURM cluster runs; `merge` puts the runs together.
    """
    from ..commands.many_machines.write_shards import command

    raise typer.Exit(command(task, count, out, limit, run, as_json=json))


def merge(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Finished runs of one command.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False, readable=False)],
    json: AsJson = False,
) -> None:
    """Put the runs of the shards of one task together.

    Refuses runs of other models, swaps or settings, texts that are missing, and texts with two answers.
    """
    from ..commands.many_machines.merge_runs import command

    raise typer.Exit(command(runs, out, as_json=json))


def check(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="The folder of a run, or one certificate of `verify --proof`.",
            show_default=False,
            readable=False,
        ),
    ],
    exact: Annotated[
        bool, typer.Option("--exact", help="Exact arithmetic for every proof, not only where float64 is unsure.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one for each core")] = None,
    share: Annotated[
        float,
        typer.Option(min=0, max=1, help="Of a model that is run: ask again this share of the sentences, at random."),
    ] = 1.0,
    trust_pickle: TrustPickle = False,
    allow_endpoint: AllowEndpoint = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No line for a text that is accepted; else the first of them have one.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Check every certificate and witness of a run.

    Every certificate is checked, every witness replayed, and both are compared with what results.jsonl, the summary
    and the report claim.
    """
    from ..commands.check_evidence import command

    code = command(
        run,
        exact=exact,
        jobs=jobs,
        quiet=quiet,
        as_json=json,
        share=share,
        trust_pickle=trust_pickle,
        allow_endpoint=allow_endpoint,
    )
    raise typer.Exit(code)
