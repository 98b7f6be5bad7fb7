"""A stream's configuration is valid from birth, and wrong words are sentences."""

import datetime
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.config.input_formats import format_of
from levada.connectors.config.stream_config import StreamConfig
from levada.core.event_time import parse_duration, parse_time
from levada.errors import UsageError


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("100ms", 100),
        ("1s", 1000),
        ("1.5s", 1500),
        ("1m", 60_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("250", 250),
        (250, 250),
        (0, 0),
        ("PT1S", 1000),
        ("PT0.25S", 250),
        ("P1DT1H1M", 90_060_000),
        ("P1W", 604_800_000),
    ],
)
def test_durations(text: Any, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text", ["P1M", "P1Y", "P1YT1H", "-5s", "5 parsecs", "", "P", "PT", "0.5ms", "10,s"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


def test_months_are_named() -> None:
    with pytest.raises(UsageError, match="no fixed length"):
        parse_duration("P1M")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2013-01-01T05:00:00Z", 1_357_016_400_000),
        ("2013-01-01T05:00:00", 1_357_016_400_000),
        ("2013-01-01T05:00:00.250+01:00", 1_357_012_800_250),
        ("2013-01-01", 1_356_998_400_000),
        ("-5", -5),
        (17, 17),
        (datetime.datetime(2013, 1, 1, 5), 1_357_016_400_000),
        (datetime.date(2013, 1, 1), 1_356_998_400_000),
    ],
)
def test_times(text: Any, ms: int) -> None:
    assert parse_time(text) == ms


@pytest.mark.parametrize(
    "text", ["yesterday", "", "2013-13-01", "2013-02-30T00:00:00Z", "05:00", "2013-W01"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="no"):
        parse_time(text)


@pytest.mark.parametrize(
    ("path", "format"),
    [("a.nt", "nt"), ("a.NQ.gz", "nq"), ("x/*.csv", "csv"), ("p.parquet", "parquet"), ("a", None)],
)
def test_formats_by_ending(path: str, format: Any) -> None:
    assert format_of(path) == format


def test_defaults() -> None:
    config = StreamConfig.from_options("s", "a.nt")
    assert (config.time, config.unit, config.lateness, config.element, config.files) == (
        "column",
        "ms",
        0,
        "line",
        "sequence",
    )
    assert (config.idle, config.from_, config.to, config.limit, config.ahead) == (
        None,
        None,
        None,
        None,
        1_000_000,
    )
    assert config.timed and not config.quads and not config.tabular and not config.bounded


def test_all_options_from_words_and_from_yaml_are_the_same() -> None:
    words = StreamConfig.from_options(
        "s",
        "a.csv",
        schema="k:integer; v:double",
        unique="true",
        idle="30s",
        ahead="10",
        limit="7",
        **{"from": "1970-01-01", "to": "5000"},
    )
    yaml = StreamConfig.from_options(
        "s",
        "a.csv",
        schema={"k": "integer", "v": "double"},
        unique=True,
        idle=30_000,
        ahead=10,
        limit=7,
        from_=datetime.date(1970, 1, 1),
        to=5000,
    )
    assert words == yaml
    assert words.time == "field:ts" and words.bounded
    assert hash(words) == hash(yaml)


def test_a_predicate_loses_its_brackets() -> None:
    config = StreamConfig.from_options(
        "s", "a.nt", time="predicate:<http://e/t>", element="subject", unit="s"
    )
    assert (config.time_kind, config.time_argument, config.unit_power) == (
        "predicate",
        "http://e/t",
        3,
    )


def test_the_format_of_a_directory_is_that_of_its_files(tmp_path: Path) -> None:
    assert StreamConfig.from_options("s", tmp_path).format == "nt"
    assert StreamConfig.from_options("s", tmp_path, element="graph").format == "nq"
    assert StreamConfig.from_options("s", tmp_path, schema="k:integer").format == "csv"
    (tmp_path / "a.nq.gz").touch()
    assert StreamConfig.from_options("s", tmp_path).format == "nq"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"formt": "nt"}, "Did you mean format"),
        ({"format": "ntt"}, "Did you mean"),
        ({"time": "colum"}, "Did you mean column"),
        ({"time": "predicate"}, "predicate:IRI"),
        ({"time": "predicate:http://e/t"}, "element=subject"),
        ({"time": "filename:[0-9]+"}, "no group"),
        ({"time": "filename:("}, "not a regular expression"),
        ({"time": "graph"}, "format=nq"),
        ({"element": "graph"}, "format=nq"),
        ({"time": "field:ts"}, "csv, ndjson, json, parquet"),
        ({"time": "column:x"}, "colon"),
        ({"schema": "k:integer"}, "csv, ndjson, json, parquet"),
        ({"format": "csv"}, "schema=k:integer;v:double"),
        ({"format": "csv", "schema": "k:int"}, "integer"),
        ({"format": "csv", "schema": "k:integer;k:double"}, "twice"),
        ({"format": "csv", "schema": "k:integer", "element": "subject"}, "rows"),
        ({"format": "csv", "schema": "k:integer", "time": "graph"}, "time=field:NAME"),
        ({"lateness": "soon"}, "lateness of the stream s"),
        ({"idle": 0}, "not positive"),
        ({"unique": "maybe"}, "neither true nor false"),
        ({"limit": 0}, "no whole number from 1"),
        ({"limit": 5, "files": "parallel"}, "files=sequence"),
        ({"from": 5, "to": 5}, "not before"),
        ({"unit": "min"}, "none of ms, s"),
    ],
)
def test_wrong_words_say_what_would_be_right(options: Any, says: str) -> None:
    with pytest.raises(UsageError) as error:
        StreamConfig.from_options("s", "a.nt", **options)
    assert says in str(error.value)


