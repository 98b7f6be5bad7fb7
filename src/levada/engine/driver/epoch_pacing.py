"""The order and length of an engine's epochs, and the clock that paces them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from levada.checkpoint.manifest import Bound, Manifest
from levada.core.clock import CLOCK
from levada.core.durations import parse_duration
from levada.core.frozen import frozen
from levada.core.query_limits import Memory, QueryLimits
from levada.errors import UsageError
from levada.runtime.cost_model.admission_control import ASKED, Admission
from levada.runtime.cost_model.epoch_interval import Interval
from levada.runtime.cost_model.memory_admission import MemoryAdmission
from levada.runtime.cost_model.partition_count import GIVEN, PartitionCountPolicy, chosen_of
from levada.runtime.executor import Executor
from levada.runtime.placement.task_placement import TaskPlacement
from levada.runtime.rebalancing.rebalancer import Balancing

SHARE = 4
"""What part of a delay lies between the starts of two epochs, unless somebody says more."""


@frozen
class EpochPacing:
    """How epochs follow each other. ``interval``: the least time between the starts of two, ms
    (None: by their cost, ``runtime.cost_model.epoch_interval``);
    ``epoch_rows``: the most elements in one; ``delay``: within which results are to come, ms (0:
    whenever). ``once``: what is there is read and the streams end,
    unless they are to be kept open. ``limits``: of one query.
    ``slices``: those of event time whose send graphs are counted
    (``checkpoint.send_graph_options``). ``placed``: where tasks would best run. ``balancing``: what
    moves groups. ``cores``: on which (0: as many as partitions). ``follow``: has somebody told of
    each new placement, where one is learned. ``bound``: to which processors tasks are. ``degree``:
    who says how many partitions there are (``runtime.cost_model.partition_count``). ``memory``: of
    one task. ``accept_changes``: options of streams may change the meaning of what windows hold.
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
    follow: Callable[[Callable[[TaskPlacement], None]], None] | None = None
    delay: int = 0
    bound: Bound | None = None
    degree: str = GIVEN
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
            self.degree, self.cores, executor, clock_ms, balancing=balancing, known=known
        )
        degrees.pace.interval = Interval(self.interval)
        return degrees


def parse_pacing(epoch: int | str | None, delay: int | str | None) -> tuple[int | None, int]:
    """The least time between the starts of two epochs (None: by their cost) and the delay, ms.
    With a delay and no interval, a quarter of the delay, so that few elements do not cost an epoch
    each. Raises ``UsageError`` if no result could come within the delay.

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
    """The wall clock, in ms, without its steps (``core.clock``)."""
    return CLOCK()


def clock_ms() -> int:
    """The clock of durations, in ms."""
    return CLOCK.elapsed()
