"""The one loop in which every network learns, whatever its defence; an unfinished training goes on where it was."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .architectures.network_shape import PAD, UNKNOWN, Arrays, Noise, Shape, logits
from .defences.training_rule import Learner, TrainingRule
from .errors import BadInput
from .export.trained_graph import BATCH
from .recipe import TrainingPart

if TYPE_CHECKING:
    import torch

Progress = Callable[[str], None]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of malloc.h."""
KEPT_BLOCK = 32 << 20
EVERY = 20.0
"""Seconds between states that are kept of an unfinished training, and between lines within an epoch."""


@dataclass(frozen=True)
class Fit:
    """Learned weights, the epoch (from 1) they are from, and the held-out accuracy after every epoch."""

    weights: Arrays
    epoch: int
    history: tuple[float, ...]


@dataclass(frozen=True)
class Lesson:
    """What is learned, from which texts, and where an unfinished training is kept; `about` identifies all of it."""

    shape: Shape
    plan: TrainingPart
    rule: TrainingRule
    tokens: torch.Tensor
    labels: torch.Tensor
    held_out: tuple[NDArray[np.int32], NDArray[np.int64]]
    kept: Path
    about: str

    @property
    def sha256(self) -> str:
        found = hashlib.sha256(self.about.encode())
        for part in (self.tokens.numpy(), self.labels.numpy(), *self.held_out):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()


@dataclass
class State:
    """Where a training is: `place` texts of this epoch's `order` are learned."""

    epoch: int
    place: int
    step: int
    total: float
    order: torch.Tensor
    kept: Arrays
    epoch_kept: int
    history: list[float]
    seconds: float


