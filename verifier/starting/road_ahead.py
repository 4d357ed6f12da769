"""Whether a model will be read, so that low ends are proved, or run; and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swapproof.encodings.onnx_files.refusals import RUN as RUN_INSTEAD
from swapproof.encodings.onnx_files.refusals import refusals_of
from swapproof.models.deployed.cached import Cached
from swapproof.models.deployed.classifier import Classifier
from swapproof.models.deployed.hugging_face import ExportedClassifier
from swapproof.models.deployed.kinds import word_reader
from swapproof.models.deployed.passing_folder import PassingFolder
from swapproof.models.recognition.model_kinds import Pointed

from ..tasks.deployed_model import Trust
from ..tasks.task import Task
from .beginning_state import Beginning

READ = "every part of it can be read: low ends are proved"
RUN = "every sentence is evaluated: low ends rest on that, and are not proved"
FEW_TEXTS = 20
WORDS = ("a", "good", "text")


@dataclass(frozen=True)
class Road:
    """`reasons`: all that cannot be read; none for a model that is read."""

    read: bool
    why: str
    reasons: tuple[str, ...] = ()


def run(*reasons: str) -> Road:
    return Road(False, RUN, reasons)


def road_of(pointed: Pointed, *, classifier: Any = None, roles: Mapping[str, str] | None = None) -> Road:
    """By what a model is made of, without texts; `classifier`: the opened model, where that is needed."""
    match pointed.kind:
        case "onnx":
            return road_of_onnx(pointed.path, roles)
        case "hf":
            return run("it is exported to ONNX and run; networks of attention, GELU and LayerNorm are not read")
        case "callable":
            return run("a Python function has no network that could be read")
        case "endpoint":
            return run("what answers behind a URL cannot be read")
    reader = word_reader(pointed.kind)
    if reader is None:
        return run(f"no network is made of {pointed.seen} yet")
    return road_of_words(reader(classifier, WORDS, ()))


def road_of_words(found: Any) -> Road:
    """Of what became a network of words, or the reason why it did not."""
    reason = getattr(found, "reason", None)
    return Road(True, READ) if reason is None else run(str(reason))


def road_of_onnx(
    path: Path, roles: Mapping[str, str] | None = None, output: str | None = None, length: int | None = None
) -> Road:
    reasons = refusals_of(path, roles, output, length)
    return run(*(bare(reason, path) for reason in reasons)) if reasons else Road(True, READ)


def bare(message: str, path: Path) -> str:
    """Without the model's name in front, and without the advice to run what is run."""
    said = message.removeprefix(f"{path}: ").removeprefix(f"{path.name}: ")
    return said.replace(f": {RUN_INSTEAD}, or ", ": ").replace(f": {RUN_INSTEAD}", "")


def road_of_task(task: Task, begun: Beginning, classifier: Classifier) -> Road:
    """What certify will do, told by reading the task as it does; `classifier`: as it was tried."""
    pointed = begun.pointed
    if task.model.road == "run":
        return run('road = "run" says so')
    from ..derived.word_reading import read_words
    from ..ladder.certifying import read
    from ..roads import READABLE

    trust = Trust(begun.trust.get("trust_pickle", False), begun.trust.get("allow_endpoint", False))
    if pointed.kind == "hf" and isinstance(classifier, ExportedClassifier):
        exported = classifier.prepared
        return road_of_onnx(exported.exported.model, exported.deployment.inputs)
    if pointed.kind not in READABLE:
        return road_of(pointed)
    with PassingFolder() as place:
        try:
            if pointed.kind == "onnx":
                read(task, FEW_TEXTS)
            else:
                read_words(task, FEW_TEXTS, trust, place)
        except NotImplementedError as error:
            said = bare(str(error), pointed.path)
            return all_refusals(task, pointed.path, said) if pointed.kind == "onnx" else run(said)
    return Road(True, READ)


def all_refusals(task: Task, path: Path, said: str) -> Road:
    """All that stands in the way, or what the reading said where a look at the file alone finds nothing."""
    model = task.model
    output = model.output if isinstance(model.output, str) else None
    found = road_of_onnx(path, model.inputs, output, model.length)
    return run(said) if found.read else found


def tell_road(begun: Beginning, task: Task, classifier: Classifier) -> None:
    try:
        road = road_of_task(task, begun, classifier.classifier if isinstance(classifier, Cached) else classifier)
    except ValueError as error:
        begun.findings.tell("Road", f"neither read nor run as it is: {error}")
        begun.findings.doubt(f"certify will say: {error}")
        return
    begun.findings.tell("Road", f"{'read' if road.read else 'run'}: {road.why}")
    for reason in road.reasons[:1]:
        begun.findings.tell("Road", f"why not read: {reason}")
    if (more := len(road.reasons) - 1) > 0:
        reasons = (
            "1 more reason: swapproof inspect lists it"
            if more == 1
            else f"{more} more reasons: swapproof inspect lists them"
        )
        begun.findings.tell("Road", f"and {reasons}")
