"""``briskstream``: the paper's figures and tables as far as the search and the models tell of them
(``bench.papers.briskstream``); ``rlas`` has those in which plans are compared.

Nothing is timed: figures follow from the seed and the number of steps of the search.
"""

from __future__ import annotations

from dataclasses import replace

from bench.papers import briskstream as paper
from bench.result import Result
from levada.placement.replication.example_applications import APPLICATIONS
from levada.placement.replication.rlas import Search

SEARCH = Search(steps=30_000)


def run(scale: float, stepped: bool) -> Result:
    """Both servers; ``stepped`` changes nothing, since no engine runs."""
    search = replace(SEARCH, steps=max(int(SEARCH.steps * scale), 300))
    cases = [(app, server) for server in paper.SERVERS for app in APPLICATIONS]
    found = {
        f"{app} {server}": {
            "scaling": paper.scaling(app, server, search),
            "crossing": paper.crossing(paper.traffic(app, server, search)[1]),
        }
        for app, server in cases
    }
    more = {
        "table_3_lines": paper.lines_of_table_3(),
        "table_3_errors": paper.errors_of_table_3(),
        "table_7": {str(r): rate for r, rate in paper.compression("WC", "A", search).items()},
        "table_7_quoted": {str(r): rate for r, rate in paper.TABLE_7.items()},
        "figures": {name: ": ".join(told) for name, told in paper.FIGURES.items()},
    }
    return Result("briskstream", {"count": len(found), **found}, more=more)
