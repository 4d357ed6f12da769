"""`defend` on a tiny data set: its table, what it says of synonyms, and that nothing is done twice."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swapproof.encodings.errors import BadInput
from swapproof.verifier.attacks.attack_limits import Limits
from swapproof.verifier.cli import main
from swapproof.verifier.commands.defences.defend_recipes import kappa_by, limits_of
from swapproof.verifier.defending.cell_steps import Ended, steps_of
from swapproof.verifier.defending.compared_cell import Asked, Cell
from swapproof.verifier.defending.defence_rows import Row, as_table
from swapproof.verifier.defending.defending_runs import Defences, DefendOptions, defend, progress
from swapproof.verifier.pages.sheets.defended_sheet import defended_sheet
from swapproof.verifier.pages.sheets.sheet import sheet_page

pytest.importorskip("torch")

ATTACKER = {"good": ["fine", "poor"], "bad": ["great"], "film": ["movie"]}
DEFENDER = {"good": ["fine"], "bad": ["awful"], "plot": ["story"]}
ASKED = Asked(limit=8, seconds=5.0, attacks=("greedy",), radii=(1,))


def recipe(folder: Path, network: str = 'architecture = "mean"\nembedding = 4', name: str = "small.toml") -> Path:
    generator = np.random.default_rng(1)
    rows = ["label\ttext"]
    for row in range(120):
        words = [str(word) for word in generator.choice(["film", "movie", "plot", "the"], 3)]
        good, bad = ["good", "fine", "great"], ["bad", "poor", "awful"]
        rows.append(f"{row % 2}\t{' '.join(words)} {generator.choice(good if row % 2 else bad)}")
    (folder / "train.tsv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    (folder / "attacker.json").write_text(json.dumps(ATTACKER), encoding="utf-8")
    (folder / "defender.json").write_text(json.dumps(DEFENDER), encoding="utf-8")
    path = folder / name
    path.write_text(
        '[data]\ntrain = "train.tsv"\ntext = "text"\nlabel = "label"\nheld_out_rows = 20\n[vocabulary]\nlength = 6\n'
        f"[network]\n{network}\n[training]\nepochs = 2\nbatch = 16\nlearning_rate = 0.05\n"
        '[swaps]\nfile = "attacker.json"\nmax_per_word = 3\n',
        encoding="utf-8",
    )
    return path


class InProcess:
    """Commands as users give them, counted."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.given: list[tuple[str, ...]] = []
        self.stop_after = stop_after

    def __call__(self, arguments: Sequence[str]) -> Ended:
        if len(self.given) == self.stop_after:
            raise KeyboardInterrupt
        self.given.append(tuple(arguments))
        return Ended(main(arguments), "refused" if arguments[0] == "train" else "")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Defences, InProcess]:
    """Two seeds; killed after six commands, and gone on with."""
    folder = tmp_path_factory.mktemp("defend")
    (folder / "keys.toml").write_text("[smooth]\nrounds = 2\n", encoding="utf-8")
    options = DefendOptions(("ada:exact", "smooth"), (0, 3), folder / "defender.json", folder / "keys.toml", 15, ASKED)
    path, first, second = recipe(folder), InProcess(stop_after=6), InProcess()
    with pytest.raises(KeyboardInterrupt):
        defend([path], folder / "out", options, command=first)
    found = defend([path], folder / "out", options, command=second)
    second.given = [*first.given, *second.given]
    again = InProcess()
    assert defend([path], folder / "out", options, command=again) == found
    assert again.given == []
    return folder, found, second


def table_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "out" / "table.json").read_text(encoding="utf-8")))


def test_every_defence_is_trained_with_every_seed_once(compared: tuple[Path, Defences, InProcess]) -> None:
    """The undefended network too, because one defence learns from its examples."""
    folder, found, commands = compared
    trained = [
        Path(given[1]).parent.relative_to(folder / "out").parts for given in commands.given if given[0] == "train"
    ]
    names = ("none", "ada-exact", "smooth")
    assert sorted(trained) == sorted(("small", name, f"seed-{seed}") for name in names for seed in (0, 3))
    assert len(set(commands.given)) == len(commands.given)
    assert [row.defended for row in found.rows] == ["none", "smooth", "ada:exact"]
    assert all(row.seeds == (0, 3) for row in found.rows)
    assert found.exit_code == 0
    assert "rounds = 2" in (folder / "out" / "small" / "smooth" / "seed-0" / "recipe.toml").read_text()


