"""What is shown to keep sentences apart, and what is not: every rule by a model that breaks it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from deployed_models import TOKENS, Inputs, opened
from graph_builder import Builder
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from swapproof.models.deployed.opening.rows_apart import why_together_matters

FLOAT = TensorProto.FLOAT
WIDTH, NUMBERS = 4, 6
FEED = {"input_ids": np.arange(WIDTH)[None]}
Graph = Callable[[Builder, str], str]
"""From x [batch, WIDTH, NUMBERS] to scores, or what becomes them when all axes but the first are summed."""


def model(graph: Graph, opset: int = 18) -> Any:
    builder = Builder()
    table = np.random.default_rng(0).normal(size=(9, NUMBERS)).astype(np.float32)
    made = graph(builder, builder.call("Gather", builder.constant(table), "input_ids"))
    numbers = builder.call("Cast", made, to=FLOAT)
    builder.node("ReduceSum", [builder.call("Flatten", numbers), builder.wholes(1)], ["scores"])
    return builder.proto(TOKENS, [("scores", FLOAT, None)], opset=opset)


def why(graph: Graph, opset: int = 18) -> str | None:
    return why_together_matters(model(graph, opset), FEED)


def numbers(*shape: int, start: float = 1) -> Any:
    return (start + np.arange(np.prod(shape)).reshape(shape) / 7).astype(np.float32)


def sizes(b: Builder, x: str, *axes: int) -> str:
    """Those of some axes."""
    return b.call("Gather", b.call("Shape", x), b.wholes(*axes))


def swapped(b: Builder, x: str) -> str:
    """[WIDTH, batch, NUMBERS]"""
    return b.call("Transpose", x, perm=[1, 0, 2])


def back(b: Builder, x: str) -> str:
    return swapped(b, x)


def total(b: Builder, x: str) -> str:
    """[batch, NUMBERS]"""
    return b.call("ReduceSum", x, b.wholes(1), keepdims=0)


def over_words(b: Builder, x: str) -> str:
    return b.call("ReduceSum", x, b.wholes(0, 1), keepdims=0)


def lstm(b: Builder, x: str, transpose: bool = True) -> str:
    words = swapped(b, x) if transpose else x
    weights = [b.constant(numbers(1, 12, NUMBERS)), b.constant(numbers(1, 12, 3))]
    batch = b.call("Concat", b.wholes(1), sizes(b, words, 1), b.wholes(3), axis=0)
    state = b.call("ConstantOfShape", batch)
    y, _, _ = b.parts("LSTM", 3, words, *weights, "", "", state, state, hidden_size=3)
    return (
        b.call("Transpose", b.call("Squeeze", y, b.wholes(1)), perm=[1, 0, 2])
        if transpose
        else b.call("Squeeze", y, b.wholes(1))
    )


def places(b: Builder, x: str) -> str:
    count = b.call("Squeeze", sizes(b, x, 0), b.wholes(0))
    return b.call("Range", b.constant(np.int64(0)), count, b.constant(np.int64(1)))


def last_word(b: Builder, x: str, moved: int = 0) -> str:
    """x[arange(batch) + moved, last], by places in pairs."""
    own = b.call("Unsqueeze", places(b, x), b.wholes(1))
    own = b.call("Add", own, b.wholes(moved)) if moved else own
    last = b.call("ArgMax", total_of_words(b, x), axis=1, keepdims=1)
    return b.call("GatherND", x, b.call("Concat", own, last, axis=1))


def total_of_words(b: Builder, x: str) -> str:
    """[batch, WIDTH]"""
    return b.call("ReduceSum", x, b.wholes(2), keepdims=0)


def flat_places(b: Builder, x: str, each: int, add: list[int]) -> str:
    """Rows of all words of all sentences, at b x each + add."""
    flat = b.call("Reshape", x, b.wholes(-1, NUMBERS))
    start = b.call("Mul", b.call("Unsqueeze", places(b, x), b.wholes(1)), b.constant(np.int64(each)))
    return b.call("Gather", flat, b.call("Add", b.wholes(*add), start), axis=0)


def own_words(b: Builder, x: str) -> str:
    """x[arange(batch)[:, None], arange(words)], made one size by that of their Max, as torch exports it."""
    own = b.call("Unsqueeze", places(b, x), b.wholes(1))
    words = b.call("Unsqueeze", b.constant(np.arange(WIDTH)), b.wholes(0))
    size = b.call("Shape", b.call("Max", own, words))
    pairs = [b.call("Unsqueeze", b.call("Expand", each, size), b.wholes(-1)) for each in (own, words)]
    return b.call("GatherND", x, b.call("Concat", *pairs, axis=-1))


def cast_places(b: Builder, x: str, to: int) -> str:
    """x[0, 1, 2, ...], the places having been of another type."""
    return b.call("Gather", x, b.call("Cast", b.call("Cast", places(b, x), to=to), to=7), axis=0)


def heads(b: Builder, x: str) -> str:
    """Attention of two heads, whose batches are merged with those of sentences, time first."""
    shape = sizes(b, x, 0)
    twice = b.call("Mul", shape, b.wholes(2))
    parted = b.call("Reshape", swapped(b, x), b.call("Concat", b.wholes(WIDTH), twice, b.wholes(3), axis=0))
    queries = b.call("Transpose", parted, perm=[1, 0, 2])
    scores = b.call("MatMul", queries, b.call("Transpose", queries, perm=[0, 2, 1]))
    mixed = b.call("MatMul", b.call("Softmax", scores, axis=-1), queries)
    rows = b.call("Reshape", b.call("Transpose", mixed, perm=[1, 0, 2]), b.wholes(-1, NUMBERS))  # [words x batch, .]
    shape = b.call("Concat", b.wholes(WIDTH), shape, b.wholes(NUMBERS), axis=0)
    return back(b, b.call("Reshape", b.call("Gemm", rows, b.constant(numbers(NUMBERS, NUMBERS))), shape))


def folded(b: Builder, x: str) -> str:
    """Words of sentences as rows of a matrix, and back by what Shape says of them."""
    rows = b.call("Reshape", x, b.wholes(-1, NUMBERS))
    shape = b.call("Concat", sizes(b, x, 0, 1), b.wholes(2), axis=0)
    return b.call("Reshape", b.call("MatMul", rows, b.constant(numbers(NUMBERS, 2))), shape)


def expanded_mask(b: Builder, x: str) -> str:
    """[batch, 1, WIDTH, WIDTH] of a mask that is still, by a Where on sizes as exporters write."""
    said = b.call("Concat", sizes(b, x, 0), b.wholes(1, -1, WIDTH), axis=0)
    shape = b.call("Where", b.call("Equal", said, b.wholes(-1)), b.wholes(1, 1, WIDTH, WIDTH), said)
    mask = b.call("Expand", b.call("Trilu", b.constant(numbers(WIDTH, WIDTH)), upper=0), shape)
    return b.call("MatMul", mask, b.call("Unsqueeze", x, b.wholes(1)))


def squeezed_if(b: Builder, x: str, other: str = "Identity", limit: int = 1) -> str:
    """As torch's older exporter writes `squeeze(1)` of what may have one place there."""
    one = b.call("MaxPool", b.call("Transpose", x, perm=[0, 2, 1]), kernel_shape=[WIDTH])
    count = b.call("Squeeze", sizes(b, one, 2 if limit == 1 else 0), b.wholes(0))
    axes, value = helper.make_tensor("", 7, [1], [2]), FLOAT
    squeeze = [
        helper.make_node("Constant", [], ["inner.axes"], value=axes),
        helper.make_node("Squeeze", [one, "inner.axes"], ["inner.then"]),
    ]
    branches = {
        f"{name}_branch": helper.make_graph(
            nodes, name, [], [helper.make_tensor_value_info(f"inner.{name}", value, None)]
        )
        for name, nodes in (("then", squeeze), ("else", [helper.make_node(other, [one], ["inner.else"])]))
    }
    return b.call("If", b.call("Equal", count, b.constant(np.int64(limit))), **branches)


