"""What every comparison of engines goes through: texts with their networks, and a file that answers are written to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.encodings.query import Query

from ..runs.store import unwritable
from ..tasks.inputs import Text


def queries(model: Model, texts: Iterable[Text], *, smooth: bool = False) -> Iterator[tuple[Text, Query]]:
    """Texts with their networks, which may be `smooth` only where that is asked for."""
    for text in texts:
        space = text.frozen.space
        yield text, Query.of(network_for(model, space, smooth=smooth), space, text.label)


@contextmanager
def lines_to(file: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Writes JSON lines, each at once, so that an interrupted run leaves what it has measured."""
    if file is None:
        yield lambda line: None
        return
    try:
        stream = file.open("w", encoding="utf-8")
    except OSError as error:
        raise unwritable(file, error) from error

    def write(line: dict[str, Any]) -> None:
        try:
            stream.write(json.dumps(line) + "\n")
            stream.flush()
        except OSError as error:
            raise unwritable(file, error) from error

    with stream:
        yield write
