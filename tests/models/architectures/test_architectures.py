"""Every architecture: the exported graph answers what torch answers, whatever stands in the batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from swapproof.models.architectures.architecture_table import ARCHITECTURES, name_of
from swapproof.models.architectures.graph_writer import GraphWriter
from swapproof.models.architectures.network_shape import PAD, Body, Shape, initial_weights, logits
from swapproof.models.defences.training_rule import Defence, Setting, TrainingRule
from swapproof.models.export.trained_graph import onnx_model
from swapproof.proofs.lower import read_model

LENGTH, VOCABULARY, CLASSES = 9, 30, 3
KEYS: dict[str, list[dict[str, Any]]] = {
    "mmws": [{"hidden": (6, 5)}],
    "mean": [{"hidden": (6, 5)}],
    "cnn": [{"hidden": (5,), "filters": 8}],
    "kim": [{"embedding": 4, "filters": 3, "widths": (2, 4)}, {"embedding": 4, "filters": 4, "widths": (3,)}],
    "msr-cnn": [{"embedding": 4, "hidden": (5,), "filters": 6, "width": 2, "columns": 3}],
    "static": [
        {"embedding": 4, "vectors": "random", "hidden": (6,)},
        {"embedding": 4, "vectors": "random", "unit": False, "dynamic": False},
    ],
    **{
        recurrent: [
            {"units": 5, "embedding": 4, "pooling": "mean"},
            {"units": 5, "embedding": 4, "pooling": "max", "hidden": (6,)},
            {"units": 5, "embedding": 4, "pooling": "last", "dynamic": False},
            {"units": 1, "embedding": 3, "dynamic": False},
        ]
        for recurrent in ("lstm", "bilstm", "gru", "bigru")
    },
    "transformer": [
        {"embedding": 8, "heads": 2, "inner": 6},
        {"embedding": 8, "heads": 1, "inner": 6, "norm": "no variance", "hidden": (5,)},
        {"embedding": 6, "heads": 3, "inner": 4, "layers": 3, "positions": "none"},
        {"embedding": 8, "heads": 4, "inner": 6, "layers": 2, "dynamic": False},
        {"embedding": 8, "heads": 4, "positions": "none", "dynamic": False},
    ],
    "minilm": [
        {"embedding": 8, "heads": 2, "inner": 6, "layers": 2},
        {"embedding": 8, "heads": 4, "inner": 6, "layers": 1, "dynamic": False},
    ],
}
BODIES = {
    f"{name}-{'-'.join(map(str, keys.values()))}": ARCHITECTURES[name](**keys)
    for name, choices in KEYS.items()
    for keys in choices
}


def suited(suits: Callable[[Body], bool]) -> list[Any]:
    return [pytest.param(body, id=name) for name, body in BODIES.items() if suits(body)]


def made(body: Body, seed: int = 3) -> tuple[Shape, dict[str, Any]]:
    """Random weights, none of them zero, larger than those that training begins with."""
    import torch

    shape = Shape(body, VOCABULARY, LENGTH, CLASSES)
    generator = torch.Generator().manual_seed(seed)
    weights = initial_weights(shape, generator)
    with torch.no_grad():
        for value in weights.values():
            value += 0.3 * torch.randn(value.shape, generator=generator)
        weights["embedding"][PAD] = 0.0
    return shape, {name: value.detach() for name, value in weights.items()}


def session(shape: Shape, weights: dict[str, Any]) -> Any:
    import onnxruntime

    model = onnx_model(shape, {name: value.numpy() for name, value in weights.items()})
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def texts_of(lengths: list[int], width: int, seed: int) -> NDArray[np.int64]:
    """Random words, padding behind them."""
    generator = np.random.default_rng(seed)
    tokens = np.full((len(lengths), width), PAD, dtype=np.int64)
    for row, words in zip(tokens, lengths, strict=True):
        row[:words] = generator.integers(1, VOCABULARY, words)
    return tokens


def test_every_architecture_is_tried_here() -> None:
    assert set(KEYS) == set(ARCHITECTURES)
    for name, kind in ARCHITECTURES.items():
        assert name_of(kind()) == name
        assert all(key.name in {field.name for field in fields(kind)} for key in fields(Body))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_onnxruntime_answers_what_torch_answers(body: Body) -> None:
    """Texts of one word up to the whole length, an empty one, and padding in the middle: equal within rounding."""
    torch = pytest.importorskip("torch")
    shape, weights = made(body)
    runtime = session(shape, weights)
    tokens = texts_of([*range(LENGTH + 1)] * 3, LENGTH, 4)
    holes = np.random.default_rng(5).integers(0, 3, (20, LENGTH))
    for batch in (tokens, holes, tokens[:1], tokens[1:2]):
        with torch.no_grad():
            expected = logits(shape, weights, torch.from_numpy(batch)).numpy()
        np.testing.assert_allclose(runtime.run(None, {"tokens": batch})[0], expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(runtime.run(None, {"tokens": tokens})[0], axis=0).min() > 0.01


@pytest.mark.parametrize("body", suited(lambda body: body.knows_padding))
def test_a_batch_with_padding_answers_as_each_text_alone(body: Body) -> None:
    """Up to rounding; alone without padding where the graph takes any length, else padded to that length."""
    pytest.importorskip("torch")
    shape, weights = made(body)
    runtime = session(shape, weights)
    lengths = [1, 9, 4, 2, 7, 1]
    together = texts_of(lengths, LENGTH, 6)
    answers = runtime.run(None, {"tokens": together})[0]
    for row, words, answer in zip(together, lengths, answers, strict=True):
        alone = row[None, :words] if body.takes_any_length else row[None]
        np.testing.assert_allclose(runtime.run(None, {"tokens": alone})[0][0], answer, rtol=1e-4, atol=1e-5)
    assert runtime.get_inputs()[0].shape == ["batch", "length" if body.takes_any_length else LENGTH]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_proofs_can_read_every_architecture(body: Body) -> None:
    """Their lowering takes a text with two swaps, and padding behind it where the graph has a fixed length."""
    pytest.importorskip("torch")
    shape, weights = made(body)
    model = onnx_model(shape, {name: value.numpy() for name, value in weights.items()})
    tokens = [5, 9, 20, 7, *[PAD] * (0 if body.takes_any_length else LENGTH - 4)]
    words = [[1, [[9], [3], [4]]], [3, [[7], [8]]]]
    lowered = read_model(model.SerializeToString()).lower([["tokens", tokens]], words)
    assert [list(lookup.positions) for lookup in lowered.lookups] == [[*range(len(tokens))]]


@pytest.mark.parametrize(
    "body", suited(lambda body: type(body) is ARCHITECTURES["transformer"] and getattr(body, "norm", "") == "division")
)
def test_transformer_layers_are_torchs_own(body: Body) -> None:
    """Its encoder layer, given the same weights, answers the same."""
    torch = pytest.importorskip("torch")
    shape, weights = made(body)
    size, heads, inner = body.embedding, body.heads, body.inner  # type: ignore[attr-defined]
    tokens = torch.from_numpy(texts_of([9, 3, 1, 6], LENGTH, 7))
    x = weights["embedding"][tokens]
    if "position" in weights:
        x = x + weights["position"]
    padding = tokens == PAD
    for number in range(1, body.layers + 1):  # type: ignore[attr-defined]
        own = {name.removeprefix(f"layer{number}."): value for name, value in weights.items()}
        module = torch.nn.TransformerEncoderLayer(size, heads, inner, dropout=0.0, batch_first=True).eval()
        matrices = [own[f"{name}.weight"].T for name in ("query", "key", "value")]
        state = {
            "self_attn.in_proj_weight": torch.cat(matrices),
            "self_attn.in_proj_bias": torch.cat([own[f"{name}.bias"] for name in ("query", "key", "value")]),
            "self_attn.out_proj.weight": own["joined.weight"].T,
            "self_attn.out_proj.bias": own["joined.bias"],
            "linear1.weight": own["inner.weight"].T,
            "linear1.bias": own["inner.bias"],
            "linear2.weight": own["outer.weight"].T,
            "linear2.bias": own["outer.bias"],
            **{f"{norm}.weight": own[f"{norm}.scale"] for norm in ("norm1", "norm2")},
            **{f"{norm}.bias": own[f"{norm}.shift"] for norm in ("norm1", "norm2")},
        }
        module.load_state_dict(state)
        x = module(x, src_key_padding_mask=padding)
    real = (~padding).unsqueeze(-1)
    mean = (x * real).sum(dim=1) / real.sum(dim=1)
    for name, _, _ in shape.dense:
        mean = torch.nn.functional.linear(mean, weights[f"{name}.weight"], weights[f"{name}.bias"])
    found = logits(shape, weights, tokens)
    np.testing.assert_allclose(found.numpy(), mean.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "max", "last"])
@pytest.mark.parametrize("name", ["lstm", "bilstm", "gru", "bigru"])
def test_recurrent_features_are_the_states_of_the_formulas(name: str, pooling: str) -> None:
    """One text, word by word in float64, from the formulas at the top of the file."""
    torch = pytest.importorskip("torch")
    body = ARCHITECTURES[name](units=5, embedding=4, pooling=pooling)  # type: ignore[call-arg]
    shape, weights = made(body)
    tokens = texts_of([6], LENGTH, 8)
    arrays = {key: value.numpy().astype(np.float64) for key, value in weights.items()}
    x = arrays["embedding"][tokens[0, :6]]
    states = []
    for direction in body.directions:  # type: ignore[attr-defined]
        found = stepped(arrays, direction, x[::-1] if direction == "backward" else x, 5)
        last = found[-1]
        found = found[::-1] if direction == "backward" else found
        states.append({"mean": found.mean(axis=0), "max": found.max(axis=0), "last": last}[pooling])
    expected = np.concatenate(states) @ arrays["logits.weight"].T + arrays["logits.bias"]
    found = logits(shape, weights, torch.from_numpy(tokens)).numpy()[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def stepped(arrays: dict[str, Any], direction: str, x: NDArray[np.float64], units: int) -> NDArray[np.float64]:
    def s(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1.0 / (1.0 + np.exp(-values))

    W, R, b, d = (
        arrays[f"{direction}.{part}"] for part in ("weight_input", "weight_state", "bias_input", "bias_state")
    )
    h = c = np.zeros(units)
    found = []
    for word in x:
        inputs, state = np.split(W @ word + b, len(b) // units), np.split(R @ h + d, len(b) // units)
        if len(inputs) == 4:
            i, f, g, o = (one + other for one, other in zip(inputs, state, strict=True))
            c = s(f) * c + s(i) * np.tanh(g)
            h = s(o) * np.tanh(c)
        else:
            r, z = s(inputs[0] + state[0]), s(inputs[1] + state[1])
            h = (1 - z) * np.tanh(inputs[2] + r * state[2]) + z * h
        found.append(h)
    return np.array(found)


def test_adding_an_architecture_or_a_defence_is_one_line_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of one's own, named in a recipe with a key of its own, is trained, exported and compared."""
    pytest.importorskip("torch")
    from swapproof.models.defences.defence_table import DEFENCES
    from swapproof.models.training import train

    monkeypatch.setitem(ARCHITECTURES, "scaled sum", ScaledSum)
    monkeypatch.setitem(DEFENCES, "small", Small)
    rows = [f"{number % 2}\t{('bad', 'good')[number % 2]} film {number}" for number in range(200)]
    (tmp_path / "train.tsv").write_text("\n".join(["label\ttext", *rows, ""]), encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        '[data]\ntrain = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out_rows = 40\n'
        '[vocabulary]\nlength = 4\n[network]\narchitecture = "scaled sum"\nscale = 0.5\nhidden = []\n'
        '[training]\nepochs = 3\nlearning_rate = 0.05\n[defence]\nmethod = "small"\nlargest = 0.25\n',
        encoding="utf-8",
    )
    result = train(recipe, tmp_path / "out", lambda line: None)
    assert result.accuracy_held_out == 1.0
    said = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert (said["network"]["architecture"], said["network"]["scale"]) == ("scaled sum", 0.5)
    assert said["defence"] == {"method": "small", "largest": 0.25}
    model = onnx.load(tmp_path / "out" / "model.onnx")
    arrays = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    assert np.abs(arrays["logits.weight"]).max() == 0.25


@dataclass(frozen=True)
class ScaledSum(Body):
    scale: float = 1.0

    def features(self, length: int) -> int:
        return self.embedding

    def values(self, weights: Any, embedded: Any, real: Any, disturbed: Any) -> Any:
        return disturbed(embedded.sum(dim=1) * self.scale)

    def write(self, graph: GraphWriter, weights: Any, length: int) -> None:
        graph.node("ReduceSum", ["embedded", graph.integers("axes", 1)], "summed", keepdims=0)
        graph.node("Mul", ["summed", graph.floats("scale", self.scale)], "features")


@dataclass(frozen=True)
class Small(Defence):
    largest: float

    def start(self, setting: Setting) -> TrainingRule:
        return Clipped(self.largest)


@dataclass(frozen=True)
class Clipped(TrainingRule):
    largest: float

    def hold(self, weights: dict[str, Any]) -> None:
        weights["logits.weight"].data.clamp_(-self.largest, self.largest)
