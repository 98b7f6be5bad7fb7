"""Static data are replaced at an instant that a slow stream has not come to: a query over it sees
what was there up to that instant, whenever it reads it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada import Engine
from levada.testing.stream_builders import write_lines
from support.polling import until_engine
from support.query_dsl import element, feed

TEXT = """PREFIX : <http://e/> REGISTER {} :r AS SELECT ?x ?z FROM NAMED WINDOW :w ON :s {}
WHERE {{ WINDOW :w {{ ?x :q ?y }} ?y :k ?z }}"""
AHEAD = """PREFIX : <http://e/> SELECT ?x FROM NAMED WINDOW :w ON :t [NOW]
WHERE { WINDOW :w { ?x :q ?y } }"""
OLD, NEW = '<http://e/b> <http://e/k> "old"', '<http://e/b> <http://e/k> "new"'
OTHER = '<http://e/c> <http://e/k> "new"'
FOUR, FIVE, SIX = (element(1000 * n, f"x{n} q b") for n in (4, 5, 6))

Said = list[tuple[int | None, list[tuple[str, str]]]]


def said(root: Path, output: str, window: str, new: str, *, apart: bool) -> Said:
    """The reports of a query over :s, whose static data are replaced behind 5,000, at which :t is;
    ``apart``: in an epoch that reads nothing.
    """
    paths = {name: write_lines(root / f"{name}.nt", []) for name in "st"}
    with Engine(spark=False, checkpoint=root / "c", partitions=2) as engine:
        for name, path in paths.items():
            engine.stream(f"http://e/{name}", path)
        engine.static([OLD], replaceable=True)
        query = engine.register(TEXT.format(output, window), name="r")
        engine.register(AHEAD, name="ahead")
        engine.start()
        feed(engine, paths["s"], [element(1000, "x1 q b")])
        feed(engine, paths["t"], [element(5000, "x q b")])
        before = engine.progress().epochs
        engine.static([new])
        if apart:
            until_engine(engine, lambda: engine.progress().epochs > before)
        feed(engine, paths["s"], [FOUR, FIVE, SIX, element(7000, "x7 q b")])
        engine.stop()
        return [
            (report.time, sorted((x[10:-1], z[1:-1]) for x, z in report.rows.rows()))
            for report in query.results()
        ]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("output", "window", "last"),
    [
        ("ISTREAM", "[TRIPLES 2]", [("x5", "new"), ("x6", "new")]),
        ("DSTREAM", "[TRIPLES 2]", [("x4", "old"), ("x5", "old")]),
        ("DSTREAM", "[ALL]", [("x1", "old"), ("x4", "old"), ("x5", "old")]),
    ],
)
def test_what_ends_by_a_replacement_ends_at_the_next_report(
    tmp_path: Path, output: str, window: str, last: list[tuple[str, str]], *, apart: bool
) -> None:
    """It is no change of a window, so it makes no report of its own (:s has nothing at 5,001)."""
    reports = said(tmp_path, output, window, NEW, apart=apart)
    assert reports[-1] == (6000, last)
    assert {time for time, _ in reports} <= {1000, 4000, 5000, 6000}


def test_what_is_only_taken_away_is_there_up_to_that_instant(tmp_path: Path) -> None:
    """Rows that all end then are kept as a run of rows of one length, longer than any other."""
    reports = said(tmp_path, "RSTREAM", "[TRIPLES 1]", OTHER, apart=True)
    assert reports == [(t, [(f"x{t // 1000}", "old")]) for t in (1000, 4000, 5000)]
