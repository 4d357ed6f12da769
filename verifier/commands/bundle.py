"""`bundle`: a run, its certificates and their checkers as one archive with a signed statement; and its verification."""

from __future__ import annotations

from contextlib import redirect_stdout
from hashlib import sha256
from io import StringIO
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.passing_folder import PassingFolder
from swapproof.proofs import check as checker
from swapproof.proofs.onnx_file import Refused, Unusable

from ..audit.asked_again import is_run
from ..audit.certified_run import audit_run
from ..audit.handed_over.archive import (
    Malformed,
    measured,
    read_archive,
    refuse_too_large,
    size_of,
    write_archive,
)
from ..audit.handed_over.bundle_statement import (
    ALLOWED,
    ENVELOPE,
    FOLDER,
    KIND,
    compare,
    contents_of,
    own_files,
    predicate,
    signature_line,
)
from ..audit.handed_over.bundled_run import differences, how_far
from ..audit.handed_over.envelope import (
    Tampered,
    fingerprint,
    new_key,
    private_key,
    public_key,
    seal,
    statement_bytes,
    unseal,
)
from ..audit.measured_run import audit_measured
from ..exit_codes import HOLDS, UNCHECKED
from ..pages.printing.audit_printing import print_audit
from ..pages.printing.json_printing import audited, print_json
from ..runs.measured_runs import question_of
from ..runs.run_folder import existing, held


def command(
    folder: Path | None,
    out: Path | None,
    key: Path | None,
    archive: Path | None,
    public: Path | None,
    fresh: Path | None,
    *,
    as_json: bool = False,
) -> int:
    """One of three: make an archive of a run, check an archive, make a pair of keys."""
    match folder, out, key, archive, public, fresh:
        case Path(), Path(), _, None, None, None:
            return bundle(folder, out, key, as_json=as_json)
        case None, None, None, Path(), _, None:
            return verify_as_json(archive, public) if as_json else verify(archive, public)
        case None, None, None, None, None, Path():
            return make_key(fresh, as_json=as_json)
    raise BadInput(
        "bundle takes RUN --out FILE.zip [--key KEY.pem], or --verify FILE.zip [--public-key KEY.pub.pem], "
        "or --new-key KEY.pem"
    )


def bundle(folder: Path, out: Path, key: Path | None = None, *, as_json: bool = False) -> int:
    """Exit code 4, and nothing written, when the run does not check."""
    run = existing(folder)
    if is_run(folder) or run.transcripts.is_dir():
        raise BadInput(
            f"{folder}: its model was run, not read{'' if is_run(folder) else ', for some of its texts'}, of which "
            "there are no proofs to bundle; hand over the folder itself, "
            "which `swapproof check` checks by running the model again"
        )
    signer = None if key is None else private_key(key)
    if out.exists() or not out.parent.is_dir():
        fault = "there already" if out.exists() else f"there is no folder {out.parent}"
        raise BadInput(f"{out}: {fault}; give --out a new file")
    if not run.summary.exists():
        raise BadInput(f"{folder}: holds no summary.json: the run is not finished; give the same command again")
    with held(run):
        refuse_too_large(out, {name: size_of(content) for name, content in contents_of(run).items()})
        question = question_of(folder)
        audit = audit_run(folder, exact=True) if question is None else audit_measured(folder, question)
        checked, check = audited(audit) if as_json else (print_audit(audit), None)
        if checked == UNCHECKED:
            if as_json:
                print_json({"run": str(folder), "exit_code": UNCHECKED, "bundle": None, "check": check})
            else:
                print("nothing was written: a run that does not check makes no bundle")
            return UNCHECKED
        contents = contents_of(run)
        members = {name: measured(name, content) for name, content in contents.items()}
        said = predicate(contents, members)
        payload = statement_bytes(((name, one.sha256) for name, one in members.items()), KIND, said)
        contents[ENVELOPE] = seal(payload, signer)
        members[ENVELOPE] = measured(ENVELOPE, contents[ENVELOPE])
        write_archive(out, contents, members.values())
    signed_by = None if signer is None else fingerprint(signer.public_key().public_bytes_raw())
    size = out.stat().st_size
    if as_json:
        said = {"bundle": str(out), "files": len(members), "bytes": size, "signed_by": signed_by, "check": check}
        print_json({"run": str(folder), "exit_code": HOLDS, **said})
        return HOLDS
    by = "not signed" if signed_by is None else f"signed by {signed_by}"
    print(f"{out}: {len(members)} files, {size:,} bytes, {by}")
    return HOLDS


def verify(path: Path, public: Path | None = None) -> int:
    """Archive, hashes, signature, Merkle root, every certificate by our own checker; last line `accepted N of N`."""
    trusted = None if public is None else public_key(public)
    with PassingFolder() as folder:
        try:
            members = {member.name: member for member in read_archive(path, ALLOWED, folder)}
            if ENVELOPE not in members:
                raise Tampered(f"it holds no {ENVELOPE}")
            signed = unseal((folder / ENVELOPE).read_bytes())
            print(signature_line(signed, trusted), flush=True)
            compare(signed.statement, members, folder)
            for fault in differences(folder / FOLDER):
                raise Refused(fault)
        except (Malformed, Tampered, Refused, Unusable) as error:
            print(f"refused {path}: {error}")
            return UNCHECKED
        print(f"{len(members) - 1} files are those of the statement", flush=True)
        print(how_far(folder / FOLDER), flush=True)
        strange = [name for name, data in own_files().items() if members[name].sha256 != sha256(data).hexdigest()]
        if strange:
            print(f"not those of this installation, whose checker checks here: {', '.join(strange)}", flush=True)
        return checker.main([str(folder / FOLDER)])


def verify_as_json(path: Path, public: Path | None) -> int:
    """The same, with the lines that it would print."""
    with redirect_stdout(StringIO()) as printed:
        code = verify(path, public)
    said = printed.getvalue().splitlines()
    print_json({"bundle": str(path), "exit_code": code, "accepted": code == HOLDS, "said": said})
    return code


def make_key(path: Path, *, as_json: bool = False) -> int:
    public, name = new_key(path)
    if as_json:
        print_json({"exit_code": HOLDS, "private_key": str(path), "public_key": str(public), "fingerprint": name})
        return HOLDS
    print(f"private key {path}: keep it to yourself\npublic key {public}: hand it out\nfingerprint {name}")
    return HOLDS
