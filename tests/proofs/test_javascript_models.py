"""check.js on random networks of all operators: it agrees with onnxruntime on sentences, with check.py on proofs.

Networks are ONNX files put together at random, a node at a time; nodes that onnxruntime does not take are left out.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from javascript_networks import (
    Layer,
    Statement,
    Text,
    canonical,
    certificate,
    claim,
    layers_of,
    lowered,
    one_by_one,
    random_text,
    sha256,
    with_networks,
    write_certificates,
)  # fmt: skip
from tree_bytes import leb128, mask, table

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


Inputs = dict[str, list[Any]]  # by name, a role and a length


class Growing:
    """A graph that grows: each step adds a node on a value, if onnxruntime takes it and the result is small."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.operators: list[str] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.inputs: Inputs = {"tokens": ["words", POSITIONS]}
        # A few bits each, so that sums come out even now and then.
        table = self.numbers((WORDS, WIDTH))
        self.values = ["embedded"]
        if source.random() < 0.5:
            self.nodes.append(onnx.helper.make_node("Gather", [table, "tokens"], ["embedded"]))
        else:
            # The text is read from two inputs, and what a third, of constants, says does not count.
            first = source.randint(1, POSITIONS - 1)
            self.inputs = {
                "start": ["words", first], "mask": ["constant", POSITIONS], "rest": ["words", POSITIONS - first],
            }  # fmt: skip
            self.nodes.append(onnx.helper.make_node("Concat", ["start", "rest"], ["tokens"], axis=1))
            self.nodes.append(onnx.helper.make_node("Gather", [table, "tokens"], ["looked up"]))
            mask = self.on_constants("Cast", "mask", to=onnx.TensorProto.FLOAT)
            mask = self.on_constants("Unsqueeze", mask, self.integers([2]))
            self.nodes.append(onnx.helper.make_node("Mul", ["looked up", mask], ["embedded"]))
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
            self.nodes, "g",
            [info(name, onnx.TensorProto.INT64, [1, length]) for name, (_, length) in self.inputs.items()],
            [info(output, onnx.TensorProto.FLOAT, None)], self.initializers,
        )  # fmt: skip
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
        return bytes(model.SerializeToString())

    def originals(self) -> list[list[Any]]:
        """Of each input, as in a certificate: its role, and integers at random."""
        limits = {"words": WORDS, "constant": 2}
        return [
            [role, [self.source.randrange(limits[role]) for _ in range(length)]]
            for role, length in self.inputs.values()
        ]

    def add(self, operator: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> bool:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        kept = len(self.initializers)
        self.nodes.append(onnx.helper.make_node(operator, inputs, names, **attributes))
        try:
            feeds = {name: [0] * length for name, (_, length) in self.inputs.items()}
            shapes = [run(self.model(name), feeds)[0].shape for name in names]
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
                self.add(kind, [x])
            case "PRelu":
                self.add(kind, [x, self.numbers(part)])
            case "Clip":
                limits = [self.numbers(()) if source.random() < 0.8 else "" for _ in range(2)]
                self.add(kind, [x, *limits])
            case "Against":
                zeros = self.keep(np.zeros(part, np.float32))
                pair = [x, source.choice([zeros, self.numbers(part), self.numbers((2, *shape))])]
                if self.add(source.choice(["Max", "Min"]), pair[:: 1 if keep else -1]):
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
                self.add(kind, [x], **slope)
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


KINDS = [
    "Identity", "Cast", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile",
    "Split", "Gather", "Slice", "Concat", "Pad", "Add", "Sub", "Mul", "Div", "Sum", "Neg", "MatMul", "MatMul",
    "Gemm", "Gemm", "Conv", "Conv", "BatchNormalization", "ReduceSum", "ReduceMean", "AveragePool", "AveragePool",
    "GlobalAveragePool", "Relu", "Relu", "Relu", "LeakyRelu", "ReduceMax", "MaxPool", "MaxPool", "GlobalMaxPool",
    "Max", "Min", "Against", "Against", "Clip", "Clip", "PRelu", "Abs", "Where", "Where", "Range", "Computed",
    "Computed",
]  # fmt: skip


def run(model: bytes, feeds: dict[str, list[int]]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {name: np.array([tokens], np.int64) for name, tokens in feeds.items()}))


def random_network(source: random.Random) -> tuple[bytes, Growing]:
    while True:
        graph = Growing(source)
        steps = source.randint(3, 9)
        for _ in range(60):
            if len(graph.operators) >= steps:
                break
            graph.step()
        assert graph.add("Flatten", [graph.values[-1]], axis=0)
        size = graph.shapes[graph.values[-1]][1]
        # Now and then onnxruntime foretells another shape than it gives, and then does not take this.
        if graph.add("Gemm", [graph.values[-1], graph.numbers((size, 2)), graph.numbers((2,))]):
            return graph.model(graph.values[-1]), graph


