"""Texts by identity, and rows that wait for their reports."""

from __future__ import annotations

from collections.abc import Iterable
from unittest.mock import patch

import numpy as np
import polars as pl

from levada.core.event_time import MAX
from levada.core.frame import Frame
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.reporting import report_buffer
from support.operator_nodes import state


def table(*texts: str) -> Terms:
    """The terms of these texts, by identities of seed 7."""
    pool = TermLookup(7)
    pool.identify(pl.Series(texts, dtype=pl.String))
    return pool.tables[0]


def test_unbound_and_unknown_have_no_text() -> None:
    pool = TermLookup(7)
    x, y = pool.identify(pl.Series(["<a:b>", None, "<a:b>"]))
    assert pool.texts(x, y).to_list() == ["<a:b>", None, "<a:b>"]
    assert (x[1], y[1]) == (0, 0)
    assert TermLookup(7).texts(x, y).to_list() == [None, None, None]


def test_the_state_is_opened_only_for_what_the_epoch_lacks() -> None:
    opened = []

    def older() -> Iterable[Terms]:
        opened.append(1)
        return [table("<a:old>")]

    pool = TermLookup(7, older)
    x, y = pool.identify(pl.Series(["<a:new>"]))
    assert pool.texts(x, y).to_list() == ["<a:new>"]
    assert not opened
    known = table("<a:old>")
    for _ in range(2):
        assert pool.texts(known.x, known.y).to_list() == ["<a:old>"]
    assert opened == [1]


def test_a_pick_holds_exactly_what_is_asked_for() -> None:
    pool = TermLookup(7)
    x, y = pool.identify(pl.Series(["<a:a>", "<a:b>", "<a:c>"]))
    picked = pool.pick(x[[2, 0, 2]], y[[2, 0, 2]])
    assert sorted(picked.texts(picked.x, picked.y).to_pylist()) == ["<a:a>", "<a:c>"]


def waiting(*spans: tuple[int, int]) -> Frame:
    s, e = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    return Frame({"op": np.zeros(len(s), np.int32), "#s": s, "#e": e})


def test_a_pick_looks_up_each_table_once() -> None:
    pool = TermLookup(0)
    x, y = pool.identify(pl.Series(['"a"', '"b"', '"c"']))
    with patch.object(Terms, "find", autospec=True, side_effect=Terms.find) as find:
        picked = pool.pick(x[1:], y[1:])
    assert find.call_count == 1
    assert picked.texts(x[1:], y[1:]).to_pylist() == ['"b"', '"c"']


def test_waiting_rows_are_dropped_by_pieces_when_all_have_left() -> None:
    kept = state()
    report_buffer.remember(kept, "x", waiting((0, 10), (0, 30)))
    report_buffer.remember(kept, "x", waiting((5, 20)))
    report_buffer.forget(kept, "x", np.array([20]))
    assert [f["#e"].tolist() for f in report_buffer.recall(kept, "x")] == [[10, 30]]
    report_buffer.forget(kept, "x", np.array([30]))
    assert not report_buffer.recall(kept, "x")


def test_pieces_are_put_together_without_the_dead() -> None:
    kept = state()
    for at in range(40):
        report_buffer.remember(kept, "x", waiting((at, at + 15)))
        report_buffer.forget(kept, "x", np.array([at]))
        ends = sorted(e for f in report_buffer.recall(kept, "x") for e in f["#e"].tolist())
        assert set(range(max(at + 1, 15), at + 16)) <= set(ends)
        assert len(ends) == len(set(ends))
        assert len(kept.pieces("x")) <= 8


def test_what_is_put_together_does_not_grow_with_what_is_kept() -> None:
    kept, low, written = state(), np.array([0]), 0
    for at in range(1, 1001):
        before = {p.name for p in kept.pieces("x")}
        report_buffer.remember(kept, "x", waiting((at, 10_000)))
        report_buffer.forget(kept, "x", low)
        written += sum(p.rows for p in kept.pieces("x") if p.name not in before)
        assert len(kept.pieces("x")) <= 3 + np.log2(at)
    assert written < 1000 * np.log2(1000)


def test_rows_that_count_at_no_later_report_are_not_kept() -> None:
    rows = waiting((0, 5), (0, 6), (0, 7))
    assert report_buffer.rows_after(rows, np.array([5]))["#e"].tolist() == [7]
    timed = report_buffer.rows_by_interval(
        Frame({"op": np.zeros(2, np.int32), "lo0": np.zeros(2, np.int64)}),
        np.array([1, 3]),
        np.array([2, 3]),
    )
    assert (timed.n, list(timed.columns)) == (1, ["op", "#s", "#e"])


def test_rows_that_were_taken_back_do_not_pile_up() -> None:
    """Each row of a window of the last one is taken back by the next; what is there is the last one
    alone.
    """
    kept, low = state(), np.array([0], np.int64)
    for ts in range(1, 200):
        ids, weights = np.array([ts, ts - 1], np.uint64), np.array([1, -1], np.int8)
        times = {"#s": np.full(2, ts, np.int64), "#e": np.full(2, 2**62, np.int64)}
        rows = Frame({"op": np.zeros(2, np.int32), "x0": ids, "y0": ids, "w": weights, **times})
        report_buffer.remember(kept, "x", rows.where(ids > 0))
        low[0] = ts
        report_buffer.forget(kept, "x", low)
    found = report_buffer.recall(kept, "x")
    assert sum(f.n for f in found) < 40
    total = {int(i): 0 for f in found for i in f["x0"]}
    for f in found:
        for i, w in zip(f["x0"].tolist(), f["w"].tolist(), strict=True):
            total[i] += w
    assert {i for i, n in total.items() if n} == {199}


def test_rows_of_members_that_are_gone_are_dropped_whenever_they_would_leave() -> None:
    """``Calendar.last_made`` says MAX of them."""
    kept, made = state(), np.array([0, MAX], np.int64)
    for at in range(120):
        rows = waiting((at, MAX), (at, MAX))
        report_buffer.remember(kept, "x", rows.with_(op=np.array([0, 1], np.int32)))
        report_buffer.forget(kept, "x", np.array([0, 0]) if at < 20 else made)
    members = np.concatenate([f["op"] for f in report_buffer.recall(kept, "x")])
    assert (members == 0).sum() == 120
    assert (members == 1).sum() < 10
