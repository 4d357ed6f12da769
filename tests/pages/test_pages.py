"""The pages: what they link to and name is there, and the one at the top stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from swapproof.models.defences.defence_table import DEFENCES
from swapproof.verifier.attacks.recipes import RECIPES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("*/*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```", re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchor(heading: str) -> str:
    """How a heading is linked to: lower case, hyphens for spaces, no other marks."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        if "://" in link:
            continue
        name, _, part = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not part or part in map(anchor, HEADING.findall(target.read_text("utf-8"))), f"{page.name}: {link}"


def test_every_kept_case_of_a_finding_is_there() -> None:
    """The table of SOUNDNESS.md: certificates by their names, tests by their files; a bare name is beside the last."""
    page = (ROOT / "proofs" / "SOUNDNESS.md").read_text("utf-8")
    rows = re.findall(r"^\| \d+ \|.*\| ([^|]*) \|$", page, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^\*\*\d+\. ", page, re.MULTILINE))
    for row in rows:
        folder = Path()
        for name in re.findall(r"`([^`]+)`", row):
            if name.startswith("tests/"):
                folder, path = (ROOT / name).parent, ROOT / name
            elif "/" in name:
                folder, path = ROOT / "tests" / "proofs" / Path(name).parent, ROOT / "tests" / "proofs" / f"{name}.json"
            else:
                path = folder / (name if Path(name).suffix else f"{name}.json")
            assert path.exists(), f"SOUNDNESS.md names {name}"


def test_the_first_page_is_short_and_names_the_test_command() -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    assert len(re.findall(r"\w+", CODE.sub("", page))) < 1500
    assert re.search(r"^make test\b", page, re.MULTILINE)


def test_the_page_of_attacks_names_every_attack() -> None:
    page = (ROOT / "verifier" / "ATTACKS.md").read_text("utf-8")
    assert set(RECIPES) <= set(re.findall(r"`([^`]+)`", CODE.sub("", page)))


def test_the_page_of_defences_names_every_defence() -> None:
    page = (ROOT / "models" / "DEFENCES.md").read_text("utf-8")
    assert set(DEFENCES) <= set(re.findall(r"`([^`]+)`", CODE.sub("", page)))
