"""The command `attack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import AllowEndpoint, AsJson, OnCluster, Out, TaskFile, TrustPickle


def attack(
    task: TaskFile,
    out: Out,
    method: Annotated[
        str | None, typer.Option(help="The attack, such as pdp; a wrong name lists them all.", show_default=False)
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(help="Several attacks, each in a folder of its own.", metavar="A,B", show_default=False),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(help="With --compare: a further task, for one table of all; again for more.", show_default=False),
    ] = None,
    exact: Annotated[
        Path | None,
        typer.Option(help="A certify run of the same task: how far each attack is from it.", show_default=False),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    target: Annotated[str | None, typer.Option(help="The class to reach, by name.", show_default="any other")] = None,
    k_max: Annotated[int | None, typer.Option(min=1, help="Candidates of a word.", show_default=False)] = None,
    rho_max: Annotated[
        str | None, typer.Option(help="Share of the words that may be swapped, rounded down.", show_default=False)
    ] = None,
    rho_up: Annotated[bool, typer.Option("--rho-up", help="Round it up.")] = False,
    q_max: Annotated[bool, typer.Option("--q-max", help="At most k-max x words requests a text.")] = False,
    queries: Annotated[
        int | None, typer.Option(min=1, help="At most so many requests a text, of every attack.", show_default=False)
    ] = None,
    similarity: Annotated[
        float | None, typer.Option(help="Least angular similarity to the original text.", show_default=False)
    ] = None,
    perplexity: Annotated[
        float | None,
        typer.Option(help="Most times the perplexity of the original text; needs --causal-model.", show_default=False),
    ] = None,
    causal_model: Annotated[
        Path | None,
        typer.Option(help="Perplexities by this folder of transformers.", show_default=False, readable=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the attacks that draw.")] = 1,
    kappa: Annotated[
        Path | None, typer.Option(help="sp-attack: a kappa.csv.", show_default=False, readable=False)
    ] = None,
    language_model: Annotated[
        Path | None,
        typer.Option(help="bert-attack, bae, clare: a folder of transformers.", show_default=False, readable=False),
    ] = None,
    read_textattack: Annotated[
        Path | None,
        typer.Option(help="A CSV log of TextAttack: its sentences are replayed.", show_default=False, readable=False),
    ] = None,
    write_textattack: Annotated[
        Path | None, typer.Option(help="Write what is found as such a log.", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Time for each text; what was found stands.", show_default="no limit"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    cluster: OnCluster = None,
    resume: Annotated[bool, typer.Option(help="Go on with a run in this folder, or start it anew.")] = True,
    json: AsJson = False,
    trust_pickle: TrustPickle = False,
    allow_endpoint: AllowEndpoint = False,
) -> None:
    """Attack every text with a published attack.

    What it finds is replayed and counted; it gives the high end only.
    """
    from ..attacks.attack_limits import Limits
    from ..attacks.attack_run import AttackOptions
    from ..commands.attack_texts import command
    from ..tasks.deployed_model import Trust

    options = AttackOptions(
        limit,
        target,
        Limits(k_max, rho_max, rho_up, q_max, similarity, perplexity, queries),
        seed,
        jobs,
        resume,
        True,
        kappa,
        language_model,
        Trust(trust_pickle, allow_endpoint),
        causal_model,
        write_textattack,
        cluster,
        seconds,
    )
    raise typer.Exit(
        command(
            task, out, method, compare, exact, options, imports=read_textattack, as_json=json, also=tuple(also or ())
        )
    )
