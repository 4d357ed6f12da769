"""Regular English inflections, so that what holds of "film" and "movie" is known of "films" and "movies"."""

from __future__ import annotations

VOWELS = "aeiou"


def inflections(word: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The ways to spell the forms in -s, -ed and -ing of a regular word, each tuple with the likeliest first."""
    if word.endswith("y") and word[-2:-1] not in VOWELS:
        return (f"{word[:-1]}ies",), (f"{word[:-1]}ied",), (f"{word}ing",)
    if word.endswith("ie"):
        return (f"{word}s",), (f"{word}d",), (f"{word[:-2]}ying",)
    if word.endswith("e"):
        return (f"{word}s",), (f"{word}d",), (f"{word[:-1]}ing",)
    plural = f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"
    if len(word) >= 3 and word[-1] not in f"{VOWELS}wxy" and word[-2] in VOWELS and word[-3] not in VOWELS:
        doubled = word + word[-1]
        single = sum(letter in VOWELS for letter in word) == 1  # stop, stopped; but visit, visited
        past, present = (f"{doubled}ed", f"{word}ed"), (f"{doubled}ing", f"{word}ing")
        return (plural,), past if single else past[::-1], present if single else present[::-1]
    return (plural,), (f"{word}ed",), (f"{word}ing",)


def one_word_in_two_forms(first: str, second: str) -> bool:
    """Whether the longer begins like the shorter, whose end may differ: "move", "moving"; "tragedy", "tragic"."""
    shorter, longer = sorted((first, second), key=len)
    stem = shorter[:-2] if len(shorter) >= 6 else shorter.rstrip("ey")
    return longer.startswith(stem)
