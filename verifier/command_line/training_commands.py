"""Commands that train networks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..exit_codes import HOLDS
from .arguments import AsJson, OnCluster


def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="Which network, which texts, how to learn.")],
    out: Annotated[Path, typer.Option("--out", help="The task folder: a new one.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Train a network; leave a model and a task file.

    The folder holds an ONNX model, its vocabulary, the held-out texts and the task file.
    """
    from swapproof.models.training import train

    train(recipe, out, lambda remark: print(remark, file=sys.stderr, flush=True))
    if json:
        from ..pages.printing.json_printing import print_json

        print_json({"exit_code": HOLDS, "folder": str(out), "task": str(out / "task.toml")})
    else:
        print(out / "task.toml")


def defend(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECIPE.toml", help="Recipes to train, or tasks with models that are there.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder, or one to go on with.", show_default=False)],
    methods: Annotated[
        str, typer.Option(help="Defences; ada:pwws learns from an attack's examples, ada:exact from minimal ones.")
    ] = "",
    seeds: Annotated[str, typer.Option(help="Each recipe is trained with each.")] = "0",
    synonyms: Annotated[
        Path | None,
        typer.Option(help="The defenders' table.", show_default="the recipe's own", readable=False),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="Keys of defences: a TOML file of [METHOD] sections.", show_default=False, readable=False),
    ] = None,
    attacks: Annotated[str, typer.Option(help="Attacks of the table.")] = "textfooler",
    no_certify: Annotated[bool, typer.Option("--no-certify", help="By attacks alone.")] = False,
    pr: Annotated[str, typer.Option(help="Radii of robust fractions: 1,2,3.", show_default="none")] = "",
    rho: Annotated[bool, typer.Option("--rho", help="Also rho, of the texts and of training texts.")] = False,
    brute_force: Annotated[bool, typer.Option("--brute-force", help="Of rho, as for measure.")] = False,
    euba: Annotated[
        int | None, typer.Option(min=1, help="Of rho, as for measure.", metavar="M", show_default=False)
    ] = None,
    k_max: Annotated[int | None, typer.Option(min=1, help="Of attacks, as for attack.", show_default=False)] = None,
    rho_max: Annotated[str | None, typer.Option(help="Of attacks, as for attack.", show_default=False)] = None,
    rho_up: Annotated[bool, typer.Option("--rho-up", help="Of attacks, as for attack.")] = False,
    q_max: Annotated[bool, typer.Option("--q-max", help="Of attacks, as for attack.")] = False,
    similarity: Annotated[float | None, typer.Option(help="Of attacks, as for attack.", show_default=False)] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    training_texts: Annotated[
        int | None,
        typer.Option(
            min=1, help="Training texts that examples are sought for and rho is of.", show_default="the recipe's; 1000"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for each text, of certify and of measure.")] = 10.0,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    cluster: OnCluster = None,
    json: AsJson = False,
) -> None:
    """Train, certify, attack and measure defences; one table.

    Every step is a command that you could give yourself, shown as it begins; a killed comparison goes on.
    """
    from ..attacks.attack_limits import Limits
    from ..commands.defences.defend_recipes import command, kappa_by, limits_of, names_of, numbers_of
    from ..defending.compared_cell import Asked
    from ..defending.defending_runs import DefendOptions

    limits = limits_of(Limits(k_max, rho_max, rho_up, q_max, similarity))
    radii, by = numbers_of(pr, "--pr"), kappa_by(brute_force, euba)
    asked = Asked(limit, seconds, names_of(attacks), radii, rho, by, jobs, None, limits, not no_certify, cluster)
    options = DefendOptions(names_of(methods), numbers_of(seeds, "--seeds"), synonyms, keys, training_texts, asked)
    raise typer.Exit(command(sources, out, options, as_json=json))
