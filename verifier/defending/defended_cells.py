"""What is compared: a network of a recipe under one defence with one seed, or a task with a model that is there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from swapproof.encodings.errors import BadInput
from swapproof.models.corpus import read_corpus
from swapproof.models.defences.defence_table import DEFENCES
from swapproof.models.recipe import checked, recipe_of
from swapproof.models.task_folder import swap_table

from ..attacks.recipes import recipe_named
from .cell_recipe import placed, toml_of
from .compared_cell import AS_GIVEN, EXACT, Cell, examples_folder

DEFAULT_EXAMPLES = "textfooler"
TRAINING_TEXTS = 1000
"""That examples are sought for and rho is of, where neither recipe nor user says how many."""


@dataclass(frozen=True)
class Defended:
    """A defence as `--methods` names it: `ada:pwws` learns from what the attack pwws finds, `ada:exact` from minima."""

    name: str

    @property
    def method(self) -> str:
        return self.name.partition(":")[0]

    @property
    def examples(self) -> str | None:
        """The attack whose examples it learns from."""
        if "examples" not in keys_of(self.method):
            return None
        return self.name.partition(":")[2] or DEFAULT_EXAMPLES


def keys_of(method: str) -> set[str]:
    return {key.name for key in fields(DEFENCES[method])}


def defended_named(names: Iterable[str]) -> list[Defended]:
    found = []
    for name in names:
        method, colon, examples = name.partition(":")
        if method not in DEFENCES:
            near = difflib.get_close_matches(method, DEFENCES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(DEFENCES)}"
            raise BadInput(f"--methods {name}: no defence is named {method!r}; {hint}")
        if colon and "examples" not in keys_of(method):
            raise BadInput(f"--methods {name}: {method} learns from no examples; ada and mixada do")
        if colon and examples != EXACT:
            recipe_named(examples)
        found.append(Defended(name))
    return found


def cells_of(
    sources: Sequence[Path],
    methods: Sequence[Defended],
    seeds: Sequence[int],
    out: Path,
    *,
    synonyms: Path | None,
    keys: Mapping[str, Mapping[str, Any]],
    training_texts: int | None,
) -> list[Cell]:
    """Every recipe under every defence with every seed, the undefended first where others learn from its examples."""
    found: list[Cell] = []
    names: dict[str, Path] = {}
    for source in sources:
        said = toml_of(source)
        name = source.stem if source.stem not in ("task", "recipe") else source.absolute().parent.name
        if names.setdefault(name, source) != source:
            raise BadInput(f"{source} and {names[name]}: both would be called {name}; rename one")
        if "network" not in said:
            if "model" not in said:
                raise BadInput(f"{source}: neither a recipe, which has [network], nor a task, which has [model]")
            found.append(Cell(name, AS_GIVEN, None, out / name, source.absolute()))
            continue
        if not methods:
            raise BadInput(f"{source}: a recipe is trained; say how: --methods none,ibp")
        refuse_broken(source, said)
        for seed in seeds:
            base = cell_of(name, Defended("none"), seed, source, said, out, synonyms, keys, training_texts)
            wanted = [cell_of(name, one, seed, source, said, out, synonyms, keys, training_texts) for one in methods]
            if any(cell.examples for cell in wanted) and base.folder not in {cell.folder for cell in wanted}:
                wanted.insert(0, base)
            wanted.sort(key=lambda cell: cell.examples is not None)
            found += [replace(cell, base=base.folder) if cell.examples else cell for cell in wanted]
    return found


def refuse_broken(source: Path, said: Mapping[str, Any]) -> None:
    """A recipe by which no defence could be trained is refused before anything is written. What fails with one defence
    alone is that one's row."""
    own = said.get("defence", {})
    told = {name: section for name, section in said.items() if name != "defence"}
    recipe = recipe_of(told if isinstance(own, dict) and "method" not in own else said, source)
    swap_table(recipe)
    read_corpus(recipe)


def cell_of(
    name: str,
    defended: Defended,
    seed: int,
    source: Path,
    said: Mapping[str, Any],
    out: Path,
    synonyms: Path | None,
    keys: Mapping[str, Mapping[str, Any]],
    training_texts: int | None,
) -> Cell:
    folder = out / name / defended.name.replace(":", "-") / f"seed-{seed}"
    defence: dict[str, Any] = {"method": defended.method}
    own = said.get("defence", {})
    if own.get("method") == defended.method:
        defence |= own
    defence |= keys.get(defended.name, keys.get(defended.method, {}))
    known = keys_of(defended.method)
    if "synonyms" in known and "synonyms" not in defence:
        table = synonyms or source.absolute().parent / str(own.get("synonyms", said.get("swaps", {}).get("file", "")))
        if not table.is_file():
            raise BadInput(f"{source}: {defended.method} needs a synonym table: give --synonyms FILE")
        defence["synonyms"] = str(table.absolute())
    if "max_per_word" in known and "max_per_word" in said.get("swaps", {}):
        defence.setdefault("max_per_word", said["swaps"]["max_per_word"])
    if defended.examples is not None:
        examples = folder.parent.parent / "none" / f"seed-{seed}" / examples_folder(defended.examples)
        defence.setdefault("examples", str((examples / "results.jsonl").absolute()))
    recipe = placed(said, source.absolute().parent)
    recipe["training"] = dict(recipe.get("training", {})) | {"seed": seed}
    recipe["defence"] = placed({"defence": defence}, source.absolute().parent)["defence"]
    task = {"training_texts": TRAINING_TEXTS} | dict(recipe.get("task", {}))
    recipe["task"] = task if training_texts is None else task | {"training_texts": training_texts}
    network = folder / "model" / "task.toml"
    return Cell(name, defended.name, seed, folder, network, recipe, source.absolute(), defended.examples)


def method_keys(path: Path | None, methods: Sequence[Defended]) -> dict[str, dict[str, Any]]:
    """[METHOD] sections of the file that --keys names: other values for keys of [defence]."""
    said = {} if path is None else toml_of(path)
    known = {name for one in methods for name in (one.name, one.method)}
    for name, section in said.items():
        if name not in known:
            raise BadInput(f"{path}: [{name}] is none of --methods, which are {', '.join(sorted(known))}")
        if not isinstance(section, dict):
            raise BadInput(f"{path}: {name!r} must be a section [{name}] with keys of [defence]")
        kind = DEFENCES[name.partition(":")[0]]
        hints = get_type_hints(kind)
        for key, value in section.items():
            if key not in keys_of(name.partition(":")[0]):
                near = difflib.get_close_matches(key, keys_of(name.partition(":")[0]), n=1, cutoff=0.0)
                hint = f"the nearest known one is {near[0]!r}" if near else f"{name} has no keys"
                raise BadInput(f"{path}: [{name}] key {key!r} is unknown; {hint}")
            checked(value, hints[key], f"{path}: [{name}] {key}")
    return said
