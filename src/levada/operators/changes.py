"""IStream, DStream and relations: what begins and what ends at each report (design, section 1, "Output").

A solution row that counts in [s, e) begins at s and ends at e, both report times. Per (member, solution, report) beginnings
and ends are netted as bags: what is left above zero is inserted, below zero deleted. Report rows count from their report to
the next one. Where nothing can cancel (``certain``) rows pass at their start and are not remembered.
"""

from __future__ import annotations

import numpy as np

from levada.algebra.nodes import Output
from levada.kernels.groups import group
from levada.kernels.sums import net
from levada.model.frame import Frame, concat
from levada.model.terms import Terms
from levada.model.time import MAX, Times
from levada.operators import live
from levada.operators.calendar import Calendar
from levada.operators.pool import Pool
from levada.operators.rows import key_of, with_report
from levada.plan import shapes as s
from levada.plan.layout import Facet
from levada.plan.topology import PlanNode
from levada.windows.intervals import exact
from levada.windows.pieces import State


def changes(node: PlanNode, state: State, frame: Frame | None, calendar: Calendar, pool: Pool) -> Frame | None:
    """The differences at the due reports: rows with ``r`` and, unless certain, ``w`` = +1 (insert) or -1 (delete)."""
    step = node.step
    assert isinstance(step, s.Changes), "changes"
    key = f"{node.id}.live"
    if frame is None and not calendar.any_due:
        return None
    rows = _spans(node, step, state, frame, calendar, key)
    low, high = calendar.low, calendar.high
    begins = [_at(f, f["#s"], 1, low, high) for f in rows]
    if step.certain:
        _keep(state, key, [f.where(f["#s"] > high[f["op"]]) for f in rows if f.n], Terms.empty())
        out = [b for b in begins if b.n]
        return _plain(concat(out)) if out else None
    ends = [_at(f, f["#e"], -1, low, high) for f in rows]
    kept = [f.where((f["#e"] > high[f["op"]]) & (f["#e"] > f["#s"])) for f in rows if f.n]
    _keep(state, key, kept, _own_terms(node, step, kept, pool))
    events = [e for e in (*begins, *ends) if e.n]
    return _net(node, step, concat(events)) if events else None


def _spans(
    node: PlanNode, step: s.Changes, state: State, frame: Frame | None, calendar: Calendar, key: str
) -> list[Frame]:  # fmt: skip
    """Remembered and new rows with #s, #e; report rows whose end was not known look again."""
    rows = live.recall(state, key)
    if step.rows is None:
        if frame is not None and frame.n:
            columns = {n: c for n, c in frame.columns.items() if n != "r"}
            rows.append(Frame({**columns, "#s": frame["r"], "#e": np.full(frame.n, MAX, np.int64)}, frame.n))
        return [f.with_(**{"#e": _ends(f, step, calendar)}) for f in rows]
    if frame is not None:
        rows.append(live.timed(frame, *exact(frame, node.input_layouts[0], node.windows, step.rows)))
    return rows


def _ends(rows: Frame, step: s.Changes, calendar: Calendar) -> Times:
    e = rows["#e"].copy()
    open_ = np.flatnonzero(e >= MAX)
    e[open_] = calendar.after(rows["op"][open_], rows["#s"][open_], step.listed)
    return e


def _keep(state: State, key: str, rows: list[Frame], terms: Terms) -> None:
    """What is remembered is small beside the window's rows; it is one piece, written anew."""
    kept = [f for f in rows if f.n]
    state.replace(key, [])
    if kept:
        live.remember(state, key, concat(kept), terms)


def _own_terms(node: PlanNode, step: s.Changes, rows: list[Frame], pool: Pool) -> Terms:
    """Report rows outlive the rows that they came from by one report, so their texts are kept with them."""
    kept = [f for f in rows if f.n]
    slots = [i for i, facets in enumerate(node.layout.slots) if Facet.TEXT in facets]
    if step.rows is not None or not kept or not slots:
        return Terms.empty()
    x = np.concatenate([f[f"x{i}"] for f in kept for i in slots])
    y = np.concatenate([f[f"y{i}"] for f in kept for i in slots])
    return pool.pick(x, y)


def _at(rows: Frame, at: Times, sign: int, low: Times, high: Times) -> Frame:
    """The events of rows at times ``at`` that are due: beginnings and ends of rows that count at all."""
    op = rows["op"]
    now = np.flatnonzero((at > low[op]) & (at <= high[op]) & (at < MAX) & (rows["#s"] < rows["#e"]))
    taken = rows.take(now)
    weight = taken["w"].astype(np.int64) if "w" in taken else np.ones(taken.n, np.int64)
    return taken.with_(r=at[now], w=weight * sign)


def _plain(rows: Frame) -> Frame:
    return Frame({n: c for n, c in rows.columns.items() if n != "w" and not n.startswith("#")}, rows.n)


def _net(node: PlanNode, step: s.Changes, events: Frame) -> Frame | None:
    key = with_report(key_of(events, range(len(node.layout.slots))), events)
    codes, first = group(*key)
    weights = net(codes, events["w"], len(first))
    if step.output is Output.ISTREAM:
        weights = np.maximum(weights, 0)
    elif step.output is Output.DSTREAM:
        weights = np.minimum(weights, 0)
    at = np.repeat(first, np.abs(weights))
    if not len(at):
        return None
    signs = np.repeat(np.sign(weights), np.abs(weights)).astype(np.int8)
    return _plain(events.take(at)).with_(w=signs)
