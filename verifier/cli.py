"""The command line: one function per command, each importing what it needs only when it runs."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from swapproof.encodings.solvers.one_thread import ONE_THREAD

from .collecting import collect_seldom
from .exit_codes import BUG, CLOSED_PIPE, HOLDS, INTERRUPTED, UNCHECKED, USAGE

MET_ANYWHERE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
"""A full disk, a file that is not ours and a path that cannot be are nobody's bug."""


class Commands(TyperGroup):
    """Our commands; an interrupt of any of them, a pipe that is closed and an end of file that nobody foresaw have exit
    codes of their own, whatever the version of typer: it has 1 for the last two, which means violated."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        try:
            return super().make_context(*args, **options)
        except BrokenPipeError:  # --help | head -1
            raise unread() from None

    def invoke(self, ctx: Any) -> Any:
        from .interrupting import stopped_like_ctrl_c

        anew = "--no-resume" in ctx.args
        try:
            with stopped_like_ctrl_c():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            with suppress(OSError):  # the terminal may be gone
                print(f"swapproof: interrupted; {left_by(ctx.invoked_subcommand, anew=anew)}", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise unread() from None
        except EOFError as error:
            raise RuntimeError("an end of file that was not foreseen") from error


def unread() -> typer.Exit:
    """The end of a command whose output nobody reads; what is still buffered goes nowhere."""
    discard_output()
    return typer.Exit(CLOSED_PIPE)


def discard_output() -> None:
    """Python writes its buffers once more when it ends, and would then fail a second time."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def open_closed_streams() -> None:
    """A stream that was closed before we began (`>&-`) leads nowhere: the next file opened would else take its place,
    and printing would fail."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            # Open as long as we run.
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def refuse_unwritable_names(arguments: Sequence[str]) -> None:
    """Runs name their files in UTF-8, and so do the libraries that read models."""
    from swapproof.encodings.errors import BadInput

    here = []
    with suppress(OSError):  # a folder that was removed has no name
        here.append(str(Path.cwd()))
    for name in (*here, *arguments):
        if any("\udc80" <= character <= "\udcff" for character in name):
            raise BadInput(f"{name}: a name that is not UTF-8; rename it, or work in another folder")


def left_by(command: str | None, *, anew: bool) -> str:
    """What there is of an interrupted command."""
    match command:
        case "certify" | "demo" | "measure" | "attack":
            return "a run can be resumed by the same command" + (" without --no-resume" if anew else "")
        case "train":
            return "no folder was written; the same command goes on from what was kept, if the training took long"
        case "defend":
            return "the same command goes on where it was"
        case "bench":
            return "the same command measures everything again, and a --json file begins anew with it"
    return "the same command starts from the beginning"


app = typer.Typer(
    cls=Commands,
    name="swapproof",
    help="How many words must an adversary swap for synonyms before a text classifier changes its answer? "
    "An interval with evidence at both ends.",
    epilog="Exit codes: 0 holds, 1 violated, 2 usage or bad input, 3 incomplete, 4 an answer did not check, 70 an "
    "error of ours, 130 interrupted, 141 nobody reads the output.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

synonyms = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Say which swaps are none.")
app.add_typer(synonyms, name="synonyms")
bench = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure engines beside outside solvers.")
app.add_typer(bench, name="bench")

# `readable=False`: what cannot be read is said by whoever reads it, in one line.
TaskFile = Annotated[
    Path, typer.Argument(metavar="TASK.toml", help="Which model, which texts, which swaps.", readable=False)
]
Out = Annotated[
    Path,
    typer.Option("--out", help="The run folder: a new one, or one to resume.", show_default=False, readable=False),
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Work on a Ray cluster: auto, ray://HOST:PORT or HOST:PORT; --jobs N then takes N of its processors.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object in place of tables.")]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Load a pickled model, which may run any code when it is loaded.")
]
AllowEndpoint = Annotated[
    bool, typer.Option("--allow-endpoint", help="Send texts to the endpoint that the task names.")
]
RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False, readable=False)
]


def version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        print(f"swapproof {importlib.metadata.version('swapproof')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="The run folder.")] = Path("runs/demo"),
) -> None:
    """Certify, check and show a small example."""
    from .commands.demo import demo

    raise typer.Exit(demo(out))


@app.command()
def init(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A file or folder (ONNX, Hugging Face, scikit-learn, model2vec, fastText), package.module:function, "
            "or a URL.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path, typer.Option("--data", help="Labelled texts: .csv, .tsv, .jsonl, .json, .parquet.", readable=False)
    ],
    synonyms: Annotated[
        Path | None,
        typer.Option("--synonyms", help="A synonym table.", show_default="WordNet, if installed", readable=False),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The task file to write.", readable=False)] = Path("task.toml"),
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Say what cannot be told: a key of the task file.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a task file that is there.")] = False,
    trust_pickle: TrustPickle = False,
    allow_endpoint: AllowEndpoint = False,
) -> None:
    """Write a task file for a model of any kind.

    Looks at the model and the data, tries a few texts, and says what it found and what it could not tell.
    """
    from .commands.init_task import command

    raise typer.Exit(
        command(
            model,
            data,
            synonyms,
            out,
            settings or [],
            force=force,
            trust_pickle=trust_pickle,
            allow_endpoint=allow_endpoint,
        )
    )


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="As `init` takes it.", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
    trust_pickle: TrustPickle = False,
) -> None:
    """Show what a model is made of, and whether it will be read or run.

    Inputs and their roles, outputs, operators, sizes, and everything that cannot be read, all at once.
    """
    from .commands.inspect_model import command

    raise typer.Exit(command(model, as_json=json, trust_pickle=trust_pickle))


@app.command()
def certify(
    task: TaskFile,
    out: Out,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    radius: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Require every text that is answered rightly to be robust to R swaps; decides the exit code.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="Require 'certified@2 >= 0.70' or 'accuracy >= 0.9', shares of all texts, 'mmws >= 3' or "
            "'no_text_broken_by = 1'; may be given again.",
            metavar="WHAT",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Require it to be no worse than this run: as much certified, at every number of swaps.",
            metavar="RUN",
            show_default=False,
            readable=False,
        ),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            help="Engines, in order; there are also attacks such as pdp, and gurobi, scip, highs, z3.",
            show_default="greedy,exact,enumerate",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Time for each text; with more than a run had, its open texts are gone on with.")
    ] = 60.0,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    cluster: OnCluster = None,
    small_proofs: Annotated[
        bool, typer.Option("--small-proofs", help="Take more time for proofs of fewer leaves.")
    ] = False,
    resume: Annotated[bool, typer.Option(help="Go on with a run in this folder, or start it anew.")] = True,
    trust_pickle: TrustPickle = False,
    allow_endpoint: AllowEndpoint = False,
    json: AsJson = False,
) -> None:
    """Find the minimum number of swaps of every text.

    Each is an interval whose ends carry evidence: a checked proof, and a sentence that fools the model.
    """
    from .commands.certify import command

    code = command(
        task,
        out,
        limit,
        radius,
        engines,
        seconds,
        jobs,
        require=require or (),
        small_proofs=small_proofs,
        resume=resume,
        trust_pickle=trust_pickle,
        allow_endpoint=allow_endpoint,
        as_json=json,
        baseline=baseline,
        cluster=cluster,
    )
    raise typer.Exit(code)


@app.command()
def shards(
    task: TaskFile,
    count: Annotated[int, typer.Option(min=1, help="How many.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False, readable=False)],
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
) -> None:
    """Cut a task into shards for machines that share files.

    Writes one task file for each shard, and array.sh, which a SLURM cluster runs; `merge` puts the runs together.
    """
    from .commands.many_machines.write_shards import command

    raise typer.Exit(command(task, count, out, limit))


@app.command()
def merge(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Finished runs of `certify`.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False, readable=False)],
    json: AsJson = False,
) -> None:
    """Put the runs of the shards of one task together.

    Refuses runs of other models, swaps or settings, texts that are missing, and texts with two answers.
    """
    from .commands.many_machines.merge_runs import command

    raise typer.Exit(command(runs, out, as_json=json))


@app.command()
def check(
    run: RunFolder,
    exact: Annotated[
        bool, typer.Option("--exact", help="Exact arithmetic for every proof, not only where float64 is unsure.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one for each core")] = None,
    share: Annotated[
        float,
        typer.Option(min=0, max=1, help="Of a model that is run: ask again this share of the sentences, at random."),
    ] = 1.0,
    trust_pickle: TrustPickle = False,
    allow_endpoint: AllowEndpoint = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No line for a text that is accepted; else the first of them have one.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Check every certificate and witness of a run, or one certificate of `verify --proof`.

    Every certificate is checked, every witness replayed, and both are compared with what results.jsonl, the summary
    and the report claim.
    """
    from .commands.check_evidence import command

    code = command(
        run,
        exact=exact,
        jobs=jobs,
        quiet=quiet,
        as_json=json,
        share=share,
        trust_pickle=trust_pickle,
        allow_endpoint=allow_endpoint,
    )
    raise typer.Exit(code)


