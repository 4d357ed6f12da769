"""Hugging Face folders: what comes out answers what transformers answers, and what cannot be trusted is refused."""

from __future__ import annotations

import gc
import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_transformers import BERT_TOKENS, CLASSES, KINDS, POSITIONS, TYPES, change, save

from swapproof.models.deployed.classifier import Deployment
from swapproof.models.deployed.hugging_face import prepare_hugging_face
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.errors import BadInput, Unsupported
from swapproof.models.export.hugging_face_folder import Exported, export_hugging_face, read_exported

for package in ("torch", "transformers", "tokenizers", "safetensors", "onnxruntime"):
    pytest.importorskip(package)

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
EVERY_NIGHT = pytest.mark.skipif(not NIGHTLY, reason="HYPOTHESIS_PROFILE=nightly runs every architecture")
ARCHITECTURES = [kind if kind in ("bert", "roberta") else pytest.param(kind, marks=EVERY_NIGHT) for kind in KINDS]
TEXTS = (
    "the film is good",
    "The FILM was not Terrible!",
    "a café naïve résumé, ÀÉ",
    "truly  bad\tmovie ",
    "日本 movie (really) ﬁne",
    "an unforgettable experience and the acting is superb, " * 4,
)
PAIRS = tuple(zip(TEXTS, (*TEXTS[3:], *TEXTS[:3]), strict=True))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made = tmp_path_factory.mktemp("transformers")
    return lambda kind: made / kind if (made / kind).exists() else save(kind, made / kind)


@pytest.fixture
def bert(folders: Callable[[str], Path], tmp_path: Path) -> Path:
    """A folder to break."""
    return Path(shutil.copytree(folders("bert"), tmp_path / "bert"))


def answers(exported: Exported, sentences: Any) -> Any:
    """As anyone would run the two files: one padded batch, the inputs by their roles."""
    import onnxruntime
    from tokenizers import Tokenizer

    encodings = Tokenizer.from_file(str(exported.tokenizer)).encode_batch(list(sentences))
    rows = {
        "tokens": [encoding.ids for encoding in encodings],
        "mask": [encoding.attention_mask for encoding in encodings],
        "types": [encoding.type_ids for encoding in encodings],
    }
    session = onnxruntime.InferenceSession(str(exported.model), providers=["CPUExecutionProvider"])
    return session.run(None, {name: np.array(rows[role]) for name, role in exported.inputs.items()})[0]


