"""What is left to do is estimated by how large it is, said once after the first seconds, and bounded by the limits."""

from __future__ import annotations

import pytest

from swapproof.verifier.pages.progress import Count, duration


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("swapproof.verifier.pages.progress.time", found)
    return found


def count(clock: Clock, said: list[str], **more: float) -> Count:
    return Count("certify", 100, 0, say=said.append, began=clock.now, **more)  # type: ignore[arg-type]


def test_easy_ones_first_do_not_make_the_rest_look_easy(clock: Clock) -> None:
    said: list[str] = []
    found = count(clock, said, size=1000.0, most=60.0)
    clock.now += 4.0
    found(2, "exact", 5.0)
    assert found.left == pytest.approx(4.0 / 5 * 995)
    assert not said  # too early
    clock.now += 2.0
    found(1, "exact", 5.0)
    assert said == ["certify: about 10 min for the other 97, by their single swaps; 97 min at most"]
    clock.now += 60.0
    found(1, "open", 5.0)
    assert len(said) == 1
    found.working("text 17")
    assert found.line == "certify: 4 of 100 (3 exact, 1 open), about 72 min left, at text 17"


def test_no_more_is_expected_than_the_limits_allow(clock: Clock) -> None:
    found = count(clock, [], size=1000.0, most=2.0)
    clock.now += 30.0
    found(1, "open", 1.0)
    assert found.left == 198.0


def test_without_sizes_numbers_count(clock: Clock) -> None:
    said: list[str] = []
    found = count(clock, said)
    assert found.left is None
    clock.now += 10.0
    found(50)
    assert found.left == 10.0
    assert said == ["certify: about 10 s for the other 50"]


def test_what_is_done_soon_is_not_foretold(clock: Clock) -> None:
    said: list[str] = []
    found = count(clock, said)
    clock.now += 6.0
    found(99)
    assert not said


def test_spans_of_time_are_in_the_largest_unit_that_says_two_of_it() -> None:
    assert [duration(seconds) for seconds in (0.2, 90, 200, 7200, 200_000, 1e12)] == [
        "1 s at most", "90 s", "3 min", "2 h", "2 days", "years",
    ]  # fmt: skip