def test_what_is_left_is_estimated() -> None:
    """By those that were not there already."""
    assert progress([60.0], 4) == "defend: 1 of 4 networks are done; about 3 min left"
    assert progress([0.1, 0.1, 60.0], 5) == "defend: 3 of 5 networks are done; about 2 min left"
    assert progress([0.1], 4) == "defend: 1 of 4 networks are done"
    assert progress([60.0] * 4, 4) == "defend: 4 of 4 networks are done"


def test_clusters_are_for_what_works_on_them(tmp_path: Path) -> None:
    cell = Cell("a", "as given", None, tmp_path, tmp_path / "task.toml")
    asked = Asked(attacks=("greedy",), radii=(1,), kappa=True, cluster="auto")
    given = {step.out.name: "--cluster auto" in " ".join(step.arguments) for step in steps_of(cell, asked, ())}
    assert given == {"certify": True, "attack-greedy": True, "pr-1": True, "kappa": False}


def test_one_second_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    """Else a comparison that is gone on with would begin its runs anew."""
    cell = Cell("a", "as given", None, tmp_path, tmp_path / "task.toml")
    steps = [list(steps_of(cell, Asked(seconds=seconds, radii=(1,)), ("exact",))) for seconds in (1, 1.0)]
    assert steps[0] == steps[1]


def test_attacks_have_limits_and_the_words_of_the_greatest_kappa(tmp_path: Path) -> None:
    limits = limits_of(Limits(50, "0.3", True, True, 0.84))
    assert limits == ("--k-max", "50", "--rho-max", "0.3", "--similarity", "0.84", "--rho-up", "--q-max")
    cell = Cell("a", "as given", None, tmp_path, tmp_path / "task.toml")
    steps = list(steps_of(cell, Asked(attacks=("sp-attack", "greedy"), kappa=True, limits=limits), ()))
    assert [step.out.name for step in steps] == ["certify", "attack-greedy", "kappa", "attack-sp-attack"]
    assert all(set(limits) <= set(step.arguments) for step in steps if step.arguments[0] == "attack")
    assert steps[-1].arguments[-2:] == ("--kappa", str(tmp_path / "kappa" / "kappa.csv"))


def test_attacks_alone_are_asked_for(compared: tuple[Path, Defences, InProcess], tmp_path: Path) -> None:
    """And say what is right, and what says little, as `certify` does."""
    folder, _, _ = compared
    cell = folder / "out" / "small" / "smooth" / "seed-0"
    certified = json.loads((cell / "certify" / "summary.json").read_bytes())
    asked, commands = replace(ASKED, certified=False, radii=()), InProcess()
    options = DefendOptions(asked=asked)
    (row,) = defend([cell / "model" / "task.toml"], tmp_path / "out", options, command=commands).rows
    assert [given[0] for given in commands.given] == ["attack"]
    assert row.figures["Clean"] == (certified["accuracy"],) * 3
    known = [name for name, figure in row.figures.items() if figure is not None]
    assert known == ["Clean", "greedy Aua", "greedy Suc", "greedy #Query"]
    assert row.vacuous == tuple(f"seed None: {said}" for said in certified["vacuous"])


def test_what_was_killed_is_no_answer_to_another_question(
    compared: tuple[Path, Defences, InProcess], tmp_path: Path
) -> None:
    """The folder is about six texts, whatever ended there before; asked about four it begins anew."""
    task, out = compared[0] / "out" / "small" / "smooth" / "seed-0" / "model" / "task.toml", tmp_path / "out"
    four, six = (DefendOptions(asked=Asked(limit, attacks=("greedy",), certified=False)) for limit in (4, 6))
    before = defend([task], out, four, command=InProcess())

    def killed(arguments: Sequence[str]) -> Ended:
        main(arguments)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        defend([task], out, six, command=killed)
    commands = InProcess()
    assert defend([task], out, four, command=commands) == before
    assert [given[-1] for given in commands.given] == ["--no-resume"]


