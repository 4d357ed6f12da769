"""Static embeddings read as word networks: the same class wins for every sentence of the texts that fit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import static_files
from numpy.typing import NDArray

from swapproof.models.deployed.classifier import Deployment
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.deployed.static_embeddings import StaticClassifier
from swapproof.models.deployed.static_models.static_reading import fits, read_static
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.encoded import spans_of
from swapproof.models.word_network import Unreadable, WordNetwork

TOKENS = ["[PAD]", "[UNK]", "good", "bad", "film", "-", ".", "##s", "##er", "dark", "light", "a", "very"]
TABLE = {"good": ("bad", "lights", "darker", "unheard"), "film": ("films", "light", "dark"), "very": ("a", "good")}
TEXTS = ["a good film.", "very good-film very good", "films very good film"]
RNG = np.random.default_rng(3)
VECTORS = RNG.normal(size=(len(TOKENS), 4)).astype(np.float32)


def layer(outputs: int, inputs: int, bias: bool = True) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    numbers = RNG.normal(size=outputs) * 2 if bias else np.zeros(outputs)
    return RNG.normal(size=(outputs, inputs)).astype(np.float32), numbers.astype(np.float32)


HEADS: dict[str, dict[str, Any]] = {
    "linear": {"layers": [layer(3, 4)]},
    "linear, norm, no bias": {"layers": [layer(3, 4, False)], "normalize": True},
    "one hidden layer": {"layers": [layer(6, 4), layer(3, 6)]},
    "two hidden layers": {"layers": [layer(6, 4), layer(5, 6), layer(2, 5)]},
    "hidden layers, norm, no bias": {"layers": [layer(6, 4, False), layer(3, 6, False)], "normalize": True},
    "linear, norm": {"layers": [layer(3, 4)], "normalize": True},
    "linear, norm, two classes": {"layers": [layer(2, 4)], "normalize": True},
    "hidden layers, norm": {"layers": [layer(6, 4), layer(5, 6), layer(3, 5)], "normalize": True},
    "weights, norm": {
        "layers": [layer(6, 4), layer(2, 6)],
        "weights": RNG.random(len(TOKENS)).astype(np.float32),
        "normalize": True,
    },
    "narrow": {"layers": [layer(1, 4), layer(2, 1)]},
    "no layer": {"layers": [], "activation": "identity"},
    "weights": {"layers": [layer(2, 4)], "weights": RNG.random(len(TOKENS)).astype(np.float32)},
}


def opened(path: Path) -> StaticClassifier:
    found = open_classifier(Deployment("static", str(path)))
    assert isinstance(found, StaticClassifier)
    return found


def folder(path: Path, vectors: NDArray[Any] = VECTORS, tokenizer: Any = None, **options: Any) -> StaticClassifier:
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    tensors = {"embeddings": vectors}
    if "weights" in options:
        tensors["weights"] = options.pop("weights")
    tokenizer = tokenizer or static_files.word_pieces(TOKENS)
    return opened(static_files.write_folder(path / "model", tokenizer, tensors, options.pop("layers"), **options))


def swaps(text: str, split: Any = "words") -> SwapText:
    spans = spans_of(text, split)
    options = tuple((text[start:end], *TABLE.get(text[start:end], ())) for start, end in spans)
    return SwapText((text,), 0, spans, options)


def spellings(texts: list[SwapText]) -> list[str]:
    return list(dict.fromkeys(word for text in texts for options in text.options for word in options))


def numbered(text: SwapText, words: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Every sentence as options and as spellings."""
    rows = np.array(list(np.ndindex(*map(len, text.options))), dtype=np.int32)
    ids = [[words.index(text.options[place][number]) for place, number in enumerate(row)] for row in rows]
    return rows, np.array(ids)


