"""check.js as a program, beside check.py: its time, its files, its output and what it says."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from both_checkers import (
    CASES,
    CHECKERS,
    SECONDS,
    both,
    bring_files,
    one_sentence,
    put,
    read,
)
from javascript_networks import Text, canonical, one_by_one
from resident_checkers import checked_by

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


def test_a_check_that_takes_too_long_is_refused_in_time(tmp_path: Path) -> None:
    """Thousands of sentences are counted one by one: the time limit ends that, with a refusal that says why."""
    certificate = read("count-paper")
    bring_files(certificate, tmp_path)
    tokens = certificate["inputs"][0][1]
    text = one_by_one([[token, *sorted(set(range(7)) - {token})] for token in tokens])
    numbers = {"swaps": 4, "total": str(7**4), "tree": base64.b64encode(b"\2").decode()}
    certificate |= text | {"lower": None, "upper": None}
    (tmp_path / "long.json").write_bytes(canonical(certificate | {"count": certificate["count"] | numbers}))
    for seconds, reason in (("0", "ran out of time"), ("100", "number of")):
        command = [*CHECKERS["check.js"], "--seconds", seconds, str(tmp_path / "long.json")]
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert result.returncode == 4
        assert reason in result.stdout


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help-me"], ["does-not-exist"], ["--seconds", "x", "."]])
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    result = subprocess.run([*CHECKERS["check.js"], *arguments], capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "check.js" in result.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_seconds_are_whole_and_0_of_them_are_too_few(tmp_path: Path, checker: str) -> None:
    """Of at most nine digits. Without any time left nothing is accepted, also what takes no time."""
    certificate = read("lower-only")
    bring_files(certificate, tmp_path)
    file = tmp_path / "case.json"
    file.write_bytes(canonical(certificate))
    expected = {"0": 4, "000": 4, "100": 0, "999999999": 0}
    expected |= dict.fromkeys(["0.5", "1.0", "", "1e3", "+1", "-1", " 1", "1 ", "0x10", "\u0661", "1234567890"], 2)
    found = {}
    for seconds in expected:
        result = checked_by(checker, "--seconds", seconds, str(file))
        assert ("time" in result.stdout) == (result.returncode == 4)
        found[seconds] = result.returncode
    assert found == expected


# ---- the program and its files -------------------------------------------------------------------------------------


def alone(
    target: Path | str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    command = [*CHECKERS["check.js"], str(target)]
    return subprocess.run(command, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL, text=True, timeout=60)


def says_why(result: subprocess.CompletedProcess[str]) -> str:
    """One line that is not a stack trace, exit code 2, and nothing accepted."""
    assert result.returncode == 2, result
    assert result.stdout == ""
    assert result.stderr.startswith("check.js: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.strip()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of one certificate, with a vocabulary and a tensor file, that is accepted; its root is in the folder."""
    folder = tmp_path / "run"
    (folder / "certificates").mkdir(parents=True)
    certificate = {**read("external"), "id": 0}
    bring_files(certificate, folder)
    (folder / "certificates" / "000000.json").write_bytes(canonical(certificate))
    result = checked_by("check.js", str(folder))
    assert result.returncode == 0
    root = result.stdout.splitlines()[-2].removeprefix("Merkle root ")
    (folder / "certificates" / "root").write_text(root + "\n")
    assert checked_by("check.js", str(folder)).returncode == 0
    return folder


def put_something_strange(kind: str, path: Path) -> None:
    """No regular file that can be read. Skips what does not exist for this user."""
    pipe = path.with_name("pipe")
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link to a pipe":
        os.mkfifo(pipe)
        path.symlink_to(pipe)
    elif kind == "a file nobody may read":
        path.write_text("")
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
    else:
        targets = {"zeros without end": "/dev/zero", "a link to nothing": "nothing", "a link to itself": path.name}
        path.symlink_to(targets[kind])