@app.command()
def report(
    run: RunFolder,
    junit: Annotated[
        Path | None, typer.Option(help="Also as JUnit XML: what is required, and every text.", show_default=False)
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Also every text as CSV.", show_default=False)] = None,
    latex: Annotated[Path | None, typer.Option(help="Also the numbers as a LaTeX table.", show_default=False)] = None,
    card: Annotated[
        Path | None, typer.Option(help="Also a section of a model card: Markdown with YAML.", show_default=False)
    ] = None,
    sarif: Annotated[
        Path | None, typer.Option(help="Also the texts that are broken, as SARIF.", show_default=False)
    ] = None,
    parquet: Annotated[Path | None, typer.Option(help="Also every text as Parquet.", show_default=False)] = None,
    json: AsJson = False,
) -> None:
    """Show what a run found, also as report.html."""
    from .commands.report import command

    files = {"junit": junit, "csv": csv, "latex": latex, "card": card, "sarif": sarif, "parquet": parquet}
    raise typer.Exit(command(run, as_json=json, files=files))


@app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN1 RUN2 ...", help="Folders of runs.", show_default=False, readable=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="A folder for what is found.", show_default=False, readable=False)],
    json: AsJson = False,
) -> None:
    """Compare runs over the same texts and swaps.

    Models or defences side by side: paired differences with intervals, who moved, what got worse; compare.html, .json
    and .csv. The first run is what the others are compared with. Runs of certify, attack or measure, of one kind.
    """
    from .commands.deciding.compare_runs import command

    raise typer.Exit(command(runs, out, as_json=json))


