"""What `swapproof` gives, for type checkers: a file and no link, for it stands beside the links to the folders."""

from swapproof.verifier import *  # noqa: F403

__version__: str
