"""The defence smooth-contract and its halves: averages, rows, and what a training with them leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.models.defences.smooth_contract import Held, averaging, hold_rows, neighbours
from swapproof.models.defences.synonym_pairs import read_synonyms, synonym_pairs
from swapproof.models.errors import BadInput

WORDS = ("<pad>", "<unk>", "good", "fine", "great", "bad", "poor", "film", "movie", "plot")
SYNONYMS = {"good": ["fine", "great"], "bad": ["poor"], "poor": ["bad", "terrible"], "movie": ["film", "movie"]}


def written(folder: Path, table: object) -> Path:
    path = folder / "synonyms.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    return path


def test_pairs_are_those_of_the_vocabulary_within_the_limit() -> None:
    assert synonym_pairs(WORDS, SYNONYMS).tolist() == [[2, 3], [2, 4], [5, 6], [6, 5], [8, 7]]
    assert synonym_pairs(WORDS, SYNONYMS, at_most=1).tolist() == [[2, 3], [5, 6], [6, 5], [8, 7]]
    assert synonym_pairs(WORDS, {}).shape == (0, 2)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_neighbours_go_both_ways_and_hold_the_word_itself(pairs: list[tuple[int, int]]) -> None:
    found = {tuple(pair) for pair in neighbours(np.array(pairs, dtype=np.int64).reshape(-1, 2), 7).tolist()}
    assert found == {(a, b) for a in range(7) for b in range(7) if a == b or (a, b) in pairs or (b, a) in pairs}


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_a_smoothed_row_is_the_mean_of_the_row_and_its_neighbours(tmp_path: Path, rounds: int) -> None:
    torch = pytest.importorskip("torch")
    near: dict[int, set[int]] = {number: {number} for number in range(len(WORDS))}
    for word, others in SYNONYMS.items():
        for other in others:
            if other in WORDS:
                near[WORDS.index(word)].add(WORDS.index(other))
                near[WORDS.index(other)].add(WORDS.index(word))
    table = np.random.default_rng(1).normal(size=(len(WORDS), 3)).astype(np.float32)
    expected = table.astype(np.float64)
    for _ in range(rounds):
        expected = np.array([expected[sorted(near[word])].mean(axis=0) for word in range(len(WORDS))])
    rule = Held(averaging(WORDS, written(tmp_path, SYNONYMS)), rounds, (), 1.0)
    np.testing.assert_allclose(rule.table(torch.from_numpy(table)).numpy(), expected, atol=1e-6)
    np.testing.assert_array_equal(expected[[0, 1, 9]], table[[0, 1, 9]])


def test_gradients_pass_through_the_averaging(tmp_path: Path) -> None:
    """Of "bad" and "poor", each other's only neighbours, one gets half of the other's gradient."""
    torch = pytest.importorskip("torch")
    rule = Held(averaging(WORDS, written(tmp_path, SYNONYMS)), 1, (), 1.0)
    table = torch.zeros(len(WORDS), 2, requires_grad=True)
    torch.autograd.backward(rule.table(table)[5].sum())
    assert table.grad is not None
    assert table.grad[5].tolist() == table.grad[6].tolist() == [0.5, 0.5]
    assert table.grad.abs().sum() == 2.0


@given(st.integers(0, 10_000), st.sampled_from([0.3, 1.0, 2.5]))
def test_held_rows_keep_their_direction_and_short_ones_every_bit(seed: int, l1: float) -> None:
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(seed)
    before = (generator.normal(size=(6, 4)) * generator.uniform(0, 2, size=(6, 1))).astype(np.float32)
    before[0] = 0.0
    after = before.copy()
    hold_rows(torch.from_numpy(after), l1)
    for old, new in zip(before, after, strict=True):
        size = np.abs(old).sum()
        if size <= l1:
            np.testing.assert_array_equal(new, old)
        else:
            np.testing.assert_allclose(new, old * (l1 / size), rtol=1e-5)
            assert np.abs(new.astype(np.float64)).sum() <= l1 * (1 + 1e-6)


def test_a_table_that_links_nothing_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(BadInput, match="no two words of the vocabulary"):
        averaging(WORDS, written(tmp_path, {"good": ["excellent"]}))
    for wrong in (["good"], {"good": "fine"}, {"good": [1]}):
        with pytest.raises(BadInput, match="no synonym table"):
            read_synonyms(written(tmp_path, wrong))


Train = Callable[..., tuple[dict[str, Any], dict[str, Any], list[str]]]


@pytest.fixture
def trained(tmp_path: Path) -> Train:
    """Trains on a few sentences; returns the constants of the graph, what training.json says, and the lines said."""
    pytest.importorskip("torch")
    import onnx
    from onnx import numpy_helper

    from swapproof.models.training import train

    generator = np.random.default_rng(2)
    rows = []
    for row in range(300):
        words = [
            str(word) for word in generator.choice(["film", "movie", "plot", "the", "is"], generator.integers(1, 6))
        ]
        words.append(str(generator.choice(["good", "fine", "great"] if row % 2 else ["bad", "poor"])))
        rows.append(f"{row % 2}\t{' '.join(words)}")
    (tmp_path / "train.tsv").write_text("\n".join(["label\ttext", *rows, ""]), encoding="utf-8")
    written(tmp_path, SYNONYMS)

    def make(network: str, defence: str, swaps: str = '[swaps]\nfile = "synonyms.json"') -> Any:
        recipe, out, lines = tmp_path / "recipe.toml", tmp_path / "out", list[str]()
        recipe.write_text(
            '[data]\ntrain = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out_rows = 60\n'
            f"[vocabulary]\nlength = 8\n[network]\n{network}\n"
            f"[training]\nepochs = 4\nbatch = 16\nlearning_rate = 0.03\ndropout = 0.0\n{defence}\n{swaps}\n",
            encoding="utf-8",
        )
        train(recipe, out, lines.append)
        constants: dict[str, Any] = {
            one.name: numpy_helper.to_array(one) for one in onnx.load(out / "model.onnx").graph.initializer
        }
        words = json.loads((out / "vocabulary.json").read_text(encoding="utf-8"))
        constants["rows"] = {word: constants["embedding"][number] for number, word in enumerate(words)}
        return constants, json.loads((out / "training.json").read_text(encoding="utf-8")), lines

    return make


RECURRENT = 'architecture = "bilstm"\nembedding = 6\nunits = 8'


@pytest.mark.parametrize("architecture", ["bilstm", "gru"])
def test_a_defended_network_learns_smooth_and_contracting_and_says_so(trained: Train, architecture: str) -> None:
    """Words that are only each other's synonyms end with one vector; no row is longer than l1; both are printed."""
    defence = '[defence]\nmethod = "smooth-contract"\nsynonyms = "synonyms.json"\nrounds = 3\nl1 = 0.8'
    constants, said, lines = trained(RECURRENT.replace("bilstm", architecture), defence)
    np.testing.assert_allclose(constants["rows"]["bad"], constants["rows"]["poor"], atol=1e-6)
    assert np.abs(constants["rows"]["bad"] - constants["rows"]["good"]).max() > 0.1
    assert not constants["embedding"][0].any()
    lengths = np.abs(constants["cell.R"]).sum(axis=2)
    assert 0.79 < lengths.max() <= 0.8 + 1e-6
    assert said["accuracy"]["held_out"] >= 0.9
    assert said["defence"]["method"] == "smooth-contract"
    assert said["growth_per_step"] < 1.0
    assert said["relative_swap_size"] < 0.2
    assert any(line.startswith("growth per step") for line in lines)
    assert any(line.startswith("relative swap size") for line in lines)


