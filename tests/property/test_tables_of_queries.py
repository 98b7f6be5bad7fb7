"""A query for each row of a table says what its text says that is registered by itself: random
templates, tables whose values meet the stream's, each other's and the text's, in each mode of
sharing, in one run and in two.

What each template can be told of is counted: that rows are planned from it, or are not. 8 tables;
``LEVADA_CASES`` is another number.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada import Engine
from levada.engine.templates.query_per_row import parse_text_template
from levada.plan.logical.query_template import TemplateInstance
from levada.testing.memory_sink import MemorySink
from levada.testing.reference_model import Element, Report
from levada.testing.reference_model import Row as Tuple
from levada.testing.stream_builders import write_csv, write_lines
from support.query_dsl import at

TABLES = int(os.environ.get("LEVADA_CASES", "0")) or 8
pytestmark = pytest.mark.timeout(600)
HEAD = """PREFIX : <http://e/>
{0} FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT{1}S STEP PT2S] WHERE {{ WINDOW :w {{ """


def sparql(head: str, body: str, tail: str = "", width: str = "4") -> str:
    """A text with columns in it."""
    return HEAD.format(head, width) + body + " } } " + tail


IRI, NUMBER, TEXT = "<http://e/{{i}}>", "{{n}}", '"{{t}}"'
PLANNED = (
    sparql("SELECT ?x", f"?x :p {IRI}"),
    sparql("SELECT ?y", f"{IRI} :q ?y . ?y :p ?v FILTER(?v > {NUMBER})"),
    sparql("SELECT ?x ?y", f"?x :q ?y . ?x :q {IRI}"),
    sparql("SELECT ?x ?v", f"?x :p ?v FILTER(?v >= {NUMBER} && ?v < {{{{m}}}})"),
    sparql("SELECT ?x (COUNT(*) AS ?c)", f"?x ?p {TEXT}", "GROUP BY ?x"),
    sparql("SELECT ?x ?v", f"?x :q {IRI} OPTIONAL {{ ?x :p ?v FILTER(?v != {NUMBER}) }}"),
    sparql("SELECT ?x", f"?x :p {NUMBER} . ?x :q <http://e/{{{{j}}}}> . ?x ?r {IRI}"),
    sparql(f"CONSTRUCT {{ ?x :is {IRI} }}", f"?x :q {IRI}"),
    sparql("SELECT DISTINCT ?x", f"{{ ?x :q {IRI} }} UNION {{ ?x :p {NUMBER} }}"),
    sparql("SELECT ?x", f"?x :q ?y FILTER(?y IN ({IRI}, :b))"),
    sparql("SELECT ?x", f"?x :q ?y MINUS {{ ?x :p {NUMBER} }}"),
    sparql("ASK", f"?x :p {NUMBER}"),
)
"""Whose rows are planned together."""
APART = (
    sparql("SELECT ?x ?v", "?x :p ?v", "ORDER BY ?v LIMIT {{w}}"),
    sparql("SELECT ?x", f"?x :r ?t FILTER(REGEX(?t, {TEXT}))"),
    sparql("SELECT ?x", "?x :p ?v", width="{{w}}"),
    sparql("SELECT ?x (?v + {{n}} AS ?u)", "?x :p ?v"),
    sparql("SELECT ?x ?y", "?x :q ?y VALUES ?y { <http://e/{{i}}> }"),
    sparql("SELECT ?x", f"?x (:q|:r)* {IRI}"),
)
"""Whose rows are not: there a constant says more than itself."""
CQL = (
    "Select k From T [Range 4 s Slide 2 s] Where v > {{n}}",
    "Istream(Select k, v From T [Range 3 s] Where k = '{{t}}' And v < {{m}})",
)
STREAM = [
    at(100 * i, text)
    for i, text in enumerate(
        f':{"abcd"[i % 4]} :p {i % 6} ; :q :{"abcde"[i * 3 % 5]} ; :r "{"ab"[i % 2]}{i % 3}"'
        for i in range(60)
    )
]
TUPLES = [Tuple(100 * i, (f"{'ab'[i % 2]}{i % 3}", i % 6)) for i in range(60)]
VALUES = {
    "i": st.sampled_from(["a", "b", "c", "d", "zz", "p", "e"]),
    "j": st.sampled_from(["a", "b", "c"]),
    "n": st.integers(-1, 6) | st.sampled_from([2.5, 10**20]),
    "m": st.integers(2, 7),
    "t": st.sampled_from(["a0", "b1", "a", "", "b.", 'say "a"', "back\\slash"]),
    "w": st.integers(1, 4),
}


@dataclass(frozen=True)
class Case:
    """A text, its table, how much is shared, and where the stream is cut for a second run."""

    text: str
    table: Sequence[Mapping[str, Any]]
    sharing: str
    cut: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Texts of all kinds over tables of 3 to 16 rows; half of these have whole columns of one
    type.
    """
    text = draw(st.sampled_from((*PLANNED, *PLANNED, *APART, *CQL)))
    cql = text in CQL
    values = VALUES | ({"t": st.sampled_from(["a0", "b1", "zz"])} if cql else {})
    if draw(st.booleans()) or cql:
        values["n"] = st.integers(0, 6)
    row = st.fixed_dictionaries(
        {c: values[c] for c in set(parse_text_template(text, cql=cql).columns)}
    )
    table = draw(st.lists(row, min_size=3, max_size=16))
    sharing = draw(st.sampled_from(("off", "exact", "exact", "relax", "relax")))
    return Case(text, table, sharing, draw(st.sampled_from((0, 0, 25, 40))))


def run(case: Case, *, each: bool, rows: list[int]) -> dict[str, list[Report]]:
    """What the queries report, registered as a table, or each by itself; ``rows``: how many are
    rows of templates is added.
    """
    sink = MemorySink()
    cql = case.text in CQL
    with tempfile.TemporaryDirectory() as folder:
        for part in (case.cut, len(STREAM)) if case.cut else (len(STREAM),):
            with Engine(
                spark=False, checkpoint=Path(folder) / "c", partitions=2, sink=sink,
                sharing=case.sharing, epoch_rows=30,
            ) as engine:  # fmt: skip
                _sources(engine, Path(folder), part)
                if each:
                    named = [{**row, "at": i} for i, row in enumerate(case.table)]
                    engine.register_each(case.text, named, name="q{{at}}")
                else:
                    text = parse_text_template(case.text, cql=cql)
                    for i, row in enumerate(case.table):
                        written = text.fill(list(row.values()), _places(text.columns, row), 1)
                        engine.register(written, name=f"q{i}")
                queries = engine._registry.queries.values()
                rows.append(sum(isinstance(query.meaning, TemplateInstance) for query in queries))
                engine.start(once=True, keep_open=part < len(STREAM))
                engine.await_end()
    return sink.reports


def _sources(engine: Engine, folder: Path, part: int) -> None:
    elements: list[Element] = STREAM[:part]
    engine.stream("http://e/s", write_lines(folder / "s.nt", elements))
    schema = {"k": "string", "v": "integer"}
    path = write_csv(folder / "t.csv", TUPLES[:part], list(schema))
    engine.stream("T", path, schema=schema)


def _places(columns: Sequence[str], row: Mapping[str, Any]) -> list[int]:
    return [list(row).index(column) for column in columns]


@pytest.mark.long
@settings(max_examples=TABLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_a_row_says_what_its_text_says(case: Case) -> None:
    of_each: list[int] = []
    alone: list[int] = []
    got = run(case, each=True, rows=of_each)
    wanted = run(case, each=False, rows=alone)
    assert set(alone) == {0}, "each by itself is a row of nothing"
    assert got == wanted
    assert case.text not in APART or not any(of_each)


SOME: Mapping[str, Sequence[Any]] = {
    "i": "abcd", "j": "abc", "n": range(-1, 6), "m": range(2, 8), "t": ("a0", "b1", "a"),
}  # fmt: skip


@pytest.mark.parametrize("text", PLANNED)
def test_such_rows_are_planned_together(text: str) -> None:
    """Else the test above would say nothing of them."""
    columns = sorted(set(parse_text_template(text, cql=False).columns))
    table = [{c: SOME[c][i % len(SOME[c])] for c in columns} for i in range(12)]
    with Engine(spark=False) as engine:
        engine.stream("http://e/s")
        engine.register_each(text, table)
        queries = engine._registry.queries.values()
        # but for a row in which two constants are the same term, where the text has two
        assert sum(isinstance(query.meaning, TemplateInstance) for query in queries) >= 8