def test_rho_by_force_is_the_rho_that_is_read_off_the_network(tmp_path: Path) -> None:
    """So that recurrent networks, off which none is read, have it too."""
    options = DefendOptions(("none",), training_texts=15, asked=Asked(limit=8, seconds=0.1, kappa=True))
    path = recipe(tmp_path)
    (read,) = defend([path], tmp_path / "out", options, command=InProcess()).rows
    forced, commands = replace(options, asked=replace(options.asked, kappa_by=kappa_by(True, None))), InProcess()
    (row,) = defend([path], tmp_path / "out", forced, command=commands).rows
    assert ["--brute-force" in given for given in commands.given] == [True, True]
    assert row.figures == read.figures
    assert read.figures["rho low"] == read.figures["rho high"]


def test_vectors_are_found_from_the_recipe_and_a_network_of_others_is_no_row(tmp_path: Path) -> None:
    """Files of every key of a defence; what was trained on other data is neither shown nor trained again."""
    (tmp_path / "vectors.txt").write_text("good 1 0 0 1\nbad 0 1 1 0\nfilm 0 0 0 0\n", encoding="utf-8")
    (tmp_path / "antonyms.txt").write_text("good bad\n", encoding="utf-8")
    path = recipe(tmp_path)
    more = 'vectors = "vectors.txt"\nantonyms = ["antonyms.txt"]\nsynonyms = "defender.json"\n'
    path.write_text(f'{path.read_text()}[defence]\nmethod = "counter-fit"\n{more}', encoding="utf-8")
    options = DefendOptions(("counter-fit",), asked=Asked(2, attacks=("greedy",), certified=False))
    (row,) = defend([path], tmp_path / "out", options, command=InProcess()).rows
    assert row.failed == ()
    (tmp_path / "antonyms.txt").write_text("good awful\n", encoding="utf-8")
    commands = InProcess()
    (row,) = defend([path], tmp_path / "out", options, command=commands).rows
    assert commands.given == []
    assert "trained: antonyms " in row.failed[0]
    assert row.figures == {}


def test_the_table_says_what_the_runs_say(compared: tuple[Path, Defences, InProcess]) -> None:
    folder, found, _ = compared
    for row, shown in zip(found.rows, table_of(folder)["rows"], strict=True):
        summaries = [
            json.loads((folder / "out" / "small" / row.defended.replace(":", "-") / f"seed-{seed}" / run).read_bytes())
            for run in ("certify/summary.json",)
            for seed in row.seeds
        ]
        clean = [one["accuracy"] for one in summaries]
        assert shown["figures"]["Clean"] == {
            "mean": pytest.approx(sum(clean) / 2),
            "least": min(clean),
            "greatest": max(clean),
        }
        figures = row.figures
        assert {
            "greedy Aua",
            "greedy Suc",
            "greedy #Query",
            "certified@1",
            "certified@3",
            "PR@1 low",
            "train s",
        } <= set(figures)
        certified, unbroken, attacked = (figures[name] for name in ("certified@3", "unbroken@3", "greedy Aua"))
        assert certified is not None
        assert unbroken is not None
        assert attacked is not None
        assert certified[0] <= unbroken[0]
        assert attacked[0] <= figures["Clean"][0]  # type: ignore[index]


def test_every_format_holds_every_row(compared: tuple[Path, Defences, InProcess]) -> None:
    folder, found, _ = compared
    rows = list(csv.reader((folder / "out" / "table.csv").read_text(encoding="utf-8").splitlines()))
    assert [row[1] for row in rows[1:]] == [row.defended for row in found.rows]
    assert len({len(row) for row in rows}) == 1
    latex = (folder / "out" / "table.tex").read_text(encoding="utf-8")
    assert latex.count(r"\\") == 1 + len(found.rows)
    page = (folder / "out" / "table.html").read_text(encoding="utf-8")
    for part in ("Under attack", "Certified", "Texts kept right by number of swaps", "certified@1", "ada:exact"):
        assert part in page
    assert "Content-Security-Policy" in page  # the design of every page


