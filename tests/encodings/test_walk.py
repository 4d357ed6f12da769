"""A kind of layer means what a table says, everywhere; what a table does not have is refused by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import swapproof.encodings
import swapproof.verifier
from swapproof.encodings.bounds.linear_bounds import ElementBounds, LinearBounds
from swapproof.encodings.bounds.normal_form import stack_of
from swapproof.encodings.bounds.one_word import OneWord, Tail
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.slope_ascent import SlopeAscent
from swapproof.encodings.bounds.substitution import Coefficients
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.evaluation import NUMBERS, Batch, logits, values
from swapproof.encodings.exact_evaluation import REALS, exact_logits
from swapproof.encodings.formulas.query_formula import formula
from swapproof.encodings.network import AFFINE, Affine, At, Curve, Embedding, Network, Node, Rearrangement, Rectifier
from swapproof.encodings.onnx_files.onnx_writing import model_behind_embedding
from swapproof.encodings.programs.exact_functions import exact_functions
from swapproof.encodings.programs.polarity import DIRECTIONS, Polarity
from swapproof.encodings.programs.textbook_program import Textbook
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.float_errors import rounding_errors
from swapproof.encodings.rounding.magnitudes import magnitudes
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.ties import same
from swapproof.encodings.walk import KINDS, Meaning, backward, forward, gather

Array = NDArray[Any]


def meanings() -> dict[str, Meaning[Any]]:
    """Every table that some module of ours has, by its name."""
    found = {}
    for package in (swapproof.encodings, swapproof.verifier):
        (folder,) = map(Path, package.__path__)
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts[0] in ("example", "swapproof") or parts[-1] == "__init__":
                continue  # what is made once by hand, and the folder that the import package itself is
            for value in vars(importlib.import_module(".".join((package.__name__, *parts)))).values():
                if isinstance(value, Meaning):
                    found[value.name] = value
    return found


MEANINGS = meanings()


@dataclass(frozen=True, eq=False)
class Abs:
    """out = |in|: a kind of layer that nothing but this file knows."""


def absolute(batch: Batch, layer: Abs, inputs: list[Array], at: At) -> Array:
    return np.abs(inputs[0])


def network(layer: Any) -> Network:
    """Two words of one number each, two hidden numbers, this layer on them, two logits."""
    nodes = (
        Node(Embedding(np.array([[-2.0], [1.0], [0.5]]), np.array([[0, 1]])), (), (1, 2, 1), "words"),
        Node(Rearrangement(np.array([[0, 1]])), (0,), (1, 2), "flat"),
        Node(Affine(np.array([[1.0, -1.0], [0.5, 2.0]]), np.array([0.25, 0.0])), (1,), (1, 2), "hidden"),
        Node(layer, (2,), (1, 2), "the new node"),
        Node(Affine(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3.0, 0.0])), (3,), (1, 2), "out"),
    )
    return Network(nodes, length=2, vocabulary_size=3)


def query(layer: Any) -> Query:
    return Query.of(network(layer), SwapSpace(((0, 1), (1, 2))), 0)


def bounds(asked: Query) -> LinearBounds:
    return LinearBounds(Places.of(Differences.of(asked)), 0, 1)


WALKS: dict[str, Callable[[Query], Any]] = {
    "value over the reals": lambda asked: exact_logits(asked.network, asked.space.original),
    "bound of its magnitude": lambda asked: magnitudes(asked.network, {0: np.ones((1, 1, 2, 1))}, {}),
    "bound of its rounding": lambda asked: rounding_errors(
        asked.network, {index: np.ones(node.shape) for index, node in enumerate(asked.network.nodes)}
    ),
    "backward substitution": lambda asked: bounds(asked).margin(bounds(asked).whole()),
    "known direction": lambda asked: Polarity.of(asked, [0]),
    "rows in the textbook's program": Textbook.of,
    "terms in a formula": lambda asked: formula(asked, 1),
    "exact affine function": exact_functions,
    "normal form": lambda asked: stack_of(asked.network),
    "comparison of two of its elements": lambda asked: same(asked.network, 3, (0, 1)),
    "ONNX operators to write": lambda asked: model_behind_embedding(asked.network),
}
"""What somebody would call to walk the whole network."""


def test_there_are_meanings() -> None:
    assert len(MEANINGS) > 10
    assert set(WALKS) < set(MEANINGS)


@pytest.mark.parametrize("name", MEANINGS)
def test_a_meaning_has_a_rule_or_a_reason_for_every_kind(name: str) -> None:
    """What the type checker would say of a `match`: nothing is forgotten, and nothing is there twice."""
    meaning = MEANINGS[name]
    assert {*meaning.rules, *meaning.refused} == set(KINDS)
    assert not {*meaning.rules} & {*meaning.refused}


def test_every_kind_has_a_value() -> None:
    assert set(NUMBERS.rules) == set(KINDS)
    assert set(KINDS) - set(REALS.rules) == {Curve}
    assert set(AFFINE) < set(KINDS)


def test_a_new_kind_is_evaluated_by_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = np.array([[0, 1], [1, 2], [2, 0]])
    with pytest.raises(Unsupported, match="the new node: a layer of kind Abs has no value in floats; there is one for"):
        logits(network(Abs()), sentences)
    monkeypatch.setitem(NUMBERS.rules, Abs, absolute)
    before = values(network(Abs()), sentences, wanted=(2,))[2][:, 0]
    np.testing.assert_array_equal(logits(network(Abs()), sentences), np.abs(before) + np.array([3.0, 0.0]))


@pytest.mark.parametrize("name", WALKS)
def test_every_other_meaning_refuses_a_new_kind_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NUMBERS.rules, Abs, absolute)
    if name == "terms in a formula":  # which directions are asked before
        monkeypatch.setitem(DIRECTIONS.rules, Abs, lambda network, layer, own, at: [own | own[::-1]])
    with pytest.raises(Unsupported, match=f"^the new node: a layer of kind Abs has no {name}; "):
        WALKS[name](query(Abs()))


@pytest.mark.parametrize("name", WALKS)
def test_the_same_walks_go_through_the_kinds_that_they_know(name: str) -> None:
    WALKS[name](query(Rectifier(0.0)))


@pytest.mark.parametrize("name", [name for name in MEANINGS if MEANINGS[name] is not NUMBERS])
def test_a_refusal_says_what_was_met_where_and_what_there_is(name: str) -> None:
    with pytest.raises(Unsupported, match=f"^here: a layer of kind Abs has no {name}; there is one for .*R"):
        MEANINGS[name].rule(Node(Abs(), (), (1,), "here"))  # type: ignore[arg-type]


def test_a_new_kind_counts_as_nonlinear() -> None:
    """Whoever forgets to say that it is affine loses precision, not soundness."""
    assert network(Abs()).cut == (2,)
    assert network(Abs()).linear == {0, 1, 2}


def test_one_entry_is_enough_where_only_values_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Swaps are followed by differences, and words one by one: what these do not know is computed whole."""
    monkeypatch.setitem(NUMBERS.rules, Abs, absolute)
    asked = query(Abs())
    differences = Differences.of(asked)
    sentences = np.array([asked.space.original, (1, 1), (0, 2)])
    found = logits(asked.network, sentences)
    cuts = np.concatenate([differences.base[None], differences.base + differences.rows])
    np.testing.assert_allclose(differences.margins(cuts)[:, 0], found[:, 0] - found[:, 1])
    one = OneWord(asked.network)
    tail = Tail(asked.network, differences.base, np.arange(differences.width))
    np.testing.assert_allclose(tail.logits(one.cuts(sentences)), found)


