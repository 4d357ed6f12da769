"""`swapproof train`: recipes, learning, and the task folder."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from swapproof.models.errors import BadInput, Unsupported
from swapproof.models.recipe import Recipe, read_recipe
from swapproof.verifier.tasks.inputs import vocabulary_of
from swapproof.verifier.tasks.task import onnx_of, read_task

GOOD = ("good", "fine", "great", "lovely")
BAD = ("bad", "poor", "awful", "ugly")
OTHER = ("the", "film", "is", "and", "plot", "it", "was", "so")
NETWORKS = {
    "mmws": 'architecture = "mmws"\nembedding = 2\nhidden = [8, 4]',
    "mean": 'architecture = "mean"\nembedding = 4\nhidden = []',
    "cnn": 'architecture = "cnn"\nembedding = 4\nfilters = 6\nwidth = 2\nhidden = [5]',
}
OPERATORS = {
    "mmws": ["Gather", "Flatten", "Gemm", "Relu", "Gemm", "Relu", "Gemm"],
    "mean": ["Gather", "ReduceMean", "Gemm"],
    "cnn": ["Gather", "Transpose", "Conv", "Relu", "ReduceMax", "Gemm", "Relu", "Gemm"],
}
SIZES = {"mmws": [8, 4], "mean": [], "cnn": [5]}

Write = Callable[..., Path]


def texts(rows: int, seed: int) -> list[tuple[str, int]]:
    """Sentences whose class is told by one word, at a random place among words that say nothing."""
    generator = np.random.default_rng(seed)
    found = []
    for row in range(rows):
        words = [str(word) for word in generator.choice(OTHER, size=generator.integers(2, 6))]
        words.insert(int(generator.integers(len(words) + 1)), str(generator.choice(GOOD if row % 2 else BAD)))
        found.append((" ".join(words), row % 2))
    return found


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a recipe with its data; keyword arguments replace or remove its parts."""

    def make(
        network: str = NETWORKS["mmws"],
        data: str = 'train = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out_rows = 50',
        vocabulary: str = "length = 10",
        training: str = "epochs = 5\nbatch = 16\nlearning_rate = 0.02\ndropout = 0.0",
        rest: str = "",
        rows: list[tuple[str, int]] | None = None,
    ) -> Path:
        lines = [f"{label}\t{text}" for text, label in (texts(400, 1) if rows is None else rows)]
        (tmp_path / "train.tsv").write_text("\n".join(["label\ttext", *lines, ""]), encoding="utf-8")
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(
            f"[data]\n{data}\n[vocabulary]\n{vocabulary}\n[network]\n{network}\n[training]\n{training}\n{rest}\n",
            encoding="utf-8",
        )
        return recipe

    return make


def quiet(line: str) -> None:
    assert "\n" not in line


@pytest.mark.parametrize("architecture", NETWORKS)
def test_every_architecture_learns_and_its_folder_is_complete(write: Write, tmp_path: Path, architecture: str) -> None:
    """The task file parses, its parts agree with each other, and the deployed model is right on unseen texts."""
    pytest.importorskip("torch")
    import onnx
    import onnxruntime

    from swapproof.models.readers import read_rows
    from swapproof.models.training import train

    lines: list[str] = []
    result = train(write(NETWORKS[architecture]), tmp_path / "out", lines.append)
    assert sum("epoch" in line for line in lines) == 5
    assert result.accuracy_held_out >= 0.9
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "recipe.toml", "train.tsv"]

    task = read_task(tmp_path / "out" / "task.toml")
    model = onnx.load(onnx_of(task))
    assert [node.op_type for node in model.graph.node] == OPERATORS[architecture]
    session = onnxruntime.InferenceSession(onnx_of(task), providers=["CPUExecutionProvider"])
    assert [(given.name, given.type, given.shape) for given in session.get_inputs()] == [
        ("tokens", "tensor(int64)", ["batch", 10])
    ]
    assert [(given.name, given.type, given.shape) for given in session.get_outputs()] == [
        ("logits", "tensor(float)", ["batch", 2])
    ]
    words = vocabulary_of(task, tmp_path / "out" / "vocabulary.json")
    table = next(value for value in model.graph.initializer if value.name == "embedding")
    assert table.dims[0] == words.size
    rows = read_rows(task.data.file, text=task.data.text, label=task.data.label)
    tokens = np.array([words.encode(row.text, task.model.length).tokens for row in rows], dtype=np.int64)
    answers = session.run(None, {"tokens": tokens})[0].argmax(axis=1)
    right = float(np.mean([task.model.labels[answer] == row.label for answer, row in zip(answers, rows, strict=True)]))
    report = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert report["accuracy"]["held_out"] == result.accuracy_held_out == right
    assert report["rows"]["held_out"] == len(rows) == 50
    assert report["network"]["hidden"] == SIZES[architecture]


