"""Whatever is left to do of a run, done: each text's evidence and result on the disk before it counts as done."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...interrupting import stops_after
from ...pages.progress import progress
from ..results import written
from ..run_folder import Run, sha256, write_together
from ..store import Store
from ..work import Lost, Settled, Work
from ..workers import FEW, settle_all
from .job_order import in_order

if TYPE_CHECKING:
    from ...tasks.inputs import Text


@dataclass(frozen=True)
class Hands:
    """Who works: so many processes at a time, here or on the machines of a Ray cluster (there 1 stands for one on each
    processor)."""

    jobs: int = 1
    cluster: str | None = None
    apart: bool = False
    """Never in this process: what is asked may end it."""


def settle_texts(
    run: Run,
    store: Store,
    work: Work,
    texts: Sequence[Text],
    digests: Mapping[int, str],
    hands: Hands,
    *,
    doing: str,
    shown: bool,
) -> None:
    """This process alone writes: a text's certificate, then its row. It counts as done when both are on the disk.

    `digests`: of what is asked of each text; a result of another digest is none of it.
    """
    answered = store.jobs()
    finished = {
        id
        for id, certificate in store.finished(work.stage)
        if answered.get(id) == digests[id] and intact(run, id, certificate)
    }
    work, again = work.resumed(run, store, finished)
    suspects = store.leased(work.stage)
    todo = [text for text in texts if text.id not in finished or text.id in again]
    todo = in_order(todo, again, suspects, lambda id: store.result(work.stage, id))
    if not todo:
        return
    deployed = {text.id: {"answer": text.answer} for text in todo if text.answer is not None}
    jobs = min(hands.jobs, len(todo))
    apart = hands.apart or len(todo) > FEW or any(text.id in suspects for text in todo)

    begun = set(suspects)

    def taken(some: Sequence[Text], worker: str) -> None:
        """A text at which a process died before is to keep more often what it comes to: its file is there for that."""
        store.lease(work.stage, [text.id for text in some], worker)
        for text in some:
            if text.id in begun:
                run.mark_begun(text.id)
            begun.add(text.id)
        advance.working(f"text {some[-1].id}")

    sizes = {text.id: 1 + text.frozen.space.candidates for text in todo}
    most = None if work.seconds is None or hands.cluster is not None else work.seconds / jobs
    settling: Generator[Sequence[Settled | Lost], None, None]
    if hands.cluster is None:
        settling = settle_all(work, todo, hands.jobs, apart=apart, taken=taken)
    else:
        from .ray_cluster import settle_on_cluster

        settling = settle_on_cluster(work, iter(todo), run.folder, None if hands.jobs == 1 else jobs, taken)
    with (
        ending_leases(run, store, work.stage),
        progress(
            doing, len(texts), len(texts) - len(todo), shown=shown, size=sum(sizes.values()), most=most
        ) as advance,
        closing(settling) as found,
    ):
        for lot in found:
            with stops_after():  # of what was found nothing is to be found again
                evidence = write_evidence(run, [one for one in lot if isinstance(one, Settled)])
                with store.together():
                    for one in lot:
                        match one:
                            case Lost(text) if text.id in again:
                                pass  # what was known of it stays
                            case Lost(text):
                                unsettled = written(work.lost(one) | deployed.get(text.id, {}))
                                store.put(work.stage, text.id, unsettled, None, lost=True, job=digests[text.id])
                            case Settled(id, line):
                                told = written(line | deployed.get(id, {}))
                                store.put(work.stage, id, told, evidence[id], job=digests[id])
                                kept = work.kept(one, again=id in again)
                                if kept is not None:
                                    store.put(work.kept_stage, id, kept, None)
            for id in evidence:
                run.begun(id).unlink(missing_ok=True)
            for one in lot:
                place, status = (one.text.id, "lost") if isinstance(one, Lost) else (one.id, str(one.line["status"]))
                advance(1, status, sizes[place])


@contextmanager
def ending_leases(run: Run, store: Store, stage: str) -> Iterator[None]:
    """However work ends: only where this process is killed does it leave leases behind. Texts that it was at are marked
    as those are: who stops a run once may do it again."""
    try:
        yield
    except BaseException:
        for id in store.leased(stage):
            run.mark_begun(id)
        raise
    finally:
        store.release(stage)


def intact(run: Run, id: int, evidence: str | None) -> bool:
    """Whether the certificate or transcript of a finished text is still the one that was written."""
    paths = (run.certificate(id), run.transcript(id))
    return evidence is None or any(path.is_file() and sha256(path) == evidence for path in paths)


def write_evidence(run: Run, lot: Sequence[Settled]) -> dict[int, str | None]:
    """The SHA-256 of each certificate or transcript, all on the disk; a proof that was refused is written beside."""
    found: dict[int, str | None] = {}
    contents: dict[Path, bytes] = {}
    for settled in lot:
        found[settled.id] = None
        for path, content in (
            (run.transcript(settled.id), settled.transcript),
            (run.certificate(settled.id), settled.certificate),
            (run.refused / f"{settled.id:06d}.json", settled.refused),
        ):
            if content is None:
                continue
            contents[path] = content
            if path.parent != run.refused:
                found[settled.id] = hashlib.sha256(content).hexdigest()
    write_together(contents)
    return found