def test_the_ends_and_the_line_of_a_new_kind_are_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NUMBERS.rules, Abs, absolute)
    with pytest.raises(Unsupported, match="Abs"):
        SlopeAscent(bounds(query(Abs())))
    ends = ElementBounds(bounds(query(Abs())), bounds(query(Abs())).whole())
    with pytest.raises(Unsupported, match="a layer of kind Abs has no bounds of its elements"):
        ends.of(3)
    with pytest.raises(Unsupported, match="a layer of kind Abs has no linear bound"):
        ends.replace(3, Coefficients(np.ones((1, 1, 2))), [])


def test_inputs_are_laid_end_to_end_and_read_at_the_index() -> None:
    """Whatever leading axes there are; a reshape copies nothing."""
    rng = np.random.default_rng(0)
    for batch in ((), (3,), (2, 3)):
        x, y = rng.normal(size=(*batch, 2, 2)), rng.normal(size=(*batch, 3))
        layer = Rearrangement(np.array([[6, 0], [3, 3]]))
        flat = np.concatenate([x.reshape(*batch, 4), y], axis=-1)
        np.testing.assert_array_equal(gather(layer, [x, y], len(batch)), flat[..., [[6, 0], [3, 3]]])
        same = Rearrangement(np.arange(4).reshape(4, 1))
        assert np.shares_memory(gather(same, [x], len(batch)), x)
        np.testing.assert_array_equal(gather(same, [x], len(batch)), x.reshape(*batch, 4, 1))
        some = Rearrangement(np.arange(2))
        np.testing.assert_array_equal(gather(some, [x], len(batch)), x.reshape(*batch, 4)[..., :2])
        one = Rearrangement(np.array(3))
        np.testing.assert_array_equal(gather(one, [x], len(batch)), x.reshape(*batch, 4)[..., 3])


def test_what_two_readers_ask_is_added_and_stops_where_it_should() -> None:
    nodes = tuple(
        Node(Rectifier(0.0), inputs, (1,), f"node {index}") for index, inputs in enumerate([(), (0,), (0,), (1, 2), ()])
    )
    asked = Network(nodes, length=1, vocabulary_size=1)

    def pass_on(_: None, layer: Rectifier, given: int, at: At) -> list[int]:
        return [given] * len(at.node.inputs)

    def add(source: int, one: int, more: int) -> int:
        return one + more

    handed: Meaning[Sequence[int]] = Meaning("path", {Rectifier: pass_on})
    assert list(backward(asked, handed, None, 3, 1, add)) == [(3, 1), (2, 1), (1, 1), (0, 2)]
    assert list(backward(asked, handed, None, 3, 1, add, stop=(1,))) == [(3, 1), (2, 1), (1, 1), (0, 1)]


def test_only_what_is_needed_is_walked() -> None:
    """A node that nothing wanted reads may be of any kind."""
    asked = network(Abs())
    assert set(forward(asked, NUMBERS, Batch(1, np.array([[0, 1]])), wanted=(2,))) == {0, 1, 2}
    assert set(values(asked, given={3: np.zeros((1, 1, 2))})) == {3, 4}


def test_a_normal_form_says_which_node_each_layer_was_made_for() -> None:
    """Of what the output depends on: a rectifier that nothing reads makes no layer."""
    asked = network(Rectifier(0.0))
    unread = Node(Rectifier(0.0), (2,), (1, 2), "unread")
    nodes = (*asked.nodes[:4], unread, asked.nodes[4])
    stack = stack_of(Network(nodes, length=2, vocabulary_size=3))
    assert stack.sources == (3,)
    assert stack.widths == (2, 2)


def test_encodings_tell_layers_apart_by_tables() -> None:
    """A `match` over layers would be one more place to touch for a new kind."""
    folder = Path(swapproof.encodings.__path__[0])
    assert not [path.stem for path in folder.rglob("*.py") if "case Rearrangement(" in path.read_text()]
