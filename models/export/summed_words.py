"""scikit-learn pipelines and static embeddings that add up their words: as an ONNX file with its vocabulary, compared
with the original on texts.

Both are written as a network that adds up a row of numbers for each word. Where the original divides a text by its norm
or by its number of tokens, the network does not, and the same class wins; the comparison divides afterwards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..deployed.classifier import Deployment, Identity, NoAnswer
from ..deployed.pipelines.pipeline_files import load_pipeline
from ..deployed.pipelines.text_pipeline import quiet, text_pipeline
from ..deployed.scikit_learn import ScikitLearn, difference, read_scikit_learn
from ..deployed.static_embeddings import StaticClassifier, lengths, open_static
from ..deployed.static_models.static_heads import PooledLayers, softmax
from ..deployed.static_models.static_reading import read_texts
from ..deployed.swapped_text import SwapText
from ..encoded import Pattern, Split
from ..errors import BadInput, Disagreement, EmptyText, Unsupported
from ..plain_words import PlainWords
from ..vocabulary import PAD, UNKNOWN, WordVocabulary, read_vocabulary
from ..word_network import Unreadable, WordNetwork
from .appearing_folder import appearing, refuse_occupied, refuse_unwritable, write_json
from .equivalence import ROUNDING, Agreement
from .torch_modules import runtime

ANYWAY = "swapproof certify takes the model as it is"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WordExport:
    """The folder that was written, `model.onnx` and `vocabulary.json` in it, and how near its answers are."""

    folder: Path
    section: Mapping[str, Any]
    """What [model] of a task file says of it."""
    sha256: Mapping[str, str]
    words: int
    agreement: Agreement
    remarks: tuple[str, ...] = ()


def export_scikit_learn(
    pipeline: Any, out: Path | str, *, texts: Sequence[str], trust_pickle: bool = False
) -> WordExport:
    """`pipeline`: fitted, or the path of a file that holds one; a pickle only with `trust_pickle`. All words that it
    counts are in the vocabulary, and all others add nothing. `texts` are compared, all of them."""
    out = Path(out)
    name, remarks = type(pipeline).__name__, tuple[str, ...]()
    if isinstance(pipeline, str | Path):
        name = str(pipeline)
        pipeline, remarks = load_pipeline(Path(pipeline), trust_pickle)
    refuse_before(out, texts)
    classifier = ScikitLearn(text_pipeline(pipeline, name, None), Identity("sklearn", name))
    reading = classifier.reading
    if isinstance(reading, Unreadable):
        raise Unsupported(f"{name}: {reading.reason}; {ANYWAY}")
    vectoriser = reading.counts.vectoriser
    if vectoriser.strip_accents is not None:
        raise Unsupported(f"{name}: strips accents, which no vocabulary of words does; {ANYWAY}")
    if reading.flat is not None:
        raise Unsupported(f"{name}: a word that is there twice is no sum, for {reading.flat}; {ANYWAY}")
    terms = sorted(vectoriser.vocabulary_, key=vectoriser.vocabulary_.__getitem__)
    if {PAD, UNKNOWN} & set(terms):
        raise Unsupported(f"{name}: counts {PAD} or {UNKNOWN} as words, which the vocabulary needs; {ANYWAY}")
    network = read_scikit_learn(classifier, terms)
    if isinstance(network, Unreadable):
        raise Unsupported(f"{name}: {network.reason}; {ANYWAY}")
    network = replace(network, rows=np.concatenate([network.rows, np.zeros((1, network.rows.shape[1]))]))
    split = Pattern(vectoriser.token_pattern)
    with appearing(out) as folder:
        vocabulary = written(folder, network, [*terms, UNKNOWN, PAD], split, vectoriser.lowercase)
        ids = numbers(vocabulary, texts, network.padding)
        try:
            sentences = [(text,) for text in texts]
            deployed, largest = classifier.scores(sentences), difference(classifier, network, sentences, ids)
            with quiet():
                predicted = classifier.pipeline.head.predict(classifier.pipeline.features(texts))
        except NoAnswer as error:
            raise BadInput(f"{name}: {error}") from error
        answers = classifier.pipeline.numbers(np.asarray(predicted))
        agreed = agreement_of(folder, network, ids, answers, deployed, largest)
    section = section_of(split, vectoriser.lowercase, classifier.classes)
    return WordExport(out, section, hashes(out), len(terms), agreed, (*remarks, *network.remarks))


def export_static(
    source: Path | str, out: Path | str, *, texts: Sequence[str], words: Sequence[str] = (), split: Split = "words"
) -> WordExport:
    """`source`: a folder of model2vec, or a .bin or .ftz file of fastText. The vocabulary holds the words of `texts`,
    which are compared, and `words`, such as their replacements; others it does not know."""
    source, out = Path(source), Path(out)
    refuse_before(out, texts)
    classifier = open_static(Deployment("static", str(source)))
    if not isinstance(classifier, StaticClassifier):
        raise TypeError("another classifier")
    plain = PlainWords(split, str(source))
    read = [plain.encode(text) for text in texts]
    for word in words:
        if plain.tokens_of(word) is None:
            raise BadInput(f"{source}: {word!r} is no single word by the split {split}")
    spellings = plain.spellings
    if PAD in spellings:
        raise BadInput(f"{source}: {PAD} is a word of the texts, and the vocabulary needs it for padding")
    alone = [SwapText((one.text,), 0, one.whole, tuple((word,) for word in one.words)) for one in read]
    found = read_texts(classifier, spellings, alone)
    if isinstance(found, Unreadable):
        raise Unsupported(f"{source}: {found.reason}; {ANYWAY}")
    for number, reason in enumerate(found.misfits):
        if reason is not None:
            raise Unsupported(f"{source}: text {number} is not the sum of its words: {reason}; {ANYWAY}")
    with appearing(out) as folder:
        vocabulary = written(folder, found.network, [*spellings, PAD], split, False)
        ids = numbers(vocabulary, texts, found.network.padding)
        try:
            deployed = classifier.scores([(text,) for text in texts])
        except NoAnswer as error:
            raise BadInput(f"{source}: {error}") from error
        expected = as_deployed(classifier, texts, found.network.scores(ids), deployed.shape[1])
        largest = float(np.abs(deployed - expected).max())
        answers = deployed[:, 0] > 0.5 if deployed.shape[1] == 1 else deployed.argmax(axis=1)
        agreed = agreement_of(folder, found.network, ids, answers.astype(np.int64), deployed, largest)
    labels = json.loads(str(classifier.identity.facts.get("labels", "null")))
    remarks = (*classifier.identity.remarks, *found.network.remarks)
    return WordExport(out, section_of(split, False, labels), hashes(out), len(spellings), agreed, remarks)


def as_deployed(classifier: StaticClassifier, texts: Sequence[str], logits: Floats, outputs: int) -> Floats:
    """The network's logits, which are a multiple of the model's for each text, as so many scores of the model."""
    ids, head = classifier.lines.ids(list(texts)), classifier.head
    if isinstance(head, PooledLayers) and head.normal:
        multiple = np.sqrt((classifier.sums(ids) ** 2).sum(axis=1))
    else:
        multiple = lengths(ids).astype(np.float64)
    logits = logits / np.maximum(multiple, np.finfo(np.float64).tiny)[:, None]
    if not isinstance(head, PooledLayers):
        return softmax(logits)
    return head.activated(logits[:, 1:] - logits[:, :1] if outputs == 1 else logits)


def refuse_before(out: Path, texts: Sequence[str]) -> None:
    if isinstance(texts, str) or not texts:
        raise BadInput("texts: a list of one text or more is needed, to compare the answers")
    refuse_occupied(out)
    refuse_unwritable(out)


def written(folder: Path, network: WordNetwork, words: list[str], split: Split, lowercase: bool) -> WordVocabulary:
    """The two files; the vocabulary as whoever takes them reads it."""
    network.to_onnx(folder / "model.onnx")
    write_json(folder / "vocabulary.json", words, indent=0)
    found = read_vocabulary(folder / "vocabulary.json", split=split, lowercase=lowercase)
    if not isinstance(found, WordVocabulary):
        raise TypeError("another vocabulary")
    return found


def numbers(vocabulary: WordVocabulary, texts: Sequence[str], padding: int) -> NDArray[np.int64]:
    """[texts, words], padded to the longest."""
    rows = []
    for text in texts:
        try:
            rows.append(vocabulary.encode(text).tokens)
        except EmptyText:
            rows.append(())
    found = np.full((len(rows), max(1, *map(len, rows))), padding, dtype=np.int64)
    for place, row in enumerate(rows):
        found[place, : len(row)] = row
    return found


def agreement_of(
    folder: Path,
    network: WordNetwork,
    ids: NDArray[np.int64],
    answers: NDArray[np.int64],
    deployed: Floats,
    largest: float,
) -> Agreement:
    """`largest`: what the network's own scores differ by from those deployed; onnxruntime's are compared with them."""
    (logits,) = runtime(folder / "model.onnx").run(None, {"words": ids})
    own = network.scores(ids)
    apart = float(np.abs(logits - own).max())
    size, own_size = (max(1.0, float(np.abs(scores).max())) for scores in (deployed, own))
    if not (largest <= ROUNDING * size and apart <= ROUNDING * own_size):
        raise Disagreement(
            f"the exported model differs from the original by {largest:g} on scores of size {size:g}, and in "
            f"onnxruntime by {apart:g} on logits of size {own_size:g}"
        )
    return Agreement(len(ids), largest, int((logits.argmax(axis=1) != answers).sum()))


def section_of(split: Split, lowercase: bool, labels: Sequence[str] | None) -> dict[str, Any]:
    said = {"pattern": split.pattern} if isinstance(split, Pattern) else split
    found = {"onnx": "model.onnx", "vocabulary": "vocabulary.json", "split": said, "lowercase": lowercase}
    return found if labels is None else {**found, "labels": list(labels)}


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in map(folder.joinpath, FILES)}


FILES = ("model.onnx", "vocabulary.json")
