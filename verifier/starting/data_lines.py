"""The columns of the data file, as lines of a task file."""

from __future__ import annotations

from swapproof.models.errors import BadInput
from swapproof.models.recognition.table_columns import columns_of

from .beginning_state import Beginning

MANY = 1000
"""Texts beyond which a run takes long enough to begin with a part."""
FIRST = 0.1
"""The share of the rows by whose labels a sorted file is known."""


def find_columns(begun: Beginning) -> None:
    sample, draft, findings = begun.sample, begun.draft, begun.findings
    said = {key: value for key, value in begun.given["data"].items() if key in ("text", "label", "context", "answer")}
    found = columns_of(sample, said, skip=begun.given["data"].get("on_error") == "skip")
    names = ", ".join(sample.names)
    draft.set("data", "file", sample.path.absolute(), f"{sample.count:,} rows with the columns {names}")
    findings.tell("Data", f"{sample.path.name}: {sample.count:,} rows")
    if sample.broken and begun.given["data"].get("on_error") != "skip":
        raise BadInput(
            f"{sample.broken[0]} (one of {len(sample.broken):,} rows that cannot be read): repair them, or leave "
            "them out with --set on_error=skip"
        )
    if sample.delimiter not in (None, ",", "\t"):
        draft.set("data", "delimiter", sample.delimiter, f"the header is divided by {sample.delimiter!r}")
        findings.tell("Data", f"columns are divided by {sample.delimiter!r}")
    kinds = {"text": "texts", "context": "context", "label": "labels", "answer": "what the deployed system answered"}
    for key, what in kinds.items():
        choice = getattr(found, key)
        if choice is not None:
            draft.set("data", key, choice.name, f"{what}: {choice.reason}")
            findings.tell("Data", f"{what}: column {choice.name!r}, {choice.reason}")
    if found.context is not None and "first" not in begun.given["data"]:
        draft.set("data", "first", "context", f"the model reads {found.context.name} first, then {found.text.name}")
    spellings = dict(sample.column(found.label.name).spellings or ())
    counts = ", ".join(f"{value} {count:,}" for value, count in sorted(spellings.items())[:8])
    findings.tell("Data", f"in {found.label.name!r} stand: {counts}{' and more' if len(spellings) > 8 else ''}")
    choose_part(begun, dict(spellings))


def choose_part(begun: Beginning, spellings: dict[str, int]) -> None:
    """How a run of some of many texts is said; and whether the first ones would be a fair part."""
    sample, draft = begun.sample, begun.draft
    if {"sample", "limit"} & begun.given["data"].keys():
        return
    if sample.count > MANY:
        draft.set(
            "data", "sample", 200, f"certify takes all {sample.count:,} texts; this takes a part of them", live=False
        )
        draft.set("data", "seed", 1, "which part: sample and seed together", live=False)
        begun.findings.tell("Data", "certify takes all of them; sample and seed in the task file take a part")
    first = begun.few.labels[: int(len(sample.rows) * FIRST)]
    usual = max(spellings.values(), default=0) / sample.count
    if len(first) >= 10 and len(set(first)) == 1 and usual < 0.8:
        begun.findings.doubt(
            f"the data are sorted by label, and begin with {first[0]}: with a limit a run would see that alone; "
            "sample = 200 and seed = 1 in [data] draw from all"
        )