def test_the_page_claims_nothing_of_networks_that_say_little() -> None:
    """And shows what failed; whatever users wrote is escaped."""
    figures = dict.fromkeys(("Clean", "certified@1", "certified@2", "certified@3"), (0.5, 0.4, 0.6))
    figures |= {f"unbroken@{radius}": (0.6, 0.6, 0.6) for radius in (1, 2, 3)}
    rows = [
        Row("<b>", "none", (0, 1), figures, ()),
        Row("<b>", "ibp", (0, 1), figures | {"certified@1": (0.9, 0.9, 0.9)}, (), ("seed 0: answers one class",)),
        Row("<b>", "dne", (), {}, ("seed 0: refused",)),
    ]
    sheet = defended_sheet(rows, ["a remark"])
    assert sheet.claim.startswith("Of <b>, none certifies most at 1 swap: 0.5000 [0.4000, 0.6000]")
    assert sheet.banner == "incomplete"
    assert sheet.warnings == ("<b>, ibp: seed 0: answers one class.", "<b>, dne: seed 0: refused.")
    page = b"".join(sheet_page(sheet).written()).decode()
    assert "<b>, none" not in page
    assert "&lt;b&gt;, none" in page
    assert defended_sheet([Row("a", "as given", (), {}, ())], []).claim == "Nothing is certified of these networks."


def test_it_says_whether_the_defender_saw_the_attackers_synonyms(compared: tuple[Path, Defences, InProcess]) -> None:
    """The defender has good and bad (of good, bad, plot), and one of the attacker's four pairs."""
    _, found, _ = compared
    (said,) = [remark for remark in found.remarks if "smooth" in remark]
    assert "the attacker has 66.7% of the defender's words and 33.3% of its pairs" in said
    assert "the defender has 66.7% and 25.0% of the attacker's" in said
    assert "attacks: no limits but the swaps of each task" in compared[1].remarks


def test_a_network_that_does_not_fit_is_a_row_that_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recipe(tmp_path, 'architecture = "gru"\nembedding = 4\nunits = 3')
    asked = Asked(limit=2, seconds=1.0)
    found = defend([path], tmp_path / "out", DefendOptions(("ibp",), asked=asked), command=InProcess())
    assert found.exit_code == 3
    assert found.rows[0].failed
    assert "need interval bounds" in " ".join(found.rows[0].failed) + capsys.readouterr().err


def test_a_full_disk_is_no_networks_fault(tmp_path: Path) -> None:
    """The comparison stops there, and does not train the others for nothing."""
    said = "model: cannot be written (No space left on device)"
    options = DefendOptions(("none", "smooth"))
    with pytest.raises(BadInput, match="exit code 2: model: cannot be written"):
        defend([recipe(tmp_path)], tmp_path / "out", options, command=lambda arguments: Ended(2, said))


def test_a_smoothed_defence_is_measured_as_it_is_deployed(tmp_path: Path) -> None:
    """Whatever its classes are called; and a network that answers one class is a row that says little."""
    asked = Asked(limit=2, seconds=0.3)
    path = recipe(tmp_path)
    path.write_text(path.read_text().replace("held_out_rows", 'labels = ["[data]", "two\u2028lines"]\nheld_out_rows'))
    found = defend([path], tmp_path / "out", DefendOptions(("mask",), asked=asked), command=InProcess())
    figures = found.rows[0].figures
    assert {"vote@1", "released vote claims", "certified@1"} <= set(figures)
    row = Row("a", "b", (0,), {"Clean": (0.5, 0.5, 0.5)}, (), ("the model answers x",))
    assert as_table([row])[1][1] == "b (says little)"


