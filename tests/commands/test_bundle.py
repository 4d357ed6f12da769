"""`bundle`: one possible archive for a run, everything in it vouched for, and every change of it found."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import platform
import shutil
import stat
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx
import pytest
from tiny import ROWS, write_task

from swapproof.encodings.errors import BadInput
from swapproof.proofs import check as checker
from swapproof.proofs.writing.certificate import merkle_root
from swapproof.verifier.audit.handed_over import archive
from swapproof.verifier.audit.handed_over import bundle_statement as bundle
from swapproof.verifier.audit.handed_over.envelope import (
    Tampered,
    canonical,
    private_key,
    public_key,
    seal,
    statement_bytes,
    unseal,
)
from swapproof.verifier.audit.line_claims import OF_MEASURE, additions
from swapproof.verifier.cli import main

pytest.importorskip("cryptography")

Capture = pytest.CaptureFixture[str]
Contents = dict[str, archive.Content]
CERTIFICATE = "run/certificates/000000.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the tiny task, two pairs of keys, and its bundle, signed and not."""
    folder = tmp_path_factory.mktemp("made")
    assert main(["certify", str(write_task(folder / "task")), "--out", str(folder / "run")]) == 0
    for name in ("key", "other"):
        assert main(["bundle", "--new-key", str(folder / f"{name}.pem")]) == 0
    run = str(folder / "run")
    assert main(["bundle", run, "--out", str(folder / "signed.zip"), "--key", str(folder / "key.pem")]) == 0
    assert main(["bundle", run, "--out", str(folder / "plain.zip")]) == 0
    return folder


def verify(path: Path, key: Path | None = None) -> int:
    return main(["bundle", "--verify", str(path), *([] if key is None else ["--public-key", str(key)])])


def contents(path: Path) -> Contents:
    with zipfile.ZipFile(path) as read:
        return {name: read.read(name) for name in read.namelist()}


def packed(path: Path, changed: Contents) -> Path:
    """An archive of these members that is perfect as an archive."""
    archive.write_archive(path, changed, [archive.measured(name, data) for name, data in changed.items()])
    return path


def resealed(changed: Contents, key: Path | None) -> Contents:
    """The same with the statement that `bundle` would make of it."""
    inner = {name: data for name, data in changed.items() if name != bundle.ENVELOPE}
    members = {name: archive.measured(name, data) for name, data in inner.items()}
    old = json.loads(base64.b64decode(json.loads(bytes_of(changed[bundle.ENVELOPE]))["payload"]))
    leaves = [(Path(n).name, bytes_of(inner[n])) for n in bundle.certificates_among(inner)]
    said = {**old["predicate"], "certificates": len(leaves), "merkleRoot": merkle_root(leaves)}
    inner["run/certificates/root"] = f"{said['merkleRoot']}\n".encode()
    members["run/certificates/root"] = archive.measured("run/certificates/root", inner["run/certificates/root"])
    said["checker"] = [{"name": name, "sha256": members[name].sha256} for name in bundle.TRUSTED]
    if (summary := inner.get("run/summary.json")) is not None:
        found = json.loads(bytes_of(summary))
        said["counts"] = {name: found[name] for name in bundle.COUNTS if name in found}
    payload = statement_bytes(((n, m.sha256) for n, m in members.items()), bundle.KIND, said)
    return {**inner, bundle.ENVELOPE: seal(payload, None if key is None else private_key(key))}


def bytes_of(content: archive.Content) -> bytes:
    assert isinstance(content, bytes)
    return content


