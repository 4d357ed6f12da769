"""The task file: what it says is what is read, what is wrong is named in one line, and reading back changes nothing."""

from __future__ import annotations

import json
import os
import pickle
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from swapproof.models.errors import BadInput
from swapproof.verifier.tasks.task import SECTIONS, Task, read_task, task_dumped, toml_value

EXAMPLE = """
[model]
onnx = "model.onnx"
vocabulary = "vocabulary.json"
length = 200
pad = "<pad>"
unknown = "<unk>"
lowercase = true
split = "words"
labels = ["negative", "positive"]

[data]
file = "data/dev.tsv"
text = "content"
label = "label"
limit = 200

[swaps]
file = "synonyms.json"
max_per_word = 8
"""
MINIMAL = """
model = {onnx = "model.onnx", vocabulary = "vocabulary.json", labels = ["negative", "positive"]}
data = {file = "data/dev.tsv"}
swaps = {file = "synonyms.json"}
"""
TABLE = '[swaps]\nfile = "synonyms.json"'
FILES = (
    "model.onnx",
    "vocabulary.json",
    "data/dev.tsv",
    "synonyms.json",
    "spaces.jsonl",
    "pairs.txt",
    "v.npy",
    "v.txt",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task folder with every file the tests name."""
    (tmp_path / "data").mkdir()
    for name in FILES:
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def read(folder: Path, content: str | bytes, **options: Any) -> Task:
    path = folder / "task.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_task(path, **options)


def with_swaps(*lines: str) -> str:
    return EXAMPLE.split("[swaps]")[0] + "\n".join(["[swaps]", *lines]) + "\n"


def refusal(folder: Path, content: str | bytes) -> list[str]:
    """The problems found, without the name of the task file, which each begins with."""
    with pytest.raises(BadInput) as refused:
        read(folder, content)
    name = str(folder / "task.toml")
    lines = str(refused.value).split("\n")
    assert all(line.startswith(name) for line in lines)
    return [line.removeprefix(name).removeprefix(": ") for line in lines]


def test_a_task_file_is_read_with_paths_from_its_own_folder(folder: Path) -> None:
    task = read(folder, EXAMPLE)
    assert task.model.onnx == folder / "model.onnx"
    assert (task.model.length, task.model.lowercase, task.model.split) == (200, True, "words")
    assert task.model.labels == ("negative", "positive")
    assert (task.data.file, task.data.text, task.data.limit) == (folder / "data" / "dev.tsv", "content", 200)
    assert (task.swaps.file, task.swaps.max_per_word) == (folder / "synonyms.json", 8)


def test_what_is_left_out_has_the_documented_default(folder: Path) -> None:
    task = read(folder, MINIMAL)
    assert (task.model.length, task.model.pad, task.model.unknown) == (None, None, None)
    assert (task.model.lowercase, task.model.split) == (False, None)
    assert (task.data.text, task.data.label, task.data.context, task.data.limit) == ("text", "label", None, None)
    swaps = task.swaps
    assert (swaps.source, swaps.max_per_word, swaps.antonyms, swaps.stop_words) == ("table", 8, (), False)
    assert (swaps.symmetric, swaps.same_part_of_speech, swaps.sentence_similarity, swaps.swap_unknown) == (
        False,
        False,
        None,
        False,
    )


def test_a_relative_task_path_and_an_absolute_one_read_the_same_task(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = read(folder, EXAMPLE)
    monkeypatch.chdir(folder)
    assert read_task("task.toml") == task


SWAPS = [
    ('frozen = "spaces.jsonl"', "max_per_word = 8"),
    ('source = "wordnet"', "max_per_word = 3", "symmetric = true", "stop_words = true"),
    ('source = "embeddings"', 'embeddings = "v.npy"', 'words = "v.txt"', "cosine = 0.75"),
    ('source = "embeddings"', 'embeddings = "v.txt"', "sentence_similarity = 1"),
    ('file = "synonyms.json"', 'antonyms = ["pairs.txt", "v.txt"]', 'stop_words = "pairs.txt"', "swap_unknown = true"),
    ('file = "synonyms.json"', "same_part_of_speech = true", "sentence_similarity = 0.85"),
]


BY_PATTERN = EXAMPLE.replace('split = "words"', r"split = { pattern = '\b\w\w+\b' }")


@pytest.mark.parametrize("content", [EXAMPLE, MINIMAL, BY_PATTERN, *(with_swaps(*lines) for lines in SWAPS)])
def test_what_is_written_back_reads_to_the_same_task_anywhere(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    task = read(folder, content)
    elsewhere = tmp_path_factory.mktemp("run")
    again = read(elsewhere, task.resolved(["swapproof 1.0", "two\nlines"]))
    assert again == task
    assert again.digest == task.digest
    assert again.resolved() == task.resolved()


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_string_survives_the_way_to_toml_and_back(pad: str, column: str) -> None:
    task = Task.model_validate(
        {
            "model": {"onnx": "m", "vocabulary": "v", "pad": pad, "labels": [column, column + pad + "x"]},
            "data": {"file": "a.tsv", "text": column},
            "swaps": {"file": "s"},
        },
        context={"folder": Path("/")},
    )
    found = tomllib.loads(task.resolved())
    assert (found["model"]["pad"], found["data"]["text"]) == (pad, column)
    assert found["model"]["labels"] == list(task.model.labels)


def test_notes_are_comments_on_top(folder: Path) -> None:
    assert read(folder, MINIMAL).resolved(["a = 1"]).startswith("# a = 1\n\n[model]\n")


@pytest.mark.parametrize("more", ["", 'antonyms = ["pairs.txt"]\nstop_words = "v.txt"\n'])
def test_without_places_a_task_names_the_same_files_and_no_folder(folder: Path, more: str) -> None:
    task = read(folder, EXAMPLE + more)
    assert task.placeless.digest == task.digest
    assert str(folder) in task.resolved()
    assert "/" not in task.placeless.resolved()
    assert 'file = "dev.tsv"' in task.placeless.resolved()


def test_a_task_cannot_be_changed_and_travels_between_processes(folder: Path) -> None:
    task = read(folder, EXAMPLE)
    assert pickle.loads(pickle.dumps(task)) == task
    with pytest.raises(ValidationError):
        task.model.length = 3


# --- the digest -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("length = 200\n", ""),
        ("length = 200", "length = 199"),
        ('pad = "<pad>"', 'pad = "[PAD]"'),
        ('unknown = "<unk>"', 'unknown = "<pad>"'),
        ("lowercase = true", "lowercase = false"),
        ('split = "words"', 'split = "whitespace"'),
        ('split = "words"', r"split = { pattern = '\w+' }"),
        ('["negative", "positive"]', '["positive", "negative"]'),
        ('text = "content"', 'text = "sentence"'),
        ('label = "label"', 'label = "gold"'),
        ('label = "label"', 'label = "label"\ncontext = "premise"'),
        ("limit = 200", "sample = 200\nseed = 1"),
        ("dev.tsv", "dev.csv"),
        ("max_per_word = 8", "max_per_word = 9"),
        ('file = "synonyms.json"', 'source = "wordnet"'),
        ('file = "synonyms.json"', 'frozen = "spaces.jsonl"'),
        ('file = "synonyms.json"', 'source = "embeddings"\nembeddings = "v.txt"'),
        ("max_per_word = 8", "symmetric = true"),
        ("max_per_word = 8", "stop_words = true"),
        ("max_per_word = 8", 'stop_words = "pairs.txt"'),
        ("max_per_word = 8", 'antonyms = ["pairs.txt"]'),
        ("max_per_word = 8", "same_part_of_speech = true"),
        ("max_per_word = 8", "sentence_similarity = 0.8"),
        ("max_per_word = 8", "swap_unknown = true"),
    ],
)
def test_the_digest_changes_with_everything_that_can_change_an_answer(folder: Path, old: str, new: str) -> None:
    assert old in EXAMPLE
    (folder / "data" / "dev.csv").touch()
    assert read(folder, EXAMPLE.replace(old, new)).digest != read(folder, EXAMPLE).digest


def test_the_digest_changes_with_the_order_in_which_a_pair_is_read(folder: Path) -> None:
    inputs = [f'inputs = {{ {one} = "tokens", {other} = "tokens" }}\n' for one, other in ("pq", "qp")]
    first, second = (read(folder, EXAMPLE.replace("length = 200\n", line)) for line in inputs)
    assert first.digest != second.digest


def test_the_digest_does_not_depend_on_where_files_lie_or_on_the_order_of_keys(folder: Path) -> None:
    task = read(folder, EXAMPLE)
    moved = EXAMPLE.replace('"model.onnx"', '"/models/other.onnx"').replace("data/dev.tsv", "/tmp/test.tsv")
    sections = EXAMPLE.split("\n\n")
    assert read(folder, moved, check_files=False).digest == task.digest
    assert read(folder, "\n\n".join(reversed(sections))).digest == task.digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("limit = 200", "limit = 201"),
        ("limit = 200\n", ""),
        ("[swaps]", "[require]\naccuracy = { least = 0.9 }\n[swaps]"),
        ("limit = 200", 'limit = 200\non_error = "stop"'),
    ],
)
def test_how_many_texts_and_what_is_required_of_them_changes_no_answer(folder: Path, old: str, new: str) -> None:
    assert read(folder, EXAMPLE.replace(old, new)).digest == read(folder, EXAMPLE).digest


def test_the_digest_is_a_known_number() -> None:
    """A change of the digest makes old runs unresumable, so it must be meant."""
    task = Task.model_validate(tomllib.loads(EXAMPLE), context={"folder": Path("/")})
    assert task.digest == "bdafe3a642681e95e67e5b7c5995ca1175edcf1c71262f96d547ddcf6527f155"


REQUIRE = (
    EXAMPLE
    + """
[require]
certified_accuracy = [{ at = 2, least = 0.80 }, { at = 1, least = 1 }]
accuracy = { least = 0.90 }
"""
)


def test_requirements_are_one_or_a_list_and_written_back(folder: Path) -> None:
    task = read(folder, REQUIRE)
    assert [(gate.at, gate.least) for gate in task.require.certified_accuracy] == [(2, 0.8), (1, 1.0)]
    assert [gate.least for gate in task.require.accuracy] == [0.9]
    assert read(folder, task.resolved()) == task
    more = task.requiring(["certified@3 >= 0.5", " accuracy>=0.75 "])
    assert [(gate.at, gate.least) for gate in more.require.certified_accuracy[2:]] == [(3, 0.5)]
    assert [gate.least for gate in more.require.accuracy] == [0.9, 0.75]


@pytest.mark.parametrize("said", ["certified >= 0.5", "certified@2 > 0.5", "accuracy >= 70", "accuracy >= -1", ""])
def test_a_requirement_that_is_none_shows_what_one_is(folder: Path, said: str) -> None:
    with pytest.raises(BadInput, match="should be 'certified@SWAPS >= SHARE', 'accuracy >= SHARE'"):
        read(folder, EXAMPLE).requiring([said])


MAPPED = EXAMPLE.replace('["negative", "positive"]', '{ "1" = "positive", "0" = "negative", "+" = "positive" }')


def test_a_map_of_labels_gives_its_names_in_order_and_is_written_back_as_it_was(folder: Path) -> None:
    task = read(folder, MAPPED)
    assert task.model.labels == ("positive", "negative")
    assert task.model.label_map == {"1": "positive", "0": "negative", "+": "positive"}
    assert read(folder, task.resolved()) == task
    assert task.digest != read(folder, EXAMPLE.replace('["negative", "positive"]', '["positive", "negative"]')).digest


@pytest.mark.parametrize("content", [MAPPED, MINIMAL, BY_PATTERN, *(with_swaps(*lines) for lines in SWAPS)])
def test_what_a_manifest_keeps_of_a_task_is_read_back_as_the_same(folder: Path, content: str) -> None:
    task = read(folder, content)
    kept = json.loads(json.dumps(task.placeless.model_dump(mode="json", exclude_none=True)))
    again = task_dumped(kept)
    assert again.digest == task.digest
    assert again.placeless == task.placeless


def test_classes_that_a_task_does_not_name_are_those_of_the_folder_of_the_model(folder: Path) -> None:
    (folder / "bert").mkdir()
    unnamed = MINIMAL.replace('onnx = "model.onnx", vocabulary = "vocabulary.json"', 'hf = "bert"')
    named = unnamed.replace(', labels = ["negative", "positive"]', "")
    with pytest.raises(BadInput, match="labels is missing"):
        read(folder, named)
    (folder / "bert" / "config.json").write_text('{"id2label": {"1": "ham", "0": "spam"}}')
    assert read(folder, named).model.labels == ("spam", "ham")
    assert read(folder, unnamed).model.labels == ("negative", "positive")
    (folder / "bert" / "config.json").write_text('{"id2label": {"0": "spam"}}')
    with pytest.raises(BadInput, match="two or more different names"):
        read(folder, named)


def test_numbers_that_only_a_recipe_can_refuse_are_written_as_toml_has_them() -> None:
    for number in (float("inf"), float("-inf"), float("nan"), 1e-300, 0.1):
        assert repr(tomllib.loads(f"x = {toml_value(number)}")["x"]) == repr(number)


# --- bad input --------------------------------------------------------------------------------------------------

BAD: list[tuple[str, str, str]] = [
    ("length = 200", "lenght = 200", "[model] unknown key 'lenght': did you mean 'length'?"),
    ("max_per_word = 8", "max_words = 8", "[swaps] unknown key 'max_words': did you mean 'max_per_word'?"),
    ("limit = 200", "limit = 200\nsample = 5", "[data] has both limit and sample: keep the one to use"),
    ("limit = 200", "sample = 5", "[data] sample needs seed"),
    ("limit = 200", "seed = 5", "[data] seed has no effect without sample: remove it"),
    ("limit = 200", "balanced = true", "[data] balanced has no effect without sample: remove it"),
    ("limit = 200", 'delimiter = "::"', "[data] delimiter should match pattern"),
    ("limit = 200", 'on_error = "ignore"', "[data] on_error should be 'stop' or 'skip'"),
    (
        '["negative", "positive"]',
        '{ "0" = 1, "1" = "b" }',
        "[model] labels should map what stands in the data to names",
    ),
    ('["negative", "positive"]', '{ "0" = "b", "1" = "b" }', "[model] labels should be two or more different names"),
    ("length = 200", 'label_map = { "0" = "b" }', "[model] unknown key 'label_map': the map belongs in labels"),
    ("[swaps]", "[require]\naccuracy = { last = 0.5, least = 0 }\n[swaps]", "[require] accuracy[0] unknown key 'last'"),
    ("[swaps]", "[require]\naccuracy = { least = 1.5 }\n[swaps]", "[require] accuracy[0] least should be less than"),
    ("[swaps]", "[require]\naccuracy = 0.5\n[swaps]", "[require] accuracy[0] should be"),
    ("limit = 200", "Limit = 200", "[data] unknown key 'Limit': did you mean 'limit'?"),
    ("length = 200", "max_per_word = 8", "[model] unknown key 'max_per_word': it belongs in [swaps]"),
    ("length = 200", "length = 200\nextra.a = 1", "[model] unknown key 'extra': did you mean"),
    ("\n[model]", "limit = 3\n[model]", "unknown key 'limit' outside any section: it belongs in [data]"),
    ("max_per_word = 8", "[swap]", "unknown section [swap]: did you mean [swaps]?"),
    ("length = 200", "length = true", "[model] length should be a valid integer, not true"),
    ("length = 200", "length = 200.0", "[model] length should be a valid integer, not 200.0"),
    ("length = 200", 'length = "200"', '[model] length should be a valid integer, not "200"'),
    ("length = 200", "length = 0", "[model] length should be greater than or equal to 1, not 0"),
    ("length = 200", "length = 2026-01-01", "[model] length should be a valid integer"),
    ("limit = 200", "limit = 0", "[data] limit should be greater than or equal to 1, not 0"),
    ("limit = 200", "limit = true", "[data] limit should be a valid integer, not true"),
    ("max_per_word = 8", "max_per_word = 0", "[swaps] max_per_word should be greater than or equal to 1, not 0"),
    ("lowercase = true", "lowercase = 1", "[model] lowercase should be a valid boolean, not 1"),
    ("lowercase = true", 'lowercase = "yes"', '[model] lowercase should be a valid boolean, not "yes"'),
    ('split = "words"', 'split = { pattern = "(" }', "[model] split '(' is no regular expression"),
    ('split = "words"', 'split = "letters"', '[model] split should be "whitespace", "words" or'),
    ('pad = "<pad>"', "pad = -1", "[model] pad should be a token of the vocabulary or an id, not -1"),
    ('pad = "<pad>"', "pad = true", "[model] pad should be a token of the vocabulary or an id, not true"),
    ('["negative", "positive"]', '["negative"]', "[model] labels should be two or more different names"),
    ('["negative", "positive"]', '["a", "a"]', "[model] labels should be two or more different names"),
    ('["negative", "positive"]', '["a", ""]', "[model] labels should be two or more different names"),
    ("length = 200", "threshold = 2.5", "say threshold = 0.9241418199787566, its sigmoid"),
    (
        "length = 200",
        'threshold = 1\nscores = "sigmoid"',
        "[model] threshold is a probability, above 0 and below 1, not 1",
    ),
    ('["negative", "positive"]', '["a", 1]', "[model] labels[1] should be a valid string, not 1"),
    ('["negative", "positive"]', '"negative"', "[model] labels should be a valid tuple"),
    ('text = "content"', 'text = ""', "[data] text should have at least 1 character"),
    ('onnx = "model.onnx"\n', "", "[model] names no model: set one of onnx, hf"),
    ('onnx = "model.onnx"', "onnx = 3", "[model] onnx should be a path, written as a string, not 3"),
    ('onnx = "model.onnx"', 'onnx = ""', "[model] onnx should be a path"),
    ('onnx = "model.onnx"', 'onnx = "a\\u0000b"', "[model] onnx should be a path"),
    ('file = "synonyms.json"\n', "", "[swaps] needs file (a synonym table), frozen (spaces), or source ="),
    ('file = "synonyms.json"', 'file = "synonyms.json"\nfrozen = "spaces.jsonl"', "[swaps] has both file and frozen"),
    ('file = "synonyms.json"', 'frozen = "spaces.jsonl"\nsymmetric = true', "[swaps] symmetric cannot change spaces"),
    ("max_per_word = 8", "cosine = 0.8", '[swaps] cosine has no effect with source = "table"'),
    ("max_per_word = 8", 'source = "wordnet"', '[swaps] file has no effect with source = "wordnet"'),
    ("max_per_word = 8", 'source = "thesaurus"', "[swaps] source should be 'table', 'wordnet' or 'embeddings'"),
    ('file = "synonyms.json"', 'source = "embeddings"', '[swaps] source = "embeddings" needs embeddings'),
    (
        'file = "synonyms.json"',
        'source = "embeddings"\nembeddings = "v.npy"',
        "[swaps] words, a file that names the rows",
    ),
    ("max_per_word = 8", "sentence_similarity = 1.5", "[swaps] sentence_similarity should be less than or equal to 1"),
    ("max_per_word = 8", "sentence_similarity = nan", "[swaps] sentence_similarity should be a finite number, not NaN"),
    (
        "max_per_word = 8",
        "sentence_similarity = true",
        "[swaps] sentence_similarity should be a valid number, not true",
    ),
    ("max_per_word = 8", "stop_words = 3", "[swaps] stop_words should be true, false or the path of a file, not 3"),
    ("max_per_word = 8", 'antonyms = "pairs.txt"', "[swaps] antonyms should be a valid tuple"),
    ("max_per_word = 8", "antonyms = [1]", "[swaps] antonyms[0] should be a path, written as a string, not 1"),
    (EXAMPLE, "data = 3\n" + MINIMAL.replace("data =", "#"), "[data] should be a table, not 3"),
    (EXAMPLE, MINIMAL.replace("swaps =", "#"), "[swaps] is missing"),
    ("length = 200", "length = ", "not TOML: Invalid value (at line 5,"),
    ("length = 200", "length = 1\nlength = 2", "not TOML: Cannot overwrite a value (at line 6,"),
    ("max_per_word = 8\n", 'pad = "', "not TOML: Unterminated string (at the end, line 20"),
    ("length = 200", "length = " + "[" * 100_000, "not TOML"),
]


@pytest.mark.parametrize(("old", "new", "reason"), BAD, ids=[f"{index}-{row[2][:40]}" for index, row in enumerate(BAD)])
def test_a_wrong_line_is_refused_with_one_line_that_names_it(folder: Path, old: str, new: str, reason: str) -> None:
    assert old in EXAMPLE
    [problem] = refusal(folder, EXAMPLE.replace(old, new))
    assert reason in problem


def test_several_problems_are_one_line_each(folder: Path) -> None:
    content = EXAMPLE.replace("length = 200", "length = true").replace("limit = 200", "limit = 0")
    assert len(refusal(folder, content)) == 2


def test_a_misspelt_key_is_named_before_the_key_that_it_leaves_missing(folder: Path) -> None:
    problems = refusal(folder, EXAMPLE.replace("labels =", "lables ="))
    assert "unknown key 'lables': did you mean 'labels'?" in problems[0]
    assert "[model] labels is missing" in problems[1]


def test_a_task_file_that_is_not_utf8_is_refused_by_line(folder: Path) -> None:
    assert refusal(folder, EXAMPLE.encode().replace(b"<pad>", b"\xff")) == [" line 6: not UTF-8 (invalid start byte)"]


def test_a_model_given_as_the_task_is_told_where_a_task_file_comes_from(folder: Path) -> None:
    assert refusal(folder, b"\x08\x09\x12\x00ONNX") == [
        "no task file, which is text; `swapproof init MODEL` writes one about a model"
    ]


def test_a_task_file_that_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.toml", "no such file"), (tmp_path, "a directory")):
        with pytest.raises(BadInput, match=reason):
            read_task(path)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("model.onnx", "[model] onnx"),
        ("vocabulary.json", "[model] vocabulary"),
        ("data/dev.tsv", "[data] file"),
        ("synonyms.json", "[swaps] file"),
        ("pairs.txt", "[swaps] antonyms"),
        ("v.txt", "[swaps] stop_words"),
    ],
)
def test_a_named_file_must_be_there_and_be_readable(folder: Path, name: str, where: str) -> None:
    """Missing, a directory, unreadable (a link to itself): one line each that names key and file."""
    content = with_swaps('file = "synonyms.json"', 'antonyms = ["pairs.txt"]', 'stop_words = "v.txt"')
    read(folder, content)
    file = folder / name
    file.unlink()
    assert refusal(folder, content) == [f"{where}: {file}: no such file"]
    file.mkdir()
    assert refusal(folder, content) == [f"{where}: {file}: a directory, where a file is needed"]
    file.rmdir()
    file.symlink_to(file)
    [problem] = refusal(folder, content)
    assert problem.startswith(f"{where}: {file}: cannot be read")
    assert read(folder, content, check_files=False).model.labels == ("negative", "positive")


def test_a_pipe_is_refused_rather_than_waited_for(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    os.mkfifo(folder / "model.onnx")
    [problem] = refusal(folder, EXAMPLE)
    assert problem.endswith("not a regular file")


@given(st.sampled_from(sorted(SECTIONS)), st.text(st.characters(categories=["Ll", "Nd"]), min_size=1, max_size=9))
def test_any_unknown_key_names_a_known_one(tmp_path_factory: pytest.TempPathFactory, section: str, key: str) -> None:
    known = {name for fields in SECTIONS.values() for name in fields.model_fields}
    if key in known:
        return
    whole = EXAMPLE if f"[{section}]" in EXAMPLE else f"{EXAMPLE}[{section}]\n"
    content = whole.replace(f"[{section}]", f'[{section}]\n"{key}" = 1')
    [problem] = refusal(tmp_path_factory.getbasetemp(), content)
    assert problem.startswith(f"[{section}] unknown key {key!r}: did you mean '")
    assert problem.split("'")[-2] in SECTIONS[section].model_fields
