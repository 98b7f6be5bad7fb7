"""What random cases publish says the same in every format that can hold it; NDJSON, which the
reference judges, is the oracle.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from levada.connectors.serialization.result_formats import Format, fitting
from levada.connectors.sinks.file_sink import FileSink, Roll
from levada.engine.engine import Engine
from levada.testing.compare import same
from levada.testing.read_published import read_published
from support.example_counts import EXAMPLES, PATIENCE
from support.generators import cases, cql_cases
from support.stepped_runs import name_sources

pytestmark = pytest.mark.timeout(PATIENCE)
SHOWN = set(Format) - {Format.CSV, Format.TSV, Format.JSON}
SILENT = {
    Format.NQ,
    Format.TRIG,
    Format.JSONLD,
    Format.JELLY,
    Format.ARROW,
    Format.PARQUET,
}  # of empty reports


class Everything:
    """A sink that publishes a query in all formats that can hold it; the sizes of parts are
    tiny.
    """

    def __init__(self, root: Path, roll: Roll) -> None:
        self.root, self.roll = root, roll
        self.formats: dict[str, list[Format]] = {}

    def publish(self, query: Any, variables: Any, epoch: Any, batch: Any) -> list[Any]:
        return [
            name
            for form in self.formats[query]
            for name in FileSink(self.root / form, form, self.roll, terms=True).publish(
                query, variables, epoch, batch
            )
        ]


def empty(report: Any) -> Any:
    return not report.solutions and report.boolean is None and not report.graph


@settings(
    max_examples=EXAMPLES or 8,
    deadline=None,
    phases=[Phase.generate] if EXAMPLES else tuple(Phase),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
@given(
    cases(most=3) | cql_cases(most=3),
    st.sampled_from((1, 5, 1000)),
    st.sampled_from((60, 1000, 1 << 20)),
)
def test_every_format_says_the_same(case: Any, rows: Any, size: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sink = Everything(root / "out", Roll(bytes=size))
        with Engine(
            spark=False, checkpoint=root / "ck", epoch_rows=rows, partitions=2, sink=sink, seed=7
        ) as engine:
            name_sources(engine, case, root)
            for query in case.queries:
                handle = engine.register(
                    query.text, name=query.name, dialect=query.dialect, **query.options
                )
                able = fitting(handle._query.form, handle._query.output)
                sink.formats[query.name] = [form for form in able if form in SHOWN]
            engine.start(once=True)
            engine.await_end()
        for query in case.queries:
            oracle = read_published(root / "out" / "ndjson" / query.name, Format.NDJSON)
            assert same(case.expected()[query.name], oracle) is None
            for form in sink.formats[query.name]:
                wanted = [r for r in oracle if form not in SILENT or not empty(r)]
                difference = same(wanted, read_published(root / "out" / form / query.name, form))
                assert difference is None, f"{form}: {difference}"
