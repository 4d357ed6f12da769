"""`attack`: one attack on the texts of a task, or several of them compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..attacks.attack_comparison import COMPARISON, compared, exact_minima, lines_in
from ..attacks.attack_run import AttackOptions, attack
from ..attacks.recipes import recipe_named
from ..attacks.textattack.log_import import METHOD
from ..attacks.textattack.log_rows import is_log, read_log
from ..pages.printing.attack_printing import print_attack, print_little_said
from ..pages.printing.json_printing import print_run
from ..pages.printing.pairs_printing import print_pairs
from ..pages.sheets.measured_page import page_of_attacks
from ..runs.life import Outcome, require, write_json
from ..runs.overwriting import refuse_to_replace
from ..runs.run_folder import Run, is_free, write_atomically
from ..tasks.task import read_task


def command(
    task: Path,
    out: Path,
    method: str | None,
    compare: str | None,
    exact: Path | None,
    options: AttackOptions,
    *,
    imports: Path | None = None,
    as_json: bool = False,
    also: tuple[Path, ...] = (),
) -> int:
    """One run in `out`; of several attacks a run in a folder of its own name each, and comparison.json. `imports`: a
    log of TextAttack, which is one of them where others are named. `also`: further tasks, for one table of all; then
    each has a folder of its own."""
    others = [name.strip() for name in (compare or "").split(",") if name.strip()]
    methods = list(dict.fromkeys([*([] if method is None else [method]), *others]))
    require(bool(methods) or imports is not None, "give --method NAME, or several: --compare greedy,pdp")
    twice = next((name for name in others if others.count(name) > 1), None)
    require(twice is None, f"--compare {compare}: {twice} is named twice; name each attack once")
    require(not (compare or "").rstrip().endswith(","), f"--compare {compare}: ends in a comma; name the last attack")
    recipes = [recipe_named(name) for name in methods]
    reads = any(recipe.transformation == "kappa" for recipe in recipes)
    require(options.kappa is None or reads, f"--kappa {options.kappa}: none of these attacks reads one; sp-attack does")
    if imports is not None:
        read_log(imports)  # before anything is written
        methods = [*methods, METHOD]
    require(options.log is None or len(methods) == 1, "--write-textattack FILE: one log is of one attack")
    if options.log is not None:
        refuse_to_replace(options.log, lambda path: not is_free(out) and is_log(path), "--write-textattack")
        require(
            imports is None or options.log.resolve() != imports.resolve(),
            f"{imports}: is read, and is not written over",
        )
    if also:
        alone = "--also: of several tasks give --compare A,B, without --exact and without a log of TextAttack"
        require(exact is None and imports is None and options.log is None and len(methods) > 1, alone)
        return command_of_pairs((task, *also), out, methods, options, as_json=as_json)
    if len(methods) == 1 and not others and exact is None:
        outcome = attacked_by(methods[0], task, out, options, imports)
        if as_json:
            return print_run(out, outcome.exit_code, outcome.summary)
        print_attack(outcome.summary)
        print(f"\nThe run folder: {out}")
        return outcome.exit_code
    summary, code = compare_attacks(task, out, methods, exact, options, imports)
    if as_json:
        return print_run(out, code, summary)
    print_attack(summary)
    print(f"\nThe runs: {out}")
    return code


def compare_attacks(
    task: Path, out: Path, methods: Sequence[str], exact: Path | None, options: AttackOptions, imports: Path | None
) -> tuple[dict[str, Any], int]:
    """Every attack on the texts of a task, what they make together, and the exit code."""
    require(
        is_free(out) or (out / COMPARISON).is_file() or (out / methods[0]).is_dir(),
        f"{out}: holds other files; give --out a new folder",
    )
    runs = {name: attacked_by(name, task, out / name, options, imports) for name in methods}
    minima = {} if exact is None else exact_minima(exact, out / methods[0])
    lines = {name: lines_in(out / name) for name in methods}
    comparison = compared(lines, minima)
    summary: dict[str, Any] = {"quantity": "attack", "runs": {name: one.summary for name, one in runs.items()}}
    summary |= {"comparison": comparison, **({"exact": minima} if minima else {})}
    write_json(out / COMPARISON, summary)
    page = page_of_attacks(summary, {name: Run(out / name) for name in methods})
    write_atomically(Run(out).report, page.written())
    return summary, max(one.exit_code for one in runs.values())


def command_of_pairs(
    tasks: Sequence[Path], out: Path, methods: Sequence[str], options: AttackOptions, *, as_json: bool
) -> int:
    """The same attacks on several tasks, each in the folder of its name: that of the task file, or of its folder where
    files are called task.toml."""
    names = [path.resolve().parent.name if path.stem == "task" else path.stem for path in tasks]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"--also: two tasks are called {twice}; name their folders apart")
    for path in tasks:
        read_task(path)  # all of them, before anything is written
    found, codes = dict[str, dict[str, Any]](), list[int]()
    for name, path in zip(names, tasks, strict=True):
        found[name], code = compare_attacks(path, out / name, methods, None, options, None)
        codes.append(code)
    if as_json:
        return print_run(out, max(codes), {"quantity": "attack", "tasks": found})
    for summary in found.values():
        print_little_said(summary)
    print_pairs(found)
    print(f"\nThe runs: {out}")
    return max(codes)


def attacked_by(name: str, task: Path, out: Path, options: AttackOptions, imports: Path | None) -> Outcome:
    """A log is replayed on the space of the task's own swaps, as `greedy` sees it."""
    return attack(task, out, "greedy", options, imports=imports) if name == METHOD else attack(task, out, name, options)
