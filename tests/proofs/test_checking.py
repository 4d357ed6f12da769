"""check.py as a program: alone, from a bare folder, failing closed."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from swapproof.proofs import check, check_box, exact_network, lower, onnx_file
from swapproof.proofs.writing import certificate as c

HERE = Path(__file__).parent
PROGRAM = Path(check.__file__).resolve()


TRUSTED = (
    *("check.py", "enclosures.py", "exact_network.py", "lower.py", "onnx_file.py", "onnx_graph.py"),
    *("smooth_blocks.py", "smooth_intervals.py", "smooth_leaves.py", "smooth_operators.py", "check_box.py"),
    *("attention_leaf.py", "attention_sums.py", "ball_forms.py", "check_ball.py"),
    *("expansion/expansion_costs.py", "expansion/expansion_leaf.py"),
    *("sums/packed_columns.py", "sums/swap_gains.py", "sums/weighted_sums.py"),
)


def run(*arguments: str | Path, optimised: bool = False) -> subprocess.CompletedProcess[str]:
    flags = ["-I", "-S", *(["-O"] if optimised else [])]
    command = [sys.executable, *flags, str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of three certificates on one model."""
    (tmp_path / "certificates").mkdir()
    shutil.copy(HERE / "accepted" / "paper.onnx", tmp_path)
    for number, name in enumerate(("paper", "witness-only", "all-open")):
        value = json.loads((HERE / "accepted" / f"{name}.json").read_text())
        write(tmp_path, number, value)
    return tmp_path


def write(folder: Path, number: int, value: dict[str, object]) -> None:
    data = json.dumps({**value, "id": number}, sort_keys=True, separators=(",", ":"))
    (folder / "certificates" / f"{number:06}.json").write_text(data)


def root_of(folder: Path) -> str:
    files = sorted((folder / "certificates").glob("*.json"))
    return c.merkle_root([(file.name, file.read_bytes()) for file in files])


@pytest.mark.parametrize("optimised", [False, True], ids=["plain", "python -O"])
def test_a_run_is_accepted_in_the_last_line(folder: Path, optimised: bool) -> None:
    """One plain sentence per certificate, the Merkle root, then `accepted 3 of 3` and exit code 0."""
    done = run(folder, optimised=optimised)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[-1] == "accepted 3 of 3"
    assert lines[-2] == f"Merkle root {root_of(folder)}"
    assert "min_swaps = " in lines[0]
    assert "as recorded, not checked" in lines[0]


