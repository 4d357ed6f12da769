"""ONNX models run: what each input is given, which output is read, how sentences stand together, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from deployed_models import DOUBLE, INT64, STRING, TOKENS, echo, every_row, opened, summed, swaps, wordpiece
from graph_builder import Builder
from onnx import TensorProto

from swapproof.models.deployed.classifier import Deployment, NoAnswer
from swapproof.models.deployed.onnx_classifier import OnnxClassifier, open_onnx
from swapproof.models.errors import BadInput

WORDS = ["<pad>", "<unk>", "good", "bad", "film", "a", "the", "new"]
BOTH = ["batch", "length"]


def echoed(*rows: list[int]) -> list[float]:
    """The scores of `echo` for what its inputs read."""
    return [float(score) for row in rows for score in (sum(row), sum(n * k for k, n in enumerate(row, start=1)))]


def scores(classifier: OnnxClassifier, *texts: str | tuple[str, ...]) -> list[list[float]]:
    found: list[list[float]] = classifier.scores([(one,) if isinstance(one, str) else one for one in texts]).tolist()
    return found


def inputs(*names: str, kind: int = INT64, shape: Any = BOTH) -> Any:
    return [(name, kind, shape) for name in names]


# --- what inputs are given ----------------------------------------------------------------------------------------


def test_one_integer_input_of_any_name_is_the_tokens(tmp_path: Path) -> None:
    classifier = opened(tmp_path, echo(inputs("x:0", kind=TensorProto.INT32)), WORDS)
    assert scores(classifier, "good film", "bad") == [echoed([2, 4]), echoed([3])]


def test_tokens_mask_types_and_positions_are_what_the_tokenizer_gives(tmp_path: Path) -> None:
    """Of a pair, padded to the length; the mask may be of floats."""
    read = [*inputs("ids", "token_type_ids", "position_ids"), ("attention_mask", TensorProto.FLOAT, BOTH)]
    tokenizer = wordpiece(padding={"pad_id": 0, "length": 9})
    classifier = opened(tmp_path, echo(read), tokenizer, fields=2)
    whole = tokenizer.encode("good film", "new")
    assert len(whole.ids) == 9
    expected = echoed(whole.ids, whole.type_ids, list(range(9)), whole.attention_mask)
    assert scores(classifier, ("good film", "new")) == [expected]


def test_positions_of_roberta_begin_after_the_padding_and_leave_it_out(tmp_path: Path) -> None:
    from tokenizers import processors

    tokenizer = wordpiece(padding={"pad_id": 0, "length": 6})
    tokenizer.post_processor = processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2))
    classifier = opened(tmp_path, echo(inputs("input_ids", "position_ids")), tokenizer)
    assert scores(classifier, "good film") == [echoed(tokenizer.encode("good film").ids, [1, 2, 3, 4, 0, 0])]


@pytest.mark.parametrize("shape", [["batch"], ["batch", 1]])
def test_lengths_count_the_words_that_are_read(tmp_path: Path, shape: Any) -> None:
    read = [*inputs("tokens"), ("lengths", INT64, shape)]
    classifier = opened(tmp_path, echo(read), WORDS, length=4, pad_side="left", cut_side="left")
    assert scores(classifier, "good film", "a good new bad film") == [
        echoed([0, 0, 2, 4], [2]),
        echoed([2, 7, 3, 4], [4]),
    ]


@pytest.mark.parametrize(("length", "padding"), [("short", []), ("long", [0])])
def test_a_pair_goes_to_two_inputs_in_the_order_of_the_task(tmp_path: Path, length: str, padding: list[int]) -> None:
    """Each text has a mask of its own; they are padded to one width where the model has one name for both."""
    read = [(name, INT64, ["batch", "long"]) for name in ("premise", "premise_mask")]
    read += [(name, INT64, ["batch", length]) for name in ("hypothesis", "hypothesis_mask")]
    said = {"hypothesis": "tokens", "premise": "tokens", "hypothesis_mask": "mask", "premise_mask": "mask"}
    classifier = opened(tmp_path, echo(read), WORDS, inputs=said, fields=2)
    expected = echoed([3, 4], [1, 1], [2, *padding], [1, *padding])
    assert scores(classifier, ("bad film", "good")) == [[*expected[4:], *expected[:4]]]
    text = swaps("bad film", ["good"], ["new", "unheard"], other="good", moving=0)
    rows = every_row(text)
    whole = classifier.scores([text.sentence(row) for row in rows.tolist()])
    np.testing.assert_array_equal(classifier.variants(text).scores(rows), whole)


def test_of_a_pair_that_no_post_processor_joins_the_second_text_is_of_the_second_type(tmp_path: Path) -> None:
    """As `tokenizers` and transformers say; its fast way of encoding says 0 of all."""
    tokenizer = wordpiece()
    tokenizer.post_processor = None
    classifier = opened(tmp_path, echo(inputs("input_ids", "token_type_ids")), tokenizer, fields=2)
    encoding = tokenizer.encode("good film", "bad")
    assert encoding.type_ids == [0, 0, 1]
    assert scores(classifier, ("good film", "bad")) == [echoed(encoding.ids, encoding.type_ids)]
    text = swaps("good film", ["bad"], ["new"], other="bad", moving=0)
    rows = every_row(text)
    whole = classifier.scores([text.sentence(row) for row in rows.tolist()])
    np.testing.assert_array_equal(classifier.variants(text).scores(rows), whole)


def test_strings_are_given_as_they_stand_and_nothing_is_said_of_tokens(tmp_path: Path) -> None:
    """The model makes the words itself: scikit-learn's vectorisers do."""
    builder = Builder()
    lengths = builder.call("Cast", "text", to=DOUBLE)
    builder.node("Concat", [lengths, builder.call("Neg", lengths)], ["scores"], axis=1)
    model = builder.proto([("text", STRING, ["batch", 1])], [("scores", DOUBLE, ["batch", 2])])
    builder.nodes.pop()
    with pytest.raises(BadInput, match="onnxruntime fails"):  # "good" is no number
        opened(tmp_path, model)
    with pytest.raises(BadInput, match=r"reads texts as strings: leave out \[model\] vocabulary, lowercase"):
        opened(tmp_path, model, WORDS, lowercase=True)


