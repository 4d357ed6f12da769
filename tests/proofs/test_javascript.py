"""check.js and check.py, two checkers written apart from one page, never differ about what is accepted.

Both run as a stranger would run them: as programs, on files. Certificates and trees are written here from FORMAT.md.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tree_bytes import deltas, leb128, mask, table

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "proofs"
CHECKERS = {
    "check.py": [sys.executable, "-I", "-S", str(ROOT / "proofs" / "check.py")],
    "check.js": ["node", str(ROOT / "proofs" / "check.js")],
}
NAMES = sorted(path.stem for path in (CASES / "accepted").glob("*.json"))
SECONDS = 240
# The nightly profile looks at a hundred times as many changed certificates and trees.
TIMES = 100 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

Certificate = dict[str, Any]


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


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
    """Runs the two checkers at the same time."""
    running = {
        name: subprocess.Popen([*command, str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name, command in CHECKERS.items()
    }
    results = {}
    for name, process in running.items():
        out, err = process.communicate(timeout=SECONDS)
        results[name] = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    return results


def verdicts(output: str) -> dict[str, bool]:
    """Accepted or not, by the name of the certificate."""
    result = {}
    for line in output.splitlines():
        head = line.split(":")[0]
        if head.removeprefix("refused ").endswith(".json"):
            result[head.removeprefix("refused ")] = not head.startswith("refused ")
    return result


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


def write_run(folder: Path, certificates: list[bytes]) -> Path:
    """A run of these certificates over all models of the accepted cases."""
    (folder / "certificates").mkdir(parents=True)
    for path in (CASES / "accepted").iterdir():
        if path.suffix != ".json":
            shutil.copy(path, folder / path.name)
    for number, data in enumerate(certificates):
        (folder / "certificates" / f"{number:06}.json").write_bytes(data)
    return folder


def numbered(certificates: list[Certificate]) -> list[bytes]:
    return [canonical({**certificate, "id": number}) for number, certificate in enumerate(certificates)]


# ---- the cases that are kept ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [path for folder in ("accepted", "refused") for path in sorted((CASES / folder).glob("*.json"))],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_every_kept_certificate_gets_the_exit_code_it_must_have(path: Path) -> None:
    """All of `accepted` give 0. Of `refused` a model outside the format gives 2, anything else 4, from both."""
    codes = {name: result.returncode for name, result in both(path).items()}
    assert codes["check.js"] == codes["check.py"], codes
    assert (codes["check.js"] == 0) == (path.parent.name == "accepted"), codes


def test_a_run_of_all_accepted_certificates_has_one_merkle_root(tmp_path: Path) -> None:
    """Both checkers accept the run and print the same root; so more than 16 leaves hash to the same tree."""
    folder = write_run(tmp_path / "run", numbered([read(name) for name in NAMES]))
    assert agree_on_run(folder) == {True: len(NAMES)}
    root = both(folder)["check.js"].stdout.splitlines()[-2].removeprefix("Merkle root ")
    (folder / "certificates" / "root").write_text(root + "\n")
    assert [result.returncode for result in both(folder).values()] == [0, 0]
    for wrong in (root, root.upper() + "\n", "0" * 64 + "\n", ""):
        (folder / "certificates" / "root").write_text(wrong)
        assert [result.returncode for result in both(folder).values()] == [4, 4], wrong


# ---- changed certificates ------------------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all numbers, strings and nulls of a certificate."""
    if isinstance(value, dict):
        return [found for key, child in value.items() for found in leaves(child, (*path, key))]
    if isinstance(value, list):
        return [found for key, child in enumerate(value) for found in leaves(child, (*path, key))]
    return [path]


def put(certificate: Certificate, path: tuple[Any, ...], value: object) -> Certificate:
    copy: Certificate = json.loads(canonical(certificate))
    inside: Any = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    copy["space"] = sha256(canonical(copy["choices"])) if path[0] == "choices" else copy["space"]
    return copy


def changed_value(certificate: Certificate, source: random.Random) -> bytes:
    """One number, string or null is another one. File names stay: a missing file ends the run for both."""
    paths = [path for path in leaves(certificate) if path[-1] != "file" and path[:2] != ("model", "tensors")]
    path = source.choice([path for path in paths if path != ("id",)])
    before: Any = certificate
    for key in path:
        before = before[key]
    if isinstance(before, int):
        after: object = source.choice(
            [before + 1, before - 1, 0, 1, 7, 2**31, 2**53 + 1, 10**18, -before, True, 1.0, None]
        )
    elif path[-1] == "tree":
        after = base64.b64encode(changed_tree(base64.b64decode(str(before)), source)).decode()
    else:
        after = source.choice(["", "real", "float32", "replay", "0", "00", "18", "a" * 64, 0, None, {}, []])
    return canonical(put(certificate, path, after))


