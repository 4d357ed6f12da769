"""Train the network of a recipe and leave a task folder: model.onnx, vocabulary.json, held-out texts, task.toml.

The same recipe, data, seed, machine and versions give the same bytes of weights: one thread, one random generator.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .architectures.architecture_table import name_of
from .architectures.network_shape import PAD, UNKNOWN, Arrays, Noise, Shape, initial_weights, logits
from .corpus import Corpus, Examples, read_corpus
from .defences.defence_table import method_of
from .defences.state_growth import DRAWN, FEWEST_WORDS, growth_per_step, meaning, recurrent_cells, relative_swap_size
from .defences.synonym_pairs import read_synonyms, synonym_pairs
from .defences.training_rule import TrainingRule
from .errors import BadInput, Unsupported
from .export.equivalence import agreement
from .export.trained_graph import BATCH, onnx_logits, onnx_model
from .recipe import Recipe, TrainingPart, read_recipe
from .task_folder import appearing, refuse_occupied, refuse_unwritable, swap_table, task_file, write_json, write_texts

if TYPE_CHECKING:
    import onnx
    import torch

Progress = Callable[[str], None]


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


@dataclass(frozen=True)
class Fit:
    """Learned weights, the epoch (from 1) they are from, and the held-out accuracy after every epoch."""

    weights: Arrays
    epoch: int
    history: tuple[float, ...]


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
    rule = TrainingRule()
    if recipe.defence is not None:
        rule = recipe.defence.start(recipe.network, corpus.words, recipe.path.parent)
    fit = learn(shape, recipe.training, rule, corpus.train, corpus.held_out, progress)
    graph = onnx_model(shape, fit.weights)
    model = graph.SerializeToString(deterministic=True)
    growth = network_growth(graph, fit.weights["embedding"], corpus.held_out.tokens)
    swap = None if synonyms is None else swap_size(fit.weights["embedding"], corpus.words, synonyms)
    with appearing(out) as folder:
        (folder / "model.onnx").write_bytes(model)
        write_json(folder / "vocabulary.json", corpus.words, indent=0)
        write_texts(folder / "held_out.jsonl", corpus)
        if table is not None:
            (folder / "synonyms.json").write_bytes(table)
        (folder / "task.toml").write_text(task_file(recipe, corpus), encoding="utf-8", newline="\n")
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
        write_json(folder / "training.json", report(recipe, corpus, shape, fit, result), indent=2)
    for line in provability(result):
        progress(line)
    progress(
        f"{out}: held-out accuracy {result.accuracy_held_out:.4f} on {len(corpus.held_out.rows)} texts, "
        f"onnxruntime within {result.largest_difference:.1e} of torch, {result.seconds} s"
    )
    return result


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


def report(recipe: Recipe, corpus: Corpus, shape: Shape, fit: Fit, result: TrainingResult) -> dict[str, Any]:
    """What training.json says."""
    return {
        "accuracy": {"train": result.accuracy_train, "held_out": result.accuracy_held_out},
        "rows": {"train": len(corpus.train.labels), "held_out": len(corpus.held_out.labels)},
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
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("numpy", "onnx", "onnxruntime", "torch")},
        },
    }


def learn(
    shape: Shape, plan: TrainingPart, rule: TrainingRule, train: Examples, held_out: Examples, progress: Progress
) -> Fit:
    """AdamW on cross entropy under the rule of a defence, the learning rate falling linearly to zero."""
    import torch

    with one_thread():
        generator = torch.Generator().manual_seed(plan.seed)
        weights = initial_weights(shape, generator)
        rule.hold(weights)
        noise = Noise(plan.dropout, plan.noise, generator)
        optimizer = torch.optim.AdamW(weights.values(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
        tokens, labels = torch.from_numpy(train.tokens), torch.from_numpy(train.labels)
        steps = plan.epochs * -(-len(tokens) // plan.batch)
        step = 0
        kept: Arrays = {}
        epoch_kept = 0
        history: list[float] = []
        for epoch in range(1, plan.epochs + 1):
            total = 0.0
            order = torch.randperm(len(tokens), generator=generator)
            for rows in torch.split(order, plan.batch):
                for group in optimizer.param_groups:
                    group["lr"] = plan.learning_rate * (1 - step / steps)
                batch = disturb(tokens[rows].long(), plan, generator)
                read = weights | {"embedding": rule.table(weights["embedding"])}
                loss = torch.nn.functional.cross_entropy(logits(shape, read, batch, noise), labels[rows])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                rule.hold(weights)
                step += 1
                total += loss.item() * len(rows)
            with torch.no_grad():
                read = weights | {"embedding": rule.table(weights["embedding"])}
            now = {name: value.detach().numpy().copy() for name, value in read.items()}
            accuracy = share_right(torch_logits(shape, now, held_out.tokens), held_out.labels)
            if plan.keep == "last" or not history or accuracy > max(history):
                kept, epoch_kept = now, epoch
            history.append(accuracy)
            progress(f"epoch {epoch}/{plan.epochs}: loss {total / len(tokens):.4f}, held-out accuracy {accuracy:.4f}")
    if not all(np.isfinite(value).all() for value in kept.values()):
        raise BadInput("diverged: weights are not finite; try a smaller [training] learning_rate or weight_decay")
    return Fit(kept, epoch_kept, tuple(history))


def disturb(tokens: torch.Tensor, plan: TrainingPart, generator: torch.Generator) -> torch.Tensor:
    """A batch with some words unknown, and every text moved right by 0..shift positions of its padding."""
    import torch

    if plan.word_dropout:
        dropped = (torch.rand(tokens.shape, generator=generator) < plan.word_dropout) & (tokens != PAD)
        tokens = torch.where(dropped, UNKNOWN, tokens)
    if plan.shift:
        length = tokens.shape[1]
        room = (length - (tokens != PAD).sum(dim=1)).clamp(max=plan.shift)
        offset = (torch.rand(len(tokens), generator=generator) * (room + 1)).long()
        source = torch.arange(length) - offset.unsqueeze(1)
        tokens = torch.where(source >= 0, tokens.gather(1, source.clamp(min=0)), PAD)
    return tokens


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread: sums in one order, on any number of cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_logits(shape: Shape, weights: Arrays, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
    import torch

    named = {name: torch.from_numpy(value) for name, value in weights.items()}
    with torch.inference_mode():
        parts = [logits(shape, named, batch.long()) for batch in torch.split(torch.from_numpy(tokens), BATCH)]
        values: NDArray[np.float32] = torch.cat(parts).numpy()
    return values


def share_right(values: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """argmax (the lowest index wins ties) equal to the label."""
    return float((values.argmax(axis=1) == labels).mean())
