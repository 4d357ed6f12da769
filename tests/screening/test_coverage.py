"""Models with limits, slopes of any size, masks and dead branches are screened, and no more than check.py accepts."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from masked_models import STYLES, masked
from proof_cases import Case, Prover, exact_logits, read, statement
from random_graphs import Graph, finished
from random_networks import networks, swap_spaces
from random_steps import STEPS
from screening_cases import mutated, same_or_nothing

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.network import Affine, Network, Node, Rearrangement, Rectifier
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.rounding.certified_float32 import claims_of
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import inputs_of, words_of
from swapproof.proofs import check
from swapproof.proofs.lower import read_model
from swapproof.proofs.writing import certificate as c
from swapproof.verifier.screening import Screen
from swapproof.verifier.screening.form.agreed_network import Apart, agreed

Choices = tuple[tuple[int, ...], ...]
LEVELS: tuple[c.Level, ...] = ("real", "float32")
LENGTH, VOCABULARY = 4, 9
OPERATORS = ("clip", "prelu", "absolute", "against_constant", "choose", "dead_end")


def with_operator(step: str, source: int) -> bytes:
    """Two hidden layers, one of these steps in each."""
    g = Graph(np.random.default_rng(source), 18)
    g.go(g.call("Gather", g.constant(g.numbers(VOCABULARY, 2)), "tokens"), 1, LENGTH, 2)
    STEPS["flatten"](g)
    for _ in range(2):
        weights = g.constant(g.numbers(g.shape[1], 4)), g.constant(g.numbers(4))
        g.go(g.call("Gemm", g.at, *weights), 1, 4)
        STEPS[step](g)
        if step in ("choose", "dead_end"):
            STEPS["relu"](g)
    g.go(g.call("Gemm", g.at, g.constant(g.numbers(4, 2)), g.constant(g.numbers(2))), 1, 2)
    return bytes(finished(g, length=LENGTH, vocabulary=VOCABULARY, classes=2).model.SerializeToString())


def with_mask(style: str, source: int) -> bytes:
    """Weights without ties, which float64 does not decide."""
    model, chosen = masked(style, source, LENGTH, VOCABULARY).model, np.random.default_rng(source)
    held = [attribute.t for node in model.graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor in (*model.graph.initializer, *held):
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims:
            numbers = chosen.normal(size=tensor.dims).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(numbers, tensor.name))
    return bytes(model.SerializeToString())


def some_choices(chosen: random.Random, words: int = LENGTH) -> Choices:
    swaps = [tuple(chosen.sample(range(1, VOCABULARY), chosen.randint(1, 3))) for _ in range(words)]
    return (*swaps, *[(0,)] * (LENGTH - words))


def certified(data: bytes, choices: Choices, level: c.Level, chosen: random.Random) -> bytes | None:
    """A certificate of as many swaps as can be proved, two at most, with splits and multipliers drawn at random."""
    case = Case(data, choices, 0, 2)
    logits = exact_logits(read(case), [options[0] for options in choices])
    case = replace(case, label=logits.index(max(logits)))
    for swaps in (2, 1, 0):
        tree = Prover(case, swaps, level, chosen, small=2).prove()
        if tree is not None:
            return c.write_certificate(statement(case, lower=c.Lower(swaps, level, tree)))
    return None


def screen_of(folder: Path, data: bytes) -> Screen:
    path = folder / "model.onnx"
    path.write_bytes(data)
    return Screen(open_model(path), read_model(data), None)


MODELS: dict[str, Callable[[int], bytes]] = {
    **{step: partial(with_operator, step) for step in OPERATORS},
    **{f"mask, {style}": partial(with_mask, style) for style in STYLES},
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MODELS)
def test_these_models_do_not_need_the_exact_checker(name: str, level: c.Level, tmp_path: Path) -> None:
    """What is accepted is said in the words of check.py; so it is for certificates that were tampered with."""
    screened = made = 0
    for source in range(8):
        chosen, data = random.Random(source), MODELS[name](source)
        found = certified(data, some_choices(chosen, 4 if name in OPERATORS else chosen.randint(1, 4)), level, chosen)
        if found is None:
            continue
        made += 1
        screen = screen_of(tmp_path, data)
        screened += same_or_nothing(screen, found)
        top = json.loads(found)
        tree = base64.b64decode(top["lower"]["tree"])
        for _ in range(8):
            lower = {**top["lower"], "tree": base64.b64encode(mutated(tree, chosen)).decode()}
            lower["swaps"] = max(0, lower["swaps"] + chosen.choice((0, 0, 1)))
            changed = {**top, "lower": lower}
            same_or_nothing(screen, json.dumps(changed, sort_keys=True, separators=(",", ":")).encode())
    assert screened == made >= 6


@given(data=st.data(), sample=networks(kinds=False, heads=False), level=st.sampled_from(LEVELS))
def test_any_mixture_of_operators_is_screened_or_refused_like_its_certificate(
    data: st.DataObject, sample: Any, level: c.Level
) -> None:
    """One linear leaf for a number of swaps that may be proved or not, and a witness that may be one or not."""
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        try:
            screen = screen_of(Path(folder), sample.model.SerializeToString())
            classes = len(read(Case(sample.model.SerializeToString(), choices, 0, 2)).logits)
        except (BadInput, Unsupported, check.Unusable):
            return
        case = Case(sample.model.SerializeToString(), choices, data.draw(st.integers(0, classes - 1)), classes)
        lower = c.Lower(data.draw(st.integers(0, 2)), level, c.Linear())
        able = [(p, len(options)) for p, options in enumerate(choices) if len(options) > 1]
        swaps = tuple((p, data.draw(st.integers(1, count - 1))) for p, count in able if data.draw(st.booleans()))
        same_or_nothing(screen, c.write_certificate(statement(case, lower=lower)))
        same_or_nothing(screen, c.write_certificate(statement(case, upper=c.Upper(swaps, (level, "replay")))))


# --- two readings ---------------------------------------------------------------------------------------------------


def both(data: bytes, choices: Choices, folder: Path) -> tuple[Network, str]:
    """Our network, and the SHA-256 of the checkers'."""
    path, space = folder / "model.onnx", SwapSpace(choices)
    path.write_bytes(data)
    lowered = read_model(data).lower(inputs_of(space), words_of(space))
    return network_of(open_model(path), LENGTH, choices), lowered.sha256