def changed_tree(tree: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(tree))
    way = source.randrange(4)
    if way == 0:
        return tree[:at] + bytes([source.randrange(12)]) + tree[at + 1 :]
    if way == 1:
        return tree[:at] + bytes([tree[at] ^ (1 << source.randrange(8))]) + tree[at + 1 :]
    if way == 2:
        return tree[:at] + tree[at + 1 :]
    return tree[:at] + bytes([source.randrange(4)]) + tree[at:]


def changed_bytes(certificate: Certificate, source: random.Random) -> bytes:
    """One byte of the file is another one, is gone, or is there twice, outside of file names."""
    data = canonical(certificate)
    while True:
        at = source.randrange(len(data))
        changed = source.choice([
            data[:at] + bytes([source.randrange(256)]) + data[at + 1 :], data[:at] + data[at + 1 :],
            data[:at] + data[at : at + 1] + data[at:],
        ])  # fmt: skip
        if all(name in changed for name in file_names(certificate)):
            return changed


def file_names(certificate: Certificate) -> list[bytes]:
    """As they stand in a certificate."""
    model, vocabulary = certificate["model"], certificate["vocabulary"]
    files = [f'"file":"{part["file"]}"' for part in (model, vocabulary) if part]
    return [text.encode() for text in files + [f'["{name}",' for name, _ in model["tensors"]]]


def changed_text(certificate: Certificate, source: random.Random) -> bytes:
    """JSON that a lax reader takes: other spellings, keys twice, keys that reach into objects of a language."""
    data = canonical(certificate)
    return source.choice(SPELLINGS)(data)


SPELLINGS: list[Callable[[bytes], bytes]] = [
    lambda data: data.replace(b'"version":1', b'"version":1.0'),
    lambda data: data.replace(b'"version":1', b'"version":true'),
    lambda data: data.replace(b'"version":1', b'"version":1e0'),
    lambda data: data.replace(b'"version":1', b'"version":01'),
    lambda data: data.replace(b'"version":1', b'"version":+1'),
    lambda data: data.replace(b'"version":1', b'"version":NaN'),
    lambda data: data.replace(b'"version":1', b'"version":' + b"1" * 10000),
    lambda data: data.replace(b'"version":1', b'"version":1,"version":1'),
    lambda data: data.replace(b'"version":1', b'"version" :1'),
    lambda data: data.replace(b'"version":1', b'"__proto__":{"version":1}'),
    lambda data: data.replace(b'{"choices"', b'{"__proto__":null,"choices"'),
    lambda data: data.replace(b'{"choices"', b'{"a":' + b"[" * 50000 + b"]" * 50000 + b',"choices"'),
    lambda data: data.replace(b'"id":', b'"id":-0,"ie":'),
    lambda data: data.replace(b"swapproof certificate", rb"swapproof\u0020certificate"),
    lambda data: data + b"\n",
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data[:-1],
    lambda data: data[:-1] + b",}",
    lambda data: data.decode().encode("utf-16"),
    lambda data: data + data,
    lambda data: b"null",
    lambda data: b"",
]


@pytest.mark.parametrize("part", range(TIMES))
def test_the_checkers_agree_on_hundreds_of_changed_certificates(tmp_path: Path, part: int) -> None:
    source = random.Random(2024 + part)
    ways = [changed_value, changed_value, changed_bytes, changed_text]
    data = []
    for number in range(600):
        certificate = {**read(source.choice(NAMES)), "id": number}
        data.append(ways[number % len(ways)](certificate, source))
    counts = agree_on_run(write_run(tmp_path / "run", data))
    # Some changes leave the claim true: another text's hash, a slope, a weaker claim.
    assert counts[False] > 400
    assert counts[True] > 10


def test_the_checkers_agree_on_every_single_changed_tree(tmp_path: Path) -> None:
    """Each byte of some trees in turn becomes each kind of node, so all rules and all limits of numbers are met."""
    certificates = []
    for name in ("with-words", "with-budget", "with-phase", "with-betas", "with-rivals", "with-slopes", "with-joint"):
        certificate = read(name)
        part = "lower" if certificate["lower"] else "count"
        tree = base64.b64decode(certificate[part]["tree"])
        for at in range(min(len(tree), 12)):
            for byte in (0, 1, 2, 3, 5, 8, 64, 128, 255):
                changed = tree[:at] + bytes([byte]) + tree[at + 1 :]
                certificates.append(put(certificate, (part, "tree"), base64.b64encode(changed).decode()))
    counts = agree_on_run(write_run(tmp_path / "run", numbered(certificates)))
    assert counts[False] > 100
    assert counts[True] > 20


# ---- trees at random -----------------------------------------------------------------------------------------------


