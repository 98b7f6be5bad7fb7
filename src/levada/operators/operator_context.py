"""The context of operators beside their rows: one value for all operators of a task and epoch.

    (node, inputs, env) -> rows | None       the signature of every operator (``operator_registry``)

``inputs`` are the new rows of each input, None for an input without rows. Values that follow from
the node alone are kept with the node (``PlanNode.known``); lasting data is in the state. The
context is frozen. Except for rows, an operator writes to only four places: the state, ``shown``,
``forms``, and ``arrived``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bools, Places, Shorts
from levada.core.event_time import MAX, MIN, WindowKind
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.core.query_limits import QueryLimits
from levada.kernels.keyed.key_partitioner import group_and_partition
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.reporting.due_reports import Calendar
from levada.operators.rows.route_rows import home_hash
from levada.operators.state.join_state import Horizons, Run
from levada.operators.state.state_parts import State
from levada.operators.windowing.element_times import ElementTimes
from levada.operators.windowing.report_times import WatermarkProgress
from levada.plan.execution.key_group_table import WHOLE, Division
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.sharing_demand import SharingDemand

Inputs = Sequence[Frame | None]


class PartitionInfo(NamedTuple):
    """The number of this partition; ``groups``: the partition of each key group; ``division``: the
    groups that are divided among several partitions.
    """

    partition: int
    groups: Shorts
    division: Division = WHOLE


class Home(NamedTuple):
    """For each member of a node, whether it is at home ``here``, and the key group of its home."""

    here: Bools
    group: Places


class Statics(NamedTuple):
    """The static data that an epoch reads. ``first``: the epoch reads everything new in its plan.
    Also the graphs that the epoch replaces, and the ``instant`` since which they are current (ms;
    None: no replacement).
    """

    first: bool = False
    replaced: frozenset[str | None] = frozenset()
    instant: int | None = None


_NONE = Statics()


@frozen
class OperatorContext:
    """``partials``: by node the panes that other tasks folded. ``shown``: by query the due reports
    (ms) of those that show empty ones, as far as they are known here. ``forms``: the measurements
    of joins that choose their form (``plan/execution/joins``). ``arrived``: by node the new rows of
    arrangements for several joins (``windowed/shared_join_side``). ``limits``: of one query.
    ``shares``: the wants of picks, for the whole plan.
    """

    state: State
    pool: TermLookup
    progress: WatermarkProgress
    element_times: ElementTimes
    place: PartitionInfo
    statics: Statics = _NONE
    partials: Mapping[int, Sequence[Frame]] = field(default_factory=dict)
    shown: dict[str, list[int]] = field(default_factory=dict)
    forms: dict[str, list[int]] = field(default_factory=dict)
    arrived: dict[int, Run] = field(default_factory=dict)
    limits: QueryLimits = field(default_factory=QueryLimits)
    shares: SharingDemand | None = None

    @staticmethod
    def for_rows(pool: TermLookup) -> OperatorContext:
        """Where rows are read: for steps that need nothing but each row."""
        none = np.empty(0, np.int64)
        place = PartitionInfo(0, np.zeros(1, np.int16))
        return OperatorContext(
            State(None, "", _nothing), pool, WatermarkProgress(none, none), {}, place
        )

    def calendar(self, node: PlanNode, kinds: Sequence[WindowKind]) -> Calendar:
        """Returns the due reports of a node whose schedules have windows of these kinds."""
        answered = None if kinds else self.due_members(node)
        return Calendar(
            node, kinds, self.progress, self.element_times, answered, limits=self.limits
        )

    def due_members(self, node: PlanNode) -> Bools:
        """The members without windows that are answered in this epoch."""
        return node.members_read_whole(self.statics.first, self.statics.replaced)

    def home(self, node: PlanNode) -> Home:
        """Returns the members of a node that are at home in this partition, and the groups of all
        homes.
        """
        group, at = group_and_partition(node.compute_once(_home_hash), self.place.groups)
        return Home(np.equal(at, self.place.partition) & (node.home >= 0), group)

    def horizons(self, node: PlanNode) -> Horizons:
        """Returns the least instants that rows of any member can still have, in this epoch and
        after it.

        Rows of static graphs that may be replaced are joined with those of any stream.
        """
        streams = node.compute_once(_streams)
        of = streams if len(streams) else slice(None)
        old, new = (int(w[of].min(initial=MAX)) for w in (self.progress.old, self.progress.new))
        return Horizons(max(old - 1, MIN), max(new - 1, MIN))

    def show(self, node: PlanNode, member: int, reports: npt.NDArray[np.int64]) -> None:
        """Notes the due reports of a member's query, which shows empty ones."""
        self.shown.setdefault(node.members.query_at(member), []).extend(reports.tolist())


Operator = Callable[[PlanNode[Any], Inputs, OperatorContext], Frame | None]


def _home_hash(node: PlanNode) -> npt.NDArray[np.uint64]:
    return home_hash(node.home)


def _streams(node: PlanNode) -> npt.NDArray[np.int32]:
    return np.unique(node.windows.stream[node.windows.stream >= 0])


def _nothing(name: str) -> Any:
    raise AssertionError(f"{name}: where rows are read there is no state")
