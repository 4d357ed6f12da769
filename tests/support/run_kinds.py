"""Every kind of run of a tiny model, as its command: what is true of one is to be true of all."""

from __future__ import annotations

import json
from pathlib import Path

from tiny import ROWS, SYNONYMS, WORDS, write_task

KINDS = {
    "certify": ["certify"],
    "certify-run": ["certify"],
    "attack": ["attack", "--method", "greedy"],
    "attack-run": ["attack", "--method", "greedy"],
    "pr": ["measure", "--quantity", "pr", "--radius", "2"],
    "msr": ["measure", "--quantity", "msr", "--norm", "linf", "--seconds", "600"],
    "vote": ["measure", "--quantity", "vote", "--samples", "20"],
    "kappa": ["measure", "--quantity", "kappa"],
}
CHECKED = [kind for kind in KINDS if kind != "kappa"]
"""Of kappa there is nothing to check."""
STAGES = {
    "certify": "min_swaps",
    "certify-run": "min_swaps",
    "attack": "attack",
    "attack-run": "attack",
    "pr": "pr",
    "msr": "msr",
    "vote": "vote",
    "kappa": "exact",
}


def task_for(kind: str, folder: Path, times: int = 1) -> Path:
    """So many times the eight texts."""
    task = write_task(folder, ROWS * times, **({"model_road": "run"} if kind.endswith("-run") else {}))
    if kind != "vote":
        return task
    table = {word: [*others] for word, others in SYNONYMS.items()}
    (folder / "s.json").write_text(json.dumps(table))
    (folder / "smoothing.toml").write_text(
        '[base]\nonnx = "model.onnx"\nvocabulary = "vocabulary.json"\nlength = 6\nlowercase = true\n'
        f'[smoothing]\nmethod = "ranmask"\nrate = 0.5\nmask = "{WORDS[1]}"\nsamples = 5\n'
    )
    lines = task.read_text().splitlines()
    gone = ("onnx", "vocabulary", "length", "lowercase")
    kept = [line for line in lines if not line.startswith(gone)]
    kept.insert(kept.index("[model]") + 1, 'smoothed = "smoothing.toml"')
    task.write_text("\n".join(kept) + "\n")
    return task


def command(kind: str, task: Path, out: Path, *more: str) -> list[str]:
    name, *rest = KINDS[kind]
    return [name, str(task), *rest, "--out", str(out), *more]
