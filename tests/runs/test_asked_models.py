"""Tasks whose model is a function or an endpoint: where the function is looked for, and what is never written down."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from asked_functions import answers

from swapproof.models.errors import BadInput
from swapproof.verifier.tasks.task import Task, read_task

REST = """
labels = ["negative", "positive"]
[data]
file = "dev.tsv"
[swaps]
file = "synonyms.json"
"""
GUARD = "def score(texts):\n    return [[float(len(text)), 4.0] for text in texts]\n"


@pytest.fixture(autouse=True)
def same_path() -> Iterator[None]:
    before = list(sys.path)
    yield
    sys.path[:] = before


def task_of(folder: Path, model: str) -> Task:
    for name in ("dev.tsv", "synonyms.json"):
        (folder / name).touch()
    (folder / "guard.py").write_text(GUARD)
    (folder / "task.toml").write_text(f"[model]\n{model}{REST}")
    return read_task(folder / "task.toml")


def test_a_function_is_found_beside_the_task_wherever_the_task_is_written_to(tmp_path: Path) -> None:
    task = task_of(tmp_path, 'callable = "guard:score"')
    run = tmp_path / "run"
    run.mkdir()
    (run / "task.toml").write_text(task.resolved())
    again = read_task(run / "task.toml")
    assert again == task
    assert again.digest == task.digest
    assert answers(again.model.deployment()) == [[1, 4], [4, 4]]


def test_a_function_is_found_in_the_folder_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "shield.py").write_text(GUARD)
    task = task_of(tmp_path, 'callable = "shield:score"\nfolder = "code"\nbatch = 1')
    assert answers(task.model.deployment()) == [[1, 4], [4, 4]]
    with pytest.raises(BadInput, match=r"\[model\] folder has no effect with endpoint: remove it"):
        task_of(tmp_path, 'endpoint = "http://127.0.0.1/"\nfolder = "code"')
    with pytest.raises(BadInput, match=r"\[model\] lowercase has no effect with callable: remove it"):
        task_of(tmp_path, 'callable = "shield:score"\nlowercase = true')


def test_processes_that_are_started_anew_find_it_too(tmp_path: Path) -> None:
    deployment = task_of(tmp_path, 'callable = "guard:score"').model.deployment()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(answers, deployment).result() == [[1, 4], [4, 4]]


def test_what_the_task_says_reaches_the_endpoint(tmp_path: Path) -> None:
    model = 'endpoint = "http://127.0.0.1:81/x"\nresponse = "scores"\nattempts = 5\nper_second = 2.5'
    deployment = task_of(tmp_path, model).model.deployment(fields=2, moving=1, allow_endpoint=True)
    assert deployment.options == {"response": "scores", "attempts": 5, "per_second": 2.5}
    assert (deployment.moving, deployment.labels, deployment.allow_endpoint) == (1, ("negative", "positive"), True)


def test_a_password_in_an_address_is_refused_unseen(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        task_of(tmp_path, 'endpoint = "https://user:s3cr3t@host.example/x"')
    assert "endpoint holds a password: set the variable SWAPPROOF_ENDPOINT_AUTHORIZATION" in str(refused.value)
    assert "s3cr3t" not in str(refused.value)
