"""The loop in which networks learn: killed and gone on with, repeated, stopped by a loss that is no number."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swapproof.models.errors import BadInput

pytest.importorskip("torch")

Write = Callable[..., Path]
SYNONYMS = {"good": ["fine"], "bad": ["poor"], "film": ["movie"]}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A recipe with 60 texts, of which 20 are held out."""
    generator = np.random.default_rng(1)
    rows = ["label\ttext"]
    for row in range(60):
        words = [str(word) for word in generator.choice(["film", "movie", "plot", "the"], 3)]
        rows.append(
            f"{row % 2}\t{' '.join(words)} {generator.choice(['good', 'fine'] if row % 2 else ['bad', 'poor'])}"
        )
    (tmp_path / "train.tsv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    (tmp_path / "s.json").write_text(json.dumps(SYNONYMS), encoding="utf-8")

    def make(
        defence: str = "", training: str = "", network: str = 'architecture = "cnn"\nwidth = 2\nfilters = 4'
    ) -> Path:
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(
            '[data]\ntrain = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out_rows = 20\n'
            f"[vocabulary]\nlength = 6\n[network]\n{network}\n[training]\nepochs = 3\nbatch = 8\nlearning_rate = 0.02\n"
            "word_dropout = 0.1\n"
            f"{training}\n[defence]\n{defence}\n[task]\ntraining_texts = 7\n"
            '[swaps]\nfile = "s.json"\n',
            encoding="utf-8",
        )
        return recipe

    return make


class Killed(BaseException):
    """As by kill -9: nothing in between catches it."""


@pytest.mark.parametrize("defence", ['method = "ta-vat"', 'method = "swap-hinge"\nsynonyms = "s.json"'])
def test_a_killed_training_goes_on_and_ends_with_the_same_bytes(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defence: str
) -> None:
    """Within an epoch, with what the defence remembers; and what was kept is gone in the end."""
    from swapproof.models import learning
    from swapproof.models.training import train

    path = write(defence)
    train(path, tmp_path / "whole", lambda line: None)
    monkeypatch.setattr(learning, "EVERY", 0.0)

    def die(line: str) -> None:
        if "epoch 2/3, step 8" in line:
            raise Killed

    with pytest.raises(Killed):
        train(path, tmp_path / "out", die)
    kept = tmp_path / ".out.training"
    assert kept.is_file()
    lines: list[str] = []
    train(path, tmp_path / "out", lines.append)
    assert any(line.startswith("going on from step 8 of 15") for line in lines)
    assert not any("epoch 1/" in line for line in lines)
    whole, out = (tmp_path / name / "model.onnx" for name in ("whole", "out"))
    assert whole.read_bytes() == out.read_bytes()
    assert not kept.exists()
    said = json.loads((tmp_path / "out" / "training.json").read_text())
    assert said["files"].keys() == ({"train", "synonyms"} if "synonyms" in defence else {"train"})
    assert "torch" in said["versions"]


def test_one_step_and_the_end_of_an_epoch_after_going_on_are_no_measure_of_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from swapproof.models import learning

    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    clock = learning.Clock(99 * 2.0)
    now += 12.0  # a step of 2 s, and 10 s of judging
    assert clock.left(100, 200) == pytest.approx(210.0)


def test_what_is_kept_of_another_training_or_cut_short_is_not_gone_on_with(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swapproof.models import learning
    from swapproof.models.training import train

    def die(line: str) -> None:
        if "step 3" in line:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(learning, "EVERY", 0.0)
        with pytest.raises(Killed):
            train(write('method = "none"'), tmp_path / "out", die)
    kept = tmp_path / ".out.training"
    whole = kept.read_bytes()
    for number, (content, training) in enumerate(((whole, "seed = 4"), (whole[:100], ""))):
        (tmp_path / f".again{number}.training").write_bytes(content)
        lines: list[str] = []
        train(write('method = "none"', training), tmp_path / f"again{number}", lines.append)
        assert not any("going on" in line for line in lines)


def test_a_full_disk_while_keeping_is_one_line(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from swapproof.models import learning
    from swapproof.models.training import train

    def full(content: Any, file: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(learning, "EVERY", 0.0)
    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(BadInput, match=r"cannot be kept .No space left on device"):
        train(write('method = "none"'), tmp_path / "out", lambda line: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["recipe.toml", "s.json", "train.tsv"]


def test_training_texts_have_a_task_of_their_own(write: Write, tmp_path: Path) -> None:
    """They are none of the held-out ones, and what is attacked of them can be learned from."""
    from swapproof.models.training import train
    from swapproof.verifier import attack

    train(write('method = "none"'), tmp_path / "out", lambda line: None)
    texts, held = (
        [json.loads(line)["text"] for line in (tmp_path / "out" / name).read_text().splitlines()]
        for name in ("training_texts.jsonl", "held_out.jsonl")
    )
    assert len(texts) == 7
    assert not set(texts) & set(held)
    run = attack(tmp_path / "out" / "training_task.toml", tmp_path / "run", "random")
    assert run.summary["texts"] == 7
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    found = sum(bool(line["witness"] and line["witness"]["swaps"]) for line in lines)
    if found:
        said: list[str] = []
        train(write('method = "ada"\nexamples = "run/results.jsonl"'), tmp_path / "ada", said.append)
        assert any(line.startswith(f"{found} listed examples") for line in said)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries of C are left alone")
def test_freed_memory_is_kept_for_the_next_step() -> None:
    """Beside blocks of 24 MB glibc would give back the end of its heap each time, and the pages come one by one."""
    resource = pytest.importorskip("resource")
    pages = 4 * (24 << 20) // resource.getpagesize()
    import torch

    from swapproof.models.learning import kept_memory

    with kept_memory():
        faults = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            blocks = [torch.ones(24 << 18) for _ in range(4)]
            del blocks
            faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert sum(faults[1:]) < pages, faults
