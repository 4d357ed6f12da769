"""A frozen space of typing errors: the bugs of TextBugger and DeepWordBug, the same for a word wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator

LOOK_ALIKES = {
    **{"-": "\u02d7", "9": "\u0b68", "8": "\u0222", "7": "\U0001d7d5", "6": "\u0431", "5": "\u01bd", "4": "\u13ce"},
    **{"3": "\u0417", "2": "\u01a7", "1": "l", "0": "O", "'": "`", "a": "\u0251", "b": "\u042c", "c": "\u03f2"},
    **{"d": "\u0501", "e": "\u0435", "f": "\U0001d692", "g": "\u0261", "h": "\u04bb", "i": "\u0456", "j": "\u03f3"},
    **{"k": "\U0001d48c", "l": "\u217c", "m": "\uff4d", "n": "\u0578", "o": "\u043e", "p": "\u0440", "q": "\u051b"},
    **{"r": "\u2c85", "s": "\u0455", "t": "\U0001d69d", "u": "\u057d", "v": "\u0475", "w": "\u051d", "x": "\u00d7"},
    **{"y": "\u0443", "z": "\u1d22"},
}
"""Of TextBugger's released code, as TextAttack has them."""
SHORTEST = 2


def typing_errors(word: str) -> tuple[str, ...]:
    """Those of one word, each once, in this order: an exchange of neighbours inside, a deletion inside, a look-alike,
    a letter twice, a space. The first and the last letter stay where the word is longer than three."""
    found = dict.fromkeys((*exchanged(word), *deleted(word), *alike(word), *doubled(word), *spaced(word)))
    return tuple(one for one in found if one != word)


def inside(word: str) -> range:
    if len(word) < SHORTEST or not any(letter.isalnum() for letter in word):
        return range(0)
    return range(1, len(word) - 1) if len(word) > 3 else range(len(word))


def exchanged(word: str) -> Iterator[str]:
    for at in inside(word):
        if at + 1 in inside(word):
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def deleted(word: str) -> Iterator[str]:
    for at in inside(word):
        yield word[:at] + word[at + 1 :]


def alike(word: str) -> Iterator[str]:
    for at in range(len(word)):
        if len(word) >= SHORTEST and word[at] in LOOK_ALIKES:
            yield word[:at] + LOOK_ALIKES[word[at]] + word[at + 1 :]


def doubled(word: str) -> Iterator[str]:
    for at in inside(word):
        yield word[:at] + word[at] + word[at:]


def spaced(word: str) -> Iterator[str]:
    for at in inside(word):
        if at:
            yield f"{word[:at]} {word[at:]}"
