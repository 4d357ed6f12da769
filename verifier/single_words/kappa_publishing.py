"""What a finished run of `measure --quantity kappa` leaves in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ..exit_codes import HOLDS, INCOMPLETE, VIOLATED
from ..gates.requirements import Requirement, gist, rho_requirement
from ..ladder.token_length import length_of
from ..runs.life import write_json
from ..runs.run_folder import Run, write_atomically
from ..tasks.inputs import Inputs
from .brute_force import Cost
from .flip_matrix import FlipMatrix
from .kappa import Kappa, kappa_of
from .kappa_findings import LISTED, Effect, csv_of, draw, summary_of, write_parquet
from .kappa_setting import Setting
from .replacements import Candidates, words_of_several_tokens
from .word_effects import effect_of, right_answers


def published(run: Run, setting: Setting, found: FlipMatrix, about: Mapping[str, Any]) -> dict[str, Any]:
    """Everything a finished run holds; the summary comes last."""
    more = {
        **found.about,
        **about,
        "speed": speed_of(setting.cost, found.cpu_seconds),
        "seconds": round(found.seconds, 3),
    }
    kappa, summary = summed_up(setting, found, more, effects(setting, found))
    write_atomically(run.results, result_lines(setting, found))
    write_atomically(run.folder / "kappa.csv", csv_of(kappa))
    write_parquet(kappa, run.folder / "kappa.parquet")
    draw(kappa, run.folder / "kappa.png")
    from ..pages.sheets.measured_page import write_page

    write_page(run, summary)
    write_json(run.summary, summary)
    return summary


def summed_up(
    setting: Setting, found: FlipMatrix, about: Mapping[str, Any], effect: Effect
) -> tuple[Kappa, dict[str, Any]]:
    """kappa, and the summary, in which `about` says what it took; all else follows from A."""
    answered, inputs, candidates = setting.answered, setting.inputs, setting.candidates
    everything = with_ambiguous(found, len(answered.ambiguous))
    kappa = kappa_of(candidates.words, everything.flipped, everything.unknown)
    summary = summary_of(
        kappa,
        everything.flipped,
        np.array([text.label for text in (*answered.texts, *answered.ambiguous)]),
        inputs.labels,
        len(inputs.texts),
        {
            "already_wrong": answered.already_wrong,
            "ambiguous": len(answered.ambiguous),
            "complete": found.complete,
            "vocabulary": vocabulary_facts(candidates, inputs),
            **about,
        },
        effect,
    )
    gates = [rho_requirement(kappa.rho, gate.least) for gate in setting.task.require.rho]
    return kappa, summary | {"requirements": [asdict(gate) for gate in gates], "verdict": verdict_of(found, gates)}


def with_ambiguous(found: FlipMatrix, count: int) -> FlipMatrix:
    """Rows of texts that may not belong to D+: flipped by no word, and by every word.

    With f flips in n texts and a such texts, of which any may belong, f / (n + a) <= kappa <= (f + a) / (n + a).
    """
    if not count:
        return found
    known = np.zeros_like(found.flipped) if found.unknown is None else found.unknown
    shape = (count, found.flipped.shape[1])
    return replace(
        found,
        flipped=np.concatenate([found.flipped, np.zeros(shape, dtype=bool)]),
        unknown=np.concatenate([known, np.ones(shape, dtype=bool)]),
    )


def verdict_of(found: FlipMatrix, gates: Sequence[Requirement] = ()) -> dict[str, Any]:
    """What is required decides, where anything is."""
    if gates:
        answers = {gate.answer for gate in gates}
        code = VIOLATED if "false" in answers else INCOMPLETE if "not settled" in answers else HOLDS
        return {"exit_code": code, "sentence": gist(gates)}
    if found.complete:
        sentence = "every pair of text and word was decided"
    elif found.about["kind"] == "euba":
        sentence = "EUBA decides only what it finds to flip"
    else:
        sentence = "time was up in some texts"
    return {"exit_code": HOLDS if found.complete else INCOMPLETE, "sentence": sentence}


def effects(setting: Setting, found: FlipMatrix) -> Effect:
    """What each word does to accuracy, as deployed."""
    texts, vocabulary = setting.inputs.texts, setting.inputs.vocabulary
    length = length_of(setting.task, setting.model)
    answers = setting.replay.answers
    right = right_answers(answers, [t.frozen.space.original for t in texts], [t.label for t in texts])
    rows = {text.id: number for number, text in enumerate(setting.answered.texts)}
    where = [rows.get(text.id) for text in texts]

    def effect(word: int) -> dict[str, Any]:
        flipped = np.array([row is not None and bool(found.flipped[row, word]) for row in where])
        token = int(setting.candidates.tokens[word])
        return effect_of(token, texts, right, flipped, answers, lambda text: vocabulary.encode(text, length).tokens)

    return effect


def speed_of(cost: Cost, spent: float) -> dict[str, Any]:
    """Beside evaluating every sentence by onnxruntime, which was measured on a sample and extrapolated."""
    return {
        "sentences": cost.sentences,
        "cpu_seconds": round(spent, 3),
        "onnxruntime_cpu_seconds_extrapolated": round(cost.seconds, 3),
        "onnxruntime_sample": cost.tried,
        "onnxruntime_sample_cpu_seconds": round(cost.tried_seconds, 4),
        "onnxruntime_batch": cost.batch,
        "ratio": round(cost.seconds / spent, 3) if spent else None,
    }


def vocabulary_facts(candidates: Candidates, inputs: Inputs) -> dict[str, Any]:
    return {
        "tried": len(candidates.words),
        "left_out_for_several_tokens": len(candidates.several),
        "listed": list(candidates.several[:LISTED]),
        "words_of_texts_left_out_for_several_tokens": words_of_several_tokens(inputs.texts),
    }


def result_lines(setting: Setting, found: FlipMatrix) -> list[bytes]:
    """results.jsonl; the texts whose own answer rounding decides come last."""
    answered, words, lines = setting.answered, len(setting.candidates.words), []
    found = with_ambiguous(found, len(answered.ambiguous))
    for number, text in enumerate((*answered.texts, *answered.ambiguous)):
        line: Mapping[str, Any] = {
            "id": text.id,
            "text": text.encoded.text,
            "label": text.label,
            "positions": len(text.encoded.words),
            "words_that_flip_it": int(found.flipped[number].sum()),
            "words_not_known": 0 if found.unknown is None else int(found.unknown[number].sum()),
            "words": words,
            "ambiguous": number >= len(answered.texts),
        }
        lines.append((json.dumps(line, ensure_ascii=False) + "\n").encode())
    return lines
