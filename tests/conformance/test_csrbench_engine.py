"""CSRBench on the engine: its seven queries, on close and on content change (design, section 8.2).

The reference judges all of them; the suite's expected relations judge those that it lists (Q1, Q2, Q4). The engine is
stepped in this process, in epochs far smaller than the stream, so that windows outlive them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from csrbench import MISSING, POLICIES, QUERIES, STREAM, available, benchmark, elements, expected, listed

from levada.emission.serialize import Format, ndjson
from levada.engine import Engine
from levada.testing.compare import read_ndjson, same
from levada.testing.question import Report
from levada.testing.reference import evaluate
from levada.testing.streams import write_lines

pytestmark = pytest.mark.skipif(not available(), reason=MISSING)
EPOCH_ROWS = 400


class Collected:
    """A sink that keeps the NDJSON lines that it is given."""

    format = Format.NDJSON

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def publish(self, query: str, variables: object, epoch: int, batch: object) -> list[str]:
        self.lines += ndjson(query, variables, batch).splitlines()  # type: ignore[arg-type]
        return []


@cache
def engine_reports(folder: Path) -> dict[str, list[Report]]:
    """What one engine with all fourteen queries reports, by "number-policy"."""
    sink = Collected()
    path = write_lines(folder / "csrbench.nt", elements())
    with Engine(
        False, checkpoint=folder / "checkpoint", epoch_rows=EPOCH_ROWS, partitions=2, sink=sink, seed=7
    ) as engine:
        engine.stream(STREAM, path)
        for policy in POLICIES:
            for number in QUERIES:
                asked = benchmark(number, policy)
                engine.register(asked.text, name=f"{number}-{policy}", **asked.options)
        engine.start(once=True)
        engine.await_end()
    return read_ndjson(sink.lines)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Report]]:
    return engine_reports(tmp_path_factory.mktemp("csrbench"))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", QUERIES)
def test_engine_says_what_the_reference_says(found: dict[str, list[Report]], number: int, policy: str) -> None:
    asked = benchmark(number, policy).reference
    judged = evaluate(asked, {STREAM: elements()})
    assert judged, "the reference has reports"
    assert same(judged, found.get(f"{number}-{policy}", [])) is None


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", (1, 2, 4))
def test_engine_gives_the_expected_relation(found: dict[str, list[Report]], number: int, policy: str) -> None:
    closes = _closes(number) if policy == "close" else ()
    assert listed(found[f"{number}-{policy}"], policy, closes) == expected(number, policy)


def _closes(number: int) -> list[int]:
    """The closes at which the query's window holds something: the suite lists them also without solutions."""
    window = benchmark(number, "close").reference.windows["http://ex.org/w"][1]
    last = max(window.leave(e.ts) for e in elements())
    every, close = [], window.next_close(-1)
    while close < last:
        every.append(close)
        close = window.next_close(close)
    return [c for c in every if any(window.enter(e.ts) <= c < window.leave(e.ts) for e in elements())]
