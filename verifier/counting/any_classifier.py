"""The robust fraction under a classifier that is a Python function, by sampling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import inputs_of, words_of

from .fraction import Settings, deployed_fraction
from .sampling import BATCH
from .whole_runs.pr_summary import summarise
from .whole_runs.sample_request import DELTA, EPSILON, Sampling


@dataclass(frozen=True)
class Sampled:
    """One line for each text, and the summary of all, as `swapproof measure` writes them."""

    lines: list[dict[str, Any]]
    summary: dict[str, Any]


def sample_pr(
    classify: Callable[[NDArray[np.int64]], Any],
    texts: Iterable[tuple[Sequence[Sequence[int]], int]],
    radius: int,
    *,
    name: str,
    samples: int | None = None,
    epsilon: str = EPSILON,
    delta: str = DELTA,
    width: str | None = None,
    seconds: float | None = None,
    batch: int = BATCH,
) -> Sampled:
    """The robust fraction (PR) of texts under any classifier: the share of their sentences with at most `radius` swaps
    that keep the label, by uniform sampling, with intervals that state their confidence.

    `classify` maps token ids, int64 [batch, length], to labels, [batch]. A text is (choices, label): for each position
    the token ids that may stand there, the original first, and the right label. Texts that `classify` answers wrongly
    are left out and counted. `samples`: so many for each text, else as many as Hoeffding's inequality needs for
    `epsilon` and `delta`: Clopper-Pearson and Hoeffding intervals at confidence 1 - delta. With `width`, sampling stops
    as soon as the interval is no wider, and with `seconds` (for each text) when the time is up: then the interval is a
    confidence sequence, which holds whatever stops the drawing. `name` says which classifier this is, version and all;
    the seed of each text is a hash of it, the choices, label and radius, so that the same call draws the same samples.

        from swapproof.verifier import sample_pr
        found = sample_pr(lambda ids: model(ids).argmax(axis=1), [([[4, 9], [7], [2, 5, 6]], 1)], 2, name="my model 1")
        found.lines[0]["robust_fraction"], found.summary["robust_fraction"], found.summary["confidence"]

    Nothing of this can be checked without the function: there are no certificates.
    """
    if batch < 1:
        raise BadInput(f"batch = {batch}: at least 1")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise BadInput(f"seconds = {seconds}: a time above 0")
    asked = Sampling.of(samples, epsilon, delta, width)
    settings = Settings(radius, asked.samples, asked.delta, False, seconds, True, asked.width, batch)

    def labels(ids: NDArray[np.int64]) -> NDArray[Any]:
        found = np.asarray(classify(ids))
        if found.shape != (len(ids),):
            raise BadInput(f"the classifier answers {list(found.shape)} for {len(ids)} sentences: one label for each")
        return found

    lines = []
    for id, (choices, label) in enumerate(texts):
        lines.append(line_of(labels, id, SwapSpace.of(choices), label, settings, name))
    return Sampled(lines, summarise(lines, radius, len(lines), asked.delta))


def line_of(
    labels: Callable[[NDArray[np.int64]], NDArray[Any]],
    id: int,
    space: SwapSpace,
    label: int,
    settings: Settings,
    name: str,
) -> dict[str, Any]:
    started = time.monotonic()
    predicted = labels(np.array([space.original], dtype=np.int64))[0]
    line: dict[str, Any] = {"id": id, "label": label, "predicted": int(predicted), "candidates": space.candidates}
    line["certificate"] = None
    if predicted != label:
        return line | {"status": "already_wrong", "robust_fraction": None, "seconds": 0.0, "evaluations": 0}
    about = {
        "format": "swapproof sample",
        "version": 2,
        "model": name,
        "inputs": inputs_of(space),
        "words": words_of(space),
        "label": label,
        "radius": settings.radius,
        "samples": settings.announced,
    }
    found = deployed_fraction(labels, space, label, settings, about)
    line |= {"status": found.kind, "level": found.level, "radius": settings.radius, "robust_fraction": found.line()}
    line |= {"seconds": round(time.monotonic() - started, 4), "evaluations": found.evaluations}
    return line if found.reason is None else line | {"reason": found.reason}
