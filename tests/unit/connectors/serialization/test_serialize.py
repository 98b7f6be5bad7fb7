"""Whole batches as NDJSON, CSV and TSV: the lines of the issue, and the two ways to write them,
which agree.
"""

import csv as csv_module
import io
import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.serialization.serialize import (
    MAX_LOOPED_ROWS,
    Batch,
    Format,
    csv,
    few_lines,
    heading,
    json_term,
    lines,
    many_lines,
    ndjson,
    tsv,
)
from levada.core.query_model import Form
from levada.core.rdf_terms import XSD
from levada.core.text_columns import join_lines

FIVE = f'"5"^^<{XSD}integer>'
A, X = "<http://e/a>", '"x, \\"y\\""'


def series(*texts: Any) -> Any:
    return pl.Series("c", texts, pl.String)


def batch(report: Any, columns: Any = None, change: Any = None, **more: Any) -> Any:
    signs = None if change is None else np.array(change, np.int8)
    return Batch(np.array(report, np.int64), columns=columns or {}, change=signs, **more)


def objects(data: Any) -> list[Any]:
    return [json.loads(line) for line in data.decode().splitlines()]


def test_one_line_for_each_report_of_a_select() -> None:
    b = batch([5, 5, 9], {"s": series(A, X, A), "v": series(FIVE, None, None)})
    assert ndjson("q3", ["s", "v"], b).decode() == (
        '{"query": "q3", "report": 5, "head": {"vars": ["s", "v"]}, "results": {"bindings": ['
        '{"s": {"type": "uri", "value": "http://e/a"}, '
        f'"v": {{"type": "literal", "value": "5", "datatype": "{XSD}integer"}}}}, '
        '{"s": {"type": "literal", "value": "x, \\"y\\""}}]}}\n'
        '{"query": "q3", "report": 9, "head": {"vars": ["s", "v"]}, "results": {"bindings": ['
        '{"s": {"type": "uri", "value": "http://e/a"}}]}}\n'
    )


def test_a_relation_has_a_line_for_each_sign() -> None:
    b = batch([5, 5, 5, 9], {"s": series(A, X, A, A)}, change=[-1, 1, -1, -1])
    found = [
        (o["report"], o["change"], len(o["results"]["bindings"]))
        for o in objects(ndjson("q", ["s"], b))
    ]
    assert found == [(5, "delete", 2), (5, "insert", 1), (9, "delete", 1)]


def test_ask_and_construct() -> None:
    ask = batch([5, 9], form=Form.ASK, booleans=np.array([True, False]))
    assert objects(ndjson("q", [], ask)) == [
        {"query": "q", "report": 5, "head": {}, "boolean": True},
        {"query": "q", "report": 9, "head": {}, "boolean": False},
    ]
    graph = f'{A} <http://e/p> "tab\\t\\"quoted\\"" .\n_:b <http://e/p> {FIVE} .\n'
    construct = batch([5], form=Form.CONSTRUCT, graphs=series(graph))
    assert objects(ndjson("q", ["v"], construct)) == [{"query": "q", "report": 5, "graph": graph}]


def test_empty_reports_stand_in_their_places() -> None:
    empty = np.array([3, 7, 11])
    select = batch([5, 9], {"s": series(A, A)}, empty=empty)
    assert [o["report"] for o in objects(ndjson("q", ["s"], select))] == [3, 5, 7, 9, 11]
    assert objects(ndjson("q", ["s"], select))[0]["results"] == {"bindings": []}
    relation = batch([5], {"s": series(A)}, change=[-1], empty=empty)
    assert [(o["report"], o["change"]) for o in objects(ndjson("q", ["s"], relation))] == [
        (3, "insert"),
        (5, "delete"),
        (7, "insert"),
        (11, "insert"),
    ]
    ask = batch([5], form=Form.ASK, booleans=np.array([True]), empty=empty)
    assert [o["boolean"] for o in objects(ndjson("q", [], ask))] == [False, True, False, False]
    construct = batch([], form=Form.CONSTRUCT, graphs=series(), empty=empty[:1])
    assert objects(ndjson("q", [], construct)) == [{"query": "q", "report": 3, "graph": ""}]
    only = batch([], {"s": series()}, empty=empty)
    assert len(objects(ndjson("q", ["s"], only))) == 3
    assert csv("q", ["s"], select, header=False) == b"5,http://e/a\n9,http://e/a\n"


def test_names_are_escaped() -> None:
    b = batch([1], {'a "b"': series(A)})
    assert objects(ndjson('q"1', ['a "b"'], b))[0]["head"]["vars"] == ['a "b"']
    assert (
        csv("q", ['a "b", c'], batch([1], {'a "b", c': series(A)})).splitlines()[0]
        == b'report,"a ""b"", c"'
    )


def test_csv() -> None:
    b = batch([5, 5], {"s": series(A, X), "v": series(FIVE, None)})
    assert csv("q", ["s", "v"], b) == b'report,s,v\n5,http://e/a,5\n5,"x, ""y""",\n'
    assert csv("q", ["s", "v"], b, header=False) == b'5,http://e/a,5\n5,"x, ""y""",\n'
    relation = batch([5, 5], {"s": series(A, X)}, change=[-1, 1])
    assert (
        csv("q", ["s"], relation) == b'report,change,s\n5,delete,http://e/a\n5,insert,"x, ""y"""\n'
    )


