"""A network read from an ONNX file computes what onnxruntime computes, within the a-priori rounding bound."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from random_networks import HEADS, STEPS, TINY, Graph, Sample, assembled, finished, networks, tiny, tiny_networks
from smooth_steps import SMOOTH_STEPS, smooth

from swapproof.encodings.agreement import agree, random_sentences
from swapproof.encodings.evaluation import logits, values
from swapproof.encodings.network import Affine, Embedding, Network, Table
from swapproof.encodings.onnx_files.onnx_reading import HEADS as READ_HEADS
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.onnx_files.operators import OPERATORS
from swapproof.encodings.rounding.float_errors import rounding_errors


def agreed(sample: Sample, *, sentences: int = 3) -> Network:
    """The network, after it was compared with onnxruntime, with and without graph optimisations."""
    with tempfile.TemporaryDirectory() as folder:
        path = sample.save(Path(folder))
        network = read_network(path, sample.length)
        assert network.classes == sample.classes
        for optimised in (True, False):
            run = sample.runner(path, optimised=optimised)
            found = agree(network, run, sample.sentences(sentences))
            assert found.difference <= found.bound < np.inf
    return network


@pytest.mark.parametrize("step", sorted(STEPS))
def test_every_step_reads_as_onnxruntime_computes(step: str) -> None:
    """Each operator in turn, in float32, with small integers, and over the range of opsets."""
    for source, opset in enumerate(range(13, 23)):
        agreed(assembled((step,), source, opset=opset, small=source % 2 == 0))


def test_the_steps_cover_every_operator() -> None:
    """The round trip leaves no operator out."""
    met: set[str] = set()
    for step in STEPS:
        for source in range(25):
            sample = assembled((step,), source)
            met |= {node.op_type for node in sample.model.graph.node}
    for step in SMOOTH_STEPS:
        for source in range(25):
            met |= {node.op_type for node in smooth((step,), source, opset=20).model.graph.node}
    assert set(OPERATORS) <= met


@cases(120)
@given(networks(half=True))
def test_mixtures_read_as_onnxruntime_computes(sample: Sample) -> None:
    """Random graphs over all operators, opsets 13 to 22, three precisions, with and without a head."""
    agreed(sample)


@cases(40)
@given(tiny_networks())
def test_tiny_networks_read_as_onnxruntime_computes(sample: Sample) -> None:
    """The strategy that engines are tested with yields readable networks."""
    agreed(sample)


def cut_suffices(sample: Sample) -> Network:
    """The network, after it was seen that values at the cut give the logits, and that the cut is linear."""
    with tempfile.TemporaryDirectory() as folder:
        network = read_network(sample.save(Path(folder)), sample.length)
    tokens = sample.sentences(4)
    all_values = values(network, tokens)
    rest = values(network, given={index: all_values[index] for index in network.cut})
    last = len(network.nodes) - 1
    assert np.array_equal(rest[last], all_values[last])
    assert set(network.cut) <= network.linear
    # Linear means: additive over positions. f(xy) - f(x'y) - f(xy') + f(x'y') = 0.
    first, second = tokens[:1], tokens[1:2]
    middle = sample.length // 2
    mixed = np.concatenate([first[:, :middle], second[:, middle:]], axis=1)
    other = np.concatenate([second[:, :middle], first[:, middle:]], axis=1)
    four = values(network, np.concatenate([first, second, mixed, other]), wanted=network.cut)
    for index in network.cut:
        a, b, c, d = four[index]
        assert np.allclose(a + b, c + d, atol=1e-9 * max(1.0, float(np.abs(four[index]).max())))
    return network


@cases(60)
@given(networks(kinds=False))
def test_everything_after_the_cut_depends_on_tokens_through_it(sample: Sample) -> None:
    """The values at the cut alone give the logits; nothing behind the cut reads the tokens again."""
    cut_suffices(sample)


def test_a_linear_value_read_on_both_sides_of_the_cut_is_in_it() -> None:
    """x + relu(2 x): x goes on to a linear layer and to a nonlinear one."""
    g = Graph(np.random.default_rng(0), 17)
    g.go(g.call("Gather", g.constant(g.numbers(7, 2)), "tokens"), 1, 3, 2)
    STEPS["flatten"](g)
    doubled = g.call("Mul", g.at, g.constant(np.array([2.0], dtype=np.float32)))
    sum_of_both = g.call("Add", g.at, g.call("Relu", doubled))
    g.go(g.call("MatMul", sum_of_both, g.constant(g.numbers(6, 2))), 1, 2)
    network = cut_suffices(finished(g, length=3, vocabulary=7, classes=2))
    assert len(network.cut) == 2


@pytest.mark.parametrize("head", [name for name in HEADS if name])
def test_final_functions_are_recognised(head: str) -> None:
    """Softmax, LogSoftmax, Sigmoid and Tanh at the end are named, and the logits before them are the last node."""
    network = agreed(assembled(("relu",), 3, head=head))
    assert network.head == READ_HEADS[head]


@pytest.mark.parametrize("tokens", [TensorProto.INT32, TensorProto.INT64])
@pytest.mark.parametrize("batch", ["batch", 1])
@pytest.mark.parametrize("fixed_length", [True, False])
def test_token_types_and_fixed_or_free_sizes(tokens: int, batch: int | str, fixed_length: bool) -> None:
    """int32 and int64 tokens, a free batch or a batch of one, a fixed or a free length."""
    g = Graph(np.random.default_rng(0), 17)
    g.go(g.call("Gather", g.constant(g.numbers(9, 2)), "tokens"), 1, 5, 2)
    STEPS["flatten"](g)
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(10, 3))), 1, 3)
    sample = finished(g, length=5, vocabulary=9, classes=3, tokens=tokens, batch=batch, fixed_length=fixed_length)
    assert agreed(sample).vocabulary_size == 9


def test_float16_weights_are_read_exactly(tmp_path: Path) -> None:
    """A half-precision table cast to float32 costs nothing; layers in half precision count as coarse."""
    g = Graph(np.random.default_rng(1), 17)
    table = g.numbers(7, 2).astype(np.float16)
    half = g.call("Gather", g.constant(table), "tokens")
    g.go(g.call("Cast", half, to=TensorProto.FLOAT), 1, 4, 2)
    STEPS["flatten"](g)
    STEPS["gemm"](g)
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(g.shape[1], 2))), 1, 2)
    network = agreed(finished(g, length=4, vocabulary=7, classes=2))
    (embedding,) = (node.layer for node in network.nodes if isinstance(node.layer, Embedding))
    assert np.array_equal(embedding.table[np.arange(7)], table.astype(np.float64))
    assert network.unit == 2.0**-24
    for source in range(5):
        assert agreed(assembled(("dense", "relu", "gemm"), source, kind="float16")).unit == 2.0**-11


def test_a_cast_to_half_precision_and_back_is_charged() -> None:
    """Rounding in the middle of a float32 network to float16 enters the bound."""
    g = Graph(np.random.default_rng(2), 17)
    g.go(g.call("Gather", g.constant(g.numbers(7, 2)), "tokens"), 1, 4, 2)
    half = g.call("Cast", g.at, to=TensorProto.FLOAT16)
    g.go(g.call("Cast", half, to=TensorProto.FLOAT), 1, 4, 2)
    STEPS["flatten"](g)
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(8, 2))), 1, 2)
    network = agreed(finished(g, length=4, vocabulary=7, classes=2))
    assert network.unit == 2.0**-11


def test_a_cast_to_half_precision_alone_is_charged() -> None:
    """With no arithmetic around it, the rounding of the cast is the whole difference."""
    g = Graph(np.random.default_rng(2), 17)
    g.go(g.call("Gather", g.constant(np.array([[0.1, 0.7], [1.3, 2.9]], dtype=np.float32)), "tokens"), 1, 1, 2)
    half = g.call("Cast", g.call("Flatten", g.at), to=TensorProto.FLOAT16)
    g.go(g.call("Cast", half, to=TensorProto.FLOAT), 1, 2)
    sample = finished(g, length=1, vocabulary=2, classes=2)
    assert agreed(sample).unit == 2.0**-11


def test_a_last_window_that_starts_in_the_padding_is_none() -> None:
    """ceil_mode rounds the number of windows up, but not for one that would read padding only."""
    for operator in ("MaxPool", "AveragePool"):
        g = Graph(np.random.default_rng(0), 17)
        g.go(g.call("Gather", g.constant(g.numbers(7, 2)), "tokens"), 1, 3, 2)
        STEPS["transpose"](g)
        pooled = g.call(operator, g.at, kernel_shape=[2], strides=[3], pads=[0, 1], ceil_mode=1)
        g.go(g.call("Flatten", pooled), 1, 2)
        agreed(finished(g, length=3, vocabulary=7, classes=2))


def test_external_data(tmp_path: Path) -> None:
    """Weights in a file beside the model are read."""
    g = Graph(np.random.default_rng(0), 17)
    g.initializers = [
        numpy_helper.from_array(g.numbers(7, 2), "table"),
        numpy_helper.from_array(g.numbers(6, 2), "matrix"),
    ]
    flat = g.call("Flatten", g.call("Gather", "table", "tokens"))
    g.go(g.call("MatMul", flat, "matrix"), 1, 2)
    sample = finished(g, length=3, vocabulary=7, classes=2)
    path = tmp_path / "model.onnx"
    onnx.save(sample.model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").stat().st_size > 0
    network = read_network(path)
    agree(network, sample.runner(path), sample.sentences(4))


def test_empty_axes_reduce_everything_or_nothing(tmp_path: Path) -> None:
    """ReduceSum without axes sums all of a batch of one; with noop_with_empty_axes it changes nothing."""
    for noop in (0, 1):
        g = Graph(np.random.default_rng(noop), 18)
        g.go(g.call("Gather", g.constant(g.numbers(7, 2)), "tokens"), 1, 3, 2)
        shape = (1, 3, 2) if noop else (1, 1, 1)
        empty = g.constant(np.zeros(0, dtype=np.int64))
        g.go(g.call("ReduceSum", g.at, empty, noop_with_empty_axes=noop, keepdims=1), *shape)
        STEPS["flatten"](g)
        g.go(g.call("MatMul", g.at, g.constant(g.numbers(g.shape[1], 2))), 1, 2)
        agreed(finished(g, length=3, vocabulary=7, classes=2, batch=1))


def test_split_by_count_counts_unnamed_outputs(tmp_path: Path) -> None:
    """Equal parts are counted by the node's outputs, named or not (onnxruntime crashes on such a model)."""
    g = Graph(np.random.default_rng(0), 13)
    table, matrix = g.numbers(7, 2), g.numbers(4, 2)
    g.go(g.call("Gather", g.constant(table), "tokens"), 1, 6, 2)
    g.nodes.append(helper.make_node("Split", [g.at], ["", "part", ""], axis=1))
    g.go(g.call("MatMul", g.call("Flatten", "part"), g.constant(matrix)), 1, 2)
    sample = finished(g, length=6, vocabulary=7, classes=2)
    tokens = sample.sentences(3)
    expected = table.astype(np.float64)[tokens[:, 2:4]].reshape(3, 4) @ matrix.astype(np.float64)
    assert np.allclose(logits(read_network(sample.save(tmp_path)), tokens), expected)


