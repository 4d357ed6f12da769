"""The command `measure`."""

from __future__ import annotations

from typing import Annotated

import typer

from .arguments import AsJson, OnCluster, Out, TaskFile


def measure(
    task: TaskFile,
    out: Out,
    quantity: Annotated[
        str,
        typer.Option(
            help="pr: robust fraction; kappa: single-word flips and rho; msr: safe radius; vote: of smoothed models."
        ),
    ],
    radius: Annotated[
        str | None, typer.Option(help="pr: swaps a sentence may have, or several: 1,2,3.", show_default=False)
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Time for each text.", show_default="pr, msr: 10; kappa: no limit")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="pr: samples a text.", show_default="what epsilon and delta need")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="pr: how far a sampled share may be off ...", show_default="0.025")
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(
            help="... and with which probability it may be further off; vote: the same of its counts.",
            show_default="pr: 0.005; vote: 0.001",
        ),
    ] = None,
    stop_when_width: Annotated[
        str | None,
        typer.Option(
            help="pr: sample each text until its interval is no wider, not a number fixed beforehand.",
            metavar="W",
            show_default=False,
        ),
    ] = None,
    sampled: Annotated[bool, typer.Option("--sampled", help="pr: only sample, count nothing.")] = False,
    brute_force: Annotated[
        bool, typer.Option("--brute-force", help="kappa: evaluate every sentence by onnxruntime, for any model.")
    ] = False,
    euba: Annotated[
        int | None,
        typer.Option(
            min=1, help="kappa: what EUBA finds, stopping after M failures (512).", metavar="M", show_default=False
        ),
    ] = None,
    euba_variant: Annotated[
        str | None, typer.Option(help="kappa: paper, top1 or no-mask.", show_default="paper")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(help="kappa: require 'rho >= 0.9'; decides the exit code.", metavar="WHAT", show_default=False),
    ] = None,
    norm: Annotated[str | None, typer.Option(help="msr: l2 or linf.", show_default="l2")] = None,
    words: Annotated[
        str | None, typer.Option(help="msr: which words move: one at a time, all, or so many.", show_default="one")
    ] = None,
    units: Annotated[
        str | None, typer.Option(help="msr: raw, or scaled by the range of each dimension.", show_default="raw")
    ] = None,
    padding: Annotated[bool, typer.Option("--padding", help="msr: padding moves too.")] = False,
    saliency: Annotated[
        bool, typer.Option("--saliency", help="msr: the exact effects of words beside their radii.")
    ] = False,
    lime: Annotated[
        int | None, typer.Option(min=10, help="msr: LIME's weights too, of N samples a text.", metavar="N")
    ] = None,
    same_part_of_speech: Annotated[
        bool, typer.Option("--same-part-of-speech", help="msr: the nearest word of the same part of speech too.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    cluster: OnCluster = None,
    resume: Annotated[bool, typer.Option(help="Go on with a run in this folder, or start it anew.")] = True,
    json: AsJson = False,
) -> None:
    """Measure how much of a data set's swaps a model withstands.

    pr: the share of sentences with at most R swaps that keep their label, counted and certified where it can be.
    kappa: the share of texts that each word of the vocabulary flips, put anywhere in them, exactly; and rho.
    msr: how far the vectors of words may move before the class changes, proved from below, witnessed from above.
    vote: how many swaps the vote over random texts withstands (RanMASK, SAFER), at a stated confidence.
    """
    from ..runs.measured_runs import MeasureOptions

    asked = MeasureOptions(
        quantity,
        radius,
        limit,
        seconds,
        samples,
        epsilon,
        delta,
        stop_when_width,
        sampled,
        brute_force,
        euba,
        euba_variant,
        jobs,
        resume,
        tuple(require or ()),
        cluster,
        norm,
        words,
        units,
        padding,
        saliency,
        lime,
        same_part_of_speech,
    )
    asked.refuse_others()
    if quantity == "msr":
        from ..commands import measure_msr

        raise typer.Exit(measure_msr.command(task, out, asked, as_json=json))
    if quantity == "kappa":
        from ..commands import measure_kappa

        raise typer.Exit(measure_kappa.command(task, out, asked, as_json=json))
    if quantity == "vote":
        from ..commands.defences import measure_vote

        raise typer.Exit(measure_vote.command(task, out, asked, as_json=json))
    from ..commands import measure_pr

    raise typer.Exit(measure_pr.command(task, out, asked, as_json=json))
