"""Every text of a run as a row of a Parquet file: the columns of the CSV, numbers as numbers."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from swapproof.encodings.errors import Unsupported

from .file_formats import COLUMNS

WHOLE = ("id", "low", "high", "candidates")


def as_parquet(summary: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Unsupported("--parquet needs pyarrow: pip install pyarrow") from None
    columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
    for line in lines:
        for name, cell in COLUMNS.items():
            value = cell(line, summary["labels"])
            columns[name].append(None if value == "" and name in (*WHOLE, "predicted", "certificate") else value)
    kinds = {name: pyarrow.int64() if name in WHOLE else pyarrow.string() for name in COLUMNS}
    kinds["seconds"] = pyarrow.float64()
    table = pyarrow.table({name: pyarrow.array(values, kinds[name]) for name, values in columns.items()})
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()
