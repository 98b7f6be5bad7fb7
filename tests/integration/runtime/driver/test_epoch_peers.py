"""What peers get wrong (judge 5): boundaries, gaps, several windows, the end of a stream, late
elements; the reference judges.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from levada.testing.compare import same
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, T, element, expected, judge, query, run, step

YEAR = 365 * 24 * 3600 * 1000
CUTS = pytest.mark.parametrize("epoch_rows", [1, 3, 1000])
VALUES = "SELECT ?a ?n"


def values(name: Any, clause: Any, on: Any = S, **options: Any) -> Any:
    return query(
        VALUES, "WINDOW :w { ?a :p ?n }", name=name, windows={"w": (on, clause)}, **options
    )


def counts(name: Any, clause: Any, on: Any = S, **options: Any) -> Any:
    return query(
        "SELECT (COUNT(?n) AS ?m)",
        "WINDOW :w { ?a :p ?n }",
        name=name,
        windows={"w": (on, clause)},
        **options,
    )


def check(
    tmp_path: Path, queries: Any, streams: Any, epoch_rows: int = 1000, **options: Any
) -> Any:
    """Runs queries over streams given as elements in order of arrival."""
    sources = {
        name: {"path": write_lines(tmp_path / f"{i}.nt", elements), **options}
        for i, (name, elements) in enumerate(streams.items())
    }
    got, engine = run(tmp_path / "ck", sources, queries, epoch_rows=epoch_rows)
    judge(queries, streams, got)
    return got, engine


@CUTS
def test_an_event_exactly_at_a_close(tmp_path: Path, epoch_rows: Any) -> None:
    elements = [element(ts, f"a p {ts}") for ts in (0, 1999, 2000, 2001, 3999, 4000, 4000, 8000)]
    queries = [
        values("open", step(2000, 2000)),
        values("closed", step(2000, 2000), bounds="(]"),
        values("change", step(2000, 2000), report="change"),
        values("range", Clause("range", 2000)),
        values("left", step(2000, 2000), output="DSTREAM"),
    ]
    check(tmp_path, queries, {S: elements}, epoch_rows)


@CUTS
def test_a_gap_of_a_year_costs_nothing(tmp_path: Path, epoch_rows: Any) -> None:
    elements = [
        element(ts, f"a p {i}") for i, ts in enumerate((0, 900, YEAR, YEAR + 700, 3 * YEAR))
    ]
    queries = [
        values("steps", step(3000, 1000)),
        values("fresh", step(3000, 1000), output="ISTREAM"),
        values("gone", step(3000, 1000), output="DSTREAM"),
        counts("count", step(3000, 1000)),
        values("range", Clause("range", 1000)),
    ]
    got, engine = check(tmp_path, queries, {S: elements}, epoch_rows)
    assert len(got["steps"]) < 20
    assert engine.progress().epochs <= 6


@CUTS
def test_two_windows_on_one_stream(tmp_path: Path, epoch_rows: Any) -> None:
    elements = [element(400 * i, f"a{i % 3} p {i % 2}", f"a{i % 3} q b") for i in range(16)]
    both = {"w": (S, step(1000, 1000)), "v": (S, step(4000, 2000))}
    queries = [
        query(
            "SELECT ?a ?n",
            "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :q ?b }",
            name="join",
            windows=both,
        ),
        query(
            "SELECT ?a ?n ?m",
            "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :p ?m }",
            name="same",
            windows=both,
            output="ISTREAM",
        ),
        query(
            "SELECT ?a",
            "WINDOW :v { ?a :q ?b } OPTIONAL { WINDOW :w { ?a :p ?n } }",
            name="none",
            windows=both,
        ),
    ]
    check(tmp_path, queries, {S: elements}, epoch_rows)


@CUTS
@pytest.mark.parametrize("ranges", [(500, 6000), (6000, 500), (1000, 1000)])
def test_different_ranges_on_two_streams(tmp_path: Path, epoch_rows: Any, ranges: Any) -> None:
    left = [element(500 * i, f"a{i % 3} p {i}") for i in range(12)]
    right = [element(700 * i, f"a{i % 2} q {i}") for i in range(8)]
    body = "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :q ?m }"
    per_element = {"w": (S, Clause("range", ranges[0])), "v": (T, Clause("range", ranges[1]))}
    on_close = {"w": (S, step(ranges[0], 500)), "v": (T, step(ranges[1], 1000))}
    queries = [
        query("SELECT ?a ?n ?m", body, name="changes", windows=per_element, output="ISTREAM"),
        query("SELECT ?a ?n ?m", body, name="closes", windows=on_close),
    ]
    check(tmp_path, queries, {S: left, T: right}, epoch_rows)


@CUTS
def test_rows_leave_a_window_with_their_element_never_one_by_one(
    tmp_path: Path, epoch_rows: Any
) -> None:
    elements = [element(1000 * i, *(f"a{j} p {i}" for j in range(5))) for i in range(5)]
    queries = [
        values("range", Clause("range", 2500)),
        values("steps", step(2000, 1000)),
        counts("n", step(2000, 1000)),
    ]
    got, _ = check(tmp_path, queries, {S: elements}, epoch_rows)
    assert {r.solutions.total() % 5 for r in (*got["range"], *got["steps"])} == {0}


@CUTS
def test_a_window_whose_end_no_later_event_follows(tmp_path: Path, epoch_rows: Any) -> None:
    """The last window is reported at the end, and the first empty report after it: a last count of
    nothing is none.
    """
    queries = [
        values("steps", step(5000, 1000)),
        counts("n", step(5000, 5000)),
        values("left", step(2000, 2000), output="DSTREAM"),
    ]
    got, _ = check(tmp_path, queries, {S: [element(100, "a p 1")]}, epoch_rows)
    assert [r.time for r in got["steps"]] == [1000, 2000, 3000, 4000, 5000]
    assert [r.time for r in got["left"]] == [4000]


@CUTS
def test_late_elements_are_counted_written_and_in_no_window(
    tmp_path: Path, epoch_rows: Any
) -> None:
    on_time = [element(1000 * i, f"a p {i}") for i in range(8)]
    late = [element(900, "a p 900"), element(3999, "a p 3999")]
    write_lines(tmp_path / "s.nt", [*on_time[:6], *late, *on_time[6:]])
    queries = [
        values("steps", step(2000, 1000)),
        values("all", Clause("all")),
        counts("n", step(3000, 1000)),
    ]
    first, _ = run(
        tmp_path / "ck", {S: {"path": tmp_path / "s.nt"}}, queries, epoch_rows=epoch_rows
    )
    assert (
        epoch_rows == 1000 or same(expected(queries, {S: on_time})["steps"], first["steps"]) is None
    )
    letters = [
        json.loads(line)
        for p in sorted((tmp_path / "ck" / "late").glob("*"))
        for line in p.read_text().splitlines()
    ]
    if epoch_rows == 1000:  # one epoch: nothing is below the watermark before it
        judge(queries, {S: [*on_time, *late]}, first)
        assert not letters
    else:
        judge(queries, {S: on_time}, first)
        assert [(letter["stream"], letter["ts"]) for letter in letters] == [(S, 900), (S, 3999)]
        assert all(letter["ts"] < letter["watermark"] <= 5000 for letter in letters)
        assert (
            letters[0]["text"]
            == '<http://e/a> <http://e/p> "900"^^<http://www.w3.org/2001/XMLSchema#integer> 900 .'
        )


@CUTS
def test_disorder_within_the_lateness_is_none(tmp_path: Path, epoch_rows: Any) -> None:
    ordered = [element(500 * i, f"a p {i}") for i in range(12)]
    arrival = [ordered[i] for i in (2, 0, 1, 3, 5, 4, 8, 6, 7, 9, 11, 10)]
    _, engine = check(
        tmp_path,
        [values("s", step(2000, 1000)), counts("n", step(1000, 1000))],
        {S: arrival},
        epoch_rows,
        lateness="1s",
    )
    assert engine._records()[S].late == 0


def test_malformed_input_goes_to_the_dead_letters(tmp_path: Path) -> None:
    good = [element(1000 * i, f"a p {i}") for i in range(3)]
    text = write_lines(tmp_path / "s.nt", good).read_text().splitlines()
    bad = [
        "<http://e/a> <http://e/p> 7 .",
        "no triple at all",
        "<http://e/a> <http://e/p> <http://e/o> 99999999999999999 .",
    ]
    (tmp_path / "s.nt").write_text(
        "\n".join([text[0], bad[0], text[1], bad[1], bad[2], text[2]]) + "\n"
    )
    queries = [values("steps", step(2000, 1000))]
    got, engine = run(tmp_path / "ck", {S: {"path": tmp_path / "s.nt"}}, queries)
    judge(queries, {S: good}, got)
    letters = [
        json.loads(line)
        for p in (tmp_path / "ck" / "dead-letter").glob("*")
        for line in p.read_text().splitlines()
    ]
    assert [letter["text"] for letter in letters] == bad
    assert [letter["offset"] for letter in letters] == [
        (tmp_path / "s.nt").read_text().index(b) for b in bad
    ]
    assert all(letter["reason"] and letter["source"] == "s.nt" for letter in letters)
    assert engine._records()[S].dead_letters == 3


def test_parallel_files_of_different_progress(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    elements = [element(250 * i, f"a{i % 5} p {i}") for i in range(40)]
    early, late, mixed = elements[:10], elements[10:30], elements[30:]
    for i, part in enumerate((late, early, mixed)):
        write_lines(folder / f"{i}.nt", part)
    queries = [
        values("steps", step(2000, 1000)),
        counts("n", step(3000, 500)),
        values("r", Clause("range", 700), output="ISTREAM"),
    ]
    for epoch_rows in (1, 7, 1000):
        sources = {S: {"path": folder, "files": "parallel"}}
        got, engine = run(tmp_path / f"ck{epoch_rows}", sources, queries, epoch_rows=epoch_rows)
        judge(queries, {S: elements}, got)
        assert engine._records()[S].late == 0


@pytest.mark.long
@pytest.mark.parametrize(("files", "count"), [("sequence", 5_000), ("parallel", 2_500)])
def test_thousands_of_small_files_at_once(tmp_path: Path, files: str, count: int) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    elements = [element(100 * i, f"a{i % 50} p {i % 7}") for i in range(count)]
    for i, e in enumerate(elements):
        write_lines(folder / f"{i:05}.nt", [e])
    counts = query(
        "SELECT ?n (COUNT(*) AS ?m)",
        "WINDOW :w { ?a :p ?n }",
        tail=" GROUP BY ?n",
        name="n",
        windows={"w": (S, step(100_000, 100_000))},
    )
    got, engine = run(
        tmp_path / "ck", {S: {"path": folder, "files": files}}, [counts], epoch_rows=2500
    )
    judge([counts], {S: elements}, got)
    assert engine._records()[S].elements == count
