"""The examples of models/README.md that export a model: run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from small_pipelines import corpus, trained
from static_files import word_pieces, write_folder
from tiny_transformers import CLASSES, save

PAGE = Path(__file__).parents[3] / "models" / "README.md"


def example(title: str) -> str:
    """The one block of Python below this title."""
    [section] = re.findall(rf"^### {title}\n(.*?)(?=^##)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    [block] = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return str(block)


def test_the_torch_example_leaves_a_model_of_fixed_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    import onnx

    monkeypatch.chdir(tmp_path)
    exec(compile(example("torch modules"), str(PAGE), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.startswith("torchscript 18 ")
    graph = onnx.load("model.onnx").graph
    shapes = [[one.dim_param or one.dim_value for one in io.type.tensor_type.shape.dim] for io in graph.input]
    assert shapes == [["batch", 200]]


def test_the_hugging_face_example_leaves_a_model_and_its_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("torch", "transformers", "tokenizers", "safetensors"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    save("bert", tmp_path / "my_model")
    capsys.readouterr()
    exec(compile(example("Hugging Face folders"), str(PAGE), "exec"), {"__name__": "example"})
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("{'input_ids': 'tokens', 'attention_mask': 'mask', 'token_type_ids': 'types'}")
    assert first.count("LABEL_") == CLASSES
    assert second == "torchscript"
    assert {path.name for path in Path("exported").iterdir()} > {"model.onnx", "tokenizer.json", "export.json"}


def test_the_pipeline_example_leaves_a_model_and_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    monkeypatch.chdir(tmp_path)
    names = {"model": trained(TfidfVectorizer(norm=None), LogisticRegression()), "texts": corpus()[0]}
    exec(compile(example("Pipelines of scikit-learn"), str(PAGE), "exec"), names)
    first, second = capsys.readouterr().out.splitlines()
    assert int(first.split()[0]) == len(names["model"][0].vocabulary_)
    assert float(first.split()[1]) < 1e-9
    assert "'labels': ['negative', 'positive']" in second
    assert {path.name for path in Path("exported").iterdir()} == {"model.onnx", "vocabulary.json"}


def test_the_example_of_vectors_leaves_a_model_and_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("safetensors", "tokenizers"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    tokens = ["[PAD]", "[UNK]", "a", "good", "film", "fine", "movie"]
    drawn = np.random.default_rng(0)
    tables = {"embeddings": drawn.normal(size=(len(tokens), 3)).astype(np.float32)}
    layer = (drawn.normal(size=(2, 3)).astype(np.float32), drawn.normal(size=2).astype(np.float32))
    write_folder(Path("reviews"), word_pieces(tokens), tables, [layer], classes=["negative", "positive"])
    exec(compile(example("Vectors of model2vec and fastText"), str(PAGE), "exec"), {"texts": ["a good film"]})
    first, second = capsys.readouterr().out.splitlines()
    assert first.split()[0] == "5"
    assert float(first.split()[1]) < 1e-12
    assert second.endswith("'labels': ['negative', 'positive']}")
