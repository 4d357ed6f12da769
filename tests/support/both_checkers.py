"""What check.py and check.js say of the same files; the commands that start them; and the kept certificates."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from javascript_networks import canonical, claim
from resident_checkers import checked, checked_by

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "proofs"
CHECKERS = {
    "check.py": [sys.executable, "-I", "-S", str(ROOT / "proofs" / "check.py")],
    "check.js": ["node", str(ROOT / "proofs" / "check.js")],
}
SECONDS = 240

Certificate = dict[str, Any]


def read(name: str) -> Certificate:
    certificate: Certificate = json.loads((CASES / "accepted" / f"{name}.json").read_bytes())
    return certificate


def bring_files(certificate: Certificate, folder: Path) -> None:
    model, vocabulary = certificate["model"], certificate["vocabulary"]
    names = [model["file"], *(name for name, _ in model["tensors"])]
    for name in names + ([vocabulary["file"]] if vocabulary else []):
        if not (folder / name).exists():
            shutil.copy(CASES / "accepted" / name, folder / name)


def both(target: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """What the two checkers say of it, at the same time."""
    return checked(str(target))


def verdicts(output: str) -> dict[str, bool]:
    """Accepted or not, by the name of the certificate."""
    result = {}
    for line in output.splitlines():
        head = line.split(":")[0]
        if head.removeprefix("refused ").endswith(".json"):
            result[head.removeprefix("refused ")] = not head.startswith("refused ")
    return result


def verdicts_of(checker: str, folder: Path) -> dict[str, bool]:
    """Those of one checker on a run."""
    result = checked_by(checker, str(folder))
    assert result.returncode in (0, 4), (checker, result.stdout[-500:], result.stderr[-500:])
    return verdicts(result.stdout)


def agree_on_each(folder: Path) -> list[bool]:
    """Both checkers say the same of every certificate of a run; gives what, in order."""
    results = both(folder)
    python, node = results["check.py"], results["check.js"]
    said, also = verdicts(python.stdout), verdicts(node.stdout)
    differing = {name: (said.get(name), also.get(name)) for name in said | also if said.get(name) != also.get(name)}
    assert not differing, (differing, python.stdout[-500:], node.stdout[-500:])
    assert set(said) == {path.name for path in (folder / "certificates").glob("*.json")}, python.stderr + node.stderr
    assert python.returncode == node.returncode, results
    assert python.returncode == (0 if all(said.values()) else 4)
    # The root is that of a run that is accepted.
    roots = [line for r in (python, node) for line in r.stdout.splitlines() if line.startswith("Merkle root ")]
    assert (len(roots), len(set(roots))) == ((2, 1) if all(said.values()) else (0, 0))
    return [said[name] for name in sorted(said)]


def agree_on_run(folder: Path) -> Counter[bool]:
    """The same; gives how many were accepted and refused."""
    return Counter(agree_on_each(folder))


def agree_on_file(file: Path) -> int:
    """Both checkers accept, or neither; gives the exit code of check.js. A crash has neither code 2 nor 4."""
    results = both(file)
    python, node = results["check.py"], results["check.js"]
    assert {python.returncode, node.returncode} <= {0, 2, 4}, results
    assert (python.returncode == 0) == (node.returncode == 0), results
    for result in results.values():
        assert result.stdout.endswith("accepted 1 of 1\n") == (result.returncode == 0)
    return node.returncode


def put(certificate: Certificate, path: tuple[Any, ...], value: object) -> Certificate:
    copy: Certificate = json.loads(canonical(certificate))
    inside: Any = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return copy


def one_sentence(certificate: Certificate, tokens: list[int], part: str, level: str) -> Certificate:
    """The claim that this very sentence keeps its class (lower), or that it does not (upper)."""
    claims = (
        {"lower": claim(level, 0, b"\2"), "upper": None}
        if part == "lower"
        else {"lower": None, "upper": {"levels": [level], "swaps": []}}
    )
    return certificate | claims | {"inputs": [["words", tokens]], "words": [], "count": None}
