"""check.js on random networks of all operators: it agrees with onnxruntime on sentences, with check.py on proofs.

Networks are ONNX files put together at random, a node at a time; nodes that onnxruntime does not take are left out.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tree_bytes import leb128, table

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
np = pytest.importorskip("numpy")

ROOT = Path(__file__).parents[2]
CHECKERS = {
    "check.py": [sys.executable, "-I", "-S", str(ROOT / "proofs" / "check.py")],
    "check.js": ["node", str(ROOT / "proofs" / "check.js")],
}
NETWORKS = 50
TIMES = 60 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1
POSITIONS, WORDS, WIDTH = 4, 7, 3
SECONDS = 240
NONLINEAR = {
    "Relu", "LeakyRelu", "PRelu", "Abs", "Clip", "Max", "Min", "Against", "MaxPool", "GlobalMaxPool", "ReduceMax",
}  # fmt: skip

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


class Growing:
    """A graph that grows: each step adds a node on a value, if onnxruntime takes it and the result is small."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.operators: list[str] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.rectifiers: list[Rectifier] = []
        # A few bits each, so that sums come out even now and then.
        table = self.numbers((WORDS, WIDTH))
        self.values = ["embedded"]
        self.nodes.append(onnx.helper.make_node("Gather", [table, "tokens"], ["embedded"]))
        self.shapes["embedded"] = (1, POSITIONS, WIDTH)

    def numbers(self, shape: tuple[int, ...], least: int = -8) -> str:
        values = [
            self.source.choice([n for n in range(least, 9) if n or least < 0]) / 8 for _ in range(int(np.prod(shape)))
        ]
        return self.keep(np.array(values, np.float32).reshape(shape))

    def integers(self, values: list[int]) -> str:
        return self.keep(np.array(values, np.int64))

    def keep(self, array: Any) -> str:
        name = f"c{len(self.nodes)}_{len(self.initializers)}"
        self.initializers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def on_constants(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node whose result is a constant, or that nothing may read."""
        name = f"v{len(self.nodes)}_0"
        self.nodes.append(onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def condition(self, shape: tuple[int, ...]) -> str:
        """Zeros and ones, stored or worked out, of constants or of what all choices of a text may have in common."""
        bits = np.array([self.source.random() < 0.5 for _ in range(int(np.prod(shape)))]).reshape(shape)
        match self.source.randrange(5):
            case 0:
                return self.keep(bits)
            case 1:
                return self.on_constants("Not", self.keep(bits))
            case 2:
                comparison = self.source.choice(["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
                return self.on_constants(comparison, self.numbers(shape), self.numbers(()))
            case 3:
                places = self.on_constants("Range", *(self.keep(np.array(n)) for n in (0, 2 * bits.size, 2)))
                few = self.on_constants("Less", places, self.keep(np.array(bits.size)))
                return self.on_constants("Reshape", few, self.integers(list(shape)))
            case _:
                return self.on_constants("Reshape", self.seen("Less", WORDS // 2), self.integers([1] * len(shape)))

    def seen(self, comparison: str, word: int) -> str:
        """Is the first word of the text one of these? Only where all its choices answer alike."""
        words = self.on_constants(comparison, "tokens", self.integers([word]))
        return self.on_constants("Gather", words, self.integers([0]), axis=1)

    def model(self, output: str) -> bytes:
        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            self.nodes, "g", [info("tokens", onnx.TensorProto.INT64, [1, POSITIONS])],
            [info(output, onnx.TensorProto.FLOAT, None)], self.initializers,
        )  # fmt: skip
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
        return bytes(model.SerializeToString())

    def add(self, operator: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> bool:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        kept = len(self.initializers)
        self.nodes.append(onnx.helper.make_node(operator, inputs, names, **attributes))
        try:
            shapes = [run(self.model(name), [[0] * POSITIONS])[0].shape for name in names]
        except Exception:  # whatever onnxruntime does not take
            shapes = []
        if not shapes or any(not 1 <= int(np.prod(shape)) <= 48 or len(shape) > 5 for shape in shapes):
            self.nodes.pop()
            del self.initializers[kept:]
            return False
        if self.source.random() < 0.1:
            self.on_constants("Sin", names[0])  # leads nowhere
        self.values += names
        self.shapes |= dict(zip(names, shapes, strict=True))
        self.operators.append(operator)
        return True

    def bend(self, operator: str, inputs: list[str], **attributes: Any) -> bool:
        number = len(self.nodes)
        added = self.add(operator, inputs, **attributes)
        if added:
            size = int(np.prod(self.shapes[f"v{number}_0"]))
            self.rectifiers += [
                Rectifier(number, size, is_second) for is_second in (False, True)[: 1 + (operator == "Clip")]
            ]
        return added

    def step(self) -> None:
        source = self.source
        x = source.choice(self.values[-3:])
        shape = self.shapes[x]
        rank = len(shape)
        axis = source.randrange(rank) if rank else 0
        some = sorted(source.sample(range(rank), source.randint(1, rank))) if rank else []
        part = tuple(source.choice([1, n]) for n in shape)[source.randint(0, rank) :]
        length = shape[axis] if rank else 1
        spatial = max(rank - 2, 1)
        window: dict[str, Any] = {
            "kernel_shape": [source.randint(1, 3) for _ in range(spatial)],
            "strides": [source.randint(1, 2) for _ in range(spatial)],
        }
        padding = source.choice(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
        if padding == "NOTSET":
            window["pads"] = [source.randint(0, 1) for _ in range(2 * spatial)]
        else:
            window["auto_pad"] = padding
        dilations: dict[str, Any] = (
            {"dilations": [source.randint(1, 2) for _ in range(spatial)]} if padding == "NOTSET" else {}
        )
        ceil: dict[str, Any] = {"ceil_mode": source.randint(0, 1)} if padding == "NOTSET" else {}
        # onnxruntime takes some kernels that are larger than their input, which the format does not.
        reach = [
            (w - 1) * d + 1 for w, d in zip(window["kernel_shape"], dilations.get("dilations", [1, 1]), strict=False)
        ]
        fits = padding.startswith("SAME") or all(n >= least for n, least in zip(shape[2:], reach, strict=False))
        other = source.choice([value for value in self.values if self.shapes[value] == shape])
        axes = self.integers(some) if source.random() < 0.8 else ""
        keep = source.randint(0, 1)
        kind = source.choice(KINDS)
        if kind in NONLINEAR and sum(operator in NONLINEAR for operator in self.operators) >= 3:
            return
        match kind:
            case "Identity" | "Neg":
                self.add(kind, [x])
            case "GlobalMaxPool" | "GlobalAveragePool" if rank in (3, 4):
                self.add(kind, [x])
            case "Relu" | "Abs":
                self.bend(kind, [x])
            case "PRelu":
                self.bend(kind, [x, self.numbers(part)])
            case "Clip":
                limits = [self.numbers(()) if source.random() < 0.8 else "" for _ in range(2)]
                self.bend(kind, [x, *limits])
            case "Against":
                zeros = self.keep(np.zeros(part, np.float32))
                pair = [x, source.choice([zeros, self.numbers(part), self.numbers((2, *shape))])]
                if self.bend(source.choice(["Max", "Min"]), pair[:: 1 if keep else -1]):
                    self.operators[-1] = kind
            case "Where":
                pieces = [x, source.choice([other, self.numbers(part)])]
                self.add(kind, [self.condition(part), *pieces[:: 1 if keep else -1]])
            case "Range":
                span = source.choice([(0, length, 1), (length - 1, -1, -1), (-1, length, 2)])
                places = self.on_constants(kind, *(self.keep(np.array(n)) for n in span))
                if self.add("Gather", [x, places], axis=axis):
                    self.operators[-1] = kind
            case "Computed":
                self.computed(x, part)
            case "Cast":
                self.add(kind, [x], to=onnx.TensorProto.FLOAT)
            case "Dropout":
                self.add(kind, [x, self.keep(np.array(0.5, np.float32)), self.keep(np.array(False))])
            case "LeakyRelu":
                slope: dict[str, Any] = {"alpha": source.choice([0.0, 0.25, 0.3, 1.0])} if keep else {}
                self.bend(kind, [x], **slope)
            case "Flatten":
                self.add(kind, [x], axis=source.randint(-rank, rank))
            case "Reshape":
                sizes = [-1 if place == axis else 0 if place < axis and keep else n for place, n in enumerate(shape)]
                self.add(kind, [x, self.integers(sizes if source.random() < 0.5 else [1, -1, 2])])
            case "Squeeze":
                ones = [i for i in some if shape[i] == 1]
                self.add(kind, [x, self.integers(ones)] if keep and ones else [x])
            case "Unsqueeze":
                self.add(kind, [x, self.integers(source.choice([[0], [-1], [1, 0]]))])
            case "Transpose":
                order: dict[str, Any] = {"perm": source.sample(range(rank), rank)} if keep and rank else {}
                self.add(kind, [x], **order)
            case "Expand":
                self.add(kind, [x, self.integers([source.choice([1, n, 2]) for n in shape])])
            case "Tile":
                self.add(kind, [x, self.integers([source.choice([1, 1, 2]) for _ in shape])])
            case "Split" if length > 1:
                if keep:
                    first = source.randint(1, length - 1)
                    self.add(kind, [x, self.integers([first, length - first])], 2, axis=axis)
                else:
                    self.add(kind, [x], 2, axis=axis - rank, num_outputs=2)
            case "Gather":
                indices = np.array([source.randrange(-length, length) for _ in range(3)], np.int64)
                self.add(
                    kind, [x, self.keep(source.choice([indices, indices[0], indices[:2].reshape(1, 2)]))], axis=axis
                )
            case "Slice":
                step = source.choice([1, 1, 2, -1])
                ends = [source.choice([length, -1, 2, 2**62, -(2**62)])]
                self.add(
                    kind, [x, *(self.integers(v) for v in ([source.randint(-length, length)], ends, [axis], [step]))]
                )
            case "Concat":
                pieces = [x, other, self.numbers(shape)][: source.randint(1, 3)]
                source.shuffle(pieces)
                self.add(kind, pieces, axis=axis - rank * keep)
            case "Pad":
                pads = self.integers([source.randint(0, 1) for _ in range(2 * len(some))])
                self.add(kind, [x, pads, self.numbers(()) if keep else "", self.integers(some)], mode="constant")
            case "Add" | "Sub":
                pair = [x, source.choice([self.numbers(part), other, self.numbers((2, *shape))])]
                self.add(kind, pair[:: 1 if keep else -1])
            case "Mul":
                self.add(kind, [x, self.numbers(part)][:: 1 if keep else -1])
            case "Div":
                self.add(kind, [x, self.numbers(part, 1)])
            case "Sum" | "Max" | "Min":
                pieces = [x, other, self.numbers(part), self.numbers(shape)]
                self.add(kind, pieces[: source.randint(1, 4)])
            case "MatMul" if rank >= 2:
                batch = () if keep else shape[:-2]
                if source.random() < 0.5:
                    self.add(kind, [x, self.numbers((*batch, shape[-1], source.randint(1, 3)))])
                else:
                    self.add(kind, [self.numbers((*batch, source.randint(1, 3), shape[-2])), x])
            case "Gemm" if rank == 2:
                a, b = source.randint(0, 1), source.randint(0, 1)
                rows, inner, columns = shape[a], shape[1 - a], source.randint(1, 3)
                c = [self.numbers(source.choice([(columns,), (rows, 1), (1, columns), ()]))] if keep else []
                alpha: dict[str, Any] = {"alpha": 0.5, "beta": -1.25} if source.random() < 0.5 else {}
                self.add(
                    kind,
                    [x, self.numbers((columns, inner) if b else (inner, columns)), *c],
                    transA=a,
                    transB=b,
                    **alpha,
                )
            case "Conv" if rank in (3, 4) and shape[0] == 1 and fits:
                groups = source.choice([n for n in (1, 2, 3) if shape[1] % n == 0])
                outer = groups * source.randint(1, 2)
                kernel = self.numbers((outer, shape[1] // groups, *window["kernel_shape"]))
                bias = [self.numbers((outer,))] if keep else []
                self.add(kind, [x, kernel, *bias], group=groups, **window, **dilations)
            case "BatchNormalization" if rank >= 2:
                n = shape[1:2]
                self.add(kind, [x, self.numbers(n), self.numbers(n), self.numbers(n), self.numbers(n, 1)], epsilon=1e-3)
            case "ReduceSum":
                self.add(kind, [x, axes], keepdims=keep, noop_with_empty_axes=source.randint(0, 1))
            case "ReduceMean" | "ReduceMax":
                self.add(kind, [x, axes], keepdims=keep, noop_with_empty_axes=source.randint(0, 1))
            case "AveragePool" if rank in (3, 4) and fits:
                include = source.randint(0, 1)
                self.add(kind, [x], count_include_pad=include, **window, **({} if include else ceil))
            case "MaxPool" if rank in (3, 4) and fits:
                self.add(kind, [x], **window, **ceil, **dilations)

    def computed(self, x: str, part: tuple[int, ...]) -> None:
        """Numbers that are computed from constants, mostly whole ones, beside a variable."""
        source = self.source
        whole = [self.keep(np.array(source.sample(range(1, 9), 1), np.float32)) for _ in range(2)]
        match source.randrange(5):
            case 0:
                number = self.on_constants(source.choice(["Add", "Sub", "Mul", "Max", "Min"]), *whole)
            case 1:
                number = self.on_constants("Div", *whole)
            case 2:
                number = self.on_constants("Clip", whole[0], self.keep(np.array(2, np.float32)))
            case 3:
                number = self.on_constants("ReduceSum", self.numbers(part) if source.random() < 0.5 else whole[0])
            case _:
                bit = self.seen(source.choice(["Equal", "Greater"]), source.randrange(-1, WORDS))
                number = self.on_constants("Cast", bit, to=onnx.TensorProto.FLOAT)
        if self.add(source.choice(["Add", "Sub", "Mul"]), [x, number]):
            self.operators[-1] = "Computed"


@dataclass(frozen=True)
class Rectifier:
    """As trees name it: the second step of a Clip by the number of its node plus the number of all nodes."""

    node: int
    size: int
    is_second: bool

    def name(self, nodes: int) -> int:
        return self.node + nodes * self.is_second


KINDS = [
    "Identity", "Cast", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile",
    "Split", "Gather", "Slice", "Concat", "Pad", "Add", "Sub", "Mul", "Div", "Sum", "Neg", "MatMul", "MatMul",
    "Gemm", "Gemm", "Conv", "Conv", "BatchNormalization", "ReduceSum", "ReduceMean", "AveragePool", "AveragePool",
    "GlobalAveragePool", "Relu", "Relu", "Relu", "LeakyRelu", "ReduceMax", "MaxPool", "MaxPool", "GlobalMaxPool",
    "Max", "Min", "Against", "Against", "Clip", "Clip", "PRelu", "Abs", "Where", "Where", "Range", "Computed",
    "Computed",
]  # fmt: skip


def run(model: bytes, sentence: list[list[int]]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {"tokens": np.array(sentence, np.int64)}))


def random_network(source: random.Random) -> tuple[bytes, Growing]:
    graph = Growing(source)
    steps = source.randint(3, 9)
    for _ in range(60):
        if len(graph.operators) >= steps:
            break
        graph.step()
    last = graph.values[-1]
    assert graph.add("Flatten", [last], axis=0)
    size = graph.shapes[graph.values[-1]][1]
    assert graph.add("Gemm", [graph.values[-1], graph.numbers((size, 2)), graph.numbers((2,))])
    return graph.model(graph.values[-1]), graph


def random_tree(graph: Growing, choices: list[list[int]]) -> bytes:
    """One or two splits, by words and by the rectifiers of the network, and leaves."""
    source = graph.source
    splits = [p for p in range(POSITIONS) if len(choices[p]) > 1]
    leaf = source.choice([b"\1", b"\1", b"\1", b"\2"])
    kinds = (
        ["leaf", "leaf"] + ["words"] * bool(splits) + ["slopes", "slopes", "joint", "phase"] * bool(graph.rectifiers)
    )
    kind = source.choice(kinds)
    if kind == "words":
        return bytes([4, source.choice(splits), 1]) + b"\1" + leaf
    if kind == "leaf":
        return leaf
    rectifier = source.choice(graph.rectifiers)
    name = rectifier.name(len(graph.nodes))
    if kind == "phase":
        betas = bytes([9, 2, 1]) + table(name, rectifier.size, 12, source) if source.random() < 0.5 else b""
        return betas + b"\5" + leb128(name) + leb128(source.randrange(rectifier.size)) + leaf + leaf
    return bytes([8 if kind == "slopes" else 10, 1]) + table(name, rectifier.size, 64, source) + b"\1"


def claim(level: str, swaps: int, tree: bytes) -> dict[str, Any]:
    return {"level": level, "recipe": "linear-1", "swaps": swaps, "tree": base64.b64encode(tree).decode()}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def certificate(number: int, file: str, model: bytes, choices: list[list[int]], label: int, **claims: Any) -> bytes:
    return canonical({
        "format": "swapproof certificate", "version": 1, "id": number, "vocabulary": None, "synonyms": None,
        "model": {"file": file, "sha256": sha256(model), "tensors": []}, "text": sha256(b""),
        "space": sha256(canonical(choices)), "choices": choices, "label": label, "rivals": [1 - label],
        "lower": None, "count": None, "upper": None, **claims,
    })  # fmt: skip


def verdicts(checker: str, folder: Path) -> dict[str, bool]:
    result = subprocess.run([*CHECKERS[checker], str(folder)], capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode in (0, 4), (checker, result.stdout[-500:], result.stderr[-500:])
    lines = [line.split(":")[0] for line in result.stdout.splitlines()]
    return {line.removeprefix("refused "): not line.startswith("refused ") for line in lines if line.endswith(".json")}


@pytest.mark.parametrize("part", range(TIMES))
def test_sentences_come_out_as_in_onnxruntime_and_proofs_as_in_check_py(tmp_path: Path, part: int) -> None:
    """Networks of all operators. Where onnxruntime sees a clear winner, the exact logits have the same; a certificate
    that says otherwise is refused. Proofs by random trees, at both levels, get one verdict from both checkers."""
    source = random.Random(20 + part)
    folder = tmp_path / "run"
    (folder / "certificates").mkdir(parents=True)
    clear: dict[str, bool] = {}
    operators: Counter[str] = Counter()
    number = 0

    def write(data: bytes) -> str:
        nonlocal number
        name = f"{number:06}.json"
        (folder / "certificates" / name).write_bytes(data)
        number += 1
        return name

    for network in range(NETWORKS):
        model, graph = random_network(source)
        used = graph.operators
        operators.update(set(used))
        file = f"m{network}.onnx"
        (folder / file).write_bytes(model)
        for _ in range(3):
            choices = [[source.randrange(WORDS)] for _ in range(POSITIONS)]
            [[first, second]] = run(model, [[position[0] for position in choices]])[0].tolist()
            if abs(first - second) > 1e-3 * (1 + abs(first) + abs(second)):
                winner = 0 if first > second else 1
                for label in (0, 1):
                    lower = claim("real", 0, b"\2")
                    clear[write(certificate(number, file, model, choices, label, lower=lower))] = label == winner
        for _ in range(6):
            label = source.randint(0, 1)
            choices = [source.sample(range(WORDS), source.randint(1, 3)) for _ in range(POSITIONS)]
            level = "real" if "BatchNormalization" in used else source.choice(["real", "float32"])
            lower = claim(level, source.randint(0, 3), random_tree(graph, choices))
            write(certificate(number, file, model, choices, label, lower=lower))
    javascript = verdicts("check.js", folder)
    assert {name: javascript[name] for name in clear} == clear
    python = verdicts("check.py", folder)
    assert python == javascript
    assert part > 0 or set(operators) >= set(KINDS), set(KINDS) - set(operators)
    assert sum(javascript.values()) > number / 10
    assert sum(not accepted for accepted in javascript.values()) > number / 10


def code(checker: str, file: Path) -> int:
    return subprocess.run([*CHECKERS[checker], str(file)], capture_output=True, timeout=SECONDS).returncode


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("Equal", "tokens", 0), 0), (("Greater", "tokens", 3), 4), (("Equal", "tokens", "tokens"), 2),
        (("Equal", "tokens", 0.5), 2), (("Equal", "embedded", 0.5), 2), (("Not", "tokens"), 2), (("Not", 2), 2),
        (("Div", "tokens", 7), 0), (("Div", "tokens", 4), 4), (("Div", "tokens", 0), 4), (("Div", 1, 0), 2),
        (("Mul", "tokens", 2**62), 4), (("Mul", 2**62, 2), 2),
        (("Clip", "tokens", 9, 0), 0), (("Clip", "tokens", 1, 0), 4), (("Clip", 1, "tokens"), 2),
        (("Range", 0, 1, 1), 0), (("Range", 0, 1, 0), 2), (("ReduceSum", "tokens"), 2), (("Sin", 1), 2),
    ],
)  # fmt: skip
def test_conditions_get_the_exit_code_of_the_format(tmp_path: Path, condition: tuple[Any, ...], expected: int) -> None:
    """What Where looks at is a constant, the same for all choices of the text: else 4. What no text could mend is 2."""
    operator, *inputs = condition
    graph = Growing(random.Random(1))
    names = [
        x if isinstance(x, str) else graph.keep(np.array(x, np.float32 if isinstance(x, float) else np.int64))
        for x in inputs
    ]
    found = graph.on_constants(operator, *names)
    bit = graph.on_constants("Gather", graph.on_constants("Reshape", found, graph.integers([-1])), graph.integers([0]))
    chosen = graph.on_constants("Where", bit, "embedded", graph.on_constants("Neg", "embedded"))
    weights = graph.keep(np.array([[0, 1]] * POSITIONS * WIDTH, np.float32))
    flat = graph.on_constants("Abs", graph.on_constants("Flatten", chosen))
    model = graph.model(graph.on_constants("MatMul", flat, weights))
    (tmp_path / "m.onnx").write_bytes(model)
    choices = [[1, 2, 5], [3], [2, 4], [6]]
    lower = claim("float32", 2, b"\2")
    (tmp_path / "case.json").write_bytes(certificate(0, "m.onnx", model, choices, 1, lower=lower))
    assert {checker: code(checker, tmp_path / "case.json") for checker in CHECKERS} == dict.fromkeys(CHECKERS, expected)


# ---- one hidden layer, all joint: the border of acceptance by brute force ----------------------------------------


def sentences(choices: list[list[int]], swaps: int) -> list[tuple[int, ...]]:
    """As numbers of choices; 0 is the original."""
    every = itertools.product(*(range(len(position)) for position in choices))
    return [sentence for sentence in every if sum(number > 0 for number in sentence) <= swaps]


def joint_bound(inputs: list[list[Fraction]], coefficients: list[int], slopes: list[Fraction]) -> Fraction:
    """min over sentences of sum c a x, less T = max over sentences and patterns d of sum |c| (d - a) x, for c < 0.

    `inputs` are the pre-activations x of every sentence of the region.
    """
    weighted = list(zip(coefficients, slopes, strict=True))
    least = min(sum(c * a * x for (c, a), x in zip(weighted, xs, strict=True)) for xs in inputs)
    # The best pattern of a sentence takes the greater end for each element.
    most = max(sum(max(c * a * x, -c * (1 - a) * x) for (c, a), x in zip(weighted, xs, strict=True)) for xs in inputs)
    return Fraction(least - most)


@pytest.mark.parametrize("part", range(TIMES))
def test_a_joint_leaf_holds_from_the_exact_bound_on(tmp_path: Path, part: int) -> None:
    """Words that differ in the last bits only, so floating point cannot tell which swap or pattern is the best: with
    the bias that brute force finds a claim is proved, with the next lower one it is not; by both checkers."""
    source = random.Random(5 + part)
    folder = tmp_path / "run"
    (folder / "certificates").mkdir(parents=True)
    expected: dict[str, bool] = {}
    for case in range(20):
        width, hidden = source.randint(1, 2), source.randint(1, 8)
        far = source.choice([0, 2**8, 2**42, 2**42])
        words = [[source.choice([-far, far]) + source.randint(-3, 3) for _ in range(width)] for _ in range(WORDS)]
        weights = [[source.choice([-1, 0, 1, 2]) for _ in range(POSITIONS * width)] for _ in range(hidden)]
        coefficients = [-source.randint(1, 3) for _ in range(hidden)]
        # With slopes 0 and 1 the bias is whole, and a double.
        values = [source.choice([0, 64, 64 if far == 2**42 else source.randint(0, 64)]) for _ in range(hidden)]
        choices = [source.sample(range(WORDS), source.randint(1, 4)) for _ in range(POSITIONS)]
        swaps = source.randint(1, POSITIONS)
        region = sentences(choices, swaps)
        joint = bytes([10, 1, 3, hidden, 0, values[0]]) + b"".join(bytes([1, value]) for value in values[1:])
        # At most `bound` swaps at the first two positions, or more.
        bound = source.choice([None, 0, 1])
        regions = [region]
        if bound is not None:
            few = [sentence for sentence in region if sum(number > 0 for number in sentence[:2]) <= bound]
            regions = [few, [sentence for sentence in region if sentence not in few]]
        tree = joint + (b"\1" if bound is None else bytes([6, 2, 0, 1, bound, 1, 1]))

        def pre_activations(sentence: tuple[int, ...], weights: list[list[int]] = weights) -> list[Fraction]:
            tokens = [position[number] for position, number in zip(choices, sentence, strict=True)]  # noqa: B023
            flat = [x for token in tokens for x in words[token]]  # noqa: B023
            return [Fraction(sum(w * x for w, x in zip(row, flat, strict=True))) for row in weights]

        slopes = [Fraction(value, 64) for value in values]
        bounds = [joint_bound([pre_activations(s) for s in part], coefficients, slopes) for part in regions if part]
        for lowered in (0, 1):
            bias = -min(bounds) - Fraction(lowered, 1 if far == 2**42 else 64)
            assert Fraction(float(bias)) == bias
            numbers = {
                "words": words, "weights": weights, "bias": [0] * hidden,
                "out": [coefficients, [0] * hidden], "shift": [float(bias), 0],
            }  # fmt: skip
            file = f"m{case}_{lowered}.onnx"
            (folder / file).write_bytes(double_network(numbers))
            name = f"{len(expected):06}.json"
            data = certificate(
                len(expected), file, (folder / file).read_bytes(), choices, 0, lower=claim("real", swaps, tree)
            )
            (folder / "certificates" / name).write_bytes(data)
            expected[name] = lowered == 0
    for checker in CHECKERS:
        assert verdicts(checker, folder) == expected, checker


def double_network(numbers: dict[str, Any]) -> bytes:
    """One hidden layer, in DOUBLE; its Relu is node 3."""
    helper = onnx.helper
    nodes = [
        helper.make_node("Gather", ["words", "tokens"], ["embedded"]),
        helper.make_node("Flatten", ["embedded"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weights", "bias"], ["x"], transB=1),
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Gemm", ["y", "out", "shift"], ["logits"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("tokens", onnx.TensorProto.INT64, [1, POSITIONS])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.DOUBLE, [1, 2])],
        [onnx.numpy_helper.from_array(np.array(value, np.float64), name) for name, value in numbers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
