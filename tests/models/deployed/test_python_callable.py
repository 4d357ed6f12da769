"""A Python function is a classifier: found as a script would find it, whatever form its scores have, or refused."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from types import ModuleType

import numpy as np
import pytest

from swapproof.models.deployed.classifier import Deployment, NoAnswer
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.deployed.python_callable import PythonCallable, open_callable
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.errors import BadInput

LABELS = ("negative", "positive")
LENGTHS = "def score(texts):\n    return [[float(len(text)), 1.0] for text in texts]\n"


@pytest.fixture(autouse=True)
def same_path() -> Iterator[None]:
    before = list(sys.path)
    yield
    sys.path[:] = before


def deployment(folder: Path, source: str = "guard:score", **rest: object) -> Deployment:
    return Deployment("callable", source, folder=folder, labels=LABELS, **rest)  # type: ignore[arg-type]


def opened(folder: Path, code: str, source: str = "guard:score", **rest: object) -> PythonCallable:
    (folder / "guard.py").write_text(code)
    return open_callable(deployment(folder, source, **rest))


def test_scores_are_those_of_the_function_in_the_order_of_the_texts(tmp_path: Path) -> None:
    classifier = opened(tmp_path, LENGTHS, options={"batch": 2})
    texts = [("four",), ("a",), ("sixsix",), ("",), ("three",)]
    assert classifier.scores(texts).tolist() == [[4, 1], [1, 1], [6, 1], [0, 1], [5, 1]]
    assert classifier.scores([]).shape == (0, 0)


def test_variants_are_the_sentences_spelt_out(tmp_path: Path) -> None:
    text = SwapText(("a fine film",), 0, ((2, 6), (7, 11)), (("fine", "good", "acceptable"), ("film",)))
    rows = np.array([[0, 0], [1, 0], [2, 0]], dtype=np.int32)
    assert opened(tmp_path, LENGTHS).variants(text).scores(rows)[:, 0].tolist() == [11, 11, 17]


def test_pairs_are_given_as_tuples(tmp_path: Path) -> None:
    code = "def score(pairs):\n    return [[len(first), len(second)] for first, second in pairs]\n"
    assert opened(tmp_path, code, fields=2).scores([("ab", "cde")]).tolist() == [[2, 3]]


@pytest.mark.parametrize(
    ("body", "scores"),
    [
        ("[0.25, 0.5]", [[0.25], [0.5]]),
        ("(0.25, 2)", [[0.25], [2]]),
        ("[[1, 2.5], (3, 4)]", [[1, 2.5], [3, 4]]),
        ("numpy.array([[1, 2], [3, 4]])", [[1, 2], [3, 4]]),
        ("numpy.array([1, 2], dtype='float16')", [[1], [2]]),
        ("numpy.array([[1, 2], [3, 4]], dtype=object)", [[1, 2], [3, 4]]),
        ("[numpy.array([1, 2]), [numpy.float32(3), numpy.int64(4)]]", [[1, 2], [3, 4]]),
        ("[[float('nan'), 1], [2, float('inf')]]", [[np.nan, 1], [2, np.inf]]),
        ("[{'negative': 1, 'positive': 2}, {'Positive': 4, 'Negative': 3}]", [[1, 2], [3, 4]]),
        (
            "[[{'label': 'positive', 'score': 2}, {'label': 'negative', 'score': 1}],"
            " [{'label': 'negative', 'score': 4}, {'label': 'positive', 'score': 3}]]",
            [[1, 2], [4, 3]],
        ),
        ("[{'LABEL_1': 2, 'LABEL_0': 1}, {'LABEL_0': 3, 'LABEL_1': 4}]", [[1, 2], [3, 4]]),
    ],
)
def test_every_usual_form_of_scores_is_read(tmp_path: Path, body: str, scores: list[list[float]]) -> None:
    classifier = opened(tmp_path, f"import numpy\ndef score(texts):\n    return {body}\n")
    np.testing.assert_array_equal(classifier.scores([("a",), ("bb",)]), scores)


def test_tensors_are_read_with_and_without_gradients(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    code = "import torch\nlayer = torch.nn.Linear(1, 2).to(torch.bfloat16)\n"
    code += "def score(texts):\n    return layer(torch.ones(len(texts), 1, dtype=torch.bfloat16))\n"
    threads = torch.get_num_threads()
    classifier = opened(tmp_path, code)
    scores = classifier.scores([("a",), ("b",)])
    assert scores.dtype == np.float64
    assert scores.shape == (2, 2)
    assert classifier.identity.facts["torch"] == torch.__version__
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("[[0.0, 1.0]]", "answered 1 row to 2 texts"),
        ("[[0.0, 1.0]] * 3", "answered 3 rows to 2 texts"),
        ("[[0.0, 1.0], [1.0]]", "answered rows of 1 and of 2 scores"),
        ("['positive', 'negative']", 'answered "positive", where a score is needed'),
        ("[None] * len(texts)", "answered None, where a score is needed"),
        ("[[True, False]] * len(texts)", "answered True, where a score is needed"),
        ("[[]] * len(texts)", "answered rows without a score"),
        ("numpy.float64(0.5)", "answered a float, where a row of scores for each text is needed"),
        ("numpy.array(0.5)", "answered a float, where a row"),
        ("None", "answered None, where a row"),
        ("numpy.zeros((len(texts), 2, 2))", "answered an array of shape [1, 2, 2]; scores are [texts, outputs]"),
        ("numpy.array(['a'] * len(texts))", "answered an array of <U1, where scores are needed"),
        ("numpy.array([True] * len(texts))", "answered an array of bool"),
        ("numpy.array([1j] * len(texts))", "answered an array of complex128"),
        ("[[[1.0]]] * len(texts)", "answered a list, where a score is needed"),
        ("[{'label': 'positive', 'score': 1.0}] * len(texts)", 'the score of "positive" alone: all classes are needed'),
    ],
)
def test_what_is_no_row_for_each_text_is_refused(tmp_path: Path, body: str, problem: str) -> None:
    classifier = opened(tmp_path, f"import numpy\ndef score(texts):\n    return {body}\n")
    with pytest.raises(NoAnswer) as refused:
        classifier._ask([("a",), ("b",)] if "len(texts)" not in body else [("a",)])
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("guard:score answered")


@pytest.mark.parametrize("names", ["'good', 'bad'", "'positive', 'Positive'", "'LABEL_1', 'LABEL_2'", "'negative'"])
def test_an_order_of_classes_is_never_guessed(tmp_path: Path, names: str) -> None:
    classifier = opened(tmp_path, f"def score(texts):\n    return [dict.fromkeys([{names}], 0.5) for text in texts]\n")
    with pytest.raises(BadInput, match=r"\[model\] labels are negative, positive: name the classes alike"):
        classifier.scores([("a",)])


def test_of_a_batch_the_text_that_raises_is_named(tmp_path: Path) -> None:
    code = "asked = []\ndef score(texts):\n    asked.append(len(texts))\n"
    code += "    return [1 / (len(text) - 7) for text in texts]\n"
    classifier = opened(tmp_path, code)
    texts = [(f"{number:06d}",) for number in range(40)]
    with pytest.raises(NoAnswer) as refused:
        classifier.scores([*texts[:20], ("seven\n7",), *texts[20:]])
    assert str(refused.value) == 'guard:score raised ZeroDivisionError: division by zero; the text is "seven\\n7"'
    assert sum(sys.modules["guard"].asked) < 4 * 41
    assert classifier.scores(texts).shape == (40, 1)


def test_a_batch_that_is_too_large_is_asked_in_halves(tmp_path: Path) -> None:
    code = "def score(texts):\n    if len(texts) > 3:\n        raise MemoryError\n"
    code += "    return [len(text) for text in texts]\n"
    classifier = opened(tmp_path, code)
    texts = [("a" * number,) for number in range(30)]
    assert classifier.scores(texts)[:, 0].tolist() == list(range(30))


def test_a_function_that_leaves_is_no_end_of_the_run(tmp_path: Path) -> None:
    classifier = opened(tmp_path, "def score(texts):\n    raise SystemExit('enough')\n")
    with pytest.raises(NoAnswer, match="raised SystemExit: enough; the text is"):
        classifier.scores([("a",)])


def test_rows_of_different_width_are_not_put_together(tmp_path: Path) -> None:
    code = "def score(texts):\n    return [[0.0] * (2 + (len(texts[0]) > 3))] * len(texts)\n"
    with pytest.raises(NoAnswer, match="2 scores to some texts and 3 to others"):
        opened(tmp_path, code, options={"batch": 1}).scores([("a",), ("long text",)])


def test_async_functions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="async function"):
        opened(tmp_path, "async def score(texts):\n    return []\n").scores([("a",)])


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("gard:score", "no module 'gard' in the task's folder or among installed packages; there is guard"),
        ("guard:scores", "guard.py has no 'scores'; there is score"),
        ("guard:Model.score.best", "guard.py has no 'best'"),
        ("guard:NUMBER", "an int, which cannot be called"),
        ("guard:Model", "a class; name a function or an object"),
        ("package.insid:score", "no module 'package.insid' in package; there is inside"),
        ("nowhere.inner:score", "no module 'nowhere' in the task's folder"),
        ("needs:score", "imports 'a_module_that_nobody_has', which is not installed"),
        ("broken:score", "importing it raised SyntaxError"),
        ("leaves:score", "importing it raised SystemExit: 2"),
    ],
)
def test_what_cannot_be_found_is_named_with_what_is_near(tmp_path: Path, source: str, problem: str) -> None:
    code = "def score(texts): ...\nNUMBER = 3\nclass Model:\n    def score(self, texts): ...\n"
    (tmp_path / "guard.py").write_text(code)
    (tmp_path / "needs.py").write_text("import a_module_that_nobody_has")
    (tmp_path / "broken.py").write_text("def score(:\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit(2)")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "inside.py").touch()
    with pytest.raises(BadInput) as refused:
        open_callable(deployment(tmp_path, source))
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_methods_of_objects_and_modules_of_packages_are_found(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inside.py").write_text(
        "class Model:\n    def __call__(self, texts): return [1] * len(texts)\n"
        "    def score(self, texts): return [2] * len(texts)\n"
        "model = Model()\n"
    )
    assert open_callable(deployment(tmp_path, "package.inside:model")).scores([("a",)]).tolist() == [[1]]
    assert open_callable(deployment(tmp_path, "package.inside:model.score")).scores([("a",)]).tolist() == [[2]]


def test_neighbours_are_found_when_they_are_imported_late(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_guard.py").write_text("FACTOR = 3\n")
    code = "def score(texts):\n    import neighbour_of_guard\n    return [neighbour_of_guard.FACTOR] * len(texts)\n"
    assert opened(tmp_path, code).scores([("a",)]).tolist() == [[3]]
    assert sys.path[0] != str(tmp_path)


def test_the_modules_of_one_task_never_stand_in_for_those_of_another(tmp_path: Path) -> None:
    found = []
    for factor in (3, 5):
        folder = tmp_path / str(factor)
        folder.mkdir()
        (folder / "neighbour_of_guard.py").write_text(f"FACTOR = {factor}\n")
        code = "from neighbour_of_guard import FACTOR\ndef score(texts):\n    return [FACTOR] * len(texts)\n"
        found.append(opened(folder, code))
    assert [classifier.scores([("a",)]).tolist() for classifier in found] == [[[3]], [[5]]]
    assert str(tmp_path / "3") not in sys.path


def test_a_module_whose_file_has_gone_stands_in_for_no_other(tmp_path: Path) -> None:
    """Nor does a part of a package that could not be imported as a whole."""
    for name, score in (("one", 1), ("other", 2)):
        (tmp_path / name / "package_of_guard").mkdir(parents=True)
        (tmp_path / name / "guard_that_goes.py").write_text(f"def score(texts):\n    return [{score}] * len(texts)\n")
        (tmp_path / name / "package_of_guard" / "inside.py").write_text(f"SCORE = {score}\n")
        fails = "raise SystemExit" if name == "one" else "score = lambda texts: [inside.SCORE] * len(texts)"
        (tmp_path / name / "package_of_guard" / "__init__.py").write_text(f"from . import inside\n{fails}\n")
    one, other = tmp_path / "one", tmp_path / "other"
    assert open_callable(deployment(one, "guard_that_goes:score")).scores([("a",)]).tolist() == [[1]]
    (one / "guard_that_goes.py").unlink()
    assert open_callable(deployment(other, "guard_that_goes:score")).scores([("a",)]).tolist() == [[2]]
    with pytest.raises(BadInput):
        open_callable(deployment(one, "package_of_guard:score"))
    rmtree(one)
    assert open_callable(deployment(other, "package_of_guard:score")).scores([("a",)]).tolist() == [[2]]


def test_modules_that_answer_to_any_name_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of torch, whose attributes are whatever they are asked for."""

    class Answering(ModuleType):
        def __getattr__(self, name: str) -> object:
            return 3

    (tmp_path / "other").mkdir()
    opened(tmp_path, "def score(texts): ...\n")
    monkeypatch.setitem(sys.modules, "answering_of_guard", Answering("answering_of_guard"))
    opened(tmp_path / "other", "def score(texts): ...\n")
    assert "answering_of_guard" in sys.modules


