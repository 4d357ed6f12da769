"""What a text's result depends on, as one SHA-256: two texts of the same digest have the same answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from ...tasks.inputs import Text

OF_ALL = ("model section", "model", "vocabulary", "engines", "measure", "swapproof")
"""Facts on which the results of all texts of a run depend. How much time there was is none: more goes on with less."""


def digests_of(facts: Mapping[str, str], texts: Iterable[Text]) -> dict[int, str]:
    """SHA-256 of what is asked and of the text, its context, class, deployed answer and words, by number.

    The number of the text itself does not count, nor does where a file lies."""
    asked = {name: facts.get(name) for name in OF_ALL}
    return {text.id: digest_of_job(asked, text) for text in texts}


def digest_of_job(asked: Mapping[str, str | None], text: Text) -> str:
    about = [asked, text.fields, text.moving, text.encoded.text, text.label, text.answer, text.frozen.words]
    content = json.dumps(about, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"swapproof job 1\n{content}".encode()).hexdigest()
