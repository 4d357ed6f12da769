"""What a bundle holds, and the statement that is made of its files; a statement is believed when it is made again."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.proofs import check as checker
from swapproof.proofs.writing.certificate import merkle_root

from ...runs.external_tensors import external_files
from ...runs.manifest import read_manifest
from ...runs.run_folder import CERTIFICATE, Run
from ...tasks.opened_model import opened_in
from ..run_items import statements_of
from .archive import Content, Member
from .envelope import Signed, Tampered, fingerprint, statement_bytes
from .how_to_check import HOW_TO_CHECK

KIND = "urn:swapproof:certificates:v1"
"""The predicate type of our statements."""
ENVELOPE = "statement.dsse.json"
TRUSTED = (
    *("check.py", "smooth_leaves.py", "smooth_intervals.py", "smooth_blocks.py", "enclosures.py", "exact_network.py"),
    *("lower.py", "smooth_operators.py", "onnx_graph.py", "onnx_file.py"),
    *("attention_leaf.py", "attention_sums.py", "expansion/expansion_leaf.py", "expansion/expansion_costs.py"),
    *("sums/swap_gains.py", "sums/weighted_sums.py", "sums/packed_columns.py"),
)
"""What `python -I -S check.py` runs."""
CHECKERS = ("FORMAT.md", "check.html", "check.js", *TRUSTED)
PAGE = "HOW-TO-CHECK.md"
FOLDER = "run/"
FILES = (
    *("manifest.json", "model.onnx", "results.jsonl", "spaces.jsonl", "summary.json", "task.toml", "texts.jsonl"),
    "vocabulary.json",
)
"""Of a run, besides its certificates and the external tensors that these name."""
ROOT = f"{FOLDER}certificates/root"
MADE_WITH = ("swapproof", "numpy", "onnx", "onnxruntime", "python")
BUNDLER = "bundled by swapproof"
"""In a statement, the version of which only its maker knows."""
COUNTS = ("texts", "already_wrong", "unbreakable", "exact", "open", "ambiguous")
"""Of summary.json, those it has, as they go into the statement."""
MEBIBYTE = 1 << 20
ALLOWED = {
    re.escape(ENVELOPE): 256 * MEBIBYTE,
    "|".join(re.escape(name) for name in (*CHECKERS, PAGE)): 16 * MEBIBYTE,
    r"run/certificates/([0-9]{6}\.json|root)": checker.MAX_CERTIFICATE,
    r"run/(?!certificates$)[A-Za-z0-9_][A-Za-z0-9._-]{0,99}": checker.MAX_FILE,
}
"""Names of members, and how large each may be."""


def contents_of(run: Run) -> dict[str, Content]:
    """Every member but the envelope."""
    for name in FILES:
        if not (run.folder / name).is_file():
            raise BadInput(f"{run.folder / name}: is missing, and a bundle holds it; give the command of the run again")
    needed = [run.folder / name for name in (*FILES, *external_files(opened_in(run).path))]
    found = run.certificates.iterdir() if run.certificates.is_dir() else ()
    certificates = sorted(path for path in found if CERTIFICATE.fullmatch(path.name))
    if not certificates:
        raise BadInput(f"{run.folder}: holds no certificates: nothing in it can be proved to an auditor")
    contents: dict[str, Content] = {FOLDER + path.name: path for path in needed}
    contents |= {f"{FOLDER}certificates/{path.name}": path for path in certificates}
    contents[ROOT] = f"{root_of(certificates)}\n".encode()
    return contents | own_files()


def own_files() -> dict[str, bytes]:
    """What comes from this installation: the checkers, their format, and how to use them."""
    checkers = {name: files("swapproof.proofs").joinpath(name).read_bytes() for name in CHECKERS}
    return {**checkers, PAGE: HOW_TO_CHECK.encode()}


def certificates_among(names: Iterable[str]) -> list[str]:
    folder = f"{FOLDER}certificates/"
    return sorted(n for n in names if n.startswith(folder) and CERTIFICATE.fullmatch(n.removeprefix(folder)))


def root_of(certificates: Iterable[Path]) -> str:
    return merkle_root([(path.name, path.read_bytes()) for path in certificates])


def predicate(contents: dict[str, Content], members: dict[str, Member]) -> dict[str, Any]:
    """What is said of the files as a whole; `--verify` finds all of it again but what made the bundle."""
    root = contents[ROOT]
    summary, manifest = (contents.get(FOLDER + name) for name in ("summary.json", "manifest.json"))
    return {
        "certificates": len(certificates_among(members)),
        "checker": [{"name": name, "sha256": members[name].sha256} for name in TRUSTED],
        "counts": counts_of(summary) if isinstance(summary, Path) else None,
        "merkleRoot": root.decode().strip() if isinstance(root, bytes) else "",
        "versions": versions_of(manifest) if isinstance(manifest, Path) else {},
    }


def counts_of(summary: Path) -> dict[str, Any]:
    found = json.loads(summary.read_text(encoding="utf-8"))
    return {name: found[name] for name in COUNTS if name in found}


def versions_of(manifest: Path) -> dict[str, str]:
    """What the run says it was made with, and what made the bundle."""
    stated = read_manifest(manifest.read_bytes())["versions"]
    made = {name: str(stated[name]) for name in MADE_WITH if name in stated}
    return {**made, BUNDLER: importlib.metadata.version("swapproof")}


def signature_line(signed: Signed, trusted: bytes | None) -> str:
    if signed.key is None:
        if trusted is not None:
            raise Tampered("it is not signed, and --public-key asks for a signature")
        return "not signed: anybody could have put it together"
    name = fingerprint(signed.key)
    if trusted is None:
        return f"signature by an unknown key, fingerprint {name}: say whose signature it must be with --public-key"
    if signed.key != trusted:
        raise Tampered(f"it is signed by another key, fingerprint {name}, not {fingerprint(trusted)}")
    return f"signature by the key given, fingerprint {name}"


def compare(statement: dict[str, Any], members: dict[str, Member], folder: Path) -> None:
    """The statement must be the one that we would make of these files."""
    if statement.get("predicateType") != KIND:
        raise Tampered(f"its statement is of another kind than {KIND}")
    subjects = {name: member.sha256 for name, member in members.items() if name != ENVELOPE}
    try:
        stated = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
        bundler = str(statement["predicate"]["versions"][BUNDLER])
    except (KeyError, TypeError) as error:
        raise Tampered(f"its statement is not of our form ({type(error).__name__}: {error})") from None
    for name in sorted(stated.keys() | subjects.keys()):
        if stated.get(name) != subjects.get(name):
            fault = "is missing" if name not in subjects else "was added" if name not in stated else "is another file"
            raise Tampered(f"{name} {fault}, by the statement")
    listed = certificates_among(members)
    if not listed:
        raise Tampered("it holds no certificates")
    tensors = {name for one in statements_of(folder / FOLDER).values() for name, _ in one["model"]["tensors"]}
    needed = {FOLDER + name for name in (*FILES, *tensors)} | {*CHECKERS, PAGE}
    for name in sorted(needed.symmetric_difference(subjects.keys() - {*listed, ROOT})):
        raise Tampered(f"{name} {'is missing' if name in needed else 'does not belong into such an archive'}")
    contents: dict[str, Content] = {name: folder / name for name in subjects}
    contents[ROOT] = f"{root_of(folder / name for name in listed)}\n".encode()
    try:
        again = predicate(contents, members)
        again["versions"][BUNDLER] = bundler
        summary = json.loads((folder / FOLDER / "summary.json").read_bytes())
        differing = summary.get("versions", {}).items() - again["versions"].items()
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        raise Tampered(f"its summary.json or manifest.json cannot be read ({type(error).__name__}: {error})") from None
    if differing:
        raise Tampered(f"summary.json and manifest.json name other versions of {min(differing)[0]}")
    if json.loads(statement_bytes(subjects.items(), KIND, again)) != statement:
        raise Tampered("its statement says other things of the files than they do")
