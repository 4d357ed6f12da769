"""The model as it is deployed, beside the network that was made of it: a witness must fool both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.classifier import Classifier, Identity, NoAnswer
from swapproof.models.deployed.decision import NO_CLASS, Decision
from swapproof.models.errors import visible

from ..replaying.asking import Asking
from ..runs.life import copied_task
from ..runs.manifest import note_deployed
from ..runs.run_folder import Run, copy_atomically, write_atomically
from ..tasks.deployed_model import Trust, open_deployed
from ..tasks.inputs import Text
from ..tasks.task import Task, read_task


@dataclass(frozen=True)
class Made:
    """What a network was made of: the task of the deployed model, its files, and what is to be said of it."""

    task: Task
    identity: Identity
    remarks: tuple[str, ...]
    trust: Trust
    misfits: Mapping[int, str] = field(default_factory=dict)
    """Texts for which the network does not hold, and why: the deployed model is run on these."""


def beside_itself(task: Task, trust: Trust) -> Made | None:
    """A model that is read, and run on the texts that this leaves open; None where it cannot be run."""
    try:
        return Made(task, open_deployed(task, trust).identity, (), trust)
    except (ValueError, NotImplementedError):
        return None


@dataclass(frozen=True, eq=False)
class Beside:
    """Opened from the folder `deployed` of a run, which holds copies of its files and a task that names them."""

    classifier: Classifier
    decision: Decision

    @classmethod
    def of(cls, run: Run, trust: Trust) -> Beside | None:
        """None where the network was read from the deployed file itself."""
        path = run.deployed / "task.toml"
        if not path.exists():
            return None
        task = read_task(path)
        return cls(open_deployed(task, trust), task.model.decision)

    def unfooled(self, text: Text, swaps: tuple[tuple[int, int], ...]) -> str | None:
        """Why these (position, token) swaps do not fool the deployed model; None when they do."""
        asking = Asking(self.classifier, self.decision, text.swaps, text.label)
        row = row_of(text, swaps)
        try:
            answer = asking.spelt_out(row)
        except NoAnswer as error:
            return f"the deployed model cannot answer {visible(text.swaps.moved(row))[:80]!r}: {error}"
        if answer in (text.label, NO_CLASS):
            return f"the deployed model is not fooled by {visible(text.swaps.moved(row))[:80]!r}"
        return None


def row_of(text: Text, swaps: tuple[tuple[int, int], ...]) -> Any:
    """[words]: the option of every word after these swaps."""
    row = np.zeros(len(text.encoded.words), dtype=np.int32)
    word_at = {first: word for word, (first, _) in enumerate(text.encoded.places)}
    for position, token in swaps:
        row[word_at[position]] = text.frozen.space.choices[position].index(token)
    return row


def keep_deployed(run: Run, made: Made) -> None:
    """Copies of the deployed model and the task that opens them, in the run."""
    task, identity = made.task, made.identity
    if not identity.files:
        raise BadInput(f"{identity.name}: has no file of which a run could keep a copy")
    for copy in identity.files:
        (run.deployed / copy.name).parent.mkdir(parents=True, exist_ok=True)
        copy_atomically(copy.path, run.deployed / copy.name, copy.sha256)
    own = {**{name: Path(value) for name, value in identity.opened_by.items()}, "road": "run"}
    copied = copied_task(run, task, own, "../")
    notes = ["The model as it is deployed; ../model.onnx is the network that was made of it."]
    write_atomically(run.deployed / "task.toml", copied.resolved(notes).encode())
    note_deployed(run)
