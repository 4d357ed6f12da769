"""What is said of a model before anything is claimed: each oddity is found where it is, and not where it is not."""

from __future__ import annotations

import csv
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from swapproof.models.deployed.behaviour import Observed, at_least, observe
from swapproof.models.deployed.cached import Cached
from swapproof.models.deployed.classifier import Identity, NoAnswer, Scores, SpeltOut, Variants
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.swapped_text import Fields, SwapText
from swapproof.models.errors import BadInput

WORDS = ("good", "fine", "lovely", "bad", "awful", "dull", "film", "plot", "the", "and", "quite", "remarkably")
WEIGHTS = dict(zip(WORDS, (2.0, 1.25, 3.0, -2.0, -3.5, -1.25, 0.125, -0.125, 0.03, 0.02, 0.01, 0.25), strict=True))
NAMES = ("negative", "positive")


def texts_of(number: int, seed: int = 0, shortest: int = 4) -> list[Fields]:
    draw = random.Random(seed)
    return [(" ".join(draw.choices(WORDS, k=draw.randrange(shortest, 20))),) for _ in range(number)]


def sum_of(text: str) -> float:
    return sum(WEIGHTS.get(word, 0.0) for word in text.split())


@dataclass
class Model:
    """Any function from batches to scores."""

    batch: Callable[[list[str]], object]

    @property
    def identity(self) -> Identity:
        return Identity("callable", "model")

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        return np.array(self.batch([" | ".join(sentence) for sentence in sentences]), dtype=np.float64)

    def variants(self, text: SwapText) -> Variants:
        return SpeltOut(self, text)


def each(function: Callable[[str], list[float]]) -> Model:
    return Model(lambda texts: [function(text) for text in texts])


def good(text: str) -> list[float]:
    return [-sum_of(text), sum_of(text) + 0.5]


TEXTS = texts_of(100)
LABELS = [int(sum_of(text) > 0) for (text,) in TEXTS]


def observed(
    model: Model, texts: Sequence[Fields] = TEXTS, labels: Sequence[int] = LABELS, classes: int = 2, **rest: object
) -> Observed:
    return observe(model, Decision(classes), texts, labels, names=NAMES if classes == 2 else None, **rest)  # type: ignore[arg-type]


def kinds(found: Observed) -> list[str]:
    return [remark.kind for remark in found.remarks]


def test_of_a_good_model_there_is_nothing_to_say() -> None:
    found = observed(each(good), answers=[int(good(text)[1] > good(text)[0]) for (text,) in TEXTS])
    assert found.remarks == ()
    assert not found.vacuous
    assert found.accuracy == found.right / 100 > 0.9
    assert found.confusion.sum() == 100
    assert found.repeat_difference == found.batch_difference == 0
    np.testing.assert_array_equal(found.scores, each(good).scores(TEXTS))


def test_the_confusion_is_shown_by_label_and_answer() -> None:
    found = observed(each(lambda text: [1.0, 0.0]), TEXTS[:3], [0, 1, 1])
    assert found.table(NAMES) == [
        "label \\ answer  negative  positive",
        "negative               1         0",
        "positive               2         0",
    ]


def test_every_text_is_evaluated_once_but_for_a_few() -> None:
    asked: list[str] = []

    def batch(texts: list[str]) -> object:
        asked.extend(texts)
        return [good(text) for text in texts]

    observed(Model(batch), texts_of(600), [0, 1] * 300)
    assert len(asked) < 600 + 16 * 6 + 60


