"""`bundle`: a run, its certificates and their checkers as one archive with a signed statement; and its verification."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.proofs import check as checker
from swapproof.proofs.certificate import merkle_root
from swapproof.proofs.onnx_file import Refused, Unusable

from ..audit.archive import Content, Malformed, Member, measured, read_archive, write_archive
from ..audit.bundled_run import compared, statements_of
from ..audit.envelope import (
    Signed,
    Tampered,
    fingerprint,
    new_key,
    private_key,
    public_key,
    seal,
    statement_bytes,
    unseal,
)
from ..runs.external_tensors import external_files
from ..runs.run_folder import CERTIFICATE, Run, existing, held
from ..runs.run_summary import HOLDS, UNCHECKED
from .check_measured import check_measured, question_of
from .check_run import check

KIND = "urn:swapproof:certificates:v1"
"""The predicate type of our statements."""
ENVELOPE = "statement.dsse.json"
CHECKERS = ("FORMAT.md", "check.html", "check.js", "check.py", "lower.py", "network.py", "onnx_file.py")
PAGE = "HOW-TO-CHECK.md"
FOLDER = "run/"
FILES = ("model.onnx", "results.jsonl", "spaces.jsonl", "summary.json", "task.toml", "texts.jsonl", "vocabulary.json")
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
HOW_TO_CHECK = """# How to check this bundle

`run/` holds a text classifier (`model.onnx`), its texts (`texts.jsonl`), what may be swapped in each
(`spaces.jsonl`), and certificates: how many words of a text must be swapped before the classifier changes its answer,
or in how many sentences with so many swaps it keeps it. FORMAT.md says what is claimed, what is not, and why it
holds. Three commands:

    python3 -I -S check.py run
    sha256sum check.py lower.py onnx_file.py
    swapproof bundle --verify THIS_FILE.zip --public-key THEIR_KEY.pub.pem

1. Checks every certificate in exact arithmetic with Python's standard library alone. Believe it only when its last
   line is `accepted N of N`, with the N that you expect (below). Without Python: open check.html in a browser and
   drop the folder `run` on it.
2. Compare with the SHA-256 of these three, which lie in `proofs` of swapproof, in a copy of swapproof that
   you trust. Whoever made this bundle could have put other programs here: better, run your own copy on `run`.
3. Does all of it: that the archive holds the files that were vouched for, byte for byte, who signed, that accounts
   and certificates agree, and the certificates, with the checker of your own installation. Ask the signer for the
   fingerprint of their key by another way than this bundle.

Where a copy of swapproof comes from decides what the second and third command are worth. Take it from people whom you
trust, or from source that you have read, at a version that you name yourself: not from whoever made this bundle, and
not because a package index happens to have something of this name. Checking signatures also needs the package
`cryptography`. With no copy at all, the three are plain Python, written to be read.

## Which N

The checker counts the certificates that it finds; it does not know how many there should be. N must be the number of
lines of `run/texts.jsonl` (`wc -l run/texts.jsonl`), one text each, if every text is said to be certified. A text
without a certificate is one of which nothing is proved: its line in `run/results.jsonl` says `"certificate": null`.
Count these, and expect N to be so much less.

`Merkle root ...`, the line before the last, is one hash of all certificates with their names (FORMAT.md, section 2).
It is printed when all of them were accepted, and must be what `run/certificates/root` and the signed statement say.
Two people who see the same root have checked the same certificates, no fewer: write it down beside the N.

## What is proved, and what is the producer's account

Proved is what the sentences say that the checker prints: of this model, these token ids, at that level. The
certificates bind the model, the vocabulary, the texts and the listed choices by SHA-256. The third command refuses a
`run/results.jsonl` or `run/summary.json` that claims more than the certificates, and compares texts, swaps, labels
and versions with the files beside them. All else is the producer's account, which nothing here proves:

* that these are the texts that matter, all of them, with the right labels; the order of texts and lines;
* that the listed choices are synonyms, where they came from, and what was left out of them and why;
* that the deployed system turns text into token ids as `run/task.toml` says: `lowercase`, `split`, `length`, padding
  and unknown words; and that it runs this model;
* what the model answers in onnxruntime, and how closely that agrees with what was read from it: the level `replay`,
  which texts it answers rightly where no certificate says so, and which ones rounding decides;
* engines, seconds, numbers of evaluations and requests, why a text stayed open, remarks, what solvers claimed;
* versions, the operating system, and the original names of files;
* of sampled shares, how the samples fell, and so every interval made of them.

Who has the run folder itself, with its store.sqlite, can have `swapproof check` run the model and find out what it
answers.

