"""What a run of `certify` found, in the formats of other programs: JUnit XML, CSV, a LaTeX table, a model card."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from ...exit_codes import HOLDS, VIOLATED
from ...runs.run_summary import DEFINITIONS
from ..headline import headline, swaps
from ..page import both_ends, chosen_radii, grounds_met, interval, not_broken, percent

SUITE_BEGINS = '<testsuite name="swapproof '
LATEX_BEGINS = "% needs \\usepackage{booktabs}\n"
LATEX_ENDS = "% accuracy under so many swaps, low end certified: "
CARD_BEGINS = "---\nmodel-index:\n- name: "
CARD_ENDS = "`swapproof check RUN` checks it all again.\n"
"""By these a file of ours is known again."""

Summary = Mapping[str, Any]
Lines = Iterable[Mapping[str, Any]]

NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""
LATEX = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
COLUMNS: dict[str, Callable[[Mapping[str, Any], list[str]], object]] = {
    "id": lambda line, names: line["id"],
    "label": lambda line, names: named(names, line["label"]),
    "predicted": lambda line, names: "" if line["predicted"] is None else named(names, line["predicted"]),
    "low": lambda line, names: line["min_swaps"]["low"],
    "high": lambda line, names: "" if line["min_swaps"]["high"] is None else line["min_swaps"]["high"],
    "status": lambda line, names: line["status"],
    "level": lambda line, names: line["level"],
    "engine": lambda line, names: line["engine"] or "",
    "seconds": lambda line, names: line["seconds"],
    "candidates": lambda line, names: line["candidates"],
    "text": lambda line, names: line["text"],
    "swaps": lambda line, names: " ".join(f"{one['position']}:{one['from']}>{one['to']}" for one in taken(line)),
    "certificate": lambda line, names: line["certificate"] or "",
}
"""Those that the page saves, too."""


def named(names: list[str], index: int) -> str:
    return names[index] if index < len(names) else f"class {index}"


def taken(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The swaps of the witness."""
    return [] if line["witness"] is None else list(line["witness"]["swaps"])


def model_name(summary: Summary) -> str:
    return str(summary["model"].get("file") or summary["model"].get("name"))


def as_csv(summary: Summary, lines: Lines) -> Iterator[str]:
    """A row for each text."""
    yield row_of(COLUMNS)
    for line in lines:
        yield row_of(cell(line, summary["labels"]) for cell in COLUMNS.values())


