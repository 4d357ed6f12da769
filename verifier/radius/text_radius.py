"""The safe radius of one text, from its vectors to an interval with evidence at both ends.

    radius(I) = inf { ||(x_I - c_I) / w|| : some class beats the label at x, x equal to c outside the words I }

Cheap things come first, for every set of words: points at which the class changes, the nearest word that changes it,
and a ball that linear bounds prove. What time is left is spent on larger balls, by search, set after set.
"""

from __future__ import annotations

import math
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Disagreement, Unsupported
from swapproof.encodings.network import Floats, Indices
from swapproof.proofs import check

from ..queries.question import floor_float
from ..queries.search import Way
from ..tasks.inputs import Text
from .ball_search import plainly_safe, search
from .behind_embedding import classes_of
from .moving_ball import Ball
from .moving_network import Moving, PlainNetwork, moving_network
from .proved_balls import PLAIN, Claims, ExactCase, FormCase, FormClaims, finest_radius, rounded_down
from .radius_setting import RadiusQuestion, RadiusSetting, Rooms
from .saliency import agreement, effects, lime_weights
from .seeking.nearest_point import border_points, drawn_in, refined, replayed
from .seeking.nearest_words import AnsweringWords, Candidates, WordsFound
from .seeking.several_words import SentenceSearch
from .seeking.word_sweep import Sweep
from .smooth.smooth_balls import SmoothMoving, SmoothWords, near_points, safe_radius
from .smooth.smooth_forms import BallForms, SmoothNetwork

Array = NDArray[Any]
GAP = 1e-3
"""An interval is called exact when its ends differ by no more than this part of the high one."""
STARTS = 8
"""Of the search for near points: the center, the nearest word, and random ones."""
HALVINGS = 16
FURTHEST = 2.0
"""Where nothing changes the class, balls are looked for up to so many diameters of the embedding."""
SHRINKING = (1.0, 0.999, 0.98, 0.9, 0.7, 0.4)
"""Of a radius that float64 holds for safe, what is offered to the checker, until it accepts."""
NEAR = 1 - GAP / 4
"""Where a ball is proved and one so little larger was given up, nothing between them is tried."""
WAYS: tuple[Way, Way] = ("phases", "inputs")
FEW_INPUTS = 4
"""Up to so many, halving them is tried too, after splitting neurons."""
CHEAPEST = 1e-4
"""Seconds that checking a region takes at least."""
SEARCHED_AGAIN = 200
"""Regions of a leaf that the checker does not follow."""
AGREEING = 1e-3
MANY_NEURONS = 400
"""That move; from there on forms prove balls faster than bounds by substitution, and nearly as large."""
SMOOTH_SHARE = 0.8
"""Of the time of a text, for the proofs of a smooth network; the rest is for points and words."""
PROVING = 0.9
"""The part of the time of a text that is left for search and checks; the rest is for writing it down."""


@dataclass(frozen=True)
class Measured:
    """Of a text what a line says, beside what opens it; and its certificate."""

    part: dict[str, Any]
    certificate: bytes | None
    evaluations: int


@dataclass(eq=False)
class Words:
    """A set of words that move together: what is known of it so far."""

    words: tuple[int, ...]
    free: Indices
    moving: Moving | SmoothMoving
    balls: list[Ball]
    low: Fraction = Fraction(0)
    trees: tuple[bytes, ...] = ()
    high: float = math.inf
    point: Floats | None = None
    point_distance: float = math.inf
    found: WordsFound | None = None
    like: WordsFound | None = None
    """The same among words of the same part of speech, where it was asked."""
    sentence: dict[int, str] | None = None
    """Words that change the class together, by the words they replace."""
    sentence_distance: float = math.inf
    exact_case: ExactCase | FormCase | None = None
    cost: float = 0.0
    """Seconds that the checker took for a proof without splits."""

    @property
    def neurons(self) -> int:
        return 0 if isinstance(self.moving, SmoothMoving) else sum(map(len, self.moving.stack.layers))

    @property
    def closed(self) -> bool:
        return math.isfinite(self.high) and float(self.low) >= (1 - GAP) * self.high


