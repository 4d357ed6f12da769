"""The engines, cheap to dear: one tuple, in the order of the default ladder."""

from __future__ import annotations

import difflib

from swapproof.encodings.errors import BadInput
from swapproof.encodings.solvers.solver_table import GUROBI, HIGHS, SCIP

from .attempt import SMALL
from .enumeration import Enumeration
from .exact_engine import Exact
from .greedy import Greedy
from .milp_solvers import Milp
from .protocol import Engine
from .smt_solver import Smt

ENGINES: tuple[Engine, ...] = (Greedy(), Exact(), Enumeration())
OUTSIDE: tuple[Engine, ...] = (
    Milp(GUROBI, (SCIP, HIGHS), prover=Exact()),
    Milp(SCIP, prover=Exact()),
    Milp(HIGHS, prover=Exact()),
    Smt(prover=Exact()),
)
"""Solvers of others, only when named: what they find is replayed, what they rule out is recorded as their claim."""
SMALL_PROOFS = {"exact": Exact(effort=SMALL)}
"""Instead of the engines of these names, when smaller proofs are worth more time."""


def engines_named(names: str | None) -> tuple[Engine, ...]:
    """The engines of a comma-separated list, in that order; the default ladder for None."""
    if names is None:
        return ENGINES
    known = {engine.name: engine for engine in (*ENGINES, *OUTSIDE, *SMALL_PROOFS.values())}
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise BadInput(f"no engine is named {name!r}; {hint}")
    if not chosen:
        raise BadInput(f"no engine is named; there are {', '.join(known)}")
    return tuple(known[name] for name in chosen)


def small_proofs(names: str | None) -> str:
    """The same engines, those that can take more time for smaller proofs."""
    return ",".join(SMALL_PROOFS.get(engine.name, engine).name for engine in engines_named(names))
