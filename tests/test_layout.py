"""The shape of the repository: folders, who may import whom, what a light import loads."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("encodings", "models", "proofs", "verifier")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
SOLVERS_AND_PLOTS = {"gurobipy", "pyscipopt", "highspy", "z3", "matplotlib"}
HEAVY = {"torch", "onnx", "onnxruntime", "gurobipy", "pyscipopt", "highspy", "z3", "numpy", "matplotlib"}
MOST_IN_A_FOLDER = 15
OWN = ("verifier", "swapproof")
"""Where the files of the import package `swapproof` itself lie."""
OPTIONAL = {
    *("torch", "transformers", "spacy", "textblob", "pyarrow", "tokenizers", "cryptography", "cvc5"),
    *("sklearn", "joblib", "skops", "lime"),
    *("ray", "mlflow"),
}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(tree: ast.AST, package: list[str]) -> set[str]:
    """Dotted names imported anywhere below a syntax tree, relative ones resolved."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            found.add(".".join([*base, *(node.module or "").split(".")]).rstrip("."))
    return found


def package_of(path: Path) -> list[str]:
    inside = path.relative_to(ROOT).parent.parts
    return ["swapproof", *(() if inside == OWN else inside)]


def test_encodings_has_no_init_file() -> None:
    """With one, PYTHONPATH=. would shadow the standard library's `encodings` and Python would not start."""
    assert not (ROOT / "encodings" / "__init__.py").exists()


def test_python_starts_with_the_root_on_its_path() -> None:
    subprocess.run([sys.executable, "-c", "print()"], env={"PYTHONPATH": str(ROOT)}, check=True, capture_output=True)


def test_no_folder_is_too_full_to_be_looked_through() -> None:
    """A newcomer finds a file by its name: at most so many modules beside each other, `__init__.py` not counted."""
    modules = Counter(path.parent.relative_to(ROOT) for path in SOURCES if path.name != "__init__.py")
    assert max(modules.values()) == MOST_IN_A_FOLDER, modules.most_common(3)


def test_modules_have_names_of_their_own() -> None:
    """A name in a traceback or a search is one file; errors excepted, because top folders import none of each other."""
    names = Counter(path.stem for path in SOURCES if path.name not in ("__init__.py", "errors.py"))
    assert not [name for name, number in names.items() if number > 1]


def test_no_module_is_called_as_one_of_the_standard_library() -> None:
    """Run as a script, a file is beside its neighbours on the path, and they would stand in for that library."""
    assert not {path.stem for path in SOURCES} & sys.stdlib_module_names


def test_every_package_on_disk_is_listed() -> None:
    """A sub-folder that is not listed works in an editable install and is missing from the wheel."""
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    on_disk = {".".join(package_of(path)) for path in SOURCES}
    assert listed == on_disk


def test_dependencies_point_one_way() -> None:
    """verifier imports the other three; those import none of each other."""
    wrong = []
    for path in SOURCES:
        own = path.relative_to(ROOT).parts[0]
        allowed = FOLDERS if own == "verifier" else (own,)
        ours = (name.split(".") for name in imports(tree_of(path), package_of(path)) if name.startswith("swapproof."))
        wrong += [(path, parts) for parts in ours if parts[1] not in allowed]
    assert not wrong


