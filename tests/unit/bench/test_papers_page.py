"""The page of papers and commands has each figure of the benchmarks, and names commands that
exist.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.papers import briskstream, cqels_cloud, katts, streamreuse, windowed_joins

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "papers.md").read_text()
PAPERS = {
    "KATTS": katts.FIGURES,
    "CQELS Cloud": cqels_cloud.FIGURES,
    "Parallel windowed stream joins": windowed_joins.FIGURES,
    "STREAMREUSE": streamreuse.FIGURES,
    "BriskStream": briskstream.FIGURES,
}


@pytest.mark.parametrize("paper", PAPERS)
def test_a_table_has_the_figures_of_the_benchmark(paper: str) -> None:
    section = PAGE.split(f"## {paper}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    shown = {row[0].strip(): row[1].strip() for row in rows[1:]}
    assert shown == {figure: kind for figure, (kind, _) in PAPERS[paper].items()}


def test_the_benchmarks_of_the_page_exist() -> None:
    names = set(re.findall(r"`bench (\w+)`", PAGE))
    assert len(names) > 10
    listed = set(re.findall(r' = "(\w+)"', (ROOT / "bench" / "__main__.py").read_text()))
    assert names <= listed, names - listed
    files = re.findall(r"pytest (\S+)`", PAGE)
    assert files and all((ROOT / name).exists() for name in files)