def test_a_model_that_is_there_is_a_row_too(compared: tuple[Path, Defences, InProcess], tmp_path: Path) -> None:
    folder, _, _ = compared
    task = folder / "out" / "small" / "smooth" / "seed-0" / "model" / "task.toml"
    found = defend([task], tmp_path / "out", DefendOptions(asked=Asked(limit=4)), command=InProcess())
    assert [row.name for row in found.rows] == [("model", "as given")]
    assert found.rows[0].figures["train s"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DefendOptions(("hope",)), "no defence is named 'hope'"),
        (DefendOptions(("ibpp",)), "did you mean ibp?"),
        (DefendOptions(("ibp:exact",)), "ibp learns from no examples"),
        (DefendOptions(("ada:hope",)), "no attack is named 'hope'"),
        (DefendOptions(), "say how: --methods"),
        (DefendOptions(("none",), synonyms=Path("nothere.json")), "nothere.json: no such file"),
        (DefendOptions(("none",), (1, 1)), "a seed stands there twice"),
        (DefendOptions(("none", "ibp", "none")), "--methods: a defence stands there twice: none"),
        (DefendOptions(("none",), asked=Asked(attacks=("pwws", "pwws"))), "an attack stands there twice: pwws"),
        (DefendOptions(("none",), asked=Asked(seconds=float("nan"))), "seconds = nan: a time above 0"),
        (DefendOptions(("none",), asked=Asked(attacks=("hope",))), "no attack is named 'hope'"),
        (DefendOptions(("none",), asked=Asked(attacks=("sp-attack",))), "give --rho too"),
        (DefendOptions(("none",), asked=Asked(certified=False)), "--no-certify leaves the attacks: give --attacks"),
        (
            DefendOptions(("none",), asked=Asked(kappa_by=("--euba", "8"))),
            "--euba 8 is how --rho is measured: give --rho",
        ),
    ],
)
def test_bad_options_are_one_line_before_anything_is_written(
    tmp_path: Path, options: DefendOptions, message: str
) -> None:
    path = recipe(tmp_path)
    with pytest.raises(ValueError, match=message) as refusal:
        defend([path], tmp_path / "out", options, command=InProcess())
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("epochs = 2", "epochs = 0", r"\[training\] epochs and batch must be at least 1"),
        ("epochs = 2", "epoch = 2", "key 'epoch' is unknown; the nearest known one is 'epochs'"),
        ('"mean"', '"means"', "architecture is 'means'; it must be one of mmws"),
        ('"train.tsv"', '"nothere.tsv"', "nothere.tsv: no such file"),
        ('"text"', '"sentence"', "train.tsv.*sentence"),
        ("held_out_rows = 20", "held_out_rows = 200", "held_out_rows is 200, but .* has only 120 rows"),
        ("held_out_rows = 20", 'only = { text = "hope" }\nheld_out_rows = 0', "held_out"),
        ('"attacker.json"', '"train.tsv"', "train.tsv: not JSON"),
        ("[training]", '[defence]\nmethod = "hope"\n[training]', "method is 'hope'; it must be one of none"),
        ("[training]", "labels = 3\n[training]", "unknown"),
    ],
)
def test_a_broken_recipe_is_one_line_before_anything_is_written(
    tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    path = recipe(tmp_path)
    said = path.read_text(encoding="utf-8")
    assert right in said
    path.write_text(said.replace(right, wrong), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as refusal:
        defend([path], tmp_path / "out", DefendOptions(("none", "smooth")), command=InProcess())
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "out").exists()


def test_other_peoples_folders_and_strange_files_are_refused(tmp_path: Path) -> None:
    path, options = recipe(tmp_path), DefendOptions(("none",))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match="other things than a comparison"):
        defend([path], tmp_path / "mine", options, command=InProcess())
    (tmp_path / "odd.toml").write_text("[data]\n", encoding="utf-8")
    with pytest.raises(BadInput, match="neither a recipe"):
        defend([tmp_path / "odd.toml"], tmp_path / "out", options, command=InProcess())
    with pytest.raises(ValueError, match="stands there twice"):
        defend([path, path], tmp_path / "out", options, command=InProcess())
    (tmp_path / "keys.toml").write_text("[none]\nsteps = 2\n", encoding="utf-8")
    with pytest.raises(BadInput, match="'steps' is unknown; none has no keys"):
        defend([path], tmp_path / "out", DefendOptions(("none",), keys=tmp_path / "keys.toml"), command=InProcess())
    (tmp_path / "keys.toml").write_text('[pgd]\nsteps = "two"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"\[pgd\] steps is 'two'; it must be an integer"):
        defend([path], tmp_path / "out", DefendOptions(("pgd",), keys=tmp_path / "keys.toml"), command=InProcess())
