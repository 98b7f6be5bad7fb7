"""Results as flat JSON objects: the values of terms, the two ways to write them, which agree, and
the order of changes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.serialization import flat_rows as module
from levada.connectors.serialization.flat_rows import flat_rows, json_value, json_values
from levada.connectors.serialization.serialize import Batch
from levada.core.event_time import TIMELESS
from levada.core.query_model import Form
from levada.core.rdf_terms import XSD, Literal

VALUES = (
    ("<http://e/a>", "http://e/a"),
    ("_:b", "_:b"),
    (str(Literal('x "y"\n\\')), 'x "y"\n\\'),
    (str(Literal("é\u0001", language="fr")), "é\u0001"),
    (str(Literal("+5", f"{XSD}integer")), 5),
    (str(Literal("-007", f"{XSD}long")), -7),
    (str(Literal("000", f"{XSD}integer")), 0),
    (str(Literal("-.50", f"{XSD}decimal")), -0.5),
    (str(Literal("5.", f"{XSD}decimal")), 5),
    (str(Literal("1E+3", f"{XSD}double")), 1000.0),
    (str(Literal("5.e1", f"{XSD}double")), 50.0),
    (str(Literal("INF", f"{XSD}double")), "INF"),
    (str(Literal("five", f"{XSD}integer")), "five"),
    (str(Literal("1", f"{XSD}boolean")), True),
    (str(Literal("false", f"{XSD}boolean")), False),
    (str(Literal("5", "http://e/t")), "5"),
    (str(Literal("2026-01-01T00:00:00Z", f"{XSD}dateTime")), "2026-01-01T00:00:00Z"),
    (None, None),
)
TERMS = st.one_of(
    st.sampled_from([text for text, _ in VALUES]),
    st.builds(
        lambda text, name: str(Literal(text, XSD + name)),
        st.text("+-.0123456789eE", max_size=8) | st.text(max_size=4),
        st.sampled_from(("integer", "decimal", "double", "boolean", "string")),
    ),
)


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_term_is_the_value_that_a_program_expects(text: str | None, value: object) -> None:
    found = json.loads(json_value(text))
    assert found == value and type(found) is type(value)


def both_ways(batch: Batch, variables: list[str]) -> list[Any]:
    lines = module._few("q", variables, batch).to_list()
    assert lines == module._many("q", variables, batch).to_list()
    assert lines == flat_rows("q", variables, batch).to_list()
    return [json.loads(line) for line in lines]


@given(st.lists(TERMS, min_size=1, max_size=80), st.booleans())
def test_few_and_many_rows_are_written_alike(terms: list[str | None], relation: bool) -> None:
    assert json_values(pl.Series(terms, dtype=pl.String)).to_list() == [
        None if term is None else json_value(term) for term in terms
    ]
    n = len(terms)
    times = np.sort(np.array([-1000, 500, 10**15, -(10**14)])[np.arange(n) % 4])
    signs = np.where(np.arange(n) % 2, 1, -1).astype(np.int8) if relation else None
    columns = {
        "report": pl.Series(terms, dtype=pl.String),
        "x": pl.Series([None] * n, dtype=pl.String),
    }
    rows = both_ways(Batch(times, columns=columns, change=signs), ["report", "x"])
    assert len(rows) == n and all(row["x"] is None for row in rows)
    assert "_report" in rows[0], "a column has the name"


def test_deletions_precede_insertions_of_one_report() -> None:
    columns = {"x": pl.Series(["<e:1>", "<e:2>", "<e:3>"])}
    changes = np.array([1, -1, 1], np.int8)
    rows = both_ways(Batch(np.array([0, 0, 5]), columns=columns, change=changes), ["x"])
    assert [(row["change"], row["x"]) for row in rows] == [
        ("delete", "e:2"), ("insert", "e:1"), ("insert", "e:3"),
    ]  # fmt: skip


def test_other_forms_have_rows_too() -> None:
    ask = Batch(np.array([TIMELESS]), Form.ASK, booleans=np.array([True]))
    assert json.loads(flat_rows("q", [], ask)[0]) == {"query": "q", "report": None, "boolean": True}
    graph = pl.Series([f'<e:a> <e:p> "1"^^<{XSD}integer> .\n<e:a> <e:q> "x" .\n'])
    construct = Batch(np.array([1000]), Form.CONSTRUCT, graphs=graph)
    assert [json.loads(line)["object"] for line in flat_rows("q", [], construct)] == [1, "x"]
