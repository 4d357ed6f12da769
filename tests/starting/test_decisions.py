"""What the command line says is taken as a task file would say it."""

from __future__ import annotations

from typing import Any

import pytest

from swapproof.models.errors import BadInput
from swapproof.verifier.starting.decisions import as_setting, parse_settings


@pytest.mark.parametrize(
    ("setting", "section", "key", "value"),
    [
        ("label=class", "data", "label", "class"),
        ("text=my text", "data", "text", "my text"),
        ("label=1", "data", "label", "1"),
        ("output=1", "model", "output", 1),
        ("output=logits", "model", "output", "logits"),
        ("column=3", "model", "column", 3),
        ("threshold=0.7", "model", "threshold", 0.7),
        ("lowercase=true", "model", "lowercase", True),
        ("labels=bad,good", "model", "labels", ["bad", "good"]),
        ('labels=["a, b", "c"]', "model", "labels", ["a, b", "c"]),
        ('labels={ "0" = "bad", "1" = "good" }', "model", "labels", {"0": "bad", "1": "good"}),
        ('unknown=""', "model", "unknown", ""),
        ("unknown=<unk>", "model", "unknown", "<unk>"),
        ('request={"inputs": {text}}', "model", "request", '{"inputs": {text}}'),
        ("swaps.file=my.json", "swaps", "file", "my.json"),
        ("sample=200", "data", "sample", 200),
    ],
)
def test_a_setting_is_a_key_and_a_value(setting: str, section: str, key: str, value: Any) -> None:
    assert parse_settings([setting])[section] == {key: value}


@pytest.mark.parametrize(
    ("setting", "said"),
    [("label", "it is KEY=VALUE"), ("lable=x", "did you mean label"), ("onnx=x", "no key"), ("nothing.x=1", "no key")],
)
def test_what_is_no_setting_is_one_line(setting: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_settings([setting])


def test_advice_for_the_task_file_becomes_advice_for_this_command() -> None:
    said = 'set [model] inputs = { a = "tokens", b = "..." }, each one of tokens; or set [model] output = \'x\', or'
    assert as_setting(said) == (
        "say --set 'inputs={ a = \"tokens\", b = \"...\" }', each one of tokens; or say --set 'output=x', or"
    )
