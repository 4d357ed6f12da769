"""A training recipe: one TOML file that says what to learn from, which network, and how.

Every key, with its default (keys marked * have none); paths are relative to the recipe file.

    [data]
    train = "train.tsv"          # * .tsv/.csv with a header, .jsonl, .jsonl.gz, .parquet
    text = "sentence"            # * column of the text
    label = "label"              # * column of the label: a class number, or a name
    labels = ["negative", "positive"]   # names of the classes, in order; default: what the file holds, sorted
    only = { source = "web" }    # keep the rows whose column has this value; default: keep all
    package = "some_package"     # the files belong to this installed Python package instead
    strip_html = false           # replace <tags> by a space
    held_out = "dev.tsv"         # a file of its own ...
    held_out_text = "content"    #   (its columns, when they are called otherwise)
    held_out_label = "label"
    held_out_rows = 1000         # ... or this many rows, drawn with the seed from the rows that pass held_out_only
    held_out_only = { source = "web" }  # rows that may be held out; default: all of a file of its own, else as `only`

    [vocabulary]
    size = 20000                 # most frequent words of the training texts, with <pad> = 0 and <unk> = 1 among them
    lowercase = true
    split = "whitespace"         # or "words"
    length = 200                 # longer texts are cut, shorter ones padded

    [network]
    architecture = "bilstm"      # * "mmws", "mean", "static", "cnn", "kim", "msr-cnn", "lstm", "bilstm", "gru",
                                 # "bigru", "transformer" or "minilm"
    embedding = 50               # default 2 (mmws), 16 (mean, cnn), 32 (transformer), 384 (minilm), else 50
    vectors = "random"           # what the embedding begins with: or "glove" (50 numbers); default "glove" (static)
    fixed = false                # true: the embedding stays as it begins; default true (static)
    hidden = []                  # sizes of the hidden ReLU layers; default [64] (mmws), [32] (mean, static, cnn),
                                 # [100] (msr-cnn), else none
    filters = 32                 # cnn (32), kim (100, of each width), msr-cnn (150)
    width = 3                    # cnn, msr-cnn
    widths = [3, 4, 5]           # kim only
    columns = 10                 # msr-cnn only: the text is folded into so many
    unit = true                  # static only: the mean is scaled to length 1
    units = 150                  # recurrent only: in each direction
    pooling = "mean"             # recurrent only: or "max", or "last" (state) over the words of a text
    layers = 1                   # transformer; minilm: the first so many of 6
    heads = 4                    # transformer only
    inner = 64                   # transformer only: ReLUs of each layer
    norm = "division"            # transformer only: or "no variance", which does not divide
    positions = "learned"        # transformer only: or "none"
    dynamic = true               # recurrent, transformer, static: the model takes any length; false: padded

    [training]
    epochs = 6
    batch = 128
    learning_rate = 0.003        # AdamW, falling linearly to 0
    weight_decay = 0.01
    dropout = 0.3                # of embeddings and of hidden values
    word_dropout = 0.0           # share of words replaced by <unk>
    noise = 0.0                  # standard deviation of Gaussian noise on embeddings
    shift = 0                    # texts begin up to this many positions later, at random
    pieces = 0                   # learn from every run of this many words of a text; 0: from its first `length` words
    keep = "last"                # or "best": the epoch that is best on the held-out rows (then not blind any more)
    seed = 0

    [defence]                    # what makes the network hard to fool, or provable; optional
    method = "smooth-contract"   # * a line of defences/defence_table.py; the keys are those of the method, whose file
                                 # there says what they mean in its paper; defaults are the paper's
    synonyms = "synonyms.json"   # * where synonyms are used: {"word": ["synonym", ...]}
    max_per_word = 8             # where synonyms are used, but smooth: the first so many; default 50 (dne)
    examples = "results.jsonl"   # * ada, mixada: of a run of attack or certify on training texts
    times = 1                    # ada, mixada: how often an epoch learns from each
    mix = 0.5                    # mixada: weight of the mixtures
    rounds = 4                   # smooth (4), smooth-ibp (2), swap-hinge (0): how often embeddings are averaged over
                                 # synonyms
    l1 = 1.0                     # contract, smooth-ibp (0: no bound): largest sum of absolute values in a row of the
                                 # recurrent matrices
    steps = 5                    # pgd, freelb, ascc (5), freelb++ (30), ta-vat (2), infobert (3): steps uphill
    rate = 0.03                  # of a step: pgd, freelb, freelb++ (0.03), ta-vat (0.05), infobert (0.04), dne (10);
                                 # mask (0.3): share of the words that are hidden
    magnitude = 0.05             # of the first one: pgd, freelb, freelb++ (0.05), ta-vat (0.2), infobert (0.08)
    norm = 0.01                  # of a perturbation at most, 0 for no limit: pgd, freelb (0.01), ta-vat (0.5)
    alpha = 10.0                 # ascc (10), a2t (1), mixada (2), infobert (0.005)
    beta = 4.0                   # ascc (4), infobert (0.005)
    low = 0.5                    # infobert: words by the rank of their gradient, from this share
    high = 0.9                   # infobert: up to this share
    concentration = 1.0          # dne: of the Dirichlet distribution
    decay = 0.5                  # dne: of synonyms of synonyms
    ascents = 3                  # dne
    texts = 0.2                  # a2t (0.2), ada-live (0.1): share of a batch that is attacked
    words = 0.1                  # a2t (0.1), ada-live (0.2): share of a text's words that are swapped at most
    excess = 1.0                 # sp-defense: log ratio of frequencies from which a word is special
    clean = 0.5                  # rand, sp-defense: share of the epochs that is learned without, before it
    kappa = 0.8                  # ibp, crown-ibp, smooth-ibp, swap-hinge: weight of the certified loss in the end
    rising = 0.8                 # ibp, crown-ibp, smooth-ibp, swap-hinge: share of the epochs in which it rises
    swaps = 3                    # swap-hinge: numbers of swaps 1 .. 3 count
    margin = 1.0                 # swap-hinge: the margin that the bounds are pushed to
    vectors = "glove.txt"        # vectors, counter-fit: given vectors of words, or the name of an installed package
    antonyms = ["antonyms.txt"]  # counter-fit: two words a line
    delta = 1.0                  # counter-fit: the distance that antonyms keep
    gamma = 0.0                  # counter-fit: the distance that synonyms may have
    rho = 0.8                    # counter-fit: the cosine from which words are near
    k1 = 0.1                     # counter-fit: weight of antonyms
    k2 = 0.1                     # counter-fit: weight of synonyms
    k3 = 0.1                     # counter-fit: weight of what was near

    [swaps]                      # copied beside the model and named in the task file; optional
    file = "synonyms.json"       # *
    max_per_word = 8

    [task]
    limit = 200                  # `[data] limit` of the written task file; default: none
    training_texts = 0           # so many training texts, drawn with the seed, as training_texts.jsonl with a task file
                                 # of their own, training_task.toml: to attack, for `[defence] examples`, or for rho
"""

