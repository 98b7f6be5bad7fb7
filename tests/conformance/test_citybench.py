"""CityBench's queries Q1 to Q12 in CQELS-QL, C-SPARQL and RSP-QL over Aarhus' sensors: the engine
says what the reference says.

By default over a quarter of an hour of the day, in pieces in which every stream says something;
``LEVADA_CITYBENCH=day`` (``make conformance``) takes the whole of 2014-08-01. Which texts say
nothing at all, and why, is in docs/dialects.md.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest
from citybench import (
    DAY,
    MENDS,
    MISSING,
    SES,
    Published,
    available,
    cut,
    for_reference,
    published,
    static,
)

from levada.engine.engine import Engine
from levada.testing import MemorySink
from levada.testing.compare import same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Report
from levada.testing.stream_builders import write_graph, write_lines

pytestmark = pytest.mark.skipif(not available(), reason=MISSING)
WHOLE = os.environ.get("LEVADA_CITYBENCH") == "day"
MINUTE = 60_000
PIECES = ((0, DAY),) if WHOLE else ((0, 2 * MINUTE), (470 * MINUTE, 481 * MINUTE))
OTHERS, EVENTS = (10, 20) if WHOLE else (3, 3)
LANGUAGES = ("cqels", "csparql", "rspql")
SILENT = {"csparql-11", "cqels-12", "csparql-12", *(f"rspql-{n}" for n in range(1, 8))}
"""What cannot say anything: a condition that nothing meets, more records than a sensor gives,
faulty texts.
"""


@cache
def queries() -> dict[str, Published]:
    """All queries by name."""
    found = [published(language, number) for language in LANGUAGES for number in range(1, 13)]
    found += [published("rspql", number, mended=True) for number in MENDS]
    return {query.name: query for query in found if query is not None}


NAMES = sorted(queries()) if available() else []


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Report]]:
    """What one engine with all queries reports."""
    folder: Path = tmp_path_factory.mktemp("citybench")
    sink = MemorySink()
    with Engine(
        spark=False, checkpoint=folder / "state", epoch_rows=2_000, partitions=2, sink=sink, seed=7
    ) as engine:
        for name in sorted({stream for query in queries().values() for stream in query.streams}):
            engine.stream(SES + name, write_lines(folder / f"{name}.nt", cut(name, PIECES)))
        for i, (graph, triples) in enumerate(static(OTHERS, EVENTS).items()):
            engine.static(write_graph(folder / f"g{i}.nt", triples), graph)
        for query in queries().values():
            engine.register(query.text, name=query.name)
        engine.start(once=True)
        engine.await_end()
    return sink.reports


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_engine_says_what_the_reference_says(found: dict[str, list[Report]], name: str) -> None:
    query = queries()[name]
    elements = {SES + stream: cut(stream, PIECES) for stream in query.streams}
    judged = evaluate(query.reference, elements, for_reference(static(OTHERS, EVENTS)))
    assert same(judged, found.get(name, [])) is None
    assert any(r.solutions or r.boolean for r in judged) == (name not in SILENT), (
        "it says something, or is known not to"
    )