def test_a_difference_beyond_rounding_is_refused() -> None:
    """Neither a shifted logit, nor a nan, nor a changed answer passes; a tie broken by rounding does."""
    from swapproof.models.errors import Disagreement
    from swapproof.models.export.equivalence import agreement

    trained = np.array([[1.0, 2.0], [0.5, 0.5]], dtype=np.float32)
    nudged = np.array([[1.0, 2.0], [0.5, 0.5000001]], dtype=np.float32)
    assert 0 < agreement(nudged, trained).largest_difference < 1e-6
    for wrong in ([[1.0, 2.01], [0.5, 0.5]], [[np.nan, 2.0], [0.5, 0.5]], [[2.0, 1.0], [0.5, 0.5]]):
        with pytest.raises(Disagreement):
            agreement(np.array(wrong, dtype=np.float32), trained)


def test_the_same_recipe_gives_the_same_bytes_and_another_seed_does_not(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from swapproof.models.training import train

    noisy = "epochs = 2\nbatch = 16\ndropout = 0.2\nword_dropout = 0.1\nnoise = 0.1\nshift = 3\npieces = 4"
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(write(training=f"{noisy}\nseed = {seed}"), tmp_path / name, quiet)
    model = {name: (tmp_path / name / "model.onnx").read_bytes() for name in "abc"}
    assert model["a"] == model["b"] != model["c"]
    assert (tmp_path / "a" / "held_out.jsonl").read_bytes() == (tmp_path / "b" / "held_out.jsonl").read_bytes()


def test_padding_embeds_to_zero_after_training(write: Write, tmp_path: Path) -> None:
    """The mean over all positions is then the sum of the words over the length."""
    pytest.importorskip("torch")
    import onnx
    from onnx import numpy_helper

    from swapproof.models.training import train

    for name, network in NETWORKS.items():
        train(write(network, training="epochs = 1\nnoise = 0.1"), tmp_path / name, quiet)
        model = onnx.load(tmp_path / name / "model.onnx")
        tables = {value.name: numpy_helper.to_array(value) for value in model.graph.initializer}
        assert not tables["embedding"][0].any()
        assert tables["embedding"][1:].any(axis=1).all()


def test_the_vocabulary_is_the_most_frequent_words_with_ties_in_alphabetical_order(write: Write) -> None:
    from swapproof.models.corpus import read_corpus

    rows = [("b A a", 0), ("c B zz", 1), ("<pad> d <unk>", 0), ("d x", 1)]
    data = 'train = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out = "train.tsv"'
    recipe = read_recipe(write(data=data, vocabulary="size = 6\nlength = 4", rows=rows))
    with pytest.raises(BadInput, match="all 4 training texts are also held out"):
        read_corpus(recipe)
    (recipe.path.parent / "other.tsv").write_text("label\ttext\n1\tq b\n", encoding="utf-8")
    recipe = read_recipe(
        write(
            data=data.replace("train.tsv", "other.tsv", 2).replace("other", "train", 1),
            vocabulary="size = 6",
            rows=rows,
        )
    )
    corpus = read_corpus(recipe)
    assert corpus.words == ("<pad>", "<unk>", "a", "b", "d", "c")
    assert corpus.held_out.tokens[0, :3].tolist() == [1, 3, 0]


def test_held_out_texts_are_never_learned(write: Write) -> None:
    """Also when the same text stands twice in the file; what was left out is said."""
    from swapproof.models.corpus import read_corpus

    twice = texts(60, 5) * 2
    corpus = read_corpus(read_recipe(write(rows=twice)))
    held = {row.text for row in corpus.held_out.rows}
    assert held.isdisjoint(row.text for row in corpus.train.rows)
    assert any("left out of the training" in remark for remark in corpus.remarks)


def test_rows_are_chosen_by_a_column_and_html_is_stripped(tmp_path: Path, write: Write) -> None:
    from swapproof.models.corpus import read_corpus

    path = write()
    lines = [f"{number % 2},{'ab'[number // 4]},one<br />two {number}" for number in range(8)]
    (tmp_path / "train.csv").write_text("\n".join(["label,source,text", *lines, ""]), encoding="utf-8")
    data = (
        'train = "train.csv"\ntext = "text"\nlabel = "label"\nstrip_html = true\n'
        'held_out_rows = 1\nonly = { source = "b" }\n'
    )
    path.write_text(f'[data]\n{data}\n[network]\narchitecture = "mean"\n', encoding="utf-8")
    corpus = read_corpus(read_recipe(path))
    assert len(corpus.train.rows) == 3
    assert all(row.text.startswith("one two") and row.id >= 4 for row in (*corpus.train.rows, *corpus.held_out.rows))


def test_long_texts_are_cut_or_learned_in_pieces(write: Write) -> None:
    from swapproof.models.corpus import read_corpus

    rows = [(" ".join(f"w{number}" for number in range(11)), label) for label in (0, 1)] + texts(100, 7)
    cut = read_corpus(read_recipe(write(vocabulary="length = 5", rows=rows)))
    assert any("longer than 5 words: cut" in remark for remark in cut.remarks)
    pieces = read_corpus(read_recipe(write(vocabulary="length = 5", training="pieces = 5", rows=rows)))
    assert len(pieces.train.labels) > len(cut.train.labels) == len(cut.train.rows)
    assert len(pieces.train.labels) == len(pieces.train.rows) == len(pieces.train.tokens)


def test_held_out_texts_are_cut_only_where_the_deployed_model_cuts(write: Write) -> None:
    """A network of any length is judged by whole texts; one that has learned positions for fewer words refuses."""
    from swapproof.models.corpus import read_corpus

    for network, width in (('"lstm"', 6), ('"lstm"\ndynamic = false', 3), ('"transformer"\npositions = "none"', 6)):
        recipe = read_recipe(write(f"architecture = {network}", vocabulary="length = 3"))
        corpus = read_corpus(recipe)
        assert corpus.train.tokens.shape[1] == 3
        assert corpus.held_out.tokens.shape[1] == width
        assert any("held-out texts are longer" in remark for remark in corpus.remarks) == (width == 3)
    with pytest.raises(BadInput, match="a held-out text has 6 words, and the network learns 3 positions"):
        read_corpus(read_recipe(write('architecture = "transformer"', vocabulary="length = 3")))


def test_labels_may_be_names_or_numbers_that_do_not_begin_at_zero(write: Write, tmp_path: Path) -> None:
    """Stars 1, 2 and 10 are three classes in that order, and the written texts carry their names."""
    pytest.importorskip("torch")
    from swapproof.models.training import train

    rows = [(f"{text} {'xyz'[number % 3]}", (1, 2, 10)[number % 3]) for number, (text, _) in enumerate(texts(90, 2))]
    train(write(training="epochs = 1", rows=rows), tmp_path / "out", quiet)
    assert read_task(tmp_path / "out" / "task.toml").model.labels == ("1", "2", "10")
    held = [json.loads(line) for line in (tmp_path / "out" / "held_out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["label"] for row in held} == {"1", "2", "10"}


def test_a_synonym_table_travels_with_the_model(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from swapproof.models.training import train

    (tmp_path / "words.json").write_text('{"good": ["fine"]}', encoding="utf-8")
    rest = '[swaps]\nfile = "words.json"\nmax_per_word = 3\n[task]\nlimit = 7'
    train(write(training="epochs = 1", rest=rest), tmp_path / "out", quiet)
    task = read_task(tmp_path / "out" / "task.toml")
    assert task.swaps.file == tmp_path / "out" / "synonyms.json"
    assert task.swaps.file.read_bytes() == b'{"good": ["fine"]}'
    assert (task.swaps.max_per_word, task.data.limit) == (3, 7)


def test_a_recipe_in_another_encoding_is_said_to_be_that(tmp_path: Path) -> None:
    """And a byte order mark, which some editors write, is none of the recipe."""
    path = tmp_path / "recipe.toml"
    path.write_bytes('[data]\nfile = "train.tsv"  # Köşe\n'.encode("iso8859-9"))
    with pytest.raises(BadInput, match=r"recipe\.toml line 2: not UTF-8"):
        read_recipe(path)
    path.write_bytes(b"\xef\xbb\xbf[dat]\n")
    with pytest.raises(BadInput, match="section 'dat' is unknown"):
        read_recipe(path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"training": "epoch = 3"}, r"\[training\] key 'epoch' is unknown; the nearest known one is 'epochs'"),
        ({"rest": "[network2]"}, r"section 'network2' is unknown; the nearest known one is 'network'"),
        ({"network": 'architecture = "mlp"'}, "must be one of mmws, mean, cnn, kim"),
        ({"network": "hidden = [4]"}, r"\[network\] has no key 'architecture'"),
        (
            {"network": 'architecture = "mmws"\nfilters = 3'},
            "belongs to architecture 'cnn', 'kim', 'msr-cnn', not 'mmws'",
        ),
        ({"network": 'architecture = "cnn"\nwidth = 11'}, "width must be between 1 and length"),
        ({"network": 'architecture = "mmws"\nhidden = [true]'}, "must be a list of integers"),
        ({"network": 'architecture = "lstm"\nunits = 0'}, "units must be at least 1"),
        ({"network": 'architecture = "mean"\nembedding = 9999999999'}, "embedding must be at most 1,000,000"),
        ({"vocabulary": "length = 10000000000"}, "length must be at most 1,000,000"),
        ({"network": 'architecture = "lstm"\npooling = "first"'}, "must be one of mean, max, last"),
        (
            {"network": 'architecture = "gru"\nheads = 2'},
            "heads belongs to architecture 'transformer', 'minilm', not 'gru'",
        ),
        ({"network": 'architecture = "transformer"\nheads = 3'}, "heads must divide embedding"),
        ({"network": 'architecture = "gru"', "training": "shift = 1"}, "shift is for networks that read padding"),
        ({"rest": "[defence]\nl1 = 1.0"}, r"\[defence\] has no key 'method'"),
        ({"rest": '[defence]\nmethod = "hope"'}, "must be one of none, ada, mixada, pgd"),
        ({"rest": '[defence]\nmethod = "smooth"'}, r"\[defence\] has no key 'synonyms'"),
        (
            {"rest": '[defence]\nmethod = "contract"\nrounds = 2'},
            "rounds belongs to method 'smooth-ibp', 'smooth-contract'",
        ),
        ({"rest": '[defence]\nmethod = "contract"'}, "no matrix that acts on a recurrent state"),
        ({"rest": '[defence]\nmethod = "smooth"\nsynonyms = "s.json"\nrounds = 0'}, "rounds must be between"),
        (
            {"network": 'architecture = "gru"', "rest": '[defence]\nmethod = "contract"\nl1 = 0'},
            r"\[defence\] l1 must be above 0",
        ),
        ({"training": "epochs = true"}, "must be an integer"),
        ({"training": "learning_rate = nan"}, "learning_rate must be above 0"),
        ({"training": "dropout = 1.0"}, r"must be in \[0, 1\)"),
        ({"data": 'train = "train.tsv"\ntext = "text"\nlabel = "label"'}, "either held_out"),
        ({"rest": "broken"}, "not TOML"),
    ],
)
def test_a_bad_recipe_is_one_line_that_names_file_and_key(write: Write, parts: dict[str, str], message: str) -> None:
    path = write(**parts)
    with pytest.raises(BadInput, match=message) as refusal:
        read_recipe(path)
    assert str(refusal.value).startswith(str(path))
    assert "\n" not in str(refusal.value)


DATA = 'text = "text"\nlabel = "label"\nheld_out_rows = '


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"data": f'train = "absent.tsv"\n{DATA}5'}, "absent.tsv: no such file"),
        ({"data": f'train = "train.tsv"\n{DATA}5'.replace('"text"\n', '"body"\n')}, "no column 'body'"),
        ({"data": f'train = "train.tsv"\n{DATA}500'}, "only 400 rows"),
        ({"data": f'train = "train.tsv"\n{DATA}400'}, "no training texts"),
        ({"data": f'package = "no_such_package"\ntrain = "train.tsv"\n{DATA}5'}, "no Python package 'no_such_package'"),
        ({"data": f'train = "train.tsv"\nlabels = ["no", "yes", "maybe"]\n{DATA}5'}, "no training text has the label"),
        ({"data": f'train = "train.tsv"\nonly = {{ text = "absent" }}\n{DATA}1'}, "only 0 rows"),
        ({"rows": []}, "has no rows"),
        ({"rows": [("good film", 1)] * 100}, "all 50 training texts are also held out"),
        ({"rows": [(f"good film {number}", 1) for number in range(100)]}, "every text has the label '1'"),
        ({"rest": '[swaps]\nfile = "absent.json"'}, "absent.json: no such file"),
        ({"rest": '[defence]\nmethod = "smooth"\nsynonyms = "absent.json"'}, "absent.json: no such file"),
        ({"rest": '[defence]\nmethod = "smooth"\nsynonyms = "train.tsv"'}, "not JSON"),
        ({"rest": '[swaps]\nfile = "train.tsv"'}, "not JSON"),
    ],
)
def test_bad_data_is_one_line_and_leaves_nothing(
    write: Write, tmp_path: Path, parts: dict[str, str], message: str
) -> None:
    pytest.importorskip("torch")
    from swapproof.models.training import train

    path = write(**parts)
    with pytest.raises(BadInput, match=message) as refusal:
        train(path, tmp_path / "out", quiet)
    assert "\n" not in str(refusal.value)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["recipe.toml", "train.tsv"]


