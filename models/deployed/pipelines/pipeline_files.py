"""Files of scikit-learn pipelines: skops without trust, pickles (joblib's too) only with it."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import BadInput, Unsupported, one_line, unreadable, visible

SCHEMA = "schema.json"
"""What a skops file, a zip file, always holds."""
LARGEST = 8 * 2**30
"""Bytes of an unpacked file."""
CHUNK = 2**20
PLAIN = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    }
)
"""Classes of scikit-learn that skops does not list, and that only hold numbers: restoring one runs nothing."""


def load_pipeline(path: Path, trust: bool) -> tuple[Any, tuple[str, ...]]:
    """What the file holds, and what is to be said of it; `trust`: it may run code."""
    try:
        with path.open("rb") as file:
            zipped = zipfile.is_zipfile(file)
    except OSError as error:
        raise unreadable(path, error) from error
    skops = zipped or path.suffix == ".skops"
    if not skops and not trust:
        raise BadInput(
            f"{path}: a pickle, and loading one runs whatever code is in it: save the pipeline by skops.io.dump, or "
            "give --trust-pickle if you trust its maker"
        )
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        found = _unpacked(path, trust) if skops else _unpickled(path)
    trusted = () if skops and not trust else ("loaded with --trust-pickle: its file may run code when it is loaded",)
    return found, (*trusted, *_remarks(met))


def _unpacked(path: Path, trust: bool) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise Unsupported(f"{path}: a skops file needs skops: pip install scikit-learn skops") from error
    try:
        with zipfile.ZipFile(path) as content:
            if SCHEMA not in content.namelist():
                raise BadInput(f"{path}: a zip file without {SCHEMA}, so none of skops: write one by skops.io.dump")
            size = sum(entry.file_size for entry in content.infolist())
            if size > LARGEST:
                raise BadInput(f"{path}: {size:,} bytes when unpacked; {LARGEST:,} are allowed")
            for entry in content.infolist():
                with content.open(entry) as part:
                    if sum(map(len, iter(partial(part.read, CHUNK), b""))) != entry.file_size:
                        raise BadInput(f"{path}: {visible(entry.filename)} is not as long as its directory says")
            json.loads(content.read(SCHEMA))
        unknown = sorted(set(skops.io.get_untrusted_types(file=path)))
        if (foreign := sorted(set(unknown) - PLAIN)) and not trust:
            more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
            raise BadInput(
                f"{path}: holds {', '.join(foreign[:3])}{more}, which may run code: leave it out of the pipeline, or "
                "give --trust-pickle if you trust its maker"
            )
        return skops.io.load(path, trusted=unknown)
    except BadInput:
        raise
    except zipfile.BadZipFile as error:
        raise BadInput(f"{path}: not a skops file, which is a zip file: {one_line(error)}") from error
    except Exception as error:  # a file that lies makes skops raise whatever its lie leads to
        raise BadInput(f"{path}: not a skops file that can be restored: {_said(error)}") from error


def _unpickled(path: Path) -> Any:
    try:
        import joblib
    except ImportError as error:
        raise Unsupported(f"{path}: a pickle needs joblib: pip install scikit-learn joblib") from error
    try:
        return joblib.load(path)
    except ModuleNotFoundError as error:
        raise BadInput(f"{path}: needs the module {error.name}, which is not installed here") from error
    except AttributeError as error:
        raise BadInput(
            f"{path}: {one_line(error)}: functions of a pipeline must stand in a module that can be imported"
        ) from error
    except Exception as error:  # unpickling may raise anything
        raise BadInput(f"{path}: not a pickle that can be loaded: {_said(error)}") from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(error)}"


def _remarks(met: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """One for each version that the file was written with, one for every other warning."""
    found: dict[str, None] = {}
    for warning in met:
        written = getattr(warning.message, "original_sklearn_version", None)
        if written is None:
            found[" ".join(str(warning.message).split())] = None
        else:
            here = getattr(warning.message, "current_sklearn_version", "?")
            found[f"written with scikit-learn {written}, run with {here}: answers may differ"] = None
    return tuple(found)