from __future__ import annotations

import difflib
import importlib.util
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from .architectures.architecture_table import ARCHITECTURES
from .architectures.glove_vectors import NUMBERS as GLOVE_NUMBERS
from .architectures.network_shape import Body
from .defences.defence_table import DEFENCES
from .defences.training_rule import Defence
from .encoded import NamedSplit
from .errors import BadInput, unreadable

Section = TypeVar("Section")


SECTIONS = ("data", "vocabulary", "network", "training", "defence", "swaps", "task")
LARGEST = 1_000_000
"""Of the numbers in [network], and of a length."""


@dataclass(frozen=True)
class DataPart:
    train: str
    text: str
    label: str
    labels: tuple[str, ...] = ()
    only: dict[str, str] = field(default_factory=dict)
    package: str = ""
    strip_html: bool = False
    held_out: str = ""
    held_out_text: str = ""
    held_out_label: str = ""
    held_out_rows: int = 0
    held_out_only: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class VocabularyPart:
    size: int = 20000
    lowercase: bool = True
    split: NamedSplit = "whitespace"
    length: int = 200


@dataclass(frozen=True)
class TrainingPart:
    epochs: int = 6
    batch: int = 128
    learning_rate: float = 0.003
    weight_decay: float = 0.01
    dropout: float = 0.3
    word_dropout: float = 0.0
    noise: float = 0.0
    shift: int = 0
    pieces: int = 0
    keep: Literal["last", "best"] = "last"
    seed: int = 0