def changes(network: Network) -> Iterator[Network]:
    """The network with one thing changed, wherever that can be done."""
    for index, node in enumerate(network.nodes):
        others: list[Node] = []
        match node.layer:
            case Affine(weight, bias) as layer:
                weight = weight.copy()
                weight[0, -1] = np.nextafter(weight[0, -1], np.inf)
                layers = replace(layer, weight=weight), replace(layer, bias=np.nextafter(bias, np.inf))
                others = [replace(node, layer=other) for other in layers]
            case Rectifier():
                others = [replace(node, layer=Rectifier(0.5))]
            case Rearrangement(order) if len(np.unique(order)) > 1:
                others = [replace(node, layer=Rearrangement(order.reshape(-1)[::-1].reshape(order.shape)))]
            case _:
                pass
        for other in others:
            yield replace(network, nodes=(*network.nodes[:index], other, *network.nodes[index + 1 :]))


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"choose"}))
def test_a_reading_that_differs_in_anything_is_noticed(name: str, tmp_path: Path) -> None:
    """Any last digit of a weight, slope or order. (Where elements are left out some are idle.)"""
    network, lowered = both(MODELS[name](3), some_choices(random.Random(3), 3), tmp_path)
    assert agreed(network, lowered).named
    others = list(changes(network))
    assert len(others) >= 5
    for other in others:
        with pytest.raises(Apart, match="read in two ways"):
            agreed(other, lowered)


def test_an_element_that_is_bounded_otherwise_is_noticed(tmp_path: Path) -> None:
    """A Relu that reads x times 1 does not read x, though they are equal: its input is bounded by substitution."""
    found = []
    for factor in (False, True):
        g = Graph(np.random.default_rng(0), 18)
        g.go(g.call("Gather", g.constant(g.numbers(VOCABULARY, 2)), "tokens"), 1, LENGTH, 2)
        STEPS["flatten"](g)
        STEPS["relu"](g)
        if factor:
            g.go(g.call("Mul", g.at, g.constant(np.ones(1, np.float32))), *g.shape)
        else:
            g.call("Mul", g.at, g.constant(np.ones(1, np.float32)))  # leads nowhere, and keeps the numbers
        STEPS["relu"](g)
        g.go(g.call("Gemm", g.at, g.constant(g.numbers(2 * LENGTH, 2))), 1, 2)
        data = finished(g, length=LENGTH, vocabulary=VOCABULARY, classes=2).model.SerializeToString()
        found.append(both(data, some_choices(random.Random(0)), tmp_path))
    (plain, plain_lowered), (multiplied, multiplied_lowered) = found
    assert agreed(plain, plain_lowered)
    assert agreed(multiplied, multiplied_lowered)
    with pytest.raises(Apart, match="read in two ways"):
        agreed(plain, multiplied_lowered)


# --- masks ----------------------------------------------------------------------------------------------------------


