"""STREAM's CQL scripts: all seven give its outputs, up to the order within a time; its example
queries are planned.

The input's times are taken as milliseconds, which no window of the seven scripts can tell from
STREAM's seconds. STREAM does not end its inputs: what it says at a time is written when a later
time comes. So where the output depends on the last time being over (Rstream: what holds at it) its
file lacks the last time, and Levada leaves its streams open, too (``OPEN``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from stream_scripts import DATA, SIGN, Line, expected, script_of, sources, texts, value, write_csv

from levada.core.rdf_terms import Literal, parse_term
from levada.core.stream_facts import StreamFacts
from levada.engine.engine import Engine
from levada.language.cql.parser import parse_script
from levada.language.translate.cql.translate import translate_query
from levada.plan.logical.query_options import QueryOptions
from levada.plan.lowering.lower import lower

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is absent")
OPEN = frozenset({"test4"})
SCRIPTS = [f"test{n}" for n in range(1, 8)]


@pytest.mark.long
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_gives_the_output_of_stream(name: str, tmp_path: Path) -> None:
    script = script_of(DATA / "scripts" / name)
    (text,) = texts(script)
    with Engine(
        spark=False, checkpoint=tmp_path / "checkpoint", epoch_rows=7000, partitions=2
    ) as engine:
        for source in sources(script):
            path = write_csv(
                source, DATA / "data" / Path(source.path).name, tmp_path / f"{source.name}.csv"
            )
            sign: dict[str, Any] = {"sign": SIGN} if source.relation else {}
            engine.stream(source.name, path, schema=source.schema, **sign)
        query = engine.register(text, name="q", dialect="cql")
        engine.start(once=True, keep_open=name in OPEN)
        engine.await_end()
        found = Counter(_lines(query.results()))
    wanted = expected(DATA / "expected" / name)
    assert len(wanted) > 4 and found.total() == wanted.total()
    assert found == wanted


def _lines(reports: Iterator[object]) -> Iterator[Line]:
    for report in reports:
        for row in report.rows.rows():  # type: ignore[attr-defined]
            sign, *values = row if isinstance(row[0], int) else (1, *row)
            yield report.time, "+" if sign > 0 else "-", tuple(map(_value, values))  # type: ignore[attr-defined]


@cache
def _value(text: str) -> str | float:
    term = parse_term(text)
    assert isinstance(term, Literal), "a column holds a literal"
    return value(term.lexical)


def _plan(
    text: str, streams: Mapping[str, dict[str, str]], relations: tuple[str, ...] = ()
) -> list[str]:
    """Plans every query of a script; the outputs of each."""
    script = parse_script(text, quoted_texts=True)
    facts = {
        n: StreamFacts(columns, sign="sign" if n in relations else "")
        for n, columns in streams.items()
    }
    found = []
    for asked in script.queries:
        query = translate_query(script, asked, text, streams, QueryOptions(), relations=relations)
        assert lower(query, facts).root.variables == query.variables
        found.append(query.output.value)
    return found


COLUMNS = {"A": "integer", "B": "integer", "C": "double", "D": "string"}


def test_every_example_query_is_planned() -> None:
    text = (DATA / "examples" / "cql-queries").read_text()
    found = _plan(text, {"S": COLUMNS, "R": COLUMNS}, ("R",))
    assert Counter(found) == {"RELATION": 21, "RSTREAM": 2, "ISTREAM": 1, "DSTREAM": 1}


@pytest.mark.parametrize("name", ["script1", "script2", "linearroad"])
def test_every_example_script_is_planned(name: str) -> None:
    text = (DATA / "examples" / "scripts" / name).read_text()
    streams = {s.name: s.schema for s in sources(parse_script(text))}
    found = _plan(text, streams)
    assert len(found) == {"script1": 2, "script2": 1, "linearroad": 3}[name]


def test_the_example_relation_is_read_with_its_signs(tmp_path: Path) -> None:
    source = sources(parse_script("Register Relation R (A integer, B float, C byte, D char(4));"))[
        0
    ]
    path = write_csv(source, DATA / "examples" / "data" / "R.dat", tmp_path / "R.csv")
    signs = [line.split(",")[1] for line in path.read_text().splitlines()[1:]]
    with Engine(spark=False, checkpoint=tmp_path / "checkpoint", partitions=1) as engine:
        engine.stream("R", path, schema=source.schema, sign=SIGN)
        query = engine.register("Select * From R", name="q", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert Counter(sign for _, sign, _ in _lines(query.results())) == Counter(signs)