ACCEPTED: dict[str, Graph] = {
    "activations": lambda b, x: b.call(
        "Relu", b.call("Clip", x, b.constant(np.float32(-1)), b.constant(np.float32(1)))
    ),
    "broadcast": lambda b, x: b.call(
        "Add", x, b.call("Mul", b.call("ReduceMax", x, b.wholes(1)), b.constant(numbers(6)))
    ),
    "divided by the width": lambda b, x: b.call("Div", x, b.call("Cast", sizes(b, x, 1), to=FLOAT)),
    "mean": lambda b, x: b.call("ReduceMean", x, b.wholes(-2), keepdims=0),
    "norms": lambda b, x: b.call("LayerNormalization", x, b.constant(numbers(NUMBERS)), axis=-1),
    "softmax": lambda b, x: b.call("Softmax", x, axis=1),
    "greatest": lambda b, x: b.parts("TopK", 2, x, b.wholes(2), axis=1)[1],
    "counted": lambda b, x: b.call("CumSum", x, b.constant(np.int64(1))),
    "dense": lambda b, x: b.call(
        "Gemm", total(b, x), b.constant(numbers(3, NUMBERS)), b.constant(numbers(3)), transB=1
    ),
    "columns": lambda b, x: b.call(
        "Transpose", b.call("MatMul", b.constant(numbers(2, NUMBERS)), b.call("Transpose", total(b, x)))
    ),
    "folded": folded,
    "convolution": lambda b, x: b.call("GlobalMaxPool", b.call("Conv", x, b.constant(numbers(3, WIDTH, 2)))),
    "LSTM": lstm,
    "attention": heads,
    "mask": expanded_mask,
    "letters": lambda b, x: b.call("Einsum", x, b.constant(numbers(NUMBERS, 2)), equation="bwn,nk->bkw"),
    "all of it": lambda b, x: b.call("Slice", x, b.wholes(0, 1), b.wholes(2**63 - 1, 3), b.wholes(0, 1)),
    "split": lambda b, x: b.parts("Split", 2, x, axis=2, num_outputs=2)[1],
    "joined": lambda b, x: b.call("Concat", x, x, axis=1),
    "first word": lambda b, x: b.call("Gather", x, b.constant(np.int64(0)), axis=1),
    "gathered": lambda b, x: b.call("GatherElements", x, b.call("ArgMax", x, axis=1), axis=1),
    "last word": last_word,
    "own words": own_words,
    "a number of its type": lambda b, x: b.call("Mul", x, b.call("CastLike", b.constant(np.float64(0.5)), x)),
    "places of 32 bits": lambda b, x: cast_places(b, x, TensorProto.INT32),
    "own places": lambda b, x: flat_places(b, x, WIDTH, [0, WIDTH - 1]),
    "alternatives": lambda b, x: b.call("Pad", b.call("Tile", x, b.wholes(1, 2, 1)), b.wholes(0, 1, 0, 0, 0, 0)),
    "one branch": squeezed_if,
    "quantised": lambda b, x: b.call("QuantizeLinear", x, b.constant(np.float32(0.1)), b.constant(np.int8(3))),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_sentences_are_shown_apart_and_answered_as_alone(name: str) -> None:
    assert why(ACCEPTED[name]) is None
    compare(model(ACCEPTED[name]), 0)


def compare(proto: Any, seed: int) -> None:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    ids = np.random.default_rng(seed).integers(0, 9, size=(5, WIDTH))
    together = session.run(None, {"input_ids": ids})[0]
    alone = np.concatenate([session.run(None, {"input_ids": row[None]})[0] for row in ids])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-4)