def test_an_unknown_ending_asks_for_the_format() -> None:
    with pytest.raises(UsageError, match="format=nt"):
        StreamConfig.from_options("s", "data.bin")


def test_a_stream_needs_a_name_and_a_path() -> None:
    with pytest.raises(UsageError, match="NAME=PATH"):
        StreamConfig.from_options("", "a.nt")


def test_the_sign_of_a_relation_is_no_column_that_queries_see() -> None:
    config = StreamConfig.from_options("r", "r.csv", schema="k:integer", sign="s")
    assert (config.schema, config.columns) == (
        (("k", "integer"), ("s", "string")),
        {"k": "integer"},
    )
    assert StreamConfig.from_options(
        "r", "r.csv", schema="k:integer;s:string", sign="s"
    ).columns == {"k": "integer"}


@pytest.mark.parametrize(
    ("path", "options"), [("r.csv", {"schema": "k:integer", "sign": "k"}), ("r.nt", {"sign": "s"})]
)
def test_what_is_no_sign(path: str, options: Any) -> None:
    with pytest.raises(UsageError, match="is no string column of a tuple stream"):
        StreamConfig.from_options("r", path, **options)


@pytest.mark.parametrize(
    ("word", "hint"),
    [("ca", "Say tls_ca=FILE."),
     ("key", "Say message_key=COLUMN for the keys of messages, or tls_key=FILE.")],
)  # fmt: skip
def test_an_option_of_tls_without_its_prefix_has_a_hint(word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"has no option {word}") as error:
        StreamConfig.from_options("s", "kafka://h:1/t", format="nt", **{word: __file__})
    assert error.value.hint == hint
    config = StreamConfig.from_options(
        "s", "kafka://h:1/t", format="nt", tls="true", tls_ca=__file__
    )
    assert config.kafka is not None and config.kafka.ca == __file__


@pytest.mark.parametrize("scheme", ["kafka", "mqtt", "sse+http", "ws", "s3", "postgresql"])
def test_a_refused_address_is_shown_without_its_user_and_query(scheme: str) -> None:
    with pytest.raises(UsageError) as refused:
        StreamConfig.from_options("s", f"{scheme}://u:word@h/t?token=word", format="nt")
    assert f"{scheme}://...@h/t" in str(refused.value) and "word@" not in str(refused.value)
    assert "token" not in str(refused.value)


@pytest.mark.parametrize("schema", [[1, [2]], ["ab"], [["k", "integer", 1]]])
def test_a_schema_that_is_a_list_has_pairs(schema: list[Any]) -> None:
    with pytest.raises(UsageError, match=r"schema of the stream s: a list of columns has pairs"):
        StreamConfig.from_options("s", "a.csv", schema=schema)
