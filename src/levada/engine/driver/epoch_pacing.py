"""The order and length of an engine's epochs, and the clock that paces them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from levada.checkpoint.manifest import Manifest
from levada.core.clock import CLOCK
from levada.core.event_time import parse_duration
from levada.core.frozen import frozen
from levada.core.query_limits import Memory, QueryLimits
from levada.errors import UsageError
from levada.runtime.cost_model.admission_control import ASKED, Admission
from levada.runtime.cost_model.epoch_time_trend import Interval
from levada.runtime.cost_model.memory_admission import MemoryAdmission
from levada.runtime.cost_model.partition_count import FIXED, PartitionCountPolicy, chosen_of
from levada.runtime.executor import Executor
from levada.runtime.placement.task_placement import TaskPlacement
from levada.runtime.rebalancing.rebalancer import Balancing

if TYPE_CHECKING:
    from levada.engine.placement.learned_placement import Learner

SHARE = 4
"""The interval between epochs is a delay divided by this, unless the user sets it."""


@frozen
class EpochPacing:
    """The options of an engine's epochs. ``interval``: the least time between the starts of two, ms
    (None: by their cost, ``runtime.cost_model.epoch_time_trend``). ``epoch_rows``: the most
    elements of one. ``delay``: the target latency of results, ms (0: none). ``once``: the existing
    input is read and the streams end, unless ``keep_open``. ``limits``: those of one query.
    ``slices``: the slices of event time with send graphs (``checkpoint.send_graph_options``).

    ``placed``: the preferred executors of tasks. ``balancing``: the policy that moves groups.
    ``cores``: the cores for partitions (0: as many as partitions). ``learner``: learns placements
    during the run.
    ``degree``: the policy for the number of partitions (``runtime.cost_model.partition_count``).
    ``memory``: the limit of one task. ``accept_changes``: changed options of streams may alter the
    meaning of window contents.
    """

    interval: int | None
    epoch_rows: int
    once: bool = False
    keep_open: bool = False
    limits: QueryLimits = field(default_factory=QueryLimits)
    slices: str = ""
    placed: TaskPlacement | None = None
    balancing: Balancing | None = None
    cores: int = 0
    learner: Learner | None = None
    delay: int = 0
    degree: str = FIXED
    memory: Memory = field(default_factory=Memory)
    accept_changes: bool = False

    def admission(self) -> Admission:
        """Returns the policy for the number of elements of an epoch."""
        return Admission(
            self.epoch_rows, self.delay, self.interval or 0, MemoryAdmission(self.memory)
        )

    def degrees(self, executor: Executor, last: Manifest | None) -> PartitionCountPolicy:
        """Returns the policy for the number of partitions, after the last epoch of the previous
        run.
        """
        known, balancing = chosen_of(last), self.balancing
        degrees = PartitionCountPolicy(
            self.degree, self.cores, executor, clock_ms, balancing=balancing, table_cores=known
        )
        degrees.pace.interval = Interval(self.interval)
        return degrees


def parse_pacing(epoch: int | str | None, delay: int | str | None) -> tuple[int | None, int]:
    """Parses the least time between the starts of two epochs (None: by their cost) and the delay,
    both in ms. Without an interval it is a quarter of the delay, so that a few elements do not cost
    an epoch each. Raises ``UsageError`` if no result could arrive within the delay.

    >>> parse_pacing(None, "250ms"), parse_pacing("100ms", 250)
    ((62, 250), (100, 250))
    >>> parse_pacing(None, None), parse_pacing(0, None)
    ((None, 0), (0, 0))
    """
    if delay is None:
        return None if epoch is None else parse_duration(epoch), 0
    within = parse_duration(delay)
    interval = within // SHARE if epoch is None else parse_duration(epoch)
    if within <= ASKED:
        raise UsageError(
            f"The delay is {within} ms, and no result comes that soon: what is new is looked for "
            f"every {ASKED:.0f} ms.",
            hint="Say for example 250ms or 1s.",
        )
    if interval >= within - ASKED:
        raise UsageError(
            f"Epochs begin {interval:,} ms apart, so no result could come within {within:,} ms.",
            hint=f"Leave epoch out, or say {within // 2}ms at most.",
        )
    return interval, within


def wall_clock_ms() -> int:
    """Returns the wall clock, in ms, without its steps (``core.clock``)."""
    return CLOCK()


def clock_ms() -> int:
    """Returns the clock of durations, in ms."""
    return CLOCK.elapsed()