def test_a_vectoriser_of_scikit_learn_answers_as_in_python(tmp_path: Path) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = ["a good film", "a bad film", "good and new", "bad and old"]
    pipeline = make_pipeline(TfidfVectorizer(lowercase=False), LogisticRegression()).fit(texts, [1, 0, 1, 0])
    kind = skl2onnx.common.data_types.StringTensorType([None, 1])
    model = skl2onnx.convert_sklearn(pipeline, initial_types=[("text", kind)])
    classifier = opened(tmp_path, model)
    text = swaps("a good new film", [], ["bad", "unheard"], [], ["movie"])
    rows = every_row(text)
    spelt = [text.sentence(row)[0] for row in rows.tolist()]
    found = classifier.variants(text).scores(rows)
    np.testing.assert_allclose(found, pipeline.predict_proba(spelt), atol=1e-6)


# --- which output -------------------------------------------------------------------------------------------------


def with_output(model: Any, name: str, kind: int, shape: Any) -> Any:
    """One more: the scores, as another type."""
    model.graph.node.append(onnx.helper.make_node("Cast", ["scores"], [name], to=kind))
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    return model


def test_the_only_output_that_can_be_scores_is_taken(tmp_path: Path) -> None:
    model = with_output(echo(TOKENS), "label", INT64, ["batch"])
    assert scores(opened(tmp_path, model, WORDS), "good") == [echoed([2])]


def test_of_two_outputs_that_can_be_scores_one_is_named_or_numbered(tmp_path: Path) -> None:
    model = with_output(echo(TOKENS), "half", TensorProto.FLOAT16, ["batch", 2])
    assert opened(tmp_path, model, WORDS, output=1).signature.output == "half"
    assert scores(opened(tmp_path, model, WORDS, output="half"), "good film") == [echoed([2, 4])]
    for said, reason in (
        (None, r"2 of 2 outputs can be scores .*: scores double .*, half float16 .*: set \[model\] output"),
        (2, "the model has 2, counted from 0"),
        ("logits", "there is none of this name"),
    ):
        with pytest.raises(BadInput, match=reason):
            opened(tmp_path, model, WORDS, output=said)


