"""Perturbations of vectors against their formulas, on networks small enough to do by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from small_learners import BODIES, gradients, learner, started

from swapproof.models.defences.gradient_ascent import FreeLb, FreeLbPlusPlus, InfoBert, Pgd, TaVat

torch = pytest.importorskip("torch")

TOKENS = torch.tensor([[2, 7, 0, 0, 0], [5, 9, 8, 1, 3]])
LABELS = torch.tensor([1, 0])


def test_the_first_perturbation_is_small_and_leaves_padding_alone() -> None:
    from swapproof.models.defences.gradient_ascent import first_delta

    real = TOKENS != 0
    delta = first_delta(torch.zeros(2, 5, 3), real, 0.6, torch.Generator().manual_seed(0))
    assert not delta[~real].any()
    for row, words in zip(delta, (2, 5), strict=True):
        assert 0 < row.abs().max() <= 0.6 / np.sqrt(words * 3)


def test_a_step_goes_uphill_by_the_rate_and_is_projected_only_with_a_norm() -> None:
    from swapproof.models.defences.gradient_ascent import climbed

    delta, gradient = torch.zeros(2, 5, 3), torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(2))
    free, held = climbed(delta, gradient, 0.5, 0.0), climbed(delta, gradient, 0.5, 0.2)
    for text in range(2):
        direction = gradient[text] / gradient[text].norm()
        torch.testing.assert_close(free[text], 0.5 * direction)
        torch.testing.assert_close(held[text], 0.2 * direction)
    assert not climbed(delta, torch.zeros_like(gradient), 0.5, 0.0).any()


@pytest.mark.parametrize("architecture", ["mmws", "mean", "cnn", "lstm", "transformer"])
@pytest.mark.parametrize("norm", [0.0, 0.3])
def test_freelb_is_the_mean_of_the_gradients_on_the_way_and_pgd_the_one_at_its_end(
    architecture: str, norm: float
) -> None:
    """Done again step by step, padding held still."""
    from torch.nn import functional

    body, steps, rate = BODIES[architecture], 3, 0.4
    for method in (FreeLb, Pgd):
        rule = started(method(steps=steps, rate=rate, magnitude=0.2, norm=norm), body, Path())
        network = learner(body, rule)
        start = network.generator.get_state()
        found = gradients(network, partial(rule.learn, network, TOKENS, LABELS, 0.5))
        network.generator.set_state(start)
        real = (TOKENS != 0).unsqueeze(-1)
        numbers = torch.rand((2, 5, body.embedding), generator=network.generator) * 2 - 1
        size = 0.2 / (real.sum(dim=(1, 2)) * body.embedding).sqrt()
        delta = numbers * real * size[:, None, None]
        expected: dict[str, np.ndarray] = {}
        for step in range(steps + 1):
            delta = delta.detach().requires_grad_()
            loss = functional.cross_entropy(network.logits(network.vectors(TOKENS) + delta, real[..., 0]), LABELS)
            now = gradients(network, loss.backward)
            if method is FreeLb and step < steps:
                expected = {name: expected.get(name, 0) + value / steps for name, value in now.items()}
            if method is Pgd and step == steps:
                expected = now
            uphill = delta.grad * real
            delta = delta.detach() + rate * uphill / uphill.flatten(1).norm(dim=1).clamp(min=1e-8)[:, None, None]
            length = delta.flatten(1).norm(dim=1).clamp(min=1e-8)[:, None, None]
            if norm:
                delta = delta * (norm / length).clamp(max=1.0)
                assert delta.flatten(1).norm(dim=1).max() <= norm * 1.0001
        assert found.keys() == expected.keys()
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)


def test_the_loss_rises_on_the_way() -> None:
    network = learner(BODIES["mean"])
    calm = network.loss(TOKENS, LABELS).item()
    rule = started(FreeLbPlusPlus(steps=10, rate=0.5, magnitude=0.0), BODIES["mean"], Path())
    assert rule.learn(network, TOKENS, LABELS, 0.0) > calm + 0.1


def test_freelb_plus_plus_never_projects() -> None:
    keys = FreeLbPlusPlus(norm=0.1)
    assert [complaint for holds, complaint in keys.rules(BODIES["mean"]) if not holds] == [
        'norm must be 0: method = "freelb" projects'
    ]
    assert FreeLbPlusPlus().steps == 30
    assert FreeLbPlusPlus().norm == 0


def test_ta_vat_remembers_words_but_neither_padding_nor_the_unknown_word() -> None:
    rule = started(TaVat(steps=3), BODIES["cnn"], Path())
    before = rule.own["deltas"].clone()
    network = learner(BODIES["cnn"], rule)
    rule.learn(network, TOKENS, LABELS, 0.0)
    changed = (rule.own["deltas"] != before).any(dim=1).nonzero()[:, 0].tolist()
    assert changed == [2, 3, 5, 7, 8, 9]
    assert rule.own["deltas"][2:].flatten(1).norm(dim=1).max() <= 0.5 + 1e-6


def test_infobert_anchors_words_whose_gradient_is_neither_small_nor_great() -> None:
    rule = started(InfoBert(low=0.4, high=0.8), BODIES["cnn"], Path())
    gradient = torch.tensor([[3.0, 1.0, 0.0, 0.0, 0.0], [5.0, 1.0, 4.0, 2.0, 3.0]]).unsqueeze(-1)
    chosen = rule.anchored(gradient, TOKENS != 0)  # type: ignore[attr-defined]
    assert chosen.tolist() == [[True, False, False, False, False], [False, False, True, False, True]]
    network = learner(BODIES["cnn"], rule)
    rule.learn(network, TOKENS, LABELS, 0.0)
    assert all(value.grad is not None for value in rule.own.values())


def test_keys_out_of_range_are_refused() -> None:
    for keys in (Pgd(steps=0), Pgd(rate=-1.0), FreeLb(norm=float("inf")), InfoBert(low=0.9)):
        assert not all(holds for holds, _ in keys.rules(BODIES["mean"]))
