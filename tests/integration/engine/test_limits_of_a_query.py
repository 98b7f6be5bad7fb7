"""What one query may have: one with more is suspended and told why, the others go on, exactly."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from levada import Engine
from levada.core.query_limits import QueryLimits
from levada.engine.status.status import read_status
from levada.errors import UsageError
from levada.plan.sharing.sharing_modes import Sharing
from levada.runtime.driver import epoch_totals
from support.polling import until

PREFIX = "PREFIX : <http://e/> "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w "
NINE = {f"q{k}": f"{PREFIX}SELECT ?n {WINDOW}{{ ?a :p ?n }} FILTER(?n != {k}) }}" for k in range(9)}
PAIRS = f"{PREFIX}SELECT ?a ?b {WINDOW}{{ ?a :p ?x . ?b :p ?y }} }}"
TEXTS = f"{PREFIX}SELECT ?t ?u {WINDOW}{{ ?a :t ?t . ?b :t ?u }} }}"
BACKTRACK = f'{PREFIX}SELECT ?a {WINDOW}{{ ?a :t ?t }} FILTER(REGEX(?t, "(a+)+$")) }}'
COUNT = f"{PREFIX}SELECT (COUNT(*) AS ?n) {WINDOW}{{ ?a :p ?x }} }}"
SHORT = COUNT.replace("STEP PT1S", "STEP PT0.001S")
LONG = SHORT.replace("RANGE PT2S", "RANGE P2D")
EMPTY = f"{PREFIX}SELECT ?a ?n {WINDOW}{{ ?a :p ?n }} FILTER(?n < 0) }}".replace("PT1S", "PT0.1S")
ALL = f"{PREFIX}SELECT ?a ?n {WINDOW}{{ ?a :p ?n }} }}"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
DAY = 86_400_000
Reports = dict[str, list[tuple[Any, list[tuple[Any, ...]]]]]

pytestmark = pytest.mark.filterwarnings("ignore:.*suspended")


def numbers(until: int = 6000) -> list[str]:
    """Twenty elements a second."""
    return [
        f'<http://e/a{i}> <http://e/p> "{i}"^^<{INTEGER}> {50 * i} .' for i in range(until // 50)
    ]


def run(folder: Path, lines: list[str], queries: dict[str, str], **options: Any) -> Reports:
    """The reports of each query, with their rows."""
    (folder / "s.nt").write_text("\n".join([*lines, ""]))
    found: Reports = {}
    shown = options.pop("shown", ())
    given = {"checkpoint": folder / "checkpoint", "partitions": 1, **options}
    with Engine(spark=False, **given) as engine:
        engine.stream("http://e/s", folder / "s.nt")
        handles = [
            engine.register(text, name=name, empty_reports=name in shown)
            for name, text in queries.items()
        ]
        engine.start(once=True, keep_open=True)
        engine.await_end()
        for handle in handles:
            found[handle.name] = [(r.time, sorted(r.rows.rows())) for r in handle.results()]
    return found


def why(folder: Path) -> dict[str, str]:
    return dict(read_status(folder / "checkpoint").suspended_queries)


LENGTHY = f'CONCAT(STR(?n), "{"x" * 50}")'
WORDY = {
    "computed": f"SELECT ?u {WINDOW}{{ ?a :p ?n BIND({LENGTHY} AS ?u) }} }}",
    "asked of": f'SELECT ?a {WINDOW}{{ ?a :p ?n FILTER(CONTAINS({LENGTHY}, "1")) }} }}',
    "of groups": f"SELECT (MAX({LENGTHY}) AS ?m) {WINDOW}{{ ?a :p ?n }} }}",
    "of a template": f"CONSTRUCT {{ ?a :q ?u }} {WINDOW}{{ ?a :p ?n BIND({LENGTHY} AS ?u) }} }}",
    "of pairs": f"SELECT (COUNT(?u) AS ?m) {WINDOW}{{ ?a :p ?n . ?b :p ?o "
    f"BIND(CONCAT({LENGTHY}, STR(?o)) AS ?u) }} }}",
}


@pytest.mark.long
@pytest.mark.parametrize("name", WORDY)
def test_texts_that_are_too_much_wherever_they_are_computed(tmp_path: Path, name: str) -> None:
    """Found: where rows are read nobody was named, so none was suspended and the epoch ran anew
    for ever.
    """
    lines = [line.replace(" .", f" {i} .") for i, line in enumerate(map(_untimed, numbers(20_000)))]
    got = run(
        tmp_path,
        [*lines, "<http://e/z> <http://e/z> <http://e/z> 9000 ."],
        {"ok": ALL, "much": PREFIX + WORDY[name]},
        limits="texts=10KB",
    )
    assert set(why(tmp_path)) == {"much"}
    assert "texts of more than 10,000 bytes" in why(tmp_path)["much"]
    assert "--limits texts=N" in why(tmp_path)["much"]
    assert got["much"] == [] and sum(len(rows) for _, rows in got["ok"]) > 0


MANY = {
    "made": (" ".join(f"BIND(?x + {i} AS ?z{i})" for i in range(60)), "4MB", "bytes of rows"),
    "texts": (
        " ".join(f'BIND(CONCAT(STR(?x), "{i:50}") AS ?z{i})' for i in range(20)),
        "500KB",
        "texts of more than 500,000 bytes",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("sharing", ["off", "exact", "relax"])
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("limit", MANY)
def test_many_operators_that_are_each_below_a_limit_are_above_it_together(
    tmp_path: Path, limit: str, partitions: int, sharing: str
) -> None:
    """The first sixth of them is below the limit, over the same rows."""
    binds, most, told = MANY[limit]
    few = "BIND".join(binds.split("BIND")[: 1 + binds.count("BIND") // 6])
    product = f"{PREFIX}SELECT * {WINDOW}{{ ?a :p ?x . ?b :p ?y "
    asked = {"few": f"{product}{few} }} }}", "many": f"{product}{binds} }} }}"}
    lines, options = numbers(3000), {"partitions": partitions, "sharing": sharing}
    (tmp_path / "alone").mkdir()
    alone = run(tmp_path / "alone", lines, NINE | {"few": asked["few"]}, **options)
    found = run(tmp_path, lines, NINE | asked, limits=f"{limit}={most}", **options)
    assert found.pop("many") == [] and found == alone
    assert all(alone.values())
    assert list(why(tmp_path)) == ["many"]
    assert told in why(tmp_path)["many"] and f"--limits {limit}=N" in why(tmp_path)["many"]


def test_texts_that_outlive_their_rows_are_counted_in_the_query(tmp_path: Path) -> None:
    """The texts of rows with event times are there twice, and take 13 MB: 7 MB as the rows', and
    as many for later epochs.
    """
    texts = [f'CONCAT(STR(?x), STR(?y), "{i:200}")' for i in range(10)]
    binds = " ".join(f"BIND({text} AS ?z{i})" for i, text in enumerate(texts))
    every = ", ".join(f"?z{i}" for i in range(10))
    query = f"""{PREFIX}SELECT (COUNT(?z9) AS ?n) {WINDOW}{{ ?a :p ?x . ?b :p ?y {binds}
        FILTER(STRLEN(CONCAT({every})) > 10) }} }}"""
    (tmp_path / "alone").mkdir()
    alone = run(tmp_path / "alone", numbers(3000), {"all": ALL, "much": query})
    assert all(alone.values())
    found = run(tmp_path, numbers(3000), {"all": ALL, "much": query}, limits="made=10MB")
    assert found == {"all": alone["all"], "much": []}
    assert "more than 10,000,000 bytes of rows" in why(tmp_path)["much"]


def _untimed(line: str) -> str:
    return f"{line.rsplit(' ', 2)[0]} ."


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 2])
def test_four_that_ask_for_much_and_nine_that_do_not(tmp_path: Path, partitions: int) -> None:
    """A product, a millisecond's step over days, and a report of 200 MB; what engines of regular
    expressions do not come back from is just a query.
    """
    texts = [
        f'<http://e/t{i}> <http://e/t> "{"a" * 100_000}b{i}" 500 .' for i in range(33)
    ]  # of which a report has all pairs: 33 * 33 * 200 kB
    after = [line.replace(f" {t} .", f" {t + 3 * DAY} .") for t, line in _timed(numbers(2000))]
    lines = [*numbers(500), *texts, *numbers()[10:], *after]
    asked = {"pairs": PAIRS, "often": LONG, "large": TEXTS, "hard": BACKTRACK, "short": SHORT}
    limits = "bytes=100MB,reports=100000"
    (tmp_path / "alone").mkdir()
    alone = run(tmp_path / "alone", lines, NINE, partitions=partitions)
    found = run(tmp_path, lines, NINE | asked, limits=limits, max_rows=2000, partitions=partitions)
    assert {name: found[name] for name in NINE} == alone
    assert all(len(reports) > 7 for reports in alone.values())
    told = why(tmp_path)
    assert sorted(told) == ["large", "often", "pairs"]
    assert "more than 2,000 rows" in told["pairs"] and "--max-rows" in told["pairs"]
    assert "the limit is 100,000,000" in told["large"] and "--limits bytes=N" in told["large"]
    assert "the limit is 100,000." in told["often"] and "--limits reports=N" in told["often"]
    assert found["hard"] == [] and len(found["short"]) > 9000


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_product_of_many_patterns_is_suspended_before_it_takes_the_memory(
    tmp_path: Path, partitions: int
) -> None:
    """Ten rows a window: a million rows are not many, but forty patterns make them wide."""
    many = " . ".join(f"?a{i} ?b{i} ?c{i}" for i in range(40))
    lines = numbers()[::10]
    (tmp_path / "alone").mkdir()
    alone = run(tmp_path / "alone", lines, NINE, partitions=partitions)
    asked = {"product": f"{PREFIX}SELECT * {WINDOW}{{ {many} }} }}"}
    limits = "made=20MB"
    found = run(tmp_path, lines, NINE | asked, limits=limits, partitions=partitions)
    assert {name: found[name] for name in NINE} == alone
    told = why(tmp_path)["product"]
    assert "more than 20,000,000 bytes of rows" in told and "--limits made=N" in told


def _timed(lines: list[str]) -> list[tuple[int, str]]:
    return [(int(line.split()[-2]), line) for line in lines]


ROWS = ALL.replace("RANGE PT2S STEP PT1S", "RANGE TRIPLES 40 STEP 1")
TWICE = f"{PREFIX}CONSTRUCT {{ ?a :p ?a . ?a :q ?a }} {WINDOW}{{ ?a :p ?n }} }}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "text", "told"),
    [
        ("solutions=39", ALL, "40 solutions; the limit is 39"),
        (
            "reports=5",
            COUNT.replace("PT1S", "PT0.1S"),
            "It would make ",
        ),
        ("reports=5", EMPTY, "reports of what was read at once; the limit is 5"),
        ("reports=5", COUNT.replace(" STEP PT1S", ""), "It has made "),
        ("kept=5KB", ALL, "bytes of its results are kept; the limit is 5,000"),
        ("rate=100", ALL.replace("STEP PT1S", "STEP PT0.01S"), "rows in reports of"),
        ("rate=100", ALL.replace(" STEP PT1S", ""), "rows in reports of"),
        ("rate=100", ROWS, "rows in reports of"),
        ("texts=2KB", f"{PREFIX}SELECT ({LENGTHY} AS ?u) {WINDOW}{{ ?a :p ?n }} }}", "texts of"),
        ("bytes=2KB", TWICE, "bytes; the limit is 2,000"),
    ],
)
def test_each_limit(tmp_path: Path, limit: str, text: str, told: str) -> None:
    also = [line.replace("/p>", "/q>") for line in numbers()]
    lines = [line for both in zip(numbers(), also, strict=True) for line in both]
    options: dict[str, Any] = {"keep": "1h", "epoch_rows": 80}
    options["shown"] = ["much"] if text == EMPTY else []
    few = {"few": f"{PREFIX}SELECT (MAX(?n) AS ?m) {WINDOW}{{ ?a :p ?n }} }}"}
    (tmp_path / "alone").mkdir()
    alone = run(tmp_path / "alone", lines, few, **options)
    found = run(tmp_path, lines, {**few, "much": text}, limits=limit, **options)
    assert found["few"] == alone["few"] != []
    assert list(why(tmp_path)) == ["much"] and told in why(tmp_path)["much"]
    word = limit.split("=")[0]
    run(tmp_path, lines, {**few, "much": text}, limits=limit, **options)
    assert list(why(tmp_path)) == ["much"]
    run(tmp_path, lines, {**few, "much": text}, limits=f"{word}=1000000", **options)
    assert why(tmp_path) == {}


def test_bytes_are_those_of_the_texts_that_a_reader_gets(tmp_path: Path) -> None:
    alone = run(tmp_path, numbers(), {"all": ALL}, checkpoint=tmp_path / "alone")["all"]
    most = max(
        sum(len(text.encode()) for row in rows for text in map(str, row)) for _, rows in alone
    )
    for bound, suspended in ((most, []), (most - 1, ["all"])):
        root = tmp_path / str(bound)
        run(tmp_path, numbers(), {"all": ALL}, checkpoint=root, limits=f"bytes={bound}")
        told = read_status(root).suspended_queries
        assert list(told) == suspended
        assert not suspended or f"would have {most:,} bytes;" in told["all"]


@pytest.mark.long
@pytest.mark.parametrize("sharing", ["off", "exact"])
@pytest.mark.parametrize("partitions", [1, 2])
def test_rows_of_state_are_those_of_its_own_windows(
    tmp_path: Path, sharing: str, partitions: int
) -> None:
    """An hour's window beside windows of two seconds that read the same and have 59 elements in
    reach, by steps of a second: as a set, and as rows that wait for their reports.
    """
    pair = f"{PREFIX}SELECT ?n ?m {WINDOW}{{ ?a :p ?n . ?a :p ?m }} }}"
    queries = {**NINE, "pair": pair, "long": pair.replace("PT2S", "PT1H")}
    options: dict[str, Any] = {"sharing": sharing, "epoch_rows": 7, "partitions": partitions}
    for name in queries:
        (tmp_path / name).mkdir()
    alone = {name: run(tmp_path / name, numbers(), {name: queries[name]}, **options)[name]
             for name in (*NINE, "pair")}  # fmt: skip
    limits = "state=250"
    found = run(tmp_path, numbers(), queries, limits=limits, **options)
    assert {name: found[name] for name in alone} == alone
    told = why(tmp_path)
    assert list(told) == ["long"]
    assert "rows of state in reach; the limit is 250" in told["long"]
    root = tmp_path / "few"
    run(tmp_path, numbers(), {"q": NINE["q1"]}, checkpoint=root, limits="state=30", **options)
    (reason,) = read_status(root).suspended_queries.values()
    counts = re.findall(r"([\d,]+) rows of state", reason)
    assert [30 < int(count) <= 30 + 2 * 7 for count in counts] == [True], "of one more epoch"


def test_rows_of_state_since_a_query_came(tmp_path: Path) -> None:
    """What others have kept before is nothing to it."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "0.nt").write_text("\n".join([*numbers(4000), ""]))
    text = ALL.replace("PT2S", "PT1H")
    found: list[dict[str, int]] = []
    with (
        patch.object(epoch_totals, "count_excess_rows", partial(_seen, found)),
        Engine(spark=False, epoch="0", limits="state=1M", partitions=1) as engine,
    ):
        engine.stream("http://e/s", tmp_path / "s")
        engine.register(text, name="before")
        engine.start()
        until(lambda: bool(found) and found[-1].get("before") == 158)
        engine.register(text, name="after")
        (tmp_path / "1").write_text("\n".join([*numbers()[80:], ""]))
        (tmp_path / "1").rename(tmp_path / "s" / "1.nt")
        until(lambda: found[-1].get("before") == 238)
    assert found[-1] == {"before": 238, "after": 78}


