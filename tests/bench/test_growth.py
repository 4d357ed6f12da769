"""`bench growth`: texts of any size from a seed, the laws of what they cost, and a run of small ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swapproof.encodings.errors import BadInput
from swapproof.verifier.bench.growth.grown_texts import Size, grown_text
from swapproof.verifier.bench.growth.growth_laws import fitted
from swapproof.verifier.bench.own_answers import own_answer
from swapproof.verifier.cli import main
from swapproof.verifier.commands.benches.bench_growth import bench_growth
from swapproof.verifier.engines.enumeration import Enumeration
from swapproof.verifier.engines.exact_engine import Exact

SIZE = Size(positions=9, candidates=2, hidden=8, minimum=3)


def test_a_law_is_the_power_that_the_points_follow() -> None:
    law = fitted([(n, 3.0 * n**1.5) for n in (2, 5, 11, 40)])
    assert law is not None
    assert (law.factor, law.power, law.fit) == pytest.approx((3.0, 1.5, 1.0))


def test_no_law_is_fitted_to_two_sizes_or_to_zeros() -> None:
    assert fitted([(2, 1.0), (4, 2.0), (4, 3.0)]) is None
    assert fitted([(2, 0.0), (4, 2.0), (8, 3.0)]) is None


def test_a_grown_text_needs_no_more_swaps_than_asked_for(tmp_path: Path) -> None:
    for seed in range(3):
        query, deployed = grown_text(SIZE, seed, tmp_path)
        replay = deployed.of(query.space)
        ours, every = (own_answer(engine, 0, query, replay, 60.0) for engine in (Exact(), Enumeration()))
        assert ours.solved
        assert (ours.low, ours.high) == (every.low, every.high)
        assert 1 <= ours.low <= SIZE.minimum
        assert ours.tree_bytes is not None
        assert ours.tree_bytes > 0


def test_the_same_seed_grows_the_same_text(tmp_path: Path) -> None:
    written = []
    for seed in (1, 1, 2):
        grown_text(SIZE, seed, tmp_path)
        written.append((tmp_path / "model.onnx").read_bytes())
    assert written[0] == written[1] != written[2]


def test_a_small_run_says_points_and_laws_and_draws_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, figures = tmp_path / "growth.html", tmp_path / "growth.json"
    command = ["bench", "growth", "--size", "small", "--engines", "exact", "--html", str(page), "--json", str(figures)]
    assert main(command) == 0
    found = json.loads(figures.read_text())
    assert {point["of"] for point in found["points"]} == {"positions", "candidates", "hidden", "minimum", "texts"}
    assert all(point["solved"] == point["asked"] for point in found["points"])
    assert found["disagreements"] == []
    assert {law["grows"] for law in found["laws"]} == {"positions"}
    assert "CPU seconds by positions" in page.read_text()
    assert "Disagreements: 0" in capsys.readouterr().out


def test_sizes_engines_and_times_that_are_none_are_refused() -> None:
    for options in ({"size": "huge"}, {"engines": ["exat"]}, {"engines": ["exact", "exact"]}, {"seconds": 0.0}):
        with pytest.raises(BadInput):
            bench_growth(**options)
