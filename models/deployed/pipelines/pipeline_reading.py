"""Pipelines that count words, read as networks: a row of numbers for every spelling, which a text adds up.

What a spelling adds is what the pipeline's own steps make of it alone, times the coefficients of the classifier. That
is exact because all steps are linear. A norm (L2 by default) divides a text by a positive number; where nothing is
added afterwards, that moves no margin to the other side of 0, and the norm is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...word_network import Array, Layer, Unreadable, WordNetwork
from ..swapped_text import SwapText
from .text_pipeline import TextPipeline, quiet
from .word_counts import WordCounts, every_option, spelt

LINEAR = frozenset(
    {
        "LinearSVC",
        "LogisticRegression",
        "LogisticRegressionCV",
        "PassiveAggressiveClassifier",
        "Perceptron",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    }
)
"""Classifiers whose decision_function is a product with coef_ plus intercept_."""
MACHINES = ("SVC", "NuSVC")
BAYES = frozenset({"BernoulliNB", "ComplementNB", "MultinomialNB"})
PROBABLE = BAYES | {"LogisticRegression", "LogisticRegressionCV", "MLPClassifier"}
"""Classifiers whose predict_proba is the softmax of their logits."""
POSITIVE = frozenset(
    {"MaxAbsScaler", "SelectFromModel", "SelectKBest", "SelectPercentile", "StandardScaler", "VarianceThreshold"}
)
"""Transformers that take columns, or divide each by a positive number."""
SCALES = POSITIVE | {"TruncatedSVD"}
"""Transformers that multiply by a matrix."""
EVEN = ("TfidfTransformer", "MaxAbsScaler", "StandardScaler")
"""Transformers that multiply each column by a number."""
NO_SUM = (
    "texts are divided by a norm that no network of their words is known for, and an intercept is added afterwards: "
    "train with norm=None, with one L2 norm right after the weights, or with fit_intercept=False"
)


class _No(Exception):
    """Its message is the reason."""


@dataclass(frozen=True, eq=False)
class Head:
    """A classifier as a product with the features and layers after it, each behind a Relu; `presence`: it only looks
    at whether a feature is there."""

    weight: Array
    bias: Array
    layers: tuple[Layer, ...] = ()
    presence: bool = False


@dataclass(frozen=True, eq=False)
class Reading:
    """`steps`: what comes after the counting, norms left out; `flat`: why a token counts less the second time in a
    text, if it does; `normed`: after how many steps texts are divided by their L2 norm, if that cannot be left out;
    `enclosed`: two classes and no layers, so that a piecewise linear network can tell nearly all sentences."""

    counts: WordCounts
    steps: tuple[Any, ...]
    flat: str | None
    head: Head
    logarithmic: bool = False
    normed: int | None = None

    @property
    def enclosed(self) -> bool:
        return self.normed is not None and not self.head.layers and len(self.head.bias) == 2

    def network(self, spellings: Sequence[str]) -> WordNetwork:
        groups = self.groups(spellings)
        columns = sorted({column for group in groups for column in group})
        rows = np.asarray(self.counts.matrix(groups)[:, columns] @ self.effects(columns))
        return WordNetwork(rows, self.head.bias, self.head.layers, rectified=bool(self.head.layers))

    def groups(self, spellings: Sequence[str]) -> list[tuple[int, ...]]:
        return [self.counts.columns_of(word) for word in spellings]

    def effects(self, columns: Sequence[int]) -> Array:
        """[columns, width]: what one token adds before the first layer."""
        features = self._features(columns, len(self.steps))
        features = (features > 0).astype(np.float64) if self.head.presence else features
        return np.asarray(features @ self.head.weight.T, dtype=np.float64)

    def squares(self, columns: Sequence[int]) -> Array:
        """[columns]: what one token adds to the square of the norm."""
        features = self._features(columns, self.normed or 0)
        return np.asarray(features.multiply(features).sum(axis=1), dtype=np.float64).ravel()

    def _features(self, columns: Sequence[int], steps: int) -> Any:
        features = self.counts.matrix([(column,) for column in columns]).astype(np.float64)
        with quiet():
            for step in self.steps[:steps]:
                features = step.transform(features)
        return features

    def worth(self, times: int) -> float:
        """Of a token that stands so often in a text, once being 1."""
        if self.flat is None or not times:
            return float(times)
        return 1 + math.log(times) if self.logarithmic else 1.0

    def misfit(self, text: SwapText) -> str | None:
        """Why what the pipeline makes of this text's sentences is no sum over their words; None where it is."""
        if self.flat is not None and (word := _repeated(self.counts, spelt(text))) is not None:
            return f"{word!r} may be counted twice in a sentence, and {self.flat}"
        return self.uncountable(text)

    def uncountable(self, text: SwapText) -> str | None:
        """Why this text's sentences do not count what their words count."""
        if (joined := self.counts.joined(text)) is not None:
            return joined
        for between in text.between:
            if self.counts.columns_of(between):
                return f"{between!r} is counted, and is no word"
        return self.counts.differs(text, every_option(text))