@synonyms.command("reject")
def reject(
    word: Annotated[str, typer.Argument(help="A word.", show_default=False)],
    other: Annotated[str, typer.Argument(help="What is no synonym of it.", show_default=False)],
    task: Annotated[
        Path, typer.Option("--task", metavar="TASK.toml", help="Whose list it is put on.", readable=False)
    ] = Path("task.toml"),
) -> None:
    """Reject a pair of words: neither stands for the other any more.

    The pair goes on the list that [swaps] rejected names, which freezing honours and counts; certify then settles the
    texts that this changes, and keeps the others.
    """
    from .commands.deciding.reject_synonyms import command

    raise typer.Exit(command(word, other, task))


@app.command()
def bundle(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The archive: a new .zip file.", show_default=False)] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Sign with this private ed25519 key.", show_default=False)
    ] = None,
    verify: Annotated[
        Path | None, typer.Option("--verify", help="Check this archive instead of making one.", show_default=False)
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option("--public-key", help="Whose signature it must bear.", show_default=False)
    ] = None,
    new_key: Annotated[
        Path | None, typer.Option("--new-key", help="Make a pair of keys instead.", show_default=False)
    ] = None,
) -> None:
    """Pack a run for an auditor, or check such an archive.

    It holds model, certificates, checkers and a statement of their hashes; a run that does not check is refused.
    """
    from .commands.bundle import command

    raise typer.Exit(command(run, out, key, verify, public_key, new_key))


