"""The task of a Hugging Face folder, as that of the ONNX model and the tokenizer that it is exported to."""

from __future__ import annotations

from pathlib import Path

from swapproof.models.deployed.hugging_face import prepare_hugging_face

from ..tasks.inputs import read_plain
from ..tasks.task import Task

COMPARED = 256
"""Texts of the data on which the export is compared with torch."""


def exported_task(task: Task, limit: int | None, place: Path) -> tuple[Task, tuple[str, ...]]:
    """The same task of the exported model, and what is to be said of the export."""
    sentences = [text.fields for text in read_plain(task, limit).texts[:COMPARED]]
    deployment = task.model.deployment(fields=task.data.fields, moving=task.data.moving)
    prepared = prepare_hugging_face(deployment, place / "exported", sentences=sentences)
    task.model.decision.refuse_other_meaning(deployment.source, prepared.answered)
    exported, made = prepared.exported, prepared.deployment
    model = task.model.model_copy(
        update={
            "hf": None,
            "onnx": Path(made.source),
            "vocabulary": made.vocabulary,
            "inputs": None if made.inputs is None else dict(made.inputs),
            "output": None,
            "length": None,
            "pad": made.pad,
            "pad_side": made.pad_side,
        }
    )
    agreement = exported.agreement
    said = (
        f"exported from {Path(deployment.source).name} (SHA-256 of its files {exported.sha256['source'][:16]}) by "
        f"{exported.exporter}, opset {exported.opset}; on {agreement.sentences} sentences the largest difference from "
        f"torch is {agreement.largest_difference:.2g}"
    )
    labels = "" if exported.labels == task.model.labels else f"its config.json names the classes {exported.labels}"
    return task.model_copy(update={"model": model}), (said, *exported.remarks, *([labels] if labels else []))