def reading_of(pipeline: TextPipeline, counts: WordCounts | str) -> Reading | Unreadable:
    try:
        return _reading(pipeline, counts)
    except _No as reason:
        return Unreadable(str(reason))


def difference_of(pipeline: TextPipeline, texts: Sequence[str], deployed: Array, logits: Array) -> float:
    """The largest between the scores of the pipeline and those that the network's logits amount to; of texts divided by
    a norm, between what the classes lack to the winner, times the norm."""
    logits = logits[:, : len(pipeline.classes)]
    if deployed.shape[1] == 1:
        deployed = np.concatenate([np.zeros_like(deployed), deployed], axis=1)
    if _normed(pipeline):
        with np.errstate(divide="ignore"):
            deployed = np.log(deployed) if pipeline.method == "predict_proba" else deployed
        deployed, logits = _lacks(deployed) * _norms(pipeline, texts)[:, None], _lacks(logits)
    elif pipeline.method == "predict_proba":
        powers = np.exp(-_lacks(logits))
        logits = powers / powers.sum(axis=1, keepdims=True)
    elif deployed.shape[1] == 2 and pipeline.method == "decision_function":
        logits = logits - logits[:, :1]
    return float(np.abs(deployed - logits).max(initial=0.0))


def _lacks(scores: Array) -> Array:
    return np.asarray(scores.max(axis=1, keepdims=True) - scores)


