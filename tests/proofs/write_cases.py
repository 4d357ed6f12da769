"""Writes the folders accepted/ and refused/: certificates that any checker of the format must judge the same way.

    python tests/proofs/write_cases.py              all of them
    python tests/proofs/write_cases.py smooth       those about smooth networks only
    python tests/proofs/write_cases.py heights      those about what counts swaps only

Each folder holds models, certificates, and `refused/reasons.tsv` (file, what the refusal says).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))

import proof_cases as made  # noqa: E402
import smooth_certificates  # noqa: E402
from tree_bytes import leb128  # noqa: E402

from swapproof.proofs import check  # noqa: E402
from swapproof.proofs.writing import certificate as c  # noqa: E402

Json = dict[str, Any]
# What exactly goes wrong in a proof of something else depends on the proof.
ANOTHER = " "


def decides(tree: c.Node, rule: type) -> bool:
    """Whether some node of this kind has a linear leaf below it."""
    waiting, found = [(tree, False)], False
    while waiting:
        node, under = waiting.pop()
        under = under or isinstance(node, rule)
        found = found or (under and isinstance(node, c.Linear))
        waiting += [(getattr(node, side), under) for side in ("left", "right", "inner") if hasattr(node, side)]
    return found


def rich(
    kind: Callable[[made.Maker, int], bytes], level: c.Level, wanted: int, rule: type | None = None
) -> c.Statement:
    """The first seed whose proof has `wanted` bytes or more, this kind of node, and a minimum of 2 or 3."""
    for seed in range(10_000):
        case = made.make_case(kind, seed, most=4)
        least, sentence = made.min_swaps(case)
        if least not in (2, 3):
            continue
        tree = made.Prover(case, least - 1, level, random.Random(seed), small=2).prove()
        if tree is None or len(c.encode_tree(tree, list(map(len, case.choices)), case.rivals)) < wanted:
            continue
        if rule is not None and not decides(tree, rule):
            continue
        made_of = made.statement(
            case,
            lower=c.Lower(least - 1, level, tree),
            upper=c.Upper(made.witness(case, sentence), ("real", "replay")),
        )
        MODELS[made_of.model.sha256] = case.data
        return made_of
    raise SystemExit(f"no seed gives a proof of {wanted} bytes for {kind.__name__}")


MODELS: dict[str, bytes] = {}


def named(statement: c.Statement, name: str, number: int) -> tuple[bytes, bytes]:
    """(certificate, model) with the model file called `name`.onnx."""
    from dataclasses import replace

    model = c.File(f"{name}.onnx", statement.model.sha256)
    return c.write_certificate(replace(statement, id=number, model=model)), MODELS[statement.model.sha256]


def counted(kind: Callable[[made.Maker, int], bytes], level: c.Level) -> c.Statement:
    """The first seed whose count has robust, broken and open sentences, in leaves of every kind."""
    for seed in range(10_000):
        case = made.make_case(kind, seed, most=4)
        prover = made.Prover(case, 4, level, random.Random(seed), counting=True)
        tree, robust, broken = prover.count(prover.tree.root)
        total = prover.tree.sentences(prover.tree.root).count()
        held = set(c.encode_tree(tree, prover.sizes, case.rivals))
        if robust and broken and robust + broken < total and {1, 2, 3, 4, 16} <= held:
            MODELS[hashlib.sha256(case.data).hexdigest()] = case.data
            return made.statement(case, count=c.Count(4, level, tree, robust, broken, total))
    raise SystemExit(f"no seed gives a count for {kind.__name__}")


def with_count(value: Json, part: Json, tree: bytes) -> bytes:
    return canonical({**value, "count": {**part, "tree": base64.b64encode(tree).decode()}})


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def tree_of(value: Json, part: str = "lower") -> bytes:
    return base64.b64decode(value[part]["tree"])


def with_tree(value: Json, tree: bytes, part: str = "lower") -> Json:
    return {**value, part: {**value[part], "tree": base64.b64encode(tree).decode()}}


def accepted() -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for number, kind in enumerate(made.KINDS):
        level: c.Level = "real" if kind.__name__ in made.REAL else "float32"
        wanted = 1 if kind.__name__ == "straight" else 12
        data, model = named(rich(kind, level, wanted), kind.__name__, number)
        files[f"{kind.__name__}.json"], files[f"{kind.__name__}.onnx"] = data, model
    for number, rule in enumerate((c.Words, c.Rivals, c.Slopes, c.Joint), 100):
        name = f"with-{rule.__name__.lower()}"
        data, model = named(rich(made.KINDS[number % 2], "float32", 8, rule), name, number)
        files[f"{name}.json"], files[f"{name}.onnx"] = data, model
    base = json.loads(files["paper.json"])
    tokens = choices_of(base)
    nothing = {**base, "lower": None, "count": None}
    files["witness-only.json"] = canonical(nothing)
    files["lower-only.json"] = canonical({**base, "upper": None})
    weaker = with_tree(base, b"\2")
    files["enumerated.json"] = canonical(weaker)
    files["zero-swaps.json"] = canonical({**with_tree(base, b"\2"), "lower": {**weaker["lower"], "swaps": 0}})
    total = sum(1 for _ in made.sentences(tokens, 4))
    part = {**base["lower"], "swaps": 4, "total": str(total), "robust": "0", "broken": "0"}
    files["all-open.json"] = with_count(base, part, b"\3")
    for number, kind in enumerate((made.paper, made.residual, made.algebra), 200):
        data, model = named(counted(kind, "float32" if number == 201 else "real"), f"count-{kind.__name__}", number)
        files[f"count-{kind.__name__}.json"], files[f"count-{kind.__name__}.onnx"] = data, model
    # One position never moves: with the others fixed too, the text is unbreakable.
    fixed = [options[:1] for options in tokens]
    still = {**base, **spelt(fixed), "upper": None}
    files["unbreakable.json"] = canonical(with_tree(still, b"\1"))
    # Where more words are forced than may be swapped, no sentence is: none is open, and none broken.
    files["count-empty-region.json"] = empty_region(base, part, "0")
    value, files["joint-none.onnx"] = stable()
    files["joint-none.json"] = canonical(with_tree(value, tree_of(value) + bytes([10, 0, 1])))
    files.update(external(files["bag.onnx"], json.loads(files["bag.json"])))
    return files


def choices_of(value: Json) -> list[list[int]]:
    """Where a word stands at every position, their integers."""
    return [[option[0] for option in options] for _, options in value["words"]]


def spelt(choices: Sequence[Sequence[int]]) -> Json:
    """A word at every position of one input."""
    words = [[position, [[token] for token in options]] for position, options in enumerate(choices)]
    return {"inputs": [["words", [options[0] for options in choices]]], "words": words}


def empty_region(base: Json, part: Json, broken: str) -> bytes:
    """A count of sentences with at most one swap, with a broken leaf where two words are forced."""
    tokens = choices_of(base)
    first, second = [p for p, options in enumerate(tokens) if len(options) > 1][:2]
    total = sum(1 for _ in made.sentences(tokens, 1))
    tree = bytes([4, first, 1, 3, 4, second, 1, 3, 16, base["rivals"][0]])
    one = {**part, "swaps": 1, "total": str(total), "broken": broken}
    return with_count({**base, "lower": None, "upper": None}, one, tree)


def rectifiers_of(model: bytes, length: int) -> list[tuple[int, check.Rectifier]]:
    """With the indices of their layers."""
    layers = enumerate(made.network_of(model, length).layers)
    return [(index, layer) for index, layer in layers if isinstance(layer, check.Rectifier)]


def external(model: bytes, base: Json) -> dict[str, bytes]:
    """The same model with its tensors in a file beside it, and a vocabulary."""
    loaded = onnx.load_from_string(model)
    blob = b""
    for tensor in loaded.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        data = onnx.numpy_helper.to_array(tensor).tobytes()
        tensor.ClearField("raw_data")
        entries = {"location": "apart.bin", "offset": str(len(blob)), "length": str(len(data))}
        for key, item in entries.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, item
        tensor.data_location = onnx.TensorProto.EXTERNAL
        blob += data
    packed = loaded.SerializeToString()
    words = b'["<pad>","a","b","c","d","e","f"]'

    def digest(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    value = {
        **base,
        "model": {"file": "apart.onnx", "sha256": digest(packed), "tensors": [["apart.bin", digest(blob)]]},
        "vocabulary": {"file": "words.json.txt", "sha256": digest(words)},
    }
    return {"apart.onnx": packed, "apart.bin": blob, "words.json.txt": words, "external.json": canonical(value)}


def refused(good: dict[str, bytes]) -> dict[str, tuple[bytes, str]]:
    """File -> (content, a part of the reason)."""
    text = good["paper.json"].decode()
    base: Json = json.loads(text)
    tree = tree_of(base)
    tokens = choices_of(base)
    wide: Json = json.loads(good["external.json"])
    bad: dict[str, tuple[bytes, str]] = {}

    def put(name: str, content: object, reason: str) -> None:
        data = content if isinstance(content, bytes) else canonical(content)
        bad[f"{name}.json"] = (data, reason)

    def lower(**news: object) -> Json:
        return {**base, "lower": {**base["lower"], **news}}

    def upper(**news: object) -> Json:
        return {**base, "upper": {**base["upper"], **news}}

    def choices(value: list[Any]) -> Json:
        return {**base, **spelt(value)}

    def words(*value: Any) -> Json:
        return {**base, "words": list(value)}

    def inputs(*value: Any) -> Json:
        return {**base, "inputs": list(value)}

    # Canonical form.
    put("true-for-one", text.replace('"version":2', '"version":true').encode(), "version is True, not 2")
    put("fraction", text.replace('"version":2', '"version":2.0').encode(), "version is 2.0, not 2")
    put("infinite", text.replace('"version":2', '"version":2e999').encode(), "not in canonical form")
    put("not-a-number", text.replace('"version":2', '"version":NaN').encode(), "version is nan, not 2")
    put("minus-zero", text.replace('"id":0', '"id":-0').encode(), "canonical")
    put("duplicate-key", text.replace('"id":0', '"id":0,"id":0').encode(), "canonical")
    put("white-space", text.replace('"id":0', '"id": 0').encode(), "canonical")
    put("last-newline", (text + "\n").encode(), "canonical")
    put("unordered-keys", json.dumps(dict(reversed(base.items())), separators=(",", ":")).encode(), "canonical")
    put("escaped", text.replace("swapproof", "\\u0073wapproof").encode(), "canonical")
    put("deep", b"[" * 20_000 + b"]" * 20_000, "nested deeply")
    put("unbalanced", b"]" + text.encode(), "not JSON")
    put("many-digits", text.replace('"id":0', '"id":' + "9" * 10_000).encode(), "a number of thousands of digits")
    put("not-ascii", text.replace("swapproof", "swäpproof").encode(), "not ASCII")
    put("not-utf8", text.encode().replace(b"swapproof", b"sw\xffpproof"), "not ASCII")
    put("gzip", gzip.compress(text.encode(), mtime=0), "not ASCII")
    put("cut-short", text.encode()[:-1], "not JSON")
    put("empty-file", b"", "not JSON")
    put("array", b"[]", "must have exactly the keys")
    put("strange-character", {**base, "text": "a<b"}, "text is 'a<b', not as it should be")
    # The statement.
    put("other-format", {**base, "format": "swapproof  certificate"}, "not swapproof certificate")
    put("version-one", {**base, "version": 1}, "version is 1, not 2")
    put("version-three", {**base, "version": 3}, "version is 3, not 2")
    put("key-missing", {k: v for k, v in base.items() if k != "text"}, "must have exactly the keys")
    put("key-more", {**base, "extra": 1}, "must have exactly the keys")
    put("claims-nothing", {**base, "lower": None, "upper": None}, "claims nothing")
    put("hash-of-model", {**base, "model": {**base["model"], "sha256": "0" * 64}}, "another model")
    put("model-swapped", {**base, "model": {**base["model"], "file": "bag.onnx"}}, "another model")
    put("path-in-name", {**base, "model": {**base["model"], "file": "../paper.onnx"}}, "not as it should be")
    put("tensors-more", {**base, "model": {**base["model"], "tensors": [["bag.onnx", "0" * 64]]}}, "external tensors")
    tensors = wide["model"]["tensors"]
    put(
        "tensor-swapped",
        {**wide, "model": {**wide["model"], "tensors": [[tensors[0][0], "1" * 64]]}},
        "external tensors",
    )
    put("vocabulary-swapped", {**wide, "vocabulary": {"file": "apart.bin", "sha256": "2" * 64}}, "another vocabulary")
    put("upper-case-hash", {**base, "text": base["text"].upper()}, "not as it should be")
    put("hash-of-network", {**base, "network": "0" * 64}, "another network")
    other = made.network_sha256(good["bag.onnx"], (c.Input("words", (0,) * 4),), ())
    put("network-of-another-model", {**base, "network": other}, "another network")
    put("another-text", choices(tokens[1:] + tokens[:1]), ANOTHER)
    first, *rest = base["words"]
    put("no-choices", words([0, []], *rest), "without options")
    put("no-integers", words([0, [[]]], *rest), "without integers")
    put("token-twice", words([0, [first[1][0]] * 2], *rest), "lists an option twice")
    put("token-beyond", choices([[7], *tokens[1:]]), "beyond the embedding")
    put("option-beyond", words([0, [first[1][0], [7]]], *rest), "beyond the embedding")
    put("token-negative", choices([[-1], *tokens[1:]]), "inputs is -1, not an integer")
    put("position-missing", choices(tokens[1:]), "reads 4 tokens")
    original = base["inputs"][0][1]
    put("option-too-long", words([0, [original[:1], [1, 2]]], *rest), "differ in length")
    put("option-without-original", words([0, [[6 - original[0]]]], *rest), "not what its input says")
    put("words-overlap", words([0, [original[:2]]], *rest), "overlap")
    put("words-unordered", words(*reversed(base["words"])), "do not ascend")
    put("words-twice", words(first, *base["words"]), "do not ascend")
    put("word-beyond", words(*base["words"], [4, [[0]]]), "beyond the text")
    put("word-beyond-the-end", words(*base["words"][:-1], [3, [[original[3], 0]]]), "beyond the text")
    put(
        "word-over-two-inputs",
        {**inputs(["words", original[:1]], ["words", original[1:]]), "words": [[0, [original[:2]]]]},
        "over two inputs",
    )
    put(
        "word-in-a-constant", {**inputs(["words", original], ["constant", [1]]), "words": [[4, [[1], [0]]]]}, "constant"
    )
    put("input-empty", inputs(["words", original], ["constant", []]), "without positions")
    put("no-inputs", {**inputs(), "words": []}, "no input holds words")
    put("no-input-of-words", {**inputs(["constant", original]), "words": []}, "no input holds words")
    put("input-more", inputs(["words", original], ["constant", [1]]), "the model has 1 inputs")
    put("role-unknown", inputs(["tokens", original]), "not as it should be")
    put("label-changed", {**base, "label": 1 - base["label"], "rivals": [base["label"]]}, ANOTHER)
    put("label-beyond", {**base, "label": 9}, "label and rivals must be")
    put("rival-is-label", {**base, "rivals": [base["label"]]}, "impossible rivals")
    put("no-rivals", {**base, "rivals": []}, "impossible rivals")
    put("rivals-repeated", {**base, "rivals": base["rivals"] * 2}, "impossible rivals")
    put("id-negative", {**base, "id": -1}, "id is -1, not an integer from 0")
    # Claims.
    k = base["lower"]["swaps"]
    put("stronger-claim", {**lower(swaps=k + 1), "upper": None}, ANOTHER)
    put("contradiction", lower(swaps=k + 1), ANOTHER)
    put("swaps-negative", lower(swaps=-1), "not an integer from 0")
    put("swaps-as-text", lower(swaps=str(k)), "not an integer from 0")
    put("level-replay", lower(level="replay"), "level is 'replay', not as it should be")
    put("other-recipe", lower(recipe="linear-1"), "recipe is 'linear-1', not as it should be")
    swapped = base["upper"]["swaps"][0][0]
    put("witness-not-an-option", upper(swaps=[[swapped, len(tokens[swapped])]]), "no swap")
    put("witness-original", upper(swaps=[[swapped, 0]]), "no swap")
    put("witness-beyond", upper(swaps=[[4, 1]]), "words of the text")
    put("witness-unordered", upper(swaps=list(reversed(base["upper"]["swaps"]))), "must ascend")
    put("witness-shorter", {**upper(swaps=base["upper"]["swaps"][:1]), "lower": None}, "changes nothing")
    put("witness-empty", {**upper(swaps=[]), "lower": None}, "changes nothing")
    replayed = upper(swaps=base["upper"]["swaps"][:1], levels=["replay"])
    put("upper-below-lower", replayed, "contradict each other")
    put("levels-unordered", upper(levels=["replay", "real"]), "impossible levels")
    put("levels-empty", upper(levels=[]), "impossible levels")
    put("levels-nested", upper(levels=[["real"]]), "levels is ['real'], not as it should be")
    # The tree.
    put("tree-empty", with_tree(base, b""), "ends too early")
    put("tree-cut", with_tree(base, tree[:-1]), "ends too early")
    put("tree-more", with_tree(base, tree + b"\1"), "after the end")
    put("tree-leaf-twice", with_tree(base, tree[:-1] + tree[-1:] * 2), "after the end")
    put("tree-open-leaf", with_tree(base, b"\3"), "open leaf")
    put("tree-one-linear-leaf", with_tree(base, b"\1"), "does not hold")
    for number, name in ((0, "empty"), (5, "phase"), (6, "budget"), (9, "betas")):
        put(f"tree-byte-of-{name}", with_tree(base, bytes([number, 1, 1, 1, 2, 2])), "not in version 2")
    put("tree-reserved-byte", with_tree(base, b"\x11"), "not in version 2")
    put("tree-broken-leaf", with_tree(base, b"\x10\1"), "broken leaf")
    put("tree-unknown-byte", with_tree(base, b"\xff"), "not in version 2")
    put("tree-not-base64", lower(tree="*" * 4), "tree is '****', not as it should be")
    put("tree-base64-unpadded", lower(tree="AQ"), "not base64")
    put("tree-base64-not-canonical", lower(tree="AR=="), "not canonical base64")
    put("tree-word-beyond", with_tree(base, b"\4\x04\1\2\2"), "nothing to split")
    put("tree-word-huge", with_tree(base, b"\4\xff\xff\xff\xff\x07\1\2\2"), "nothing to split")
    put("tree-number-too-large", with_tree(base, b"\4\xff\xff\xff\xff\x08\1\2\2"), "not minimal or too large")
    put("tree-number-not-minimal", with_tree(base, b"\4\x80\x00\1\2\2"), "not minimal or too large")
    put("tree-number-endless", with_tree(base, b"\4" + b"\xff" * 9), "too large")
    free = next(p for p, options in enumerate(tokens) if len(options) > 1)
    size = len(tokens[free])
    everything = (1 << size) - 1
    for name, mask, reason in (
        ("nothing", 0, "splits nothing"),
        ("everything", everything, "splits nothing"),
        ("more", everything + 1, "beyond its options"),
    ):
        put(f"tree-mask-{name}", with_tree(base, bytes([4, free, mask, 2, 2])), reason)
    put("tree-split-twice", with_tree(base, bytes([4, free, 1, 4, free, 1, 2, 2, 2])), "splits nothing")
    put("tree-outside-subset", with_tree(base, bytes([4, free, 1, 4, free, 2, 2, 2, 2])), "splits nothing")
    wide_one = max(range(4), key=lambda p: len(tokens[p]))
    rest = bytes([4, wide_one, 1, 2, 4, wide_one, 3, 2, 2])
    put("tree-mask-wider-than-subset", with_tree(base, rest), "splits nothing")
    ((relu, hidden),) = rectifiers_of(good["paper.onnx"], 4)
    put("tree-slopes-elsewhere", with_tree(base, bytes([8, 1, relu + 1, 1, 0, 64, 2])), "not a rectifier")
    put("tree-slopes-nowhere", with_tree(base, bytes([8, 1, 99, 1, 0, 64, 2])), "not a rectifier")
    put("tree-slopes-twice", with_tree(base, bytes([8, 2, relu, 1, 0, 64, relu, 1, 1, 64, 2])), "out of order")
    put("tree-slopes-repeat", with_tree(base, bytes([8, 1, relu, 2, 0, 64, 0, 64, 2])), "must ascend")
    put("tree-slopes-none", with_tree(base, bytes([8, 1, relu, 0, 2])), "0 elements")
    put("tree-joint-twice", with_tree(base, bytes([10, 2, relu, 1, 0, 1, relu, 1, 0, 1, 2])), "two joint groups")
    put("tree-joint-beyond", with_tree(base, bytes([10, 1, relu, 1, hidden.size, 1, 2])), "out of range")
    deep: Json = json.loads(good["two_layers.json"])
    last, _ = rectifiers_of(good["two_layers.onnx"], 4)[-1]
    put("tree-joint-of-a-later-layer", with_tree(deep, bytes([10, 1, last, 1, 0, 1, 2])), "affine in the words")
    nine = bytes([10, 1, relu, 9, *[0, 1] * 9, 2])
    put("tree-joint-of-nine", with_tree(base, nine), "9 elements")
    put("tree-rivals-all", with_tree(base, bytes([7, 1, 2, 2])), "splits nothing")
    put("tree-slopes-empty", with_tree(base, bytes([8, 0, 2])), "empty table")
    put("tree-slope-above-one", with_tree(base, bytes([8, 1, relu, 1, 0, 65, 2])), "out of range")
    put("tree-slope-beyond", with_tree(base, bytes([8, 1, relu, 1, 5, 0, 2])), "out of range")
    put("tree-endless-slopes", with_tree(base, bytes([8, 1, relu, 1, 0, 1]) * 30), "ends too early")
    # What a model computes from tokens must be the same for every option.
    masked: Json = json.loads(good["masked.json"])
    unlike = [[*options, 0] if at == 0 else options for at, options in enumerate(choices_of(masked))]
    put("mask-of-a-choice", {**masked, **spelt(unlike)}, "choices of a position")
    # Counts.
    opened = json.loads(good["all-open.json"])["count"]
    real: Json = json.loads(good["count-paper.json"])
    sure: Json = json.loads(good["count-residual.json"])

    def count(value: Json, **news: object) -> Json:
        return {**value, "count": {**value["count"], **news}}

    for name, counts in (("real", real), ("float32", sure)):
        for key in ("robust", "broken", "total"):
            wrong = str(int(counts["count"][key]) + 1)
            put(f"count-{key}-{name}", count(counts, **{key: wrong}), f"{key} is another")
        for rival in counts["rivals"]:
            put(f"count-broken-{rival}-{name}", with_tree(counts, bytes([16, rival]), "count"), "does not hold")
        put(f"count-broken-label-{name}", with_tree(counts, bytes([16, counts["label"]]), "count"), "no rival")
        put(f"count-broken-cut-{name}", with_tree(counts, b"\x10", "count"), "ends too early")
        put(f"count-robust-{name}", with_tree(counts, b"\1", "count"), "does not hold")
    bad["count-empty-region.json"] = empty_region(base, opened, "1"), "broken is another"
    put("count-number", {**base, "count": {**opened, "total": int(opened["total"])}}, "not as it should be")
    put("count-leading-zero", {**base, "count": {**opened, "robust": "00"}}, "not as it should be")
    put("count-key-missing", {**base, "count": {k: v for k, v in opened.items() if k != "broken"}}, "exactly the keys")
    put("count-adds-nothing", {**base, "count": {**opened, "swaps": k}}, "adds nothing")
    several: Json = json.loads(good["with-rivals.json"])
    every = {**opened, "total": str(sum(1 for _ in made.sentences(choices_of(several), 4)))}
    for name, under in (
        ("open-under-rivals", bytes([7, 1, 3, 3])),
        ("broken-under-rivals", bytes([7, 1, 16, several["rivals"][0], 3])),
        ("enumerate-under-rivals", bytes([7, 1, 2, 2])),
    ):
        reason = "not safe" if name.startswith("enumerate") else f"{name.split('-')[0]} leaf"
        put(f"count-{name}", with_tree({**several, "count": every, "lower": None}, under, "count"), reason)
    for name, (changed, reason) in outside(good["paper.onnx"]).items():
        bound = {"file": f"{name}.onnx", "sha256": hashlib.sha256(changed).hexdigest(), "tensors": []}
        put(name, {**base, "model": bound}, reason)
        bad[f"{name}.onnx"] = (changed, "")
    many, model = many_choices()
    for name, (value, reason) in many.items():
        put(name, value, reason)
    bad["many.onnx"] = (model, "")
    for name, (value, changed, reason) in rounding().items():
        put(name, value, reason)
        bad[f"{name}.onnx"] = (changed, "")
    value, bad_model = repeated()
    put("joint-repeated", with_tree(value, tree_of(value) + b"\1"), "margin -1000/1000")
    bad["joint-repeated.onnx"] = (bad_model, "")
    value = json.loads(good["joint-none.json"])
    put("joint-of-stable", with_tree(value, tree_of(value)[:-3] + b"\1"), "margin -3000/1000")
    return bad


def outside(good: bytes) -> dict[str, tuple[bytes, str]]:
    """Models that are outside the format by one thing each, and what a checker says."""
    found: dict[str, tuple[bytes, str]] = {}

    def dropout(model: Any) -> Any:
        """The Relu followed by a Dropout with all three inputs."""
        last = model.graph.node.pop()
        relu = next(node for node in model.graph.node if node.op_type == "Relu")
        kept = onnx.helper.make_node("Dropout", [relu.output[0], "", "training"], ["kept"])
        last.input[0] = "kept"
        model.graph.node.extend([kept, last])
        training = onnx.TensorProto(name="training", data_type=onnx.TensorProto.BOOL, raw_data=b"\0")
        model.graph.initializer.append(training)
        return model.graph.initializer[-1]

    def change(name: str, reason: str) -> Any:
        model = onnx.load_from_string(good)
        yield model
        found[name] = model.SerializeToString(), reason

    for model in change("model-boolean-of-two", "beyond its type"):
        dropout(model).raw_data = b"\2"
    for model in change("model-training", "training"):
        dropout(model).raw_data = b"\1"
    for model in change("model-two-opsets", "two opsets"):
        model.opset_import.append(model.opset_import[0])
    for model in change("model-attribute-twice", "occurs twice"):
        gemm = next(node for node in model.graph.node if node.op_type == "Gemm")
        gemm.attribute.append(gemm.attribute[0])
    for model in change("model-axes-of-rank-0", "rank 1"):
        relu = next(node for node in model.graph.node if node.op_type == "Relu")
        zero = onnx.numpy_helper.from_array(np.array(0), "zero")
        model.graph.initializer.append(zero)
        relu.CopyFrom(onnx.helper.make_node("Unsqueeze", [relu.input[0], "zero"], list(relu.output)))
    for model in change("model-no-axes", "empty list"):
        relu = next(node for node in model.graph.node if node.op_type == "Relu")
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(0, np.int64), "axes"))
        relu.CopyFrom(onnx.helper.make_node("Squeeze", [relu.input[0], "axes"], list(relu.output)))
    for model in change("model-axes-twice", "occurs twice"):
        relu = next(node for node in model.graph.node if node.op_type == "Relu")
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0, -4]), "axes"))
        relu.CopyFrom(onnx.helper.make_node("Unsqueeze", [relu.input[0], "axes"], list(relu.output)))
    for model in change("model-flag-of-two", "not 0 or 1"):
        gemm = next(node for node in model.graph.node if node.op_type == "Gemm")
        next(item for item in gemm.attribute if item.name == "transB").i = 2
    return found


def rounding() -> dict[str, tuple[Json, bytes, str]]:
    """Claims about token 0 or 1 that hold over the reals, in models that some runtime evaluates otherwise: at float32,
    and where integers wrap around or padding is disputed at any level."""
    found: dict[str, tuple[Json, bytes, str]] = {}
    tiny = 2.0**-126

    def model(name: str, reason: str, table: made.Table, then: Callable[[made.Maker, str], str]) -> None:
        m = made.Maker(random.Random(0), 1)
        out = then(m, m.call("Flatten", m.call("Gather", m.constant(np.array(table, np.float32)), "tokens")))
        data = m.model(out, 2)
        case = made.Case(data, ((0, 1),), 0, 2)
        value = json.loads(c.write_certificate(made.statement(case, lower=c.Lower(1, "float32", c.Linear()))))
        value["model"] = {"file": f"{name}.onnx", "sha256": hashlib.sha256(data).hexdigest(), "tensors": []}
        found[name] = value, data, reason

    def number(m: made.Maker, *values: float) -> str:
        return m.constant(np.array(values, np.float32))

    def against(bias: float) -> Callable[[made.Maker, str], str]:
        """The number against this one."""
        return lambda m, x: m.call("Gemm", x, m.constant(np.array([[1, 0]], np.float32)), number(m, 0, bias))

    def scaled(m: made.Maker, x: str) -> str:
        """Products of 2**-150 are 0 before alpha makes them 2**-24."""
        product = m.call("Gemm", x, m.constant(np.array([[tiny]], np.float32)), alpha=2.0**126)
        return against(2.0**-25)(m, product)

    def compared(m: made.Maker, x: str) -> str:
        above = m.call("Greater", number(m, tiny / 2, 1), number(m, 0))
        return m.call("Where", above, x, number(m, -1, 0))

    def wrapped(m: made.Maker, x: str) -> str:
        """2**16 times 2**16 is 0 in INT32."""
        many = m.call("Mul", m.constant([65536, 65536]), m.constant([65536, 65536]))
        return m.call("Where", m.call("Greater", many, m.constant([0])), x, number(m, -1, 0))

    def padded(m: made.Maker, x: str) -> str:
        line = m.call("Reshape", x, m.constant([1, 1, 5]))
        top = m.call("MaxPool", line, kernel_shape=[2], strides=[2], dilations=[2], auto_pad="SAME_LOWER")
        return m.gemm(m.call("Flatten", top), 3, 2)

    model("float32-fused-constant", "does not hold", *made.fused_constant())
    model("float32-fused-residual", "does not hold", *made.fused_residual())
    model("float32-joined-products", "does not hold", *made.joined_products())
    model("float32-scaled-product", "scales constants", [[2.0**-24], [1.25 * 2.0**-24]], scaled)
    model(
        "float32-subnormal-weight",
        "terms, their sums",
        [[2.0**127], [1.5 * 2.0**127]],
        lambda m, x: against(0.5)(m, m.call("Mul", x, number(m, 2.0**-127))),
    )
    model("float32-subnormal-compared", "below 2**-126", [[5, 0], [7, 0]], compared)
    model("integers-wrap", "beyond 32 bits", [[5, 0], [7, 0]], wrapped)
    model("padding-disputed", "dilations", [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], padded)
    return found


def many_choices() -> tuple[dict[str, tuple[Json, str]], bytes]:
    """A bag of 70 tokens, one of which (at index 40, beyond 32 bits) beats the label."""
    table = np.zeros((70, 2), np.float32)
    table[:, 0] = 1
    table[40] = (-5, 5)
    m = made.Maker(random.Random(0), 1)
    x = m.call("Flatten", m.call("Gather", m.constant(table), "tokens"))
    data = m.model(m.call("Gemm", x, m.constant(np.eye(2, dtype=np.float32))), 2)
    case = made.Case(data, (tuple(range(70)),), 0, 2)
    tree = c.Words(0, frozenset([40]), c.Linear(), c.Linear())
    value = json.loads(c.write_certificate(made.statement(case, lower=c.Lower(1, "real", tree))))
    value["model"] = {"file": "many.onnx", "sha256": hashlib.sha256(data).hexdigest(), "tensors": []}
    bit = bytes([4, 0]) + (1 << 8).to_bytes(9, "little") + b"\1\1"
    beyond = bytes([4, 0]) + (1 << 70).to_bytes(9, "little") + b"\1\1"
    return {
        "many-counterexample": (value, "does not hold"),
        "many-other-bit": (with_tree(value, bit), "does not hold"),
        "many-bit-beyond": (with_tree(value, beyond), "beyond its options"),
        "many-enumerated": (with_tree(value, b"\2"), "not safe"),
    }, data


def stable() -> tuple[Json, bytes]:
    """The margin 1 + x - relu(x), x being 1 or 5, and a joint group that takes x and relu(x) apart."""
    m = made.Maker(random.Random(0), 1)
    x = m.call("Flatten", m.call("Gather", m.constant(np.array([[1], [5]], np.float32)), "tokens"))
    both = m.call("Concat", m.call("Relu", x), x, axis=1)
    weights, bias = np.array([[-1, 0], [1, 0]], np.float32), np.array([1, 0], np.float32)
    return alone(m.model(m.call("Gemm", both, m.constant(weights), m.constant(bias)), 2), "joint-none", {0: 0})


def alone(data: bytes, name: str, group: dict[int, int]) -> tuple[Json, bytes]:
    """A certificate about two tokens and the class 0, its tree a joint group and no leaf yet."""
    (relu, _), case = rectifiers_of(data, 1)[0], made.Case(data, ((0, 1),), 0, 2)
    lower = c.Lower(1, "real", c.Joint(((relu, group),), c.Linear()))
    value = json.loads(c.write_certificate(made.statement(case, lower=lower)))
    value["model"] = {"file": f"{name}.onnx", "sha256": hashlib.sha256(data).hexdigest(), "tensors": []}
    return with_tree(value, tree_of(value)[:-1]), data


def repeated() -> tuple[Json, bytes]:
    """Two Relus of one number, 0 or 2, in one joint group: together they may take away 4 of the margin 3."""
    m = made.Maker(random.Random(0), 1)
    x = m.call("Flatten", m.call("Gather", m.constant(np.array([[0], [2]], np.float32)), "tokens"))
    hidden = m.call("Relu", m.call("Concat", x, x, axis=1))
    weights, bias = np.array([[-1, 0], [-1, 0]], np.float32), np.array([3, 0], np.float32)
    data = m.model(m.call("Gemm", hidden, m.constant(weights), m.constant(bias)), 2)
    return alone(data, "joint-repeated", {0: 0, 1: 0})


def heights() -> tuple[dict[str, bytes], dict[str, tuple[bytes, str]]]:
    """The margin 4 - max(x, 0) - max(y, 0), x and y being 0 or 4, at one swap: 4 - 4 - 4 by constants, 0 by heights;
    and with stairs max(x, 2) + max(y, 2) - 6, x and y being 4 or 0, at one swap: 2 + 2 - 6 by elements, 4 + 2 - 6.
    Those of rectifiers: `bent`."""
    models = {name: counting(name) for name in ("heights-counted", "heights-turned", "heights-later")}
    models |= {f"heights-{name}": stepped(name) for name in STEPPED}
    models |= {f"heights-{name}": bent(name) for name in BENT}
    files = {f"{name}.onnx": data for name, (data, _, _, _) in models.items()}

    def claim(name: str, tree: bytes, swaps: int = 1) -> bytes:
        data, layer, label, choices = models[name]
        case = made.Case(data, choices, label, 2)
        lower = c.Lower(swaps, "real", c.Linear())
        value = json.loads(c.write_certificate(made.statement(case, lower=lower)))
        value["model"] = {"file": f"{name}.onnx", "sha256": hashlib.sha256(data).hexdigest(), "tensors": []}
        return canonical(with_tree(value, bytes(layer if byte == 255 else byte for byte in tree)))

    both, one, short = bytes([8, 1, 255, 2, 0, 0, 1, 0, 1]), bytes([8, 1, 255, 1, 0, 0, 1]), "does not hold"
    steps = leb128(64 + 128)
    climbed = bytes([8, 1, 255, 2, 0]) + steps + b"\1" + steps
    lone = {stairs: bytes([8, 1, 255, 1, 0]) + leb128(64 + 128 * stairs) + b"\1" for stairs in (1, 2, 7, 8)}
    sloped = bytes([8, 1, 255, 2, 0, 32, 1, 32])
    bends = {value: bytes([8, 1, 255, 2, 0]) + leb128(value) + b"\1" + leb128(value) for value in (128, 320, 1088)}
    alone = {value: bytes([8, 1, 255, 1, 0]) + leb128(value) for value in (128, 193, 256, 320, 1152)}
    holding = ("counted", "stairs", "two-stairs", "in-order", "bent", "bent-stairs", "bent-windows")
    good = {
        **{f"heights-{n}.onnx": files[f"heights-{n}.onnx"] for n in holding},
        "heights-bent.json": claim("heights-bent", bends[128] + b"\1"),
        "heights-bent-most-stairs.json": claim("heights-bent-stairs", bends[1088] + b"\1"),
        "heights-bent-stairs.json": claim("heights-bent-stairs", bends[320] + b"\1"),
        "heights-bent-split.json": claim("heights-bent-stairs", bends[320] + bytes([4, 0, 1, 1, 1])),
        "heights-bent-windows.json": claim("heights-bent-windows", alone[256] + b"\1"),
        "heights-bent-below-slopes.json": claim("heights-bent-stairs", sloped + bends[320] + b"\1"),
        "heights-bent-beside-joint.json": claim(
            "heights-bent", bytes([10, 1, 255, 2, 0, 0, 1, 0]) + bends[128] + b"\1"
        ),
        "heights-counted.json": claim("heights-counted", both),
        "heights-stairs.json": claim("heights-stairs", climbed + b"\1"),
        "heights-forced-stairs.json": claim("heights-stairs", climbed + bytes([4, 0, 1, 1, 1])),
        "heights-two-stairs.json": claim("heights-two-stairs", lone[2], 2),
        "heights-more-stairs.json": claim("heights-two-stairs", lone[7], 2),
        "heights-in-order.json": claim("heights-in-order", lone[2], 2),
    }
    bad = {
        "heights-unset": (claim("heights-counted", b"\1"), short),
        "heights-of-one": (claim("heights-counted", one), short),
        "heights-of-constants": (claim("heights-counted", bytes([8, 1, 255, 2, 0, 64, 1, 64, 1])), short),
        "heights-set-back": (claim("heights-counted", both[:-1] + bytes([8, 1, 255, 1, 1, 1, 1])), short),
        "heights-of-two-swaps": (claim("heights-counted", both, 2), short),
        "heights-of-a-tie": (claim("heights-turned", both), short),
        "heights-above-one": (claim("heights-counted", bytes([8, 1, 255, 1, 0, 65, 1])), "out of range"),
        "heights-beyond": (claim("heights-counted", bytes([8, 1, 255, 1, 2, 0, 1])), "out of range"),
        "heights-joint": (claim("heights-counted", bytes([10, 1, 255, 1, 0, 0, 1])), "not a rectifier"),
        "heights-of-a-later-layer": (claim("heights-later", both), "does not count swaps"),
        "heights-without-stairs": (claim("heights-stairs", bytes([8, 1, 255, 2, 0, 64, 1, 64, 1])), short),
        "heights-stairs-of-one": (claim("heights-stairs", lone[1]), short),
        "heights-stairs-set-back": (claim("heights-stairs", climbed + bytes([8, 1, 255, 1, 1, 64, 1])), short),
        "heights-stairs-of-two-swaps": (claim("heights-stairs", climbed + b"\1", 2), short),
        "heights-stairs-of-a-tie": (claim("heights-stairs-turned", climbed + b"\1"), short),
        "heights-too-few-stairs": (claim("heights-two-stairs", lone[1], 2), short),
        "heights-out-of-order": (claim("heights-out-of-order", lone[2], 2), short),
        "heights-too-many-stairs": (claim("heights-two-stairs", lone[8], 2), "out of range"),
        "heights-bent-unset": (claim("heights-bent", b"\1"), short),
        "heights-bent-of-one": (claim("heights-bent", alone[128] + b"\1"), short),
        "heights-bent-of-constants": (claim("heights-bent", bytes([8, 1, 255, 2, 0, 192, 1, 1, 192, 1, 1])), short),
        "heights-bent-of-two-swaps": (claim("heights-bent", bends[128] + b"\1", 2), short),
        "heights-bent-of-a-tie": (claim("heights-bent-turned", bends[128] + b"\1"), short),
        "heights-bent-above-slopes": (claim("heights-bent-stairs", bends[320] + sloped + b"\1"), short),
        "heights-bent-slopes": (claim("heights-bent-stairs", sloped + b"\1"), short),
        "heights-bent-without-stairs": (claim("heights-bent-stairs", bends[128] + b"\1"), short),
        "heights-bent-stairs-of-one": (claim("heights-bent-stairs", alone[320] + b"\1"), short),
        "heights-bent-windows-unset": (claim("heights-bent-windows", alone[128] + b"\1"), short),
        "heights-bent-above-one": (claim("heights-bent", alone[193] + b"\1"), "out of range"),
        "heights-bent-too-many-stairs": (claim("heights-bent-stairs", alone[1152] + b"\1"), "out of range"),
        "heights-bent-joint": (claim("heights-bent", bytes([10, 1, 255, 1, 0, 128, 1, 1])), "out of range"),
        "heights-bent-later": (claim("heights-bent-later", bends[128] + b"\1"), "does not count swaps"),
        "heights-stairs-above-one": (
            claim("heights-stairs", bytes([8, 1, 255, 1, 0]) + leb128(65 + 128) + b"\1"),
            "out of range",
        ),
    }
    return good, {
        **{name: (data, "") for name, data in files.items()},
        **{f"{n}.json": pair for n, pair in bad.items()},
    }


Choices = tuple[tuple[int, ...], ...]
STEPPED: dict[str, Choices] = {
    "stairs": ((0, 1), (2,), (0, 1)),
    "stairs-turned": ((0, 1), (2,), (0, 1)),
    "two-stairs": ((0, 1), (3, 4), (2,)),
    "in-order": ((0, 1), (0, 4)),
    "out-of-order": ((0, 4), (0, 1)),
}


def stepped(name: str) -> tuple[bytes, int, int, Choices]:
    """Tokens stand for 4, 0, 2, 3 and 0, and the last one counts. `stairs`: the margin max(x, y) + max(z, 2) - 6.
    `two-stairs`: max(x, y, z) - 3 + the number of those that count. The others: max(x, y, 2) - 4 + twice that number;
    of equal roots the first is no stair."""
    choices = STEPPED[name]
    m = made.Maker(random.Random(0), len(choices))
    x = m.call("Gather", m.constant(np.array([[4, 0], [0, 0], [2, 0], [3, 0], [0, 1]], np.float32)), "tokens")
    numbers = m.call("Squeeze", m.call("Slice", x, *(m.constant([each]) for each in (0, 1, 2))), m.constant([2]))
    counted = m.call("Slice", m.call("ReduceSum", x, m.constant([1]), keepdims=0), *map(m.constant, ([1], [2], [1])))
    two = m.constant(np.full((1, 1), 2, np.float32))
    stairs = name.startswith("stairs")
    windows, pieces, shift, times = (
        (2, 4, -6, 0) if stairs else (1, 3, -3, 1) if name == "two-stairs" else (1, 3, -4, 2)
    )
    laid = numbers if name == "two-stairs" else m.call("Concat", numbers, two, axis=1)
    top = m.call(
        "ReduceMax", m.call("Reshape", laid, m.constant([1, windows, pieces // windows])), axes=[2], keepdims=0
    )
    label = int(name == "stairs-turned")
    weights, bias = np.zeros((windows + 1, 2), np.float32), np.zeros(2, np.float32)
    weights[:windows, label], weights[windows, label], bias[label] = 1, times, shift
    data = m.model(m.call("Gemm", m.call("Concat", top, counted, axis=1), m.constant(weights), m.constant(bias)), 2)
    layers = enumerate(made.network_of(data, len(choices)).layers)
    return data, next(index for index, layer in layers if isinstance(layer, check.Maximum)), label, choices


BENT: dict[str, Choices] = {
    **dict.fromkeys(("bent", "bent-turned", "bent-later"), ((0, 1), (0, 2), (0, 1), (0, 2))),
    "bent-stairs": ((1, 2), (0,), (1, 2), (0,)),
    "bent-windows": ((1, 2), (0,), (3, 2), (0,)),
}


def bent(name: str) -> tuple[bytes, int, int, Choices]:
    """Tokens stand for 0, 4, -4 and 2; x and y are sums of two of them each. `bent`: the margin 4 - max(x, 0) -
    max(y, 0), x and y being 0, 4 or -4, at one swap: 4 - 4 - 2 by lines, 0 by heights. `bent-stairs`: max(x, 0) +
    max(y, 0) - 4, x and y being 4 or -4: 0 by stairs. `bent-windows`: max(max(x, y, -1), 0) - 2 with x 4 or -4, y 2 or
    -4: -3 by elements, 0 by stairs. Of `turned` the classes change places; `later` has a product and rectifiers more.
    """
    m = made.Maker(random.Random(0), 4)
    x = m.call("Gather", m.constant(np.array([[0], [4], [-4], [2]], np.float32)), "tokens")
    sums = m.call("ReduceSum", m.call("Reshape", x, m.constant([1, 2, 2])), m.constant([2]), keepdims=0)
    if name == "bent-windows":
        sums = m.call("Concat", sums, m.constant(np.full((1, 1), -1, np.float32)), axis=1)
        sums = m.call("ReduceMax", sums, axes=[1], keepdims=1)
    y = m.call("Relu", sums)
    if name == "bent-later":
        y = m.call("Relu", m.call("MatMul", y, m.constant(np.array([[1, -1], [-1, 1]], np.float32))))
    above = name in ("bent", "bent-turned", "bent-later")
    weights, bias, label = (
        np.zeros((1 if name == "bent-windows" else 2, 2), np.float32),
        np.zeros(2, np.float32),
        int(name == "bent-turned"),
    )
    weights[:, label], bias[label] = -1 if above else 1, 4 if above else -2 if name == "bent-windows" else -4
    data = m.model(m.call("Gemm", y, m.constant(weights), m.constant(bias)), 2)
    layers = enumerate(made.network_of(data, 4).layers)
    return data, [index for index, layer in layers if isinstance(layer, check.Rectifier)][-1], label, BENT[name]


def counting(name: str) -> tuple[bytes, int, int, Choices]:
    """A model, the layer of its maximum, and its label. Of `turned` the classes change places, and the tie is lost; of
    `later` a product lies between rectifiers and the maximum."""
    m = made.Maker(random.Random(0), 2)
    x = m.call("Gather", m.constant(np.array([[0], [4]], np.float32)), "tokens")
    if name == "heights-later":
        x = m.call("MatMul", m.call("Relu", x), m.constant(np.array([[1]], np.float32)))
    top = m.call("ReduceMax", m.call("Concat", x, m.constant(np.zeros((1, 2, 1), np.float32)), axis=2), axes=[2])
    label = int(name == "heights-turned")
    weights, bias = np.zeros((2, 2), np.float32), np.zeros(2, np.float32)
    weights[:, label], bias[label] = -1, 4
    flat = m.call("Flatten", top)
    data = m.model(m.call("Gemm", flat, m.constant(weights), m.constant(bias)), 2)
    layers = enumerate(made.network_of(data, 2).layers)
    return data, next(index for index, layer in layers if isinstance(layer, check.Maximum)), label, ((0, 1), (0, 1))


def write_apart(prefix: str, good: dict[str, bytes], bad: dict[str, tuple[bytes, str]]) -> None:
    """Leaves all others as they are."""
    for folder in ("accepted", "refused"):
        for old in (HERE / folder).glob(f"{prefix}-*"):
            old.unlink()
    for name, data in good.items():
        (HERE / "accepted" / name).write_bytes(data)
    for name, (data, _) in bad.items():
        (HERE / "refused" / name).write_bytes(data)
    path = HERE / "refused" / "reasons.tsv"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{prefix}-")]
    lines += [f"{name}\t{reason}" for name, (_, reason) in bad.items() if reason]
    path.write_text("".join(f"{line}\n" for line in sorted(lines)))


def main() -> None:
    good = accepted()
    for folder in ("accepted", "refused"):
        (HERE / folder).mkdir(exist_ok=True)
        for old in (HERE / folder).iterdir():
            old.unlink()
    for name, data in good.items():
        (HERE / "accepted" / name).write_bytes(data)
        if name in (
            "paper.onnx",
            "bag.onnx",
            "apart.onnx",
            "apart.bin",
            "words.json.txt",
            "count-paper.onnx",
            "count-residual.onnx",
            "masked.onnx",
            "two_layers.onnx",
            "with-rivals.onnx",
            "joint-none.onnx",
        ):
            (HERE / "refused" / name).write_bytes(data)
    bad = refused(good)
    for name, (data, _) in bad.items():
        (HERE / "refused" / name).write_bytes(data)
    lines = [f"{name}\t{reason}\n" for name, (_, reason) in sorted(bad.items()) if name.endswith(".json")]
    (HERE / "refused" / "reasons.tsv").write_text("".join(lines))
    for prefix, files in APART.items():
        write_apart(prefix, *files())


APART = {"smooth": smooth_certificates.files, "heights": heights}


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in APART:
        write_apart(sys.argv[1], *APART[sys.argv[1]]())
    else:
        main()
