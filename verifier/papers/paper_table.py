"""The papers that can be run: adding one is a file beside this one and a line in this table."""

from __future__ import annotations

from . import defender_paper, mmws_paper, msr_paper, pdp_paper, sp_paper
from .paper_plan import Paper

PAPERS: dict[str, Paper] = {
    paper.name: paper
    for paper in (pdp_paper.PAPER, defender_paper.PAPER, msr_paper.PAPER, mmws_paper.PAPER, sp_paper.PAPER)
}
