"""A query about a smooth network as a question about regions; programs are kept, for texts of one length share them."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache

import numpy as np

from ..attended.attended_layout import layout_of
from ..canonical import Canonical, canonical_of
from ..errors import Unsupported
from ..query import Query
from .compiling import compiled
from .program import Program
from .region import Question
from .tails import margins

KEPT = 64
PROGRAMS: OrderedDict[str, Program] = OrderedDict()
"""Of the last canonical networks, by the SHA-256 of their bytes: texts of one length mostly share theirs."""


def program_of(canonical: Canonical) -> Program:
    """Raises Unsupported for a network that has no canonical form."""
    if canonical.form is None or canonical.sha256 is None:
        raise Unsupported(canonical.reason)
    found = PROGRAMS.pop(canonical.sha256, None) or compiled(canonical.form)
    PROGRAMS[canonical.sha256] = found
    if len(PROGRAMS) > KEPT:
        PROGRAMS.popitem(last=False)
    return found


@lru_cache(maxsize=1)
def question_of(query: Query) -> Question:
    """Laid out once for all who look at one query. Raises Unsupported for a network that has no canonical form."""
    space, program = query.space, program_of(canonical_of(query.network))
    layout = layout_of(query.network)
    return Question(
        program,
        margins(program, query.label, query.rivals),
        np.array(space.original, dtype=np.int64),
        space.swappable,
        tuple(space.choices[position] for position in space.swappable),
        None if layout is None else layout.compared(query.label, query.rivals),
    )