def _seen(found: list[dict[str, int]], done: Any, limits: Any) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for each in done:
        counts.update(each.window_rows)
    found.append(dict(counts))
    return {}


def test_rows_of_state_are_no_limit_where_several_have_them(tmp_path: Path) -> None:
    for sharing in ("relax", Sharing.CONTAINMENT):
        with pytest.raises(UsageError, match="The limit state is for --sharing off and exact"):
            Engine(spark=False, limits="state=5", sharing=sharing)


@pytest.mark.long
@pytest.mark.parametrize("sharing", ["off", "exact", "relax"])
@pytest.mark.parametrize("limit", ["bytes=1KB", "solutions=30", "reports=100"])
def test_of_those_who_share_only_who_has_too_much(tmp_path: Path, sharing: str, limit: str) -> None:
    lines = [line for i, line in enumerate(numbers()) for line in [line] * (i % 20 > 16)]
    lines += [f"<http://e/b> <http://e/q> <http://e/o{i}> {i + 500} ." for i in range(40)]
    lines += [f"<http://e/c> <http://e/q> <http://e/o{i}> {i + 500} ." for i in range(4)]
    lines.sort(key=lambda line: int(line.split()[-2]))
    one = f"{PREFIX}SELECT ?x ?o {WINDOW}{{ ?x :q ?o }} FILTER(?x = :ONE) }}"
    often = "PT0.01S" if limit.startswith("reports") else "PT1S"
    queries = {
        name: one.replace("ONE", name).replace("PT1S", often if name == "b" else "PT1S")
        for name in "bc"
    }
    found = run(tmp_path, lines, queries, limits=limit, sharing=sharing)
    assert list(why(tmp_path)) == ["b"]
    assert [len(rows) for _, rows in found["c"]] == [4, 4]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("byte=1", r"There is no limit byte\. Did you mean bytes\?"),
        ("bytes=1XB", "The limit bytes is a number above 0, or off, not 1XB"),
        ("reports=1MB", "Say for example reports=100k"),
        ("reports=0", "not 0"),
        ("solutions", "not nothing"),
        ("kept=1MB", "none are"),
        ("made=0", "Say for example made=100MB"),
    ],
)
def test_what_is_no_limit(limits: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Engine(spark=False, limits=limits)


def test_a_limit_can_be_lifted() -> None:
    assert QueryLimits.parse(
        "bytes=1KB,bytes=off,solutions=5,solutions=off", rows=7
    ) == QueryLimits(rows=7, solutions=7)