def random_tree(layers: list[Layer], text: Text, source: random.Random) -> bytes:
    """One or two splits by words, slopes and joint groups for the rectifiers of the network, and leaves."""
    sizes = [len(options) for _, options in text.words]
    splits = [word for word, size in enumerate(sizes) if size > 1]
    rectifiers = [number for number, layer in enumerate(layers) if layer.kind == 3]
    leaf = source.choice([b"\1", b"\1", b"\1", b"\2"])
    kind = source.choice(["leaf", "leaf"] + ["words"] * bool(splits) + ["slopes", "slopes", "joint"] * bool(rectifiers))
    if kind == "words":
        first, second = source.choice(splits), source.choice(splits)
        node = bytes([4]) + leb128(first) + mask([0], sizes[first])
        if source.random() < 0.5 or first == second:
            return node + b"\1" + leaf
        others = mask(list(range(1, sizes[second])), sizes[second])
        return node + b"\1" + bytes([4]) + leb128(second) + others + b"\1" + leaf
    if kind == "leaf":
        return leaf
    number = source.choice(rectifiers)
    return bytes([8 if kind == "slopes" else 10, 1]) + table(number, layers[number].size, 64, source) + b"\1"


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
    folder.mkdir()
    clear: dict[int, bool] = {}
    operators: Counter[str] = Counter()
    drafts: list[dict[str, Any]] = []
    drawn = [random_network(source) for _ in range(NETWORKS)]
    originals = [graph.originals() for _, graph in drawn]
    lines = lowered([Statement(m, inputs, []) for (m, _), inputs in zip(drawn, originals, strict=True)], whole=True)
    for network, (model, graph) in enumerate(drawn):
        used = graph.operators
        operators.update(set(used))
        file = f"m{network}.onnx"
        (folder / file).write_bytes(model)
        for _ in range(3):
            inputs = graph.originals()
            feeds = {name: tokens for name, (_, tokens) in zip(graph.inputs, inputs, strict=True)}
            [[first, second]] = run(model, feeds)[0].tolist()
            if abs(first - second) > 1e-3 * (1 + abs(first) + abs(second)):
                winner = 0 if first > second else 1
                for label in (0, 1):
                    clear[len(drafts)] = label == winner
                    text = {"inputs": inputs, "words": []}
                    drafts.append(certificate(file, model, text, label, lower=claim("real", 0, b"\2")))
        # The layers of a model are the same for all its texts, but for what is computed from tokens.
        layers = [] if lines[network].startswith("none") else layers_of(bytes.fromhex(lines[network].split()[1]))
        for _ in range(6):
            label = source.randint(0, 1)
            words = random_text(graph.originals(), WORDS, source)
            level = "real" if "BatchNormalization" in used else source.choice(["real", "float32"])
            lower = claim(level, source.randint(0, 3), random_tree(layers, words, source))
            drafts.append(certificate(file, model, words.parts(), label, lower=lower))
    names = write_certificates(folder, drafts)
    number = len(names)
    javascript = verdicts("check.js", folder)
    assert {index: javascript[names[index]] for index in clear} == clear
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
    assert list(graph.inputs) == ["tokens"]
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
    text = one_by_one([[1, 2, 5], [3], [2, 4], [6]])
    (data,) = with_networks([certificate("m.onnx", model, text, 1, lower=claim("float32", 2, b"\2"))], tmp_path)
    (tmp_path / "case.json").write_bytes(canonical(data))
    assert {checker: code(checker, tmp_path / "case.json") for checker in CHECKERS} == dict.fromkeys(CHECKERS, expected)


# ---- what the format takes and what it does not, case by case -----------------------------------------------------

node = onnx.helper.make_node
TWO = [[1, 0], [2, 0]]  # rows of the table: class 0 wins, whichever of the two words stands there