def test_optional_packages_are_imported_inside_functions() -> None:
    wrong = []
    for path in SOURCES:
        top = ast.Module([node for node in tree_of(path).body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        wrong += [(path, name) for name in imports(top, package_of(path)) if name.split(".")[0] in OPTIONAL]
    assert not wrong


def test_every_file_says_what_it_is() -> None:
    assert not [path for path in SOURCES if tree_of(path).body and not ast.get_docstring(tree_of(path))]


def test_no_tests_folder_hides_a_module() -> None:
    """Test files share one name space under importlib mode only if their paths differ; helpers must not."""
    names = [path.stem for path in (ROOT / "tests" / "support").glob("*.py")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("command", ["import swapproof.verifier", "import swapproof.verifier.cli"])
def test_light_imports_load_nothing_heavy(command: str) -> None:
    code = f"import sys; {command}; print(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not HEAVY & set(loaded)


def test_a_run_needs_no_solver_and_no_plots(tmp_path: Path) -> None:
    """They are extras."""
    code = (
        f"import sys\nfor name in {SOLVERS_AND_PLOTS!r}:\n    sys.modules[name] = None\n"
        "from swapproof.verifier.cli import main\n"
        f"run = {str(tmp_path / 'run')!r}\n"
        "codes = [main(['demo', '--out', run]), main(['check', run]), main(['report', run])]\n"
        "print('codes', *codes)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "codes 0 0 0"


def test_help_loads_nothing_heavy_and_is_quick() -> None:
    code = (
        "import sys\nfrom swapproof.verifier.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    started = time.monotonic()
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds = time.monotonic() - started
    assert "certify" in result.stdout
    assert not HEAVY & set(result.stderr.split())
    assert seconds < 5.0  # 0.2 s measured; a bound for a busy machine, loading torch alone takes longer


def test_type_checkers_see_every_folder() -> None:
    """.typing/swapproof holds one link per folder, because type checkers cannot follow the package mapping."""
    there = ROOT / ".typing" / "swapproof"
    links = {path.name: path.resolve() for path in there.iterdir()}
    assert links == {folder: ROOT / folder for folder in FOLDERS} | {"__init__.pyi": there / "__init__.pyi"}


def test_the_package_is_the_command_and_knows_its_version() -> None:
    shown = [
        subprocess.run([sys.executable, *arguments], cwd="/", check=True, capture_output=True, text=True).stdout
        for arguments in (
            ["-m", "swapproof", "--version"],
            ["-c", "import swapproof; print('swapproof', swapproof.__version__)"],
        )
    ]
    assert shown[0] == shown[1] != ""


def test_the_package_has_the_names_of_its_api_and_no_others() -> None:
    code = (
        "import swapproof, swapproof.verifier as api\n"
        "print(all(getattr(swapproof, name) is getattr(api, name) for name in api.__all__), hasattr(swapproof, 'x'))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd="/", check=True, capture_output=True, text=True)
    assert run.stdout.split() == ["True", "False"]


def test_nothing_is_left_for_later() -> None:
    for path in SOURCES:
        text = path.read_text()
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            assert word not in text, f"{path} has a {word}"


COMMANDS = "swapproof.verifier.commands"
LONGEST_CHAIN = 13
"""Imports from the top of the house to its ground, by what modules import when they are loaded."""
MODULES = {".".join([*package_of(path), path.stem]).removesuffix(".__init__"): path for path in SOURCES}


def loaded_by(name: str) -> set[str]:
    """The modules of ours that a module imports when it is loaded."""
    path, found = MODULES[name], set()
    body = tree_of(path).body
    for node in (node for node in body if isinstance(node, ast.Import | ast.ImportFrom)):
        for base in imports(ast.Module([node], []), package_of(path)):
            whole = {f"{base}.{alias.name}" for alias in getattr(node, "names", ())} & MODULES.keys()
            found |= whole or {base} & MODULES.keys()
    return found - {name}


def test_commands_stand_apart() -> None:
    """What two of them share is no command: none imports another, and nothing but the command line imports one."""
    for path in (path for path in SOURCES if path.parent.name != "command_line"):
        met = {name for name in imports(tree_of(path), package_of(path)) if name.startswith(COMMANDS)}
        assert not met, (path, met)


def test_the_house_is_no_tower() -> None:
    """Whoever follows a chain of imports downwards arrives soon."""
    graph = {name: loaded_by(name) for name in MODULES}
    depth: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depth:
            depth[name] = 0
            depth[name] = max((1 + depth_of(other) for other in graph[name]), default=0)
        return depth[name]

    highest = max(MODULES, key=depth_of)
    assert depth[highest] <= LONGEST_CHAIN, highest


def test_exit_codes_are_said_once() -> None:
    names = {"HOLDS", "VIOLATED", "USAGE", "INCOMPLETE", "UNCHECKED", "BUG", "INTERRUPTED", "CLOSED_PIPE"}
    for path in SOURCES:
        targets = (node.targets for node in ast.walk(tree_of(path)) if isinstance(node, ast.Assign))
        said = {name.id for target in targets for name in ast.walk(ast.Tuple(target)) if isinstance(name, ast.Name)}
        assert not said & names or path.name == "exit_codes.py", path


def test_audits_print_nothing() -> None:
    for path in (ROOT / "verifier" / "audit").rglob("*.py"):
        calls = (node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
        assert "print" not in {call.id for call in calls if isinstance(call, ast.Name)}, path