class Tree:
    """A random tree over all choices of a text: splits by words, budget, phase and rivals, and multipliers."""

    def __init__(self, certificate: Certificate, layer: tuple[int, int, bool] | None, source: random.Random) -> None:
        self.choices: list[list[int]] = certificate["choices"]
        self.rivals: list[int] = certificate["rivals"]
        self.layer = layer
        self.source = source

    def grow(self, depth: int, chosen: list[list[int]], phases: frozenset[int]) -> bytes:
        source = self.source
        kinds = ["leaf"] if depth == 0 else ["words", "words", "budget"]
        if depth and self.layer is not None:
            kinds += ["slopes", "joint"] + (["phase", "phase", "betas"] if self.layer[2] else [])
        kind = source.choice(kinds)
        splittable = [position for position, choices in enumerate(chosen) if len(choices) > 1]
        if kind == "words" and splittable:
            position = source.choice(splittable)
            left = sorted(source.sample(chosen[position], source.randint(1, len(chosen[position]) - 1)))
            right = [choice for choice in chosen[position] if choice not in left]
            node = bytes([4]) + leb128(position) + mask(left, len(self.choices[position]))
            for part in (left, right):
                node += self.grow(depth - 1, [*chosen[:position], part, *chosen[position + 1 :]], phases)
            return node
        if kind == "budget":
            # Groups of neighbours that begin at 0 contain each other.
            group = list(range(source.randint(1, len(chosen))))
            node = bytes([6]) + leb128(len(group)) + b"".join(map(leb128, deltas(group))) + leb128(source.randint(0, 2))
            return node + self.grow(depth - 1, chosen, phases) + self.grow(depth - 1, chosen, phases)
        if self.layer is not None and kind in ("phase", "slopes", "betas", "joint"):
            number, size, _ = self.layer
            element = source.randrange(size)
            if kind == "phase" and element not in phases:
                node = bytes([5]) + leb128(number) + leb128(element)
                for _ in range(2):
                    node += self.grow(depth - 1, chosen, phases | {element})
                return node
            if kind == "slopes":
                return bytes([8, 1]) + table(number, size, 64, source) + self.grow(depth - 1, chosen, phases)
            if kind == "betas":
                exponent = leb128(source.randint(0, 5))
                return (
                    bytes([9])
                    + exponent
                    + b"\1"
                    + table(number, size, 12, source)
                    + self.grow(depth - 1, chosen, phases)
                )
            if kind == "joint":
                return bytes([10, 1]) + table(number, size, 64, source) + self.grow(depth - 1, chosen, phases)
        return bytes([source.choice([1, 1, 1, 1, 2])])


# A rectifier of each model: its number, elements, and whether it can have phases. That of limits is the second step of
# its last Clip.
LAYERS = {
    "paper": (3, 5, True), "bag": (5, 4, True), "convolution": (3, 12, True), "residual": (3, 4, True),
    "two_layers": (8, 6, True), "oddities": (12, 8, False), "plane": None, "straight": None,
    "algebra": (5, 4, True), "pieces": (10, 4, True), "windows": (4, 12, True),
    "limits": (36, 3, True), "masked": (19, 4, True),
}  # fmt: skip


@pytest.mark.parametrize("part", range(TIMES))
def test_the_checkers_agree_on_random_trees(tmp_path: Path, part: int) -> None:
    """Random claims, texts and trees over thirteen models: what holds by a hair for one must hold for the other."""
    source = random.Random(77 + part)
    certificates = []
    for _ in range(500):
        name = source.choice(sorted(LAYERS))
        certificate = read(name)
        choices = [source.sample(range(7), source.randint(1, 3)) for _ in range(4)]
        certificate |= {"choices": choices, "space": sha256(canonical(choices)), "upper": None, "count": None}
        # Either answer can be the label: half of the claims are hopeless, most others depend on the tree.
        classes = [certificate["label"], *certificate["rivals"]]
        certificate["label"] = source.choice(classes)
        certificate["rivals"] = sorted(c for c in classes if c != certificate["label"])
        tree = Tree(certificate, LAYERS[name], source).grow(
            source.randint(0, 4), [[*range(len(c))] for c in choices], frozenset()
        )
        level = source.choice(["real", certificate["lower"]["level"]] if certificate["lower"] else ["real"])
        encoded = base64.b64encode(tree).decode()
        certificate["lower"] = {"level": level, "recipe": "linear-1", "swaps": source.randint(0, 4), "tree": encoded}
        certificates.append(certificate)
    counts = agree_on_run(write_run(tmp_path / "run", numbered(certificates)))
    assert counts[True] > 50
    assert counts[False] > 50


Choices = list[list[int]]
Groups = dict[frozenset[int], tuple[int, int]]


def sentences(choices: Choices, chosen: Choices, groups: Groups) -> list[tuple[int, ...]]:
    """All sentences of a region: one of the chosen (numbers of choices) at each position, the swaps of each group in
    its range."""
    return [
        tuple(at[number] for at, number in zip(choices, picks, strict=True))
        for picks in product(*chosen)
        if all(low <= sum(picks[at] > 0 for at in group) <= high for group, (low, high) in groups.items())
    ]


