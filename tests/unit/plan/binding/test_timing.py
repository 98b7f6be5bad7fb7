"""Which windows and streams decide when rows count, and when a query reports."""

from levada.core.event_time import WindowKind
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.binding.leaves import STATIC, Timing
from levada.plan.logical.nodes import Query
from levada.plan.logical.query_options import QueryOptions

TEXT = """SELECT * FROM NAMED WINDOW <w> ON <http://e/s> [RANGE PT4S STEP PT2S]
FROM NAMED WINDOW <v> ON <http://e/t> [RANGE PT3S]
WHERE { WINDOW <w> { ?x <http://e/p> ?y } WINDOW <v> { ?x <http://e/q> ?z } }"""
CLOSE, RANGE, CLOCK = WindowKind.CLOSE_OPEN, WindowKind.RANGE, WindowKind.CLOCK


def asked(options: QueryOptions | None = None) -> Query:
    return translate(parse(TEXT), options or QueryOptions(), text=TEXT)


def test_rows_count_by_the_windows_whose_times_they_carry() -> None:
    member = Timing(asked(), 7, False).member_of_rows((1, 0))
    assert [w.kind for w in member.windows] == [RANGE, CLOSE]
    assert (member.streams, member.start) == (("http://e/t", "http://e/s"), 7)
    assert not member.show_empty


def test_reports_are_those_of_all_windows_and_of_nothing_else() -> None:
    timing = Timing(asked(), 0, True)
    member = timing.member_of_reports((0, 1))
    assert timing.kinds((0, 1)) == tuple(w.kind for w in member.windows) == (CLOSE, RANGE)
    assert member.show_empty and not member.nonempty


def test_a_clock_stands_behind_the_windows_and_has_no_stream() -> None:
    timing = Timing(asked(QueryOptions(period=1500, nonempty=True)), 0, False)
    member = timing.member_of_reports((0, 1))
    assert timing.kinds((0, 1)) == (CLOSE, RANGE, CLOCK)
    assert member.streams == ("http://e/s", "http://e/t", "")
    assert member.nonempty


def test_static_graphs_that_may_be_replaced_come_last_and_only_where_rows_have_their_times() -> (
    None
):
    timing = Timing(asked(QueryOptions(period=1500)), 0, False)
    plain, carried = (
        timing.member_of_reports((0, 1), (0, 1)),
        timing.member_of_reports((0, 1), (0, 2)),
    )
    assert carried.windows == (*plain.windows, STATIC.window)
    assert timing.places((0, 1), (0, 2)) == (0, 3), "behind the clock"
    assert Timing(asked(), 0, False).places((0, 1), (1, 2)) == (1, 2)


def test_a_part_without_windows_is_answered_once_and_when_its_graphs_change() -> None:
    member = (
        Timing(asked(QueryOptions(period=1500)), 5, False)
        .without_windows((None,))
        .member_of_reports(())
    )
    assert (member.windows, member.streams, member.show_empty) == ((), (), True)
    assert (member.start, member.reread_graphs) == (5, (None,))