@app.command()
def attack(
    task: TaskFile,
    out: Out,
    method: Annotated[
        str | None, typer.Option(help="The attack, such as pdp; a wrong name lists them all.", show_default=False)
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(help="Several attacks, each in a folder of its own.", metavar="A,B", show_default=False),
    ] = None,
    exact: Annotated[
        Path | None,
        typer.Option(help="A certify run of the same task: how far each attack is from it.", show_default=False),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    target: Annotated[str | None, typer.Option(help="The class to reach, by name.", show_default="any other")] = None,
    k_max: Annotated[int | None, typer.Option(min=1, help="Candidates of a word.", show_default=False)] = None,
    rho_max: Annotated[
        str | None, typer.Option(help="Share of the words that may be swapped, rounded down.", show_default=False)
    ] = None,
    rho_up: Annotated[bool, typer.Option("--rho-up", help="Round it up.")] = False,
    q_max: Annotated[bool, typer.Option("--q-max", help="At most k-max x words requests a text.")] = False,
    similarity: Annotated[
        float | None, typer.Option(help="Least angular similarity to the original text.", show_default=False)
    ] = None,
    perplexity: Annotated[
        float | None,
        typer.Option(help="Most times the perplexity of the original text; needs --causal-model.", show_default=False),
    ] = None,
    causal_model: Annotated[
        Path | None,
        typer.Option(help="Perplexities by this folder of transformers.", show_default=False, readable=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the attacks that draw.")] = 1,
    kappa: Annotated[
        Path | None, typer.Option(help="sp-attack: a kappa.csv.", show_default=False, readable=False)
    ] = None,
    language_model: Annotated[
        Path | None,
        typer.Option(help="bert-attack, bae, clare: a folder of transformers.", show_default=False, readable=False),
    ] = None,
    read_textattack: Annotated[
        Path | None,
        typer.Option(help="A CSV log of TextAttack: its sentences are replayed.", show_default=False, readable=False),
    ] = None,
    write_textattack: Annotated[
        Path | None, typer.Option(help="Write what is found as such a log.", show_default=False)
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    cluster: OnCluster = None,
    resume: Annotated[bool, typer.Option(help="Go on with a run in this folder, or start it anew.")] = True,
    json: AsJson = False,
    trust_pickle: TrustPickle = False,
    allow_endpoint: AllowEndpoint = False,
) -> None:
    """Attack every text with a published attack.

    What it finds is replayed and counted; it gives the high end only.
    """
    from .attacks.attack_limits import Limits
    from .attacks.attack_run import AttackOptions
    from .commands.attack_texts import command
    from .tasks.deployed_model import Trust

    options = AttackOptions(
        limit,
        target,
        Limits(k_max, rho_max, rho_up, q_max, similarity, perplexity),
        seed,
        jobs,
        resume,
        True,
        kappa,
        language_model,
        Trust(trust_pickle, allow_endpoint),
        causal_model,
        write_textattack,
        cluster,
    )
    raise typer.Exit(command(task, out, method, compare, exact, options, imports=read_textattack, as_json=json))


@app.command()
def measure(
    task: TaskFile,
    out: Out,
    quantity: Annotated[
        str,
        typer.Option(
            help="pr: robust fraction; kappa: single-word flips and rho; msr: safe radius; vote: of smoothed models."
        ),
    ],
    radius: Annotated[
        str | None, typer.Option(help="pr: swaps a sentence may have, or several: 1,2,3.", show_default=False)
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Time for each text.", show_default="pr, msr: 10; kappa: no limit")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="pr: samples a text.", show_default="what epsilon and delta need")
    ] = None,
    epsilon: Annotated[str, typer.Option(help="pr: how far a sampled share may be off ...")] = "0.025",
    delta: Annotated[str, typer.Option(help="... and with which probability it may be further off.")] = "0.005",
    stop_when_width: Annotated[
        str | None,
        typer.Option(
            help="pr: sample each text until its interval is no wider, not a number fixed beforehand.",
            metavar="W",
            show_default=False,
        ),
    ] = None,
    sampled: Annotated[bool, typer.Option("--sampled", help="pr: only sample, count nothing.")] = False,
    brute_force: Annotated[
        bool, typer.Option("--brute-force", help="kappa: evaluate every sentence by onnxruntime, for any model.")
    ] = False,
    euba: Annotated[
        int | None,
        typer.Option(
            min=1, help="kappa: what EUBA finds, stopping after M failures (512).", metavar="M", show_default=False
        ),
    ] = None,
    euba_variant: Annotated[str, typer.Option(help="kappa: paper, top1 or no-mask.")] = "paper",
    require: Annotated[
        list[str] | None,
        typer.Option(help="kappa: require 'rho >= 0.9'; decides the exit code.", metavar="WHAT", show_default=False),
    ] = None,
    norm: Annotated[str | None, typer.Option(help="msr: l2 or linf.", show_default="l2")] = None,
    words: Annotated[
        str | None, typer.Option(help="msr: which words move: one at a time, all, or so many.", show_default="one")
    ] = None,
    units: Annotated[
        str | None, typer.Option(help="msr: raw, or scaled by the range of each dimension.", show_default="raw")
    ] = None,
    padding: Annotated[bool, typer.Option("--padding", help="msr: padding moves too.")] = False,
    saliency: Annotated[
        bool, typer.Option("--saliency", help="msr: the exact effects of words beside their radii.")
    ] = False,
    lime: Annotated[
        int | None, typer.Option(min=10, help="msr: LIME's weights too, of N samples a text.", metavar="N")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="pr, msr: texts worked on at a time, each in a process.")] = 1,
    cluster: OnCluster = None,
    resume: Annotated[bool, typer.Option(help="Go on with a run in this folder, or start it anew.")] = True,
    json: AsJson = False,
) -> None:
    """Measure how much of a data set's swaps a model withstands.

    pr: the share of sentences with at most R swaps that keep their label, counted and certified where it can be.
    kappa: the share of texts that each word of the vocabulary flips, put anywhere in them, exactly; and rho.
    msr: how far the vectors of words may move before the class changes, proved from below, witnessed from above.
    vote: how many swaps the vote over random texts withstands (RanMASK, SAFER), at a stated confidence.
    """
    from .runs.measured_runs import MeasureOptions

    asked = MeasureOptions(
        quantity,
        radius,
        limit,
        seconds,
        samples,
        epsilon,
        delta,
        stop_when_width,
        sampled,
        brute_force,
        euba,
        euba_variant,
        jobs,
        resume,
        tuple(require or ()),
        cluster,
        norm,
        words,
        units,
        padding,
        saliency,
        lime,
    )
    if quantity == "msr":
        from .commands import measure_msr

        raise typer.Exit(measure_msr.command(task, out, asked, as_json=json))
    if quantity == "kappa":
        from .commands import measure_kappa

        raise typer.Exit(measure_kappa.command(task, out, asked, as_json=json))
    if quantity == "vote":
        from .commands.defences import measure_vote

        raise typer.Exit(measure_vote.command(task, out, asked, as_json=json))
    from .commands import measure_pr

    raise typer.Exit(measure_pr.command(task, out, asked, as_json=json))


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="Which network, which texts, how to learn.")],
    out: Annotated[Path, typer.Option("--out", help="The task folder: a new one.", show_default=False)],
) -> None:
    """Train a network; leave a model and a task file.

    The folder holds an ONNX model, its vocabulary, the held-out texts and the task file.
    """
    from swapproof.models.training import train

    train(recipe, out, lambda remark: print(remark, file=sys.stderr, flush=True))
    print(out / "task.toml")


