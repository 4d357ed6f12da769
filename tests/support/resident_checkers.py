"""check.py and check.js in one process each that stays: what the programs do with a file, without their start-up.

Of check.py a process with everything loaded forks for each target, of check.js the whole text, compiled once, is run
anew, command line included: no state of one check is seen by the next.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "proofs"

OF_PYTHON = """
import json, os, sys, traceback
path = sys.argv[1]
with open(path, encoding="utf-8") as file:
    text = file.read()
program = {"__name__": "resident", "__file__": path, "__package__": None}
sys.modules["resident"] = type(sys)("resident")
sys.modules["resident"].__dict__.update(program)
exec(compile(text, path, "exec"), program := sys.modules["resident"].__dict__)

def end(arguments):
    try:
        return program["main"](arguments)
    except BaseException:
        traceback.print_exc()
        return 1

for line in sys.stdin.buffer:
    files = [os.memfd_create(name) for name in ("out", "err")]
    child = os.fork()
    if child == 0:
        for number, file in enumerate(files, 1):
            os.dup2(file, number)
        code = end(json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = []
    for file in files:
        with open(file, encoding="utf-8") as written:
            written.seek(0)
            said.append(written.read())
    print(json.dumps([code, *said]), flush=True)
"""

OF_JAVASCRIPT = """
const fs = require("node:fs");
const vm = require("node:vm");
const path = process.argv[1];
const text = fs.readFileSync(path, "utf8").replace(/^#!.*/, "");
const whole = new vm.Script(`(function (module, require, process) {${text}\\n})`, { filename: path });
const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const said = ["", "", ""];
  const writeSync = (descriptor, bytes, at) => {
    said[descriptor] += bytes.subarray(at).toString();
    return bytes.length - at;
  };
  const program = { argv: ["node", path, ...JSON.parse(line)], exitCode: 0 };
  const its = { exports: {} };
  const found = (name) => (name === "node:fs" ? { ...fs, writeSync } : require(name));
  found.main = its;
  whole.runInThisContext()(its, found, program);
  process.stdout.write(JSON.stringify([program.exitCode, said[1], said[2]]) + "\\n");
});
"""


class Resident:
    """A program that answers each line of text with a line of JSON."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.leave)

    def ask(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def asked(self, line: str) -> Any:
        self.ask(line)
        return self.answer()

    def leave(self) -> None:
        self.process.kill()
        self.process.communicate()


@cache
def residents() -> dict[str, Resident]:
    return {
        "check.py": Resident(sys.executable, "-I", "-S", "-c", OF_PYTHON, str(FOLDER / "check.py")),
        "check.js": Resident("node", "-e", OF_JAVASCRIPT, str(FOLDER / "check.js")),
    }


def checked(*arguments: str) -> dict[str, subprocess.CompletedProcess[str]]:
    """What both say of it, at the same time."""
    for one in residents().values():
        one.ask(json.dumps(arguments))
    return {name: said(one.answer(), name) for name, one in residents().items()}


def checked_by(checker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return said(residents()[checker].asked(json.dumps(arguments)), checker)


def said(answer: list[Any], checker: str) -> subprocess.CompletedProcess[str]:
    code, out, err = answer
    return subprocess.CompletedProcess(checker, code, out, err)