def budget(group: frozenset[int], bound: int) -> bytes:
    return bytes([6]) + leb128(len(group)) + b"".join(map(leb128, deltas(sorted(group)))) + leb128(bound)


def one_sentence(certificate: Certificate, sentence: tuple[int, ...], part: str, level: str) -> Certificate:
    """The claim that this very sentence keeps its class (lower), or that it does not (upper)."""
    choices = [[token] for token in sentence]
    lower = {"level": level, "recipe": "linear-1", "swaps": 0, "tree": base64.b64encode(b"\2").decode()}
    claims = (
        {"lower": lower, "upper": None}
        if part == "lower"
        else {"lower": None, "upper": {"levels": [level], "swaps": []}}
    )
    return certificate | claims | {"choices": choices, "space": sha256(canonical(choices)), "count": None}


def counted_tree(
    choices: Choices, swaps: int, verdict: dict[tuple[int, ...], str], rival: int, source: random.Random
) -> tuple[bytes, Counter[str], bool]:
    """A random tree over words and budget whose leaves count what it holds; what each leaf adds; and whether it must be
    accepted: the recipe may fail where a bound is too weak."""
    counts: Counter[str] = Counter()
    sure = True

    def grow(depth: int, chosen: Choices, groups: Groups) -> bytes:
        nonlocal sure
        several = [position for position, at in enumerate(chosen) if len(at) > 1]
        kind = source.choice(["words", "budget"]) if depth else "leaf"
        if kind == "words" and several:
            position = source.choice(several)
            left = sorted(source.sample(chosen[position], source.randint(1, len(chosen[position]) - 1)))
            right = [number for number in chosen[position] if number not in left]
            sides = [
                grow(depth - 1, [*chosen[:position], part, *chosen[position + 1 :]], groups) for part in (left, right)
            ]
            return bytes([4]) + leb128(position) + mask(left, len(choices[position])) + b"".join(sides)
        if kind == "budget":
            group = frozenset(source.sample(range(len(chosen)), source.randint(1, len(chosen))))
            if all(group <= other or other <= group or not group & other for other in groups):
                low, high = groups.get(group, (0, len(group)))
                bound = source.randint(0, 2)
                under = bound if group not in groups else min(high, bound)
                ranges = ((low, under), (max(low, bound + 1), high))
                return budget(group, bound) + b"".join(grow(depth - 1, chosen, groups | {group: r}) for r in ranges)
        inside = [verdict[sentence] for sentence in sentences(choices, chosen, groups)]
        kinds = ["enumerate", "open"]
        if not inside:
            kinds += ["empty", "linear", "broken"]
        elif set(inside) == {"robust"}:
            kinds += ["linear", "linear"]
        elif set(inside) == {"broken"}:
            kinds += ["broken", "broken"]
        kind = source.choice(kinds)
        sure = sure and (not inside or kind not in ("linear", "broken"))
        counts.update(inside if kind == "enumerate" else [kind] * len(inside))
        leaf = {"empty": b"\0", "linear": b"\1", "enumerate": b"\2", "open": b"\3", "broken": b"\x10" + leb128(rival)}
        return leaf[kind]

    root = {frozenset(range(len(choices))): (0, swaps)}
    tree = grow(source.randint(0, 5), [[*range(len(position))] for position in choices], root)
    return tree, counts, sure