def test_a_folder_that_was_on_the_path_stays_where_it_was(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    sys.path.insert(1, str(home))
    before = list(sys.path)
    opened(home, LENGTHS)
    assert sys.path == before
    opened(other, LENGTHS)
    assert sys.path == [*before, str(other)]


def test_a_module_that_another_hides_is_refused(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(LENGTHS)
    with pytest.raises(BadInput, match=r"is loaded under the name 'json', not .*json\.py in the task's folder"):
        open_callable(deployment(tmp_path, "json:loads"))


def test_the_file_of_the_function_is_recorded_and_what_else_there_is_said(tmp_path: Path) -> None:
    classifier = open_classifier_of(tmp_path)
    (copy,) = classifier.identity.files
    assert (copy.name, copy.path) == ("callable.py", tmp_path / "guard.py")
    assert copy.sha256 == hashlib.sha256(LENGTHS.encode()).hexdigest()
    assert classifier.identity.name == "guard:score"
    assert {"python", "numpy"} <= classifier.identity.facts.keys()
    assert "its own file alone" in classifier.identity.remarks[0]


def open_classifier_of(folder: Path) -> PythonCallable:
    (folder / "guard.py").write_text(LENGTHS)
    classifier = open_classifier(deployment(folder))
    assert isinstance(classifier, PythonCallable)
    return classifier