def test_tsv() -> None:
    b = batch([5, 5], {"s": series(A, X), "v": series(FIVE, None)})
    assert tsv("q", ["s", "v"], b) == b'report\t?s\t?v\n5\t<http://e/a>\t5\n5\t"x, \\"y\\""\t\n'
    relation = batch([5], {"s": series(A)}, change=[-1])
    assert tsv("q", ["s"], relation) == b"report\tchange\t?s\n5\tdelete\t<http://e/a>\n"


def test_tables_of_ask_and_construct() -> None:
    ask = batch([5, 9], form=Form.ASK, booleans=np.array([True, False]))
    assert csv("q", [], ask) == b"report,boolean\n5,true\n9,false\n"
    assert tsv("q", [], ask) == b"report\tboolean\n5\ttrue\n9\tfalse\n"
    graph = f'{A} <http://e/p> "a . b" .\n_:b <http://e/p> {FIVE} .\n'
    construct = batch([5, 6], form=Form.CONSTRUCT, graphs=series(graph, f"{A} {A} {A} .\n"))
    assert csv("q", ["v"], construct).splitlines() == [
        b"report,subject,predicate,object",
        b"5,http://e/a,http://e/p,a . b",
        b"5,_:b,http://e/p,5",
        b"6,http://e/a,http://e/a,http://e/a",
    ]
    assert tsv("q", ["v"], construct).splitlines()[0] == b"report\t?subject\t?predicate\t?object"


def test_nothing() -> None:
    b = batch([], {"s": series()})
    assert ndjson("q", ["s"], b) == b""
    assert csv("q", ["s"], b) == b"report,s\n"
    assert lines(Format.TSV, "q", ["s"], b).to_list() == []
    assert heading(Format.NDJSON, ["s"], b) == b""


def test_solutions_without_a_variable_are_counted() -> None:
    assert objects(ndjson("q", [], batch([1, 1, 2])))[0]["results"] == {"bindings": [{}, {}]}


def test_a_slice_of_records_is_joined_alone() -> None:
    records = pl.Series(["a\n", "bé\n", "c\n", "d\n"])
    assert join_lines(records[1:3]) == "bé\nc\n".encode()


def test_a_batch_out_of_order_is_a_programmers_error() -> None:
    with pytest.raises(AssertionError, match="sorted by report"):
        batch([5, 4], {"s": series(A, A)})


cells = st.sampled_from([None, A, X, FIVE, '"é"@en', "_:b"])
solutions = st.lists(
    st.tuples(st.integers(-3, 3), st.sampled_from([1, -1]), st.tuples(cells, cells)), max_size=12
)


@given(
    rows=solutions,
    relation=st.booleans(),
    form=st.sampled_from((Format.NDJSON, Format.CSV, Format.TSV)),
)
def test_few_and_many_rows_are_written_alike(rows: Any, relation: Any, form: Any) -> None:
    rows = sorted(((r, s if relation else 1, t) for r, s, t in rows), key=lambda row: row[0])
    columns = {
        name: pl.Series(name, [row[2][i] for row in rows], pl.String) for i, name in enumerate("xy")
    }
    b = batch(
        [row[0] for row in rows], columns, change=[row[1] for row in rows] if relation else None
    )
    names = ["x", "y"]
    assert few_lines(form, "q", names, b).to_list() == many_lines(form, "q", names, b).to_list()


@given(rows=solutions, relation=st.booleans())
def test_ndjson_says_what_the_batch_holds(rows: Any, relation: Any) -> None:
    """Read back by a JSON parser: every solution once, under its report and sign, in order."""
    rows = sorted(((r, s if relation else 1, t) for r, s, t in rows), key=lambda row: row[0])
    columns = {
        name: pl.Series(name, [row[2][i] for row in rows], pl.String) for i, name in enumerate("xy")
    }
    b = batch(
        [row[0] for row in rows], columns, change=[row[1] for row in rows] if relation else None
    )
    found = [
        (o["report"], 1 if o.get("change", "insert") == "insert" else -1, binding)
        for o in objects(ndjson("q", ["x", "y"], b))
        for binding in o["results"]["bindings"]
    ]
    expected = [
        (
            r,
            s,
            {
                n: json.loads(json_term(t))
                for n, t in zip("xy", terms, strict=True)
                if t is not None
            },
        )
        for r, s, terms in sorted(rows, key=lambda row: row[:2])
    ]
    assert found == expected


def test_both_paths_are_taken() -> None:
    for n in (MAX_LOOPED_ROWS, MAX_LOOPED_ROWS + 1):
        b = batch([1] * n, {"s": series(*[A] * n)})
        assert len(objects(ndjson("q", ["s"], b))[0]["results"]["bindings"]) == n
        assert len(csv("q", ["s"], b).splitlines()) == n + 1


@given(rows=solutions)
def test_csv_is_read_back_by_another_reader(rows: Any) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    columns = {
        name: pl.Series(name, [row[2][i] for row in rows], pl.String) for i, name in enumerate("xy")
    }
    b = batch([row[0] for row in rows], columns)
    values = {None: "", A: "http://e/a", X: 'x, "y"', FIVE: "5", '"é"@en': "é", "_:b": "_:b"}
    read = list(csv_module.reader(io.StringIO(csv("q", ["x", "y"], b).decode())))
    assert read == [
        ["report", "x", "y"],
        *([str(row[0]), *(values[t] for t in row[2])] for row in rows),
    ]