def test_counts_are_those_of_the_sentences_one_by_one(tmp_path: Path) -> None:
    """First each sentence alone is robust, broken or neither, by claims about it alone; then claims that count them are
    accepted with just these numbers, and refused with one more or one less."""
    source = random.Random(31)
    drawn: list[tuple[Certificate, Choices, str, list[tuple[int, ...]]]] = []
    alone: list[Certificate] = []
    for number in range(24):
        name = sorted(LAYERS)[number % len(LAYERS)]
        certificate = read(name)
        # No choice may differ from the others in what masked masks, token 0.
        tokens = range(1, 7) if name == "masked" else range(7)
        choices = [source.sample(tokens, source.randint(1, 3)) for _ in range(4)]
        level = source.choice(["real", certificate["lower"]["level"]] if certificate["lower"] else ["real"])
        if len(certificate["rivals"]) > 1 or source.random() < 0.5:
            classes = [certificate["label"], *certificate["rivals"]]
            certificate["label"] = source.choice(classes)
            certificate["rivals"] = [source.choice([c for c in classes if c != certificate["label"]])]
        every = list(product(*choices))
        drawn.append((certificate, choices, level, every))
        alone += [one_sentence(certificate, sentence, part, level) for sentence in every for part in ("lower", "upper")]
    holds = iter(agree_on_each(write_run(tmp_path / "alone", numbered(alone))))
    certificates: list[Certificate] = []
    right: list[bool | None] = []
    for certificate, choices, level, every in drawn:
        verdict = {}
        for sentence in every:
            kept, lost = next(holds), next(holds)
            assert not (kept and lost)
            verdict[sentence] = "robust" if kept else "broken" if lost else "neither"
        for _ in range(8):
            swaps = source.randint(0, 4)
            tree, counts, sure = counted_tree(choices, swaps, verdict, certificate["rivals"][0], source)
            robust, broken = counts["robust"] + counts["linear"], counts["broken"]
            total = sum(counts.values())
            for more, less, other in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -1, 0)):
                claim = {
                    "level": level, "recipe": "linear-1", "swaps": swaps, "tree": base64.b64encode(tree).decode(),
                    "robust": str(robust + more), "broken": str(abs(broken + less)), "total": str(total + other),
                }  # fmt: skip
                exact = (more, abs(broken + less), other) == (0, broken, 0)
                certificates.append(certificate | {
                    "choices": choices, "space": sha256(canonical(choices)),
                    "lower": None, "upper": None, "count": claim,
                })  # fmt: skip
                right.append((True if sure else None) if exact else False)
    for index, accepted in enumerate(agree_on_each(write_run(tmp_path / "counts", numbered(certificates)))):
        assert right[index] is None or accepted == right[index], certificates[index]
    assert right.count(True) > 10
    assert right.count(None) > 10


def test_a_group_without_swaps_that_must_hold_one_leaves_no_sentence(tmp_path: Path) -> None:
    """Its region counts nothing, whichever leaf it has, also with groups inside and around it and also if it was words
    nodes that took the swaps away. All else is left open here."""
    wanted = [[0, 1, 2], [0], [0], [0, 1]]
    one, two, three = frozenset({1}), frozenset({1, 2}), frozenset({1, 2, 3})
    fixed = bytes([4, 3]) + mask([0], 2)  # left: position 3 has only its original
    nothing = [b"\0", b"\1", b"\2", b"\3", b"\x10"]
    certificates = []
    right = []
    certificate = read("plane")
    rival = leb128(certificate["rivals"][0])
    for leaf in [kind + (rival if kind == b"\x10" else b"") for kind in nothing]:
        trees = [
            budget(one, 0) + b"\3" + leaf,
            budget(two, 0) + b"\3" + budget(one, 0) + leaf + leaf,
            budget(one, 0) + budget(two, 0) + b"\3" + leaf + leaf,
            budget(one, 0) + b"\3" + budget(three, 0) + leaf + leaf,
            fixed + budget(three, 0) + b"\3" + leaf + b"\3",
            fixed + budget(frozenset({3}), 0) + b"\3" + budget(three, 1) + leaf + leaf + b"\3",
            budget(frozenset({3}), 0) + b"\3" + fixed + leaf + b"\3",
        ]
        for tree, swaps, robust, broken in product(trees, (1, 2), (0, 1), (0, 1)):
            chosen = [[*range(len(at))] for at in wanted]
            total = len(sentences(wanted, chosen, {frozenset(range(4)): (0, swaps)}))
            claim = {
                "level": "real", "recipe": "linear-1", "swaps": swaps, "tree": base64.b64encode(tree).decode(),
                "robust": str(robust), "broken": str(broken), "total": str(total),
            }  # fmt: skip
            space = {"choices": wanted, "space": sha256(canonical(wanted))}
            certificates.append(certificate | space | {"lower": None, "upper": None, "count": claim})
            right.append(robust == broken == 0)
    assert agree_on_each(write_run(tmp_path / "run", numbered(certificates))) == right


def test_masks_of_more_than_64_choices_are_whole_numbers_in_both(tmp_path: Path) -> None:
    """70 choices at one position: each bit of the mask is its own choice, also beyond 32 and 64."""
    certificate = json.loads((CASES / "refused" / "many-other-bit.json").read_bytes())
    size = max(len(choices) for choices in certificate["choices"])
    assert size > 64
    position = next(p for p, choices in enumerate(certificate["choices"]) if len(choices) == size)
    certificates = []
    for bit in range(size):
        others = [choice for choice in range(size) if choice != bit]
        for left in ([bit], others):
            tree = bytes([4]) + leb128(position) + mask(left, size) + bytes([2, 1])
            lower = {"level": "real", "recipe": "linear-1", "swaps": 1, "tree": base64.b64encode(tree).decode()}
            certificates.append({**certificate, "lower": lower, "count": None, "upper": None})
    folder = write_run(tmp_path / "run", numbered(certificates))
    shutil.copy(CASES / "refused" / certificate["model"]["file"], folder)
    agree_on_run(folder)