def test_an_output_of_answers_is_no_output_of_scores(tmp_path: Path) -> None:
    model = with_output(echo(TOKENS), "label", INT64, ["batch", 2])
    with pytest.raises(BadInput, match=r"label int64 .*: an answer, not scores"):
        opened(tmp_path, model, WORDS, output="label")


@pytest.mark.parametrize("axes", [(1,), (2,), (1, 3)])
def test_axes_of_size_one_behind_the_batch_are_left_out(tmp_path: Path, axes: tuple[int, ...]) -> None:
    """Also of a single sentence, whose batch is of size one too."""
    model = echo(TOKENS)
    shape: list[int | str] = ["batch", 2]
    for axis in axes:
        shape.insert(axis, 1)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(axes), "axes"))
    model.graph.node.append(onnx.helper.make_node("Unsqueeze", ["scores", "axes"], ["wide"]))
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("wide", DOUBLE, shape))
    classifier = opened(tmp_path, model, WORDS)
    assert scores(classifier, "good") == [echoed([2])]
    assert scores(classifier, "good", "bad film") == [echoed([2]), echoed([3, 4])]


def test_scores_of_tokens_are_not_scores_of_texts(tmp_path: Path) -> None:
    builder = Builder()
    builder.node("Cast", ["input_ids"], ["scores"], to=TensorProto.FLOAT)
    model = builder.proto(TOKENS, [("scores", TensorProto.FLOAT, BOTH)])
    with pytest.raises(BadInput, match="answers 1 scores for one text and"):
        opened(tmp_path, model, WORDS)


def test_one_score_for_each_text_is_one_column(tmp_path: Path) -> None:
    builder = Builder()
    numbers = builder.call("Cast", "input_ids", to=TensorProto.FLOAT)
    builder.node("ReduceSum", [numbers, builder.wholes(1)], ["scores"], keepdims=0)
    model = builder.proto(TOKENS, [("scores", TensorProto.FLOAT, ["batch"])])
    assert scores(opened(tmp_path, model, WORDS), "good film", "bad") == [[6.0], [3.0]]


# --- how sentences stand together ---------------------------------------------------------------------------------


def test_without_a_mask_no_sentence_of_a_dynamic_model_is_padded(tmp_path: Path) -> None:
    """This one counts its tokens, padding among them."""
    classifier = opened(tmp_path, echo(TOKENS), [str(n) for n in range(9)], pad=8)
    assert scores(classifier, "3 4 5", "1", "2 3") == [echoed([3, 4, 5]), echoed([1]), echoed([2, 3])]


def test_padding_is_there_as_deployed_though_a_mask_covers_it(tmp_path: Path) -> None:
    """That masked padding changes no answer of some sentences says nothing of others: of these the maximum, which
    forgets the mask, is above 0."""
    table = np.array([[0.0], [0.0], [1.0], [-3.0], [2.0], [3.0], [3.0], [3.0]])
    builder = Builder()
    rows = builder.call("Gather", builder.constant(table), "input_ids")
    mask = builder.call("Cast", "attention_mask", to=DOUBLE)
    total = builder.call("ReduceSum", builder.call("Squeeze", rows, builder.wholes(2)), builder.wholes(1), keepdims=1)
    greatest = builder.call("ReduceMax", rows, axes=[1], keepdims=0)
    counted = builder.call("ReduceSum", mask, builder.wholes(1), keepdims=1)
    builder.node("Concat", [total, greatest, counted], ["scores"], axis=1)
    model = builder.proto(inputs("input_ids", "attention_mask"), [("scores", DOUBLE, ["batch", 3])], opset=17)
    classifier = opened(tmp_path, model, WORDS, length=4, pad=0)
    assert scores(classifier, "good film", "bad", "bad good") == [[3.0, 2.0, 2.0], [-3.0, 0.0, 1.0], [-2.0, 1.0, 2.0]]


