"""Work whose texts do what their words say: hang, crash, grow, die once, start a process that outlives them, or
wait until they have the cores of others."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from swapproof.encodings.space import SwapSpace
from swapproof.models.encoded import Encoded
from swapproof.verifier.process_copy import CORES, ProcessCopy
from swapproof.verifier.runs.run_folder import Run
from swapproof.verifier.runs.store import Store
from swapproof.verifier.runs.work import Lost, Settled
from swapproof.verifier.synonyms.freezing import FrozenText
from swapproof.verifier.tasks.inputs import Text


def text_of(id: int, word: str) -> Text:
    encoded = Encoded(word, (word,), ((0, len(word)),), (0,), ((0, 1),), 0, ())
    return Text(id, 0, encoded, FrozenText(id, ((word,),), SwapSpace(((0,),))))


@dataclass(frozen=True)
class FaultyWork:
    folder: Path
    seconds: float | None = None

    stage: ClassVar[str] = "min_swaps"
    kept_stage: ClassVar[str] = "kept"

    def open(self) -> FaultyWork:
        return self

    def moved(self, folder: Path) -> FaultyWork:
        return self

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[FaultyWork, Set[int]]:
        return self, set()

    def lost(self, lost: Lost) -> dict[str, Any]:
        return {"id": lost.text.id, "status": "open", "reason": lost.reason}

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        return None

    def settle(self, text: Text) -> Settled:
        match text.encoded.text:
            case "hang":
                time.sleep(600)
            case "crash":
                ctypes.string_at(0)
            case "grow":
                kept = bytearray(600 << 20)
                time.sleep(600)
                del kept
            case "dies once":
                mark = self.folder / f"died {text.id}"
                if not mark.exists():
                    mark.touch()
                    os._exit(9)
            case "starts another":
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                (self.folder / "child").write_text(str(child.pid))
                time.sleep(600)
            case "dies beside its copy":
                copy = ProcessCopy.begin(lambda: time.sleep(600))
                (self.folder / "child").write_text(str(copy.pid))
                os._exit(9)
            case "waits for cores":
                while CORES.count < 3:
                    time.sleep(0.01)
        return Settled(text.id, {"id": text.id, "status": "open"}, None)