def _norms(pipeline: TextPipeline, texts: Sequence[str]) -> Array:
    """What the texts are divided by."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    with quiet():
        reads = CountVectorizer.transform(pipeline.before[0], texts)
        product = np.ones(len(texts))
        for step in _weightings(pipeline):
            norm = getattr(step, "norm", None)
            plain = copy(step)
            if norm is None or _name(step) != "Normalizer":
                plain.norm = None
                reads = plain.transform(reads)
            if norm is not None:
                sizes = abs(csr_array(reads))
                size = {"l1": sizes.sum(axis=1), "l2": np.sqrt((sizes * sizes).sum(axis=1)), "max": sizes.max(axis=1)}
                own = size[norm].toarray() if hasattr(size[norm], "toarray") else np.asarray(size[norm])
                product *= np.where(own.ravel() == 0, 1.0, own.ravel())
                reads = normalize(reads, norm)
    return product


def _reading(pipeline: TextPipeline, counts: WordCounts | str) -> Reading:
    if isinstance(counts, str):
        raise _No(f"what is counted are not words one by one: {counts}")
    if pipeline.method == "predict":
        raise _No(f"{_name(pipeline.head)} has no scores that predict follows")
    if pipeline.method == "predict_proba" and _name(pipeline.head) not in PROBABLE:
        raise _No(f"the probabilities of {_name(pipeline.head)} are not those of a network's logits")
    flat = "binary counts it once" if counts.vectoriser.binary else None
    logarithmic = False
    steps: list[Any] = []
    norms: list[tuple[str, int]] = []
    for place, step in enumerate(_weightings(pipeline)):
        name = _name(step)
        norm = getattr(step, "norm", None)
        if name == "TfidfTransformer":
            if step.sublinear_tf and place:
                raise _No("sublinear_tf takes the logarithm of what is no count")
            logarithmic = step.sublinear_tf and flat is None
            flat = "sublinear_tf counts it less the second time" if logarithmic else flat
            step = copy(step)
            step.sublinear_tf, step.norm = False, None
        elif name == "StandardScaler" and step.with_mean:
            raise _No("StandardScaler takes the mean away, which leaves no word at 0")
        elif name != "Normalizer" and (name not in SCALES or getattr(step, "clip", False)):
            raise _No(f"{name} is not known to be a matrix")
        if name != "Normalizer":
            steps.append(step)
        if norm is not None:
            norms.append((norm, len(steps)))
    head = _head(pipeline)
    normed = None
    if head.presence:
        if any(_name(step) not in ("TfidfTransformer", *POSITIVE) for step in steps):
            raise _No(f"{_name(pipeline.head)} asks which features are positive, and some may be negative")
        flat, logarithmic = flat or f"{_name(pipeline.head)} asks only whether it is there", False
    elif norms:
        even = _homogeneous(head)
        if even is None:
            normed = _root(norms, steps)
        head = even or head
    return Reading(counts, tuple(steps), flat, head, logarithmic, normed)


def _root(norms: Sequence[tuple[str, int]], steps: Sequence[Any]) -> int:
    """After how many steps comes the only norm, the root of a sum of squares over the words."""
    (norm, place), *more = norms
    if more or norm != "l2" or any(_name(s) not in EVEN for s in steps[:place]):
        raise _No(NO_SUM)
    return place


def _weightings(pipeline: TextPipeline) -> list[Any]:
    """The steps after the counting."""
    inner = getattr(pipeline.before[0], "_tfidf", None)
    return [*([] if inner is None else [inner]), *pipeline.before[1:]]


def _normed(pipeline: TextPipeline) -> bool:
    """Whether a text is divided by its norm, and the classifier minds."""
    if _name(pipeline.head) == "BernoulliNB" and pipeline.head.binarize is not None:
        return False
    return any(getattr(step, "norm", None) is not None for step in _weightings(pipeline))


def _homogeneous(head: Head) -> Head | None:
    """Of a text divided by its norm; what is added to all classes alike decides nothing, what else is added does."""
    biases = [head.bias, *(bias for _, bias in head.layers)]
    biases[-1] = biases[-1] - biases[-1][0]
    if any(bias.any() for bias in biases):
        return None
    layers = tuple((weight, bias) for (weight, _), bias in zip(head.layers, biases[1:], strict=True))
    return Head(head.weight, biases[0], layers)


def _head(pipeline: TextPipeline) -> Head:
    head, classes = pipeline.head, len(pipeline.classes)
    name = _name(head)
    if name in LINEAR or (name in MACHINES and head.kernel == "linear" and classes == 2):
        weight = np.atleast_2d(_array(head.coef_))
        bias = np.broadcast_to(_array(head.intercept_).ravel(), len(weight))
        if len(weight) != (1 if classes == 2 else classes):
            raise _No(f"{name} has {len(weight)} rows of coefficients for {classes} classes")
        return Head(*_paired(weight, bias))
    if name == "MultinomialNB":
        return Head(_array(head.feature_log_prob_), _array(head.class_log_prior_))
    if name == "ComplementNB":
        return Head(_array(head.feature_log_prob_), np.zeros(classes))
    if name == "BernoulliNB":
        absent = np.log(1 - np.exp(head.feature_log_prob_))
        bias = head.class_log_prior_ + absent.sum(axis=1)
        if head.binarize not in (None, 0.0):
            raise _No(f"BernoulliNB asks which features exceed {head.binarize}")
        return Head(_array(head.feature_log_prob_ - absent), _array(bias), presence=head.binarize is not None)
    if name == "MLPClassifier":
        return _perceptron(head, classes)
    raise _No(f"{name} is neither linear, nor naive Bayes, nor a perceptron of ReLUs")


def _perceptron(head: Any, classes: int) -> Head:
    layers = [(_array(weight).T, _array(bias)) for weight, bias in zip(head.coefs_, head.intercepts_, strict=True)]
    if head.activation != "relu" and len(layers) > 1:
        raise _No(f"the perceptron's activation is {head.activation}, not relu")
    if head.out_activation_ not in ("softmax", "logistic") or len(layers[-1][1]) != (1 if classes == 2 else classes):
        raise _No("the perceptron answers several questions at once")
    layers[-1] = _paired(*layers[-1])
    (weight, bias), *after = layers
    return Head(weight, bias, tuple(after))


def _paired(weight: Array, bias: Array) -> Layer:
    """Two logits in place of one, which is compared with 0."""
    if len(weight) == 1:
        weight = np.concatenate([np.zeros_like(weight), weight])
        bias = np.concatenate([np.zeros(1), bias])
    return weight, np.array(bias)


def _array(numbers: Any) -> Array:
    """As float64, which holds float32 exactly; sparse ones spelt out."""
    return np.asarray(numbers.toarray() if hasattr(numbers, "toarray") else numbers, dtype=np.float64)


def _name(part: Any) -> str:
    """The class; of other makers, where it comes from too, since one may do otherwise under the same name."""
    kind = type(part)
    return kind.__name__ if kind.__module__.startswith("sklearn.") else f"{kind.__module__}.{kind.__name__}"


def _repeated(counts: WordCounts, words: Sequence[Sequence[str]]) -> str | None:
    """A word that counts what another one counts too, in some sentence."""
    total: Counter[int] = Counter()
    for options in words:
        most: Counter[int] = Counter()
        for option in options:
            most |= Counter(counts.columns_of(option))
        total += most
        for option in options:
            if any(total[column] > 1 for column in counts.columns_of(option)):
                return option
    return None
