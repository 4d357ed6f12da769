"""The page of attacks: their table, swaps of one against another's, and how success grows; one file, nothing loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from .attack_figures import Lines, by_requests, by_swaps, curves, key_style, scatter, swaps_of
from .page import own_file
from .printing.attack_printing import COLUMNS, compared_columns, compared_row, log_sentence, row_of

EXACT = "exact minimum"


def attack_page(summary: Mapping[str, Any], runs: Mapping[str, Lines], exact: Mapping[int, int | None]) -> str:
    """`summary`: of one run, or of several that were compared; `runs`: the lines of each, by its name; `exact`: least
    swaps of the texts whose minimum is known."""
    several: Mapping[str, Any] = summary.get("runs", {summary.get("method", ""): summary})
    title = f"Attacks: {', '.join(several)}"
    parts = [
        table("Attacks", COLUMNS, [row_of(one) for one in several.values()], definition_of(several)),
        *(Markup("<p>{}: {}</p>").format(name, one["verdict"]["sentence"]) for name, one in several.items()),
        *(
            Markup("<p>{}</p>").format(log_sentence(one["textattack"]))
            for one in several.values()
            if "textattack" in one
        ),
        *remarks(several),
    ]
    if "comparison" in summary:
        found = summary["comparison"]
        rows = [compared_row(method) for method in found["methods"]]
        parts.append(table("Compared", compared_columns(found), rows, f"{found['definition']}."))
    parts.append(Markup('<div class="figures">{}</div>').format(Markup("").join(figures(runs, exact))))
    return str(
        Markup(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{}</title>'
            '<meta name="viewport" content="width=device-width"><style>{}</style></head>\n<body><main>\n'
            "<h1>{}</h1>\n<p>An attack gives high ends: sentences that were put to the deployed model and fool it. It "
            "proves nothing below them.</p>\n{}\n</main></body></html>\n"
        ).format(title, own_file("report.css"), title, Markup("\n").join(parts))
    )


def remarks(runs: Mapping[str, Any]) -> Iterator[Markup]:
    for said in dict.fromkeys(remark for one in runs.values() for remark in one.get("remarks", ())):
        yield Markup("<p>note: {}</p>").format(said)


def logs(runs: Mapping[str, Any]) -> Iterator[Markup]:
    for one in runs.values():
        if "textattack" in one:
            yield Markup("<p>{}</p>").format(log_sentence(one["textattack"]))


def definition_of(runs: Mapping[str, Any]) -> str:
    return str(next(iter(runs.values()))["definition"])


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], definition: str) -> Markup:
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(name) for name in columns)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], Markup("").join(Markup('<td class="number">{}</td>').format(cell) for cell in row[1:])
        )
        for row in rows
    )
    return Markup(
        '<div class="wide"><table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
        '<p class="definition">{}</p>'
    ).format(caption, head, body, definition)


def figures(runs: Mapping[str, Lines], exact: Mapping[int, int | None]) -> Iterator[Markup]:
    """As figures 3 and 4 of the PDP paper: every attack against the exact minimum, or against the first one."""
    highs = {name: {line["id"]: swaps_of(line) for line in lines} for name, lines in runs.items()}
    known = {id: least for id, least in exact.items() if least is not None}
    base, against = (EXACT, known) if known else next(iter(highs.items()), ("", {}))
    for name, own in highs.items():
        if name == base:
            continue
        pairs = [(least, high) for id, least in against.items() if least and (high := own.get(id)) is not None]
        yield figure(
            f"Swaps: {name} against {base}",
            scatter(base, name, pairs),
            f"{len(pairs)} texts that both break. The area of a dot is its number of texts; on the dotted line both "
            "need as many swaps.",
        )
    attacked = sum(line["status"] != "already_wrong" for line in next(iter(runs.values()), ()))
    swaps = {name: by_swaps(lines, attacked) for name, lines in runs.items()}
    if known:
        least = [{"status": "exact", "min_swaps": {"high": value}} for value in known.values()]
        swaps[EXACT] = by_swaps(least, attacked)
    yield figure(
        "Success by number of swaps",
        curves("Success by number of swaps", "at most so many swaps", swaps),
        f"Share of {attacked} texts that were answered rightly and are broken with at most so many swaps.",
        swaps,
    )
    requests = {name: by_requests(lines, attacked) for name, lines in runs.items()}
    yield figure(
        "Success by number of requests",
        curves("Success by number of requests", "at most so many requests a text", requests, logarithmic=True),
        "Share of these texts that are broken by a search that ended after at most so many requests.",
        requests,
    )


def figure(caption: str, drawing: Markup, definition: str, lines: Mapping[str, Any] | None = None) -> Markup:
    keys = Markup("").join(
        Markup('<span class="key line" style="{}"></span>{} ').format(key_style(number), name)
        for number, name in enumerate(lines or ())
    )
    return Markup('<figure><figcaption>{}</figcaption>{}<p class="definition">{}{}</p></figure>').format(
        caption, drawing, keys, definition
    )