def test_dropout_with_an_unused_mask_is_the_identity() -> None:
    g = Graph(np.random.default_rng(0), 17)
    g.go(g.call("Gather", g.constant(g.numbers(7, 2)), "tokens"), 1, 3, 2)
    g.go(g.call("Dropout", g.at, outputs=2), 1, 3, 2)
    STEPS["flatten"](g)
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(6, 2))), 1, 2)
    agreed(finished(g, length=3, vocabulary=7, classes=2))


def test_a_single_logit_beside_a_constant_zero_is_two_classes() -> None:
    """The refusal of one class says how to make two; that works."""
    g = Graph(np.random.default_rng(0), 17)
    g.go(g.call("Gather", g.constant(g.numbers(7, 2)), "tokens"), 1, 3, 2)
    STEPS["flatten"](g)
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(6, 1))), 1, 1)
    zero = g.call("Sub", g.at, g.at)
    g.go(g.call("Concat", zero, g.at, axis=1), 1, 2)
    agreed(finished(g, length=3, vocabulary=7, classes=2))


def test_product_and_bias_are_one_layer() -> None:
    """MatMul and Add of a vector read as one affine layer, as runtimes compute it."""
    g = Graph(np.random.default_rng(0), 17)
    g.go(g.call("Gather", g.constant(g.numbers(7, 2)), "tokens"), 1, 3, 2)
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(2, 4))), 1, 3, 4)
    g.go(g.call("Add", g.constant(g.nonzero(4)), g.at), 1, 3, 4)
    STEPS["flatten"](g)
    g.go(g.call("MatMul", g.at, g.constant(g.numbers(12, 2))), 1, 2)
    network = agreed(finished(g, length=3, vocabulary=7, classes=2))
    layers = [node.layer for node in network.nodes]
    assert [type(layer).__name__ for layer in layers] == ["Embedding", "Affine", "Rearrangement", "Affine"]
    assert isinstance(layers[1], Affine)
    assert layers[1].bias.all()


