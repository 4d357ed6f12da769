"""`python -m swapproof` is the command `swapproof`."""

from __future__ import annotations

import sys

from swapproof.verifier.cli import main

if __name__ == "__main__":
    sys.exit(main())
