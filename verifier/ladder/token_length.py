"""How many tokens the model of a task reads."""

from __future__ import annotations

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.onnx_reading import Model

from ..tasks.task import Task


def length_of(task: Task, model: Model) -> int | None:
    """Tokens the model reads: what the task says, else what the model says; None when neither does."""
    if task.model.length is not None and model.length not in (None, task.model.length):
        raise BadInput(
            f"[model] length = {task.model.length}, and {model.named} reads {model.length} tokens: leave length out"
        )
    return task.model.length if task.model.length is not None else model.length