def test_a_model_whose_sentences_change_each_other_is_given_them_one_by_one(tmp_path: Path) -> None:
    """It divides by the greatest number of the batch."""
    builder = Builder()
    numbers = builder.call("Cast", "input_ids", to=DOUBLE)
    sums = builder.call("ReduceSum", numbers, builder.wholes(1))
    builder.node("Div", [sums, builder.call("ReduceMax", sums, keepdims=1)], ["scores"])
    model = builder.proto(TOKENS, [("scores", DOUBLE, ["batch", 1])], opset=18)
    classifier = opened(tmp_path, model, WORDS)
    assert classifier.batching.alone
    assert classifier.identity.remarks == ("ReduceMax over the batch: every sentence is evaluated alone",)
    assert scores(classifier, "good film", "bad new") == [[1.0], [1.0]]


def test_a_quantised_model_answers_each_sentence_as_alone(tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    random = np.random.default_rng(1)
    builder = Builder()
    table = random.normal(size=(len(WORDS), 8)).astype(np.float32)
    rows = builder.call("Gather", builder.constant(table), "input_ids")
    total = builder.call("ReduceSum", rows, builder.wholes(1), keepdims=0)
    builder.node("MatMul", [total, builder.constant(random.normal(size=(8, 2)).astype(np.float32))], ["scores"])
    onnx.save(builder.proto(TOKENS, [("scores", TensorProto.FLOAT, ["batch", 2])]), str(tmp_path / "whole.onnx"))
    quantize_dynamic(tmp_path / "whole.onnx", tmp_path / "quantised.onnx")
    classifier = opened(tmp_path, onnx.load(str(tmp_path / "quantised.onnx")), WORDS)
    assert classifier.identity.facts["weights"] == "quantised"
    assert classifier.batching.alone
    text = swaps("good film a new bad", ["bad"], ["the", "a"], ["good"])
    rows_of = every_row(text)
    each = [scores(classifier, *text.sentence(row))[0] for row in rows_of.tolist()]
    assert classifier.variants(text).scores(rows_of).tolist() == each


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_of_fixed_size_is_filled_up(tmp_path: Path, batch: int) -> None:
    table = np.arange(len(WORDS) * 2).reshape(-1, 2)
    classifier = opened(tmp_path, summed(table, 4, batch), WORDS)
    expected = [(table[ids].sum(axis=0) + (4 - len(ids)) * table[0]).tolist() for ids in ([2, 4], [3], [5], [6, 4])]
    assert scores(classifier, "good film", "bad", "a", "the film") == expected


def test_many_sentences_are_answered_in_the_order_in_which_they_were_asked(tmp_path: Path) -> None:
    classifier = opened(tmp_path, echo(TOKENS), [str(n) for n in range(50)])
    random = np.random.default_rng(0)
    ids = [random.integers(0, 50, size=random.integers(1, 30)).tolist() for _ in range(700)]
    assert scores(classifier, *(" ".join(map(str, row)) for row in ids)) == [echoed(row) for row in ids]
    assert classifier.scores([]).shape == (0, 2)


def test_threads_change_no_answer(tmp_path: Path) -> None:
    one, two = (opened(tmp_path, echo(TOKENS), WORDS, threads=threads) for threads in (1, 2))
    assert scores(one, "good film", "a") == scores(two, "good film", "a")


# --- cutting and padding --------------------------------------------------------------------------------------------


def test_a_text_longer_than_the_model_needs_a_length(tmp_path: Path) -> None:
    model = summed(np.arange(16).reshape(8, 2), 3)
    classifier = opened(tmp_path, model, WORDS)
    with pytest.raises(BadInput, match="a text of 4 tokens: the model reads 3; set length = 3"):
        scores(classifier, "a good new film")
    cut = opened(tmp_path, model, WORDS, length=3)
    assert scores(cut, "a good new film") == scores(classifier, "a good new")
    with pytest.raises(BadInput, match=r"reads 3 tokens, and .* length is 4"):
        opened(tmp_path, model, WORDS, length=4)


def test_where_words_padded_on_the_left_are_cut_must_be_said(tmp_path: Path) -> None:
    classifier = opened(tmp_path, echo(TOKENS), WORDS, length=2, pad_side="left")
    with pytest.raises(BadInput, match='set cut_side = "left"'):
        scores(classifier, "a good film")
    right = opened(tmp_path, echo(TOKENS), WORDS, length=2, pad_side="left", cut_side="right")
    assert scores(right, "a good film", "a") == [echoed([5, 2]), echoed([0, 5])]


def test_a_tokenizer_cuts_where_its_files_say_and_asks_where_they_differ(tmp_path: Path) -> None:
    tokenizer = wordpiece(truncation={"max_length": 4})
    text = "good film new york a"
    whole = tokenizer.encode(text).ids
    assert scores(opened(tmp_path, echo(TOKENS), tokenizer), text) == [echoed(whole)]
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 5, "truncation_side": "left"}')
    classifier = opened(tmp_path, echo(TOKENS), tokenizer)
    assert scores(classifier, "good film") == [echoed([2, 5, 6, 3])]
    with pytest.raises(BadInput, match=r"7 tokens: tokenizer.json says 4 and tokenizer_config.json says 5; set length"):
        scores(classifier, text)
    tokenizer.no_truncation()
    whole = tokenizer.encode(text).ids
    assert scores(opened(tmp_path, echo(TOKENS), tokenizer), text) == [echoed([2, *whole[-4:-1], 3])]
    cut = opened(tmp_path, echo(TOKENS), tokenizer, length=4, pad="[PAD]")
    assert scores(cut, text) == [echoed([2, *whole[-3:-1], 3])]