@app.command()
def defend(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECIPE.toml...", help="Recipes to train, or tasks with models that are there.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder, or one to go on with.", show_default=False)],
    methods: Annotated[
        str, typer.Option(help="Defences; ada:pwws learns from an attack's examples, ada:exact from minimal ones.")
    ] = "",
    seeds: Annotated[str, typer.Option(help="Each recipe is trained with each.")] = "0",
    synonyms: Annotated[
        Path | None,
        typer.Option(help="The defenders' table.", show_default="the recipe's own", readable=False),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="Keys of defences: a TOML file of [METHOD] sections.", show_default=False, readable=False),
    ] = None,
    attacks: Annotated[str, typer.Option(help="Attacks of the table.")] = "textfooler",
    pr: Annotated[str, typer.Option(help="Radii of robust fractions: 1,2,3.", show_default="none")] = "",
    rho: Annotated[bool, typer.Option("--rho", help="Also rho, of the texts and of training texts.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    training_texts: Annotated[
        int, typer.Option(min=1, help="Training texts that examples are sought for and rho is of.")
    ] = 1000,
    seconds: Annotated[float, typer.Option(help="Time for each text, of certify and of measure.")] = 10.0,
    jobs: Annotated[int, typer.Option(min=1, help="Texts worked on at a time, each in a process.")] = 1,
    json: AsJson = False,
) -> None:
    """Train, certify, attack and measure defences; one table.

    Every step is a command that you could give yourself, shown as it begins; a killed comparison goes on.
    """
    from .commands.defences.defend_recipes import command, names_of, numbers_of
    from .defending.compared_cell import Asked
    from .defending.defending_runs import DefendOptions

    asked = Asked(limit, seconds, names_of(attacks), numbers_of(pr, "--pr"), rho, jobs)
    options = DefendOptions(names_of(methods), numbers_of(seeds, "--seeds"), synonyms, keys, training_texts, asked)
    raise typer.Exit(command(sources, out, options, as_json=json))