@dataclass(frozen=True)
class SwapsPart:
    file: str
    max_per_word: int = 8


@dataclass(frozen=True)
class TaskPart:
    limit: int = 0
    training_texts: int = 0


@dataclass(frozen=True)
class Recipe:
    """A recipe as read: every key in its range; whether files exist is found out when they are read."""

    path: Path
    data: DataPart
    vocabulary: VocabularyPart
    network: Body
    training: TrainingPart
    defence: Defence | None
    swaps: SwapsPart | None
    task: TaskPart

    def data_file(self, name: str) -> Path:
        """A data file, relative to the installed package if the recipe names one, else to the recipe."""
        if not self.data.package:
            return self.path.parent / name
        return package_folder(self.data.package, self.path) / name


def package_folder(name: str, path: Path) -> Path:
    """The folder of an installed package, found without importing it."""
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise BadInput(f"{path}: [data] package: no Python package {name!r} is installed; pip install its distribution")
    return Path(next(iter(found.submodule_search_locations)))


def read_recipe(path: Path) -> Recipe:
    """Read and check a recipe; every complaint is one line that names the file, the section and the key."""
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}: not UTF-8 ({error.reason})") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML: {error}") from error
    return recipe_of(table, path)


def recipe_of(said: Mapping[str, Any], path: Path) -> Recipe:
    """What a recipe file says, checked; `path` is the file."""
    table = dict(said)
    refuse_unknown(table, SECTIONS, f"{path}: section")
    recipe = Recipe(
        path,
        read_section(DataPart, table, "data", path),
        read_section(VocabularyPart, table, "vocabulary", path),
        read_section(chosen(ARCHITECTURES, "architecture", table, "network", path), table, "network", path),
        read_section(TrainingPart, table, "training", path),
        read_section(chosen(DEFENCES, "method", table, "defence", path), table, "defence", path)
        if "defence" in table
        else None,
        read_section(SwapsPart, table, "swaps", path) if "swaps" in table else None,
        read_section(TaskPart, table, "task", path),
    )
    check_ranges(recipe)
    return recipe


def refuse_unknown(table: dict[str, Any], known: Iterable[str], where: str) -> None:
    known = tuple(known)
    for key in table:
        if key not in known:
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
            raise BadInput(f"{where} {key!r} is unknown; the nearest known one is {nearest!r}")


def read_section(part: type[Section], table: dict[str, Any], name: str, path: Path) -> Section:
    """One table of the file as its dataclass."""
    given = section(table, name, path)
    hints = get_type_hints(part)
    known = {key.name: key for key in fields(part)}  # type: ignore[arg-type]
    refuse_unknown(given, known, f"{path}: [{name}] key")
    for key, needed in known.items():
        if key not in given and needed.default is MISSING and needed.default_factory is MISSING:
            raise BadInput(f"{path}: [{name}] has no key {key!r}, which has no default")
    return part(**{key: checked(value, hints[key], f"{path}: [{name}] {key}") for key, value in given.items()})


