"""The sequence classifier of a Hugging Face folder: loaded offline, in float32, with every weight from its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import BadInput, Unsupported, one_line
from .checkpoint_folder import Checkpoint
from .torch_modules import quiet


def load_model(checkpoint: Checkpoint) -> Any:
    """In float32 and ready to answer; refused unless every weight is in the file."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    folder = checkpoint.folder
    classifiers: Any = AutoModelForSequenceClassification
    try:
        with quiet(), no_progress_bar():
            config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            with torch.device("meta"):
                described = classifiers.from_config(config)
            check_size(checkpoint, described)
            model, loading = classifiers.from_pretrained(
                folder,
                config=config,
                local_files_only=True,
                trust_remote_code=False,
                weights_only=True,
                use_safetensors=checkpoint.safetensors,
                output_loading_info=True,
                dtype=torch.float32,
            )
    except BadInput:
        raise
    except Exception as error:  # the libraries raise all kinds
        raise refusal(checkpoint, error) from error
    absent = sorted(loading["missing_keys"])
    if absent:
        more = f" and {len(absent) - 1} more tensors are" if len(absent) > 1 else " is"
        raise BadInput(
            f"{folder}: no whole {type(model).__name__}: {absent[0]}{more} not in its weights, "
            "and would be drawn at random"
        )
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return model.eval()


def check_size(checkpoint: Checkpoint, described: Any) -> None:
    """Before memory is taken for it: no format holds a number in less than a byte."""
    numbers = sum(weight.numel() for weight in described.parameters())
    held = sum(path.stat().st_size for path in checkpoint.weights)
    if numbers > held:
        raise BadInput(
            f"{checkpoint.folder}: config.json describes {numbers} parameters, and the weights are {held} bytes: "
            "they are of another model"
        )


def refusal(checkpoint: Checkpoint, error: Exception) -> BadInput | Unsupported:
    said = one_line(error)
    if "ignore_mismatched_sizes" in said:
        return BadInput(f"{checkpoint.folder}: its weights have other shapes than config.json describes")
    if "Weights only load failed" in said:
        path = checkpoint.weights[0]
        return Unsupported(f"{path}: a pickle of more than tensors, which is not loaded; save the model as safetensors")
    return BadInput(f"{checkpoint.folder}: its model cannot be loaded: {said.split('. ')[0][:200]}")


@contextmanager
def no_progress_bar() -> Iterator[None]:
    from transformers.utils import logging

    progress: Any = logging
    shown = progress.is_progress_bar_enabled()
    progress.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            progress.enable_progress_bar()


def labels_of(folder: Path, model: Any) -> tuple[str, ...]:
    names = model.config.id2label
    try:
        return tuple(str(names[index]) for index in range(model.config.num_labels))
    except KeyError as error:
        raise BadInput(f"{folder / 'config.json'}: id2label names no class {error}") from error


def is_multi_label(model: Any) -> bool:
    return bool(model.config.problem_type == "multi_label_classification")
