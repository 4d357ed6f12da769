"""Commands about single questions, and about this installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import AsJson, TaskFile


def export(
    task: TaskFile,
    text_id: Annotated[int, typer.Option("--text-id", min=0, help="Which text.", show_default=False)],
    format: Annotated[
        str, typer.Option("--format", help="lp, mps, smt2, vnnlib (1.0) or vnnlib2 (2.0).", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="The file to write.", show_default=False)],
    radius: Annotated[int | None, typer.Option(min=1, help="At most so many swaps.", show_default="any number")] = None,
    choices: Annotated[
        str, typer.Option(help="vnnlib: points (every sentence's words), hull (boxes around them), or auto.")
    ] = "auto",
    json: AsJson = False,
) -> None:
    """Write the question about one text for other people's solvers.

    lp, mps: an integer program, of the fewest swaps or, with --radius, of the least margin. smt2: exact rationals.
    vnnlib: about the numbers behind the embedding, with the rest of the network as an ONNX file beside it.
    """
    from ..commands.export_question import command

    raise typer.Exit(command(task, text_id, format, out, radius, choices, as_json=json))


def verify(
    query: Annotated[
        Path | None, typer.Argument(metavar="QUERY.vnnlib", help="A VNN-LIB file, 1.0 or 2.0.", show_default=False)
    ] = None,
    network: Annotated[
        list[str] | None, typer.Option("--network", help="N=MODEL.onnx, or MODEL.onnx.", show_default=False)
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds for one query.", show_default="60, or what the batch says")
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option(
            "--proof",
            help="Answer unsat only with a certificate, written to this file (--batch: to this folder) once all of it "
            "holds in float64, rounding taken off; without the solver of last resort.",
            show_default=False,
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="With --proof: only once proofs/check_box.py accepted it, exactly.")
    ] = False,
    batch: Annotated[
        Path | None, typer.Option("--batch", help="instances.csv: onnx,vnnlib,seconds.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Decide a VNN-LIB query about a ReLU network.

    Prints sat, unsat, unknown or timed-out; after sat, an input that onnxruntime confirmed. Exit codes 1, 0, 3, 3.
    """
    from ..commands.verify import command

    raise typer.Exit(command(query, network or [], timeout, proof, batch, exact=exact, as_json=json))


def doctor(
    kernels: Annotated[
        bool,
        typer.Option(
            "--kernels",
            help="Measure onnxruntime's tanh, sigmoid, erf, exp, ... over every float32 input, and keep it.",
        ),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="With --kernels: every 64th input only.")] = False,
    json: AsJson = False,
) -> None:
    """Show what is installed and what is missing."""
    from ..commands import doctor

    if quick and not kernels:
        raise typer.BadParameter("--quick is for --kernels", param_hint="--quick")
    if kernels:
        doctor.kernels(quick=quick, as_json=json)
    elif json:
        doctor.doctor_as_json()
    else:
        doctor.doctor()
