"""How many random cases a test looks at: so many by default, a hundred times as many in the nightly profile."""

from __future__ import annotations

import os
import random
from typing import Any

from hypothesis import settings

FACTOR = 100 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1


def cases(count: int, **more: Any) -> settings:
    return settings(max_examples=count * FACTOR, deadline=None, **more)


def drawn_seed() -> int:
    """For cases that Hypothesis does not draw: the same by default, another in every run of the other profiles."""
    return random.randrange(2**32) if "HYPOTHESIS_PROFILE" in os.environ else 0
