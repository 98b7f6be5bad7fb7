"""What cannot be: names, numbers and texts that are refused when they are said, each in a
sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.errors import LevadaError, QuerySyntaxError, UsageError
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, element

TEXT = (
    "SELECT ?s ?v FROM NAMED WINDOW <http://e/w> ON <http://e/s> [RANGE PT10S STEP PT10S] "
    "WHERE {{ WINDOW <http://e/w> {{ ?s ?p ?v }} {more} }}"
)


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    elements = [element(1000 * i, f"a{i} p {i}") for i in range(30)]
    with Engine(spark=False, partitions=1, sink=FileSink(tmp_path / "out", Format.NDJSON)) as made:
        made.stream(S, write_lines(tmp_path / "s.nt", elements))
        yield made


@pytest.mark.parametrize(
    "options",
    [
        {"epoch_rows": 0},
        {"epoch_rows": -1},
        {"epoch_rows": 1.5},
        {"epoch_rows": True},
        {"epoch_rows": "many"},
        {"epoch_rows": 10**30},
        {"partitions": 0},
        {"partitions": 10**9},
        {"seed": -1},
        {"seed": 2**64},
        {"epoch": -1},
        {"epoch": "1e999"},
        {"epoch": "9" * 400},
    ],
)
def test_numbers_of_an_engine_out_of_range_are_refused(options: Any) -> None:
    with pytest.raises(UsageError, match=r"no whole number from|is not a duration|longer than any"):
        Engine(spark=False, **options)


@pytest.mark.parametrize("option", ["lateness", "ahead", "limit", "idle"])
@pytest.mark.parametrize("value", [-1, "x", 10**30, "9" * 400, float("nan"), float("inf")])
def test_numbers_of_a_stream_out_of_range_are_refused(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{option} of the stream s: "):
        StreamConfig.from_options("s", "s.nt", **{option: value})


@pytest.mark.parametrize("option", ["from", "to"])
@pytest.mark.parametrize("value", ["x", 10**30, float("nan"), "99999-01-01T00:00:00Z"])
def test_times_of_a_stream_out_of_range_are_refused(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{option} of the stream s: "):
        StreamConfig.from_options("s", "s.nt", **{option: value})


@pytest.mark.parametrize("text", [TEXT, "Select * From s [Range 5 \ud800 Seconds]"])
def test_half_a_character_is_refused_at_its_place(engine: Engine, text: str) -> None:
    wrong = text.format(more='\nFILTER(?v != "\udc00")') if "{" in text else text
    with pytest.raises(QuerySyntaxError, match="is half of a character") as told:
        engine.register(wrong, dialect="cql" if wrong.startswith("Select") else None)
    assert told.value.span is not None
    assert told.value.span.line == wrong.count("\n") + 1
    assert str(told.value).encode()  # it can be printed
    assert engine.queries() == []


@pytest.mark.parametrize("filters", [300, 3_000])
def test_thousands_of_filters_are_answered(engine: Engine, filters: int) -> None:
    more = " ".join(f"FILTER(?v != {i + 1})" for i in range(filters))
    hot = engine.register(TEXT.format(more=more))
    engine.start(once=True)
    assert [row for report in hot.results() for row in report.rows.rows()] == [
        ("<http://e/a0>", '"0"^^<http://www.w3.org/2001/XMLSchema#integer>')
    ]


def test_what_is_too_deep_at_any_stage_is_refused(engine: Engine) -> None:
    depth = 240
    more = (
        "{ " * depth
        + "?s ?p ?v "
        + " ".join(f"FILTER(?v != {i})" for i in range(150))
        + "}" * depth
    )
    try:
        engine.register(TEXT.format(more=more))
    except LevadaError as error:
        assert "nested too deeply" in str(error)


@pytest.mark.parametrize(
    "name", ["../../x", "..", ".", "a/b", "a,b", "a\nb", "", "late", "\ud800", "q" * 300, "é" * 150]
)
def test_names_that_are_no_folders_are_refused(engine: Engine, name: str) -> None:
    with pytest.raises(UsageError, match="name"):
        engine.register_all(asked(name or "\0"))


def asked(name: str) -> Any:
    from levada.engine.query_request import QueryRequest
    from levada.plan.logical.query_options import QueryOptions

    return [QueryRequest(TEXT.format(more=""), name, None, QueryOptions())]


@pytest.mark.parametrize("name", ["a b", "a,b", "http://e/\n", "http://e/\ud800", "../x", "1", ""])
def test_names_that_are_no_streams_are_refused(engine: Engine, name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a name of a stream"):
        engine.stream(name, tmp_path / "s.nt")


def test_long_names_have_results(engine: Engine, tmp_path: Path) -> None:
    name = "é" * 100
    engine.register(TEXT.format(more=""), name=name)
    engine.start(once=True)
    engine.await_end()
    assert len(list((tmp_path / "out" / name).iterdir())) > 0


def test_names_that_differ_by_case_only_are_refused(engine: Engine) -> None:
    hot = engine.register(TEXT.format(more=""), name="hot")
    for other in ("Hot", "HOT"):
        with pytest.raises(UsageError, match=f"{other} differs from hot by case only"):
            engine.register(TEXT.format(more=""), name=other)
    with pytest.raises(UsageError, match="There is a query hot already"):
        engine.register(TEXT.format(more=""), name="hot")
    engine.unregister(hot)
    engine.register(TEXT.format(more=""), name="HOT")
    with pytest.raises(UsageError, match="differs from B by case only"):
        engine.register_all([*asked("B"), *asked("b")])
    assert engine.queries() == ["HOT"]
