"""The recipe of one network, made from the user's and written into its folder."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.models.defences.training_rule import FILE_KEYS
from swapproof.models.errors import unreadable
from swapproof.models.recipe import recipe_of

from ..runs.run_folder import write_atomically
from ..tasks.task import toml_value
from .compared_cell import Cell

PATHS = {"data": ("train", "held_out"), "defence": FILE_KEYS, "swaps": ("file",)}
"""Keys of a recipe that are relative to it."""


def placed(said: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A recipe with its files' paths made absolute; those of a package stay."""
    found = {name: dict(section) if isinstance(section, dict) else section for name, section in said.items()}
    for name, names in PATHS.items():
        section = found.get(name)
        if not isinstance(section, dict) or section.get("package"):
            continue
        for key in names:
            if section.get(key):
                section[key] = placed_names(section[key], folder)
    return found


def placed_names(said: object, folder: Path) -> object:
    """One name or several; that of a package of vectors stays."""
    if isinstance(said, list):
        return [placed_names(name, folder) for name in said]
    path = folder / str(said)
    return said if str(said).isidentifier() and not path.is_file() else str(path.absolute())


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


def changed_since(cell: Cell) -> str | None:
    """What says that a network was trained on other data than its recipe names now; None where it was not."""
    try:
        trained: dict[str, str] = json.loads((cell.folder / "model" / "training.json").read_bytes())["files"]
    except (OSError, ValueError, LookupError):
        return None
    now = recipe_of(cell.recipe or {}, cell.folder / "recipe.toml").data_hashes
    other = [name for name, sha256 in trained.items() if now.get(name) != sha256]
    return f"changed since the network was trained: {', '.join(other)}; give --out a new folder" if other else None


def toml_of(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 ({error.reason})") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML: {error}") from error
