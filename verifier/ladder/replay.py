"""The deployed model itself: every witness goes through onnxruntime, alone and among other sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.model_ports import Given
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.space import Constants, SwapSpace
from swapproof.models.deployed.decision import Decision, Meaning
from swapproof.models.deployed.opening.onnx_signature import scores_of

NO_CLASS = -1
"""The answer of a model whose logits hold NaN: argmax means nothing."""
NEIGHBOURS = 7


def session_of(path: Path, *, optimised: bool | Path = True) -> Any:
    """The model in onnxruntime: as it is deployed, without graph optimisation, or with basic ones, written there."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if isinstance(optimised, Path):
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(optimised)
    elif not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # One thread: the models are small, the processes many, and the answer must not depend on the machine's cores.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base class
        reason = str(error).strip().split("\n")[0]
        raise BadInput(f"{path}: onnxruntime does not load this model ({reason})") from None


@dataclass
class Replay:
    """An onnxruntime session that counts what it is asked."""

    session: Any
    model: Model
    requests: int = field(default=0, init=False)
    evaluations: int = field(default=0, init=False)
    constants: Constants = ()
    """What the model's other inputs are given, in the order of its file."""

    @classmethod
    def open(cls, model: Model) -> Replay:
        return cls(session_of(model.path), model)

    def of(self, space: SwapSpace) -> Replay:
        """The same for sentences of this space, counting anew where other inputs are given other constants."""
        constants = (*space.before, *space.after)
        return self if constants == self.constants else Replay(self.session, self.model, constants=constants)

    def outputs(self, tokens: NDArray[np.int64]) -> NDArray[Any]:
        """[batch, classes]: what the model answers, its own final softmax included."""
        ids = np.asarray(tokens, dtype=self.model.input_type)
        self.evaluations += len(ids)
        if self.model.batch is None:
            self.requests += 1
            return self.run(ids)
        self.requests += len(ids)
        return np.concatenate([self.run(ids[row : row + 1]) for row in range(len(ids))])

    def feeds(self, ids: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Every input of the model, by name."""
        if not self.constants:
            return {self.model.input: ids}
        others = [one for one in self.model.inputs if one.name != self.model.input]
        given = zip(others, self.constants, strict=True)
        rows = {one.name: np.tile(np.array(integers, dtype=one.type), (len(ids), 1)) for one, integers in given}
        return {self.model.input: ids, **rows}

    def run(self, ids: NDArray[Any]) -> NDArray[Any]:
        feeds = self.feeds(ids)
        try:
            (result,) = self.session.run([self.model.output], feeds)
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            # One at a time it may answer: models are run that are not read.
            kind = BadInput if len(ids) == 1 else Unsupported
            raise kind(f"{self.model.named}: onnxruntime fails on {len(ids)} sentences ({reason})") from None
        return np.asarray(result)

    def answers(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """[batch]: argmax, the lowest index winning ties; NO_CLASS where the model answered NaN."""
        outputs = self.outputs(tokens)
        answers: NDArray[np.int64] = outputs.argmax(axis=1)
        if np.isnan(outputs).any():
            answers[np.isnan(outputs).any(axis=1)] = NO_CLASS
        return answers

    def answer(self, sentence: NDArray[np.int64]) -> int:
        """The class of one sentence, alone; NO_CLASS when it is another inside a batch."""
        alone = int(self.answers(sentence[None])[0])
        return alone if alone == self.answer_among_neighbours(sentence) else NO_CLASS

    def answer_among_neighbours(self, sentence: NDArray[np.int64]) -> int:
        """The class of the sentence in the middle of a batch of its own rotations."""
        if self.model.batch is not None:
            return int(self.answers(sentence[None])[0])
        return int(self.answers(sentence[rotations(len(sentence))])[NEIGHBOURS // 2])

    def breaks(self, sentence: NDArray[np.int64], label: int) -> bool:
        """Whether another class wins, both alone and inside a batch."""
        return self.answer(sentence) not in (label, NO_CLASS)


@lru_cache(maxsize=64)
def rotations(length: int) -> NDArray[np.int64]:
    """[neighbours + 1, length]: indices of a sentence in the middle of a batch of its rotations."""
    shifts = list(range(1, NEIGHBOURS + 1))
    shifts.insert(NEIGHBOURS // 2, 0)
    return np.asarray((np.arange(length) - np.array(shifts)[:, None]) % length)


@dataclass(frozen=True)
class Original:
    """The model as it was given, where the one that is read was made from it."""

    replay: Replay
    given: Given

    @classmethod
    def of(cls, model: Model, given: Given) -> Original:
        """`model`: the one that was made, whose inputs are the same."""
        path = given.path or model.path
        return cls(Replay(session_of(path), replace(model, path=path, output=given.output)), given)

    @property
    def decision(self) -> Decision:
        scores = self.given.scores
        return Decision(scores.classes, cast("Meaning", scores.meaning), scores.threshold, scores.column)

    def answers(self, space: SwapSpace, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """[batch]: the classes that the deployed code answers."""
        return self.decision.answers(self.scores(space, tokens))

    def scores(self, space: SwapSpace, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """[batch, scores], without axes of size 1."""
        return scores_of(self.replay.of(space).outputs(tokens), len(tokens), self.given.output)

    def breaks(self, space: SwapSpace, sentence: NDArray[np.int64], label: int) -> bool:
        return int(self.answers(space, sentence[None])[0]) not in (label, NO_CLASS)

    def values(self, space: SwapSpace, tokens: NDArray[np.int64], logits: NDArray[Any]) -> tuple[Any, Any]:
        """What decides in both models, in the terms of this one, of sentences with these logits of the other."""
        decision = self.decision
        own, made = decision.values(self.scores(space, tokens)), np.asarray(logits, dtype=np.float64)
        if decision.classes > 2:
            return own, made
        own, made = own[:, 1] - own[:, 0], made[:, 1] - made[:, 0]
        if self.given.headless:
            share = 0.5 if decision.threshold is None else decision.threshold
            made = 1 / (1 + np.exp(-(made + np.log(share / (1 - share))))) - share
        return own, made


DEPENDENCE = re.compile(
    r"the model's answer for a text depends on its batch neighbours: sentence \d+ has output \d+ = \S+ alone and "
    r"\S+ among \d+"
)
"""What is said of it."""


def batch_dependence(replay: Replay, tokens: NDArray[np.int64], allowed: NDArray[np.float64]) -> str | None:
    """How a sentence's answer depends on its batch neighbours, or None when it does not.

    `allowed` [batch, classes] is how far two float evaluations of one sentence may be apart.
    """
    if replay.model.batch is not None or len(tokens) < 2:
        return None
    together = replay.outputs(tokens)
    alone = np.concatenate([replay.outputs(tokens[row : row + 1]) for row in range(len(tokens))])
    if len(together) != len(alone):
        raise BadInput(
            f"{replay.model.named}: answers {len(together)} rows of scores for {len(tokens)} sentences: "
            "export it for any number of sentences, or for one"
        )
    with np.errstate(invalid="ignore"):  # the same infinity twice is the same answer, and their difference is NaN
        apart = np.where(together == alone, 0.0, np.abs(together.astype(np.float64) - alone))
    wrong = ~(apart <= allowed) & ~(np.isnan(together) & np.isnan(alone))
    if not wrong.any():
        return None
    row, column = (int(i) for i in np.unravel_index(np.argmax(np.where(wrong, apart, -1.0)), apart.shape))
    return (
        f"the model's answer for a text depends on its batch neighbours: sentence {row} has output {column} = "
        f"{alone[row, column]:.6g} alone and {together[row, column]:.6g} among {len(tokens)}"
    )