@dataclass
class Case:
    """From `f`, a row of the table, nodes make the logits `z`. Lists of floats are FLOAT constants, others INT64."""

    nodes: list[Any]
    constants: dict[str, Any]
    code: int
    level: str = "real"
    rows: Any = None
    change: Any = lambda model: None
    tensors: dict[str, bytes] | None = None

    def model(self) -> bytes:
        constants = {"table": np.array(self.rows or TWO, np.float32)}
        for name, value in self.constants.items():
            array = np.array(value)
            constants[name] = array.astype(np.float32) if array.dtype == np.float64 else array
        info = onnx.helper.make_tensor_value_info
        first = [node("Gather", ["table", "tokens"], ["e"]), node("Flatten", ["e"], ["f"])]
        graph = onnx.helper.make_graph(
            first + self.nodes, "g", [info("tokens", onnx.TensorProto.INT64, [1, 1])],
            [info("z", onnx.TensorProto.FLOAT, [1, 2])],
            [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
        )  # fmt: skip
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
        data = self.change(model)
        return data if isinstance(data, bytes) else bytes(model.SerializeToString())

    def write(self, folder: Path) -> Path:
        model = self.model()
        (folder / "m.onnx").write_bytes(model)
        data = certificate("m.onnx", model, one_by_one([[0, 1]]), 0, lower=claim(self.level, 1, b"\1"))
        for name, content in (self.tensors or {}).items():
            (folder / name).write_bytes(content)
            data["model"]["tensors"].append([name, sha256(content)])
        (data,) = with_networks([data], folder)
        (folder / "case.json").write_bytes(canonical(data))
        return folder / "case.json"

    def check(self, folder: Path) -> None:
        file = self.write(folder)
        assert {checker: code(checker, file) for checker in CHECKERS} == dict.fromkeys(CHECKERS, self.code)


EYE = [[1.0, 0.0], [0.0, 1.0]]


def gemm(code: int, level: str, *, with_c: bool, **attributes: float) -> Case:
    inputs = ["f", "w", "c"] if with_c else ["f", "w"]
    constants = {"w": EYE, "c": [0.5, 0.0]} if with_c else {"w": EYE}
    return Case([node("Gemm", inputs, ["z"], **attributes)], constants, code, level)


@pytest.mark.parametrize(
    "case",
    [
        gemm(0, "float32", with_c=True), gemm(0, "float32", with_c=False, beta=2.0),
        gemm(4, "float32", with_c=True, beta=2.0), gemm(0, "real", with_c=True, beta=2.0),
        gemm(4, "float32", with_c=True, beta=0.0), gemm(4, "float32", with_c=False, alpha=2.0),
        gemm(4, "float32", with_c=True, alpha=0.5), gemm(0, "real", with_c=True, alpha=0.5),
        # It counts, though no logit is read from it.
        Case([node("Gemm", ["f", "w"], ["g"], alpha=2.0), node("Concat", ["f", "g"], ["h"], axis=1),
              node("Slice", ["h", "from", "to", "axis"], ["z"])],
             {"w": EYE, "from": [0], "to": [2], "axis": [1]}, 4, "float32"),
        # It does not count.
        Case([node("Gemm", ["f", "w"], ["g"], alpha=2.0), node("Identity", ["f"], ["z"])], {"w": EYE}, 0, "float32"),
    ],
)  # fmt: skip
def test_a_gemm_that_is_scaled_has_no_float32_level(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


def added(operator: str, *numbers: float, code: int, level: str = "float32") -> Case:
    """The operator on these numbers; what it makes is added to the logits, or selects them."""
    constants: dict[str, Any] = {f"n{place}": n for place, n in enumerate(numbers)}
    made = [node(operator, list(constants), ["made"])]
    if operator in COMPARISONS:
        made.append(node("Where", ["bit", "f", "f"], ["z"]))
        made[0].output[0] = "bit"
    else:
        made.append(node("Add", ["f", "made"], ["z"]))
    return Case(made, constants, code, level)


LEAST = 2.0**-126


@pytest.mark.parametrize(
    "case",
    [
        *(added(operator, LEAST, 0.0, code=0) for operator in COMPARISONS),
        *(added(operator, -LEAST / 2, 0.0, code=4) for operator in COMPARISONS),
        added("LessOrEqual", 0.0, 2.0**-149, code=4), added("LessOrEqual", 0.0, 2.0**-149, code=0, level="real"),
        added("Mul", LEAST, 0.0, code=0), added("Mul", LEAST / 2, 0.0, code=4),
        added("Div", LEAST, LEAST, code=0), added("Div", LEAST / 2, LEAST / 2, code=4),
        added("Div", 0.0, 3 * LEAST / 4, code=4),
        added("Max", LEAST, 1.0, code=0), added("Max", LEAST / 2, 1.0, code=4), added("Min", 1.0, -LEAST / 2, code=4),
        added("Min", 0.0, LEAST / 2, code=4), added("Sub", LEAST / 2, LEAST / 2, code=4),
        added("Add", LEAST / 2, -LEAST / 2, code=4),
        added("Clip", LEAST / 2, 1.0, code=4), added("Clip", LEAST, 1.0, 2.0, code=0),
        added("Clip", 0.0, 0.0, LEAST / 2, code=4),
        added("ReduceSum", LEAST / 2, code=4),
        # A weight is not computed from.
        Case([node("Mul", ["f", "n"], ["z"])], {"n": [1.0, LEAST / 2]}, 0, "float32"),
    ],
)  # fmt: skip
def test_constants_computed_from_numbers_that_may_be_read_as_0_have_no_float32_level(
    tmp_path: Path, case: Case
) -> None:
    case.check(tmp_path)


def large(most: float, *nodes: Any, code: int, level: str = "float32", **constants: Any) -> Case:
    return Case(list(nodes), constants, code, level, rows=[[most / 2, 0], [most, 0]])


@pytest.mark.parametrize(
    "case",
    [
        large(2.0**40, node("Mul", ["f", "n"], ["z"]), n=2.0**-4, code=0),
        large(2.0**40 + 2.0**17, node("Mul", ["f", "n"], ["z"]), n=2.0**-4, code=4),
        large(2.0**40 + 2.0**17, node("Mul", ["f", "n"], ["z"]), n=2.0**-4, code=0, level="real"),
        # With weight 0 it is no term.
        Case([node("MatMul", ["f", "w"], ["z"])], {"w": [[1.0, 0.0], [0.0, 0.0]]}, 0, "float32",
             [[1, 2**41], [2, 2**41]]),
        large(2.0**40, node("LeakyRelu", ["f"], ["z"], alpha=0.5), code=0),
        large(2.0**40 + 2.0**17, node("LeakyRelu", ["f"], ["z"], alpha=0.5), code=4),
        large(2.0**40 + 2.0**17, node("LeakyRelu", ["f"], ["z"], alpha=1.0), code=4),
        large(2.0**40 + 2.0**17, node("LeakyRelu", ["f"], ["z"], alpha=0.0), code=0),
        large(2.0**41, node("Relu", ["f"], ["z"]), code=0),
    ],
)  # fmt: skip
def test_float32_takes_no_term_above_2_to_the_40(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def selected(operator: str, *inputs: Any, code: int, **attributes: Any) -> Case:
    """The operator on these integers (or tokens); whether what it makes is above 0 selects the logits."""
    constants = {f"n{place}": n for place, n in enumerate(inputs) if not isinstance(n, str)}
    names = [n if isinstance(n, str) else f"n{place}" for place, n in enumerate(inputs)]
    nodes = [
        node(operator, names, ["made"], **attributes), node("Greater", ["made", "zero"], ["bit"]),
        node("Where", ["bit", "f", "f"], ["z"]),
    ]  # fmt: skip
    return Case(nodes, constants | {"zero": 0}, code)


@pytest.mark.parametrize(
    "case",
    [
        selected("Add", 2**31 - 2, 1, code=0), selected("Add", 2**31 - 1, 1, code=2),
        selected("Sub", 2 - 2**31, 2, code=0),
        selected("Sub", 1 - 2**31, 2, code=2), selected("Mul", 2**16, 2**15, code=2),
        selected("Mul", 2**16, -(2**15), code=0),
        selected("Div", 2**32, 2, code=2), selected("Div", 2**32, 4, code=0), selected("Max", 2**31, 0, code=2),
        selected("Max", -(2**31) - 1, 0, code=0), selected("Min", -(2**31) - 1, 0, code=2),
        selected("Min", 2**40, 0, code=0),
        selected("Clip", 2**31, 0, 5, code=2), selected("Clip", 2**31, "", 5, code=0), selected("Clip", 2**31, code=0),
        selected("ReduceSum", [2**30, 2**30], code=2, keepdims=0),
        selected("ReduceSum", [2**31, -1], code=0, keepdims=0),
        selected("Max", "tokens", 2**31, code=4), selected("Max", "tokens", 2**31 - 1, code=0),
        selected("Identity", 2**40, code=0), selected("Cast", 2**40, code=0, to=onnx.TensorProto.INT64),
        selected("Range", 2**40, 2**40 + 1, 1, code=0),
    ],
)  # fmt: skip
def test_computed_integers_stay_within_32_bits(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def windows(operator: str, code: int, **attributes: Any) -> Case:
    """Windows of one element, so every padding and dilation gives the same."""
    weights = ["w"] if operator == "Conv" else []
    empty = [name for name, value in attributes.items() if value == []]
    given = {name: value for name, value in attributes.items() if value != []}
    nodes = [
        node("Unsqueeze", ["f", "zero"], ["x"]),
        node(operator, ["x", *weights], ["y"], **({} if "kernel_shape" in empty else {"kernel_shape": [1]}), **given),
        node("Squeeze", ["y", "zero"], ["z"]),
    ]
    nodes[1].attribute.extend(onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS) for name in empty)
    return Case(nodes, {"zero": [0], "w": [[[1.0]]]}, code)


@pytest.mark.parametrize(
    "case",
    [
        windows("MaxPool", 2, auto_pad="SAME_UPPER", dilations=[2]),
        windows("MaxPool", 2, auto_pad="SAME_LOWER", dilations=[3]),
        windows("MaxPool", 0, auto_pad="SAME_UPPER", dilations=[1]),
        windows("MaxPool", 0, auto_pad="VALID", dilations=[2]),
        windows("MaxPool", 0, dilations=[2]), windows("Conv", 0, auto_pad="SAME_UPPER", dilations=[2]),
    ],
)  # fmt: skip
def test_maxpool_has_no_dilations_with_padding_that_is_found(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(
    "case",
    [
        *(windows(operator, 0, **{name: []})
          for operator in ("Conv", "MaxPool", "AveragePool") for name in ("strides", "dilations", "pads")),
        *(windows(operator, 0, strides=[], dilations=[], pads=[], auto_pad=automatic)
          for operator in ("Conv", "MaxPool", "AveragePool") for automatic in ("VALID", "SAME_UPPER", "SAME_LOWER")),
        windows("MaxPool", 0, pads=[], ceil_mode=1), windows("MaxPool", 2, pads=[0, 0], auto_pad="VALID"),
        windows("Conv", 2, kernel_shape=[]), windows("MaxPool", 2, kernel_shape=[]),
        windows("Conv", 2, strides=[1, 1]), windows("Conv", 2, pads=[0]),
        windows("GlobalMaxPool", 2, kernel_shape=[], strides=[]),
    ],
)  # fmt: skip
def test_an_empty_list_of_strides_dilations_or_pads_is_absent(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def spliced(tag: bytes, fields: bytes, place: Any, code: int, cleared: bool = False) -> Case:
    """These bytes among those of the table or of the attribute of a Dropout, where an ignored text would be."""

    def change(model: Any) -> bytes:
        message = place(model)
        if cleared:
            message.ClearField("raw_data")
        message.doc_string = "#" * (len(fields) - 2)
        data = bytes(model.SerializeToString())
        mark = tag + bytes([len(fields) - 2]) + b"#" * (len(fields) - 2)
        assert data.count(mark) == 1
        return data.replace(mark, fields)

    return Case([node("Dropout", ["f"], ["z"], ratio=0.5)], {}, code, change=change)


def in_tensor(code: int, fields: bytes, cleared: bool = False) -> Case:
    return spliced(b"\x62", fields, lambda model: model.graph.initializer[0], code, cleared)


def in_attribute(code: int, fields: bytes) -> Case:
    return spliced(b"\x6a", fields, lambda model: model.graph.node[-1].attribute[0], code)


FOUR = np.array(TWO, np.float32).tobytes()  # the numbers of the table


@pytest.mark.parametrize(
    "case",
    [
        # Tags: 22 float_data, 2a int32_data, 3a int64_data, 52 double_data, 0a dims. Beside raw_data:
        in_tensor(0, b"\x22\0" * 4), in_tensor(0, b"\x2a\0\x3a\0\x52\0\x22\0\x0a\0"),
        in_tensor(2, b"\x22\0\x22\x04" + FOUR[:4]), in_tensor(2, b"\x22\x10" + FOUR),
        *(in_tensor(2, tag + bytes([size]) + bytes(size))
          for tag in (b"\x22", b"\x52") for size in (1, 3, 5, 7, 9, 15)),
        in_tensor(2, b"\x3a\x01\0\x22\0\x22\0"), in_tensor(2, b"\x3a\x01\x80\x3a\x01\0\x22\0"),
        in_tensor(2, b"\x52\x04" + bytes(4) + b"\x52\x04" + bytes(4)),
        # In place of it:
        in_tensor(0, b"\x22\x10" + FOUR, True), in_tensor(2, b"\x22\x0f" + FOUR[:15], True),
        in_tensor(0, b"\x22\x08" + FOUR[:8] + b"\x22\0\x25" + FOUR[8:12] + b"\x52\0\x22\x04" + FOUR[12:], True),
        in_tensor(2, b"\x22\x06" + FOUR[:6] + b"\x22\x0a" + FOUR[6:], True), in_tensor(2, b"\x22\0" * 4, True),
        # Tags: 3a floats, 42 ints.
        in_attribute(0, b"\x3a\0" * 3), in_attribute(0, b"\x3a\x04" + FOUR[:4] + b"\x42\0"),
        *(in_attribute(2, b"\x3a" + bytes([size]) + bytes(size)) for size in (1, 2, 3, 5, 6, 7, 9)),
        in_attribute(2, b"\x3a\x02" + bytes(2) + b"\x3a\x02" + bytes(2)),
        in_attribute(0, b"\x42\x02\x80\0\x42\0"), in_attribute(2, b"\x42\x01\x80\x42\x01\0"),
        in_attribute(2, b"\x42\x03\0\0\x80"),
    ],
)  # fmt: skip
def test_packed_parts_hold_whole_numbers(tmp_path: Path, case: Case) -> None:
    """One without any is as if it were not there; none goes on in the next."""
    case.check(tmp_path)


def external(code: int, bound: bool = True, **entries: str) -> Case:
    """The table is in another file."""

    def change(model: Any) -> None:
        table = model.graph.initializer[0]
        table.ClearField("raw_data")
        table.data_location = onnx.TensorProto.EXTERNAL
        for key, value in entries.items():
            table.external_data.add(key=key, value=value)

    content = np.array(TWO, np.float32).tobytes()
    return Case([node("Identity", ["f"], ["z"])], {}, code, change=change, tensors={"x.bin": content} if bound else {})


@pytest.mark.parametrize(
    "case",
    [
        external(0, location="x.bin"), external(4, bound=False, location="x.bin"), external(4, location="y.bin"),
        *(external(4, location=name)
          for name in ("../x.bin", "./x.bin", "", "a/b", "x.bin ", "x.bin\0", "/", ".x", "x" * 200)),
        external(0, location="x.bin", offset="0" * 12, length="000000000016"),
        external(2, location="x.bin", offset="0" * 13), external(2, location="x.bin", length="0000000000016"),
        external(2, location="x.bin", length=""), external(2, location="x.bin", length="15"), external(2, offset="0"),
    ],
)  # fmt: skip
def test_a_location_that_is_not_bound_is_a_refusal(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ([0], 0), ([0, 2**22], 0), ([2**22 + 1, 0], 2), ([2**11, 0, 2**11], 0), ([2**12, 0, 2**11], 2),
        ([0, 2**40, 0], 2),
        ([0, 2**63 - 1], 2),
    ],
)  # fmt: skip
def test_a_tensor_without_elements_has_a_size_all_the_same(tmp_path: Path, dims: list[int], expected: int) -> None:
    def change(model: Any) -> None:
        model.graph.initializer.add(name="empty", data_type=onnx.TensorProto.FLOAT, dims=dims)

    Case([node("Identity", ["f"], ["z"])], {}, expected, change=change).check(tmp_path)


def flattened(code: int, **fields: Any) -> Case:
    """A Flatten whose attribute `axis` has other fields too."""

    def change(model: Any) -> None:
        attribute = model.graph.node[-1].attribute[0]
        attribute.MergeFrom(onnx.AttributeProto(**fields))

    return Case([node("Flatten", ["f"], ["z"], axis=1)], {}, code, change=change)


def broken_tensor(model: Any) -> bytes:
    """The bytes of a tensor that is not looked at are no message."""
    model.graph.node[-1].attribute[0].t.name = "unread"
    data = bytes(model.SerializeToString())
    assert data.count(b"\x42\6unread") == 1
    return data.replace(b"\x42\6unread", b"\xff" * 8)


def dropout(code: int, *inputs: str, **attributes: Any) -> Case:
    constants = {
        "ratio": 0.5, "no": False, "zero": 0, "nought": 0.0, "yes": True, "noes": [0, 0], "none": np.zeros(0, bool),
    }  # fmt: skip
    return Case([node("Dropout", ["f", *inputs], ["z"], **attributes)], constants, code)


def normalised(code: int, **attributes: Any) -> Case:
    ones = {name: [1.0, 1.0] for name in ("scale", "var")} | {name: [0.0, 0.0] for name in ("shift", "mean")}
    return Case([node("BatchNormalization", ["f", "scale", "shift", "mean", "var"], ["z"], **attributes)], ones, code)


@pytest.mark.parametrize(
    "case",
    [
        flattened(0, f=2.5), flattened(0, f=float("nan")), flattened(0, s=b"no number"), flattened(2, s=b"\xff"),
        flattened(0, floats=[1.0, 2.0], ints=[7]),
        flattened(0, t=onnx.TensorProto()), flattened(0, t=onnx.TensorProto(data_type=99)),
        flattened(2, type=onnx.AttributeProto.FLOAT), flattened(2, strings=[b"x"]),
        Case([node("Flatten", ["f"], ["z"], axis=1)], {}, 0, change=broken_tensor),
        dropout(0, ratio=0.5), dropout(2, ratio=1), dropout(0, seed=1), dropout(2, seed=1.0),
        dropout(2, ratio="a half"),
        dropout(0, "ratio", "no"), dropout(0, "zero", "zero"), dropout(2, "ratio", "nought"),
        dropout(2, "ratio", "yes"),
        dropout(2, "ratio", "noes"), dropout(2, "ratio", "none"),
        normalised(0, momentum=0.5), normalised(2, momentum=1), normalised(2, momentum=[0.5]),
        normalised(2, momentum=float("nan")), dropout(2, ratio=float("inf")),
    ],
)  # fmt: skip
def test_of_an_attribute_what_its_type_is_counts_and_nothing_else(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(
    ("shape", "code"), [([-1, 1, 2], 0), ([-1, -1, 2], 2), ([-1, -1, -1], 2), ([-1, 1, -1, -1], 2)]
)
def test_one_dimension_of_a_reshape_is_inferred(tmp_path: Path, shape: list[int], code: int) -> None:
    """An even number of others, -1 each, leaves the product as it is."""
    nodes = [node("Reshape", ["f", "shape"], ["g"]), node("Reshape", ["g", "logits"], ["z"])]
    Case(nodes, {"shape": shape, "logits": [1, 2]}, code).check(tmp_path)


def of_a_sequence(info: Any) -> None:
    info.type.sequence_type.elem_type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def output_of_a_sequence(model: Any) -> None:
    of_a_sequence(model.graph.output[0])


def output_of_no_message(model: Any) -> bytes:
    shape = model.graph.output[0].type.tensor_type.shape
    shape.dim[0].dim_param = "unread"
    data = bytes(model.SerializeToString())
    assert data.count(b"\x12\6unread") == 1
    return data.replace(b"\x12\6unread", b"\xff" * 8)


def initializer_is_input(kind: str, times: int) -> Any:
    def change(model: Any) -> None:
        for _ in range(times):
            info = model.graph.input.add(name="table")
            if kind == "of a sequence":
                of_a_sequence(info)
            elif kind == "of another type":
                info.type.tensor_type.elem_type = onnx.TensorProto.STRING

    return change


def twice(model: Any) -> None:
    model.graph.input.append(model.graph.input[0])


def type_twice(model: Any) -> bytes:
    info = model.graph.output[0]
    info.doc_string = "unread"
    data = bytes(model.SerializeToString())
    kind = b"\x12" + bytes([info.type.ByteSize()]) + bytes(info.type.SerializeToString())
    # A second type message in place of the text of the same length, read over by a reader that merges.
    assert data.count(b"\x1a\6unread") == 1
    assert kind in data
    return data.replace(b"\x1a\6unread", b"\x12\6" + b"\xff" * 6)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (output_of_a_sequence, 0), (output_of_no_message, 0), (type_twice, 2), (twice, 2),
        *((initializer_is_input(kind, times), 0)
          for kind in ("", "of a sequence", "of another type") for times in (1, 2)),
    ],
)  # fmt: skip
def test_of_the_output_and_of_initializers_only_names_are_looked_at(tmp_path: Path, change: Any, expected: int) -> None:
    Case([node("Identity", ["f"], ["z"])], {}, expected, change=change).check(tmp_path)


def mixed(operator: str, *inputs: str, code: int, **attributes: Any) -> Case:
    """The operator on values of several kinds, of which the first two elements are the logits."""
    constants = {
        "number": [[1.0]], "numbers": [[0.0, 0.0]], "whole": [[0]], "wholes": [[1, 0]],
        "none": np.zeros((1, 0), np.int64),
        "nothing": np.zeros((1, 0), np.float32), "bits": [[True, False]], "from": [0], "to": [2], "axis": [1],
    }  # fmt: skip
    nodes = [
        node(operator, list(inputs), ["all"], **attributes), node("Slice", ["all", "from", "to", "axis"], ["z"]),
    ]  # fmt: skip
    return Case(nodes, constants, code)


@pytest.mark.parametrize(
    "case",
    [
        mixed("Concat", "f", "number", code=0, axis=1),
        *(mixed("Concat", "f", "number", other, code=2, axis=1) for other in ("whole", "tokens", "none", "nothing")),
        *(mixed("Concat", other, "f", "number", code=2, axis=1) for other in ("whole", "tokens", "none", "nothing")),
        *(mixed("Concat", "f", other, code=2, axis=1) for other in ("whole", "tokens", "none", "nothing")),
        mixed("Concat", "whole", "tokens", code=2, axis=1), mixed("Concat", "number", "whole", code=2, axis=1),
        mixed("Where", "bits", "f", "numbers", code=0),
        *(mixed("Where", "bits", "f", other, code=2) for other in ("wholes", "tokens", "nothing", "none")),
        *(mixed("Where", "bits", other, "f", code=2) for other in ("wholes", "tokens")),
        mixed("Where", "bits", "numbers", "wholes", code=2),
        *(mixed(operator, "f", "numbers", "numbers", code=0) for operator in ("Max", "Sum")),
        *(
            mixed(operator, *inputs, code=2)
            for operator in ("Max", "Min", "Sum") for other in ("wholes", "tokens")
            for inputs in (("f", "numbers", other), (other, "f", "numbers"), ("f", other), ("numbers", other))
        ),
        mixed("Max", "f", "numbers", "nothing", code=2), mixed("Sum", "f", "nothing", code=2),
        mixed("Sum", "nothing", "f", code=2), mixed("Where", "bits", "nothing", "f", code=2),
        mixed("Concat", "f", "nothing", "number", code=2, axis=1), mixed("Concat", "f", "nothing", code=2, axis=0),
    ],
)  # fmt: skip
def test_integers_and_tokens_are_not_among_numbers_and_a_variable_has_elements(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def test_time_is_looked_at_while_the_network_is_read(tmp_path: Path) -> None:
    """Moving millions of elements again and again takes no multiplication, but a check ends all the same."""
    turns = [node("Transpose", [f"t{i}"], [f"t{i + 1}"], perm=[1, 0]) for i in range(60)]
    nodes = [
        node("Tile", ["f", "times"], ["t0"]), *turns, node("Reshape", ["t60", "shape"], ["row"]),
        node("Slice", ["row", "from", "to", "axis"], ["z"]),
    ]  # fmt: skip
    constants = {"times": [1, 2**21], "shape": [1, -1], "from": [0], "to": [2], "axis": [1]}
    file = Case(nodes, constants, 4).write(tmp_path)
    began = time.monotonic()
    command = [*CHECKERS["check.js"], "--seconds", "1", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode == 4
    assert "ran out of time" in result.stdout
    assert time.monotonic() - began < 10


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
    folder.mkdir()
    expected: list[bool] = []
    drafts = []
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
        joint = bytes([10, 1, 2, hidden, 0, values[0]]) + b"".join(bytes([1, value]) for value in values[1:])
        # One word keeps its original, or not.
        split = source.choice([None, *(word for word, options in enumerate(choices) if len(options) > 1)])
        regions = [region]
        tree = joint + b"\1"
        if split is not None:
            regions = [[s for s in region if (s[split] > 0) == side] for side in (False, True)]
            tree = joint + bytes([4, split]) + mask([0], len(choices[split])) + b"\1\1"

        def pre_activations(sentence: tuple[int, ...], weights: list[list[int]] = weights) -> list[Fraction]:
            tokens = [position[number] for position, number in zip(choices, sentence, strict=True)]  # noqa: B023
            flat = [x for token in tokens for x in words[token]]  # noqa: B023
            return [Fraction(sum(w * x for w, x in zip(row, flat, strict=True))) for row in weights]

        slopes = [Fraction(value, 64) for value in values]
        bounds = [joint_bound([pre_activations(s) for s in part], coefficients, slopes) for part in regions if part]
        for less in (0, 1):
            bias = -min(bounds) - Fraction(less, 1 if far == 2**42 else 64)
            assert Fraction(float(bias)) == bias
            numbers = {
                "words": words, "weights": weights, "bias": [0] * hidden,
                "out": [coefficients, [0] * hidden], "shift": [float(bias), 0],
            }  # fmt: skip
            file = f"m{case}_{less}.onnx"
            (folder / file).write_bytes(double_network(numbers))
            claims = {"lower": claim("real", swaps, tree)}
            drafts.append(certificate(file, (folder / file).read_bytes(), one_by_one(choices), 0, **claims))
            expected.append(less == 0)
    names = write_certificates(folder, drafts)
    for checker in CHECKERS:
        assert verdicts(checker, folder) == dict(zip(names, expected, strict=True)), checker


def double_network(numbers: dict[str, Any]) -> bytes:
    """One hidden layer, in DOUBLE; its Relu is layer 2."""
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
