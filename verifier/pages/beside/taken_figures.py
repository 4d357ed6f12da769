"""RUN/beside.json: what was taken of other runs, for the page of this one; read without trust."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from swapproof.encodings.errors import BadInput

from ...runs.keys_once import once
from ...runs.run_folder import BESIDE, Run, sha256

Taken = Mapping[str, Any]
KINDS = ("attack", "pr", "kappa", "msr")
"""What a run may have measured that is shown beside a run of `certify`."""


def taken_beside(run: Run) -> tuple[Taken, ...]:
    """Nothing where there is none, or where the texts or swaps of the run are others now."""
    path = run.folder / BESIDE
    try:
        whole = json.loads(path.read_bytes(), object_pairs_hook=once)
        found = whole["runs"] if whole["of"] == asked_of(run) else []
        if any(one["kind"] not in KINDS for one in found):
            raise ValueError("a kind of run that is not known")
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); remove it, or give `report --beside` again") from None
    return tuple(found)


def asked_of(run: Run) -> dict[str, str]:
    """The texts and the swaps that figures are of."""
    return {"texts": sha256(run.texts), "spaces": sha256(run.spaces)}
