"""The run folder: which files it holds, and how they are written so that a kill at any moment leaves it resumable."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.models.errors import unreadable

from .store import is_store, writing

CERTIFICATE = re.compile(r"[0-9]{6}\.json")
UNFINISHED = re.compile(r"\..*\.unfinished(-journal)?")
BEHIND = re.compile(r"behind-[0-9]+\.onnx")
"""The network behind the embedding, for texts of so many tokens."""
LEFT_OUT, BESIDE = "left_out.csv", "beside.json"
"""Every swap that was left out, and what stands on the page of other runs."""
EMBEDDINGS = "embeddings.npy"
"""Of a model that reads vectors: those of its words."""
MOST_TEXTS = 1_000_000
"""Certificates are numbered with six digits."""


@dataclass(frozen=True)
class Run:
    """The files of a run."""

    folder: Path

    @property
    def task(self) -> Path:
        return self.folder / "task.toml"

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def model(self) -> Path:
        return self.folder / "model.onnx"

    @property
    def vocabulary(self) -> Path:
        return self.folder / "vocabulary.json"

    @property
    def texts(self) -> Path:
        return self.folder / "texts.jsonl"

    @property
    def spaces(self) -> Path:
        return self.folder / "spaces.jsonl"

    @property
    def store(self) -> Path:
        return self.folder / "store.sqlite"

    @property
    def results(self) -> Path:
        return self.folder / "results.jsonl"

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def transcripts(self) -> Path:
        """What a model answered that was run and not read."""
        return self.folder / "transcripts"

    @property
    def deployed(self) -> Path:
        """The model as it is deployed, where model.onnx is a network that was made of it."""
        return self.folder / "deployed"

    @property
    def refused(self) -> Path:
        """Proofs that the checker did not accept: to be looked at, not published."""
        return self.folder / "refused"

    @property
    def summary(self) -> Path:
        return self.folder / "summary.json"

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    @property
    def lock(self) -> Path:
        return self.folder / ".lock"

    def certificate(self, id: int) -> Path:
        return self.certificates / f"{id:06d}.json"

    def transcript(self, id: int) -> Path:
        return self.transcripts / f"{id:06d}.json"

    def begun(self, id: int) -> Path:
        """What was found of a text so far, for whoever goes on with it after a kill."""
        return self.transcripts / f".{id:06d}.begun.unfinished"

    def mark_begun(self, id: int) -> None:
        with writing(self.transcripts):
            self.transcripts.mkdir(exist_ok=True)
            self.begun(id).touch()

    def contents(self, tensors: Iterable[str] = ()) -> list[Path]:
        """Every file that a run may write, but its store; `tensors` are the external data files of its model."""
        fixed = [
            self.task,
            self.manifest,
            self.model,
            self.vocabulary,
            self.texts,
            self.spaces,
            self.results,
            self.summary,
            self.report,
            self.folder / LEFT_OUT,
            self.folder / BESIDE,
        ]
        found = [*fixed, *(self.folder / name for name in tensors)]
        found += [path for path in self.deployed.rglob("*") if path.is_file()]
        with suppress(OSError):
            found += [path for path in self.folder.iterdir() if BEHIND.fullmatch(path.name) or path.name == EMBEDDINGS]
        for folder in (self.folder, self.certificates, self.transcripts, self.refused):
            with suppress(OSError):
                found += [path for path in folder.iterdir() if UNFINISHED.fullmatch(path.name)]
        for folder in (self.certificates, self.transcripts, self.refused):
            with suppress(OSError):
                found += [path for path in folder.iterdir() if CERTIFICATE.fullmatch(path.name)]
        return found


def existing(folder: Path) -> Run:
    """The run in this folder, for whoever reads one."""
    run = Run(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}; give the folder of a run")
    if not is_store(run.store):
        raise BadInput(f"{folder}: not the folder of a run: {what_lacks(run)}")
    refuse_strange(run)
    return run


def refuse_strange(run: Run) -> None:
    """Pipes, devices and links that lead nowhere: reading them would wait, or never end, or find nothing."""
    for folder in (run.folder, run.certificates, run.transcripts):
        for path in folder.iterdir() if folder.is_dir() else ():
            if not path.is_file() and not path.is_dir():
                raise BadInput(f"{path}: not a regular file; copy it from where the run was made")


def what_lacks(run: Run) -> str:
    """Of a folder that cannot be read as a run: what is missing, and what to do."""
    name = run.store.name
    met = f"its {name} is another file" if run.store.exists() else f"it has no {name}"
    if run.task.exists() or run.certificates.exists():
        return (
            f"{met}; copy it from where the run was made, or make the run again with a new --out; "
            f"`python -I -S proofs/check.py {run.folder}` checks certificates without it"
        )
    inside = min(run.folder.glob(f"*/{name}"), default=None)
    return f"{met}; " + ("`swapproof certify` makes one" if inside is None else f"{inside.parent} may be one")


def is_free(folder: Path) -> bool:
    """Whether a run may begin here: nothing there, an empty folder, or the first traces of a run that was killed."""
    if not folder.exists():
        return True
    if not folder.is_dir():
        raise BadInput(f"{folder}: exists and is not a folder; give --out a new folder")
    try:
        return all(path.name == ".lock" or UNFINISHED.fullmatch(path.name) for path in folder.iterdir())
    except OSError as error:
        raise BadInput(f"{folder}: cannot be read ({error.strerror})") from error


def refuse_foreign(folder: Path) -> None:
    """A folder with other things in it than a run."""
    if not is_free(folder) and not is_store(folder / "store.sqlite"):
        raise BadInput(f"{folder}: holds files and is not the folder of a run; give --out a new folder")
    for inner in (Run(folder).certificates, Run(folder).transcripts, Run(folder).refused):
        if inner.is_symlink():
            raise BadInput(
                f"{inner}: leads to another folder, where a run would replace files; give --out a new folder"
            )


@contextmanager
def held(run: Run) -> Iterator[None]:
    """Only one process works on a run; the system lets go of the lock when that process dies."""
    with writing(run.lock):
        file = run.lock.open("a")
    try:
        try:
            import fcntl
        except ImportError:  # a system without it: there the second process is the user's to avoid
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"{run.folder}: another process is working on this run; wait for it") from None
        yield
    finally:
        file.close()


def write_together(contents: Mapping[Path, bytes]) -> None:
    """As `write_atomically`, of several files, whose folders are synced once."""
    unfinished = {path: path.with_name(f".{path.name}.unfinished") for path in contents}
    opened = []
    folders = {path.parent for path in contents}
    with writing(next(iter(folders), Path())):
        for folder in folders:
            folder.mkdir(exist_ok=True)
        try:
            for path, content in contents.items():
                opened.append(unfinished[path].open("wb"))
                opened[-1].write(content)
                opened[-1].flush()
            for file in opened:  # all are on their way to the disk before any is waited for
                os.fsync(file.fileno())
                file.close()
            for path, other in unfinished.items():
                other.replace(path)
            for folder in folders:
                sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                for file in opened:
                    file.close()
                for other in unfinished.values():
                    other.unlink(missing_ok=True)
            raise


def write_atomically(path: Path, data: bytes | Iterable[bytes], *, durable: bool = True) -> str:
    """Replace a file in one step, its bytes on the disk before its name is, and its name when this returns. Returns
    the SHA-256 of its bytes.

    Not `durable`: a power cut can leave other bytes, or the file before.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    digest = hashlib.sha256()
    with writing(path):
        try:
            with unfinished.open("wb") as file:
                for part in [data] if isinstance(data, bytes) else data:
                    digest.update(part)
                    file.write(part)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            unfinished.replace(path)
            if durable:
                sync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """The names in it are on the disk when this returns, where the system can open a folder."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)


def copy_atomically(source: Path, target: Path, expected: str) -> None:
    """Copy a file whose SHA-256 is known; a file that changed since then is refused."""
    if source.absolute() == target.absolute():
        return
    if write_atomically(target, blocks(source)) != expected:
        raise BadInput(f"{source}: changed while it was being read; run the command again")


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, a mebibyte at a time."""
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                yield block
    except OSError as error:
        raise unreadable(path, error) from error


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for block in blocks(path):
        digest.update(block)
    return digest.hexdigest()


def remove_own(run: Run, tensors: Iterable[str], *, store: bool) -> None:
    """Remove what a run wrote and nothing else; with `store`, the store too, and the folder if it is then empty."""
    with writing(run.folder):
        for path in run.contents(tensors):
            path.unlink(missing_ok=True)
        inner = sorted(run.deployed.rglob("*"), reverse=True)
        for folder in (run.certificates, run.transcripts, run.refused, *inner, run.deployed):
            with suppress(OSError):  # not there, or someone else's files in it
                folder.rmdir()
        if store:
            for suffix in ("", "-wal", "-shm", "-journal"):
                run.store.with_name(run.store.name + suffix).unlink(missing_ok=True)
