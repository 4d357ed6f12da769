"""What can be told of a model by looking at it: one table of facts for each kind, the same on screen and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from swapproof.encodings.smooth.attention_depth import attention_layers_of_file, told_of
from swapproof.models.defences.state_growth import drawn_vectors, growth_of_layers, recurrent_cells, said_of
from swapproof.models.deployed.classifier import Deployment
from swapproof.models.deployed.kinds import open_classifier
from swapproof.models.deployed.static_embeddings import StaticClassifier
from swapproof.models.errors import BadInput, Unsupported
from swapproof.models.recognition.folder_contents import labels_in, tensors_of, tokenizer_in
from swapproof.models.recognition.model_kinds import Pointed, kind_of
from swapproof.models.recognition.onnx_contents import OnnxContents, Port, read_contents
from swapproof.models.recognition.whole_files import read_object, sha256

from .onnx_lines import recognised
from .road_ahead import Road, road_of

Facts = dict[str, Any]
ANSWERS = frozenset({"bool", "string", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))})
"""Types of outputs that are answers, and no scores: such a model is neither read nor run."""


def inspect_model(model: str, *, trust_pickle: bool = False) -> Facts:
    """Nothing is run but what scikit-learn restores, and of a pickle that only if it is trusted."""
    pointed = kind_of(model)
    facts: Facts = {"model": pointed.source, "kind": pointed.seen}
    match pointed.kind:
        case "onnx":
            facts |= of_onnx(pointed)
        case "hf":
            facts |= of_hugging_face(pointed)
        case "static":
            facts |= of_static(pointed)
        case "sklearn":
            facts |= of_scikit_learn(pointed, trust_pickle=trust_pickle)
        case _:
            facts |= road_facts(road_of(pointed))
    return facts


def of_files(paths: list[Path]) -> Facts:
    """Names, sizes and hashes."""
    return {"files": [{"name": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths]}


def of_onnx(pointed: Pointed) -> Facts:
    contents = read_contents(pointed.path)
    missing = [path for path in contents.external if not path.is_file()]
    if missing:
        raise BadInput(
            f"{pointed.source}: its weights are in {missing[0]}, which is not there: put it beside the model"
        )
    try:
        roles: dict[str, str] | None = recognised(contents)
        unknown = None
    except BadInput as error:
        roles, unknown = None, str(error).removeprefix(f"{contents.path}: ")
    facts: Facts = of_files([pointed.path, *contents.external])
    facts |= {
        "opset": contents.opset,
        "ir_version": int(contents.proto.ir_version),
        "producer": contents.producer or "not said",
    }
    if contents.domains:
        facts["other_operators"] = contents.domains
    facts["inputs"] = [
        {**port_facts(port), "role": (roles or {}).get(port.name, "unknown")} for port in contents.inputs
    ]
    if unknown:
        facts["inputs_problem"] = unknown
    facts["outputs"] = [port_facts(port) for port in contents.outputs]
    facts |= sizes(contents, roles or {})
    facts["parameters"] = contents.parameters
    facts["weights"] = contents.weight_types
    facts["embedding_tables"] = [
        {"name": name, "rows": shape[0], "columns": shape[1], "read_by": port}
        for port, name, shape in dict.fromkeys(contents.lookups)
    ]
    facts["operators"] = contents.operators
    road = road_of(pointed, roles=roles)
    if contents.recurrent:
        facts["recurrent"] = f"{', '.join(contents.recurrent)}: {growth_told(contents)}"
    layers = attention_layers_of_file(contents.proto.graph)
    if layers:
        facts["attention"] = told_of(layers)
    if contents.outputs and all(port.type in ANSWERS for port in contents.outputs):
        named = ", ".join(f"{port.name} is {port.type}" for port in contents.outputs)
        return facts | {"problem": f"it answers classes, not scores ({named}): export the model with its scores"}
    return facts | road_facts(road)


def growth_told(contents: OnnxContents) -> str:
    """Along words drawn from the one table that there is."""
    from onnx import numpy_helper

    named = {name for _, name, _ in contents.lookups}
    tables = [tensor for tensor in contents.proto.graph.initializer if tensor.name in named]
    if len(tables) == 1 and not contents.external:
        vectors = drawn_vectors(numpy_helper.to_array(tables[0]))
        growth = growth_of_layers(recurrent_cells(contents.proto), vectors)
        if growth is not None:
            return said_of(growth, None)
    return "how fast its states widen is not known: its weights are computed, or its gates are not the usual ones"


def sizes(contents: OnnxContents, roles: dict[str, str]) -> Facts:
    """How many texts at once, and how many tokens each."""
    first = next((port for port in contents.inputs if roles.get(port.name) in ("tokens", "text")), None)
    if first is None or not first.shape:
        return {}
    named: Facts = {"batch": first.shape[0] if isinstance(first.shape[0], int) else "any"}
    if len(first.shape) > 1 and roles[first.name] == "tokens":
        named["length"] = first.shape[1] if isinstance(first.shape[1], int) else "any"
    return named


def port_facts(port: Port) -> Facts:
    return {"name": port.name, "type": port.type, "shape": None if port.shape is None else list(port.shape)}


def of_hugging_face(pointed: Pointed) -> Facts:
    folder = pointed.path
    config = read_object(folder / "config.json")
    tensors = tensors_of(folder)
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")])
    facts: Facts = of_files([folder / "config.json", *weights])
    facts["architecture"] = ", ".join(map(str, config.get("architectures") or ())) or "not said"
    facts["model_type"] = str(config.get("model_type") or "not said")
    facts["parameters"] = sum(tensor.size for tensor in tensors) if tensors else "in a pickle, which is not opened here"
    if tensors:
        facts["weights"] = counted(tensors)
    facts["tokenizer"] = tokenizer_in(folder)
    facts["labels"] = labels_in(config) or "not said"
    if config.get("max_position_embeddings"):
        facts["longest_text"] = f"{config['max_position_embeddings']} tokens"
    if not any("SequenceClassification" in str(name) for name in config.get("architectures") or ()):
        facts["problem"] = (
            "no classifier of texts: it should be a ...ForSequenceClassification; of others, give a Python function"
        )
    return facts | road_facts(road_of(pointed))


def counted(tensors: list[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for tensor in tensors:
        found[tensor.type] = found.get(tensor.type, 0) + tensor.size
    return found


def of_static(pointed: Pointed) -> Facts:
    folder = pointed.path
    paths = [folder] if folder.is_file() else sorted([*folder.glob("*.safetensors"), *folder.glob("*.json")])
    facts: Facts = of_files(paths)
    classifier = open_classifier(Deployment("static", str(folder)))
    if isinstance(classifier, StaticClassifier):
        rows, columns = classifier.vectors.shape
        facts["embedding_tables"] = [{"name": "vectors", "rows": rows, "columns": columns, "read_by": "tokens"}]
    if folder.is_dir():
        facts["normalised"] = "by their L2 norm" if read_object(folder / "config.json").get("normalize") else "no"
        facts["tokenizer"] = tokenizer_in(folder)
    return facts | opened_facts(classifier) | road_facts(road_of(pointed, classifier=classifier))


def of_scikit_learn(pointed: Pointed, *, trust_pickle: bool) -> Facts:
    facts = of_files([pointed.path])
    try:
        classifier = open_classifier(Deployment("sklearn", pointed.source, trust_pickle=trust_pickle))
    except (BadInput, Unsupported) as error:
        if trust_pickle or "--trust-pickle" not in str(error):
            raise
        return facts | {"problem": str(error).removeprefix(f"{pointed.source}: ")}
    return facts | opened_facts(classifier) | road_facts(road_of(pointed, classifier=classifier))


def opened_facts(classifier: Any) -> Facts:
    """What the model says of itself once it is open."""
    identity = classifier.identity
    facts: Facts = dict(identity.facts)
    if "labels" in facts:
        facts["labels"] = json.loads(facts["labels"])
    return facts | ({"remarks": list(identity.remarks)} if identity.remarks else {})


def road_facts(road: Road) -> Facts:
    return {"road": "read" if road.read else "run", "why": road.why, "refusals": list(road.reasons)}
