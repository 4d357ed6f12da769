"""The table of kernels: kept for one runtime, refused for another, and what it says of the stated bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from command_runs import Capture

from swapproof.encodings.errors import BadInput
from swapproof.encodings.rounding.kernel_errors import KERNEL_ERRORS, softmax_error
from swapproof.verifier.cli import main
from swapproof.verifier.kernels import kernel_measuring, kernel_table
from swapproof.verifier.kernels.kernel_sweep import Measured, Peak
from swapproof.verifier.kernels.kernel_table import Runtime, Table, keep, measured_kernels, path_of, read_table

RUNTIME = Runtime("1.0", "a processor", ("avx2", "fma"))
TABLE = Table(
    RUNTIME,
    1,
    {"tanh": Measured(10, absolute=Peak(3e-7, 8.5), times_fallen=2)},
    {"cell": Measured(5, absolute=Peak(2e-7, -8.0))},
    {"tanh": 0},
    {"inputs": 4, "relative": 5e-8},
    {"inputs": 4, "absolute": 1e-7, "relative": 1e-6, "part_of_stated": 0.4},
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "swapproof"


def test_it_is_kept_and_read_again(cache: Path) -> None:
    assert measured_kernels(RUNTIME) is None
    assert keep(TABLE).parent == cache
    assert measured_kernels(RUNTIME) == TABLE


def test_a_table_of_all_inputs_goes_before_a_sample() -> None:
    sample = replace(TABLE, every=kernel_table.QUICK)
    keep(sample)
    assert measured_kernels(RUNTIME) == sample
    keep(TABLE)
    assert measured_kernels(RUNTIME) == TABLE


@pytest.mark.parametrize("other", [{"onnxruntime": "2.0"}, {"processor": "another"}, {"features": ("avx2",)}])
def test_a_table_of_another_runtime_is_not_read(other: dict[str, Any]) -> None:
    """It has another name; and where a file is copied to that name it is refused."""
    path, here = keep(TABLE), replace(RUNTIME, **other)
    assert measured_kernels(here) is None
    path_of(here, 1).write_text(path.read_text())
    with pytest.raises(BadInput, match=r"a table of onnxruntime 1\.0 on a processor; .* measure again"):
        measured_kernels(here)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": 2}', '{"format": 1, "runtime": 3}'])
def test_a_broken_file_is_refused_by_name(text: str) -> None:
    path = keep(TABLE)
    path.write_text(text)
    with pytest.raises(BadInput, match="not a table of kernels"):
        read_table(path, RUNTIME)


def test_it_says_which_stated_bounds_do_not_hold() -> None:
    assert TABLE.exceeding == ()
    wrong = Measured(10, absolute=Peak(1e-6, 8.5), exceeded=3, exceeded_at=8.25)
    worse = replace(
        TABLE,
        functions={"tanh": wrong},
        gates={"cell": wrong},
        division={"inputs": 4, "relative": 7e-8},
        softmax={**TABLE.softmax, "part_of_stated": 1.5},
    )
    assert [line.split(" exceeds")[0] for line in worse.exceeding] == [
        "tanh", "the cell gate of an LSTM", "division", "softmax"
    ]  # fmt: skip
    assert "3 inputs, 8.25 the first" in worse.exceeding[0]


def test_this_machine_is_named() -> None:
    here = Runtime.here()
    assert here.onnxruntime
    assert here.processor
    assert Runtime.here() == here


def test_the_stated_bounds_are_exact_numbers() -> None:
    assert {name: (one.absolute, one.relative) for name, one in KERNEL_ERRORS.items()} == {
        **dict.fromkeys(("tanh", "sigmoid", "erf"), (Fraction(1, 2**21), Fraction(0))),
        "exp": (Fraction(1, 2**126), Fraction(1, 2**22)),
        "sqrt": (Fraction(1, 2**63), Fraction(1, 2**24)),
        **dict.fromkeys(("reciprocal", "division"), (Fraction(1, 2**126), Fraction(1, 2**24))),
    }
    assert softmax_error(2, Fraction(0)) == Fraction(10, 2**24 - 10)
    with pytest.raises(ValueError, match="no bound"):
        softmax_error(10, Fraction(2**23))


def test_the_command_measures_prints_and_keeps(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """In the processes that it starts; of every 65,536th input here."""
    monkeypatch.setattr(kernel_table, "QUICK", 1 << 16)
    for name, number in (("SAMPLE", 1 << 12), ("ROWS", 50), ("SHORT", 1 << 8)):
        monkeypatch.setattr(kernel_measuring, name, number)
    assert main(["doctor", "--kernels", "--quick"]) == 0
    said = capsys.readouterr().out
    for name in ("tanh", "sigmoid", "erf", "exp", "sqrt", "reciprocal", "LSTM forget", "softmax", "division"):
        assert name in said
    (kept,) = cache.iterdir()
    table = measured_kernels()
    assert table is not None
    assert table.every == 1 << 16
    assert table.functions["tanh"].inputs == 2 * (0x7F800000 >> 16)
    assert json.loads(kept.read_text())["runtime"]["onnxruntime"] == Runtime.here().onnxruntime
    assert ("every stated bound holds" in said) == (not table.exceeding)


def test_quick_is_for_kernels(capsys: Capture) -> None:
    assert main(["doctor", "--quick"]) == 2
    assert "--kernels" in capsys.readouterr().err
