"""Writes ball certificates: what is claimed and the nodes of proof trees in, the bytes of FORMAT.md section 16 out."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from .certificate import File

Norm = Literal["l2", "linf"]


@dataclass(frozen=True)
class Ball:
    """Runs (first, count) of inputs that move, the radius, and for each rival the proof that it wins nowhere there; of
    forms there are no proofs."""

    free: Sequence[tuple[int, int]]
    radius: Fraction
    trees: Sequence[bytes] = field(repr=False)


@dataclass(frozen=True)
class BallStatement:
    """`center` and `widths` are float32 numbers (form 1) or float64 numbers (form 2), as bytes, lowest first."""

    model: File
    tensors: Sequence[File]
    network: str
    inputs: int
    outputs: int
    center: tuple[int, bytes] = field(repr=False)
    widths: tuple[int, bytes] = field(repr=False)
    label: int
    rivals: Sequence[int]
    norm: Norm
    balls: Sequence[Ball]
    precision: int | None = None
    """Of forms; None where trees are the proofs."""


def write_ball_certificate(statement: BallStatement) -> bytes:
    smooth = statement.precision is not None
    value: dict[str, object] = {
        "format": "swapproof ball certificate",
        "version": 1,
        "recipe": "forms-1" if smooth else "ball-1",
        "model": {
            "file": statement.model.name,
            "sha256": statement.model.sha256,
            "tensors": sorted([file.name, file.sha256] for file in statement.tensors),
        },
        "network": statement.network,
        "inputs": statement.inputs,
        "outputs": statement.outputs,
        "center": numbers(*statement.center),
        "widths": numbers(*statement.widths),
        "label": statement.label,
        "rivals": list(statement.rivals),
        "norm": statement.norm,
        "cases": [
            {
                "free": [list(run) for run in ball.free],
                "radius": str(ball.radius),
                **({} if smooth else {"trees": [base64.b64encode(tree).decode() for tree in ball.trees]}),
            }
            for ball in statement.balls
        ],
    }
    if smooth:
        value["precision"] = statement.precision
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def numbers(form: int, data: bytes) -> dict[str, object]:
    return {"form": form, "numbers": base64.b64encode(data).decode()}
