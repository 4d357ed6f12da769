"""check.js and check.py, two checkers written apart from one page, never differ about what is accepted.

Both are asked whole, with their command lines, about files, in processes that stay (resident_checkers.py); that these
say what programs say that are started anew, test_javascript_program.py looks at. Certificates and trees are written
here from FORMAT.md.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from both_checkers import (
    CASES,
    CHECKERS,
    Certificate,
    agree_on_each,
    agree_on_file,
    agree_on_run,
    both,
    bring_files,
    one_sentence,
    put,
    read,
)
from javascript_networks import (
    Layer,
    Statement,
    Text,
    canonical,
    claim,
    layers_of,
    lowered,
    random_text,
    sha256,
    with_networks,
)  # fmt: skip
from tree_bytes import leb128, mask, table

NAMES = sorted(path.stem for path in (CASES / "accepted").glob("*.json"))
# The nightly profile looks at a hundred times as many changed certificates and trees.
TIMES = 100 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


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


def encoded(certificates: list[Certificate]) -> list[bytes]:
    """The same of other texts: with the networks that these have."""
    return [canonical(certificate) for certificate in with_networks(certificates, CASES / "accepted")]


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


def test_a_root_beside_the_certificates_must_be_theirs(tmp_path: Path) -> None:
    names = [name for name in NAMES if not name.startswith("smooth")][:20]
    folder = write_run(tmp_path / "run", numbered([read(name) for name in names]))
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
    lambda data: data.replace(b'"version":2', b'"version":2.0'),
    lambda data: data.replace(b'"version":2', b'"version":true'),
    lambda data: data.replace(b'"version":2', b'"version":2e0'),
    lambda data: data.replace(b'"version":2', b'"version":02'),
    lambda data: data.replace(b'"version":2', b'"version":+2'),
    lambda data: data.replace(b'"version":2', b'"version":NaN'),
    lambda data: data.replace(b'"version":2', b'"version":' + b"2" * 10000),
    lambda data: data.replace(b'"version":2', b'"version":2,"version":2'),
    lambda data: data.replace(b'"version":2', b'"version" :2'),
    lambda data: data.replace(b'"version":2', b'"__proto__":{"version":2}'),
    lambda data: data.replace(b'{"count"', b'{"__proto__":null,"count"'),
    lambda data: data.replace(b'{"count"', b'{"a":' + b"[" * 50000 + b"]" * 50000 + b',"count"'),
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


Choices = list[list[int]]


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


def changed_text_of(certificate: Certificate, source: random.Random) -> Certificate:
    """Inputs and words that are others in shape: parts gone, twice, elsewhere, of other kinds, or one more."""
    copy: Certificate = json.loads(canonical(certificate))
    others = [0, 1, -1, 2**31, 2**31 - 1, 7, "words", "constant", None, [], {}, [0], [[0]], [[[0]]]]
    spots: list[tuple[Any, Any]] = []

    def look(value: Any) -> None:
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            spots.append((value, key))
            if isinstance(child, list | dict):
                look(child)

    part = {key: copy[key] for key in ("inputs", "words")}
    look(part)
    inside, key = source.choice(spots)
    way = source.randrange(5) if isinstance(inside, list) else 0
    if way == 0:
        inside[key] = source.choice(others)
    elif way == 1:
        del inside[key]
    elif way == 2:
        inside.insert(key, inside[key])
    elif way == 3:
        inside.append(source.choice(others))
    else:
        source.shuffle(inside)
    return copy | part


def test_the_checkers_agree_on_texts_of_other_shapes(tmp_path: Path) -> None:
    source = random.Random(12)
    certificates = []
    for _ in range(600):
        name = source.choice(["masked", "paper", "tangled", "straight", "bag"])
        certificate = read(name)
        text = of_words(1 if name == "masked" else 0, source)
        certificate |= text.parts() | {"upper": None, "count": None, "lower": claim("real", 0, b"\2")}
        if source.random() < 0.9:
            certificate = changed_text_of(certificate, source)
        certificates.append(certificate)
    counts = agree_on_run(write_run(tmp_path / "run", encoded(certificates)))
    assert counts[False] > 300
    assert counts[True] > 50


def test_the_checkers_agree_on_every_single_changed_tree(tmp_path: Path) -> None:
    """Each byte of some trees in turn becomes each kind of node, so all rules and all limits of numbers are met."""
    certificates = []
    names = ("with-words", "with-rivals", "with-slopes", "with-joint", "joint-none", "count-paper", "count-residual")
    for name in names:
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


def random_tree(text: Text, rivals: list[int], layers: list[Layer], source: random.Random) -> bytes:
    """A tree over all options of a text: splits by words and rivals, and multipliers; some are of no rectifier that can
    have them, or split what is whole."""
    sizes = [len(options) for _, options in text.words]
    rectifiers = [number for number, layer in enumerate(layers) if layer.kind == 3]
    bent = [number for number, layer in enumerate(layers) if layer.kind in (3, 4)]

    def grow(depth: int, chosen: Choices, left_rivals: list[int]) -> bytes:
        kinds = ["words"] * 4 + ["rivals"] + ["slopes"] * bool(bent) + ["joint"] * bool(rectifiers)
        kind = source.choice(kinds) if depth else "leaf"
        several = [word for word, options in enumerate(chosen) if len(options) > 1]
        if kind == "words" and several:
            word = source.choice(several)
            left = sorted(source.sample(chosen[word], source.randint(1, len(chosen[word]) - 1)))
            node = bytes([4]) + leb128(word) + mask(left, sizes[word])
            for part in (left, [option for option in chosen[word] if option not in left]):
                node += grow(depth - 1, [*chosen[:word], part, *chosen[word + 1 :]], left_rivals)
            return node
        if kind == "rivals" and len(left_rivals) > 1:
            first = left_rivals[: source.randint(1, len(left_rivals) - 1)]
            node = bytes([7]) + mask([rivals.index(rival) for rival in first], len(rivals))
            return node + b"".join(grow(depth - 1, chosen, part) for part in (first, left_rivals[len(first) :]))
        if kind in ("slopes", "joint"):
            number = source.choice(bent if kind == "slopes" else rectifiers)
            stairs = 7 if layers[number].kind == 4 else 8 * source.randint(0, 1) if kind == "slopes" else 0
            node = bytes([8 if kind == "slopes" else 10, 1]) + table(number, layers[number].size, 64, source, stairs)
            return node + grow(depth - 1, chosen, left_rivals)
        return bytes([source.choice([1, 1, 1, 1, 2])])

    return grow(source.randint(0, 4), [list(range(size)) for size in sizes], rivals)


MODELS = [
    "paper", "bag", "convolution", "residual", "two_layers", "oddities", "plane", "straight", "algebra", "pieces",
    "windows", "limits", "masked",
]  # fmt: skip


def layers_by_name() -> dict[str, list[Layer]]:
    """Of each model, for its own text."""
    statements = []
    for name in MODELS:
        certificate = read(name)
        model = (CASES / "accepted" / certificate["model"]["file"]).read_bytes()
        statements.append(Statement(model, certificate["inputs"], certificate["words"]))
    lines = lowered(statements, whole=True)
    return {name: layers_of(bytes.fromhex(line.split()[1])) for name, line in zip(MODELS, lines, strict=True)}


def of_words(first: int, source: random.Random) -> Text:
    """Tokens from this one to 6 at four positions, in words of one or two."""
    text = random_text([["words", [source.randrange(first, 7) for _ in range(4)]]], 7, source)
    words = [[start, [o for i, o in enumerate(options) if i == 0 or min(o) >= first]] for start, options in text.words]
    return Text(text.inputs, words)


@pytest.mark.parametrize("part", range(TIMES))
def test_the_checkers_agree_on_random_trees(tmp_path: Path, part: int) -> None:
    """Random claims, texts and trees over thirteen models: what holds by a hair for one must hold for the other."""
    source = random.Random(77 + part)
    layers = layers_by_name()
    certificates = []
    for _ in range(500):
        name = source.choice(sorted(MODELS))
        certificate = read(name)
        text = of_words(source.choice([0, 1]), source)
        certificate |= text.parts() | {"upper": None, "count": None}
        # Either answer can be the label: half of the claims are hopeless, most others depend on the tree.
        classes = [certificate["label"], *certificate["rivals"]]
        certificate["label"] = source.choice(classes)
        certificate["rivals"] = sorted(c for c in classes if c != certificate["label"])
        tree = random_tree(text, certificate["rivals"], layers[name], source)
        level = source.choice(["real", certificate["lower"]["level"]] if certificate["lower"] else ["real"])
        certificate["lower"] = claim(level, source.randint(0, 4), tree)
        certificates.append(certificate)
    counts = agree_on_run(write_run(tmp_path / "run", encoded(certificates)))
    assert counts[True] > 50
    assert counts[False] > 50


def inside(text: Text, chosen: Choices, swaps: int) -> list[tuple[int, ...]]:
    """The sentences of a region, which has these options of each word."""
    return [
        sentence
        for sentence in text.sentences(swaps)
        if all(option in options for option, options in zip(sentence, chosen, strict=True))
    ]


def counted_tree(
    text: Text, swaps: int, verdict: dict[tuple[int, ...], str], rival: int, source: random.Random
) -> tuple[bytes, Counter[str], bool]:
    """A random tree over words whose leaves count what it holds; what each leaf adds; and whether it must be accepted:
    the recipe may fail where a bound is too weak."""
    counts: Counter[str] = Counter()
    sure = True

    def grow(depth: int, chosen: Choices) -> bytes:
        nonlocal sure
        several = [word for word, options in enumerate(chosen) if len(options) > 1]
        if depth and several:
            word = source.choice(several)
            left = sorted(source.sample(chosen[word], source.randint(1, len(chosen[word]) - 1)))
            right = [option for option in chosen[word] if option not in left]
            sides = [grow(depth - 1, [*chosen[:word], part, *chosen[word + 1 :]]) for part in (left, right)]
            return bytes([4]) + leb128(word) + mask(left, len(text.words[word][1])) + b"".join(sides)
        verdicts = [verdict[sentence] for sentence in inside(text, chosen, swaps)]
        kinds = ["enumerate", "open"]
        if not verdicts:
            kinds += ["linear", "broken"]
        elif set(verdicts) == {"robust"}:
            kinds += ["linear", "linear"]
        elif set(verdicts) == {"broken"}:
            kinds += ["broken", "broken"]
        kind = source.choice(kinds)
        sure = sure and (not verdicts or kind not in ("linear", "broken"))
        counts.update(verdicts if kind == "enumerate" else [kind] * len(verdicts))
        return {"linear": b"\1", "enumerate": b"\2", "open": b"\3", "broken": b"\x10" + leb128(rival)}[kind]

    tree = grow(source.randint(0, 5), [list(range(len(options))) for _, options in text.words])
    return tree, counts, sure


def test_counts_are_those_of_the_sentences_one_by_one(tmp_path: Path) -> None:
    """First each sentence alone is robust, broken or neither, by claims about it alone; then claims that count them are
    accepted with just these numbers, and refused with one more or one less."""
    source = random.Random(31)
    drawn: list[tuple[Certificate, Text, str, list[tuple[int, ...]]]] = []
    alone: list[Certificate] = []
    for number in range(26):
        name = sorted(MODELS)[number % len(MODELS)]
        certificate = read(name)
        # No option may differ from the others in what masked masks, token 0.
        text = of_words(1 if name == "masked" else 0, source)
        level = source.choice(["real", certificate["lower"]["level"]] if certificate["lower"] else ["real"])
        if len(certificate["rivals"]) > 1 or source.random() < 0.5:
            classes = [certificate["label"], *certificate["rivals"]]
            certificate["label"] = source.choice(classes)
            certificate["rivals"] = [source.choice([c for c in classes if c != certificate["label"]])]
        every = text.sentences(len(text.words))
        drawn.append((certificate, text, level, every))
        alone += [
            one_sentence(certificate, text.read(sentence), part, level)
            for sentence in every
            for part in ("lower", "upper")
        ]
    holds = iter(agree_on_each(write_run(tmp_path / "alone", encoded(alone))))
    certificates: list[Certificate] = []
    right: list[bool | None] = []
    for certificate, text, level, every in drawn:
        verdict = {}
        for sentence in every:
            kept, lost = next(holds), next(holds)
            assert not (kept and lost)
            verdict[sentence] = "robust" if kept else "broken" if lost else "neither"
        for _ in range(8):
            swaps = source.randint(0, 4)
            tree, counts, sure = counted_tree(text, swaps, verdict, certificate["rivals"][0], source)
            robust, broken = counts["robust"] + counts["linear"], counts["broken"]
            total = sum(counts.values())
            for more, less, other in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -1, 0)):
                count = claim(level, swaps, tree) | {
                    "robust": str(robust + more), "broken": str(abs(broken + less)), "total": str(total + other),
                }  # fmt: skip
                exact = (more, abs(broken + less), other) == (0, broken, 0)
                certificates.append(certificate | text.parts() | {"lower": None, "upper": None, "count": count})
                right.append((True if sure else None) if exact else False)
    for index, accepted in enumerate(agree_on_each(write_run(tmp_path / "counts", encoded(certificates)))):
        assert right[index] is None or accepted == right[index], certificates[index]
    assert right.count(True) > 10
    assert right.count(None) > 10


def test_a_region_with_more_forced_words_than_swaps_holds_no_sentence(tmp_path: Path) -> None:
    """It counts nothing, whichever leaf it has, also below further splits. All else is left open here; a robust or a
    broken sentence, claimed beside, is refused."""
    text = Text([["words", [0, 0, 0, 0]]], [[0, [[0], [1], [2]]], [1, [[0, 0], [3, 4]]], [3, [[0], [1]]]])
    certificate = read("plane")
    rival = leb128(certificate["rivals"][0])
    sizes = [3, 2, 2]

    def swapped(word: int, inner: bytes) -> bytes:
        """Where the word keeps its original all is open."""
        return bytes([4]) + leb128(word) + mask([0], sizes[word]) + b"\3" + inner

    certificates = []
    right = []
    for leaf in (b"\1", b"\2", b"\3", b"\x10" + rival):
        one_more = bytes([4, 0]) + mask([1], 3) + leaf + leaf  # which of the two others the first word is
        trees = {
            swapped(1, leaf): 1, swapped(0, one_more): 1,
            swapped(0, swapped(1, leaf)): 2, swapped(2, swapped(0, one_more)): 2,
            swapped(1, swapped(2, swapped(0, leaf))): 3, swapped(2, swapped(1, swapped(0, one_more))): 3,
        }  # fmt: skip
        for (tree, forced), robust, broken in product(trees.items(), (0, 1), (0, 1)):
            for swaps in range(forced):
                numbers = {"robust": str(robust), "broken": str(broken), "total": str(len(text.sentences(swaps)))}
                count = claim("real", swaps, tree) | numbers
                certificates.append(certificate | text.parts() | {"lower": None, "upper": None, "count": count})
                right.append(robust == broken == 0)
    assert agree_on_each(write_run(tmp_path / "run", encoded(certificates))) == right


def test_masks_of_more_than_64_options_are_whole_numbers_in_both(tmp_path: Path) -> None:
    """70 options of one word: each bit of the mask is its own option, also beyond 32 and 64."""
    certificate = json.loads((CASES / "refused" / "many-other-bit.json").read_bytes())
    sizes = [len(options) for _, options in certificate["words"]]
    size = max(sizes)
    assert size > 64
    word = sizes.index(size)
    certificates = []
    for bit in range(size):
        others = [option for option in range(size) if option != bit]
        for left in ([bit], others):
            tree = bytes([4]) + leb128(word) + mask(left, size) + bytes([2, 1])
            certificates.append({**certificate, "lower": claim("real", 1, tree), "count": None, "upper": None})
    folder = write_run(tmp_path / "run", numbered(certificates))
    shutil.copy(CASES / "refused" / certificate["model"]["file"], folder)
    agree_on_run(folder)


def test_a_tree_of_great_depth_is_read_by_both(tmp_path: Path) -> None:
    """90,000 nodes below each other are read; 110,000 are refused. Neither program runs out of its stack."""
    certificate = read("lower-only")
    for depth, code in ((90_000, 0), (110_000, 4)):
        slopes = bytes([8, 1]) + leb128(2) + bytes([1, 0, 64])
        tree = base64.b64encode(slopes * depth + base64.b64decode(certificate["lower"]["tree"])).decode()
        bring_files(certificate, tmp_path)
        (tmp_path / "deep.json").write_bytes(canonical(put(certificate, ("lower", "tree"), tree)))
        assert agree_on_file(tmp_path / "deep.json") == code


# ---- changed models and folders ------------------------------------------------------------------------------------


def test_the_checkers_agree_on_changed_models(tmp_path: Path) -> None:
    """Bytes of the ONNX file are others, gone or cut off; the certificate is bound to the new file and its network."""
    source = random.Random(5)
    codes: Counter[int] = Counter()
    for number in range(50):
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
        (folder / "case.json").write_bytes(canonical(with_networks([certificate], folder)[0]))
        codes[agree_on_file(folder / "case.json")] += 1
    assert codes[0] > 3
    assert codes[2] > 12


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