def test_nodes_are_read_in_any_order_in_which_onnxruntime_runs_them() -> None:
    """Converters to float16 append casts at the end."""
    for graph, reason in ((folded, None), REFUSED["maximum"]):
        proto = model(graph)
        nodes = list(proto.graph.node)[::-1]
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)
        assert why_together_matters(proto, FEED) == reason
        onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])


def like(b: Builder, x: str, row: str) -> str:
    """What has one row, for each sentence."""
    return b.call("Add", b.call("Mul", total(b, x), b.constant(np.float32(0))), row)


def square(b: Builder, x: str) -> str:
    return b.call("Mul", sizes(b, x, 0), sizes(b, x, 0))


def sizes_by_sizes(b: Builder, x: str) -> str:
    return b.call("Gather", b.call("Shape", x), b.call("Sub", sizes(b, x, 0), b.wholes(2)))


REFUSED: dict[str, tuple[Graph, str]] = {
    "maximum": (lambda b, x: like(b, x, b.call("ReduceMax", total(b, x), b.wholes(0))), "ReduceMax over the batch"),
    "mean of all": (lambda b, x: b.call("Sub", total(b, x), b.call("ReduceMean", x)), "ReduceMean over the batch"),
    "greatest": (
        lambda b, x: like(b, x, b.call("Cast", b.call("ArgMax", total(b, x), axis=0), to=FLOAT)),
        "ArgMax over the batch",
    ),
    "softmax": (lambda b, x: b.call("Softmax", x, axis=0), "Softmax over the batch"),
    "norm": (
        lambda b, x: b.call("LayerNormalization", swapped(b, x), b.constant(numbers(6)), axis=1),
        "over the batch",
    ),
    "other norm": (lambda b, x: b.call("LpNormalization", x, axis=0), "over the batch"),
    "variance": (lambda b, x: b.call("MeanVarianceNormalization", x, axes=[0, 1]), "over the batch"),
    "counted": (lambda b, x: b.call("CumSum", x, b.constant(np.int64(0))), "CumSum over the batch"),
    "triangle": (lambda b, x: b.call("Trilu", total(b, x)), "Trilu over the batch"),
    "training": (
        lambda b, x: b.parts("BatchNormalization", 3, x, *[b.constant(numbers(WIDTH))] * 4, training_mode=1)[0],
        "trains on the batch",
    ),
    "chance": (
        lambda b, x: b.call("Dropout", x, b.constant(np.float32(0.5)), b.constant(np.array(True))),
        "drops at random",
    ),
    "channels": (
        lambda b, x: back(b, b.call("GlobalMaxPool", swapped(b, x))),
        "GlobalMaxPool over the batch",
    ),
    "places of maxima": (
        lambda b, x: b.call("Cast", b.parts("MaxPool", 2, x, kernel_shape=[2])[1], to=FLOAT),
        "MaxPool counts places from the first sentence on",
    ),
    "summed over": (
        lambda b, x: like(
            b, x, over_words(b, (b.call("MatMul", b.call("Transpose", x, perm=[1, 2, 0]), swapped(b, x))))
        ),
        "MatMul sums over the batch",
    ),
    "summed by Gemm": (
        lambda b, x: like(b, x, b.call("ReduceSum", b.call("Gemm", total(b, x), total(b, x), transA=1), b.wholes(0))),
        "Gemm sums over the batch",
    ),
    "beside others": (
        lambda b, x: b.call("MatMul", total(b, x), b.call("Transpose", total(b, x))),
        "MatMul multiplies sentences by others",
    ),
    "broadcast to others": (
        lambda b, x: b.call("Sub", total(b, x), b.call("Unsqueeze", total(b, x), b.wholes(1))),
        "Sub lays sentences beside others",
    ),
    "letters": (
        lambda b, x: like(b, x, b.call("Einsum", x, equation="bwn->n")),
        "Einsum sums over the batch",
    ),
    "letters of two": (
        lambda b, x: b.call("Einsum", x, x, equation="bwn,cwn->bc"),
        "Einsum multiplies sentences by others",
    ),
    "states": (lambda b, x: lstm(b, x, transpose=False), "LSTM over the batch"),
    "other order": (
        lambda b, x: b.call("Reshape", swapped(b, x), b.call("Shape", x)),
        "Reshape parts a sentence among others",
    ),
    "even halves": (lambda b, x: b.call("Reshape", x, b.wholes(2, -1)), "Reshape parts a sentence among others"),
    "squeezed": (lambda b, x: b.call("Squeeze", b.call("Unsqueeze", x, b.wholes(1))), "without axes"),
    "first of all": (
        lambda b, x: b.call("Sub", x, b.call("Gather", x, b.wholes(0), axis=0)),
        "Gather over the batch",
    ),
    "another slice": (
        lambda b, x: b.call("Slice", x, b.wholes(-1), b.wholes(-(2**40)), b.wholes(0), b.wholes(-1)),
        "Slice over the batch",
    ),
    "a slice": (lambda b, x: b.call("Sub", x, b.call("Slice", x, b.wholes(0), b.wholes(1), b.wholes(0))), "over the"),
    "split": (lambda b, x: b.call("Concat", *b.parts("Split", 1, x, axis=0, num_outputs=1), axis=1), "over the batch"),
    "joined": (
        lambda b, x: b.call(
            "Slice", b.call("Concat", x, x, axis=0), b.wholes(1), b.call("Add", sizes(b, x, 0), b.wholes(1))
        ),
        "Concat over the batch",
    ),
    "repeated": (
        lambda b, x: b.call("Slice", b.call("Tile", x, b.wholes(2, 1, 1)), b.wholes(1), b.wholes(-1)),
        "Tile repeats sentences",
    ),
    "padded": (
        lambda b, x: b.call("Pad", x, b.wholes(1, 0, 0, -1, 0, 0)),
        "Pad over the batch",
    ),
    "one after the other": (
        lambda b, x: b.call("GatherElements", x, b.call("ArgMin", x, axis=0), axis=0),
        "over the batch",
    ),
    "next sentence": (lambda b, x: last_word(b, x, moved=-1), "Concat reads the places of sentences"),
    "places before": (lambda b, x: flat_places(b, x, WIDTH, [-1]), "Gather over the batch"),
    "places as flags": (lambda b, x: cast_places(b, x, TensorProto.BOOL), "Cast reads the places of sentences"),
    "places of 8 bits": (lambda b, x: cast_places(b, x, TensorProto.INT8), "Cast reads the places of sentences"),
    "greatest places": (
        lambda b, x: b.call("Gather", x, b.call("Max", places(b, x), b.wholes(1)), axis=0),
        "Gather over the batch",
    ),
    "a place of its own": (
        lambda b, x: b.call("Gather", b.call("Unsqueeze", places(b, x), b.wholes(1)), b.wholes(0), axis=1),
        "Gather reads the places of sentences",
    ),
    "fewer places": (lambda b, x: flat_places(b, x, WIDTH - 1, [0]), "Gather over the batch"),
    "own number": (
        lambda b, x: b.call(
            "Mul", b.call("Cast", total_of_words(b, x), to=7), b.call("Unsqueeze", places(b, x), b.wholes(1))
        ),
        "Mul is told by sentences",
    ),
    "how many": (
        lambda b, x: b.call("Div", x, b.call("Cast", sizes(b, x, 0), to=FLOAT)),
        "Cast reads the number of sentences",
    ),
    "more than five": (
        lambda b, x: b.call("Mul", x, b.call("Cast", b.call("Greater", sizes(b, x, 0), b.wholes(5)), to=FLOAT)),
        "compares the number of sentences",
    ),
    "halves of sizes": (
        lambda b, x: b.call(
            "Expand", x, b.call("Concat", b.call("Div", sizes(b, x, 0), b.wholes(2)), b.wholes(1, 1), axis=0)
        ),
        "divides the number of sentences",
    ),
    "squares": (
        lambda b, x: b.call(
            "Mul", x, b.call("ReduceSum", b.call("Expand", b.constant(numbers(1)), square(b, x)), b.wholes(0))
        ),
        "Mul multiplies the number of sentences by itself",
    ),
    "odd -1": (  # -1 of 2 sentences, 0 of 3 and 1 of 4: all words of all in one row
        lambda b, x: b.call(
            "Reshape", x, b.call("Concat", b.call("Sub", sizes(b, x, 0), b.wholes(3)), b.wholes(WIDTH, NUMBERS), axis=0)
        ),
        "is told by the number of sentences",
    ),
    "weights of sentences": (
        lambda b, x: b.call("Transpose", b.call("Conv", b.constant(numbers(1, WIDTH, NUMBERS)), x), perm=[1, 0, 2]),
        "Conv reads its input 2 of sentences",
    ),
    "gathered by others": (
        lambda b, x: b.call("Gather", x, b.call("ArgMax", x, axis=1), axis=1),
        "Gather joins two inputs of sentences",
    ),
    "an axis of sizes": (
        lambda b, x: b.call("CumSum", x, b.call("Sub", sizes(b, x, 0), b.wholes(2))),
        "CumSum is told by the number of sentences",
    ),
    "a function of places": (
        lambda b, x: b.call("Cast", b.call("Neg", b.call("Unsqueeze", places(b, x), b.wholes(1))), to=FLOAT),
        "Neg reads the places of sentences",
    ),
    "several places": (
        lambda b, x: b.call("Mul", b.call("Unsqueeze", places(b, x), b.wholes(1)), b.wholes(1, 2)),
        "Mul reads the places of sentences",
    ),
    "later places": (
        lambda b, x: b.call("Range", b.wholes(1), b.call("Add", sizes(b, x, 0), b.wholes(1)), b.wholes(1)),
        "Range counts the sentences",
    ),
    "at most": (
        lambda b, x: b.call("Max", b.call("Cast", x, to=7), b.call("Max", sizes(b, x, 0), b.wholes(1))),
        "Max reads the number of sentences",
    ),
    "beside how many": (
        lambda b, x: b.call("Add", b.call("Cast", x, to=7), sizes(b, x, 0)),
        "Add joins sentences and the number of them",
    ),
    "sizes by sizes": (
        lambda b, x: b.call("Add", x, b.call("Cast", sizes_by_sizes(b, x), to=FLOAT)),
        "Gather is told by the number of sentences",
    ),
    "as many words": (
        lambda b, x: b.call("Slice", x, b.wholes(0), sizes(b, x, 0), b.wholes(1)),
        "Slice is told by the number of sentences",
    ),
    "letters left out": (lambda b, x: b.call("Einsum", x, equation="...n->..."), "has letters that are not written"),
    "a table by places": (
        lambda b, x: b.call(
            "GatherElements", b.constant(numbers(9, NUMBERS)), b.call("ArgMax", x, axis=1, keepdims=0), axis=1
        ),
        "GatherElements lays sentences beside others",
    ),
    "the first sentence": (
        lambda b, x: like(b, x, b.call("GatherND", total(b, x), b.constant(np.zeros((1, 1), dtype=np.int64)))),
        "GatherND over the batch",
    ),
    "the diagonal": (
        lambda b, x: b.call("Mul", total(b, x), b.call("EyeLike", total(b, x))),
        "EyeLike is told by sentences",
    ),
    "a branch": (lambda b, x: squeezed_if(b, x, limit=7), "compares the number of sentences"),
    "a branch of all": (lambda b, x: squeezed_if(b, x, "ReduceSum", limit=0), "ReduceSum over the batch"),
    "no operator": (lambda b, x: b.call("NonZero", total(b, x)), "operator NonZero is not known"),
    "nothing": (lambda b, x: b.constant(numbers(2, 3)), "has no row for each sentence"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_mix_sentences_is_refused_by_name(name: str) -> None:
    graph, reason = REFUSED[name]
    said = why(graph)
    assert re.search(reason, str(said)), said


def test_a_softmax_of_an_old_opset_takes_all_axes_from_one_on() -> None:
    def graph(b: Builder, x: str) -> str:
        return back(b, b.call("Softmax", swapped(b, x), axis=1))

    assert why(graph) == "Softmax over the batch"  # of opset 18, over the batch itself
    builder = Builder()
    rows = builder.call("Gather", builder.constant(numbers(9, 2)), "input_ids")
    first = builder.call("Softmax", builder.call("Transpose", rows, perm=[1, 0, 2]), axis=0)
    builder.node("ReduceSum", [builder.call("Transpose", first, perm=[1, 0, 2])], ["scores"], axes=[1], keepdims=0)
    old = builder.proto(TOKENS, [("scores", FLOAT, None)], opset=11)
    assert why_together_matters(old, FEED) == "Softmax over the batch"  # over axes 0, 1 and 2
    old.opset_import[0].version = 13 - 7
    assert why_together_matters(old, FEED) == "operators of opset 6 are not known to keep sentences apart"


def test_what_holds_of_one_width_is_asked_again_of_another(tmp_path: Path) -> None:
    """From the sixth word on, the model reads the greatest number of its batch: a Where on what Shape says."""
    builder = Builder()
    sums = builder.call("ReduceSum", builder.call("Cast", "input_ids", to=FLOAT), builder.wholes(1), keepdims=1)
    wide = builder.call("Greater", sizes(builder, "input_ids", 1), builder.wholes(5))
    split = builder.call("Where", wide, builder.wholes(1, -1), builder.wholes(-1, 1))
    greatest = builder.call("ReduceMax", builder.call("Reshape", sums, split), builder.wholes(1), keepdims=1)
    builder.node("Add", [sums, greatest], ["scores"])
    proto = builder.proto(TOKENS, [("scores", FLOAT, ["batch", 1])], opset=18)
    assert why_together_matters(proto, {"input_ids": np.zeros((1, 5), dtype=np.int64)}) is None
    reason = why_together_matters(proto, {"input_ids": np.zeros((1, 6), dtype=np.int64)})
    assert reason == "ReduceMax over the batch"
    words = [str(n) for n in range(4)]  # so that the trial reads no more than 4
    classifier = opened(tmp_path, proto, words)
    assert not classifier.batching.alone
    assert classifier.scores([("1 1 1 1 1 1",), ("3 3 3 3 3 3",)]).tolist() == [[12.0], [36.0]]
    assert classifier.scores([("1 1",), ("3 3",)]).tolist() == [[4.0], [12.0]]


def test_neighbours_that_matter_only_for_one_word_are_seen(tmp_path: Path) -> None:
    """No sentence that the model is tried on holds `rare`, and in a batch with it all others break."""
    words = [f"w{k}" for k in range(20)]
    words.insert(10, "rare")
    table = np.zeros((21, 2), dtype=np.float32)
    table[:, 0], table[10, 1] = 1, 1
    builder = Builder()
    sums = builder.call(
        "ReduceSum", builder.call("Gather", builder.constant(table), "input_ids"), builder.wholes(1), keepdims=0
    )
    greatest = builder.call("ReduceMax", sums, builder.wholes(0))
    builder.node(
        "Add", [sums, builder.call("Mul", greatest, builder.constant(np.array([0, -9], dtype=np.float32)))], ["scores"]
    )
    classifier = opened(tmp_path, builder.proto(TOKENS, [("scores", FLOAT, ["batch", 2])], opset=18), words)
    assert classifier.identity.remarks == ("ReduceMax over the batch: every sentence is evaluated alone",)
    assert classifier.scores([("w1 w2",), ("w1 rare",)]).tolist() == [[2.0, 0.0], [2.0, -8.0]]


@pytest.mark.parametrize("mixing", [False, True])
def test_a_batch_of_fixed_size_holds_one_sentence_alone_where_others_matter(tmp_path: Path, mixing: bool) -> None:
    builder = Builder()
    numbers = builder.call("Cast", "input_ids", to=FLOAT)
    sums = builder.call("ReduceSum", numbers, builder.wholes(1), keepdims=1)
    greatest = builder.call("ReduceMax", sums, builder.wholes(0 if mixing else 1), keepdims=1)
    builder.node("Add", [sums, greatest], ["scores"])
    fixed: Inputs = [("input_ids", TensorProto.INT64, [3, "length"])]
    classifier = opened(
        tmp_path, builder.proto(fixed, [("scores", FLOAT, [3, 1])], opset=18), [str(n) for n in range(9)]
    )
    assert classifier.batching.alone is mixing
    assert classifier.scores([("1 2",), ("4 5",), ("3 3",), ("7 8",)]).tolist() == [[6.0], [18.0], [12.0], [30.0]]


def step(kind: str, axis: int, order: tuple[int, ...]) -> Graph:
    """One operator on [., ., .], told where."""
    other = (axis + 1) % 3
    graphs: dict[str, Graph] = {
        "reduce": lambda b, x: b.call("Sub", x, b.call("ReduceMax", x, b.wholes(axis))),
        "softmax": lambda b, x: b.call("Softmax", x, axis=axis),
        "sum": lambda b, x: b.call("CumSum", x, b.constant(np.int64(axis))),
        "transpose": lambda b, x: b.call("Transpose", x, perm=order),
        "product": lambda b, x: b.call("MatMul", x, b.call("Transpose", x, perm=[0, 2, 1])),
        "merge": lambda b, x: b.call(
            "Reshape",
            b.call(
                "Relu",
                b.call("Reshape", x, b.call("Concat", *[sizes(b, x, k) for k in range(axis)], b.wholes(-1), axis=0)),
            ),
            b.call("Shape", x),
        ),
        "order": lambda b, x: b.call("Reshape", x, b.call("Gather", b.call("Shape", x), b.wholes(*order))),
        "turn": lambda b, x: b.call(
            "Concat",
            b.call("Slice", x, b.wholes(1), b.wholes(2**62), b.wholes(axis)),
            b.call("Slice", x, b.wholes(0), b.wholes(1), b.wholes(axis)),
            axis=axis,
        ),
        "back": lambda b, x: b.call("Slice", x, b.wholes(-1), b.wholes(-(2**40)), b.wholes(axis), b.wholes(-1)),
        "norm": lambda b, x: b.call("LpNormalization", x, axis=axis),
        "first": lambda b, x: b.call("Add", x, b.call("Gather", x, b.wholes(0), axis=axis)),
        "sorted": lambda b, x: b.call("TopK", x, b.call("Gather", b.call("Shape", x), b.wholes(axis)), axis=axis),
        "own": lambda b, x: b.call("GatherElements", x, b.call("ArgMax", x, axis=axis), axis=axis),
        "letters": lambda b, x: b.call("Einsum", x, x, equation=("abc,abd->acd", "abc,dbc->abd", "abc,abd->abd")[axis]),
        "pool": lambda b, x: b.call("Add", x, b.call("GlobalAveragePool", x)),
        "size": lambda b, x: b.call("Mul", x, b.call("Cast", sizes(b, x, other), to=FLOAT)),
    }
    return graphs[kind]


KINDS = (
    *("reduce", "softmax", "sum", "transpose", "product", "merge", "order", "turn", "back", "norm", "first", "sorted"),
    *("own", "letters", "pool", "size"),
)
STEPS = st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.permutations([0, 1, 2]))


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=4), st.permutations([0, 1, 2]), st.integers(0, 99))
def test_whatever_is_shown_apart_answers_as_alone(steps: list[Any], last: list[int], seed: int) -> None:
    def graph(b: Builder, x: str) -> str:
        for kind, axis, order in steps:
            x = b.call("Tanh", step(kind, axis, tuple(order))(b, x))
        return b.call("Transpose", x, perm=last)

    proto = model(graph)
    if why_together_matters(proto, FEED) is None:
        compare(proto, seed)
