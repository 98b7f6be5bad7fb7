"""Paths into nested JSON: what they mean, and what is refused when the stream is declared."""

import pytest

from levada.connectors.config.json_path import (
    MAX_STEPS,
    Steps,
    column_path,
    is_path,
    parse_iterator,
    show_steps,
)
from levada.connectors.config.stream_config import StreamConfig
from levada.errors import UsageError


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("temp", [("temp",)]),
        ("payload.temp", [("payload.temp",), ("payload", "temp")]),
        ("a.b.c", [("a.b.c",), ("a", "b", "c")]),
        ("a[0].b", [("a[0].b",), ("a", 0, "b")]),
        ("a['x.y']", [("a['x.y']",), ("a", "x.y")]),
        ("_id.$oid", [("_id.$oid",), ("_id", "$oid")]),
        ("$.a.b", [("a", "b")]),
        ("$['a.b']", [("a.b",)]),
        ("$[\"a\\u00e9\\n\"]['\\'\"']", [("aé\n", "'\"")]),
        ("@.a", [("a",)]),
        ("$", [()]),
        ("$id", [("$id",)]),
        ("@type", [("@type",)]),
        ("CO(GT)", [("CO(GT)",)]),
        ("Temperature [C]", [("Temperature [C]",)]),
        ("a..b", [("a..b",)]),
        (".a", [(".a",)]),
        ("a.", [("a.",)]),
        ("a[", [("a[",)]),
        ("a[01]", [("a[01]",)]),
        ("", [("",)]),
    ],
)
def test_a_name_of_a_column_has_places(name: str, places: list[Steps]) -> None:
    assert list(column_path(name).places) == places
    assert is_path(name) == (places != [(name,)])


@pytest.mark.parametrize(
    ("name", "iterator", "place"),
    [
        ("v", "items[*]", ("items", None, "v")),
        ("@", "items[*]", ("items", None)),
        ("@['a.b']", "items[*]", ("items", None, "a.b")),
        ("$.id", "items[*]", ("id",)),
        ("$.a[*].x", "a[*].b[*]", ("a", None, "x")),
        ("$.a[*].b[*].y", "a[*].b[*]", ("a", None, "b", None, "y")),
        ("v", "$", ("v",)),
    ],
)
def test_a_column_of_an_iterator_begins_at_its_element_or_at_the_record(
    name: str, iterator: str, place: Steps
) -> None:
    assert column_path(name, parse_iterator(iterator)).places[-1] == place


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("items[*]", ("items", None)),
        ("items.*", ("items", None)),
        ("[*]", (None,)),
        ("$[*].x", (None, "x")),
        ("$.a[*].b[*]", ("a", None, "b", None)),
        (" a.b ", ("a", "b")),
        ("$", ()),
    ],
)
def test_an_iterator_has_steps(text: str, steps: Steps) -> None:
    assert parse_iterator(text) == steps
    assert parse_iterator(show_steps(steps)) == steps


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a[-1]", "column 2: indices from the end ([-1]) are not supported"),
        ("$.a[1:2]", "column 4: slices ([a:b]) are not supported"),
        ("$.a[?@.x == 'y']", "column 4: filters ([?..]) are not supported"),
        ("$..a", "column 2: descendants (..) are not supported"),
        ("a['b', 'c']", "column 2: lists of selectors ([a, b]) are not supported"),
        ("$.a-b", "column 2: a name is expected"),
        ("$.", "column 2: a name is expected"),
        ("$['a]", "column 2: the brackets hold neither a number nor a name"),
        ("$['\\ud800']", "column 2: the name '\\ud800' has an escape that JSON has not"),
        ("items[*].price", "The path items[*].price has several values in a row"),
        (".".join("a" * (MAX_STEPS + 1)), f"has more than {MAX_STEPS} steps"),
    ],
)
def test_a_path_that_is_not_supported_is_refused_when_the_stream_is_declared(
    name: str, reason: str
) -> None:
    with pytest.raises(UsageError) as error:
        StreamConfig.from_options("s", "a.ndjson", schema={name: "integer", "ts": "integer"})
    assert reason in error.value.message and "The stream s" in error.value.message
    with pytest.raises(UsageError):
        StreamConfig.from_options("s", "a.ndjson", schema="v:integer", time=f"field:{name}")
    StreamConfig.from_options("s", "a.csv", schema={name: "integer", "ts": "integer"})


def test_a_schema_is_cut_outside_of_brackets() -> None:
    text = "$['a;b,c:d'].x:double;temp [C]:double,k:integer"
    config = StreamConfig.from_options("s", "a.ndjson", schema=text)
    names = ("$['a;b,c:d'].x", "temp [C]", "k")
    assert tuple(dict(config.schema)) == names
