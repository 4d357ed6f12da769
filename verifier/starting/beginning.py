"""A task file from a model and data: what both say is found, tried out and written down; what neither says is asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from swapproof.models.deployed.classifier import Classifier
from swapproof.models.deployed.passing_folder import PassingFolder
from swapproof.models.encoded import Encoded, Pattern, empty
from swapproof.models.errors import BadInput, BrokenRows, Unsupported
from swapproof.models.recognition.data_sample import sample_of
from swapproof.models.recognition.model_kinds import PICKLES, Pointed, kind_of

from ..tasks.given_rows import given_rows
from ..tasks.task import Problems, Task, read_task
from .beginning_state import FEW, Beginning
from .data_lines import find_columns
from .drafts import Draft
from .label_lines import settle_labels
from .model_lines import describe_model
from .road_ahead import tell_road
from .swap_lines import choose_swaps
from .telling import Findings
from .trying import check_settings

NOTHING = Encoded("", (), (), (), (), 0, ())
PATHS = ("vocabulary", "embeddings", "file", "frozen")


def begin_task(
    model: str,
    data: Path,
    synonyms: Path | None,
    out: Path,
    given: dict[str, dict[str, Any]],
    *,
    force: bool = False,
    **trust: bool,
) -> Findings:
    """Write the task file, or nothing."""
    if out.exists() and not force:
        raise BadInput(f"{out}: is there already; --force replaces it, --out names another")
    if not out.absolute().parent.is_dir():
        raise BadInput(f"{out}: the folder {out.absolute().parent} is not there")
    pointed = kind_of(model)
    refuse_untrusted(pointed, **trust)
    draft = Draft()
    draft.set("model", pointed.kind, pointed.located, pointed.seen)
    for section, entries in given.items():
        for key, value in entries.items():
            located = Path(value).absolute() if key in PATHS and isinstance(value, str) else value
            draft.set(section, key, located, "as you said")
    if synonyms is not None and {"file", "frozen"} & given["swaps"].keys():
        raise BadInput("--synonyms says where the swaps come from, and so does --set: keep one")
    check_settings(draft, data)
    begun = Beginning(pointed, sample_of(data, FEW, given["data"].get("delimiter")), given, trust, draft, Findings())
    find_columns(begun)
    describe_model(begun)
    classifier = settle_labels(begun)
    choose_swaps(synonyms, begun)
    write(begun, out, classifier)
    return begun.findings


def refuse_untrusted(pointed: Pointed, *, trust_pickle: bool = False, allow_endpoint: bool = False) -> None:
    """Before anything is read, loaded or sent."""
    if pointed.kind == "endpoint" and not allow_endpoint:
        raise Unsupported(f"{pointed.source}: texts of yours would be sent there: allow it with --allow-endpoint")
    if pointed.kind == "sklearn" and pointed.path.suffix.lower() in PICKLES and not trust_pickle:
        raise Unsupported(
            f"{pointed.source}: a pickle, which can run any code when it is loaded: if you trust where it comes from, "
            "say --trust-pickle; or save the model with skops.io.dump, which cannot"
        )


def write(begun: Beginning, out: Path, classifier: Classifier) -> None:
    """Under another name first; only a file that is read back to what was meant takes its place."""
    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        if begun.draft.values("swaps"):
            unfinished.write_text(begun.text(out.absolute().parent), encoding="utf-8", newline="\n")
            task = read_back(unfinished)
        else:
            task = without_swaps(begun)
        refuse_misread(begun.draft, task)
        refuse_unusable(task)
        tell_road(begun, task, classifier)
        unfinished.write_text(begun.text(out.absolute().parent), encoding="utf-8", newline="\n")
        unfinished.replace(out)
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        unfinished.unlink(missing_ok=True)


def read_back(unfinished: Path) -> Task:
    try:
        return read_task(unfinished)
    except Problems as error:
        raise Problems([problem.removeprefix(f"{unfinished}: ") for problem in error.problems]) from None


def without_swaps(begun: Beginning) -> Task:
    """The task as it is so far, with a table of nothing for its synonyms."""
    with PassingFolder() as folder:
        (folder / "none.json").write_text("{}")
        (folder / "task.toml").write_text(f'{begun.text(None)}file = "none.json"\n', encoding="utf-8")
        return read_task(folder / "task.toml")


def refuse_unusable(task: Task) -> None:
    """Rows that certify would stop at; it reads labels and texts as is done here."""
    try:
        given_rows(task.data, task.model, having_words)
    except BrokenRows as error:
        more = f" (and {len(error.lines) - 1} more)" if len(error.lines) > 1 else ""
        raise BadInput(f"{error.lines[0]}{more}: repair the rows, or leave them out: --set on_error=skip") from error


def having_words(text: str) -> Encoded:
    """As nothing, for nobody reads on: a text without a word is refused here too."""
    if not text.split():
        raise empty(text)
    return NOTHING


def refuse_misread(draft: Draft, task: Task) -> None:
    for section in ("model", "data", "swaps"):
        read = dict(getattr(task, section))
        for key, meant in draft.values(section).items():
            if key == "labels" and isinstance(meant, dict):
                meant = list(dict.fromkeys(meant.values()))
            if plain(read[key]) != plain(meant):
                raise RuntimeError(f"[{section}] {key} was to be {meant!r} and is read as {read[key]!r}")
    spelt = draft.get("model", "labels")
    if isinstance(spelt, dict) and task.model.label_map != spelt:
        raise RuntimeError(f"[model] labels was to be {spelt!r} and is read as {task.model.label_map!r}")


def plain(value: object) -> object:
    """The same for what is read and what was meant: of a map of labels its names."""
    match value:
        case Path():
            return os.path.normpath(value)
        case list() | tuple():
            return list(value)
        case {"pattern": pattern}:
            return pattern
        case Pattern():
            return value.pattern
        case _:
            return value
