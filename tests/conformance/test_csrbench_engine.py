"""CSRBench on the engine: its seven queries, on close, on content change, on close with content
(design, 8.2).

Each in RSP-QL and as the suite publishes it: in CQELS-QL on content change, else in C-SPARQL.

The reference judges all of them; the suite's expected relations judge those that it lists (Q1, Q2,
Q4). The engine is stepped in this process, in epochs far smaller than the stream, so that windows
outlive them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from csrbench import (
    MISSING,
    POLICIES,
    QUERIES,
    STREAM,
    available,
    benchmark,
    elements,
    expected,
    listed,
    published,
)

from levada.engine.engine import Engine
from levada.testing import MemorySink
from levada.testing.compare import same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Report
from levada.testing.stream_builders import write_lines

pytestmark = pytest.mark.skipif(not available(), reason=MISSING)
EPOCH_ROWS = 400
SPELLINGS = {"rspql": benchmark, "published": published}
spelled = pytest.mark.parametrize("spelling", SPELLINGS)


@cache
def engine_reports(folder: Path) -> dict[str, list[Report]]:
    """What one engine with all queries reports, by "spelling-number-policy"."""
    sink = MemorySink()
    path = write_lines(folder / "csrbench.nt", elements())
    with Engine(
        spark=False,
        checkpoint=folder / "checkpoint",
        epoch_rows=EPOCH_ROWS,
        partitions=2,
        sink=sink,
        seed=7,
    ) as engine:
        engine.stream(STREAM, path)
        for policy in POLICIES:
            for number in QUERIES:
                for spelling, query in SPELLINGS.items():
                    asked = query(number, policy)
                    engine.register(
                        asked.text, name=f"{spelling}-{number}-{policy}", **asked.options
                    )
        engine.start(once=True)
        engine.await_end()
    return sink.reports


@cache
def judged(number: int, policy: str) -> list[Report]:
    """What the reference says, for both spellings."""
    return evaluate(benchmark(number, policy).reference, {STREAM: elements()})


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Report]]:
    return engine_reports(tmp_path_factory.mktemp("csrbench"))


@pytest.mark.long
@spelled
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", QUERIES)
def test_engine_says_what_the_reference_says(
    found: dict[str, list[Report]], number: int, policy: str, spelling: str
) -> None:
    assert judged(number, policy), "the reference has reports"
    assert same(judged(number, policy), found.get(f"{spelling}-{number}-{policy}", [])) is None


@pytest.mark.long
@spelled
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", [1, 2, 4])
def test_engine_gives_the_expected_relation(
    found: dict[str, list[Report]], number: int, policy: str, spelling: str
) -> None:
    closes = () if policy == "change" else _closes(number)
    assert listed(found[f"{spelling}-{number}-{policy}"], policy, closes) == expected(
        number, policy
    )


def _closes(number: int) -> list[int]:
    """The closes at which the query's window holds something: the suite lists them also without
    solutions.
    """
    window = benchmark(number, "close").reference.windows["http://ex.org/w"][1]
    last = max(window.leave(e.ts) for e in elements())
    every, close = [], window.next_close(-1)
    while close < last:
        every.append(close)
        close = window.next_close(close)
    return [
        c for c in every if any(window.enter(e.ts) <= c < window.leave(e.ts) for e in elements())
    ]