Whoever gets this bundle gets the whole model, its vocabulary, every text with its label, and every swap.
`run/task.toml` names the files that the run was made from, without their folders, the versions it was made with, and
the operating system.
"""


def command(
    folder: Path | None,
    out: Path | None,
    key: Path | None,
    archive: Path | None,
    public: Path | None,
    fresh: Path | None,
) -> int:
    """One of three: make an archive of a run, check an archive, make a pair of keys."""
    match folder, out, key, archive, public, fresh:
        case Path(), Path(), _, None, None, None:
            return bundle(folder, out, key)
        case None, None, None, Path(), _, None:
            return verify(archive, public)
        case None, None, None, None, None, Path():
            return make_key(fresh)
    raise BadInput(
        "bundle takes RUN --out FILE.zip [--key KEY.pem], or --verify FILE.zip [--public-key KEY.pub.pem], "
        "or --new-key KEY.pem"
    )


def bundle(folder: Path, out: Path, key: Path | None = None) -> int:
    """Exit code 4, and nothing written, when the run does not check."""
    run = existing(folder)
    signer = None if key is None else private_key(key)
    if out.exists() or not out.parent.is_dir():
        fault = "there already" if out.exists() else f"there is no folder {out.parent}"
        raise BadInput(f"{out}: {fault}; give --out a new file")
    if not run.summary.exists():
        raise BadInput(f"{folder}: holds no summary.json: the run is not finished; give the same command again")
    with held(run):
        question = question_of(folder)
        checked = check(folder, exact=True) if question is None else check_measured(folder, question)
        if checked == UNCHECKED:
            print("nothing was written: a run that does not check makes no bundle")
            return UNCHECKED
        contents = contents_of(run)
        members = {name: measured(name, content) for name, content in contents.items()}
        said = predicate(contents, members)
        payload = statement_bytes(((name, one.sha256) for name, one in members.items()), KIND, said)
        contents[ENVELOPE] = seal(payload, signer)
        members[ENVELOPE] = measured(ENVELOPE, contents[ENVELOPE])
        write_archive(out, contents, members.values())
    by = "not signed" if signer is None else f"signed by {fingerprint(signer.public_key().public_bytes_raw())}"
    print(f"{out}: {len(members)} files, {out.stat().st_size:,} bytes, {by}")
    return HOLDS


def contents_of(run: Run) -> dict[str, Content]:
    """Every member but the envelope."""
    needed = [run.folder / name for name in (*FILES, *external_files(open_model(run.model)))]
    certificates = sorted(path for path in run.certificates.iterdir() if CERTIFICATE.fullmatch(path.name))
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
    summary, task = (contents.get(FOLDER + name) for name in ("summary.json", "task.toml"))
    return {
        "certificates": len(certificates_among(members)),
        "checker": {"name": "check.py", "sha256": members["check.py"].sha256},
        "counts": counts_of(summary) if isinstance(summary, Path) else None,
        "merkleRoot": root.decode().strip() if isinstance(root, bytes) else "",
        "versions": versions_of(task.read_text(encoding="utf-8") if isinstance(task, Path) else ""),
    }


def counts_of(summary: Path) -> dict[str, Any]:
    found = json.loads(summary.read_text(encoding="utf-8"))
    return {name: found[name] for name in COUNTS if name in found}


def versions_of(task: str) -> dict[str, str]:
    """What the run says it was made with, in the notes above its task file, and what made the bundle."""
    _, _, notes = task.partition("\n# Versions:\n")
    listed = takewhile(lambda line: line.startswith("#   "), notes.splitlines())
    made = {words[1]: words[2] for words in map(str.split, listed) if len(words) > 2 and words[1] in MADE_WITH}
    return {**made, BUNDLER: importlib.metadata.version("swapproof")}


def verify(path: Path, public: Path | None = None) -> int:
    """Archive, hashes, signature, Merkle root, every certificate by our own checker; last line `accepted N of N`."""
    trusted = None if public is None else public_key(public)
    with tempfile.TemporaryDirectory(prefix="swapproof-") as name:
        folder = Path(name)
        try:
            members = {member.name: member for member in read_archive(path, ALLOWED, folder)}
            if ENVELOPE not in members:
                raise Tampered(f"it holds no {ENVELOPE}")
            signed = unseal((folder / ENVELOPE).read_bytes())
            print(signature_line(signed, trusted), flush=True)
            compare(signed.statement, members, folder)
            account = compared(folder / FOLDER)
        except (Malformed, Tampered, Refused, Unusable) as error:
            print(f"refused {path}: {error}")
            return UNCHECKED
        print(f"{len(members) - 1} files are those of the statement", flush=True)
        print(account, flush=True)
        strange = [name for name, data in own_files().items() if members[name].sha256 != sha256(data).hexdigest()]
        if strange:
            print(f"not those of this installation, whose checker checks here: {', '.join(strange)}", flush=True)
        return checker.main([str(folder / FOLDER)])


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
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Tampered(f"its summary.json cannot be read ({type(error).__name__}: {error})") from None
    if differing:
        raise Tampered(f"summary.json and task.toml name other versions of {min(differing)[0]}")
    if json.loads(statement_bytes(subjects.items(), KIND, again)) != statement:
        raise Tampered("its statement says other things of the files than they do")


def make_key(path: Path) -> int:
    public, name = new_key(path)
    print(f"private key {path}: keep it to yourself\npublic key {public}: hand it out\nfingerprint {name}")
    return HOLDS