def direction(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """How logits differ from one another, whatever positive number they are multiplied by."""
    apart = scores - scores.mean(axis=1, keepdims=True)
    return np.asarray(apart / np.abs(apart).max(axis=1, keepdims=True))


def same_answers(model: StaticClassifier, texts: list[SwapText]) -> WordNetwork:
    words = spellings(texts)
    network = read_static(model, words)
    assert isinstance(network, WordNetwork)
    for text in texts:
        assert fits(model, text) is None
        rows, ids = numbered(text, words)
        deployed, read = model.scores([text.sentence(row) for row in rows]), network.scores(ids)
        logits = deployed if model.identity.facts["scores"] == "logits" else np.log(deployed)
        np.testing.assert_allclose(direction(logits), direction(read), rtol=0, atol=1e-4)
        assert (deployed.argmax(axis=1) == read.argmax(axis=1)).mean() > 0.99
    return network


@pytest.mark.parametrize("name", HEADS)
def test_the_network_answers_as_the_folder_does_for_every_sentence(name: str, tmp_path: Path) -> None:
    same_answers(folder(tmp_path, **HEADS[name]), [swaps(text) for text in TEXTS])


def test_logits_of_the_network_are_the_deployed_ones_times_the_number_of_tokens(tmp_path: Path) -> None:
    model = folder(tmp_path, layers=[layer(6, 4), layer(3, 6)], activation="identity")
    network = read_static(model, ["good", "darker", "films"])
    assert isinstance(network, WordNetwork)
    (logits,) = network.scores(np.array([[0, 1, 2]]))
    np.testing.assert_allclose(logits, 5 * model.scores([("good darker films",)])[0], rtol=1e-12)


def test_logits_of_the_network_are_the_deployed_ones_times_the_norm(tmp_path: Path) -> None:
    model = folder(tmp_path, layers=[layer(6, 4), layer(3, 6)], activation="identity", normalize=True)
    network = read_static(model, ["good", "darker", "films"])
    assert isinstance(network, WordNetwork)
    (logits,), sums = network.scores(np.array([[0, 1, 2]])), network.rows.sum(axis=0)
    norm = np.sqrt((sums[:-1] ** 2).sum()) + 5 * 1e-32
    np.testing.assert_allclose(logits, norm * model.scores([("good darker films",)])[0], rtol=1e-12)


def test_a_sum_of_0_is_divided_as_model2vec_divides_it(tmp_path: Path) -> None:
    """By 10^-32: what is left are the biases, and the greatest wins."""
    inference = pytest.importorskip("model2vec.inference")
    opposite = VECTORS.copy()
    opposite[TOKENS.index("bad")] = -opposite[TOKENS.index("good")]
    model = folder(tmp_path, opposite, layers=[layer(6, 4), layer(3, 6)], normalize=True)
    network = read_static(model, ["good", "bad", "film"])
    assert isinstance(network, WordNetwork)
    pipeline = inference.StaticModelPipeline.from_pretrained(tmp_path / "model")
    for ids, text in (([0, 1], "good bad"), ([0, 1, 2], "good bad film")):
        (logits,), (deployed,) = network.scores(np.array([ids])), pipeline.predict_proba([text])
        assert logits.argmax() == deployed.argmax() == model.scores([(text,)])[0].argmax()
        np.testing.assert_allclose(direction(np.log(deployed)[None]), direction(logits[None]), rtol=0, atol=1e-4)
    assert 0 < np.abs(network.scores(np.array([[0, 1]]))).max() < 1e-30


def test_differences_of_two_classes_that_float64_cannot_hold_are_left_as_they_are(tmp_path: Path) -> None:
    weight = np.array([[1.0, 2.0, 3.0, 4.0], [2.0**-60, 0, 0, 0]], dtype=np.float32)
    model = folder(tmp_path, layers=[(weight, np.ones(2, dtype=np.float32))], normalize=True)
    network = read_static(model, ["good"])
    assert isinstance(network, WordNetwork)
    np.testing.assert_array_equal(network.layers[0][0], weight)


def test_rows_of_linear_heads_are_exact(tmp_path: Path) -> None:
    wide = RNG.normal(size=(len(TOKENS), 40)).astype(np.float32)
    weight, bias = layer(2, 40)
    network = read_static(folder(tmp_path, wide, layers=[(weight, bias)]), ["films"])
    assert isinstance(network, WordNetwork)
    assert network.rows.shape == (1, 4)
    assert network.remarks == ()
    tokens = [TOKENS.index("film"), TOKENS.index("##s")]
    for place in range(2):
        exact = 2 * Fraction(float(bias[place]))
        for token in tokens:
            exact += sum(
                Fraction(float(w)) * Fraction(float(v)) for w, v in zip(weight[place], wide[token], strict=True)
            )
        assert Fraction(float(network.rows[0, place])) + Fraction(float(network.rows[0, 2 + place])) == exact


def test_rows_that_are_rounded_are_said(tmp_path: Path) -> None:
    far = VECTORS.copy()
    far[TOKENS.index("film")] *= np.float32(2.0**40)
    network = read_static(folder(tmp_path, far, layers=[layer(3, 4)]), ["films", "film"])
    assert isinstance(network, WordNetwork)
    (remark,) = network.remarks
    assert remark.startswith("the rows of 1 of 3 spellings are rounded, by at most")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layers": [layer(3, 4)], "normalize": True, "vectors": VECTORS.astype(np.float16)}, "half precision"),
        ({"layers": [layer(3, 4)], "vectors": VECTORS.astype(np.float16)}, "half precision"),
        ({"layers": [layer(1, 4)], "activation": "identity"}, "single score"),
    ],
)
def test_heads_that_are_no_such_network_are_named(options: dict[str, Any], says: str, tmp_path: Path) -> None:
    found = read_static(folder(tmp_path, **options), ["good"])
    assert isinstance(found, Unreadable)
    assert says in found.reason


