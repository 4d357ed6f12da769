"""High ends: words, sentences and points near a text at which the class changes, each confirmed by onnxruntime."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from swapproof.encodings.network import Floats, Indices

from ..moving_ball import Ball
from ..moving_network import Moving, moving_network
from ..seeking.nearest_point import border_points, drawn_in, refined, replayed
from ..seeking.nearest_words import AnsweringWords, Candidates
from ..seeking.several_words import SentenceSearch
from ..seeking.word_sweep import Sweep
from ..smooth.smooth_balls import SmoothMoving, SmoothWords, near_points
from ..smooth.smooth_forms import BallForms, SmoothNetwork
from .moving_words import Words
from .text_place import TextPlace, upwards

STARTS = 8
"""Of the search for near points: the center, the nearest word, and random ones."""


@dataclass(frozen=True, eq=False)
class HighEnds:
    """Of the sets of words of one text."""

    at: TextPlace

    def begun(self, words: tuple[int, ...], rivals: Sequence[int], *, look: bool = True) -> Words:
        """A set with the points and words at which the class was seen to change."""
        free = self.at.free_of(words)
        plain = self.at.room.plain
        moving: Moving | SmoothMoving
        if isinstance(plain, SmoothNetwork):
            moving = SmoothMoving(BallForms(plain, self.at.values, free, self.at.question.norm))
        else:
            moving = moving_network(plain, self.at.values, free)
        widths = np.tile(self.at.widths, len(free) // len(self.at.widths))
        balls = [
            Ball(self.at.exact_center[free], widths, self.at.question.norm, self.at.text.label, rival)
            for rival in rivals
        ]
        found = Words(words, free, moving, balls, partial(answering_words, self.at, free, moving))
        if look:
            self.look(found)
        return found

    def look(self, each: Words) -> None:
        """For words and points at which the class changes."""
        self.look_for_words(each)
        self.look_for_sentences(each)
        self.look_for_points(each, self.starts(each))

    def look_for_words(self, each: Words) -> None:
        """Of a single place every word; of several the nearest of any one of them."""
        width = self.at.setting.vectors.shape[1]
        if len(each.free) != width:
            return
        token = self.at.text.encoded.tokens[int(each.free[0]) // width]
        rows = self.at.setting.candidates
        own = int(np.searchsorted(rows, token)) if token in self.at.setting.names else -1
        place = int(each.free[0]) // width

        def breaks(row: int) -> bool:
            return self.at.stands_for(each.free, {place: int(rows[row])}) and self.at.breaks(
                each.free, self.at.setting.words[row]
            )

        vectors, among = self.at.setting.products.vectors, None
        if isinstance(each.moving, SmoothMoving):
            among = each.moving.among(each.balls[0], self.at.setting.words)
        candidates = Candidates.of(each.answering(), each.balls, vectors, own, among)
        each.found = candidates.nearest(breaks)
        each.high = min(each.high, upwards(each.found.distance))
        if self.at.question.same_part_of_speech and each.words[0] < len(self.at.text.encoded.words):
            words, keeps, at = self.at.text.encoded.words, self.at.setting.same_part_of_speech.keeps, each.words[0]

            def breaks_alike(row: int) -> bool:
                return keeps(words, at, [self.at.setting.names[int(rows[row])]])[0] and breaks(row)

            each.like = candidates.nearest(breaks_alike)

    def look_for_sentences(self, each: Words) -> None:
        """Of several words, each of one token: the nearest sentence of other words that onnxruntime confirms."""
        places = [self.at.places[word] for word in each.words]
        if len(places) < 2 or any(count != 1 for _, count in places):
            return
        if isinstance(each.moving, SmoothMoving) and not each.moving.cheap:
            return
        search = SentenceSearch(each.moving.stack, each.balls, self.at.setting.words, self.at.random)
        for _, rows in search.run():
            point = search.points(rows[None])[0]
            token = self.at.setting.candidates
            # Inputs are in the order of their tokens.
            ordered = sorted(each.words, key=lambda word: self.at.places[word])
            swaps = {self.at.places[w][0]: int(token[row]) for w, row in zip(ordered, rows, strict=True) if row >= 0}
            if self.at.stands_for(each.free, swaps) and self.at.breaks(each.free, point):
                named = {
                    w: self.at.setting.names[int(token[row])] for w, row in zip(ordered, rows, strict=True) if row >= 0
                }
                each.sentence = dict(sorted(named.items()))
                each.sentence_distance = upwards(each.balls[0].distance(point))
                each.high = min(each.high, each.sentence_distance)
                return

    def sentence_point(self, each: Words, swaps: Mapping[int, int]) -> Floats:
        """The vectors of the set with these tokens in the place of words."""
        ordered = sorted(each.words, key=lambda word: self.at.places[word])
        tokens = [swaps.get(word, self.at.text.encoded.tokens[self.at.places[word][0]]) for word in ordered]
        return np.asarray(self.at.setting.vectors[tokens], dtype=np.float64).reshape(-1)

    def starts(self, each: Words) -> Floats:
        center = each.balls[0].center
        size = self.at.far * each.balls[0].widths / math.sqrt(len(center))
        found = center + self.at.random.normal(size=(STARTS, len(center))) * size
        found[0] = center
        if each.found is not None and each.found.row is not None:
            found[1] = self.at.setting.words[each.found.row]
        if each.sentence is not None:
            tokens = {name: token for token, name in self.at.setting.names.items()}
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
            near = np.concatenate([drawn_in(stack, ball, refined(stack, ball, nearest, self.at.random)[None]), near])
            self.take_point(each, ball, near)

    def take_point(self, each: Words, ball: Ball, near: Floats) -> None:
        """The nearest of these points that onnxruntime confirms."""
        point = replayed(ball, near, lambda at: self.at.breaks(each.free, at), self.at.room.behind.model.kind)
        if point is None:
            return
        distance = upwards(ball.distance(point))
        if distance < each.point_distance:
            each.point, each.point_distance = point, distance
            each.high = min(each.high, distance)


def answering_words(at: TextPlace, free: Indices, moving: Moving | SmoothMoving) -> AnsweringWords:
    """All words of the vocabulary in the place that is free."""
    if isinstance(moving, SmoothMoving):
        return SmoothWords(moving.forms, at.setting.words)
    return Sweep.of(at.room.plain, at.values, free, at.setting.products)  # type: ignore[arg-type]
