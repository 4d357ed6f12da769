"""How many words must an adversary swap for synonyms before a text classifier changes its answer?

`swapproof.certify` and the other names of `swapproof.verifier` stand here too; `python -m swapproof` is the command.
Nothing is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swapproof.verifier import *  # noqa: F403

if __name__ == "swapproof" and not (Path(__file__).parent / "encodings").is_dir():
    # A checkout: this folder lies in verifier/, beside which the others are. An editable install could not find
    # `encodings/` by itself, which must not have an __init__.py.
    __path__.append(str(Path(__file__).parents[2]))  # noqa: F405


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("swapproof")
    if not name.startswith("_"):
        verifier = import_module("swapproof.verifier")
        if name in verifier.__all__:
            return getattr(verifier, name)
    raise AttributeError(f"module 'swapproof' has no attribute {name!r}")
