"""Bounds that networks are trained by, against every sentence."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_learners import BODIES, SYNONYMS, WORDS, learner, started

from swapproof.models.defences.swap_margins import CrownIbp, Ibp, SmoothIbp, SwapHinge
from swapproof.models.defences.synonym_pairs import neighbour_table

torch = pytest.importorskip("torch")

NEAR = torch.from_numpy(neighbour_table(WORDS, SYNONYMS, 2))
WITH_BOXES = [name for name, body in BODIES.items() if body.has_boxes]
ADDING_UP = [name for name, body in BODIES.items() if body.adds_up]
ROUNDING = 1e-4


def sentences(tokens: tuple[int, ...]) -> tuple[Any, Any]:
    """All of them, and how many swaps each has."""
    rows = list(itertools.product(*(dict.fromkeys(NEAR[token].tolist()) for token in tokens)))
    swaps = [sum(a != b for a, b in zip(row, tokens, strict=True)) for row in rows]
    padding = [0] * (5 - len(tokens))
    return torch.tensor([[*row, *padding] for row in rows]), torch.tensor(swaps)


def margins(network: Any, rows: Any, label: int) -> Any:
    with torch.no_grad():
        logits = network.logits(network.vectors(rows), rows != 0)
    return logits[:, label, None] - logits


texts = st.lists(st.integers(1, len(WORDS) - 1), min_size=1, max_size=5).map(tuple)


@pytest.mark.parametrize("architecture", WITH_BOXES)
@given(text=texts, seed=st.integers(0, 1000), label=st.integers(0, 2))
@settings(max_examples=8)
def test_boxes_hold_every_sentence(architecture: str, text: tuple[int, ...], seed: int, label: int) -> None:
    """Vectors, features, and the margins by intervals and by CROWN."""
    from swapproof.models.defences.swap_margins import crown_margins, interval_margins, word_boxes

    network = learner(BODIES[architecture], seed=seed, classes=3)
    rows, _ = sentences(text)
    tokens, labels = rows[:1], torch.tensor([label])
    assert tokens[0, : len(text)].tolist() == list(text)
    with torch.no_grad():
        low, high = word_boxes(network, NEAR[tokens], 1.0)
        vectors = network.vectors(rows)
        assert ((vectors >= low - ROUNDING) & (vectors <= high + ROUNDING)).all()
        box = network.shape.body.box(network.weights, low, high, tokens != 0)
        assert box is not None
        features = network.features(vectors, rows != 0)
        assert (features >= box[0] - ROUNDING).all()
        assert (features <= box[1] + ROUNDING).all()
        least = margins(network, rows, label).amin(dim=0)
        for bound in (interval_margins(network, box, labels), crown_margins(network, box, labels)):
            assert (bound[0] <= least + ROUNDING).all()
            assert abs(float(bound[0, label])) < ROUNDING


@pytest.mark.parametrize("architecture", ADDING_UP)
@given(text=texts, seed=st.integers(0, 1000), label=st.integers(0, 2))
@settings(max_examples=12)
def test_bounds_by_number_of_swaps_hold_every_sentence(
    architecture: str, text: tuple[int, ...], seed: int, label: int
) -> None:
    from swapproof.models.defences.swap_margins import margins_by_swaps

    network = learner(BODIES[architecture], seed=seed, classes=3)
    rows, swaps = sentences(text)
    others = [one for one in range(3) if one != label]
    with torch.no_grad():
        bounds = margins_by_swaps(network, NEAR, rows[:1], torch.tensor([label]), 5)[0]
    worst = margins(network, rows, label)[:, others].amin(dim=1)
    for number, bound in enumerate(bounds.tolist(), 1):
        assert bound <= float(worst[swaps <= number].min()) + ROUNDING
    assert (bounds[1:] <= bounds[:-1] + ROUNDING).all()


def test_the_bounds_of_a_linear_network_are_exact() -> None:
    """Without a hidden layer the selection of the best swaps is the minimum itself."""
    from swapproof.models.architectures.mean_network import Mean
    from swapproof.models.defences.swap_margins import margins_by_swaps

    network = learner(Mean(3, ()), seed=5)
    rows, swaps = sentences((2, 5, 8, 3))
    with torch.no_grad():
        bounds = margins_by_swaps(network, NEAR, rows[:1], torch.tensor([0]), 4)[0]
    worst = margins(network, rows, 0)[:, 1]
    np.testing.assert_allclose(bounds, [float(worst[swaps <= number].min()) for number in (1, 2, 3, 4)], atol=1e-5)


def test_certified_training_raises_what_can_be_certified(tmp_path: Path) -> None:
    """On two texts, from the same weights, for the worst sentence of each."""
    (tmp_path / "s.json").write_text(json.dumps(SYNONYMS), encoding="utf-8")
    tokens, labels = torch.tensor([[2, 8, 0, 0, 0], [5, 9, 0, 0, 0]]), torch.tensor([1, 0])
    for defence in (Ibp("s.json"), CrownIbp("s.json"), SmoothIbp("s.json"), SwapHinge("s.json", rounds=1)):
        rule = started(defence, BODIES["cnn"], tmp_path)
        network = learner(BODIES["cnn"], rule, seed=3)
        steps = torch.optim.Adam(network.weights.values(), lr=0.15)
        for step in range(15):
            steps.zero_grad()
            rule.learn(network, tokens, labels, step / 15)
            steps.step()
        for text, label in zip(tokens, labels.tolist(), strict=True):
            rows, _ = sentences(tuple(text[text != 0].tolist()))
            assert margins(network, rows, label)[:, 1 - label].min() > 0


def test_smooth_ibp_learns_through_averaged_vectors_and_holds_states(tmp_path: Path) -> None:
    """The table that it reads is the averaged one, and rows of recurrent matrices stay within l1."""
    (tmp_path / "s.json").write_text(json.dumps(SYNONYMS), encoding="utf-8")
    rule = started(SmoothIbp("s.json", rounds=1, l1=0.5), BODIES["lstm"], tmp_path)
    network = learner(BODIES["lstm"], rule, seed=3)
    own = network.weights["embedding"]
    torch.testing.assert_close(network.table[8], (own[8] + own[7]) / 2)  # movie and film
    rule.hold(dict(network.weights))
    assert network.weights["forward.weight_state"].abs().sum(dim=1).max() <= 0.5 + ROUNDING
    assert [said for holds, said in SmoothIbp("s", l1=1.0).rules(BODIES["cnn"]) if not holds] == [
        "l1 is for recurrent networks, not for 'cnn'"
    ]


def test_networks_that_a_defence_does_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    from swapproof.models.architectures.recurrent_network import Gru
    from swapproof.models.architectures.transformer_network import Transformer

    def complaints(defence: Any, body: Any) -> list[str]:
        return [complaint for holds, complaint in defence.rules(body) if not holds]

    assert (
        "ibp, crown-ibp and smooth-ibp need interval bounds, and 'transformer'"
        in complaints(Ibp("s"), Transformer())[0]
    )
    assert "'gru'" in complaints(CrownIbp("s"), Gru())[0]
    assert "in 'bilstm' they do not" in complaints(SwapHinge("s"), BODIES["bilstm"])[0]
