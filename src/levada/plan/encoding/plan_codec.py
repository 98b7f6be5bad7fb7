"""Defines the tags of the classes in plans, and encodes plans and group tables.

Each class in a plan needs a line here. A tag never changes, even if the class is renamed or moved.
The meaning of a tag's fields may change only with the format of checkpoints
(``checkpoint/checkpoint_folder.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from levada.core import expressions as e
from levada.core import query_model as q
from levada.core import rdf_terms as t
from levada.core.event_time import Window
from levada.errors import unreadable
from levada.plan.encoding.document import encode, read_file
from levada.plan.encoding.tag_registry import Registry
from levada.plan.execution import steps as s
from levada.plan.execution.key_group_table import DividedTable, Division, GroupTable, SplitKeyGroup
from levada.plan.execution.member_table import MemberTable
from levada.plan.execution.plan import Consumer, FanOut, Plan, PlanNode, QueryPlan, QuerySettings
from levada.plan.execution.plan_delta import PlanChange, Revised
from levada.plan.execution.report_schedules import Schedule, Schedules
from levada.plan.execution.row_layout import Layout, Span
from levada.plan.execution.shapes import Edge
from levada.plan.execution.window_table import WindowTable

STEPS: dict[str, type] = {
    "match": s.Match,
    "entailed": s.Entailed,
    "star": s.Star,
    "scan": s.Scan,
    "constant": s.Constant,
    "count window": s.CountWindow,
    "numbered": s.Numbered,
    "instants": s.Instants,
    "narrow": s.Narrow,
    "recent": s.Recent,
    "session": s.Session,
    "select": s.Select,
    "lift": s.SubqueryWindow,
    "once": s.StaticSubplan,
    "filter": s.Filter,
    "pick": s.Pick,
    "by window": s.ByWindow,
    "extend": s.Extend,
    "union": s.Union,
    "occur": s.Occur,
    "hold": s.Hold,
    "arrange": s.Arrange,
    "join": s.Join,
    "arrange distinct": s.ArrangeDistinct,
    "relaxed static": s.RelaxedStatic,
    "arranged join": s.ArrangedJoin,
    "arrange stream": s.ArrangeStream,
    "relaxed stream": s.RelaxedStream,
    "stream join": s.StreamJoin,
    "multiway join": s.MultiwayJoin,
    "adaptive join": s.AdaptiveJoin,
    "linked join": s.LinkedJoin,
    "report": s.Report,
    "panes": s.Panes,
    "report join": s.ReportJoin,
    "arranged report join": s.ArrangedReportJoin,
    "report group": s.RGroup,
    "report distinct": s.RDistinct,
    "report except": s.RExcept,
    "report order": s.ROrder,
    "closure": s.Closure,
    "changes": s.Changes,
    "ranged changes": s.RangedChanges,
    "deltas": s.Deltas,
    "running": s.Running,
    "tally": s.Multiplicity,
    "net": s.Net,
    "snapshot": s.Snapshot,
    "standing": s.Standing,
    "emit": s.Emit,
}
VALUES: dict[str, type] = STEPS | {
    "iri": t.Iri,
    "blank": t.Blank,
    "literal": t.Literal,
    "variable": e.Var,
    "term": e.Const,
    "parameter": e.Param,
    "call": e.Call,
    "aggregate call": e.Aggregate,
    "triple pattern": q.TriplePattern,
    "window": Window,
    "window on": q.StreamWindow,
    "layout": Layout,
    "span": Span,
    "edge": Edge,
    "form": s.Form,
    "way": s.EntailmentAlternative,
    "aggregate": s.Aggregate,
    "key": s.Key,
    "comparison": s.Comparison,
    "manner": QuerySettings,
}
RECORDS: dict[str, type] = {
    "members": MemberTable,
    "schedule": Schedule,
    "schedules": Schedules,
    "window table": WindowTable,
    "fan": FanOut,
    "consumer": Consumer,
    "node": PlanNode,
    "query": QueryPlan,
    "plan": Plan,
    "revised": Revised,
    "plan change": PlanChange,
}
_PLANS = Registry(VALUES, RECORDS)
_GROUPS = Registry(
    {"heavy group": SplitKeyGroup, "division": Division},
    {"group table": GroupTable, "divided table": DividedTable},
)


def encode_plan(plan: Plan | PlanChange) -> bytes:
    """Returns the file content of a sealed plan: all of it, or its differences."""
    return encode(plan, _PLANS)


def read_plan(path: Path, load: Callable[[Path], Plan] | None = None) -> Plan:
    """Reads a sealed plan. Raises ``CheckpointError``.

    If the file has differences, ``load`` returns the previous plan (None: it is read).
    """
    content = read_file(path, object, _PLANS)
    if isinstance(content, PlanChange):
        base = (load or read_plan)(previous_path(path, content.base))
        try:
            return content.apply_to(base)
        except (LookupError, StopIteration, ValueError) as error:
            raise unreadable(path, "it is of another plan") from error
    if not isinstance(content, Plan):
        raise unreadable(path, "it holds something else")
    return content


def previous_path(path: Path, version: int) -> Path:
    """Returns the path of another version's file in the same folder."""
    number, _, rest = path.name.partition("-")
    if not number.isdigit() or not version < int(number):
        raise unreadable(path, "the version before it is none")
    return path.with_name(f"{version}-{rest}")


def encode_groups(table: GroupTable) -> bytes:
    """Returns the file content of a group table."""
    return encode(table, _GROUPS)


def read_groups(path: Path) -> GroupTable:
    """Reads a group table. Raises ``CheckpointError``."""
    return read_file(path, GroupTable, _GROUPS)