def test_each_half_does_its_half_only(trained: Train, tmp_path: Path) -> None:
    import shutil

    smooth, said, _ = trained(RECURRENT, '[defence]\nmethod = "smooth"\nsynonyms = "synonyms.json"', "")
    np.testing.assert_allclose(smooth["rows"]["bad"], smooth["rows"]["poor"], atol=1e-6)
    assert np.abs(smooth["cell.R"]).sum(axis=2).max() > 1.1
    assert said["relative_swap_size"] is not None
    shutil.rmtree(tmp_path / "out")
    contract, said, _ = trained(RECURRENT, '[defence]\nmethod = "contract"', "")
    assert np.abs(contract["rows"]["bad"] - contract["rows"]["poor"]).max() > 0.01
    assert np.abs(contract["cell.R"]).sum(axis=2).max() <= 1 + 1e-6
    assert said["relative_swap_size"] is None


def test_a_transformer_is_smoothed_and_has_no_growth(trained: Train) -> None:
    network = 'architecture = "transformer"\nembedding = 8\nheads = 2\ninner = 8'
    constants, said, lines = trained(network, '[defence]\nmethod = "smooth"\nsynonyms = "synonyms.json"')
    np.testing.assert_allclose(constants["rows"]["bad"], constants["rows"]["poor"], atol=1e-6)
    assert said["accuracy"]["held_out"] >= 0.9
    assert said["growth_per_step"] is None
    assert not any("growth" in line for line in lines)
