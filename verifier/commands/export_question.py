"""`swapproof export`: the question about one text as a file for other people's solvers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb
from pathlib import Path

import numpy as np

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.evaluation import logits
from swapproof.encodings.formulas.query_formula import formula
from swapproof.encodings.formulas.smtlib_writing import smtlib_text
from swapproof.encodings.network import Embedding
from swapproof.encodings.onnx_files.onnx_reading import network_for
from swapproof.encodings.onnx_files.onnx_writing import embedded, embedded_positions, model_behind_embedding
from swapproof.encodings.programs.integer_program import Program
from swapproof.encodings.programs.program_files import lp_text, mps_text
from swapproof.encodings.programs.tight_program import tight
from swapproof.encodings.programs.tight_rows import Options
from swapproof.encodings.query import Query
from swapproof.encodings.vnnlib.linear_property import Atom, Case, Property, Tensor
from swapproof.encodings.vnnlib.vnnlib_writing import vnnlib_text

from ..exit_codes import HOLDS
from ..ladder.token_length import length_of
from ..pages.printing.json_printing import print_json
from ..runs.overwriting import is_exported, is_exported_model, refuse_to_replace
from ..runs.run_folder import write_atomically
from ..tasks.inputs import Inputs, Text, read_inputs
from ..tasks.opened_model import opened
from ..tasks.task import read_task

FORMATS = ("lp", "mps", "smt2", "vnnlib", "vnnlib2")
CHOICES = ("auto", "points", "hull")
MOST_POINTS = 10_000
"""Sentences written one by one."""
MOST_BOXES = 2_000
"""Boxes around the words of so many swapped positions."""


def command(
    task: Path, text_id: int, format: str, out: Path, radius: int | None, choices: str, *, as_json: bool = False
) -> int:
    """The paths of what was written."""
    files = export(task, text_id, format, out, radius, choices)
    if as_json:
        print_json({"exit_code": HOLDS, "text": text_id, "format": format, "files": [str(path) for path in files]})
    else:
        print(*files, sep="\n")
    return HOLDS


def export(task_path: Path, text_id: int, format: str, out: Path, radius: int | None, choices: str) -> list[Path]:
    """Writes the file, and for VNN-LIB the model beside it; returns what was written."""
    if format not in FORMATS:
        raise BadInput(f"--format {format}: {', '.join(FORMATS)} are written")
    if choices not in CHOICES:
        raise BadInput(f"--choices {choices}: {', '.join(CHOICES)}")
    refuse_to_replace(out, is_exported)
    if format in ("vnnlib", "vnnlib2"):
        refuse_to_replace(model_beside(out), is_exported_model)
    task = read_task(task_path)
    model = opened(task)
    inputs = read_inputs(task, length_of(task, model), roles=model.roles)
    text = next((text for text in inputs.texts if text.id == text_id), None)
    if text is None:
        raise BadInput(f"--text-id {text_id}: no such text; {task.data.file} holds {len(inputs.texts)}")
    network = network_for(model, text.frozen.space)
    query = Query.of(network, text.frozen.space, text.label)
    remarks = list(about(text, inputs, query, radius, model.path.name))
    answer = int(logits(network, np.array([query.space.original]))[0].argmax())
    if answer != query.label:
        names = dict(enumerate(inputs.labels))
        said = f"the model already answers {names.get(answer, answer)}, not {names[text.label]}"
        print(f"swapproof: text {text.id}: {said}: no swap is needed to break it", file=sys.stderr)
    if format in ("vnnlib", "vnnlib2"):
        return write_vnnlib(query, radius, choices, 2 if format == "vnnlib2" else 1, out, remarks)
    writers: dict[str, Callable[[Query, int | None, Sequence[str]], str]] = {
        "lp": lambda query, radius, remarks: program_text(query, radius, remarks, lp_text),
        "mps": lambda query, radius, remarks: program_text(query, radius, remarks, mps_text),
        "smt2": formula_text,
    }
    written(out, writers[format](query, radius, remarks))
    return [out]


def written(path: Path, content: str | bytes) -> None:
    write_atomically(path, content if isinstance(content, bytes) else content.encode())


def about(text: Text, inputs: Inputs, query: Query, radius: int | None, model: str) -> Iterator[str]:
    """Comment lines: the question, and which numbers stand for which words."""
    swaps = "any number of swaps" if radius is None else f"at most {radius} swap{'s' * (radius > 1)}"
    yield f"swapproof: text {text.id} of class {inputs.labels[text.label]}, model {model}"
    yield f"Does some sentence with {swaps} make another class win?"
    yield " ".join(text.encoded.words)
    for index, words in enumerate(text.frozen.words):
        position, count = text.encoded.places[index]
        options = query.space.choices[position] if count else ()
        for word, token in list(zip(words, options, strict=False))[1:]:
            shown = f"{words[0]} -> {word}"
            yield f"position {position}, token {token}: {' '.join(shown.split())}"


def program_text(
    query: Query, radius: int | None, remarks: Sequence[str], write: Callable[[Program, Sequence[str]], str]
) -> str:
    """With a radius the least margin, without the fewest swaps."""
    most = max(1, len(query.space.swappable))
    rivals = tuple(range(len(query.rivals)))
    objective = Options(objective="swaps" if radius is None else "margin", together=len(rivals) > 1)
    made = tight(Differences.of(query), rivals, most if radius is None else min(radius, most), objective)
    meaning = (
        "The objective is the number of swaps; infeasible: no sentence breaks the text."
        if radius is None
        else "The objective is the least margin of the label: below 0, some sentence breaks the text."
    )
    more = [meaning, "swap_P_T: the word at position P becomes token T", *([made.remark] if made.remark else [])]
    return write(made.program, [*remarks, *more])


def formula_text(query: Query, radius: int | None, remarks: Sequence[str]) -> str:
    most = len(query.space.swappable)
    problem = formula(query, most if radius is None else min(radius, most))
    return smtlib_text(problem, [*remarks, "swap_P_T: the word at position P becomes token T; exact rationals"])


def write_vnnlib(
    query: Query, radius: int | None, choices: str, version: int, out: Path, remarks: Sequence[str]
) -> list[Path]:
    model_path = model_beside(out)
    made, said = property_of(query, radius, choices, version)
    model = model_behind_embedding(query.network)
    header = [*remarks, f"The network behind its embedding: {model_path.name}", said]
    if version == 1:
        header.append("Equal logits count as won by the other class, which they are not always.")
    written(out, vnnlib_text(made, header))
    written(model_path, model.SerializeToString())
    return [out, model_path]


def model_beside(out: Path) -> Path:
    """Where the model of a VNN-LIB file goes."""
    path = out.with_suffix(".onnx")
    if path == out:
        raise BadInput(f"{out}: the model takes this name; end the query in .vnnlib")
    return path


def property_of(query: Query, radius: int | None, choices: str, version: int) -> tuple[Property, str]:
    """The property over the embedded numbers, and what its boxes are."""
    most = len(query.space.swappable)
    k = most if radius is None else min(radius, most)
    sentences = sum(query.space.counts()[: k + 1])
    if choices == "points" and sentences > MOST_POINTS:
        raise Unsupported(f"--choices points: {sentences} sentences; {MOST_POINTS} are written: use hull, or --radius")
    rows = embedded(query.network, query.space.original).size
    shape = (rows,) if version == 1 else (1, rows)
    kind = "Real" if version == 1 else "float32"
    inputs = Tensor("X", kind, shape, numbered=version == 1)
    outputs = Tensor(
        "Y", kind, (query.network.classes,) if version == 1 else (1, query.network.classes), 0, version == 1
    )
    if choices == "points" or (choices == "auto" and sentences <= MOST_POINTS):
        boxes = [(point, point) for point in points(query, k)]
        said = f"Word choices as a disjunction of {len(boxes)} points, one for each sentence: exact."
    elif k < most and comb(most, k) <= MOST_BOXES:
        boxes = [hull(query, positions) for positions in combinations(query.space.swappable, k)]
        said = f"Word choices as {len(boxes)} boxes, the hulls of the choices at {k} positions: sat proves nothing."
    else:
        boxes = [hull(query, query.space.swappable)]
        said = "Word choices as one box, the hull of the choices at every position: sat proves nothing."
    cases = []
    for rival in query.rivals:
        difference = {query.label: Fraction(1), rival: Fraction(-1)}
        atom = Atom({}, difference, Fraction(0), strict=version == 2 and rival > query.label)
        cases += [Case(low, high, (atom,)) for low, high in boxes]
    return Property(version, "N", inputs, outputs, tuple(cases)), said


Numbers = tuple[Fraction, ...]


def points(query: Query, k: int) -> Iterator[Numbers]:
    """The embedded numbers of every sentence with at most k swaps."""
    space = query.space
    for count in range(k + 1):
        for positions in combinations(space.swappable, count):
            for tokens in product(*(space.choices[position][1:] for position in positions)):
                sentence = space.sentence(zip(positions, tokens, strict=True))
                yield tuple(Fraction(float(value)) for value in embedded(query.network, sentence))


def hull(query: Query, positions: Sequence[int]) -> tuple[Numbers, Numbers]:
    """The box around the embedded choices of these positions, the others at the original."""
    low = [Fraction(float(value)) for value in embedded(query.network, query.space.original)]
    high = list(low)
    free = set(positions)
    for index, start in embedded_positions(query.network):
        layer = query.network.nodes[index].layer
        if not isinstance(layer, Embedding):
            continue
        size = layer.table.shape[1]
        for place, position in enumerate(layer.positions.reshape(-1).tolist()):
            if position not in free:
                continue
            words = layer.table[list(query.space.choices[position])]
            for column in range(size):
                at = start + place * size + column
                low[at] = Fraction(float(words[:, column].min()))
                high[at] = Fraction(float(words[:, column].max()))
    return tuple(low), tuple(high)
