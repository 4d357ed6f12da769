"""The examples of a function and of an endpoint in models/README.md are run as they stand there."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_server import server

from swapproof.models.deployed.kinds import open_classifier
from swapproof.verifier.tasks.sections import ModelSection

PAGE = (Path(__file__).parents[3] / "models" / "README.md").read_text("utf-8")
SECTION = PAGE.split("## A function or an endpoint\n")[1].split("\n## ")[0]
(CODE,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
CALLABLE, ENDPOINT = (tomllib.loads(block)["model"] for block in re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL))
NETWORK = """
import torch

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(6, 4)
        self.logits = torch.nn.Linear(4, 2)
        self.dropout = torch.nn.Dropout()

    def forward(self, ids, mask):
        return self.logits(self.dropout((self.embedding(ids) * mask.unsqueeze(-1)).sum(1)))
"""


@pytest.fixture(autouse=True)
def same_path() -> Iterator[None]:
    before = list(sys.path)
    yield
    sys.path[:] = before


def section(content: dict[str, Any], folder: Path) -> ModelSection:
    return ModelSection.model_validate(content, context={"folder": folder})


def test_the_function_answers_what_its_network_answers(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    tokenizers = pytest.importorskip("tokenizers")
    words = {"<pad>": 0, "<unk>": 1, "a": 2, "good": 3, "film": 4, "bad": 5}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "network.py").write_text(NETWORK)
    (tmp_path / "guard.py").write_text(CODE)
    defined: dict[str, Any] = {}
    exec(NETWORK, defined)
    torch.manual_seed(1)
    network = defined["Network"]().eval()
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    classifier = open_classifier(section(CALLABLE, tmp_path).deployment())
    found = classifier.scores([("a good film",), ("bad",)])
    with torch.inference_mode():
        alone = [network(torch.tensor([ids]), torch.ones(1, len(ids)))[0].numpy() for ids in ([2, 3, 4], [5])]
    np.testing.assert_allclose(found, alone, atol=1e-6)


def test_the_endpoint_is_asked_as_the_example_says(tmp_path: Path) -> None:
    def answer(asked: Any, number: int) -> Any:
        return {"results": [{"probabilities": [0.25, 0.75 + len(text)]} for text in asked["inputs"]]}

    with server(answer) as served:
        deployment = section({**ENDPOINT, "endpoint": served.url}, tmp_path).deployment(allow_endpoint=True)
        found = open_classifier(deployment).scores([("a" * size,) for size in range(40)])
    assert found[:, 1].tolist() == [0.75 + size for size in range(40)]
    assert [len(asked["inputs"]) for asked in served.asked] == [16, 16, 8]