def test_the_trusted_files_are_all_that_is_needed(folder: Path, tmp_path: Path) -> None:
    """Alone in a folder; what one of them raises the others know."""
    bare = tmp_path / "bare"
    for name in TRUSTED:
        (bare / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAM.parent / name, bare / name)
    command = [sys.executable, "-I", "-S", str(bare / "check.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1] == "accepted 3 of 3"
    command = [sys.executable, "-I", "-S", "-c", SAME_CLASSES, str(bare / "check_box.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("1\n1\n1\n", "")
    assert check.Refused is lower.Refused is onnx_file.Refused is check_box.Refused
    assert check.Unusable is lower.Unusable is onnx_file.Unusable is check_box.Unusable
    assert check.Network is exact_network.Network
    assert issubclass(check_box.Network, exact_network.Network)


SAME_CLASSES = """
import runpy, sys
box = runpy.run_path(sys.argv[1])
files = [sys.modules[name] for name in ("check", "exact_network", "lower", "onnx_file")]
for name in ("Refused", "Unusable", "Network"):
    print(len({getattr(file, name) for file in files if hasattr(file, name)}))
assert box["Refused"] is sys.modules["check"].Refused
assert issubclass(box["Network"], sys.modules["check"].Network)
assert sys.modules["exact_network"].need is sys.modules["check"].need is sys.modules["onnx_file"].need
"""


@pytest.mark.parametrize("optimised", [False, True], ids=["plain", "python -O"])
@pytest.mark.parametrize("name", ["tree-one-linear-leaf", "stronger-claim", "many-counterexample", "fraction", "deep"])
def test_a_refused_file_leaves_with_4(name: str, optimised: bool) -> None:
    """Never the word accepted."""
    done = run(HERE / "refused" / f"{name}.json", optimised=optimised)
    assert done.returncode == 4
    assert "accepted" not in done.stdout
    assert done.stdout.splitlines()[-1] == "refused 1 of 1"


def test_one_bad_certificate_refuses_the_run(folder: Path) -> None:
    """The others are still named."""
    (folder / "certificates" / "000001.json").write_bytes((HERE / "refused" / "fraction.json").read_bytes())
    done = run(folder)
    assert done.returncode == 4
    assert "accepted" not in done.stdout
    assert done.stdout.splitlines()[-1] == "refused 1 of 3"
    assert "000002.json: text" in done.stdout


def test_a_copy_under_another_number_is_refused(folder: Path) -> None:
    """A certificate cannot be counted twice."""
    shutil.copy(folder / "certificates" / "000000.json", folder / "certificates" / "000007.json")
    assert run(folder).returncode == 4


def test_a_stated_merkle_root_must_be_the_root(folder: Path) -> None:
    """certificates/root is optional, and binding when it is there."""
    stated = folder / "certificates" / "root"
    stated.write_text(root_of(folder) + "\n")
    assert run(folder).returncode == 0
    stated.write_text("0" * 64 + "\n")
    done = run(folder)
    assert done.returncode == 4
    assert "accepted" not in done.stdout


@pytest.mark.parametrize("seconds", ["0"])
def test_running_out_of_time_is_a_refusal(folder: Path, seconds: str) -> None:
    """Not checked in time is not checked."""
    done = run("--seconds", seconds, folder / "certificates" / "000000.json")
    assert done.returncode == 4
    assert "not checked within the time allowed" in done.stdout


def test_nothing_to_check_leaves_with_2(folder: Path, tmp_path: Path) -> None:
    """Usage, missing folders and models, an empty run, a stray file, a model outside the format."""
    assert run().returncode == 2
    assert run("--help").returncode == 2
    assert run(folder, folder).returncode == 2
    assert run(tmp_path / "absent").returncode == 2
    empty = tmp_path / "empty"
    (empty / "certificates").mkdir(parents=True)
    assert run(empty).returncode == 2
    stray = folder / "certificates" / "notes.json"
    stray.write_text("{}")
    assert run(folder).returncode == 2
    stray.unlink()
    (folder / "paper.onnx").unlink()
    done = run(folder)
    assert done.returncode == 2
    assert "accepted" not in done.stdout
    assert "paper.onnx cannot be read" in done.stderr


def test_the_root_has_the_shape_of_rfc_6962() -> None:
    """Three leaves: the first two are joined, the third stands alone at the right."""
    leaves = [("000000.json", b"a"), ("000001.json", b"b"), ("000002.json", b"c")]

    def digest(data: bytes) -> bytes:
        return hashlib.sha256(data).digest()

    first, second, third = (digest(b"\0" + name.encode() + b"\n" + data) for name, data in leaves)
    expected = digest(b"\1" + digest(b"\1" + first + second) + third)
    assert c.merkle_root(leaves) == expected.hex()


ROOMS = {Path(name).parent.name for name in TRUSTED} - {""}


@pytest.mark.parametrize(
    "program", sorted(PROGRAM.parent / name for name in (*TRUSTED, *(f"{room}/__init__.py" for room in ROOMS)))
)
def test_the_checkers_import_the_standard_library_and_each_other_only_and_assert_nothing(program: Path) -> None:
    """What is trusted stands in these files; a neighbour is loaded from its own folder when there is no package."""
    tree = ast.parse(program.read_text())
    imported: set[str] = set()
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Assert)
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            assert {alias.name for alias in node.names} <= {Path(name).stem for name in TRUSTED} | ROOMS
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported <= sys.stdlib_module_names
    assert not imported & {"pickle", "marshal", "ctypes", "subprocess", "socket"}


KERNEL_LINES = {
    "attention_leaf.py": 450,
    "attention_sums.py": 320,
    "ball_forms.py": 320,
    "check.py": 900,
    "enclosures.py": 190,
    "exact_network.py": 300,
    "expansion/expansion_costs.py": 300,
    "expansion/expansion_leaf.py": 300,
    "lower.py": 770,
    "onnx_file.py": 400,
    "onnx_graph.py": 400,
    "smooth_blocks.py": 100,
    "smooth_intervals.py": 320,
    "smooth_leaves.py": 200,
    "smooth_operators.py": 300,
    "sums/packed_columns.py": 60,
    "sums/swap_gains.py": 170,
    "sums/weighted_sums.py": 200,
}


@pytest.mark.parametrize("name", sorted(KERNEL_LINES))
def test_the_lines_of_the_kernel_are_counted(name: str) -> None:
    """Lines with a token, docstrings left out."""
    source = (PROGRAM.parent / name).read_text()
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    assert len(lines) <= KERNEL_LINES[name]


NOT_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
