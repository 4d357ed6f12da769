"""Where and how something was measured: command, machine, load, versions."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..versions import version


def surroundings(task: str | Path, seconds: float, distributions: Sequence[str]) -> dict[str, Any]:
    """Where and how this was measured."""
    return {
        "command": shlex.join(sys.argv),
        "task": str(task),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {
            name: version(name) or "absent"
            for name in dict.fromkeys(("swapproof", "numpy", "onnxruntime", *distributions))
        },
        "seconds_per_text": seconds,
        "numpy_threads": os.environ.get("OMP_NUM_THREADS", "as many as numpy likes"),
    }


def processor() -> str:
    """Its name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
