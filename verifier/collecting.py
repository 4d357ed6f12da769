"""How seldom a process of ours looks for what nobody needs: nearly all that it makes stays, and looking takes long."""

from __future__ import annotations

import gc

THRESHOLDS = 20_000, 20, 50


def collect_seldom() -> None:
    gc.set_threshold(*THRESHOLDS)
