"""What a machine that does not see the run's folder needs of it, as bytes; and the work of a batch there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swapproof.models.deployed.passing_folder import PassingFolder

from ...versions import versions
from ..run_folder import UNFINISHED, Run
from ..work import Lost, Settled, Work
from ..workers import Bounds, Crew

if TYPE_CHECKING:
    from ...tasks.inputs import Text

Files = Mapping[str, bytes]


def packed(run: Run) -> Files:
    """Model, vocabulary, task, and a deployed model beside. Texts come with their batch: their files are empty here."""
    own = {run.results, run.summary, run.report, run.lock, run.texts, run.spaces}
    folders = {run.certificates, run.transcripts, run.refused}
    found = {run.texts.name: b"", run.spaces.name: b""}
    for path in sorted(run.folder.rglob("*")):
        inside = path in own or folders & set(path.parents) or path.name.startswith(run.store.name)
        if path.is_file() and not inside and not UNFINISHED.fullmatch(path.name):
            found[str(path.relative_to(run.folder))] = path.read_bytes()
    return found


def unpack(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Member:
    """A process of a cluster: a worker of ours below it settles its texts, and may die alone."""

    def __init__(self, files: Files, work: Work) -> None:
        self.place = PassingFolder()
        unpack(files, self.place.path)
        work = work.moved(self.place.path)
        self.crew = Crew(work, 1, Bounds.of(work, 1))

    def version(self) -> str:
        return versions("swapproof")["swapproof"]

    def settle(self, texts: Sequence[Text]) -> tuple[list[Settled | Lost], float]:
        """What is found, and in how many seconds."""
        started = time.monotonic()
        return [one for lot in self.crew.settle(texts) for one in lot], time.monotonic() - started

    def leave(self) -> None:
        """Nothing of ours stays on the machine."""
        self.crew.dismiss()
        self.place.remove()
