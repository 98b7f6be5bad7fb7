"""STREAMREUSE's worked example in CQL (checklist S19): the queries over flights, weather, check-ins
and baggage share the join of flights and check-ins, in any order of arrival, and get the results
that they get alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from levada import Engine, Query
from levada.plan.execution.steps import Join, Pick
from support.polling import until_engine

Reports = dict[str, list[tuple[int | None, list[str]]]]
SCHEMAS = {
    "FLIGHTS": "num:integer;dest:string;carrier:string;terminal:string;gate:integer",
    "WEATHER": "city:string;forecast:string",
    "CHECKINS": "flight:integer;status:string;seats:integer",
    "BAGGAGE": "flight:integer;area:integer",
}
CARRIERS = ("DL", "CO", "AA")
FOUR = """RSTREAM(SELECT F.num, F.gate, W.forecast, C.status, B.area
  FROM FLIGHTS [RANGE {f} SECONDS SLIDE 1 SECOND] AS F,
       WEATHER [RANGE 5 SECONDS SLIDE 1 SECOND] AS W,
       CHECKINS [RANGE {c} SECONDS SLIDE 1 SECOND] AS C,
       BAGGAGE [RANGE 5 SECONDS SLIDE 1 SECOND] AS B
  WHERE F.dest = W.city AND F.num = C.flight AND F.num = B.flight
    AND F.carrier = '{carrier}' AND F.terminal = '{terminal}')"""
TWO = """RSTREAM(SELECT F.num, F.dest, C.seats
  FROM FLIGHTS [RANGE 5 SECONDS SLIDE {slide} SECONDS] AS F,
       CHECKINS [RANGE 5 SECONDS SLIDE {slide} SECONDS] AS C
  WHERE F.num = C.flight AND (F.carrier = 'DL' OR F.carrier = '{other}'))"""
Q1 = FOUR.format(f=5, c=1, carrier="DL", terminal="A")
Q2 = TWO.format(slide=5, other="CO")


def rows_of(table: str, second: int, draw: random.Random) -> list[str]:
    """Some rows of a second; each column is NULL at times."""

    def cell(*values: object) -> str:
        return "" if draw.random() < 0.15 else str(draw.choice(values))

    columns: dict[str, list[Sequence[object]]] = {
        "FLIGHTS": [range(4), "XY", CARRIERS, "AB", range(3)],
        "WEATHER": ["XY", ("sun", "rain")],
        "CHECKINS": [range(4), ("open", "shut"), range(9)],
        "BAGGAGE": [range(4), range(5)],
    }
    return [
        ",".join([str(1000 * second + 10 * i), *(cell(*each) for each in columns[table])])
        for i in range(4)
    ]


class Airport:
    """An engine over the four tables, which grow second by second. It looks for better plans
    after each epoch.
    """

    def __init__(self, folder: Path, sharing: str) -> None:
        folder.mkdir()
        self.folder, self.draw, self.second = folder, random.Random(7), 0
        self.engine = Engine(
            spark=False, checkpoint=folder / "c", partitions=2, epoch="1ms", sharing=sharing
        )
        planning = self.engine._registry.planning
        self.engine._registry.planning = planning._replace(looks=1)
        for table, schema in SCHEMAS.items():
            names = [column.split(":")[0] for column in schema.split(";")]
            (folder / f"{table}.csv").write_text(",".join(["at", *names]) + "\n")
            self.engine.stream(
                table, folder / f"{table}.csv", schema=schema, time="field:at", unit="ms"
            )

    def grow(self, seconds: int) -> None:
        """Appends rows, and waits until they are read."""
        for _ in range(seconds):
            for table in SCHEMAS:
                with (self.folder / f"{table}.csv").open("a") as file:
                    file.writelines(f"{r}\n" for r in rows_of(table, self.second, self.draw))
            self.second += 1
        rows = self.second * 4 * len(SCHEMAS)
        until_engine(
            self.engine, lambda: sum(r.elements for r in self.engine._records().values()) >= rows
        )

    def register(self, text: str, name: str) -> Query:
        query = self.engine.register(text, name=name, dialect="cql")
        if self.engine._driver is not None:
            until_engine(self.engine, lambda: not self.engine._registry.changed)
        return query

    def count(self, step: type) -> int:
        """The operators of a kind."""
        assert self.engine._driver is not None
        topology = self.engine._driver._catalog._topology
        assert topology is not None
        nodes = topology.graph.nodes.values()
        return sum(len(n.members.index) for n in nodes if isinstance(n.shape.step, step))


def run(
    folder: Path, sharing: str, arrivals: Sequence[tuple[str, ...]]
) -> tuple[Reports, int, int]:
    """The reports of queries that come in groups, and how many joins and picks run at the end."""
    airport = Airport(folder, sharing)
    queries: dict[str, Query] = {}
    with airport.engine as engine:
        for number, group in enumerate(arrivals):
            for text in group:
                name = f"q{len(queries)}"
                queries[name] = airport.register(text, name)
            if number == 0:
                engine.start()
            airport.grow(12)
        for _ in range(10):  # migrations wait for windows, and for measurements
            airport.grow(12)
        joins, picks = airport.count(Join), airport.count(Pick)
        engine.close()
        engine.await_end()
    reports: Reports = {
        name: [(r.time, sorted(map(str, r.rows.rows()))) for r in query.results()]
        for name, query in queries.items()
    }
    return reports, joins, picks


@pytest.mark.parametrize("arrivals", [((Q1, Q2),), ((Q2, Q1),), ((Q1,), (Q2,)), ((Q2,), (Q1,))])
def test_both_queries_share_the_join_of_flights_and_check_ins(
    arrivals: tuple[tuple[str, ...], ...], tmp_path: Path
) -> None:
    shared, joins, picks = run(tmp_path / "relax", "relax", arrivals)
    apart, all_joins, _ = run(tmp_path / "off", "off", arrivals)
    assert shared == apart and all(any(rows for _, rows in each) for each in shared.values())
    assert (joins, all_joins, picks) == (3, 4, 2)


def many(count: int) -> tuple[str, ...]:
    """Queries of both kinds that differ in windows and conditions, in turn."""
    draw = random.Random(count)
    texts: list[str] = []
    for _ in range(count):
        texts += [
            FOUR.format(
                f=draw.randint(1, 9), c=draw.randint(1, 9), carrier=draw.choice(CARRIERS),
                terminal=draw.choice("AB"),
            ),
            TWO.format(slide=draw.randint(1, 9), other=draw.choice(CARRIERS[1:])),
        ]  # fmt: skip
    return tuple(dict.fromkeys(texts))


@pytest.mark.parametrize("arrivals", [1, 4])
def test_ten_queries_of_each_kind_have_the_joins_of_one(arrivals: int, tmp_path: Path) -> None:
    texts = many(10)
    groups = [texts[i::arrivals] for i in range(arrivals)]
    shared, joins, _ = run(tmp_path / "relax", "relax", groups)
    apart, _, _ = run(tmp_path / "off", "off", groups)
    assert shared == apart
    assert joins == 3, "flights with check-ins, then with baggage, then with weather"