def row_of(cells: Iterable[object]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


def as_junit(summary: Summary, lines: Lines) -> Iterator[str]:
    """A case for the verdict, for each requirement and for each text: a requirement that is not settled is an error, as
    is a text at the required radius that is open; a text already wrong, of which nothing is asked, is skipped."""
    name = plain(model_name(summary))
    suite = ElementTree.Element("testsuite", name=f"swapproof {name}")
    verdict = summary["verdict"]
    case(suite, "run", "verdict", verdict["sentence"], kind_of(verdict["exit_code"]))
    for one in summary["requirements"]:
        kind = {"true": None, "false": "failure"}.get(one["answer"], "error")
        at = "" if one["at"] is None else f" at {swaps(one['at'])}"
        case(suite, "required", f"{one['require'].replace('_', ' ')}{at}", one["sentence"], kind)
    asked = [one["at"] for one in summary["requirements"] if one["require"] in ("radius", "no_text_broken_by")]
    for line in lines:
        said, kind = judged(line, max(asked, default=None))
        case(suite, "texts", f"text {line['id']}: {line['text']}", said, kind, line["seconds"])
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    ElementTree.indent(suite)
    yield ElementTree.tostring(suite, encoding="unicode") + "\n"


def kind_of(code: int) -> str | None:
    return None if code == HOLDS else "failure" if code == VIOLATED else "error"


def judged(line: Mapping[str, Any], radius: int | None) -> tuple[str, str | None]:
    """What is said of a text, and whether it fails, is open, or is not asked about."""
    ends, status = line["min_swaps"], line["status"]
    if "contradiction" in line:
        return line["contradiction"], "error"
    if status == "already_wrong":
        return "answered wrongly without a swap", None if radius is None else "skipped"
    least = "never" if status == "unbreakable" else interval(ends)
    said = f"min_swaps {least}, {status.replace('_', ' ')}, {line['level']}"
    if radius is None:
        return said, None
    if ends["high"] is not None and ends["high"] <= radius:
        changed = ", ".join(f"{one['from']} -> {one['to']}" for one in taken(line))
        return f"{said}: broken by {changed}" if changed else said, "failure"
    held = status == "unbreakable" or (status != "ambiguous" and ends["low"] > radius)
    return said, None if held else "error"


def case(
    suite: ElementTree.Element, group: str, name: str, said: str, kind: str | None, seconds: float | None = None
) -> None:
    found = ElementTree.SubElement(suite, "testcase", classname=group, name=plain(name))
    if seconds is not None:
        found.set("time", f"{seconds:.4f}")
    if kind is None:
        ElementTree.SubElement(found, "system-out").text = plain(said)
    else:
        ElementTree.SubElement(found, kind, message=plain(said))


def plain(text: str) -> str:
    return NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def as_latex(summary: Summary, lines: Lines) -> Iterator[str]:
    """A table of the numbers, for the package booktabs."""
    radii = chosen_radii(summary)
    yield LATEX_BEGINS
    yield f"\\begin{{tabular}}{{lrrr{'r' * len(radii)}}}\n\\toprule\n"
    yield " & ".join(["model", "texts", "accuracy", "MMWS", *(f"{swaps(radius)}" for radius, _, _ in radii)])
    yield " \\\\\n\\midrule\n"
    shares = [both_ends(low, high) for _, low, high in radii]
    cells = [model_name(summary), f"{summary['texts']:,}", percent(summary["accuracy"]), interval(summary["mmws"])]
    yield " & ".join(cell.translate(LATEX) for cell in (*cells, *shares))
    yield " \\\\\n\\bottomrule\n\\end{tabular}\n"
    yield f"{LATEX_ENDS}{standing(summary)}\n"


def standing(summary: Summary) -> str:
    """The levels of truth of what is certified."""
    said = {"replay": "evaluated in full, not proved"}
    return ", ".join(said.get(level, f"proved, {level}") for level in grounds_met(summary)) or "nothing is"


def as_card(summary: Summary, lines: Lines) -> Iterator[str]:
    """A section of a model card: metadata as Hugging Face reads them, then what was asked and found."""
    claim = headline(summary)
    shares, ground = chosen_radii(summary), standing(summary)
    metrics: list[dict[str, Any]] = [{"type": "accuracy", "value": summary["accuracy"]}]
    if claim is not None:
        metrics += [
            {
                "type": "certified_accuracy",
                "name": f"certified accuracy under any {swaps(radius)} ({ground})",
                "value": low,
            }
            for radius, low, _ in shares
        ]
    yield f"{CARD_BEGINS}{json.dumps(model_name(summary))}\n  results:\n"
    yield "  - task: {type: text-classification}\n"
    yield f"    dataset: {{name: {json.dumps('texts of this run')}, type: {json.dumps('custom')}}}\n    metrics:\n"
    for metric in metrics:
        yield f"    - {json.dumps(metric)}\n"
    yield "---\n\n## Robustness to word swaps\n\n"
    yield f"{escaped(claim.sentence)}.\n\n" if claim is not None else ""
    yield f"Verdict: {escaped(summary['verdict']['sentence'])}.\n\n"
    for remark in (*summary["vacuous"], *summary["remarks"]):
        yield f"* {escaped(remark)}\n"
    yield "\n| swaps | certified accuracy | not known to be broken |\n|---:|---:|---:|\n"
    for radius, low, high in shares:
        yield f"| {radius} | {percent(low)} | {not_broken(low, high)} |\n"
    yield f"\nCertified ({ground}): {DEFINITIONS['certified_accuracy']}. "
    yield f"Mean minimum swaps (MMWS): {interval(summary['mmws'])}.\n"
    yield f"Swaps: {summary['swaps']['kept']:,} candidates of {escaped(summary['swaps']['source'])}.\n"
    yield f"Model: SHA-256 `{summary['model']['sha256']}`. " if "sha256" in summary["model"] else ""
    yield CARD_ENDS


def escaped(text: str) -> str:
    """Names that users chose, in Markdown."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


FORMATS: dict[str, Callable[[Summary, Lines], Iterator[str]]] = {
    "junit": as_junit,
    "csv": as_csv,
    "latex": as_latex,
    "card": as_card,
}
