"""Which class each label is and what the scores mean, as lines of a task file: seen from answers to a few texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from swapproof.models.deployed.behaviour import SURE, Observed, at_least, observe
from swapproof.models.deployed.classifier import Classifier
from swapproof.models.recognition.class_labels import Labels, folded
from swapproof.models.vocabulary_files import WordFile, read_vocabulary_file

from .assessing import Assessment, assess
from .beginning_state import Beginning
from .decisions import decide
from .drafts import Draft
from .trying import class_names, names_its_answers, opened, scored

TOLD = ("pipeline", "format", "parameters", "largest difference from torch")
WIDEST = 12
"""Classes of which a table is shown."""
NAMING = ("sklearn", "static", "hf")
"""Models that name their classes: a task cannot name them in another order."""


def settle_labels(begun: Beginning) -> Classifier:
    """The model as it was tried last."""
    chosen = with_column(begun, with_side(begun))
    tell_facts(begun, chosen)
    scores = chosen.tried.scores.shape[1]
    meaning = chosen.meaning.meaning.replace("_", " ")
    begun.findings.tell("Scores", f"{scores} for each text, {chosen.meaning.reason}: read as {meaning}")
    if not chosen.meaning.sure:
        begun.findings.doubt(
            f'whether the score is a share or a logit: it is {chosen.meaning.reason}; a logit is scores = "logits"'
        )
    labels = decided(begun, chosen)
    if labels is not chosen.labels:
        chosen = chosen.relabelled(labels, begun.few)
    given, draft = begun.given["model"], begun.draft
    draft.set("model", "scores", chosen.meaning.meaning, f"{scores} for each text, {chosen.meaning.reason}")
    draft.set("model", "labels", given.get("labels", labels.written), labels.reason)
    if scores == 1 and "threshold" not in given:
        reason = "what the score must exceed for the second class: one half, unless your code says otherwise"
        draft.set("model", "threshold", 0.5, reason, live=False)
    tell_fit(begun, chosen)
    return chosen.tried.classifier


def tell_facts(begun: Beginning, chosen: Assessment) -> None:
    """What a model says of itself once it is open; of ONNX files all is said."""
    facts = chosen.tried.classifier.identity.facts
    told = [f"{key} {fact:,}" if type(fact) is int else f"{key} {fact}" for key, fact in facts.items() if key in TOLD]
    if told and begun.contents is None:
        begun.findings.tell("Model", "; ".join(told))


def with_side(begun: Beginning) -> list[Assessment]:
    """Padding on either side is tried where nothing says which: the answers tell, or it makes no difference."""
    draft = begun.draft
    padded = draft.get("model", "pad") is not None and draft.get("model", "length") is not None
    if not padded or draft.get("model", "pad_side") is not None:
        return tried_so(begun)
    found: dict[str, list[Assessment]] = {}
    for side in ("right", "left"):
        draft.set("model", "pad_side", side, "tried")
        if "cut_side" not in begun.given["model"]:  # Keras cuts where it pads, unless told otherwise
            draft.set("model", "cut_side", side, "tried")
        found[side] = tried_so(begun)
    right, left = (max(found[side], key=best_right) for side in ("right", "left"))
    texts = len(right.answers)
    differ = [one.answers != other.answers for one, other in zip(found["right"], found["left"], strict=True)]
    likely, other = ("left", "right") if of_keras(draft) else ("right", "left")
    if not np.any(differ):
        reason = f"padding on the {other} gives the same answers to all of {texts} texts"
        draft.set("model", "pad_side", likely, reason)
        settle_cut(begun, likely)
        begun.findings.tell("Tokens", f"padding: on the {likely}; {reason}")
        return found[likely]
    gains = best_right(left), best_right(right)
    at = ["" if one.decision.column is None else f" (column {one.decision.column})" for one in (left, right)]
    shown = (
        f"{gains[1] / texts:.1%} of {texts} texts are right with it on the right{at[1]}, {gains[0] / texts:.1%} on the "
        f"left{at[0]}"
    )
    side = "left" if gains[0] > gains[1] else "right"
    if not clearly_more(*gains, texts):
        sides = {"right": "right, as most code for torch does", "left": "left, as Keras does"}
        side = decide(
            f"Texts shorter than the model are padded. On which side? ({shown})",
            {likely: sides[likely], **sides},
            f"the side of the padding changes answers, and the labels do not tell which is right ({shown}): "
            f"pad_sequences of Keras pads on the left, most others on the right: --set pad_side={likely}",
        )
    draft.set("model", "pad_side", side, shown)
    begun.findings.tell("Tokens", f"padding: on the {side}; {shown}")
    settle_cut(begun, side)
    return found[side]


def of_keras(draft: Draft) -> bool:
    """Whether a tokenizer of Keras makes the tokens, which its pad_sequences then pads on the left."""
    path = draft.get("model", "vocabulary")
    read = read_vocabulary_file(path) if isinstance(path, Path) else None
    return isinstance(read, WordFile) and read.split is not None


def settle_cut(begun: Beginning, side: str) -> None:
    """Where texts are cut that are longer than the model; of padding on the left it must be said."""
    draft = begun.draft
    if "cut_side" in begun.given["model"]:
        return
    del draft.sections["model"]["cut_side"]
    length = draft.get("model", "length")
    longer = sum(len(text.split()) > length for text in begun.texts)
    if side == "left" and longer:
        cut = decide(
            f"{longer} of {len(begun.texts)} texts are longer than the model. Which words are read?",
            {"left": "the last ones, as Keras does unless told otherwise", "right": "the first ones"},
            f"{longer} of {len(begun.texts)} texts are longer than the model reads, and are cut: say where: --set "
            "cut_side=left keeps the last words, as Keras does unless told otherwise, --set cut_side=right the first",
        )
        draft.set("model", "cut_side", cut, "as you said")


def clearly_more(one: int, other: int, texts: int) -> bool:
    """Of so many texts, whether the difference is no chance: as if they differed where one of the two is wrong."""
    most = min(texts, 2 * texts - one - other)
    gained = abs(one - other)
    return at_least((most + gained) // 2, most, 0.5) < SURE


def best_right(one: Assessment) -> int:
    """Right answers, in the best order where the order is open."""
    return one.fit.rightly(range(one.classes) if one.labels.settled else one.fit.best_order)


def tried_so(begun: Beginning) -> list[Assessment]:
    few, given = begun.few, begun.given["model"]
    stated = given.get("labels")
    spelt = stated
    if spelt is None and len(few.found) > 1 and begun.pointed.kind not in NAMING:
        spelt = sorted(few.found)
    classifier = opened(begun.draft, len(few.sentences[0]), begun.moving, spelt, **begun.trust)
    tried = scored(classifier, few.sentences)
    names = begun.names or class_names(classifier)
    named = spelt if names_its_answers(begun, tried, spelt) else None
    head = None
    if begun.contents is not None:
        output = begun.draft.get("model", "output") or begun.contents.outputs[0].name
        head = begun.contents.head(output)
    found = assess(tried, few, named or names, head, given)
    if named is None:
        return found
    reason = "the model's answers name their classes"
    return [replace(one, labels=replace(one.labels, reason=reason, settled=True)) for one in found]


def with_column(begun: Beginning, found: list[Assessment]) -> Assessment:
    """Of several questions the one that the labels answer: named like their column, or the one that fits."""
    if len(found) == 1:
        return found[0]
    label = begun.column("label") or ""
    known = begun.names or class_names(found[0].tried.classifier)
    names = list(known) if known is not None and len(known) == len(found) else [str(n) for n in range(len(found))]
    same = [place for place, name in enumerate(names) if folded(name) == folded(label)]
    what = "positions of the text" if begun.positions else "questions"
    begun.findings.tell(
        "Scores", f"{len(found)} for each text, one for each of {len(found)} {what}; {found[0].meaning.reason}"
    )
    best = sorted(range(len(found)), key=lambda n: -best_right(found[n]))
    rights = {str(n): f"{names[n]}: {best_right(found[n]) / found[n].fit.texts:.1%} right" for n in best[:9]}
    if len(same) == 1:
        place, why = same[0], f"it is called {names[same[0]]}, as the column of the labels is"
    else:
        chosen = decide(
            f"The model answers {len(found)} {what}. Which of its scores does your code read?",
            rights,
            f"the model answers a share for each of {len(found)} {what}, and one of them decides "
            f"({', '.join(list(rights.values())[:4])}): say which your code reads: --set column={best[0]}",
        )
        place, why = int(chosen), "as you said"
    begun.draft.set("model", "column", place, f"{why}; the model answers {len(found)}: {', '.join(names)[:200]}")
    begun.findings.tell("Scores", f"column {place} decides: {why}")
    return found[place]


def decided(begun: Beginning, chosen: Assessment) -> Labels:
    """The labels as they are, or in the order that the answers show, where nothing else says it."""
    labels, fit = chosen.labels, chosen.fit
    if "labels" in begun.given["model"]:
        return labels
    given, best = tuple(range(chosen.classes)), fit.best_order
    if begun.pointed.kind in NAMING:
        labels = replace(labels, numbered=True)  # what the data say is another thing than what the model says
    better = labels.reordered(best, "")
    shares = f"{fit.rightly(best) / max(1, fit.texts):.1%}"
    if not labels.settled:
        if fit.stands_out:
            reason = (
                f"so {shares} of {fit.texts} texts are answered rightly; the names are the data's, the model has none"
            )
            return replace(better, reason=reason)
        show_confusion(begun, chosen)
        other = labels if best != given else labels.reordered(given[::-1], "")
        return choose_order(
            begun,
            [better, labels if best != given else other],
            f"the answers do not tell which score is which class: {shares} of {fit.texts} texts are right with "
            f"{said(better)}",
        )
    if best == given or not fit.clearly_better(best, given):
        return labels
    show_confusion(begun, chosen)
    return choose_order(
        begun,
        [better, labels],
        f"the labels look exchanged: {fit.accuracy:.1%} of {fit.texts} texts are answered rightly with "
        f"{said(labels)}, and {shares} with {said(better)}",
    )


def choose_order(begun: Beginning, options: Sequence[Labels], problem: str) -> Labels:
    place = decide(
        f"{problem[:1].upper()}{problem[1:]}. Which is deployed?",
        {str(number): said(option) for number, option in enumerate(options)},
        f"{problem}: say which is deployed: {' or '.join(setting(option) for option in options)}",
    )
    return replace(options[int(place)], reason="as you said")


def said(labels: Labels) -> str:
    found = labels.written
    if isinstance(found, dict):
        return ", ".join(f"{value} = {name}" for value, name in found.items())
    return f"the order {', '.join(found)}"


def setting(labels: Labels) -> str:
    """For the command line."""
    found = labels.written
    if isinstance(found, list):
        plain = all(name and not set(name) & set(",'\" ()&;|<>$`\\!*?#~[]{}=") for name in found)
        return f"--set labels={','.join(found)}" if plain else f"--set 'labels={quoted(found)}'"
    inner = ", ".join(f"{quoted(value)} = {quoted(name)}" for value, name in found.items())
    return f"--set 'labels={{ {inner} }}'"


def quoted(names: object) -> str:
    return json.dumps(names, ensure_ascii=False)


def tell_fit(begun: Beginning, chosen: Assessment) -> None:
    findings, fit = begun.findings, chosen.fit
    findings.tell("Labels", f"{said(chosen.labels)}; {chosen.labels.reason}")
    findings.tell(
        "Answers",
        f"{fit.accuracy:.1%} of {fit.texts} texts are answered rightly; an answer that is always the same would get "
        f"{fit.chance:.1%}",
    )
    seen = observed(begun, chosen)
    for remark in seen.remarks:
        findings.doubt(remark.sentence)
    if any(remark.kind in ("near_chance", "labels_permuted", "one_class") for remark in seen.remarks):
        show_confusion(begun, chosen)


def observed(begun: Beginning, chosen: Assessment) -> Observed:
    """What must be known of the model before anything is claimed; with the column of deployed answers, if there is."""
    few, column, golds = begun.few, begun.column("answer"), chosen.labels.golds
    answers = None
    if column is not None:
        answers = [golds.get(str(row[column]), -1) for row in begun.rows]
        same = sum(answer == here for answer, here in zip(answers, chosen.answers.tolist(), strict=True))
        begun.findings.tell("Answers", f"{same} of {len(answers)} are what {column!r} says that was answered before")
    labels = [golds[value] for value in few.labels]
    names = chosen.labels.names
    return observe(chosen.tried.classifier, chosen.decision, few.sentences, labels, answers, names)


def show_confusion(begun: Beginning, chosen: Assessment) -> None:
    """A row for each label, a column for each answer."""
    names, confusion = chosen.labels.names, chosen.fit.confusion
    if len(names) > WIDEST:
        return
    shown = [name if len(name) <= 16 else name[:13] + "..." for name in names]
    first = max(len("label"), *map(len, shown))
    widths = [max(len(name), len(f"{confusion.max():,}")) for name in shown]
    head = "  ".join(name.rjust(width) for name, width in zip(shown, widths, strict=True))
    lines = [f"{'label'.ljust(first)}   the model answers", f"{' ' * first}   {head}"]
    for name, row in zip(shown, confusion.tolist(), strict=True):
        cells = "  ".join(f"{count:,}".rjust(width) for count, width in zip(row, widths, strict=True))
        lines.append(f"{name.ljust(first)}   {cells}")
    begun.findings.show("\n".join(lines))
