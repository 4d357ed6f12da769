"""EUBA of models that we cannot read: gradients by differences or by autograd, flips that brute force confirms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from handmade import node, save
from hypothesis import given
from hypothesis import strategies as st
from smooth_models import exported, lstm, torch_module

from swapproof.encodings.errors import Unsupported
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.models.differentiated import TorchClassifier
from swapproof.models.errors import BadInput
from swapproof.models.errors import Unsupported as UnsupportedModule
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.single_words.brute_force import flips_by_force
from swapproof.verifier.single_words.euba.euba_classifier import WholeSentences, replaced
from swapproof.verifier.single_words.euba.euba_flips import VARIANTS, Euba
from swapproof.verifier.single_words.euba.gradient_autograd import ByAutograd
from swapproof.verifier.single_words.euba.gradient_differences import ByDifferences
from swapproof.verifier.single_words.python_model import kappa_of_model
from swapproof.verifier.single_words.subject import Subject

ROWS, LENGTH = 20, 6
WORDS = np.arange(2, ROWS)
RECURRENT = ("lstm", "gru", "lstm-time-first")
KINDS = (*RECURRENT, "transformer", "masked")


@pytest.fixture(scope="module")
def handmade(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    return Replay.open(open_model(lstm(tmp_path_factory.mktemp("lstm"), ROWS, LENGTH)))


def subject_of(model: Any, tokens: tuple[int, ...]) -> Subject:
    """Answered as the model does, so that it is right; the token 0 is padding."""
    label = int(model.answers(np.array([tokens]))[0])
    return Subject(tokens, tuple(place for place, token in enumerate(tokens) if token), label)


def some_subjects(model: Any, count: int = 3) -> list[Subject]:
    generator = np.random.default_rng(5)
    texts = generator.integers(2, ROWS, size=(count, LENGTH))
    texts[0, 4:] = 0
    return [subject_of(model, tuple(text.tolist())) for text in texts]


@cases(15)
@given(st.data())
def test_euba_of_an_lstm_finds_flips_only_and_unstopped_all(handmade: Replay, data: st.DataObject) -> None:
    """kappa of EUBA never exceeds that of brute force; with m beyond the number of sentences they are equal."""
    texts = data.draw(st.lists(st.tuples(*[st.integers(0, ROWS - 1)] * LENGTH), min_size=1, max_size=3))
    subjects = [subject_of(handmade, text) for text in texts]
    expected = np.array([flips_by_force(handmade.answers, WORDS, subject)[0] for subject in subjects])
    variant, m = data.draw(st.sampled_from(VARIANTS)), data.draw(st.integers(1, 8))
    classifier = WholeSentences(ByDifferences.of(handmade))
    assert not (Euba(classifier, WORDS, 1, m, variant).run(subjects) & ~expected).any()
    unstopped = Euba(classifier, WORDS, 1, 10**6, variant).run(subjects)
    assert not (unstopped & ~expected).any()
    if variant != "top1":
        np.testing.assert_array_equal(unstopped, expected)


@pytest.mark.parametrize(("kind", "dynamo"), [*((kind, False) for kind in KINDS), ("lstm", True), ("masked", True)])
def test_exports_of_torch_give_the_gradients_of_autograd(kind: str, dynamo: bool, tmp_path: Path) -> None:
    """Finite differences through onnxruntime, whichever exporter wrote the model; and the same log p. Torch computes
    what is not recurrent, and differentiates it exactly."""
    pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    module = torch_module(kind, ROWS, LENGTH)
    replay = Replay.open(open_model(exported(module, tmp_path / "model.onnx", LENGTH, dynamo=dynamo)))
    model = ByDifferences.of(replay)
    subject = some_subjects(replay)[0]
    model.refuse_other_readers(subject)
    sentences = replaced(subject, np.arange(len(subject.positions)), np.full(len(subject.positions), 1))
    logs, gradients = model.gradients(sentences, np.array(subject.positions), subject.label)
    expected_logs, expected = TorchClassifier(module, module.words).gradients(
        sentences, np.array(subject.positions), subject.label
    )
    np.testing.assert_allclose(logs, expected_logs, atol=1e-5)
    assert np.linalg.norm(gradients - expected) < 0.01 * np.linalg.norm(expected)
    if kind in RECURRENT:
        with pytest.raises(Unsupported, match="torch does not compute"):
            ByAutograd.of(model, subject)
    else:
        logs, gradients = ByAutograd.of(model, subject).gradients(sentences, np.array(subject.positions), subject.label)
        np.testing.assert_allclose(logs, expected_logs, atol=1e-5)
        np.testing.assert_allclose(gradients, expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_kappa_of_a_torch_module_and_its_gap(kind: str) -> None:
    pytest.importorskip("torch")
    module = torch_module(kind, ROWS, LENGTH)
    model = TorchClassifier(module, module.words, batch=7)
    texts = [subject.tokens for subject in some_subjects(model, 6)]
    labels = [subject.label for subject in some_subjects(model, 6)]
    labels[1] = 1 - labels[1]
    words = {f"w{token}": int(token) for token in WORDS}
    found = kappa_of_model(model, words, texts, labels, mask=1, fixed=(0,), m=5, brute_force=True)
    assert found.by_force is not None
    assert (found.euba.texts, found.already_wrong) == (5, 1)
    assert (found.euba.low <= found.by_force.low).all()
    assert found.gap == found.euba.rho[1] - found.by_force.rho[0] >= 0
    assert found.by_force.rho[0] == found.by_force.rho[1]
    unstopped = kappa_of_model(model, words, texts, labels, mask=1, fixed=(0,), m=10**6, brute_force=True)
    assert unstopped.gap == 0
    assert unstopped.euba.low.any()


def test_rows_under_the_table_are_words_like_any_other(handmade: Replay) -> None:
    """Copies of rows answer as the rows do; halfway between two words is a word too."""
    embedded = ByDifferences.of(handmade).embedded
    sentence = np.array([[2, 3, 4, 5, 6, 7]])
    copied = np.array([[ROWS, 3, ROWS + 1, 5, 6, 7]])
    rows = embedded.rows(np.array([2, 4]))
    np.testing.assert_allclose(embedded.logits(copied, rows), handmade.outputs(sentence), rtol=1e-5)
    assert np.abs(embedded.logits(copied, rows[::-1]) - handmade.outputs(sentence)).max() > 1e-3


def test_a_softmax_at_the_end_changes_no_gradient(tmp_path: Path) -> None:
    import onnx

    path = lstm(tmp_path, ROWS, LENGTH)
    plain = ByDifferences.of(Replay.open(open_model(path)))
    model = onnx.load(path)
    model.graph.node[-1].output[0] = "scores"
    model.graph.node.append(node("Softmax", "scores", "logits", axis=-1))
    onnx.save(model, path)
    softmax = ByDifferences.of(Replay.open(open_model(path)))
    sentences = np.array([[2, 3, 4, 5, 6, 7]])
    for one, other in zip(*(m.gradients(sentences, np.array([2]), 0) for m in (plain, softmax)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_that_computes_with_its_tokens_is_refused(tmp_path: Path) -> None:
    """What is added to the logits depends on the number of the word, which no embedding of ours has."""
    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        node("ReduceMean", "embedded", "mean", axes=[1], keepdims=0),
        node("Cast", "tokens", "numbers", to=1),
        node("ReduceMax", "numbers", "greatest", axes=[1], keepdims=1),
        node("Sigmoid", "mean", "smooth"),
        node("Add", "smooth greatest", "logits"),
    ]
    path = save(tmp_path, nodes, {"table": np.eye(ROWS, 2)}, length=LENGTH)
    model = ByDifferences.of(Replay.open(open_model(path)))
    with pytest.raises(Unsupported, match="other ways than by its embedding"):
        model.refuse_other_readers(Subject((2, 3, 4, 5, 6, 7), (0, 1), 0))


def test_a_model_without_an_embedding_is_refused(tmp_path: Path) -> None:
    nodes = [node("Cast", "tokens", "numbers", to=1), node("Gemm", "numbers w", "logits")]
    path = save(tmp_path, nodes, {"w": np.ones((LENGTH, 2))}, length=LENGTH)
    with pytest.raises(Unsupported, match="no embedding to differentiate at"):
        ByDifferences.of(Replay.open(open_model(path)))


def test_what_is_no_torch_classifier_is_refused() -> None:
    torch = pytest.importorskip("torch")
    module = torch_module("lstm", ROWS, LENGTH)
    sentences, positions = np.full((2, LENGTH), 3), np.zeros(2, dtype=np.int64)
    with pytest.raises(BadInput, match="training mode"):
        TorchClassifier(module.train(), module.words)
    module.eval()
    with pytest.raises(BadInput, match=r"a torch\.nn\.Embedding is needed"):
        TorchClassifier(module, module.out)
    other = torch.nn.Embedding(ROWS, 3).eval()
    with pytest.raises(BadInput, match="does not call this embedding"):
        TorchClassifier(module, other).gradients(sentences, positions, 0)
    with pytest.raises(BadInput, match=r"logits \[batch, classes\]"):
        TorchClassifier(module.words, module.words).answers(sentences)
    shifted = TorchClassifier(lambda tokens: module(tokens + 1), module.words)
    with pytest.raises(UnsupportedModule, match="other token ids"):
        shifted.gradients(sentences, positions, 0)
    silent = TorchClassifier(torch.no_grad()(module.forward), module.words)
    with pytest.raises(BadInput, match="no gradient"):
        silent.gradients(sentences, positions, 0)


def test_an_answer_of_nan_is_no_flip() -> None:
    """Of the word after it nothing is known; EUBA counts it as a failure."""

    class Strange:
        def answers(self, sentences: Any) -> Any:
            return np.where((sentences == 3).any(axis=1), -1, (sentences == 4).any(axis=1))

        def rows(self, tokens: Any) -> Any:
            return np.eye(ROWS)[tokens]

        def gradients(self, sentences: Any, positions: Any, label: int) -> Any:
            return np.zeros(len(sentences)), np.zeros((len(sentences), ROWS))

    model = Strange()
    subject = Subject((2, 2), (0, 1), 0)
    flipped, unknown = flips_by_force(model.answers, np.array([2, 3, 4, 5]), subject)
    assert flipped.tolist() == [False, False, True, False]
    assert unknown.tolist() == [False, True, False, False]
    assert Euba(WholeSentences(model), np.array([2, 3, 4, 5]), 2).flips(subject).tolist() == flipped.tolist()
