"""A Hugging Face folder as a classifier: exported to ONNX once, compared with torch, and run from there."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import BadInput
from ..export.checkpoint_folder import read_checkpoint
from ..export.hugging_face_folder import Exported, export_hugging_face, read_exported, refuse_foreign
from ..readers import refuse_other_order
from .classifier import Classifier, Deployment, Identity, Scores, Variants
from .decision import Answered
from .kinds import open_classifier
from .passing_folder import PassingFolder
from .swapped_text import Fields, SwapText


@dataclass(frozen=True)
class Prepared:
    """The model as an ONNX file and a tokenizer.json, how to open the two, and what was compared."""

    deployment: Deployment
    """Of kind "onnx". It has no length: tokenizer.json cuts, and the length of a batch is free."""
    exported: Exported

    @property
    def answered(self) -> Answered:
        return Answered("logits", len(self.exported.labels))


def prepare_hugging_face(deployment: Deployment, folder: Path, *, sentences: Sequence[Fields] = ()) -> Prepared:
    """Exports the model into `folder`, unless what is there was exported from the same files in the same way.

    `sentences` are compared with torch, all of them; without any, some are made up.
    """
    source = Path(deployment.source)
    if deployment.output not in (None, 0, "logits"):
        raise BadInput(f"{source}: its one output is the logits: remove output = {deployment.output!r}")
    exported = read_exported(folder)
    asked = {"fields": deployment.fields, "length": deployment.length}
    if exported is None or exported.asked != asked or exported.sha256["source"] != read_checkpoint(source).digest():
        refuse_foreign(folder)
        shutil.rmtree(folder, ignore_errors=True)
        exported = export_hugging_face(
            source, folder, sentences=sentences, fields=deployment.fields, length=deployment.length
        )
    refuse_other_order(source, exported.labels, deployment.labels, deployment.label_map)
    return Prepared(
        replace(
            deployment,
            kind="onnx",
            source=str(exported.model),
            vocabulary=exported.tokenizer,
            inputs=exported.inputs,
            output=None,
            length=None,
            pad=exported.pad,
            pad_side=exported.pad_side,
        ),
        exported,
    )


@dataclass(frozen=True, eq=False)
class ExportedClassifier:
    """The ONNX classifier, under the name of the folder it was exported from."""

    prepared: Prepared
    opened: Classifier
    name: str

    @property
    def identity(self) -> Identity:
        inner, exported = self.opened.identity, self.prepared.exported
        facts = {
            "parameters": exported.parameters,
            "opset": exported.opset,
            "exporter": exported.exporter,
            "sentences compared with torch": exported.agreement.sentences,
            "largest difference from torch": f"{exported.agreement.largest_difference:.2g}",
            "SHA-256 of the folder": exported.sha256["source"],
            **exported.versions,
        }
        return Identity(
            "hf",
            self.name,
            inner.files,
            {**inner.facts, **facts},
            (*exported.remarks, *inner.remarks),
            answered=self.prepared.answered,
        )

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        return self.opened.scores(sentences)

    def variants(self, text: SwapText) -> Variants:
        return self.opened.variants(text)


def open_hugging_face(deployment: Deployment) -> Classifier:
    """From an export that lasts as long as the classifier."""
    place = PassingFolder()
    try:
        prepared = prepare_hugging_face(deployment, place.path / "exported")
        classifier = ExportedClassifier(prepared, open_classifier(prepared.deployment), Path(deployment.source).name)
    except BaseException:
        place.remove()
        raise
    place.owned_by(classifier)
    return classifier