def deployed(folder: Path, sentences: Any) -> Any:
    """As transformers' own pipeline answers, one text after the other, in torch."""
    from transformers import pipeline

    ask: Any = pipeline("text-classification", str(folder), function_to_apply="none", top_k=None, truncation=True)
    pairs = [given if isinstance(given, tuple) else (given, None) for given in sentences]
    asked = [{"text": text} if pair is None else {"text": text, "text_pair": pair} for text, pair in pairs]
    rows = [sorted(ask(given), key=lambda row: row["label"]) for given in asked]
    return np.array([[row["score"] for row in scores] for scores in rows])


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("sentences", [TEXTS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.filterwarnings("ignore")  # transformers' own, of its pipelines
def test_the_exported_files_answer_what_the_pipeline_answers(
    kind: str, sentences: Any, folders: Callable[[str], Path], tmp_path: Path
) -> None:
    """Accents, capitals, marks, texts that are cut: in one batch, whatever stands beside them."""
    fields = 2 if sentences is PAIRS else 1
    exported = export_hugging_face(folders(kind), tmp_path / "out", fields=fields)
    expected = deployed(folders(kind), sentences)
    assert np.ptp(expected, axis=0).max() > 0.1
    np.testing.assert_allclose(answers(exported, sentences), expected, atol=1e-4)
    assert exported.length == POSITIONS
    assert exported.agreement.sentences == 48
    assert exported.agreement.largest_difference < 1e-4
    assert read_exported(tmp_path / "out") == exported


def test_the_second_text_of_a_pair_has_types_of_its_own(folders: Callable[[str], Path], tmp_path: Path) -> None:
    import onnxruntime
    from tokenizers import Tokenizer

    exported = export_hugging_face(folders("bert"), tmp_path / "out", sentences=PAIRS, fields=2)
    assert dict(exported.inputs) == {"input_ids": "tokens", "attention_mask": "mask", "token_type_ids": "types"}
    assert exported.agreement.sentences == len(PAIRS)
    first, second = Tokenizer.from_file(str(exported.tokenizer)).encode_batch([PAIRS[0], ("a", "bad movie")])
    assert sorted(set(first.type_ids)) == [0, 1]
    cut = second.attention_mask.index(0)
    assert second.type_ids[:cut] == [0] * 3 + [1] * (cut - 3)
    session = onnxruntime.InferenceSession(str(exported.model), providers=["CPUExecutionProvider"])
    given = {"input_ids": np.array([first.ids]), "attention_mask": np.array([first.attention_mask])}
    with_types, without = (
        session.run(None, {**given, "token_type_ids": np.array([types])})[0]
        for types in (first.type_ids, [0] * len(first.ids))
    )
    assert np.abs(with_types - without).max() > 0.01


@pytest.mark.filterwarnings("ignore")  # transformers' own, of its pipelines
def test_types_that_the_model_has_no_rows_for_are_left_out(tmp_path: Path) -> None:
    """As in DeBERTa's folders: the tokenizer gives types, and the model takes them and does nothing with them."""
    folder = save("deberta", tmp_path / "deberta", num_hidden_layers=1)
    change(folder / "tokenizer_config.json", model_input_names=TYPES)
    exported = export_hugging_face(folder, tmp_path / "out", sentences=TEXTS[:3])
    assert list(exported.inputs) == ["input_ids", "attention_mask"]
    np.testing.assert_allclose(answers(exported, TEXTS[:3]), deployed(folder, TEXTS[:3]), atol=1e-4)


def test_texts_are_cut_to_the_length_asked_for(bert: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    exported = export_hugging_face(bert, tmp_path / "out", length=10)
    assert exported.length == 10
    assert len(Tokenizer.from_file(str(exported.tokenizer)).encode(TEXTS[-1]).ids) == 10
    with pytest.raises(BadInput, match=rf"fails on texts of {POSITIONS + 1} tokens"):
        export_hugging_face(bert, tmp_path / "long", length=POSITIONS + 1)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_without_a_length_in_the_tokenizer_the_positions_of_the_model_say_it(
    kind: str, folders: Callable[[str], Path], tmp_path: Path
) -> None:
    """RoBERTa counts them from after the padding's id, so that it takes two fewer than config.json says."""
    folder = Path(shutil.copytree(folders(kind), tmp_path / kind))
    change(folder / "tokenizer_config.json", model_max_length=None)
    assert export_hugging_face(folder, tmp_path / "out").length == POSITIONS


def test_a_vocabulary_alone_becomes_a_tokenizer_and_that_is_said(bert: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    before = Tokenizer.from_file(str(bert / "tokenizer.json"))
    ids = before.get_vocab()
    words = sorted(ids, key=lambda word: ids[word])
    (bert / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (bert / "tokenizer.json").unlink()
    (bert / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **BERT_TOKENS}))
    exported = export_hugging_face(bert, tmp_path / "out")
    after = Tokenizer.from_file(str(exported.tokenizer))
    assert [after.encode(text).ids for text in TEXTS[:5]] == [before.encode(text).ids for text in TEXTS[:5]]
    assert "tokenizer.json was made from vocab.txt by BertTokenizer" in exported.remarks
    # The class adds it to a vocabulary without, and no text becomes it that does not spell it.
    assert "the model has no embedding for [MASK]: texts that spell it are not answered" in exported.remarks


def test_a_tokenizer_class_that_overrides_the_file_is_what_is_deployed(bert: Path, tmp_path: Path) -> None:
    """transformers builds a BertTokenizer anew from the vocabulary: the rules of tokenizer.json are not asked."""
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    change(bert / "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=False)
    exported = export_hugging_face(bert, tmp_path / "out")
    ids = Tokenizer.from_file(str(exported.tokenizer)).encode("The Film").ids
    assert ids == AutoTokenizer.from_pretrained(bert)("The Film")["input_ids"]
    assert ids != Tokenizer.from_file(str(bert / "tokenizer.json")).encode("The Film").ids
    assert any("other tokens than the folder's tokenizer.json" in remark for remark in exported.remarks)


@pytest.mark.parametrize("kind", ["gpt2"])
def test_padding_that_changes_answers_is_put_on_the_other_side(kind: str, tmp_path: Path) -> None:
    """GPT-2 counts its positions from the left, where its tokenizer would pad."""
    exported = export_hugging_face(save(kind, tmp_path / kind), tmp_path / "out")
    assert exported.pad_side == "right"
    assert "padding on the left changes its answers; batches are padded on the right" in exported.remarks


def test_several_labels_and_their_names_are_handed_on(bert: Path, tmp_path: Path) -> None:
    names = {"0": "toxic", "2": "threat", "1": "insult"}
    change(bert / "config.json", problem_type="multi_label_classification", id2label=names, label2id=None)
    exported = export_hugging_face(bert, tmp_path / "out")
    assert exported.multi_label
    assert exported.labels == ("toxic", "insult", "threat")


def test_an_older_checkpoint_is_read_without_running_its_pickle(bert: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(bert / "model.safetensors"), bert / "pytorch_model.bin")
    before = export_hugging_face(bert, tmp_path / "a")
    (bert / "model.safetensors").unlink()
    assert export_hugging_face(bert, tmp_path / "b").sha256["model"] == before.sha256["model"]


class Runs:
    """What a pickle can be made to do."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.witness),))


@pytest.mark.parametrize("writer", ["torch", "pickle"])
def test_a_pickle_that_runs_code_does_not_run_it(writer: str, bert: Path, tmp_path: Path) -> None:
    import torch

    content = {"evil": Runs(tmp_path / "witness"), "padding": np.zeros(10**5) if writer == "pickle" else "0" * 10**5}
    (bert / "model.safetensors").unlink()
    if writer == "torch":
        torch.save(content, bert / "pytorch_model.bin")
    else:
        (bert / "pytorch_model.bin").write_bytes(pickle.dumps(content))
    with pytest.raises(Unsupported, match="a pickle of more than tensors, which is not loaded") as caught:
        export_hugging_face(bert, tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "witness").exists()


def without_head(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("classifier")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def with_nan(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.bias"][0] = float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def lying_header(folder: Path) -> None:
    """A tensor of 10^12 numbers in a file of ninety kilobytes."""
    content = (folder / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    header["classifier.bias"] = {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}
    written = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(written)) + written + content[8 + size :])


def packed_zeros(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 10**6)


def half_a_file(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def more_tokens(folder: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["unheard", "unseen"])
    tokenizer.save(str(folder / "tokenizer.json"))


def without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def vocabulary_of_another_class(folder: Path) -> None:
    """BertTokenizer looks for vocab.txt; where there is none, it makes five special tokens and says nothing."""
    (folder / "tokenizer.json").rename(folder / "vocab.json")
    change(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")


def config(**values: Any) -> Callable[[Path], None]:
    return lambda folder: change(folder / "config.json", **values)


def foreign_shard(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "elsewhere.safetensors")
    index = {"weight_map": {"classifier.bias": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


REFUSED: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "no config.json": (lambda folder: (folder / "config.json").unlink(), BadInput, "config.json: no such file"),
    "broken config.json": (lambda folder: (folder / "config.json").write_text("{"), BadInput, "not JSON"),
    "unknown model": (config(model_type="nonsense"), BadInput, "model type `nonsense`"),
    "other sizes": (config(hidden_size=64), BadInput, "other shapes than config.json describes"),
    "enormous sizes": (config(vocab_size=10**9, hidden_size=10**5), BadInput, "they are of another model"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), BadInput, "holds no weights"),
    "no tokenizer": (without_tokenizer, BadInput, "holds no tokenizer"),
    "broken tokenizer": (lambda folder: (folder / "tokenizer.json").write_text("{"), BadInput, "tokenizer cannot be"),
    "vocabulary of another class": (vocabulary_of_another_class, BadInput, "BertTokenizer finds no vocabulary in it"),
    "no padding token": (
        lambda folder: change(folder / "tokenizer_config.json", pad_token=None),
        BadInput,
        "names no padding token",
    ),
    "own code": (config(auto_map={"AutoModel": "own.Model"}), Unsupported, "Python code of its own"),
    "own tokenizer": (
        lambda folder: change(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Tokenizer", None]}),
        Unsupported,
        "Python code of its own",
    ),
    "regression": (config(problem_type="regression"), Unsupported, "a regression"),
    "another task": (config(architectures=["BertForTokenClassification"]), Unsupported, "a BertForTokenClassification"),
    "quantised": (config(quantization_config={"quant_method": "bitsandbytes"}), Unsupported, "are quantised"),
    "no head": (without_head, BadInput, "classifier.bias and 1 more tensors are not in its weights"),
    "half a file": (half_a_file, BadInput, "not a whole safetensors file"),
    "lying sizes": (lying_header, BadInput, "not a whole safetensors file"),
    "zip bomb": (packed_zeros, BadInput, "unpacks to 1000000 bytes"),
    "shard elsewhere": (foreign_shard, BadInput, "which is no file of the folder"),
    "tokenizer of another model": (more_tokens, BadInput, "the tokenizer has ids up to"),
    "not a number": (with_nan, BadInput, "answers nan"),
    "a name is missing": (config(id2label={"0": "a", "1": "b", "7": "c"}, label2id=None), BadInput, "no class 2"),
}


@pytest.mark.parametrize("defect", REFUSED)
def test_what_cannot_be_run_is_refused_in_one_line(defect: str, bert: Path, tmp_path: Path) -> None:
    """And leaves nothing."""
    damage, kind, message = REFUSED[defect]
    damage(bert)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(kind, match=message) as caught:
        export_hugging_face(bert, tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400 + 2 * len(str(bert))
    assert sorted(tmp_path.iterdir()) == before


def test_an_export_is_made_once_and_anew_when_the_model_changes(bert: Path, tmp_path: Path) -> None:
    deployment = Deployment("hf", str(bert))
    first = prepare_hugging_face(deployment, tmp_path / "run" / "model")
    assert first.deployment.kind == "onnx"
    assert first.deployment.source == str(tmp_path / "run" / "model" / "model.onnx")
    assert first.deployment.vocabulary == tmp_path / "run" / "model" / "tokenizer.json"
    assert (first.deployment.pad, first.deployment.pad_side, first.deployment.length) == ("[PAD]", "right", None)
    assert len(first.exported.labels) == CLASSES
    stamp = first.exported.model.stat().st_mtime_ns
    assert prepare_hugging_face(deployment, tmp_path / "run" / "model") == first
    assert first.exported.model.stat().st_mtime_ns == stamp

    change(bert / "config.json", layer_norm_eps=0.5)
    second = prepare_hugging_face(deployment, tmp_path / "run" / "model")
    assert second.exported.sha256["source"] != first.exported.sha256["source"]
    assert second.exported.sha256["model"] != first.exported.sha256["model"]

    second.exported.model.write_bytes(b"damaged")
    assert prepare_hugging_face(deployment, tmp_path / "run" / "model") == second


def test_a_folder_with_other_files_is_not_replaced(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(BadInput, match="not an empty folder"):
        prepare_hugging_face(Deployment("hf", str(bert)), tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("sentences", [TEXTS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.filterwarnings("ignore")  # transformers' own, of its pipelines
def test_a_folder_that_is_opened_answers_and_leaves_nothing_behind(
    kind: str, sentences: Any, folders: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fields = 2 if sentences is PAIRS else 1
    classifier = open_classifier(Deployment("hf", str(folders(kind)), fields=fields))
    given = [texts if isinstance(texts, tuple) else (texts,) for texts in sentences]
    np.testing.assert_allclose(classifier.scores(given), deployed(folders(kind), sentences), atol=1e-4)
    assert (classifier.identity.kind, classifier.identity.name) == ("hf", kind)
    assert classifier.identity.facts["sentences compared with torch"] == 48
    assert all(copy.path.exists() for copy in classifier.identity.files)
    del classifier
    gc.collect()
    assert not list(tmp_path.iterdir())