@bench.command("exact")
def bench_exact(
    task: TaskFile,
    engines: Annotated[
        str, typer.Option(help="Our engines and outside solvers, separated by commas.")
    ] = "exact,gurobi,scip,highs",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    seconds: Annotated[float, typer.Option(help="Time for each engine and text.")] = 60.0,
    json: Annotated[
        Path | None, typer.Option("--json", help="A file for every answer, as JSON lines.", show_default=False)
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="A file for a page.", show_default=False)] = None,
) -> None:
    """Find minimum swaps with several engines, one thread each.

    The same texts and the same swaps, one after the other; a table of ratios; exit code 4 if two of them disagree.
    """
    from .bench.comparison import print_comparison
    from .bench.timed_sheet import is_timed_page, write_timed_page
    from .commands.benches.bench_exact import bench_exact
    from .runs.overwriting import refuse_to_replace

    names = [name.strip() for name in engines.split(",") if name.strip()]
    if html is not None:
        refuse_to_replace(html, is_timed_page, "--html")
    table = bench_exact(task, names, limit, seconds, progress=True, json_file=json)
    print_comparison(table)
    if html is not None:
        write_timed_page(html, table)
    raise typer.Exit(table.exit_code)


@bench.command("deep")
def bench_deep(
    task: TaskFile,
    engines: Annotated[
        str, typer.Option(help="Ways of deciding, separated by commas.")
    ] = "boxes,sequence,enumerate,lirpa-ibp,lirpa-crown",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    seconds: Annotated[float, typer.Option(help="Time for each way and text.")] = 10.0,
    radius: Annotated[int, typer.Option(min=1, help="Sentences with up to so many swaps.")] = 4,
    json: Annotated[
        Path | None, typer.Option("--json", help="A file for every answer, as JSON lines.", show_default=False)
    ] = None,
) -> None:
    """Decide a smooth network in several ways, one thread each.

    Our engines and their certificates, plain enumeration in onnxruntime, and what auto_LiRPA claims, on the same texts;
    exit code 4 if two of them disagree or a proof is refused.
    """
    from .bench.deep_table import print_deep
    from .commands.benches.bench_deep import bench_deep

    names = [name.strip() for name in engines.split(",") if name.strip()]
    table = bench_deep(task, names, limit, seconds, radius, progress=True, json_file=json)
    print_deep(table)
    raise typer.Exit(table.exit_code)


