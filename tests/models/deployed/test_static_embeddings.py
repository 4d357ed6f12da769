"""Static embeddings as classifiers: model2vec folders answer as in model2vec, sums of stretches are the whole text."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import static_files
from numpy.typing import NDArray

from swapproof.models.deployed.classifier import Classifier, Deployment, NoAnswer, SpeltOut
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.deployed.static_embeddings import StaticClassifier, Summed
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.encoded import spans_of
from swapproof.models.errors import BadInput, Unsupported

pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")

TOKENS = ["[PAD]", "[UNK]", "good", "bad", "film", "-", ".", "##s", "##er", "dark", "light", "a", "very"]
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(len(TOKENS), 4)).astype(np.float32)
HIDDEN = (RNG.normal(size=(5, 4)).astype(np.float32), RNG.normal(size=5).astype(np.float32))
LAST = (RNG.normal(size=(3, 5)).astype(np.float32), RNG.normal(size=3).astype(np.float32))
LAYERS = (HIDDEN, LAST)
TEXTS = [
    "a good film.",
    "Bads very-dark films",
    "",
    "unheard of",
    "good" * 40,
    "light " * 30,
    "a  good\tfilm\u00a0bad\x0bx",
]


def folder(path: Path, tensors: dict[str, NDArray[Any]] | None = None, **options: Any) -> Path:
    tokenizer = options.pop("tokenizer", None) or static_files.word_pieces(TOKENS)
    given = {"embeddings": VECTORS} if tensors is None else tensors
    return static_files.write_folder(path / "model", tokenizer, given, options.pop("layers", LAYERS), **options)


def opened(path: Path) -> StaticClassifier:
    found = open_classifier(Deployment("static", str(path)))
    assert isinstance(found, StaticClassifier)
    return found


def swaps(text: str, table: dict[str, tuple[str, ...]], split: Any = "words") -> SwapText:
    spans = spans_of(text, split)
    options = tuple((text[start:end], *table.get(text[start:end], ())) for start, end in spans)
    return SwapText((text,), 0, spans, options)


def every_row(text: SwapText) -> NDArray[np.int32]:
    sizes = [len(options) for options in text.options]
    return np.array(list(np.ndindex(*sizes)), dtype=np.int32)


KINDS: dict[str, dict[str, Any]] = {
    "mean": {},
    "norm": {"normalize": True},
    "sigmoid": {"activation": "sigmoid", "classes": ["x", "y", "z"]},
    "identity, one layer": {"activation": "identity", "layers": [(LAST[0][:, :4].copy(), LAST[1])]},
    "at most three tokens": {"max_length": 3},
    "no limit": {"max_length": None},
    "weights and mapping": {
        "normalize": True,
        "tensors": {
            "embeddings": VECTORS[:5],
            "weights": RNG.random(len(TOKENS)).astype(np.float32),
            "mapping": RNG.integers(0, 5, len(TOKENS)),
        },
    },
    "int8": {"tensors": {"embeddings": (VECTORS * 40).astype(np.int8)}},
    "not a number": {"tensors": {"embeddings": np.where(VECTORS > 1, np.nan, VECTORS).astype(np.float32)}},
}


@pytest.mark.parametrize("name", KINDS)
def test_scores_are_model2vecs(name: str, tmp_path: Path) -> None:
    inference = pytest.importorskip("model2vec.inference")
    path = folder(tmp_path, **KINDS[name])
    theirs = inference.StaticModelPipeline.from_pretrained(path)
    expected = theirs.predict(TEXTS) if name.startswith("identity") else theirs.predict_proba(TEXTS)
    np.testing.assert_allclose(opened(path).scores([(text,) for text in TEXTS]), expected, rtol=0, atol=2e-6)


def other_tokenizer(kind: str) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = [token.replace("##", "") for token in TOKENS[2:]]
    if kind == "Unigram":
        pieces = [("<unk>", 0.0), *((f"▁{word}", -1.0) for word in words), *((word[0], -4.0) for word in words[:4])]
        tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    elif kind == "BPE":
        letters = sorted({letter for word in words for letter in word} | {"Ġ"})
        ids = {token: number for number, token in enumerate(["<s>", *letters, "go", "od", "good", "Ġf", "Ġfi"])}
        merges = [("g", "o"), ("o", "d"), ("go", "od"), ("Ġ", "f"), ("Ġf", "i")]
        tokenizer = Tokenizer(models.BPE(ids, merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    else:
        tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(["?", *words])}, "?"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        tokenizer.post_processor = processors.TemplateProcessing("? $A ?", None, [("?", 0)])
        tokenizer.enable_padding(length=9)
    return tokenizer


@pytest.mark.parametrize("kind", ["Unigram", "BPE", "WordLevel"])
def test_tokenizers_of_other_kinds_are_used_as_in_model2vec(kind: str, tmp_path: Path) -> None:
    inference = pytest.importorskip("model2vec.inference")
    tokenizer = other_tokenizer(kind)
    vectors = np.random.default_rng(4).normal(size=(tokenizer.get_vocab_size(), 4)).astype(np.float32)
    path = folder(tmp_path, {"embeddings": vectors}, tokenizer=tokenizer, max_length=20)
    model = opened(path)
    expected = inference.StaticModelPipeline.from_pretrained(path).predict_proba(TEXTS)
    np.testing.assert_allclose(model.scores([(text,) for text in TEXTS]), expected, rtol=0, atol=2e-6)
    moving = swaps("a good film", TABLE)
    assert isinstance(model.apart(moving), str) == (kind != "WordLevel"), model.apart(moving)
    rows = every_row(moving)
    sentences = [moving.sentence(row) for row in rows]
    np.testing.assert_allclose(model.variants(moving).scores(rows), model.scores(sentences), rtol=0, atol=1e-14)


def test_scores_of_half_precision_are_model2vecs_up_to_its_last_bit(tmp_path: Path) -> None:
    inference = pytest.importorskip("model2vec.inference")
    path = folder(tmp_path, {"embeddings": VECTORS.astype(np.float16)}, normalize=True)
    expected = inference.StaticModelPipeline.from_pretrained(path).predict_proba(TEXTS)
    np.testing.assert_allclose(opened(path).scores([(text,) for text in TEXTS]), expected, rtol=0, atol=2e-3)


def test_identity_names_all_that_a_copy_needs(tmp_path: Path) -> None:
    model = opened(folder(tmp_path, classes=["bad", "odd", "good"]))
    assert json.loads(str(model.identity.facts["labels"])) == ["bad", "odd", "good"]
    for file in model.identity.files:
        (tmp_path / "run" / file.name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / file.name).write_bytes(file.path.read_bytes())
    texts = [(text,) for text in TEXTS]
    again = opened(tmp_path / "run" / model.identity.opened_by["static"])
    np.testing.assert_array_equal(again.scores(texts), model.scores(texts))
    assert again.identity.account == model.identity.account


TABLE = {"good": ("bad", "lights", "dark-er", "unheard"), "film": ("films", "a very light film"), "very": ("a", "good")}


@pytest.mark.parametrize("name", KINDS)
def test_variants_are_the_sentences_spelt_out(name: str, tmp_path: Path) -> None:
    model = opened(folder(tmp_path, **KINDS[name]))
    for text in (
        "a good film.",
        "very-good film",
        "\u00a0very\u00a0good film",
        "unheard",
        "good.",
        "very" * 3 + " good",
    ):
        moving = swaps(text, TABLE)
        rows = every_row(moving)
        ours = model.variants(moving).scores(rows)
        np.testing.assert_allclose(ours, model.scores([moving.sentence(row) for row in rows]), rtol=0, atol=1e-14)


def test_words_that_blanks_keep_apart_are_summed(tmp_path: Path) -> None:
    model = opened(folder(tmp_path))
    assert isinstance(model.variants(swaps("a very good film.", TABLE)), Summed)
    assert isinstance(model.variants(swaps("a very-good film.", TABLE)), Summed)
    assert model.variants(swaps("a", {})).scores(np.zeros((2, 1), dtype=np.int32)).shape == (2, 3)


def added_token(tokenizer: Any) -> None:
    tokenizer.add_tokens(["good film"])


def replacing(tokenizer: Any) -> None:
    from tokenizers import normalizers

    tokenizer.normalizer = normalizers.Sequence([tokenizer.normalizer, normalizers.Replace("d f", "")])


def uncut(tokenizer: Any) -> None:
    from tokenizers import pre_tokenizers

    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()


@pytest.mark.parametrize(
    ("change", "says"),
    [(added_token, "'good film' spans"), (replacing, "normaliser Replace"), (uncut, "not cut at every blank")],
)
def test_tokenizers_that_join_neighbours_read_every_sentence_whole(change: Any, says: str, tmp_path: Path) -> None:
    tokenizer = static_files.word_pieces(TOKENS)
    change(tokenizer)
    size = tokenizer.get_vocab_size()
    vectors = np.concatenate([VECTORS, VECTORS])[:size]
    model = opened(folder(tmp_path, {"embeddings": vectors}, tokenizer=tokenizer))
    moving = swaps("a good film", TABLE)
    assert isinstance(model.variants(moving), SpeltOut)
    assert says in str(model.apart(moving))
    rows = every_row(moving)
    sentences = [moving.sentence(row) for row in rows]
    np.testing.assert_array_equal(model.variants(moving).scores(rows), model.scores(sentences))


def test_texts_that_may_be_cut_off_are_read_whole(tmp_path: Path) -> None:
    assert "more than 3 tokens" in str(opened(folder(tmp_path, max_length=3)).apart(swaps("a good film.", TABLE)))


def test_many_spellings_of_one_stretch_are_read_whole(tmp_path: Path) -> None:
    wide = {"good": tuple("abcdefgh"), "bad": tuple("abcdefgh")}
    model = opened(folder(tmp_path))
    assert "59,049 spellings" in str(model.apart(swaps("good-bad-good-bad-good", wide)))


def fasttext_model(path: Path, words: list[str], **settings: Any) -> StaticClassifier:
    buckets = settings.get("buckets", 0)
    rng = np.random.default_rng(1)
    vectors = static_files.dense(rng.normal(size=(len(words) + buckets, 3)))
    outputs = static_files.dense(rng.normal(size=(2, 3)))
    content = static_files.binary(words, ["x", "y"], vectors, outputs, dim=3, **settings)
    (path / "model.bin").write_bytes(content)
    return opened(path / "model.bin")


@pytest.mark.parametrize(
    ("settings", "kind"),
    [({}, Summed), ({"shortest": 2, "longest": 3, "buckets": 9}, Summed), ({"grams": 2, "buckets": 9}, SpeltOut)],
)
def test_variants_of_fasttext_are_the_sentences_spelt_out(settings: dict[str, int], kind: type, tmp_path: Path) -> None:
    model = fasttext_model(tmp_path, ["</s>", "a", "good", "bad", "film", "film."], **settings)
    for text in ("a good film.", "very good  film", "good\u2003film", ""):
        moving = swaps(text, TABLE)
        rows = every_row(moving)
        variants = model.variants(moving)
        assert isinstance(variants, kind)
        sentences = [moving.sentence(row) for row in rows]
        np.testing.assert_allclose(variants.scores(rows), model.scores(sentences), rtol=0, atol=1e-14)


def test_an_end_of_line_among_the_options_ends_the_sentence(tmp_path: Path) -> None:
    model = fasttext_model(tmp_path, ["</s>", "a", "good", "film"])
    moving = swaps("a good film", {"good": ("</s>",)})
    assert "ends it" in str(model.apart(moving))
    assert model.variants(moving).scores(np.array([[0, 1, 0]], dtype=np.int32))[0] == pytest.approx(
        model.scores([("a",)])[0], abs=1e-15
    )


def test_a_text_that_loses_all_known_words_has_no_answer(tmp_path: Path) -> None:
    model = fasttext_model(tmp_path, ["good"])
    variants = model.variants(swaps("good", {"good": ("unheard",)}))
    assert variants.scores(np.array([[0]], dtype=np.int32)).shape == (1, 2)
    with pytest.raises(NoAnswer):
        variants.scores(np.array([[0], [1]], dtype=np.int32))


def test_labels_that_name_its_classes_in_another_order_are_refused(tmp_path: Path) -> None:
    path = str(folder(tmp_path, classes=["x", "y", "z"]))
    for labels in (("x", "y", "z"), ("one", "two", "three")):
        open_classifier(Deployment("static", path, labels=labels))
    with pytest.raises(BadInput, match=r"answers in the order x, y, z, and \[model\] labels in another"):
        open_classifier(Deployment("static", path, labels=("y", "x", "z")))


def test_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="pairs"):
        open_classifier(Deployment("static", str(folder(tmp_path)), fields=2))


def lying(path: Path) -> None:
    file = path / "model.safetensors"
    content = file.read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + size])
    header["embeddings"]["shape"] = [2**40, 4]
    header["embeddings"]["data_offsets"] = [0, 2**44]
    said = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(said)) + said + content[8 + size :])


def overlong(path: Path) -> None:
    file = path / "model.safetensors"
    file.write_bytes(struct.pack("<Q", 2**60) + file.read_bytes()[8:])


def cut(name: str) -> Any:
    def damage(path: Path) -> None:
        content = (path / name).read_bytes()
        (path / name).write_bytes(content[: len(content) // 2])

    return damage


def without(name: str) -> Any:
    return lambda path: (path / name).unlink()


def said(**config: Any) -> Any:
    def damage(path: Path) -> None:
        found = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps({**found, **config}))

    return damage


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lying, "not a safetensors file"),
        (overlong, "not a safetensors file"),
        (cut("model.safetensors"), "not a safetensors file"),
        (cut("head.safetensors"), "not a safetensors file"),
        (cut("tokenizer.json"), "not a tokenizer"),
        (cut("config.json"), "not JSON"),
        (without("config.json"), "no model2vec folder"),
        (without("head.safetensors"), "no head"),
        (said(head_config={"n_layers": 3, "activation": "softmax"}), "speaks of 3 layers"),
        (said(head_config={"n_layers": 2, "activation": "tanh"}), "activation 'tanh'"),
        (said(head_config={"n_layers": 2, "activation": "softmax", "classes": ["a"]}), "names 1 classes"),
        (said(max_length=-1), "max_length is -1"),
        (said(normalize="yes"), "normalize is 'yes'"),
    ],
)
def test_bad_folders_are_refused_in_one_line(damage: Any, says: str, tmp_path: Path) -> None:
    path = folder(tmp_path)
    damage(path)
    with pytest.raises((BadInput, Unsupported), match=says) as refused:
        opened(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"embeddings": VECTORS[:-1].copy()}, "they do not belong"),
        ({"vectors": VECTORS}, "and no embeddings"),
        ({"embeddings": VECTORS[:5], "mapping": np.arange(len(TOKENS))}, "mapped to vectors beyond"),
        ({"embeddings": VECTORS, "weights": np.ones(3, dtype=np.float32)}, "weights of shape"),
        ({"embeddings": VECTORS[:, :3].copy()}, "layer 0 of 5 x 4, where it is given 3 numbers"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(
    tensors: dict[str, NDArray[Any]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=says):
        opened(folder(tmp_path, tensors))


def test_what_is_no_static_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"x")
    with pytest.raises(Unsupported, match="is a model2vec folder"):
        opened(tmp_path / "model.onnx")
    with pytest.raises(BadInput, match="no such file"):
        opened(tmp_path / "nowhere")


def graph_head(path: Path, nodes: list[Any], constants: dict[str, NDArray[Any]], gives: str) -> StaticClassifier:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        nodes,
        "head",
        [helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info(gives, TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    (path / "head.safetensors").unlink()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), str(path / "head.onnx"))
    return opened(path)


WEIGHTS = {"w": HIDDEN[0], "wt": HIDDEN[0].T.copy(), "b": HIDDEN[1], "v": LAST[0], "c": LAST[1]}


def node(kind: str, *names: str, **said: Any) -> Any:
    from onnx import helper

    return helper.make_node(kind, list(names[:-1]), [names[-1]], **said)


def test_a_head_in_an_onnx_file_is_the_same_head(tmp_path: Path) -> None:
    path = folder(tmp_path)
    expected = opened(path).scores([(text,) for text in TEXTS])
    nodes = [
        node("MatMul", "pooled", "wt", "m"),
        node("Add", "b", "m", "a"),
        node("Relu", "a", "r"),
        node("Gemm", "r", "v", "c", "l", transB=1),
        node("Softmax", "l", "p", axis=-1),
    ]
    model = graph_head(path, nodes, WEIGHTS, "p")
    np.testing.assert_array_equal(model.scores([(text,) for text in TEXTS]), expected)
    assert "head.onnx" in [file.path.name for file in model.identity.files]


@pytest.mark.parametrize(
    ("nodes", "gives", "says"),
    [
        ([("Tanh", "pooled", "p")], "p", "Tanh"),
        ([("Gemm", "pooled", "wt", "a"), ("Gemm", "a", "v", "c", "p")], "p", "Gemm"),
        ([("Gemm", "pooled", "wt", "b", "a"), ("Relu", "a", "p")], "p", "not what its last linear layer gives"),
        ([("Gemm", "pooled", "wt", "b", "a"), ("Relu", "a", "r"), ("Add", "a", "r", "p")], "p", "chain of layers"),
        ([("Gemm", "pooled", "wt", "c", "p")], "p", "3 biases for 5 outputs"),
    ],
)
def test_heads_that_are_no_chain_of_layers_are_refused(
    nodes: list[tuple[str, ...]], gives: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises((BadInput, Unsupported), match=says):
        graph_head(folder(tmp_path), [node(*one) for one in nodes], WEIGHTS, gives)


@pytest.mark.parametrize("classes", [2, 3])
def test_heads_of_older_folders_answer_as_their_scikit_learn_model(classes: int, tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io")
    network = pytest.importorskip("sklearn.neural_network")
    pipeline = pytest.importorskip("sklearn.pipeline")
    rng = np.random.default_rng(2)
    vectors, gold = rng.normal(size=(60, 4)), np.arange(60) % classes
    head = network.MLPClassifier((6,), solver="lbfgs", max_iter=30, tol=1.0, random_state=0)
    model = pipeline.make_pipeline(head).fit(vectors, gold)
    path = folder(tmp_path)
    (path / "head.safetensors").unlink()
    skops.dump(model, path / "pipeline.skops")
    ours: Classifier = opened(path)
    means = [np.mean([VECTORS[TOKENS.index(token)] for token in words], axis=0) for words in (["good"], ["a", "film"])]
    np.testing.assert_allclose(
        ours.scores([("good",), ("a film",)]), model.predict_proba(np.array(means)), rtol=0, atol=1e-6
    )
    (path / "pipeline.skops").write_bytes((path / "pipeline.skops").read_bytes()[:500])
    with pytest.raises(BadInput, match="not a head that skops reads"):
        opened(path)
