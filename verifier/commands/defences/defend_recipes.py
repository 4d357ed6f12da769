"""`defend`: defences trained, certified, attacked and measured, in one table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...attacks.attack_limits import Limits
from ...defending.defence_rows import DEFINITION, Row, as_table
from ...defending.defending_runs import TABLE, DefendOptions, defend
from ...pages.printing.json_printing import print_json
from ...runs.life import require


def command(sources: Sequence[Path], out: Path, options: DefendOptions, *, as_json: bool = False) -> int:
    found = defend(sources, out, options, said=lambda line: print(line, file=sys.stderr, flush=True))
    if as_json:
        print_json({"folder": str(out), "exit_code": found.exit_code, "table": str(out / TABLE)})
        return found.exit_code
    print_rows(found.rows)
    for remark in found.remarks:
        print(remark)
    print(f"\nThe table: {out / 'table.html'}, also as .csv, .tex and .json")
    return found.exit_code


def print_rows(rows: Sequence[Row]) -> None:
    from rich.table import Table

    from ...pages.tables import print_table
    from ...pages.terminal import terminal

    console = terminal()
    header, *body = as_table(rows)
    table = Table(title="Defences", title_justify="left")
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < 3 else "right", no_wrap=True)
    for row in body:
        table.add_row(*row)
    print_table(console, table)
    console.print(DEFINITION, style="dim")


def numbers_of(said: str, option: str) -> tuple[int, ...]:
    parts = names_of(said)
    require(all(part.isdecimal() for part in parts), f"{option} {said}: whole numbers from 0, separated by commas")
    return tuple(map(int, parts))


def names_of(said: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in said.split(",") if part.strip())


def limits_of(limits: Limits) -> tuple[str, ...]:
    """As options of `attack`."""
    given = {"--k-max": limits.k_max, "--rho-max": limits.rho_max, "--similarity": limits.similarity}
    said = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    return (*said, *(["--rho-up"] if limits.rho_up else []), *(["--q-max"] if limits.q_max else []))


def kappa_by(brute_force: bool, euba: int | None) -> tuple[str, ...]:
    """As options of `measure --quantity kappa`."""
    return (*(["--brute-force"] if brute_force else []), *(["--euba", str(euba)] if euba is not None else []))