def test_an_occupied_place_is_refused_before_training_and_an_empty_one_is_used(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from swapproof.models.training import train

    path = write(training="epochs = 1")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine", encoding="utf-8")
    for taken in (out, path):
        with pytest.raises(BadInput, match="not an empty folder"):
            train(path, taken, quiet)
    assert [entry.name for entry in out.iterdir()] == ["mine.txt"]
    (out / "mine.txt").unlink()
    train(path, out, quiet)
    assert (out / "task.toml").exists()


def test_a_place_that_cannot_be_written_is_refused_before_training_and_leaves_nothing(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a file, under a name that is too long in folders that are not there yet, and where one is."""
    pytest.importorskip("torch")
    from swapproof.models.training import train

    path = write(training="epochs = 1")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    lines: list[str] = []
    for out in (path / "out", tmp_path / "new" / "newer" / ("long" * 99), Path()):
        with pytest.raises(BadInput, match=r"cannot be (written|replaced)") as refusal:
            train(path, out, lines.append)
        assert "\n" not in str(refusal.value)
    assert lines == []
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["here", "recipe.toml", "train.tsv"]
    train(path, tmp_path / "new" / "out", quiet)
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["out"]


def test_a_network_that_does_not_fit_is_one_line(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch says that as a RuntimeError."""
    pytest.importorskip("torch")
    from swapproof.verifier.cli import main

    path = write(network='architecture = "mean"\nembedding = 1000000\nhidden = [1000000]')
    assert main(["train", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "swapproof: out of memory" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_failed_write_leaves_nothing(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk at the last file: one line, no folder, no leftovers."""
    pytest.importorskip("torch")
    from swapproof.models import training

    def full(path: Path, content: object, indent: int) -> None:
        path.write_text("{", encoding="utf-8")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(training, "write_json", full)
    with pytest.raises(BadInput, match="No space left on device"):
        training.train(write(training="epochs = 1"), tmp_path / "new" / "out", quiet)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["recipe.toml", "train.tsv"]


def test_divergence_is_said_with_its_step_and_the_state_before_is_kept(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from swapproof.models.training import train

    with pytest.raises(
        BadInput, match=r"diverged: at step \d+, of epoch 2, the loss is nan; the state before it is kept"
    ):
        train(write(training="weight_decay = 1e6\nepochs = 2"), tmp_path / "out", quiet)
    assert not (tmp_path / "out").exists()
    import torch

    kept = torch.load(tmp_path / ".out.training", weights_only=True)["weights"]
    assert all(value.isfinite().all() for value in kept.values())


def test_without_torch_training_says_what_to_install(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swapproof.models import training

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unsupported, match=r"pip install torch"):
        training.train(write(), tmp_path / "out", quiet)


SST2 = Path(__file__).parents[3] / "shared" / "data" / "sst2"


@pytest.mark.skipif(not SST2.exists(), reason="the SST-2 files are not beside the repository")
def test_the_mmws_network_reaches_the_papers_accuracy_on_sst2(tmp_path: Path) -> None:
    """The shipped recipe as it is, but for the paths and the columns of this copy: about 0.838 on dev."""
    pytest.importorskip("torch")
    from swapproof.models.training import train

    text = (Path(__file__).parents[2] / "models" / "recipes" / "sst2_mmws.toml").read_text(encoding="utf-8")
    text = text.replace("SST-2/train.tsv", str(SST2 / "train.tsv")).replace("SST-2/dev.tsv", str(SST2 / "dev.tsv"))
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text.replace("[vocabulary]", 'held_out_text = "content"\n[vocabulary]'), encoding="utf-8")
    result = train(recipe, tmp_path / "out", quiet)
    assert 0.815 <= result.accuracy_held_out <= 0.86
    assert result.largest_difference < 1e-5


def recipes() -> list[Path]:
    root = Path(__file__).parents[2]
    return [*sorted((root / "models" / "recipes").glob("*.toml")), root / "verifier" / "example" / "recipe.toml"]


@pytest.mark.parametrize("path", recipes(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_shipped_recipe_is_valid_and_names_no_machine(path: Path) -> None:
    recipe: Recipe = read_recipe(path)
    assert not Path(recipe.data.train).is_absolute()
    assert not Path(recipe.data.held_out).is_absolute()


def test_the_documented_keys_are_the_keys_that_exist() -> None:
    """The recipe in the module's docstring is TOML, and shows every key of every section."""
    from dataclasses import fields

    from swapproof.models import recipe as module
    from swapproof.models.architectures.architecture_table import ARCHITECTURES
    from swapproof.models.defences.defence_table import DEFENCES

    assert module.__doc__ is not None
    shown = tomllib.loads("\n".join(line.strip() for line in module.__doc__.split("\n\n", 2)[2].splitlines()))
    sections = {
        "data": (module.DataPart,),
        "vocabulary": (module.VocabularyPart,),
        "network": tuple(ARCHITECTURES.values()),
        "training": (module.TrainingPart,),
        "defence": tuple(DEFENCES.values()),
        "swaps": (module.SwapsPart,),
        "task": (module.TaskPart,),
    }
    chosen = {"network": {"architecture"}, "defence": {"method"}}
    assert {name: set(table) for name, table in shown.items()} == {
        name: {field.name for part in parts for field in fields(part)} | chosen.get(name, set())
        for name, parts in sections.items()
    }
