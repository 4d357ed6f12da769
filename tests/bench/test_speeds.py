"""Speeds, printed and not asserted: `pytest -m benchmark -s`."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from handmade import MLP, save
from oracles import query_of

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.verifier.engines.combinations import Tables
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.ladder.truth import Judge

pytestmark = pytest.mark.benchmark
VOCABULARY, LENGTH = 2000, 200


@pytest.fixture
def mmws(tmp_path: Path) -> Path:
    """The MMWS paper's network with random weights: 200 tokens of 2 numbers, 64 ReLUs, 2 logits."""
    generator = np.random.default_rng(0)
    shapes = {"table": (VOCABULARY, 2), "w1": (2 * LENGTH, 64), "b1": (64,), "w2": (64, 2), "b2": (2,)}
    weights = {name: generator.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
    return save(tmp_path, MLP, weights, length=LENGTH)


@pytest.mark.parametrize("positions", [20, 60])
def test_sentences_a_second(mmws: Path, positions: int) -> None:
    """Evaluated and judged by the enumerator, against the same sentences through onnxruntime in batches."""
    generator = np.random.default_rng(0)
    choices = tuple(tuple(int(t) for t in generator.choice(VOCABULARY, 9, replace=False)) for _ in range(positions))
    model = open_model(mmws)
    replay = Replay.open(model)
    choices += ((0,),) * (LENGTH - positions)
    original = np.array([[row[0] for row in choices]])
    query = query_of(model, choices, int(replay.answers(original)[0]))
    differences = Differences.of(query)
    judge = Judge(differences)
    for size in (1, 2):
        judge.jury(size)  # once per text: a few milliseconds
        count = query.space.counts()[size]
        started, doubtful = time.perf_counter(), 0
        for block in Tables(differences).blocks(size):
            doubtful += sum(1 for _ in zip(range(1), judge.judge(size, block.cut, block.swaps), strict=False))
        swept = count / (time.perf_counter() - started)
        batch = np.repeat(original, 4096, axis=0)
        started = time.perf_counter()
        for _ in range(5):
            replay.answers(batch)
        deployed = 5 * len(batch) / (time.perf_counter() - started)
        print(
            f"\n{positions} words, {size} swaps: {count:,} sentences, {swept / 1e6:.2f} million a second, "
            f"{swept / deployed:.1f} times onnxruntime's {deployed / 1e6:.2f} million; {doubtful} doubtful or broken"
        )
