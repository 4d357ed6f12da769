"""scikit-learn pipelines from texts to classes, as they are saved: run as they are, and read where that is exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Unsupported, one_line
from ..readers import refuse_other_order
from ..word_network import ReadTexts, Unreadable, WordNetwork
from .classifier import Classifier, Deployment, Identity, NoAnswer, Rows, Scores, SpeltOut, Variants
from .opening.file_facts import copy_of
from .pipelines.pipeline_files import load_pipeline
from .pipelines.pipeline_reading import Reading, difference_of, reading_of
from .pipelines.text_networks import network_of
from .pipelines.text_pipeline import TextPipeline, quiet, text_pipeline
from .pipelines.word_counts import WordCounts, word_counts
from .swapped_text import Fields, SwapText

MEMORY = 2**28
"""Bytes of the features of one batch, were they dense: some steps make them so."""
SMALLEST, LARGEST = 64, 4096
"""Sentences of a batch."""
CHARACTERS = 2**24
"""Of all sentences of a batch."""


@dataclass(frozen=True, eq=False)
class ScikitLearn:
    """A pipeline that has answered a text."""

    pipeline: TextPipeline
    identity: Identity
    threads: int = 1

    @property
    def classes(self) -> tuple[str, ...]:
        """In the order of the scores."""
        return tuple(map(str, self.pipeline.classes))

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        if not sentences:
            return np.zeros((0, self.outputs))
        texts = [sentence[0] for sentence in sentences]
        return np.concatenate([self.answers(0, batch) for batch in self._batches(texts)])

    def variants(self, text: SwapText) -> Variants:
        counts = self.counts
        if isinstance(counts, str) or counts.joined(text) is not None:
            return SpeltOut(self, text)
        ends = ([0] * len(text.options), [len(options) - 1 for options in text.options])
        return SpeltOut(self, text) if counts.differs(text, ends) else Counted(self, counts, text)

    @cached_property
    def counts(self) -> WordCounts | str:
        """The vectoriser, where it counts words one by one; else why not."""
        return word_counts(self.pipeline.before[0]) if self.pipeline.before else "the model has no steps"

    @cached_property
    def reading(self) -> Reading | Unreadable:
        return reading_of(self.pipeline, self.counts)

    @cached_property
    def outputs(self) -> int:
        return int(self.answers(0, ["a text"]).shape[1])

    @cached_property
    def most(self) -> int:
        """Sentences of a batch."""
        width = len(getattr(self.pipeline.before[0], "vocabulary_", ())) if self.pipeline.before else 0
        return min(max(MEMORY // (8 * max(1, width)), SMALLEST), LARGEST)

    def answers(self, step: int, reads: Any) -> Scores:
        """The scores of what the steps from this one on read, or of what a function makes for them to read."""
        try:
            with quiet(), self.limited():
                return self.pipeline.scores(self.pipeline.after(step, reads() if callable(reads) else reads))
        except NoAnswer:
            raise
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:  # transformers and classifiers of all makers
            raise NoAnswer(f"the pipeline raises {type(error).__name__}: {one_line(error)[:200]}") from error

    def _batches(self, texts: list[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        characters = 0
        for text in texts:
            if batch and (len(batch) == self.most or characters + len(text) > CHARACTERS):
                yield batch
                batch, characters = [], 0
            batch.append(text)
            characters += len(text)
        yield batch

    @contextmanager
    def limited(self) -> Iterator[None]:
        """No more cores than the deployment allows."""
        with self._controller.limit(limits=self.threads):
            yield

    @cached_property
    def _controller(self) -> Any:
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController()


@dataclass(frozen=True, eq=False)
class Counted:
    """The sentences of a text as sums of what their words count, which the rest of the pipeline then reads."""

    classifier: ScikitLearn
    counts: WordCounts
    text: SwapText

    def scores(self, rows: Rows) -> Scores:
        rows = np.asarray(rows)
        if not len(rows):
            return self.classifier.scores([])
        most = self.classifier.most
        return np.concatenate([self._scores(rows[start : start + most]) for start in range(0, len(rows), most)])

    def _scores(self, rows: Rows) -> Scores:
        from scipy.sparse import csr_array

        features, first = self._features
        moving = list(self.text.swappable)
        taken = np.concatenate([np.zeros((len(rows), 1), dtype=np.int64), first[moving] + rows[:, moving]], axis=1)
        ends = np.arange(0, taken.size + 1, taken.shape[1])
        chosen = csr_array(
            (np.ones(taken.size, dtype=np.int64), taken.ravel(), ends), shape=(len(rows), features.shape[0])
        )
        return self.classifier.answers(1, lambda: self.counts.counted(chosen @ features))

    @cached_property
    def _features(self) -> tuple[Any, NDArray[np.int64]]:
        return self.counts.features(self.text)


def open_scikit_learn(deployment: Deployment) -> Classifier:
    """The pipeline of a file; pickles only with `trust_pickle`."""
    path = Path(deployment.source)
    try:
        import sklearn
    except ImportError as error:
        raise Unsupported(f"{path}: this needs scikit-learn: pip install scikit-learn joblib skops") from error
    if deployment.fields != 1:
        raise BadInput(f"{path}: a scikit-learn pipeline reads one text, not a pair: join the two in a callable")
    model, remarks = load_pipeline(path, deployment.trust_pickle)
    pipeline = text_pipeline(model, str(path), deployment.output)
    names = tuple(map(str, pipeline.classes))
    refuse_other_order(path, names, deployment.labels, deployment.label_map)
    facts = {
        "pipeline": ", ".join(type(part).__name__ for part in (*pipeline.before, pipeline.head)),
        "scores": pipeline.method,
        "classes": ", ".join(names),
        "scikit-learn": sklearn.__version__,
    }
    with quiet():
        answered = pipeline.answered
    identity = Identity("sklearn", path.name, (copy_of(path.name, path),), facts, remarks, answered=answered)
    return ScikitLearn(pipeline, identity, deployment.threads)


DIVIDED = (
    "texts are divided by their norm, which is no sum over words, and an intercept is added afterwards: train with "
    "norm=None or fit_intercept=False"
)


def read_scikit_learn(classifier: ScikitLearn, spellings: Sequence[str]) -> WordNetwork | Unreadable:
    """The network whose sums over the words of a text decide as the pipeline does, for texts that fit."""
    reading = classifier.reading
    if isinstance(reading, Unreadable):
        return reading
    return reading.network(spellings) if reading.normed is None else Unreadable(DIVIDED)


def fits(classifier: ScikitLearn, text: SwapText) -> str | None:
    """Why the pipeline does not read the sentences of this text as sums over their words; None: it does."""
    reading = classifier.reading
    if isinstance(reading, Unreadable):
        return reading.reason
    return reading.misfit(text) if reading.normed is None else DIVIDED


def read_texts(classifier: ScikitLearn, spellings: Sequence[str], texts: Sequence[SwapText]) -> ReadTexts | Unreadable:
    """One network for these texts, also where `read_scikit_learn` gives none or `fits` gives a reason: where a word
    counts less the second time, and where a norm is followed by an intercept."""
    reading = classifier.reading
    if isinstance(reading, Unreadable):
        return reading
    try:
        return network_of(reading, spellings, texts)
    except (IndexError, ValueError) as error:  # numbers that are none, parts that do not belong together
        return Unreadable(f"no network is made of its numbers ({one_line(error)[:160]})")


def difference(
    classifier: ScikitLearn, network: WordNetwork, sentences: Sequence[Fields], ids: NDArray[np.int64]
) -> float:
    """The largest between what the pipeline answers and what the network answers, in the pipeline's terms."""
    texts = [sentence[0] for sentence in sentences]
    return difference_of(classifier.pipeline, texts, classifier.scores(sentences), network.scores(ids))
