"""torch's own layers of attention, as both of its exporters write them: one is read and proved about, two are run."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from swapproof.encodings.onnx_files.onnx_reading import network_for
from swapproof.encodings.query import Query
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.space import SwapSpace
from swapproof.verifier import certify
from swapproof.verifier.tasks.opened_model import opened
from swapproof.verifier.tasks.task import read_task

torch = pytest.importorskip("torch")
WORDS = ["<pad>", "a", "good", "fine", "film", "movie", "bad", "poor", "<unk>"]
SYNONYMS = {"good": ["fine", "bad"], "film": ["movie"], "bad": ["poor"], "a": ["poor"]}
PADDED = ((1, 3, 5), (2,), (4, 6), (6, 8, 2), (0,))
LAYERS: dict[str, dict[str, Any] | None] = {
    "MultiheadAttention": None,
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "post-norm, gelu": {"activation": "gelu"},
    "pre-norm, gelu": {"norm_first": True, "activation": "gelu"},
}


def classifier(layer: dict[str, Any] | None, count: int = 1) -> Any:
    """Padding, token 0, is neither attended to nor counted."""
    from torch import nn

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(len(WORDS), 8)
            if layer is None:
                self.attend: Any = nn.MultiheadAttention(8, 2, batch_first=True)
            else:
                self.attend = nn.ModuleList(
                    nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, **layer) for _ in range(count)
                )
            self.out = nn.Linear(8, 2)

        def forward(self, tokens: Any) -> Any:
            x, padding = self.embed(tokens), tokens == 0
            if layer is None:
                x = x + self.attend(x, x, x, key_padding_mask=padding, need_weights=False)[0]
            else:
                for one in self.attend:
                    x = one(x, src_key_padding_mask=padding)
            words = (~padding).unsqueeze(-1).to(x.dtype)
            return self.out((x * words).sum(1) / words.sum(1))

    torch.manual_seed(1)
    return Classifier().eval()


def lowering(kind: str) -> Any:
    """Scores under a mask of float32's lowest number, as a mask of booleans gives it to the newer exporter."""
    from torch import nn

    class Lowering(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.inner, self.out = nn.Embedding(len(WORDS), 8), nn.Linear(8, 24), nn.Linear(8, 2)

        def forward(self, tokens: Any) -> Any:
            words = (tokens != 0).reshape(1, 1, 1, -1)
            q, k, v = self.inner(self.embed(tokens)).unsqueeze(1).chunk(3, dim=-1)
            if kind == "booleans":
                x = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=words)
            else:
                low = (1.0 - words.to(q.dtype)) * torch.finfo(torch.float32).min
                x = torch.softmax(q @ k.transpose(2, 3) / 8**0.5 + low, -1) @ v
            return self.out(x[:, 0, 0])

    torch.manual_seed(2)
    return Lowering().eval()


def bert() -> Any:
    from torch import nn

    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2, "num_hidden_layers": 1}
    config = transformers.BertConfig(
        vocab_size=len(WORDS), max_position_embeddings=8, attn_implementation="eager", **sizes
    )

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.given = transformers.BertForSequenceClassification(config)

        def forward(self, tokens: Any) -> Any:
            return self.given(tokens, (tokens != 0).long()).logits

    torch.manual_seed(3)
    return Bert().eval()


def exported(model: Any, path: Path, *, dynamo: bool) -> Path:
    """With the fast path off, which has operators of its own."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    more = {"verbose": False, "external_data": False} if dynamo else {"opset_version": 17}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tokens = torch.tensor([[1, 2, 4, 6, 0]])
            named = {"input_names": ["tokens"], "output_names": ["out"]}
            torch.onnx.export(model, (tokens,), str(path), dynamo=dynamo, **named, **more)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    return path


def task_of(path: Path) -> Path:
    folder = path.parent
    (folder / "vocabulary.json").write_text(json.dumps(WORDS))
    (folder / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (folder / "texts.tsv").write_text("text\tlabel\na good film\t0\na bad film\t1\na good bad movie\t0\n")
    (folder / "task.toml").write_text(
        '[model]\nonnx = "model.onnx"\nvocabulary = "vocabulary.json"\nlength = 5\npad = "<pad>"\n'
        'unknown = "<unk>"\nlabels = ["x", "y"]\n[data]\nfile = "texts.tsv"\ntext = "text"\nlabel = "label"\n'
        '[swaps]\nfile = "synonyms.json"\n'
    )
    return folder / "task.toml"


def fewest(path: Path, text: str) -> int | None:
    """Swaps that change the answer, by every sentence through onnxruntime."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    words = text.split()

    def answer(sentence: Sequence[str]) -> int:
        ids = [WORDS.index(word) for word in sentence]
        scores = session.run(None, {"tokens": np.array([[*ids, *[0] * (5 - len(ids))]])})[0][0]
        return int(np.argmax(scores))

    choices = [[word, *SYNONYMS.get(word, [])] for word in words]
    broken = [own for own in itertools.product(*choices) if answer(own) != answer(words)]
    return min((sum(a != b for a, b in zip(own, words, strict=True)) for own in broken), default=None)


CASES = [*((name, False) for name in LAYERS), ("MultiheadAttention", True), ("pre-norm, gelu", True)]


@pytest.mark.parametrize(("name", "dynamo"), CASES)
def test_one_layer_is_read_and_proved_about_from_both_exporters(name: str, dynamo: bool, tmp_path: Path) -> None:
    """With masks of minus infinity; roots of constants that are left to the runtime are put in as numbers."""
    if dynamo:
        pytest.importorskip("onnxscript")
    path = exported(classifier(LAYERS[name]), tmp_path / "model.onnx", dynamo=dynamo)
    model = opened(read_task(task_of(path)))
    space = SwapSpace(PADDED)
    question = question_of(Query(network_for(model, space, smooth=True), space, 0, (1,)))
    assert question.layout is not None
    prove(path)


def prove(path: Path) -> None:
    """Every text, over the reals; and its minimum is that of every sentence."""
    certify(task_of(path), path.parent / "run")
    lines = [json.loads(line) for line in (path.parent / "run" / "results.jsonl").read_text().splitlines()]
    assert {line["level"] for line in lines} == {"real"}
    for line in lines:
        if line["status"] != "already_wrong":
            least = fewest(path, line["text"])
            assert line["min_swaps"]["high"] == least
            assert line["min_swaps"]["low"] == (least or len(line["text"].split()) + 1)


@pytest.mark.parametrize("kind", ["numbers", "booleans", "BERT"])
def test_masks_of_the_lowest_number_are_read(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    model = bert() if kind == "BERT" else lowering(kind)
    prove(exported(model, tmp_path / "model.onnx", dynamo=kind != "numbers"))


def test_two_layers_are_run(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    path = exported(classifier({}, 2), tmp_path / "model.onnx", dynamo=True)
    outcome = certify(task_of(path), tmp_path / "run")
    assert any("several layers" in remark for remark in outcome.summary["remarks"])
