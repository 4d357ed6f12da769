"""A signal to the whole group finds no process of ours that has not yet left it to its parent."""

from __future__ import annotations

import signal
from contextlib import suppress
from multiprocessing import get_context

import pytest
from started_process import tell_held_back

from swapproof.verifier.cli import main
from swapproof.verifier.interrupting import stops_held_back

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signal masks here")


def test_a_process_that_is_started_meanwhile_begins_with_it_held_back() -> None:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=tell_held_back, args=(theirs,))
    with stops_held_back():
        process.start()
    theirs.close()  # a process that dies ends the wait
    assert ours.recv() == [True, False]
    process.join()
    assert process.exitcode == 0
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.usefixtures("hearing_ctrl_c")
def test_an_error_that_c_code_makes_of_ctrl_c_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def importing() -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise ImportError("initialization failed")

    monkeypatch.setattr("swapproof.verifier.commands.doctor.doctor", importing)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "swapproof: interrupted; the same command starts from the beginning\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