def test_a_tree_of_great_depth_is_read_by_both(tmp_path: Path) -> None:
    """90,000 nodes below each other are read; 110,000 are refused. Neither program runs out of its stack."""
    certificate = read("lower-only")
    for depth, code in ((90_000, 0), (110_000, 4)):
        slopes = bytes([8, 1]) + leb128(3) + bytes([1, 0, 64])
        tree = base64.b64encode(slopes * depth + base64.b64decode(certificate["lower"]["tree"])).decode()
        bring_files(certificate, tmp_path)
        (tmp_path / "deep.json").write_bytes(canonical(put(certificate, ("lower", "tree"), tree)))
        assert agree_on_file(tmp_path / "deep.json") == code


# ---- changed models and folders ------------------------------------------------------------------------------------


def test_the_checkers_agree_on_changed_models(tmp_path: Path) -> None:
    """Bytes of the ONNX file are others, gone or cut off, and the certificate is bound to the new file."""
    source = random.Random(5)
    codes: Counter[int] = Counter()
    for number in range(80):
        folder = tmp_path / str(number)
        folder.mkdir()
        name = source.choice(
            ["paper", "oddities", "plane", "convolution", "two_layers", "normalised", "limits", "masked"]
        )
        certificate = read(name)
        bring_files(certificate, folder)
        model = bytearray((folder / certificate["model"]["file"]).read_bytes())
        at = source.randrange(len(model))
        if number % 10 == 0:
            del model[at:]
        elif number % 10 == 1:
            del model[at]
        else:
            model[at] = source.choice([model[at] ^ (1 << source.randrange(8)), source.randrange(256)])
        (folder / certificate["model"]["file"]).write_bytes(model)
        certificate["model"]["sha256"] = sha256(bytes(model))
        (folder / "case.json").write_bytes(canonical(certificate))
        codes[agree_on_file(folder / "case.json")] += 1
    assert codes[0] > 5
    assert codes[2] > 20


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("nothing", 0), ("model missing", 2), ("model truncated", 4), ("model swapped", 4), ("vocabulary missing", 2),
        ("no certificates", 2), ("no folder", 2), ("stranger", 2), ("five digits", 2), ("a text file more", 0),
        ("another number", 4),
    ],
)  # fmt: skip
def test_both_give_the_same_exit_code_for_a_damaged_run_folder(tmp_path: Path, change: str, code: int) -> None:
    folder = tmp_path / "run"
    (folder / "certificates").mkdir(parents=True)
    certificate = {**read("external"), "id": 0}
    bring_files(certificate, folder)
    file = folder / "certificates" / "000000.json"
    file.write_bytes(canonical(certificate))
    model = folder / certificate["model"]["file"]
    if change == "model missing":
        model.unlink()
    elif change == "model truncated":
        model.write_bytes(model.read_bytes()[:-1])
    elif change == "model swapped":
        shutil.copy(CASES / "accepted" / "paper.onnx", model)
    elif change == "vocabulary missing":
        (folder / certificate["vocabulary"]["file"]).unlink()
    elif change == "no certificates":
        file.unlink()
    elif change == "no folder":
        shutil.rmtree(folder)
    elif change == "stranger":
        (folder / "certificates" / "more.json").write_bytes(file.read_bytes())
    elif change == "five digits":
        file.rename(file.with_name("00000.json"))
        (folder / "certificates" / "000001.json").write_bytes(canonical({**certificate, "id": 1}))
    elif change == "a text file more":
        (folder / "certificates" / "notes.txt").write_text("nothing")
    elif change == "another number":
        file.rename(file.with_name("000001.json"))
    results = both(folder)
    assert {name: result.returncode for name, result in results.items()} == dict.fromkeys(CHECKERS, code), results
    for result in results.values():
        assert result.stdout.endswith("accepted 1 of 1\n") == (code == 0)


