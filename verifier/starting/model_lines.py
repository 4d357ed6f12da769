"""What a model of any kind says of itself, as lines of a task file."""

from __future__ import annotations

from pathlib import Path

from swapproof.models.deployed.answers.json_paths import described, paths_of
from swapproof.models.deployed.classifier import NoAnswer
from swapproof.models.deployed.http_endpoint import open_endpoint
from swapproof.models.errors import BadInput
from swapproof.models.recognition.folder_contents import labels_in
from swapproof.models.recognition.model_kinds import Pointed
from swapproof.models.recognition.whole_files import read_object

from .beginning_state import Beginning
from .decisions import decide
from .onnx_lines import describe_onnx
from .trying import section_of


def describe_model(begun: Beginning) -> None:
    match begun.pointed.kind:
        case "onnx":
            pair = begun.pair
            begun.contents = describe_onnx(begun.pointed.path, begun.draft, begun.findings, begun.texts, pair)
            chosen = begun.draft.get("model", "output")
            begun.positions = any(
                port.shape is not None and len(port.shape) > 2
                for port in begun.contents.outputs
                if chosen in (None, port.name)
            )
        case "callable":
            source, draft = begun.pointed.source, begun.draft
            top = source.partition(":")[0].partition(".")[0]
            if Path(f"{top}.py").is_file() or Path(top).is_dir():
                draft.set("model", "folder", Path.cwd(), "where its module lies")
            begun.findings.tell("Model", f"{source}: a Python function, called with lists of {begun.called_with}")
        case "endpoint":
            begun.findings.tell("Model", f"{begun.pointed.source}: a URL; texts of the data are sent there")
            if "response" not in begun.given["model"]:
                find_response(begun)
        case _:
            begun.findings.tell("Model", f"{begun.pointed.path.name}: {begun.pointed.seen}")
    begun.names = labels_beside(begun.pointed) or (begun.contents.class_names if begun.contents else None)


def find_response(begun: Beginning) -> None:
    """Where the scores stand in what the endpoint answers, told from one answer."""
    sentence = begun.few.sentences[0]
    deployment = section_of(begun.draft).deployment(fields=len(sentence), moving=begun.moving, **begun.trust)
    try:
        answer = open_endpoint(deployment).answer(sentence)
    except NoAnswer as error:
        raise BadInput(
            f'{error}; where it wants other JSON than {{"text": ...}}, say what is sent: '
            "--set 'request={\"inputs\": {text}}'"
        ) from error
    paths = paths_of(answer)
    if not paths:
        raise BadInput(f"{begun.pointed.source}: answers {described(answer)}: no scores that could be read")
    path, why = paths[0], "the only place of numbers in its answer"
    if len(paths) > 1:
        path = decide(
            f"The endpoint answers numbers in {len(paths)} places. Where are the scores?",
            {place: place for place in paths},
            f"{begun.pointed.source}: answers {described(answer)}: say where the scores are: --set 'response={path}'",
        )
        why = "as you said"
    begun.draft.set("model", "response", path, f"where the scores stand: {why}")
    begun.findings.tell("Model", f"its scores stand at {path}: {why}")


def labels_beside(pointed: Pointed) -> list[str] | None:
    """The names of the classes in the config.json of Hugging Face's, which also lies beside exported models."""
    if pointed.kind not in ("hf", "onnx"):
        return None
    homes = (pointed.folder, *([pointed.folder.parent] if pointed.folder.name == "onnx" else ()))
    config = next((home / "config.json" for home in homes if (home / "config.json").is_file()), None)
    return None if config is None else labels_in(read_object(config))