def section(table: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    given = table.get(name, {})
    if not isinstance(given, dict):
        raise BadInput(f"{path}: {name!r} must be a section [{name}]")
    return given


def chosen(kinds: Mapping[str, type[Section]], key: str, table: dict[str, Any], name: str, path: Path) -> type[Section]:
    """The kind that a section names; the key that names it is taken out, and the other keys are that kind's own."""
    given = dict(section(table, name, path))
    if key not in given:
        raise BadInput(f"{path}: [{name}] has no key {key!r}, which has no default")
    which = given.pop(key)
    if not isinstance(which, str) or which not in kinds:
        raise BadInput(f"{path}: [{name}] {key} is {which!r}; it must be one of {', '.join(kinds)}")
    own = keys_of(kinds[which])
    for other in given:
        owners = [kind for kind, part in kinds.items() if other in keys_of(part)]
        if other not in own and owners:
            raise BadInput(f"{path}: [{name}] {other} belongs to {key} {', '.join(map(repr, owners))}, not {which!r}")
    table[name] = given
    return kinds[which]


def keys_of(part: type[Any]) -> set[str]:
    return {key.name for key in fields(part)}


def checked(value: Any, kind: Any, where: str) -> Any:
    """`value` as `kind`, the annotation of the field it is meant for."""
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise BadInput(f"{where} is {value!r}; it must be one of {', '.join(get_args(kind))}")
        return value
    if kind in (tuple[int, ...], tuple[str, ...]):
        element, name = (str, "strings") if kind == tuple[str, ...] else (int, "integers")
        if not isinstance(value, list) or any(type(item) is not element for item in value):
            raise BadInput(f"{where} is {value!r}; it must be a list of {name}")
        return tuple(value)
    if kind == dict[str, str]:
        if not isinstance(value, dict) or len(value) != 1 or any(type(item) is not str for item in value.values()):
            raise BadInput(f'{where} is {value!r}; it must be one column and its value, {{ column = "value" }}')
        return value
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        name = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}[kind]
        raise BadInput(f"{where} is {value!r}; it must be {name}")
    return value


def sizes_of(network: Body) -> Iterator[tuple[str, int]]:
    """Every whole number of it, by its key."""
    for key in fields(network):
        value = getattr(network, key.name)
        yield from ((key.name, size) for size in (value if type(value) is tuple else (value,)) if type(size) is int)


def check_ranges(recipe: Recipe) -> None:
    data, words, network, training = recipe.data, recipe.vocabulary, recipe.network, recipe.training
    shares = (training.dropout, training.word_dropout)
    rules = (
        (bool(data.held_out) != bool(data.held_out_rows), "[data] needs either held_out (a file) or held_out_rows"),
        (data.held_out_rows >= 0, "[data] held_out_rows must be positive"),
        (len(set(data.labels)) == len(data.labels) != 1, "[data] labels must name two or more different classes"),
        (words.size >= 3, "[vocabulary] size must be at least 3: <pad>, <unk> and a word"),
        (words.length >= 1, "[vocabulary] length must be at least 1"),
        (words.length <= LARGEST, f"[vocabulary] length must be at most {LARGEST:,}"),
        (network.embedding >= 1, "[network] embedding must be at least 1"),
        (all(size >= 1 for size in network.hidden), "[network] hidden sizes must be at least 1"),
        *((size <= LARGEST, f"[network] {name} must be at most {LARGEST:,}") for name, size in sizes_of(network)),
        *((holds, f"[network] {rule}") for holds, rule in network.rules(words.length)),
        *((holds, f"[defence] {rule}") for holds, rule in (recipe.defence.rules(network) if recipe.defence else ())),
        (training.epochs >= 1 and training.batch >= 1, "[training] epochs and batch must be at least 1"),
        (0 < training.learning_rate <= 1, "[training] learning_rate must be above 0 and at most 1"),
        (math.isfinite(training.weight_decay) and training.weight_decay >= 0, "[training] weight_decay must be >= 0"),
        (all(0 <= share < 1 for share in shares), "[training] dropout and word_dropout must be in [0, 1)"),
        (math.isfinite(training.noise) and training.noise >= 0, "[training] noise must be >= 0"),
        (training.shift >= 0, "[training] shift must be >= 0"),
        (
            network.package is None or not (training.word_dropout or training.pieces),
            "[training] word_dropout and pieces are for networks whose words are counted",
        ),
        (
            network.vectors != "glove" or network.embedding == GLOVE_NUMBERS,
            f'[network] vectors = "glove" needs embedding = {GLOVE_NUMBERS}',
        ),
        (not (training.shift and network.knows_padding), "[training] shift is for networks that read padding"),
        (0 <= training.pieces <= words.length, "[training] pieces must be between 0 and length"),
        (0 <= training.seed < 2**63, "[training] seed must be between 0 and 2^63 - 1"),
        (recipe.swaps is None or recipe.swaps.max_per_word >= 1, "[swaps] max_per_word must be at least 1"),
        (recipe.task.limit >= 0 and recipe.task.training_texts >= 0, "[task] numbers must be positive"),
    )
    for holds, rule in rules:
        if not holds:
            raise BadInput(f"{recipe.path}: {rule}")
