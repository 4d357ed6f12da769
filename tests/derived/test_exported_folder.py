"""Hugging Face folders through `certify`: what is claimed is true of the model in torch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_runs import results

from swapproof.verifier.cli import main

pytest.importorskip("torch")
pytest.importorskip("transformers")

TEXTS = ["a good film and a great cast", "this was bad", "nothing to say here"]
SYNONYMS = {"good": ["fine", "bad"], "great": ["good", "dull"], "bad": ["poor", "good"], "say": ["tell"]}


def test_a_folder_is_exported_run_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch
    from tiny_transformers import save
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = save("bert", tmp_path / "model")
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    names: list[str] = [model.config.id2label[index] for index in range(model.config.num_labels)]

    def answer(text: str) -> str:
        with torch.inference_mode():
            scores = model(**tokenizer(text, truncation=True, return_tensors="pt")).logits[0]
        return names[int(scores.argmax())]

    rows = [json.dumps({"text": text, "label": answer(text)}) for text in TEXTS]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "synonyms.json").write_text(json.dumps(SYNONYMS))
    (tmp_path / "task.toml").write_text(
        f'[model]\nhf = "model"\nlabels = {json.dumps(names)}\n\n[data]\nfile = "texts.jsonl"\n\n'
        '[swaps]\nfile = "synonyms.json"\n'
    )
    run = tmp_path / "run"
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0
    for line in results(run):
        assert line["status"] in ("exact", "unbreakable")
        assert names[line["predicted"]] == answer(line["text"])
        if line["witness"] is not None:
            assert answer(line["witness"]["sentence"]) != answer(line["text"])
    assert main(["check", str(run)]) == 0
    assert any("exported from model" in remark for remark in json.loads((run / "summary.json").read_text())["remarks"])
    again = (run / "results.jsonl").read_bytes()
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(run)]) == 0  # the same run, though exported anew
    assert (run / "results.jsonl").read_bytes() == again
    read = tmp_path / "read.toml"
    read.write_text((tmp_path / "task.toml").read_text().replace('hf = "model"', 'hf = "model"\nroad = "read"'))
    assert main(["certify", str(read), "--out", str(tmp_path / "proved"), "--seconds", "5"]) in (0, 3)
    assert main(["check", str(tmp_path / "proved")]) in (0, 3)
    told = (tmp_path / "task.toml").read_text().replace(json.dumps(names), json.dumps(names[::-1]))
    (tmp_path / "task.toml").write_text(told)
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(tmp_path / "other")]) == 2
    assert "model: answers in the order LABEL_0, LABEL_1, LABEL_2" in capsys.readouterr().err