def learn(lesson: Lesson, weights: dict[str, torch.Tensor], generator: torch.Generator, progress: Progress) -> Fit:
    """AdamW on the loss of the rule, the learning rate falling linearly to zero."""
    import torch

    shape, plan, rule = lesson.shape, lesson.plan, lesson.rule
    with one_thread(), kept_memory():
        rule.hold(weights)
        noise = Noise(plan.dropout, plan.noise, generator)
        learned = [value for value in (*weights.values(), *rule.own.values()) if value.requires_grad]
        optimizer = torch.optim.AdamW(learned, lr=plan.learning_rate, weight_decay=plan.weight_decay)
        network = Learner(shape, weights, rule, noise)
        count = len(lesson.tokens)
        steps = plan.epochs * -(-count // plan.batch)
        state = State(1, 0, 0, 0.0, torch.randperm(count, generator=generator), {}, 0, [], 0.0)
        digest = lesson.sha256
        found = resumed(lesson.kept, digest, weights, rule, optimizer, generator)
        if found is not None:
            state = found
            progress(f"going on from step {state.step} of {steps}, kept in {lesson.kept}")
        clock = Clock(state.seconds)
        while state.epoch <= plan.epochs:
            while state.place < count:
                rows = state.order[state.place : state.place + plan.batch]
                for group in optimizer.param_groups:
                    group["lr"] = plan.learning_rate * (1 - state.step / steps)
                before = generator.get_state()
                optimizer.zero_grad()
                loss = rule.learn(
                    network,
                    disturb(lesson.tokens[rows].long(), plan, generator),
                    lesson.labels[rows],
                    state.step / steps,
                )
                if not math.isfinite(loss):
                    generator.set_state(before)
                    raise diverged(lesson, state, loss, weights, optimizer, generator, digest)
                optimizer.step()
                rule.hold(weights)
                state.step += 1
                state.place += plan.batch
                state.total += loss * len(rows)
                if clock.due():
                    state.seconds = clock.spent
                    keep(lesson.kept, digest, state, weights, rule, optimizer, generator)
                    mean = state.total / min(state.place, count)
                    progress(
                        f"epoch {state.epoch}/{plan.epochs}, step {state.step} of {steps}: loss {mean:.4f}, "
                        f"about {clock.left(state.step, steps):.0f} s left"
                    )
            state = after_epoch(lesson, state, weights, generator, clock, steps, progress)
    if not finite(state.kept):
        raise BadInput(
            f"diverged in the last step, {state.step}: weights are not finite; try a smaller [training] learning_rate "
            "or weight_decay"
        )
    return Fit(state.kept, state.epoch_kept, tuple(state.history))


def after_epoch(
    lesson: Lesson,
    state: State,
    weights: Mapping[str, torch.Tensor],
    generator: torch.Generator,
    clock: Clock,
    steps: int,
    progress: Progress,
) -> State:
    """Judged on the held-out texts, kept if it is to be, and the next epoch begun."""
    import torch

    plan, count = lesson.plan, len(lesson.tokens)
    with torch.no_grad():
        read = dict(weights) | {"embedding": lesson.rule.table(weights["embedding"])}
    now = {name: value.detach().numpy().copy() for name, value in read.items()}
    accuracy = share_right(torch_logits(lesson.shape, now, lesson.held_out[0]), lesson.held_out[1])
    kept, epoch_kept = state.kept, state.epoch_kept
    if plan.keep == "last" or not state.history or accuracy > max(state.history):
        kept, epoch_kept = now, state.epoch
    left = f", about {clock.left(state.step, steps):.0f} s left" if state.epoch < plan.epochs else ""
    progress(
        f"epoch {state.epoch}/{plan.epochs}: loss {state.total / count:.4f}, held-out accuracy {accuracy:.4f}{left}"
    )
    order = torch.randperm(count, generator=generator) if state.epoch < plan.epochs else state.order
    history = [*state.history, accuracy]
    return State(state.epoch + 1, 0, state.step, 0.0, order, kept, epoch_kept, history, clock.spent)


class Clock:
    """Seconds spent on a training, those of earlier processes included."""

    def __init__(self, before: float) -> None:
        self.before, self.began = before, time.monotonic()
        self.last = self.began

    @property
    def spent(self) -> float:
        return self.before + time.monotonic() - self.began

    def due(self) -> bool:
        now = time.monotonic()
        if now - self.last < EVERY:
            return False
        self.last = now
        return True

    def left(self, step: int, steps: int) -> float:
        """By all steps so far: the first after going on may stand beside the judging of a whole epoch."""
        return self.spent / max(1, step) * (steps - step)


def kept_place(out: Path) -> Path:
    """Where an unfinished training of the folder `out` is kept: beside it."""
    return out.parent / f".{out.name}.training"


def keep(
    place: Path,
    digest: str,
    state: State,
    weights: Mapping[str, torch.Tensor],
    rule: TrainingRule,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
) -> None:
    """The whole state in one file, which is replaced at once or not at all."""
    import torch

    unfinished = place.with_name(f"{place.name}.{os.getpid()}")
    said = {name: getattr(state, name) for name in ("epoch", "place", "step", "total", "epoch_kept", "seconds")}
    content = {
        "digest": digest,
        "state": json.dumps(said | {"history": state.history}),
        "order": state.order,
        "kept": {name: torch.from_numpy(value) for name, value in state.kept.items()},
        "weights": {name: value.detach() for name, value in weights.items()},
        "own": {name: value.detach() for name, value in rule.own.items()},
        "optimizer": optimizer.state_dict(),
        "generator": generator.get_state(),
    }
    try:
        with unfinished.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(place)
    except (OSError, RuntimeError) as error:  # torch wraps what the disk says
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise BadInput(
            f"{place}: the unfinished training cannot be kept ({reason}); make room and train again"
        ) from error


def resumed(
    place: Path,
    digest: str,
    weights: Mapping[str, torch.Tensor],
    rule: TrainingRule,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
) -> State | None:
    """The state that was kept of this same training, everything put back; None where there is none."""
    import torch

    if not place.is_file():
        return None
    try:
        content: dict[str, Any] = torch.load(place, weights_only=True)
        if content["digest"] != digest:
            return None
        said = json.loads(content["state"])
    except Exception:  # a file that was cut short or is none of ours: as if it were not there
        return None
    with torch.no_grad():
        for name, value in content["weights"].items():
            weights[name].copy_(value)
        for name, value in content["own"].items():
            rule.own[name].copy_(value)
    optimizer.load_state_dict(content["optimizer"])
    generator.set_state(content["generator"])
    kept = {name: value.numpy() for name, value in content["kept"].items()}
    return State(order=content["order"], kept=kept, **said)


def diverged(
    lesson: Lesson,
    state: State,
    loss: float,
    weights: Mapping[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    digest: str,
) -> BadInput:
    """What is said of a loss that is no number; the state before that step is kept, where it is a good one."""
    good = finite({name: value.detach().numpy() for name, value in weights.items()})
    if good:
        keep(lesson.kept, digest, state, weights, lesson.rule, optimizer, generator)
    left = f"the state before it is kept in {lesson.kept}" if good else "weights are not finite"
    if not good and lesson.kept.is_file():
        left += f", and the last good state is kept in {lesson.kept}"
    return BadInput(
        f"diverged: at step {state.step + 1}, of epoch {state.epoch}, the loss is {loss}; {left}; try a smaller "
        "[training] learning_rate or weight_decay"
    )


def finite(weights: Arrays) -> bool:
    return all(np.isfinite(value).all() for value in weights.values())


def disturb(tokens: torch.Tensor, plan: TrainingPart, generator: torch.Generator) -> torch.Tensor:
    """A batch with some words unknown, and every text moved right by 0..shift positions of its padding."""
    import torch

    if plan.word_dropout:
        dropped = (torch.rand(tokens.shape, generator=generator) < plan.word_dropout) & (tokens != PAD)
        tokens = torch.where(dropped, UNKNOWN, tokens)
    if plan.shift:
        length = tokens.shape[1]
        room = (length - (tokens != PAD).sum(dim=1)).clamp(max=plan.shift)
        offset = (torch.rand(len(tokens), generator=generator) * (room + 1)).long()
        source = torch.arange(length) - offset.unsqueeze(1)
        tokens = torch.where(source >= 0, tokens.gather(1, source.clamp(min=0)), PAD)
    return tokens


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread: sums in one order, on any number of cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def kept_memory() -> Iterator[None]:
    """glibc keeps what tensors free, and gives it back at the end: else every step returns megabytes to the system and
    gets them again page by page, up to two fifths of a training. The numbers are the same; other libraries of C are
    left alone. Of blocks above `KEPT_BLOCK`, the most that glibc allows, nothing changes."""
    import ctypes

    with suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, KEPT_BLOCK)
        library.mallopt(M_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        with suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)


def torch_logits(shape: Shape, weights: Arrays, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
    import torch

    named = {name: torch.from_numpy(value) for name, value in weights.items()}
    with torch.inference_mode():
        parts = [logits(shape, named, batch.long()) for batch in torch.split(torch.from_numpy(tokens), BATCH)]
        values: NDArray[np.float32] = torch.cat(parts).numpy()
    return values


def share_right(values: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """argmax (the lowest index wins ties) equal to the label."""
    return float((values.argmax(axis=1) == labels).mean())