def one_leaf(data: bytes, choices: Choices, label: int, swaps: int = 0) -> Any:
    lower = c.Lower(swaps, "real", c.Linear())
    return json.loads(c.write_certificate(statement(Case(data, choices, label, 2), lower=lower)))


def test_texts_that_a_mask_does_not_tell_apart_share_a_network(tmp_path: Path) -> None:
    """As many words, the same padding: then what is accepted is what check.py accepts with a network for each."""
    data, chosen = with_mask("float", 1), random.Random(1)
    screen, accepted = screen_of(tmp_path, data), 0
    for turn in range(24):
        top = one_leaf(data, some_choices(chosen, 1 + turn % 3), turn % 2, turn % 2)
        written = json.dumps(top, sort_keys=True, separators=(",", ":")).encode()
        found = screen.verdict(top, 60.0)
        if found is not None:
            accepted += 1
            assert found == check.check_certificate(written, read_model(data))
    assert accepted >= 6
    assert len(screen.networks) == 3


def test_a_swap_that_a_mask_tells_apart_is_left_to_the_checker(tmp_path: Path) -> None:
    """Which refuses it; and the texts before and after it are screened."""
    data, chosen = with_mask("float", 1), random.Random(1)
    screen = screen_of(tmp_path, data)
    sound = [(choices, label) for choices in [some_choices(chosen, 3) for _ in range(9)] for label in (0, 1)]
    sound = [(ch, label) for ch, label in sound if screen.verdict(one_leaf(data, ch, label), 60.0) is not None]
    assert sound
    choices, label = sound[0]
    torn = (choices[0], choices[1], (*choices[2], 0), choices[3])
    assert screen.verdict(one_leaf(data, torn, label), 60.0) is None
    written = c.write_certificate(statement(Case(data, torn, label, 2), lower=c.Lower(0, "real", c.Linear())))
    with pytest.raises(check.Refused):
        check.check_certificate(written, read_model(data))
    assert screen.verdict(one_leaf(data, choices, label), 60.0) is not None


@pytest.mark.parametrize("operator", ["Min", "Mul", "Add"])
def test_other_arithmetic_with_tokens_gives_every_text_a_network_of_its_own(operator: str, tmp_path: Path) -> None:
    """Where integers of 64 bits go round check.py refuses: nothing is concluded from one text for another."""
    g = Graph(np.random.default_rng(5), 18)
    words = g.call("Gather", g.constant(g.numbers(VOCABULARY, 2)), "tokens")
    numbers = {"Min": 1, "Mul": 2**62, "Add": 2**63 - 8}
    made = g.call(operator, "tokens", g.constant(np.array(numbers[operator])))
    column = g.call("Cast", g.call("Unsqueeze", g.call("Greater", made, g.constant(np.array(0))), g.wholes(-1)), to=1)
    g.go(g.call("Flatten", g.call("Mul", words, column)), 1, 2 * LENGTH)
    STEPS["relu"](g)
    g.go(g.call("Gemm", g.at, g.constant(g.numbers(2 * LENGTH, 2)), g.constant(g.numbers(2))), 1, 2)
    data = finished(g, length=LENGTH, vocabulary=VOCABULARY, classes=2).model.SerializeToString()
    screen, model = screen_of(tmp_path, data), read_model(data)
    for choices in (((1,),) * 4, ((1,), (2,), (0,), (0,)), ((4,), (8,), (0,), (0,)), ((4,), (5,), (0,), (0,))):
        for label in (0, 1):
            top = one_leaf(data, choices, label)
            found = screen.verdict(top, 60.0)
            if found is not None:
                written = json.dumps(top, sort_keys=True, separators=(",", ":")).encode()
                assert found == check.check_certificate(written, model)


# --- rounding -------------------------------------------------------------------------------------------------------


def test_a_sum_with_one_constant_is_screened_for_rounding(tmp_path: Path) -> None:
    """The constant is a term of its own here as it is in check.py."""
    for operator in ("Add", "Sum"):
        g = Graph(np.random.default_rng(5), 18)
        g.go(g.call("Gather", g.constant(g.numbers(VOCABULARY, 2)), "tokens"), 1, LENGTH, 2)
        STEPS["flatten"](g)
        g.go(g.call(operator, g.at, g.constant(g.numbers(1))), *g.shape)
        g.go(g.call("Gemm", g.at, g.constant(g.numbers(2 * LENGTH, 2))), 1, 2)
        data = finished(g, length=LENGTH, vocabulary=VOCABULARY, classes=2).model.SerializeToString()
        assert claims_of(screen_of(tmp_path, data).agreed(SwapSpace(((1, 2),) * 4)).network) is not None
