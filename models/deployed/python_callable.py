"""A Python function as a classifier: a list of texts to a row of scores each."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import BadInput, one_line, visible
from .answers.score_rows import in_batches, kind_of, score_rows
from .classifier import Copy, Deployment, Identity, NoAnswer, Scores, SpeltOut, Variants
from .opening.file_facts import copy_of
from .swapped_text import Fields, SwapText

BATCH = 64
LIBRARIES = ("numpy", "torch", "transformers", "sklearn")
"""Whose versions answers depend on, if the function has loaded them."""
REMARK = "what the function answers depends on all that it imports, reads and calls; the run knows its own file alone"
LONGEST = 200
"""Characters of somebody else's message."""


@dataclass(frozen=True, eq=False)
class PythonCallable:
    """`function` takes a list of texts, of pairs a list of tuples, and is given a list of its own each time."""

    identity: Identity
    function: Callable[[list[Any]], object]
    labels: tuple[str, ...]
    fields: int = 1
    batch: int = BATCH
    threads: int = 1

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        with _threads_of_torch(self.threads):
            return in_batches(self._ask, sentences, self.batch)

    def variants(self, text: SwapText) -> Variants:
        return SpeltOut(self, text)

    def _ask(self, sentences: Sequence[Fields]) -> Scores:
        try:
            with redirect_stdout(sys.stderr):  # what a command prints may be read by a program
                answer = self.function([sentence[0] if self.fields == 1 else tuple(sentence) for sentence in sentences])
        except (Exception, SystemExit) as error:
            raise NoAnswer(f"{self.identity.name} raised {_told(error)}") from error
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()  # or Python complains that nobody waited for it
            raise BadInput(f"{self.identity.name} is an async function: name one that answers at once")
        return score_rows(answer, len(sentences), self.labels, self.identity.name)


def open_callable(deployment: Deployment) -> PythonCallable:
    """The function that `package.module:function` names; the task's folder is looked in first."""
    name, _, path = deployment.source.partition(":")
    module = _imported(name, deployment.folder)
    function: Any = module
    for part in path.split("."):
        known = dir(function)
        if not hasattr(function, part):
            near = _near(part, (key for key in known if not key.startswith("_")))
            raise BadInput(f"callable {deployment.source}: {_where(module)} has no {part!r}{near}")
        function = getattr(function, part)
    if not callable(function):
        raise BadInput(f"callable {deployment.source}: {kind_of(function)}, which cannot be called")
    if isinstance(function, type):
        raise BadInput(f"callable {deployment.source}: a class; name a function or an object that it makes")
    facts = {"python": platform.python_version()}
    facts |= {library: str(sys.modules[library].__version__) for library in LIBRARIES if library in sys.modules}
    return PythonCallable(
        identity=Identity("callable", deployment.source, tuple(_files(module)), facts, (REMARK,)),
        function=function,
        labels=deployment.labels,
        fields=deployment.fields,
        batch=deployment.options.get("batch", BATCH),
        threads=deployment.threads,
    )


@dataclass(frozen=True)
class _Home:
    """The folder of the task that is being worked on, and the modules that were loaded before it was."""

    folder: str
    before: frozenset[str]
    added: bool
    """Whether it was on the path for nobody else."""


_homes: list[_Home] = []
"""At most one: modules of another task's folder would stand in for namesakes here."""


def _imported(name: str, folder: Path | None) -> ModuleType:
    """The module as a script in that folder would import it.

    Afterwards the folder stays last on the path, for what the function imports when it is called: it hides nothing.
    """
    _leave_home()
    home = str(folder.absolute()) if folder is not None else None
    if home is not None:
        _homes.append(_Home(home, frozenset(sys.modules), home not in sys.path))
        sys.path.insert(0, home)
    importlib.invalidate_caches()
    try:
        with redirect_stdout(sys.stderr):
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise _no_module(name, error.name, home) from None
        raise BadInput(f"callable {name}: imports {error.name!r}, which is not installed") from error
    except (Exception, SystemExit) as error:
        raise BadInput(f"callable {name}: importing it raised {_told(error)}") from error
    finally:
        if home is not None:
            sys.path.remove(home)
            if _homes[0].added:
                sys.path.append(home)
    top = name.partition(".")[0]
    meant, met = home and _found(top, home), sys.modules[top].__spec__
    if meant and met is not None and met.origin != meant.origin:
        raise BadInput(
            f"callable {name}: {met.origin or top} is loaded under the name {top!r}, "
            f"not {meant.origin or top} in the task's folder: give the latter another name"
        )
    return module


def _leave_home() -> None:
    while _homes:
        home = _homes.pop()
        if home.added and home.folder in sys.path:
            sys.path.remove(home.folder)
        for name in [name for name in sys.modules.keys() - home.before if _came_from(name, Path(home.folder))]:
            del sys.modules[name]


def _came_from(name: str, folder: Path) -> bool:
    """Whether a module, or what it is part of, was found there: its file may have gone since."""
    top = name.partition(".")[0]
    facts = [vars(one) for one in (sys.modules[name], sys.modules.get(top)) if isinstance(one, ModuleType)]
    places = [place for own in facts for place in (own.get("__file__"), *own.get("__path__", ()))]
    return any(Path(place).parent == folder or folder / top in Path(place).parents for place in places if place)


def _found(top: str, folder: str) -> ModuleSpec | None:
    return PathFinder.find_spec(top, [folder])


def _no_module(name: str, missing: str, home: str | None) -> BadInput:
    parent, _, last = missing.rpartition(".")
    folders = list(getattr(sys.modules.get(parent), "__path__", ())) if parent else [home] if home else []
    near = _near(last, (module.name for module in pkgutil.iter_modules(folders)))
    where = "in the task's folder or among installed packages" if not parent else f"in {parent}"
    return BadInput(f"callable {name}: no module {missing!r} {where}{near}")


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=3)
    return f"; there is {', '.join(close)}" if close else ""


def _where(module: ModuleType) -> str:
    return Path(module.__file__).name if module.__file__ else module.__name__


def _files(module: ModuleType) -> Iterator[Copy]:
    """Its own source, where that is one file."""
    if module.__file__ is not None and module.__file__.endswith(".py") and not hasattr(module, "__path__"):
        yield copy_of("callable.py", Path(module.__file__))


def _told(error: BaseException) -> str:
    text = visible(one_line(error))
    return f"{type(error).__name__}: {text[:LONGEST]}" if text else type(error).__name__


@contextmanager
def _threads_of_torch(number: int) -> Iterator[None]:
    """As many cores as it was given, if torch answers; whoever else uses torch here finds it as it was."""
    torch = sys.modules.get("torch")
    if torch is None or torch.get_num_threads() == number:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
