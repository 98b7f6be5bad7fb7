"""W3C's tests of result formats, on what Levada writes: CSV, TSV, and SPARQL JSON in its lines,
without the column ``report``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pyoxigraph as ox
import pytest
from w3c_results import Expected, difference, expected, read_csv, read_solutions
from w3c_runs import form_of
from w3c_suite import MISSING, W3cTest, suite, triples

from levada.connectors.serialization.serialize import Batch, Format, heading, lines
from levada.engine.engine import Engine
from levada.language import parse

FORMATS = {".csv": Format.CSV, ".tsv": Format.TSV, ".srj": Format.NDJSON}
TESTS = [t for t in suite() if t.name.split("/")[1] in ("csv-tsv-res", "json-res")]
pytestmark = pytest.mark.skipif(not TESTS, reason=MISSING)


class Written:
    """A sink that keeps the text of its one file."""

    def __init__(self, form: Format) -> None:
        self.format = form
        self.text = ""

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        records = lines(self.format, query, variables, batch)
        self.text += heading(self.format, variables, batch).decode() + "".join(records.to_list())
        return []


def written(test: W3cTest, form: Format, folder: Path) -> str:
    """What Levada writes for a test's query."""
    sink = Written(form)
    with Engine(spark=False, checkpoint=folder / "c", partitions=2, sink=sink, seed=7) as engine:
        for path in test.data:
            engine.static(triples(path))
        engine.register(test.text, name="q")
        engine.start(once=True)
        engine.await_end()
    return sink.text


def read(form: Format, text: str) -> Expected:  # type: ignore[return]
    """The answer in a text of Levada's, once what it adds is taken away: the report, which
    is none.
    """
    match form:
        case Format.CSV:
            assert all(line.startswith(("report,", ",")) for line in text.splitlines())
            return read_csv(
                io.StringIO(
                    "".join(line.partition(",")[2] for line in text.splitlines(keepends=True))
                )
            )
        case Format.TSV:
            assert all(line.startswith(("report\t", "\t")) for line in text.splitlines())
            plain = "".join(line.partition("\t")[2] for line in text.splitlines(keepends=True))
            return read_solutions(ox.parse_query_results(plain, ox.QueryResultsFormat.TSV))
        case Format.NDJSON:
            line = json.loads(text)
            assert (line.pop("query"), line.pop("report")) == ("q", None)
            return read_solutions(
                ox.parse_query_results(json.dumps(line), ox.QueryResultsFormat.JSON)
            )


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_what_is_written_is_what_the_suite_expects(test: W3cTest, tmp_path: Path) -> None:
    form = FORMATS[test.result.suffix]
    want = expected(test.result, form_of(parse(test.text)))
    found = read(form, written(test, form, tmp_path))
    assert difference(want, found, ordered=False, lax=False) is None