@dataclass(eq=False)
class TextRadius:
    """One text, asked about set after set."""

    setting: RadiusSetting
    question: RadiusQuestion
    text: Text
    widths: Floats
    diameter: float
    until: float
    evaluations: int = 0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    by_forms: bool = False
    """Whether forms prove the balls: of smooth networks, and where trees would take the checker too long."""

    def __post_init__(self) -> None:
        self.room: Rooms = self.setting.room(self.text.encoded.tokens)
        self.center = self.setting.center(self.text)
        self.finest = finest_radius(self.widths)
        self.exact_center: Floats = self.center.astype(np.float64)
        self.values = self.room.plain.values(self.exact_center)
        outputs = self.answers(self.exact_center[None])
        logits = self.values[self.room.plain.logits]
        apart = np.abs(outputs[0].astype(np.float64) - logits).max()
        if not apart <= AGREEING * (1.0 + np.abs(logits).max()):
            raise Disagreement(f"onnxruntime and the network as it was read differ by {apart:.3g} on a text")
        self.predicted = int(classes_of(outputs, self.setting.labels)[0])

    def answers(self, points: Floats) -> Array:
        self.evaluations += len(points)
        return self.room.behind.answers(points)

    def free_of(self, words: Sequence[int]) -> Indices:
        """The inputs that are the vectors of these words."""
        width, places = self.setting.vectors.shape[1], self.places
        tokens = [t for word in words for t in range(places[word][0], sum(places[word]))]
        return np.array([width * token + d for token in sorted(tokens) for d in range(width)], dtype=np.int64)

    @property
    def places(self) -> list[tuple[int, int]]:
        """First token and number of tokens, of every word; with padding, of every padded place after the words."""
        own = list(self.text.encoded.places)
        if self.question.padding:
            taken = {t for first, count in own for t in range(first, first + count)}
            own += [(t, 1) for t in range(len(self.text.encoded.tokens)) if t not in taken]
        return own

    def name(self, word: int) -> str:
        words = self.text.encoded.words
        return words[word] if word < len(words) else "<padding>"

    def measure(self) -> Measured:
        label = self.text.label
        if self.predicted != label:
            return Measured({"status": "already_wrong", "safe_radius": {"low": 0.0, "high": 0.0}, "words": []}, None, 1)
        rivals = [rival for rival in range(self.setting.labels) if rival != label]
        smooth = isinstance(self.room.plain, SmoothNetwork)
        sets = [self.begun(words, rivals, look=not smooth) for words in self.sets(rivals)]
        try:
            self.by_forms = smooth or max(each.neurons for each in sets) > MANY_NEURONS
            kind = FormClaims if self.by_forms else Claims
            claims = kind(self.room.behind, self.center, self.widths, label, rivals, self.question.norm)
            for each in sets:
                each.exact_case = claims.place(each.free)
        except (check.Refused, check.Unusable) as error:
            raise Unsupported(f"{self.setting.path}: outside the format of certificates: {error}") from None
        began, own = time.monotonic(), self.until - time.monotonic()
        for each in sets:
            self.prove_plainly(each, began + (SMOOTH_SHARE if smooth else 1.0) * own)
        for each in sets if smooth else []:
            # What is cheap for rectifiers costs more than a proof here, and comes after it.
            if time.monotonic() < self.until:
                self.look(each)
        left = sorted(sets, key=lambda each: min(each.high, 1e300))
        for number, each in enumerate(left):
            rest = self.until - time.monotonic()
            if rest > 0 and not each.closed and not self.by_forms:
                self.improve(each, rest / (len(left) - number))
        for each in sorted(sets, key=lambda each: each.words):
            if each.low and each.exact_case is not None:
                each.exact_case.keep(each.low, each.trees)
        certificate = claims.certificate() if claims.balls else None
        return Measured(self.told(sets), certificate, self.evaluations)

    def sets(self, rivals: Sequence[int]) -> list[tuple[int, ...]]:
        """Which words move together; of K the K whose own plain balls are smallest."""
        every = range(len(self.places))
        match self.question.words:
            case "one":
                return [(word,) for word in every]
            case "all":
                return [tuple(every)]
            case number:
                if int(number) >= len(every):
                    return [tuple(every)]
                alone = [(self.plain_radius(self.begun((word,), rivals, look=False)), word) for word in every]
                return [tuple(sorted(word for _, word in sorted(alone)[: int(number)]))]

    def begun(self, words: tuple[int, ...], rivals: Sequence[int], *, look: bool = True) -> Words:
        """A set with the points and words at which the class was seen to change."""
        free = self.free_of(words)
        plain = self.room.plain
        moving: Moving | SmoothMoving
        if isinstance(plain, SmoothNetwork):
            moving = SmoothMoving(BallForms(plain, self.values, free, self.question.norm))
        else:
            moving = moving_network(plain, self.values, free)
        widths = np.tile(self.widths, len(free) // len(self.widths))
        balls = [Ball(self.exact_center[free], widths, self.question.norm, self.text.label, rival) for rival in rivals]
        found = Words(words, free, moving, balls)
        if look:
            self.look(found)
        return found

    def look(self, each: Words) -> None:
        """For words and points at which the class changes."""
        self.look_for_words(each)
        self.look_for_sentences(each)
        self.look_for_points(each, self.starts(each))

    def breaks(self, free: Indices, point: Floats) -> bool:
        """Whether onnxruntime answers with another class there."""
        whole = self.exact_center.copy()
        whole[free] = point
        return int(classes_of(self.answers(whole[None]), self.setting.labels)[0]) not in (self.text.label, -1)

    def look_for_words(self, each: Words) -> None:
        """Of a single place every word; of several the nearest of any one of them."""
        width = self.setting.vectors.shape[1]
        if len(each.free) != width:
            return
        token = self.text.encoded.tokens[int(each.free[0]) // width]
        rows = self.setting.candidates
        own = int(np.searchsorted(rows, token)) if token in self.setting.names else -1
        place = int(each.free[0]) // width

        def breaks(row: int) -> bool:
            return self.stands_for(each.free, {place: int(rows[row])}) and self.breaks(
                each.free, self.setting.words[row]
            )

        vectors = self.setting.words
        answering: AnsweringWords
        plain, products, among = self.room.plain, self.setting.products, None
        if isinstance(each.moving, SmoothMoving):
            answering, among = SmoothWords(each.moving.forms, vectors), each.moving.among(each.balls[0], vectors)
        elif isinstance(plain, PlainNetwork):
            answering = Sweep.of(plain, self.values, each.free, products)
        candidates = Candidates.of(answering, each.balls, products.vectors, own, among)
        each.found = candidates.nearest(breaks)
        each.high = min(each.high, upwards(each.found.distance))
        if self.question.same_part_of_speech and each.words[0] < len(self.text.encoded.words):
            words, keeps, at = self.text.encoded.words, self.setting.same_part_of_speech.keeps, each.words[0]

            def breaks_alike(row: int) -> bool:
                return keeps(words, at, [self.setting.names[int(rows[row])]])[0] and breaks(row)

            each.like = candidates.nearest(breaks_alike)

    def stands_for(self, free: Indices, swaps: Mapping[int, int]) -> bool:
        """Whether the model computes the same beside the embedding with these tokens in these places."""
        cutter = self.setting.cutter
        if cutter is None or not cutter.fixed:
            return True
        tokens = list(self.text.encoded.tokens)
        for place, token in swaps.items():
            tokens[place] = token
        return cutter.named(tokens) == self.room.behind.model.path.name

    def look_for_sentences(self, each: Words) -> None:
        """Of several words, each of one token: the nearest sentence of other words that onnxruntime confirms."""
        places = [self.places[word] for word in each.words]
        if len(places) < 2 or any(count != 1 for _, count in places):
            return
        if isinstance(each.moving, SmoothMoving) and not each.moving.cheap:
            return
        search = SentenceSearch(each.moving.stack, each.balls, self.setting.words, self.random)
        for _, rows in search.run():
            point = search.points(rows[None])[0]
            token = self.setting.candidates
            # Inputs are in the order of their tokens.
            ordered = sorted(each.words, key=lambda word: self.places[word])
            swaps = {self.places[w][0]: int(token[row]) for w, row in zip(ordered, rows, strict=True) if row >= 0}
            if self.stands_for(each.free, swaps) and self.breaks(each.free, point):
                named = {
                    w: self.setting.names[int(token[row])] for w, row in zip(ordered, rows, strict=True) if row >= 0
                }
                each.sentence = dict(sorted(named.items()))
                each.sentence_distance = upwards(each.balls[0].distance(point))
                each.high = min(each.high, each.sentence_distance)
                return

    def sentence_point(self, each: Words, swaps: Mapping[int, int]) -> Floats:
        """The vectors of the set with these tokens in the place of words."""
        ordered = sorted(each.words, key=lambda word: self.places[word])
        tokens = [swaps.get(word, self.text.encoded.tokens[self.places[word][0]]) for word in ordered]
        return np.asarray(self.setting.vectors[tokens], dtype=np.float64).reshape(-1)

    def starts(self, each: Words) -> Floats:
        center = each.balls[0].center
        size = self.diameter * each.balls[0].widths / math.sqrt(len(center))
        found = center + self.random.normal(size=(STARTS, len(center))) * size
        found[0] = center
        if each.found is not None and each.found.row is not None:
            found[1] = self.setting.words[each.found.row]
        if each.sentence is not None:
            tokens = {name: token for token, name in self.setting.names.items()}
            found[1] = self.sentence_point(each, {word: tokens[to] for word, to in each.sentence.items()})
        return found

    def look_for_points(self, each: Words, starts: Floats) -> None:
        """Narrows the high end by the nearest point that onnxruntime confirms."""
        stack = each.moving.stack
        for ball in each.balls:
            if isinstance(each.moving, SmoothMoving):
                self.take_point(each, ball, near_points(each.moving, ball, starts))
                continue
            met = border_points(stack, ball, starts)
            beaten = starts[ball.margin(stack, starts) <= 0]
            met = np.concatenate([met, beaten])
            if not len(met):
                continue
            near = drawn_in(stack, ball, met)
            nearest = near[np.argmin([ball.distance(point) for point in near])]
            near = np.concatenate([drawn_in(stack, ball, refined(stack, ball, nearest, self.random)[None]), near])
            self.take_point(each, ball, near)

    def take_point(self, each: Words, ball: Ball, near: Floats) -> None:
        """The nearest of these points that onnxruntime confirms."""
        point = replayed(ball, near, lambda at: self.breaks(each.free, at), self.room.behind.model.kind)
        if point is None:
            return
        distance = upwards(ball.distance(point))
        if distance < each.point_distance:
            each.point, each.point_distance = point, distance
            each.high = min(each.high, distance)

    def plain_radius(self, each: Words) -> float:
        """The greatest radius that linear bounds alone hold for safe, by halving."""
        most = each.high if math.isfinite(each.high) else FURTHEST * self.diameter
        if isinstance(each.moving, SmoothMoving):
            return safe_radius(each.moving, each.balls, most)
        if self.by_forms:
            forms = BallForms(self.room.forms, self.values, each.free, self.question.norm)
            return safe_radius(SmoothMoving(forms), each.balls, most)
        safe = [plainly_safe(each.moving, ball.with_radius(most)) for ball in each.balls]
        if all(safe):
            return most
        low, high = 0.0, most
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if middle and all(plainly_safe(each.moving, ball.with_radius(middle)) for ball in each.balls):
                low = middle
            else:
                high = middle
        return low

    def prove_plainly(self, each: Words, until: float) -> None:
        """A ball by linear bounds, which the checker accepts."""
        if time.monotonic() >= until:
            return
        found, proof = self.plain_radius(each), tuple(PLAIN for _ in each.balls)
        for part in SHRINKING:
            radius = rounded_down(part * found, self.finest)
            began = time.monotonic()
            accepted = radius > 0 and self.accepts(each, radius, proof, until)
            each.cost = max(each.cost, time.monotonic() - began)
            if accepted:
                return

    def accepts(self, each: Words, radius: Fraction, trees: Sequence[bytes], until: float) -> bool:
        """Whether the checker accepts these proofs; then they are what is known of the set."""
        if each.exact_case is None:
            return False
        balls = [ball.with_radius(float(radius)) for ball in each.balls]

        moving = each.moving

        def again(number: int, lows: Sequence[Fraction], highs: Sequence[Fraction], phases: bool) -> bytes:
            if isinstance(moving, SmoothMoving):
                return b""
            part = np.array([floor_float(end) for end in lows]), np.array([-floor_float(-end) for end in highs])
            way = WAYS[0] if phases else WAYS[1]
            met, _ = search(moving, balls[number], way, until - time.monotonic(), SEARCHED_AGAIN, part)
            return met.record.encoded() if met.answer == "unsat" and met.record is not None else b""

        found = each.exact_case.proved(radius, trees, until, again)
        if found is not None:
            each.low, each.trees = radius, found
        return found is not None

    def improve(self, each: Words, seconds: float) -> None:
        """Larger balls by search: first one just below the high end, then halfway between what holds and what does
        not."""
        until = time.monotonic() + seconds * PROVING
        most = each.high if math.isfinite(each.high) else FURTHEST * self.diameter
        target, failed = (1 - GAP / 2) * most, most
        while time.monotonic() < until and float(each.low) < NEAR * failed:
            radius = rounded_down(target, self.finest)
            if radius <= each.low:
                return
            if not self.tried(each, radius, until):
                if each.high < failed:  # a nearer point was met
                    failed = each.high
                    target = (1 - GAP / 2) * failed
                    continue
                failed = float(radius)
            target = (float(each.low) + failed) / 2

    def tried(self, each: Words, radius: Fraction, until: float) -> bool:
        """Whether this ball was proved; a point that was met on the way narrows the high end."""
        ways = WAYS if each.moving.stack.inputs <= FEW_INPUTS else WAYS[:1]
        share = (until - time.monotonic()) / len(ways) / 2
        for way in ways:
            trees, met = self.searched(each, radius, way, share)
            if met:
                self.look_for_points(each, np.array(met))
                return False
            if trees is not None and self.accepts(each, radius, trees, time.monotonic() + share + each.cost):
                return True
        return False

    def searched(
        self, each: Words, radius: Fraction, way: Way, seconds: float
    ) -> tuple[list[bytes] | None, list[Floats]]:
        """Proofs against each rival, None if one was not found; and points at which one wins."""
        trees: list[bytes] = []
        if isinstance(each.moving, SmoothMoving):
            return None, []
        until = time.monotonic() + seconds
        for ball in each.balls:
            rest = until - time.monotonic()
            regions = int(rest / max(each.cost, CHEAPEST) / len(each.balls))
            if rest <= 0 or regions < 1:
                return None, []
            found, met = search(each.moving, ball.with_radius(float(radius)), way, rest, regions)
            if found.answer != "unsat" or found.record is None:
                return None, met
            trees.append(found.record.encoded())
        return trees, []

    def told(self, sets: Sequence[Words]) -> dict[str, Any]:
        """What the line of the text says."""
        low, high = min(float(each.low) for each in sets), min(each.high for each in sets)
        contradicted = next((each for each in sets if float(each.low) > each.high), None)
        parts = [self.told_of(each) for each in sets]
        part: dict[str, Any] = {
            "status": "exact" if low >= (1 - GAP) * high and high < math.inf else "open",
            "level": "real",
            "safe_radius": {"low": low, "high": finite(high)},
            "words" if self.question.words == "one" else "sets": parts,
        }
        if self.question.words == "one" and (self.question.saliency or self.question.lime):
            self.add_saliency(sets, parts)
            part["agreement"] = agreement(parts)
        if contradicted is not None:
            place = ", ".join(map(str, contradicted.words))
            part["contradiction"] = (
                f"words {place}: a ball of {float(contradicted.low)} is proved, and a point within breaks"
            )
        return part

    def told_of(self, each: Words) -> dict[str, Any]:
        words = {"positions": list(each.words), "words": [self.name(word) for word in each.words]}
        if self.question.words == "one":
            words = {"position": each.words[0], "word": self.name(each.words[0])}
        point = None
        if each.point is not None:
            data = np.ascontiguousarray(each.point.astype(self.room.behind.model.kind)).tobytes()
            point = {"distance": each.point_distance, "vector": b64encode(data).decode()}
        part = {**words, "low": float(each.low), "high": finite(each.high), "exact": each.closed, "point": point}
        if each.found is not None:
            part |= self.told_of_words(each, each.found)
        elif each.sentence is not None:
            swaps = [{"position": word, "to": to} for word, to in each.sentence.items()]
            part["sentence"] = {"distance": each.sentence_distance, "swaps": swaps}
        return part

    def effects(self, each: Words) -> dict[str, float]:
        return effects(each.moving.stack, each.balls, self.setting.words, self.setting.nothing)

    def add_saliency(self, sets: Sequence[Words], parts: Sequence[dict[str, Any]]) -> None:
        """Exact effects of each word that is one token, and LIME's weights."""
        for each, part in zip(sets, parts, strict=True):
            if len(each.free) != len(self.setting.nothing):
                raise Unsupported("--saliency is of words that are one token each")
            part["saliency"] = self.effects(each)
        if self.question.lime:
            own = self.text.encoded.words
            weights = lime_weights(own, self.text.label, self.scores_without, self.question.lime)
            for each, part in zip(sets, parts, strict=True):
                part["saliency"]["lime"] = weights[each.words[0]] if each.words[0] < len(own) else 0.0

    def scores_without(self, rows: Sequence[Sequence[str | None]]) -> Floats:
        """[n, classes]: with the padding's vector in the place of words that are None."""
        points = np.repeat(self.exact_center[None], len(rows), axis=0).reshape(len(rows), -1, len(self.setting.nothing))
        for at, row in enumerate(rows):
            for word, kept in enumerate(row):
                if kept is None:
                    points[at, self.places[word][0]] = self.setting.nothing
        return self.answers(points.reshape(len(rows), -1)).astype(np.float64)[:, : self.setting.labels]

    def told_of_words(self, each: Words, found: WordsFound) -> dict[str, Any]:
        swap = None
        if found.row is not None:
            to = self.setting.names[int(self.setting.candidates[found.row])]
            swap = {"to": to, "distance": upwards(found.distance)}
        proved = float(each.low) > found.farthest * (1 + 1e-9)
        safe = "proved" if proved else "evaluated" if found.harmless else None
        part: dict[str, Any] = {"swap": swap, "any_word": safe, "same_vector": found.same}
        if self.question.same_part_of_speech:
            row = None if each.like is None else each.like.row
            part["swap_alike"] = None
            if each.like is not None and row is not None:
                to = self.setting.names[int(self.setting.candidates[row])]
                part["swap_alike"] = {"to": to, "distance": upwards(each.like.distance)}
        return part


def upwards(distance: float) -> float:
    """A little more than any rounding of a distance amounts to."""
    return distance if not math.isfinite(distance) else float(np.nextafter(distance * (1 + 2.0**-40), np.inf))


def finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def refuse_words(words: str) -> None:
    if words not in ("one", "all") and not (words.isdecimal() and int(words) > 1):
        raise Unsupported(f"--words {words!r}: can be one, all, or a number of words that move together, from 2 on")
