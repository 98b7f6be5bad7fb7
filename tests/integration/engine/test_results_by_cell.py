"""Results of queries whose conditions overlap are written once for all that want the same of them,
and each query has its own: by segments, files and handles, in one task and several, while queries
come, end and go, and under limits. ``LEVADA_CASES``: so many sets of forty, not one of eight.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.checkpoint import state_files
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.core.frame import Frame
from levada.engine.query import Query
from levada.plan.execution.steps import Pick, Report
from support.polling import until

S = "http://e/s"
HEAD = "PREFIX : <http://e/> "
FROM = " FROM NAMED WINDOW :w ON :s [RANGE PT{0}S STEP PT1S] "
JOINED = "WHERE {{ WINDOW :w {{ ?a :p ?v . ?a :q ?z FILTER({1}) }} }}"
SELECT = HEAD + "SELECT ?a ?z" + FROM + JOINED
GRAPH = HEAD + "CONSTRUCT {{ ?a :r ?z . [] :s ?v }}" + FROM + JOINED
SECONDS = 14
CASES = int(os.environ.get("LEVADA_CASES", "1"))
MORE = "LEVADA_CASES" in os.environ
VALUES = ("7", "11", "12.0", "12.5", "2.5e1", "9007199254740993", "30", "40", "40", "1e400")
XSD = "http://www.w3.org/2001/XMLSchema#"
Rows = list[tuple[Any, Any]]


def write(
    path: Path, first: int = 0, last: int = SECONDS, *, extra: int = 0, often: bool = True
) -> None:
    """Ten pairs a second: numbers, also such as no double tells, and texts; ``extra`` more, each
    time or once.
    """
    with path.open("a") as file:
        for i in range(first * 10, last * 10):
            number = VALUES[i * 7 % len(VALUES)]
            kind = "double" if "e" in number else "decimal" if "." in number else "integer"
            value = f'"{number}"^^<{XSD}{kind}>'
            if i % 13 == 0:
                value = f'"n{i % 3}"'
            file.write(f"<http://e/a{i % 6}> <http://e/p> {value} {100 * i} .\n")
            file.write(f"<http://e/a{i % 6}> <http://e/q> <http://e/z{i % 4}> {100 * i} .\n")
            for j in range(extra if often or not i else 0):
                more = f'"{30 + j % 7}"^^<{XSD}integer>'
                file.write(f"<http://e/b{j}> <http://e/p> {more} {100 * i} .\n")
                file.write(f"<http://e/b{j}> <http://e/q> <http://e/z> {100 * i} .\n")


def engine(folder: Path, mode: str = "relax", **more: Any) -> Engine:
    more = {"epoch_rows": 50, **more}
    made = Engine(spark=False, checkpoint=folder / "ck", sharing=mode, **more)
    made.stream(S, folder / "s.nt")
    return made


def rows(asked: Query) -> Rows:
    """Reports; of graphs without what is a blank node's, whose label has the query's name."""
    return [
        (report.time, sorted(report.rows.rows()))
        if report.graph is None
        else (report.time, sorted(x for x in report.graph.splitlines() if x[0] != "_"))
        for report in asked.results()
    ]


def said(folder: Path, texts: dict[str, str], mode: str = "off", **more: Any) -> dict[str, Rows]:
    """What queries say in an engine."""
    folder.mkdir()
    write(folder / "s.nt")
    with engine(folder, mode, **more) as alone:
        asked = [alone.register(text, name=name) for name, text in texts.items()]
        alone.start(once=True)
        alone.await_end()
        return {one.name: rows(one) for one in asked}


def asked_at_random(seed: int, policy: str) -> dict[str, str]:
    """Queries of several kinds, some of them equal, with thresholds, ranges, prefixes."""
    draw = random.Random(seed)
    texts = {}
    for i in range(40 if MORE else 8):
        low, more = (
            draw.choice((6, 7, 11.5, 12, 12.0, 25, 40, 9007199254740992)),
            draw.randint(0, 30),
        )
        conditions = [
            f"?v > {low}",
            f"?v >= {low}",
            f"?v <= {low}",
            f"?v > {low} && ?v < {low + more}",
        ]
        conditions += [f"{low} < ?v", 'STRSTARTS(STR(?v), "1")', 'STR(?v) < "3"', "?v = 12"]
        template = draw.choice((SELECT, SELECT, GRAPH))
        text = template.format(draw.choice((1, 2, 2, 2, 5)), draw.choice(conditions))
        texts[f"q{i}"] = text.replace(" WHERE", policy + " WHERE")
    return texts


def late_picks(engine: Engine) -> int:
    """The members of picks above reports."""
    plan = engine._driver.epochs.plan if engine._driver else None
    assert plan is not None
    found = [node for node in plan.nodes.values() if isinstance(node.step, Pick)]
    above = [one for one in found if isinstance(plan.nodes[one.inputs[0]].step, Report)]
    return sum(int(one.alive.sum()) for one in above)


POLICIES = (
    "",
    " REPORT ON_CONTENT_CHANGE ",
    " REPORT PERIODIC PT0.7S ",
    " REPORT ON_WINDOW_CLOSE, NON_EMPTY_CONTENT ",
)


@pytest.mark.parametrize(
    ("partitions", "policy"),
    [(3, 0), (1, 1), *(pytest.param(1, i, marks=pytest.mark.long) for i in (2, 3))],
)
def test_each_has_its_own(tmp_path: Path, random_seed: int, partitions: int, policy: int) -> None:
    for i in range(CASES):
        texts = asked_at_random(random_seed + i, POLICIES[policy])
        right = said(tmp_path / f"off-{i}", texts)
        found = said(tmp_path / f"relax-{i}", texts, "relax", partitions=partitions)
        assert sum(map(len, right.values())) > 50
        for name, text in texts.items():
            assert found[name] == right[name], (random_seed + i, text)


def test_rows_are_there_once(tmp_path: Path) -> None:
    """And counted for each."""
    sizes = {}
    for queries in (2, 60):
        folder = tmp_path / str(queries)
        folder.mkdir()
        write(folder / "s.nt", extra=20)
        with engine(folder, epoch_rows=2000) as many:
            each = [
                many.register(SELECT.format(2, f"?v > {i / 100} && ?v < 99"))
                for i in range(queries)
            ]
            many.start(once=True, keep_open=True)
            many.await_end()
            assert late_picks(many) == queries
            own = [rows(one) for one in each]
            assert all(one == own[0] for one in own) and len(own[0]) == SECONDS - 1
            shown = sum(len(of) for _, of in own[0])
            assert many.progress().results == queries * shown
        files = [*(folder / "ck" / "results").iterdir()]
        sizes[queries] = sum(path.stat().st_size for path in files)
    assert sizes[60] < 1.6 * sizes[2]


def test_who_ends_comes_and_goes_has_what_is_its_own(tmp_path: Path) -> None:
    """A newcomer has other rows in reports that are under way; one that ends none behind."""
    write(tmp_path / "s.nt", 0, 6)
    lives: dict[str, dict[str, Any]] = {f"q{i}": {} for i in range(6)}
    lives["q1"] = lives["q4"] = {"until": "1970-01-01T00:00:09Z"}
    texts = {name: SELECT.format(3, f"?v > {5 + 6 * i}") for i, name in enumerate(lives)}
    texts["q4"] = texts["q2"]
    with engine(tmp_path) as some:
        asked = {n: some.register(text, name=n, **lives[n]) for n, text in texts.items()}
        some.start()
        until(lambda: some.progress().elements == 120)
        assert late_picks(some) >= 4
        some.unregister(asked.pop("q0"))
        later = some.register(SELECT.format(3, "?v > 11"), name="later")
        write(tmp_path / "s.nt", 6, SECONDS)
        until(lambda: some.progress().elements == 20 * SECONDS)
        some.stop()
        found = {name: rows(one) for name, one in asked.items()}
        came = rows(later)
    right = said(tmp_path / "alone", {**texts, "later": SELECT.format(3, "?v > 11")}, "off")
    for name, own in found.items():
        end = 9000 if lives[name] else 13_000
        assert [one for one in own if one[0] <= end] == [
            one for one in right[name] if one[0] <= end
        ]
        assert not lives[name] or max(time for time, _ in own) <= 9000
    assert came and came[-1] in right["later"] and came[0] not in right["later"]


@pytest.mark.parametrize("last", ["relax", pytest.param("off", marks=pytest.mark.long)])
def test_rows_that_wait_for_reports_go_on(tmp_path: Path, last: str) -> None:
    """What a run has remembered for reports to come the next one shows."""
    texts = asked_at_random(5, POLICIES[0])
    right = said(tmp_path / "alone", texts)
    found: dict[str, Rows] = {name: [] for name in texts}
    for mode, first in (("relax", 0), ("relax", 5), (last, 10)):
        write(tmp_path / "s.nt", first, min(first + 5, SECONDS))
        with engine(tmp_path, mode) as some:
            asked = [some.register(text, name=name) for name, text in texts.items()]
            some.start(once=True, keep_open=True)
            some.await_end()
            for one in asked:
                found[one.name] += [each for each in rows(one) if each not in found[one.name]]
    for name, whole in right.items():
        assert found[name] == [each for each in whole if each[0] <= 13_000], name


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*suspended")
@pytest.mark.parametrize("limits", ["solutions=60", "rate=300", "bytes=1KB"])
def test_limits_are_those_of_each(tmp_path: Path, limits: str) -> None:
    """Together they have more than any of them may have; one alone has too much."""
    select = SELECT.replace("PT1S", "PT0.1S")
    texts = {f"q{i}": select.format(99, f"?v > {30 + i} && ?v < {32 + i}") for i in range(5)}
    texts["all"] = select.format(99, "?v > 0")
    write(tmp_path / "s.nt", extra=70, often=False)
    sink = FileSink(tmp_path / "out", Format.CSV)
    with engine(tmp_path, sink=sink, epoch_rows=5000, limits=limits) as many:
        for name, text in texts.items():
            many.register(text, name=name)
        many.start(once=True)
        many.await_end()
        assert set(many.status().suspended_queries) == {"all"}
    for i in range(5):
        files = sorted((tmp_path / "out" / f"q{i}").iterdir())
        assert sum(path.read_text().count("\n") for path in files) > 100


def test_a_segment_says_who_has_a_cell(tmp_path: Path) -> None:
    write(tmp_path / "s.nt")
    with engine(tmp_path) as some:
        for i in (6, 11, 30):
            some.register(SELECT.format(1, f"?v > {i}"), name=f"above-{i}")
        some.start(once=True, keep_open=True)
        some.await_end()
        plan = some._driver.epochs.plan if some._driver else None
        assert plan is not None
        emits = {query.node for query in plan.queries.values()}
        assert len(emits) == 1
        frames: list[tuple[Frame, Frame]] = []
        for path in sorted((tmp_path / "ck" / "results").iterdir()):
            parts, _ = state_files.map_(str(tmp_path / "ck"), f"results/{path.name}")
            name = f"{emits.copy().pop()}"
            if f"same.{name}" in parts:
                frames.append((parts[f"r.{name}"], parts[f"same.{name}"]))
    assert frames
    for rows_, same in frames:
        cells = set(rows_["op"].tolist())
        assert set(same["first"].tolist()) <= cells and min(cells) < 0
        assert set(same["op"].tolist()) <= {0, 1, 2}
