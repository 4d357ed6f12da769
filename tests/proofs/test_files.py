"""Every file in accepted/ is accepted and every one in refused/ is refused, for the reason stated beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from swapproof.proofs.check import Refused, Unusable, check_file

HERE = Path(__file__).parent
REASONS = dict(line.split("\t") for line in (HERE / "refused" / "reasons.tsv").read_text().splitlines())


@pytest.mark.parametrize("name", sorted(path.name for path in (HERE / "accepted").glob("*.json")))
def test_accepted(name: str) -> None:
    """The certificate proves what it claims."""
    assert check_file(HERE / "accepted" / name).sentence.startswith("text ")


@pytest.mark.parametrize("name", sorted(path.name for path in (HERE / "refused").glob("*.json")))
def test_refused(name: str) -> None:
    """Not accepted, and not by accident: the reason is the one expected."""
    with pytest.raises((Refused, Unusable)) as refusal:
        check_file(HERE / "refused" / name)
    assert REASONS[name] in str(refusal.value)


def test_every_reason_has_its_file() -> None:
    """Nothing has been lost from the folder."""
    assert set(REASONS) == {path.name for path in (HERE / "refused").glob("*.json")}
