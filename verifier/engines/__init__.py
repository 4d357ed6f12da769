"""The engines, cheap to dear: one tuple, in the order of the default ladder."""

from __future__ import annotations

import difflib

from swapproof.encodings.errors import BadInput

from .enumeration import Enumeration
from .exact import Exact
from .greedy import Greedy
from .protocol import Engine

ENGINES: tuple[Engine, ...] = (Greedy(), Exact(), Enumeration())


def engines_named(names: str | None) -> tuple[Engine, ...]:
    """The engines of a comma-separated list, in that order; all of them for None."""
    if names is None:
        return ENGINES
    known = {engine.name: engine for engine in ENGINES}
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise BadInput(f"no engine is named {name!r}; {hint}")
    if not chosen:
        raise BadInput(f"no engine is named; there are {', '.join(known)}")
    return tuple(known[name] for name in chosen)
