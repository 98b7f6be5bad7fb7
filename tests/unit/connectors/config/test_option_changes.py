"""Options of a stream that differ between two runs: each has an effect, and a text for people."""

from dataclasses import fields
from typing import Any

import pytest

from levada.connectors.config.option_changes import EFFECTS, MIXING, Effect, option_changes
from levada.connectors.config.stream_config import StreamConfig

CSV = {"schema": "k:integer", "format": "csv"}


def changes(before: dict[str, Any], now: dict[str, Any], path: str = "s.nt") -> list[str]:
    first, second = (
        StreamConfig.from_options("s", path, **before),
        StreamConfig.from_options("s", path, **now),
    )
    return [str(change) for change in option_changes(first, second)]


def test_every_field_of_a_stream_has_an_effect() -> None:
    names = {field.name.rstrip("_") for field in fields(StreamConfig)}
    assert names - {"name", "settled"} == set(EFFECTS) - {"source"}


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ({}, {"unit": "s"}, "unit was ms and is s"),
        ({"lateness": "1m"}, {}, "lateness was PT1M and is PT0S"),
        ({}, {"idle": "2s"}, "idle was not set and is PT2S"),
        ({}, {"from": 1000}, "from was not set and is 1970-01-01T00:00:01Z"),
        ({}, {"unique": True}, "unique was false and is true"),
        (CSV, CSV | {"schema": "k:double"}, "schema was k:integer and is k:double"),
        (CSV, CSV | {"time": "field:at"}, "time was field:ts and is field:at"),
        ({}, {"format": "nq", "element": "graph"}, "format was nt and is nq"),
    ],
)
def test_a_change_names_the_old_and_the_new_value(
    before: dict[str, Any], now: dict[str, Any], text: str
) -> None:
    assert text in changes(before, now)
    assert not changes(before, dict(before))


def test_a_path_that_leads_to_the_same_place_is_no_change() -> None:
    config = StreamConfig.from_options("s", "in/s.nt")
    assert not option_changes(config, StreamConfig.from_options("s", "./in/../in/s.nt"))
    (change,) = option_changes(config, StreamConfig.from_options("s", "out/s.nt"))
    assert (change.option, change.effect) == ("path", Effect.SOURCE)


def test_another_kind_of_source_is_the_only_change() -> None:
    topic = StreamConfig.from_options("s", "kafka://127.0.0.1:9092/t", format="nt", lateness="1s")
    (change,) = option_changes(StreamConfig.from_options("s", "s.nt"), topic)
    assert str(change) == "source was files and is a topic of Kafka"
    assert change.effect in MIXING


def test_a_connection_says_which_of_its_options_changed() -> None:
    topic = "kafka://127.0.0.1:9092/t"
    assert changes({"format": "nt"}, {"format": "nt", "lost": "skip"}, topic) == [
        "lost was stop and is skip"
    ]
