"""`bench deep` on a small LSTM: every way says what all sentences say; and what is remarked of such a network."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import tiny
import unreadable
from command_runs import Capture

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.bench.asked_texts import queries
from swapproof.verifier.bench.deep_answers import Checked, DeepAnswer
from swapproof.verifier.bench.deep_asking import batches, sentences
from swapproof.verifier.bench.deep_table import EITHER, DeepTable
from swapproof.verifier.cli import main
from swapproof.verifier.commands.benches.bench_deep import bench_deep, sentences_up_to
from swapproof.verifier.kernels import kernel_table
from swapproof.verifier.kernels.kernel_sweep import Measured, Peak
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.smooth_remarks import SEEN
from swapproof.verifier.tasks.inputs import read_inputs
from swapproof.verifier.tasks.opened_model import opened
from swapproof.verifier.tasks.task import read_task

OURS = ("boxes", "sequence", "enumerate")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    found = tiny.write_task(tmp_path / "task")
    unreadable.lstm(found.parent / "model.onnx")
    return found


def least_swaps(task: Path, radius: int) -> dict[int, int | None]:
    """Text -> swaps of the sentence with the fewest that breaks it, of all up to the radius, by onnxruntime."""
    model = opened(read_task(task))
    inputs, replay, found = read_inputs(read_task(task), model.length, None, model.roles), Replay.open(model), {}
    for text, query in queries(model, inputs.texts, smooth=True):
        own = query.space.choices
        if replay.answer(np.array(query.space.original)) != query.label:
            continue
        swaps = [
            sum(token != one[0] for token, one in zip(tokens, own, strict=True))
            for tokens in product(*own)
            if replay.answer(np.array(tokens)) != query.label
        ]
        found[text.id] = min((one for one in swaps if one <= radius), default=None)
    return found


def test_every_way_says_what_every_sentence_says(task: Path, tmp_path: Path) -> None:
    lines, truth = tmp_path / "deep.json", least_swaps(task, 3)
    table = bench_deep(task, OURS, seconds=60.0, radius=3, json_file=lines)
    assert table.texts.keys() == truth.keys()
    assert any(swaps is not None for swaps in truth.values())
    for id, answers in table.texts.items():
        broken = truth[id]
        for one in answers.values():
            assert one.broken == broken
            assert one.harmless == (min(3, one.words) if broken is None else broken - 1)
            assert one.decides(3)
    proofs = [one.certificate for one in table.answers if one.certificate is not None]
    assert proofs
    assert all(proof.accepted and proof.exact_seconds is not None for proof in proofs)
    assert table.exit_code == 0
    assert [score.engine for score in table.scores] == ["boxes", "sequence", EITHER, "enumerate"]
    assert all(score.decided == (1.0, 1.0, 1.0) for score in table.scores)
    *answers_kept, totals = [json.loads(line) for line in lines.read_text().splitlines()][1:]
    assert len(answers_kept) == len(table.answers)
    assert totals["sentences"] == [sum(own[k] for own in table.totals.values()) for k in range(3)]


def test_it_is_shown_and_refuses_what_it_cannot_do(task: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["bench", "deep", str(task), "--engines", "boxes", "--limit", "3", "--radius", "2"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Disagreements: 0" in shown
    assert "check.py in fractions" in shown
    with pytest.raises(BadInput, match="no way of deciding is named 'boxs'"):
        bench_deep(task, ["boxs"])
    with pytest.raises(BadInput, match="each once"):
        bench_deep(task, ["boxes", "boxes"])
    with pytest.raises(BadInput, match="at least 1"):
        bench_deep(task, radius=0)
    with pytest.raises(Unsupported, match="bench exact"):
        bench_deep(tiny.write_task(tmp_path / "straight"), ["boxes"])


def test_each_radius_is_asked_for_alone(task: Path, tmp_path: Path, capsys: Capture) -> None:
    """Shares found and certified are those of all sentences with so many swaps."""
    page, truth = tmp_path / "deep.html", least_swaps(task, 2)
    asked = ["bench", "deep", str(task), "--engines", "sequence,enumerate", "--radius", "2", "--each-radius"]
    assert main([*asked, "--seconds", "60", "--json", "-", "--html", str(page)]) == 0
    rows = json.loads(capsys.readouterr().out)["each_radius"]
    assert [(row["engine"], row["radius"]) for row in rows] == [*product(("sequence", "enumerate"), (1, 2))]
    for row in rows:
        found = sum(least is not None and least <= row["radius"] for least in truth.values()) / len(truth)
        assert (row["found"], row["certified"]) == (pytest.approx(found), pytest.approx(1 - found))
        assert (row["found_seconds"] is None) == (found == 0)
    assert "Found and certified" in page.read_text()
    assert main([*asked, "--limit", "3"]) == 0
    assert "Each radius alone" in capsys.readouterr().out


def test_plain_enumeration_meets_each_sentence_once() -> None:
    space = SwapSpace(((5,), (1, 2, 3), (4, 6), (7, 8)))
    for swaps in (1, 2, 3):
        found = [tuple(row) for part in batches(sentences(space, swaps), 3) for row in part.tolist()]
        expected = [
            own
            for own in product(*space.choices)
            if sum(token != one[0] for token, one in zip(own, space.choices, strict=True)) == swaps
        ]
        assert sorted(found) == sorted(expected)
        assert all(len(part) <= 3 for part in batches(sentences(space, swaps), 3))
        assert len(list(combinations(space.swappable, swaps))) == len(list(sentences(space, swaps)))
    assert sentences_up_to(space.counts(), 5) == (4, 9, 11, 11, 11)


ANSWER = DeepAnswer(0, "boxes", 4, 2, None, 10, 1.0, 1.0)
REFUSED = Checked(100, "real", 0.1, 0.1, False, 1.0, "a leaf")


def table_of(*answers: DeepAnswer) -> DeepTable:
    return DeepTable(answers, tuple(one.engine for one in answers), (), {0: (4, 6, 7)}, 3, 1.0, 0, None, {})


def test_contradictions_and_refused_proofs_are_told() -> None:
    other = replace(ANSWER, engine="enumerate", harmless=1, broken=2)
    (said,) = table_of(ANSWER, other).disagreements
    assert said == "text 0: boxes proves that 2 swaps are harmless, and enumerate found 2"
    refused = table_of(replace(ANSWER, harmless=0, certificate=REFUSED))
    assert refused.exit_code == 4
    assert "a proof is refused: a leaf" in refused.disagreements[0]
    assert not REFUSED.accepted
    assert not replace(REFUSED, refusal=None, exact_seconds=None).accepted


def test_causes_of_open_texts_count_together() -> None:
    reasons = [f"out of time after {n} sentences" for n in (3, 55)]
    table = table_of(*(replace(ANSWER, id=n, reason=reason) for n, reason in enumerate(reasons)))
    assert table.causes == (("boxes", "out of time after N sentences", 2),)


def test_certify_and_check_say_how_states_widen_and_what_kernels_do(
    task: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run)]) in (0, 1, 3)
    remarks = json.loads((run / "summary.json").read_text())["remarks"]
    seen = [remark for remark in remarks if SEEN.fullmatch(remark)]
    assert [remark.partition(":")[0] for remark in seen] == ["recurrent", "level kernel"]
    assert "growth per step" in seen[0]
    assert "relative swap size" in seen[0]
    assert "were not measured" in seen[1]
    assert main(["check", str(run)]) in (0, 1, 3), capsys.readouterr()
    runtime = kernel_table.Runtime.here()
    excessive = Measured(9, absolute=Peak(1e-6, 8.5), exceeded=2, exceeded_at=8.5)
    within = Measured(9, relative=Peak(2.0**-23.5, 8.5), exceeded=1, exceeded_at=8.5)
    functions = {"tanh": excessive, "sqrt": within}
    kernel_table.keep(kernel_table.Table(runtime, 1, functions, {}, {}, {"relative": 0.0}, {"part_of_stated": 0.1}))
    assert main(["certify", str(task), "--out", str(tmp_path / "again")]) in (0, 1, 3)
    remarks = json.loads((tmp_path / "again" / "summary.json").read_text())["remarks"]
    (said,) = [remark for remark in remarks if remark.startswith("level kernel")]
    assert said.startswith("level kernel: tanh exceeds its stated bound at 2 inputs")
    assert SEEN.fullmatch(said)
