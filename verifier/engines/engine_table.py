"""The engines, cheap to dear: one tuple, in the order of the default ladder."""

from __future__ import annotations

import difflib

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.solvers.solver_table import GUROBI, HIGHS, LIRPA_SOLVERS, SCIP, SOLVERS

from ..attacks.recipes import RECIPES
from .attack_engines import ATTACKS, Attack
from .attempt import SMALL
from .attention_engine import ATTENTION
from .enumeration import Enumeration
from .exact_engine import Exact
from .expansion_engine import BOXES
from .greedy import Greedy
from .outside.margin_bounds import MarginBounds
from .outside.milp_solvers import Milp
from .outside.smt_solver import Smt
from .protocol import Engine
from .smooth_engines import SEQUENCE, Smooth

ENGINES: tuple[Engine, ...] = (Greedy(), Exact(), Enumeration())
SMOOTH: tuple[Engine, ...] = (ATTENTION, BOXES, SEQUENCE)
"""In place of these for smooth networks."""
OUTSIDE: tuple[Engine, ...] = (
    Milp(GUROBI, (SCIP, HIGHS), prover=Exact()),
    Milp(SCIP, prover=Exact()),
    Milp(HIGHS, prover=Exact()),
    Smt(prover=Exact()),
    *(MarginBounds(solver, prover=Exact()) for solver in LIRPA_SOLVERS),
)
"""Solvers of others, only when named: what they find is replayed, what they rule out is recorded as their claim.
`ATTACKS`, only when named too: what they find is replayed, and they rule out nothing."""
SMALL_PROOFS = {"exact": Exact(effort=SMALL)}
"""Instead of the engines of these names, when smaller proofs are worth more time."""


def engines_named(names: str | None, *, smooth: bool = False) -> tuple[Engine, ...]:
    """The engines of a comma-separated list, in that order; the default ladder (of smooth networks or not) for None."""
    if names is None:
        return SMOOTH if smooth else ENGINES
    known = {engine.name: engine for engine in (*ENGINES, *SMOOTH, *ATTACKS, *OUTSIDE, *SMALL_PROOFS.values())}
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    twice = [name for name in dict.fromkeys(chosen) if chosen.count(name) > 1]
    if twice or (chosen and names.rstrip().endswith(",")):
        raise BadInput(f"--engines {names}: {f'{twice[0]} is named twice' if twice else 'ends in a comma'}")
    for name in chosen:
        if name not in known:
            if name in RECIPES:
                raise Unsupported(
                    f"the attack {name} asks about more than the sentences of the space: `swapproof attack` has it; "
                    f"engines are {', '.join(attack.name for attack in ATTACKS)}"
                )
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise BadInput(f"no engine is named {name!r}; {hint}")
        for solver in SOLVERS:
            if solver.name == name and not solver.installed:
                raise Unsupported(
                    f"the engine {name} needs {solver.distribution}, which is not installed: {solver.install}"
                )
    if not chosen:
        raise BadInput(f"no engine is named; there are {', '.join(known)}")
    foreign = [name for name in chosen if smooth and not isinstance(known[name], Smooth | MarginBounds | Attack)]
    if foreign:
        able = [name for name, engine in known.items() if isinstance(engine, Smooth | MarginBounds | Attack)]
        raise Unsupported(
            f"the engine {foreign[0]} is for piecewise linear networks; for smooth ones there are {', '.join(able)}"
        )
    return tuple(known[name] for name in chosen)


def small_proofs(names: str | None) -> str:
    """The same engines, those that can take more time for smaller proofs."""
    return ",".join(SMALL_PROOFS.get(engine.name, engine).name for engine in engines_named(names))
