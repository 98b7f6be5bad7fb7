"""Which operator evaluates which step: the one table between plan and operators."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from levada.model.frame import Frame, concat
from levada.operators.border.changes import changes, deltas, net
from levada.operators.border.report import report
from levada.operators.border.snapshot import snapshot
from levada.operators.group.by_changes import running
from levada.operators.group.multiplicity import rexcept, tally
from levada.operators.group.panes import panes, rgroup
from levada.operators.interval.count_window import last, select
from levada.operators.interval.count_window_by_key import last_by
from levada.operators.interval.join import join
from levada.operators.interval.occur import occur
from levada.operators.interval.session import session
from levada.operators.interval.static_side import ALWAYS, lasting, once
from levada.operators.interval.subquery_window import lift
from levada.operators.per_report.closure import closure
from levada.operators.per_report.join import rjoin, rleft, rsemi
from levada.operators.per_report.order_and_distinct import distinct, order
from levada.operators.rows.compute import extend, filter_
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import PlanNode
from levada.terms.identity import identify_one
from levada.windows.state.runs import Run

if TYPE_CHECKING:
    from levada.runtime.task.stage import StageRun


def evaluate_node(run: StageRun, node: PlanNode, frames: list[Frame | None]) -> Frame | None:
    """The new output rows of a node, from its inputs' new rows and its state."""
    step = node.step
    first = frames[0]
    match step:
        case s.Report():
            return report(node, run.state, first, run.calendar(node, step.kinds))
        case s.Panes():
            partials = run.partials.pop(node.id, [])
            return panes(
                node,
                run.state,
                first,
                partials,
                run.calendar(node, step.kinds),
                run.pool,
                run.home(node),
            )
        case s.Changes():
            return changes(node, run.state, first, run.calendar(node, step.kinds), run.pool)
        case s.Session():
            return session(node, run.state, first, run.presence, run.progress)
        case s.RGroup():
            return rgroup(node, first, run.calendar(node, step.kinds), run.pool, run.home(node))
        case s.Join():
            return join(node, run.state, frames, run.horizons(node))
        case s.RJoin():
            return rjoin(node, frames[0], _right(run, node, step.lasting, frames[1]))
        case s.RLeft():
            return rleft(node, frames[0], _right(run, node, step.lasting, frames[1]), run.pool)
        case s.Once():
            out = once(
                node,
                run.state,
                first,
                node.read_whole(run.context.first, run.context.replaced),
                _instants(run, node),
            )
            if out is not None:
                run.lifted(node, out)
            return out
        case s.Closure():
            return closure(node, frames, _constants(run.context.plan, node, run.context.seed))
        case s.RSemi():
            return rsemi(node, frames[0], _right(run, node, step.lasting, frames[1]), run.pool)
        case s.Deltas():
            return deltas(node, run.state, first, run.calendar(node, step.kinds), run.pool)
        case s.Running():
            return running(node, run.state, frames, run.pool)
        case s.Tally():
            return tally(node, run.state, frames)
        case s.Snapshot():
            out, shown = snapshot(node, run.state, frames, run.calendar(node, step.kinds), run.pool)
            run.show(node, shown)
            return out
        case s.RExcept():
            return rexcept(node, frames[0], frames[1])
        case s.Union():
            there = [f for f in frames if f is not None]
            return concat(there) if there else None
        case _:
            return None if first is None else _one_input(run, node, first)


def _right(run: StageRun, node: PlanNode, stays: bool, frame: Frame | None) -> Frame | Run | None:
    """The right rows of a join of report rows: those of the reports, or those that stay."""
    return lasting(node, run.state, frame) if stays else frame


def _instants(run: StageRun, node: PlanNode) -> npt.NDArray[np.int64]:
    """From when on what this epoch reads of static data is there, for each member: for those that
    read it first, always.
    """
    first = node.fresh if run.context.first else np.zeros(len(node.members), np.bool_)
    return np.where(
        first, ALWAYS, run.context.replacement.instant if run.context.replacement else ALWAYS
    )


def _one_input(run: StageRun, node: PlanNode, frame: Frame) -> Frame | None:
    step = node.step
    match step:
        case s.Occur():
            return occur(node, run.state, frame, run.horizons(node))
        case s.Last():
            return last(node, run.state, frame, run.pool)
        case s.LastBy():
            return last_by(node, run.state, frame, run.pool)
        case s.Lift():
            out = lift(node, frame)
            run.lifted(node, out)
            return out
        case s.Net():
            return net(node, frame)
        case s.Select():
            return select(node, frame, _constants(run.context.plan, node, run.context.seed))
        case s.Filter():
            return filter_(node, frame, run.pool)
        case s.Extend():
            out = extend(node, frame, run.pool)
            run.computed(node, out)
            return out
        case s.RDistinct():
            return distinct(node, frame)
        case s.ROrder():
            return order(node, frame, run.pool)
        case s.Hold() | s.Emit():
            return frame
        case _:
            raise AssertionError(f"a {type(step).__name__} is evaluated at the intake")


_TABLES: dict[tuple[str, int, int], npt.NDArray[np.uint64]] = {}


def _constants(plan: str, node: PlanNode, seed: int) -> npt.NDArray[np.uint64]:
    """The identities of a pattern's constants, shape (members, 3, 2)."""
    key = (plan, node.id, seed)
    if key not in _TABLES:
        _TABLES.clear()
        table = np.zeros((len(node.members), 3, 2), np.uint64)
        for i, member in enumerate(node.members):
            for position, term in enumerate(member.constants):
                if term is not None:
                    table[i, position] = _identity(str(term), seed)
        _TABLES[key] = table
    return _TABLES[key]


@lru_cache(maxsize=100_000)
def _identity(text: str, seed: int) -> tuple[int, int]:
    return identify_one(text, seed)
