"""Many queries that differ in the constant of a condition over the same rows: results are those of
each condition, and the pairs of rows and queries are never there all at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import levada
from levada.core.frame import Frame
from levada.operators.rows import route_rows
from levada.plan.execution.plan import FanOut
from levada.runtime.task import exchange

XSD = "http://www.w3.org/2001/XMLSchema#"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s]"
VALUES = {
    "integers": [f'"{i % 30}"^^<{XSD}integer>' for i in range(60)],
    "doubles": [f'"{i % 30}"^^<{XSD}{t}>' for i in range(30) for t in ("double", "integer")],
    "mixed": ['"7"', "<http://e/7>", '"x"@en', f'"7.0"^^<{XSD}decimal>', f'"07"^^<{XSD}integer>'],
    "odd": [f'"NaN"^^<{XSD}double>', f'"7"^^<{XSD}double>', f'"x"^^<{XSD}integer>'],
}
CONSTANTS = {"integers": [str(k) for k in range(40)], "mixed": ["7", '"7"', "7.0", "7e0", ":7"] * 5}


def matches(value: str, constant: str) -> bool:
    """Whether a term of the data equals a constant (SPARQL 1.1, 17.4.1.7)."""
    numbers = ("integer>", "decimal>", "double>")
    lexical = value.split('"')[1] if '"' in value else value
    if constant == '"7"':
        return value == '"7"'
    if constant == ":7":
        return value == "<http://e/7>"
    is_number = value.endswith(numbers) and lexical != "x"
    return is_number and float(lexical) == float(constant)


@pytest.mark.parametrize("sharing", ["off", "exact", "relax"])
@pytest.mark.parametrize("constants", CONSTANTS)
@pytest.mark.parametrize("values", VALUES)
def test_equal_conditions_of_many_queries_find_their_rows(
    tmp_path: Path, values: str, constants: str, sharing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_rows, "MAX_FANNED", 100)
    seen: list[int] = []
    along = route_rows.project_for_consumer

    def counted(frame: Any, consumer: Any, source: Any) -> Frame:
        out = along(frame, consumer, source)
        seen.append(out.n)
        return out

    monkeypatch.setattr(exchange, "project_for_consumer", counted)
    terms, asked = VALUES[values], CONSTANTS[constants]
    (tmp_path / "a.nt").write_text(
        "".join(f"<http://e/c{i}> <http://e/n> {term} {i} .\n" for i, term in enumerate(terms))
    )
    with levada.Engine(spark=False, sharing=sharing, partitions=1) as engine:
        engine.stream("http://e/s", tmp_path / "a.nt")
        texts = [
            f"PREFIX : <http://e/> SELECT ?c {WINDOW} "
            f"WHERE {{ WINDOW :w {{ ?c :n ?n }} FILTER(?n = {constant}) }}"
            for constant in asked
        ]
        queries = engine.register_all(
            [levada.QueryRequest(text, f"q{i}") for i, text in enumerate(texts)]
        )
        engine.start(once=True)
        engine.await_end()
        found = [
            sorted(c for report in query.results() for c in report.rows["c"].to_list())
            for query in queries
        ]
    expected = [
        sorted(f"<http://e/c{i}>" for i, term in enumerate(terms) if matches(term, constant))
        for constant in asked
    ]
    assert found == expected
    if sharing != "off":  # where each query has operators of its own
        assert max(seen) <= 100 + len(asked), "the pairs came piece by piece"


def test_pieces_hold_all_rows_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_rows, "MAX_FANNED", 10)
    fan = FanOut(np.array([0, 0, 7, 40], np.int32), np.zeros(40, np.int32), identity=False)
    op = np.array([0, 1, 1, 2, 0, 1, 2, 2], np.int32)
    parts = list(route_rows.in_pieces(Frame({"op": op}, len(op)), fan))
    assert np.concatenate([part["op"] for part in parts]).tolist() == op.tolist()
    assert [part["op"].tolist() for part in parts] == [[0, 1, 1], [2], [0, 1], [2], [2]]
    assert [part.n for part in route_rows.in_pieces(Frame({"op": op[:0]}, 0), fan)] == [0]
