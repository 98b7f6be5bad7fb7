"""Which ways of the engine a case takes: operators of its plans by kinds, and what befalls them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from levada.operators.windowed import split_heavy_keys
from levada.plan.execution import steps as s
from levada.plan.topology.topology import Topology
from levada.runtime.cost_model import plan_migrations
from oracle.case import Case
from oracle.queries import Query

STEPS: dict[type[Any], str] = {
    s.RelaxedStream: "relaxed side in common",
    s.ArrangeStream: "side of streams in common",
    s.ArrangedReportJoin: "static right side in common",
    s.StreamJoin: "",
    s.ArrangedJoin: "static rows in common",
    s.Numbered: "joined by number",
    s.CountWindow: "count window",
    s.Session: "session",
    s.MultiwayJoin: "joined at once",
    s.LinkedJoin: "chain or circle at once",
    s.Panes: "panes",
    s.Running: "running groups",
    s.RGroup: "groups of reports",
    s.ReportJoin: "join of reports",
    s.Snapshot: "relation",
}
"""What operators are told by; of a class and one that it is made of the first."""


def of_plan(topology: Topology, sharing: str) -> set[str]:
    """The kinds of operators that there are."""
    found = set[str]()
    for node in topology.graph.nodes.values():
        step = node.shape.step
        if not len(node.members.index):
            continue
        found.add(next((name for kind, name in STEPS.items() if isinstance(step, kind)), ""))
        if isinstance(step, s.ByWindow) or _has_twice(step):
            found.add("one window and several")
        if isinstance(step, s.RangedChanges) and len(node.members.index) > 1:
            found.add("ranges of one operator")
        if isinstance(step, s.Join) and step.relaxed:
            found.add("family" if sharing == "containment" else "relaxed join")
        if isinstance(step, s.Pick):
            below = topology.graph.nodes[node.inputs[0]].shape.step
            found.add("pick above reports" if isinstance(below, s.Report) else "pick")
    return found - {""}


def _has_twice(step: s.Step) -> bool:
    """Whether several times of a row are of one window."""
    rows = step.rows if isinstance(step, s.Report | s.Panes | s.Changes | s.Deltas) else ()
    return len({*(rows or ())}) < len(rows or ())


def of_case(case: Case) -> set[str]:
    """What is asked of an engine."""
    found, every = set[str](), [one.query for one in case.coming]
    queries = [query for query in every if isinstance(query, Query)]
    if any(query.row is not None for query in queries):
        found.add("rows of a table")
    if any(stream not in case.streams for query in every for stream in query.streams):
        found.add("made stream")
    if len(queries) < len(every):
        found.add("CQL")
    return found


@contextmanager
def befallen(found: set[str]) -> Iterator[None]:
    """Notes what is divided, and which queries go over to other orders of joins, meanwhile."""
    own_rows, finish = split_heavy_keys.own_rows, plan_migrations.finish

    def divided(*args: Any) -> Any:
        rows = own_rows(*args)
        if rows is not None:
            found.add("divided group")
        return rows

    def finished(*args: Any) -> None:
        found.add("switch of orders")
        finish(*args)

    with (
        patch.object(split_heavy_keys, "own_rows", divided),
        patch.object(plan_migrations, "finish", finished),
    ):
        yield