def test_a_check_that_takes_too_long_is_refused_in_time(tmp_path: Path) -> None:
    """Thousands of sentences are counted one by one: the time limit ends that, with a refusal that says why."""
    certificate = read("count-paper")
    bring_files(certificate, tmp_path)
    choices = [[*at, *sorted(set(range(7)) - set(at))] for at in certificate["choices"]]
    numbers = {"swaps": 4, "total": str(7**4), "tree": base64.b64encode(b"\2").decode()}
    certificate |= {"choices": choices, "space": sha256(canonical(choices)), "lower": None, "upper": None}
    (tmp_path / "long.json").write_bytes(canonical(certificate | {"count": certificate["count"] | numbers}))
    for seconds, reason in (("0", "ran out of time"), ("100", "number of")):
        command = [*CHECKERS["check.js"], "--seconds", seconds, str(tmp_path / "long.json")]
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert result.returncode == 4
        assert reason in result.stdout


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help-me"], ["does-not-exist"], ["--seconds", "x", "."]])
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    result = subprocess.run([*CHECKERS["check.js"], *arguments], capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "check.js" in result.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_seconds_are_whole_and_0_of_them_are_too_few(tmp_path: Path, checker: str) -> None:
    """Of at most nine digits. Without any time left nothing is accepted, also what takes no time."""
    certificate = read("lower-only")
    bring_files(certificate, tmp_path)
    file = tmp_path / "case.json"
    file.write_bytes(canonical(certificate))
    expected = {"0": 4, "000": 4, "100": 0, "999999999": 0}
    expected |= dict.fromkeys(["0.5", "1.0", "", "1e3", "+1", "-1", " 1", "1 ", "0x10", "\u0661", "1234567890"], 2)
    found = {}
    for seconds in expected:
        command = [*CHECKERS[checker], "--seconds", seconds, str(file)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert ("time" in result.stdout) == (result.returncode == 4)
        found[seconds] = result.returncode
    assert found == expected


# ---- the program and its files -------------------------------------------------------------------------------------


def alone(
    target: Path | str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    command = [*CHECKERS["check.js"], str(target)]
    return subprocess.run(command, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL, text=True, timeout=60)


def says_why(result: subprocess.CompletedProcess[str]) -> str:
    """One line that is not a stack trace, exit code 2, and nothing accepted."""
    assert result.returncode == 2, result
    assert result.stdout == ""
    assert result.stderr.startswith("check.js: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.strip()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of one certificate, with a vocabulary and a tensor file, that is accepted; its root is in the folder."""
    folder = tmp_path / "run"
    (folder / "certificates").mkdir(parents=True)
    certificate = {**read("external"), "id": 0}
    bring_files(certificate, folder)
    (folder / "certificates" / "000000.json").write_bytes(canonical(certificate))
    result = alone(folder)
    assert result.returncode == 0
    root = result.stdout.splitlines()[-2].removeprefix("Merkle root ")
    (folder / "certificates" / "root").write_text(root + "\n")
    assert alone(folder).returncode == 0
    return folder


def put_something_strange(kind: str, path: Path) -> None:
    """No regular file that can be read. Skips what does not exist for this user."""
    pipe = path.with_name("pipe")
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link to a pipe":
        os.mkfifo(pipe)
        path.symlink_to(pipe)
    elif kind == "a file nobody may read":
        path.write_text("")
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
    else:
        targets = {"zeros without end": "/dev/zero", "a link to nothing": "nothing", "a link to itself": path.name}
        path.symlink_to(targets[kind])


STRANGE = (
    "a folder", "a pipe", "a link to a pipe", "zeros without end", "a link to nothing", "a link to itself",
    "a file nobody may read",
)  # fmt: skip


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("part", ["certificate", "root", "model", "tensors", "vocabulary"])
def test_what_cannot_be_read_is_exit_code_2_and_one_line(run: Path, part: str, kind: str) -> None:
    """A file of the run is something else. It neither hangs, nor is it read over, nor does it end in a stack trace."""
    certificate = read("external")
    path = {
        "certificate": run / "certificates" / "000000.json", "root": run / "certificates" / "root",
        "model": run / certificate["model"]["file"], "tensors": run / certificate["model"]["tensors"][0][0],
        "vocabulary": run / certificate["vocabulary"]["file"],
    }[part]  # fmt: skip
    path.unlink()
    put_something_strange(kind, path)
    assert f"{path.name} cannot be read: " in says_why(alone(run))


@pytest.mark.parametrize("kind", STRANGE)
def test_a_single_certificate_that_cannot_be_read_is_exit_code_2(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "case.json"
    put_something_strange(kind, path)
    says_why(alone(path))


@pytest.mark.parametrize("kind", [*STRANGE, "a file"])
def test_what_stands_for_the_folder_of_certificates_must_be_a_folder(run: Path, kind: str) -> None:
    shutil.rmtree(run / "certificates")
    if kind == "a file":
        (run / "certificates").write_text("nothing")
    else:
        put_something_strange(kind, run / "certificates")
    reason = says_why(alone(run))
    assert reason.endswith("there is no certificate") == (kind == "a folder")


def test_a_target_that_cannot_be_looked_at_is_exit_code_2(run: Path) -> None:
    """Below a file, too long a name, a device; and a name of several lines makes one."""
    file = run / "certificates" / "000000.json"
    for target in (file / "more", run / ("x" * 300), "/dev/zero", "/dev/null", run / "one\naccepted 1 of 1\n"):
        says_why(alone(target))


def test_a_name_of_several_lines_or_other_letters_makes_one_line_of_ascii(tmp_path: Path) -> None:
    certificate = read("lower-only")
    bring_files(certificate, tmp_path)
    path = tmp_path / "a\naccepted 1 of 1\u202e\u00e9.json"
    path.write_bytes(canonical(certificate))
    result = alone(path)
    assert result.returncode == 0
    first, last = result.stdout.splitlines()
    assert first.startswith("a\\u{a}accepted 1 of 1\\u{202e}\\u{e9}.json: text 0")
    assert last == "accepted 1 of 1"


def test_a_certificate_of_more_than_64_mib_is_refused(run: Path) -> None:
    with (run / "certificates" / "000000.json").open("r+b") as file:
        file.truncate(5 * 2**30)
    result = alone(run)
    assert result.returncode == 4
    assert result.stdout == "refused 000000.json: the certificate is too large\nrefused 1 of 1\n"


def test_exit_code_0_is_only_for_what_was_written(run: Path) -> None:
    """A disk that is full, and a reader who has gone: no acceptance, and no stack trace."""
    with Path("/dev/full").open("w") as full:
        result = alone(run, stdout=full.fileno())
        assert result.returncode == 2
        assert result.stderr.startswith("check.js: the verdict could not be written: ENOSPC")
        assert result.stderr.count("\n") == 1
        assert alone(run, stdout=full.fileno(), stderr=full.fileno()).returncode == 2
        assert alone(run / "nothing", stderr=full.fileno()).returncode == 2
    reader, writer = os.pipe()
    os.close(reader)
    result = alone(run, stdout=writer)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert alone(run / "nothing", stdout=writer, stderr=writer).returncode == 2
    os.close(writer)


def test_a_reader_who_goes_after_one_line_is_not_an_acceptance(run: Path) -> None:
    """As `| head -1` does, with more lines than a pipe holds: the check ends there."""
    certificate = json.loads((run / "certificates" / "000000.json").read_bytes())
    for number in range(20000):
        (run / "certificates" / f"{number:06}.json").write_bytes(b"{}" if number else canonical(certificate))
    command = [*CHECKERS["check.js"], str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("000000.json: text ")
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 2
    assert error.startswith("check.js: the verdict could not be written: EPIPE")
    assert error.count("\n") == 1


def test_a_pipe_that_does_not_wait_gets_every_line(run: Path) -> None:
    """Its reader starts late, when the pipe has long been full."""
    for number in range(1, 5000):
        (run / "certificates" / f"{number:06}.json").write_bytes(b"{}")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen([*CHECKERS["check.js"], str(run)], stdout=writer)
    os.close(writer)
    time.sleep(2)
    assert process.poll() is None
    with os.fdopen(reader) as file:
        lines = file.read().splitlines()
    assert process.wait(SECONDS) == 4
    assert len(lines) == 5001
    assert lines[-1] == "refused 4999 of 5000"


# ---- what is said --------------------------------------------------------------------------------------------------


def test_both_say_alike_what_is_wrong_from_the_start_and_what_never_is(tmp_path: Path) -> None:
    """An answer without swaps is wrong whichever rival wins; what no number of swaps changes has no number."""
    certificate = read("convolution")
    swaps = dict(certificate["upper"]["swaps"])
    sentence = tuple(swaps.get(position, choices[0]) for position, choices in enumerate(certificate["choices"]))
    wrong = one_sentence(certificate, sentence, "upper", "real")
    assert len(wrong["rivals"]) == 2
    bring_files(wrong, tmp_path)
    said = []
    for rivals in (wrong["rivals"], wrong["rivals"][:1]):
        (tmp_path / "case.json").write_bytes(canonical(wrong | {"rivals": rivals}))
        said.append({result.stdout.splitlines()[0] for result in both(tmp_path / "case.json").values()})
    class_of = wrong["label"]
    line = f"case.json: text 3, class {class_of}: the text itself is answered wrongly (real); min_swaps = 0"
    assert said == [{line}, {line}]
    (line,) = {result.stdout.splitlines()[0] for result in both(CASES / "accepted" / "joint-none.json").values()}
    assert line.endswith(": no sentence with however many swaps changes the class (real)")


@pytest.mark.parametrize(
    ("levels", "is_said"),
    [(["real"], True), (["real", "float32"], True), (["real", "replay"], True), (["replay"], False)],
)
def test_what_is_only_recorded_gives_no_number_of_swaps(tmp_path: Path, levels: list[str], is_said: bool) -> None:
    certificate = read("paper")
    bring_files(certificate, tmp_path)
    (tmp_path / "case.json").write_bytes(canonical(put(certificate, ("upper", "levels"), levels)))
    for name, result in both(tmp_path / "case.json").items():
        assert result.returncode == 0, (name, result)
        assert ("min_swaps" in result.stdout) == is_said, (name, result.stdout)


@pytest.mark.parametrize("content", [b"\n", b"\xff" * 65, b"0" * 1000, b"0" * 2**24])
def test_another_root_of_any_length_is_a_refusal(run: Path, content: bytes) -> None:
    for before in (b"", (run / "certificates" / "root").read_bytes()):
        (run / "certificates" / "root").write_bytes(before + content)
        assert {name: result.returncode for name, result in both(run).items()} == dict.fromkeys(CHECKERS, 4)
