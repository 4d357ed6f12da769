"""manifest.json: what a run was made from and with, as data; `check` compares it with the files beside it."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from swapproof.encodings.onnx_files.model_ports import Given
from swapproof.models.errors import BadInput

from ..tasks.inputs import Inputs
from ..tasks.task import Task, read_task, task_dumped
from ..versions import AT_WORK, versions
from .binding import Binding
from .keys_once import once
from .run_folder import Run, sha256, write_atomically

FORMAT, VERSION = "swapproof run", 1
QUESTION = "measure"
"""The fact that says what a run of `measure` answers; runs of `certify` have none."""

DEPLOYED = "deployed"
"""Among the hashes: those of the copies of the deployed model, where the model of the run was made of it."""

EXPORTED = "exported"
"""What was remarked when the model of the run was exported, if it was."""


class Unlike(ValueError):
    """A manifest that is none."""


def manifest_of(
    task: Task, binding: Binding, inputs: Inputs, facts: Mapping[str, str], given: Given | None = None
) -> dict[str, Any]:
    """`facts`: those of the store; `given`: what the model of the run was made from, if it was."""
    derived = {} if given is None else {"derived": {"from": given.sha256, "by": list(given.notes)}}
    return {
        "format": FORMAT,
        "version": VERSION,
        "sha256": hashes(binding, inputs) | {"task": task.digest},
        "settings": settings_of(facts),
        "swaps_from": inputs.source,
        "versions": {**versions(*AT_WORK), "python": platform.python_version()},
        "platform": platform.platform(),
        "made_from": task.placeless.model_dump(mode="json", exclude_none=True),
        **derived,
    }


def settings_of(facts: Mapping[str, str]) -> dict[str, Any]:
    """What the command was asked for that its results depend on, by the facts of the store."""
    found: dict[str, Any] = {"command": "certify"}
    if QUESTION in facts:
        question = json.loads(facts[QUESTION])
        found = {"command": "attack" if question["quantity"] == "attack" else "measure", "question": question}
    elif "engines" in facts:
        found["engines"] = facts["engines"].split(",")
    if "seconds" in facts:
        found["seconds_per_text"] = json.loads(facts["seconds"])
    return found


def hashes(binding: Binding, inputs: Inputs) -> dict[str, Any]:
    """Of what lies in the folder: files, but of texts and labels what was read of them."""
    return {
        "model": binding.model_sha256,
        "tensors": dict(binding.tensors),
        "vocabulary": binding.vocabulary_sha256,
        "texts": inputs.digest,
        "spaces": binding.spaces_sha256,
    }


def write_manifest(run: Run, manifest: Mapping[str, Any]) -> None:
    write_atomically(run.manifest, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def read_manifest(data: bytes) -> dict[str, Any]:
    """Raises Unlike for what is no manifest."""
    try:
        manifest = json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise Unlike(f"manifest.json is not JSON ({getattr(error, 'msg', error)})") from None
    if not isinstance(manifest, dict) or (manifest.get("format"), manifest.get("version")) != (FORMAT, VERSION):
        raise Unlike(f"manifest.json is not a {FORMAT!r} of version {VERSION}")
    if not all(isinstance(manifest.get(name), dict) for name in ("sha256", "settings", "versions", "made_from")):
        raise Unlike("manifest.json lacks what it was made from")
    return manifest


def differences(manifest: Mapping[str, Any], binding: Binding, inputs: Inputs) -> Iterator[str]:
    """Where it says another thing of the run's files than they are."""
    stated = {name: value for name, value in manifest["sha256"].items() if name not in ("task", DEPLOYED)}
    found = hashes(binding, inputs)
    for name in sorted(stated.keys() | found.keys()):
        if stated.get(name) != found.get(name):
            yield f"manifest.json notes another SHA-256 of the {name}"


def made_otherwise(run: Run, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Where the task that it says the run was made from is none, is another than it hashed, or names other classes than
    the run's own. How many texts were asked for, and the platform, nothing here can tell."""
    try:
        task = task_dumped(manifest["made_from"])
    except BadInput as error:
        yield f"manifest.json: what it says the run was made from is no task: {str(error).splitlines()[0]}"
        return
    if task.digest != manifest["sha256"].get("task"):
        yield "manifest.json says that the run was made from another task than the one whose SHA-256 it notes"
    made, own = task.model.labels, read_task(run.task, check_files=False).model.labels
    if made != own:
        yield f"manifest.json says that the classes were {', '.join(made)}, and task.toml names {', '.join(own)}"


def note_deployed(run: Run) -> None:
    """In the manifest that is there, the files of the deployed model as they lie beside the network made of it."""
    manifest = read_manifest(run.manifest.read_bytes())
    write_manifest(run, {**manifest, "sha256": {**manifest["sha256"], DEPLOYED: deployed_files(run)}})


def note_export(run: Run, remarks: Sequence[str]) -> None:
    write_manifest(run, {**read_manifest(run.manifest.read_bytes()), EXPORTED: list(remarks)})


def noted_in(run: Run) -> dict[str, Any] | None:
    """Its manifest; None where that is missing or wrong, which is refused elsewhere."""
    try:
        return read_manifest(run.manifest.read_bytes())
    except (OSError, Unlike):
        return None


def remarks_of_export(run: Run) -> Sequence[str]:
    remarks = (noted_in(run) or {}).get(EXPORTED)
    return remarks if isinstance(remarks, list) else ()


def deployed_files(run: Run) -> dict[str, str]:
    """Name in their folder -> SHA-256."""
    paths = (path for path in sorted(run.deployed.rglob("*")) if path.is_file())
    return {path.relative_to(run.deployed).as_posix(): sha256(path) for path in paths}


def deployed_differs(run: Run, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Where other files of the deployed model lie there than it notes, if it notes them."""
    stated, found = manifest["sha256"].get(DEPLOYED), deployed_files(run)
    if isinstance(stated, dict):
        for name in sorted(stated.keys() | found.keys()):
            if stated.get(name) != found.get(name):
                what = "another file than" if name in found else "missing, and"
                yield f"{DEPLOYED}/{name} is {what} manifest.json notes"
    elif stated is not None:
        yield f"manifest.json notes no files of {DEPLOYED}"


def deployed_uncovered(run: Run) -> str | None:
    """What to say of a deployed model that no hash covers: of runs that were made before these were noted."""
    noted = noted_in(run) if run.deployed.is_dir() else None
    if noted is None or DEPLOYED in noted["sha256"]:
        return None
    return f"{DEPLOYED}/ is not covered: this run did not note the SHA-256 of its files"
