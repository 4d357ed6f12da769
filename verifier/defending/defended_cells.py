"""What is compared: a network of a recipe under one defence with one seed, or a task with a model that is there."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.models.defences.defence_table import DEFENCES
from swapproof.models.errors import unreadable

from ..attacks.recipes import recipe_named
from ..runs.run_folder import write_atomically
from ..tasks.task import toml_value

AS_GIVEN = "as given"
EXACT = "exact"
"""Examples of `certify`, with as few swaps as there can be, in place of those of an attack."""
DEFAULT_EXAMPLES = "textfooler"
PATHS = {"data": ("train", "held_out"), "defence": ("synonyms", "examples"), "swaps": ("file",)}
"""Keys of a recipe that are relative to it."""


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


@dataclass(frozen=True)
class Cell:
    """One network: `task` is there already, or `recipe` is trained in `folder`."""

    source: str
    defended: str
    seed: int | None
    folder: Path
    task: Path
    recipe: dict[str, Any] | None = None
    origin: Path | None = None
    """The recipe that it was made from."""
    examples: str | None = None
    base: Path | None = None
    """The folder of the undefended cell whose examples it learns from."""

    @property
    def training_task(self) -> Path:
        return self.folder / "model" / "training_task.toml"


def keys_of(method: str) -> set[str]:
    return {key.name for key in fields(DEFENCES[method])}


def defended_named(names: Iterable[str]) -> list[Defended]:
    found = []
    for name in dict.fromkeys(names):
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
    training_texts: int,
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
        for seed in seeds:
            base = cell_of(name, Defended("none"), seed, source, said, out, synonyms, keys, training_texts)
            wanted = [cell_of(name, one, seed, source, said, out, synonyms, keys, training_texts) for one in methods]
            if any(cell.examples for cell in wanted) and base.folder not in {cell.folder for cell in wanted}:
                wanted.insert(0, base)
            wanted.sort(key=lambda cell: cell.examples is not None)
            found += [replace(cell, base=base.folder) if cell.examples else cell for cell in wanted]
    return found


def cell_of(
    name: str,
    defended: Defended,
    seed: int,
    source: Path,
    said: Mapping[str, Any],
    out: Path,
    synonyms: Path | None,
    keys: Mapping[str, Mapping[str, Any]],
    training_texts: int,
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
    recipe["task"] = {"training_texts": training_texts} | dict(recipe.get("task", {}))
    task = folder / "model" / "task.toml"
    return Cell(name, defended.name, seed, folder, task, recipe, source.absolute(), defended.examples)


def examples_folder(attack: str) -> str:
    return f"examples-{attack}"


def placed(said: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A recipe with its files' paths made absolute; those of a package stay."""
    found = {name: dict(section) if isinstance(section, dict) else section for name, section in said.items()}
    for name, names in PATHS.items():
        section = found.get(name)
        if not isinstance(section, dict) or section.get("package"):
            continue
        for key in names:
            if section.get(key):
                section[key] = str((folder / str(section[key])).absolute())
    return found


def recipe_text(recipe: Mapping[str, Any]) -> str:
    lines = ["# Written by swapproof defend."]
    for name, section in recipe.items():
        lines += ["", f"[{name}]", *(f"{key} = {toml_value(settled(value))}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def settled(value: object) -> object:
    return tuple(map(settled, value)) if isinstance(value, list) else value


def write_recipe(cell: Cell) -> Path:
    """The recipe of a cell in its folder; one that says something else there is another comparison's."""
    path, text = cell.folder / "recipe.toml", recipe_text(cell.recipe or {})
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise BadInput(f"{path}: says something else than is asked now; give --out a new folder")
    if not path.exists():
        cell.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    return path


def toml_of(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 ({error.reason})") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML: {error}") from error


def method_keys(path: Path | None, methods: Sequence[Defended]) -> dict[str, dict[str, Any]]:
    """[METHOD] sections of the file that --keys names: other values for keys of [defence]."""
    said = {} if path is None else toml_of(path)
    known = {name for one in methods for name in (one.name, one.method)}
    for name, section in said.items():
        if name not in known:
            raise BadInput(f"{path}: [{name}] is none of --methods, which are {', '.join(sorted(known))}")
        if not isinstance(section, dict):
            raise BadInput(f"{path}: {name!r} must be a section [{name}] with keys of [defence]")
        for key in section:
            if key not in keys_of(name.partition(":")[0]):
                near = difflib.get_close_matches(key, keys_of(name.partition(":")[0]), n=1, cutoff=0.0)
                raise BadInput(f"{path}: [{name}] key {key!r} is unknown; the nearest known one is {near[:1]}")
    return said