def test_the_padding_token_and_side_of_the_configuration_hold(tmp_path: Path) -> None:
    """`model_max_length` may say that nobody knows one. The task can say another side."""
    config = {"pad_token": {"content": "[MASK]"}, "padding_side": "left", "model_max_length": int(1e30)}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    classifier = opened(tmp_path, echo(TOKENS), wordpiece(), length=6)
    assert scores(classifier, "good film") == [echoed([4, 4, 2, 5, 6, 3])]
    assert scores(classifier, "good film a a a a a a") == [echoed([2, 5, 6, 13, 13, 3])]
    other = opened(tmp_path, echo(TOKENS), wordpiece(), length=6, pad_side="right", cut_side="left")
    assert scores(other, "good film", "good good film a a a") == [
        echoed([2, 5, 6, 3, 4, 4]),
        echoed([2, 6, 13, 13, 13, 3]),
    ]


def test_a_text_without_words_has_no_answer_where_nothing_is_padded(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="without a word"):
        scores(opened(tmp_path, echo(TOKENS), WORDS), " ")
    assert scores(opened(tmp_path, echo(TOKENS), WORDS, length=2), " ") == [echoed([0, 0])]


# --- vocabularies ---------------------------------------------------------------------------------------------------


def test_words_without_a_row_in_the_table_need_a_reading(tmp_path: Path) -> None:
    """As of Keras, where the index holds more words than the model reads."""
    model, index = summed(np.arange(10).reshape(5, 2)), {"good": 1, "bad": 2, "film": 3, "rare": 7, "rarer": 5}
    with pytest.raises(BadInput, match=r"'rarer' has the id 5, and the model's table 5 rows \(2 such words\): say"):
        opened(tmp_path, model, index)
    known = opened(tmp_path, model, index, unknown=4)
    left_out = opened(tmp_path, model, index, unknown="")
    assert scores(known, "good rare") == [[10.0, 12.0]]
    assert scores(left_out, "good rare unheard") == [[2.0, 3.0]]
    assert left_out.identity.remarks == ("2 words of the vocabulary have no row in the model's table of 5: left out",)


def test_the_tokenizer_of_another_model_is_one_line_whether_the_table_is_seen_or_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput, match="the model's table 5 rows: this is the tokenizer of another model"):
        opened(tmp_path, summed(np.ones((5, 2))), wordpiece())
    hidden = summed(np.ones((5, 2)))
    hidden.graph.node[0].input[1] = "same"
    hidden.graph.node.insert(0, onnx.helper.make_node("Max", ["input_ids"], ["same"]))
    with pytest.raises(BadInput, match=r"a table of 5 rows, and .*tokenizer.json gives '.*' the id") as refusal:
        opened(tmp_path, hidden, wordpiece())
    assert "\n" not in str(refusal.value)
    assert capfd.readouterr().err == ""


