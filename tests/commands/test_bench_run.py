"""`bench run` on small models: what it counts, what it leaves, and a row of it on the page of measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentiment_data import WORDS, write_csv, write_onnx, write_synonyms

from swapproof.encodings.errors import BadInput
from swapproof.verifier.cli import main
from swapproof.verifier.commands.benches.bench_page import run_row
from swapproof.verifier.commands.benches.bench_run import bench_run
from swapproof.verifier.tasks.inputs import read_plain
from swapproof.verifier.tasks.task import read_task


@pytest.fixture
def task(tmp_path: Path) -> Path:
    model = write_onnx(tmp_path)
    (tmp_path / "words.json").write_text(json.dumps(list(WORDS)))
    data, synonyms = write_csv(tmp_path / "data.csv"), write_synonyms(tmp_path / "synonyms.json")
    path = tmp_path / "task.toml"
    path.write_text(
        f'[model]\nonnx = "{model.name}"\nvocabulary = "words.json"\nlabels = ["negative", "positive"]\n'
        f'[data]\nfile = "{data.name}"\ntext = "text"\nlabel = "label"\n[swaps]\nfile = "{synonyms.name}"\n'
    )
    return path


def test_every_sentence_with_so_many_swaps_is_asked_and_run_barely(task: Path, tmp_path: Path) -> None:
    texts = [text.swaps for text in read_plain(read_task(task), 8).texts]
    sizes = [[len(text.options[word]) - 1 for word in text.swappable] for text in texts]
    ones, twos = sum(map(sum, sizes)), sum((sum(some) ** 2 - sum(one * one for one in some)) // 2 for some in sizes)
    lines = tmp_path / "run.json"
    found = bench_run(task, 8, 2, json_file=lines)
    assert found.sentences == ones + twos
    assert found.texts == sum(map(bool, sizes))
    assert found.overhead is not None
    assert found.best in found.bare
    assert found.run.wall > 0 < found.estimated
    kept = json.loads(lines.read_text())
    assert kept["sentences"] == found.sentences
    assert f"{found.sentences:,} of {found.texts} texts, up to 2 swaps" in run_row(kept)
    assert main(["bench", "run", str(task), "--limit", "2", "--json", str(lines)]) == 0  # it writes over its own


def test_it_writes_over_nothing_else_and_needs_something_to_swap(task: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"task\.toml: exists"):
        bench_run(task, json_file=task)
    with pytest.raises(BadInput, match="at least 1"):
        bench_run(task, radius=0)
    (tmp_path / "synonyms.json").write_text("{}")
    with pytest.raises(BadInput, match="nothing can be swapped"):
        bench_run(task, 2)