def test_a_table_reads_as_float64_and_keeps_its_own_type() -> None:
    """Rows of a float32 table come out as float64, so that their differences are exact."""
    stored = np.array([[1.0, 2.0], [1.0 + 2.0**-23, 3.0]], dtype=np.float32)
    table = Table(stored)
    assert table.shape == (2, 2)
    assert len(table) == 2
    assert table[np.array([1, 0])].dtype == np.float64
    assert np.asarray(table).dtype == np.float64
    assert float((table[1] - table[0])[0]) == 2.0**-23
    assert table.stored.dtype == np.float32


class Classical:
    """Architectures as torch users write them; built lazily, because torch is optional."""

    @staticmethod
    def modules() -> dict[str, Callable[[], Any]]:
        from torch import nn

        class Transposed(nn.Module):
            def forward(self, x: Any) -> Any:
                return x.transpose(1, 2)

        class MaxOverTime(nn.Module):
            def forward(self, x: Any) -> Any:
                return x.max(dim=2).values

        class AmaxOverTime(nn.Module):
            def forward(self, x: Any) -> Any:
                return x.amax(dim=2)

        class Mean(nn.Module):
            def forward(self, x: Any) -> Any:
                return x.mean(dim=1)

        class Pooled(nn.Module):
            def forward(self, x: Any) -> Any:
                return nn.functional.max_pool1d(x, x.shape[2]).squeeze(2)

        class Viewed(nn.Module):
            def forward(self, x: Any) -> Any:
                return x.view(x.size(0), -1)

        class Residual(nn.Module):
            def __init__(self, size: int) -> None:
                super().__init__()
                self.inner = nn.Linear(size, size)

            def forward(self, x: Any) -> Any:
                return torch_relu(x + self.inner(x))

        def torch_relu(x: Any) -> Any:
            return nn.functional.relu(x)

        class Image(nn.Module):
            def forward(self, x: Any) -> Any:
                return x.unsqueeze(1)

        def embedding() -> Any:
            return nn.Embedding(20, 4, padding_idx=0)

        return {
            "mlp": lambda: nn.Sequential(embedding(), nn.Flatten(), nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 2)),
            "view": lambda: nn.Sequential(embedding(), Viewed(), nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 2)),
            "mean": lambda: nn.Sequential(embedding(), Mean(), nn.Linear(4, 8), nn.LeakyReLU(), nn.Linear(8, 3)),
            "per word": lambda: nn.Sequential(embedding(), nn.Linear(4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(30, 2)),
            "cnn": lambda: nn.Sequential(
                embedding(), Transposed(), nn.Conv1d(4, 6, 3, padding=1), nn.ReLU(), AmaxOverTime(), nn.Linear(6, 2)
            ),
            "kim": lambda: nn.Sequential(
                embedding(), Transposed(), nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6), nn.ReLU(), Pooled(), nn.Dropout(),
                nn.Linear(6, 2), nn.Softmax(dim=1),
            ),
            "image": lambda: nn.Sequential(
                embedding(), Image(), nn.Conv2d(1, 3, (2, 4)), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d((2, 1)),
                nn.AvgPool2d((2, 1)), nn.Flatten(), nn.Linear(3, 2),
            ),
            "adaptive": lambda: nn.Sequential(
                embedding(), Transposed(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, 2), nn.LogSoftmax(dim=1)
            ),
            "residual": lambda: nn.Sequential(
                embedding(), nn.Flatten(), Residual(24), Residual(24), nn.Linear(24, 4)
            ),
        }  # fmt: skip


