"""How many random cases a test looks at: so many by default, a hundred times as many in the nightly profile."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

FACTOR = 100 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1


def cases(count: int, **more: Any) -> settings:
    return settings(max_examples=count * FACTOR, deadline=None, **more)
