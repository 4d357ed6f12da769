"""Writes tests/proofs/narrow: pairs of claims whose biases differ by 2^-39, one that is believed and one that is not.

python tests/proofs/write_narrow_cases.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))

import smooth_graphs as graphs  # noqa: E402
from javascript_networks import Statement, canonical, network_hashes  # noqa: E402
from smooth_claims import Claim, narrow_claims  # noqa: E402

RECURRENT = (graphs.recurrent,)
ATTENDING = (graphs.attention, graphs.normalised)
KINDS = {
    "attention-real": (ATTENDING, "real", b"\x19"),
    "enumerate-real": (RECURRENT, "real", b"\2"),
    "enumerate-kernel": (RECURRENT, "kernel", b"\2"),
    "boxes-real": (RECURRENT, "real", b"\x18\0"),
    "boxes-kernel": (RECURRENT, "kernel", b"\x18\0"),
    "trees-real": (RECURRENT, "real", b""),
    "trees-kernel": (RECURRENT, "kernel", b""),
}
WANTED = 2


def main() -> None:
    for name, (steps, level, only) in KINDS.items():
        claims = narrow_claims(range(12), level, steps, only=only)
        at = [place for place, claim in enumerate(claims) if claim.believed][:WANTED]
        for number, place in enumerate(at):
            write(f"{name}-{number}", "accepted", claims[place])
            write(f"{name}-{number}", "refused", claims[place + 1])


def write(name: str, verdict: str, claim: Claim) -> None:
    folder = HERE / "narrow" / verdict
    folder.mkdir(parents=True, exist_ok=True)
    statement = Statement(claim.model, claim.certificate["inputs"], claim.certificate["words"])
    (network,) = network_hashes([statement])
    certificate = json.loads(canonical(claim.certificate)) | {"network": network}
    certificate["model"]["file"] = f"{name}.onnx"
    (folder / f"{name}.onnx").write_bytes(claim.model)
    (folder / f"{name}.json").write_bytes(canonical(certificate))


if __name__ == "__main__":
    main()