STRANGE = (
    "a folder", "a pipe", "a link to a pipe", "zeros without end", "a link to nothing", "a link to itself",
    "a file nobody may read",
)  # fmt: skip


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("part", ["certificate", "root", "model", "tensors", "vocabulary"])
def test_what_cannot_be_read_is_exit_code_2_and_one_line(run: Path, part: str, kind: str) -> None:
    """A file of the run is something else. It neither hangs, nor is it read over, nor does it end in a stack trace."""
    certificate = read("external")
    path = {
        "certificate": run / "certificates" / "000000.json", "root": run / "certificates" / "root",
        "model": run / certificate["model"]["file"], "tensors": run / certificate["model"]["tensors"][0][0],
        "vocabulary": run / certificate["vocabulary"]["file"],
    }[part]  # fmt: skip
    path.unlink()
    put_something_strange(kind, path)
    assert f"{path.name} cannot be read: " in says_why(alone(run))


@pytest.mark.parametrize("kind", STRANGE)
def test_a_single_certificate_that_cannot_be_read_is_exit_code_2(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "case.json"
    put_something_strange(kind, path)
    says_why(alone(path))


@pytest.mark.parametrize("kind", [*STRANGE, "a file"])
def test_what_stands_for_the_folder_of_certificates_must_be_a_folder(run: Path, kind: str) -> None:
    shutil.rmtree(run / "certificates")
    if kind == "a file":
        (run / "certificates").write_text("nothing")
    else:
        put_something_strange(kind, run / "certificates")
    reason = says_why(alone(run))
    assert reason.endswith("there is no certificate") == (kind == "a folder")


def test_a_target_that_cannot_be_looked_at_is_exit_code_2(run: Path) -> None:
    """Below a file, too long a name, a device; and a name of several lines makes one."""
    file = run / "certificates" / "000000.json"
    for target in (file / "more", run / ("x" * 300), "/dev/zero", "/dev/null", run / "one\naccepted 1 of 1\n"):
        says_why(alone(target))


def test_a_name_of_several_lines_or_other_letters_makes_one_line_of_ascii(tmp_path: Path) -> None:
    certificate = read("lower-only")
    bring_files(certificate, tmp_path)
    path = tmp_path / "a\naccepted 1 of 1\u202e\u00e9.json"
    path.write_bytes(canonical(certificate))
    result = alone(path)
    assert result.returncode == 0
    first, last = result.stdout.splitlines()
    assert first.startswith("a\\u{a}accepted 1 of 1\\u{202e}\\u{e9}.json: text 0")
    assert last == "accepted 1 of 1"


def test_a_certificate_of_more_than_64_mib_is_refused(run: Path) -> None:
    with (run / "certificates" / "000000.json").open("r+b") as file:
        file.truncate(5 * 2**30)
    result = alone(run)
    assert result.returncode == 4
    assert result.stdout == "refused 000000.json: the certificate is too large\nrefused 1 of 1\n"


def test_exit_code_0_is_only_for_what_was_written(run: Path) -> None:
    """A disk that is full, and a reader who has gone: no acceptance, and no stack trace."""
    with Path("/dev/full").open("w") as full:
        result = alone(run, stdout=full.fileno())
        assert result.returncode == 2
        assert result.stderr.startswith("check.js: the verdict could not be written: ENOSPC")
        assert result.stderr.count("\n") == 1
        assert alone(run, stdout=full.fileno(), stderr=full.fileno()).returncode == 2
        assert alone(run / "nothing", stderr=full.fileno()).returncode == 2
    reader, writer = os.pipe()
    os.close(reader)
    result = alone(run, stdout=writer)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert alone(run / "nothing", stdout=writer, stderr=writer).returncode == 2
    os.close(writer)


def test_a_reader_who_goes_after_one_line_is_not_an_acceptance(run: Path) -> None:
    """As `| head -1` does, with more lines than a pipe holds: the check ends there."""
    certificate = json.loads((run / "certificates" / "000000.json").read_bytes())
    for number in range(20000):
        (run / "certificates" / f"{number:06}.json").write_bytes(b"{}" if number else canonical(certificate))
    command = [*CHECKERS["check.js"], str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("000000.json: text ")
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 2
    assert error.startswith("check.js: the verdict could not be written: EPIPE")
    assert error.count("\n") == 1


def test_a_pipe_that_does_not_wait_gets_every_line(run: Path) -> None:
    """Its reader starts late, when the pipe has long been full."""
    for number in range(1, 5000):
        (run / "certificates" / f"{number:06}.json").write_bytes(b"{}")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen([*CHECKERS["check.js"], str(run)], stdout=writer)
    os.close(writer)
    time.sleep(2)
    assert process.poll() is None
    with os.fdopen(reader) as file:
        lines = file.read().splitlines()
    assert process.wait(SECONDS) == 4
    assert len(lines) == 5001
    assert lines[-1] == "refused 4999 of 5000"


# ---- what is said --------------------------------------------------------------------------------------------------


def test_both_say_alike_what_is_wrong_from_the_start_and_what_never_is(tmp_path: Path) -> None:
    """An answer without swaps is wrong whichever rival wins; what no number of swaps changes has no number."""
    certificate = read("plane")
    swaps = dict(certificate["upper"]["swaps"])
    text = Text(certificate["inputs"], certificate["words"])
    sentence = tuple(swaps.get(word, 0) for word in range(len(text.words)))
    wrong = one_sentence(certificate, text.read(sentence), "upper", "real")
    assert len(wrong["rivals"]) == 2
    bring_files(wrong, tmp_path)
    said = []
    for rivals in (wrong["rivals"], wrong["rivals"][:1]):
        (tmp_path / "case.json").write_bytes(canonical(wrong | {"rivals": rivals}))
        said.append({result.stdout.splitlines()[0] for result in both(tmp_path / "case.json").values()})
    what = f"text {certificate['id']}, class {wrong['label']}"
    line = f"case.json: {what}: the text itself is answered wrongly (real); min_swaps = 0"
    assert said == [{line}, {line}]
    (line,) = {result.stdout.splitlines()[0] for result in both(CASES / "accepted" / "joint-none.json").values()}
    assert line.endswith(": no sentence with however many swaps changes the class (real)")


@pytest.mark.parametrize(
    ("levels", "is_said"),
    [(["real"], True), (["real", "float32"], True), (["real", "replay"], True), (["replay"], False)],
)
def test_what_is_only_recorded_gives_no_number_of_swaps(tmp_path: Path, levels: list[str], is_said: bool) -> None:
    certificate = read("paper")
    bring_files(certificate, tmp_path)
    (tmp_path / "case.json").write_bytes(canonical(put(certificate, ("upper", "levels"), levels)))
    for name, result in both(tmp_path / "case.json").items():
        assert result.returncode == 0, (name, result)
        assert ("min_swaps" in result.stdout) == is_said, (name, result.stdout)


@pytest.mark.parametrize("content", [b"\n", b"\xff" * 65, b"0" * 1000, b"0" * 2**24])
def test_another_root_of_any_length_is_a_refusal(run: Path, content: bytes) -> None:
    for before in (b"", (run / "certificates" / "root").read_bytes()):
        (run / "certificates" / "root").write_bytes(before + content)
        assert {name: result.returncode for name, result in both(run).items()} == dict.fromkeys(CHECKERS, 4)


def test_what_stays_for_many_files_says_what_the_programs_say(tmp_path: Path) -> None:
    """Other tests ask processes that stay: to the byte they answer as those that are started anew."""
    names = ("bag", "masked", "paper")
    (tmp_path / "run" / "certificates").mkdir(parents=True)
    for number, name in enumerate(names):
        data = canonical({**read(name), "id": number + (name == "paper") * 7})
        (tmp_path / "run" / "certificates" / f"{number:06}.json").write_bytes(data)
        bring_files(read(name), tmp_path / "run")
    (tmp_path / "none.json").write_text("{}")
    model = tmp_path / "model.json"
    model.write_bytes(canonical(read("bag")))
    for target in (tmp_path / "run", tmp_path / "none.json", model, tmp_path / "nowhere", "--none"):
        for name, found in both(Path(target)).items():
            anew = subprocess.run([*CHECKERS[name], str(target)], capture_output=True, text=True, timeout=SECONDS)
            assert (found.returncode, found.stdout, found.stderr) == (anew.returncode, anew.stdout, anew.stderr)