NAMES = ("mlp", "view", "mean", "per word", "cnn", "kim", "image", "adaptive", "residual")


@pytest.mark.filterwarnings("ignore")  # torch's exporters warn about themselves
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dynamo", [False, True])
def test_torch_exports_read_as_onnxruntime_computes(name: str, dynamo: bool, tmp_path: Path) -> None:
    """Both exporters of torch, with a free batch, and the answers are also those of torch."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    module = Classical.modules()[name]().eval()
    tokens = torch.randint(20, (3, 6))
    path = tmp_path / "model.onnx"
    if dynamo:
        batch = torch.export.Dim("batch", min=2, max=512)
        torch.onnx.export(
            module, (tokens,), path, dynamo=True, opset_version=18, dynamic_shapes=({0: batch},), verbose=False
        )
    else:
        torch.onnx.export(
            module, (tokens,), path, dynamo=False, opset_version=17, input_names=["tokens"],
            dynamic_axes={"tokens": {0: "batch"}},
        )  # fmt: skip
    network = read_network(path, 6)
    sentences = random_sentences(network, 8)
    sample = Sample(None, 6, 20, network.classes, (), 0, "batch")
    agree(network, sample.runner(path), sentences)
    agree(network, lambda rows: np.asarray(module(torch.from_numpy(rows)).detach().numpy()), sentences)


@pytest.mark.parametrize("shape", TINY)
def test_tiny_shapes(shape: str) -> None:
    """Every tiny shape, with normal and with small integer weights, gives a network with something to swap."""
    for source in range(3):
        network = agreed(tiny(shape, source, small=source == 1, classes=2 + source))
        assert network.vocabulary_size >= 4


@cases(30)
@given(networks(kinds=False), st.integers(0, 2**32 - 1))
def test_single_precision_numpy_stays_within_the_bound(sample: Sample, source: int) -> None:
    """The same network evaluated by numpy in float32 is within the bound of its float64 values, at every node."""
    with tempfile.TemporaryDirectory() as folder:
        network = read_network(sample.save(Path(folder)), sample.length)
    tokens = sample.sentences(4, source)
    exact = values(network, tokens)
    single = values(network, tokens, dtype=np.float32)
    sizes = {index: np.abs(array) for index, array in exact.items()}
    errors = rounding_errors(network, sizes, 2.0**-24)
    own = rounding_errors(network, sizes, 2.0**-53)
    for index in exact:
        assert (np.abs(single[index].astype(np.float64) - exact[index]) <= errors[index] + own[index]).all()


def test_logits_have_one_row_per_sentence(tmp_path: Path) -> None:
    sample = tiny("cnn", 0, classes=3)
    network = read_network(sample.save(tmp_path))
    found: NDArray[Any] = logits(network, sample.sentences(5))
    assert found.shape == (5, 3)
    again = np.concatenate([logits(network, sample.sentences(5)[row : row + 1]) for row in range(5)])
    assert np.allclose(found, again)


def test_initializers_need_not_have_constant_nodes(tmp_path: Path) -> None:
    """A weight listed among the graph's inputs with its value, as old exporters do, is still a weight."""
    table = numpy_helper.from_array(np.eye(3, dtype=np.float32), "table")
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "tokens"], ["words"]),
            helper.make_node("Flatten", ["words"], ["logits"]),
        ],
        "listed",
        [
            helper.make_tensor_value_info("tokens", TensorProto.INT64, ["n", 1]),
            helper.make_tensor_value_info("table", TensorProto.FLOAT, [3, 3]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])],
        [table],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8), path)
    assert np.array_equal(logits(read_network(path), np.array([[0], [2]])), np.eye(3)[[0, 2]])
