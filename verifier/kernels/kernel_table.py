"""The table of what was measured, kept in the user's cache for one runtime on one processor."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.rounding.kernel_errors import KERNEL_ERRORS

from ..runs.run_folder import write_atomically
from ..versions import versions
from .kernel_sweep import Measured

QUICK = 64
"""Every so many-th input is measured by `--quick`."""
FORMAT = 1
CPU_INFO = Path("/proc/cpuinfo")
CHOSEN_BY = ("avx", "fma", "f16c", "sse4", "amx", "asimd", "sve")
"""How the features begin by which a runtime chooses its instructions."""


@dataclass(frozen=True)
class Runtime:
    """What a table is about: another version, or another processor, may compute otherwise."""

    onnxruntime: str
    processor: str
    features: tuple[str, ...]

    @classmethod
    def here(cls) -> Runtime:
        told = cpu_info()
        name = told.get("model name") or platform.processor() or platform.machine()
        flags = (told.get("flags") or told.get("Features") or "").split()
        features = tuple(sorted(flag for flag in flags if flag.startswith(CHOSEN_BY)))
        return cls(versions("onnxruntime")["onnxruntime"], name, features)

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Runtime:
        return cls(written["onnxruntime"], written["processor"], tuple(written["features"]))

    def __str__(self) -> str:
        return f"onnxruntime {self.onnxruntime} on {self.processor}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def cpu_info() -> dict[str, str]:
    """What Linux tells of the first processor; nothing elsewhere."""
    try:
        first = CPU_INFO.read_text().split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True)
class Table:
    """What every `every`-th input showed; all of them where this is 1.

    `gates` are those inside an LSTM; `short` counts results that differ in arrays too short for the widest
    instructions. Both are sampled, as are softmax and division.
    """

    runtime: Runtime
    every: int
    functions: Mapping[str, Measured]
    gates: Mapping[str, Measured]
    short: Mapping[str, int]
    division: Mapping[str, Any]
    softmax: Mapping[str, Any]

    @property
    def exceeding(self) -> tuple[str, ...]:
        """What does not keep the stated bounds, each with where."""
        return tuple(self.excesses())

    def excesses(self) -> Iterator[str]:
        named = [*self.functions.items(), *((f"the {gate} gate of an LSTM", one) for gate, one in self.gates.items())]
        for name, one in named:
            if one.exceeded:
                yield f"{name} exceeds its stated bound at {one.exceeded} inputs, {one.exceeded_at!r} the first"
        if self.division["relative"] > float(KERNEL_ERRORS["division"].relative):
            yield f"division exceeds its stated bound: a relative error of {self.division['relative']:.3g}"
        if self.softmax["part_of_stated"] > 1:
            yield f"softmax exceeds its stated bound: {self.softmax['part_of_stated']:.3g} times"

    def text(self) -> str:
        measured = {
            part: {name: one.written() for name, one in getattr(self, part).items()} for part in ("functions", "gates")
        }
        written = {
            "format": FORMAT,
            "runtime": asdict(self.runtime),
            "every": self.every,
            **measured,
            "short": dict(self.short),
            "division": dict(self.division),
            "softmax": dict(self.softmax),
        }
        return json.dumps(written, indent=1) + "\n"

    @classmethod
    def read(cls, text: str) -> Table:
        written = json.loads(text)
        if written["format"] != FORMAT:
            raise ValueError(f"format {written['format']!r}")
        functions, gates = (
            {name: Measured.read(one) for name, one in written[part].items()} for part in ("functions", "gates")
        )
        short, division, softmax = (written[part] for part in ("short", "division", "softmax"))
        return cls(Runtime.read(written["runtime"]), written["every"], functions, gates, short, division, softmax)


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/swapproof, or ~/.cache/swapproof."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "swapproof"


def path_of(runtime: Runtime, every: int) -> Path:
    part = "" if every == 1 else f"-every-{every}"
    return cache_folder() / f"kernels-{runtime.digest}{part}.json"


def keep(table: Table) -> Path:
    path = path_of(table.runtime, table.every)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, table.text().encode())
    return path


def read_table(path: Path, runtime: Runtime) -> Table:
    """Refused when it is about another runtime, or is no table."""
    again = "measure again: swapproof doctor --kernels"
    try:
        table = Table.read(path.read_text())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: not a table of kernels ({type(error).__name__}: {error}); {again}") from None
    if table.runtime != runtime:
        raise BadInput(f"{path}: a table of {table.runtime}; this is {runtime}; {again}")
    return table


def measured_kernels(runtime: Runtime | None = None) -> Table | None:
    """The table for the runtime that is installed here: of all inputs, else of a sample; None when there is none."""
    here = runtime or Runtime.here()
    kept = (path_of(here, every) for every in (1, QUICK))
    return next((read_table(path, here) for path in kept if path.exists()), None)