def test_a_text_beyond_the_table_of_positions_asks_for_a_length(tmp_path: Path) -> None:
    builder = Builder()
    rows = builder.call("Gather", builder.constant(np.ones((30, 2), np.float32)), "input_ids")
    places = builder.call("Gather", builder.constant(np.ones((20, 2), np.float32)), "position_ids")
    builder.node("ReduceSum", [builder.call("Add", rows, places), builder.wholes(1)], ["scores"], keepdims=0)
    model = builder.proto(inputs("input_ids", "position_ids"), [("scores", TensorProto.FLOAT, ["batch", 2])])
    classifier = opened(tmp_path, model, WORDS)
    with pytest.raises(BadInput, match="has a table of 20 rows, and a text has 25 tokens: set length"):
        scores(classifier, "a " * 25)


@pytest.mark.parametrize(("least", "most"), [(3, 30), (1, 6), (15, 30)])
def test_only_lengths_of_texts_decide_whether_a_model_answers(least: int, most: int, tmp_path: Path) -> None:
    """A sum over places behind a window of `least` tokens, of `most` places added without being looked up."""
    builder = Builder()
    rows = builder.call("Gather", builder.constant(np.eye(30, 2, dtype=np.float32) + 1), "input_ids")
    size = builder.call("Slice", builder.call("Shape", "input_ids"), *map(builder.wholes, (1, 2)))
    places = builder.call("Slice", builder.constant(np.zeros((most, 2), np.float32)), builder.wholes(0), size)
    turned = builder.call("Transpose", builder.call("Add", rows, places), perm=[0, 2, 1])
    kernel = builder.constant(np.stack([np.eye(2, dtype=np.float32)] * least, axis=2))
    builder.node("ReduceSum", [builder.call("Conv", turned, kernel), builder.wholes(2)], ["scores"], keepdims=0)
    model = builder.proto(inputs("input_ids"), [("scores", TensorProto.FLOAT, ["batch", 2])])
    classifier = opened(tmp_path, model, WORDS)
    assert len(scores(classifier, *["good " * least, "bad " * least, "new " * least])) == 3
    for wrong in {least - 1, most + 1} - {0}:
        with pytest.raises(NoAnswer, match=rf"onnxruntime fails on {wrong} token.*: \[model\] length says"):
            scores(classifier, "good " * wrong)


def test_a_tokenizer_of_keras_is_read_as_keras_reads_it(tmp_path: Path) -> None:
    """Marks are left out, so are words from num_words on, and texts are lower-cased."""
    config = {
        "num_words": 4,
        "filters": "!?.,\t\n",
        "lower": True,
        "split": " ",
        "char_level": False,
        "oov_token": None,
        "word_index": '{"good": 1, "film": 2, "it\'s": 3, "bad": 4}',
    }
    tokenizer = {"class_name": "Tokenizer", "config": config}
    classifier = opened(tmp_path, echo(TOKENS), tokenizer, length=4, pad_side="left", cut_side="left")
    assert scores(classifier, "It's a GOOD,film! Bad.") == [echoed([0, 3, 1, 2])]
    config["oov_token"] = "good"
    assert scores(opened(tmp_path, echo(TOKENS), tokenizer), "it's bad") == [echoed([3, 1])]


def test_one_word_a_line_is_a_vocabulary(tmp_path: Path) -> None:
    classifier = opened(tmp_path, echo(TOKENS), "\n".join([*WORDS, ""]), "words.txt")
    assert scores(classifier, "good film unheard") == [echoed([2, 4, 1])]