@bench.command("check")
def bench_check(
    run: RunFolder,
    seconds: Annotated[float, typer.Option(help="Time for each checker.")] = 600.0,
    json: Annotated[
        Path | None, typer.Option("--json", help="A file for the figures, as JSON.", show_default=False)
    ] = None,
) -> None:
    """Time every checker on a run.

    swapproof check, check.py and check.js (where there is node), one after the other; exit code 4 if one refuses, 3 if
    one was stopped.
    """
    from .commands.benches.bench_check import bench_check, print_timings

    timings = bench_check(run, seconds, json)
    print_timings(timings)
    raise typer.Exit(timings.exit_code)


@bench.command("run")
def bench_run(
    task: TaskFile,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.", show_default=False)] = None,
    radius: Annotated[int, typer.Option(min=1, help="Sentences with up to so many swaps.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Cores for a batch.")] = 1,
    json: Annotated[
        Path | None, typer.Option("--json", help="A file for the figures, as JSON.", show_default=False)
    ] = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Time a model that is run, beside a bare loop.

    Every sentence with a few swaps, as certify asks about it, and the same through onnxruntime alone with the best
    batches; and what certify says beforehand.
    """
    from .commands.benches.bench_run import bench_run, print_figures
    from .tasks.deployed_model import Trust

    trust = Trust(pickle=trust_pickle)
    print_figures(bench_run(task, limit, radius, trust=trust, threads=threads, shown=True, json_file=json))


@bench.command("page")
def bench_page(
    page: Annotated[Path, typer.Argument(metavar="PAGE.md", help="A page with the places of tables.", readable=False)],
    write: Annotated[bool, typer.Option("--write", help="Into the page, instead of printing it.")] = False,
) -> None:
    """Write the tables of a page of measurements.

    A line `<!-- table NAME -->` is followed by the table of measurements/NAME.json, beside the page.
    """
    from .commands.benches import bench_page as command

    if write:
        command.write_page(page)
    else:
        typer.echo(command.bench_page(page), nl=False)


@app.command()
def export(
    task: TaskFile,
    text_id: Annotated[int, typer.Option("--text-id", min=0, help="Which text.", show_default=False)],
    format: Annotated[
        str, typer.Option("--format", help="lp, mps, smt2, vnnlib (1.0) or vnnlib2 (2.0).", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="The file to write.", show_default=False)],
    radius: Annotated[int | None, typer.Option(min=1, help="At most so many swaps.", show_default="any number")] = None,
    choices: Annotated[
        str, typer.Option(help="vnnlib: points (every sentence's words), hull (boxes around them), or auto.")
    ] = "auto",
) -> None:
    """Write the question about one text for other people's solvers.

    lp, mps: an integer program, of the fewest swaps or, with --radius, of the least margin. smt2: exact rationals.
    vnnlib: about the numbers behind the embedding, with the rest of the network as an ONNX file beside it.
    """
    from .commands.export_question import export

    for path in export(task, text_id, format, out, radius, choices):
        print(path)


@app.command()
def vipr(
    run: RunFolder,
    text_id: Annotated[int, typer.Option("--text-id", min=0, help="Which text.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The .vipr file.", show_default=False)],
    most_megabytes: Annotated[int, typer.Option(min=1, help="Give up on a longer derivation.")] = 1024,
) -> None:
    """Write a certificate for checkers of integer programs.

    An integer program made from the model with exact rationals, and a proof in VIPR 1.0 that it has no solution.
    """
    from .commands.write_vipr import vipr

    raise typer.Exit(vipr(run, text_id, out, most_megabytes))


@app.command()
def verify(
    query: Annotated[
        Path | None, typer.Argument(metavar="QUERY.vnnlib", help="A VNN-LIB file, 1.0 or 2.0.", show_default=False)
    ] = None,
    network: Annotated[
        list[str] | None, typer.Option("--network", help="N=MODEL.onnx, or MODEL.onnx.", show_default=False)
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds for one query.", show_default="60, or what the batch says")
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option(
            "--proof",
            help="Answer unsat only with a certificate, written to this file (--batch: to this folder) and checked; "
            "without the solver of last resort.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        Path | None, typer.Option("--batch", help="instances.csv: onnx,vnnlib,seconds.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Decide a VNN-LIB query about a ReLU network.

    Prints sat, unsat, unknown or timed-out; after sat, an input that onnxruntime confirmed. Exit codes 1, 0, 3, 3.
    """
    from .commands.verify import command

    raise typer.Exit(command(query, network or [], timeout, proof, batch, as_json=json))


@app.command()
def doctor(
    kernels: Annotated[
        bool,
        typer.Option(
            "--kernels",
            help="Measure onnxruntime's tanh, sigmoid, erf, exp, ... over every float32 input, and keep it.",
        ),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="With --kernels: every 64th input only.")] = False,
    json: AsJson = False,
) -> None:
    """Show what is installed and what is missing."""
    from .commands import doctor

    if quick and not kernels:
        raise typer.BadParameter("--quick is for --kernels", param_hint="--quick")
    if json and kernels:
        raise typer.BadParameter("--kernels has none; it keeps its table in a file", param_hint="--json")
    if json:
        doctor.doctor_as_json()
    elif kernels:
        doctor.kernels(quick=quick)
    else:
        doctor.doctor()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Bad input is one line on stderr; anything else that fails is a bug, shown
    with its traceback."""
    open_closed_streams()
    collect_seldom()
    for variable, number in ONE_THREAD.items():
        os.environ.setdefault(variable, number)  # before numpy loads; the answer is the same with any --jobs
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looks through all that is installed, for nothing
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a text never fails to be shown
    try:
        code = ended(None if arguments is None else list(arguments))
        sys.stdout.flush()  # a pipe that is closed, or a disk that is full, may only be noticed now
    except BrokenPipeError:
        discard_output()
        return CLOSED_PIPE
    except (ArithmeticError, NotImplementedError, OSError, ValueError) as error:
        refused = code_of(error)
        if refused is None:
            return bug()
        for line in getattr(error, "lines", None) or [one_line(error)]:
            print(f"swapproof: {line}", file=sys.stderr)
        if isinstance(error, OSError):
            discard_output()
        return refused
    except MemoryError:
        print("swapproof: out of memory; a smaller file, fewer --jobs or more memory would do", file=sys.stderr)
        return USAGE
    except Exception:
        return bug()
    return code


def ended(arguments: list[str] | None) -> int:
    """The exit code of a command."""
    refuse_unwritable_names(sys.argv[1:] if arguments is None else arguments)
    try:
        app(args=arguments, prog_name="swapproof")
    except SystemExit as exit:
        return exit_code(exit)
    return HOLDS


def bug() -> int:
    traceback.print_exc()
    return BUG


def code_of(error: BaseException) -> int | None:
    """The exit code of a refusal of one of the packages; None for a bug."""
    from swapproof.encodings import errors as encodings
    from swapproof.models import errors as models
    from swapproof.proofs import errors as proofs

    if isinstance(error, encodings.Disagreement | models.Disagreement):
        return UNCHECKED
    if isinstance(error, OSError) and error.errno in MET_ANYWHERE:
        return USAGE
    bad = encodings.BadInput | models.BadInput | proofs.BadInput | proofs.Unusable
    unsupported = encodings.Unsupported | models.Unsupported | proofs.Unsupported
    return USAGE if isinstance(error, bad | unsupported) else None


def one_line(error: BaseException) -> str:
    """The message, every character of it to be seen; of several problems the first, the others counted."""
    from swapproof.models.errors import visible

    first, *more = getattr(error, "problems", None) or [str(error)]
    if isinstance(error, OSError):
        first = ": ".join(str(part) for part in (error.filename, error.strerror) if part) or first
    first = visible(first.strip()) or type(error).__name__
    return f"{first} (and {len(more)} more)" if more else first


def exit_code(exit: SystemExit) -> int:
    if exit.code is None:
        return HOLDS
    return exit.code if isinstance(exit.code, int) else BUG