class TestLabels:
    def test_labels_in_another_order_are_named(self) -> None:
        found = observed(each(good), labels=[1 - label for label in LABELS])
        (remark,) = found.remarks
        assert (remark.kind, remark.vacuous) == ("labels_permuted", True)
        assert 'would be with labels = ["positive", "negative"]' in remark.sentence
        assert found.order == (1, 0)

    def test_a_model_that_is_right_on_28_of_100_texts_has_its_labels_the_other_way_round(self) -> None:
        answers = iter([1] * 14 + [0] * 36)
        labels = [1] * 25 + [1] * 25
        labels[::2] = [0] * 25
        right = [label if next(answers) else 1 - label for label in labels]
        answer_of = {text: answer for (text,), answer in zip(TEXTS[:50], right, strict=True)}
        found = observed(each(lambda text: [0.5 + len(text) / 1e4, answer_of.get(text, 0)]), TEXTS[:50], labels)
        assert found.accuracy == 0.28
        assert kinds(found) == ["labels_permuted"]

    @pytest.mark.parametrize("order", [(1, 2, 0), (2, 0, 1), (0, 2, 1)])
    def test_three_labels_in_any_other_order_are_named(self, order: tuple[int, ...]) -> None:
        draw = np.random.default_rng(3)
        labels = draw.integers(0, 3, 120)
        truth = np.where(draw.random(120) < 0.8, labels, draw.integers(0, 3, 120))
        texts = texts_of(120, seed=5)
        answer_of = {text: order.index(label) for (text,), label in zip(texts, truth, strict=True)}
        model = each(lambda text: [len(text) / 1e4 + (answer_of.get(text) == index) for index in range(3)])
        found = observed(model, texts, labels.tolist(), classes=3)
        assert found.order == order
        assert kinds(found) == ["labels_permuted"]
        fitted = observed(model, texts, [order.index(label) for label in labels], classes=3)
        assert fitted.order is None
        assert fitted.remarks == ()

    def test_a_guessing_model_is_no_better_than_chance(self) -> None:
        found = observed(each(lambda text: [0.0, zlib.crc32(text.encode()) / 2**32 - 0.5]), labels=LABELS)
        assert found.vacuous
        assert kinds(found) == ["near_chance"]
        assert "not better than chance" in found.remarks[0].sentence

    def test_a_model_of_one_answer_is_no_better_than_chance_however_rare_the_other_label(self) -> None:
        labels = [0] * 95 + [1] * 5
        found = observed(each(lambda text: [1.0, sum_of(text) / 1e3]), labels=labels)
        assert found.accuracy == 0.95
        assert kinds(found) == ["near_chance", "one_class"]

    def test_texts_of_one_label_say_something_too(self) -> None:
        texts = [text for text, label in zip(TEXTS, LABELS, strict=True) if label]
        assert observed(each(good), texts, [1] * len(texts)).remarks == ()

    def test_few_texts_say_little_and_nothing_vacuous(self) -> None:
        found = observed(each(good), TEXTS[:4], [1 - LABELS[0], *LABELS[1:4]])
        assert kinds(found) == ["too_few_texts"]
        assert not found.vacuous

    def test_tails_are_those_of_the_binomial(self) -> None:
        stats = pytest.importorskip("scipy.stats")
        for texts in (1, 7, 100, 872):
            for share in (0.0, 0.01, 0.5, 0.9, 1.0):
                for right in {0, 1, texts // 2, texts}:
                    expected = stats.binom.sf(right - 1, texts, share)
                    assert at_least(right, texts, share) == pytest.approx(expected, rel=1e-9, abs=1e-300)


class TestAnswers:
    def test_answers_of_the_deployed_system_are_compared(self) -> None:
        answers = [int(good(text)[1] > good(text)[0]) for (text,) in TEXTS]
        one = observed(each(good), answers=[1 - answers[0], *answers[1:]])
        assert one.differing == (0,)
        assert kinds(one) == ["answers_differ"]
        assert not one.vacuous
        assert "on 1 of 100 texts (1.0%)" in one.remarks[0].sentence
        assert "text 0" in one.remarks[0].sentence
        two = observed(each(good), answers=[1 - answers[0], *answers[1:99], 1 - answers[99]])
        assert two.differing == (0, 99)
        assert two.vacuous

    def test_constant_scores_are_said(self) -> None:
        found = observed(each(lambda text: [0.25, 0.75]))
        assert kinds(found)[0] == "constant_output"
        assert "the same scores (0.25, 0.75) to all" in found.remarks[0].sentence
        assert found.vacuous

    def test_one_text_is_no_constant_output(self) -> None:
        assert "constant_output" not in kinds(observed(each(good), TEXTS[:1] * 3, LABELS[:1] * 3))


class TestShortTexts:
    @pytest.mark.parametrize(
        ("short", "said"),
        [
            (lambda text: len(text.split()) < 4, " words that were tried"),
            (lambda text: len(text) < 30, " characters that were tried"),
            (lambda text: len(text) < 12, " characters that were tried"),
        ],
    )
    def test_a_rule_for_short_texts_is_found(self, short: Callable[[str], bool], said: str) -> None:
        found = observed(each(lambda text: [1.0, 0.0] if short(text) else good(text)))
        assert "constant_for_short_texts" in kinds(found)
        (remark,) = [remark for remark in found.remarks if remark.kind == "constant_for_short_texts"]
        assert said in remark.sentence
        assert "get the same scores (1, 0)" in remark.sentence
        assert not remark.vacuous

    def test_a_rule_is_found_in_data_that_hold_no_short_text(self) -> None:
        texts = texts_of(60, seed=2, shortest=12)
        labels = [int(sum_of(text) > 0) for (text,) in texts]
        found = observed(each(lambda text: [1.0, 0.0] if len(text) < 25 else good(text)), texts, labels)
        assert kinds(found) == ["constant_for_short_texts"]

    def test_saturated_scores_of_all_lengths_are_no_rule_for_short_texts(self) -> None:
        found = observed(each(lambda text: [0.0, 1.0] if sum_of(text) > 0 else [1.0, sum_of(text) / 100]))
        assert "constant_for_short_texts" not in kinds(found)


class TestBatches:
    def test_padding_without_a_mask_is_found(self) -> None:
        def batch(texts: list[str]) -> object:
            longest = max(len(text.split()) for text in texts)
            return [[0.0, sum_of(text) + 0.01 * (longest - len(text.split()))] for text in texts]

        found = observed(Model(batch))
        assert kinds(found) == ["batch_changes_scores"]
        assert found.batch_difference > 0.01

    def test_other_classes_among_other_texts_are_told_apart_from_other_scores(self) -> None:
        def batch(texts: list[str]) -> object:
            return [[0.0, sum_of(text) + 0.3 * (len(texts) > 1)] for text in texts]

        found = observed(Model(batch), [*TEXTS, ("dull good bad good plot",), ("film plot",)], [*LABELS, 0, 0])
        assert kinds(found) == ["batch_changes_classes"]
        assert found.vacuous
        assert "the answer is a function of the batch" in found.remarks[0].sentence

    def test_rounding_of_float32_is_no_remark(self) -> None:
        found = observed(Model(lambda texts: [[0.0, sum_of(text) + 1e-6 * len(texts)] for text in texts]))
        assert found.remarks == ()
        assert 0 < found.batch_difference < 1e-3

    def test_ranges_of_int8_taken_over_a_batch_are_found(self, tmp_path: Path) -> None:
        classify = quantised(tmp_path)
        found = observed(Model(classify), labels=[int(row[1] > row[0]) for row in classify([t for (t,) in TEXTS])])
        assert kinds(found)[0] in ("batch_changes_scores", "batch_changes_classes")

    def test_what_is_random_is_said_and_not_laid_on_the_batch(self) -> None:
        draw = random.Random(0)
        found = observed(each(lambda text: [0.0, sum_of(text) + draw.gauss(0, 0.01)]))
        assert kinds(found) == ["not_deterministic"]
        assert found.repeat_difference > 0
        assert not found.vacuous  # no class changed

    def test_classes_that_change_when_asked_again_make_every_claim_vacuous(self) -> None:
        draw = random.Random(0)
        found = observed(each(lambda text: [0.0, sum_of(text) + draw.gauss(0, 10)]))
        assert "of them another class" in found.remarks[0].sentence
        assert found.vacuous

    def test_what_a_cache_remembers_proves_nothing(self) -> None:
        draw = random.Random(0)
        model = Cached(each(lambda text: [0.0, sum_of(text) + draw.gauss(0, 0.01)]))
        assert kinds(observe(model, Decision(2), TEXTS, LABELS)) == ["not_deterministic"]
        assert model.evaluations == len(set(TEXTS))


class TestMeaning:
    def test_probabilities_are_no_logits(self) -> None:
        def share(text: str) -> list[float]:
            chance = 1 / (1 + np.exp(-sum_of(text)))
            return [1 - chance, chance]

        assert kinds(observed(each(share))) == ["probabilities_not_logits"]
        assert observe(each(share), Decision(2, "probabilities"), TEXTS, LABELS).remarks == ()
        one = observe(each(lambda text: share(text)[1:]), Decision(2), TEXTS, LABELS)
        (remark,) = [remark for remark in one.remarks if remark.kind == "probabilities_not_logits"]
        assert 'the threshold is compared with the wrong number; say scores = "sigmoid"' in remark.sentence
        assert observe(each(lambda text: share(text)[1:]), Decision(2, "sigmoid"), TEXTS, LABELS).remarks == ()

    @pytest.mark.parametrize("meaning", ["probabilities", "sigmoid", "log_probabilities"])
    def test_logits_are_no_probabilities(self, meaning: str) -> None:
        found = observe(each(good), Decision(2, meaning), TEXTS, LABELS)  # type: ignore[arg-type]
        assert kinds(found) == ["not_probabilities"]
        assert f'[model] scores is "{meaning}"' in found.remarks[0].sentence

    def test_log_probabilities_are_what_they_are(self) -> None:
        def logs(text: str) -> list[float]:
            total = float(np.logaddexp(good(text)[0], good(text)[1]))
            return [score - total for score in good(text)]

        assert observe(each(logs), Decision(2, "log_probabilities"), TEXTS, LABELS).remarks == ()


class TestNoAnswer:
    def test_texts_without_an_answer_are_counted_and_the_others_judged(self) -> None:
        def refuse(text: str) -> list[float]:
            if text in (TEXTS[7][0], TEXTS[50][0]):
                raise NoAnswer("too odd")
            return good(text)

        found = observed(each(refuse))
        assert [index for index, _ in found.unanswered] == [7, 50]
        assert np.flatnonzero(np.isnan(found.scores).any(axis=1)).tolist() == [7, 50]
        assert kinds(found) == ["unanswered"]
        assert found.remarks[0].sentence == "2 of 100 texts have no answer; text 7: too odd"
        assert found.confusion.sum() == 98

    def test_no_answer_at_all_is_bad_input(self) -> None:
        def refuse(text: str) -> list[float]:
            raise NoAnswer("nobody home")

        with pytest.raises(BadInput, match="nobody home"):
            observed(each(refuse))
        with pytest.raises(BadInput, match="no texts"):
            observed(each(good), [], [])

    def test_a_model_that_cannot_be_asked_about_one_text_alone_is_said(self) -> None:
        def batch(texts: list[str]) -> object:
            if len(texts) == 1:
                raise NoAnswer("one is not enough")
            return [good(text) for text in texts]

        assert kinds(observed(Model(batch))) == ["not_alone"]

    def test_nan_and_infinity_are_counted(self) -> None:
        found = observed(each(lambda text: [0.0, float("nan") if text == TEXTS[3][0] else sum_of(text)]))
        assert kinds(found) == ["nan"]
        assert "1 of 100 texts, first text 3" in found.remarks[0].sentence
        assert found.predicted[3] == -1
        found = observed(each(lambda text: [0.0, float("inf") if text == TEXTS[3][0] else sum_of(text)]))
        assert kinds(found) == ["infinite"]
        assert observed(each(lambda text: [0.0, float("nan")])).vacuous


def test_pairs_are_observed_too() -> None:
    pairs = [(one, other) for (one,), (other,) in pairwise(TEXTS)]
    labels = [int(sum_of(" ".join(pair)) > 0) for pair in pairs]
    assert observed(each(lambda text: [0.0, sum_of(text)]), pairs, labels).remarks == ()


def test_real_texts_are_observed_in_little_time(shared_data: Path) -> None:
    with (shared_data / "sst2" / "dev.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = [(row["content"],) for row in rows]
    labels = [int(row["label"]) for row in rows]
    words = {text: label for (text,), label in zip(texts, labels, strict=True)}
    model = each(lambda text: [0.0, words.get(text, 0) - 0.5 + 1e-4 * sum(map(ord, text)) / max(len(text), 1)])
    found = observed(model, texts, labels)
    assert found.accuracy == 1
    assert found.remarks == ()


def quantised(folder: Path) -> Callable[[list[str]], list[list[float]]]:
    """A small network whose product is quantised as onnxruntime does it: ranges over the whole batch."""
    onnx = pytest.importorskip("onnx")
    quantization = pytest.importorskip("onnxruntime.quantization")
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(len(WORDS), 2)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", len(WORDS)])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, folder / "model.onnx")
    quantization.quantize_dynamic(folder / "model.onnx", folder / "int8.onnx")
    session = onnxruntime.InferenceSession(folder / "int8.onnx", providers=["CPUExecutionProvider"])

    def classify(texts: list[str]) -> list[list[float]]:
        counts = np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=np.float32)
        return session.run(None, {"x": counts})[0].tolist()  # type: ignore[no-any-return]

    return classify
