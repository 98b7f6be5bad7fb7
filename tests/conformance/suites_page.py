"""The part of ``docs/conformance.md`` on suites whose data are generated: what was compared with
the reference, or with a formula.

python tests/conformance/suites_page.py prints it alone; ``w3c_page`` puts it behind W3C's table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# As a script it needs what pytest is told in pyproject.toml: the cases beside it, and the
# benchmarks in the root of the checkout.
sys.path += [str(Path(__file__).resolve().parents[i]) for i in (1, 2)]

import lsbench
import srbench
from bench.yabench import at_once
from generated import said

from levada.testing.compare import same
from levada.testing.reference_model import Report
from support.generators import Case

HEAD = """
## Suites over generated data

- **SRBench** has weather stations with places, airports and hurricanes. The queries are Q1 to Q17
  from their descriptions, and the published texts of Q1 to Q10 that are valid SPARQL.
- **LSBench** is a social network, with Q1 to Q12.
- **YABench** is a filter, an average and a self-join over stations that send a temperature each
  second. The expected results follow from the generator's formula. Delays in real time are those of
  `python -m bench yabench`.

Each report of SRBench and LSBench is compared with that of the naive reference. The engines have
one partition and four, in epochs of different sizes.

| suite | data | queries | reports | solutions | correct queries |
|---|---|---|---|---|---|"""
RUNS = ((1, 401), (4, 997))
STATIONS = (50, 1_000, 10_000)


def lines() -> Iterator[str]:
    """The lines of this part."""
    yield HEAD
    weather, network = srbench.Weather(stations=10), lsbench.Network(users=60, seconds=90)
    yield _row(
        "SRBench",
        f"{weather.stations} stations, {weather.span // srbench.HOUR} hours",
        srbench.case(weather),
    )
    yield _row("LSBench", f"{network.users} users, {network.seconds} s", lsbench.case(network))
    for stations in STATIONS:
        told = at_once(stations)
        right = [name for name, side in told.items() if side["precision"] == side["recall"] == 1]
        solutions = sum(side["got"] for side in told.values())
        yield (
            f"| YABench | {stations:,} stations, 15 s | {len(told)} | {3 * len(told)} | "
            f"{solutions:,} | {len(right)} |"
        )


def _row(suite: str, data: str, case: Case) -> str:
    judged = case.expected()
    runs = [said(case, epoch_rows=rows, partitions=partitions) for partitions, rows in RUNS]
    right = [name for name in judged if all(same(judged[name], run[name]) is None for run in runs)]
    reports = [report for found in judged.values() for report in found]
    return (
        f"| {suite} | {data} | {len(judged)} | {len(reports)} | {_solutions(reports):,} | "
        f"{len(right)} |"
    )


def _solutions(reports: Sequence[Report]) -> int:
    return sum(r.solutions.total() + (r.boolean is not None) + len(r.graph or ()) for r in reports)


if __name__ == "__main__":
    print("\n".join(lines()))