@pytest.mark.parametrize("config", [None, {"do_lower_case": False}, {"do_lower_case": True, "strip_accents": False}])
def test_vocab_txt_is_read_as_hugging_face_reads_it(tmp_path: Path, config: Any) -> None:
    transformers = pytest.importorskip("transformers")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "film", "##s", "cafe", "café", ".", "中", "new"]
    if config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, "model_max_length": 16}))
    classifier = opened(tmp_path, echo(inputs("input_ids", "token_type_ids")), "\n".join(pieces), "vocab.txt", fields=2)
    theirs = transformers.BertTokenizerFast.from_pretrained(tmp_path)
    for pair in (("Good FILMS.", "café Café"), ("中good [MASK] new", "x"), ("good " * 20, "film " * 9)):
        read = theirs(*pair, truncation=config is not None)
        assert scores(classifier, pair) == [echoed(read["input_ids"], read["token_type_ids"])]


# --- identity -------------------------------------------------------------------------------------------------------


def test_a_copy_of_its_files_in_one_folder_answers_the_same(tmp_path: Path) -> None:
    """Weights in a file of their own, a tokenizer and its configuration."""
    home, run = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    run.mkdir()
    table = np.random.default_rng(0).normal(size=(40, 64))
    (home / "tokenizer_config.json").write_text('{"pad_token": "[PAD]", "padding_side": "left"}')
    onnx.save(
        summed(table), str(home / "own.onnx"), save_as_external_data=True, location="own.data", size_threshold=100
    )
    (home / "tokens.json").write_text(wordpiece().to_str())
    classifier = open_onnx(Deployment("onnx", str(home / "own.onnx"), home / "tokens.json", length=6))
    identity = classifier.identity
    assert [file.name for file in identity.files] == [
        "model.onnx",
        "own.data",
        "vocabulary.json",
        "tokenizer_config.json",
    ]
    for file in identity.files:
        shutil.copy(file.path, run / file.name)
    copied = open_onnx(Deployment("onnx", str(run / "model.onnx"), run / "vocabulary.json", length=6))
    assert scores(copied, "good film") == scores(classifier, "good film")
    assert [file.sha256 for file in copied.identity.files] == [file.sha256 for file in identity.files]
    assert identity.name == "own.onnx"
    facts = {key: identity.facts[key] for key in ("opset", "inputs", "output", "parameters", "weights")}
    assert facts == {
        "opset": 17,
        "inputs": "input_ids int64 (tokens)",
        "output": "scores",
        "parameters": 40 * 64 + 1,
        "weights": "float32",
    }


# --- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "said", "reason"),
    [
        (
            ("one", "two"),
            {},
            r"inputs of unknown role: one int64 \[batch, length\], two int64 .*: set \[model\] inputs",
        ),
        (("one", "two"), {"inputs": {"one": "tokens"}}, "no role is given for input two"),
        (("one",), {"inputs": {"one": "tokens", "two": "mask"}}, "there is no input two; the model reads one"),
        (("one", "two"), {"inputs": {"one": "tokens", "two": "tokens"}}, r"reads 2 texts, and the task gives 1: set"),
        (("one", "two"), {"inputs": {"one": "mask", "two": "types"}}, "none of one, two has the role tokens or text"),
        (("one",), {"inputs": {"one": "text"}}, "text is read as strings"),
        (("one",), {"fields": 2}, "words alone do not say how two texts are joined"),
    ],
)
def test_inputs_that_cannot_be_given_what_they_read_are_refused(
    tmp_path: Path, read: Any, said: Any, reason: str
) -> None:
    with pytest.raises(BadInput, match=reason) as refusal:
        opened(tmp_path, echo(inputs(*read)), WORDS, **said)
    assert "\n" not in str(refusal.value)


def test_files_that_are_no_model_are_refused_in_one_line(tmp_path: Path) -> None:
    for name, content, reason in (
        ("none", None, "no such file"),
        ("words.json", b'["a"]', "not a"),
        ("empty.onnx", b"", "not an ONNX model"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match=reason) as refusal:
            open_onnx(Deployment("onnx", str(tmp_path / name)))
        assert "\n" not in str(refusal.value)
    model = echo(TOKENS)
    model.graph.node[0].op_type = "Unheard"
    with pytest.raises(BadInput, match="onnxruntime does not load this model"):
        opened(tmp_path, model, WORDS)
    with pytest.raises(BadInput, match="vocabulary is missing"):
        opened(tmp_path, echo(TOKENS))
