"""A folder written beside its place under another name, and renamed when complete."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import BadInput


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
