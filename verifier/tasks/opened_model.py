"""The model of a task or of a run, opened to be read."""

from __future__ import annotations

import json
from dataclasses import replace

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.adaptation import adapted, write_model
from swapproof.encodings.onnx_files.model_ports import Given, Scores
from swapproof.encodings.onnx_files.onnx_reading import Model, open_model
from swapproof.models.deployed.passing_folder import PassingFolder

from ..runs.run_folder import Run
from .task import Task, onnx_of, read_task


def opened(task: Task) -> Model:
    """The model that the task names; where that has other outputs, opsets or scores than are read, one made from it,
    in a folder that is gone with the model."""
    path, said = onnx_of(task), task.model
    scores = Scores(len(said.labels), said.output, said.scores, said.threshold, said.column)
    made = adapted(path, scores, said.inputs)
    if made is None:
        return open_model(path, said.inputs)
    proto, given = made
    place = PassingFolder()
    folder = place.path
    try:
        write_model(proto, folder / path.name)
        model = replace(open_model(folder / path.name, said.inputs), given=given)
    except BaseException as error:
        place.remove()
        if isinstance(error, BadInput | Unsupported):
            raise type(error)(str(error).replace(str(folder / path.name), str(path))) from None
        raise
    place.owned_by(model)
    return model


def opened_in(run: Run) -> Model:
    """The run's own copy, read as its task says, and what its manifest says that it was made from."""
    model = open_model(run.model, read_task(run.task).model.inputs)
    try:
        derived = json.loads(run.manifest.read_bytes()).get("derived")
        given = derived and Given(None, str(derived["from"]), tuple(map(str, derived["by"])))
    except (OSError, ValueError, AttributeError, LookupError, TypeError, RecursionError):
        return model  # whoever reads the manifest for its own sake says what is wrong with it
    return replace(model, given=given)