class TestArchive:
    """What is in the file."""

    def test_the_same_run_and_key_give_the_same_bytes(self, made: Path, tmp_path: Path) -> None:
        shutil.copytree(made / "run", tmp_path / "elsewhere")
        for path in (tmp_path / "elsewhere").rglob("*"):
            os.utime(path, (1e9, 1e9))
        out = tmp_path / "again.zip"
        assert main(["bundle", str(tmp_path / "elsewhere"), "--out", str(out), "--key", str(made / "key.pem")]) == 0
        assert out.read_bytes() == (made / "signed.zip").read_bytes()

    def test_a_signature_changes_nothing_but_the_envelope(self, made: Path) -> None:
        signed, plain = contents(made / "signed.zip"), contents(made / "plain.zip")
        assert signed.keys() == plain.keys()
        assert [name for name in signed if signed[name] != plain[name]] == [bundle.ENVELOPE]

    def test_any_zip_reader_finds_the_files_of_the_run_and_the_checkers(self, made: Path) -> None:
        with zipfile.ZipFile(made / "signed.zip") as read:
            assert read.testzip() is None
            infos = read.infolist()
        assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.external_attr >> 16 for info in infos} == {stat.S_IFREG | 0o644}
        held = contents(made / "signed.zip")
        assert list(held) == sorted(held)
        names = {
            "task.toml",
            "manifest.json",
            "model.onnx",
            "vocabulary.json",
            "texts.jsonl",
            "spaces.jsonl",
            "results.jsonl",
        }
        for name in names | {"summary.json"} | {f"certificates/{id:06d}.json" for id in range(len(ROWS))}:
            assert held.pop(f"run/{name}") == (made / "run" / name).read_bytes()
        proofs = Path(checker.__file__ or "").parent
        for name in bundle.CHECKERS:
            assert held.pop(name) == (proofs / name).read_bytes()
        assert held.keys() == {"HOW-TO-CHECK.md", "run/certificates/root", "statement.dsse.json"}

    def test_external_tensors_are_in_it(self, made: Path, tmp_path: Path) -> None:
        task = write_task(tmp_path / "task")
        proto = onnx.load(task.parent / "model.onnx")
        onnx.save(proto, task.parent / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
        assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
        assert main(["bundle", str(tmp_path / "run"), "--out", str(tmp_path / "b.zip")]) == 0
        assert contents(tmp_path / "b.zip")["run/w.bin"] == (task.parent / "w.bin").read_bytes()
        assert verify(tmp_path / "b.zip") == 0

    def test_the_page_names_three_commands_and_the_first_works_on_what_was_unpacked(
        self, made: Path, tmp_path: Path
    ) -> None:
        with zipfile.ZipFile(made / "signed.zip") as read:
            read.extractall(tmp_path)
        page = (tmp_path / "HOW-TO-CHECK.md").read_text()
        commands = [line.strip() for line in page.splitlines() if line.startswith("    ")]
        assert [command.split()[0] for command in commands] == ["python3", "sha256sum", "swapproof"]
        texts = (tmp_path / "run" / "texts.jsonl").read_bytes().count(b"\n")
        assert "number of lines of `run/texts.jsonl`" in " ".join(page.split())
        assert "pip install" not in page
        first = [sys.executable, *commands[0].split()[1:]]
        done = subprocess.run(first, cwd=tmp_path, capture_output=True, text=True, check=True)
        root, last = done.stdout.splitlines()[-2:]
        assert last == f"accepted {texts} of {texts}"
        assert root == f"Merkle root {(tmp_path / 'run' / 'certificates' / 'root').read_text().strip()}"

    def test_a_run_that_does_not_check_makes_no_bundle(self, made: Path, tmp_path: Path, capsys: Capture) -> None:
        shutil.copytree(made / "run", tmp_path / "run")
        path = tmp_path / "run" / "certificates" / "000001.json"
        path.write_bytes(path.read_bytes().replace(b'"label":1', b'"label":0'))
        assert main(["bundle", str(tmp_path / "run"), "--out", str(tmp_path / "b.zip")]) == 4
        assert "nothing was written" in capsys.readouterr().out
        assert [path.name for path in tmp_path.iterdir()] == ["run"]

    def test_an_unfinished_run_makes_no_bundle(self, made: Path, tmp_path: Path, capsys: Capture) -> None:
        """Its summary is written last."""
        shutil.copytree(made / "run", tmp_path / "run")
        (tmp_path / "run" / "summary.json").unlink()
        assert main(["bundle", str(tmp_path / "run"), "--out", str(tmp_path / "out.zip")]) == 2
        assert "not finished" in capsys.readouterr().err
        assert not (tmp_path / "out.zip").exists()

    @pytest.mark.parametrize("name", [*bundle.FILES, "certificates"])
    def test_a_run_that_lacks_one_of_its_files_makes_no_bundle(
        self, made: Path, tmp_path: Path, capsys: Capture, name: str
    ) -> None:
        shutil.copytree(made / "run", tmp_path / "run")
        (tmp_path / "run" / name).rename(tmp_path / name)
        capsys.readouterr()
        assert main(["bundle", str(tmp_path / "run"), "--out", str(tmp_path / "out.zip")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert name in line
        assert not (tmp_path / "out.zip").exists()

    def test_a_run_that_counted_sentences_makes_one_too(self, made: Path, tmp_path: Path, capsys: Capture) -> None:
        task, run = str(made / "task" / "task.toml"), str(tmp_path / "run")
        assert main(["measure", task, "--quantity", "pr", "--radius", "2", "--out", run]) in (0, 3)
        assert main(["bundle", run, "--out", str(tmp_path / "b.zip")]) == 0
        capsys.readouterr()
        assert verify(tmp_path / "b.zip") == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"accepted {len(ROWS)} of {len(ROWS)}"

    def test_a_file_that_is_there_is_not_written_over(self, made: Path, capsys: Capture) -> None:
        assert main(["bundle", str(made / "run"), "--out", str(made / "plain.zip")]) == 2
        assert "there already" in capsys.readouterr().err


class TestEnvelope:
    """The statement is in-toto's, the envelope DSSE's, the signature ed25519's."""

    def test_the_signature_is_over_the_encoding_of_dsse(self, made: Path) -> None:
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        envelope = json.loads(bytes_of(contents(made / "signed.zip")[bundle.ENVELOPE]))
        payload = base64.b64decode(envelope["payload"])
        kind = envelope["payloadType"].encode()
        covered = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
        key: Any = load_pem_public_key((made / "key.pub.pem").read_bytes())
        (signature,) = envelope["signatures"]
        key.verify(base64.b64decode(signature["sig"]), covered)

    def test_the_statement_names_every_other_member_by_its_hash(self, made: Path) -> None:
        held = contents(made / "signed.zip")
        envelope = json.loads(bytes_of(held.pop(bundle.ENVELOPE)))
        statement = json.loads(base64.b64decode(envelope["payload"]))
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert envelope["payloadType"] == "application/vnd.in-toto+json"
        found = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
        assert found == {name: hashlib.sha256(bytes_of(data)).hexdigest() for name, data in held.items()}
        said = statement["predicate"]
        assert said["certificates"] == len(ROWS)
        assert said["counts"]["texts"] == len(ROWS)
        assert all(found[one["name"]] == one["sha256"] for one in said["checker"])
        assert said["merkleRoot"] + "\n" == bytes_of(held["run/certificates/root"]).decode()
        installed = {name: version(name) for name in ("swapproof", "numpy", "onnx", "onnxruntime")}
        assert said["versions"] == {
            **installed,
            "python": platform.python_version(),
            "bundled by swapproof": installed["swapproof"],
        }

    def test_the_fingerprint_is_that_of_the_key_in_der_form(self, tmp_path: Path, capsys: Capture) -> None:
        from cryptography.hazmat.primitives import serialization

        assert main(["bundle", "--new-key", str(tmp_path / "mine.pem")]) == 0
        key = serialization.load_pem_public_key((tmp_path / "mine.pub.pem").read_bytes())
        der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        assert hashlib.sha256(der).hexdigest() in capsys.readouterr().out

    def test_a_private_key_is_its_owners_and_never_written_over(self, tmp_path: Path) -> None:
        assert main(["bundle", "--new-key", str(tmp_path / "mine.pem")]) == 0
        before = (tmp_path / "mine.pem").read_bytes()
        assert stat.S_IMODE((tmp_path / "mine.pem").stat().st_mode) == 0o600
        assert main(["bundle", "--new-key", str(tmp_path / "mine.pem")]) == 2
        assert (tmp_path / "mine.pem").read_bytes() == before

    def test_a_key_of_another_kind_is_refused(self, made: Path, tmp_path: Path, capsys: Capture) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        pkcs8, pem = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
        secret = serialization.BestAvailableEncryption(b"secret")
        (tmp_path / "ec.pem").write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
        (tmp_path / "locked.pem").write_bytes(key.private_bytes(pem, pkcs8, secret))
        (tmp_path / "text.pem").write_text("a key")
        for name, reason in (
            ("ec", "another kind"),
            ("locked", "encrypted"),
            ("text", "no private key"),
            ("no", "no such file"),
        ):
            out = ["--out", str(tmp_path / "b.zip"), "--key", str(tmp_path / f"{name}.pem")]
            assert main(["bundle", str(made / "run"), *out]) == 2
            assert reason in capsys.readouterr().err
        assert not (tmp_path / "b.zip").exists()


class TestVerify:
    """`--verify` accepts what was made, and says who signed."""

    @pytest.mark.parametrize(
        ("name", "key", "says"),
        [
            ("plain", None, "not signed"),
            ("signed", None, "signature by an unknown key"),
            ("signed", "key", "signature by the key given"),
        ],
    )
    def test_says_who_signed_and_last_that_all_is_accepted(
        self, made: Path, capsys: Capture, name: str, key: str | None, says: str
    ) -> None:
        assert verify(made / f"{name}.zip", None if key is None else made / f"{key}.pub.pem") == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith(says)
        assert lines[-1] == f"accepted {len(ROWS)} of {len(ROWS)}"

    @pytest.mark.parametrize(("name", "key"), [("plain", "key"), ("signed", "other")])
    def test_a_key_that_did_not_sign_is_not_accepted(self, made: Path, capsys: Capture, name: str, key: str) -> None:
        assert verify(made / f"{name}.zip", made / f"{key}.pub.pem") == 4
        assert "accepted" not in capsys.readouterr().out

    def test_the_certificates_are_checked_by_this_installation_not_by_the_archive(
        self, made: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        """A producer who signs a checker that accepts everything, and a certificate that proves nothing."""
        held = contents(made / "signed.zip")
        held["check.py"] = b"print('accepted 8 of 8')\n"
        good = resealed(held, made / "key.pem")
        assert verify(packed(tmp_path / "good.zip", good), made / "key.pub.pem") == 0
        assert "not those of this installation, whose checker checks here: check.py" in capsys.readouterr().out
        more = bytes_of(held[CERTIFICATE]).replace(b'"linear-2","swaps":0', b'"linear-2","swaps":1')
        assert more != held[CERTIFICATE]
        bad = resealed({**held, CERTIFICATE: more}, made / "key.pem")
        assert verify(packed(tmp_path / "bad.zip", bad), made / "key.pub.pem") == 4
        out = capsys.readouterr().out
        assert "refused 000000.json" in out
        assert "accepted" not in out

    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["--out", "x.zip"],
            ["--verify", "x.zip", "--new-key", "k.pem"],
            ["run", "--out", "x.zip", "--verify", "y"],
        ],
    )
    def test_half_a_command_is_refused_with_what_would_work(self, capsys: Capture, arguments: list[str]) -> None:
        assert main(["bundle", *arguments]) == 2
        assert "--verify FILE.zip" in capsys.readouterr().err

    @pytest.mark.parametrize("optimise", [[], ["-O"]])
    def test_tampering_is_found_also_without_assertions(self, made: Path, tmp_path: Path, optimise: list[str]) -> None:
        held = contents(made / "plain.zip")
        held[CERTIFICATE] = bytes_of(held[CERTIFICATE]) + b" "
        bad = packed(tmp_path / "bad.zip", held)
        for path, code in ((made / "signed.zip", 0), (bad, 4)):
            program = "import sys; from swapproof.verifier.cli import main; sys.exit(main(sys.argv[1:]))"
            command = [sys.executable, *optimise, "-c", program, "bundle", "--verify", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == code, done.stderr
            assert (done.stdout.splitlines()[-1] == f"accepted {len(ROWS)} of {len(ROWS)}") == (code == 0)


def flips(data: bytes) -> Iterator[int]:
    """Every byte of every header and of the directory, and some of every member's own."""
    offset = 0
    while data[offset : offset + 4] == b"PK\3\4":
        size, width = struct.unpack_from("<I", data, offset + 22)[0], struct.unpack_from("<H", data, offset + 26)[0]
        start = offset + 30 + width
        yield from range(offset, start)
        yield from {start, start + size // 2, start + size - 1}
        offset = start + size
    yield from range(offset, len(data))


class TestTampering:
    """Whatever is changed, `--verify` says so."""

    def test_every_changed_byte_is_found(self, made: Path, tmp_path: Path, capsys: Capture) -> None:
        data = (made / "signed.zip").read_bytes()
        places = sorted(flips(data))
        assert len(places) > 1500
        bad = tmp_path / "bad.zip"
        for place in places[:: 1 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 29]:
            changed = bytearray(data)
            changed[place] ^= 1 << place % 8
            bad.write_bytes(changed)
            assert verify(bad, made / "key.pub.pem") == 4, place
            assert "accepted" not in capsys.readouterr().out

    def test_every_changed_member_is_found_in_a_perfect_archive(
        self, made: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        held = contents(made / "signed.zip")
        for number, name in enumerate(held):
            changed = bytearray(bytes_of(held[name]))
            changed[len(changed) // 2] ^= 1
            bad = packed(tmp_path / f"{number}.zip", {**held, name: bytes(changed)})
            assert verify(bad) == 4, name
            assert "accepted" not in capsys.readouterr().out

    def test_swapped_removed_and_added_members_are_found(self, made: Path, tmp_path: Path, capsys: Capture) -> None:
        held = contents(made / "signed.zip")
        first, second = CERTIFICATE, "run/certificates/000001.json"
        swapped = {**held, first: held[second], second: held[first]}
        changes = [swapped, {**held, "run/certificates/000099.json": held[first]}, {**held, "run/note.txt": b"hello"}]
        changes += [{other: data for other, data in held.items() if other != name} for name in held]
        for number, changed in enumerate(changes):
            assert verify(packed(tmp_path / f"{number}.zip", changed)) == 4
            assert "accepted" not in capsys.readouterr().out

    def test_a_statement_made_anew_bears_no_signature_of_the_owner(
        self, made: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        held = {n: d for n, d in contents(made / "signed.zip").items() if n != CERTIFICATE}
        for key in (None, made / "other.pem"):
            bad = packed(tmp_path / f"{key is None}.zip", resealed(held, key))
            assert verify(bad, made / "key.pub.pem") == 4
            assert "accepted" not in capsys.readouterr().out

    @pytest.mark.parametrize("part", ["payload", "sig", "keyid", "payloadType", "spaces", "twice", "none", "number"])
    def test_every_change_of_the_envelope_is_found(self, made: Path, tmp_path: Path, part: str) -> None:
        held = contents(made / "signed.zip")
        envelope = json.loads(bytes_of(held[bundle.ENVELOPE]))
        (signature,) = envelope["signatures"]
        match part:
            case "payload":
                statement = json.loads(base64.b64decode(envelope["payload"]))
                statement["predicate"]["counts"]["exact"] += 1
                envelope["payload"] = base64.b64encode(canonical(statement)).decode()
            case "sig" | "keyid":
                text = signature[part]
                signature[part] = text[:20] + ("1" if text[20] != "1" else "2") + text[21:]
            case "payloadType":
                envelope[part] += "x"
            case "twice":
                envelope["signatures"] = [signature, signature]
            case "none":
                del envelope["signatures"]
            case "number":
                envelope["signatures"] = 1
        data = canonical(envelope) + (b" \n" if part == "spaces" else b"\n")
        assert verify(packed(tmp_path / "bad.zip", {**held, bundle.ENVELOPE: data})) == 4

    def test_a_statement_that_says_more_than_the_files_is_found_without_a_signature(
        self, made: Path, tmp_path: Path
    ) -> None:
        held = contents(made / "plain.zip")
        statement = json.loads(base64.b64decode(json.loads(bytes_of(held[bundle.ENVELOPE]))["payload"]))
        versions = {**statement["predicate"]["versions"], "onnx": "="}
        for key, value in (
            ("certificates", 9),
            ("merkleRoot", "0" * 64),
            ("counts", {"exact": 99}),
            ("versions", versions),
            ("versions", {**versions, "proved by": "a notary"}),
            ("extra", 1),
        ):
            said = {**statement, "predicate": {**statement["predicate"], key: value}}
            bad = {**held, bundle.ENVELOPE: seal(canonical(said), None)}
            assert verify(packed(tmp_path / f"{key}.zip", bad)) == 4


class TestAccount:
    """A producer may sign any account of a run: `--verify` refuses one that claims more than its certificates."""

    def refusal(self, made: Path, tmp_path: Path, capsys: Capture, changed: Contents) -> str:
        path = packed(tmp_path / "changed.zip", resealed(changed, made / "key.pem"))
        capsys.readouterr()
        assert verify(path, made / "key.pub.pem") == 4
        out = capsys.readouterr().out
        assert "accepted" not in out
        return out

    @pytest.mark.parametrize("name", ["run/report.html", "run/note.txt", "run/extra.bin"])
    def test_a_file_that_no_bundle_holds_is_refused(
        self, made: Path, tmp_path: Path, capsys: Capture, name: str
    ) -> None:
        held = {**contents(made / "signed.zip"), name: b"all texts are proved robust"}
        assert f"{name} does not belong" in self.refusal(made, tmp_path, capsys, held)

    @pytest.mark.parametrize("name", bundle.FILES)
    def test_a_file_that_every_bundle_holds_is_missed(
        self, made: Path, tmp_path: Path, capsys: Capture, name: str
    ) -> None:
        held = contents(made / "signed.zip")
        del held[f"run/{name}"]
        assert f"run/{name} is missing" in self.refusal(made, tmp_path, capsys, held)

    @pytest.mark.parametrize(
        ("id", "change", "said"),
        [
            (0, {"min_swaps": {"low": 2, "high": 2}}, "the line claims"),
            (0, {"status": "unbreakable", "min_swaps": {"low": 4, "high": None}}, "the line claims"),
            (0, {"certificate": None}, "the line names None"),
            (0, {"text": "a fine film"}, "another text than texts.jsonl"),
            (0, {"label": 0}, "another text or label"),
            (0, {"status": "proved"}, "has the status 'proved'"),
            (2, {"status": "exact", "min_swaps": {"low": 2, "high": 2}}, "the line claims a witness of 2 swaps"),
            (2, {"covered": {"swaps": 1, "robust": "9", "total": "9", "level": "real"}}, "counts other sentences"),
            (2, {"id": 99}, "is not in both"),
            (2, {"min_swaps": None}, "cannot be compared"),
            (0, {"proved_by": "a notary"}, "the line has the key 'proved_by', which no line has"),
            (0, {"min_swaps": {"low": 1, "high": None, "really": 9}}, "the line has the key 'min_swaps.really'"),
            (0, {"robust_fraction": 1.0}, "the line has the key 'robust_fraction'"),
        ],
    )
    def test_a_line_that_claims_more_than_its_certificate_is_refused(
        self, made: Path, tmp_path: Path, capsys: Capture, id: int, change: dict[str, Any], said: str
    ) -> None:
        held = contents(made / "signed.zip")
        lines = [json.loads(raw) for raw in bytes_of(held["run/results.jsonl"]).splitlines()]
        lines[id] |= change
        held["run/results.jsonl"] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        assert said in self.refusal(made, tmp_path, capsys, held)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"exact": 99}, "summary.json says exact = 99"),
            ({"certified_accuracy": {"1": 1.0}}, "summary.json says certified_accuracy"),
            ({"quantity": "pr", "radius": 1}, "not one of `measure`"),
            ({"radius": "2"}, "cannot be compared"),
        ],
    )
    def test_a_summary_of_other_lines_is_refused(
        self, made: Path, tmp_path: Path, capsys: Capture, change: dict[str, Any], said: str
    ) -> None:
        held = contents(made / "signed.zip")
        summary = json.loads(bytes_of(held["run/summary.json"])) | change
        held["run/summary.json"] = json.dumps(summary).encode()
        assert said in self.refusal(made, tmp_path, capsys, held)

    def test_other_versions_in_the_summary_than_in_the_task_file_are_refused(
        self, made: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        held = contents(made / "signed.zip")
        summary = json.loads(bytes_of(held["run/summary.json"]))
        summary["versions"]["onnx"] = "9.9"
        held["run/summary.json"] = json.dumps(summary).encode()
        assert "other versions of onnx" in self.refusal(made, tmp_path, capsys, held)

    def test_other_swaps_than_the_certificates_bind_are_refused(
        self, made: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        held = contents(made / "signed.zip")
        held["run/spaces.jsonl"] = bytes_of(held["run/spaces.jsonl"]).replace(b"fine", b"evil")
        assert "other swaps than spaces.jsonl" in self.refusal(made, tmp_path, capsys, held)

    def test_a_count_that_no_certificate_proves_is_refused(self, made: Path, tmp_path: Path, capsys: Capture) -> None:
        task, run = str(made / "task" / "task.toml"), str(tmp_path / "run")
        assert main(["measure", task, "--quantity", "pr", "--radius", "2", "--out", run]) in (0, 3)
        assert main(["bundle", run, "--out", str(tmp_path / "b.zip")]) == 0
        held = contents(tmp_path / "b.zip")
        lines = [json.loads(raw) for raw in bytes_of(held["run/results.jsonl"]).splitlines()]
        counted = next(line for line in lines if line["certificate"] is not None)
        counted["robust_fraction"]["robust"] += "0"
        held["run/results.jsonl"] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        assert "another count than the certificate" in self.refusal(made, tmp_path, capsys, held)

    @pytest.mark.parametrize(
        "options", [[], ["--sampled", "--samples", "100"], ["--sampled", "--stop-when-width", "0.4"]]
    )
    def test_a_measured_line_with_a_key_that_none_has_is_refused(
        self, made: Path, tmp_path: Path, capsys: Capture, options: list[str]
    ) -> None:
        """The keys that such lines do have are known, whatever was measured how."""
        task, run = str(made / "task" / "task.toml"), str(tmp_path / "run")
        assert main(["measure", task, "--quantity", "pr", "--radius", "2", *options, "--out", run]) in (0, 3)
        lines = [json.loads(raw) for raw in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
        assert not [fault for line in lines for fault in additions(line, OF_MEASURE)]
        fractions = [line["robust_fraction"] for line in lines if line["robust_fraction"] is not None]
        for holder, key in ((lines[0], ""), (fractions[0], "robust_fraction.")):
            holder["remark"] = "audited"
            assert list(additions(lines, OF_MEASURE)) == [f"has the key '{key}remark', which no line has"]
            del holder["remark"]
        if options:
            return
        assert main(["bundle", run, "--out", str(tmp_path / "b.zip")]) == 0
        held = contents(tmp_path / "b.zip")
        lines[0]["remark"] = "audited"
        held["run/results.jsonl"] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        assert "has the key 'remark'" in self.refusal(made, tmp_path, capsys, held)

    def test_a_bundle_does_not_say_in_which_folders_its_files_lay(self, made: Path) -> None:
        folder = str(made / "task").encode()
        assert not [name for name, data in contents(made / "signed.zip").items() if folder in bytes_of(data)]


class TestForeignArchives:
    """Nothing is unpacked that is not as the writer writes it."""

    @pytest.mark.parametrize(
        "name",
        ["../evil", "/evil", "run/../../evil", "run\\evil", "C:evil", "run/.hidden", "evil", "run/certificates/x.json"],
    )
    def test_names_beyond_the_layout_are_refused_and_nothing_lands_outside(
        self, made: Path, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "inner").mkdir()
        bad = packed(tmp_path / "inner" / "bad.zip", {**contents(made / "plain.zip"), name: b"evil"})
        assert verify(bad) == 4
        assert [path.name for path in tmp_path.rglob("*")] == ["inner", "bad.zip"]

    def test_links_compression_comments_and_doubles_are_refused(self, made: Path, tmp_path: Path) -> None:
        held = contents(made / "plain.zip")

        def repacked(name: str, **changes: Any) -> Path:
            path = tmp_path / f"{name}.zip"
            with zipfile.ZipFile(path, "w") as file:
                for member, data in sorted(held.items()):
                    info = zipfile.ZipInfo(member, changes.get("date", (1980, 1, 1, 0, 0, 0)))
                    info.external_attr = changes.get("attributes", 0o100644) << 16
                    info.compress_type = changes.get("method", zipfile.ZIP_STORED)
                    file.writestr(info, bytes_of(data))
                file.comment = changes.get("comment", b"")
            return path

        assert verify(repacked("plain")) == 0
        assert verify(repacked("link", attributes=stat.S_IFLNK | 0o777)) == 4
        assert verify(repacked("deflated", method=zipfile.ZIP_DEFLATED)) == 4
        assert verify(repacked("comment", comment=b"hello")) == 4
        assert verify(repacked("dated", date=(2020, 1, 1, 0, 0, 0))) == 4
        double = held[CERTIFICATE]
        data = archive.measured(CERTIFICATE, double).local() + bytes_of(double)
        (tmp_path / "double.zip").write_bytes(data + (made / "plain.zip").read_bytes())
        assert verify(tmp_path / "double.zip") == 4

    def test_a_bomb_is_refused_before_it_goes_off(self, made: Path, tmp_path: Path) -> None:
        """A header that promises 4 GiB, a deflated member of zeros, a gzip file, an empty file."""
        name = b"run/model.onnx"
        deflated = zlib.compress(bytes(1 << 26))[2:-4]
        huge = archive.LOCAL.pack(b"PK\3\4", 20, 0, 0, 0, 33, 0, 1 << 31, 1 << 31, len(name), 0) + name
        bomb = archive.LOCAL.pack(b"PK\3\4", 20, 0, 8, 0, 33, 0, len(deflated), 1 << 26, len(name), 0) + name + deflated
        for number, data in enumerate((huge, bomb, b"\x1f\x8b" + bytes(100), b"")):
            (tmp_path / f"{number}.zip").write_bytes(data)
            assert verify(tmp_path / f"{number}.zip") == 4

    def test_another_kind_of_file_is_called_no_archive(self, tmp_path: Path, capsys: Capture) -> None:
        (tmp_path / "text.zip").write_text("a run of ours, believe me, and longer than a header" * 9)
        assert verify(tmp_path / "text.zip") == 4
        assert "not an archive that `swapproof bundle` makes" in capsys.readouterr().out

    def test_cut_and_lengthened_archives_are_refused(self, made: Path, tmp_path: Path) -> None:
        data = (made / "plain.zip").read_bytes()
        for number, changed in enumerate((data[:-1], data[: len(data) // 2], data[:10], data + b"\0", b"\0" + data)):
            (tmp_path / f"{number}.zip").write_bytes(changed)
            assert verify(tmp_path / f"{number}.zip") == 4

    def test_an_archive_larger_than_its_format_is_not_written(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr(archive, "MOST_BYTES", 1000)
        with pytest.raises(NotImplementedError, match="hand over the run folder"):
            packed(tmp_path / "b.zip", {"check.py": bytes(900)})
        assert not list(tmp_path.iterdir())

    def test_more_members_than_16_bits_count_are_read_by_everybody(self, tmp_path: Path) -> None:
        """By zip64, as zipfile reads it; each member empty, so that the directory is what is tested."""
        number = 70_000
        members = [archive.Member(f"{id:06d}.json", 0, 0, "") for id in range(number)]
        data = b"".join(member.local() for member in members) + archive.directory(members)
        with zipfile.ZipFile(io.BytesIO(data)) as read:
            assert len(read.infolist()) == number
            assert read.read("069999.json") == b""

    def test_a_zip64_directory_is_read_back_and_every_byte_of_it_counts(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr(archive, "MANY_MEMBERS", 3)
        path = tmp_path / "b.zip"
        packed(path, {f"{id}.json": b"x" * id for id in range(5)})
        with zipfile.ZipFile(path) as read:
            assert [info.file_size for info in read.infolist()] == list(range(5))
        allowed = {r"\d\.json": 10}
        (tmp_path / "out").mkdir()
        assert [member.size for member in archive.read_archive(path, allowed, tmp_path / "out")] == list(range(5))
        data = path.read_bytes()
        for place in range(len(data) - 98, len(data), 7):
            changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            (tmp_path / "changed.zip").write_bytes(changed)
            folder = tmp_path / f"out{place}"
            folder.mkdir()
            with pytest.raises(archive.Malformed):
                archive.read_archive(tmp_path / "changed.zip", allowed, folder)

    def test_members_are_written_piece_by_piece_from_their_files(self, tmp_path: Path) -> None:
        (tmp_path / "big").write_bytes(os.urandom(3 << 20))
        packed(tmp_path / "b.zip", {"big": tmp_path / "big"})
        with zipfile.ZipFile(io.BytesIO((tmp_path / "b.zip").read_bytes())) as read:
            assert read.read("big") == (tmp_path / "big").read_bytes()


PRIME, EIGHTH = 2**255 - 19, 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7
LOW = [0, 1, PRIME - 1, EIGHTH, PRIME - EIGHTH, PRIME, PRIME + 1]
"""The y of every point of small order, two of them written a second way."""


class TestSmallOrder:
    """Some public keys have signatures that fit every message: whoever holds them has signed nothing."""

    @pytest.mark.parametrize("sign", [0, 1 << 255])
    @pytest.mark.parametrize("y", LOW, ids=range(len(LOW)))
    def test_a_signature_by_such_a_key_is_refused(self, made: Path, y: int, sign: int) -> None:
        outer = json.loads(bytes_of(contents(made / "plain.zip")[bundle.ENVELOPE]))
        name = "ed25519:" + (y + sign).to_bytes(32, "little").hex()
        signature = base64.b64encode(bytes([1]) + bytes(63)).decode()
        signed = canonical({**outer, "signatures": [{"keyid": name, "sig": signature}]}) + b"\n"
        with pytest.raises(Tampered, match="small order"):
            unseal(signed)

    def test_such_a_bundle_is_refused_as_a_whole(self, made: Path, tmp_path: Path, capsys: Capture) -> None:
        """It was "signed by an unknown key", with the identity as key and no secret at all."""
        held = contents(made / "plain.zip")
        outer = json.loads(bytes_of(held[bundle.ENVELOPE]))
        name = "ed25519:" + (1).to_bytes(32, "little").hex()
        signature = base64.b64encode(bytes([1]) + bytes(63)).decode()
        signed = canonical({**outer, "signatures": [{"keyid": name, "sig": signature}]}) + b"\n"
        assert verify(packed(tmp_path / "bad.zip", {**held, bundle.ENVELOPE: signed})) == 4
        assert "small order" in capsys.readouterr().out

    def test_such_a_key_is_not_taken_as_the_one_to_trust(self, tmp_path: Path) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        key = Ed25519PublicKey.from_public_bytes((1).to_bytes(32, "little"))
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        (tmp_path / "low.pem").write_bytes(key.public_bytes(serialization.Encoding.PEM, form))
        with pytest.raises(BadInput, match="small order"):
            public_key(tmp_path / "low.pem")
