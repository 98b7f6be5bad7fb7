"""How far ahead of the clock an event time may be, and who is told to have made others late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.epoch_context import SourceReport
from levada.checkpoint.manifest import Lead, StreamRecord
from levada.cli.app.app_file import load_app
from levada.cli.app_builder import CommandArguments, assemble
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.lateness import AdmissionBounds, future
from levada.core.clock import CLOCK
from levada.engine.engine import Engine
from levada.engine.status.status import counts_of

HOUR = 3_600_000
CQL = "Rstream(Select v From S [Now])"


def run(path: Path, rows: list[tuple[int, int]], **options: Any) -> tuple[Any, list[str]]:
    """The record of a stream of these rows (time, value), read one an epoch; why some are dead."""
    path.mkdir()
    file = path / "a.csv"
    file.write_text("ts,v\n" + "".join(f"{ts},{v}\n" for ts, v in rows))
    with Engine(spark=False, epoch_rows=1, letters=path / "out", checkpoint=path / "c") as engine:
        engine.stream("S", file, schema={"v": "integer"}, **options)
        engine.register(CQL, dialect="cql")
        engine.start(once=True)
        engine.await_end()
        letters = sorted((path / "out" / "dead-letter").glob("*.ndjson"))
        found = [json.loads(line) for each in letters for line in each.read_text().splitlines()]
        return engine._records()["S"], [letter["reason"] for letter in found]


@pytest.mark.parametrize(
    ("options", "ahead", "reason"),
    [
        ({}, 20 * HOUR, ""),
        ({}, 25 * HOUR, "more than a day ahead of the clock"),
        ({"max_future": "1h"}, HOUR // 2, ""),
        ({"max_future": "1h"}, 2 * HOUR, "more than PT1H ahead of the clock"),
        ({"max_future": "90d"}, 80 * 24 * HOUR, ""),
    ],
)
def test_a_time_beyond_the_limit_is_a_dead_letter(
    tmp_path: Path, options: Any, ahead: int, reason: str
) -> None:
    now = CLOCK()
    record, reasons = run(tmp_path / "in", [(now, 1), (now + ahead, 2), (now + 1, 3)], **options)
    if reason:
        assert (record.elements, record.late, record.dead_letters) == (2, 0, 1)
        assert reason in reasons[0]
    else:
        assert (record.elements, record.late, record.dead_letters) == (2, 1, 0)


def test_the_element_that_made_others_late_is_named(tmp_path: Path) -> None:
    record, _ = run(
        tmp_path / "in", [(1000, 1), (5_000_000, 2), (2000, 3), (3000, 4), (6_000_000, 5), (7, 6)]
    )
    assert (record.elements, record.late) == (3, 3)
    said = counts_of(record).late_cause
    assert "2 elements were late behind the one at a.csv, byte 12, of 1970-01-01T01:23:20Z" in said
    orderly, _ = run(tmp_path / "other", [(1000, 1), (2000, 2)])
    assert counts_of(orderly).late_cause == ""


def test_a_lead_is_one_of_the_partition_that_is_least_far() -> None:
    record = StreamRecord()
    far, near = (
        SourceReport(0, name, ts, elements=1, lead=name) for name, ts in (("far", 90), ("near", 10))
    )
    record = record.add([far, near], [], 7)
    assert record.lead == Lead("near", 10, 7)
    record = record.add([SourceReport(0, "near", 20, late=2, lead="b")], [], 8)
    assert (record.lead, record.costliest_lead) == (Lead("b", 20, 8), Lead("near", 10, 7, late=2))
    record = record.add([SourceReport(0, "far", 95, late=1, lead="c")], [], 9)
    assert record.lead == Lead("b", 20, 8, late=1)


def test_the_limit_of_a_run_is_for_streams_that_do_not_say(tmp_path: Path) -> None:
    found = assemble(CommandArguments(options={"max_future": "1h"})).options
    assert found.max_future == HOUR
    (tmp_path / "app.yaml").write_text("options: {max_future: 2h}\n")
    assert load_app(tmp_path / "app.yaml").options.max_future == 2 * HOUR
    config = StreamConfig.from_options("s", "a.nt", max_future="10m")
    assert (config.future_ms, StreamConfig.from_options("s", "a.nt").future_ms) == (
        600_000,
        24 * HOUR,
    )


def test_what_arrives_has_the_time_of_the_clock_whatever_the_limit() -> None:
    from levada.connectors.sources.splits import FileSplit

    config = StreamConfig.from_options("s", "a.nt", max_future="1h", time="arrival")
    reference = FileSplit("s", "s", "a", "/x", "nt", 0, 1, 0, 1, 0)
    gate = AdmissionBounds.for_split(config, reference, 0, 5 * HOUR)
    assert (gate.arrived, gate.future) == (4 * HOUR, future(HOUR))
