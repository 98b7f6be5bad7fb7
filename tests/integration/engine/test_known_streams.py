"""What an engine knows of its streams when a query is planned; and that what is chosen by it stands
in the plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri
from levada.engine.engine import Engine
from levada.engine.statistics import stream_statistics
from levada.engine.statistics.stream_statistics import SAMPLE_ROWS, SampledStatistics, first_rows

P, Q = "<http://e/p>", "<http://e/q>"


def triples(many: int) -> Iterator[str]:
    """So many a ms: half p, whose objects are 4, and half q, of which all are equal."""
    for i in range(many):
        yield f"<http://e/{i}> {P} <http://e/o{i % 4}> {i}"
        yield f"<http://e/{i}> {Q} <http://e/o> {i}"


def written(path: Path, many: int) -> StreamConfig:
    path.write_text("".join(f"{line} .\n" for line in triples(many)))
    return StreamConfig.from_options("s", path)


def of(predicate: str, obj: str = "o") -> TriplePattern:
    return TriplePattern(Var("s"), Iri(predicate[1:-1]), Var(obj))


def test_first_rows_say_how_many_match_and_how_values_are_spread(tmp_path: Path) -> None:
    known = SampledStatistics({"s": written(tmp_path / "s.nt", 500)})
    found = known.triples("s", of(P))
    assert found is not None
    assert found.rate == pytest.approx(1000, rel=0.01)  # 500 in half a second
    assert (found.values["s"].distinct, found.values["o"].distinct) == (500, 4)
    assert found.values["o"].heaviest == 0.25
    same = known.triples("s", of(Q))
    assert same is not None
    assert same.values["o"].heaviest == 1
    assert known.triples("s", of("<http://e/none>")) is None
    assert known.triples("s", of(P, "s")) is None  # no triple has one term twice
    assert known.triples("other", of(P)) is None
    assert known.tuples("s") is None


def test_what_has_run_says_how_fast_rows_come(tmp_path: Path) -> None:
    known = SampledStatistics({"s": written(tmp_path / "s.nt", 500)})
    known.see({"s": (50_000, 99_999)}, 7)
    found = known.triples("s", of(P))
    assert found is not None
    assert found.rate == pytest.approx(250, rel=0.01)  # half of 50,000 in 100 s
    assert known.partitions == 7


def test_a_table_has_values_by_column_and_nulls_are_none(tmp_path: Path) -> None:
    k = [None if i % 2 else i % 10 for i in range(SAMPLE_ROWS + 500)]
    table = pl.DataFrame({"k": k, "v": [f"v{i}" for i in range(len(k))], "ts": range(len(k))})
    (tmp_path / "a").mkdir()
    table.write_parquet(tmp_path / "a" / "0.parquet")
    config = StreamConfig.from_options(
        "a", tmp_path / "a", format="parquet", schema="k:integer;v:string;ts:integer"
    )
    rows = first_rows(config)
    assert rows is not None
    assert len(rows.ts) == SAMPLE_ROWS
    found = SampledStatistics({"a": config}).tuples("a")
    assert found is not None
    assert found.values["k"].distinct == 5
    assert found.values["k"].heaviest == pytest.approx(0.2)
    assert found.values["v"].distinct == SAMPLE_ROWS
    assert len(np.unique(rows.columns["v"])) == SAMPLE_ROWS


def test_what_comes_once_or_cannot_be_read_is_not_looked_at(tmp_path: Path) -> None:
    assert first_rows(StreamConfig.from_options("s", tmp_path / "none.nt")) is None
    (tmp_path / "s.nt.gz").write_bytes(b"damaged")
    assert first_rows(StreamConfig.from_options("s", tmp_path / "s.nt.gz")) is None
    (tmp_path / "t.ttl").write_text("<http://e/s> <http://e/p> 1 .")
    assert (
        first_rows(
            StreamConfig.from_options("t", tmp_path / "t.ttl", time="predicate:<http://e/t>")
        )
        is None
    )
    assert first_rows(StreamConfig.from_options("k", "kafka://localhost:1/t", format="nt")) is None


TEXT = """PREFIX : <http://e/>
SELECT * FROM NAMED WINDOW :w ON <s> [RANGE PT4S STEP PT4S]
WHERE { WINDOW :w { ?a :p ?b . ?b :q ?c . ?c :r ?d } }"""


def chain(first: int, end: int) -> str:
    """A stream in which the last part has a row of a hundred."""
    lines = []
    for i in range(first, end):
        lines += [
            f"<http://e/a{i}> {P} <http://e/b{i % 5}>",
            f"<http://e/b{i % 5}> {Q} <http://e/c{i}>",
        ]
        lines += [f"<http://e/c{i}> <http://e/r> <http://e/d>"] if i % 100 == 0 else []
        lines = [line if line.endswith("\n") else f"{line} {i * 10} .\n" for line in lines]
    return "".join(lines)


def test_what_was_chosen_stands_in_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that goes on has it, though nothing is known of the stream by then."""
    stream, root = tmp_path / "s", tmp_path / "c"
    stream.mkdir()
    (stream / "1.nt").write_text(chain(0, 2100))
    told = []
    for _ in range(2):
        with Engine(spark=False, checkpoint=root, partitions=3, join="auto") as engine:
            engine.stream("s", stream)
            engine.register(TEXT, name="q")
            engine.start(once=True, keep_open=True)
            engine.await_end()
            assert engine._driver is not None
            plan = engine._driver.epochs.plan
            assert plan is not None
            told.append([type(node.step).__name__ for node in plan.nodes.values()])
        monkeypatch.setattr(stream_statistics, "first_rows", lambda config: None)
        (stream / "2.nt").write_text(chain(2100, 2200))
    assert "LinkedJoin" in told[0]
    assert told[1] == told[0]
    log = json.loads((root / "sharing.json").read_text().split("\n", 1)[0])["log"]
    assert [what for _, what in log if "is replicated" in what]
