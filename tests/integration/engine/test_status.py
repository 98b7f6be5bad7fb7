"""Why there is no result: what a checkpoint says of its queries."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from levada.cli.main import main
from levada.core.event_time import MAX
from levada.engine.engine import Engine
from levada.engine.status.status import Status, read_status
from levada.errors import CheckpointError
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, T, element, query, step

ONE = {"w": (S, step(2000, 1000))}
TWO = {"w": (S, step(2000, 1000)), "v": (T, Clause("range", 1500))}
HOT = query("SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="hot", windows=ONE)
NEVER = query("SELECT ?a ?n", "WINDOW :w { ?a :p ?n ; :typo ?m }", name="never", windows=ONE)
BOTH = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :q ?m }", name="both", windows=TWO
)


@pytest.fixture
def root(tmp_path: Path) -> Any:
    """A checkpoint whose stream S is at 5000 and whose stream T is at 3000."""
    s = write_lines(tmp_path / "s.nt", [element(500 * i, f"a p {i}") for i in range(11)])
    t = write_lines(tmp_path / "t.nt", [element(3000, "b q 1")])
    with Engine(spark=False, checkpoint=tmp_path / "ck", partitions=2) as engine:
        engine.stream(S, s)
        engine.stream(T, t)
        for query in (HOT, NEVER, BOTH):
            engine.register(query.text, name=query.name)
        engine.start(once=True, keep_open=True)
        engine.await_end()
    return tmp_path / "ck"


def test_patterns_that_nothing_matches_are_named(root: Any) -> None:
    hot, never, _ = read_status(root).queries
    assert (hot.results, hot.reason) == (18, "")
    assert [(p.text, p.matched_triples) for p in hot.patterns] == [("?a <http://e/p> ?b", 11)]
    assert [(p.text, p.matched_triples) for p in never.patterns] == [
        ("?a <http://e/p> ?b", 11),
        ("?a <http://e/typo> ?b", 0),
    ]
    reason = f"No triple of {S} has matched the pattern ?a <http://e/typo> ?b."
    assert never.reason == f"{reason} Their predicates: <http://e/p>."


@pytest.mark.parametrize(
    ("group", "starved"),
    [
        ("WINDOW :w { ?a :p ?n OPTIONAL { ?a :typo ?m } }", False),
        ("WINDOW :w { ?a :p ?n MINUS { ?a :typo ?m } }", False),
        ("WINDOW :w { ?a :p ?n FILTER NOT EXISTS { ?a :typo ?m } }", False),
        ("WINDOW :w { { ?a :p ?n } UNION { ?a :typo ?n } }", False),
        ("WINDOW :w { ?a :p ?n . ?a :typo? ?m }", False),
        ("WINDOW :w { ?a :p ?n } { SELECT (COUNT(*) AS ?m) { WINDOW :w { ?a :typo ?k } } }", False),
        ("WINDOW :w { ?a :p ?n FILTER EXISTS { ?a :typo ?m } }", True),
        ("WINDOW :w { { ?a :typo ?n } UNION { ?n :typo ?a } }", True),
        ("WINDOW :w { ?a :p ?n . ?a :typo+ ?m }", True),
        (
            "WINDOW :w { ?a :p ?n } { SELECT ?a (COUNT(*) AS ?m) { "
            "WINDOW :w { ?a :typo ?k } } GROUP BY ?a }",
            True,
        ),
    ],
)
def test_only_what_holds_all_rows_back_is_named_as_the_reason(
    tmp_path: Path, group: str, starved: bool
) -> None:
    far = {"w": (S, step(1_000_000, 1_000_000))}
    text = query("SELECT ?a ?n", group, windows=far).text
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(
            S, write_lines(tmp_path / "s.nt", [element(500 * i, f"a p {i}") for i in range(11)])
        )
        engine.register(text, name="far")
        engine.register("SELECT ?a { ?a <http://e/p> ?b }", name="static")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        held, static = engine.status().queries
    assert held.reason.startswith("No triple of" if starved else "The next report can be made"), (
        held.reason
    )
    assert static.reason == "Nothing in the static data answers it."


def test_the_stream_that_holds_a_query_back_and_the_next_report(root: Any) -> None:
    hot, _, both = read_status(root).queries
    assert (hot.watermark, hot.blocking_stream, hot.next_report) == (5000, None, 6000)
    assert (both.watermark, both.blocking_stream, both.next_report) == (3000, T, 4000)
    assert (
        both.reason.startswith(
            "The next report can be made when the watermark, at 1970-01-01T00:00:03Z, "
            "reaches 1970-01-01T00:00:04Z."
        )
        and T in both.reason
    )


def test_periodic_reports_and_patterns_over_the_last_triples(tmp_path: Path) -> None:
    last = query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :typo ?n }",
        name="last",
        windows={"w": (S, Clause("count", count=2))},
    )
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(
            S, write_lines(tmp_path / "s.nt", [element(500 * i, f"a p {i}") for i in range(11)])
        )
        engine.register(HOT.text, name="clocked", report="periodic:1500ms")
        engine.register(last.text, name="last")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        clocked, counted = engine.status().queries
    assert (clocked.watermark, clocked.next_report) == (5000, 6000 - 6000 % 1500)
    assert [(p.text, p.matched_triples) for p in counted.patterns] == [
        ("?a <http://e/typo> ?b", None)
    ]
    assert counted.reason == "Nothing has come through the query's joins, filters and windows yet."


def test_patterns_that_are_too_many_are_not_counted(root: Any, tmp_path: Path) -> None:
    """256 patterns of a stream are counted; of those that make them more it is not said that
    nothing has matched them.
    """
    with (tmp_path / "s.nt").open("a") as file:
        file.write(
            '<http://e/a> <http://e/p9> <http://e/b> 6000 .\n<http://e/a> <http://e/p> "1" 9000 .\n'
        )
    with Engine(spark=False, checkpoint=root, partitions=2) as engine:
        engine.stream(S, tmp_path / "s.nt")
        engine.stream(T, tmp_path / "t.nt")
        for i in range(260):
            text = query(
                "SELECT ?a", f"WINDOW :w {{ ?a :p{i} ?n }}", name=f"many{i}", windows=ONE
            ).text
            engine.register(text, name=f"many{i}")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        many = next(q for q in engine.status().queries if q.name == "many9")
    assert many.results > 0 and [(p.text, p.matched_triples) for p in many.patterns] == [
        ("?a <http://e/p9> ?b", None)
    ]


def test_the_command_tells_it_as_text_and_as_json(
    root: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(root)]) == 0
    assert "has matched the pattern ?a <http://e/typo> ?b" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["status", str(root), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["streams"][S] == {
        "elements": 11,
        "triples": 11,
        "late": 0,
        "dead_letters": 0,
        "watermark": 5000,
        "late_files": 0,
        "deleted_files": 0,
        "replaced_files": 0,
        "suspected_unit": "",
        "dead_letter_reasons": [],
        "null_messages": 0,
        "late_cause": "",
        "missing_values": "",
        "backlog": told["streams"][S]["backlog"],
    }
    unread = {"elements": 0, "size_bytes": 0, "oldest_ms": None, "age_seconds": None}
    assert told["streams"][S]["backlog"].items() >= unread.items()
    assert told["memory"]["driver_bytes"] > 1 << 20
    assert {field.name for field in fields(Status)} == told.keys() - {"epoch_age_seconds"}
    assert [q["name"] for q in told["queries"]] == ["hot", "never", "both"]


def test_what_a_query_shares_is_named(root: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The topmost operators that others have, too: here the pattern of all three."""
    shared = {query.name: query.shared_operators for query in read_status(root).queries}
    assert {name: [one.queries for one in own] for name, own in shared.items()} == {
        "hot": [3], "never": [3], "both": [3],
    }  # fmt: skip
    ((match,),) = {*shared.values()}
    assert match.operator.startswith("Match ")
    assert main(["status", str(root)]) == 0
    assert "shares" not in capsys.readouterr().out
    assert main(["status", str(root), "--verbose"]) == 0
    assert f"hot: shares {match.operator} with 2." in capsys.readouterr().out


def test_counts_go_on_in_the_next_run(root: Any, tmp_path: Path) -> None:
    with (tmp_path / "s.nt").open("a") as file:
        file.write("<http://e/a> <http://e/typo> <http://e/b> 6000 .\n")
    with Engine(spark=False, checkpoint=root, partitions=2) as engine:
        engine.stream(S, tmp_path / "s.nt")
        engine.stream(T, tmp_path / "t.nt")
        for query in (HOT, NEVER, BOTH):
            engine.register(query.text, name=query.name)
        engine.start(once=True)
        engine.await_end()
        status = engine.status()
    assert status.has_ended and [p.matched_triples for p in status.queries[1].patterns] == [11, 1]
    assert status.queries[1].watermark == MAX


def test_what_is_no_checkpoint_or_has_had_no_epoch_says_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        read_status(tmp_path)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine._open()
        with pytest.raises(CheckpointError, match="has had no epoch yet"):
            read_status(tmp_path / "ck")
