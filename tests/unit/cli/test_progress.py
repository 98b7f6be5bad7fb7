"""Progress and summary: what they say, and where."""

import io
import json
from typing import Any

import pytest
from rich.console import Console

from levada.cli.errors import message_of, report
from levada.cli.progress import KERNELS, After, LiveLine, PlainLines, Waiting, choose
from levada.core.event_time import MAX, MIN, instant
from levada.engine.delivery.delivery_lag import OutputStatus
from levada.engine.status.summary import Progress, StreamCounts, Summary
from levada.errors import EngineError, UsageError


def console(terminal: bool = False) -> Any:
    return Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)


def text_of(shown: Any) -> Any:
    return shown.file.getvalue()


def moment(epochs: Any) -> Any:
    return Progress(epochs, 1000 * epochs, epochs, 2.0, {"a": 0, "b": 5000}, "a")


def test_the_line_of_a_moment() -> None:
    line = moment(3).line()
    assert (
        line
        == "epoch 3 · 3,000 elements · 1,500/s · 3 results · at 1970-01-01T00:00:00Z · a holds back"
    )
    assert Progress(0, 0, 0, 0.0).line() == "epoch 0 · 0 elements · 0/s · 0 results"


def test_a_plain_line_now_and_then() -> None:
    def told(most: float) -> list[int]:
        now = iter(range(1000))
        lines = PlainLines(shown := console(), lambda: next(now), most)
        for second in range(1, 100):
            lines(moment(second))
        lines.close()
        return [int(line.split()[1]) for line in text_of(shown).splitlines()]

    assert told(5.0)[:5] == [2, 6, 11, 16, 21]
    assert told(300.0) == [2, 6, 14, 30, 62]


def test_where_no_line_is_drawn_anew_it_is_said_once_what_is_awaited() -> None:
    clock = iter([0.0, 1.0, 3.0, 9.0, 10.0])
    shown = console()
    after = After(shown, Waiting(shown), lambda: None, lambda: next(clock))
    for _ in range(4):
        after(Progress(1, 9, 9, 2.0, waiting_for="The broker is away"))
    for n in (1, 2):
        after(Progress(1, 9, 9, 2.0, waiting_for=f"kernels are being compiled ({n} so far)"))
    after.close()
    assert text_of(shown).splitlines() == ["The broker is away", KERNELS]


def test_the_summary_says_which_output_has_not_had_all() -> None:
    away = OutputStatus("q", "kafka://h/t", 1, 5, "h is away.", blocks_intake=False)
    slow = OutputStatus("r", "postgresql://h/db#r", 2000, 5, "", blocks_intake=False)
    shown = console()
    shown.print(Summary(undelivered_outputs=(away.undelivered, slow.undelivered)))
    assert text_of(shown).splitlines()[-2:] == [
        "q: 1 report left to deliver by the next run on the checkpoint: h is away.",
        "r: 2,000 reports left to deliver by the next run on the checkpoint: postgresql://h/db#r "
        "has not taken all yet.",
    ]


def test_a_live_line_shows_each_moment_and_goes_away() -> None:
    shown = console(terminal=True)
    line = LiveLine(shown)
    line(moment(1))
    line(moment(2))
    assert "epoch 2 · 2,000 elements" in text_of(shown)
    before = len(text_of(shown))
    line.close()
    assert "\x1b[2K" in text_of(shown)[before:]


@pytest.mark.parametrize(
    ("terminal", "wanted", "shared", "kind"),
    [
        (True, None, False, LiveLine),
        (True, None, True, type(None)),
        (True, True, True, PlainLines),
        (True, False, False, type(None)),
        (False, None, False, PlainLines),
        (False, True, False, PlainLines),
        (False, False, False, type(None)),
    ],
)
def test_which_display(terminal: bool, wanted: Any, shared: bool, kind: Any) -> None:
    show = choose(console(terminal), wanted, lambda: 0.0, shared=shared)
    assert isinstance(show, kind)
    if show is not None:
        show.close()


SUMMARY = Summary(
    elements=2000,
    triples=6000,
    results=7,
    reports=5,
    epochs=2,
    late=1,
    dead_letters=3,
    query_results={"q[1]": 7},
    streams={
        "s": StreamCounts(2000, 6000, 1, 3, MAX),
        "t": StreamCounts(watermark=1500),
        "u": StreamCounts(),
    },
    wall_seconds=2.0,
    cpu_seconds=4.0,
    blocking_stream="t",
)


def test_the_summary_as_json() -> None:
    found = json.loads(SUMMARY.to_json())
    assert {name: stream["watermark"] for name, stream in found["streams"].items()} == {
        "s": "end",
        "t": 1500,
        "u": None,
    }
    assert (found["elements_per_second"], found["elements_per_cpu_second"]) == (1000.0, 500.0)
    assert (found["triples"], found["late"], found["dead_letters"], found["query_results"]) == (
        6000,
        1,
        3,
        {"q[1]": 7},
    )
    assert json.loads(Summary().to_json())["elements_per_second"] == 0.0


def test_summary_of_single_things_is_in_the_singular() -> None:
    shown = console()
    shown.print(Summary(elements=1, triples=1, results=1, reports=1, epochs=1))
    first = text_of(shown).splitlines()[0]
    assert first.startswith("1 element (1 triple) -> 1 result in 1 report, 1 epoch, 0.0 s")
    line = Progress(1, 1, 1, 2.0).line()
    assert line == "epoch 1 · 1 element · 0/s · 1 result"


def test_the_summary_for_people() -> None:
    shown = console()
    shown.print(SUMMARY)
    lines = text_of(shown).splitlines()
    assert (
        lines[0]
        == "2,000 elements (6,000 triples) -> 7 results in 5 reports, 2 epochs, 2.0 s (4.0 CPU-s)"
    )
    assert lines[1] == "1,000 elements/s, 500 per CPU-second; late 1, dead-lettered 3"
    assert lines[2] == "t holds the queries back."
    assert [line.split() for line in lines[4:7]] == [
        ["s", "2,000", "6,000", "1", "3", "end"],
        ["t", "0", "0", "0", "0", "1970-01-01T00:00:01.500Z"],
        ["u", "0", "0", "0", "0", "-"],
    ]
    assert lines[8].split() == ["q[1]", "7"]


def test_instants() -> None:
    assert [instant(ms) for ms in (0, -1, MIN, MAX)] == [
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999Z",
        "-",
        "end",
    ]
    assert instant(10**17) == "100000000000000000 ms"


def test_errors_for_people() -> None:
    usage = UsageError("No.", hint="Say yes.")
    usage.add_note("q1")
    assert message_of(usage) == "q1: No. Say yes."
    usage.add_note("Traceback of a task:\n  File ..")
    assert message_of(usage) == "q1: No. Say yes."
    out = io.StringIO()
    assert report(usage, debug=False, to=out) == 2
    assert report(EngineError("It broke."), debug=False, to=out) == 1
    assert report(ValueError("x"), debug=False, to=out) == 1
    assert out.getvalue().splitlines() == [
        "levada: q1: No. Say yes.",
        "levada: It broke.",
        "levada: Levada failed with ValueError: x. This is a fault of Levada; --debug shows where.",
    ]