def test_a_single_probability_is_a_logit_against_0(tmp_path: Path) -> None:
    model = folder(tmp_path, layers=[layer(3, 4), layer(1, 3)], activation="sigmoid")
    network = read_static(model, ["good", "bad", "film", "very"])
    assert isinstance(network, WordNetwork)
    for place, word in enumerate(["good", "bad", "film", "very"]):
        assert (model.scores([(word,)])[0, 0] > 0.5) == bool(network.scores(np.array([[place]])).argmax())


def test_texts_whose_tokens_are_not_those_of_their_words_do_not_fit(tmp_path: Path) -> None:
    model = folder(tmp_path, layers=[layer(3, 4)])
    assert "one by one" in str(fits(model, SwapText(("films",), 0, ((0, 4), (4, 5)), (("film",), ("s",)))))
    glued = SwapText(("film.",), 0, ((0, 4), (4, 5)), (("film",), (".", "s")))
    assert "'films' is read as other tokens" in str(fits(model, glued))
    assert "no token that is known" in str(fits(model, SwapText(("good",), 0, ((0, 4),), (("good", "unheard"),))))
    assert "may be cut off" in str(fits(model, swaps("good " * 600))) or "cut off" in str(
        fits(model, swaps("good " * 600))
    )


def binary(path: Path, loss: str, labels: int, **settings: Any) -> StaticClassifier:
    words = ["</s>", "a", "good", "bad", "film", "film.", "very"]
    vectors = static_files.dense(RNG.normal(size=(len(words) + settings.get("buckets", 0), 3)))
    outputs = static_files.dense(RNG.normal(size=(labels, 3)))
    names = [f"l{number}" for number in range(labels)]
    content = static_files.binary(words, names, vectors, outputs, dim=3, loss=loss, **settings)
    (path / "model.bin").write_bytes(content)
    return opened(path / "model.bin")


@pytest.mark.parametrize(
    ("loss", "labels", "settings"),
    [
        ("softmax", 3, {}),
        ("softmax", 2, {"shortest": 2, "longest": 3, "buckets": 20}),
        ("hs", 2, {}),
    ],
)
def test_fasttext_files_are_read(loss: str, labels: int, settings: dict[str, int], tmp_path: Path) -> None:
    model = binary(tmp_path, loss, labels, **settings)
    network = same_answers(model, [swaps("a good film.", "whitespace"), swaps("very good film", "whitespace")])
    assert network.start.any()  # the end of the line


@pytest.mark.parametrize(
    ("loss", "labels", "settings", "says"),
    [
        ("ova", 2, {}, "table of 512 steps"),
        ("hs", 3, {}, "leaves of a tree"),
        ("softmax", 2, {"grams": 2, "buckets": 5}, "2 neighbouring words"),
    ],
)
def test_fasttext_files_that_are_no_such_network_are_named(
    loss: str, labels: int, settings: dict[str, int], says: str, tmp_path: Path
) -> None:
    found = read_static(binary(tmp_path, loss, labels, **settings), ["good"])
    assert isinstance(found, Unreadable)
    assert says in found.reason
