"""Linear Road as STREAM ran it: 34 views and 3 queries, on a little traffic, equal to the naive
reference.

The script is the suite's; only the least volume that a toll is paid at is lowered from 50 to 1, so
that few cars do. The reference gets each view as SQL over its windows. Times are in ms, windows in
seconds, so a report of the script is a second.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from stream_scripts import DATA, sources, texts

from levada import QueryRequest
from levada.core.event_time import Window, WindowKind
from levada.language.cql.ast import (
    Combination,
    Every,
    Item,
    Operator,
    Script,
    Select,
    Statement,
    Table,
    WindowWord,
    show_expression,
)
from levada.language.cql.parser import parse_script
from levada.testing import run_stepped
from levada.testing.compare import same
from levada.testing.reference_model import ReferenceSql, Row
from support.generators import Case, CaseQuery

SCRIPT = DATA / "examples" / "scripts" / "linearroad"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason=f"{SCRIPT} is absent")
WINDOWS = {
    WindowWord.NONE: WindowKind.ALL,
    WindowWord.UNBOUNDED: WindowKind.ALL,
    WindowWord.NOW: WindowKind.NOW,
}
Schemas = dict[str, dict[str, str]]


def sql_of(body: Select | Combination, schemas: Schemas) -> str:
    """A statement over one table per alias."""
    if isinstance(body, Combination):
        assert isinstance(body.left, Table), "the script has two operands at most"
        assert isinstance(body.right, Table), "the script has two operands at most"
        left, right = body.left.stream, body.right.stream
        columns = [", ".join(schemas[name]) for name in (left, right)]
        if body.operator is Operator.UNION:
            return f"Select {columns[0]} From {left} Union All Select {columns[1]} From {right}"
        numbered = [
            f"Select {c}, row_number() Over (Partition By {c}) From {name}"
            for c, name in zip(columns, (left, right), strict=True)
        ]
        return f"Select {columns[0]} From ({numbered[0]} Except {numbered[1]})"
    read = list(tables(body))
    every = [f"{t.alias}.{c}" for t in read for c in schemas[t.stream]]
    items = [
        show_expression(i.expression) if isinstance(i, Item) else ", ".join(every)
        for i in body.items
    ]
    where = f" Where {show_expression(body.where)}" if body.where is not None else ""
    group = f" Group By {', '.join(map(show_expression, body.group))}" if body.group else ""
    word = "Select Distinct" if body.distinct else "Select"
    return f"{word} {', '.join(items)} From {', '.join(t.alias for t in read)}{where}{group}"


def tables(body: Select | Combination) -> Iterator[Table]:
    """What a statement reads."""
    if isinstance(body, Select):
        yield from (table for table in body.tables if isinstance(table, Table))
    else:
        assert isinstance(body.left, Table), "the script has two operands at most"
        assert isinstance(body.right, Table), "the script has two operands at most"
        yield from (body.left, body.right)


def window(table: Table) -> Window:
    """The window of a table."""
    spec = table.window
    if spec.word is WindowWord.RANGE:
        return Window(WindowKind.RANGE, range=spec.range)
    if spec.word is WindowWord.ROWS:
        return Window(WindowKind.COUNT, count=spec.rows)
    return Window(WINDOWS[spec.word])


def question(
    statement: Statement,
    types: dict[str, str],
    output: str,
    schemas: Schemas,
    views: dict[str, ReferenceSql],
) -> ReferenceSql:
    """A statement for the reference."""
    read = list(tables(statement.body))
    partitions = {
        t.alias: tuple(c.name for c in t.window.partition) for t in read if t.window.partition
    }
    return ReferenceSql(
        sql_of(statement.body, schemas), {t.alias: (t.stream, window(t)) for t in read}, schemas,
        types, output,
        partitions=partitions, views=views,
    )  # fmt: skip


def questions(script: Script) -> list[ReferenceSql]:
    """The queries of a script with its views."""
    schemas: Schemas = {s.name: s.schema for s in sources(script)}
    views: dict[str, ReferenceSql] = {}
    found = []
    for i, view in enumerate(script.views):
        types = {name: kind.value for name, kind in view.schema.columns}
        output = (view.query.output or ("relation" if view.schema.relation else "istream")).upper()
        views[view.schema.name] = question(view.query, types, output, dict(schemas), {})
        schemas[view.schema.name] = types
        found += [_asked(a.query, schemas, views) for a in script.queries if a.views == i + 1]
    return found


def _asked(statement: Statement, schemas: Schemas, views: dict[str, ReferenceSql]) -> ReferenceSql:
    assert isinstance(statement.body, Select), "a query is a Select block"
    names = [i.expression for i in statement.body.items if not isinstance(i, Every)]
    aliases = {t.alias: schemas[t.stream] for t in tables(statement.body)}
    types = {}
    for column in names:
        owner = next(
            s for a, s in aliases.items() if column.name in s and column.table in (None, a)
        )
        types[column.name] = owner[column.name]
    return question(
        statement, types, (statement.output or "relation").upper(), dict(schemas), dict(views)
    )


def traffic(seed: int) -> dict[str, tuple[Row, ...]]:
    """Five cars for five minutes: two stop at one place for a while, one leaves; and the streams of
    minutes and segments.
    """
    draw = random.Random(seed)
    cars: list[Row] = []
    for second in range(0, 330, 30):
        for car in range(5):
            stopped = car < 2 and 30 <= second <= 180
            segment = 1 if stopped else (second // 45 + car) % 3
            speed = 0 if stopped else draw.randint(20, 50)
            lane = 4 if car == 4 and second > 200 else draw.randint(0, 3)
            kind = 2 if draw.random() < 0.15 else 0
            position = 5300 if stopped else 5280 * segment + draw.randint(0, 5279)
            values = (
                kind,
                second,
                car,
                speed,
                0,
                lane,
                0,
                segment,
                position,
                second * 10 + car,
                0,
                0,
                0,
                0,
                0,
            )
            cars.append(Row(1000 * (second + draw.randint(0, 2)), values))
    minutes = [Row(60_000 * m + 1000, (m,)) for m in range(6)]
    ends = [Row(60_000 * (m + 1), (m,)) for m in range(5)]
    segments = [
        Row(60_000 * m + 2000, (m, 0, d, s)) for m in range(5) for d in range(2) for s in range(3)
    ]
    ordered = tuple(sorted(cars, key=lambda row: row.ts))
    return {
        "CommonInputStr": ordered,
        "MinStr": tuple(minutes),
        "MinEndStr": tuple(ends),
        "MinSegStr": tuple(segments),
    }


def test_linear_road_equals_the_reference() -> None:
    script = parse_script(SCRIPT.read_text().replace("V.Vol > 50", "V.Vol > 1"))
    asked = [
        CaseQuery(f"q{i}", text, "cql", {}, reference)
        for i, (text, reference) in enumerate(zip(texts(script), questions(script), strict=True))
    ]
    streams, schemas = traffic(10), {s.name: s.schema for s in sources(script)}
    expected = Case(streams, tuple(asked), 0, {}, schemas).expected()
    batch = [QueryRequest(query.text, query.name, "cql") for query in asked]
    found = run_stepped(batch, streams, schemas=schemas, epoch_rows=25, partitions=2)
    for query in asked:
        assert sum(r.solutions.total() for r in expected[query.name]) > 0, (
            f"{query.name} says nothing"
        )
        difference = same(expected[query.name], found.get(query.name, []))
        assert difference is None, f"{query.name}\n{difference}"
